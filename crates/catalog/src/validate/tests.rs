use super::*;
use crate::Limits;

/// A catalog that nothing is wrong with.
const GOOD: &str = r#"
schema: olm.package
name: alpha
defaultChannel: stable
---
schema: olm.channel
package: alpha
name: stable
entries:
  - {name: alpha.v1.2.0, replaces: alpha.v1.0.0, skips: [alpha.v1.1.0], skipRange: "<1.2.0"}
  - {name: alpha.v1.0.0, replaces: alpha.v0.9.0}
---
schema: olm.bundle
package: alpha
name: alpha.v1.0.0
image: registry.example.com/alpha/bundle@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
properties: [{type: olm.package, value: {packageName: alpha, version: 1.0.0}}]
---
schema: olm.bundle
package: alpha
name: alpha.v1.2.0
image: registry.example.com:5000/alpha/bundle:v1.2.0
properties: [{type: olm.package, value: {packageName: alpha, version: 1.2.0}}]
---
schema: olm.deprecations
package: alpha
entries:
  - {reference: {schema: olm.package}, message: gone}
  - {reference: {schema: olm.bundle, name: alpha.v1.0.0}, message: old}
"#;

fn problems(text: &str) -> Vec<String> {
    let fbc = Fbc::parse("test", text.as_bytes(), &Limits::default()).unwrap();
    validate(&fbc).iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(from: &str, to: &str, expected: &[&str]) {
    assert!(GOOD.contains(from), "`{from}` is not there to be replaced");
    assert_eq!(problems(&GOOD.replacen(from, to, 1)), expected, "`{from}` -> `{to}`");
}

#[test]
fn a_good_catalog_has_no_problem() {
    assert_eq!(problems(GOOD), [] as [&str; 0]);
}

#[test]
fn packages() {
    let none = "package `alpha`: default channel is not set";
    check("defaultChannel: stable", "description: x", &[none]);
    let unknown = "package `alpha`: default channel `fast` does not exist";
    check("defaultChannel: stable", "defaultChannel: fast", &[unknown]);
    let twice = format!("{GOOD}\n---\nschema: olm.package\nname: alpha\ndefaultChannel: stable");
    assert_eq!(problems(&twice), ["package `alpha`: is defined twice"]);
    let other = format!("{GOOD}\n---\nschema: olm.package\nname: Be.ta");
    assert_eq!(
        problems(&other),
        [
            "package `Be.ta`: name is not a DNS label",
            "package `Be.ta`: has no channel",
            "package `Be.ta`: default channel is not set",
        ]
    );
    let lost = format!("{GOOD}\n---\nschema: olm.channel\npackage: beta\nname: x");
    assert_eq!(problems(&lost), ["package `beta`, channel `x`: package is not defined"]);
}

#[test]
fn chains() {
    check(
        "replaces: alpha.v1.0.0, ",
        "",
        &["package `alpha`, channel `stable`: has several heads: alpha.v1.0.0, alpha.v1.2.0"],
    );
    check(
        "replaces: alpha.v0.9.0",
        "replaces: alpha.v1.2.0",
        &["package `alpha`, channel `stable`: has no head"],
    );
    check(
        "replaces: alpha.v0.9.0",
        "replaces: alpha.v1.0.0",
        &["package `alpha`, channel `stable`: chain of replacement comes back to `alpha.v1.0.0`"],
    );
    // skipRange is no edge of the chain.
    check("replaces: alpha.v1.0.0, skips: [alpha.v1.1.0]", "skips: [alpha.v1.0.0]", &[]);
}

#[test]
fn a_skipped_entry_ends_the_chain_and_strands_what_is_behind_it() {
    let more = "  - {name: alpha.v1.0.0, replaces: alpha.v0.9.0}\n  - {name: alpha.v0.9.0}";
    let text = GOOD
        .replace("skips: [alpha.v1.1.0]", "skips: [alpha.v1.0.0]")
        .replace("  - {name: alpha.v1.0.0, replaces: alpha.v0.9.0}", more);
    assert_eq!(
        problems(&text),
        [
            "package `alpha`, channel `stable`: entries are not on the chain from the head: alpha.v0.9.0",
            "package `alpha`, channel `stable`, entry `alpha.v0.9.0`: has no bundle",
        ]
        .into_iter()
        .rev()
        .collect::<Vec<_>>()
    );
}

#[test]
fn entries() {
    let place = "package `alpha`, channel `stable`, entry `alpha.v1.2.0`";
    check("[alpha.v1.1.0]", "['']", &[&format!("{place}: skips an empty name")]);
    check("\"<1.2.0\"", "~1.2.0", &[&format!("{place}: skipRange `~1.2.0` does not parse")]);
    let entry = "  - {name: alpha.v1.0.0, replaces: alpha.v0.9.0}";
    let twice = "package `alpha`, channel `stable`, entry `alpha.v1.0.0`: is defined twice";
    check(entry, &format!("{entry}\n{entry}"), &[twice]);
}

#[test]
fn bundles() {
    let place = "package `alpha`, bundle `alpha.v1.2.0`";
    let value = "{packageName: alpha, version: 1.2.0}";
    let property = format!("{{type: olm.package, value: {value}}}");
    check(&property, "", &[&format!("{place}: has 0 olm.package properties, must have 1")]);
    check(
        value,
        "{packageName: beta, version: 1.2.0}",
        &[&format!("{place}: olm.package property names `beta`")],
    );
    check(
        value,
        "{packageName: alpha, version: v1.2.0}",
        &[&format!(
            "{place}: version `v1.2.0`: major `v1` is not a number without leading zeros below 2^64"
        )],
    );
    check(
        value,
        "{packageName: alpha, version: 1.0.0}",
        &["package `alpha`: version 1.0.0 is that of several bundles: alpha.v1.0.0, alpha.v1.2.0"],
    );
    // Build metadata makes another version text.
    check(value, "{packageName: alpha, version: 1.0.0+b}", &[]);
    check(
        value,
        "{packageName: alpha, version: 1.2.0, release: '3'}",
        &[&format!(
            "{place}: with a release, name must be `alpha-v1.2.0-3` and version without build metadata"
        )],
    );
    let image = "registry.example.com:5000/alpha/bundle:v1.2.0";
    check(image, "''", &[&format!("{place}: has neither image nor inline manifests")]);
    check(image, "$IMAGE", &[&format!("{place}: image `$IMAGE` is no pull specification")]);
    for (more, problem) in [
        ("{type: a.b}", "property of type `a.b` has no value"),
        ("{type: olm.bundle.object, value: {data: '*'}}", "inline manifest 0 can't be read"),
        // `a: b: c` is no YAML; `{aa` would be no JSON, but nobody looks.
        (
            "{type: olm.bundle.object, value: {data: YTogYjogYw==}}",
            "inline manifest 0 can't be read",
        ),
        ("{type: olm.bundle.object, value: {data: e2Fh}}", ""),
        (
            "{type: olm.csv.metadata, value: {annotations: {a: 1}}}",
            "property of type `olm.csv.metadata` has a bad value: annotations: a: invalid type: \
             integer `1`, expected a text at line 1 column 21",
        ),
        ("{type: olm.constraint, value: {unknown: 1}}", ""),
    ] {
        let problem = format!("{place}: {problem}");
        let expected: &[&str] = if problem.ends_with(": ") { &[] } else { &[&problem] };
        check(&property, &format!("{property}, {more}"), expected);
    }
    let lost = "package `alpha`, bundle `alpha.v9`: is in no channel";
    let more = "\n---\nschema: olm.bundle\npackage: alpha\nname: alpha.v9\nimage: r.example.com/a\n\
                properties: [{type: olm.package, value: {packageName: alpha, version: 9.0.0}}]";
    assert_eq!(problems(&format!("{GOOD}{more}")), [lost]);
}

#[test]
fn deprecations() {
    let place = "package `alpha`, deprecations";
    check(
        "message: old",
        "message: ''",
        &[&format!("{place}: deprecation of olm.bundle `alpha.v1.0.0` has no message")],
    );
    check(
        "schema: olm.bundle, name: alpha.v1.0.0}",
        "schema: olm.bundle, name: alpha.v7}",
        &[&format!("{place}: olm.bundle `alpha.v7` does not exist")],
    );
    check(
        "schema: olm.package}",
        "schema: olm.package, name: alpha}",
        &[&format!("{place}: reference to the package has the name `alpha`")],
    );
    check(
        "schema: olm.package}",
        "schema: olm.bundle, name: alpha.v1.0.0}",
        &[&format!("{place}: olm.bundle `alpha.v1.0.0` is deprecated twice")],
    );
}

#[test]
fn pull_specifications() {
    let digest = "a".repeat(64);
    for good in [
        "alpine",
        "library/alpine:3",
        "quay.io/org/name",
        "quay.io/org/name:v1.0_x-y",
        "localhost/a",
        "localhost:5000/a/b__c/d-e--f.g",
        "[::1]:5000/a",
        "UPPER.example.com/a",
        &format!("quay.io/a@sha256:{digest}"),
        &format!("quay.io/a:tag@sha256:{digest}"),
    ] {
        assert!(image::is_pull_specification(good), "{good}");
    }
    for bad in [
        "",
        "$IMAGE",
        "Alpine",
        "quay.io/Org/name",
        "quay.io/a/",
        "quay.io//a",
        "a___b",
        "a..b",
        "-a",
        "a:",
        "a:-x",
        "a:b:c",
        "quay.io:x/a",
        "-a.example.com/b",
        "https://quay.io/a",
        &digest,
        "a@sha256:abc",
        &format!("a@md5:{digest}"),
        &format!("quay.io/{}", "a".repeat(250)),
    ] {
        assert!(!image::is_pull_specification(bad), "{bad}");
    }
}
