//! Live data from the hub's JSON API.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use http::Uri;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::de::DeserializeOwned;
use wavelift_api::live::{
    ClusterDetail, ClusterList, PreviewDetail, PreviewList, Problem, UpgradeDetail, UpgradeList,
};

use super::{ClusterQuery, Document, Live};

/// The most that is read of one answer.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// What the hub gives in one page at most.
const PAGE: usize = 500;

/// The hub at an address.
#[derive(Debug)]
pub(super) struct Http {
    base: String,
    client: Client<HttpConnector, Empty<Bytes>>,
    timeout: Duration,
}

impl Http {
    pub(super) fn new(url: &str, timeout_seconds: u64) -> anyhow::Result<Self> {
        let base = url.trim_end_matches('/').to_owned();
        if !base.starts_with("http://") {
            bail!("--url `{url}` must begin with http://: forward a port to the hub for that");
        }
        let client = Client::builder(TokioExecutor::new()).build_http();
        Ok(Self { base, client, timeout: Duration::from_secs(timeout_seconds) })
    }

    async fn get<T: DeserializeOwned>(&self, path: String) -> anyhow::Result<T> {
        let body = self.body(&path).await?;
        serde_json::from_slice(&body)
            .with_context(|| format!("the answer from {}/api/v1/{path} cannot be read", self.base))
    }

    async fn text(&self, path: String) -> anyhow::Result<String> {
        let body = self.body(&path).await?;
        String::from_utf8(body.into()).context("the answer is not text")
    }

    async fn body(&self, path: &str) -> anyhow::Result<Bytes> {
        let url = format!("{}/api/v1/{path}", self.base);
        let answer = tokio::time::timeout(self.timeout, self.fetch(&url));
        let (status, body) = answer
            .await
            .with_context(|| format!("no answer from {url} in {} s", self.timeout.as_secs()))??;
        if status.is_success() {
            return Ok(body);
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => bail!("{}", sentence(&problem)),
            Err(_) => bail!("{url} answers {status}"),
        }
    }

    async fn fetch(&self, url: &str) -> anyhow::Result<(http::StatusCode, Bytes)> {
        let uri: Uri = url.parse().with_context(|| format!("`{url}` is not an address"))?;
        let answer = self.client.get(uri).await.with_context(|| {
            format!("cannot reach the hub at {}: is --url (WAVELIFT_URL) right?", self.base)
        })?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        match body {
            Ok(body) => Ok((status, body.to_bytes())),
            Err(error) => bail!("the answer from {url} broke off: {error}"),
        }
    }

    async fn all_clusters(&self, path: String) -> anyhow::Result<ClusterList> {
        let mut list: ClusterList = self.get(path.clone()).await?;
        while let Some(token) = list.continue_token.take() {
            let next: ClusterList = self.get(format!("{path}&continue={}", encode(&token))).await?;
            list.items.extend(next.items);
            list.continue_token = next.continue_token;
        }
        Ok(list)
    }
}

impl Live for Http {
    fn knows_every_cluster(&self) -> bool {
        true
    }

    fn upgrades(&self, namespace: Option<&str>) -> BoxFuture<'_, anyhow::Result<UpgradeList>> {
        let only = namespace.map_or_else(String::new, |n| format!("&namespace={}", encode(n)));
        self.get(format!("fleetupgrades?limit={PAGE}{only}")).boxed()
    }

    fn upgrade(&self, namespace: &str, name: &str) -> BoxFuture<'_, anyhow::Result<UpgradeDetail>> {
        self.get(format!("fleetupgrades/{}/{}", encode(namespace), encode(name))).boxed()
    }

    fn clusters(
        &self,
        namespace: &str,
        name: &str,
        query: &ClusterQuery,
    ) -> BoxFuture<'_, anyhow::Result<ClusterList>> {
        let base = format!("fleetupgrades/{}/{}/clusters", encode(namespace), encode(name));
        let mut path = format!("{base}?limit={PAGE}");
        for (key, value) in [
            ("state", &query.state),
            ("wave", &query.wave),
            ("check", &query.check),
            ("q", &query.text),
            ("sort", &query.sort),
        ] {
            if let Some(value) = value {
                path.push_str(&format!("&{key}={}", encode(value)));
            }
        }
        self.all_clusters(path).boxed()
    }

    fn cluster(
        &self,
        namespace: &str,
        name: &str,
        cluster: &str,
    ) -> BoxFuture<'_, anyhow::Result<ClusterDetail>> {
        let base = format!("fleetupgrades/{}/{}", encode(namespace), encode(name));
        self.get(format!("{base}/clusters/{}", encode(cluster))).boxed()
    }

    fn preview(&self, namespace: &str, name: &str) -> BoxFuture<'_, anyhow::Result<PreviewList>> {
        let path = format!("{}?limit={PAGE}", preview_path(namespace, name));
        async move {
            let mut list: PreviewList = self.get(path.clone()).await?;
            while let Some(token) = list.continue_token.take() {
                let next = format!("{path}&continue={}", encode(&token));
                let next: PreviewList = self.get(next).await?;
                list.items.extend(next.items);
                list.continue_token = next.continue_token;
            }
            Ok(list)
        }
        .boxed()
    }

    fn preview_group_of(
        &self,
        namespace: &str,
        name: &str,
        cluster: &str,
    ) -> BoxFuture<'_, anyhow::Result<String>> {
        let path = format!("{}?cluster={}", preview_path(namespace, name), encode(cluster));
        let cluster = cluster.to_owned();
        async move {
            let list: PreviewList = self.get(path).await?;
            match list.items.into_iter().next() {
                Some(group) => Ok(group.id),
                None => bail!("cluster {cluster} has no plan in this campaign"),
            }
        }
        .boxed()
    }

    fn preview_group(
        &self,
        namespace: &str,
        name: &str,
        id: &str,
    ) -> BoxFuture<'_, anyhow::Result<PreviewDetail>> {
        self.get(format!("{}/{}", preview_path(namespace, name), encode(id))).boxed()
    }

    fn preview_document(
        &self,
        (namespace, name): (&str, &str),
        group: Option<&str>,
        form: Document,
    ) -> BoxFuture<'_, anyhow::Result<String>> {
        let group = group.map_or_else(String::new, |id| format!("/{}", encode(id)));
        let form = match form {
            Document::Html => "html",
            Document::Markdown => "markdown",
        };
        self.text(format!("{}{group}?format={form}", preview_path(namespace, name))).boxed()
    }
}

fn preview_path(namespace: &str, name: &str) -> String {
    format!("fleetupgrades/{}/{}/preview", encode(namespace), encode(name))
}

/// What went wrong and what to do about it.
fn sentence(problem: &Problem) -> String {
    let action = problem.action.trim();
    let end = if action.is_empty() { String::new() } else { format!("\n  what next: {action}") };
    format!("{}: {}{end}", problem.title, problem.detail)
}

/// Percent-encodes everything but what needs none anywhere in an address.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b',') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_cannot_leave_its_place_in_the_address() {
        assert_eq!(encode("a/b?c=d&e ü"), "a%2Fb%3Fc%3Dd%26e%20%C3%BC");
        assert_eq!(encode("Failed,Stalled"), "Failed,Stalled");
    }

    #[test]
    fn a_problem_comes_with_what_to_do() {
        let mut problem = Problem {
            kind: "urn:wavelift:problem:not-found".to_owned(),
            title: "Not found".to_owned(),
            status: 404,
            detail: "no cluster x".to_owned(),
            code: "not-found".to_owned(),
            action: "List the clusters.".to_owned(),
            instance: None,
        };
        assert_eq!(sentence(&problem), "Not found: no cluster x\n  what next: List the clusters.");
        problem.action.clear();
        assert_eq!(sentence(&problem), "Not found: no cluster x");
    }

    #[test]
    fn only_plain_http_is_spoken() {
        assert!(Http::new("https://hub", 1).is_err());
        assert_eq!(Http::new("http://hub:1/", 1).unwrap().base, "http://hub:1");
    }
}
