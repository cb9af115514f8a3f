//! Answers to what is asked through the hub, from what the agent sees now.

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use wavelift_runtime::telemetry::chain;

use crate::{inventory::Current, journal::Journal, link::Query};

/// The longest answer.
const BYTES_MAX: usize = 512 << 10;

/// The answer to a question, as JSON, or why there is none.
pub(crate) async fn answer(
    query: &Query,
    journal: &Journal,
    current: &Current,
) -> Result<Bytes, String> {
    match query.kind.to_ascii_lowercase().as_str() {
        "inventory" => bounded(&current.inventory),
        "clusterupgrade" => upgrades(&query.name, journal).await,
        other => Err(format!("`{other}` is neither `clusterupgrade` nor `inventory`")),
    }
}

async fn upgrades(name: &str, journal: &Journal) -> Result<Bytes, String> {
    if name.is_empty() {
        let all = journal.all().await.map_err(|error| chain(&error).to_string())?;
        return bounded(&json!({"items": all}));
    }
    let found = journal.read(name).await.map_err(|error| chain(&error).to_string())?;
    let found = found.ok_or_else(|| format!("no ClusterUpgrade `{name}` is there"))?;
    bounded(&found)
}

fn bounded(value: &impl Serialize) -> Result<Bytes, String> {
    let json = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    if json.len() > BYTES_MAX {
        return Err(format!("the answer has {} bytes, more than {BYTES_MAX}", json.len()));
    }
    Ok(Bytes::from(json))
}
