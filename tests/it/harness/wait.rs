//! Waiting for things to be so. The deadline only keeps a broken test from hanging.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{interval, timeout};
use wavelift_sim::apiserver::Store;

use super::child::LOOK;

/// Much longer than anything takes on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// Waits until `look` finds something in a store; it looks again at every change.
pub(crate) async fn in_store<T>(
    store: &Store,
    what: &str,
    mut look: impl FnMut(&Store) -> Option<T>,
) -> Result<T> {
    let mut changes = store.subscribe();
    let found = async {
        loop {
            if let Some(found) = look(store) {
                return found;
            }
            drop(changes.next().await);
        }
    };
    timeout(PATIENCE, found).await.with_context(|| format!("waited in vain for {what}"))
}

/// Waits for something outside of this process, which cannot tell when it is so.
pub(crate) async fn polled<T>(
    what: &str,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let found = async {
        let mut turns = interval(LOOK);
        loop {
            turns.tick().await;
            if let Some(found) = look()? {
                return Ok(found);
            }
        }
    };
    timeout(PATIENCE, found).await.with_context(|| format!("waited in vain for {what}"))?
}
