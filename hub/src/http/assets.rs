//! The page: files that are part of the program.

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use sha2::{Digest as _, Sha256};

/// One file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    content: &'static [u8],
}

const JS: &str = "text/javascript; charset=utf-8";

macro_rules! script {
    ($name:literal) => {
        Asset {
            path: concat!("/js/", $name),
            kind: JS,
            content: include_bytes!(concat!("../page/js/", $name)),
        }
    };
}

/// All of them.
pub(super) const ASSETS: &[Asset] = &[
    Asset {
        path: "/",
        kind: "text/html; charset=utf-8",
        content: include_bytes!("../page/index.html"),
    },
    Asset {
        path: "/page.css",
        kind: "text/css; charset=utf-8",
        content: include_bytes!("../page/page.css"),
    },
    Asset {
        path: "/favicon.svg",
        kind: "image/svg+xml",
        content: include_bytes!("../page/favicon.svg"),
    },
    script!("main.js"),
    script!("api.js"),
    script!("dom.js"),
    script!("words.js"),
    script!("route.js"),
    script!("list.js"),
    script!("campaign.js"),
    script!("clusters.js"),
    script!("cluster.js"),
    script!("preview.js"),
    script!("keys.js"),
];

/// Serves them. A browser asks each time whether it has the present one.
pub(super) fn router() -> Router {
    ASSETS.iter().fold(Router::new(), |router, asset| {
        let tag = HeaderValue::from_str(&format!("\"{}\"", digest(asset.content)))
            .unwrap_or(HeaderValue::from_static("\"\""));
        router.route(
            asset.path,
            get(move |request: Request| std::future::ready(answer(asset, &tag, request.headers()))),
        )
    })
}

fn digest(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content)).chars().take(16).collect()
}

fn answer(asset: &Asset, tag: &HeaderValue, headers: &HeaderMap) -> Response {
    let caching = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::ETAG, tag.clone()),
    ];
    if headers.get(header::IF_NONE_MATCH) == Some(tag) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    let kind = HeaderValue::from_static(asset.kind);
    (caching, [(header::CONTENT_TYPE, kind)], asset.content).into_response()
}
