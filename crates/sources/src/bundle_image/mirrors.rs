//! Mirror rules: where else an image is to be looked for.
//!
//! Rules are those of OpenShift's ImageDigestMirrorSet, ImageTagMirrorSet and
//! ImageContentSourcePolicy, and they are followed as the nodes' container runtime follows them: of
//! the sources that an image's name begins with, the longest counts alone.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::reference::{Reference, Repository, Version};

/// Bytes of a file of rules.
const FILE_BYTES_MAX: usize = 4 << 20;
/// Sources, and mirrors of one source.
const RULES_MAX: usize = 10_000;

/// Which images a mirror has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Has {
    /// Those that are named by digest.
    Digests,
    /// Those that are named by tag.
    Tags,
}

/// Whether the source itself may be asked when no mirror has the image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourcePolicy {
    /// It may, after the mirrors.
    #[default]
    AllowContactingSource,
    /// It may not.
    NeverContactSource,
}

/// All mirror rules of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors {
    by_source: BTreeMap<String, Source>,
}

/// What is known about one source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Source {
    policy: SourcePolicy,
    /// In the order in which they are asked.
    mirrors: Vec<(Has, String)>,
}

/// Why a file holds no mirror rules.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is too long.
    #[error("the mirror rules are longer than {FILE_BYTES_MAX} bytes")]
    TooLong,
    /// There are too many of them.
    #[error("there are more than {RULES_MAX} mirror rules")]
    TooMany,
    /// The file is neither YAML nor JSON.
    #[error("the mirror rules are neither YAML nor JSON of the expected form")]
    Parse(#[source] Box<serde_saphyr::Error>),
    /// An object of another kind.
    #[error("`{kind}` holds no mirror rules")]
    Kind {
        /// Its kind.
        kind: String,
    },
}

/// An object as `oc get -o yaml` prints it.
#[derive(Debug, Deserialize)]
struct Object {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    items: Vec<Self>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "imageDigestMirrors")]
    digest_rules: Vec<Rule>,
    #[serde(rename = "imageTagMirrors")]
    tags: Vec<Rule>,
    #[serde(rename = "repositoryDigestMirrors")]
    formerly: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    source: String,
    #[serde(default)]
    mirrors: Vec<String>,
    #[serde(default)]
    mirror_source_policy: Option<String>,
}

// === impl Mirrors ===

impl Mirrors {
    /// Reads objects, one or several, or a list of them, as YAML or JSON.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        if text.len() > FILE_BYTES_MAX {
            return Err(Error::TooLong);
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 32 },
            with_snippet: false,
        };
        let mut mirrors = Self::default();
        let mut reader = text;
        for object in serde_saphyr::read_with_options::<_, Object>(&mut reader, options) {
            let object = object.map_err(|error| Error::Parse(Box::new(error)))?;
            for item in &object.items {
                mirrors.add_object(item)?;
            }
            if object.kind != "List" {
                mirrors.add_object(&object)?;
            }
        }
        Ok(mirrors)
    }

    fn add_object(&mut self, object: &Object) -> Result<(), Error> {
        let spec = &object.spec;
        let (has, rules) = match object.kind.as_str() {
            "ImageDigestMirrorSet" => (Has::Digests, &spec.digest_rules),
            "ImageTagMirrorSet" => (Has::Tags, &spec.tags),
            "ImageContentSourcePolicy" => (Has::Digests, &spec.formerly),
            kind => return Err(Error::Kind { kind: kind.to_owned() }),
        };
        for rule in rules {
            let policy = match rule.mirror_source_policy.as_deref() {
                Some("NeverContactSource") => SourcePolicy::NeverContactSource,
                Some(_) | None => SourcePolicy::AllowContactingSource,
            };
            self.add(&rule.source, has, rule.mirrors.iter().cloned(), policy)?;
        }
        Ok(())
    }

    /// Adds one rule. Rules of the same source add up: mirrors in the order of the rules, and one
    /// `NeverContactSource` is enough.
    pub fn add(
        &mut self,
        source: &str,
        has: Has,
        mirrors: impl IntoIterator<Item = String>,
        policy: SourcePolicy,
    ) -> Result<(), Error> {
        let known = self.by_source.entry(source.trim_end_matches('/').to_owned()).or_default();
        if policy == SourcePolicy::NeverContactSource {
            known.policy = policy;
        }
        for mirror in mirrors {
            let mirror = (has, mirror.trim_end_matches('/').to_owned());
            if !known.mirrors.contains(&mirror) {
                known.mirrors.push(mirror);
            }
        }
        if known.mirrors.len() > RULES_MAX || self.by_source.len() > RULES_MAX {
            return Err(Error::TooMany);
        }
        Ok(())
    }

    /// Where to look for an image, in this order. Empty: only the source could have it, and it may not
    /// be asked.
    pub fn places(&self, image: &Reference) -> Vec<Repository> {
        let has = match image.version {
            Version::Digest(_) => Has::Digests,
            Version::Tag(_) => Has::Tags,
        };
        let name = image.repository.to_string();
        let matching = self.by_source.iter().filter_map(|(prefix, source)| {
            let rest = after_prefix(&name, prefix)?;
            Some((prefix.len(), rest, source))
        });
        let Some((_, rest, source)) = matching.max_by_key(|(length, ..)| *length) else {
            return vec![image.repository.clone()];
        };
        let mirrors = source.mirrors.iter().filter(|(kind, _)| *kind == has);
        // A mirror that does not make a name is passed over, as the runtime does.
        let mut places: Vec<Repository> = mirrors
            .filter_map(|(_, mirror)| Repository::parse(&format!("{mirror}{rest}")).ok())
            .collect();
        if source.policy == SourcePolicy::AllowContactingSource {
            places.push(image.repository.clone());
        }
        places
    }
}

/// What follows the prefix, if it ends where a part of the name ends. `*.example.com` stands for every
/// host below example.com.
fn after_prefix<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with('/');
    if let Some(domain) = prefix.strip_prefix('*') {
        let host = name.split('/').next().unwrap_or(name);
        let bare = host.split(':').next().unwrap_or(host);
        let is_below =
            domain.starts_with('.') && bare.len() > domain.len() && bare.ends_with(domain);
        return is_below.then(|| name.strip_prefix(host).unwrap_or_default());
    }
    name.strip_prefix(prefix).filter(|rest| is_end(rest))
}

// === impl Error ===

impl Error {
    /// What a user can do about it.
    pub fn advice(&self) -> &'static str {
        "give ImageDigestMirrorSets, ImageTagMirrorSets or ImageContentSourcePolicies, e.g. what \
         `oc get imagedigestmirrorsets,imagetagmirrorsets -o yaml` prints"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "
apiVersion: v1
kind: List
items:
- kind: ImageDigestMirrorSet
  spec:
    imageDigestMirrors:
    - source: registry.example.com
      mirrors: [mirror.local:5000/all]
    - source: registry.example.com/team/app
      mirrors: [a.local/app/, b.local/app]
      mirrorSourcePolicy: NeverContactSource
    - source: '*.example.org'
      mirrors: [mirror.local:5000/org]
- kind: ImageTagMirrorSet
  spec:
    imageTagMirrors:
    - source: registry.example.com
      mirrors: [tags.local]
---
kind: ImageContentSourcePolicy
spec:
  repositoryDigestMirrors:
  - source: registry.example.com
    mirrors: [old.local/x, mirror.local:5000/all]
";

    fn places(image: &str) -> Vec<String> {
        let image = image.replace('#', &format!("@sha256:{}", "0".repeat(64)));
        let image = Reference::parse(&image).unwrap();
        let mirrors = Mirrors::parse(RULES.as_bytes()).unwrap();
        mirrors.places(&image).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_longest_source_counts_alone() {
        for (image, expected) in [
            (
                "registry.example.com/team/other#",
                vec![
                    "mirror.local:5000/all/team/other",
                    "old.local/x/team/other",
                    "registry.example.com/team/other",
                ],
            ),
            ("registry.example.com/team/app#", vec!["a.local/app", "b.local/app"]),
            ("registry.example.com/team/app/sub#", vec!["a.local/app/sub", "b.local/app/sub"]),
            // Its name only begins alike.
            (
                "registry.example.com/team/apple:v1",
                vec!["tags.local/team/apple", "registry.example.com/team/apple"],
            ),
            // There is no mirror for tags, and the source may not be asked.
            ("registry.example.com/team/app:v1", vec![]),
            ("sub.example.org:443/x#", vec!["mirror.local:5000/org/x", "sub.example.org:443/x"]),
            ("example.org/x#", vec!["example.org/x"]),
            ("quay.io/a/b#", vec!["quay.io/a/b"]),
        ] {
            assert_eq!(places(image), expected, "{image}");
        }
    }

    #[test]
    fn other_objects_are_refused() {
        for (text, expected) in [
            ("kind: Secret", "`Secret` holds no mirror rules"),
            ("kind: [", "the mirror rules are neither YAML nor JSON of the expected form"),
            ("kind: List\nitems: [{kind: Pod}]", "`Pod` holds no mirror rules"),
        ] {
            assert_eq!(Mirrors::parse(text.as_bytes()).unwrap_err().to_string(), expected);
        }
        let long = vec![b' '; FILE_BYTES_MAX + 1];
        assert!(matches!(Mirrors::parse(&long), Err(Error::TooLong)));
        assert_eq!(Mirrors::parse(b"").unwrap(), Mirrors::default());
    }
}
