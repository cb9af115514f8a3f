use std::{collections::BTreeSet, sync::Arc};

use axum::{body::Body, http::Request};
use serde_json::{Value, json};

use super::*;

#[tokio::test]
async fn campaigns_are_filtered_and_sorted() {
    let app = app();
    let all = app.json("/api/v1/fleetupgrades?sort=name").await;
    assert_eq!(names(&all), ["gateway-2-8", "mesh-1-30", "logging-6-2", "store-2-9"]);
    assert_eq!((&all["total"], all.get("continue")), (&json!(4), None));
    assert_eq!(all["time"], "2026-03-14T01:42:00Z");
    let some = app.json("/api/v1/fleetupgrades?sort=name&phase=Failed,Running&order=desc").await;
    assert_eq!(names(&some), ["logging-6-2", "mesh-1-30"]);
    let ops = app.json("/api/v1/fleetupgrades?sort=name&namespace=ops").await;
    assert_eq!(names(&ops), ["logging-6-2", "store-2-9"]);
    let needing = app.json("/api/v1/fleetupgrades?sort=needsYou&limit=2").await;
    assert_eq!(names(&needing), ["logging-6-2", "mesh-1-30"]);
}

#[tokio::test]
async fn a_campaign_comes_without_its_clusters() {
    let app = app();
    let detail = app.json(RUNNING).await;
    assert_eq!(detail["upgrade"]["name"], "logging-6-2");
    assert_eq!(detail["upgrade"]["waves"][1]["budgetParallelism"], 4);
    assert_eq!(detail["upgrade"].get("clusters"), None);
}

#[tokio::test]
async fn clusters_are_filtered_by_state_wave_check_and_text() {
    let app = app();
    let list = async |query: &str| app.json(&format!("{RUNNING}/clusters?{query}")).await;
    assert_eq!(names(&list("state=Failed,Stalled").await), ["prod-dub-15", "prod-osl-14"]);
    assert_eq!(names(&list("q=WEBHOOK").await), ["prod-osl-14"]);
    assert_eq!(names(&list("q=deadlineexceeded").await), ["prod-dub-15"]);
    assert_eq!(names(&list("check=Unknown").await), ["prod-dub-21"]);
    assert_eq!(list("wave=canary").await["total"], 6);
    assert_eq!(list("wave=canary,emea&state=Succeeded").await["total"], 19);
    assert_eq!(names(&list("state=Failed&wave=canary").await), Vec::<&str>::new());
}

#[tokio::test]
async fn a_facet_counts_what_the_other_filters_let_through() {
    let app = app();
    let list = app.json(&format!("{RUNNING}/clusters?state=Failed&wave=emea")).await;
    assert_eq!(
        list["facets"]["waves"],
        json!([{"wave": "emea", "clusters": 1}]),
        "the only failed cluster is in emea"
    );
    let states = list["facets"]["states"].as_array().unwrap();
    let sum: i64 = states.iter().map(|state| state["clusters"].as_i64().unwrap()).sum();
    assert_eq!(sum, 24, "every state of wave emea is counted, chosen or not");
    assert_eq!(list["facets"]["checks"], json!([{"outcome": "Pass", "clusters": 1}]));
}

#[tokio::test]
async fn sorted_by_state_those_come_first_that_need_somebody() {
    let app = app();
    let list = app.json(&format!("{RUNNING}/clusters?sort=state&limit=4")).await;
    let states: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| item["state"].clone()).collect();
    assert_eq!(states, ["Failed", "Stalled", "Unreachable", "Blocked"]);
    let list = app.json(&format!("{RUNNING}/clusters?sort=percent&order=desc&limit=20")).await;
    assert_eq!(list["items"][19]["percent"], 97, "after the nineteen that are done");
    let list = app.json(&format!("{RUNNING}/clusters?sort=wave&limit=7")).await;
    assert_eq!(
        (&list["items"][5]["wave"], &list["items"][6]["wave"]),
        (&json!("canary"), &json!("emea"))
    );
}

async fn walk(app: &App, query: &str) -> Vec<String> {
    let mut seen = vec![];
    let mut path = format!("{RUNNING}/clusters?{query}");
    loop {
        let page = app.json(&path).await;
        seen.extend(names(&page).into_iter().map(str::to_owned));
        let Some(token) = page.get("continue").and_then(Value::as_str) else { return seen };
        path = format!("{RUNNING}/clusters?{query}&continue={token}");
    }
}

#[tokio::test]
async fn pages_together_are_the_list() {
    let app = app();
    for order in ["sort=name", "sort=name&order=desc", "sort=state", "sort=percent&order=desc"] {
        let whole = app.json(&format!("{RUNNING}/clusters?{order}&limit=500")).await;
        assert_eq!(names(&whole).len(), 60);
        assert_eq!(walk(&app, &format!("{order}&limit=7")).await, names(&whole), "{order}");
        assert_eq!(walk(&app, &format!("{order}&limit=60")).await.len(), 60, "{order}");
    }
}

#[tokio::test]
async fn a_page_goes_on_after_the_item_that_has_gone() {
    let app = app();
    let first = app.json(&format!("{RUNNING}/clusters?limit=10")).await;
    let last = names(&first)[9].to_owned();
    let mut fleet = fleet();
    for upgrade in fleet.upgrades.values_mut() {
        Arc::make_mut(upgrade).clusters.retain(|cluster| cluster.row.name != last);
    }
    app.board.publish(fleet);
    let token = first["continue"].as_str().unwrap();
    let second = app.json(&format!("{RUNNING}/clusters?limit=500&continue={token}")).await;
    let seen: BTreeSet<_> = names(&first).into_iter().chain(names(&second)).collect();
    assert_eq!((names(&second).len(), seen.len()), (50, 60));
}

#[tokio::test]
async fn a_token_of_another_list_is_refused() {
    let app = app();
    let list = app.json(&format!("{RUNNING}/clusters?limit=2")).await;
    let token = list["continue"].as_str().unwrap();
    for path in [
        format!("{RUNNING}/clusters?limit=2&state=Ready&continue={token}"),
        format!("/api/v1/agents?continue={token}"),
        format!("{RUNNING}/clusters?continue=zz"),
        format!("{RUNNING}/clusters?continue=00"),
    ] {
        let (status, code, _) = app.problem(&path).await;
        assert_eq!((status, code.as_str()), (400, "invalid-continue"), "{path}");
    }
}

#[tokio::test]
async fn parameters_are_taken_strictly_and_named() {
    let app = app();
    let long = format!("/api/v1/agents?q={}", "x".repeat(2_049));
    for (path, code, word) in [
        ("/api/v1/agents?colour=red", "unknown-parameter", "colour"),
        ("/api/v1/openapi.json?pretty=1", "unknown-parameter", "pretty"),
        ("/api/v1/agents?q=a&q=b", "invalid-parameter", "q"),
        ("/api/v1/agents?limit=0", "invalid-parameter", "limit"),
        ("/api/v1/agents?limit=501", "invalid-parameter", "limit"),
        ("/api/v1/agents?limit=many", "invalid-parameter", "limit"),
        ("/api/v1/agents?state=Asleep", "invalid-parameter", "Asleep"),
        ("/api/v1/fleetupgrades?phase=running", "invalid-parameter", "running"),
        ("/api/v1/fleetupgrades?sort=colour", "invalid-parameter", "needsYou"),
        ("/api/v1/events?name=x", "invalid-parameter", "namespace"),
        (long.as_str(), "invalid-parameter", "2048"),
    ] {
        let (status, got, detail) = app.problem(path).await;
        assert_eq!((status, got.as_str()), (400, code), "{path}");
        assert!(detail.contains(word), "{path}: {detail}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_by_name() {
    let app = app();
    for (path, code, word) in [
        ("/api/v1/fleetupgrades/ops/none", "not-found", "ops/none"),
        ("/api/v1/fleetupgrades/ops/none/clusters", "not-found", "ops/none"),
        ("/api/v1/fleetupgrades/ops/logging-6-2/clusters/none", "not-found", "none"),
        ("/api/v1/events?namespace=ops&name=none", "not-found", "ops/none"),
        ("/api/v2/fleetupgrades", "no-route", ""),
        ("/js/none.js", "no-route", ""),
    ] {
        let (status, got, detail) = app.problem(path).await;
        assert_eq!((status, got.as_str()), (404, code), "{path}");
        assert!(detail.contains(word), "{path}: {detail}");
    }
}

#[tokio::test]
async fn nothing_is_changed_here() {
    let app = app();
    let response = app.send(Request::delete(RUNNING).body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET, HEAD");
}

#[tokio::test]
async fn only_the_leader_answers_but_every_hub_has_the_page() {
    let app = app();
    app.leader.send_replace(LeaderState { term: None });
    let (status, code, _) = app.problem(RUNNING).await;
    assert_eq!((status, code.as_str()), (503, "not-leader"));
    assert_eq!(app.get("/").await.0, 200);
    assert_eq!(app.get("/healthz").await.0, 200);
    app.leader.send_replace(LeaderState { term: Some(Term(8)) });
    assert_eq!(app.get(RUNNING).await.0, 200);
}

#[tokio::test]
async fn too_many_requests_at_once_are_turned_away() {
    let none = Settings { requests_max: 0, ..Settings::default() };
    let app = app_with(none, Ok(Bytes::new()));
    let (status, code, _) = app.problem(RUNNING).await;
    assert_eq!((status, code.as_str()), (503, "busy"));
    assert_eq!(app.get("/healthz").await.0, 200, "health is never turned away");
}

#[tokio::test]
async fn agents_are_counted_and_listed() {
    let app = app();
    let list = app.json("/api/v1/agents?state=Silent").await;
    assert_eq!((&list["connected"], &list["silent"]), (&json!(59), &json!(1)));
    assert_eq!(list["items"][0]["cluster"], "prod-osl-20");
    assert_eq!(app.json("/api/v1/agents?q=stage").await["total"], 6);
}
