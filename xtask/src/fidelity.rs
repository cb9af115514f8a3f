//! `cargo xtask test --long`: every situation on real servers, those too that take their minutes;
//! what came of each is written into the table in `docs/fidelity.md`.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::shell::{cargo, root, say};

const TABLE: &str = "docs/fidelity.md";
/// The line of the page that tells the servers' versions.
const VERSIONS: &str = "Versions: ";
/// Where the tests that meet real servers are.
const TESTS: &str = "servers::";
/// At once: OLM throttles itself.
const THREADS: &str = "4";

/// The cells of a row: recording, situation, how it must end, test, date, result.
const CELLS: usize = 6;

/// What became of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
}

/// Runs those whose name contains `filter`, or all.
pub(crate) fn run(filter: Option<&str>) -> Result<()> {
    let path = root().join(TABLE);
    // What can be missing is asked for before an hour has gone into the tests.
    let page = fs::read_to_string(&path).with_context(|| format!("failed to read {TABLE}"))?;
    let versions = versions()?;
    let outcomes = test(filter.unwrap_or(TESTS))?;
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let told = updated(&page, &outcomes, &today, &versions);
    fs::write(&path, told).with_context(|| format!("failed to write {TABLE}"))?;
    let failed: Vec<&str> =
        outcomes.iter().filter(|(_, o)| **o == Outcome::Failed).map(|(name, _)| &**name).collect();
    say(&format!("{} tests, {} failed; {TABLE} is written", outcomes.len(), failed.len()));
    if outcomes.is_empty() {
        bail!("no test is called so");
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs tests and reads what became of each.
fn test(filter: &str) -> Result<BTreeMap<String, Outcome>> {
    let mut command = cargo(&["test", "-p", "wavelift-tests", "--test", "it", "--", filter]);
    command.args(["--test-threads", THREADS]);
    command.env("WAVELIFT_LONG", "1").env("WAVELIFT_REQUIRE_ALL", "1").stdout(Stdio::piped());
    let mut child = command.spawn().context("failed to start cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut outcomes = BTreeMap::new();
    for line in BufReader::new(output).lines() {
        let line = line.context("failed to read the output of the tests")?;
        if let Some((name, outcome)) = outcome(&line) {
            outcomes.insert(name.to_owned(), outcome);
        }
        say(&line);
    }
    // That it failed is told by its tests; that it did not run at all by their number.
    child.wait().context("cargo has not ended")?;
    Ok(outcomes)
}

/// `test servers::upgrades::a_name ... ok`
fn outcome(line: &str) -> Option<(&str, Outcome)> {
    let (name, word) = line.strip_prefix("test ")?.split_once(" ... ")?;
    match word {
        "ok" => Some((name, Outcome::Passed)),
        "FAILED" => Some((name, Outcome::Failed)),
        _ => None,
    }
}

/// The page with today's results; rows whose test did not run stay as they are.
fn updated(
    page: &str,
    outcomes: &BTreeMap<String, Outcome>,
    today: &str,
    versions: &str,
) -> String {
    let mut told = String::new();
    for line in page.lines() {
        let fresh = if line.starts_with(VERSIONS) {
            Some(format!("{VERSIONS}{versions}."))
        } else {
            row(line, outcomes, today)
        };
        told.push_str(fresh.as_deref().unwrap_or(line));
        told.push('\n');
    }
    told
}

/// A row with its result, if its test ran.
fn row(line: &str, outcomes: &BTreeMap<String, Outcome>, today: &str) -> Option<String> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
    let [recording, situation, end, test, _, _] = <[&str; CELLS]>::try_from(cells).ok()?;
    let name = format!("{TESTS}{}", test.trim().trim_matches('`'));
    let result = match outcomes.get(&name)? {
        Outcome::Passed => "passed",
        Outcome::Failed => "FAILED",
    };
    Some(format!("|{recording}|{situation}|{end}|{test}| {today} | {result} |"))
}

/// The servers' versions, from the module files and from etcd itself.
fn versions() -> Result<String> {
    let sought = [
        ("Kubernetes", "kubernetes", "k8s.io/kubernetes v"),
        ("OLM", "olm", "github.com/operator-framework/operator-lifecycle-manager v"),
        ("opm", "olm", "github.com/operator-framework/operator-registry v"),
    ];
    let mut told = vec![];
    for (name, module, begin) in sought {
        let file = root().join("tests/servers").join(module).join("go.mod");
        let text = fs::read_to_string(&file)
            .with_context(|| format!("failed to read {}", file.display()))?;
        let mut words = text.lines().filter_map(|line| line.split_once(begin));
        if let Some((_, version)) = words.next() {
            told.push(format!("{name} {}", version.split(' ').next().unwrap_or(version)));
        }
    }
    let etcd = Command::new("etcd").arg("--version").output().context("failed to ask etcd")?;
    let etcd = String::from_utf8_lossy(&etcd.stdout).into_owned();
    if let Some(version) = etcd.lines().find_map(|line| line.strip_prefix("etcd Version: ")) {
        told.push(format!("etcd {version}"));
    }
    Ok(told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_whose_tests_ran_have_todays_result_and_others_stay() {
        let page = "\
# A page

Versions: none.

| recording | situation | ends | test | date | result |
|---|---|---|---|---|---|
| 01 | hops | upgraded | `a::one` | 2020-01-01 | FAILED |
| 02 | held | held | `a::two` | 2020-01-01 | passed |
| 03 | not run | held | `a::three` | 2020-01-01 | passed |
";
        let outcomes = [
            ("servers::a::one".to_owned(), Outcome::Passed),
            ("servers::a::two".to_owned(), Outcome::Failed),
        ];
        let told = updated(page, &outcomes.into(), "2026-12-01", "a 1, b 2");
        let expected = page
            .replace("Versions: none.", "Versions: a 1, b 2.")
            .replace("`a::one` | 2020-01-01 | FAILED", "`a::one` | 2026-12-01 | passed")
            .replace("`a::two` | 2020-01-01 | passed", "`a::two` | 2026-12-01 | FAILED");
        assert_eq!(told, expected);
    }

    #[test]
    fn lines_of_a_test_run_are_read() {
        assert_eq!(outcome("test a::b ... ok"), Some(("a::b", Outcome::Passed)));
        assert_eq!(outcome("test a::b ... FAILED"), Some(("a::b", Outcome::Failed)));
        assert_eq!(outcome("test a::b has been running for over 60 seconds"), None);
        assert_eq!(outcome("test result: ok. 1 passed"), None);
    }
}
