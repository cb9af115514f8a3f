//! `wavelift catalog validate`

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use serde::Serialize;
use wavelift_catalog::{Fbc, Limits, validate};
use wavelift_core::causes::sentence;

use crate::{args::offline::ValidateArgs, exit::Exit, printer::Printer};

/// What is wrong with one catalog. Published: scripts read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Report {
    /// The path as it was typed.
    catalog: String,
    valid: bool,
    problems: Vec<Problem>,
}

/// One problem. What it is not about is an empty text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Problem {
    package: String,
    channel: String,
    bundle: String,
    message: String,
}

pub(super) fn run(what: &ValidateArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let reports = reports(&what.paths);
    let invalid = |reports: &Vec<Report>| {
        let invalid = reports.iter().filter(|report| !report.valid);
        invalid.map(|report| report.catalog.clone()).collect::<Vec<_>>()
    };
    if !printer.machine(&reports, invalid)? {
        for report in &reports {
            printer.text(&text(report));
        }
    }
    let are_valid = reports.iter().all(|report| report.valid);
    Ok(if are_valid { Exit::Success } else { Exit::Usage })
}

/// One report a path, in their order; several catalogs at a time.
fn reports(paths: &[PathBuf]) -> Vec<Report> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut reports = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(index) else { return reports };
            reports.push((index, report(path)));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(paths.len());
    let mut reports = thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut reports = work();
        for other in others {
            reports.extend(other.join().unwrap_or_default());
        }
        reports
    });
    reports.sort_by_key(|(index, _)| *index);
    reports.into_iter().map(|(_, report)| report).collect()
}

fn report(path: &Path) -> Report {
    let (fbc, errors) = Fbc::read_all(path, &Limits::default());
    // What could not be read is missing elsewhere too, which would only hide what is really wrong.
    let problems: Vec<Problem> = if errors.is_empty() {
        let problems = validate::validate(&fbc);
        problems.iter().map(Problem::from).collect()
    } else {
        errors
            .iter()
            .map(|error| Problem { message: sentence(error), ..Problem::default() })
            .collect()
    };
    Report { catalog: path.display().to_string(), valid: problems.is_empty(), problems }
}

impl From<&validate::Problem> for Problem {
    fn from(problem: &validate::Problem) -> Self {
        Self {
            package: problem.package.clone(),
            channel: problem.channel().unwrap_or_default().to_owned(),
            bundle: problem.bundle().unwrap_or_default().to_owned(),
            message: problem.to_string(),
        }
    }
}

fn text(report: &Report) -> String {
    let verdict = match report.problems.len() {
        0 => "valid".to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    let mut text = format!("{}: {verdict}", report.catalog);
    for problem in &report.problems {
        text.push_str("\n  ");
        text.push_str(&problem.message);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        {"schema":"olm.package","name":"oak","defaultChannel":"stable"}
        {"schema":"olm.channel","package":"oak","name":"stable","entries":[{"name":"oak.v1"}]}
        {"schema":"olm.bundle","package":"oak","name":"oak.v1","image":"r.example.com/oak:1",
         "properties":[{"type":"olm.package","value":{"packageName":"oak","version":"1.0.0"}}]}"#;

    #[test]
    fn each_path_has_a_report_and_all_problems_are_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let paths = [
            write("good", GOOD),
            write("bad", &GOOD.replace("1.0.0", "one").replace("\"stable\"}", "\"fast\"}")),
            write("unreadable", "name: x\n---\nschema: 1\n---\nschema: a.b\n"),
            dir.path().join("absent"),
        ];
        let reports = reports(&paths);
        let valid: Vec<bool> = reports.iter().map(|report| report.valid).collect();
        assert_eq!(valid, [true, false, false, false]);
        let [package, bundle] = reports[1].problems.as_slice() else { panic!("{reports:?}") };
        assert_eq!(package.message, "package `oak`: default channel `fast` does not exist");
        assert_eq!(
            (bundle.package.as_str(), bundle.channel.as_str(), bundle.bundle.as_str()),
            ("oak", "", "oak.v1")
        );
        let unreadable: Vec<&str> =
            reports[2].problems.iter().map(|p| p.message.as_str()).collect();
        assert_eq!(unreadable.len(), 2);
        assert!(unreadable[0].ends_with("document 1 (line 1): `schema` is missing"));
        assert!(unreadable[1].ends_with("document 2 (line 3): field `schema` is not a text"));
        assert!(text(&reports[1]).contains("2 problems\n  package `oak`"));
        assert!(text(&reports[0]).ends_with("good: valid"));
        assert!(reports[3].problems[0].message.contains("can't read"));
    }
}
