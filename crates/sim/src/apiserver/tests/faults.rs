use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use super::{GADGET, code, dynamic, gadgets, mk_gadget, server};
use crate::apiserver::{
    Action, ApiError, AuditEffect, Dropped, Fault, Matcher, Reason, Times, Verb, Verbs, Verdict,
};

fn size(n: i64) -> Patch<serde_json::Value> {
    Patch::Merge(json!({"spec": {"size": n}}))
}

fn is_dropped<T>(result: Result<T, kube::Error>) -> bool {
    match result {
        Err(kube::Error::Service(error)) => error.is::<Dropped>(),
        Ok(_) | Err(_) => false,
    }
}

#[tokio::test]
async fn the_nth_matching_request_is_refused_and_the_others_are_not() {
    let server = server();
    server.store().create(&GADGET, mk_gadget("a", &json!({"size": 1}))).unwrap();
    let refusal = ApiError::new(Reason::InternalError, "etcd is on fire");
    let fault = server.faults().add(Fault {
        on: Matcher { gk: Some(GADGET.clone()), ..Matcher::writes_of("agent/") },
        times: Times::nth(2),
        action: Action::Refuse(refusal),
    });
    let agent = gadgets(&server.client("agent/1.0"));
    let other = gadgets(&server.client("other/1.0"));
    let params = PatchParams::default();
    other.patch("a", &params, &size(2)).await.unwrap();
    agent.patch("a", &params, &size(3)).await.unwrap();
    agent.get("a").await.unwrap();
    assert_eq!(code(agent.patch("a", &params, &size(4)).await), 500);
    agent.patch("a", &params, &size(5)).await.unwrap();
    assert_eq!(server.faults().seen(fault), 3);

    let log: Vec<_> = server
        .audit()
        .into_iter()
        .map(|e| (e.sequence, e.request.user_agent.to_string(), e.code, e.effect))
        .collect();
    assert_eq!(
        log,
        [
            (1, "other/1.0".to_owned(), 200, AuditEffect::Changed),
            (2, "agent/1.0".to_owned(), 200, AuditEffect::Changed),
            (3, "agent/1.0".to_owned(), 500, AuditEffect::Unchanged),
            (4, "agent/1.0".to_owned(), 200, AuditEffect::Changed),
        ]
    );
    let counts = server.audit_counts();
    let of_agent: u64 =
        counts.iter().filter(|(k, _)| &*k.user_agent == "agent/1.0").map(|(_, n)| n).sum();
    assert_eq!(of_agent, 3);
}

#[tokio::test]
async fn a_dropped_request_is_done_or_not_done_as_the_fault_says() {
    let server = server();
    server.store().create(&GADGET, mk_gadget("a", &json!({"size": 1}))).unwrap();
    let api = gadgets(&server.client("agent/1.0"));
    let found =
        || server.store().get(&GADGET, Some("default"), "a").unwrap()["spec"]["size"].clone();
    let on = || Matcher { verbs: Verbs::Only(Verb::Patch), ..Matcher::default() };
    server.faults().add(Fault { on: on(), times: Times::nth(1), action: Action::DropBefore });
    server.faults().add(Fault { on: on(), times: Times::nth(2), action: Action::DropAfter });
    assert!(is_dropped(api.patch("a", &PatchParams::default(), &size(2)).await));
    assert_eq!(found(), 1);
    assert!(is_dropped(api.patch("a", &PatchParams::default(), &size(3)).await));
    assert_eq!(found(), 3);
    let codes: Vec<_> = server.audit().iter().map(|e| (e.code, e.effect)).collect();
    assert_eq!(codes, [(0, AuditEffect::Unchanged), (0, AuditEffect::Changed)]);
}

#[tokio::test]
async fn hooks_stand_right_before_and_right_after_a_write() {
    let server = server();
    let store = server.store().clone();
    let seen = Arc::new([const { AtomicU64::new(0) }; 2]);
    let hook = |slot: usize, verdict: Verdict| {
        let (seen, store) = (Arc::clone(&seen), store.clone());
        Arc::new(move |request: &crate::apiserver::Request| {
            assert_eq!((request.verb, request.name.as_deref()), (Verb::Create, Some("a")));
            let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
            assert_eq!(body["spec"]["size"], 1);
            let count = u64::try_from(store.list(&GADGET, None).len()).unwrap();
            seen[slot].store(count + 10, Ordering::Relaxed);
            verdict
        })
    };
    let on = || Matcher::writes_of("agent");
    let before = hook(0, Verdict::GoOn);
    let after = hook(1, Verdict::Drop);
    server.faults().add(Fault { on: on(), times: Times::nth(1), action: Action::Before(before) });
    server.faults().add(Fault { on: on(), times: Times::nth(1), action: Action::After(after) });
    let api = gadgets(&server.client("agent"));
    let gadget = dynamic(mk_gadget("a", &json!({"size": 1})));
    assert!(is_dropped(api.create(&PostParams::default(), &gadget).await));
    assert_eq!(seen.each_ref().map(|n| n.load(Ordering::Relaxed)), [10, 11]);
    assert!(server.audit()[0].request.body.is_empty(), "the log keeps no bodies");
}

#[tokio::test(start_paused = true)]
async fn a_delay_holds_the_request_and_an_outage_ends_when_it_is_taken_away() {
    let server = server();
    server.store().create(&GADGET, mk_gadget("a", &json!({"size": 1}))).unwrap();
    let api = gadgets(&server.client("agent"));
    let all = |action| Fault { on: Matcher::default(), times: Times::all(), action };
    let slow = server.faults().add(all(Action::Delay(Duration::from_secs(30))));
    let started = tokio::time::Instant::now();
    api.get("a").await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 30);
    server.faults().remove(slow);
    server.faults().add(all(Action::DropBefore));
    assert!(is_dropped(api.get("a").await));
    server.faults().clear();
    api.get("a").await.unwrap();
}

#[tokio::test]
async fn over_a_socket_a_drop_is_a_broken_connection() {
    let server = server();
    let served = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let client = kube::Client::try_from(kube::Config::new(served.url().parse().unwrap())).unwrap();
    let drop = Fault {
        on: Matcher { verbs: Verbs::Only(Verb::Create), ..Matcher::default() },
        times: Times::nth(1),
        action: Action::DropAfter,
    };
    server.faults().add(drop);
    let gadget = dynamic(mk_gadget("a", &json!({"size": 1})));
    let result = super::soon(gadgets(&client).create(&PostParams::default(), &gadget)).await;
    assert!(!matches!(result, Ok(_) | Err(kube::Error::Api(_))), "{result:?}");
    assert!(server.store().get(&GADGET, Some("default"), "a").is_some());
}
