//! `wavelift preview`: which way the clusters would go, and what changes on it.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, bail};
use kube::ResourceExt as _;
use serde::Serialize;
use wavelift_api::{
    FleetUpgrade,
    fleet_upgrade::Stage,
    live::{PreviewDetail, PreviewList, PreviewState, UpgradeView},
};

use super::{
    Context,
    campaign::{PREVIEWED, name_of, read, timed_out},
    generation, poll,
};
use crate::{
    args::{DryRun, Form, preview::PreviewArgs},
    exit::Exit,
    live::Document,
    printer::Printer,
    render,
};

/// How long the changes are waited for once the plans are known: an agent has a minute to answer.
const CHANGES_SECONDS: u64 = 90;

/// The answer as machines read it.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    upgrade: &'a UpgradeView,
    /// All groups; absent where the hub was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'a PreviewList>,
}

/// Runs it.
pub(super) async fn preview(context: &Context<'_>, what: &PreviewArgs) -> anyhow::Result<Exit> {
    let has_hub = context.live.knows_every_cluster();
    let needs_hub = what.group.is_some()
        || what.cluster.is_some()
        || matches!(context.printer.form(), Some(Form::Markdown | Form::Html));
    if needs_hub && !has_hub {
        bail!("only the hub knows every change: give --url (WAVELIFT_URL)");
    }
    let Some(fleet) = campaign(context, what).await? else { return Ok(Exit::Success) };
    let (namespace, name) = (fleet.namespace().unwrap_or_default(), fleet.name_any());
    let timeout = Duration::from_secs(what.timeout);
    let found = context.wait_for(&namespace, &name, generation(&fleet), PREVIEWED, timeout).await?;
    let Some(upgrade) = found else { return timed_out(context, &namespace, &name).await };
    if !has_hub {
        return without_hub(context, what, &upgrade);
    }
    let list = changes(context, &namespace, &name, timeout).await?;
    let named = (namespace.as_str(), name.as_str());
    let group = chosen(context, what, &list, named).await?;
    let text = match (context.printer.form(), &group) {
        (Some(form @ (Form::Markdown | Form::Html)), group) => {
            let document = if form == Form::Html { Document::Html } else { Document::Markdown };
            let group = group.as_ref().map(|detail| detail.group.id.as_str());
            context.live.preview_document(named, group, document).await?
        }
        (Some(Form::Name), _) => name_of(&upgrade).join("\n"),
        (Some(form @ (Form::Json | Form::Yaml)), Some(detail)) => written(form, detail)?,
        (Some(form @ (Form::Json | Form::Yaml)), None) => {
            written(form, &Answer { upgrade: &upgrade, groups: Some(&list) })?
        }
        (form @ (Some(Form::Wide) | None), Some(detail)) => {
            render::group(detail, form == Some(Form::Wide))
        }
        (Some(Form::Wide) | None, None) => {
            let mut text = render::preview(&upgrade, context.printer);
            text.push('\n');
            text.push_str(&render::groups(&list, context.printer));
            text.push_str(&next(context, &upgrade));
            text
        }
    };
    deliver(context.printer, what.out.as_deref(), &text)
}

/// The FleetUpgrade to look at; `None` after a dry run.
async fn campaign(
    context: &Context<'_>,
    what: &PreviewArgs,
) -> anyhow::Result<Option<FleetUpgrade>> {
    let Some(file) = &what.filename else {
        let name = what.name.as_deref().unwrap_or_default();
        return context.kubernetes.get(name).await.map(Some);
    };
    let object = read(file)?;
    if what.change.dry_run == DryRun::Client {
        context.done(&object.name_any(), "configured", &what.change);
        return Ok(None);
    }
    let applied = context.kubernetes.apply(&object, &what.change).await?;
    if what.change.dry_run == DryRun::Server {
        context.done(&applied.name_any(), "configured", &what.change);
        return Ok(None);
    }
    Ok(Some(applied))
}

/// All groups, once all that can be known of them is known; as they are when that takes too long.
async fn changes(
    context: &Context<'_>,
    namespace: &str,
    name: &str,
    timeout: Duration,
) -> anyhow::Result<PreviewList> {
    let look = || async {
        let list = context.live.preview(namespace, name).await?;
        anyhow::Ok((list.state == PreviewState::Made).then_some(list))
    };
    let patience = timeout.min(Duration::from_secs(CHANGES_SECONDS));
    match poll(patience, look).await? {
        Some(list) => Ok(list),
        None => context.live.preview(namespace, name).await,
    }
}

/// The group that was asked for: by its place in the list, by its id or by one of its clusters.
async fn chosen(
    context: &Context<'_>,
    what: &PreviewArgs,
    list: &PreviewList,
    (namespace, name): (&str, &str),
) -> anyhow::Result<Option<PreviewDetail>> {
    let id = match (&what.group, &what.cluster) {
        (None, None) => return Ok(None),
        (Some(group), _) => {
            let place = group.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
            let by_place = place.and_then(|place| list.items.get(place));
            let found = by_place.or_else(|| list.items.iter().find(|one| one.id == *group));
            let Some(found) = found else {
                bail!(
                    "there is no group {group}: give its number or its id from `{} preview {name}`",
                    context.printer.usage()
                );
            };
            found.id.clone()
        }
        (None, Some(cluster)) => context.live.preview_group_of(namespace, name, cluster).await?,
    };
    context.live.preview_group(namespace, name, &id).await.map(Some)
}

fn without_hub(
    context: &Context<'_>,
    what: &PreviewArgs,
    upgrade: &UpgradeView,
) -> anyhow::Result<Exit> {
    let text = match context.printer.form() {
        Some(Form::Name) => name_of(upgrade).join("\n"),
        Some(form @ (Form::Json | Form::Yaml)) => written(form, &Answer { upgrade, groups: None })?,
        Some(Form::Wide | Form::Markdown | Form::Html) | None => {
            let mut text = render::preview(upgrade, context.printer);
            text.push_str(&render::changes(&upgrade.changes, context.printer));
            text.push_str(&next(context, upgrade));
            text
        }
    };
    deliver(context.printer, what.out.as_deref(), &text)
}

fn written(form: Form, answer: &impl Serialize) -> anyhow::Result<String> {
    match form {
        Form::Yaml => serde_saphyr::to_string(answer).context("cannot write YAML"),
        Form::Json | Form::Wide | Form::Name | Form::Markdown | Form::Html => {
            serde_json::to_string_pretty(answer).context("cannot write JSON")
        }
    }
}

fn next(context: &Context<'_>, upgrade: &UpgradeView) -> String {
    let (usage, name) = (context.printer.usage(), &upgrade.row.name);
    let next = match upgrade.row.stage {
        Stage::Preview => format!("{usage} preflight {name}"),
        Stage::Preflight => format!("{usage} launch {name}"),
        Stage::Rollout => format!("{usage} status {name} --watch"),
    };
    let changed = if upgrade.row.stage == Stage::Rollout { "" } else { "Nothing was changed. " };
    format!("\n{changed}Next: {next}\n")
}

/// Into the file that was asked for, or to the reader.
pub(super) fn deliver(printer: &Printer, out: Option<&Path>, text: &str) -> anyhow::Result<Exit> {
    match out {
        Some(file) => {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            std::fs::write(file, format!("{text}{end}"))
                .with_context(|| format!("cannot write {}", file.display()))?;
            printer.note(&format!("Written to {}", file.display()));
        }
        None => printer.text(text),
    }
    Ok(Exit::Success)
}
