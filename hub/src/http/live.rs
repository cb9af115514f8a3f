//! What one agent says itself, now: asked through the hub, answered from the cluster.

use std::{fmt, time::Duration};

use axum::{
    Json,
    extract::{Path, State},
    http::Uri,
};
use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use wavelift_api::{labels::cluster_upgrade_name, live::LiveAnswer};
use wavelift_core::ids::ClusterName;

use super::{Context, clusters::member, params::Params, problem::Error, upgrades::find};
use crate::link::{Query, QueryError, Registry};

/// Asks one agent a question.
pub trait LiveQuery: fmt::Debug + Send + Sync + 'static {
    /// The agent's answer as JSON, if it comes within `timeout`.
    fn ask<'a>(
        &'a self,
        cluster: &'a ClusterName,
        query: Query,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Bytes, QueryError>>;
}

impl LiveQuery for Registry {
    fn ask<'a>(
        &'a self,
        cluster: &'a ClusterName,
        query: Query,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Bytes, QueryError>> {
        self.query(cluster, query, timeout).boxed()
    }
}

pub(super) async fn get(
    State(context): State<Context>,
    Path((namespace, name, cluster)): Path<(String, String, String)>,
    uri: Uri,
) -> Result<Json<LiveAnswer>, Error> {
    Params::read(&uri, &[])?;
    let upgrade = find(&context, &namespace, &name)?;
    let cluster = member(&upgrade, &cluster)?.row.name.clone();
    let Ok(asked) = ClusterName::try_from(cluster.as_str()) else {
        return Err(Error::NotFound { what: "cluster of this name".to_owned() });
    };
    let row = &upgrade.view.row;
    let query = Query {
        kind: "ClusterUpgrade".to_owned(),
        namespace: String::new(),
        name: cluster_upgrade_name(&row.name, &row.uid),
    };
    let settings = &context.settings;
    let answer = context.live.ask(&asked, query, settings.live_timeout).await;
    let bytes = answer.map_err(|error| refused(cluster.clone(), &error))?;
    if bytes.len() > settings.live_bytes_max {
        let why = format!("it is longer than {} bytes", settings.live_bytes_max);
        return Err(Error::Agent { cluster, why });
    }
    match serde_json::from_slice(&bytes) {
        Ok(object) => Ok(Json(LiveAnswer { time: context.clock.now(), cluster, object })),
        Err(_) => Err(Error::Agent { cluster, why: "it is not JSON".to_owned() }),
    }
}

fn refused(cluster: String, error: &QueryError) -> Error {
    match error {
        QueryError::NotConnected | QueryError::Disconnected => Error::AgentAway { cluster },
        QueryError::Busy => Error::AgentBusy { cluster },
        QueryError::TimedOut(_) => Error::AgentTimeout { cluster },
        QueryError::Agent(why) => Error::Agent { cluster, why: why.clone() },
    }
}
