//! `wavelift resolve`: questions and answers, one JSON object a line.

use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;
use wavelift_catalog::{
    Limits,
    engine::{
        line::{self, Resolver},
        olm_v1::{self, ClusterCatalog, Content, Query},
    },
};

use crate::{
    args::{
        Form,
        offline::{Olm, ResolveArgs},
    },
    exit::Exit,
    fault::Fault,
    offline::{self, lines::Lines},
    printer::Printer,
};

/// A line that is no question.
#[derive(Debug, Serialize)]
struct Wrong {
    error: String,
    /// Which line of the file, counted from 1.
    line: usize,
}

/// Runs it. What OLM refuses is an answer; a line that is no question is one too, and the exit code
/// tells.
pub(super) fn resolve(what: &ResolveArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match printer.form() {
        None | Some(Form::Json) => {}
        Some(Form::Yaml | Form::Wide | Form::Name | Form::Markdown | Form::Html) => {
            return Err(Fault::usage("answers are lines of JSON: leave out -o").into());
        }
    }
    let answer = answerer(what, printer)?;
    let mut lines = Lines::open(&what.filename)?;
    let mut exit = Exit::Success;
    while let Some(line) = lines.next()? {
        let answered = match line.text {
            Ok(text) => answer(&text).map_err(|error| format!("{error:#}")),
            Err(why) => Err(why),
        };
        match answered {
            Ok(answered) => printer.text(&answered),
            Err(error) => {
                exit = Exit::Usage;
                printer.text(&json(&Wrong { error, line: line.number })?);
            }
        }
    }
    Ok(exit)
}

type Answerer = Box<dyn Fn(&str) -> anyhow::Result<String>>;

fn answerer(what: &ResolveArgs, printer: &Printer) -> anyhow::Result<Answerer> {
    match what.olm {
        Olm::V0 => {
            let catalog = match what.catalogs.as_slice() {
                [] => None,
                paths => Some(offline::catalogs(paths, printer)?),
            };
            let resolver = Resolver::new(catalog, Limits::default());
            Ok(Box::new(move |line| json(&resolver.answer(line)?)))
        }
        Olm::V1 => {
            if what.catalogs.is_empty() {
                let text = "give at least one --catalog: OLM v1's questions bring none along";
                return Err(Fault::usage(text).into());
            }
            let content = Content::from_fbc(&offline::documents(&what.catalogs, printer)?);
            let catalogs = [ClusterCatalog {
                name: "catalog".to_owned(),
                priority: 0,
                content: Arc::new(content),
            }];
            Ok(Box::new(move |text| {
                line::check_size(text, &Limits::default())?;
                let query: Query = serde_json::from_str(text).context("line is no question")?;
                if query.package.is_empty() {
                    return Err(Fault::usage("line names no `package`").into());
                }
                json(&olm_v1::answer(&catalogs, &query))
            }))
        }
    }
}

fn json<T: Serialize>(answer: &T) -> anyhow::Result<String> {
    serde_json::to_string(answer).context("cannot write JSON")
}
