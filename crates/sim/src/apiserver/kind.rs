//! The kinds a server knows: what they are called, how they are printed, what they may hold.

use std::{borrow::Cow, fmt, sync::Arc};

use serde_json::Value;

use super::schema::Schema;

/// A group and a kind: the name under which the store keeps objects.
///
/// A kind has one version here, so the version is not part of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gk {
    group: Cow<'static, str>,
    kind: Cow<'static, str>,
}

/// Everything the server knows of one kind; shared between all servers of a process.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Group and kind.
    pub gk: Gk,
    /// The version that objects are stored in, and served.
    pub version: Cow<'static, str>,
    /// Further versions in which the same objects are served.
    pub others: Vec<Cow<'static, str>>,
    /// The resource name in paths.
    pub plural: Cow<'static, str>,
    /// The name for one of them.
    pub singular: Cow<'static, str>,
    /// Where objects live.
    pub scope: Scope,
    /// Which part of an object has an endpoint of its own.
    pub status: StatusEndpoint,
    /// Whether `metadata.generation` counts changes of the spec.
    pub counts_generation: bool,
    /// Short names for kubectl.
    pub short_names: Vec<Cow<'static, str>>,
    /// Categories for kubectl, e.g. `all`.
    pub categories: Vec<Cow<'static, str>>,
    /// Columns of `kubectl get`, without name and age unless declared.
    pub columns: Vec<Column>,
    /// Dotted paths that field selectors may name besides `metadata.name` and `.namespace`.
    pub selectable: Vec<Cow<'static, str>>,
    /// The compiled schema; built-in kinds have none and accept anything.
    pub schema: Option<Schema>,
    /// The schema as written, for `/openapi/v3`.
    pub openapi: Option<Arc<Value>>,
    /// Where the kind comes from.
    pub origin: Origin,
}

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// Directly in the cluster.
    Cluster,
}

/// Whether status is written apart from spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusEndpoint {
    /// There is a `/status`, and the two never touch each other's part.
    Apart,
    /// There is none.
    None,
}

/// Where a kind comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Part of Kubernetes itself: strategic merge patches are understood.
    BuiltIn,
    /// Defined by a CustomResourceDefinition on a real cluster.
    Custom,
}

/// One column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The heading.
    pub name: Cow<'static, str>,
    /// `string`, `integer`, `date`, ...
    pub kind: Cow<'static, str>,
    /// Only shown with `-o wide` when above zero.
    pub priority: i64,
    /// What it means.
    pub description: Cow<'static, str>,
    /// The JSONPath that finds the cell.
    pub path: Cow<'static, str>,
}

// === impl Gk ===

impl Gk {
    /// A name known when the program is written.
    pub const fn of(group: &'static str, kind: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), kind: Cow::Borrowed(kind) }
    }

    /// A name read from somewhere.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: Cow::Owned(group.into()), kind: Cow::Owned(kind.into()) }
    }

    /// The group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The kind.
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

impl fmt::Display for Gk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

// === impl Kind ===

impl Kind {
    /// `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        if self.gk.group().is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.gk.group(), self.version)
        }
    }

    /// The kind of a list of them.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.gk.kind())
    }

    /// Every version that is served, the stored one first.
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.version).chain(&self.others).map(|version| &**version)
    }

    /// Whether its objects live in a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Whether an update must say which state it replaces; others may overwrite blindly.
    pub fn needs_resource_version(&self) -> bool {
        self.origin == Origin::Custom || self.gk.kind() == "Lease"
    }

    /// Whether `/status` exists.
    pub fn has_status(&self) -> bool {
        self.status == StatusEndpoint::Apart
    }
}
