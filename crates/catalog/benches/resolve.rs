//! How long the OLM v0 engine takes: a namespace of thirty operators on a catalog of ten thousand
//! bundles, and, where the real catalogs are at hand, the recorded namespaces on them.
//!
//! `cargo bench -p wavelift-catalog --bench resolve`

#![expect(clippy::print_stdout, reason = "a bench says what it measured")]
#![expect(clippy::unwrap_used, reason = "a bench may end with a panic")]

use std::{fs, path::Path, sync::Arc, time::Instant};

use serde_json::{Value, json};
use wavelift_catalog::{Catalog, Fbc, Limits, engine::line::Resolver};

/// A hundred packages of a hundred bundles. Each bundle provides its package's API and needs the
/// APIs of the next two packages.
fn large() -> Catalog {
    let api = |package: usize| json!({"group": "g.example.com", "version": "v1", "kind": format!("K{package}")});
    let mut text = String::new();
    for package in 0..100 {
        let name = format!("p{package:03}");
        text +=
            &json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"}).to_string();
        let mut entries = vec![];
        for version in 0..100 {
            let bundle = format!("{name}.v1.{version}.0");
            let mut entry = json!({"name": bundle, "skipRange": format!("<1.{version}.0")});
            if version > 0 {
                entry["replaces"] = json!(format!("{name}.v1.{}.0", version - 1));
            }
            entries.push(entry);
            let mut properties = vec![
                json!({"type": "olm.package",
                    "value": {"packageName": name, "version": format!("1.{version}.0")}}),
                json!({"type": "olm.gvk", "value": api(package)}),
            ];
            for needed in [package + 1, package + 2] {
                properties.push(json!({"type": "olm.gvk.required", "value": api(needed % 100)}));
            }
            text += &json!({"schema": "olm.bundle", "package": name, "name": bundle,
                "image": "registry.example.com/x", "properties": properties})
            .to_string();
        }
        text += &json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries})
            .to_string();
    }
    let fbc = Fbc::parse("large", text.as_bytes(), &Limits::default()).unwrap();
    Catalog::from_fbc(fbc, &Limits::default()).unwrap()
}

fn measure(what: &str, mut run: impl FnMut()) {
    let first = Instant::now();
    run();
    let first = first.elapsed();
    let warm = Instant::now();
    run();
    println!("{what}: first {first:.1?}, warm {:.1?}", warm.elapsed());
}

fn main() {
    let resolver = Resolver::new(Some(Arc::new(large())), Limits::default());
    let operators: Vec<Value> = (0..30)
        .map(|package| {
            let name = format!("p{:03}", package * 3);
            json!({"package": name, "channel": "stable", "installed": format!("{name}.v1.0.0"),
                "version": "1.0.0"})
        })
        .collect();
    let line = json!({"namespace": operators}).to_string();
    measure("30 operators on 10,000 bundles", || drop(resolver.answer(&line).unwrap()));

    let shared = std::env::var_os("WAVELIFT_SHARED");
    let Some(shared) = shared.as_deref().map(Path::new) else { return };
    let mut all = Fbc::default();
    let names = fs::read_to_string(shared.join("vectors/combined-catalogs.txt")).unwrap();
    for name in names.lines().map(str::trim).filter(|name| !name.is_empty()) {
        let one = Fbc::read(&shared.join("catalogs").join(name), &Limits::default()).unwrap();
        all.packages.extend(one.packages);
        all.channels.extend(one.channels);
        all.bundles.extend(one.bundles);
    }
    let catalog = Arc::new(Catalog::from_fbc(all, &Limits::default()).unwrap());
    let resolver = Resolver::new(Some(catalog), Limits::default());
    let text = fs::read_to_string(shared.join("vectors/olm-v0-namespaces.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    measure(&format!("{} recorded namespaces", lines.len()), || {
        for line in &lines {
            drop(resolver.answer(line).unwrap());
        }
    });
    measure("one of them", || drop(resolver.answer(lines[0]).unwrap()));
}
