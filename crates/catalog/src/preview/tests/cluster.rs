use serde_json::{Value, json};
use wavelift_core::version::Version;

use super::bundle;
use crate::{
    fbc::RelatedImage,
    graph::Property,
    manifests::Manifests,
    preview::{
        Change, Compatibility, Confidence, Deprecated, Facts, Importance, OpenShift, OpenShiftSpan,
        Preview, Section, Source, Step, path,
    },
};

fn properties(values: &[(&str, Value)]) -> Vec<Property> {
    let property =
        |(kind, value): &(&str, Value)| Property { kind: (*kind).to_owned(), value: value.clone() };
    values.iter().map(property).collect()
}

/// Two versions of which the catalog has properties only.
fn of_properties(old: &[(&str, Value)], new: &[(&str, Value)]) -> Preview {
    let step = |version: &str, values| Step {
        name: format!("pump.v{version}"),
        version: Version::parse(version).ok(),
        facts: Facts { properties: properties(values), ..Facts::default() },
        ..Step::default()
    };
    path(&[step("1.0.0", old), step("1.1.0", new)])
}

#[test]
fn openshift_minors_are_read_as_the_platform_does() {
    let read = |value: Value| match OpenShift::of_property(&value) {
        Ok(minor) => minor.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(read(json!("4.22")), "4.22");
    assert_eq!(read(json!(4.22)), "4.22");
    assert_eq!(read(json!("4.22.0")), "4.22");
    assert_eq!(read(json!("v4.22")), "4.22");
    assert_eq!(read(json!("4.22.1")), "`4.22.1` is more than major and minor");
    assert_eq!(read(json!("4.22.0-rc.1")), "`4.22.0-rc.1` is more than major and minor");
    assert_eq!(read(json!("")), "it is empty");
    assert_eq!(read(json!("next")), "`next` is no version");
    assert_eq!(read(json!(["4.22"])), r#"`["4.22"]` is neither a text nor a number"#);
    // The minor after 4.22 has two names.
    assert_eq!(read(json!("4.23")), "5.0");
    assert_eq!(OpenShift::parse("4.23"), OpenShift::parse("5.0"));
    assert!(OpenShift::parse("4.22").unwrap() < OpenShift::parse("4.23").unwrap());
    assert_eq!(OpenShift::parse("4.24").unwrap(), OpenShift::new(5, 1));
}

#[test]
fn the_minors_that_a_bundle_is_published_for_have_four_forms() {
    let read = |text: &str| match OpenShiftSpan::parse(text) {
        Ok(span) => span.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(read("v4.12"), "4.12 and later");
    assert_eq!(read(" =v4.14 "), "4.14 only");
    assert_eq!(read("v4.12-v4.16"), "4.12 to 4.16");
    assert_eq!(read("v4.6, v4.5"), "4.5 and later");
    assert_eq!(read("v4.12-"), "it is empty");
    assert_eq!(read("all"), "`all` is no version");
}

#[test]
fn the_last_openshift_minor_says_what_it_means_or_why_it_means_nothing() {
    let key = Property::MAX_OPENSHIFT_VERSION;
    let check = |old: &[Value], new: &[Value], expected: [Option<&str>; 4]| {
        let of = |values: &[Value]| values.iter().map(|v| (key, v.clone())).collect::<Vec<_>>();
        let preview = of_properties(&of(old), &of(new));
        let max = preview.overall.compatibility.max_openshift_version.unwrap();
        let found = [&max.old, &max.new, &max.meaning, &max.problem].map(|text| text.as_deref());
        assert_eq!(found, expected);
    };
    check(&[], &[json!("4.23")], [None, Some("4.23"), Some("5.0"), None]);
    check(&[json!(4.18)], &[], [Some("4.18"), None, None, None]);
    let problem = Some("`4.19.2` is more than major and minor");
    check(&[json!("4.18")], &[json!("4.19.2")], [Some("4.18"), Some("4.19.2"), None, problem]);
    check(
        &[],
        &[json!("4.18"), json!("4.19")],
        [None, Some("4.18 and 4.19"), None, Some("it is there 2 times")],
    );
    let preview = of_properties(&[], &[(key, json!(""))]);
    let headline = preview.summary.iter().find(|h| h.section == Section::Compatibility).unwrap();
    assert_eq!(headline.importance, Importance::High);
    let nothing = of_properties(&[], &[]).overall.compatibility;
    assert_eq!(nothing, Compatibility::default());
}

#[test]
fn needs_are_compared_by_what_is_needed() {
    let package = |name: &str, range: &str| {
        (Property::PACKAGE_REQUIRED, json!({"packageName": name, "versionRange": range}))
    };
    let api =
        (Property::GVK_REQUIRED, json!({"group": "example.com", "kind": "Pipe", "version": "v1"}));
    let constraint = (Property::CONSTRAINT, json!({"failureMessage": "a pipe", "any": {}}));
    let old = [package("pipes", ">=1.0.0"), package("valves", "1.0.0"), package("taps", "2.0.0")];
    let new = [package("pipes", ">=2.0.0"), package("taps", "2.0.0"), api, constraint];
    let preview = of_properties(&old, &new);
    let lines: Vec<String> = preview
        .overall
        .compatibility
        .dependencies
        .iter()
        .map(|d| {
            let range = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            format!("{:?} {:?} {} {} {}", d.change, d.kind, d.name, range(&d.old), range(&d.new))
        })
        .collect();
    assert_eq!(
        lines,
        [
            "Changed Package pipes >=1.0.0 >=2.0.0",
            "Gained Api Pipe.v1.example.com - -",
            r#"Gained Constraint a pipe - {"any":{},"failureMessage":"a pipe"}"#,
            "Lost Package valves 1.0.0 -",
        ]
    );
}

#[test]
fn a_required_crd_and_its_property_are_one_need() {
    let spec = json!({"customresourcedefinitions": {"required": [
        {"name": "pipes.example.com", "kind": "Pipe", "version": "v1"},
    ]}});
    let new = bundle("1.1.0", spec, &[]);
    let old = bundle("1.0.0", json!({}), &[]);
    let api = json!({"group": "example.com", "kind": "Pipe", "version": "v1"});
    let mut step = Step::of_manifests(&new).unwrap();
    step.facts.properties = properties(&[(Property::GVK_REQUIRED, api)]);
    let preview = path(&[Step::of_manifests(&old).unwrap(), step]);
    assert_eq!(preview.overall.compatibility.dependencies.len(), 1);
}

#[test]
fn install_modes_and_kubernetes_come_from_csv_or_catalog() {
    let modes = |own: bool, all: bool| {
        json!([
            {"type": "OwnNamespace", "supported": own},
            {"type": "AllNamespaces", "supported": all},
        ])
    };
    let old_spec = json!({"installModes": modes(true, false), "minKubeVersion": "1.25.0"});
    let new_spec = json!({"installModes": modes(false, true), "minKubeVersion": "1.29.0"});
    let check = |preview: &Preview, source: Source| {
        let compatibility = &preview.overall.compatibility;
        let modes: Vec<_> =
            compatibility.install_modes.iter().map(|m| (m.mode.as_str(), m.change)).collect();
        assert_eq!(modes, [("AllNamespaces", Change::Gained), ("OwnNamespace", Change::Lost)]);
        let min = compatibility.min_kube_version.as_ref().unwrap();
        assert_eq!((min.old.as_deref(), min.new.as_deref()), (Some("1.25.0"), Some("1.29.0")));
        assert_eq!(min.source, source);
    };
    let bundles = [bundle("1.0.0", old_spec.clone(), &[]), bundle("1.1.0", new_spec.clone(), &[])];
    check(&super::preview(&bundles), Source::FromManifests);
    let step = |metadata| Step {
        facts: Facts { csv_metadata: Some(metadata), ..Facts::default() },
        ..Step::default()
    };
    let preview = path(&[step(&old_spec), step(&new_spec)]);
    check(&preview, Source::FromCatalog);
    // The catalog tells that much, but not the rest.
    let missing = &preview.overall.missing[0].sections;
    assert!(!missing.contains(&Section::Compatibility));
    assert!(missing.contains(&Section::Permissions));
}

#[test]
fn related_images_of_the_catalog_count_without_manifests() {
    let image = |image: &str| RelatedImage { name: String::new(), image: image.to_owned() };
    let step = |images: &[&str]| Step {
        facts: Facts {
            related_images: images.iter().map(|of| image(of)).collect(),
            ..Facts::default()
        },
        ..Step::default()
    };
    let preview = path(&[step(&["r.example/a:1"]), step(&["r.example/a:2", ""])]);
    let [image] = preview.overall.images.as_slice() else { panic!("{preview:?}") };
    assert_eq!((image.image.as_str(), image.source), ("r.example/a:2", Source::FromCatalog));
    assert!(!preview.overall.missing[1].sections.contains(&Section::Images));
    assert_eq!(preview.overall.images_gone, ["r.example/a:1"]);
}

#[test]
fn images_in_the_environment_are_told_apart() {
    let with_env = |version: &str, values: &[(&str, &str)]| -> Manifests {
        let env: Vec<_> =
            values.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let container = json!({"name": "c", "image": "r.example/pump:1", "env": env});
        let pod = json!({"containers": [container]});
        let deployment = json!({"name": "pump", "spec": {"template": {"spec": pod}}});
        bundle(version, json!({"install": {"spec": {"deployments": [deployment]}}}), &[])
    };
    let new = with_env(
        "1.1.0",
        &[
            ("RELATED_IMAGE_SIDE", "r.example/side@sha256:aa"),
            ("PUMP_IMAGES", "1.0=r.example/tool:1.0\n1.1=r.example/tool:1.1\n"),
            ("IMAGE_PULL_POLICY", "Always"),
            ("IMAGE_DOCS", "https://pump.example/a:b"),
            ("OWN_IMAGE", "r.example/pump:1"),
            ("OTHER", "r.example/other:1"),
        ],
    );
    let old = with_env("1.0.0", &[("PUMP_IMAGES", "1.0=r.example/tool:1.0")]);
    let preview = super::preview(&[old, new]);
    let images = &preview.overall.images_in_environment;
    let found: Vec<_> = images.iter().map(|i| (i.image.as_str(), i.is_new)).collect();
    assert_eq!(
        found,
        [
            ("r.example/side@sha256:aa", true),
            ("r.example/tool:1.0", false),
            ("r.example/tool:1.1", true),
        ]
    );
    assert!(images.iter().all(|image| image.confidence == Confidence::Inferred));
    assert_eq!(preview.overall.images.len(), 1);
}

#[test]
fn deprecations_are_told_once_with_the_last_word() {
    let step = |name: &str, deprecated: &[(Deprecated, &str)]| Step {
        name: name.to_owned(),
        facts: Facts {
            deprecated: deprecated.iter().map(|(of, text)| (of.clone(), (*text).into())).collect(),
            ..Facts::default()
        },
        ..Step::default()
    };
    let channel = || Deprecated::Channel("stable".to_owned());
    let preview = path(&[
        step("pump.v1.0.0", &[(Deprecated::Bundle, "installed")]),
        step("pump.v1.1.0", &[(channel(), "old word"), (Deprecated::Bundle, "one")]),
        step("pump.v1.2.0", &[(channel(), "new word"), (Deprecated::Bundle, "two")]),
    ]);
    let told: Vec<_> = preview
        .overall
        .compatibility
        .deprecations
        .iter()
        .map(|d| (d.of.clone(), d.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [(channel(), "new word"), (Deprecated::Bundle, "two"), (Deprecated::Bundle, "one")]
    );
}

#[test]
fn the_lifecycle_of_both_versions_is_told() {
    let document = json!({
        "schema": "io.openshift.operators.lifecycles.v1alpha1", "package": "pump",
        "versions": [
            {"name": "1.0", "phases": [{"name": "full", "endDate": "2026-01-31"}]},
            {
                "name": "1.1",
                "phases": [
                    {"name": "full", "startDate": "2025-11-01", "endDate": "2026-06-30"},
                    {"name": "maintenance", "startDate": "2026-07-01", "endDate": "2027-06-30"},
                ],
                "platformCompatibility": [{"name": "openshift", "versions": ["4.18", "4.19"]}],
            },
        ],
    });
    let step = |version: &str| Step {
        version: Version::parse(version).ok(),
        facts: Facts { documents: vec![&document], ..Facts::default() },
        ..Step::default()
    };
    let preview = path(&[step("1.0.3"), step("1.1.0-rc.1")]);
    let [old, new] = preview.overall.compatibility.lifecycle.as_slice() else {
        panic!("{:?}", preview.overall.compatibility)
    };
    assert_eq!((old.version.as_str(), old.ends.as_deref()), ("1.0", Some("2026-01-31")));
    assert_eq!((new.version.as_str(), new.ends.as_deref()), ("1.1", Some("2027-06-30")));
    assert_eq!(new.phases[1].start_date.as_deref(), Some("2026-07-01"));
    assert_eq!(new.platforms[0].versions, ["4.18", "4.19"]);
    assert_eq!(new.source, Source::FromLifecycle);
}

#[test]
fn a_lifecycle_document_of_another_form_is_missing_not_empty() {
    // A version without quotes is a number in YAML, and 4.20 is 4.2 then.
    let document = json!({
        "schema": "io.openshift.operators.lifecycles.v1alpha1", "package": "pump",
        "versions": [{"name": "1.1", "platformCompatibility": [{"name": "x", "versions": [4.2]}]}],
    });
    let step = |version: &str| Step {
        version: Version::parse(version).ok(),
        facts: Facts { documents: vec![&document], ..Facts::default() },
        ..Step::default()
    };
    let overall = path(&[step("1.0.0"), step("1.1.0")]).overall;
    assert!(overall.compatibility.lifecycle.is_empty());
    let mut missing = overall.missing.iter().filter(|m| m.reason.contains("lifecycle"));
    let missing = (missing.next().unwrap(), missing.next());
    assert_eq!(missing.0.sections, [Section::Compatibility]);
    assert!(missing.0.reason.contains("invalid type: floating point"), "{:?}", missing.0);
    assert_eq!(missing.1, None);
}
