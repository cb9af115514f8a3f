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
    /// What is odd, but makes no catalog invalid.
    warnings: Vec<Problem>,
}

/// One problem, or warning. What it is not about is an empty text.
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
    let warnings = validate::warnings(&fbc).iter().map(Problem::from).collect();
    Report { catalog: path.display().to_string(), valid: problems.is_empty(), problems, warnings }
}

impl From<&validate::Warning> for Problem {
    fn from(warning: &validate::Warning) -> Self {
        Self {
            package: warning.package.clone(),
            channel: String::new(),
            bundle: warning.bundle.clone(),
            message: warning.to_string(),
        }
    }
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
    let warnings = match report.warnings.len() {
        0 => String::new(),
        1 => ", 1 warning".to_owned(),
        count => format!(", {count} warnings"),
    };
    let mut text = format!("{}: {verdict}{warnings}", report.catalog);
    let problems = report.problems.iter().map(|problem| ("", problem));
    let warnings = report.warnings.iter().map(|warning| ("warning: ", warning));
    for (kind, Problem { message, .. }) in problems.chain(warnings) {
        text.push_str("\n  ");
        text.push_str(kind);
        text.push_str(message);
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
        assert!(reports.iter().all(|report| report.warnings.is_empty()));
    }

    #[test]
    fn fields_of_release_documents_that_nobody_reads_are_warnings() {
        const RELEASES: &str = r#"
            {"schema":"io.wavelift.release.v1alpha1","package":"oak","relaseNotes":[],
             "manualSteps":[{"version":"1.0.0","title":"t","wenn":"After"}]}
            {"schema":"io.wavelift.release.v1alpha1","package":"oak","assessments":[{"id":1}]}"#;
        let property = r#"{"type":"io.wavelift.release.v1alpha1","value":{"checkz":[]}}"#;
        let good = GOOD.replace("\"properties\":[", &format!("\"properties\":[{property},"));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("catalog");
        std::fs::write(&path, format!("{good}{RELEASES}")).unwrap();
        let report = report(&path);
        assert!(report.valid && report.problems.is_empty(), "{report:?}");
        let warnings: Vec<(&str, &str)> =
            report.warnings.iter().map(|w| (w.bundle.as_str(), w.message.as_str())).collect();
        let of = "package `oak`: io.wavelift.release.v1alpha1:";
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert_eq!(warnings[0], ("", &*format!("{of} field `relaseNotes` is not known")));
        assert_eq!(warnings[1], ("", &*format!("{of} field `manualSteps[0].wenn` is not known")));
        assert!(
            warnings[2].1.contains("can't be read") && warnings[2].1.contains("assessments[0]")
        );
        assert_eq!(warnings[3].0, "oak.v1");
        assert!(warnings[3].1.ends_with("field `checkz` is not known"));
        let text = text(&report);
        assert!(text.contains("catalog: valid, 4 warnings\n  warning: package `oak`"), "{text}");
        assert!(serde_json::to_value(&report).unwrap()["warnings"][3]["channel"] == "");
    }
}
