//! What real OLM answers, asked of the program: answer and shape.
//!
//! The libraries are held against the same lines by tests of their own. Here a process is started
//! for a whole catalog, not for a line.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use wavelift_runtime::testing::shared_or_skip;

use super::{Said, feed, run};

fn lines(shared: &Path, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(shared.join("vectors").join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {line}"))
}

/// The lines of each catalog.
fn by_catalog(lines: &[Value]) -> BTreeMap<&str, Vec<&Value>> {
    let mut all: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for line in lines {
        all.entry(text(line, "catalog")).or_default().push(line);
    }
    all
}

/// Asks one question a line and gives back one answer each.
fn ask(olm: &str, catalogs: &[PathBuf], questions: &[Value]) -> Vec<Value> {
    let mut args = vec!["resolve", "--olm", olm];
    for catalog in catalogs {
        args.extend(["--catalog", catalog.to_str().unwrap()]);
    }
    let questions_in_lines: Vec<String> = questions.iter().map(Value::to_string).collect();
    let input = questions_in_lines.join("\n");
    let said = feed(Path::new("."), &args, input.as_bytes());
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
    let answers = said.json_lines();
    assert_eq!(answers.len(), questions.len());
    answers
}

/// The items of a list; none where there is no list.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Whether it has the form of an answer: an error alone, or `field` and what may stand beside it.
fn has_form(answer: &Value, field: &str, beside: &[&str]) -> bool {
    let keys = keys(answer);
    let error = answer["error"].as_str();
    let is_answer = keys.contains(field) && keys.iter().all(|k| *k == field || beside.contains(k));
    is_answer || keys.len() == 1 && error.is_some_and(|error| !error.is_empty())
}

const MAY_STAND_BESIDE: [&str; 2] = ["alternatives", "moreAlternatives"];

fn names(moves: &Value) -> BTreeSet<&str> {
    moves.as_array().into_iter().flatten().map(|name| name.as_str().unwrap()).collect()
}

/// What is wrong with the answer about a namespace, if anything.
fn wrong_moves(answer: &Value, expected: &Value, error: &Value) -> Option<String> {
    let is_right = if error.is_null() {
        answer["moves"].is_array() && names(&answer["moves"]) == names(expected)
    } else {
        answer["error"].is_string()
    };
    let is_good = is_right && has_form(answer, "moves", &MAY_STAND_BESIDE);
    (!is_good).then(|| format!("OLM {expected} {error}, the program {answer}"))
}

#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn next_steps_of_olm_v0() {
    let Some(shared) = shared_or_skip() else { return };
    let lines = lines(&shared, "olm-v0-next.jsonl");
    let mut wrong = vec![];
    for (catalog, lines) in by_catalog(&lines) {
        let question = |line: &&Value| {
            json!({"namespace": [{"package": line["package"], "channel": line["channel"],
                "installed": line["installed"], "version": line["version"]}]})
        };
        let questions: Vec<Value> = lines.iter().map(question).collect();
        let answers = ask("v0", &[shared.join("catalogs").join(catalog)], &questions);
        for (line, answer) in lines.iter().zip(&answers) {
            let why = wrong_moves(answer, &line["next"], &line["error"]);
            wrong.extend(why.map(|why| format!("{catalog} {}: {why}", line["installed"])));
        }
    }
    none(&wrong);
    assert_eq!(lines.len(), 1172);
}

#[test]
fn namespaces_of_olm_v0_from_many_catalogs_as_one() {
    let Some(shared) = shared_or_skip() else { return };
    let combined = fs::read_to_string(shared.join("vectors/combined-catalogs.txt")).unwrap();
    let catalogs = combined.lines().map(str::trim).filter(|line| !line.is_empty());
    let catalogs: Vec<PathBuf> = catalogs.map(|one| shared.join("catalogs").join(one)).collect();
    let lines = lines(&shared, "olm-v0-namespaces.jsonl");
    let questions: Vec<Value> =
        lines.iter().map(|line| json!({"namespace": line["namespace"]})).collect();
    let answers = ask("v0", &catalogs, &questions);
    let wrong: Vec<String> = lines
        .iter()
        .zip(&answers)
        .filter_map(|(line, answer)| wrong_moves(answer, &line["moves"], &line["error"]))
        .collect();
    none(&wrong);
    assert_eq!((catalogs.len(), lines.len()), (37, 400));
}

/// Name, catalog and channel of every move; `null` is no move.
fn places(moves: &Value) -> BTreeSet<(&str, &str, &str)> {
    let place = |one| (text(one, "name"), text(one, "catalog"), text(one, "channel"));
    moves.as_array().into_iter().flatten().map(place).collect()
}

/// The line itself is the question, with all that stands beside it.
#[test]
fn synthetic_cases_of_olm_v0_bring_their_catalogs() {
    let Some(shared) = shared_or_skip() else { return };
    let lines = lines(&shared, "olm-v0-synthetic.jsonl");
    let answers = ask("v0", &[], &lines);
    let (mut wrong, mut named) = (vec![], 0);
    for (line, answer) in lines.iter().zip(&answers) {
        let also = line["also"].as_array().into_iter().flatten();
        let expected: BTreeSet<_> =
            std::iter::once(&line["moves"]).chain(also).map(places).collect();
        let may_fail = !line["error"].is_null() || !line["alsoError"].is_null();
        let is_right = if answer["moves"].is_array() {
            line["error"].is_null() && expected.contains(&places(&answer["moves"]))
        } else {
            may_fail
        };
        if !is_right || !has_form(answer, "moves", &MAY_STAND_BESIDE) {
            wrong.push(format!("{}: OLM {expected:?}, the program {answer}", line["id"]));
        }
        let others = answer["alternatives"].as_array().into_iter().flatten().map(places);
        let said: BTreeSet<_> = others.chain([places(&answer["moves"])]).collect();
        named += usize::from(expected.len() > 1 && said.is_superset(&expected));
    }
    none(&wrong);
    // Where OLM went several ways, all but one of these cases name every way that was seen.
    assert_eq!((lines.len(), named), (600, 31));
}

#[test]
fn extensions_of_olm_v1() {
    let Some(shared) = shared_or_skip() else { return };
    let lines = lines(&shared, "olm-v1-resolve.jsonl");
    let mut wrong = vec![];
    for (catalog, lines) in by_catalog(&lines) {
        let question = |line: &&Value| {
            json!({"package": line["package"], "channels": line["channels"],
                "constraint": line["constraint"], "installed": line["installed"],
                "version": line["version"]})
        };
        let questions: Vec<Value> = lines.iter().map(question).collect();
        let answers = ask("v1", &[shared.join("catalogs").join(catalog)], &questions);
        for ((line, question), answer) in lines.iter().zip(&questions).zip(&answers) {
            let is_right = if line["error"].is_null() {
                answer["resolved"] == line["resolved"]
            } else {
                answer["error"].is_string()
            };
            if !is_right || !has_form(answer, "resolved", &[]) {
                wrong.push(format!("{catalog} {question}: OLM {line}, the program {answer}"));
            }
        }
    }
    none(&wrong);
    assert_eq!(lines.len(), 2142);
}

#[test]
fn catalogs_that_opm_refuses() {
    let Some(shared) = shared_or_skip() else { return };
    let lines = lines(&shared, "catalog-validity.jsonl");
    let path = |line: &Value| shared.join("catalogs").join(text(line, "catalog"));
    let paths: Vec<String> = lines.iter().map(|line| path(line).display().to_string()).collect();
    let mut args = vec!["catalog", "validate", "-o", "json"];
    args.extend(paths.iter().map(String::as_str));
    let said = run(Path::new("."), &args);
    assert_eq!((said.code, said.err.as_str()), (2, ""));
    let reports = said.json();
    let reports = reports.as_array().unwrap();
    let mut wrong = vec![];
    for ((line, path), report) in lines.iter().zip(&paths).zip(reports) {
        assert_eq!(keys(report), ["catalog", "problems", "valid", "warnings"].into());
        let problems = report["problems"].as_array().unwrap();
        let reason = line["reason"].as_str().unwrap_or_default();
        let is_named = problems.iter().any(|problem| {
            assert_eq!(keys(problem), ["bundle", "channel", "message", "package"].into());
            let place = ["bundle", "channel", "package"].map(|key| text(problem, key));
            let place = place.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            !text(problem, "message").is_empty() && reason.contains(place)
        });
        let is_right = report["catalog"] == path.as_str()
            && report["valid"] == line["valid"]
            && report["valid"] == problems.is_empty()
            && (problems.is_empty() || is_named);
        if !is_right {
            wrong.push(format!("opm {line}, the program {report}"));
        }
    }
    none(&wrong);
    assert_eq!((lines.len(), reports.len()), (70, 70));
    let valid = lines.iter().position(|line| line["valid"] == true).unwrap();
    let said = run(Path::new("."), &["catalog", "validate", &paths[valid], "-o", "json"]);
    assert_eq!((said.code, said.json()[0]["valid"].clone()), (0, true.into()));
}

/// Each pair is a process; a part of them is enough where the libraries are held against all.
const EVERY_PAIR: usize = 8;

#[test]
fn definitions_that_olm_v1_refuses() {
    let Some(shared) = shared_or_skip() else { return };
    let lines = lines(&shared, "crd-upgrade.jsonl");
    let pairs: Vec<&Value> =
        lines.iter().filter(|l| l["from_file"].is_string() && l["to_file"].is_string()).collect();
    let mut wrong = vec![];
    let mut refused = 0;
    for line in pairs.iter().step_by(EVERY_PAIR) {
        let path = |key| shared.join("catalogs").join(text(line, key)).display().to_string();
        let (old, new) = (path("from_file"), path("to_file"));
        let said = run(Path::new("."), &["diff-crd", &old, &new, "-o", "json"]);
        if let Some(why) = wrong_diff(line, &said) {
            wrong.push(format!("{} {} {}: {why}", line["crd"], line["from"], line["to"]));
        }
        refused += usize::from(line["refused"] == true);
    }
    none(&wrong);
    assert!(pairs.len() >= 200 && refused >= 5, "{} {refused}", pairs.len());
}

fn wrong_diff(line: &Value, said: &Said) -> Option<String> {
    if (said.code, said.err.as_str()) != (0, "") {
        return Some(format!("{said:?}"));
    }
    let diff = said.json();
    if line["refused"].is_null() {
        let is_said = items(&diff["unknown"]).next().is_some();
        return (!is_said).then(|| "OLM's check crashes, which is not said".to_owned());
    }
    let finding =
        |one: &Value| ["version", "property", "rule"].map(|key| text(one, key).to_owned());
    let changes = || items(&diff["changes"]);
    assert!(changes().all(|change| change["class"].is_string()));
    let is_held = |change: &&Value| items(&change["refusedBy"]).any(|olm| olm == "v1");
    let held: BTreeSet<_> = changes().filter(is_held).map(finding).collect();
    let expected: BTreeSet<_> = items(&line["findings"]).map(finding).collect();
    let total = line["total"].as_u64();
    let counted = diff["byRule"].as_object().into_iter().flatten();
    let counted: u64 = counted.filter_map(|(_, count)| count.as_u64()).sum();
    let by_v0 = ["Never", "IfStored", "IfObjectsInvalid"].map(Value::from);
    let is_right = diff["refusedByV1"] == line["refused"]
        && diff["byRule"] == line["by_rule"]
        && Some(counted) == total
        && held.is_superset(&expected)
        && (counted > 40 || held == expected)
        && by_v0.contains(&diff["refusedByV0"]);
    (!is_right).then(|| format!("OLM {line}, the program {diff}"))
}
