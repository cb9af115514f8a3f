//! The hub's own API server, with the ManagedClusters on it.

use std::{net::SocketAddr, time::Duration};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use wavelift_hub::{Hub, HubOptions, LeaseTimes};
use wavelift_runtime::Clock;
use wavelift_sim::apiserver::{ApiError, ApiServer, Limits, Served, gk};

use super::{Blueprint, Error, NAMESPACE};

/// The API server that the hub runs on.
#[derive(Debug)]
pub(super) struct HubServer {
    api: ApiServer,
    served: Served,
}

impl HubServer {
    pub(super) async fn start(clock: &Clock, blueprints: &[Blueprint]) -> Result<Self, Error> {
        // A fleet's worth of ClusterUpgrades changes at once here.
        let limits =
            Limits { history_changes: 20_000, history_bytes: 64 << 20, audit_entries: 10_000 };
        let api = ApiServer::with_limits(clock.clone(), limits);
        furnish(&api, blueprints).map_err(|source| Error::ApiServer {
            of: "the hub".to_owned(),
            source: Box::new(source),
        })?;
        let served = api
            .serve(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .map_err(|source| Error::Io { doing: "listen on loopback", source })?;
        Ok(Self { api, served })
    }

    pub(super) fn api(&self) -> &ApiServer {
        &self.api
    }

    pub(super) fn url(&self) -> String {
        self.served.url()
    }

    /// Starts the hub and waits until it leads.
    pub(super) async fn hub(
        &self,
        clock: &Clock,
        http: SocketAddr,
        shutdown: &CancellationToken,
    ) -> Result<Hub, Error> {
        let options = HubOptions::new(self.api.client("wavelift-hub"), NAMESPACE);
        let mut options = options.with_clock(clock.clone());
        "demo-hub".clone_into(&mut options.identity);
        options.link_address = SocketAddr::from(([127, 0, 0, 1], 0));
        options.http_address = http;
        // Nobody else wants to lead here, however busy the machine is.
        options.lease = LeaseTimes {
            duration: Duration::from_mins(2),
            renew_deadline: Duration::from_secs(100),
            ..LeaseTimes::default()
        };
        let hub = Hub::start(options, shutdown.clone())
            .await
            .map_err(|source| Error::Hub(Box::new(source)))?;
        let mut leader = hub.leader();
        leader
            .wait_for(|state| state.term.is_some())
            .await
            .map_err(|source| Error::Hub(Box::new(source)))?;
        Ok(hub)
    }

    /// The uid of a ManagedCluster.
    pub(super) fn uid(&self, cluster: &str) -> Option<String> {
        let object = self.api.store().get(&gk::MANAGED_CLUSTER, None, cluster)?;
        object["metadata"]["uid"].as_str().map(str::to_owned)
    }
}

fn furnish(api: &ApiServer, blueprints: &[Blueprint]) -> Result<(), ApiError> {
    install_crds(api)?;
    let store = api.store();
    store.create(&gk::NAMESPACE, json!({"metadata": {"name": NAMESPACE}}))?;
    for blueprint in blueprints {
        let name = &blueprint.name;
        let labels: serde_json::Map<String, serde_json::Value> =
            blueprint.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        store.create(&gk::NAMESPACE, json!({"metadata": {"name": name}}))?;
        store.create(
            &gk::MANAGED_CLUSTER,
            json!({
                "metadata": {"name": name, "labels": labels},
                "spec": {"hubAcceptsClient": true},
                "status": {
                    "version": {"kubernetes": "v1.33.4"},
                    "clusterClaims": [
                        {"name": "version.openshift.io", "value": blueprint.platform},
                    ],
                },
            }),
        )?;
    }
    Ok(())
}

/// Our two kinds, as they are installed on a real cluster.
pub(super) fn install_crds(api: &ApiServer) -> Result<(), ApiError> {
    for crd in wavelift_api::crds() {
        // A definition of our own always serialises.
        let value = serde_json::to_value(crd).unwrap_or_default();
        api.install_crd(&value)?;
    }
    Ok(())
}
