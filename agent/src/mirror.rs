//! What the cluster shows, kept up to date by watches and cut down to what the agent reads.
//!
//! The watches over the whole cluster are few and light: Subscriptions, CSVs that are not copies,
//! OperatorGroups and CatalogSources. InstallPlans, Deployments and OperatorConditions are watched
//! only in the namespace of the step that is running.

mod table;

use std::fmt;

use kube::{Api, Client, runtime::watcher};
use tokio::sync::watch;
use wavelift_api::ClusterUpgrade;

pub use self::table::{Behind, Health, Watched};
use crate::objects::{
    COPIED_FROM, CatalogSource, Csv, Deployment, InstallPlan, OperatorCondition, OperatorGroup,
    Subscription,
};

/// How many objects a list asks for at a time.
const PAGE: u32 = 100;
/// How many CSVs and InstallPlans: each is up to a megabyte before it is cut down.
const PAGE_OF_LARGE: u32 = 10;

/// Raised whenever something that is mirrored changes.
#[derive(Debug, Clone)]
pub struct Changed(watch::Sender<u64>);

/// The whole cluster, as far as it is always watched.
pub struct Mirror {
    client: Client,
    changed: Changed,
    /// All Subscriptions.
    pub subscriptions: Watched<Subscription>,
    /// All CSVs that are not copies.
    pub csvs: Watched<Csv>,
    /// All OperatorGroups.
    pub operator_groups: Watched<OperatorGroup>,
    /// All CatalogSources.
    pub catalog_sources: Watched<CatalogSource>,
    /// The ClusterUpgrades of the agent's namespace.
    pub upgrades: Watched<ClusterUpgrade>,
}

/// One namespace, while a step runs in it.
#[derive(Debug)]
pub struct NamespaceMirror {
    /// Its InstallPlans.
    pub install_plans: Watched<InstallPlan>,
    /// Its Deployments.
    pub deployments: Watched<Deployment>,
    /// Its OperatorConditions.
    pub operator_conditions: Watched<OperatorCondition>,
}

// === impl Changed ===

impl Changed {
    fn new() -> Self {
        Self(watch::channel(0).0)
    }

    /// Says that something changed.
    pub fn raise(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Tells of every change from now on.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

// === impl Mirror ===

impl Mirror {
    /// Begins to watch. `namespace` is the agent's own.
    pub fn start(client: &Client, namespace: &str) -> Self {
        let changed = Changed::new();
        let config = watcher::Config::default().page_size(PAGE);
        let not_copied = config.clone().labels(&format!("!{COPIED_FROM}")).page_size(PAGE_OF_LARGE);
        Self {
            subscriptions: Watched::start(
                Api::all(client.clone()),
                config.clone(),
                changed.clone(),
            ),
            csvs: Watched::start(Api::all(client.clone()), not_copied, changed.clone()),
            operator_groups: Watched::start(
                Api::all(client.clone()),
                config.clone(),
                changed.clone(),
            ),
            catalog_sources: Watched::start(
                Api::all(client.clone()),
                config.clone(),
                changed.clone(),
            ),
            upgrades: Watched::start(
                Api::namespaced(client.clone(), namespace),
                config,
                changed.clone(),
            ),
            client: client.clone(),
            changed,
        }
    }

    /// Begins to watch one namespace more closely.
    pub fn namespace(&self, namespace: &str) -> NamespaceMirror {
        let config = watcher::Config::default().page_size(PAGE);
        let client = &self.client;
        NamespaceMirror {
            install_plans: Watched::start(
                Api::namespaced(client.clone(), namespace),
                config.clone().page_size(PAGE_OF_LARGE),
                self.changed.clone(),
            ),
            deployments: Watched::start(
                Api::namespaced(client.clone(), namespace),
                config.clone(),
                self.changed.clone(),
            ),
            operator_conditions: Watched::start(
                Api::namespaced(client.clone(), namespace),
                config,
                self.changed.clone(),
            ),
        }
    }

    /// Whoever learns something that the mirror does not show raises it.
    pub fn changed(&self) -> &Changed {
        &self.changed
    }

    /// Tells of every change from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// True once everything has been listed, or was refused.
    pub fn is_settled(&self) -> bool {
        self.subscriptions.is_settled()
            && self.csvs.is_settled()
            && self.operator_groups.is_settled()
            && self.catalog_sources.is_settled()
    }

    /// What could not be read, as short phrases.
    pub fn unread(&self) -> Vec<String> {
        let tables = [
            ("Subscriptions", self.subscriptions.unread()),
            ("ClusterServiceVersions", self.csvs.unread()),
            ("OperatorGroups", self.operator_groups.unread()),
            ("CatalogSources", self.catalog_sources.unread()),
        ];
        let unread = |(kind, error): (&str, Option<String>)| Some(format!("{kind}: {}", error?));
        tables.into_iter().filter_map(unread).collect()
    }

    /// Which kinds are held as they may not be any more, with the reason.
    pub fn behind(&self) -> Vec<(&'static str, Behind)> {
        behind([
            ("ClusterUpgrades", self.upgrades.behind()),
            ("Subscriptions", self.subscriptions.behind()),
            ("ClusterServiceVersions", self.csvs.behind()),
            ("OperatorGroups", self.operator_groups.behind()),
            ("CatalogSources", self.catalog_sources.behind()),
        ])
    }
}

fn behind<const N: usize>(
    kinds: [(&'static str, Option<Behind>); N],
) -> Vec<(&'static str, Behind)> {
    kinds.into_iter().filter_map(|(kind, behind)| Some((kind, behind?))).collect()
}

impl NamespaceMirror {
    /// True once everything has been listed, or was refused.
    pub fn is_settled(&self) -> bool {
        self.install_plans.is_settled()
            && self.deployments.is_settled()
            && self.operator_conditions.is_settled()
    }

    /// Why something that a step cannot do without could not be read.
    pub fn broken(&self) -> Option<String> {
        let broken = |kind: &str, error: Option<String>| {
            error.map(|error| format!("cannot read {kind}: {error}"))
        };
        broken("InstallPlans", self.install_plans.broken())
            .or_else(|| broken("Deployments", self.deployments.broken()))
    }

    /// Which kinds are held as they may not be any more, with the reason.
    pub fn behind(&self) -> Vec<(&'static str, Behind)> {
        behind([
            ("InstallPlans", self.install_plans.behind()),
            ("Deployments", self.deployments.behind()),
            ("OperatorConditions", self.operator_conditions.behind()),
        ])
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirror").field("changed", &self.changed).finish_non_exhaustive()
    }
}
