use serde_json::json;
use wavelift_api::labels;
use wavelift_catalog::{engine::CatalogKey, pin::Kept};
use wavelift_core::plan::{Move, Step, Via};

use super::*;
use crate::objects::{CatalogSource, Subscription};

fn mk_pin() -> Pin {
    let catalog = CatalogKey { name: "own".to_owned(), namespace: "market".to_owned() };
    let kept = Kept {
        package: "oak".to_owned(),
        channel: "stable".to_owned(),
        csv: "oak.v1.1.0".to_owned(),
        catalog,
    };
    Pin {
        holder: "home/go".to_owned(),
        csvs: vec!["oak.v1.1.0".to_owned()],
        digest: "sha256:0".to_owned(),
        kept: vec![kept],
    }
}

fn subscription(source: &str, annotations: &serde_json::Value) -> Subscription {
    serde_json::from_value(json!({
        "metadata": {"name": "oak", "namespace": "trees", "annotations": annotations},
        "spec": {"name": "oak", "source": source, "sourceNamespace": "trees"},
    }))
    .unwrap()
}

#[test]
fn what_is_pinned_is_read_again_from_the_cluster() {
    let pin = mk_pin();
    let made = manifest(&pin, "trees", "agent.home.svc:50051");
    assert_eq!(made["spec"]["address"], "agent.home.svc:50051");
    let source: CatalogSource = serde_json::from_value(made).unwrap();
    assert!(is_ours(&source));
    assert_eq!(pin_of(&source), Some(pin));
    let mut foreign = source.clone();
    foreign.metadata.labels = None;
    assert_eq!(pin_of(&foreign), None);
    let mut broken = source;
    broken.metadata.annotations = Some([(labels::PIN.to_owned(), "{}".to_owned())].into());
    assert_eq!(pin_of(&broken), None);
}

#[test]
fn another_content_has_another_name() {
    let mut other = mk_pin();
    other.kept[0].csv = "oak.v1.2.0".to_owned();
    assert_eq!(mk_pin().source_name(), mk_pin().source_name());
    assert_ne!(mk_pin().source_name(), other.source_name());
}

#[test]
fn a_pin_is_for_one_step_of_one_upgrade() {
    let step = |to: &str| Step {
        namespace: "trees".try_into().unwrap(),
        moves: vec![Move {
            package: "oak".try_into().unwrap(),
            from: Some("oak.v1.0.0".try_into().unwrap()),
            to: to.try_into().unwrap(),
            from_version: None,
            to_version: String::new(),
        }],
        via: Via::PinnedCatalog,
    };
    assert!(mk_pin().is_for("home/go", &step("oak.v1.1.0")));
    assert!(!mk_pin().is_for("home/other", &step("oak.v1.1.0")));
    assert!(!mk_pin().is_for("home/go", &step("oak.v1.2.0")));
}

#[test]
fn a_pinned_subscription_still_has_its_own_catalog() {
    let name = mk_pin().source_name();
    let plain = subscription("own", &json!({}));
    assert_eq!(plain.own_source(), ("trees", "own"));
    assert!(!is_pinned(&plain) && !is_ours_by_name(&plain));
    let pinned = subscription(&name, &json!({labels::SOURCE_BEFORE: "market/own"}));
    assert_eq!(pinned.own_source(), ("market", "own"));
    assert!(is_pinned(&pinned) && is_ours_by_name(&pinned) && points_at(&pinned, &name));
}
