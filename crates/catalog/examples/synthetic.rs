//! Writes a large catalog that nobody made: `synthetic BUNDLES [SEED]`, as JSON lines.
//!
//! It has the proportions of real ones: a hundred versions an operator, three channels, eight APIs
//! that mostly stay the same from version to version, a few skips and ranges, needs between
//! operators, CSV metadata of some kilobytes.

use std::io::{self, BufWriter, Write};

use serde_json::{Value, json};

const VERSIONS: usize = 100;
const CHANNELS: [&str; 3] = ["stable", "fast", "candidate"];

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let mut number = |default: u64| words.next().and_then(|w| w.parse().ok()).unwrap_or(default);
    let (bundles, mut dice) = (usize::try_from(number(10_000)).unwrap_or(10_000), Dice(number(1)));
    let mut out = BufWriter::new(io::stdout().lock());
    let packages = bundles.div_ceil(VERSIONS);
    for index in 0..packages {
        let versions = VERSIONS.min(bundles - index * VERSIONS);
        for document in package(index, versions, packages, &mut dice) {
            writeln!(out, "{document}")?;
        }
    }
    out.flush()
}

/// A small generator of numbers, so that the same seed makes the same catalog everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

fn package(index: usize, versions: usize, packages: usize, dice: &mut Dice) -> Vec<Value> {
    let name = format!("operator-{index:04}");
    let mut documents =
        vec![json!({"schema": "olm.package", "name": name, "defaultChannel": CHANNELS[0]})];
    let version = |number: usize| format!("{}.{}.{}", number / 30 + 1, number % 30 / 3, number % 3);
    let csv = |number: usize| format!("{name}.v{}", version(number));
    for channel in CHANNELS {
        let entries = (0..versions).map(|number| {
            let mut entry = json!({"name": csv(number)});
            if number > 0 {
                entry["replaces"] = csv(number - 1).into();
            }
            if number % 10 == 9 {
                entry["skipRange"] =
                    format!(">={} <{}", version(number - 9), version(number)).into();
            }
            entry
        });
        let entries: Vec<Value> = entries.collect();
        documents.push(
            json!({"schema": "olm.channel", "package": name, "name": channel, "entries": entries}),
        );
    }
    let needed = format!("operator-{:04}", dice.below(packages));
    for number in 0..versions {
        documents.push(bundle(&name, &csv(number), &version(number), &needed, dice));
    }
    documents
}

fn bundle(package: &str, csv: &str, version: &str, needed: &str, dice: &mut Dice) -> Value {
    let mut properties =
        vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
    for api in 0..8 {
        let value = json!({"group": format!("{package}.example.com"), "version": "v1", "kind": format!("Kind{api}")});
        properties.push(json!({"type": "olm.gvk", "value": value}));
    }
    if dice.below(4) == 0 && needed != package {
        let value = json!({"packageName": needed, "versionRange": ">=1.0.0"});
        properties.push(json!({"type": "olm.package.required", "value": value}));
    }
    let description = "What it does and how it is set up. ".repeat(40 + dice.below(80));
    properties.push(json!({"type": "olm.csv.metadata", "value": {
        "annotations": {"capabilities": "Full Lifecycle", "example.com/digit": dice.below(10).to_string()},
        "description": description, "displayName": package, "minKubeVersion": "1.25.0",
        "installModes": [{"type": "AllNamespaces", "supported": true}],
        "provider": {"name": "Example"},
    }}));
    let image = |what: &str| {
        format!("registry.example.com/{package}/{what}@sha256:{:064x}", dice_of(csv, what))
    };
    json!({
        "schema": "olm.bundle", "package": package, "name": csv, "image": image("bundle"),
        "properties": properties,
        "relatedImages": [{"name": "", "image": image("operator")}, {"name": "x", "image": image("x")}],
    })
}

fn dice_of(csv: &str, what: &str) -> u64 {
    csv.bytes().chain(what.bytes()).fold(7, |hash, b| hash.wrapping_mul(31).wrapping_add(b.into()))
}
