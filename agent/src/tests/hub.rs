//! What becomes of a hub's wishes and of what it is told, with no hub to be reached.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use wavelift_core::fence::{Fence, Term};
use wavelift_runtime::{
    metrics,
    pki::{Ca, PrivateKey, Validity, issue_server_certificate},
    tls::{self, Material, client_config},
};
use wavelift_sim::{
    apiserver::{Action, ApiError, Fault, Matcher, Reason, Times, gk},
    cluster::Approval::Manual,
    workload::Behaviour,
};

use super::rig::{HOME, Rig};
use crate::{
    HubOptions,
    inventory::Current,
    journal::{self, Journal},
    link::{
        self, Assignment, Control, ControlAction, HubAddress, HubCommand, LinkHandle, UpgradeKey,
    },
    metrics::Metrics,
    mirror::Mirror,
    upgrade::{Executor, Seen, Settings},
    wishes::{Wish, Wishes},
};

/// Credentials that nobody will ask for.
fn config() -> Arc<rustls::ClientConfig> {
    tls::install_crypto();
    let validity = Validity::from_now(Duration::from_hours(1));
    let ca = Ca::generate("test", validity).unwrap();
    let key = PrivateKey::generate().unwrap();
    let names = ["localhost".to_owned()];
    let issued = issue_server_certificate(&ca, &names, &key, validity).unwrap();
    let material = Material {
        certificates: issued.certificate_pem.into_bytes(),
        key: key.key_pem().into_bytes(),
        ca: ca.certificate_pem().as_bytes().to_vec(),
    };
    client_config(&material).unwrap()
}

/// A port on which nobody answers.
async fn nowhere() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

async fn unreachable_link() -> LinkHandle {
    let address = HubAddress {
        host: "127.0.0.1".to_owned(),
        port: nowhere().await,
        server_name: "localhost".to_owned(),
    };
    let settings = link::Settings::new(address, "c1".try_into().unwrap(), "test", 1);
    let metrics = Metrics::register(&metrics::Metrics::new()).unwrap();
    let stop = CancellationToken::new();
    let (handle, commands) = link::spawn(settings, tls::fixed(config()), metrics.link, stop);
    // The link lives as long as somebody listens.
    tokio::spawn(async move {
        let mut commands = commands;
        while commands.recv().await.is_some() {}
    });
    handle
}

fn spec(stage: &str, attempt: u32) -> Value {
    json!({
        "origin": "Hub", "type": "Plan", "epoch": 1, "attempt": attempt, "stage": stage,
        "consent": "Digest", "control": "Running", "afterUpgrade": "Hold",
        "plan": {"steps": [{"namespace": "trees", "moves": [{"package": "oak",
            "from": "oak.v1.0.0", "to": "oak.v2.0.0", "fromVersion": "1.0.0", "toVersion": "2.0.0"}]}]},
        "fleetUpgrade": {"namespace": "ops", "name": "autumn", "uid": "u-1"},
    })
}

fn fence(attempt: u32) -> Fence {
    Fence { uid: "u-1".try_into().unwrap(), epoch: 1, attempt }
}

fn key() -> UpgradeKey {
    UpgradeKey { namespace: "c1".try_into().unwrap(), name: "autumn-1".try_into().unwrap() }
}

fn assignment(attempt: u32, term: u64) -> Assignment {
    Assignment {
        fence: fence(attempt),
        term: Term(term),
        upgrade: key(),
        spec_json: serde_json::to_vec(&spec("Rollout", attempt)).unwrap().into(),
    }
}

fn journal(rig: &Rig) -> Journal {
    let client = rig.cluster.api().client("wavelift-agent");
    Journal::new(&client, &HOME.try_into().unwrap())
}

#[tokio::test]
async fn what_was_given_is_finished_though_the_hub_is_gone() {
    let mut rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    rig.hub = Some(HubOptions {
        host: "127.0.0.1".to_owned(),
        port: nowhere().await,
        server_name: "localhost".to_owned(),
        tls: tls::fixed(config()),
    });
    let _agent = rig.agent();
    journal(&rig).assign(&assignment(0, 1), Term(0)).await.unwrap();
    rig.until_state("autumn-1", "Succeeded").await;
    assert_eq!(rig.approvals(), 1);
    let upgrade = rig.upgrade("autumn-1");
    assert!(!journal::is_acknowledged(&upgrade, &fence(0)));
    assert_eq!(journal::key(&upgrade, "elsewhere"), Some(key()));
}

#[tokio::test]
async fn words_between_two_transitions_are_told_to_the_hub() {
    let mut rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    rig.timings.driver.step_deadline = SignedDuration::from_hours(1_000);
    rig.cluster.with_workload(|workload| workload.script("oak", Behaviour::Never));
    let (_agent, mut line) = rig.agent_of_test();
    line.tell(HubCommand::Assign(assignment(0, 1))).await;
    let comes_up = loop {
        let progress = line.progress().await;
        let words: Value = serde_json::from_slice(&progress.words_json).unwrap();
        if words["message"].as_str().unwrap().contains("waiting for deployment oak") {
            break progress;
        }
    };
    assert_eq!((comes_up.fence, comes_up.upgrade, comes_up.step_index), (fence(0), key(), 0));
    let calm = json!([{"type": "Calm", "status": "True", "reason": "Still", "message": "no wind",
        "lastTransitionTime": "2020-01-01T00:00:00Z"}]);
    rig.store()
        .modify(&gk::OPERATOR_CONDITION, Some("trees"), "oak.v2.0.0", |condition| {
            // OLM copies the one into the other, and at any moment.
            condition["spec"]["conditions"] = calm.clone();
            condition["status"] = json!({ "conditions": calm });
        })
        .unwrap();
    let (percent, words) = loop {
        let progress = line.progress().await;
        let words: Value = serde_json::from_slice(&progress.words_json).unwrap();
        if words["operatorConditions"].is_array() {
            break (progress.percent, words);
        }
    };
    let expected = json!([{"csv": "oak.v2.0.0", "type": "Calm", "status": "True",
        "reason": "Still", "message": "no wind"}]);
    assert_eq!(words["operatorConditions"], expected);
    assert_eq!(words["steps"][0]["percent"], i64::from(percent));
}

#[tokio::test]
async fn an_assignment_is_written_down_once_and_an_older_one_not_at_all() {
    let rig = Rig::new(&[]);
    let journal = journal(&rig);
    journal.assign(&assignment(1, 3), Term(0)).await.unwrap();
    let first = rig.upgrade("autumn-1");
    assert_eq!(journal::term(&first), Some(Term(3)));
    assert_eq!(first.spec.attempt, 1);
    assert_eq!(first.metadata.labels.as_ref().unwrap()["wavelift.io/fleetupgrade-uid"], "u-1");
    journal.assign(&assignment(1, 3), Term(3)).await.unwrap();
    assert_eq!(rig.upgrade("autumn-1").metadata.resource_version, first.metadata.resource_version);
    for (attempt, term, kind) in [(0, 3, "older_fence"), (1, 2, "lower_term")] {
        let refused = journal.assign(&assignment(attempt, term), Term(3)).await.unwrap_err();
        assert_eq!(refused.kind(), kind);
    }
    assert_eq!(rig.upgrade("autumn-1").metadata.resource_version, first.metadata.resource_version);
    // The next life goes on from there.
    let start = journal.start().await.unwrap();
    assert_eq!(start.term, Term(3));
    // A retry keeps the object and is another generation.
    journal.assign(&assignment(2, 3), Term(3)).await.unwrap();
    let retried = rig.upgrade("autumn-1");
    assert_eq!(retried.metadata.uid, first.metadata.uid);
    assert!(retried.metadata.generation > first.metadata.generation);
}

#[tokio::test]
async fn a_control_steers_its_own_upgrade_and_forget_drops_it() {
    let rig = Rig::new(&[]);
    let journal = journal(&rig);
    journal.assign(&assignment(1, 3), Term(0)).await.unwrap();
    let control = |action, attempt, term| Control {
        fence: fence(attempt),
        term: Term(term),
        upgrade: key(),
        action,
    };
    journal.control(&control(ControlAction::Freeze, 1, 3), Term(3)).await.unwrap();
    let word = |rig: &Rig| format!("{:?}", rig.upgrade("autumn-1").spec.control);
    assert_eq!(word(&rig), "Frozen");
    assert!(journal.control(&control(ControlAction::Cancel, 0, 3), Term(3)).await.is_err());
    assert!(journal.control(&control(ControlAction::Cancel, 1, 2), Term(3)).await.is_err());
    assert_eq!(word(&rig), "Frozen");
    // The assignment as the hub has it now sets the control too.
    journal.assign(&assignment(1, 4), Term(3)).await.unwrap();
    assert_eq!(word(&rig), "Running");
    journal.control(&control(ControlAction::Forget, 1, 4), Term(4)).await.unwrap();
    assert!(rig.store().get(&gk::CLUSTER_UPGRADE, Some(HOME), "autumn-1").is_none());
    journal.control(&control(ControlAction::Forget, 1, 4), Term(4)).await.unwrap();
}

/// An agent's work in one life, pass by pass, with a hub that cannot be reached.
struct Life {
    executor: Executor,
    mirror: Mirror,
    current: Current,
    link: LinkHandle,
}

impl Life {
    async fn begin(rig: &Rig) -> Self {
        let client = rig.cluster.api().client("wavelift-agent");
        let journal = journal(rig);
        let boot = journal.start().await.unwrap().boot;
        let link = unreachable_link().await;
        let mirror = Mirror::start(&client, HOME);
        let mut changes = mirror.changes();
        while !(mirror.is_settled() && mirror.upgrades.is_settled()) {
            changes.changed().await.unwrap();
        }
        let mut current = Current::default();
        current.refresh(&mirror, &rig.catalogs).await;
        let metrics = Metrics::register(&metrics::Metrics::new()).unwrap();
        let settings = Settings::default();
        let executor = Executor::new(client, rig.clock.clone(), settings, journal, boot, metrics)
            .with_link(Some(link.clone()));
        Self { executor, mirror, current, link }
    }

    async fn pass(&mut self) -> bool {
        let seen = Seen { mirror: &self.mirror, current: &self.current };
        self.executor.pass(seen).await.is_ok()
    }

    /// Waits until the upgrade is seen as it is.
    async fn sees(&self, rig: &Rig) {
        let mut changes = self.mirror.changes();
        let version = rig.upgrade("autumn-1").metadata.resource_version;
        let is_seen = |mirror: &Mirror| {
            mirror.upgrades.all().iter().any(|seen| seen.metadata.resource_version == version)
        };
        while !is_seen(&self.mirror) {
            changes.changed().await.unwrap();
        }
    }
}

/// A new life looks at the cluster once: how many statuses wait to be acknowledged then.
async fn unacknowledged_in_a_new_life(rig: &Rig) -> usize {
    let mut life = Life::begin(rig).await;
    assert!(life.pass().await && life.pass().await);
    life.link.unacknowledged()
}

#[tokio::test]
async fn a_last_word_is_said_again_in_each_life_until_the_hub_has_it() {
    let rig = Rig::new(&[("trees", "oak", "2.0.0", Manual)]);
    let journal = journal(&rig);
    journal.assign(&assignment(0, 1), Term(0)).await.unwrap();
    assert_eq!(unacknowledged_in_a_new_life(&rig).await, 1);
    assert_eq!(rig.state("autumn-1"), "Succeeded", "it was at the target already");
    let revision = rig.status("autumn-1").revision();
    assert_eq!(unacknowledged_in_a_new_life(&rig).await, 1);
    assert_eq!(rig.status("autumn-1").revision(), revision, "the same word");
    let old = wavelift_core::fence::Revision { sequence: revision.sequence + 7, ..revision };
    journal.acknowledge(&key(), &fence(0), old).await.unwrap();
    assert_eq!(unacknowledged_in_a_new_life(&rig).await, 1, "another word was acknowledged");
    journal.acknowledge(&key(), &fence(0), revision).await.unwrap();
    assert_eq!(unacknowledged_in_a_new_life(&rig).await, 0);
}

#[tokio::test]
async fn the_last_word_of_a_retry_is_said_though_its_write_was_not_answered() {
    let rig = Rig::new(&[("trees", "oak", "2.0.0", Manual)]);
    let journal = journal(&rig);
    journal.assign(&assignment(0, 1), Term(0)).await.unwrap();
    let mut life = Life::begin(&rig).await;
    assert!(life.pass().await && life.pass().await);
    assert_eq!(rig.state("autumn-1"), "Succeeded");
    // The hub has heard that, and wants it done again.
    life.link.forget(&key());
    journal.assign(&assignment(1, 1), Term(1)).await.unwrap();
    life.sees(&rig).await;
    rig.cluster.api().faults().add(Fault {
        on: Matcher {
            subresource: Some("status".to_owned()),
            ..Matcher::writes_of("wavelift-agent")
        },
        times: Times::nth(1),
        action: Action::DropAfter,
    });
    assert!(!life.pass().await, "nobody knows what became of the write");
    assert_eq!((rig.state("autumn-1").as_str(), rig.status("autumn-1").attempt), ("Succeeded", 1));
    life.sees(&rig).await;
    assert!(life.pass().await);
    assert_eq!(life.link.unacknowledged(), 1);
}

#[tokio::test]
async fn a_last_word_is_said_again_when_the_hub_gives_the_same_again() {
    let rig = Rig::new(&[("trees", "oak", "2.0.0", Manual)]);
    let journal = journal(&rig);
    journal.assign(&assignment(0, 1), Term(0)).await.unwrap();
    let mut life = Life::begin(&rig).await;
    assert!(life.pass().await && life.pass().await);
    let revision = rig.status("autumn-1").revision();
    journal.acknowledge(&key(), &fence(0), revision).await.unwrap();
    life.executor.acknowledged("autumn-1");
    life.link.forget(&key());
    life.sees(&rig).await;
    assert!(life.pass().await);
    assert_eq!(life.link.unacknowledged(), 0);
    // A hub that gives it has lost the end, or its object.
    journal.assign(&assignment(0, 2), Term(1)).await.unwrap();
    life.executor.assigned("autumn-1");
    life.sees(&rig).await;
    assert!(life.pass().await);
    assert_eq!(life.link.unacknowledged(), 1);
    assert_eq!(rig.status("autumn-1").revision(), revision, "the same word");
    life.executor.acknowledged("autumn-1");
    life.link.forget(&key());
    assert!(life.pass().await);
    assert_eq!(life.link.unacknowledged(), 0, "once");
}

#[tokio::test]
async fn an_agent_that_lost_its_objects_is_newer_than_before() {
    let rig = Rig::new(&[("trees", "oak", "2.0.0", Manual)]);
    let journal = journal(&rig);
    let mut revisions = vec![];
    for _ in 0..2 {
        journal.assign(&assignment(0, 1), Term(0)).await.unwrap();
        assert_eq!(unacknowledged_in_a_new_life(&rig).await, 1);
        revisions.push(rig.status("autumn-1").revision());
        journal.delete("autumn-1").await.unwrap();
    }
    assert!(revisions[0] < revisions[1], "{revisions:?}");
}

#[tokio::test]
async fn a_wish_that_could_not_be_written_down_is_tried_until_it_is() {
    let rig = Rig::new(&[]);
    let refused = rig.cluster.api().faults().add(Fault {
        on: Matcher::writes_of("wavelift-agent"),
        times: Times::all(),
        action: Action::Refuse(ApiError::new(Reason::InternalError, "not now")),
    });
    let journal = journal(&rig);
    let mut wishes = Wishes::default();
    let freeze =
        Control { fence: fence(0), term: Term(1), upgrade: key(), action: ControlAction::Freeze };
    wishes.take(Wish::Assign(assignment(0, 1)));
    wishes.take(Wish::Control(freeze));
    assert!(wishes.carry_out(&journal, Term(1)).await.is_empty());
    assert!(wishes.again_at().is_some());
    rig.cluster.api().faults().remove(refused);
    let done = wishes.carry_out(&journal, Term(1)).await;
    assert_eq!(done.len(), 2);
    assert!(done.iter().all(|(_, outcome)| outcome.is_ok()), "{done:?}");
    assert!(wishes.again_at().is_none());
    assert_eq!(format!("{:?}", rig.upgrade("autumn-1").spec.control), "Frozen");
}
