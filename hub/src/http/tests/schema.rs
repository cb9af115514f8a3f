//! The document against the router: every path described, every answer as described.

use std::collections::BTreeSet;

use axum::{body::Body, http::Request};
use serde_json::Value;

use super::*;
use crate::http::{document, routes};

/// Checks `value` against `schema` as far as our schemas go: types, required and known fields,
/// words, items, alternatives, references.
fn check(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.strip_prefix("#/components/schemas/").ok_or("a foreign reference")?;
        let target =
            document["components"]["schemas"].get(name).ok_or_else(|| format!("no {name}"))?;
        return check(document, target, value, at);
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(word).and_then(Value::as_array) {
            let fits = |choice| check(document, choice, value, at).is_ok();
            return if choices.iter().any(fits) { Ok(()) } else { Err(format!("{at}: {value}")) };
        }
    }
    if let Some(constant) = schema.get("const") {
        return if constant == value { Ok(()) } else { Err(format!("{at}: not {constant}")) };
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        return Err(format!("{at}: {value} is not one of {words:?}"));
    }
    let one = schema["type"].as_str();
    let some = schema["type"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let types: BTreeSet<&str> = one.into_iter().chain(some).collect();
    if types.is_empty() {
        return Ok(());
    }
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = types.contains(is) || (is == "integer" && types.contains("number"));
    if !fits {
        return Err(format!("{at}: {is} is not {types:?}"));
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        for (index, item) in list.iter().enumerate() {
            check(document, items, item, &format!("{at}[{index}]"))?;
        }
    }
    check_fields(document, schema, value, at)
}

fn check_fields(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let (Some(fields), Some(object)) = (schema.get("properties"), value.as_object()) else {
        return Ok(());
    };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            return Err(format!("{at}: no {name}"));
        }
    }
    for (name, inner) in object {
        let described = fields.get(name).ok_or_else(|| format!("{at}: {name} is not described"))?;
        check(document, described, inner, &format!("{at}.{name}"))?;
    }
    Ok(())
}

fn filled(path: &str) -> String {
    path.replace("{namespace}", "ops")
        .replace("{name}", "logging-6-2")
        .replace("{cluster}", "prod-osl-14")
        .replace("{group}", &previews::first_group())
}

#[tokio::test]
async fn every_answer_is_as_the_document_says() {
    let app = app();
    let document = app.json("/api/v1/openapi.json").await;
    assert_eq!(document, super::super::document());
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), routes::all().len());
    let mut answers = 0;
    for (path, item) in paths {
        let content = &item["get"]["responses"]["200"]["content"];
        let Some(schema) = content.get("application/json").map(|json| &json["schema"]) else {
            continue;
        };
        let answer = app.json(&filled(path)).await;
        check(&document, schema, &answer, path).unwrap();
        answers += 1;
    }
    assert_eq!(answers, 10, "all but the stream");
    let problem = &document["components"]["schemas"]["Problem"];
    let (_, _, body) = app.get("/api/v1/agents?x=1").await;
    check(&document, problem, &serde_json::from_slice(&body).unwrap(), "problem").unwrap();
}

#[tokio::test]
async fn a_wrong_answer_is_seen() {
    let app = app();
    let document = document();
    let schema = &document["components"]["schemas"]["ClusterList"];
    let good = app.json(&format!("{RUNNING}/clusters?limit=3")).await;
    check(&document, schema, &good, "list").unwrap();
    let broken: [fn(&mut Value); 4] = [
        |list| list["items"][0]["state"] = "Asleep".into(),
        |list| list["items"][0]["surprise"] = 1.into(),
        |list| list["total"] = "three".into(),
        |list| drop(list.as_object_mut().unwrap().remove("facets")),
    ];
    for change in broken {
        let mut list = good.clone();
        change(&mut list);
        assert!(check(&document, schema, &list, "list").is_err(), "{list}");
    }
}

#[tokio::test]
async fn every_described_parameter_is_known_and_every_path_refuses_others() {
    let app = app();
    for route in routes::all() {
        let path = filled(route.path);
        assert_eq!(app.problem(&format!("{path}?surprise=1")).await.1, "unknown-parameter");
        for param in route.params {
            let path = format!("{path}?{}=%20", param.name);
            let request = Request::get(&path).body(Body::empty()).unwrap();
            // A stream has no end to wait for; that it began is enough.
            if app.send(request).await.status() != 200 {
                assert_ne!(app.problem(&path).await.1, "unknown-parameter", "{path}");
            }
        }
    }
}

/// The words of the document are those that the router takes.
#[tokio::test]
async fn every_described_word_is_taken() {
    let app = app();
    let document = document();
    let mut words = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for param in item["get"]["parameters"].as_array().unwrap() {
            let mut schema = &param["schema"];
            schema = schema.get("items").unwrap_or(schema);
            if let Some(name) = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next()) {
                schema = &document["components"]["schemas"][name];
            }
            let listed = schema["enum"].as_array().into_iter().flatten();
            let consts = schema["oneOf"].as_array().into_iter().flatten().map(|one| &one["const"]);
            for word in listed.chain(consts) {
                let (name, word) = (param["name"].as_str().unwrap(), word.as_str().unwrap());
                let request = Request::get(format!("{}?{name}={word}", filled(path)));
                let response = app.send(request.body(Body::empty()).unwrap()).await;
                assert_eq!(response.status(), 200, "{path} {name}={word}");
                words += 1;
            }
        }
    }
    assert!(words > 40, "{words} words were tried");
}
