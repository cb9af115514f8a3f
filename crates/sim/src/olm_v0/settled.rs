//! Operators that were installed long ago: objects as an upgrade leaves them behind.

use serde_json::{Value, json};
use wavelift_catalog::engine::{CatalogKey, Catalogs, Cause, Move, Source};

use super::{
    Key, OlmV0,
    csv::write_phase,
    objects::{set, stamp},
    phase::{Phase, Transition},
    resolver::bundle,
};
use crate::{
    apiserver::{ApiError, Reason, gk},
    cluster::{Approval, Operator},
    workload::settled_status,
};

impl OlmV0 {
    /// Makes a subscription and everything that belongs to what it has installed.
    pub(crate) fn settle(&mut self, operator: &Operator) -> Result<(), ApiError> {
        let Operator { namespace, package, channel, source, installed, approval } = operator;
        let (source_namespace, source) = source;
        let mut subscription = json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "Subscription",
            "metadata": {
                "name": package,
                "namespace": namespace,
                "labels": { (format!("operators.coreos.com/{package}.{namespace}")): "" },
            },
            "spec": {
                "name": package,
                "source": source,
                "sourceNamespace": source_namespace,
                "installPlanApproval": match approval {
                    Approval::Manual => "Manual",
                    Approval::Automatic => "Automatic",
                },
            },
        });
        if !channel.is_empty() {
            set(&mut subscription, "/spec/channel", json!(channel));
        }
        if let Some(csv) = installed {
            set(
                &mut subscription,
                "/status",
                json!({
                    "state": "AtLatestKnown",
                    "currentCSV": csv,
                    "installedCSV": csv,
                    "lastUpdated": stamp(self.now),
                }),
            );
            self.settle_csv(operator, csv)?;
        }
        self.objects.store().create(&gk::SUBSCRIPTION, subscription)?;
        Ok(())
    }

    fn settle_csv(&self, operator: &Operator, name: &str) -> Result<(), ApiError> {
        let (source_namespace, source) = &operator.source;
        let catalog = CatalogKey { name: source.clone(), namespace: source_namespace.clone() };
        let key = Key::new(source_namespace, source);
        let served = self.catalogs.get(&key).and_then(|served| served.snapshot.clone());
        let found = served.and_then(|content| {
            let source = Source { catalog: content, priority: 0 };
            let mut catalogs = Catalogs::default();
            catalogs.insert(catalog.clone(), source);
            let step = Move {
                package: operator.package.clone(),
                from: None,
                to: name.to_owned(),
                to_version: None,
                channel: operator.channel.clone(),
                catalog: catalog.clone(),
                cause: Cause::Subscription,
            };
            bundle(&catalogs.get(&catalog)?.catalog, &step)
        });
        let Some(bundle) = found else {
            let why = format!("no bundle {name} of {} in {catalog}", operator.package);
            return Err(ApiError::new(Reason::NotFound, why));
        };
        let store = self.objects.store();
        for crd in bundle.crds() {
            // Two operators may bring the same one.
            if self.objects.get(&gk::CRD, &Key::new("", name_of(&crd))).is_none() {
                store.create(&gk::CRD, crd)?;
            }
        }
        let key = Key::new(&operator.namespace, name);
        let mut csv = bundle.csv(&operator.namespace, None);
        set(&mut csv, "/spec/replaces", Value::Null);
        let transition = Transition {
            phase: Phase::Succeeded,
            reason: "InstallSucceeded",
            message: "install strategy completed with no errors".to_owned(),
        };
        super::csv::introduce(&mut csv, Some(&Key::new(&operator.namespace, "og")));
        write_phase(&mut csv, &transition, self.now);
        let csv = store.create(&gk::CSV, csv)?;
        self.ensure_operator_condition(&key, &csv);
        self.ensure_deployments(&key, &csv);
        let now = stamp(self.now);
        for deployment in self.objects.keys(&gk::DEPLOYMENT, &operator.namespace) {
            self.objects.modify_status(&gk::DEPLOYMENT, &deployment, |deployment| {
                settled_status(deployment, &now);
            });
        }
        Ok(())
    }
}

fn name_of(object: &Value) -> &str {
    super::objects::text(object, "/metadata/name")
}
