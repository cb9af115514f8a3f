//! How the API says no: problem details of RFC 9457 with a stable code and what to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error answer, `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// `urn:wavelift:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem, in a few words; the same for every problem of one code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// Stable, for programs, e.g. `not-found`.
    pub code: String,
    /// What to do about it.
    pub action: String,
    /// The path that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}
