//! Kubernetes Events for the main turns of a campaign, written beside everything else.
//!
//! They are for people and expire; what must last is in the FleetUpgrade's history. Where they
//! come faster than they can be written, the surplus is dropped.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client, Resource as _,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use wavelift_api::{FleetUpgrade, labels};
use wavelift_runtime::{lease::Claim, telemetry::chain};

use crate::metrics::Metrics;

/// Events that wait to be written.
const WAITING_MAX: usize = 256;
/// The longest note that the API takes, in bytes.
const NOTE_BYTES_MAX: usize = 1_024;

/// Where events are left.
#[derive(Debug, Clone)]
pub(crate) struct Events(mpsc::Sender<(Event, ObjectReference)>);

/// Makes the place and the task that writes what is left there.
pub(crate) fn spawn(
    client: Client,
    identity: &str,
    claim: Claim,
    metrics: Metrics,
    stop: CancellationToken,
) -> Events {
    let (sender, mut receiver) = mpsc::channel::<(Event, ObjectReference)>(WAITING_MAX);
    let reporter = Reporter {
        controller: labels::MANAGER_HUB.to_owned(),
        instance: Some(identity.chars().take(128).collect()),
    };
    let recorder = Recorder::new(client, reporter);
    tokio::spawn(async move {
        loop {
            let (event, about) = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                next = receiver.recv() => match next {
                    Some(next) => next,
                    None => return,
                },
            };
            if claim.check().is_err() {
                return;
            }
            match recorder.publish(&event, &about).await {
                Ok(()) => metrics.writes.with(["Event"]).inc(),
                Err(error) => debug!(error = %chain(&error), "an event was not written"),
            }
        }
    });
    Events(sender)
}

impl Events {
    /// Says that something happened to a campaign.
    pub(crate) fn publish(&self, fleet: &FleetUpgrade, reason: &str, note: &str) {
        let is_bad = ["Halted", "Failed"].contains(&reason);
        let mut note = note.to_owned();
        while note.len() > NOTE_BYTES_MAX {
            note.pop();
        }
        let event = Event {
            type_: if is_bad { EventType::Warning } else { EventType::Normal },
            reason: reason.to_owned(),
            note: Some(note),
            action: "Campaign".to_owned(),
            secondary: None,
        };
        // Full: dropped, see above.
        drop(self.0.try_send((event, fleet.object_ref(&()))));
    }
}
