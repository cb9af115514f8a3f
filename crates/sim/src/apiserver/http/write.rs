//! Create, update, patch and delete.

use std::{borrow::Cow, sync::Arc};

use http::{StatusCode, header};
use serde_json::{Value, json};

use super::{
    Answer, json_response,
    read::Form,
    route::{Call, Target},
};
use crate::apiserver::{
    ApiServer,
    audit::AuditEffect,
    error::ApiError,
    kind::Gk,
    meta,
    patch::PatchKind,
    selector::Selector,
    store::{Deleted, Effect, Force, Key, Outcome, Part, Precondition, Propagation},
    view::View,
};

pub(super) fn create(server: &ApiServer, call: &Call, target: &Target) -> Result<Answer, ApiError> {
    let mut object = target.view.inward(check_version(target, call.object()?)?);
    if let Some(namespace) = &target.namespace {
        let said = meta::namespace(&object);
        if !said.is_empty() && said != namespace {
            return Err(ApiError::bad_request(format!(
                "the namespace of the provided object does not match the namespace sent on the \
                 request: {said}, {namespace}"
            )));
        }
        meta::set(&mut object, "namespace", namespace.as_str());
    }
    let outcome =
        server.store().create_part(&target.kind.gk, object, Part::Main, call.write_options())?;
    Ok(answer(server, call, target, outcome))
}

pub(super) fn update(server: &ApiServer, call: &Call, target: &Target) -> Result<Answer, ApiError> {
    let object = target.view.inward(check_version(target, call.object()?)?);
    if target.kind.needs_resource_version() && meta::text(&object, "resourceVersion").is_empty() {
        let cause = "Invalid value: 0: must be specified for an update";
        let cause = ("metadata.resourceVersion".to_owned(), cause.to_owned());
        return Err(ApiError::invalid(&target.kind.gk, meta::name(&object), &[cause]));
    }
    let outcome = server.store().change(
        &target.kind.gk,
        &target.key(),
        target.part(),
        call.write_options(),
        |live| {
            let (wanted, found) = (meta::uid(&object), meta::uid(live));
            if !wanted.is_empty() && wanted != found {
                let why = format!(
                    "Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
                );
                let (kind, name) = (&target.kind, meta::name(live));
                return Err(ApiError::conflict(&kind.plural, kind.gk.group(), name, &why));
            }
            Ok(object)
        },
    )?;
    Ok(answer(server, call, target, outcome))
}

pub(super) fn patch(server: &ApiServer, call: &Call, target: &Target) -> Result<Answer, ApiError> {
    let patch_kind = PatchKind::of(&call.content_type, &target.kind)?;
    let patch = call.object()?;
    if patch_kind == PatchKind::Apply {
        return apply(server, call, target, patch);
    }
    let outcome = server.store().change(
        &target.kind.gk,
        &target.key(),
        target.part(),
        call.write_options(),
        |live| match &target.view {
            View::Stored => patch_kind.run(live, &patch),
            View::EventsV1 | View::Version { .. } => {
                let seen = target.view.outward(live);
                patch_kind.run(&seen, &patch).map(|next| target.view.inward(next))
            }
        },
    )?;
    Ok(answer(server, call, target, outcome))
}

fn apply(
    server: &ApiServer,
    call: &Call,
    target: &Target,
    config: Value,
) -> Result<Answer, ApiError> {
    if call.query("fieldManager").is_empty() {
        let cause =
            ("fieldManager".to_owned(), "Required value: is required for apply patch".to_owned());
        return Err(ApiError::invalid(&Gk::of("meta.k8s.io", "PatchOptions"), "", &[cause]));
    }
    let mut config = target.view.inward(check_version(target, config)?);
    let key = target.key();
    for (field, wanted) in [("name", &key.name), ("namespace", &key.namespace)] {
        let said = meta::text(&config, field);
        if !said.is_empty() && said != wanted {
            return Err(ApiError::bad_request(format!(
                "the {field} of the object ({said}) does not match the {field} on the URL ({wanted})"
            )));
        }
        if !wanted.is_empty() {
            meta::set(&mut config, field, wanted.as_str());
        }
    }
    let force = if call.flag("force") { Force::Yes } else { Force::No };
    let options = (call.write_options(), force);
    let outcome = server.store().apply(&target.kind.gk, config, target.part(), options)?;
    Ok(answer(server, call, target, outcome))
}

pub(super) fn delete(server: &ApiServer, call: &Call, target: &Target) -> Result<Answer, ApiError> {
    let options = DeleteOptions::read(call)?;
    let key = target.key();
    let kind = &target.kind;
    if call.write_options().dry_run || options.is_dry_run {
        let found = server.store().get(&kind.gk, target.namespace.as_deref(), &key.name);
        let object =
            found.ok_or_else(|| ApiError::not_found(&kind.plural, kind.gk.group(), &key.name))?;
        return Ok(json_response(StatusCode::OK, &*target.view.outward(&object)).into());
    }
    let deleted =
        server.store().delete_if(&kind.gk, &key, &options.precondition, options.propagation)?;
    let body = match deleted {
        Deleted::Waits(object) => target.view.outward(&object).into_owned(),
        Deleted::Gone(object) => json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": key.name, "group": kind.gk.group(), "kind": kind.plural,
                "uid": meta::uid(&object)},
        }),
    };
    Ok(Answer { response: json_response(StatusCode::OK, &body), effect: AuditEffect::Changed })
}

pub(super) fn delete_all(
    server: &ApiServer,
    call: &Call,
    target: &Target,
) -> Result<Answer, ApiError> {
    let options = DeleteOptions::read(call)?;
    let kind = &target.kind;
    let selector = Selector::parse(kind, call.query("labelSelector"), call.query("fieldSelector"))?;
    let objects = server.store().list(&kind.gk, target.namespace.as_deref());
    let chosen: Vec<Arc<Value>> =
        objects.into_iter().filter(|object| selector.matches(object)).collect();
    let mut effect = AuditEffect::Unchanged;
    if !call.write_options().dry_run {
        for object in &chosen {
            let key = Key::of(object);
            let gone = server.store().delete_if(
                &kind.gk,
                &key,
                &options.precondition,
                options.propagation,
            );
            match gone {
                Ok(_) => effect = AuditEffect::Changed,
                // Something this deletion brought with it took the object already.
                Err(error) if error.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
    }
    let items: Vec<Cow<'_, Value>> =
        chosen.iter().map(|object| target.view.outward(object)).collect();
    let body = json!({"kind": kind.list_kind(), "apiVersion": target.api_version(),
        "metadata": {"resourceVersion": server.store().revision().to_string()}, "items": items});
    Ok(Answer { response: json_response(StatusCode::OK, &body), effect })
}

#[derive(Debug, Default)]
struct DeleteOptions {
    precondition: Precondition,
    propagation: Propagation,
    is_dry_run: bool,
}

impl DeleteOptions {
    fn read(call: &Call) -> Result<Self, ApiError> {
        let body = if call.body.is_empty() { json!({}) } else { call.object()? };
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let policy = text("/propagationPolicy").unwrap_or_else(|| call.query("propagationPolicy"));
        Ok(Self {
            precondition: Precondition {
                uid: text("/preconditions/uid").map(str::to_owned),
                resource_version: text("/preconditions/resourceVersion").map(str::to_owned),
            },
            propagation: if policy == "Orphan" { Propagation::Orphan } else { Propagation::Delete },
            is_dry_run: body["dryRun"][0] == "All",
        })
    }
}

/// Refuses an object of another version than the path's.
fn check_version(target: &Target, object: Value) -> Result<Value, ApiError> {
    if let Some(wanted) = target.view.api_version() {
        let said = object.get("apiVersion").and_then(Value::as_str).unwrap_or(wanted);
        if said != wanted {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({said}) does not match the expected API version ({wanted})"
            )));
        }
    }
    Ok(object)
}

fn answer(server: &ApiServer, call: &Call, target: &Target, outcome: Outcome) -> Answer {
    let (status, effect) = match outcome.effect {
        Effect::Created => (StatusCode::CREATED, AuditEffect::Changed),
        Effect::Changed => (StatusCode::OK, AuditEffect::Changed),
        Effect::Nothing => (StatusCode::OK, AuditEffect::Unchanged),
    };
    let effect = if call.write_options().dry_run { AuditEffect::Unchanged } else { effect };
    let shaped = Form::of(call).shape(server, target, &outcome.object);
    let mut response = json_response(status, &*shaped);
    for warning in outcome.warnings {
        let quoted = format!("299 - {}", Value::String(warning));
        if let Ok(value) = header::HeaderValue::from_str(&quoted) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    Answer { response, effect }
}

// === impl Target ===

impl Target {
    fn key(&self) -> Key {
        Key::new(self.namespace.as_deref(), self.name.as_deref().unwrap_or_default())
    }

    fn part(&self) -> Part {
        if self.is_status { Part::Status } else { Part::Main }
    }
}
