//! Catalogs that come from the registries of the cluster's own CatalogSources.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::json;
use wavelift_catalog::{Catalog, Fbc, Limits, release};
use wavelift_core::inventory::Inventory;
use wavelift_sim::{apiserver::gk, cluster::Approval::Manual};

use super::{
    registry::{Fake, settings},
    rig::{self, MARKET, Rig},
};

fn digest(inventory: &Inventory) -> Option<&str> {
    inventory.catalogs.iter().find(|source| source.name == "own")?.digest.as_deref()
}

impl Rig {
    /// Tells OLM's word of a connection to the registry at `address`.
    fn connected(&self, address: &str, at: &str) {
        let modified = self.store().modify(&gk::CATALOG_SOURCE, Some(MARKET), "own", |source| {
            source["spec"] = json!({"sourceType": "grpc", "image": "registry.example.com/own:1"});
            source["status"]["connectionState"] =
                json!({"address": address, "lastConnect": at, "lastObservedState": "READY"});
        });
        modified.unwrap();
    }
}

#[tokio::test]
async fn a_catalog_is_read_from_its_registry_and_stays_when_that_is_gone() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    let (registry, address) = Fake::serve(rig::catalog()).await;
    registry.open(false);
    rig.connected(&address, "2020-01-01T00:00:00Z");
    let homeless = json!({"metadata": {"namespace": MARKET, "name": "homeless"},
        "spec": {"sourceType": "grpc", "image": "registry.example.com/homeless:1"}});
    rig.store().create(&gk::CATALOG_SOURCE, homeless).unwrap();
    let (agent, mut line) = rig.agent_with(settings());
    let first = line.announced(|inventory| !inventory.catalogs.is_empty()).await;
    assert_eq!(digest(&first), None);
    for expected in [
        "catalog openshift-marketplace/own is being read for the first time",
        "catalog openshift-marketplace/homeless has no address yet: \
         neither its status nor its spec says where its registry is",
    ] {
        assert!(first.unread.iter().any(|line| line == expected), "{:?}", first.unread);
    }

    // What it serves is what the files say.
    registry.open(true);
    let read = line.announced(|inventory| digest(inventory).is_some()).await;
    assert_eq!(digest(&read), Some(rig::catalog().digest().as_str()));
    assert!(!read.unread.iter().any(|line| line.contains("/own")), "{:?}", read.unread);

    // It is gone, and OLM has noticed.
    registry.set(None);
    rig.connected(&address, "2020-01-01T01:00:00Z");
    let counted = |result: &str, count: u32| {
        let line = format!("wavelift_agent_catalog_readings_total{{result=\"{result}\"}} {count}");
        agent.metrics.encode().unwrap().contains(&line)
    };
    while !counted("call", 1) {
        line.inventory().await;
    }
    assert_eq!(digest(&line.inventory().await), Some(rig::catalog().digest().as_str()));

    // It is back with another catalog.
    registry.set(Some(with_documents_of("oak", "3.0.0")));
    rig.connected(&address, "2020-01-01T02:00:00Z");
    let after = line.announced(|inventory| digest(inventory) != digest(&read)).await;
    assert_eq!(digest(&after), Some(with_documents_of("oak", "3.0.0").digest().as_str()));
    assert!(counted("new", 2), "{}", agent.metrics.encode().unwrap());

    // OLM has another connection to what is the same.
    rig.connected(&address, "2020-01-01T03:00:00Z");
    while !counted("same", 1) {
        line.inventory().await;
    }
    assert_eq!(line.inventory().await.catalogs, after.catalogs);
}

#[tokio::test]
async fn the_first_announcement_waits_for_the_first_reading() {
    let mut rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    rig.timings.first_readings = SignedDuration::from_hours(24 * 365);
    let (registry, address) = Fake::serve(rig::catalog()).await;
    registry.open(false);
    rig.connected(&address, "2020-01-01T00:00:00Z");
    let (_agent, mut line) = rig.agent_with(settings());
    registry.begun(1).await;
    registry.open(true);
    // What was announced first is the whole: nothing was said while it was being read.
    let first = line.digest().await;
    let inventory = line.inventory().await;
    assert_eq!(first, inventory.digest());
    assert_eq!(digest(&inventory), Some(rig::catalog().digest().as_str()));
}

#[tokio::test]
async fn a_registry_that_cannot_be_reached_is_named_with_the_reason() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual)]);
    rig.connected("127.0.0.1:1", "2020-01-01T00:00:00Z");
    let (_agent, mut line) = rig.agent_with(settings());
    let named = |inventory: &Inventory| inventory.unread.iter().any(|line| line.contains("failed"));
    let inventory = line.announced(named).await;
    let own = inventory.unread.iter().find(|line| line.contains("/own")).unwrap();
    for part in ["cannot read catalog", "127.0.0.1:1", "pod runs", "tried again within 172800 s"] {
        assert!(own.contains(part), "{own}");
    }
}

#[tokio::test]
async fn a_cluster_is_upgraded_by_what_its_registry_serves() {
    let rig = Rig::new(&[("trees", "oak", "1.0.0", Manual), ("woods", "fir", "1.0.0", Manual)]);
    let (_registry, address) = Fake::serve(rig::catalog()).await;
    rig.connected(&address, "2020-01-01T00:00:00Z");
    let (_agent, _line) = rig.agent_with(settings());
    rig.order("go", &["oak"], &json!({}));
    rig.until_state("go", "Succeeded").await;
    // The least Kubernetes version is in no list of bundles: it was asked for.
    rig.order("stay", &["fir"], &json!({}));
    rig.until_state("stay", "Blocked").await;
    let results = rig.status("stay").preflight.unwrap().results;
    let held = results.iter().find(|result| result.check == "min-kube-version").unwrap();
    assert_eq!(held.reason, "KubeVersionTooLow", "{}", held.message);
}

/// `package` in this version alone, with the document that the fake has for each package.
fn with_documents_of(package: &str, version: &str) -> Arc<Catalog> {
    let name = format!("{package}.v{version}");
    let blobs = [
        json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": package, "name": "stable",
            "entries": [{"name": name}]}),
        json!({"schema": "olm.bundle", "package": package, "name": name,
            "image": "registry.example.com/oak:3", "properties": [{"type": "olm.package",
                "value": {"packageName": package, "version": version}}]}),
        json!({"schema": release::SCHEMA, "package": package}),
    ];
    let text = blobs.map(|blob| blob.to_string()).join("\n");
    let limits = Limits::default();
    let fbc = Fbc::parse("own.json", text.as_bytes(), &limits).unwrap();
    Arc::new(Catalog::from_fbc(fbc, &limits).unwrap())
}
