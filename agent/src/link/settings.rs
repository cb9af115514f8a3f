//! Where the hub is, who the agent is, and how it behaves.

use std::time::Duration;

use wavelift_core::{fence::Term, ids::ClusterName};

use super::backoff::Backoff;

/// Where the hub is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubAddress {
    /// A DNS name or an IP address to connect to.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The name that the hub's certificate must bear.
    pub server_name: String,
}

/// How the agent's end behaves. All times are real time.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the hub is.
    pub hub: HubAddress,
    /// The cluster the agent believes it is on.
    pub cluster: ClusterName,
    /// The agent's own version.
    pub agent_version: String,
    /// The version of the cluster's API server; empty when not known.
    pub kube_version: String,
    /// The agent's boot, the first part of its revisions.
    pub boot: u64,
    /// The highest term the agent obeyed before this start.
    pub highest_term: Term,
    /// How it comes back after a break.
    pub backoff: Backoff,
    /// How long each part of connecting may take.
    pub connect_timeout: Duration,
    /// How long an ended session may stay, to deliver what is under way.
    pub closing_grace: Duration,
    /// Reports waiting to be sent, and commands waiting to be taken.
    pub queue_max: usize,
    /// Upgrades with a status that is not acknowledged.
    pub outbox_max: usize,
}

impl Settings {
    /// Settings with the usual times and limits.
    pub fn new(hub: HubAddress, cluster: ClusterName, agent_version: &str, boot: u64) -> Self {
        Self {
            hub,
            cluster,
            agent_version: agent_version.to_owned(),
            kube_version: String::new(),
            boot,
            highest_term: Term::default(),
            backoff: Backoff { base: Duration::from_millis(500), cap: Duration::from_mins(1) },
            connect_timeout: Duration::from_secs(10),
            closing_grace: Duration::from_secs(4),
            queue_max: 64,
            outbox_max: 256,
        }
    }
}
