//! What the agent may do on its cluster: one row a right, each with its reason.
//!
//! The roles of the chart and the page about them are written from this list, and the agent that
//! the tests put on real API servers has these roles and no others. Beside them it is bound to the
//! cluster's own role `view`, for operators' custom resources, and to whatever roles are labelled
//! [`AGGREGATE`]. What it may not read is not known, never taken to be well.

mod manifests;

pub use self::manifests::manifests;

/// The agent's ServiceAccount, and what the names of its roles begin with.
pub const NAME: &str = "wavelift-agent";
/// The namespace that the chart's files name.
pub const NAMESPACE: &str = "wavelift-agent";
/// ClusterRoles with this label, `true`, are the agent's too.
pub const AGGREGATE: &str = "wavelift.io/aggregate-to-agent";

/// Whose word it takes for a right to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// Nobody's: without it there is no agent.
    Always,
    /// An administrator's: `agent.remedies: Enabled`.
    Remedies,
    /// An administrator's: `agent.pinnedCatalogs: Enabled`.
    PinnedCatalogs,
}

/// Where a right holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In every namespace, and for what is in none.
    Everywhere,
    /// In the agent's own namespace.
    OwnNamespace,
}

/// One right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// Whose word it takes.
    pub grant: Grant,
    /// Where it holds.
    pub place: Place,
    /// The API group, empty for the core's.
    pub group: &'static str,
    /// The resource, with its subresource if it is one's.
    pub resource: &'static str,
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// What for.
    pub why: &'static str,
}

const OLM: &str = "operators.coreos.com";
const READ: &[&str] = &["get", "list", "watch"];

/// All rights that the agent's drivers need.
pub const RIGHTS: &[Right] = &[
    everywhere(OLM, "subscriptions", READ, "what is installed, and which InstallPlan is offered"),
    everywhere(
        OLM,
        "subscriptions",
        &["patch"],
        "hold what would move by itself, give the approval back; point at a pinned catalog and back",
    ),
    everywhere(OLM, "installplans", READ, "which CSVs OLM would install, and how it went"),
    everywhere(OLM, "installplans", &["patch"], "approve the plan that was consented to"),
    everywhere(
        OLM,
        "installplans",
        &["delete"],
        "have OLM resolve anew where a plan that has not run is stale",
    ),
    everywhere(OLM, "clusterserviceversions", READ, "which versions are there, and how they are"),
    everywhere(OLM, "operatorgroups", READ, "a namespace resolves with exactly one"),
    everywhere(OLM, "operatorconditions", READ, "what operators say of themselves"),
    everywhere(OLM, "catalogsources", READ, "where catalogs are served, and whether they are"),
    everywhere("apps", "deployments", READ, "how an operator rolls out"),
    everywhere(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &["get", "list"],
        "which versions are stored and served, before a new definition takes their place",
    ),
    everywhere("config.openshift.io", "clusterversions", &["get"], "the platform's version"),
    own("clusterupgrades", READ, "what the agent was given, and what it has come to"),
    own("clusterupgrades", &["create", "patch", "delete"], "write down what the hub wishes"),
    own("clusterupgrades/status", &["update"], "write down what came of it"),
    given(
        Grant::Remedies,
        "subscriptions/status",
        &["patch"],
        "clear a resolution that failed for good",
    ),
    given(
        Grant::Remedies,
        "installplans/status",
        &["patch"],
        "let a plan that failed half-way run again",
    ),
    given(
        Grant::Remedies,
        "clusterserviceversions",
        &["delete"],
        "clear a version that will not come up, or that nothing refers to",
    ),
    given(
        Grant::PinnedCatalogs,
        "catalogsources",
        &["create", "delete"],
        "serve the cluster's own catalog, restricted to the plan, while a step runs",
    ),
];

const fn everywhere(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> Right {
    Right { grant: Grant::Always, place: Place::Everywhere, group, resource, verbs, why }
}

const fn own(resource: &'static str, verbs: &'static [&'static str], why: &'static str) -> Right {
    let (grant, place, group) = (Grant::Always, Place::OwnNamespace, wavelift_api::GROUP);
    Right { grant, place, group, resource, verbs, why }
}

const fn given(
    grant: Grant,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> Right {
    Right { grant, place: Place::Everywhere, group: OLM, resource, verbs, why }
}

// === impl Grant ===

impl Grant {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Always, Self::Remedies, Self::PinnedCatalogs];

    /// The chart's setting that gives it, if it takes one.
    pub fn setting(self) -> Option<&'static str> {
        match self {
            Self::Always => None,
            Self::Remedies => Some("agent.remedies: Enabled"),
            Self::PinnedCatalogs => Some("agent.pinnedCatalogs: Enabled"),
        }
    }

    /// The name of its ClusterRole, and of the chart's file that holds it.
    pub fn role(self) -> &'static str {
        match self {
            Self::Always => NAME,
            Self::Remedies => "wavelift-agent-remedies",
            Self::PinnedCatalogs => "wavelift-agent-pinned-catalogs",
        }
    }
}

#[cfg(test)]
mod tests;
