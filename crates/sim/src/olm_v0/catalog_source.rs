//! Catalog sources: their connection state, and what OLM last read from each.
//!
//! What was read stays known when the registry goes down, so that a plan can come from a picture
//! of the past. Only a source that has never been read prevents resolution.

use std::sync::Arc;

use serde_json::json;
use wavelift_catalog::Catalog;

use super::{
    Key, OlmV0, Task,
    objects::{set, stamp, text},
};
use crate::apiserver::gk;

/// The registry behind one catalog source.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// What it serves now; `None` when it is down.
    content: Option<Arc<Catalog>>,
    /// What was last read from it.
    pub(super) snapshot: Option<Arc<Catalog>>,
}

const EXCLUDE_GLOBAL: &str =
    "/metadata/annotations/olm.operatorframework.io~1exclude-global-namespace-resolution";

impl OlmV0 {
    pub(super) fn put_catalog(&mut self, key: Key, content: Option<Arc<Catalog>>) {
        self.catalogs.entry(key.clone()).or_default().content = content;
        self.later(self.timing.catalog_connects, Task::CatalogSource(key));
    }

    /// Takes a source's content as read long ago, without waiting for a connection.
    pub(crate) fn assume_read(&mut self, namespace: &str, name: &str) {
        if let Some(served) = self.catalogs.get_mut(&Key::new(namespace, name)) {
            served.snapshot = served.content.clone();
        }
    }

    /// Moves a source's connection one state on.
    pub(super) fn sync_catalog_source(&mut self, key: &Key) {
        let Some(source) = self.objects.get(&gk::CATALOG_SOURCE, key) else { return };
        let served = self.catalogs.entry(key.clone()).or_default();
        let unread = match (&served.content, &served.snapshot) {
            (Some(content), Some(snapshot)) => !Arc::ptr_eq(content, snapshot),
            (Some(_), None) => true,
            (None, _) => false,
        };
        let state = text(&source, "/status/connectionState/lastObservedState");
        let next = match (state, &served.content) {
            ("", _) => "IDLE",
            ("READY", Some(_)) if !unread => return,
            ("READY", Some(_)) | (_, None) => "TRANSIENT_FAILURE",
            (_, Some(_)) => "READY",
        };
        if state == next {
            return;
        }
        if next == "READY" {
            served.snapshot.clone_from(&served.content);
        }
        let now = stamp(self.now);
        self.objects.modify_status(&gk::CATALOG_SOURCE, key, |source| {
            let address = text(source, "/spec/address").to_owned();
            set(
                source,
                "/status/connectionState",
                json!({
                    "address": address, "lastConnect": now, "lastObservedState": next,
                }),
            );
            if text(source, "/status/registryService/createdAt").is_empty() {
                set(
                    source,
                    "/status/registryService",
                    json!({
                        "createdAt": now, "protocol": "grpc",
                    }),
                );
            }
        });
        if next != "READY" {
            self.later(self.timing.catalog_connects, Task::CatalogSource(key.clone()));
        }
        self.resolve_who_sees(key);
    }

    /// Resolves again in every namespace that sees a source.
    pub(super) fn resolve_who_sees(&mut self, source: &Key) {
        for namespace in self.objects.namespaces_with(&gk::SUBSCRIPTION) {
            if namespace == source.namespace || source.namespace == self.global_namespace {
                for subscription in self.objects.keys(&gk::SUBSCRIPTION, &namespace) {
                    self.later(self.timing.conditions_follow, Task::Conditions(subscription));
                }
                self.later(self.timing.resolution, Task::Resolve(namespace));
            }
        }
    }

    /// The catalog sources that a namespace sees.
    pub(super) fn visible_sources(&self, namespace: &str) -> Vec<Key> {
        let excluded = self
            .objects
            .list(&gk::OPERATOR_GROUP, namespace)
            .iter()
            .any(|group| text(group, EXCLUDE_GLOBAL) == "true");
        let mut namespaces = vec![namespace];
        if !excluded && namespace != self.global_namespace {
            namespaces.push(&self.global_namespace);
        }
        namespaces
            .into_iter()
            .flat_map(|namespace| self.objects.keys(&gk::CATALOG_SOURCE, namespace))
            .collect()
    }
}
