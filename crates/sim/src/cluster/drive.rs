//! Moves a cluster by hand, from one thing due to the next.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use wavelift_catalog::{Catalog, Fbc, Limits};
use wavelift_runtime::{Clock, clock::Hand};

use super::{Approval, Builder, Operator, SimCluster};
use crate::{
    apiserver::{Gk, Subresource, gk},
    olm_v0::{
        objects::{at, text},
        queue::after,
    },
};

/// A cluster and the hand that moves its clock.
pub(crate) struct Driver {
    pub(crate) cluster: SimCluster,
    hand: Hand,
}

impl Driver {
    /// A cluster that begins some time in 2020.
    pub(crate) fn new(describe: impl FnOnce(Builder) -> Builder) -> Self {
        let origin = Timestamp::from_second(1_600_000_000).unwrap();
        let (clock, hand) = Clock::manual(origin);
        let cluster = describe(SimCluster::builder("c1", clock)).build().unwrap();
        Self { cluster, hand }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.cluster.clock().now()
    }

    /// Goes on to the next thing due, but not beyond `limit`; false when there is nothing before it.
    pub(crate) fn step(&self, limit: Timestamp) -> bool {
        let next = self.cluster.tick().filter(|next| *next <= limit);
        let to = next.unwrap_or(limit).duration_since(self.now());
        self.hand.advance(Duration::try_from(to).unwrap_or_default());
        self.cluster.tick();
        next.is_some()
    }

    /// Goes on for some time.
    pub(crate) fn pass(&self, seconds: u64) {
        let limit = after(self.now(), Duration::from_secs(seconds));
        while self.step(limit) {}
    }

    /// Moves the clock in one jump, as if nobody had looked for so long.
    pub(crate) fn jump(&self, seconds: u64) {
        self.hand.advance(Duration::from_secs(seconds));
        self.cluster.tick();
    }

    /// Goes on until something holds, at most so long; panics with `what` when it never does.
    pub(crate) fn until(&self, seconds: u64, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let limit = after(self.now(), Duration::from_secs(seconds));
        while !holds(self) {
            assert!(self.step(limit) || holds(self), "after {seconds} s still not: {what}");
        }
    }

    pub(crate) fn get(&self, gk: &Gk, name: &str) -> Option<Arc<Value>> {
        self.cluster.store().get(gk, Some("ops"), name)
    }

    /// State, current and installed CSV of a subscription.
    pub(crate) fn subscription(&self, name: &str) -> [String; 3] {
        let subscription = self.get(&gk::SUBSCRIPTION, name).unwrap();
        ["state", "currentCSV", "installedCSV"]
            .map(|field| text(&subscription, &format!("/status/{field}")).to_owned())
    }

    /// Phase and reason of a CSV; empty when it is not there.
    pub(crate) fn csv(&self, name: &str) -> String {
        self.get(&gk::CSV, name).map_or_else(String::new, |csv| {
            format!("{}/{}", text(&csv, "/status/phase"), text(&csv, "/status/reason"))
        })
    }

    /// The plan that a subscription refers to.
    pub(crate) fn plan_of(&self, subscription: &str) -> Option<Arc<Value>> {
        let subscription = self.get(&gk::SUBSCRIPTION, subscription)?;
        self.get(&gk::INSTALL_PLAN, text(&subscription, "/status/installPlanRef/name"))
    }

    /// The CSVs of the plan that a subscription refers to, while it waits for approval.
    pub(crate) fn offered(&self, subscription: &str) -> Vec<String> {
        let Some(plan) = self.plan_of(subscription) else { return Vec::new() };
        if text(&plan, "/status/phase") != "RequiresApproval" {
            return Vec::new();
        }
        let names = at(&plan, "/spec/clusterServiceVersionNames").as_array().unwrap();
        let mut names: Vec<String> =
            names.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    /// Approves the plan that a subscription refers to.
    pub(crate) fn approve(&self, subscription: &str) {
        let plan = self.plan_of(subscription).expect("there is a plan");
        self.patch(
            &gk::INSTALL_PLAN,
            text(&plan, "/metadata/name"),
            &json!({
                "spec": { "approved": true },
            }),
        );
    }

    pub(crate) fn patch(&self, gk: &Gk, name: &str, patch: &Value) {
        let store = self.cluster.store();
        store.patch_merge(gk, Some("ops"), name, Subresource::Main, patch).unwrap();
    }
}

/// A Manual subscription in namespace `ops` to a package of the catalog `cat` there.
pub(crate) fn operator(package: &str, installed: Option<&str>) -> Operator {
    Operator {
        namespace: "ops".to_owned(),
        package: package.to_owned(),
        channel: "stable".to_owned(),
        source: ("ops".to_owned(), "cat".to_owned()),
        installed: installed.map(str::to_owned),
        approval: Approval::Manual,
    }
}

/// Tea 1.0.0 is installed, 1.1.0 and 1.2.0 follow one after the other.
pub(crate) fn tea(builder: Builder) -> Builder {
    let chain = catalog(
        "tea",
        &[
            ("1.0.0", json!({})),
            ("1.1.0", json!({ "replaces": "tea.v1.0.0" })),
            ("1.2.0", json!({ "replaces": "tea.v1.1.0" })),
        ],
    );
    builder.catalog("ops", "cat", chain).operator(operator("tea", Some("tea.v1.0.0")))
}

/// Tea 1.0.0 and 1.1.0, of which the package and the first bundle are deprecated.
pub(crate) fn deprecated_tea() -> Arc<Catalog> {
    let entries = [("1.0.0", json!({})), ("1.1.0", json!({ "replaces": "tea.v1.0.0" }))];
    let mut text = blobs(&[("tea", &entries)]);
    let said = json!({ "schema": "olm.deprecations", "package": "tea", "entries": [
        { "reference": { "schema": "olm.package" }, "message": "drink coffee" },
        {
            "reference": { "schema": "olm.bundle", "name": "tea.v1.0.0" },
            "message": "old leaves",
        },
    ] });
    text.push_str(&said.to_string());
    parsed(&text)
}

/// A catalog of one package `tea` with channel `stable`; each entry is a version with what else is
/// to be said of it, e.g. `("1.1.0", json!({ "replaces": "tea.v1.0.0" }))`.
pub(crate) fn catalog(package: &str, entries: &[(&str, Value)]) -> Arc<Catalog> {
    catalog_of(&[(package, entries)])
}

/// A catalog of some packages. `minKubeVersion` and `properties` of an entry go to its bundle.
pub(crate) fn catalog_of(packages: &[(&str, &[(&str, Value)])]) -> Arc<Catalog> {
    parsed(&blobs(packages))
}

fn parsed(text: &str) -> Arc<Catalog> {
    let limits = Limits::default();
    let fbc = Fbc::parse("catalog.json", text.as_bytes(), &limits).unwrap();
    Arc::new(Catalog::from_fbc(fbc, &limits).unwrap())
}

fn blobs(packages: &[(&str, &[(&str, Value)])]) -> String {
    let mut text = String::new();
    for (package, entries) in packages {
        let name = |version: &str| format!("{package}.v{version}");
        let channel: Vec<Value> = entries
            .iter()
            .map(|(version, said)| {
                let mut entry = json!({ "name": name(version) });
                for field in ["replaces", "skips", "skipRange"] {
                    if let Some(value) = said.get(field) {
                        entry[field] = value.clone();
                    }
                }
                entry
            })
            .collect();
        let mut blobs = vec![
            json!({ "schema": "olm.package", "name": package, "defaultChannel": "stable" }),
            json!({
                "schema": "olm.channel", "package": package, "name": "stable", "entries": channel,
            }),
        ];
        for (version, said) in *entries {
            let mut properties = vec![json!({
                "type": "olm.package",
                "value": { "packageName": package, "version": version },
            })];
            if let Some(least) = said.get("minKubeVersion") {
                properties.push(json!({
                    "type": "olm.csv.metadata", "value": { "minKubeVersion": least },
                }));
            }
            properties.extend(said["properties"].as_array().cloned().unwrap_or_default());
            blobs.push(json!({
                "schema": "olm.bundle",
                "name": name(version),
                "package": package,
                "image": format!("registry.example.com/{package}-bundle:{version}"),
                "properties": properties,
            }));
        }
        for blob in blobs {
            text.push_str(&blob.to_string());
            text.push('\n');
        }
    }
    text
}
