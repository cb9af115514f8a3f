//! Creating and changing objects.

mod rules;

use std::sync::Arc;

use serde_json::{Value, json};

use self::rules::Write;
use super::{Key, Store, Subresource};
use crate::apiserver::{
    error::ApiError,
    fields::{self, Hint},
    kind::{Gk, Kind},
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
        let mut write = Write { kind: &kind, part, options, now: &now, warnings: Vec::new() };
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
        let live = state
            .find(gk, key)
            .cloned()
            .ok_or_else(|| ApiError::not_found(&kind.plural, kind.gk.group(), &key.name))?;
        let mut write = Write { kind: &kind, part, options, now: &now, warnings: Vec::new() };
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
        let mut write = Write { kind: &kind, part, options, now: &now, warnings: Vec::new() };
        let key = Key::of(&config);
        let live = state.find(gk, &key).cloned();
        if live.is_none() && part == Part::Status {
            return Err(ApiError::not_found(&kind.plural, kind.gk.group(), &key.name));
        }
        if live.is_none() {
            check_expects_nothing(&kind, &config)?;
            meta::of_mut(&mut config).remove("resourceVersion");
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

/// A configuration that names a uid means an object that is there.
fn check_expects_nothing(kind: &Kind, config: &Value) -> Result<(), ApiError> {
    let uid = meta::uid(config);
    if uid.is_empty() {
        return Ok(());
    }
    let why = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    Err(ApiError::conflict(&kind.plural, kind.gk.group(), meta::name(config), &why))
}
