//! Rules of channels: one head, one chain, nothing stranded.

use std::collections::{BTreeMap, BTreeSet};

use wavelift_core::range::Range;

use super::{OfPackage, Place, Report, Rule, repeated};
use crate::fbc::{Channel, Entry};

pub(super) fn check(report: &mut Report<'_>, package: &OfPackage<'_>) {
    let bundles: BTreeSet<&str> = package.bundles.iter().map(|b| b.name.as_str()).collect();
    for name in repeated(package.channels.iter().map(|channel| channel.name.as_str())) {
        report.add(Place::Channel(name.to_owned()), Rule::Duplicate);
    }
    for channel in &package.channels {
        let place = || Place::Channel(channel.name.clone());
        report.add_if(channel.name.is_empty(), place, Rule::NoName);
        report.add_if(channel.entries.is_empty(), place, Rule::NoEntry);
        entries(report, channel, &bundles);
        if !channel.entries.is_empty()
            && let Err(rule) = chain(&channel.entries)
        {
            report.add(place(), rule);
        }
    }
}

fn entries(report: &mut Report<'_>, channel: &Channel, bundles: &BTreeSet<&str>) {
    let place =
        |entry: &str| Place::Entry { channel: channel.name.clone(), entry: entry.to_owned() };
    for name in repeated(channel.entries.iter().map(|entry| entry.name.as_str())) {
        report.add(place(name), Rule::Duplicate);
    }
    for entry in &channel.entries {
        let place = || place(&entry.name);
        report.add_if(entry.name.is_empty(), place, Rule::NoName);
        report.add_if(!bundles.contains(entry.name.as_str()), place, Rule::NoBundle);
        report.add_if(entry.skips.iter().any(String::is_empty), place, Rule::EmptySkip);
        let is_bad = !entry.skip_range.is_empty() && Range::parse(&entry.skip_range).is_err();
        report.add_if(is_bad, place, Rule::SkipRange { range: entry.skip_range.clone() });
    }
}

/// One head; the chain of `replaces` from it, up to the first skipped entry, holds every entry that
/// is not skipped. Its tail may replace what is not in the channel.
fn chain(entries: &[Entry]) -> Result<(), Rule> {
    let by_name: BTreeMap<&str, &Entry> = entries.iter().map(|e| (e.name.as_str(), e)).collect();
    let skipped: BTreeSet<&str> =
        entries.iter().flat_map(|entry| entry.skips.iter().map(String::as_str)).collect();
    let replaced: BTreeSet<&str> = entries
        .iter()
        .map(|entry| entry.replaces.as_str())
        .filter(|name| !name.is_empty())
        .collect();
    let is_head = |name: &&str| !skipped.contains(name) && !replaced.contains(name);
    let heads: Vec<&str> = by_name.keys().copied().filter(is_head).collect();
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let [head] = heads.as_slice() else {
        return Err(if heads.is_empty() {
            Rule::NoHead
        } else {
            Rule::SeveralHeads { heads: owned(&heads) }
        });
    };
    let mut reached = BTreeSet::from([*head]);
    let mut at = by_name.get(head).copied();
    while let Some(entry) = at {
        let next = entry.replaces.as_str();
        if skipped.contains(next) {
            break;
        }
        if !reached.insert(next) {
            return Err(Rule::Circle { entry: next.to_owned() });
        }
        at = by_name.get(next).copied();
    }
    let is_stranded = |name: &&str| !reached.contains(name) && !skipped.contains(name);
    let stranded: Vec<&str> = by_name.keys().copied().filter(is_stranded).collect();
    if stranded.is_empty() { Ok(()) } else { Err(Rule::Stranded { entries: owned(&stranded) }) }
}
