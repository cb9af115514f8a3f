//! Between the wire's types and the agent's own. Nothing outside this file reads a wire message.

use std::time::Duration;

use bytes::Bytes;
use wavelift_core::{
    fence::{Fence, Revision, Term},
    ids::{Namespace, Uid, UpgradeName},
};
use wavelift_proto::v1::{
    self as wire, agent_message::Message as ToHub, hub_message::Message as FromHub,
    query_response::Result as Answer,
};

use super::{
    backoff::Hint,
    error::Error,
    message::{
        AgentReport, Assignment, CheckReport, CheckRequest, Control, ControlAction, Finality,
        HubCommand, Progress, Query, StatusReport, UpgradeKey, Welcome,
    },
    outgoing::Part,
    settings::Settings,
};

const PROTOCOL_MIN: u32 = 1;
const PROTOCOL_MAX: u32 = 1;

/// A message of the hub past its Welcome.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// For the rest of the agent.
    Command(HubCommand),
    /// The same, but only from a leader that is not outdated.
    Led(Term, HubCommand),
    Ack {
        fence: Fence,
        revision: Revision,
    },
    Drain {
        hint: Hint,
        is_replaced: bool,
    },
    Heartbeat,
    /// A kind of message or action that is newer than this agent.
    Unknown,
}

type Outcome<T> = Result<T, Error>;

// === to the hub ===

pub(super) fn hello(settings: &Settings, highest_term: Term) -> wire::AgentMessage {
    to_hub(ToHub::Hello(wire::Hello {
        protocol_min: PROTOCOL_MIN,
        protocol_max: PROTOCOL_MAX,
        agent_version: settings.agent_version.clone(),
        boot: settings.boot,
        claimed_cluster: settings.cluster.to_string(),
        kube_version: settings.kube_version.clone(),
        highest_term_seen: highest_term.0,
    }))
}

pub(super) fn heartbeat() -> wire::AgentMessage {
    to_hub(ToHub::Heartbeat(wire::Heartbeat {}))
}

pub(super) fn status(report: StatusReport) -> wire::AgentMessage {
    let terminal = match report.finality {
        Finality::Running => false,
        Finality::Terminal => true,
    };
    to_hub(ToHub::Status(wire::StatusReport {
        fence: Some(fence_out(report.fence)),
        revision: Some(revision_out(report.revision)),
        terminal,
        upgrade: Some(upgrade_out(report.upgrade)),
        status_json: report.status_json,
    }))
}

pub(super) fn inventory_digest(digest: String) -> wire::AgentMessage {
    to_hub(ToHub::InventoryDigest(wire::InventoryDigest { digest }))
}

pub(super) fn inventory_part(part: Part) -> wire::AgentMessage {
    let Part { digest, index, count, bytes } = part;
    to_hub(ToHub::InventoryPart(wire::InventoryPart { digest, index, count, bytes }))
}

pub(super) fn catalog_part(part: Part) -> wire::AgentMessage {
    let Part { digest, index, count, bytes } = part;
    to_hub(ToHub::CatalogPart(wire::CatalogPart { digest, index, count, bytes }))
}

pub(super) fn piece_part(part: Part) -> wire::AgentMessage {
    let Part { digest, index, count, bytes } = part;
    to_hub(ToHub::PiecePart(wire::PiecePart { digest, index, count, bytes }))
}

pub(super) fn piece_missing(digest: String, reason: String) -> wire::AgentMessage {
    to_hub(ToHub::PieceMissing(wire::PieceMissing { digest, reason }))
}

pub(super) fn progress(progress: Progress) -> wire::AgentMessage {
    to_hub(ToHub::Progress(wire::Progress {
        fence: Some(fence_out(progress.fence)),
        revision: Some(revision_out(progress.revision)),
        upgrade: Some(upgrade_out(progress.upgrade)),
        step_index: progress.step_index,
        percent: progress.percent.into(),
        state: progress.state,
        words_json: progress.words_json,
    }))
}

pub(super) fn check_report(report: CheckReport) -> wire::AgentMessage {
    to_hub(ToHub::CheckReport(wire::CheckReport {
        request_id: report.request_id,
        fence: Some(fence_out(report.fence)),
        results_json: report.results_json,
    }))
}

pub(super) fn answer(id: u64, result: Result<Bytes, String>) -> wire::AgentMessage {
    let result = match result {
        Ok(json) => Answer::OkJson(json),
        Err(text) => Answer::Error(text),
    };
    to_hub(ToHub::QueryResponse(wire::QueryResponse { id, result: Some(result) }))
}

/// A short name for the metric.
pub(super) fn kind(report: &AgentReport) -> &'static str {
    match report {
        AgentReport::InventoryDigest(_) => "inventory_digest",
        AgentReport::Inventory { .. } => "inventory",
        AgentReport::Catalog { .. } => "catalog",
        AgentReport::Piece { .. } => "piece",
        AgentReport::PieceMissing { .. } => "piece_missing",
        AgentReport::Progress(_) => "progress",
        AgentReport::CheckReport(_) => "check_report",
        AgentReport::QueryAnswer { .. } => "query_answer",
    }
}

fn fence_out(fence: Fence) -> wire::Fence {
    let Fence { uid, epoch, attempt } = fence;
    wire::Fence { uid: uid.into(), epoch, attempt }
}

fn revision_out(revision: Revision) -> wire::Revision {
    let Revision { boot, sequence } = revision;
    wire::Revision { boot, sequence }
}

fn upgrade_out(upgrade: UpgradeKey) -> wire::UpgradeRef {
    wire::UpgradeRef { namespace: upgrade.namespace.into(), name: upgrade.name.into() }
}

fn to_hub(message: ToHub) -> wire::AgentMessage {
    wire::AgentMessage { message: Some(message) }
}

// === from the hub ===

pub(super) fn welcome(message: &wire::HubMessage) -> Outcome<Welcome> {
    let Some(FromHub::Welcome(welcome)) = &message.message else { return Err(Error::NoWelcome) };
    if !(PROTOCOL_MIN..=PROTOCOL_MAX).contains(&welcome.protocol) {
        return Err(Error::Protocol(welcome.protocol));
    }
    let nonzero = |what: &str, value: u32| {
        if value == 0 { Err(Error::Malformed(format!("a {what} of 0"))) } else { Ok(value) }
    };
    let millis =
        |what, value| nonzero(what, value).map(|value| Duration::from_millis(u64::from(value)));
    let bytes = nonzero("message length", welcome.message_bytes_max)?;
    Ok(Welcome {
        term: Term(welcome.term),
        session: welcome.session_id,
        heartbeat_interval: millis("heartbeat interval", welcome.heartbeat_interval_ms)?,
        message_bytes_max: usize::try_from(bytes).unwrap_or(usize::MAX),
        status_repeat: millis("status repeat", welcome.status_repeat_ms)?,
        inventory_period: Duration::from_secs(u64::from(nonzero(
            "inventory period",
            welcome.inventory_period_seconds,
        )?)),
    })
}

pub(super) fn incoming(message: wire::HubMessage) -> Outcome<Incoming> {
    let Some(message) = message.message else { return Ok(Incoming::Unknown) };
    Ok(match message {
        FromHub::Welcome(_) => return Err(malformed("a second Welcome")),
        FromHub::Heartbeat(wire::Heartbeat {}) => Incoming::Heartbeat,
        FromHub::InventoryRequest(wire::InventoryRequest { digest }) => {
            Incoming::Command(HubCommand::InventoryRequest { digest })
        }
        FromHub::CatalogRequest(wire::CatalogRequest { digest }) => {
            Incoming::Command(HubCommand::CatalogRequest { digest })
        }
        FromHub::PieceRequest(wire::PieceRequest { digest }) => {
            Incoming::Command(HubCommand::PieceRequest { digest })
        }
        FromHub::Assignment(assignment) => led(assignment.term, |term| {
            Ok(HubCommand::Assign(Assignment {
                fence: fence(assignment.fence)?,
                term,
                upgrade: upgrade_key(assignment.upgrade)?,
                spec_json: assignment.spec_json,
            }))
        })?,
        FromHub::Control(message) => control(message)?,
        FromHub::CheckRequest(request) => led(request.term, |term| {
            Ok(HubCommand::Check(CheckRequest {
                request_id: request.request_id,
                fence: fence(request.fence)?,
                term,
                upgrade: upgrade_key(request.upgrade)?,
                spec_json: request.spec_json,
            }))
        })?,
        FromHub::Ack(ack) => {
            Incoming::Ack { fence: fence(ack.fence)?, revision: revision(ack.revision)? }
        }
        FromHub::Query(wire::Query { id, kind, namespace, name }) => {
            Incoming::Command(HubCommand::Query(Query { id, kind, namespace, name }))
        }
        FromHub::Drain(drain) => Incoming::Drain {
            hint: Hint {
                after: Duration::from_millis(u64::from(drain.reconnect_after_ms)),
                spread: Duration::from_millis(u64::from(drain.spread_ms)),
            },
            is_replaced: drain.reason() == wire::drain::Reason::Replaced,
        },
    })
}

fn control(message: wire::Control) -> Outcome<Incoming> {
    let action = match message.action() {
        wire::control::Action::Unspecified => return Ok(Incoming::Unknown),
        wire::control::Action::Continue => ControlAction::Continue,
        wire::control::Action::Freeze => ControlAction::Freeze,
        wire::control::Action::Cancel => ControlAction::Cancel,
        wire::control::Action::Forget => ControlAction::Forget,
    };
    led(message.term, |term| {
        Ok(HubCommand::Control(Control {
            fence: fence(message.fence)?,
            term,
            upgrade: upgrade_key(message.upgrade)?,
            action,
        }))
    })
}

fn led(term: u64, command: impl FnOnce(Term) -> Outcome<HubCommand>) -> Outcome<Incoming> {
    let term = Term(term);
    Ok(Incoming::Led(term, command(term)?))
}

fn fence(fence: Option<wire::Fence>) -> Outcome<Fence> {
    let wire::Fence { uid, epoch, attempt } = fence.ok_or_else(|| malformed("no fence"))?;
    let uid = Uid::try_from(uid).map_err(|error| malformed(&error.to_string()))?;
    Ok(Fence { uid, epoch, attempt })
}

fn revision(revision: Option<wire::Revision>) -> Outcome<Revision> {
    let wire::Revision { boot, sequence } = revision.ok_or_else(|| malformed("no revision"))?;
    Ok(Revision { boot, sequence })
}

fn upgrade_key(upgrade: Option<wire::UpgradeRef>) -> Outcome<UpgradeKey> {
    let wire::UpgradeRef { namespace, name } =
        upgrade.ok_or_else(|| malformed("no ClusterUpgrade"))?;
    Ok(UpgradeKey {
        namespace: Namespace::try_from(namespace).map_err(|error| malformed(&error.to_string()))?,
        name: UpgradeName::try_from(name).map_err(|error| malformed(&error.to_string()))?,
    })
}

fn malformed(what: &str) -> Error {
    Error::Malformed(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_hub(message: FromHub) -> wire::HubMessage {
        wire::HubMessage { message: Some(message) }
    }

    fn good_welcome() -> wire::Welcome {
        wire::Welcome {
            protocol: 1,
            term: 4,
            session_id: 9,
            heartbeat_interval_ms: 15_000,
            message_bytes_max: 1_048_576,
            status_repeat_ms: 10_000,
            inventory_period_seconds: 300,
        }
    }

    #[test]
    fn a_welcome_must_be_complete_and_of_our_protocol() {
        let kind = |message| welcome(&from_hub(FromHub::Welcome(message))).err().map(|e| e.kind());
        assert_eq!(kind(good_welcome()), None);
        assert_eq!(kind(wire::Welcome { protocol: 2, ..good_welcome() }), Some("protocol"));
        let silent = wire::Welcome { heartbeat_interval_ms: 0, ..good_welcome() };
        assert_eq!(kind(silent), Some("malformed"));
        let heartbeat = from_hub(FromHub::Heartbeat(wire::Heartbeat {}));
        assert_eq!(welcome(&heartbeat).unwrap_err().kind(), "no_welcome");
    }

    #[test]
    fn an_action_of_a_newer_hub_is_passed_over() {
        let control = wire::Control { action: 99, ..Default::default() };
        assert_eq!(incoming(from_hub(FromHub::Control(control))).unwrap(), Incoming::Unknown);
        assert_eq!(incoming(wire::HubMessage { message: None }).unwrap(), Incoming::Unknown);
    }

    #[test]
    fn an_assignment_carries_its_leaders_term() {
        let assignment = wire::Assignment {
            fence: Some(wire::Fence { uid: "u".to_owned(), epoch: 1, attempt: 0 }),
            term: 7,
            upgrade: Some(wire::UpgradeRef { namespace: "c".to_owned(), name: "n".to_owned() }),
            spec_json: Bytes::from_static(b"{}"),
        };
        let message = from_hub(FromHub::Assignment(assignment));
        let Incoming::Led(term, HubCommand::Assign(assignment)) = incoming(message).unwrap() else {
            panic!("no assignment")
        };
        assert_eq!((term, assignment.term), (Term(7), Term(7)));
    }
}
