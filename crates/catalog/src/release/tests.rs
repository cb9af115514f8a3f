use serde_json::{Value, json};
use wavelift_core::version::Version;

use super::{Impact, Release, SCHEMA, When};

fn complaint(value: &Value) -> String {
    Release::parse(value).unwrap_err().to_string()
}

#[test]
fn a_document_is_read_and_what_is_unknown_is_kept_and_named() {
    let document = json!({
        "schema": SCHEMA, "package": "pump", "relaseNotes": [],
        "releaseNotes": [{"version": "1.2.0", "url": "https://pump.example/1.2", "lang": "en"}],
        "manualSteps": [
            {"versions": ">=1.2.0 <1.3.0", "title": "Drain the tank", "when": "After"},
            {"version": "v1.3", "title": "Close the valve"},
        ],
        "assessments": [{
            "id": "stop", "versions": "1.2.x", "title": "Pumps stop", "impact": "High",
            "action": "Plan for it", "colour": "red",
        }],
        "checks": [{"name": "level", "versions": ">=1.0.0", "collect": {"type": "PromQL"}}],
    });
    let release = Release::parse(&document).unwrap();
    assert_eq!(
        release.unknown_fields(),
        ["relaseNotes", "releaseNotes[0].lang", "assessments[0].colour"]
    );
    assert_eq!(release.assessments[0].impact, Impact::High);
    assert_eq!(release.manual_steps[0].when, When::After);
    assert_eq!(release.manual_steps[1].when, When::Before);
    assert_eq!(release.checks[0].definition["collect"]["type"], "PromQL");
    // Nothing is lost; what was left open has its default, and short versions are whole.
    let mut expected = document;
    expected["manualSteps"][1]["when"] = "Before".into();
    expected["manualSteps"][1]["version"] = "1.3.0".into();
    assert_eq!(serde_json::to_value(&release).unwrap(), expected);
}

#[test]
fn complaints_name_the_field() {
    let check = |field: &str, item: Value, expected: &str| {
        assert_eq!(complaint(&json!({ field: [item] })), expected);
    };
    assert_eq!(complaint(&json!([])), "document is no object");
    assert_eq!(complaint(&json!({"package": 7})), "field `package` is not a text");
    assert_eq!(complaint(&json!({"checks": {}})), "field `checks` is not a list");
    check(
        "assessments",
        json!({"id": "a", "version": "1.0.0", "title": "t", "impact": "Huge"}),
        "field `assessments[0].impact` is not `None`, `Low`, `Medium` or `High`",
    );
    check(
        "assessments",
        json!({"version": "1.0.0", "title": "t", "impact": "Low"}),
        "field `assessments[0].id` is not a text",
    );
    check(
        "manualSteps",
        json!({"title": "t"}),
        "field `manualSteps[0].versions` is not there, nor is `version`: one of them must be",
    );
    check(
        "manualSteps",
        json!({"title": "t", "versions": "^1.0"}),
        "field `manualSteps[0].versions` is not a range of versions",
    );
    check(
        "releaseNotes",
        json!({"version": "1.0.0", "title": "t"}),
        "field `releaseNotes[0].text` is not there, nor is `url`: one of them must be",
    );
}

#[test]
fn a_range_is_about_the_versions_above_the_installed_one_up_to_the_target() {
    let check = |span: Value, expected: Option<&str>| {
        let mut note = span.clone();
        note["text"] = "t".into();
        let release = Release::parse(&json!({"releaseNotes": [note]})).unwrap();
        let version = |text: &str| Version::parse(text).unwrap();
        let known = [version("1.1.0"), version("1.3.0")];
        let found = release.release_notes[0].span.highest_between(
            &version("1.1.0"),
            &version("1.3.0"),
            &known,
        );
        assert_eq!(found.map(|v| v.to_string()).as_deref(), expected, "{span}");
    };
    check(json!({"version": "1.1.0"}), None);
    check(json!({"version": "1.2.5"}), Some("1.2.5"));
    check(json!({"version": "1.3.0"}), Some("1.3.0"));
    check(json!({"version": "1.3.1"}), None);
    check(json!({"versions": "<=1.1.0"}), None);
    check(json!({"versions": ">=1.0.0"}), Some("1.3.0"));
    // Between the two versions of the path, which jumps over it.
    check(json!({"versions": ">=1.2.0 <1.2.9"}), Some("1.2.1"));
    check(json!({"versions": ">1.2.0 <1.2.9"}), Some("1.2.1"));
    check(json!({"versions": "1.2.x"}), Some("1.2.1"));
    check(json!({"versions": ">1.3.0"}), None);
}
