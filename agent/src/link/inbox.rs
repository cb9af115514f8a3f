//! What is done with each message of the hub, in a running session and in one that ends.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::timeout};
use tonic::Streaming;
use tracing::{debug, warn};
use wavelift_core::fence::Term;
use wavelift_proto::v1::HubMessage;

use super::{
    backoff::Hint,
    convert::{self, Incoming},
    error::Error,
    handle::Shared,
    message::HubCommand,
    metrics::Metrics,
};

/// What a message asks of the session.
#[derive(Debug)]
pub(super) enum Received {
    /// Nothing.
    Nothing,
    /// To hand a command to the rest of the agent.
    Command(HubCommand),
    /// To leave.
    Drain { hint: Hint, is_replaced: bool },
}

/// Where messages of the hub go.
#[derive(Debug, Clone)]
pub(super) struct Inbox {
    pub(super) shared: Arc<Shared>,
    pub(super) metrics: Metrics,
    pub(super) commands: mpsc::Sender<HubCommand>,
}

impl Inbox {
    pub(super) fn take(&self, message: HubMessage) -> Result<Received, Error> {
        self.metrics.heard();
        Ok(match convert::incoming(message)? {
            Incoming::Heartbeat | Incoming::Unknown => Received::Nothing,
            Incoming::Command(command) => Received::Command(command),
            Incoming::Led(offered, command) => match self.shared.take_term(offered) {
                Ok(()) => Received::Command(command),
                Err(seen) => return Err(self.outdated(seen, offered)),
            },
            Incoming::Ack { fence, revision } => {
                let upgrade = self.shared.outbox.lock().acknowledge(&fence, revision);
                upgrade.map_or(Received::Nothing, |upgrade| {
                    Received::Command(HubCommand::Acknowledged { upgrade, fence, revision })
                })
            }
            Incoming::Drain { hint, is_replaced } => Received::Drain { hint, is_replaced },
        })
    }

    fn outdated(&self, seen: Term, offered: Term) -> Error {
        self.metrics.dropped.with_label_values(&["old_term"]).inc();
        warn!(%seen, %offered, "a leader of an old term was not obeyed");
        Error::OldTerm { seen, offered }
    }

    /// Reads an ended session to its end, so that nothing the hub sent on it is lost.
    pub(super) async fn finish(self, mut incoming: Streaming<HubMessage>, grace: Duration) {
        let rest = async {
            while let Ok(Some(message)) = incoming.message().await {
                match self.take(message) {
                    Ok(Received::Command(command)) => {
                        if self.commands.send(command).await.is_err() {
                            return;
                        }
                    }
                    Ok(Received::Nothing | Received::Drain { .. }) => {}
                    Err(error) => {
                        debug!(kind = error.kind(), "an ended session broke");
                        return;
                    }
                }
            }
        };
        if timeout(grace, rest).await.is_err() {
            debug!("the hub did not close an ended session in time");
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tokio::sync::{Notify, watch};
    use wavelift_proto::v1 as wire;

    use super::*;
    use crate::link::{handle::LinkState, outbox::Outbox};

    fn inbox(highest: u64) -> Inbox {
        let shared = Shared {
            outbox: Mutex::new(Outbox::new(1)),
            outbox_changed: Notify::new(),
            highest_term: watch::channel(Term(highest)).0,
            state: watch::channel(LinkState::Connecting).0,
        };
        let metrics = Metrics::register(&prometheus::Registry::new()).unwrap();
        Inbox { shared: Arc::new(shared), metrics, commands: mpsc::channel(1).0 }
    }

    fn freeze(term: u64) -> HubMessage {
        let mut control = wire::Control {
            fence: Some(wire::Fence { uid: "u".to_owned(), epoch: 1, attempt: 0 }),
            term,
            upgrade: Some(wire::UpgradeRef { namespace: "a".to_owned(), name: "u".to_owned() }),
            action: 0,
        };
        control.set_action(wire::control::Action::Freeze);
        HubMessage { message: Some(wire::hub_message::Message::Control(control)) }
    }

    #[test]
    fn a_command_of_a_lower_term_than_one_seen_is_not_obeyed() {
        let inbox = inbox(4);
        assert!(matches!(inbox.take(freeze(4)), Ok(Received::Command(_))));
        let refused = inbox.take(freeze(3)).unwrap_err();
        assert_eq!(refused.kind(), "old_term");
        assert_eq!(inbox.metrics.dropped.with_label_values(&["old_term"]).get(), 1);
        // A later leader's command raises the bar.
        assert!(matches!(inbox.take(freeze(6)), Ok(Received::Command(_))));
        assert_eq!(inbox.take(freeze(5)).unwrap_err().kind(), "old_term");
    }
}
