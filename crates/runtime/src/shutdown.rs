//! Stopping in order: the first signal asks, the second insists.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

/// When to stop, and how soon.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Cancelled at the first signal: finish what is under way, then end.
    pub asked: CancellationToken,
    /// Cancelled at the second signal: end now. `main` returns when it sees this.
    pub insisted: CancellationToken,
}

// === impl Shutdown ===

impl Shutdown {
    /// A shutdown that only the program itself starts.
    pub fn manual() -> Self {
        Self::default()
    }

    /// Listens for SIGTERM and SIGINT until both tokens are cancelled.
    pub fn on_signals() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let shutdown = Self::default();
        drop(tokio::spawn(listen(shutdown.clone(), terminate, interrupt)));
        Ok(shutdown)
    }

    /// Asks the program to end.
    pub fn ask(&self) {
        self.asked.cancel();
    }
}

async fn listen(shutdown: Shutdown, mut terminate: Signal, mut interrupt: Signal) {
    for token in [&shutdown.asked, &shutdown.insisted] {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        info!(signal = name, is_second = shutdown.asked.is_cancelled(), "stopping");
        token.cancel();
    }
}
