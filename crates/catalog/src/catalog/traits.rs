//! What resolution looks at in a bundle, read once from its properties.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use wavelift_core::{
    range::{self, Range},
    version::Version,
};

use crate::graph::{Gvk, Property};

/// How deep needs may be nested. Real ones have two levels.
const NEED_DEPTH_MAX: usize = 16;

/// A bundle or an installed CSV as resolution sees it.
#[derive(Debug, Clone)]
pub(crate) struct Traits {
    /// The packages it belongs to, with the version it has there.
    pub(crate) packages: Vec<(String, Option<Version>)>,
    /// The APIs it provides.
    pub(crate) provides: Vec<Gvk>,
    /// Its labels.
    pub(crate) labels: Vec<String>,
    /// What it needs another bundle for.
    pub(crate) needs: Result<Vec<Need>, BadNeed>,
    /// Whether OLM must not install it.
    pub(crate) is_prohibited: bool,
}

/// What one other bundle must be or provide.
#[derive(Debug, Clone)]
pub(crate) enum Need {
    Api(Gvk),
    Package {
        name: String,
        range: Range,
    },
    Label(String),
    All(Vec<Self>),
    Any(Vec<Self>),
    /// None of them.
    Not(Vec<Self>),
    /// A rule in CEL. Kept to be named: nothing evaluates it yet.
    Cel(String),
}

/// Why a need can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadNeed {
    /// A version range is none.
    #[error("range of package `{package}` does not parse")]
    Range {
        /// The needed package.
        package: String,
        /// What is wrong with its range.
        #[source]
        source: range::Error,
    },
    /// A value does not have the form of its type.
    #[error("value of `{kind}` {reason}")]
    Form {
        /// The property's type.
        kind: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Compounds within compounds.
    #[error("compounds are nested deeper than {NEED_DEPTH_MAX}")]
    Depth,
}

// === impl Traits ===

impl Traits {
    pub(crate) fn of(properties: &[Property]) -> Self {
        Self::of_all(properties)
    }

    pub(crate) fn of_all<'a>(properties: impl IntoIterator<Item = &'a Property>) -> Self {
        let mut traits = Self {
            packages: Vec::new(),
            provides: Vec::new(),
            labels: Vec::new(),
            needs: Ok(Vec::new()),
            is_prohibited: false,
        };
        for property in properties {
            traits.add(property);
        }
        traits
    }

    fn add(&mut self, property: &Property) {
        let value = &property.value;
        let need = match property.kind.as_str() {
            Property::PACKAGE => {
                if let Ok(PackageValue { package_name, version }) = PackageValue::deserialize(value)
                {
                    self.packages.push((package_name, Version::parse(&version).ok()));
                }
                return;
            }
            Property::GVK => return self.provides.extend(Gvk::deserialize(value).ok()),
            Property::LABEL => {
                let label = value.get("label").and_then(Value::as_str);
                return self.labels.extend(label.map(str::to_owned));
            }
            Property::DEPRECATED => return self.is_prohibited = true,
            Property::GVK_REQUIRED => api(Property::GVK_REQUIRED, value),
            Property::PACKAGE_REQUIRED => package(Property::PACKAGE_REQUIRED, value),
            Property::LABEL_REQUIRED => value.get("label").and_then(Value::as_str).map_or_else(
                || Err(form(Property::LABEL_REQUIRED, "has no label")),
                |label| Ok(Need::Label(label.to_owned())),
            ),
            Property::CONSTRAINT => constraint(value, 0),
            // Legacy rule: what OLM does not know, it does not look at.
            _ => return,
        };
        match (&mut self.needs, need) {
            (Ok(needs), Ok(need)) => needs.push(need),
            (Ok(_), Err(bad)) => self.needs = Err(bad),
            (Err(_), _) => {}
        }
    }

    pub(crate) fn is_of_package(&self, package: &str) -> bool {
        self.packages.iter().any(|(name, _)| name == package)
    }
}

// === impl Need ===

impl Need {
    /// Whether a bundle satisfies it. CEL rules are never satisfied; see [`Need::cel`].
    ///
    /// `package` and `version` are what the catalog itself says of the bundle.
    pub(crate) fn is_met_by(
        &self,
        traits: &Traits,
        package: &str,
        version: Option<&Version>,
    ) -> bool {
        let met = |need: &Self| need.is_met_by(traits, package, version);
        match self {
            Self::Api(gvk) => traits.provides.contains(gvk),
            Self::Package { name, range } => {
                let of_package = package == name || traits.is_of_package(name);
                let stated = traits.packages.iter().filter_map(|(_, version)| version.as_ref());
                of_package && stated.chain(version).any(|version| range.contains(version))
            }
            Self::Label(label) => traits.labels.contains(label),
            Self::All(needs) => needs.iter().all(met),
            Self::Any(needs) => needs.iter().any(met),
            Self::Not(needs) => !needs.iter().any(met),
            Self::Cel(_) => false,
        }
    }

    /// The first CEL rule in it.
    pub(crate) fn cel(&self) -> Option<&str> {
        match self {
            Self::Cel(rule) => Some(rule),
            Self::All(needs) | Self::Any(needs) | Self::Not(needs) => {
                needs.iter().find_map(Self::cel)
            }
            Self::Api(_) | Self::Package { .. } | Self::Label(_) => None,
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, needs: &[Self], word: &str| {
            for (index, need) in needs.iter().enumerate() {
                write!(f, "{}({need})", if index == 0 { "" } else { word })?;
            }
            Ok(())
        };
        match self {
            Self::Api(gvk) => write!(f, "the API {gvk}"),
            Self::Package { name, range } => write!(f, "package `{name}` in {range}"),
            Self::Label(label) => write!(f, "the label `{label}`"),
            Self::All(needs) => joined(f, needs, " and "),
            Self::Any(needs) => joined(f, needs, " or "),
            Self::Not(needs) => {
                f.write_str("none of ")?;
                joined(f, needs, ", ")
            }
            Self::Cel(rule) => write!(f, "the CEL rule {rule}"),
        }
    }
}

// === reading ===

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackageValue {
    #[serde(default)]
    package_name: String,
    #[serde(default)]
    version: String,
}

fn form(kind: &'static str, reason: impl Into<String>) -> BadNeed {
    BadNeed::Form { kind, reason: reason.into() }
}

fn api(kind: &'static str, value: &Value) -> Result<Need, BadNeed> {
    let gvk = Gvk::deserialize(value).map_err(|error| form(kind, format!("is no API: {error}")))?;
    Ok(Need::Api(gvk))
}

fn package(kind: &'static str, value: &Value) -> Result<Need, BadNeed> {
    let text = |field: &str| match value.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(form(kind, format!("has a {field} that is no text")))
        }
    };
    let name = text("packageName")?;
    match Range::parse(&text("versionRange")?) {
        Ok(range) => Ok(Need::Package { name, range }),
        Err(source) => Err(BadNeed::Range { package: name, source }),
    }
}

fn constraint(value: &Value, depth: usize) -> Result<Need, BadNeed> {
    const KIND: &str = Property::CONSTRAINT;
    if depth > NEED_DEPTH_MAX {
        return Err(BadNeed::Depth);
    }
    let Value::Object(fields) = value else {
        return Err(form(KIND, "is no object"));
    };
    let known = ["failureMessage", "gvk", "package", "all", "any", "not", "cel"];
    if let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(form(KIND, format!("has the unknown field `{unknown}`")));
    }
    let present = |field: &str| fields.get(field).filter(|value| !value.is_null());
    let compound = |value: &Value| {
        let needs = value.get("constraints").and_then(Value::as_array);
        let needs = needs.ok_or_else(|| form(KIND, "has a compound without constraints"))?;
        needs.iter().map(|need| constraint(need, depth + 1)).collect::<Result<Vec<_>, _>>()
    };
    if let Some(gvk) = present("gvk") {
        api(KIND, gvk)
    } else if let Some(value) = present("package") {
        package(KIND, value)
    } else if let Some(all) = present("all") {
        compound(all).map(Need::All)
    } else if let Some(any) = present("any") {
        compound(any).map(Need::Any)
    } else if let Some(not) = present("not") {
        compound(not).map(Need::Not)
    } else if let Some(cel) = present("cel") {
        let rule = cel.get("rule").and_then(Value::as_str);
        rule.map(|rule| Need::Cel(rule.to_owned()))
            .ok_or_else(|| form(KIND, "has CEL without rule"))
    } else {
        Err(form(KIND, "is empty"))
    }
}
