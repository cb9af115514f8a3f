use serde_json::json;

use super::{GADGET, mk_gadget, server};

#[track_caller]
fn check(spec: &serde_json::Value, expected: &str) {
    let server = server();
    let result = server.store().create(&GADGET, mk_gadget("a", spec));
    match (expected, result) {
        ("", Ok(_)) => {}
        (expected, Err(error)) => {
            assert_eq!(error.code, 422);
            assert_eq!(
                error.message,
                format!("Gadget.test.wavelift.io \"a\" is invalid: {expected}")
            );
        }
        (expected, Ok(made)) => panic!("expected {expected:?}, got {made}"),
    }
}

#[test]
fn values_are_judged_by_their_schema() {
    check(&json!({"size": 9, "note": "all fine"}), "");
    check(&json!({}), "spec.size: Required value");
    check(
        &json!({"size": 10}),
        "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9",
    );
    check(
        &json!({"size": "1"}),
        "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
    );
    check(
        &json!({"size": 1, "colour": "blue"}),
        "spec.colour: Unsupported value: \"blue\": supported values: \"red\", \"green\"",
    );
    check(
        &json!({"size": 1, "note": "too long a note"}),
        "spec.note: Too long: may not be more than 8 bytes",
    );
    check(
        &json!({"size": 1, "note": "UP"}),
        "spec.note: Invalid value: \"UP\": spec.note in body should match '^[a-z ]*$'",
    );
    check(
        &json!({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]}),
        "spec.parts[1]: Duplicate value: {\"name\":\"a\"}",
    );
    check(&json!({"size": 1, "parts": [{"count": 1}]}), "spec.parts[0].name: Required value");
    let five: Vec<_> = (0..5).map(|n| json!({"name": n.to_string()})).collect();
    check(&json!({"size": 1, "parts": five}), "spec.parts: Too many: 5: must have at most 4 items");
    check(
        &json!({"size": 0, "colour": "blue"}),
        "[spec.colour: Unsupported value: \"blue\": supported values: \"red\", \"green\", \
         spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1]",
    );
}

#[test]
fn unknown_fields_go_and_defaults_come() {
    let server = server();
    let spec = json!({"size": 1, "unknown": 1, "colour": null, "parts": [{"name": "a", "odd": 1}],
        "free": {"anything": {"goes": true}}});
    let made = server.store().create(&GADGET, mk_gadget("a", &spec)).unwrap();
    assert_eq!(
        made["spec"],
        json!({"size": 1, "colour": "red", "parts": [{"name": "a", "count": 1}],
        "free": {"anything": {"goes": true}}})
    );
}
