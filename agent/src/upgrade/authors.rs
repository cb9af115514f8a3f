//! What the authors of the operators let be read while a step is under way: the status sources of the
//! versions that are there, and what they say.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use tracing::info;
use wavelift_catalog::{
    Catalog,
    release::{self, Release},
    status::Source,
};
use wavelift_core::{plan::Step, version::Version};

use super::{Executor, Seen};
use crate::{
    apis, checks,
    drivers::olm_v0::{Authored, Observed, decide::later},
    objects::{self, Csv},
};

/// From one reading to the next.
const SPACING: SignedDuration = SignedDuration::from_secs(5);
/// Sources of one version that are asked.
const SOURCES_MAX: usize = 8;

/// What was told last, and what is asked.
#[derive(Debug, Default)]
pub(super) struct Authors {
    /// By CSV. They are looked up once: a CSV and its catalog do not change.
    sources: BTreeMap<String, Arc<[Source]>>,
    told: Vec<Authored>,
    /// The CSVs that were there when they were asked.
    of: Vec<String>,
    at: Option<Timestamp>,
}

// === impl Authors ===

impl Authors {
    /// When to ask again; never where nobody says anything.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let is_any = self.sources.values().any(|sources| !sources.is_empty());
        self.at.filter(|_| is_any).map(|at| later(at, SPACING))
    }

    pub(super) fn told(&self) -> &[Authored] {
        &self.told
    }
}

impl Executor {
    /// Asks the authors of the step's operators, unless that was done a moment ago.
    pub(super) async fn ask_authors(&mut self, step: &Step, observed: &Observed, seen: Seen<'_>) {
        let now = self.clock.now();
        let client = self.client.clone();
        let Some(running) = &mut self.running else { return };
        let authors = &mut running.authors;
        let of: Vec<String> =
            present(step, observed).map(|(_, csv)| objects::name(csv).to_owned()).collect();
        // A new version is asked at once: a percent that was shown without its word would stay.
        if of == authors.of && authors.at.is_some_and(|at| now < later(at, SPACING)) {
            return;
        }
        authors.of = of;
        authors.at = Some(now);
        let mut told = vec![];
        for (package, csv) in present(step, observed) {
            let name = objects::name(csv);
            let known = authors.sources.entry(name.to_owned()).or_insert_with(|| {
                let subscriptions = observed.subscriptions.iter().map(|s| &**s);
                let catalogs = checks::contents(subscriptions, seen.current);
                sources(package, csv, &catalogs).into()
            });
            for source in known.iter() {
                let found = apis::named(&client, source.objects(), step.namespace.as_str()).await;
                told.push(Authored { csv: name.to_owned(), told: source.tell(&found) });
            }
        }
        authors.told = told;
    }
}

/// The step's CSVs, each with its package: the new one, or as long as that is not there the one that
/// it will replace.
fn present<'a>(step: &'a Step, observed: &'a Observed) -> impl Iterator<Item = (&'a str, &'a Csv)> {
    step.moves.iter().filter_map(|item| {
        let old = || item.from.as_ref().and_then(|from| observed.csv(from.as_str()));
        let csv = observed.csv(item.to.as_str()).or_else(old)?;
        Some((item.package.as_str(), csv))
    })
}

/// Those about its version. What the bundle itself brings counts before what the catalog says.
fn sources(package: &str, csv: &Csv, catalogs: &[Arc<Catalog>]) -> Vec<Source> {
    let Ok(version) = Version::parse_tolerant(&csv.spec.version) else { return vec![] };
    let own = csv.properties();
    let own = own.iter().filter(|property| property["type"] == release::SCHEMA);
    let documents = catalogs.iter().flat_map(|catalog| catalog.documents(package));
    let documents = documents.filter(|document| document["schema"] == release::SCHEMA);
    let mut sources: BTreeMap<String, Source> = BTreeMap::new();
    for document in own.map(|property| &property["value"]).chain(documents) {
        let name = objects::name(csv);
        let release = match Release::parse(document) {
            Ok(release) => release,
            Err(error) => {
                info!(csv = name, %error, "its release document is not read");
                continue;
            }
        };
        for source in release.status_sources {
            if source.span.contains(&version)
                && !sources.contains_key(&source.name)
                && sources.len() < SOURCES_MAX
                && let Ok(ready) = Source::new(&source)
            {
                sources.insert(source.name, ready);
            }
        }
    }
    sources.into_values().collect()
}

#[cfg(test)]
mod tests;
