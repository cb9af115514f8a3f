//! What resolution looks at in a bundle, read once from its properties.

use std::{fmt, sync::Arc};

use serde::Deserialize;
use serde_json::Value;
use wavelift_core::{
    range::{self, Range},
    version::Version,
};

use super::rule::{BadRule, Facts, Lazily, Rule};
use crate::graph::{Gvk, Property};

/// How deep needs may be nested. Real ones have two levels.
const NEED_DEPTH_MAX: usize = 16;

/// Bytes of an `olm.constraint`, as OLM limits it.
const NEED_BYTES_MAX: usize = 128 << 10;

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
    /// What rules see of it.
    pub(crate) facts: Lazily,
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
    /// A rule in CEL.
    Cel {
        rule: Arc<Rule>,
        /// What the author says where nothing satisfies it.
        message: Option<String>,
    },
}

/// Where a bundle that may satisfy a need was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Catalog,
    Cluster,
}

/// The properties of a bundle or of a CSV, wherever they are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Properties<'a> {
    Own(&'a [Property]),
    Shared(&'a [Arc<Property>]),
}

/// What may satisfy a need. `package` and `version` are what its catalog, or the cluster, says.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) traits: &'a Traits,
    pub(crate) package: &'a str,
    pub(crate) version: Option<&'a Version>,
    pub(crate) properties: Properties<'a>,
    pub(crate) origin: Origin,
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
    /// More bytes than OLM reads.
    #[error("constraint has {length} bytes, more than {NEED_BYTES_MAX}")]
    TooLong {
        /// Its length.
        length: usize,
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
            facts: Lazily::default(),
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
            Property::CONSTRAINT => bounded_constraint(value),
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
    /// Whether a bundle satisfies it. Adds up how much work it was, where looking at a text is one.
    pub(crate) fn is_met_by(
        &self,
        candidate: &Candidate<'_>,
        work: &mut usize,
    ) -> Result<bool, BadRule> {
        *work += 1;
        Ok(match self {
            Self::Api(gvk) => candidate.traits.provides.contains(gvk),
            Self::Package { name, range } => {
                let of_package = candidate.package == name || candidate.traits.is_of_package(name);
                let stated =
                    candidate.traits.packages.iter().filter_map(|(_, version)| version.as_ref());
                of_package && stated.chain(candidate.version).any(|version| range.contains(version))
            }
            Self::Label(label) => candidate.traits.labels.contains(label),
            Self::All(needs) => all(needs, candidate, true, work)?,
            Self::Any(needs) => !all(needs, candidate, false, work)?,
            Self::Not(needs) => all(needs, candidate, false, work)?,
            Self::Cel { rule, .. } => {
                let facts = candidate.facts();
                *work += rule.cost(facts)?;
                rule.is_met_by(facts)?
            }
        })
    }
}

impl Need {
    /// Reads every CEL rule in it: OLM refuses one that is none even where nothing asks for it.
    pub(crate) fn check(&self) -> Result<(), BadRule> {
        match self {
            Self::Cel { rule, .. } => rule.check().map(drop),
            Self::All(needs) | Self::Any(needs) | Self::Not(needs) => {
                needs.iter().try_for_each(Self::check)
            }
            Self::Api(_) | Self::Package { .. } | Self::Label(_) => Ok(()),
        }
    }
}

/// Whether each of the needs is met, or each is not met; stops at the first that differs.
fn all(
    needs: &[Need],
    candidate: &Candidate<'_>,
    met: bool,
    work: &mut usize,
) -> Result<bool, BadRule> {
    for need in needs {
        if need.is_met_by(candidate, work)? != met {
            return Ok(false);
        }
    }
    Ok(true)
}

impl<'a> Properties<'a> {
    fn list(self) -> Vec<&'a Property> {
        match self {
            Self::Own(properties) => properties.iter().collect(),
            Self::Shared(properties) => properties.iter().map(Arc::as_ref).collect(),
        }
    }
}

impl Candidate<'_> {
    fn facts(&self) -> &Facts {
        self.traits.facts.get(|| match self.origin {
            Origin::Catalog => Facts::of_bundle(&self.properties.list()),
            Origin::Cluster => Facts::of_installed(&self.properties.list()),
        })
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
            Self::Cel { rule, message: None } => write!(f, "the CEL rule `{}`", rule.text()),
            Self::Cel { rule, message: Some(message) } => {
                write!(f, "the CEL rule `{}` ({message})", rule.text())
            }
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

fn bounded_constraint(value: &Value) -> Result<Need, BadNeed> {
    let length = value.to_string().len();
    if length > NEED_BYTES_MAX {
        return Err(BadNeed::TooLong { length });
    }
    constraint(value, 0)
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
        let rule = cel.get("rule").and_then(Value::as_str).unwrap_or_default();
        let message = fields.get("failureMessage").and_then(Value::as_str).map(str::to_owned);
        Ok(Need::Cel { rule: Arc::new(Rule::new(rule)), message })
    } else {
        Err(form(KIND, "is empty"))
    }
}
