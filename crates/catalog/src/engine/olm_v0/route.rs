//! The way of one package to a goal under OLM v0.

use std::collections::{BTreeMap, BTreeSet};

use wavelift_core::{target::Goal, version::Version};

use super::OlmV0;
use crate::{
    catalog::{Catalog, IndexedEntry},
    engine::{
        Catalogs, Detour, Edge, Engine as _, Hop, Installed, Jumped, Leg, Next, NoWay, Reason,
        Request, Route, RouteEnd, Stop, Subscription,
    },
};

/// More hops than any real operator needs.
const HOPS_MAX: usize = 1000;

/// CSVs that are looked at in the search for detours.
const DETOUR_STATES_MAX: usize = 2000;

/// Detours that are listed.
const DETOURS_MAX: usize = 5;

impl OlmV0 {
    /// The way of `package` to `goal`; of a range, to the last version within it.
    pub fn route(
        &self,
        catalogs: &Catalogs,
        request: &Request,
        package: &str,
        goal: &Goal,
    ) -> Route {
        let route = |hops, end, jumped, detours| Route {
            package: package.to_owned(),
            hops,
            end,
            jumped,
            detours,
        };
        let Some(start) = subscription(request, package) else {
            let no_way = NoWay::NotSubscribed { package: package.to_owned() };
            return route(vec![], RouteEnd::NoWay(no_way), vec![], vec![]);
        };
        let mut walk = self.walk(catalogs, request, package, goal);
        if let Some(reached) = walk.reached {
            walk.states.truncate(reached + 1);
            walk.hops.truncate(reached);
            let jumped = self.jumped(catalogs, package, &walk);
            let at = walk.states.last().and_then(|state| installed(state, package));
            let end = RouteEnd::Reached {
                csv: at.map_or_else(String::new, |at| at.csv.clone()),
                version: at.and_then(|at| at.version.clone()),
            };
            return route(walk.hops, end, jumped, vec![]);
        }
        let jumped = self.jumped(catalogs, package, &walk);
        let catalog = catalogs.get(&start.catalog).map(|source| &*source.catalog);
        let detours = catalog.map_or_else(Vec::new, |catalog| detours(catalog, start, goal));
        let no_way = self.no_way(catalogs, package, goal, &mut walk);
        route(walk.hops, RouteEnd::NoWay(no_way), jumped, detours)
    }

    /// Hop after hop until an exact goal is reached or passed, or until nothing moves any more.
    fn walk(self, catalogs: &Catalogs, request: &Request, package: &str, goal: &Goal) -> Walk {
        let mut walk =
            Walk { states: vec![request.clone()], hops: vec![], reached: None, stopped: None };
        let mut seen = BTreeSet::new();
        loop {
            let state = &walk.states[walk.hops.len()];
            let version = installed(state, package).and_then(|at| at.version.as_ref());
            let (is_there, is_final) = judge(goal, version);
            if is_there {
                walk.reached = Some(walk.hops.len());
            }
            if is_final {
                return walk;
            }
            let here: Vec<String> = state.installed_csvs().into_iter().map(str::to_owned).collect();
            if !seen.insert(here) || walk.hops.len() == HOPS_MAX {
                walk.stopped = Some(NoWay::Endless);
                return walk;
            }
            match self.next(catalogs, state) {
                Ok(Next::Stays) => return walk,
                Ok(Next::Moves(moves)) => {
                    let after = state.after(&moves);
                    walk.states.push(after);
                    walk.hops.push(Hop { moves });
                }
                Err(error) => {
                    let hops = walk.hops.len();
                    walk.stopped = Some(NoWay::Fails { hops, why: error.sentence() });
                    return walk;
                }
            }
        }
    }

    /// The versions that the hops jump over, and how each could be stopped at.
    fn jumped(self, catalogs: &Catalogs, package: &str, walk: &Walk) -> Vec<Jumped> {
        let mut jumped = Vec::new();
        for (hop, states) in walk.states.windows(2).enumerate() {
            let [before, after] = states else { continue };
            let ends = installed(before, package).zip(installed(after, package));
            let Some((from, to)) = ends else { continue };
            let versions = from.version.as_ref().zip(to.version.as_ref());
            let (Some((low, high)), Some(on)) = (versions, subscription(before, package)) else {
                continue;
            };
            let Some(source) = catalogs.get(&on.catalog) else { continue };
            for (csv, version) in versions_of(&source.catalog, package) {
                let is_between =
                    version.cmp_precedence(low).is_gt() && version.cmp_precedence(high).is_lt();
                if is_between {
                    let stops = self.stops(catalogs, before, on, csv);
                    jumped.push(Jumped {
                        csv: csv.to_owned(),
                        version: version.clone(),
                        hop,
                        stops,
                    });
                }
            }
        }
        jumped.sort_by(|a, b| a.hop.cmp(&b.hop).then(a.version.cmp_precedence(&b.version)));
        jumped
    }

    /// How OLM could be made to go from here to `csv`: by another channel, or by a pinned catalog.
    fn stops(
        self,
        catalogs: &Catalogs,
        before: &Request,
        on: &Subscription,
        csv: &str,
    ) -> Vec<Stop> {
        let (Some(source), Some(from)) = (catalogs.get(&on.catalog), &on.installed) else {
            return vec![];
        };
        let catalog = &source.catalog;
        let mut stops = Vec::new();
        for entry in entries(catalog, &on.package).filter(|entry| entry.name == csv) {
            let channel = entry.channel.clone();
            let Some(edge) = edge(entry, from) else { continue };
            let mut switched = before.clone();
            for subscription in &mut switched.subscriptions {
                if subscription.package == on.package {
                    subscription.channel.clone_from(&channel);
                }
            }
            let goes = self.next(catalogs, &switched).is_ok_and(|next| next.csvs().contains(csv));
            let is_on_chain = catalog.chain(&on.package, &channel).is_ok();
            if goes && channel != on.channel {
                stops.push(Stop::Channel { channel, edge });
            } else if is_on_chain {
                let without = in_front_of(catalog, entry);
                stops.push(Stop::PinnedCatalog { channel, edge, without });
            }
        }
        stops.sort();
        stops
    }

    fn no_way(self, catalogs: &Catalogs, package: &str, goal: &Goal, walk: &mut Walk) -> NoWay {
        if let Some(stopped) = walk.stopped.take() {
            return stopped;
        }
        let last = walk.states.last().unwrap_or(&walk.states[0]);
        let on = subscription(last, package);
        let Some((on, source)) = on.and_then(|on| Some((on, catalogs.get(&on.catalog)?))) else {
            return NoWay::NotSubscribed { package: package.to_owned() };
        };
        let is_past = |state: &Request| {
            let version = installed(state, package).and_then(|at| at.version.as_ref());
            version.is_some_and(|version| is_beyond(goal, version))
        };
        if is_past(&walk.states[0]) {
            let csv = installed(&walk.states[0], package).map_or("", |at| &at.csv).to_owned();
            return NoWay::AlreadyPast { csv };
        }
        let catalog = &source.catalog;
        let wanted = wanted(catalog, package, goal);
        let Some((csv, _)) = wanted.last() else {
            return not_in_catalog(catalog, on, goal);
        };
        let passed = walk.states.windows(2).find(|states| is_past(&states[1]));
        if let Some([before, after]) = passed {
            let name = |state| installed(state, package).map_or("", |at| &at.csv).to_owned();
            let (from, to) = (name(before), name(after));
            return skipped(catalog, on, csv).unwrap_or(NoWay::Overshoots { from, to });
        }
        let at = on.installed.as_ref().map_or("", |at| &at.csv).to_owned();
        self.kept(catalogs, last, on)
            .filter(|(candidate, _)| wanted.iter().any(|(csv, _)| csv == candidate))
            .map_or_else(
                || unlinked(catalog, on, csv),
                |(csv, reason)| NoWay::Kept { at, csv, reason },
            )
    }

    /// The first candidate that OLM passes over where it stays, and why.
    fn kept(
        self,
        catalogs: &Catalogs,
        state: &Request,
        on: &Subscription,
    ) -> Option<(String, Reason)> {
        let explained = self.explain(catalogs, state).ok()?;
        let of = explained.into_iter().find(|explained| explained.package == on.package)?;
        of.passed.into_iter().find_map(|passed| match passed.reason {
            Reason::Deprecated
            | Reason::Needs { .. }
            | Reason::NeedBlocked { .. }
            | Reason::Conflicts { .. }
            | Reason::Chance
            | Reason::Search => Some((passed.csv, passed.reason)),
            Reason::NotNewer
            | Reason::NoEdge { .. }
            | Reason::Skipped { .. }
            | Reason::OutOfChain
            | Reason::StartingCsv { .. }
            | Reason::OtherChannel { .. }
            | Reason::OtherCatalog { .. }
            | Reason::Preferred { .. } => None,
        })
    }
}

/// The hops that were followed.
struct Walk {
    /// Before the first hop and after each.
    states: Vec<Request>,
    hops: Vec<Hop>,
    /// The last state that is at the goal.
    reached: Option<usize>,
    /// Why it could not be followed further.
    stopped: Option<NoWay>,
}

/// Whether a version is at the goal, and whether there is nothing more to look for.
fn judge(goal: &Goal, version: Option<&Version>) -> (bool, bool) {
    let Some(version) = version else { return (false, false) };
    match goal {
        Goal::Latest => (true, false),
        Goal::Range(range) => (range.contains(version), false),
        Goal::Version(target) => {
            let is_there = version.is_at(target);
            (is_there, is_there || version.cmp_precedence(target).is_gt())
        }
    }
}

fn is_beyond(goal: &Goal, version: &Version) -> bool {
    match goal {
        Goal::Version(target) => version.cmp_precedence(target).is_gt(),
        // A range may have gaps: what is beyond it can't be told from one version.
        Goal::Latest | Goal::Range(_) => false,
    }
}

fn subscription<'r>(request: &'r Request, package: &str) -> Option<&'r Subscription> {
    request.subscriptions.iter().find(|subscription| subscription.package == package)
}

fn installed<'r>(request: &'r Request, package: &str) -> Option<&'r Installed> {
    subscription(request, package)?.installed.as_ref()
}

fn entries<'c>(catalog: &'c Catalog, package: &'c str) -> impl Iterator<Item = &'c IndexedEntry> {
    let index = catalog.index();
    let channels = index.channels(package).into_iter().flatten();
    let ids = channels.flat_map(move |channel| index.channel_entries(package, channel));
    ids.map(move |id| index.entry(*id))
}

/// The package's bundles that have a version, each once.
fn versions_of<'c>(catalog: &'c Catalog, package: &'c str) -> BTreeMap<&'c str, &'c Version> {
    let named = |entry: &'c IndexedEntry| Some((entry.name.as_str(), entry.version.as_ref()?));
    entries(catalog, package).filter_map(named).collect()
}

/// The bundles that are what the goal asks for, the oldest first.
fn wanted<'c>(catalog: &'c Catalog, package: &'c str, goal: &Goal) -> Vec<(&'c str, &'c Version)> {
    let versions = versions_of(catalog, package).into_iter();
    let mut wanted: Vec<_> = versions.filter(|(_, version)| judge(goal, Some(version)).0).collect();
    wanted.sort_by(|(_, a), (_, b)| a.cmp_precedence(b));
    wanted
}

fn edge(entry: &IndexedEntry, from: &Installed) -> Option<Edge> {
    if entry.replaces.as_deref() == Some(from.csv.as_str()) {
        return Some(Edge::Replaces);
    }
    if entry.skips.contains(&from.csv) {
        return Some(Edge::Skips);
    }
    let (range, version) = entry.skip_range.as_ref().zip(from.version.as_ref())?;
    range.contains(version).then(|| Edge::SkipRange(range.to_string()))
}

/// The entries of its channel that would have to go so that this one is the head: all but those that
/// its own chain of replacement leads to.
fn in_front_of(catalog: &Catalog, entry: &IndexedEntry) -> Vec<String> {
    let of_channel: BTreeMap<&str, &IndexedEntry> = entries(catalog, &entry.package)
        .filter(|other| other.channel == entry.channel)
        .map(|other| (other.name.as_str(), other))
        .collect();
    let mut kept = BTreeSet::new();
    let mut at = Some(entry);
    while let Some(now) = at.filter(|now| kept.insert(now.name.as_str())) {
        kept.extend(now.skips.iter().map(String::as_str));
        at = now.replaces.as_deref().and_then(|name| of_channel.get(name).copied());
    }
    of_channel.keys().filter(|name| !kept.contains(*name)).map(|name| (*name).to_owned()).collect()
}

fn not_in_catalog(catalog: &Catalog, on: &Subscription, goal: &Goal) -> NoWay {
    let versions = versions_of(catalog, &on.package);
    let target = match goal {
        Goal::Version(target) => Some(target),
        Goal::Latest | Goal::Range(_) => None,
    };
    let side = |is_above: bool| {
        let target = target?;
        let on_side = versions.values().filter(|version| match version.cmp_precedence(target) {
            std::cmp::Ordering::Less => !is_above,
            std::cmp::Ordering::Greater => is_above,
            std::cmp::Ordering::Equal => false,
        });
        let nearest = if is_above {
            on_side.min_by(|a, b| a.cmp_precedence(b))
        } else {
            on_side.max_by(|a, b| a.cmp_precedence(b))
        };
        nearest.map(ToString::to_string)
    };
    NoWay::NotInCatalog {
        catalog: on.catalog.clone(),
        package: on.package.clone(),
        below: side(false),
        above: side(true),
    }
}

fn skipped(catalog: &Catalog, on: &Subscription, csv: &str) -> Option<NoWay> {
    let mut of_channel = entries(catalog, &on.package).filter(|e| e.channel == on.channel);
    let by = of_channel.find(|entry| entry.skips.iter().any(|skipped| skipped == csv))?;
    Some(NoWay::Skipped { csv: csv.to_owned(), by: by.name.clone() })
}

/// Why nothing leads from where the package stays to a bundle that the catalog has.
fn unlinked(catalog: &Catalog, on: &Subscription, csv: &str) -> NoWay {
    let is_subscribed =
        |entry: &&IndexedEntry| on.channel.is_empty() || entry.channel == on.channel;
    let of_name = || entries(catalog, &on.package).filter(|entry| entry.name == csv);
    if !of_name().any(|entry| is_subscribed(&entry)) {
        return NoWay::OtherChannel {
            csv: csv.to_owned(),
            subscribed: on.channel.clone(),
            channels: of_name().map(|entry| format!("`{}`", entry.channel)).collect(),
        };
    }
    if let Some(skipped) = skipped(catalog, on, csv) {
        return skipped;
    }
    let bundles = missing(catalog, on, csv);
    if !bundles.is_empty() {
        return NoWay::MissingBundles { bundles };
    }
    let mut after = BTreeSet::new();
    for entry in of_name().filter(is_subscribed) {
        after.extend(entry.replaces.iter().chain(&entry.skips).map(|name| format!("`{name}`")));
        after.extend(entry.skip_range.iter().map(|range| format!("versions {range}")));
    }
    NoWay::NeedsFirst {
        csv: csv.to_owned(),
        at: on.installed.as_ref().map_or("", |at| &at.csv).to_owned(),
        after: after.into_iter().collect(),
    }
}

/// The entries of the channel without bundle that the goal's chain of replacement comes to before it comes to where
/// the package stays.
fn missing(catalog: &Catalog, on: &Subscription, csv: &str) -> Vec<String> {
    let graph = catalog.graph().packages.get(&on.package);
    let Some(package) = graph else { return vec![] };
    let at = on.installed.as_ref().map(|at| at.csv.as_str());
    let channels = package.channels.iter();
    let channels = channels.filter(|(name, _)| on.channel.is_empty() || **name == on.channel);
    let mut missing = Vec::new();
    for (_, channel) in channels {
        let mut seen = BTreeSet::new();
        let mut walk = Some(csv);
        while let Some(name) = walk.filter(|name| Some(*name) != at && seen.insert(*name)) {
            if channel.entries.contains_key(name) && !package.bundles.contains_key(name) {
                missing.push(name.to_owned());
            }
            walk = channel.entries.get(name).and_then(|entry| entry.replaces.as_deref());
        }
    }
    missing
}

/// The shortest ways to the goal when the channel may be changed at each hop.
fn detours(catalog: &Catalog, start: &Subscription, goal: &Goal) -> Vec<Detour> {
    let Some(from) = &start.installed else { return vec![] };
    let index = catalog.index();
    let channels: Vec<&str> = index.channels(&start.package).into_iter().flatten().collect();
    let mut ways: Vec<Vec<Leg>> = vec![vec![]];
    let mut places = vec![from.clone()];
    let mut seen = BTreeSet::from([from.csv.clone()]);
    let mut detours = Vec::new();
    let mut next = 0;
    while next < places.len() && places.len() < DETOUR_STATES_MAX {
        let (at, way) = (places[next].clone(), ways[next].clone());
        next += 1;
        for channel in &channels {
            let Some(Ok(chain)) = index.chain(&start.package, channel) else { continue };
            let first = chain
                .iter()
                .map(|id| index.entry(*id))
                .find_map(|entry| Some((entry, edge(entry, &at)?)));
            let Some((entry, edge)) = first else { continue };
            if seen.contains(&entry.name) {
                continue;
            }
            let mut legs = way.clone();
            legs.push(Leg {
                channel: (*channel).to_owned(),
                from: at.csv.clone(),
                to: entry.name.clone(),
                edge,
            });
            if judge(goal, entry.version.as_ref()).0 {
                detours.push(Detour { legs });
                if detours.len() == DETOURS_MAX {
                    return detours;
                }
                continue;
            }
            seen.insert(entry.name.clone());
            ways.push(legs);
            places.push(Installed {
                csv: entry.name.clone(),
                version: entry.version.clone(),
                properties: crate::engine::InstalledProperties::AsInCatalog,
            });
        }
    }
    detours
}

#[cfg(test)]
mod tests;
