//! The witness is strict: a page that does what ours must not do is found out.

use axum::{
    Router,
    http::{StatusCode, header},
    response::IntoResponse as _,
    routing::get,
};
use tokio::net::TcpListener;
use wavelift_runtime::testing::chromium_or_skip;

use super::{tab::Tab, witness::Kind};
use crate::stage::soon;

const POLICY: &str = "default-src 'none'; script-src 'self'; img-src *; connect-src 'self'";

/// A page that runs `script` and has `body`, and where it is. It ends with the test's runtime.
async fn serve(script: &'static str, body: &'static str) -> String {
    let html = format!("<!doctype html><title>x</title><script src=js></script>{body}");
    let page = move || async move {
        let headers =
            [(header::CONTENT_TYPE, "text/html"), (header::CONTENT_SECURITY_POLICY, POLICY)];
        (headers, html).into_response()
    };
    let script = move || async move { ([(header::CONTENT_TYPE, "text/javascript")], script) };
    // Browsers ask for it unasked.
    let icon = || async { StatusCode::NO_CONTENT };
    let app = Router::new()
        .route("/", get(page))
        .route("/js", get(script))
        .route("/favicon.ico", get(icon));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}/")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_misdeed_of_a_page_is_noticed() {
    let Some(chromium) = chromium_or_skip() else { return };
    // What the script does, the markup below it, and what is seen of both.
    let misdeeds: [(&str, &str, &[Kind]); 8] = [
        ("document.title = 'good'", "", &[]),
        ("console.error('no')", "", &[Kind::Console]),
        ("console.assert(false)", "", &[Kind::Console]),
        ("throw new Error('no')", "", &[Kind::Thrown]),
        ("Promise.reject(new Error('no'))", "", &[Kind::Thrown]),
        ("", "<p style='color: red'>", &[Kind::Policy]),
        ("", "<img src=nowhere>", &[Kind::Refused]),
        // The same machine, but another origin.
        ("", "<img src=http://localhost:9/>", &[Kind::Foreign]),
    ];
    for (script, body, expected) in misdeeds {
        let address = serve(script, body).await;
        let mut tab = Tab::open(&chromium, &address).await;
        let witness = tab.witness().await;
        let seen = witness.kinds();
        let all_seen = expected.iter().all(|kind| seen.contains(kind));
        assert!(all_seen, "{script}{body}: {witness:?}");
        assert_eq!(seen.is_empty(), expected.is_empty(), "{script}{body}: {witness:?}");
        assert_eq!(witness.documents, 1);
        tab.load(&address).await;
        assert_eq!(tab.witness().await.documents, 2);
        soon("the browser's end", tab.close()).await;
    }
}
