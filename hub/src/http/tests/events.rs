use std::sync::Arc;

use axum::{
    body::{Body, BodyDataStream},
    http::Request,
};
use futures::StreamExt as _;
use serde_json::Value;

use super::*;

/// An open stream, read event by event.
struct Reader {
    body: BodyDataStream,
    text: String,
}

#[derive(Debug)]
struct Received {
    kind: String,
    data: Value,
    id: Option<String>,
}

impl App {
    async fn follow(&self, query: &str, last: Option<&str>) -> Reader {
        let mut request = Request::get(format!("/api/v1/events{query}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = self.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Reader { body: response.into_body().into_data_stream(), text: String::new() }
    }
}

impl Reader {
    /// The next event; comments are passed over. `None` at the end of the stream.
    async fn next(&mut self) -> Option<Received> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
                };
                if let Some(kind) = field("event:") {
                    return Some(Received {
                        kind: kind.to_owned(),
                        data: serde_json::from_str(field("data:").unwrap()).unwrap(),
                        id: field("id:").map(str::to_owned),
                    });
                }
            }
            let chunk = self.body.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn event(&mut self) -> Received {
        self.next().await.expect("the stream goes on")
    }

    /// Reads past the greeting and the snapshot; gives the snapshot's id.
    async fn caught_up(&mut self) -> String {
        loop {
            if let Some(id) = self.event().await.id {
                return id;
            }
        }
    }
}

fn with_percent(cluster: &str, percent: i32) -> Fleet {
    let mut fleet = fleet();
    for upgrade in fleet.upgrades.values_mut() {
        for view in &mut Arc::make_mut(upgrade).clusters {
            if view.row.name == cluster {
                Arc::make_mut(view).row.percent = Some(percent);
            }
        }
    }
    fleet
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_with_what_there_is() {
    let app = app();
    let mut reader = app.follow("", None).await;
    let hello = reader.event().await;
    assert_eq!(hello.kind, "hello");
    assert_eq!(hello.data["term"], 7);
    assert_eq!(hello.data["resumed"], false);
    let mut seen = vec![];
    let id = loop {
        let event = reader.event().await;
        assert_eq!(event.kind, "upgrade");
        seen.push(event.data["name"].as_str().unwrap().to_owned());
        if event.id.is_some() {
            break event.id;
        }
    };
    assert_eq!(seen, ["gateway-2-8", "mesh-1-30", "logging-6-2", "store-2-9"]);
    assert_eq!(id, Some(format!("{}-1", app.board.boot())));
}

#[tokio::test(start_paused = true)]
async fn changes_that_follow_each_other_are_one_batch() {
    let app = app();
    let mut reader = app.follow("", None).await;
    reader.caught_up().await;
    for percent in 80..90 {
        app.board.publish(with_percent("prod-mad-18", percent));
    }
    let event = reader.event().await;
    assert_eq!(event.kind, "clusters");
    assert_eq!((&event.data["name"], &event.data["changed"]), (&"logging-6-2".into(), &1.into()));
    assert_eq!(event.data["items"][0]["percent"], 89, "the newest and only that");
    assert_eq!(event.id, Some(format!("{}-11", app.board.boot())));
}

#[tokio::test(start_paused = true)]
async fn what_is_the_same_is_not_sent() {
    let app = app();
    let mut reader = app.follow("?clusters=Exclude", None).await;
    reader.caught_up().await;
    app.board.publish(fleet());
    app.board.publish(with_percent("prod-mad-18", 80));
    let mut fleet = with_percent("prod-mad-18", 80);
    fleet.upgrades.retain(|key, _| key.name != "store-2-9");
    app.board.publish(fleet);
    let event = reader.event().await;
    assert_eq!((event.kind.as_str(), &event.data["name"]), ("removed", &"store-2-9".into()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_one_campaign_hears_of_no_other() {
    let app = app();
    let mut reader = app.follow("?namespace=edge&name=mesh-1-30", None).await;
    assert_eq!(reader.event().await.kind, "hello");
    let snapshot = reader.event().await;
    assert_eq!(snapshot.data["name"], "mesh-1-30");
    assert!(snapshot.id.is_some(), "it is the last of its batch");
    app.board.publish(with_percent("prod-mad-18", 80));
    app.board.publish(with_percent("pop-04", 70));
    let event = reader.event().await;
    assert_eq!((event.kind.as_str(), &event.data["name"]), ("clusters", &"mesh-1-30".into()));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_has_missed_nothing_gets_no_snapshot() {
    let app = app();
    let id = app.follow("", None).await.caught_up().await;
    let mut reader = app.follow("", Some(&id)).await;
    let hello = reader.event().await;
    assert_eq!((&hello.data["resumed"], hello.id), (&true.into(), Some(id.clone())));
    app.board.publish(with_percent("prod-mad-18", 80));
    assert_eq!(reader.event().await.kind, "clusters");

    let mut late = app.follow("", Some(&id)).await;
    assert_eq!(late.event().await.data["resumed"], false, "something happened since");
    assert_eq!(late.event().await.kind, "upgrade");
    let mut other = app.follow("", Some("another-boot-2")).await;
    assert_eq!(other.event().await.data["resumed"], false);
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_shows_that_it_lives() {
    let app = app();
    let mut reader = app.follow("", None).await;
    reader.caught_up().await;
    let chunk = reader.body.next().await.unwrap().unwrap();
    assert_eq!(&chunk[..], b": alive\n\n");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_term_of_its_leader() {
    for next in [None, Some(Term(9))] {
        let app = app();
        let mut reader = app.follow("", None).await;
        reader.caught_up().await;
        app.leader.send_replace(LeaderState { term: next });
        assert!(reader.next().await.is_none(), "{next:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn streams_are_counted_and_their_places_come_back() {
    let few = Settings { streams_max: 1, ..Settings::default() };
    let app = app_with(few, Ok(Bytes::new()));
    let first = app.follow("", None).await;
    let (status, code, _) = app.problem("/api/v1/events").await;
    assert_eq!((status, code.as_str()), (503, "too-many-streams"));
    drop(first);
    app.follow("", None).await.caught_up().await;
}
