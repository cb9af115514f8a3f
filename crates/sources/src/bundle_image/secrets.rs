//! Pull secrets: who we are at which registry.

use std::{collections::BTreeMap, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use super::reference::Repository;

/// Bytes of a pull secret.
const SECRET_BYTES_MAX: usize = 1 << 20;

/// What a Secret of type `kubernetes.io/dockerconfigjson` holds.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PullSecrets {
    /// By registry, or registry and the beginning of a repository.
    ///
    /// A pull secret holds entries for many registries. One that is of no use is an error where it is
    /// needed and not before.
    by_prefix: BTreeMap<String, Result<Credentials, Error>>,
}

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
}

/// Why text is no pull secret. Nothing of the text is shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is too long.
    #[error("the pull secret is longer than {SECRET_BYTES_MAX} bytes")]
    TooLong,
    /// It does not have the form.
    #[error("the pull secret is not JSON with a map `auths` (line {line}, column {column})")]
    Form {
        /// The line of the mistake.
        line: usize,
        /// The column of the mistake.
        column: usize,
    },
    /// One entry is no name and password.
    #[error("the pull secret's entry for `{registry}` holds no name and password")]
    Entry {
        /// Which entry.
        registry: String,
    },
    /// One entry has a token in place of a password, which is not supported.
    #[error(
        "the pull secret's entry for `{registry}` is an identity token, which is not supported"
    )]
    IdentityToken {
        /// Which entry.
        registry: String,
    },
}

#[derive(Deserialize)]
struct Document {
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    identitytoken: String,
}

// === impl PullSecrets ===

impl PullSecrets {
    /// Reads the content of `.dockerconfigjson`.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        if json.len() > SECRET_BYTES_MAX {
            return Err(Error::TooLong);
        }
        let document: Document = serde_json::from_slice(json)
            .map_err(|error| Error::Form { line: error.line(), column: error.column() })?;
        let mut by_prefix = BTreeMap::new();
        for (registry, entry) in document.auths {
            let prefix = prefix(&registry).to_owned();
            if let Some(credentials) = Credentials::of(registry, entry) {
                by_prefix.insert(prefix, credentials);
            }
        }
        Ok(Self { by_prefix })
    }

    /// The entry for a repository: the longest that its name begins with.
    pub(super) fn of(&self, repository: &Repository) -> Result<Option<&Credentials>, Error> {
        let name = repository.to_string();
        let mut prefix = name.as_str();
        loop {
            match self.by_prefix.get(prefix) {
                Some(Ok(found)) => return Ok(Some(found)),
                Some(Err(error)) => return Err(error.clone()),
                None => match prefix.rsplit_once('/') {
                    Some((shorter, _)) => prefix = shorter,
                    None => return Ok(None),
                },
            }
        }
    }
}

/// Old entries are URLs.
fn prefix(registry: &str) -> &str {
    let name = registry.trim_start_matches("https://").trim_start_matches("http://");
    let name = name.trim_end_matches('/').trim_end_matches("/v2").trim_end_matches("/v1");
    if name == "index.docker.io" { "docker.io" } else { name }
}

impl fmt::Debug for PullSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_prefix.keys()).finish()
    }
}

// === impl Credentials ===

impl Credentials {
    /// Nothing where the entry is empty, as some tools leave it.
    fn of(registry: String, entry: Entry) -> Option<Result<Self, Error>> {
        if !entry.identitytoken.is_empty() {
            return Some(Err(Error::IdentityToken { registry }));
        }
        if entry.auth.is_empty() {
            let Entry { username: user, password, .. } = entry;
            return (!user.is_empty()).then_some(Ok(Self { user, password }));
        }
        let decoded = STANDARD.decode(entry.auth.trim()).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let Some((user, password)) = text.as_deref().and_then(|text| text.split_once(':')) else {
            return Some(Err(Error::Entry { registry }));
        };
        // Some tools pad the password with zero bytes.
        let password = password.trim_end_matches('\0').to_owned();
        Some(Ok(Self { user: user.to_owned(), password }))
    }

    /// The value of an `Authorization` header.
    pub(super) fn basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", self.user, self.password)))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

// === impl Error ===

impl Error {
    /// What a user can do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::TooLong | Self::Form { .. } | Self::Entry { .. } => {
                "give the content of `.dockerconfigjson` as it is in the cluster's pull secret"
            }
            Self::IdentityToken { .. } => {
                "log in with a name and a password, or a robot account, for this registry"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_with_the_longest_name_counts() {
        let json = serde_json::json!({"auths": {
            "quay.io": {"auth": STANDARD.encode("all:1")},
            "quay.io/team": {"auth": STANDARD.encode("team:a:b")},
            "quay.io/team/app": {"username": "app", "password": "3"},
            "https://index.docker.io/v1/": {"auth": STANDARD.encode("docker:4")},
            "registry.local:5000": {"auth": STANDARD.encode("local:5\0\0")},
        }});
        let secrets = PullSecrets::parse(json.to_string().as_bytes()).unwrap();
        for (name, expected) in [
            ("quay.io/other/x", Some(("all", "1"))),
            ("quay.io/team/x", Some(("team", "a:b"))),
            ("quay.io/team/app", Some(("app", "3"))),
            ("quay.io/teams/x", Some(("all", "1"))),
            ("nginx", Some(("docker", "4"))),
            ("registry.local:5000/x", Some(("local", "5"))),
            ("registry.local/x", None),
        ] {
            let found = secrets.of(&Repository::parse(name).unwrap()).unwrap();
            let found = found.map(|found| (found.user.as_str(), found.password.as_str()));
            assert_eq!(found, expected, "{name}");
        }
        assert!(!format!("{secrets:?}").contains("a:b"));
    }

    #[test]
    fn what_is_no_secret_is_refused_without_showing_it() {
        for (json, expected) in [("{\"hunter2\"", "not JSON"), ("{}", "map `auths`")] {
            let error = PullSecrets::parse(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
        for (entry, expected) in [
            (r#"{"auth":"hunter2"}"#, Some("`a.io` holds no name")),
            (r#"{"identitytoken":"hunter2"}"#, Some("not supported")),
            ("{}", None),
        ] {
            let secrets =
                PullSecrets::parse(format!("{{\"auths\":{{\"a.io\":{entry}}}}}").as_bytes());
            let secrets = secrets.unwrap();
            // Only who needs the entry is told.
            assert!(secrets.of(&Repository::parse("b.io/x").unwrap()).unwrap().is_none());
            let found = secrets.of(&Repository::parse("a.io/x").unwrap());
            let error = found.map(|found| found.is_none()).map_err(|error| error.to_string());
            match expected {
                None => assert_eq!(error, Ok(true)),
                Some(text) => assert!(error.clone().unwrap_err().contains(text), "{error:?}"),
            }
            assert!(!format!("{secrets:?}").contains("hunter2"));
        }
    }
}
