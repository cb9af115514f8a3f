//! Questions to the OLM v0 engine as JSON lines, and its answers.
//!
//! A line is either a namespace on catalogs that were read before,
//! `{"namespace":[{"package","channel","installed","version"}]}`, or brings its catalogs along,
//! `{"catalogs":[{"name","namespace","priority","fbc"}],"subscriptions":[...]}`. The answer is
//! `{"moves":[...]}`, with `"alternatives"` where OLM may go either way, or `{"error":"..."}`.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{
    Deserialize, Serialize,
    de::{Deserializer, IgnoredAny, SeqAccess, Visitor},
};
use serde_json::Value;
use wavelift_core::{causes::sentence, version::Version};

use super::{
    Answers, CatalogKey, Catalogs, Installed, InstalledProperties, Listing, Next, Request,
    ResolveError, Source, Subscription, olm_v0::OlmV0,
};
use crate::{catalog::Catalog, fbc::Fbc, graph::Property, json, limits::Limits};

/// The namespace of a line that names none.
const NAMESPACE: &str = "ns";

/// The namespace of the catalogs that all namespaces see, in a line that names none.
const GLOBAL: &str = "global";

/// Subscriptions, or catalogs, of one line.
const LIST_MAX: usize = 1000;

/// Bytes of a line. All public catalogs together have a fifth of it.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Why a line is no question.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not the JSON that it should be.
    #[error("line is no question")]
    Parse(#[from] serde_json::Error),
    /// It asks about nothing.
    #[error("line has neither `namespace` nor `catalogs` and `subscriptions`")]
    Nothing,
    /// It asks about a namespace, and no catalog was read.
    #[error("line names no catalogs, and none was given")]
    NoCatalog,
    /// More than is looked at.
    #[error("line has {found} {what}, more than {max}")]
    TooMany {
        /// What is too many.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many may be.
        max: usize,
    },
    /// A version is none.
    #[error("`{csv}` is installed with version `{version}`, which is none")]
    Version {
        /// The installed CSV.
        csv: String,
        /// The text.
        version: String,
    },
    /// A catalog of the line can't be read.
    #[error("catalog `{name}` can't be read: {reason}")]
    Catalog {
        /// The catalog.
        name: String,
        /// Why.
        reason: String,
    },
}

/// Answers lines.
#[derive(Debug, Default)]
pub struct Resolver {
    catalogs: Option<Catalogs>,
    limits: Limits,
}

/// The answer to a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// To a line about a namespace: names of CSVs.
    Names {
        /// The CSVs of the next InstallPlan; none if everything stays.
        moves: Vec<String>,
        /// What it may be instead.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        alternatives: Vec<Vec<String>>,
        /// Present and true where there may be more alternatives than the listed ones.
        #[serde(rename = "moreAlternatives", skip_serializing_if = "std::ops::Not::not")]
        has_more: bool,
    },
    /// To a line that brings its catalogs along: where each CSV comes from.
    Places {
        /// The CSVs of the next InstallPlan; none if everything stays.
        moves: Vec<Place>,
        /// What it may be instead.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        alternatives: Vec<Vec<Place>>,
        /// Present and true where there may be more alternatives than the listed ones.
        #[serde(rename = "moreAlternatives", skip_serializing_if = "std::ops::Not::not")]
        has_more: bool,
    },
    /// Resolution fails.
    Error {
        /// Why, in one line.
        error: String,
    },
}

/// A CSV and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// The catalog, as `namespace/name`.
    pub catalog: String,
    /// The channel.
    pub channel: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    namespace: Option<List<Operator>>,
    catalogs: Option<List<LineCatalog>>,
    #[serde(default)]
    subscriptions: List<LineSubscription>,
    operator_namespace: Option<String>,
    global_namespace: Option<String>,
}

/// The first items of a list, and how many there are: those after the bound are only counted.
struct List<T> {
    items: Vec<T>,
    found: usize,
}

#[derive(Deserialize)]
struct Operator {
    package: String,
    #[serde(default)]
    channel: String,
    installed: Option<String>,
    version: Option<String>,
}

#[derive(Deserialize)]
struct LineCatalog {
    name: String,
    namespace: String,
    #[serde(default)]
    priority: i64,
    fbc: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LineSubscription {
    package: String,
    #[serde(default)]
    channel: String,
    catalog: String,
    catalog_namespace: String,
    #[serde(rename = "startingCSV")]
    starting_csv: Option<String>,
    installed: Option<String>,
    version: Option<String>,
    properties: Option<Vec<Property>>,
}

// === impl Error ===

impl Error {
    /// A short, bounded label for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Parse(_) => "Parse",
            Self::Nothing => "Nothing",
            Self::NoCatalog => "NoCatalog",
            Self::TooMany { .. } => "TooMany",
            Self::Version { .. } => "Version",
            Self::Catalog { .. } => "Catalog",
        }
    }
}

// === impl List ===

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { items: Vec::new(), found: 0 }
    }
}

impl<T> List<T> {
    /// The items, if they are all.
    fn within(&self, what: &'static str) -> Result<&[T], Error> {
        at_most(what, self.found, LIST_MAX)?;
        Ok(&self.items)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut list = List::default();
                while list.items.len() < LIST_MAX {
                    let Some(item) = seq.next_element()? else { break };
                    list.items.push(item);
                }
                list.found = list.items.len();
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    list.found += 1;
                }
                Ok(list)
            }
        }
        deserializer.deserialize_seq(Items(PhantomData))
    }
}

// === impl Resolver ===

impl Resolver {
    /// Lines about a namespace are answered from this catalog, if any.
    pub fn new(catalog: Option<Arc<Catalog>>, limits: Limits) -> Self {
        Self { catalogs: catalog.map(|catalog| Catalogs::one(given(), catalog)), limits }
    }

    /// Answers one line.
    pub fn answer(&self, line: &str) -> Result<Answer, Error> {
        check_size(line, &self.limits)?;
        let line: Line = serde_json::from_str(line)?;
        if line.namespace.is_none() && line.catalogs.is_none() && line.subscriptions.found == 0 {
            return Err(Error::Nothing);
        }
        if let (Some(operators), None) = (&line.namespace, &line.catalogs) {
            let catalogs = self.catalogs.as_ref().ok_or(Error::NoCatalog)?;
            let request = namespace(operators.within("operators")?)?;
            return Ok(names(OlmV0.answers(catalogs, &request)));
        }
        let (catalogs, request) = self.whole(&line)?;
        Ok(places(OlmV0.answers(&catalogs, &request)))
    }

    fn whole(&self, line: &Line) -> Result<(Catalogs, Request), Error> {
        let namespace = line.operator_namespace.as_deref().unwrap_or(NAMESPACE);
        let global = line.global_namespace.as_deref().unwrap_or(GLOBAL);
        let given = line.catalogs.as_ref().map(|catalogs| catalogs.within("catalogs"));
        let given = given.transpose()?.unwrap_or_default();
        let asked = line.subscriptions.within("subscriptions")?;
        let mut catalogs = Catalogs::default();
        for catalog in given {
            // Others are not visible from the namespace.
            if catalog.namespace == namespace || catalog.namespace == global {
                let key =
                    CatalogKey { name: catalog.name.clone(), namespace: catalog.namespace.clone() };
                let content = Arc::new(self.read(catalog)?);
                catalogs.insert(key, Source { catalog: content, priority: catalog.priority });
            }
        }
        let mut subscriptions = Vec::with_capacity(asked.len());
        for of in asked {
            let properties = of.properties.clone();
            let properties = properties.map_or(InstalledProperties::AsInCatalog, |properties| {
                InstalledProperties::Known(properties)
            });
            subscriptions.push(Subscription {
                package: of.package.clone(),
                channel: of.channel.clone(),
                catalog: CatalogKey {
                    name: of.catalog.clone(),
                    namespace: of.catalog_namespace.clone(),
                },
                installed: installed(of.installed.as_ref(), of.version.as_deref(), properties)?,
                starting_csv: of.starting_csv.clone(),
            });
        }
        let namespace = namespace.to_owned();
        Ok((catalogs, Request { namespace, subscriptions, unreferenced: Vec::new() }))
    }

    fn read(&self, catalog: &LineCatalog) -> Result<Catalog, Error> {
        let bad = |reason: String| Error::Catalog { name: catalog.name.clone(), reason };
        let blobs: Vec<String> = catalog.fbc.iter().flatten().map(Value::to_string).collect();
        let text = blobs.join("\n");
        let fbc = Fbc::parse(&catalog.name, text.as_bytes(), &self.limits)
            .map_err(|error| bad(sentence(&error)))?;
        Catalog::from_fbc(fbc, &self.limits).map_err(|error| bad(sentence(&error)))
    }
}

/// Whether a line is small enough to be read as JSON. Each of its values takes far more memory than
/// its text.
pub fn check_size(line: &str, limits: &Limits) -> Result<(), Error> {
    at_most("bytes", line.len(), LINE_BYTES_MAX)?;
    at_most("values", json::size(line).nodes, limits.file_nodes)
}

/// The place of the catalog of lines that name none.
fn given() -> CatalogKey {
    CatalogKey { name: "given".to_owned(), namespace: NAMESPACE.to_owned() }
}

fn namespace(operators: &[Operator]) -> Result<Request, Error> {
    let mut subscriptions = Vec::with_capacity(operators.len());
    for of in operators {
        subscriptions.push(Subscription {
            package: of.package.clone(),
            channel: of.channel.clone(),
            catalog: given(),
            installed: installed(
                of.installed.as_ref(),
                of.version.as_deref(),
                InstalledProperties::AsInCatalog,
            )?,
            starting_csv: None,
        });
    }
    Ok(Request { namespace: NAMESPACE.to_owned(), subscriptions, unreferenced: Vec::new() })
}

fn installed(
    csv: Option<&String>,
    version: Option<&str>,
    properties: InstalledProperties,
) -> Result<Option<Installed>, Error> {
    let Some(csv) = csv.filter(|csv| !csv.is_empty()) else { return Ok(None) };
    let version = version.filter(|text| !text.is_empty()).map(|text| {
        Version::parse(text)
            .map_err(|_| Error::Version { csv: csv.clone(), version: text.to_owned() })
    });
    Ok(Some(Installed { csv: csv.clone(), version: version.transpose()?, properties }))
}

fn at_most(what: &'static str, found: usize, max: usize) -> Result<(), Error> {
    if found > max { Err(Error::TooMany { what, found, max }) } else { Ok(()) }
}

fn names(answers: Result<Answers, ResolveError>) -> Answer {
    let of = |next: &Next| next.csvs().into_iter().map(str::to_owned).collect::<Vec<_>>();
    match answers {
        Err(error) => Answer::Error { error: sentence(&error) },
        Ok(answers) => {
            let moves = of(&answers.next);
            let alternatives = others(&answers, &moves, of);
            Answer::Names { moves, alternatives, has_more: answers.listing == Listing::Part }
        }
    }
}

fn places(answers: Result<Answers, ResolveError>) -> Answer {
    let of = |next: &Next| {
        let places = next.moves().iter().map(|step| Place {
            name: step.to.clone(),
            catalog: step.catalog.to_string(),
            channel: step.channel.clone(),
        });
        let mut places: Vec<Place> = places.collect();
        places.sort();
        places
    };
    match answers {
        Err(error) => Answer::Error { error: sentence(&error) },
        Ok(answers) => {
            let moves = of(&answers.next);
            let alternatives = others(&answers, &moves, of);
            Answer::Places { moves, alternatives, has_more: answers.listing == Listing::Part }
        }
    }
}

/// The alternatives in the same form, each once.
fn others<T: Ord>(answers: &Answers, moves: &[T], of: impl Fn(&Next) -> Vec<T>) -> Vec<Vec<T>> {
    let mut others: Vec<Vec<T>> = answers.alternatives.iter().map(of).collect();
    others.sort();
    others.dedup();
    others.retain(|other| *other != moves);
    others
}

#[cfg(test)]
mod tests;
