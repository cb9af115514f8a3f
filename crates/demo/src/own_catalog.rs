//! The demo's catalog: five operators of our own making.
//!
//! `lantern` takes one hop, `ferry` three, `loom` and `spindle` share a namespace and so an
//! InstallPlan, `kiln` is the one whose new version fails on some clusters.

mod manifests;

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use wavelift_catalog::{Catalog, Fbc, Limits, fbc};

/// Straight upgrade.
pub const LANTERN: &str = "lantern-operator";
/// Three hops.
pub const FERRY: &str = "ferry-operator";
/// Shares its namespace with `spindle`.
pub const LOOM: &str = "loom-operator";
/// Shares its namespace with `loom`.
pub const SPINDLE: &str = "spindle-operator";
/// Fails on some clusters.
pub const KILN: &str = "kiln-operator";

/// Where each package is installed.
pub const NAMESPACES: [(&str, &str); 5] = [
    (LANTERN, "lantern-system"),
    (FERRY, "ferry-system"),
    (LOOM, "weaving"),
    (SPINDLE, "weaving"),
    (KILN, "kiln-system"),
];

/// The version at each channel's head.
pub const NEWEST: [(&str, &str); 5] =
    [(LANTERN, "1.5.0"), (FERRY, "2.3.0"), (LOOM, "3.2.0"), (SPINDLE, "5.1.0"), (KILN, "1.0.0")];

/// The channel of every package.
pub const CHANNEL: &str = "stable";

const CHAINS: [(&str, &[&str]); 5] = [
    (LANTERN, &["1.4.0", "1.5.0"]),
    (FERRY, &["2.0.0", "2.1.0", "2.2.0", "2.3.0"]),
    (LOOM, &["3.1.0", "3.2.0"]),
    (SPINDLE, &["5.0.2", "5.1.0"]),
    (KILN, &["0.9.0", "1.0.0"]),
];

/// The catalog as FBC, one JSON document a line.
pub fn fbc() -> String {
    let mut lines = vec![];
    for (package, versions) in CHAINS {
        lines.push(json!({"schema": "olm.package", "name": package, "defaultChannel": CHANNEL}));
        let entries: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(index, version)| match index.checked_sub(1) {
                None => json!({"name": csv(package, version)}),
                Some(before) => json!({
                    "name": csv(package, version),
                    "replaces": csv(package, versions[before]),
                }),
            })
            .collect();
        lines.push(json!({
            "schema": "olm.channel", "package": package, "name": CHANNEL, "entries": entries,
        }));
        lines.extend(versions.iter().map(|version| bundle(package, version)));
        lines.extend(manifests::release(package));
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n")
}

/// The CSV of a package at a version.
pub fn csv(package: &str, version: &str) -> String {
    format!("{package}.v{version}")
}

fn bundle(package: &str, version: &str) -> Value {
    let kind: String = package.trim_end_matches("-operator").to_owned();
    let kind = kind.chars().take(1).flat_map(char::to_uppercase).chain(kind.chars().skip(1));
    let kind: String = kind.collect();
    let mut properties = vec![
        json!({"type": "olm.package", "value": {"packageName": package, "version": version}}),
        json!({"type": "olm.gvk",
            "value": {"group": "demo.example.invalid", "version": "v1", "kind": kind}}),
        json!({"type": "olm.csv.metadata",
            "value": {"displayName": kind, "minKubeVersion": "1.28.0"}}),
    ];
    properties.extend(manifests::objects(package, version, &kind));
    json!({
        "schema": "olm.bundle",
        "package": package,
        "name": csv(package, version),
        "image": format!("registry.example.invalid/{package}@sha256:{}", digest(package, version)),
        "properties": properties,
    })
}

/// A digest that looks like one and is always the same.
fn digest(package: &str, version: &str) -> String {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in package.bytes().chain(version.bytes()) {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{state:016x}").repeat(4)
}

/// Why a catalog cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read the catalog")]
    Read(#[source] fbc::Error),
    /// It has no graph.
    #[error("cannot make a graph of the catalog")]
    Graph(#[source] wavelift_catalog::graph::Error),
}

/// The demo's own catalog.
pub fn own() -> Result<Arc<Catalog>, Error> {
    let limits = Limits::default();
    let fbc = Fbc::parse("demo", fbc().as_bytes(), &limits).map_err(Error::Read)?;
    Catalog::from_fbc(fbc, &limits).map(Arc::new).map_err(Error::Graph)
}

/// A catalog from a directory or file.
pub fn read(path: &Path) -> Result<Arc<Catalog>, Error> {
    let limits = Limits::default();
    let fbc = Fbc::read(path, &limits).map_err(Error::Read)?;
    Catalog::from_fbc(fbc, &limits).map(Arc::new).map_err(Error::Graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_catalog_is_valid_and_its_heads_are_the_newest() {
        let limits = Limits::default();
        let parsed = Fbc::parse("demo", fbc().as_bytes(), &limits).unwrap();
        assert_eq!(wavelift_catalog::validate::validate(&parsed), vec![]);
        let catalog = own().unwrap();
        for (package, newest) in NEWEST {
            assert_eq!(catalog.head(package, CHANNEL).unwrap(), csv(package, newest));
        }
    }
}
