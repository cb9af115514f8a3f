use axum::{body::Body, http::Request};

use super::*;
use crate::http::assets::ASSETS;

#[tokio::test]
async fn every_answer_carries_the_policy() {
    let app = app();
    for path in ["/", "/page.css", "/js/main.js", RUNNING, "/none", "/api/v1/agents?x=1"] {
        let (_, headers, _) = app.get(path).await;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert_eq!(
            policy,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
            "{path}"
        );
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
    }
}

#[tokio::test]
async fn files_have_their_types_and_are_sent_once() {
    let app = app();
    for asset in ASSETS {
        let (status, headers, body) = app.get(asset.path).await;
        assert_eq!(status, 200, "{}", asset.path);
        assert!(!body.is_empty(), "{}", asset.path);
        let kind = headers["content-type"].to_str().unwrap();
        let ending = asset.path.rsplit('.').next().unwrap();
        let expected = match ending {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(kind, expected, "{}", asset.path);
        let again = Request::get(asset.path).header("if-none-match", &headers["etag"]);
        let response = app.send(again.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 304, "{}", asset.path);
    }
}

/// What the policy would refuse in the browser is not there in the first place, and what a file
/// names is there.
#[tokio::test]
async fn the_page_holds_together() {
    let app = app();
    let text = async |path: &str| String::from_utf8(app.get(path).await.2).unwrap();
    let html = text("/").await;
    assert_eq!(
        html.matches("<script").count(),
        html.matches("<script type=\"module\" src=").count()
    );
    assert!(
        !html.contains("<style") && !html.contains(" style=") && !html.contains(" on"),
        "{html}"
    );
    for attribute in
        html.split(['"', '\'']).filter(|text| text.contains('.') && !text.contains(' '))
    {
        assert_eq!(app.get(&format!("/{attribute}")).await.0, 200, "{attribute}");
    }
    let mut imported = 0;
    for asset in ASSETS.iter().filter(|asset| asset.path.starts_with("/js/")) {
        let script = text(asset.path).await;
        assert!(!script.contains("innerHTML") && !script.contains("eval("), "{}", asset.path);
        for line in script.lines().filter(|line| line.starts_with("import ")) {
            let file = line.split("\"./").nth(1).unwrap().trim_end_matches("\";");
            assert_eq!(app.get(&format!("/js/{file}")).await.0, 200, "{}: {file}", asset.path);
            imported += 1;
        }
    }
    assert!(imported > 10, "the imports were found");
    for asset in ASSETS.iter().filter(|asset| asset.path != "/favicon.svg") {
        let content = text(asset.path).await.replace("http://www.w3.org/2000/svg", "");
        assert!(!content.contains("http:") && !content.contains("https:"), "{}", asset.path);
    }
}
