//! The rules an object passes on its way into the store.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Effect, FieldValidation, Outcome, Part, WriteOptions};
use crate::apiserver::{
    admit, crd,
    error::{ApiError, Reason},
    fields::{self, Hint, Manager, Writer},
    kind::Kind,
    kinds::gk,
    meta,
    store::{Key, State},
};

/// A write on its way through the rules.
pub(super) struct Write<'a> {
    pub(super) kind: &'a Kind,
    pub(super) part: Part,
    pub(super) options: WriteOptions<'a>,
    pub(super) now: &'a str,
    pub(super) warnings: Vec<String>,
}

impl<'a> Write<'a> {
    pub(super) fn writer<'w>(&self, api_version: &'w str) -> Writer<'w>
    where
        'a: 'w,
    {
        let subresource = if self.part == Part::Status { "status" } else { "" };
        Writer { name: self.options.manager, subresource, api_version, now: self.now }
    }

    /// Checks and completes a new object.
    pub(super) fn prepare_new(
        &mut self,
        state: &State,
        mut object: Value,
    ) -> Result<Value, ApiError> {
        self.settle_type(&mut object)?;
        if !meta::text(&object, "resourceVersion").is_empty() {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::new(Reason::InternalError, message));
        }
        if self.kind.is_namespaced() {
            state.check_namespace(self.kind, meta::namespace(&object))?;
        } else {
            meta::of_mut(&mut object).remove("namespace");
        }
        self.settle_name(state, &mut object)?;
        if self.part == Part::Main && self.kind.has_status() {
            meta::put(&mut object, "status", None);
        }
        admit::new_object(self.kind, &mut object);
        for field in ["deletionTimestamp", "managedFields", "selfLink"] {
            meta::of_mut(&mut object).remove(field);
        }
        meta::set(&mut object, "uid", uuid::Uuid::new_v4().to_string());
        meta::set(&mut object, "creationTimestamp", self.now);
        if self.kind.counts_generation {
            meta::set(&mut object, "generation", 1);
        } else {
            meta::of_mut(&mut object).remove("generation");
        }
        self.check_schema(&mut object)?;
        let key = Key::of(&object);
        if state.find(&self.kind.gk, &key).is_some() {
            let group = self.kind.gk.group();
            return Err(ApiError::already_exists(&self.kind.plural, group, &key.name));
        }
        Ok(object)
    }

    pub(super) fn create(
        &self,
        state: &mut State,
        mut object: Value,
        owners: Option<&[Manager]>,
    ) -> Result<Arc<Value>, ApiError> {
        self.set_owners(None, &mut object, owners);
        if self.kind.gk == gk::CRD {
            let kind = crd::kind_of(&object)?;
            object["status"] = crd::established(&object, self.now);
            if !self.options.dry_run {
                Arc::make_mut(&mut state.kinds).insert(kind);
            }
        }
        if self.options.dry_run {
            return Ok(Arc::new(object));
        }
        Ok(state.put(&self.kind.gk, Key::of(&object), object))
    }

    /// Checks a changed object and keeps what the write may not touch.
    pub(super) fn prepare_change(
        &mut self,
        live: &Value,
        proposed: Value,
    ) -> Result<Value, ApiError> {
        let mut next = proposed;
        self.settle_type(&mut next)?;
        self.check_identity(live, &next)?;
        match self.part {
            Part::Main if self.kind.has_status() => {
                meta::put(&mut next, "status", live.get("status").cloned());
            }
            Part::Status => {
                let status = next.get("status").cloned();
                next = live.clone();
                meta::put(&mut next, "status", status);
            }
            Part::Main | Part::Whole => {}
        }
        admit::changed_object(self.kind, &mut next);
        for field in [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generateName",
            "resourceVersion",
            "managedFields",
        ] {
            meta::copy(live, &mut next, field);
        }
        if meta::is_deleting(live) {
            let before = meta::finalizers(live);
            if meta::finalizers(&next).iter().any(|finalizer| !before.contains(finalizer)) {
                let why =
                    "Forbidden: no new finalizers can be added if the object is being deleted";
                let cause = ("metadata.finalizers".to_owned(), why.to_owned());
                return Err(ApiError::invalid(&self.kind.gk, meta::name(live), &[cause]));
            }
        }
        self.check_schema(&mut next)?;
        Ok(next)
    }

    pub(super) fn commit(
        mut self,
        state: &mut State,
        key: &Key,
        live: &Arc<Value>,
        mut next: Value,
        owners: Option<&[Manager]>,
    ) -> Result<Outcome, ApiError> {
        let warnings = std::mem::take(&mut self.warnings);
        let is_same = next == **live;
        if !is_same && self.kind.counts_generation && has_new_intent(live, &next) {
            meta::set(&mut next, "generation", meta::generation(live) + 1);
        }
        if !is_same || owners.is_some() {
            self.set_owners(Some(live), &mut next, owners);
        }
        if next == **live {
            return Ok(Outcome { object: Arc::clone(live), effect: Effect::Nothing, warnings });
        }
        if self.kind.gk == gk::CRD && live.get("spec") != next.get("spec") {
            let kind = crd::kind_of(&next)?;
            crd::stored(&mut next);
            if !self.options.dry_run {
                state.redefine(kind);
            }
        }
        if self.options.dry_run {
            return Ok(Outcome { object: Arc::new(next), effect: Effect::Changed, warnings });
        }
        let object = state.put(&self.kind.gk, key.clone(), next);
        if meta::is_deleting(&object) {
            state.finish_deletion(&self.kind.gk, key, self.now);
        }
        Ok(Outcome { object, effect: Effect::Changed, warnings })
    }

    fn settle_type(&self, object: &mut Value) -> Result<(), ApiError> {
        let version = self.kind.api_version();
        let said = |field: &str, object: &Value| {
            object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (given, kind) = (said("apiVersion", object), said("kind", object));
        if !given.is_empty() && given != version {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({version})"
            )));
        }
        if !kind.is_empty() && kind != self.kind.gk.kind() {
            return Err(ApiError::bad_request(format!(
                "the kind in the data ({kind}) does not match the expected kind ({})",
                self.kind.gk.kind()
            )));
        }
        let fields = meta::fields_mut(object);
        fields.insert("apiVersion".to_owned(), version.into());
        fields.insert("kind".to_owned(), self.kind.gk.kind().into());
        // What is empty is as good as absent.
        meta::of_mut(object).retain(|field, value| {
            let is_list = matches!(
                field.as_str(),
                "labels" | "annotations" | "finalizers" | "ownerReferences"
            );
            !(is_list && (value.is_null() || *value == json!([]) || *value == json!({})))
        });
        Ok(())
    }

    fn settle_name(&self, state: &State, object: &mut Value) -> Result<(), ApiError> {
        let prefix = meta::text(object, "generateName").to_owned();
        if meta::name(object).is_empty() && !prefix.is_empty() {
            loop {
                let name = format!("{prefix}{}", random_suffix());
                let key = Key::new(Some(meta::namespace(object)), &name);
                if state.find(&self.kind.gk, &key).is_none() {
                    meta::set(object, "name", name);
                    break;
                }
            }
        }
        admit::check_name(self.kind, meta::name(object))
    }

    fn check_identity(&self, live: &Value, next: &Value) -> Result<(), ApiError> {
        let (name, group) = (meta::name(live), self.kind.gk.group());
        for field in ["name", "namespace"] {
            let (was, is) = (meta::text(live, field), meta::text(next, field));
            if !is.is_empty() && was != is {
                return Err(ApiError::bad_request(format!(
                    "the {field} of the object ({is}) does not match the {field} on the URL ({was})"
                )));
            }
        }
        let uid = meta::uid(next);
        if !uid.is_empty() && uid != meta::uid(live) {
            let cause = format!("Invalid value: \"{uid}\": field is immutable");
            let cause = ("metadata.uid".to_owned(), cause);
            return Err(ApiError::invalid(&self.kind.gk, name, &[cause]));
        }
        let version = meta::text(next, "resourceVersion");
        let is_stale = !version.is_empty() && version != meta::text(live, "resourceVersion");
        if self.part != Part::Whole && is_stale {
            let why = "the object has been modified; please apply your changes to the latest \
                version and try again";
            return Err(ApiError::conflict(&self.kind.plural, group, name, why));
        }
        Ok(())
    }

    fn check_schema(&mut self, object: &mut Value) -> Result<(), ApiError> {
        let Some(schema) = &self.kind.schema else { return Ok(()) };
        let unknown = schema.prune(object);
        if !unknown.is_empty() {
            let told = unknown.iter().map(|field| format!("unknown field \"{field}\""));
            match self.options.validation {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => self.warnings.extend(told),
                FieldValidation::Strict => {
                    let told: Vec<String> = told.collect();
                    return Err(ApiError::bad_request(format!(
                        "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                        self.kind.gk.kind(),
                        self.kind.version,
                        self.kind.gk.kind(),
                        told.join(", ")
                    )));
                }
            }
        }
        schema.drop_nulls(object);
        schema.fill_defaults(object);
        let causes = schema.validate(object);
        if causes.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(&self.kind.gk, meta::name(object), &causes))
    }

    /// What an applier may say: not `managedFields`, and only its own part.
    pub(super) fn strip_applied(&self, config: &mut Value) -> Result<(), ApiError> {
        self.settle_type(config)?;
        if config.pointer("/metadata/managedFields").is_some_and(|list| !list.is_null()) {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        match self.part {
            Part::Status => {
                meta::fields_mut(config).retain(|field, _| field != "spec");
                for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
                    meta::of_mut(config).remove(field);
                }
            }
            Part::Main if self.kind.has_status() => meta::put(config, "status", None),
            Part::Main | Part::Whole => {}
        }
        Ok(())
    }

    fn set_owners(&self, live: Option<&Value>, next: &mut Value, owners: Option<&[Manager]>) {
        if let Some(owners) = owners {
            Manager::write_all(owners, next);
            return;
        }
        let has_owners = live.is_some_and(|l| l.pointer("/metadata/managedFields").is_some());
        if self.options.manager.is_none() && !has_owners {
            return;
        }
        let version = self.kind.api_version();
        let hint = Hint::Top(self.kind.schema.as_ref());
        let owners = fields::after_update(live, next, hint, self.writer(&version));
        Manager::write_all(&owners, next);
    }
}

/// Whether anything but metadata and status differs.
fn has_new_intent(live: &Value, next: &Value) -> bool {
    let is_intent = |name: &String| !matches!(name.as_str(), "metadata" | "status");
    let names = |object: &Value| -> Vec<String> {
        object
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .filter(|n| is_intent(n))
            .cloned()
            .collect()
    };
    names(live).iter().chain(&names(next)).any(|name| live.get(name) != next.get(name))
}

/// Five letters and digits as Kubernetes appends them to a `generateName`.
fn random_suffix() -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes = uuid::Uuid::new_v4().into_bytes();
    let letter = |byte: &u8| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]);
    bytes.iter().take(5).map(letter).collect()
}
