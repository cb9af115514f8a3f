//! What the link is told: its limits, its intervals, and who leads.

use std::time::Duration;

use wavelift_core::fence::Term;

/// Whether this hub leads. Only a leader takes sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderState {
    /// The term while leading; absent on a standby.
    pub term: Option<Term>,
}

/// How the link behaves. All times are real time.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Bounds on what comes from outside.
    pub limits: Limits,
    /// How often an agent gives a sign of life. A session silent for three of these ends.
    pub heartbeat_interval: Duration,
    /// How often an agent repeats a status that was not acknowledged.
    pub status_repeat: Duration,
    /// How often an agent looks at its inventory anew, in upgrade time.
    pub inventory_period: Duration,
    /// How long a TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long an agent may take from the end of the handshake to its Hello.
    pub hello_timeout: Duration,
    /// How long an ended session's connection may stay, to deliver what is under way.
    pub closing_grace: Duration,
    /// What agents are told when the hub's process ends.
    pub shutdown_hint: DrainHint,
}

/// Bounds on what comes from outside.
#[derive(Debug, Clone)]
pub struct Limits {
    /// TLS handshakes at the same time; more wait in the kernel's backlog.
    pub handshakes_max: usize,
    /// Connections past their handshake at the same time.
    pub connections_max: usize,
    /// Sessions at the same time, one per cluster.
    pub sessions_max: usize,
    /// The longest message of an agent.
    pub message_bytes_max: usize,
    /// Messages of one session per second, in the long run.
    pub messages_per_second: u32,
    /// Messages of one session at once.
    pub messages_burst: u32,
    /// The longest inventory.
    pub inventory_bytes_max: usize,
    /// The longest catalog.
    pub catalog_bytes_max: usize,
    /// The longest piece of a catalog.
    pub piece_bytes_max: usize,
    /// All unfinished inventories, catalogs and pieces of all sessions together.
    pub uploads_bytes_max: usize,
    /// Events waiting for the rest of the hub; then agents are made to wait.
    pub events_max: usize,
    /// Commands waiting for one agent.
    pub commands_max: usize,
    /// The longest command.
    pub command_bytes_max: usize,
    /// Unanswered queries of one session.
    pub queries_max: usize,
}

/// What a drained agent is told about when to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainHint {
    /// At least so long from now,
    pub after: Duration,
    /// and a random part of this on top, so that they do not all come at once.
    pub spread: Duration,
    /// Why the session ends.
    pub reason: DrainReason,
}

/// Why the hub ends a session that did nothing wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainReason {
    /// The hub's process ends.
    Shutdown,
    /// Another hub leads.
    NotLeader,
    /// The cluster opened another session.
    Replaced,
    /// The session's certificate has reached its end.
    CertificateExpired,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            heartbeat_interval: Duration::from_secs(15),
            status_repeat: Duration::from_secs(10),
            inventory_period: Duration::from_mins(5),
            handshake_timeout: Duration::from_secs(5),
            hello_timeout: Duration::from_secs(10),
            closing_grace: Duration::from_secs(5),
            shutdown_hint: DrainHint {
                after: Duration::from_millis(500),
                spread: Duration::from_secs(10),
                reason: DrainReason::Shutdown,
            },
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshakes_max: 512,
            connections_max: 25_000,
            sessions_max: 20_000,
            message_bytes_max: 1 << 20,
            messages_per_second: 100,
            messages_burst: 400,
            inventory_bytes_max: 8 << 20,
            catalog_bytes_max: 64 << 20,
            piece_bytes_max: 16 << 20,
            uploads_bytes_max: 256 << 20,
            events_max: 1_024,
            commands_max: 64,
            command_bytes_max: 2 << 20,
            queries_max: 32,
        }
    }
}
