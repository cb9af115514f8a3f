//! The agents of the fleet.

use axum::{Json, extract::State, http::Uri};
use schemars::SchemaGenerator;
use wavelift_api::live::{AgentList, AgentStateName, AgentView};

use super::{
    Context,
    cursor::{Key, Paging},
    params::{CONTINUE, Kind, LIMIT, ORDER, Order, Param, Params},
    problem::Error,
    upgrades::word,
};

/// Query parameters of the list.
pub(super) const LIST: &[Param] = &[
    Param {
        name: "state",
        about: "Only agents in one of these states.",
        kind: Kind::SomeOf(SchemaGenerator::subschema_for::<AgentStateName>),
    },
    Param {
        name: "q",
        about: "Only agents of clusters whose name contains this text.",
        kind: Kind::Text,
    },
    ORDER,
    LIMIT,
    CONTINUE,
];

pub(super) async fn list(
    State(context): State<Context>,
    uri: Uri,
) -> Result<Json<AgentList>, Error> {
    let params = Params::read(&uri, LIST)?;
    let states = params.values("state", word::<AgentStateName>, "Connected or Silent")?;
    let text = params.text("q").map(str::to_lowercase);
    let settings = &context.settings;
    let bounds = (settings.page_default, settings.page_max);
    let paging = Paging::read(&params, uri.path(), params.order(Order::Asc)?, bounds)?;
    let fleet = context.board.current();
    let matching = fleet
        .agents
        .values()
        .filter(|agent| states.as_ref().is_none_or(|states| states.contains(&agent.state)))
        .filter(|agent| text.as_ref().is_none_or(|text| agent.cluster.contains(text)))
        .map(|agent| (Key { rank: 0, name: agent.cluster.clone() }, agent))
        .collect();
    let page = paging.cut(matching);
    Ok(Json(AgentList {
        time: context.clock.now(),
        leader: fleet.leader.clone(),
        connected: fleet.agents_in(AgentStateName::Connected),
        silent: fleet.agents_in(AgentStateName::Silent),
        items: page.items.into_iter().map(|agent| AgentView::clone(agent)).collect(),
        total: page.total,
        continue_token: page.next,
    }))
}
