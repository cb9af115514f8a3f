//! What `opm` would refuse in a catalog. OLM v0's catalog servers do not serve such a catalog.

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {}
