use std::{io::Write as _, sync::Arc};

use ::http::HeaderMap;
use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
    routing::get,
};
use flate2::{Compression, write::GzEncoder};
use parking_lot::Mutex;
use wavelift_catalog::Catalog;

use super::*;
use crate::testing::{Ca, patience, retries, serve};

/// As catalogd sends it: one document after the other, with nothing between some of them.
const CATALOG: &str = r#"{"schema":"olm.package","name":"lantern","defaultChannel":"stable"}{
  "schema":"olm.channel","package":"lantern","name":"stable","entries":[{"name":"lantern.v1.0.0"}]}
{"schema":"olm.bundle","package":"lantern","name":"lantern.v1.0.0","image":"r.example.com/l:1","properties":[
  {"type":"olm.package","value":{"packageName":"lantern","version":"1.0.0"}}]}
"#;

const MODIFIED: &str = "Mon, 02 Nov 2026 10:00:00 GMT";

/// What the fake does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mishap {
    Busy,
    CutOff,
    Stall,
}

#[derive(Debug, Clone, Default)]
struct Fake {
    content: Vec<u8>,
    encoding: &'static str,
    mishaps: Arc<Mutex<Vec<Mishap>>>,
}

async fn answer(State(fake): State<Fake>, headers: HeaderMap) -> Response {
    assert_eq!(headers[ACCEPT_ENCODING], "gzip");
    if headers.get(IF_MODIFIED_SINCE).is_some_and(|value| value == MODIFIED) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let head = [(LAST_MODIFIED, MODIFIED), (CONTENT_ENCODING, fake.encoding)];
    let half = Bytes::copy_from_slice(&fake.content[..fake.content.len() / 2]);
    let half = futures::stream::iter([Ok::<_, io::Error>(half)]);
    let mishap = fake.mishaps.lock().pop();
    match mishap {
        Some(Mishap::Busy) => (StatusCode::SERVICE_UNAVAILABLE, "busy\nnow").into_response(),
        Some(Mishap::CutOff) => {
            use futures::StreamExt as _;
            let rest = futures::stream::iter([Err(io::Error::other("cut off"))]);
            (head, Body::from_stream(half.chain(rest))).into_response()
        }
        Some(Mishap::Stall) => {
            use futures::StreamExt as _;
            let rest = futures::stream::pending();
            (head, Body::from_stream(half.chain(rest))).into_response()
        }
        None => (head, fake.content.clone()).into_response(),
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

async fn catalogd(fake: Fake, limits: Limits) -> Catalogd {
    let ca = Ca::new("catalogd");
    let router = Router::new().route("/catalogs/c/api/v1/all", get(answer)).with_state(fake);
    let port = serve(router, Some(ca.server("localhost"))).await;
    let base = format!("https://localhost:{port}/catalogs/c");
    Catalogd::new(&base, &Trust::Only(ca.pem().into_bytes()), limits, patience(), retries())
        .unwrap()
}

fn plain(content: &str) -> Fake {
    Fake { content: content.as_bytes().to_vec(), encoding: "identity", ..Fake::default() }
}

fn packed(content: Vec<u8>) -> Fake {
    Fake { content, encoding: "gzip", ..Fake::default() }
}

fn content(answer: Answer) -> (Fbc, LastModified) {
    match answer {
        Answer::Catalog { fbc, last_modified } => (*fbc, last_modified.unwrap()),
        Answer::Unchanged => panic!("unchanged"),
    }
}

#[tokio::test]
async fn a_catalog_is_read_whole_and_then_only_when_it_changed() {
    let limits = Limits::default();
    let files = Fbc::parse("files", CATALOG.as_bytes(), &limits).unwrap();
    let expected = Catalog::from_fbc(files, &limits).unwrap();
    for fake in [plain(CATALOG), packed(gzip(CATALOG))] {
        let catalogd = catalogd(fake, limits).await;
        let (fbc, last_modified) = content(catalogd.read(None).await.unwrap());
        let catalog = Catalog::from_fbc(fbc, &limits).unwrap();
        assert_eq!(catalog.digest(), expected.digest());
        assert_eq!(last_modified.as_str(), MODIFIED);
        let kept = LastModified::parse(last_modified.as_str()).unwrap();
        assert_eq!(catalogd.read(Some(&kept)).await.unwrap(), Answer::Unchanged);
        let older = LastModified::parse("Sun, 01 Nov 2026 10:00:00 GMT").unwrap();
        assert_eq!(content(catalogd.read(Some(&older)).await.unwrap()).0.bundles.len(), 1);
    }
}

/// `recorded/all.jsonl` is what catalogd 1.2.0 of operator-controller answered, asked with curl, when
/// the files in `recorded/authored` were in the image of a ClusterCatalog.
#[tokio::test]
async fn what_a_real_catalogd_sent_is_the_catalog_of_its_files() {
    let limits = Limits::default();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/catalogd/recorded");
    let files = Fbc::read(&folder.join("authored"), &limits).unwrap();
    let expected = Catalog::from_fbc(files, &limits).unwrap();
    let sent = std::fs::read_to_string(folder.join("all.jsonl")).unwrap();
    for fake in [plain(&sent), packed(gzip(&sent))] {
        let (fbc, _) = content(catalogd(fake, limits).await.read(None).await.unwrap());
        let catalog = Catalog::from_fbc(fbc, &limits).unwrap();
        assert_eq!(catalog.digest(), expected.digest());
        assert_eq!(catalog.contents_digest(), expected.contents_digest());
        assert!(catalog.bundle("lantern", "lantern.v1.1.0").is_some());
    }
}

#[tokio::test]
async fn a_long_catalog_is_read_in_parts() {
    let bundle = |number: usize| {
        let text = "\\\"}{".repeat(2000);
        format!(
            "{{\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"p.v{number}\",\
             \"properties\":[{{\"type\":\"t\",\"value\":\"{text}\"}}]}}"
        )
    };
    let text: String = (0..1000).map(bundle).collect();
    assert!(text.len() > 6 * PART_BYTES);
    // A file of this length would be refused: only parts of it are ever held.
    let limits = Limits { file_bytes: 2 * PART_BYTES, ..Limits::default() };
    let catalogd = catalogd(packed(gzip(&text)), limits).await;
    let (fbc, _) = content(catalogd.read(None).await.unwrap());
    let names: Vec<_> = fbc.bundles.iter().map(|bundle| bundle.name.clone()).collect();
    assert_eq!(names, (0..1000).map(|number| format!("p.v{number}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    for mishap in [Mishap::Busy, Mishap::CutOff, Mishap::Stall] {
        let fakes = [plain(CATALOG), packed(gzip(CATALOG))];
        // A stall takes its time.
        let count = if mishap == Mishap::Stall { 1 } else { 2 };
        for fake in fakes.into_iter().take(count) {
            *fake.mishaps.lock() = vec![mishap; 2];
            let catalogd = catalogd(fake.clone(), Limits::default()).await;
            let (fbc, _) = content(catalogd.read(None).await.unwrap());
            assert_eq!(fbc.bundles.len(), 1);
            *fake.mishaps.lock() = vec![mishap; 3];
            let error = catalogd.read(None).await.unwrap_err();
            let expected = if mishap == Mishap::Busy { "Status" } else { "Http" };
            assert_eq!(error.kind(), expected, "{mishap:?} {error:?}");
        }
    }
}

#[tokio::test]
async fn what_is_no_catalog_is_refused() {
    let limits = Limits::default();
    let small = Limits { total_bytes: 1 << 20, ..limits };
    let deep = format!("{}1{}", "{\"schema\":\"x\",\"a\":".repeat(100), "}".repeat(100));
    let long = format!("{{\"schema\":\"{}\"}}", "x".repeat(2 * READ_BYTES));
    let cut_off = CATALOG.get(..CATALOG.len() - 20).unwrap();
    for (fake, limits, kind, text) in [
        (plain(cut_off), limits, "Documents", "does not parse"),
        (plain("{\"name\":\"no schema\"}"), limits, "Documents", "does not parse"),
        (plain(&deep), limits, "Documents", "does not parse"),
        (packed(b"no gzip".to_vec()), limits, "Broken", "is not whole"),
        (packed(gzip(&" ".repeat(2 << 20))), small, "TooLarge", "more than 1048576 bytes"),
        (plain(CATALOG), Limits { entries: 0, ..limits }, "Documents", "does not parse"),
        (plain(&long), Limits { file_bytes: 1000, ..limits }, "TooLarge", "in one document"),
        (Fake { encoding: "br", ..plain(CATALOG) }, limits, "Encoding", "the encoding `br`"),
    ] {
        let error = catalogd(fake, limits).await.read(None).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let catalogd = catalogd(plain(CATALOG), Limits::default()).await;
    let elsewhere = catalogd.address.replace("/api/v1/all", "/../other");
    let stranger = Trust::Only(Ca::new("other").pem().into_bytes());
    let new = |base: &str, trust: &Trust| {
        Catalogd::new(base, trust, Limits::default(), patience(), retries())
    };
    let error = new(&elsewhere, &stranger).unwrap().read(None).await.unwrap_err();
    assert!(error.advice().contains("CA bundle"), "{error:?}");
    for bad in ["", "localhost", "ftp://localhost", "https://"] {
        let error = new(bad, &Trust::System).unwrap_err();
        assert!(error.advice().contains("status.urls.base"), "{bad}: {error:?}");
    }
    let missing = Error::Status {
        address: "a".to_owned(),
        status: StatusCode::NOT_FOUND,
        excerpt: String::new(),
    };
    assert!(missing.advice().contains("Serving"));
}
