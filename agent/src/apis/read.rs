//! Reads definitions and objects of any kind, as JSON.

use std::{fmt, time::Duration};

use kube::{Client, core::Status};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;
use wavelift_catalog::release::StatusObject;

/// Objects of one page.
pub(super) const PAGE: usize = 100;
/// How long one answer may take; in real time.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Reads from one API server.
pub(super) struct ApiReader<'c> {
    client: &'c Client,
}

/// Why something could not be read, in the API server's words.
#[derive(Debug)]
pub(super) enum Failed {
    /// Not allowed.
    Forbidden(String),
    /// Not there.
    Missing(String),
    /// Anything else.
    Other(String),
}

/// A page of objects.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    /// Where the next one begins.
    pub(super) next: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct List {
    metadata: Continued,
    items: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Continued {
    r#continue: String,
}

// === impl ApiReader ===

impl<'c> ApiReader<'c> {
    pub(super) fn new(client: &'c Client) -> Self {
        Self { client }
    }

    /// A definition with its status; nothing where there is none.
    pub(super) async fn definition(&self, name: &str) -> Result<Option<Value>, Failed> {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        self.maybe(&path).await
    }

    /// An InstallPlan with its steps; nothing where there is none.
    pub(super) async fn install_plan(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, Failed> {
        let group = "/apis/operators.coreos.com/v1alpha1";
        self.maybe(&format!("{group}/namespaces/{namespace}/installplans/{name}")).await
    }

    /// A ConfigMap; nothing where there is none.
    pub(super) async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, Failed> {
        self.maybe(&format!("/api/v1/namespaces/{namespace}/configmaps/{name}")).await
    }

    /// Objects of a kind, in all namespaces.
    pub(super) async fn page(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        limit: usize,
        next: Option<&str>,
    ) -> Result<Page, Failed> {
        let mut query = format!("limit={limit}");
        if let Some(next) = next {
            query.push_str("&continue=");
            query.push_str(&escaped(next));
        }
        let list: List = self.get(&format!("/apis/{group}/{version}/{plural}?{query}")).await?;
        let next = Some(list.metadata.r#continue).filter(|next| !next.is_empty());
        Ok(Page { items: list.items, next })
    }

    /// An object, or the first of all of a kind, in its namespace or else in `home`; nothing where
    /// there is no such object or kind.
    pub(super) async fn object(
        &self,
        of: &StatusObject,
        home: &str,
    ) -> Result<Option<Value>, Failed> {
        let base = match of.api_version.as_str() {
            "v1" => "/api/v1".to_owned(),
            other => format!("/apis/{other}"),
        };
        let Some(list) = self.maybe(&base).await? else { return Ok(None) };
        let Some(resource) = resource(&list, &of.kind) else { return Ok(None) };
        let plural = resource["name"].as_str().unwrap_or_default();
        let namespace = of.namespace.as_deref().unwrap_or(home);
        let path = match resource["namespaced"].as_bool() {
            Some(true) => format!("{base}/namespaces/{namespace}/{plural}"),
            Some(false) | None => format!("{base}/{plural}"),
        };
        if let Some(name) = &of.name {
            return self.maybe(&format!("{path}/{name}")).await;
        }
        let list: List = self.get(&format!("{path}?limit={PAGE}")).await?;
        Ok(Some(Value::Array(list.items)))
    }

    /// What objects of a kind are called in paths; nothing where the API server has no such kind.
    pub(super) async fn plural(&self, group: &str, kind: &str) -> Result<Option<String>, Failed> {
        let Some(groups) = self.maybe(&format!("/apis/{group}")).await? else { return Ok(None) };
        let versions = groups["versions"].as_array().into_iter().flatten();
        for version in versions.filter_map(|version| version["version"].as_str()) {
            let Some(list) = self.maybe(&format!("/apis/{group}/{version}")).await? else {
                continue;
            };
            let found = resource(&list, kind).and_then(|resource| resource["name"].as_str());
            if let Some(plural) = found {
                return Ok(Some(plural.to_owned()));
            }
        }
        Ok(None)
    }

    async fn maybe(&self, path: &str) -> Result<Option<Value>, Failed> {
        match self.get(path).await {
            Ok(value) => Ok(Some(value)),
            Err(Failed::Missing(_)) => Ok(None),
            Err(failed @ (Failed::Forbidden(_) | Failed::Other(_))) => Err(failed),
        }
    }

    async fn get<T: for<'a> Deserialize<'a>>(&self, path: &str) -> Result<T, Failed> {
        let other = |error: &dyn std::error::Error| Failed::Other(error.to_string());
        let request = http::Request::get(path).body(vec![]).map_err(|error| other(&error))?;
        let answer = timeout(ANSWER_MAX, self.client.request::<T>(request)).await;
        let seconds = ANSWER_MAX.as_secs();
        let answer = answer.map_err(|_| Failed::Other(format!("no answer within {seconds} s")))?;
        answer.map_err(|error| {
            if let kube::Error::Api(status) = &error {
                Failed::from(Status::clone(status))
            } else {
                other(&error)
            }
        })
    }
}

impl From<Status> for Failed {
    fn from(status: Status) -> Self {
        let words = if status.message.is_empty() { status.reason } else { status.message };
        match status.code {
            403 => Self::Forbidden(words),
            404 => Self::Missing(words),
            _ => Self::Other(words),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden(words) => write!(f, "not allowed: {words}"),
            Self::Missing(words) | Self::Other(words) => f.write_str(words),
        }
    }
}

/// The resource of a kind in the list of those that a version has; subresources are none.
fn resource<'l>(list: &'l Value, kind: &str) -> Option<&'l Value> {
    let resources = list["resources"].as_array().into_iter().flatten();
    let is_whole = |resource: &&Value| resource["name"].as_str().is_some_and(|n| !n.contains('/'));
    resources.filter(|resource| resource["kind"] == kind).find(is_whole)
}

/// `namespace/name`, or the name alone.
pub(super) fn object_name(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    let name = text("name").unwrap_or_default();
    text("namespace").map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

/// A token of the API server's in a query.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
