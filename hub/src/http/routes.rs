//! Every path of the API in one table: what answers it and what the document says about it. A path
//! can't be served without being described.

use axum::routing::{MethodRouter, get};
use schemars::{Schema, SchemaGenerator};
use wavelift_api::live::{
    AgentList, BlockerList, ClusterDetail, ClusterList, LiveAnswer, PreviewDetail, PreviewList,
    UpgradeDetail, UpgradeList,
};

use super::{Context, agents, clusters, events, live, openapi, params::Param, previews, upgrades};

/// One path.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) handler: MethodRouter<Context>,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) params: &'static [Param],
    pub(super) answer: Answer,
    /// Codes of problems beside those that any path may answer with.
    pub(super) problems: &'static [Trouble],
}

/// What a path answers with.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// JSON, or a document for people where that is asked for.
    Report(fn(&mut SchemaGenerator) -> Schema),
    Events,
    Document,
}

/// A status that a path may answer with, and the codes that come with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trouble {
    pub(super) status: &'static str,
    pub(super) codes: &'static str,
}

const NOT_FOUND: Trouble = Trouble { status: "404", codes: "not-found" };
const BAD_REQUEST: Trouble =
    Trouble { status: "400", codes: "unknown-parameter, invalid-parameter, invalid-continue" };
const AGENT_ERROR: Trouble = Trouble { status: "502", codes: "agent-error" };
const AGENT_TIMEOUT: Trouble = Trouble { status: "504", codes: "agent-timeout" };

/// All of them.
pub(super) fn all() -> Vec<Route> {
    let mut routes = campaigns();
    routes.extend(changes());
    routes.extend(others());
    routes
}

fn campaigns() -> Vec<Route> {
    vec![
        Route {
            path: "/api/v1/fleetupgrades",
            handler: get(upgrades::list),
            id: "listFleetUpgrades",
            summary: "Campaigns",
            params: upgrades::LIST,
            answer: Answer::Json(SchemaGenerator::subschema_for::<UpgradeList>),
            problems: &[BAD_REQUEST],
        },
        Route {
            path: "/api/v1/fleetupgrades/{namespace}/{name}",
            handler: get(upgrades::one),
            id: "getFleetUpgrade",
            summary: "One campaign without its clusters",
            params: &[],
            answer: Answer::Json(SchemaGenerator::subschema_for::<UpgradeDetail>),
            problems: &[BAD_REQUEST, NOT_FOUND],
        },
        Route {
            path: "/api/v1/fleetupgrades/{namespace}/{name}/clusters",
            handler: get(clusters::list),
            id: "listClusters",
            summary: "Clusters of a campaign",
            params: clusters::LIST,
            answer: Answer::Json(SchemaGenerator::subschema_for::<ClusterList>),
            problems: &[BAD_REQUEST, NOT_FOUND],
        },
        Route {
            path: "/api/v1/fleetupgrades/{namespace}/{name}/clusters/{cluster}",
            handler: get(clusters::one),
            id: "getCluster",
            summary: "One cluster of a campaign",
            params: &[],
            answer: Answer::Json(SchemaGenerator::subschema_for::<ClusterDetail>),
            problems: &[BAD_REQUEST, NOT_FOUND],
        },
        Route {
            path: "/api/v1/fleetupgrades/{namespace}/{name}/clusters/{cluster}/live",
            handler: get(live::get),
            id: "askCluster",
            summary: "The ClusterUpgrade as it is on the cluster, asked for now",
            params: &[],
            answer: Answer::Json(SchemaGenerator::subschema_for::<LiveAnswer>),
            problems: &[BAD_REQUEST, NOT_FOUND, AGENT_ERROR, AGENT_TIMEOUT],
        },
    ]
}

/// What the plans of a campaign change.
fn changes() -> Vec<Route> {
    vec![
        Route {
            path: "/api/v1/fleetupgrades/{namespace}/{name}/preview",
            handler: get(previews::list),
            id: "getPreview",
            summary: "What the plans of a campaign change, by groups of clusters that see the same",
            params: previews::LIST,
            answer: Answer::Report(SchemaGenerator::subschema_for::<PreviewList>),
            problems: &[BAD_REQUEST, NOT_FOUND],
        },
        Route {
            path: "/api/v1/fleetupgrades/{namespace}/{name}/preview/blockers",
            handler: get(previews::blockers),
            id: "listBlockers",
            summary: "What stands in the way of which cluster",
            params: previews::BLOCKERS,
            answer: Answer::Json(SchemaGenerator::subschema_for::<BlockerList>),
            problems: &[BAD_REQUEST, NOT_FOUND],
        },
        Route {
            path: "/api/v1/fleetupgrades/{namespace}/{name}/preview/{group}",
            handler: get(previews::one),
            id: "getPreviewGroup",
            summary: "All that changes on the clusters of one group",
            params: previews::ONE,
            answer: Answer::Report(SchemaGenerator::subschema_for::<PreviewDetail>),
            problems: &[BAD_REQUEST, NOT_FOUND],
        },
    ]
}

fn others() -> Vec<Route> {
    vec![
        Route {
            path: "/api/v1/agents",
            handler: get(agents::list),
            id: "listAgents",
            summary: "Agents of the fleet",
            params: agents::LIST,
            answer: Answer::Json(SchemaGenerator::subschema_for::<AgentList>),
            problems: &[BAD_REQUEST],
        },
        Route {
            path: "/api/v1/events",
            handler: get(events::get),
            id: "followEvents",
            summary: "What changes, as Server-Sent Events",
            params: events::PARAMS,
            answer: Answer::Events,
            problems: &[BAD_REQUEST, NOT_FOUND],
        },
        Route {
            path: "/api/v1/openapi.json",
            handler: get(openapi::get),
            id: "getDocument",
            summary: "This document",
            params: &[],
            answer: Answer::Document,
            problems: &[BAD_REQUEST],
        },
    ]
}
