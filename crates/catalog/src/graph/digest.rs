//! The digest that names a graph.

use std::{fmt, io};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a graph's canonical form, written `sha256:<64 hex digits>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// The text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("digest is not `sha256:` and 64 hex digits")]
pub struct BadDigest;

/// Takes bytes and makes their digest.
#[derive(Default)]
pub(super) struct Hasher(Sha256);

// === impl Hasher ===

impl Hasher {
    pub(super) fn finish(self) -> Digest {
        Digest(format!("sha256:{}", hex::encode(self.0.finalize())))
    }
}

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// === impl Digest ===

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.0.update(bytes);
        hasher.finish()
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Digest {
    type Error = BadDigest;
    fn try_from(text: String) -> Result<Self, BadDigest> {
        let digits = text.strip_prefix("sha256:").ok_or(BadDigest)?;
        let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if digits.len() == 64 && digits.bytes().all(lower_hex) {
            Ok(Self(text))
        } else {
            Err(BadDigest)
        }
    }
}

impl TryFrom<&str> for Digest {
    type Error = BadDigest;
    fn try_from(text: &str) -> Result<Self, BadDigest> {
        Self::try_from(text.to_owned())
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
