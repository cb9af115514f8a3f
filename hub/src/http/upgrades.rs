//! Campaigns: the list and one of them.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::{Path, State},
    http::Uri,
};
use schemars::SchemaGenerator;
use wavelift_api::live::{PhaseName, UpgradeDetail, UpgradeList, UpgradeRow};

use super::{
    Context,
    cursor::{Key, Paging},
    params::{CONTINUE, Kind, LIMIT, ORDER, Order, Param, Params},
    problem::Error,
};
use crate::view::Upgrade;

/// Query parameters of the list.
pub(super) const LIST: &[Param] = &[
    Param { name: "namespace", about: "Only campaigns of this namespace.", kind: Kind::Text },
    Param {
        name: "phase",
        about: "Only campaigns in one of these phases.",
        kind: Kind::SomeOf(SchemaGenerator::subschema_for::<PhaseName>),
    },
    Param {
        name: "sort",
        about: "By what; `created` newest first, `needsYou` most first.",
        kind: Kind::OneOf(&["created", "name", "phase", "needsYou"]),
    },
    ORDER,
    LIMIT,
    CONTINUE,
];

#[derive(Debug, Clone, Copy)]
enum Sort {
    Name,
    Created,
    Phase,
    NeedsYou,
}

pub(super) async fn list(
    State(context): State<Context>,
    uri: Uri,
) -> Result<Json<UpgradeList>, Error> {
    let params = Params::read(&uri, LIST)?;
    let phases = params.values("phase", word::<PhaseName>, "a phase")?;
    let phases: Option<BTreeSet<PhaseName>> = phases.map(|list| list.into_iter().collect());
    let sort = params.choice(
        "sort",
        &[
            ("created", Sort::Created),
            ("name", Sort::Name),
            ("phase", Sort::Phase),
            ("needsYou", Sort::NeedsYou),
        ],
    )?;
    let order = params.order(match sort {
        Sort::Created | Sort::NeedsYou => Order::Desc,
        Sort::Name | Sort::Phase => Order::Asc,
    })?;
    let settings = &context.settings;
    let bounds = (settings.page_default, settings.page_max);
    let paging = Paging::read(&params, uri.path(), order, bounds)?;
    let fleet = context.board.current();
    let namespace = params.text("namespace");
    let matching = fleet
        .upgrades
        .values()
        .map(|upgrade| &upgrade.view.row)
        .filter(|row| namespace.is_none_or(|namespace| row.namespace == namespace))
        .filter(|row| phases.as_ref().is_none_or(|phases| phases.contains(&row.phase)))
        .map(|row| (key(row, sort), row))
        .collect();
    let page = paging.cut(matching);
    Ok(Json(UpgradeList {
        time: context.clock.now(),
        items: page.items.into_iter().cloned().collect(),
        total: page.total,
        continue_token: page.next,
    }))
}

fn key(row: &UpgradeRow, sort: Sort) -> Key {
    let rank = match sort {
        Sort::Name => 0,
        Sort::Created => row.creation_time.as_second(),
        Sort::Phase => row.phase as i64 + 1,
        Sort::NeedsYou => i64::from(row.needs_you) + 1,
    };
    Key { rank, name: format!("{}/{}", row.namespace, row.name) }
}

pub(super) async fn one(
    State(context): State<Context>,
    Path((namespace, name)): Path<(String, String)>,
    uri: Uri,
) -> Result<Json<UpgradeDetail>, Error> {
    Params::read(&uri, &[])?;
    let upgrade = find(&context, &namespace, &name)?;
    Ok(Json(UpgradeDetail { time: context.clock.now(), upgrade: upgrade.view.clone() }))
}

/// The campaign of a path.
pub(super) fn find(context: &Context, namespace: &str, name: &str) -> Result<Arc<Upgrade>, Error> {
    let fleet = context.board.current();
    let found = fleet.upgrade(namespace, name).map(Arc::clone);
    found.ok_or_else(|| Error::NotFound {
        what: format!("FleetUpgrade {}/{}", shorten(namespace), shorten(name)),
    })
}

/// A value of an enumeration by the word that JSON has for it.
pub(super) fn word<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::from(text)).ok()
}

/// What a caller sent, cut to a length that can be sent back.
pub(super) fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}
