//! Against the real programs: OLM's own registry server, a real image registry.

#[cfg(test)]
mod opm;
#[cfg(test)]
mod registry;
#[cfg(test)]
mod support;
