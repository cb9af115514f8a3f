//! Small namespaces made of numbers: few packages, so that they get into each other's way.

use std::sync::Arc;

use serde_json::{Value, json};
use wavelift_catalog::{
    Catalog, Fbc, Limits,
    engine::{CatalogKey, Catalogs, Installed, InstalledProperties, Request, Source, Subscription},
    fbc,
    graph::Property,
};
use wavelift_core::version::Version;

const PACKAGES: usize = 4;
const VERSIONS: usize = 3;

/// A namespace and what it sees.
#[derive(Debug)]
pub(crate) struct Case {
    sources: Vec<(CatalogKey, i64, Fbc)>,
    pub(crate) request: Request,
}

/// Numbers that look like chance and are the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

impl Case {
    /// The catalogs, each after a turn.
    pub(crate) fn catalogs(&self, turn: impl Fn(&mut Fbc)) -> Catalogs {
        let mut catalogs = Catalogs::default();
        for (key, priority, fbc) in &self.sources {
            let mut fbc = fbc.clone();
            turn(&mut fbc);
            let catalog = Catalog::from_fbc(fbc, &Limits::default()).unwrap();
            let source = Source { catalog: Arc::new(catalog), priority: *priority };
            catalogs.insert(key.clone(), source);
        }
        catalogs
    }
}

/// Everything in the opposite order.
pub(crate) fn reverse(fbc: &mut Fbc) {
    fbc.packages.reverse();
    fbc.channels.reverse();
    fbc.channels.iter_mut().for_each(|channel| channel.entries.reverse());
    fbc.bundles.reverse();
}

/// The namespace of a number.
pub(crate) fn of(seed: u64) -> Case {
    let mut dice = Dice(seed);
    let count = 1 + dice.below(2);
    let mut sources = Vec::new();
    for index in 0..count {
        let mut fbc = Fbc::default();
        for package in 0..PACKAGES {
            if !dice.one_in(5) {
                add_package(&mut fbc, &mut dice, package);
            }
        }
        sources.push((key(index), i64::try_from(dice.below(2)).unwrap(), fbc));
    }
    let mut subscriptions: Vec<Subscription> = Vec::new();
    for _ in 0..=dice.below(3) {
        let subscription = subscription(&mut dice, count);
        // A CSV is what it is: two Subscriptions could say different things of one.
        let is_known =
            |of: &Subscription| of.installed.is_some() && of.package == subscription.package;
        if !subscriptions.iter().any(is_known) {
            subscriptions.push(subscription);
        }
    }
    let loose = dice.one_in(8).then(|| installed(&mut dice, "loose"));
    let request = Request {
        namespace: "ns".to_owned(),
        subscriptions,
        unreferenced: loose.into_iter().collect(),
    };
    Case { sources, request }
}

fn key(index: usize) -> CatalogKey {
    let namespace = if index == 0 { "global" } else { "ns" };
    CatalogKey { name: format!("c{index}"), namespace: namespace.to_owned() }
}

fn add_package(fbc: &mut Fbc, dice: &mut Dice, package: usize) {
    let name = format!("p{package}");
    let csv = |version: usize| format!("{name}.v{version}");
    fbc.packages.push(fbc::Package {
        name: name.clone(),
        default_channel: format!("ch{}", dice.below(2)),
        ..fbc::Package::default()
    });
    for channel in 0..=dice.below(2) {
        let entry = |dice: &mut Dice, version: usize| fbc::Entry {
            name: csv(version),
            replaces: version.checked_sub(1).map(csv).unwrap_or_default(),
            skips: if dice.one_in(8) { vec![csv(dice.below(VERSIONS))] } else { vec![] },
            skip_range: if dice.one_in(3) { format!("<1.{version}.0") } else { String::new() },
        };
        let first = dice.below(2);
        let entries = (first..VERSIONS).map(|version| entry(dice, version)).collect();
        let channel = format!("ch{channel}");
        fbc.channels.push(fbc::Channel { package: name.clone(), name: channel, entries });
    }
    for version in 0..VERSIONS {
        let stated = json!({"packageName": name, "version": format!("1.{version}.0")});
        let mut properties = vec![Arc::new(Property::new(Property::PACKAGE, stated))];
        properties.extend((0..dice.below(3)).map(|_| Arc::new(property(dice))));
        fbc.bundles.push(fbc::Bundle {
            package: name.clone(),
            name: csv(version),
            image: "r/x".to_owned(),
            properties,
            ..fbc::Bundle::default()
        });
    }
}

fn property(dice: &mut Dice) -> Property {
    let (kind, value) = match dice.below(10) {
        0..3 => (Property::GVK, api(dice)),
        3..5 => (Property::GVK_REQUIRED, api(dice)),
        5..7 => (Property::PACKAGE_REQUIRED, package(dice)),
        7 => (Property::LABEL, json!({"label": "tall"})),
        8 if dice.one_in(2) => (Property::DEPRECATED, json!({})),
        _ => (Property::CONSTRAINT, constraint(dice, 0)),
    };
    Property::new(kind, value)
}

fn api(dice: &mut Dice) -> Value {
    json!({"group": "g", "version": "v1", "kind": format!("K{}", dice.below(3))})
}

fn package(dice: &mut Dice) -> Value {
    let range = format!(">=1.{}.0", dice.below(VERSIONS + 1));
    json!({"packageName": format!("p{}", dice.below(PACKAGES)), "versionRange": range})
}

fn constraint(dice: &mut Dice, depth: usize) -> Value {
    let kinds = if depth < 2 { 5 } else { 2 };
    match dice.below(kinds) {
        0 => json!({"gvk": api(dice)}),
        1 => json!({"package": package(dice)}),
        kind => {
            let constraints: Vec<Value> =
                (0..=dice.below(2)).map(|_| constraint(dice, depth + 1)).collect();
            json!({["all", "any", "not"][kind - 2]: {"constraints": constraints}})
        }
    }
}

fn subscription(dice: &mut Dice, catalogs: usize) -> Subscription {
    let package = format!("p{}", dice.below(PACKAGES));
    let installed = (!dice.one_in(3)).then(|| installed(dice, &package));
    Subscription {
        channel: ["ch0", "", "ch1"][dice.below(3)].to_owned(),
        catalog: key(dice.below(catalogs)),
        starting_csv: dice.one_in(6).then(|| format!("{package}.v1")),
        installed,
        package,
    }
}

fn installed(dice: &mut Dice, package: &str) -> Installed {
    let version = dice.below(VERSIONS);
    let properties = if dice.one_in(4) {
        InstalledProperties::Known((0..dice.below(3)).map(|_| property(dice)).collect())
    } else {
        InstalledProperties::AsInCatalog
    };
    Installed {
        csv: format!("{package}.v{version}"),
        version: Version::parse(&format!("1.{version}.0")).ok(),
        properties,
    }
}
