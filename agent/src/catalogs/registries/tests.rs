use serde_json::{Value, json};
use wavelift_catalog::catalog::Stated;

use super::*;
use crate::{
    objects::CatalogSource,
    tests::{
        registry::{Fake, settings},
        rig,
    },
};

fn registries(settings: Settings) -> (Registries, CancellationToken) {
    let stop = CancellationToken::new();
    (Registries::new(settings, &metrics::Metrics::new(), stop.clone()).unwrap(), stop)
}

fn source(name: &str, uid: &str, spec: &Value, status: &Value) -> Asked {
    let object = json!({"metadata": {"namespace": "market", "name": name, "uid": uid},
        "spec": spec, "status": status});
    Asked::of(serde_json::from_value(object).unwrap())
}

fn at(address: &str, name: &str, uid: &str) -> Asked {
    source(name, uid, &json!({"address": address}), &json!({}))
}

/// Waits until reading does not say that it is under way.
async fn known(registries: &Registries, asked: &Asked) -> Result<Arc<Catalog>, Error> {
    let mut changes = registries.changes().unwrap();
    loop {
        match registries.read(asked).await {
            Err(Error::Reading(_)) => changes.changed().await.unwrap(),
            read => return read,
        }
    }
}

#[test]
fn the_address_is_the_one_that_was_given_else_the_one_that_olm_connects_to() {
    let connected = |address: &str, last: &Value| {
        json!({"connectionState": {"address": address, "lastConnect": last,
            "lastObservedState": "READY"}})
    };
    for (spec, status, expected) in [
        (json!({}), json!({}), None),
        (json!({"address": ""}), connected("", &Value::Null), None),
        (json!({"address": null}), connected("b:1", &Value::Null), Some(("b:1", None))),
        (json!({}), connected("b:1", &json!("now")), Some(("b:1", Some("now")))),
        (json!({"address": "a:1"}), connected("b:1", &json!("now")), Some(("a:1", Some("now")))),
    ] {
        let asked = source("own", "u", &spec, &status);
        let source: &CatalogSource = &asked.source;
        let found = source.address().map(|address| (address, source.last_connect()));
        assert_eq!(found, expected);
    }
}

#[test]
fn no_pause_is_longer_than_it_may_be() {
    let (registries, _stop) = registries(Settings::default());
    for _ in 0..20 {
        let pauses: Vec<Duration> = registries.reading.pauses().take(30).collect();
        assert!(pauses[0] >= Duration::from_secs(2) && pauses[0] <= Duration::from_secs(4));
        assert!(pauses[29] >= Duration::from_secs(150), "it slows down: {pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_mins(5)), "{pauses:?}");
    }
}

#[tokio::test]
async fn few_are_read_at_the_same_time_and_no_more_than_some_at_all() {
    let (registry, address) = Fake::serve(rig::catalog()).await;
    registry.open(false);
    let settings = Settings { readings_max: 1, sources_max: 3, ..settings() };
    let (registries, _stop) = registries(settings);
    let all = ["a", "b", "c"].map(|name| at(&address, name, "u"));
    for asked in &all {
        assert_eq!(registries.read(asked).await.unwrap_err().kind(), "reading");
    }
    let more = registries.read(&at(&address, "d", "u")).await.unwrap_err();
    assert_eq!(
        more.to_string(),
        "catalog market/d is not read: the agent reads 3 catalogs at most"
    );
    registry.begun(1).await;
    registry.open(true);
    for asked in &all {
        assert_eq!(known(&registries, asked).await.unwrap().digest(), rig::catalog().digest());
    }
    assert_eq!((registry.readings().begun, registry.readings().at_once), (3, 1));
}

#[tokio::test]
async fn what_is_gone_or_another_object_is_forgotten_and_all_ends_with_the_agent() {
    let (registry, address) = Fake::serve(rig::catalog()).await;
    let (registries, stop) = registries(settings());
    let asked = at(&address, "own", "first");
    known(&registries, &asked).await.unwrap();
    let task =
        |registries: &Registries| registries.sources.lock().values().next().unwrap().wanted.clone();
    // The same name, another object.
    let first = task(&registries);
    registry.open(false);
    let again = at(&address, "own", "second");
    assert_eq!(registries.read(&again).await.unwrap_err().kind(), "reading");
    first.closed().await;
    let second = task(&registries);
    registries.retain(&BTreeSet::from([again.key()]));
    assert!(!second.is_closed());
    registries.retain(&BTreeSet::new());
    second.closed().await;
    assert!(registries.sources.lock().is_empty());
    registries.read(&again).await.unwrap_err();
    let third = task(&registries);
    stop.cancel();
    third.closed().await;
}

#[tokio::test]
async fn a_catalog_has_what_authors_wrote_for_its_packages_and_what_bundles_need() {
    let (_registry, address) = Fake::serve(rig::catalog()).await;
    let (registries, _stop) = registries(settings());
    let mut asked = at(&address, "own", "u");
    asked.packages = BTreeSet::from(["oak".to_owned()]);
    let catalog = known(&registries, &asked).await.unwrap();
    assert_eq!(catalog.documents("oak").len(), 1);
    assert!(catalog.contents().documents("oak").is_some());
    assert_eq!(catalog.min_kube_version("fir", "fir.v2.0.0"), Stated::Unread);
    // Another package has become worth knowing of. The digest is the same, so nobody is woken.
    asked.packages.insert("fir".to_owned());
    let mut known = registries.sources.lock().values().next().unwrap().known.clone();
    let mut changes = registries.changes().unwrap();
    known.mark_unchanged();
    changes.mark_unchanged();
    registries.read(&asked).await.unwrap();
    known.changed().await.unwrap();
    let catalog = registries.read(&asked).await.unwrap();
    assert_eq!(catalog.min_kube_version("fir", "fir.v2.0.0"), Stated::As("1.99.0"));
    assert_eq!(catalog.min_kube_version("oak", "oak.v2.0.0"), Stated::Nothing);
    assert!(!changes.has_changed().unwrap());
}
