//! Creating and changing objects.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Key, State, Store, Subresource};
use crate::apiserver::{
    admit, crd,
    error::ApiError,
    fields::{self, Hint, Manager, Writer},
    kind::{Gk, Kind},
    kinds::gk,
    meta,
};

/// How a request wants to be treated.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::apiserver) struct WriteOptions<'a> {
    /// The field manager, if the writer has a name.
    pub(in crate::apiserver) manager: Option<&'a str>,
    /// Do everything but keep the result.
    pub(in crate::apiserver) dry_run: bool,
    /// What to do about unknown fields.
    pub(in crate::apiserver) validation: FieldValidation,
}

/// What to do about fields the schema does not know; they are dropped in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::apiserver) enum FieldValidation {
    /// Say nothing.
    #[default]
    Ignore,
    /// Say so in a warning header.
    Warn,
    /// Refuse.
    Strict,
}

/// What a write came to.
#[derive(Debug)]
pub(in crate::apiserver) struct Outcome {
    /// The object after the write.
    pub(in crate::apiserver) object: Arc<Value>,
    /// What happened.
    pub(in crate::apiserver) effect: Effect,
    /// For the `Warning` header.
    pub(in crate::apiserver) warnings: Vec<String>,
}

/// What a write did to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apiserver) enum Effect {
    /// A new object.
    Created,
    /// Another state of an object.
    Changed,
    /// The same state as before: no event, no new resourceVersion.
    Nothing,
}

/// The part of the object a write may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apiserver) enum Part {
    Main,
    Status,
    /// Both; only for writers inside the process.
    Whole,
}

impl From<Subresource> for Part {
    fn from(subresource: Subresource) -> Self {
        match subresource {
            Subresource::Main => Self::Main,
            Subresource::Status => Self::Status,
        }
    }
}

/// A write on its way through the rules.
struct Write<'a> {
    kind: &'a Kind,
    part: Part,
    options: WriteOptions<'a>,
    now: &'a str,
    warnings: Vec<String>,
}

// === impl Store ===

impl Store {
    /// Creates an object, its status included.
    pub fn create(&self, gk: &Gk, object: Value) -> Result<Arc<Value>, ApiError> {
        self.create_part(gk, object, Part::Whole, self.options()).map(|outcome| outcome.object)
    }

    /// Replaces everything but the status. A resourceVersion in `object` must be the current one.
    pub fn update(&self, gk: &Gk, object: Value) -> Result<Arc<Value>, ApiError> {
        self.replace(gk, object, Part::Main, self.options()).map(|outcome| outcome.object)
    }

    /// Replaces the status.
    pub fn update_status(&self, gk: &Gk, object: Value) -> Result<Arc<Value>, ApiError> {
        self.replace(gk, object, Part::Status, self.options()).map(|outcome| outcome.object)
    }

    /// Applies a JSON merge patch to one part.
    pub fn patch_merge(
        &self,
        gk: &Gk,
        namespace: Option<&str>,
        name: &str,
        part: Subresource,
        patch: &Value,
    ) -> Result<Arc<Value>, ApiError> {
        let key = Key::new(namespace, name);
        let outcome = self.change(gk, &key, part.into(), self.options(), |live| {
            let mut next = live.clone();
            json_patch::merge(&mut next, patch);
            Ok(next)
        })?;
        Ok(outcome.object)
    }

    /// Changes spec and status in one step, whatever the resourceVersion. Nothing is written and
    /// nobody is told when the change changes nothing; the generation moves with the spec alone.
    pub fn modify(
        &self,
        gk: &Gk,
        namespace: Option<&str>,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Value>, ApiError> {
        let key = Key::new(namespace, name);
        let outcome = self.change(gk, &key, Part::Whole, self.options(), |live| {
            let mut next = live.clone();
            change(&mut next);
            Ok(next)
        })?;
        Ok(outcome.object)
    }

    fn options(&self) -> WriteOptions<'_> {
        WriteOptions { manager: self.manager.as_deref(), ..WriteOptions::default() }
    }

    pub(in crate::apiserver) fn create_part(
        &self,
        gk: &Gk,
        object: Value,
        part: Part,
        options: WriteOptions<'_>,
    ) -> Result<Outcome, ApiError> {
        let now = self.now();
        let mut state = self.shared.state.write();
        let kind = state.kind(gk)?;
        let mut write =
            Write { kind: &kind, part, options, now: &now, warnings: Vec::new() };
        let object = write.prepare_new(&state, object)?;
        let object = write.create(&mut state, object, None)?;
        let warnings = write.warnings;
        let revision = state.revision;
        drop(state);
        self.announce(revision);
        Ok(Outcome { object, effect: Effect::Created, warnings })
    }

    pub(in crate::apiserver) fn replace(
        &self,
        gk: &Gk,
        object: Value,
        part: Part,
        options: WriteOptions<'_>,
    ) -> Result<Outcome, ApiError> {
        let key = Key::of(&object);
        self.change(gk, &key, part, options, |_| Ok(object))
    }

    /// Reads, changes and writes under one lock.
    pub(in crate::apiserver) fn change(
        &self,
        gk: &Gk,
        key: &Key,
        part: Part,
        options: WriteOptions<'_>,
        change: impl FnOnce(&Value) -> Result<Value, ApiError>,
    ) -> Result<Outcome, ApiError> {
        let now = self.now();
        let mut state = self.shared.state.write();
        let kind = state.kind(gk)?;
        let live = state.find(gk, key).cloned().ok_or_else(|| {
            ApiError::not_found(&kind.plural, kind.gk.group(), &key.name)
        })?;
        let mut write =
            Write { kind: &kind, part, options, now: &now, warnings: Vec::new() };
        let proposed = change(&live)?;
        let next = write.prepare_change(&live, proposed)?;
        let outcome = write.commit(&mut state, key, &live, next, None);
        let revision = state.revision;
        drop(state);
        self.announce(revision);
        outcome
    }

    /// Server-side apply: creates the object or merges the configuration into it.
    pub(in crate::apiserver) fn apply(
        &self,
        gk: &Gk,
        mut config: Value,
        part: Part,
        (options, force): (WriteOptions<'_>, Force),
    ) -> Result<Outcome, ApiError> {
        let now = self.now();
        let mut state = self.shared.state.write();
        let kind = state.kind(gk)?;
        let mut write =
            Write { kind: &kind, part, options, now: &now, warnings: Vec::new() };
        let key = Key::of(&config);
        let live = state.find(gk, &key).cloned();
        if live.is_none() && part == Part::Status {
            return Err(ApiError::not_found(&kind.plural, kind.gk.group(), &key.name));
        }
        write.strip_applied(&mut config)?;
        let version = kind.api_version();
        let writer = write.writer(&version);
        let nothing = json!({});
        let merged = fields::after_apply(
            live.as_deref().unwrap_or(&nothing),
            &config,
            Hint::Top(kind.schema.as_ref()),
            writer,
        );
        if force == Force::No && !merged.conflicts.is_empty() {
            return Err(fields::conflict(&merged.conflicts));
        }
        let outcome = if let Some(live) = live {
            let next = write.prepare_change(&live, merged.object)?;
            write.commit(&mut state, &key, &live, next, Some(&merged.managers))?
        } else {
            let object = write.prepare_new(&state, merged.object)?;
            let object = write.create(&mut state, object, Some(&merged.managers))?;
            Outcome { object, effect: Effect::Created, warnings: write.warnings }
        };
        let revision = state.revision;
        drop(state);
        self.announce(revision);
        Ok(outcome)
    }
}

/// Whether an applier takes fields that others own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apiserver) enum Force {
    Yes,
    No,
}

// === impl Write ===

impl<'a> Write<'a> {
    fn writer<'w>(&self, api_version: &'w str) -> Writer<'w>
    where
        'a: 'w,
    {
        let subresource = if self.part == Part::Status { "status" } else { "" };
        Writer { name: self.options.manager, subresource, api_version, now: self.now }
    }

    /// Checks and completes a new object.
    fn prepare_new(&mut self, state: &State, mut object: Value) -> Result<Value, ApiError> {
        self.settle_type(&mut object)?;
        if !meta::text(&object, "resourceVersion").is_empty() {
            return Err(ApiError::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
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

    fn create(
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
    fn prepare_change(&mut self, live: &Value, proposed: Value) -> Result<Value, ApiError> {
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
            "name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp",
            "deletionGracePeriodSeconds", "generateName", "resourceVersion", "managedFields",
        ] {
            meta::copy(live, &mut next, field);
        }
        if meta::is_deleting(live) {
            let before = meta::finalizers(live);
            if meta::finalizers(&next).iter().any(|finalizer| !before.contains(finalizer)) {
                let why = "Forbidden: no new finalizers can be added if the object is being deleted";
                let cause = ("metadata.finalizers".to_owned(), why.to_owned());
                return Err(ApiError::invalid(&self.kind.gk, meta::name(live), &[cause]));
            }
        }
        self.check_schema(&mut next)?;
        Ok(next)
    }

    fn commit(
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
            if !self.options.dry_run {
                Arc::make_mut(&mut state.kinds).insert(kind);
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
        meta::of_mut(object);
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
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                meta::uid(live)
            );
            return Err(ApiError::conflict(&self.kind.plural, group, name, &why));
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
                        self.kind.gk.kind(), self.kind.version, self.kind.gk.kind(),
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
    fn strip_applied(&self, config: &mut Value) -> Result<(), ApiError> {
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
        object.as_object().into_iter().flat_map(Map::keys).filter(|n| is_intent(n)).cloned().collect()
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
