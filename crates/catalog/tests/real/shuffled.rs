//! What must not change OLM v0's answer: the order in which things are written, and what has nothing
//! to do with them.

use std::{collections::BTreeSet, fs, sync::Arc};

use serde_json::{Value, json};
use wavelift_catalog::{
    Catalog, Fbc, Limits,
    engine::line::{Answer, Resolver},
};

use super::support;

/// Numbers that look like chance and are the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// All that OLM may answer; nothing where resolution fails.
type All = Option<BTreeSet<BTreeSet<String>>>;

/// An error where not all that OLM may answer is known.
fn all(answer: Answer) -> Result<All, ()> {
    match answer {
        Answer::Error { .. } => Ok(None),
        Answer::Names { has_more: true, .. } | Answer::Places { has_more: true, .. } => Err(()),
        Answer::Names { moves, alternatives, .. } => {
            let all = std::iter::once(moves).chain(alternatives);
            Ok(Some(all.map(|moves| moves.into_iter().collect()).collect()))
        }
        Answer::Places { moves, alternatives, .. } => {
            let of = |moves: Vec<_>| {
                moves.iter().map(|place| serde_json::to_string(place).unwrap()).collect()
            };
            Ok(Some(std::iter::once(moves).chain(alternatives).map(of).collect()))
        }
    }
}

fn list<'a>(of: &'a mut Value, field: &str) -> &'a mut Vec<Value> {
    of[field].as_array_mut().unwrap()
}

/// Everything that has no order, in another order.
fn shuffle(line: &mut Value, dice: &mut Dice) {
    dice.shuffle(list(line, "subscriptions"));
    dice.shuffle(list(line, "catalogs"));
    for catalog in list(line, "catalogs") {
        let Some(documents) = catalog["fbc"].as_array_mut() else { continue };
        dice.shuffle(documents);
        for document in documents {
            if let Some(entries) = document["entries"].as_array_mut() {
                dice.shuffle(entries);
                for skips in entries.iter_mut().filter_map(|entry| entry["skips"].as_array_mut()) {
                    dice.shuffle(skips);
                }
            }
        }
    }
}

/// Packages in every catalog that nobody names.
fn add_unrelated(line: &mut Value, dice: &mut Dice) {
    for catalog in list(line, "catalogs") {
        let Some(documents) = catalog["fbc"].as_array_mut() else { continue };
        for name in ["aaa", "mmm", "zzz"] {
            let csv = format!("{name}.v1");
            let stated = json!({"packageName": name, "version": format!("1.{}.0", dice.below(9))});
            documents.extend([
                json!({"schema": "olm.package", "name": name, "defaultChannel": "c"}),
                json!({"schema": "olm.channel", "package": name, "name": "c",
                    "entries": [{"name": csv}]}),
                json!({"schema": "olm.bundle", "package": name, "name": csv, "image": "r/x",
                    "properties": [{"type": "olm.package", "value": stated}]}),
            ]);
        }
    }
}

/// Every priority higher by the same.
fn raise(line: &mut Value) {
    for catalog in list(line, "catalogs") {
        catalog["priority"] = json!(catalog["priority"].as_i64().unwrap() + 1000);
    }
}

#[test]
fn synthetic_cases_do_not_depend_on_how_they_are_written() {
    let Some(shared) = support::shared("shuffled synthetic cases") else { return };
    let text = fs::read_to_string(shared.join("vectors/olm-v0-synthetic.jsonl")).unwrap();
    let resolver = Resolver::default();
    let ask = |line: &Value| all(resolver.answer(&line.to_string()).unwrap());
    let mut dice = Dice(7);
    let mut differences = Vec::new();
    // Every second one: each is asked twice.
    for text in text.lines().step_by(2) {
        let line: Value = serde_json::from_str(text).unwrap();
        let mut other = line.clone();
        shuffle(&mut other, &mut dice);
        raise(&mut other);
        // A need for anything that is not something may be met by any package.
        if !text.contains("\"not\"") && !text.contains("\"cel\"") {
            add_unrelated(&mut other, &mut dice);
        }
        let (expected, got) = (ask(&line), ask(&other));
        if got != expected {
            differences.push(format!("{}: {expected:?} becomes {got:?}", line["id"]));
        }
    }
    assert!(differences.is_empty(), "{}:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn real_namespaces_do_not_depend_on_how_they_are_written() {
    let Some(shared) = support::shared("shuffled namespaces") else { return };
    let names = fs::read_to_string(shared.join("vectors/combined-catalogs.txt")).unwrap();
    let mut names: Vec<&str> = names.lines().map(str::trim).filter(|n| !n.is_empty()).collect();
    let mut dice = Dice(11);
    let resolver = |names: &[&str], dice: Option<&mut Dice>| {
        let mut fbc = Fbc::default();
        for name in names {
            fbc.append(support::fbc(&shared, name));
        }
        if let Some(dice) = dice {
            dice.shuffle(&mut fbc.packages);
            dice.shuffle(&mut fbc.bundles);
            dice.shuffle(&mut fbc.channels);
            fbc.channels.iter_mut().for_each(|channel| dice.shuffle(&mut channel.entries));
        }
        let catalog = Catalog::from_fbc(fbc, &Limits::default()).unwrap();
        let digest = catalog.digest().to_string();
        (Resolver::new(Some(Arc::new(catalog)), Limits::default()), digest)
    };
    let (plain, digest) = resolver(&names, None);
    names.reverse();
    let (shuffled, same) = resolver(&names, Some(&mut dice));
    assert_eq!(digest, same);
    let text = fs::read_to_string(shared.join("vectors/olm-v0-namespaces.jsonl")).unwrap();
    let (mut differences, mut compared) = (Vec::new(), 0);
    for text in text.lines() {
        let line: Value = serde_json::from_str(text).unwrap();
        let mut other = json!({"namespace": line["namespace"]});
        dice.shuffle(list(&mut other, "namespace"));
        let expected = all(plain.answer(text).unwrap());
        let got = all(shuffled.answer(&other.to_string()).unwrap());
        compared += usize::from(expected.is_ok() && got.is_ok());
        if expected.is_ok() && got.is_ok() && got != expected {
            differences.push(format!("{}: {expected:?} becomes {got:?}", line["namespace"]));
        }
    }
    assert!(differences.is_empty(), "{}:\n{}", differences.len(), differences.join("\n"));
    assert!(compared > 300, "{compared}");
}
