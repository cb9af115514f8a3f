//! Objects that an operator's author has named.

use std::time::Duration;

use kube::Client;
use tokio::time::timeout;
use wavelift_catalog::{release::StatusObject, status::Found};

use super::read::ApiReader;

/// How long they are waited for, in real time: an upgrade goes on without them.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Reads them, each in its namespace or else in `namespace`.
pub async fn named(client: &Client, objects: &[StatusObject], namespace: &str) -> Vec<Found> {
    let reads = objects.iter().map(|object| one(client, object, namespace));
    futures::future::join_all(reads).await
}

async fn one(client: &Client, object: &StatusObject, namespace: &str) -> Found {
    let what = || format!("{} {}", object.kind, object.name.as_deref().unwrap_or("of any name"));
    match timeout(ANSWER_MAX, ApiReader::new(client).object(object, namespace)).await {
        Ok(Ok(Some(value))) => Found::Is(value),
        Ok(Ok(None)) => Found::Missing(format!("{} is not there", what())),
        Ok(Err(failed)) => Found::Unread(format!("{}: {failed}", what())),
        Err(_) => Found::Unread(format!("{}: no answer within {} s", what(), ANSWER_MAX.as_secs())),
    }
}
