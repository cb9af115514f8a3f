//! The OpenAPI document, made from the table of routes and the types that are sent.

use axum::{Json, http::Uri};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use wavelift_api::live::{ClustersChanged, Hello, Problem, UpgradeKey, UpgradeRow};

use super::{
    Settings,
    params::{Kind, Param, Params},
    problem::Error,
    routes::{self, Answer, Route},
};

pub(super) async fn get(uri: Uri) -> Result<Json<Value>, Error> {
    Params::read(&uri, &[])?;
    Ok(Json(document()))
}

/// The document, OpenAPI 3.1.
pub fn document() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let mut schemas = SchemaGenerator::new(settings);
    let mut paths = Map::new();
    for route in routes::all() {
        paths.insert(route.path.to_owned(), json!({ "get": operation(&route, &mut schemas) }));
    }
    for event in [
        SchemaGenerator::subschema_for::<Hello>,
        SchemaGenerator::subschema_for::<UpgradeRow>,
        SchemaGenerator::subschema_for::<ClustersChanged>,
        SchemaGenerator::subschema_for::<UpgradeKey>,
    ] {
        event(&mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Wavelift",
            "version": "v1",
            "description": "Campaigns, their clusters and the agents, read only: a campaign is \
                            steered by changing its FleetUpgrade. Within v1 answers only grow; \
                            ignore fields that you do not know.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas.take_definitions(true)},
    })
}

fn operation(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
        })
        .collect();
    parameters.extend(route.params.iter().map(|param| parameter(param, schemas)));
    let problem = schemas.subschema_for::<Problem>();
    let mut responses = Map::new();
    responses.insert("200".to_owned(), answer(route.answer, schemas));
    for trouble in route.problems {
        let refusal = json!({
            "description": trouble.codes,
            "content": {"application/problem+json": {"schema": problem}},
        });
        responses.insert(trouble.status.to_owned(), refusal);
    }
    responses.insert(
        "default".to_owned(),
        json!({
            "description": "not-leader, busy, and what is written above",
            "content": {"application/problem+json": {"schema": problem}},
        }),
    );
    json!({
        "operationId": route.id,
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses,
    })
}

fn parameter(param: &Param, schemas: &mut SchemaGenerator) -> Value {
    let list = |items: Value| json!({"type": "array", "items": items});
    let (schema, is_list) = match param.kind {
        Kind::Text => (json!({"type": "string"}), false),
        Kind::OneOf(words) => (json!({"type": "string", "enum": words}), false),
        Kind::SomeOf(schema) => (list(schema(schemas).to_value()), true),
        Kind::Texts => (list(json!({"type": "string"})), true),
        Kind::Limit => {
            let Settings { page_default, page_max, .. } = Settings::default();
            let schema = json!({
                "type": "integer", "minimum": 1, "maximum": page_max, "default": page_default,
            });
            (schema, false)
        }
    };
    let mut parameter =
        json!({"name": param.name, "in": "query", "description": param.about, "schema": schema});
    if is_list && let Some(object) = parameter.as_object_mut() {
        object.insert("style".to_owned(), "form".into());
        object.insert("explode".to_owned(), false.into());
    }
    parameter
}

fn answer(answer: Answer, schemas: &mut SchemaGenerator) -> Value {
    match answer {
        Answer::Json(schema) => json!({
            "description": "The answer.",
            "content": {"application/json": {"schema": schema(schemas)}},
        }),
        Answer::Report(schema) => json!({
            "description": "The answer; with `format`, a document.",
            "content": {
                "application/json": {"schema": schema(schemas)},
                "text/html": {"schema": {"type": "string"}},
                "text/markdown": {"schema": {"type": "string"}},
            },
        }),
        Answer::Document => json!({
            "description": "The document.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }),
        Answer::Events => json!({
            "description": "Events `hello` (Hello), `upgrade` (UpgradeRow), `clusters` \
                            (ClustersChanged) and `removed` (UpgradeKey), at most a few batches a \
                            second. The id of the last event of a batch, sent back as \
                            Last-Event-ID, spares the reader what it has seen.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }),
    }
}
