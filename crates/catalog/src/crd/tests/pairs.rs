//! Served versions compared with each other, and the order of versions.

use super::{super::v1::by_age, *};

fn of_type(name: &str, type_name: &str) -> Value {
    version(name, &root(json!({ "field": { "type": type_name } })))
}

#[test]
fn new_versions_are_compared_with_each_other() {
    let old = definition(json!([of_type("v1alpha1", "string")]));
    // In another order than by age.
    let new = definition(json!([
        of_type("v1", "integer"),
        of_type("v1alpha1", "string"),
        of_type("v1beta1", "string"),
    ]));
    let diff = diff(&old, &new).unwrap();
    assert_eq!(
        held(&diff),
        [("v1alpha1 -> v1", "^.spec.field", "type"), ("v1beta1 -> v1", "^.spec.field", "type"),]
    );
    let mut pairs = diff.changes.iter().filter(|change| change.version.contains("->"));
    assert!(pairs.all(|change| change.class == Class::Risky));
    assert_eq!(diff.versions.added, ["v1", "v1beta1"]);
}

#[test]
fn what_a_later_version_lacks_counts_for_what_it_was() {
    let old = definition(json!([of_type("v1alpha1", "string")]));
    let later = version("v1", &root(json!({ "other": { "type": "string" } })));
    let new = definition(json!([of_type("v1alpha1", "string"), later]));
    // Its type is gone; that the field is gone is asked of one version only.
    assert_eq!(held(&diff(&old, &new).unwrap()), [("v1alpha1 -> v1", "^.spec.field", "type")]);
}

#[test]
fn what_the_old_versions_already_had_is_left_out() {
    let pair = |first: Value, second: Value| {
        definition(json!([
            version("v1alpha1", &root(json!({ "field": first }))),
            version("v1", &root(json!({ "field": second }))),
        ]))
    };
    let text = |more: &str| json!({ "type": "string", "format": more });
    let (string, integer) = (text(""), json!({ "type": "integer" }));
    let between = |old: &Value, new: &Value| -> Vec<String> {
        let diff = diff(old, new).unwrap();
        let pairs = held(&diff).into_iter().filter(|(version, ..)| version.contains("->"));
        pairs.map(|(_, _, rule)| rule.to_owned()).collect()
    };
    let known = pair(string.clone(), integer.clone());
    assert_eq!(between(&known, &known), [""; 0]);
    // Another finding of the same rule at the same place is not known.
    let boolean = json!({ "type": "boolean" });
    assert_eq!(between(&known, &pair(string.clone(), boolean)), ["type"]);
    // What has no rule is known if all of it is the same.
    let unhandled = pair(text("date"), string.clone());
    assert_eq!(between(&unhandled, &unhandled), [""; 0]);
    assert_eq!(between(&unhandled, &pair(text("uri"), string.clone())), ["unhandled"]);
    // A bound that both versions lower to the same is known by what it says.
    let bound = |max: u32| json!({ "type": "string", "maxLength": max });
    let old = pair(bound(8), bound(4));
    assert_eq!(between(&old, &pair(bound(8), bound(4))), [""; 0]);
    assert_eq!(between(&old, &pair(bound(9), bound(4))), ["maxLength"]);
    // Of a bound that is new only itself is said.
    let old = pair(string.clone(), bound(4));
    assert_eq!(between(&old, &pair(text("date"), bound(4))), ["unhandled"]);
}

#[test]
fn only_served_versions_are_compared_and_no_pairs_with_a_webhook() {
    let old = definition(json!([of_type("v1alpha1", "string")]));
    let mut new = definition(json!([of_type("v1alpha1", "string"), of_type("v1", "integer")]));
    assert!(diff(&old, &new).unwrap().refused_by_v1);
    let mut webhook = new.clone();
    webhook["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    assert_eq!(held(&diff(&old, &webhook).unwrap()), []);
    new["spec"]["versions"][1]["served"] = json!(false);
    assert_eq!(held(&diff(&old, &new).unwrap()), []);
}

#[test]
fn versions_that_are_not_served_are_compared_with_themselves() {
    let mut old = definition(json!([of_type("v1alpha1", "string"), of_type("v1", "string")]));
    let mut new = definition(json!([of_type("v1alpha1", "integer"), of_type("v1", "string")]));
    for definition in [&mut old, &mut new] {
        definition["spec"]["versions"][0]["served"] = json!(false);
    }
    let diff = diff(&old, &new).unwrap();
    assert_eq!(held(&diff), [("v1alpha1", "^.spec.field", "type")]);
    // But OLM v0 lists no objects of it.
    assert_eq!(diff.refused_by_v0, RefusedByV0::Never);
}

#[test]
fn versions_are_ordered_by_age() {
    let mut names = vec![
        "v2",
        "v1",
        "v10",
        "v11beta2",
        "v3beta1",
        "v1alpha2",
        "v1alpha1",
        "foo",
        "bar",
        "v1gamma1",
        "v1beta",
        "v1alpha1beta1",
    ];
    names.sort_by(|one, other| by_age(one, other));
    let expected = [
        "v1gamma1",
        "v1beta",
        "v1alpha1beta1",
        "foo",
        "bar",
        "v1alpha1",
        "v1alpha2",
        "v3beta1",
        "v11beta2",
        "v1",
        "v2",
        "v10",
    ];
    assert_eq!(names, expected);
}
