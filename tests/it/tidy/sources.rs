//! Source files: each one compiled, and none in a shape that we do not use.

use std::{
    collections::{BTreeSet, VecDeque},
    path::{Path, PathBuf},
};

use super::{File, files, mk_file, report};

/// Folders of a package whose `.rs` files are compiled.
const COMPILED: &[&str] = &["src", "it", "tests", "benches", "examples"];

#[test]
fn every_source_file_is_reachable_from_a_mod() {
    let sources: Vec<_> = files().into_iter().filter(File::is_rust).collect();
    report(&unreachable_files(&sources));
}

#[test]
fn sources_have_the_shape_we_use() {
    let sources: Vec<_> = files().into_iter().filter(File::is_rust).collect();
    report(&odd_shapes(&sources));
}

#[test]
fn the_checks_find_what_they_look_for() {
    let sources = [
        mk_file("hub/src/lib.rs", "//! Hub.\npub mod link;\n#[cfg(test)]\nmod tests;\n"),
        mk_file("hub/src/link.rs", "//! Link.\npub(crate) mod convert;\n"),
        mk_file("hub/src/link/convert.rs", "//! Convert.\n// mod lost;\n"),
        mk_file("hub/src/link/lost.rs", "//! Lost.\n"),
        mk_file("hub/src/tests.rs", "//! Tests.\n#[path = \"odd/place.rs\"]\nmod place;\n"),
        mk_file("hub/src/odd/place.rs", "//! Place.\n"),
        mk_file("hub/src/other.rs", "//! Other.\n"),
    ];
    assert_eq!(
        unreachable_files(&sources),
        ["hub/src/link/lost.rs is in no mod", "hub/src/other.rs is in no mod"]
    );

    let odd = [
        mk_file("hub/src/link/mod.rs", "//! Link.\n"),
        mk_file("hub/src/a.rs", "fn main() {}\n"),
        mk_file("hub/src/b.rs", concat!("//! B.\n#[ign", "ore]\nfn b() {}\n")),
        mk_file("hub/src/c.rs", concat!("//! C.\nstd::thread::sl", "eep(long);\n")),
    ];
    assert_eq!(
        odd_shapes(&odd),
        [
            "hub/src/link/mod.rs: name it after its folder, beside it",
            "hub/src/a.rs: begins without `//!`",
            "hub/src/b.rs: a test is run or is not there",
            "hub/src/c.rs: wait for the event itself",
        ]
    );
}

/// Files that no crate root reaches through `mod` lines.
fn unreachable_files(sources: &[File]) -> Vec<String> {
    let reached = reached(sources);
    sources
        .iter()
        .filter(|file| file.path.iter().any(|part| COMPILED.iter().any(|name| part == *name)))
        .filter(|file| !reached.contains(&file.path))
        .map(|file| format!("{} is in no mod", file.name()))
        .collect()
}

fn reached(sources: &[File]) -> BTreeSet<PathBuf> {
    let mut reached = BTreeSet::new();
    let mut queue: VecDeque<&File> = sources.iter().filter(|file| is_root(&file.path)).collect();
    while let Some(file) = queue.pop_front() {
        if !reached.insert(file.path.clone()) {
            continue;
        }
        for module in modules(file) {
            queue.extend(sources.iter().filter(|source| source.path == module));
        }
    }
    reached
}

/// `lib.rs`, `main.rs`, `build.rs`, and what lies directly in a folder of roots.
fn is_root(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    matches!(name, "lib.rs" | "main.rs" | "build.rs")
        || folder.is_some_and(|folder| matches!(folder, "tests" | "benches" | "examples" | "bin"))
            && !path.iter().any(|part| part == "it")
            && !path.iter().any(|part| part == "src" && folder != Some("bin"))
}

/// The files that the `mod` lines of `file` may mean.
fn modules(file: &File) -> Vec<PathBuf> {
    let dir = file.path.parent().unwrap_or_else(|| Path::new(""));
    let below = if is_root(&file.path) { dir.to_path_buf() } else { file.path.with_extension("") };
    let mut modules = Vec::new();
    let mut named = None;
    for line in file.text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("#[path = \"").and_then(|l| l.strip_suffix("\"]")) {
            named = Some(dir.join(path));
        } else if let Some(name) = module(line) {
            modules.push(named.take().unwrap_or_else(|| below.join(format!("{name}.rs"))));
        }
    }
    modules
}

/// The name in `mod name;`, whatever its visibility.
fn module(line: &str) -> Option<&str> {
    let line = line.strip_suffix(';')?;
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c| c != ' ').trim_start(),
        None => line,
    };
    let name = line.strip_prefix("mod ")?;
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some(name)
}

fn odd_shapes(sources: &[File]) -> Vec<String> {
    // Put together here so that this file does not find itself.
    let unwanted = [
        (concat!("#[ign", "ore"), "a test is run or is not there"),
        (concat!("#[should_", "panic"), "look at the error, not at the crash"),
        (concat!("thread::sl", "eep("), "wait for the event itself"),
        (concat!("#[al", "low("), "use #[expect(..., reason)]"),
    ];
    let mut findings = Vec::new();
    for file in sources {
        let name = file.name();
        if name.ends_with("/mod.rs") {
            findings.push(format!("{name}: name it after its folder, beside it"));
        }
        // Unit tests in a file of their own need no introduction.
        let is_unit_test = name.contains("/src/") && name.contains("/tests");
        if !is_unit_test && !file.text.starts_with("//!") {
            findings.push(format!("{name}: begins without `//!`"));
        }
        for (text, advice) in unwanted {
            if file.text.contains(text) {
                findings.push(format!("{name}: {advice}"));
            }
        }
    }
    findings
}
