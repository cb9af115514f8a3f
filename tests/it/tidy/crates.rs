//! Dependencies: what may not be in the graph, and which of our crates may know which.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, files, mk_file, report};

/// Crates that must not be in `Cargo.lock`, and what to use instead.
///
/// `lazy_static` is not used by us either, but prometheus and others are built on it (ADR 5).
const BANNED: &[(&str, &str)] = &[
    ("openssl", "rustls with ring"),
    ("openssl-sys", "rustls with ring"),
    ("native-tls", "rustls with ring"),
    ("aws-lc-rs", "rustls with ring: two providers in one binary leave rustls with none"),
    ("aws-lc-sys", "rustls with ring: it needs a C compiler and cmake"),
    ("chrono", "jiff"),
    ("serde_yaml", "serde-saphyr"),
    ("backoff", "backon"),
];

/// Which of our crates each of the lower ones may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("wavelift-core", &[]),
    ("wavelift-catalog", &["wavelift-core"]),
    ("wavelift-api", &["wavelift-core"]),
    ("wavelift-proto", &[]),
    ("wavelift-runtime", &["wavelift-core"]),
    (
        "wavelift-sources",
        &["wavelift-core", "wavelift-catalog", "wavelift-proto", "wavelift-runtime"],
    ),
];

/// Crates that `core` and `catalog` must be able to do without.
const IMPURE: &[&str] = &["tokio", "kube", "tonic", "k8s-openapi", "rand", "tracing", "axum"];

#[test]
fn banned_crates_are_absent_from_the_lock_file() {
    let files = files();
    let lock = files.iter().find(|file| file.name() == "Cargo.lock").unwrap();
    report(&banned(&lock.text));
}

#[test]
fn dependencies_come_from_the_registry_alone() {
    let files = files();
    let lock = files.iter().find(|file| file.name() == "Cargo.lock").unwrap();
    report(&foreign_sources(&lock.text));
}

#[test]
fn crates_know_only_what_lies_below_them() {
    let manifests: Vec<_> = files().into_iter().filter(is_manifest).collect();
    report(&wrong_arrows(&manifests));
}

#[test]
fn every_crate_takes_the_workspaces_lints_and_versions() {
    let manifests: Vec<_> = files().into_iter().filter(is_manifest).collect();
    report(&lax_manifests(&manifests));
}

#[test]
fn the_checks_find_what_they_look_for() {
    let lock = "[[package]]\nname = \"chrono\"\nversion = \"0.4.1\"\n";
    assert_eq!(banned(lock), ["Cargo.lock has `chrono`: use jiff"]);
    assert!(banned("[[package]]\nname = \"chrono-tz-names\"\n").is_empty());

    let git = "name = \"a\"\nsource = \"git+https://example.com/a\"\n";
    assert_eq!(foreign_sources(git), ["Cargo.lock: git+https://example.com/a"]);

    let core = mk_file(
        "crates/core/Cargo.toml",
        "[package]\nname = \"wavelift-core\"\n[lints]\nworkspace = true\n\
         [dependencies]\nwavelift-api.workspace = true\ntokio = { workspace = true }\n\
         [dev-dependencies]\nrand.workspace = true\nserde = \"1\"\n",
    );
    assert_eq!(
        wrong_arrows(&[core]),
        ["wavelift-core must not know tokio", "wavelift-core must not know wavelift-api"]
    );
    let lax = mk_file("hub/Cargo.toml", "[package]\nname = \"h\"\n[dependencies]\nserde = \"1\"\n");
    assert_eq!(
        lax_manifests(&[lax]),
        [
            "hub/Cargo.toml: no `[lints] workspace = true`",
            "hub/Cargo.toml: `serde` has a version of its own"
        ]
    );
}

/// The fuzz targets are a workspace of their own, which can inherit nothing from ours.
fn is_manifest(file: &File) -> bool {
    file.path.file_name().is_some_and(|name| name == "Cargo.toml")
        && file.path.components().count() > 1
        && !file.path.starts_with("fuzz")
}

fn banned(lock: &str) -> Vec<String> {
    let present: BTreeSet<_> =
        lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    BANNED
        .iter()
        .filter(|(name, _)| present.contains(name))
        .map(|(name, instead)| format!("Cargo.lock has `{name}`: use {instead}"))
        .collect()
}

/// Sources other than the Rust registry: a git revision can vanish, and no mirror serves it.
fn foreign_sources(lock: &str) -> Vec<String> {
    lock.lines()
        .filter_map(|line| line.strip_prefix("source = \"")?.strip_suffix('"'))
        .filter(|source| *source != "registry+https://github.com/rust-lang/crates.io-index")
        .map(|source| format!("Cargo.lock: {source}"))
        .collect()
}

fn wrong_arrows(manifests: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for manifest in manifests {
        let sections = sections(&manifest.text);
        let name = sections
            .get("package")
            .and_then(|package| package.iter().find_map(|line| line.strip_prefix("name = \"")))
            .map_or("", |name| name.trim_end_matches('"'));
        let Some((_, allowed)) = ARROWS.iter().find(|(below, _)| *below == name) else { continue };
        let is_pure = matches!(name, "wavelift-core" | "wavelift-catalog");
        let dependencies: BTreeSet<_> =
            sections.get("dependencies").into_iter().flatten().map(|line| key(line)).collect();
        for dependency in dependencies {
            let is_ours = dependency.starts_with("wavelift-");
            let is_wrong = is_ours && !allowed.contains(&dependency)
                || is_pure && IMPURE.contains(&dependency);
            if is_wrong {
                findings.push(format!("{name} must not know {dependency}"));
            }
        }
    }
    findings
}

fn lax_manifests(manifests: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for manifest in manifests {
        let name = manifest.name();
        let sections = sections(&manifest.text);
        if !sections.get("lints").is_some_and(|lints| lints.contains(&"workspace = true")) {
            findings.push(format!("{name}: no `[lints] workspace = true`"));
        }
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for line in sections.get(section).into_iter().flatten() {
                if !line.contains("workspace = true") {
                    findings.push(format!("{name}: `{}` has a version of its own", key(line)));
                }
            }
        }
    }
    findings
}

/// The lines of each section of a manifest, without comments. Ours are simple enough for this.
fn sections(manifest: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut sections = BTreeMap::new();
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
        } else if !line.is_empty() && !line.starts_with('#') {
            sections.entry(section).or_insert_with(Vec::new).push(line);
        }
    }
    sections
}

fn key(line: &str) -> &str {
    line.split(['.', '=', ' ']).next().unwrap_or(line)
}
