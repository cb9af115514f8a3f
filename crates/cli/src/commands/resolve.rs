//! `wavelift resolve`: questions and answers, one JSON object a line.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde::Serialize;
use wavelift_catalog::{
    Limits,
    engine::{
        line::{self, Resolver},
        olm_v1::{self, ClusterCatalog, Content, Query},
    },
};

use crate::{
    args::offline::{Olm, ResolveArgs},
    exit::Exit,
    offline,
    printer::Printer,
};

/// A line that is no question.
#[derive(Debug, Serialize)]
struct Wrong {
    error: String,
}

/// Runs it. What OLM refuses is an answer; a line that is no question is one too, and the exit code
/// tells.
pub(super) fn resolve(what: &ResolveArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let answer = answerer(what)?;
    let text = offline::text(&what.filename)?;
    let mut exit = Exit::Success;
    let mut lines = String::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match answer(line) {
            Ok(answered) => lines.push_str(&answered),
            Err(error) => {
                exit = Exit::Usage;
                let wrong = Wrong { error: format!("{error:#}") };
                lines.push_str(&json(&wrong)?);
            }
        }
        lines.push('\n');
    }
    printer.text(&lines);
    Ok(exit)
}

type Answerer = Box<dyn Fn(&str) -> anyhow::Result<String>>;

fn answerer(what: &ResolveArgs) -> anyhow::Result<Answerer> {
    match what.olm {
        Olm::V0 => {
            let catalog = match what.catalogs.as_slice() {
                [] => None,
                paths => Some(offline::catalogs(paths)?),
            };
            let resolver = Resolver::new(catalog, Limits::default());
            Ok(Box::new(move |line| json(&resolver.answer(line)?)))
        }
        Olm::V1 => {
            if what.catalogs.is_empty() {
                bail!("give at least one --catalog: OLM v1's questions bring none along");
            }
            let content = Content::from_fbc(&offline::documents(&what.catalogs)?);
            let catalogs = [ClusterCatalog {
                name: "catalog".to_owned(),
                priority: 0,
                content: Arc::new(content),
            }];
            Ok(Box::new(move |text| {
                line::check_size(text, &Limits::default())?;
                let query: Query = serde_json::from_str(text).context("line is no question")?;
                json(&olm_v1::answer(&catalogs, &query))
            }))
        }
    }
}

fn json<T: Serialize>(answer: &T) -> anyhow::Result<String> {
    serde_json::to_string(answer).context("cannot write JSON")
}
