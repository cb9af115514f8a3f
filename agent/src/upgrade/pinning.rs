//! A step by a pinned catalog: what is put in place before OLM is asked for its plan, and how all of
//! it is taken away again.

use std::collections::{BTreeMap, BTreeSet};

use kube::{
    Api,
    api::{DeleteParams, PostParams, Preconditions},
};
use tracing::{info, warn};
use wavelift_api::{ClusterUpgrade, ClusterUpgradeStatus, convert::cut, labels};
use wavelift_catalog::{OlmV0, engine::CatalogKey, pin::Kept, planner};
use wavelift_core::{
    inventory,
    plan::{Plan, Step, Via},
};
use wavelift_runtime::ssa;

use super::{Executor, RETRY, Seen, Wake, advance::Turn};
use crate::{
    checks,
    drivers::olm_v0::{
        Failure, Observed, Reason,
        apply::{self, Applied, Target},
        decide::{self, later},
        to_hold,
    },
    mirror::Mirror,
    objects::{self, CatalogSource, Subscription},
    pins::{self, Content, Pin, Registry},
};

/// What a step by a pinned catalog still needs.
enum Need {
    /// Something that comes by itself, with what it is.
    Wait(String),
    /// A write was made.
    Written,
    /// A write did not go through.
    NotWritten(Applied),
    /// There is no way.
    Refused(String),
}

/// The step and the upgrade in whose name it is taken.
#[derive(Clone, Copy)]
pub(super) struct For<'a> {
    pub(super) holder: &'a str,
    pub(super) step: &'a Step,
}

impl Executor {
    /// Puts the pinned catalog of a step in place; nothing is left to do once it is `None`.
    pub(super) async fn pin(
        &mut self,
        on: For<'_>,
        observed: &Observed,
        next: &mut ClusterUpgradeStatus,
        seen: Seen<'_>,
    ) -> Option<Turn> {
        if on.step.via == Via::Cluster {
            self.pins.stop();
            return None;
        }
        let is_in_place = decide::is_under_way(on.step, observed)
            || decide::is_offered(on.step, observed)
            // Nothing may move by itself before anything else is touched.
            || !to_hold(&observed.subscriptions).is_empty();
        if is_in_place {
            // After a restart too OLM can read it as long as it is there.
            let source = existing(on, seen.mirror);
            if let Some(pin) = source.as_deref().and_then(pins::pin_of) {
                self.content(&pin, seen.mirror);
            }
            return None;
        }
        let now = self.clock.now();
        let need = self.need(on, seen).await?;
        let plan_deadline = self.settings.driver.plan_deadline;
        let memory = &mut self.running.as_mut()?.memory;
        let deadline = later(*memory.since.get_or_insert(now), plan_deadline);
        let (why, pause) = match need {
            Need::Written => return Some(Turn::Again),
            Need::NotWritten(Applied::Done | Applied::Stale) => {
                ("the cluster to show what was written".to_owned(), RETRY)
            }
            Need::Refused(why) => {
                let failure = Failure::failed(Reason::PinnedCatalogRefused, why);
                return Some(Turn::Failed(failure));
            }
            Need::NotWritten(Applied::Refused(why) | Applied::Unanswered(why))
            | Need::Wait(why) => (why, RETRY * 5),
        };
        if now >= deadline {
            let failure = Failure::stalled(Reason::PinnedCatalogNotReady, why);
            return Some(Turn::Failed(failure));
        }
        let message = format!("pinning the catalog: {why}");
        if let Some(step) = next.steps.get_mut(self.running.as_ref()?.step) {
            step.message = Some(cut(&message, 2048));
        }
        next.message = Some(message);
        Some(Turn::Rest(Wake::at(deadline.min(later(now, pause)))))
    }

    /// The next thing that is missing.
    async fn need(&mut self, on: For<'_>, seen: Seen<'_>) -> Option<Need> {
        let namespace = on.step.namespace.as_str();
        let source = existing(on, seen.mirror);
        let pin = match source.as_ref().and_then(|source| pins::pin_of(source)) {
            Some(pin) => pin,
            None => match plan_pin(on, seen) {
                Ok(Some(pin)) => pin,
                // By now OLM goes there by itself.
                Ok(None) => return None,
                Err(why) => return Some(Need::Wait(why)),
            },
        };
        let Some(address) = self.pins.address().map(str::to_owned) else {
            let why = "the agent has no address to serve a pinned catalog at; it is given one by \
                       --pinned-catalog-listen and --pinned-catalog-address";
            return Some(Need::Refused(why.to_owned()));
        };
        let open = match self.open(&pin.kept, source.as_deref(), namespace, seen.mirror).await {
            Ok(open) => open,
            Err(need) => return Some(need),
        };
        match self.content(&pin, seen.mirror) {
            Content::Served => {}
            Content::Reading => return Some(Need::Wait("its bundles are read".to_owned())),
            Content::Failed(why) => return Some(Need::Wait(why)),
        }
        let Some(source) = source else {
            return Some(self.create(&pin, namespace, &address).await);
        };
        let state = source.connection().unwrap_or("not yet connected");
        if state != "READY" {
            let name = objects::name(&*source);
            let why = format!("OLM's connection to {name} at {address} is {state}");
            return Some(Need::Wait(why));
        }
        match open.first() {
            Some(subscription) => {
                let name = objects::name(&*source).to_owned();
                Some(self.point(subscription, &name, on.holder, seen.mirror).await)
            }
            None => None,
        }
    }

    /// The Subscriptions that do not read the pinned catalog yet, as they are now with who manages
    /// them.
    async fn open(
        &self,
        kept: &[Kept],
        source: Option<&CatalogSource>,
        namespace: &str,
        mirror: &Mirror,
    ) -> Result<Vec<Subscription>, Need> {
        let mut open = vec![];
        for subscription in mirror.subscriptions.of(namespace) {
            let is_meant = kept.iter().any(|kept| kept.package == subscription.spec.name);
            let is_done = source.is_some_and(|s| pins::points_at(&subscription, objects::name(s)));
            if !is_meant || is_done {
                continue;
            }
            let name = objects::name(&*subscription);
            if pins::is_pinned(&subscription) {
                let why = format!(
                    "spec.source of {namespace}/{name} was set back to {}/{} by somebody else",
                    subscription.spec.source_namespace, subscription.spec.source
                );
                return Err(Need::Refused(why));
            }
            let api: Api<Subscription> = Api::namespaced(self.client.clone(), namespace);
            let found = match api.get_opt(name).await {
                Ok(Some(found)) => found,
                Ok(None) => return Err(Need::Wait(format!("{namespace}/{name} is gone"))),
                Err(error) => return Err(Need::Wait(error.to_string())),
            };
            if let Some(manager) = checks::manager_of_source(&found) {
                let why = format!(
                    "spec.source of {namespace}/{name} is managed by {manager}, which would set it \
                     back"
                );
                return Err(Need::Refused(why));
            }
            open.push(found);
        }
        Ok(open)
    }

    fn content(&mut self, pin: &Pin, mirror: &Mirror) -> Content {
        let keys: BTreeSet<&CatalogKey> = pin.kept.iter().map(|kept| &kept.catalog).collect();
        let mut registries = vec![];
        for key in keys {
            let source = mirror.catalog_sources.get(&key.namespace, &key.name);
            let address = source.as_deref().and_then(CatalogSource::address);
            let Some(address) = address else {
                return Content::Failed(format!("catalog {key} has no address"));
            };
            registries.push(Registry { key: key.clone(), address: address.to_owned() });
        }
        self.pins.serve(&pin.kept, &pin.digest, &registries, mirror.changed())
    }

    async fn create(&self, pin: &Pin, namespace: &str, address: &str) -> Need {
        let manifest = pins::manifest(pin, namespace, address);
        let name = pin.source_name();
        let params = PostParams {
            field_manager: Some(apply::MANAGER.0.to_owned()),
            ..PostParams::default()
        };
        let made = match serde_json::from_value(manifest) {
            Ok(object) => self.catalog_objects(namespace).create(&params, &object).await,
            Err(error) => return Need::Refused(error.to_string()),
        };
        match made {
            Ok(_) => {
                info!(namespace, catalog_source = name, holder = pin.holder, "made");
                // It is waited for until the watch tells of it.
                Need::NotWritten(Applied::Done)
            }
            Err(error) => match ssa::Error::new(&name, error) {
                ssa::Error::Exists(_) => Need::NotWritten(Applied::Stale),
                other @ (ssa::Error::Owned { .. }
                | ssa::Error::Stale(_)
                | ssa::Error::NotFound(_)
                | ssa::Error::Invalid { .. }
                | ssa::Error::Forbidden { .. }
                | ssa::Error::Api { .. }) => Need::NotWritten(Applied::from(other)),
            },
        }
    }

    /// Makes a Subscription read the pinned catalog. What it read before is written down in the same
    /// write.
    async fn point(
        &self,
        subscription: &Subscription,
        source: &str,
        holder: &str,
        mirror: &Mirror,
    ) -> Need {
        let namespace = objects::namespace(subscription);
        let target = Target { client: &self.client, mirror, namespace, holder };
        match apply::point(subscription, source, target).await {
            Applied::Done => Need::Written,
            other @ (Applied::Stale | Applied::Refused(_) | Applied::Unanswered(_)) => {
                Need::NotWritten(other)
            }
        }
    }

    /// Takes away everything that this agent, or one before it, has pinned, but for the pinned
    /// catalog `keep` (namespace and name). True when nothing is left that could be taken away.
    pub(super) async fn unpin(&mut self, keep: Option<(&str, &str)>, mirror: &Mirror) -> bool {
        let now = self.clock.now();
        if self.unpin_at.is_some_and(|at| now < at) {
            return true;
        }
        let own = format!("{}/", self.journal.namespace());
        let (mut is_complete, mut refused) = (true, vec![]);
        for subscription in mirror.subscriptions.all() {
            let namespace = objects::namespace(&*subscription);
            let by = objects::annotation(&*subscription, labels::PINNED_BY).unwrap_or_default();
            let is_kept = keep
                .is_some_and(|(at, name)| at == namespace && pins::points_at(&subscription, name));
            if !by.starts_with(&own) || is_kept {
                continue;
            }
            let target = Target { client: &self.client, mirror, namespace, holder: by };
            match apply::point_back(&subscription, target).await {
                Applied::Done => {}
                // Perhaps it was given back: the cluster will show it.
                Applied::Stale | Applied::Unanswered(_) => is_complete = false,
                Applied::Refused(why) => {
                    let name = objects::name(&*subscription);
                    warn!(namespace, subscription = name, why, "cannot be given its catalog back");
                    refused.push(format!("Subscription {namespace}/{name}: {why}"));
                }
            }
        }
        if is_complete && refused.is_empty() {
            for source in mirror.catalog_sources.all() {
                let at = (objects::namespace(&*source), objects::name(&*source));
                let is_own = pins::pin_of(&source).is_some_and(|pin| pin.holder.starts_with(&own));
                if is_own && keep != Some(at) {
                    refused.extend(self.delete(&source).await.err());
                }
            }
        }
        self.unpin_at = (!refused.is_empty()).then(|| later(now, RETRY * 30));
        self.left_pinned = (!refused.is_empty())
            .then(|| format!("what was pinned cannot be taken away: {}", refused.join("; ")));
        is_complete
    }

    /// The same, where nothing is to be pinned any more.
    pub(super) async fn unpin_all(&mut self, mirror: &Mirror) -> bool {
        let is_complete = self.unpin(None, mirror).await;
        // A catalog that stays is served on: OLM resolves nothing in a namespace that sees one that is
        // not READY.
        if is_complete && self.left_pinned.is_none() {
            self.pins.stop();
        }
        is_complete
    }

    /// Fails where it was refused, with the reason.
    async fn delete(&self, source: &CatalogSource) -> Result<(), String> {
        let (namespace, name) = (objects::namespace(source), objects::name(source));
        let preconditions =
            Preconditions { uid: Some(objects::uid(source).to_owned()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.catalog_objects(namespace).delete(name, &params).await {
            Ok(_) => {
                info!(namespace, catalog_source = name, "deleted");
                Ok(())
            }
            Err(error) => match Applied::from(ssa::Error::new(name, error)) {
                Applied::Done | Applied::Stale => Ok(()),
                Applied::Refused(why) | Applied::Unanswered(why) => {
                    warn!(namespace, catalog_source = name, why, "cannot be deleted");
                    Err(format!("CatalogSource {namespace}/{name}: {why}"))
                }
            },
        }
    }

    fn catalog_objects(&self, namespace: &str) -> Api<kube::api::DynamicObject> {
        let resource = kube::api::ApiResource::erase::<CatalogSource>(&());
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    /// Why the pinned catalogs of a plan cannot be, as far as that is known before the start.
    pub(super) fn cannot_pin(&self, plan: &Plan) -> Option<String> {
        let is_pinned = plan.steps.iter().any(|step| step.via == Via::PinnedCatalog);
        (is_pinned && self.pins.address().is_none()).then(|| {
            "the plan needs a pinned catalog, and the agent has no address to serve it at \
             (--pinned-catalog-listen, --pinned-catalog-address)"
                .to_owned()
        })
    }
}

/// In whose name an upgrade writes.
pub(super) fn holder(home: &str, upgrade: &ClusterUpgrade) -> String {
    format!("{home}/{}", objects::name(upgrade))
}

/// The pinned catalog that is there for the step.
pub(super) fn existing(on: For<'_>, mirror: &Mirror) -> Option<std::sync::Arc<CatalogSource>> {
    let of = mirror.catalog_sources.of(on.step.namespace.as_str());
    of.into_iter().find(|source| {
        source.metadata.deletion_timestamp.is_none()
            && pins::pin_of(source).is_some_and(|pin| pin.is_for(on.holder, on.step))
    })
}

/// What to pin for the step, by what the cluster shows now. `None` where OLM goes there by itself.
fn plan_pin(on: For<'_>, seen: Seen<'_>) -> Result<Option<Pin>, String> {
    let For { holder, step } = on;
    let current = seen.current;
    let lookup =
        |source: &inventory::CatalogSource| current.content(&source.namespace, &source.name);
    let namespace = current.inventory.namespaces.iter().find(|n| n.namespace == step.namespace);
    let is_subscribed = |package: &str| {
        namespace.is_some_and(|n| n.subscriptions.iter().any(|s| s.package == package))
    };
    // What comes along new has no Subscription yet, and is OLM's own choice.
    let wanted: BTreeMap<String, String> = step
        .moves
        .iter()
        .filter(|item| is_subscribed(item.package.as_str()))
        .map(|item| (item.package.to_string(), item.to.to_string()))
        .collect();
    let found = planner::pin(&OlmV0, &current.inventory, &lookup, &step.namespace, &wanted);
    let (pinned, catalog) = found
        .map_err(|missing| format!("it cannot be done without {missing}"))?
        .map_err(|error| error.to_string())?;
    let moves: BTreeSet<&str> = pinned.moves.iter().map(|item| item.to.as_str()).collect();
    if moves != step.csv_names() {
        let moves: Vec<&str> = moves.into_iter().collect();
        return Err(format!("it would lead to [{}]", moves.join(", ")));
    }
    if pinned.kept.is_empty() {
        return Ok(None);
    }
    Ok(Some(Pin {
        holder: holder.to_owned(),
        csvs: step.csv_names().into_iter().map(str::to_owned).collect(),
        digest: catalog.digest().to_string(),
        kept: pinned.kept,
    }))
}
