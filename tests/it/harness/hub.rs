//! The hub's side: its API server, and hubs in this process or beside it.

use std::{
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wavelift_api::labels::TERM;
use wavelift_core::ids::{ClusterName, Uid};
use wavelift_hub::{
    Hub, HubOptions,
    link::ca::{Authorities, CaStore},
};
use wavelift_runtime::{
    Clock,
    pki::{self, AgentCertificateRequest, PrivateKey, RequestedKey, Validity},
    tls::Material,
};
use wavelift_sim::apiserver::{ApiServer, Limits, Served, Store, gk, meta};

use super::{
    binaries, blueprint::Blueprint, campaign, child::Child, install_crds, router::Target, wait,
};

/// The hub's namespace.
pub(crate) const NAMESPACE: &str = "wavelift";
/// The Lease that hubs compete for.
pub(crate) const LEASE: &str = "wavelift-hub";

const LIMITS: Limits =
    Limits { history_changes: 200_000, history_bytes: 512 << 20, audit_entries: 100_000 };

/// The API server that hubs run on, and the authorities kept in it.
#[derive(Debug)]
pub(crate) struct HubSide {
    /// The server.
    pub(crate) api: ApiServer,
    _served: Served,
    authorities: Authorities,
    clock: Clock,
    dir: PathBuf,
}

/// A hub beside this process.
#[derive(Debug)]
pub(crate) struct HubProcess {
    /// The process.
    pub(crate) child: Child,
    addresses: PathBuf,
}

impl HubSide {
    /// A server with everything a hub needs, and a ManagedCluster for each blueprint.
    pub(crate) async fn start(clock: &Clock, fleet: &[Blueprint], dir: &Path) -> Result<Self> {
        let api = ApiServer::with_limits(clock.clone(), LIMITS);
        install_crds(&api)?;
        let store = api.store();
        store.create(&gk::NAMESPACE, json!({"metadata": {"name": NAMESPACE}}))?;
        for blueprint in fleet {
            let name = &blueprint.name;
            store.create(&gk::NAMESPACE, json!({"metadata": {"name": name}}))?;
            let cluster = json!({
                "metadata": {"name": name, "labels": {"wave": blueprint.wave}},
                "spec": {"hubAcceptsClient": true},
            });
            store.create(&gk::MANAGED_CLUSTER, cluster)?;
        }
        let authorities = CaStore::new(api.client("harness"), NAMESPACE).load_or_create().await?;
        let served = api.serve(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        served.write_kubeconfig("hub", &dir.join("hub.kubeconfig"))?;
        Ok(Self { api, _served: served, authorities, clock: clock.clone(), dir: dir.to_path_buf() })
    }

    /// The objects.
    pub(crate) fn store(&self) -> &Store {
        self.api.store()
    }

    /// Key and certificate of a cluster's agent.
    pub(crate) fn material(&self, cluster: &str) -> Result<Material> {
        let object = self.store().get(&gk::MANAGED_CLUSTER, None, cluster).context("no cluster")?;
        let key = PrivateKey::generate()?;
        let request = AgentCertificateRequest {
            cluster: ClusterName::try_from(cluster)?,
            uid: Uid::try_from(meta::uid(&object).to_owned())?,
            key: RequestedKey::PublicKeyPem(key.public_key_pem()),
        };
        let validity = Validity::from_now(Duration::from_hours(1));
        let issued = pki::issue_agent_certificate(&self.authorities.agents, &request, validity)?;
        Ok(Material {
            certificates: issued.certificate_pem.into_bytes(),
            key: key.key_pem().into_bytes(),
            ca: self.authorities.servers.certificate_pem().as_bytes().to_vec(),
        })
    }

    /// Starts a hub as a child process, at the simulated time that it is now.
    pub(crate) fn spawn(&self, identity: &str) -> Result<HubProcess> {
        let programs = binaries::programs()?;
        let addresses = self.addresses(identity);
        let mut args: Vec<OsString> = [
            "--namespace",
            NAMESPACE,
            "--identity",
            identity,
            "--listen-link=127.0.0.1:0",
            "--listen-http=127.0.0.1:0",
            "--server-name=localhost",
            // Short, for whoever takes over has to wait so long; not so short that a leader on a
            // busy machine loses it.
            "--lease-duration-seconds=6",
            "--lease-renew-deadline-seconds=4",
            "--lease-retry-ms=400",
            "--log-format=text",
            "--log-filter=info",
        ]
        .map(OsString::from)
        .to_vec();
        args.extend(["--kubeconfig".into(), self.dir.join("hub.kubeconfig").into_os_string()]);
        args.extend(["--addresses-file".into(), addresses.clone().into_os_string()]);
        args.extend(["--clock-origin".into(), self.clock.now().to_string().into()]);
        args.extend(["--clock-factor".into(), self.clock.factor().to_string().into()]);
        let child = Child::spawn(&programs.hub, args, &self.dir.join(format!("{identity}.log")))?;
        Ok(HubProcess { child, addresses })
    }

    /// Starts a hub in this process, sends agents to it, and waits until it leads.
    pub(crate) async fn inside(&self, target: &Target, stop: CancellationToken) -> Result<Hub> {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut options = HubOptions::new(self.api.client("wavelift-hub"), NAMESPACE)
            .with_clock(self.clock.clone());
        options.link_address = loopback;
        options.http_address = loopback;
        let hub = Hub::start(options, stop).await?;
        hub.leader().wait_for(|state| state.term.is_some()).await?;
        target.send_replace(Some(hub.link_address()));
        Ok(hub)
    }

    /// Sends agents to whichever child leads, until dropped.
    ///
    /// A leader is ready for them when its term is in the campaign's status.
    pub(crate) async fn follow_leader(&self, target: &Target) {
        let mut changes = self.store().subscribe();
        let mut known = None;
        loop {
            let leader = ready_leader(self.store());
            if let Some((identity, _)) = leader.as_ref().filter(|_| leader != known) {
                target.send_replace(address(&self.addresses(identity), "link"));
                known = leader;
            }
            drop(changes.next().await);
        }
    }

    fn addresses(&self, identity: &str) -> PathBuf {
        self.dir.join(format!("{identity}.addresses.json"))
    }
}

impl HubProcess {
    /// Where its HTTP listens, as soon as it does.
    pub(crate) async fn http(&self) -> Result<SocketAddr> {
        wait::polled("a hub to listen", || Ok(address(&self.addresses, "http"))).await
    }
}

/// Who holds the Lease.
pub(crate) fn holder(store: &Store) -> Option<String> {
    let lease = store.get(&gk::LEASE, Some(NAMESPACE), LEASE)?;
    lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned)
}

/// Who holds the Lease and has taken over the campaign, and its term.
fn ready_leader(store: &Store) -> Option<(String, i64)> {
    let lease = store.get(&gk::LEASE, Some(NAMESPACE), LEASE)?;
    let term = lease["metadata"]["annotations"][TERM].as_str()?.parse().ok()?;
    let adopted = campaign::read(store)?["status"]["term"].as_i64()?;
    holder(store).filter(|_| adopted == term).map(|holder| (holder, term))
}

fn address(file: &Path, which: &str) -> Option<SocketAddr> {
    let text = fs::read(file).ok()?;
    let addresses: Value = serde_json::from_slice(&text).ok()?;
    addresses[which].as_str()?.parse().ok()
}
