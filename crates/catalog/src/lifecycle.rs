//! How long each minor version of an operator is supported and on which platforms, as its authors
//! state it in the catalog.

use serde::{Deserialize, Deserializer, Serialize};

/// What the authors of a package say about its minor versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// The package.
    pub package: String,
    /// Its minor versions.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub versions: Vec<VersionLifecycle>,
}

/// One minor version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionLifecycle {
    /// The minor version, e.g. `1.4`.
    pub name: String,
    /// Its phases, in time's order as the author wrote them.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub phases: Vec<Phase>,
    /// The platforms that it runs on; nothing where the author names none.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub platform_compatibility: Vec<PlatformCompatibility>,
}

/// A phase of support.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// Its name, e.g. `Full support`.
    pub name: String,
    /// Its first day, as the author wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// Its last day, as the author wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
}

/// Versions of one platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlatformCompatibility {
    /// The platform, e.g. `openshift`.
    pub name: String,
    /// Its minor versions, e.g. `4.18`.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub versions: Vec<String>,
}

impl Lifecycle {
    /// The schema of such documents.
    pub const SCHEMA: &str = "io.openshift.operators.lifecycles.v1alpha1";

    /// The minor version of this name.
    pub fn version(&self, name: &str) -> Option<&VersionLifecycle> {
        self.versions.iter().find(|version| version.name == name)
    }
}

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
