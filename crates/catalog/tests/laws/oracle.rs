//! Whether there is any answer, by trying all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use wavelift_catalog::{
    Catalog,
    engine::{Catalogs, Installed, InstalledProperties, Request, Subscription},
    graph::Property,
};
use wavelift_core::{range::Range, version::Version};

/// An installed CSV, or an entry: catalog, package, channel, bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Installed(String),
    Entry([String; 4]),
}

/// What one of them is.
#[derive(Debug, Clone, Default)]
struct Fact {
    package: String,
    version: Option<Version>,
    stated: Vec<(String, Option<Version>)>,
    apis: BTreeSet<String>,
    needs: Vec<Value>,
    is_prohibited: bool,
}

/// Everything that could be there, and what excludes what.
#[derive(Default)]
struct World {
    facts: BTreeMap<Id, Fact>,
    rivals: BTreeSet<(Id, Id)>,
}

/// Whether something satisfies all Subscriptions, every need of what is there, and nothing excludes
/// anything else.
pub(crate) fn is_solvable(catalogs: &Catalogs, request: &Request) -> bool {
    let mut world = World::default();
    let mut start = BTreeSet::new();
    for installed in &request.unreferenced {
        let id = Id::Installed(installed.csv.clone());
        world.facts.insert(id.clone(), installed_fact(catalogs, installed, None));
        start.insert(id);
    }
    for subscription in &request.subscriptions {
        if let Some(installed) = &subscription.installed {
            let fact = installed_fact(catalogs, installed, Some(subscription));
            world.facts.entry(Id::Installed(installed.csv.clone())).or_insert(fact);
        }
    }
    for (key, source) in catalogs.iter() {
        for (package, of) in &source.catalog.graph().packages {
            for (channel, entries) in &of.channels {
                for name in entries.entries.keys() {
                    let id = [&key.to_string(), package, channel, name].map(Clone::clone);
                    let bundle = &of.bundles[name];
                    let fact = Fact {
                        package: package.clone(),
                        version: bundle.version.clone(),
                        ..fact(bundle.properties.iter().map(Arc::as_ref))
                    };
                    world.facts.insert(Id::Entry(id), fact);
                }
            }
        }
    }
    let mut questions = Vec::new();
    for subscription in &request.subscriptions {
        let mut members = candidates(catalogs, subscription);
        if let Some(installed) = &subscription.installed {
            let current = Id::Installed(installed.csv.clone());
            for candidate in &members {
                world.rivals.insert((candidate.clone(), current.clone()));
                world.rivals.insert((current.clone(), candidate.clone()));
            }
            members.insert(current);
        }
        questions.push(members);
    }
    let in_order = in_order(catalogs);
    let is_possible = |there: &BTreeSet<Id>| {
        there.iter().all(|one| {
            !world.facts[one].is_prohibited
                && there.iter().all(|other| one == other || !world.excludes(one, other))
        })
    };
    is_possible(&start) && world.fill(&start, &questions, &in_order)
}

impl World {
    fn excludes(&self, one: &Id, other: &Id) -> bool {
        let (a, b) = (&self.facts[one], &self.facts[other]);
        let names = |fact: &Fact| -> BTreeSet<String> {
            fact.stated.iter().map(|(name, _)| name.clone()).collect()
        };
        self.rivals.contains(&(one.clone(), other.clone()))
            || !names(a).is_disjoint(&names(b))
            || !a.apis.is_disjoint(&b.apis)
    }

    /// Adds what is missing in every way there is.
    fn fill(&self, there: &BTreeSet<Id>, asked: &[BTreeSet<Id>], in_order: &BTreeSet<Id>) -> bool {
        let Some(members) = self.unanswered(there, asked, in_order) else { return true };
        members.into_iter().any(|id| {
            let is_allowed = !self.facts[&id].is_prohibited
                && there.iter().all(|other| !self.excludes(&id, other));
            let mut more = there.clone();
            more.insert(id);
            is_allowed && self.fill(&more, asked, in_order)
        })
    }

    /// What could answer the first question that nothing answers.
    fn unanswered(
        &self,
        there: &BTreeSet<Id>,
        asked: &[BTreeSet<Id>],
        in_order: &BTreeSet<Id>,
    ) -> Option<BTreeSet<Id>> {
        if let Some(open) = asked.iter().find(|members| members.is_disjoint(there)) {
            return Some(open.clone());
        }
        let mut needs = there.iter().flat_map(|id| &self.facts[id].needs);
        needs.find_map(|need| {
            let could = self.facts.iter().filter(|(id, fact)| {
                let is_visible = matches!(id, Id::Installed(_)) || in_order.contains(*id);
                is_visible && meets(fact, need)
            });
            let could: BTreeSet<Id> = could.map(|(id, _)| id.clone()).collect();
            could.is_disjoint(there).then_some(could)
        })
    }
}

/// What a Subscription may go to.
fn candidates(catalogs: &Catalogs, subscription: &Subscription) -> BTreeSet<Id> {
    let Subscription { package, channel, catalog: key, installed, starting_csv } = subscription;
    let catalog = &catalogs.get(key).unwrap().catalog;
    let of = &catalog.graph().packages[package];
    let channels: Vec<&String> =
        of.channels.keys().filter(|name| channel.is_empty() || *name == channel).collect();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    match (installed, starting_csv) {
        (None, Some(csv)) => names.extend([csv.as_str()]),
        (_, _) => {
            for channel in &channels {
                for name in catalog.chain(package, channel).unwrap() {
                    let entry = &of.channels[*channel].entries[name];
                    let follows = |installed: &Installed| {
                        let range =
                            entry.skip_range.as_ref().map(|text| Range::parse(text).unwrap());
                        entry.replaces.as_ref() == Some(&installed.csv)
                            || entry.skips.contains(&installed.csv)
                            || range
                                .is_some_and(|r| r.contains(installed.version.as_ref().unwrap()))
                    };
                    if installed.as_ref().is_none_or(follows) {
                        names.insert(name);
                    }
                }
            }
        }
    }
    let mut ids = BTreeSet::new();
    for channel in channels {
        for name in of.channels[channel].entries.keys().filter(|n| names.contains(n.as_str())) {
            let id = [&key.to_string(), package, channel, name].map(Clone::clone);
            ids.insert(Id::Entry(id));
        }
    }
    ids
}

/// The entries that are on their channel's chain.
fn in_order(catalogs: &Catalogs) -> BTreeSet<Id> {
    let mut ids = BTreeSet::new();
    for (key, source) in catalogs.iter() {
        for (package, of) in &source.catalog.graph().packages {
            for channel in of.channels.keys() {
                let chain = source.catalog.chain(package, channel).unwrap_or_default();
                ids.extend(chain.into_iter().map(|name| {
                    Id::Entry([&key.to_string(), package, channel, name].map(ToString::to_string))
                }));
            }
        }
    }
    ids
}

fn installed_fact(
    catalogs: &Catalogs,
    installed: &Installed,
    subscription: Option<&Subscription>,
) -> Fact {
    let in_catalog = |catalog: &Catalog, package: &str| {
        let of = catalog.graph().packages.get(package)?;
        let mut channels = of.channels.values();
        channels.any(|channel| channel.entries.contains_key(&installed.csv)).then_some(())?;
        Some(fact(of.bundles.get(&installed.csv)?.properties.iter().map(Arc::as_ref)))
    };
    let fact = match &installed.properties {
        InstalledProperties::Known(properties) => fact(properties),
        InstalledProperties::AsInCatalog => subscription
            .and_then(|of| in_catalog(&catalogs.get(&of.catalog)?.catalog, &of.package))
            .unwrap_or_default(),
    };
    let package = fact.stated.last().map(|(name, _)| name.clone()).unwrap_or_default();
    Fact { package, version: installed.version.clone(), ..fact }
}

fn fact<'a>(properties: impl IntoIterator<Item = &'a Property>) -> Fact {
    let mut fact = Fact::default();
    for Property { kind, value } in properties {
        match kind.as_str() {
            Property::PACKAGE => {
                let version = Version::parse(value["version"].as_str().unwrap()).ok();
                fact.stated.push((value["packageName"].as_str().unwrap().to_owned(), version));
            }
            Property::GVK => drop(fact.apis.insert(value.to_string())),
            Property::GVK_REQUIRED => fact.needs.push(serde_json::json!({ "gvk": value })),
            Property::PACKAGE_REQUIRED => fact.needs.push(serde_json::json!({ "package": value })),
            Property::CONSTRAINT => fact.needs.push(value.clone()),
            Property::DEPRECATED => fact.is_prohibited = true,
            _ => {}
        }
    }
    fact
}

fn meets(fact: &Fact, need: &Value) -> bool {
    let all = |need: &Value, met: bool| {
        let needs = need["constraints"].as_array().unwrap();
        needs.iter().all(|need| meets(fact, need) == met)
    };
    let (kind, value) = need.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "gvk" => fact.apis.contains(&value.to_string()),
        "package" => {
            let name = value["packageName"].as_str().unwrap();
            let range = Range::parse(value["versionRange"].as_str().unwrap()).unwrap();
            let is_of = fact.package == name || fact.stated.iter().any(|(of, _)| of == name);
            let versions = fact.stated.iter().map(|(_, version)| version).chain([&fact.version]);
            is_of && versions.flatten().any(|version| range.contains(version))
        }
        "all" => all(value, true),
        "any" => !all(value, false),
        "not" => all(value, false),
        other => unreachable!("{other}"),
    }
}
