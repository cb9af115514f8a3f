//! What a campaign's plans change: its groups, one of them, what stands in the way, and all of it
//! as a document.

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderValue, Uri, header},
    response::{IntoResponse as _, Response},
};
use schemars::SchemaGenerator;
use wavelift_api::live::{
    BlockerKind, BlockerList, BlockerView, CatalogView, OperatorPreview, PreviewDetail,
    PreviewGroup, PreviewList, PreviewState, SectionView, WayView,
};

use super::{
    Context,
    cursor::{Key, Paging},
    params::{CONTINUE, Kind, LIMIT, Order, Param, Params},
    problem::Error,
    upgrades::{find, shorten, word},
};
use crate::preview::{Blocker, Counted, Form, GroupPreview, Preview, counts, report, sections};

/// `format`, of what can be a document.
const FORMAT: Param = Param {
    name: "format",
    about: "JSON, or a document for people that stands for itself.",
    kind: Kind::OneOf(&["json", "html", "markdown"]),
};
/// Query parameters of the groups.
pub(super) const LIST: &[Param] = &[
    Param { name: "cluster", about: "Only the group of this cluster.", kind: Kind::Text },
    FORMAT,
    LIMIT,
    CONTINUE,
];
/// Of one group.
pub(super) const ONE: &[Param] = &[FORMAT];
/// Of what stands in the way.
pub(super) const BLOCKERS: &[Param] = &[
    Param {
        name: "kind",
        about: "Only these kinds of things.",
        kind: Kind::SomeOf(SchemaGenerator::subschema_for::<BlockerKind>),
    },
    LIMIT,
    CONTINUE,
];

/// What of a list is in the first answer, and what of one group.
const BLOCKERS_SHOWN: usize = 20;
const EXAMPLES: usize = 5;
const MEMBERS_MAX: usize = 500;
const DIFFERENCES_MAX: usize = 200;
const LINES_MAX: usize = 500;

/// A document may style itself and do nothing else.
const DOCUMENT_CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; \
     form-action 'none'; sandbox",
);

pub(super) async fn list(
    State(context): State<Context>,
    Path((namespace, name)): Path<(String, String)>,
    uri: Uri,
) -> Result<Response, Error> {
    let params = Params::read(&uri, LIST)?;
    let form = form(&params)?;
    let settings = &context.settings;
    let bounds = (settings.page_default, settings.page_max);
    let paging = Paging::read(&params, uri.path(), Order::Desc, bounds)?;
    let upgrade = find(&context, &namespace, &name)?;
    let preview = &upgrade.preview;
    if let Some(form) = form {
        let only = match params.text("cluster") {
            Some(cluster) => Some(of_cluster(preview, cluster)?),
            None => None,
        };
        let row = &upgrade.view.row;
        return Ok(document(&row.name, &title(&row.namespace, &row.name), preview, only, form));
    }
    let only = params.text("cluster");
    let counted = Counted::of(preview);
    let matching = preview.groups.iter().filter(|shown| {
        only.is_none_or(|cluster| shown.group.clusters.iter().any(|one| one.as_str() == cluster))
    });
    let matching = matching
        .map(|shown| {
            let rank = i64::try_from(shown.group.clusters.len()).unwrap_or(i64::MAX);
            (Key { rank, name: shown.group.id.clone() }, shown)
        })
        .collect();
    let page = paging.cut(matching);
    let list = PreviewList {
        time: context.clock.now(),
        state: state(preview.is_making()),
        clusters: preview.clusters,
        at_target: preview.at_target,
        blocked: number(preview.blockers.len()),
        blockers: preview.blockers.iter().take(BLOCKERS_SHOWN).map(blocker).collect(),
        left_out: preview.left_out.0,
        items: page.items.into_iter().map(|shown| group(shown, &counted)).collect(),
        total: page.total,
        continue_token: page.next,
    };
    Ok(Json(list).into_response())
}

pub(super) async fn one(
    State(context): State<Context>,
    Path((namespace, name, id)): Path<(String, String, String)>,
    uri: Uri,
) -> Result<Response, Error> {
    let params = Params::read(&uri, ONE)?;
    let form = form(&params)?;
    let upgrade = find(&context, &namespace, &name)?;
    let preview = &upgrade.preview;
    let shown = preview.group(&id).ok_or_else(|| Error::NotFound {
        what: format!("group {} any more: what its clusters see has changed", shorten(&id)),
    })?;
    if let Some(form) = form {
        let row = &upgrade.view.row;
        let title = title(&row.namespace, &row.name);
        return Ok(document(&row.name, &title, preview, Some(shown), form));
    }
    let counted = Counted::of(preview);
    let mut differences = counted.differences(shown);
    differences.truncate(DIFFERENCES_MAX);
    let operators = shown.group.ways.iter().zip(shown.made.iter().flatten());
    let detail = PreviewDetail {
        time: context.clock.now(),
        group: group(shown, &counted),
        members: shown.group.clusters.iter().take(MEMBERS_MAX).map(ToString::to_string).collect(),
        differences,
        operators: operators
            .map(|(way, made)| OperatorPreview {
                namespace: way.namespace.to_string(),
                package: way.package.to_string(),
                sections: sections(made).into_iter().map(section).collect(),
                preview: serde_json::to_value(&made.preview).unwrap_or_default(),
            })
            .collect(),
    };
    Ok(Json(detail).into_response())
}

pub(super) async fn blockers(
    State(context): State<Context>,
    Path((namespace, name)): Path<(String, String)>,
    uri: Uri,
) -> Result<Json<BlockerList>, Error> {
    let params = Params::read(&uri, BLOCKERS)?;
    let kinds = params.values("kind", word::<BlockerKind>, "a kind of blocker")?;
    let settings = &context.settings;
    let bounds = (settings.page_default, settings.page_max);
    let paging = Paging::read(&params, uri.path(), Order::Asc, bounds)?;
    let upgrade = find(&context, &namespace, &name)?;
    let matching = upgrade.preview.blockers.iter();
    let matching = matching
        .filter(|one| kinds.as_ref().is_none_or(|kinds| kinds.contains(&one.kind)))
        .map(|one| (Key { rank: 0, name: one.cluster.to_string() }, one))
        .collect();
    let page = paging.cut(matching);
    Ok(Json(BlockerList {
        time: context.clock.now(),
        items: page.items.into_iter().map(blocker).collect(),
        total: page.total,
        continue_token: page.next,
    }))
}

fn of_cluster<'a>(preview: &'a Preview, cluster: &str) -> Result<&'a GroupPreview, Error> {
    preview.group_of(cluster).map(AsRef::as_ref).ok_or_else(|| Error::NotFound {
        what: format!("plan for a cluster `{}` here", shorten(cluster)),
    })
}

/// The form of a document; `None` for JSON.
fn form(params: &Params) -> Result<Option<Form>, Error> {
    let choices = [("json", None), ("html", Some(Form::Html)), ("markdown", Some(Form::Markdown))];
    params.choice("format", &choices)
}

fn title(namespace: &str, name: &str) -> String {
    format!("Preview of {namespace}/{name}")
}

fn document(
    name: &str,
    title: &str,
    preview: &Preview,
    only: Option<&GroupPreview>,
    form: Form,
) -> Response {
    let (kind, ending) = match form {
        Form::Html => ("text/html; charset=utf-8", "html"),
        Form::Markdown => ("text/markdown; charset=utf-8", "md"),
    };
    let file = format!("inline; filename=\"preview-{name}.{ending}\"");
    let file = HeaderValue::from_str(&file).unwrap_or(HeaderValue::from_static("inline"));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_DISPOSITION, file),
        (header::CONTENT_SECURITY_POLICY, DOCUMENT_CSP),
    ];
    (headers, report(title, preview, only, form)).into_response()
}

fn group(shown: &GroupPreview, counted: &Counted<'_>) -> PreviewGroup {
    let group = &shown.group;
    let ways = group.ways.iter().map(|way| WayView {
        namespace: way.namespace.to_string(),
        package: way.package.to_string(),
        from: way.from.as_ref().map(|from| from.text.clone()),
        to: way.to.iter().map(|version| version.text.clone()).collect(),
        pinned: way.pinned().map(str::to_owned).collect(),
    });
    let catalogs = group.catalogs().into_iter().map(|seen| CatalogView {
        source: seen.source.clone(),
        digest: seen.digest.clone(),
        contents: seen.contents.clone(),
    });
    PreviewGroup {
        id: group.id.clone(),
        clusters: number(group.clusters.len()),
        examples: group.clusters.iter().take(EXAMPLES).map(ToString::to_string).collect(),
        state: state(shown.made.is_none()),
        ways: ways.collect(),
        catalogs: catalogs.collect(),
        counts: counts(shown),
        differences: number(counted.differences(shown).len()),
    }
}

fn section(mut section: SectionView) -> SectionView {
    section.lines.truncate(LINES_MAX);
    section
}

fn blocker(one: &Blocker) -> BlockerView {
    BlockerView { cluster: one.cluster.to_string(), kind: one.kind, why: one.why.clone() }
}

fn state(is_making: bool) -> PreviewState {
    if is_making { PreviewState::Making } else { PreviewState::Made }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
