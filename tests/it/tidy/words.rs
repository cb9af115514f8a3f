//! Words: metrics and their documentation agree, and no text names the machine it was written on.

use std::collections::BTreeSet;

use super::{File, files, mk_file, report};

/// Our crates' names begin like a metric's.
const CRATES: &[&str] = &[
    "agent", "api", "catalog", "cli", "core", "demo", "hub", "proto", "runtime", "sim", "sources",
    "tests",
];

/// Pieces of text that belong to a machine, not to the project. Each is in two parts here, so that
/// this file does not find itself.
const UNWANTED: &[(&str, &str)] = &[
    ("/wor", "k/"),
    ("/roo", "t/"),
    ("/home", "/"),
    ("proxy.go", "lang.org"),
    ("static.cra", "tes.io"),
    ("index.cra", "tes.io"),
];

#[test]
fn metrics_in_code_and_in_the_documentation_are_the_same() {
    let files = files();
    let page = files.iter().find(|file| file.name() == "docs/metrics.md");
    let documented = page.map(|page| documented(&page.text)).unwrap_or_default();
    let registered = registered(&files);
    let missing = registered.difference(&documented);
    let left_over = documented.difference(&registered);
    let findings: Vec<_> = missing
        .map(|name| format!("docs/metrics.md does not mention `{name}`"))
        .chain(left_over.map(|name| format!("docs/metrics.md: nothing registers `{name}`")))
        .collect();
    report(&findings);
}

#[test]
fn no_text_names_a_machine() {
    report(&machine_words(&files()));
}

#[test]
fn links_between_pages_lead_somewhere() {
    let files = files();
    let root = wavelift_runtime::testing::workspace_root();
    report(&dead_links(&files, |path| root.join(path).exists()));
}

#[test]
fn the_checks_find_what_they_look_for() {
    let code = mk_file(
        "hub/src/metrics.rs",
        "m.gauge(\n    \"wavelift_hub_sessions\", \"Open.\")?;\nlet f = \"wavelift_hub=debug\";\n\
         let c = \"wavelift_hub\"; m.counter(\"wavelift_test_total\", \"T.\")\n",
    );
    let names: Vec<_> = registered(&[code]).into_iter().collect();
    assert_eq!(names, ["wavelift_hub_sessions"]);
    let names: Vec<_> = documented("| `wavelift_hub_sessions` | gauge |\nSee `wavelift preview`.")
        .into_iter()
        .collect();
    assert_eq!(names, ["wavelift_hub_sessions"]);

    let page = mk_file(
        "docs/a.md",
        "See [b](b.md#part), [c](../c.md), [here](#there), [web](https://example.com/x.md).",
    );
    assert_eq!(dead_links(&[page], |path| path == "docs/b.md"), ["docs/a.md: no `c.md`"]);

    let text = format!("cd {}{}main\n", "/wor", "k/");
    assert_eq!(
        machine_words(&[mk_file("README.md", &text)]),
        [format!("README.md:1: `{}{}`", "/wor", "k/")]
    );
}

/// Whole string literals that are metric names. Names for tests of the plumbing say so.
fn registered(files: &[File]) -> BTreeSet<String> {
    // What tests quote is not registered there.
    let sources = files.iter().filter(|file| file.is_rust() && !file.name().starts_with("tests/"));
    sources
        .flat_map(|file| file.text.split('"'))
        .filter(|literal| is_metric(literal))
        .map(str::to_owned)
        .collect()
}

/// Names in back quotes.
fn documented(page: &str) -> BTreeSet<String> {
    page.split('`').filter(|word| is_metric(word)).map(str::to_owned).collect()
}

fn is_metric(word: &str) -> bool {
    let Some(rest) = word.strip_prefix("wavelift_") else { return false };
    !rest.is_empty()
        && !rest.starts_with("test_")
        && !CRATES.contains(&rest)
        && rest.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn machine_words(files: &[File]) -> Vec<String> {
    let words: Vec<_> = UNWANTED.iter().map(|(one, other)| format!("{one}{other}")).collect();
    let mut findings = Vec::new();
    for file in files {
        if matches!(file.name().as_str(), "Cargo.lock" | "deny.toml") {
            // Both name the registry, as they must.
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                findings.push(format!("{}:{}: `{word}`", file.name(), number + 1));
            }
        }
    }
    findings
}

/// Relative links in Markdown whose file is not there.
fn dead_links(files: &[File], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    for page in files.iter().filter(|file| file.path.extension().is_some_and(|kind| kind == "md")) {
        let links = page.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.contains(' ') {
                continue;
            }
            let path = resolve(&page.name(), target);
            if !exists(&path) {
                findings.push(format!("{}: no `{path}`", page.name()));
            }
        }
    }
    findings
}

/// The path from the root of what `page` calls `target`.
fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            other => parts.push(other),
        }
    }
    parts.join("/")
}
