//! What the browser itself noticed about a page.

use serde_json::Value;

use super::wire::Event;

/// The evidence.
#[derive(Debug, Default)]
pub(super) struct Witness {
    /// How often a document was loaded.
    pub(super) documents: usize,
    /// Everything that was asked for.
    pub(super) requests: Vec<String>,
    /// Everything that should not have been, in the order in which it was noticed.
    pub(super) complaints: Vec<Complaint>,
}

/// Something that should not have been.
#[derive(Debug)]
pub(super) struct Complaint {
    pub(super) kind: Kind,
    #[expect(dead_code, reason = "read by whoever reads a failed test")]
    detail: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A script wrote an error to the console, or an assertion of it failed.
    Console,
    /// An exception that nobody caught.
    Thrown,
    /// An error that the browser logged.
    Logged,
    /// A violation of the content security policy.
    Policy,
    /// A request to another origin.
    Foreign,
    /// An answer that is an error.
    Refused,
    /// A request that came to nothing and was not called off by the page.
    Failed,
}

impl Witness {
    /// What `events` say about a page of this origin.
    pub(super) fn of(events: &[Event], origin: &str) -> Self {
        let mut witness = Self::default();
        for Event { method, params } in events {
            match method.as_str() {
                "Network.requestWillBeSent" => {
                    if params["type"] == "Document" {
                        witness.documents += 1;
                    }
                    witness.request(&params["request"]["url"], origin);
                }
                "Network.webSocketCreated" | "Network.webTransportCreated" => {
                    witness.request(&params["url"], origin);
                }
                _ => {}
            }
            if let Some(kind) = complaint(method, params) {
                witness.complaints.push(Complaint { kind, detail: params.clone() });
            }
        }
        witness
    }

    /// The kinds of complaints, each once.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = self.complaints.iter().map(|c| c.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    fn request(&mut self, url: &Value, origin: &str) {
        let path = url.as_str().and_then(|url| url.strip_prefix(origin));
        if !path.is_some_and(|path| path.starts_with('/')) {
            self.complaints.push(Complaint { kind: Kind::Foreign, detail: url.clone() });
        }
        self.requests.push(url.as_str().unwrap_or_default().to_owned());
    }
}

fn complaint(method: &str, params: &Value) -> Option<Kind> {
    let is_so = |pointer: &str, wanted: &[&str]| {
        params.pointer(pointer).and_then(Value::as_str).is_some_and(|it| wanted.contains(&it))
    };
    match method {
        "Runtime.consoleAPICalled" => is_so("/type", &["error", "assert"]).then_some(Kind::Console),
        "Runtime.exceptionThrown" => Some(Kind::Thrown),
        "Log.entryAdded" => is_so("/entry/level", &["error"]).then_some(Kind::Logged),
        "Audits.issueAdded" => {
            is_so("/issue/code", &["ContentSecurityPolicyIssue"]).then_some(Kind::Policy)
        }
        "Network.responseReceived" => {
            let status = params["response"]["status"].as_u64();
            status.is_some_and(|status| status >= 400).then_some(Kind::Refused)
        }
        "Network.loadingFailed" => (params["canceled"] != true).then_some(Kind::Failed),
        _ => None,
    }
}
