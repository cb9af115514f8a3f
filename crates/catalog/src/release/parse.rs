//! From the JSON of a release document to its types. Written by hand so that every complaint has the
//! path of its field.

use std::collections::BTreeMap;

use serde_json::Value;
use wavelift_core::{range::Range, version::Version};

use super::{
    Assessment, Carried, Impact, ManualStep, Release, ReleaseNote, Span, StatusCondition,
    StatusObject, StatusSource, Unknown, When,
};
use crate::{fbc::FieldError, manifests::view::View, status};

/// Items of one list.
const ITEMS_MAX: usize = 2_000;
/// Bytes of one text.
const TEXT_MAX: usize = 64 << 10;

pub(super) fn release(value: &Value) -> Result<Release, FieldError> {
    let view = View::root(value);
    if !value.is_object() {
        return Err(FieldError::NoObject);
    }
    let known = [
        "schema",
        "package",
        "releaseNotes",
        "manualSteps",
        "assessments",
        "checks",
        "statusSources",
    ];
    Ok(Release {
        schema: text(&view, "schema")?,
        package: text(&view, "package")?,
        release_notes: list(&view, "releaseNotes", note)?,
        manual_steps: list(&view, "manualSteps", step)?,
        assessments: list(&view, "assessments", assessment)?,
        checks: list(&view, "checks", carried)?,
        status_sources: list(&view, "statusSources", status_source)?,
        unknown: others(&view, &known),
    })
}

fn list<T>(
    view: &View<'_>,
    field: &str,
    item: impl Fn(&View<'_>) -> Result<T, FieldError>,
) -> Result<Vec<T>, FieldError> {
    let list = view.get(field)?;
    let mut items = Vec::new();
    for of in list.items()? {
        if items.len() == ITEMS_MAX {
            return Err(list.wrong("a list of at most 2,000 items"));
        }
        items.push(item(&of)?);
    }
    Ok(items)
}

fn text(view: &View<'_>, field: &str) -> Result<Option<String>, FieldError> {
    let field = view.get(field)?;
    let text = field.text()?.filter(|text| !text.trim().is_empty());
    if text.is_some_and(|text| text.len() > TEXT_MAX) {
        return Err(field.wrong("a text of at most 64 KiB"));
    }
    Ok(text.map(str::to_owned))
}

fn required(view: &View<'_>, field: &str) -> Result<String, FieldError> {
    text(view, field)?.ok_or_else(|| match view.get(field) {
        Ok(field) => field.wrong("a text"),
        Err(error) => error,
    })
}

fn others(view: &View<'_>, known: &[&str]) -> Unknown {
    let fields = view.value().and_then(Value::as_object).into_iter().flatten();
    let fields = fields.filter(|(name, _)| !known.contains(&name.as_str()));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn span(view: &View<'_>) -> Result<Span, FieldError> {
    let (version, versions) = (view.get("version")?, view.get("versions")?);
    let (one, range) = (version.text()?, versions.text()?);
    let span = Span {
        version: one
            .map(|text| Version::parse_tolerant(text).map_err(|_| version.wrong("a version")))
            .transpose()?,
        versions: range
            .map(|text| Range::parse(text).map_err(|_| versions.wrong("a range of versions")))
            .transpose()?,
    };
    match (&span.version, &span.versions) {
        (None, None) => Err(versions.wrong("there, nor is `version`: one of them must be")),
        (Some(_), Some(_)) => Err(versions.wrong("alone: `version` is there too")),
        (Some(_), None) | (None, Some(_)) => Ok(span),
    }
}

fn note(view: &View<'_>) -> Result<ReleaseNote, FieldError> {
    let note = ReleaseNote {
        span: span(view)?,
        title: text(view, "title")?,
        text: text(view, "text")?,
        url: text(view, "url")?,
        unknown: others(view, &["version", "versions", "title", "text", "url"]),
    };
    if note.text.is_none() && note.url.is_none() {
        return Err(view.get("text")?.wrong("there, nor is `url`: one of them must be"));
    }
    Ok(note)
}

fn step(view: &View<'_>) -> Result<ManualStep, FieldError> {
    let when = view.get("when")?;
    Ok(ManualStep {
        span: span(view)?,
        title: required(view, "title")?,
        when: match when.text()? {
            None | Some("Before") => When::Before,
            Some("After") => When::After,
            Some(_) => return Err(when.wrong("`Before` or `After`")),
        },
        description: text(view, "description")?,
        url: text(view, "url")?,
        unknown: others(view, &["version", "versions", "title", "when", "description", "url"]),
    })
}

fn assessment(view: &View<'_>) -> Result<Assessment, FieldError> {
    let impact = view.get("impact")?;
    let known = ["id", "version", "versions", "title", "impact", "description", "action", "url"];
    Ok(Assessment {
        id: required(view, "id")?,
        span: span(view)?,
        title: required(view, "title")?,
        impact: match impact.text()? {
            Some("None") => Impact::None,
            Some("Low") => Impact::Low,
            Some("Medium") => Impact::Medium,
            Some("High") => Impact::High,
            Some(_) | None => return Err(impact.wrong("`None`, `Low`, `Medium` or `High`")),
        },
        description: text(view, "description")?,
        action: text(view, "action")?,
        url: text(view, "url")?,
        unknown: others(view, &known),
    })
}

fn carried(view: &View<'_>) -> Result<Carried, FieldError> {
    let definition: BTreeMap<String, Value> = others(view, &["name", "version", "versions"]);
    Ok(Carried { name: required(view, "name")?, span: span(view)?, definition })
}

fn status_source(view: &View<'_>) -> Result<StatusSource, FieldError> {
    let known = ["name", "version", "versions", "objects", "progress", "message", "conditions"];
    let source = StatusSource {
        name: required(view, "name")?,
        span: span(view)?,
        objects: list(view, "objects", status_object)?,
        progress: text(view, "progress")?,
        message: text(view, "message")?,
        conditions: list(view, "conditions", status_condition)?,
        unknown: others(view, &known),
    };
    match status::Source::new(&source) {
        Ok(_) => Ok(source),
        Err((field, expected)) => {
            let path = view.path();
            Err(FieldError::Rule { field: format!("{path}.{field}"), reason: expected })
        }
    }
}

fn status_object(view: &View<'_>) -> Result<StatusObject, FieldError> {
    Ok(StatusObject {
        variable: required(view, "variable")?,
        api_version: required(view, "apiVersion")?,
        kind: required(view, "kind")?,
        name: text(view, "name")?,
        namespace: text(view, "namespace")?,
        unknown: others(view, &["variable", "apiVersion", "kind", "name", "namespace"]),
    })
}

fn status_condition(view: &View<'_>) -> Result<StatusCondition, FieldError> {
    Ok(StatusCondition {
        kind: required(view, "type")?,
        status: required(view, "status")?,
        reason: text(view, "reason")?,
        message: text(view, "message")?,
        unknown: others(view, &["type", "status", "reason", "message"]),
    })
}
