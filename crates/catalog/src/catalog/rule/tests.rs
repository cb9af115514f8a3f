use serde_json::json;

use super::*;
use crate::cel::{BRACKETS_MAX, DEPTH_MAX, SIGNS_MAX};

fn facts() -> Facts {
    let property = |kind: &str, value| Property { kind: kind.to_owned(), value };
    let properties = [
        property("olm.package", json!({"packageName": "kite", "version": "1.2.0"})),
        property("grade", json!("gold")),
        property("size", json!({"cpu": 2, "zones": ["a", "b"]})),
        property("olm.gvk.required", json!({"group": "g", "version": "v1", "kind": "K"})),
        property("olm.bundle.object", json!({"data": "AA=="})),
    ];
    Facts::of_bundle(&properties.iter().collect::<Vec<_>>())
}

fn ask(rule: &str) -> Result<bool, BadRule> {
    Rule::new(rule).is_met_by(&facts())
}

#[test]
fn rules_see_types_and_values() {
    for (rule, expected) in [
        ("properties.exists(p, p.type == 'grade' && p.value == 'gold')", true),
        ("properties.exists(p, p.type == 'grade' && p.value == 'tin')", false),
        ("properties.all(p, p.type != 'colour')", true),
        ("properties.exists_one(p, p.type == 'grade')", true),
        ("!properties.exists(p, p.type == 'grade')", false),
        ("properties.filter(p, p.type.startsWith('olm.')).size() == 3", true),
        ("properties.map(p, p.type)[1] == 'grade'", true),
        ("'grade' in properties.map(p, p.type)", true),
        ("properties.exists(p, p.type == 'size' && p.value.cpu == 2)", true),
        ("properties.exists(p, p.type == 'size' && p.value.cpu > 1.5)", true),
        ("properties.exists(p, p.type == 'size' && 'b' in p.value.zones)", true),
        ("properties.exists(p, p.type.matches('^gr.de$'))", true),
        ("properties.exists(p, has(p.value) && p.type == 'grade')", true),
        ("true ? size(properties) > 1 : false", true),
        ("true", true),
    ] {
        assert_eq!(ask(rule), Ok(expected), "{rule}");
    }
}

#[test]
fn versions_are_compared_as_olm_compares_them() {
    let rule = |other: &str| {
        format!(
            "properties.exists(p, p.type == 'olm.package' && \
             semver_compare(p.value.version, '{other}') >= 0)"
        )
    };
    assert_eq!(ask(&rule("1.2")), Ok(true));
    assert_eq!(ask(&rule("1.2.0-rc.1")), Ok(true));
    assert_eq!(ask(&rule("v1.2.0+build")), Ok(true));
    assert_eq!(ask(&rule("1.2.1")), Ok(false));
    assert_eq!(ask(&rule("none")), Ok(false));
}

#[test]
fn manifests_are_not_seen_and_some_needs_are_seen_twice() {
    assert_eq!(ask("properties.exists(p, p.type == 'olm.bundle.object')"), Ok(false));
    assert_eq!(ask("properties.exists_one(p, p.type == 'olm.gvk.required')"), Ok(false));
    assert_eq!(ask("properties.size() == 5"), Ok(true));
}

#[test]
fn what_goes_wrong_with_one_bundle_is_not_satisfied() {
    // No property has such a field, and a text has none at all.
    assert_eq!(ask("properties.all(p, p.value.version == '1.2.0')"), Ok(false));
    assert_eq!(ask("properties[99].type == 'x'"), Ok(false));
    assert_eq!(ask("properties[1].value > 3"), Ok(false));
}

#[test]
fn what_is_no_rule_is_an_error_and_never_an_answer() {
    for (rule, kind) in [
        ("properties.exists(p, p.type ==", "Parse"),
        ("", "Parse"),
        ("1", "NotBoolean"),
        ("properties[1].value", "NotBoolean"),
        ("properties.map(p, p.type)", "NotBoolean"),
        ("props.exists(p, true)", "Unknown"),
        ("properties.exists(p, q.type == 'x')", "Unknown"),
        ("properties.exists(p, colour(p) == 'red')", "Unknown"),
        ("timestamp('2026-01-01T00:00:00Z') > timestamp('2025-01-01T00:00:00Z')", "Unknown"),
        ("1 == 'a'", "Types"),
        ("properties.type == 'a'", "Types"),
        ("1 && true", "Types"),
        ("'a' + 1 == 'a1'", "Types"),
        ("'abc'.startsWith(1)", "Types"),
    ] {
        assert_eq!(ask(rule).unwrap_err().kind(), kind, "{rule}");
    }
}

#[test]
fn hostile_rules_end_in_an_error() {
    assert_eq!(ask(&format!("'{}' == ''", "x".repeat(5000))).unwrap_err().kind(), "TooLong");
    for open in ["(", "[", "{", "!", "-", "a.b(", "properties.map(p, ", "a.", "1+", "true&&"] {
        let text = open.repeat(4000 / open.len());
        assert_eq!(ask(&text).unwrap_err().kind(), "TooDeep", "{open}");
        // As much of it as is let through is read without harm.
        let most = open.repeat(BRACKETS_MAX);
        let kind = ask(&most).unwrap_err().kind();
        assert!(matches!(kind, "Parse" | "TooDeep"), "{open} {kind}");
    }
    let sums = |count: usize| format!("{} > 0", vec!["1"; count].join("+"));
    assert_eq!(ask(&sums(DEPTH_MAX - 2)), Ok(true));
    assert!(matches!(ask(&sums(SIGNS_MAX)), Err(BadRule::TooDeep | BadRule::Parse { .. })));
    let ands = vec!["true"; SIGNS_MAX / 2].join(" && ");
    assert!(matches!(ask(&ands), Ok(true) | Err(BadRule::TooDeep | BadRule::Parse { .. })));
    let nested = |depth: usize| {
        let loops: Vec<String> = (0..depth).map(|n| format!("properties.all(p{n}, ")).collect();
        format!("{}true{}", loops.concat(), ")".repeat(depth))
    };
    assert_eq!(ask(&nested(1)), Ok(true));
    assert_eq!(ask(&nested(6)).unwrap_err().kind(), "TooCostly");
}
