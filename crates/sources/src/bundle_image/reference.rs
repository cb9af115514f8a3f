//! Names of images, as pull specifications write them.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The longest name that is looked at.
const NAME_BYTES_MAX: usize = 1024;
/// The registry that names without one mean.
const DEFAULT_REGISTRY: &str = "docker.io";

/// The name of content: its SHA-256, `sha256:<64 hex digits>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

/// A repository in a registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    /// The registry: host, with the port if it is given.
    pub registry: String,
    /// The path within the registry.
    pub path: String,
}

/// Which image of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// Exactly this content.
    Digest(Digest),
    /// Whatever has this name now.
    Tag(String),
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Where it is, before mirrors are looked at.
    pub repository: Repository,
    /// Which one it is. Where a name has both tag and digest, the digest counts.
    pub version: Version,
}

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadReference {
    /// Nothing is there, or more than any name has.
    #[error("it is empty or too long")]
    Length,
    /// The registry is no host.
    #[error("its registry is not a host with an optional port")]
    Registry,
    /// The repository is not spelled as one.
    #[error("its repository may have only lower-case letters, digits, `.`, `_`, `-` and `/`")]
    Repository,
    /// The tag is not spelled as one.
    #[error("its tag may have only letters, digits, `.`, `_` and `-`, at most 128")]
    Tag,
    /// The digest is not a SHA-256.
    #[error("its digest is not `sha256:` and 64 hex digits")]
    Digest,
}

// === impl Digest ===

impl Digest {
    /// Reads a digest.
    pub fn parse(text: &str) -> Result<Self, BadReference> {
        let digits = text.strip_prefix("sha256:").ok_or(BadReference::Digest)?;
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if digits.len() == 64 && digits.bytes().all(is_hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadReference::Digest)
        }
    }

    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256:{}", hex::encode(Sha256::digest(bytes))))
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The 64 digits alone.
    pub(super) fn digits(&self) -> &str {
        self.0.strip_prefix("sha256:").unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Reference ===

impl Reference {
    /// Reads a pull specification.
    pub fn parse(text: &str) -> Result<Self, BadReference> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Err(BadReference::Length);
        }
        let text = text.strip_prefix("docker://").unwrap_or(text);
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(Digest::parse(digest)?)),
            None => (text, None),
        };
        // A colon after the last slash begins a tag; one before it, a port.
        let (name, tag) = match name.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            Some(_) | None => (name, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(BadReference::Tag);
        }
        let version = match digest {
            Some(digest) => Version::Digest(digest),
            None => Version::Tag(tag.unwrap_or("latest").to_owned()),
        };
        Ok(Self { repository: Repository::parse(name)?, version })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Version::Digest(digest) => write!(f, "{}@{digest}", self.repository),
            Version::Tag(tag) => write!(f, "{}:{tag}", self.repository),
        }
    }
}

fn is_tag(tag: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=128).contains(&tag.len())
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|b| is_word(b) || b == b'.' || b == b'-')
}

// === impl Repository ===

impl Repository {
    /// Reads the name of a repository, with neither tag nor digest.
    pub fn parse(name: &str) -> Result<Self, BadReference> {
        let is_host = |part: &str| part.contains(['.', ':']) || part == "localhost";
        let (registry, path) = match name.split_once('/') {
            Some((first, rest)) if is_host(first) => (first.to_owned(), rest.to_owned()),
            Some(_) => (DEFAULT_REGISTRY.to_owned(), name.to_owned()),
            None => (DEFAULT_REGISTRY.to_owned(), format!("library/{name}")),
        };
        if !is_registry(&registry) {
            return Err(BadReference::Registry);
        }
        if !path.split('/').all(is_path_part) {
            return Err(BadReference::Repository);
        }
        Ok(Self { registry, path })
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.path)
    }
}

/// A host name or address, with an optional port. Nothing in it can end the host part of a URL.
fn is_registry(text: &str) -> bool {
    let is_number = |port: &str| port.parse::<u16>().is_ok();
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => {
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            return rest.is_empty() || rest.strip_prefix(':').is_some_and(is_number);
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_label = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.' || b == b'_';
    !host.is_empty() && host.bytes().all(is_label) && port.is_none_or(is_number)
}

/// No part is `.` or `..`: it begins and ends with a letter or digit.
fn is_path_part(part: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    part.bytes().next().is_some_and(is_word)
        && part.bytes().last().is_some_and(is_word)
        && part.bytes().all(|b| is_word(b) || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn names_are_read_as_people_mean_them() {
        for (text, registry, path, version) in [
            ("quay.io/a/b:v1.0", "quay.io", "a/b", "v1.0"),
            ("quay.io/a/b", "quay.io", "a/b", "latest"),
            ("localhost/b", "localhost", "b", "latest"),
            ("127.0.0.1:5000/a/b-c_d.e:x", "127.0.0.1:5000", "a/b-c_d.e", "x"),
            ("[::1]:5000/a:x", "[::1]:5000", "a", "x"),
            ("docker://r.example.com/a:b", "r.example.com", "a", "b"),
            ("nginx", "docker.io", "library/nginx", "latest"),
            ("bitnami/nginx:1", "docker.io", "bitnami/nginx", "1"),
        ] {
            let Reference { repository, version: found } = Reference::parse(text).unwrap();
            assert_eq!((repository.registry.as_str(), repository.path.as_str()), (registry, path));
            assert_eq!(found, Version::Tag(version.to_owned()), "{text}");
        }
        let both = Reference::parse(&format!("quay.io/a:v1@sha256:{HEX}")).unwrap();
        assert_eq!(both.to_string(), format!("quay.io/a@sha256:{HEX}"));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for (text, expected) in [
            ("", BadReference::Length),
            (&long, BadReference::Length),
            ("quay.io/", BadReference::Repository),
            ("quay.io/a//b", BadReference::Repository),
            ("quay.io/a/../b", BadReference::Repository),
            ("quay.io/A", BadReference::Repository),
            ("quay.io/a?b", BadReference::Repository),
            ("quay.io/a%2fb", BadReference::Repository),
            ("quay.io:x/a", BadReference::Registry),
            ("u@quay.io/a", BadReference::Digest),
            ("quay.io:99999/a", BadReference::Registry),
            ("[::1/a", BadReference::Registry),
            ("quay.io/a:", BadReference::Tag),
            ("quay.io/a:-x", BadReference::Tag),
            ("quay.io/a:v1/../../x", BadReference::Repository),
            ("quay.io/a@sha256:12", BadReference::Digest),
            ("quay.io/a@sha512:12", BadReference::Digest),
        ] {
            assert_eq!(Reference::parse(text).unwrap_err(), expected, "{text}");
        }
        assert!(Digest::parse(&format!("sha256:{}", HEX.to_uppercase())).is_err());
    }

    #[test]
    fn a_digest_is_the_sha_256_of_the_bytes() {
        // As `printf abc | sha256sum` prints it.
        assert_eq!(
            Digest::of(b"abc").as_str(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
