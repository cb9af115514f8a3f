//! What a campaign's plans change, as the API tells it.

use super::*;

fn preview() -> crate::preview::Preview {
    let (_, clusters) =
        sample::campaigns().into_iter().find(|(view, _)| view.row.name == "logging-6-2").unwrap();
    sample_changes::changes(&clusters)
}

/// The largest group of the sample.
pub(super) fn first_group() -> String {
    preview().groups[0].group.id.clone()
}

#[tokio::test]
async fn groups_come_in_pages_largest_first_with_what_stands_in_the_way() {
    let app = app();
    let all = app.json(&format!("{RUNNING}/preview")).await;
    assert_eq!(
        (&all["state"], &all["total"], &all["blocked"]),
        (&"Made".into(), &3.into(), &1.into())
    );
    let sizes: Vec<u64> =
        all["items"].as_array().unwrap().iter().map(|g| g["clusters"].as_u64().unwrap()).collect();
    assert!(
        sizes.is_sorted_by(|a, b| a >= b)
            && sizes.iter().sum::<u64>() == all["clusters"].as_u64().unwrap()
    );
    let first = app.json(&format!("{RUNNING}/preview?limit=2")).await;
    let token = first["continue"].as_str().unwrap();
    let rest = app.json(&format!("{RUNNING}/preview?limit=2&continue={token}")).await;
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    assert_eq!(rest["items"][0]["id"], all["items"][2]["id"]);
    let member = all["items"][1]["examples"][0].as_str().unwrap();
    let of = app.json(&format!("{RUNNING}/preview?cluster={member}")).await;
    assert_eq!((&of["total"], &of["items"][0]["id"]), (&1.into(), &all["items"][1]["id"]));
    let blockers = app.json(&format!("{RUNNING}/preview/blockers?kind=NotKnown")).await;
    assert_eq!(blockers["total"], 1);
    let none = app.json(&format!("{RUNNING}/preview/blockers?kind=Checks,NoPath")).await;
    assert_eq!(none["total"], 0);
}

#[tokio::test]
async fn a_group_is_whole_and_says_what_sets_it_apart() {
    let app = app();
    let list = app.json(&format!("{RUNNING}/preview")).await;
    let mut missing = 0;
    for group in list["items"].as_array().unwrap() {
        let id = group["id"].as_str().unwrap();
        let whole = app.json(&format!("{RUNNING}/preview/{id}")).await;
        assert_eq!(whole["group"], *group);
        assert_eq!(
            whole["members"].as_array().unwrap().len() as u64,
            group["clusters"].as_u64().unwrap()
        );
        let changes = &whole["operators"][0]["preview"];
        let read: wavelift_catalog::preview::Preview =
            serde_json::from_value(changes.clone()).unwrap();
        assert!(!read.hops.is_empty());
        assert!(!whole["differences"].as_array().unwrap().is_empty(), "{whole}");
        if group["counts"]["missingTotal"] != 0 {
            missing += 1;
            assert_eq!(group["counts"]["permissionsGained"], 0);
        } else {
            assert!(group["counts"]["dangerous"][0].as_str().unwrap().contains("secrets"));
        }
    }
    assert_eq!(missing, 1);
    let gone = app.problem(&format!("{RUNNING}/preview/0123456789abcdef")).await;
    assert_eq!((gone.0, gone.1.as_str()), (404, "not-found"));
}

#[tokio::test]
async fn a_document_stands_for_itself_and_runs_nothing() {
    let app = app();
    let id = first_group();
    for path in ["/preview".to_owned(), format!("/preview/{id}")] {
        let (status, headers, body) = app.get(&format!("{RUNNING}{path}?format=html")).await;
        let text = String::from_utf8(body).unwrap();
        assert_eq!(
            (status.as_u16(), &headers["content-type"]),
            (200, &"text/html; charset=utf-8".parse().unwrap())
        );
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("sandbox") && !policy.contains("script-src"), "{policy}");
        assert!(text.starts_with("<!doctype html>") && text.contains("secrets"), "{text}");
        for outside in ["<script", "src=", "href=", "@import", "url("] {
            assert!(!text.contains(outside), "{outside}");
        }
        let (_, headers, body) = app.get(&format!("{RUNNING}{path}?format=markdown")).await;
        assert_eq!(headers["content-type"], "text/markdown; charset=utf-8");
        assert!(String::from_utf8(body).unwrap().starts_with("# Preview of ops/logging-6-2"));
    }
    let whole = app.get(&format!("{RUNNING}/preview?format=markdown")).await.2;
    let whole = String::from_utf8(whole).unwrap();
    assert!(whole.contains("In the way of 1 clusters") && whole.contains("does not carry them"));
}
