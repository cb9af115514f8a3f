//! What else people type and pipe into the commands that need no cluster.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::Stdio,
};

use serde_json::{Value, json};
use wavelift_runtime::testing::workspace_root;

use super::{Said, command, feed, run, said, write};

/// A small catalog and three bundles of our own.
fn examples() -> std::path::PathBuf {
    workspace_root().join("docs/examples")
}

fn example(args: &str) -> Said {
    run(&examples(), &args.split(' ').collect::<Vec<_>>())
}

fn question(installed: &str) -> String {
    let question = json!({"namespace": [{"package": "ferry-operator", "channel": "stable",
        "installed": format!("ferry-operator.v{installed}"), "version": installed}]});
    question.to_string()
}

const RESOLVE: [&str; 5] = ["resolve", "--olm", "v0", "--catalog", "catalog"];

#[test]
fn every_question_has_its_answer_and_what_is_none_is_said_so() {
    let moves = |csv: &str| json!({"moves": [csv]});
    let input = format!(
        "\u{feff}{}\r\n\n   \r\nno JSON\n{{}}\n{{\"namespace\": 1}}\n{}",
        question("1.4.0"),
        question("2.0.0")
    );
    let said = feed(&examples(), &RESOLVE, input.as_bytes());
    assert_eq!((said.code, said.err.as_str()), (2, ""));
    let lines = said.json_lines();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!(
        (&lines[0], &lines[4]),
        (&moves("ferry-operator.v2.0.0"), &moves("ferry-operator.v2.1.0"))
    );
    for (line, number, part) in [
        (&lines[1], 4, "expected ident"),
        (&lines[2], 5, "neither `namespace` nor `catalogs`"),
        (&lines[3], 6, "invalid type: integer `1`"),
    ] {
        assert_eq!(line["line"], number);
        assert!(line["error"].as_str().unwrap().contains(part), "{line}");
    }
    for empty in ["", "\n\n", "  \r\n"] {
        assert_eq!(feed(&examples(), &RESOLVE, empty.as_bytes()).good(), "");
    }
}

#[test]
fn what_olm_would_refuse_is_an_answer_and_what_is_left_out_is_none_of_it() {
    let ask = |line: &Value| {
        let said = feed(&examples(), &RESOLVE, format!("{line}\n").as_bytes());
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{line}");
        said.json_lines().remove(0)
    };
    let one = |more: Value| {
        let mut operator = json!({"package": "ferry-operator", "channel": "stable",
            "installed": "ferry-operator.v2.0.0", "version": "2.0.0", "colour": "blue"});
        operator.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"namespace": [operator], "unknown": true})
    };
    // Fields of other names count for nothing, an empty channel is the default one.
    for same in [json!({}), json!({"channel": ""})] {
        assert_eq!(ask(&one(same)), json!({"moves": ["ferry-operator.v2.1.0"]}));
    }
    // What is installed need not be in the catalog: its version decides.
    let absent = json!({"installed": "ferry-operator.v1.9.9", "version": "1.9.9"});
    assert_eq!(ask(&one(absent.clone())), json!({"moves": []}));
    let mut fast = absent;
    fast["channel"] = "fast".into();
    assert_eq!(ask(&one(fast)), json!({"moves": ["ferry-operator.v2.1.0"]}));
    for (more, part) in [
        (json!({"package": "oak"}), "package `oak` is not in catalog"),
        (json!({"channel": "slow"}), "slow"),
    ] {
        let answer = ask(&one(more));
        assert!(answer["error"].as_str().unwrap().contains(part), "{answer}");
    }
    // OLM v1's questions have their own shape.
    let v1 = ["resolve", "--olm", "v1", "--catalog", "catalog"];
    let lines = "{\"package\":\"ferry-operator\",\"installed\":\"ferry-operator.v1.4.0\",\
                 \"version\":\"1.4.0\"}\n{\"package\":\"oak\"}\n{\"channel\":\"x\"}\n";
    let said = feed(&examples(), &v1, lines.as_bytes());
    assert_eq!(said.code, 2);
    let lines = said.json_lines();
    assert_eq!(lines[0], json!({"resolved": "ferry-operator.v2.1.0"}));
    assert!(lines[1]["error"].as_str().unwrap().contains("oak"));
    assert_eq!(lines[2], json!({"error": "line names no `package`", "line": 3}));
}

#[test]
fn an_answer_comes_before_the_next_question() {
    let mut child = command(&examples(), &RESOLVE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut ask, mut answers) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for (installed, next) in [("1.4.0", "2.0.0"), ("2.0.0", "2.1.0")] {
        writeln!(ask, "{}", question(installed)).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.contains(&format!("ferry-operator.v{next}")), "{answer}");
    }
    drop(ask);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn who_reads_no_further_is_left_in_peace() {
    let dir = tempfile::tempdir().unwrap();
    // More than a pipe holds.
    let many = format!("{}\n", question("1.4.0")).repeat(5_000);
    write(dir.path(), &[("many", &many)]);
    let file = dir.path().join("many");
    let mut args = RESOLVE.to_vec();
    args.extend(["-f", file.to_str().unwrap()]);
    let mut child =
        command(&examples(), &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("ferry-operator.v2.0.0"), "{first}");
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    // As a shell expects it of a program that a broken pipe ended.
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(141), ""));
}

#[test]
fn a_catalog_that_is_none_is_named() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[("text/readme.txt", "schema: \n"), ("other/a.yaml", "schema: x.y\n")]);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    for (catalog, code, parts) in [
        ("absent", 1, ["cannot read the catalog absent", "can't read absent"]),
        ("empty", 2, ["there is no package in empty", "what to do: give a directory or file"]),
        ("other", 2, ["there is no package in other", "what to do: give a directory or file"]),
        ("text", 2, ["cannot read the catalog text", "readme.txt, document 1"]),
    ] {
        for args in [
            vec!["resolve", "--olm", "v0", "--catalog", catalog],
            vec!["resolve", "--olm", "v1", "--catalog", catalog],
            vec!["path", "oak", "--catalog", catalog, "--from", "1.0.0"],
            vec!["preview", "--catalog", catalog, "--package", "oak", "--from", "1.0.0"],
            vec!["catalog", "show", catalog],
            vec!["catalog", "graph", catalog],
            vec!["diff", catalog, catalog],
        ] {
            let err = run(dir.path(), &args).bad(code);
            assert!(parts.iter().all(|part| err.contains(part)), "{args:?}: {err}");
        }
    }
    // What can't be read is a problem of that catalog alone.
    let args = ["catalog", "validate", "absent", "text", "-o", "json"];
    let said = run(dir.path(), &args);
    assert_eq!((said.code, said.err.as_str()), (2, ""));
    for (at, name) in ["absent", "text"].into_iter().enumerate() {
        let report = &said.json()[at];
        assert_eq!((&report["catalog"], &report["valid"]), (&name.into(), &false.into()));
        assert_eq!(report["problems"].as_array().unwrap().len(), 1, "{report}");
    }
    let err = run(dir.path(), &["resolve", "--olm", "v1"]).bad(2);
    assert!(err.contains("give at least one --catalog"), "{err}");
}

#[test]
fn a_catalog_given_twice_is_read_once() {
    let twice = ["resolve", "--olm", "v0", "--catalog", "catalog", "--catalog", "./catalog/"];
    let said = feed(&examples(), &twice, question("1.4.0").as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.err, "./catalog/ is given twice and read once\n");
    assert_eq!(said.json_lines(), [json!({"moves": ["ferry-operator.v2.0.0"]})]);
    // By another path it is another catalog, and one thing is there twice.
    let file = "catalog/ferry-operator.yaml";
    let err = run(&examples(), &["catalog", "show", "catalog"]).good();
    assert!(err.contains("ferry-operator"), "{err}");
    let double = ["resolve", "--olm", "v0", "--catalog", "catalog", "--catalog", file];
    let err = run(&examples(), &double).bad(2);
    assert!(err.contains("the catalog contradicts itself"), "{err}");
}

#[test]
fn every_answer_is_there_as_json_and_as_yaml() {
    for (args, code) in [
        ("catalog show catalog", 0),
        ("catalog show catalog ferry-operator", 0),
        ("catalog graph catalog", 0),
        ("catalog validate catalog", 0),
        ("path ferry-operator --catalog catalog --from 1.4.0", 0),
        ("path ferry-operator --catalog catalog --from 1.4.0 --to 9.0.0", 3),
        ("path ferry-operator --catalog catalog --from 1.4.0 --olm v1", 0),
        ("path ferry-operator --catalog catalog --from 1.4.0 --to 9.0.0 --olm v1", 3),
        ("preview --bundle ferry-operator/1.4.0 --bundle ferry-operator/2.0.0", 0),
        ("preview --catalog catalog --package ferry-operator --from 1.4.0", 0),
        ("preview --catalog catalog --package ferry-operator --from 1.4.0 --to 9.0.0", 3),
        ("diff catalog catalog --installed ferry-operator=ferry-operator.v1.4.0", 0),
        (
            "diff-crd ferry-operator/1.4.0/manifests/timetables.crd.yaml \
          ferry-operator/2.1.0/manifests/timetables.crd.yaml",
            0,
        ),
    ] {
        let json = example(&format!("{args} -o json"));
        assert_eq!((json.code, json.err.as_str()), (code, ""), "{args}");
        let yaml = example(&format!("{args} -o yaml"));
        assert_eq!(yaml.code, code, "{args}");
        // JSON is YAML, and the YAML of a machine is not JSON.
        assert!(serde_json::from_str::<Value>(&yaml.out).is_err(), "{args}");
        let top = json.json();
        for key in top.as_object().into_iter().flat_map(|object| object.keys()) {
            assert!(yaml.out.contains(&format!("{key}:")), "{args}: no {key} in\n{}", yaml.out);
        }
        let text = example(args);
        assert_eq!((text.code, text.err.as_str()), (code, ""), "{args}");
        assert!(text.out.len() > 10 && text.out.ends_with('\n'), "{args}: {}", text.out);
        for wrong in ["markdown", "html"] {
            if !args.starts_with("preview") {
                let err = example(&format!("{args} -o {wrong}")).bad(2);
                assert!(err.contains("only a preview can be a document"), "{err}");
            }
        }
    }
    let err = feed(&examples(), &[&RESOLVE[..], &["-o", "yaml"]].concat(), b"").bad(2);
    assert!(err.contains("lines of JSON"), "{err}");
}

#[test]
fn mistakes_are_told_apart_from_refusals() {
    for (args, part) in [
        ("path oak --catalog catalog --from 1.4.0", "it has: ferry-operator"),
        ("path ferry-operator --catalog catalog --from 1.4.0 --channel x", "it has: fast, stable"),
        ("path ferry-operator --catalog catalog --from what", "neither a bundle of"),
        ("path ferry-operator --catalog catalog --from 1.4.0 --to ~", "neither a version nor"),
        ("catalog graph catalog oak", "it has: ferry-operator"),
        ("catalog graph catalog ferry-operator --channel x", "it has: fast, stable"),
        ("catalog show catalog oak", "it has: ferry-operator"),
        ("diff catalog catalog --installed oak", "is not PACKAGE=CSV"),
        ("diff catalog catalog -f catalog/ferry-operator.yaml", "ferry-operator.yaml line 1"),
        ("diff-crd catalog/ferry-operator.yaml catalog/ferry-operator.yaml", "cannot read"),
        ("preview --bundle ferry-operator/1.4.0", "a path has two bundles at least"),
        ("catalog validate", "required"),
        ("resolve --catalog catalog", "--olm"),
    ] {
        let err = example(args).bad(2);
        assert!(err.contains(part), "{args}: {err}");
    }
    // Where OLM's graph jumps over a version, there is no way to it, and that is an answer.
    let path = "path ferry-operator --catalog catalog --channel fast --from 1.4.0 --to v2.0.0";
    let said = example(path);
    assert_eq!((said.code, said.err.as_str()), (3, ""));
    assert!(said.out.contains("No path: "), "{said:?}");
    let named = example("path ferry-operator --catalog catalog --from 1.4.0 -o name").good();
    assert_eq!(named, "ferry-operator.v2.0.0\nferry-operator.v2.1.0\n");
    let there = "preview --catalog catalog --package ferry-operator --from 2.1.0";
    assert_eq!(example(there).good(), "ferry-operator.v2.1.0 is there already: nothing changes\n");
    // A list of no names has no lines.
    assert_eq!(example("catalog validate catalog -o name").good(), "");
}

#[test]
fn bundles_that_are_none_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let good = examples().join("ferry-operator/1.4.0");
    let good = good.to_str().unwrap();
    let annotations = "annotations: {}\n";
    write(
        dir.path(),
        &[
            ("no-csv/manifests/a.yaml", "kind: Secret\nmetadata: {name: a}\n"),
            ("no-csv/metadata/annotations.yaml", annotations),
            ("broken/manifests/csv.yaml", "kind: ClusterServiceVersion\n  bad: [\n"),
            ("broken/metadata/annotations.yaml", annotations),
        ],
    );
    for (name, code, parts) in [
        ("absent", 1, ["cannot read the bundle absent", "what to do: give a bundle's directory"]),
        ("no-csv", 2, ["cannot read the bundle no-csv", "bundle has no ClusterServiceVersion"]),
        (
            "broken",
            2,
            ["cannot read the bundle broken", "manifests/csv.yaml, document 1: not YAML"],
        ),
        ("docker://registry.example.com/a@sha256:1", 1, ["cannot fetch", "is no image"]),
    ] {
        let err = run(dir.path(), &["preview", "--bundle", good, "--bundle", name]).bad(code);
        assert!(parts.iter().all(|part| err.contains(part)), "{name}: {err}");
    }
    for (flag, part) in [
        ("--image-mirrors", "holds no mirror rules"),
        ("--pull-secret", "the pull secret is not JSON"),
        ("--image-ca", "the CA bundle holds no certificate"),
    ] {
        let image = "docker://registry.example.com/a:b";
        let file = "no-csv/manifests/a.yaml";
        let args = ["preview", "--bundle", good, "--bundle", image, flag, file];
        let err = run(dir.path(), &args).bad(2);
        assert!(err.contains(part) && err.contains("what to do: "), "{flag}: {err}");
    }
    let same = run(dir.path(), &["preview", "--bundle", good, "--bundle", good]).good();
    assert!(same.starts_with("Preview ferry-operator: ferry-operator.v1.4.0 -> "), "{same}");
    assert!(!same.contains("gained") && !same.contains("changed"), "{same}");
}

#[test]
fn an_answer_can_be_written_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = |version: &str| examples().join("ferry-operator").join(version);
    let (old, new) = (bundle("1.4.0"), bundle("2.1.0"));
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    for (form, begin) in [
        ("json", "{\n"),
        ("yaml", "package: ferry-operator\n"),
        ("markdown", "# Preview ferry-operator: "),
        ("html", "<!doctype html>"),
        ("wide", "Preview ferry-operator: "),
        ("name", "ferry-operator.v2.1.0\n"),
    ] {
        let args = ["preview", "--bundle", old, "--bundle", new, "-o", form];
        let shown = run(dir.path(), &args).good();
        assert!(shown.starts_with(begin), "{form}: {shown}");
        let said = run(dir.path(), &[&args[..], &["--out", "report"]].concat());
        assert_eq!((said.code, said.out.as_str()), (0, ""));
        assert_eq!(said.err, "Written to report\n");
        assert_eq!(std::fs::read_to_string(dir.path().join("report")).unwrap(), shown);
    }
    let args = ["preview", "--bundle", old, "--bundle", new, "--out", "absent/report"];
    let err = run(dir.path(), &args).bad(1);
    assert!(err.contains("cannot write absent/report"), "{err}");
}

#[test]
fn help_has_an_example_of_every_command_that_needs_no_cluster() {
    for command in [
        "catalog show",
        "catalog graph",
        "catalog validate",
        "path",
        "resolve",
        "preview",
        "diff",
        "diff-crd",
    ] {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = run(Path::new("."), &words).good();
        let (_, examples) = help.split_once("Example").unwrap_or_else(|| panic!("{help}"));
        assert!(examples.contains(&format!("wavelift {command} ")), "{help}");
    }
}

#[test]
fn both_streams_may_be_closed() {
    let mut child = command(&examples(), &["catalog", "show", "absent"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    // Nobody hears the complaint; the code is all that is left.
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let output = command(&examples(), &["catalog", "show", "catalog"]).output().unwrap();
    assert!(said(output).good().contains("ferry-operator.v2.1.0"));
}
