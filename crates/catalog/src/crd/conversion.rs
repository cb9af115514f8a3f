//! Whether OLM v0 can put up the conversion webhooks that a ClusterServiceVersion brings. It asks
//! only when the definitions have been replaced, and where it cannot it tries again without end,
//! many times a second.

use serde_json::Value;

/// Webhooks of one ClusterServiceVersion that are looked at.
const WEBHOOKS_MAX: usize = 1_000;

/// Why OLM fails to put up conversion webhooks of `csv`, in its words; `definition` gives the one
/// of a name as it will be, from the bundle or the cluster.
pub fn conversion_faults<'d>(
    csv: &Value,
    definition: impl Fn(&str) -> Option<&'d Value>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for webhook in webhooks(csv) {
        if !is_for_all_namespaces_only(csv) {
            faults.push(
                "unable to manage conversion webhook: CSVs with conversion webhooks must support \
                 only AllNamespaces"
                    .to_owned(),
            );
            // OLM looks no further.
            break;
        }
        let names: Vec<&str> = names(webhook).collect();
        if names.is_empty() {
            faults.push(
                "unable to manager conversion webhook: conversion webhook must have at least one \
                 CRD specified"
                    .to_owned(),
            );
        }
        for name in names {
            faults.extend(fault(csv, name, definition(name)));
        }
    }
    faults
}

/// The definitions that the conversion webhooks of `csv` are for.
pub fn converted(csv: &Value) -> impl Iterator<Item = &str> {
    webhooks(csv).flat_map(names)
}

fn webhooks(csv: &Value) -> impl Iterator<Item = &Value> {
    let all = csv.pointer("/spec/webhookdefinitions").and_then(Value::as_array);
    let all = all.into_iter().flatten();
    all.filter(|webhook| webhook["type"] == "ConversionWebhook").take(WEBHOOKS_MAX)
}

fn names(webhook: &Value) -> impl Iterator<Item = &str> {
    let names = webhook.get("conversionCRDs").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn fault(csv: &Value, name: &str, definition: Option<&Value>) -> Option<String> {
    let Some(definition) = definition else {
        return Some(format!(
            "unable to get CRD {name} specified in Conversion Webhook: neither the bundle nor the \
             cluster has it"
        ));
    };
    let owned = csv.pointer("/spec/customresourcedefinitions/owned").and_then(Value::as_array);
    if !owned.into_iter().flatten().any(|owned| owned["name"] == name) {
        let csv = csv.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        return Some(format!("csv {csv} does not own CRD {name}"));
    }
    let keeps = definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true));
    keeps.then(|| {
        "crd.Spec.PreserveUnknownFields must be false to let API Server call webhook to do the \
         conversion"
            .to_owned()
    })
}

fn is_for_all_namespaces_only(csv: &Value) -> bool {
    let modes = csv.pointer("/spec/installModes").and_then(Value::as_array);
    let supported = modes.into_iter().flatten().filter(|mode| mode["supported"] == true);
    supported.map(|mode| &mode["type"]).all(|mode| mode == "AllNamespaces")
}
