//! A process that is killed in the middle of something.

use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::child::Child;

/// The process to be killed, and what it was doing.
#[derive(Clone)]
pub(crate) struct Victim {
    child: Arc<Mutex<Option<Child>>>,
    hit: watch::Sender<Option<String>>,
}

impl Victim {
    pub(crate) fn new() -> Self {
        Self { child: Arc::default(), hit: watch::Sender::new(None) }
    }

    /// Puts a process in place; whoever comes to kill meanwhile waits for it.
    pub(crate) fn start(&self, start: impl FnOnce() -> Result<Child>) -> Result<()> {
        let mut child = self.child.lock();
        *child = Some(start()?);
        Ok(())
    }

    pub(crate) fn kill(&self, what: &str) {
        if let Some(child) = self.child.lock().as_mut() {
            child.kill();
        }
        self.hit.send_replace(Some(what.to_owned()));
    }

    /// What it was doing, once it is dead.
    pub(crate) async fn killed(&self) -> String {
        let mut hit = self.hit.subscribe();
        match hit.wait_for(Option::is_some).await {
            Ok(hit) => hit.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }
}
