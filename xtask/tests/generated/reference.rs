//! The API reference in Markdown, from the definitions' own schemas.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};

/// One page with a table of every field of every kind.
pub(crate) fn markdown(crds: &[CustomResourceDefinition], note: &str) -> String {
    let mut page = format!("<!-- {note} -->\n\n# API reference\n");
    for crd in crds {
        let names = &crd.spec.names;
        for version in &crd.spec.versions {
            writeln!(page, "\n## {} ({}/{})\n", names.kind, crd.spec.group, version.name).unwrap();
            let schema = version.schema.as_ref().and_then(|s| s.open_api_v3_schema.as_ref());
            let Some(schema) = schema else { continue };
            if let Some(text) = &schema.description {
                writeln!(page, "{}\n", paragraphs(text)).unwrap();
            }
            let short = names.short_names.clone().unwrap_or_default().join(", ");
            writeln!(
                page,
                "Plural `{}`; short `{short}`; scope {}.\n",
                names.plural, crd.spec.scope
            )
            .unwrap();
            page.push_str("| field | type | meaning |\n|---|---|---|\n");
            for part in ["spec", "status"] {
                let properties = schema.properties.as_ref();
                if let Some(schema) = properties.and_then(|p| p.get(part)) {
                    rows(&mut page, part, schema);
                }
            }
        }
    }
    page
}

/// The rows of the fields below `path`.
fn rows(page: &mut String, path: &str, schema: &JSONSchemaProps) {
    let (path, schema) = match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => (format!("{path}[]"), &**items),
        Some(JSONSchemaPropsOrArray::Schemas(_)) | None => (path.to_owned(), schema),
    };
    let required = schema.required.clone().unwrap_or_default();
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        let mark = if required.contains(name) { ", required" } else { "" };
        let meaning = cell(field.description.as_deref().unwrap_or_default());
        writeln!(page, "| `{path}` | {}{mark} | {meaning} |", kind(field)).unwrap();
        rows(page, &path, field);
    }
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        let message = rule.message.clone().unwrap_or_else(|| rule.rule.clone());
        writeln!(page, "| `{path}` | rule | {} |", cell(&message)).unwrap();
    }
}

/// What a field holds, with its limits.
fn kind(schema: &JSONSchemaProps) -> String {
    if let Some(values) = &schema.enum_ {
        let values: Vec<_> = values.iter().map(|value| format!("`{}`", value.0)).collect();
        return values.join(" or ").replace('"', "");
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        let limit = schema.max_items.map_or_else(String::new, |max| format!(" (at most {max})"));
        return format!("list{limit} of {}", kind(items));
    }
    let mut kind = schema.type_.clone().unwrap_or_else(|| "any".to_owned());
    if let Some(format) = schema.format.as_deref().filter(|format| *format == "date-time") {
        format.clone_into(&mut kind);
    }
    if let Some(max) = schema.max_length {
        write!(kind, " (at most {max} characters)").unwrap();
    }
    kind
}

/// Text on one line of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn paragraphs(text: &str) -> String {
    text.split("\n\n").map(cell).collect::<Vec<_>>().join("\n\n")
}
