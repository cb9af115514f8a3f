use serde_json::{Value, json};
use wavelift_api::live::{PreviewDetail, PreviewList};

use super::printer;
use crate::render::{group, groups};

const DANGEROUS: &str = "logging-operator gains secrets: get, list in the cluster";
const STEP: &str = "before 6.2.0: Move outputs to LokiStack";
const REFUSED: &str = "lokistacks.example.com: OLM v0 refuses it if objects are stored in v1beta1";

fn way(path: &[&str]) -> Value {
    json!([{"namespace": "logging", "package": "logging", "from": path[0], "to": &path[1..]}])
}

fn first() -> Value {
    json!({"id": "5d0c2f9a61b7e340", "clusters": 371, "state": "Made",
        "examples": ["prod-fra-01", "prod-fra-02", "prod-mad-03"],
        "ways": way(&["6.1.4", "6.2.3"]),
        "catalogs": [{"source": "marketplace/own", "digest": "sha256:41ab90"}],
        "counts": {"permissionsGained": 12, "dangerous": [DANGEROUS], "dangerousTotal": 1,
            "manualSteps": [STEP], "manualStepsTotal": 1, "crdChanges": 2, "images": 9},
        "differences": 1})
}

fn second() -> Value {
    json!({"id": "c07be2d4415f9a88", "clusters": 29, "state": "Made",
        "examples": ["edge-001", "edge-002"],
        "ways": way(&["6.0.9", "6.1.4", "6.2.3"]),
        "catalogs": [{"source": "marketplace/own", "digest": "sha256:77e012"}],
        "counts": {"permissionsGained": 15, "dangerous": [DANGEROUS], "dangerousTotal": 1,
            "crdsRefused": [REFUSED], "manualSteps": [STEP], "manualStepsTotal": 1,
            "missing": ["logging.v6.1.4: catalog marketplace/own does not carry them"],
            "missingTotal": 1},
        "differences": 3})
}

#[test]
fn all_groups_are_on_one_screen() {
    let list: PreviewList = serde_json::from_value(json!({
        "time": "2026-08-22T12:00:00Z", "state": "Made", "clusters": 403, "atTarget": 2,
        "blocked": 1, "leftOut": 0, "total": 2, "items": [first(), second()],
        "blockers": [{"cluster": "lab-7", "kind": "NoPath",
            "why": "namespace logging: the catalog has no such version of `logging`"}],
    }))
    .unwrap();
    insta::assert_snapshot!(groups(&list, &printer()));
}

#[test]
fn one_group_begins_with_what_sets_it_apart() {
    let detail: PreviewDetail = serde_json::from_value(json!({
        "time": "2026-08-22T12:00:00Z", "group": second(), "members": ["edge-001", "edge-002"],
        "differences": [
            {"kind": "Has", "package": "logging", "section": "CRDs", "text": REFUSED, "groups": 0}],
        "operators": [{"namespace": "logging", "package": "logging", "preview": {}, "sections": [
            {"title": "Manual steps", "importance": "High", "total": 1, "lines": [STEP]},
            {"title": "Permissions", "importance": "High", "total": 2,
             "lines": [DANGEROUS, "logging-operator gains pods: get in its namespaces"]},
            {"title": "Release notes", "importance": "Low", "total": 1,
             "lines": ["6.2.0: Outputs are resources of their own"]}]}],
    }))
    .unwrap();
    insta::assert_snapshot!(group(&detail, false));
}
