//! How the kinds of things in a preview are called, for people.

use std::fmt;

use super::{Aspect, Danger, Deprecated, ObjectChange, Section};

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Everything => "everything",
            Self::Escalate => "escalate or bind roles",
            Self::Impersonate => "impersonate",
            Self::NodesProxy => "nodes/proxy",
            Self::Secrets => "secrets",
            Self::Tokens => "service account tokens",
            Self::PodsExec => "run commands in pods",
            Self::WebhookConfigurations => "webhook configurations",
            Self::SecurityContextConstraints => "security context constraints",
            Self::RolesAndBindings => "write roles and bindings",
            Self::Certificates => "sign certificates",
            Self::ApiDefinitions => "define APIs",
            Self::NodesAndVolumes => "write nodes or volumes",
            Self::Wildcard => "wildcard",
            Self::ClusterWide => "cluster-wide, was in a namespace",
            Self::Workloads => "create pods",
        })
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Security => "security context",
            Self::ServiceAccount => "service account",
            Self::Containers => "containers",
            Self::Images => "images",
            Self::Scheduling => "scheduling",
            Self::Replicas => "replicas",
            Self::Resources => "resources",
            Self::Environment => "environment",
            Self::Command => "command",
            Self::Volumes => "volumes",
            Self::Probes => "probes",
            Self::Other => "other",
        })
    }
}

impl fmt::Display for ObjectChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Renamed => "renamed",
            Self::Changed => "changed",
        })
    }
}

impl fmt::Display for Deprecated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package => f.write_str("the package"),
            Self::Channel(name) => write!(f, "channel {name}"),
            Self::Bundle => f.write_str("the bundle"),
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Assessments => "Assessments",
            Self::ManualSteps => "Manual steps",
            Self::Permissions => "Permissions",
            Self::Crds => "CRDs",
            Self::Webhooks => "Webhooks",
            Self::ApiServices => "Aggregated APIs",
            Self::Deployments => "Deployments",
            Self::Images => "Images",
            Self::Objects => "Other objects",
            Self::Alerts => "Alert rules",
            Self::Compatibility => "Compatibility",
            Self::ReleaseNotes => "Release notes",
        })
    }
}
