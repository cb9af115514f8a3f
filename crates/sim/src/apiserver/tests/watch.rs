use std::pin::pin;

use futures::{Stream, StreamExt as _};
use kube::{
    api::{DynamicObject, WatchEvent, WatchParams},
    runtime::watcher,
};
use serde_json::json;

use super::{GADGET, gadgets, mk_gadget, server, soon};
use crate::apiserver::ApiServer;

fn label(server: &ApiServer, name: &str, env: &str) {
    server
        .store()
        .modify(&GADGET, Some("default"), name, |g| g["metadata"]["labels"] = json!({"env": env}))
        .unwrap();
}

fn make(server: &ApiServer, name: &str) {
    server.store().create(&GADGET, mk_gadget(name, &json!({"size": 1}))).unwrap();
}

async fn take(
    events: &mut (impl Stream<Item = Result<WatchEvent<DynamicObject>, kube::Error>> + Unpin),
    count: usize,
) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..count {
        told.push(match soon(events.next()).await.unwrap().unwrap() {
            WatchEvent::Added(g) => format!("added {}", g.metadata.name.unwrap()),
            WatchEvent::Modified(g) => format!("modified {}", g.metadata.name.unwrap()),
            WatchEvent::Deleted(g) => format!("deleted {}", g.metadata.name.unwrap()),
            WatchEvent::Bookmark(b) => {
                format!("bookmark {:?}", b.metadata.annotations.keys().collect::<Vec<_>>())
            }
            WatchEvent::Error(status) => format!("error {}", status.code),
        });
    }
    told
}

#[tokio::test]
async fn a_watch_tells_what_came_after_its_revision() {
    let server = server();
    make(&server, "before");
    let revision = server.store().revision().to_string();
    make(&server, "a");
    let api = gadgets(&server.client("test/1"));
    let mut events = pin!(api.watch(&WatchParams::default(), &revision).await.unwrap());
    assert_eq!(take(&mut events, 1).await, ["added a"]);
    label(&server, "a", "x");
    server.store().delete(&GADGET, Some("default"), "before").unwrap();
    assert_eq!(take(&mut events, 2).await, ["modified a", "deleted before"]);
}

#[tokio::test]
async fn entering_a_selection_is_added_and_leaving_it_is_deleted() {
    let server = server();
    make(&server, "a");
    let revision = server.store().revision().to_string();
    let api = gadgets(&server.client("test/1"));
    let params = WatchParams::default().labels("env=prod");
    let mut events = pin!(api.watch(&params, &revision).await.unwrap());
    label(&server, "a", "prod");
    server.store().modify(&GADGET, Some("default"), "a", |g| g["spec"]["size"] = json!(2)).unwrap();
    label(&server, "a", "dev");
    make(&server, "never");
    label(&server, "a", "prod");
    assert_eq!(take(&mut events, 4).await, ["added a", "modified a", "deleted a", "added a"]);
}

#[tokio::test]
async fn a_watch_from_too_long_ago_is_gone() {
    let server = server();
    let revision = server.store().revision().to_string();
    make(&server, "a");
    server.store().compact();
    let api = gadgets(&server.client("test/1"));
    let mut events = pin!(api.watch(&WatchParams::default(), &revision).await.unwrap());
    assert_eq!(take(&mut events, 1).await, ["error 410"]);
    assert!(soon(events.next()).await.is_none());
}

#[tokio::test]
async fn a_streaming_list_ends_with_its_bookmark() {
    let server = server();
    make(&server, "a");
    make(&server, "b");
    let api = gadgets(&server.client("test/1"));
    let params = WatchParams::default().initial_events();
    let mut events = pin!(api.watch(&params, "0").await.unwrap());
    assert_eq!(
        take(&mut events, 3).await,
        ["added a", "added b", "bookmark [\"k8s.io/initial-events-end\"]"]
    );
    make(&server, "c");
    assert_eq!(take(&mut events, 1).await, ["added c"]);
}

#[tokio::test(start_paused = true)]
async fn quiet_watches_get_bookmarks_and_end_at_their_time() {
    let server = server();
    make(&server, "a");
    let revision = server.store().revision().to_string();
    let api = gadgets(&server.client("test/1"));
    let params = WatchParams::default().timeout(90);
    let mut events = pin!(api.watch(&params, &revision).await.unwrap());
    assert_eq!(take(&mut events, 1).await, ["bookmark []"]);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_watcher_survives_a_compaction_and_a_cut() {
    let server = server();
    make(&server, "a");
    let api = gadgets(&server.client("test/1"));
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let mut events = pin!(watcher(api.clone(), config));
        let mut seen = Vec::new();
        while seen.last().map(String::as_str) != Some("done") {
            seen.push(told(soon(events.next()).await.unwrap().unwrap()));
        }
        assert_eq!(seen, ["init", "a", "done"]);
        server.store().delete(&GADGET, Some("default"), "a").unwrap();
        assert_eq!(told(soon(events.next()).await.unwrap().unwrap()), "gone a");
        make(&server, "a");
        server.cut_watches();
        server.store().compact();
        // The new watch starts where the old one was, is told 410, and the watcher lists again.
        loop {
            let event = soon(events.next()).await.unwrap();
            if matches!(event, Ok(watcher::Event::InitDone)) {
                break;
            }
        }
    }
}

fn told(event: watcher::Event<DynamicObject>) -> String {
    match event {
        watcher::Event::Init => "init".to_owned(),
        watcher::Event::InitDone => "done".to_owned(),
        watcher::Event::Apply(g) | watcher::Event::InitApply(g) => g.metadata.name.unwrap(),
        watcher::Event::Delete(g) => format!("gone {}", g.metadata.name.unwrap()),
    }
}
