//! Describes a cluster and puts it into a settled state.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wavelift_catalog::Catalog;
use wavelift_runtime::Clock;

use super::{Parts, SimCluster, cluster_uid};
use crate::{
    apiserver::{ApiError, ApiServer, Limits, Store, gk},
    olm_v0::{GLOBAL_CATALOG_NAMESPACE, OlmV0, Settings, Timing, objects::stamp},
    workload::Workload,
};

/// A cluster to be.
#[derive(Debug)]
pub struct Builder {
    name: String,
    clock: Clock,
    platform: String,
    limits: Limits,
    settings: Settings,
    catalogs: Vec<(String, String, Arc<Catalog>)>,
    operators: Vec<Operator>,
}

/// A subscription, and what is installed by it.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The namespace that it lives in; it gets an operator group of its own.
    pub namespace: String,
    /// The package; also the name of the subscription.
    pub package: String,
    /// The channel; empty for the package's default.
    pub channel: String,
    /// The catalog source: namespace and name.
    pub source: (String, String),
    /// The CSV that is installed and healthy; nothing when the subscription is new.
    pub installed: Option<String>,
    /// Who approves its plans.
    pub approval: Approval,
}

/// Who approves the plans of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// A person, or somebody on a person's behalf.
    #[default]
    Manual,
    /// OLM.
    Automatic,
}

impl Builder {
    pub(super) fn new(name: String, clock: Clock) -> Self {
        Self {
            name,
            clock,
            platform: "4.18.12".to_owned(),
            limits: Limits::default(),
            settings: Settings::default(),
            catalogs: Vec::new(),
            operators: Vec::new(),
        }
    }

    /// The seed of everything that is left to chance.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// The platform's version.
    #[must_use]
    pub fn platform(mut self, version: impl Into<String>) -> Self {
        self.platform = version.into();
        self
    }

    /// The Kubernetes version.
    #[must_use]
    pub fn kube_version(mut self, version: impl Into<String>) -> Self {
        self.settings.kube_version = version.into();
        self
    }

    /// How long OLM takes for things.
    #[must_use]
    pub fn timing(mut self, timing: Timing) -> Self {
        self.settings.timing = timing;
        self
    }

    /// The namespace whose catalog sources every other one sees.
    #[must_use]
    pub fn global_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.settings.global_namespace = namespace.into();
        self
    }

    /// How much the API server remembers.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// A catalog source that was read long ago.
    #[must_use]
    pub fn catalog(
        mut self,
        namespace: impl Into<String>,
        name: impl Into<String>,
        catalog: Arc<Catalog>,
    ) -> Self {
        self.catalogs.push((namespace.into(), name.into(), catalog));
        self
    }

    /// A subscription.
    #[must_use]
    pub fn operator(mut self, operator: Operator) -> Self {
        self.operators.push(operator);
        self
    }

    /// Makes the cluster. It stands still until it is started or moved by hand.
    pub fn build(self) -> Result<SimCluster, ApiError> {
        let api = ApiServer::with_limits(self.clock.clone(), self.limits);
        api.set_version(&self.settings.kube_version);
        let store = api.store();
        let now = self.clock.now();
        self.make_namespaces(store)?;
        self.make_platform(store)?;
        let mut olm = OlmV0::new(store, self.settings.clone(), now);
        for (namespace, name, catalog) in &self.catalogs {
            olm.serve_catalog(namespace, name, Arc::clone(catalog));
            olm.assume_read(namespace, name);
            store.create(&gk::CATALOG_SOURCE, catalog_source(namespace, name, &stamp(now)))?;
        }
        for operator in &self.operators {
            olm.settle(operator)?;
        }
        let workload = Workload::new(store, self.settings.seed, now);
        Ok(SimCluster {
            uid: cluster_uid(store),
            name: self.name,
            parts: Arc::new(Mutex::new(Parts::new(olm, workload, store.clone()))),
            api,
            clock: self.clock,
            nudge: Arc::new(Notify::new()),
            stop: CancellationToken::new(),
            runner: Mutex::new(None),
        })
    }

    fn make_namespaces(&self, store: &Store) -> Result<(), ApiError> {
        let mut names = BTreeSet::from([
            GLOBAL_CATALOG_NAMESPACE.to_owned(),
            self.settings.global_namespace.clone(),
        ]);
        names.extend(self.catalogs.iter().map(|(namespace, ..)| namespace.clone()));
        names.extend(self.operators.iter().map(|operator| operator.namespace.clone()));
        for name in names {
            if store.get(&gk::NAMESPACE, None, &name).is_none() {
                store.create(&gk::NAMESPACE, json!({ "metadata": { "name": name } }))?;
            }
        }
        let mut with_group = BTreeSet::new();
        for operator in &self.operators {
            let namespace = &operator.namespace;
            if with_group.insert(namespace) {
                store.create(
                    &gk::OPERATOR_GROUP,
                    json!({
                        "metadata": { "name": "og", "namespace": namespace },
                        "spec": { "targetNamespaces": [namespace], "upgradeStrategy": "Default" },
                    }),
                )?;
            }
        }
        Ok(())
    }

    fn make_platform(&self, store: &Store) -> Result<(), ApiError> {
        let now = stamp(self.clock.now());
        let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "lastTransitionTime": now });
        let minor: Vec<&str> = self.platform.split('.').take(2).collect();
        store.create(
            &gk::CLUSTER_VERSION,
            json!({
                "metadata": { "name": "version" },
                "spec": {
                    "clusterID": cluster_uid(store),
                    "channel": format!("stable-{}", minor.join(".")),
                },
                "status": {
                    "desired": { "version": self.platform },
                    "history": [{
                        "state": "Completed",
                        "version": self.platform,
                        "startedTime": now,
                        "completionTime": now,
                        "verified": true,
                    }],
                    "conditions": [
                        condition("Available", "True"),
                        condition("Progressing", "False"),
                        condition("Failing", "False"),
                        condition("RetrievedUpdates", "True"),
                    ],
                },
            }),
        )?;
        Ok(())
    }
}

fn catalog_source(namespace: &str, name: &str, now: &str) -> Value {
    let address = format!("{name}.{namespace}.svc:50051");
    json!({
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "sourceType": "grpc", "address": address, "displayName": name },
        "status": {
            "connectionState": {
                "address": address, "lastConnect": now, "lastObservedState": "READY",
            },
            "registryService": { "createdAt": now, "protocol": "grpc" },
        },
    })
}
