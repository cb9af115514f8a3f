//! The table of recorded situations names tests that are there, and leaves no recording out.

use super::{File, files, mk_file, report};

const PAGE: &str = "docs/fidelity.md";
const TESTS: &str = "tests/it/servers/";

/// What was recorded.
const RECORDINGS: [&str; 33] = [
    "01", "02", "03", "04", "05", "06", "07", "07b", "08", "09", "10", "11", "12", "12b", "12c",
    "13", "13a", "14", "15", "16", "17", "17b", "18", "19", "20", "21", "22", "23", "24", "25",
    "26", "27", "27a",
];

#[test]
fn every_recording_has_tests_that_are_there() {
    report(&lacking(&files(), &RECORDINGS));
}

#[test]
fn the_check_finds_what_it_looks_for() {
    let page = |rows: &str| mk_file(PAGE, rows);
    let test = || mk_file("tests/it/servers/oak.rs", "async fn falls() {");
    let row = |name: &str| format!("| 01, 02 | a | b | `{name}` |  |  |\n");
    let good = [page(&row("oak::falls")), test()];
    assert!(lacking(&good, &["01", "02"]).is_empty());
    assert_eq!(lacking(&good, &["03"]), ["docs/fidelity.md is without recording 03"]);
    let bad = [page(&row("oak::stands")), test()];
    assert_eq!(lacking(&bad, &["01"]), ["docs/fidelity.md: there is no test oak::stands"]);
}

fn lacking(files: &[File], recordings: &[&str]) -> Vec<String> {
    let text = |name: &str| files.iter().find(|file| file.name() == name).map(|file| &*file.text);
    let rows: Vec<Vec<&str>> = text(PAGE)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| Some(line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect()))
        .collect();
    let mut findings = vec![];
    for recording in recordings {
        let is_in = |row: &Vec<&str>| row[0].split(',').any(|cell| cell.trim() == *recording);
        if !rows.iter().any(is_in) {
            findings.push(format!("{PAGE} is without recording {recording}"));
        }
    }
    for row in &rows {
        let Some(name) = row.get(3).and_then(|cell| cell.trim().strip_prefix('`')) else {
            continue;
        };
        let name = name.trim_end_matches('`');
        let Some((module, test)) = name.split_once("::") else { continue };
        let source = text(&format!("{TESTS}{module}.rs")).unwrap_or_default();
        // Some stand in a module of their world.
        let test = test.rsplit("::").next().unwrap_or(test);
        if !source.contains(&format!("fn {test}(")) {
            findings.push(format!("{PAGE}: there is no test {name}"));
        }
    }
    findings
}
