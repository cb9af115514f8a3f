//! Between the wire's types and the hub's own. Nothing outside this file reads a wire message,
//! and nothing that does not conform gets past it.

use std::time::Duration;

use bytes::Bytes;
use wavelift_core::{
    fence::{Fence, Revision, Term},
    ids::{Namespace, Uid, UpgradeName},
};
use wavelift_proto::v1::{
    self as wire, agent_message::Message as FromAgent, hub_message::Message as ToAgent,
    query_response::Result as Answer,
};

use super::{
    command::{ControlAction, HubCommand, Query},
    event::{
        AgentHello, CheckReport, Content, Finality, Progress, SessionId, StatusReport, UpgradeKey,
    },
    parts::Part,
    refusal::Refusal,
    settings::{DrainHint, DrainReason, Settings},
};

/// The lowest protocol version the hub speaks.
pub(super) const PROTOCOL_MIN: u32 = 1;
/// The highest.
pub(super) const PROTOCOL_MAX: u32 = 1;

const SHORT_TEXT_MAX: usize = 128;
const ERROR_TEXT_MAX: usize = 1_024;
const PARTS_MAX: u32 = 65_536;

/// A message of an agent past its Hello.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    Heartbeat,
    InventoryDigest(String),
    Part(Content, Part),
    PieceMissing {
        digest: String,
        reason: String,
    },
    Status(StatusReport),
    Progress(Progress),
    CheckReport(CheckReport),
    Answer {
        id: u64,
        result: Result<Bytes, String>,
    },
    /// A kind of message that is newer than this hub.
    Unknown,
}

/// A Hello as it is judged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) protocol_min: u32,
    pub(super) protocol_max: u32,
    pub(super) cluster: String,
    pub(super) highest_term: Term,
    pub(super) hello: AgentHello,
}

type Outcome<T> = Result<T, Refusal>;

// === from the agent ===

pub(super) fn claim(message: wire::AgentMessage) -> Outcome<Claim> {
    let Some(FromAgent::Hello(hello)) = message.message else { return Err(Refusal::NoHello) };
    Ok(Claim {
        protocol_min: hello.protocol_min,
        protocol_max: hello.protocol_max,
        cluster: short("claimed cluster", hello.claimed_cluster)?,
        highest_term: Term(hello.highest_term_seen),
        hello: AgentHello {
            agent_version: short("agent version", hello.agent_version)?,
            kube_version: short("Kubernetes version", hello.kube_version)?,
            boot: hello.boot,
        },
    })
}

pub(super) fn incoming(message: wire::AgentMessage) -> Outcome<Incoming> {
    let Some(message) = message.message else { return Ok(Incoming::Unknown) };
    Ok(match message {
        FromAgent::Hello(_) => return Err(malformed("a second Hello")),
        FromAgent::Heartbeat(wire::Heartbeat {}) => Incoming::Heartbeat,
        FromAgent::InventoryDigest(wire::InventoryDigest { digest: text }) => {
            Incoming::InventoryDigest(digest(text)?)
        }
        FromAgent::InventoryPart(wire::InventoryPart { digest, index, count, bytes }) => {
            Incoming::Part(Content::Inventory, part(digest, index, count, bytes)?)
        }
        FromAgent::CatalogPart(wire::CatalogPart { digest, index, count, bytes }) => {
            Incoming::Part(Content::Catalog, part(digest, index, count, bytes)?)
        }
        FromAgent::PiecePart(wire::PiecePart { digest, index, count, bytes }) => {
            Incoming::Part(Content::Piece, part(digest, index, count, bytes)?)
        }
        FromAgent::PieceMissing(wire::PieceMissing { digest: text, reason }) => {
            let reason = reason.chars().take(ERROR_TEXT_MAX).collect();
            Incoming::PieceMissing { digest: digest(text)?, reason }
        }
        FromAgent::Status(status) => Incoming::Status(status_report(status)?),
        FromAgent::Progress(found) => Incoming::Progress(progress(found)?),
        FromAgent::CheckReport(report) => Incoming::CheckReport(CheckReport {
            request_id: short("request id", report.request_id)?,
            fence: fence(report.fence)?,
            results_json: report.results_json,
        }),
        FromAgent::QueryResponse(wire::QueryResponse { id, result }) => {
            let result = match result {
                Some(Answer::OkJson(json)) => Ok(json),
                Some(Answer::Error(text)) => Err(text.chars().take(ERROR_TEXT_MAX).collect()),
                None => Err("the agent's answer is newer than this hub".to_owned()),
            };
            Incoming::Answer { id, result }
        }
    })
}

impl Incoming {
    /// A short name for the metric.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Heartbeat => "heartbeat",
            Self::InventoryDigest(_) => "inventory_digest",
            Self::Part(Content::Inventory, _) => "inventory_part",
            Self::Part(Content::Catalog, _) => "catalog_part",
            Self::Part(Content::Piece, _) => "piece_part",
            Self::PieceMissing { .. } => "piece_missing",
            Self::Status(_) => "status",
            Self::Progress(_) => "progress",
            Self::CheckReport(_) => "check_report",
            Self::Answer { .. } => "query_response",
            Self::Unknown => "unknown",
        }
    }
}

fn status_report(status: wire::StatusReport) -> Outcome<StatusReport> {
    let finality = if status.terminal { Finality::Terminal } else { Finality::Running };
    Ok(StatusReport {
        fence: fence(status.fence)?,
        revision: revision(status.revision)?,
        finality,
        upgrade: upgrade_key(status.upgrade)?,
        status_json: status.status_json,
    })
}

fn progress(progress: wire::Progress) -> Outcome<Progress> {
    let percent = u8::try_from(progress.percent).ok().filter(|percent| *percent <= 100);
    Ok(Progress {
        fence: fence(progress.fence)?,
        revision: revision(progress.revision)?,
        upgrade: upgrade_key(progress.upgrade)?,
        step_index: progress.step_index,
        percent: percent.ok_or_else(|| malformed("a percent above 100"))?,
        state: short("state", progress.state)?,
        words_json: progress.words_json,
    })
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

fn part(text: String, index: u32, count: u32, bytes: Bytes) -> Outcome<Part> {
    if count == 0 || count > PARTS_MAX || index >= count {
        return Err(malformed("a part that can't be"));
    }
    Ok(Part { digest: digest(text)?, index, count, bytes })
}

fn digest(text: String) -> Outcome<String> {
    let is_hex = |hex: &str| {
        hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    if text.strip_prefix("sha256:").is_some_and(is_hex) {
        Ok(text)
    } else {
        Err(malformed("a digest that is not `sha256:` and 64 hexadecimal digits"))
    }
}

fn short(what: &str, text: String) -> Outcome<String> {
    if text.len() <= SHORT_TEXT_MAX {
        Ok(text)
    } else {
        Err(malformed(&format!("{what} longer than {SHORT_TEXT_MAX} bytes")))
    }
}

fn malformed(what: &str) -> Refusal {
    Refusal::Malformed(what.to_owned())
}

// === to the agent ===

pub(super) fn welcome(term: Term, session: SessionId, settings: &Settings) -> wire::HubMessage {
    to_agent(ToAgent::Welcome(wire::Welcome {
        protocol: PROTOCOL_MAX,
        term: term.0,
        session_id: session.0,
        heartbeat_interval_ms: millis(settings.heartbeat_interval),
        message_bytes_max: u32::try_from(settings.limits.message_bytes_max).unwrap_or(u32::MAX),
        status_repeat_ms: millis(settings.status_repeat),
        inventory_period_seconds: u32::try_from(settings.inventory_period.as_secs())
            .unwrap_or(u32::MAX),
    }))
}

pub(super) fn heartbeat() -> wire::HubMessage {
    to_agent(ToAgent::Heartbeat(wire::Heartbeat {}))
}

pub(super) fn drain(hint: DrainHint) -> wire::HubMessage {
    let reason = match hint.reason {
        DrainReason::Shutdown => wire::drain::Reason::Shutdown,
        DrainReason::NotLeader => wire::drain::Reason::NotLeader,
        DrainReason::Replaced => wire::drain::Reason::Replaced,
        DrainReason::CertificateExpired => wire::drain::Reason::CertificateExpired,
    };
    to_agent(ToAgent::Drain(wire::Drain {
        reconnect_after_ms: millis(hint.after),
        spread_ms: millis(hint.spread),
        reason: reason.into(),
    }))
}

pub(super) fn query(id: u64, query: Query) -> wire::HubMessage {
    let Query { kind, namespace, name } = query;
    to_agent(ToAgent::Query(wire::Query { id, kind, namespace, name }))
}

pub(super) fn command(term: Term, command: HubCommand) -> wire::HubMessage {
    let Term(term) = term;
    to_agent(match command {
        HubCommand::RequestInventory { digest } => {
            ToAgent::InventoryRequest(wire::InventoryRequest { digest })
        }
        HubCommand::RequestCatalog { digest } => {
            ToAgent::CatalogRequest(wire::CatalogRequest { digest })
        }
        HubCommand::RequestPiece { digest } => ToAgent::PieceRequest(wire::PieceRequest { digest }),
        HubCommand::Assign(assignment) => ToAgent::Assignment(wire::Assignment {
            fence: Some(fence_out(assignment.fence)),
            term,
            upgrade: Some(upgrade_out(assignment.upgrade)),
            spec_json: assignment.spec_json,
        }),
        HubCommand::Control(control) => ToAgent::Control(wire::Control {
            fence: Some(fence_out(control.fence)),
            term,
            upgrade: Some(upgrade_out(control.upgrade)),
            action: action(control.action).into(),
        }),
        HubCommand::Check(request) => ToAgent::CheckRequest(wire::CheckRequest {
            request_id: request.request_id,
            fence: Some(fence_out(request.fence)),
            term,
            upgrade: Some(upgrade_out(request.upgrade)),
            spec_json: request.spec_json,
        }),
        HubCommand::Ack { fence, revision: Revision { boot, sequence } } => {
            ToAgent::Ack(wire::Ack {
                fence: Some(fence_out(fence)),
                revision: Some(wire::Revision { boot, sequence }),
            })
        }
    })
}

fn action(action: ControlAction) -> wire::control::Action {
    match action {
        ControlAction::Continue => wire::control::Action::Continue,
        ControlAction::Freeze => wire::control::Action::Freeze,
        ControlAction::Cancel => wire::control::Action::Cancel,
        ControlAction::Forget => wire::control::Action::Forget,
    }
}

fn fence_out(fence: Fence) -> wire::Fence {
    let Fence { uid, epoch, attempt } = fence;
    wire::Fence { uid: uid.into(), epoch, attempt }
}

fn upgrade_out(upgrade: UpgradeKey) -> wire::UpgradeRef {
    wire::UpgradeRef { namespace: upgrade.namespace.into(), name: upgrade.name.into() }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

fn to_agent(message: ToAgent) -> wire::HubMessage {
    wire::HubMessage { message: Some(message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn from_agent(message: FromAgent) -> wire::AgentMessage {
        wire::AgentMessage { message: Some(message) }
    }

    fn status() -> wire::StatusReport {
        wire::StatusReport {
            fence: Some(wire::Fence { uid: "u".to_owned(), epoch: 2, attempt: 1 }),
            revision: Some(wire::Revision { boot: 3, sequence: 4 }),
            terminal: true,
            upgrade: Some(wire::UpgradeRef {
                namespace: "prod-1".to_owned(),
                name: "storage-12ab34cd".to_owned(),
            }),
            status_json: Bytes::from_static(b"{}"),
        }
    }

    #[test]
    fn a_status_needs_its_fence_its_revision_and_its_upgrade() {
        let convert = |status| incoming(from_agent(FromAgent::Status(status)));
        let Incoming::Status(good) = convert(status()).unwrap() else { panic!("no status") };
        assert_eq!(good.finality, Finality::Terminal);
        assert_eq!(good.revision, Revision { boot: 3, sequence: 4 });
        assert_eq!(good.upgrade.to_string(), "prod-1/storage-12ab34cd");
        let bad_uid = Some(wire::Fence { uid: String::new(), epoch: 0, attempt: 0 });
        for bad in [
            wire::StatusReport { fence: None, ..status() },
            wire::StatusReport { fence: bad_uid, ..status() },
            wire::StatusReport { revision: None, ..status() },
            wire::StatusReport { upgrade: None, ..status() },
        ] {
            assert_eq!(convert(bad).unwrap_err().kind(), "malformed");
        }
    }

    #[test]
    fn a_message_of_a_newer_kind_is_passed_over() {
        let newer = wire::AgentMessage { message: None };
        assert_eq!(incoming(newer).unwrap(), Incoming::Unknown);
    }

    #[test]
    fn a_second_hello_and_a_percent_above_100_are_malformed() {
        let hello = from_agent(FromAgent::Hello(wire::Hello::default()));
        assert_eq!(incoming(hello).unwrap_err().kind(), "malformed");
        let wire::StatusReport { fence, revision, upgrade, .. } = status();
        let progress =
            wire::Progress { fence, revision, upgrade, percent: 101, ..Default::default() };
        let message = from_agent(FromAgent::Progress(progress));
        assert_eq!(incoming(message).unwrap_err().kind(), "malformed");
    }

    #[test]
    fn parts_and_digests_are_checked() {
        let check = |digest: &str, index, count| {
            let digest = digest.to_owned();
            let bytes = Bytes::new();
            let part = wire::InventoryPart { digest, index, count, bytes };
            incoming(from_agent(FromAgent::InventoryPart(part))).is_ok()
        };
        assert!(check(DIGEST, 0, 1));
        assert!(check(DIGEST, 1, 2));
        assert!(!check(DIGEST, 1, 1));
        assert!(!check(DIGEST, 0, 0));
        assert!(!check(&DIGEST.to_uppercase(), 0, 1));
        assert!(!check("sha256:abc", 0, 1));
        assert!(!check("", 0, 1));
    }
}
