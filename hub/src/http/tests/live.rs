use std::time::Duration;

use serde_json::json;

use super::*;

const ONE: &str = "/api/v1/fleetupgrades/ops/logging-6-2/clusters/prod-mad-18";

#[tokio::test]
async fn the_agent_is_asked_for_this_campaigns_upgrade() {
    let app =
        app_with(Settings::default(), Ok(Bytes::from_static(br#"{"kind":"ClusterUpgrade"}"#)));
    let answer = app.json(&format!("{ONE}/live")).await;
    assert_eq!(answer["object"], json!({"kind": "ClusterUpgrade"}));
    assert_eq!(answer["cluster"], "prod-mad-18");
    let asked = app.live.asked.lock();
    let (cluster, query) = &asked[0];
    assert_eq!((cluster.as_str(), query.kind.as_str()), ("prod-mad-18", "ClusterUpgrade"));
    assert_eq!(query.name, "logging-6-2-3f2a9c1e", "the name and eight digits of the uid");
    assert_eq!(asked.len(), 1);
}

#[tokio::test]
async fn an_agent_that_does_not_answer_is_a_problem_of_its_own_kind() {
    let late = QueryError::TimedOut(Duration::from_secs(5));
    for (answer, status, code) in [
        (Err(QueryError::NotConnected), 503, "agent-not-connected"),
        (Err(QueryError::Disconnected), 503, "agent-not-connected"),
        (Err(QueryError::Busy), 503, "agent-busy"),
        (Err(late), 504, "agent-timeout"),
        (Err(QueryError::Agent("forbidden".to_owned())), 502, "agent-error"),
        (Ok(Bytes::from_static(b"not json")), 502, "agent-error"),
        (Ok(Bytes::from(vec![b' '; (1 << 20) + 1])), 502, "agent-error"),
    ] {
        let app = app_with(Settings::default(), answer);
        let (got, kind, detail) = app.problem(&format!("{ONE}/live")).await;
        assert_eq!((got, kind.as_str()), (status, code));
        assert!(detail.contains("prod-mad-18"), "{detail}");
    }
}

#[tokio::test]
async fn a_cluster_that_is_not_in_the_campaign_is_not_asked() {
    let app = app();
    let path = "/api/v1/fleetupgrades/ops/logging-6-2/clusters/other/live";
    assert_eq!(app.problem(path).await.1, "not-found");
    assert!(app.live.asked.lock().is_empty());
}
