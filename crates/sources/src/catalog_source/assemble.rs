//! From the messages of a registry back to the documents they were made of.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost_types::value::Kind;
use serde_json::{Map, Number, Value, json};
use wavelift_catalog::{Fbc, Limits, graph::Property};
use wavelift_proto::olm_registry as wire;

use super::{Error, Served};

/// What `GetBundle` says of one bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleContent {
    /// The bundle image, or empty.
    pub image: String,
    /// The ClusterServiceVersion: whole where the catalog carries manifests inline, else only what
    /// describes it, with no Deployments and no permissions. Absent where the registry has neither.
    pub csv: Option<Value>,
    /// The manifests that the catalog carries inline, JSON or YAML each. None means that they are in
    /// the image, never that there are none.
    pub manifests: Vec<String>,
}

/// A catalog as it comes in, one message at a time: documents as they stand in files, by package.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// By package and name.
    bundles: BTreeMap<String, BTreeMap<String, Bundle>>,
    /// Entries by package and channel.
    channels: BTreeMap<String, BTreeMap<String, Vec<Value>>>,
    packages: Vec<wire::Package>,
    left_out: BTreeMap<String, BTreeSet<String>>,
}

/// What is the same of a bundle in each of its channels.
#[derive(Debug, PartialEq)]
struct Bundle {
    document: Value,
    deprecation: Option<String>,
}

// === impl Assembly ===

impl Assembly {
    pub(super) fn add_bundle(&mut self, mut message: wire::Bundle) -> Result<(), Error> {
        let (package, name) = (message.package_name.clone(), message.csv_name.clone());
        let entry = json!({
            "name": name,
            "replaces": std::mem::take(&mut message.replaces),
            "skips": std::mem::take(&mut message.skips),
            "skipRange": std::mem::take(&mut message.skip_range),
        });
        let channels = self.channels.entry(package.clone()).or_default();
        channels.entry(message.channel_name.clone()).or_default().push(entry);

        let is_left_out = message.csv_json.is_empty() && message.object.is_empty();
        let deprecation = message.deprecation.take().map(|deprecation| deprecation.message);
        let bundle = Bundle { document: document(&message)?, deprecation };
        let bundles = self.bundles.entry(package.clone()).or_default();
        match bundles.get(&name) {
            Some(known) if *known == bundle => return Ok(()),
            Some(_) => return Err(Error::Contradiction { package, bundle: name }),
            None => bundles.insert(name.clone(), bundle),
        };
        if is_left_out {
            self.left_out.entry(package).or_default().insert(name);
        }
        Ok(())
    }

    pub(super) fn add_package(&mut self, message: wire::Package) {
        self.packages.push(message);
    }

    /// Reads the documents as if they stood in files. The address is for messages.
    pub(super) fn finish(mut self, address: &str, limits: &Limits) -> Result<Served, Error> {
        let mut fbc = Fbc::default();
        for package in std::mem::take(&mut self.packages) {
            let name = format!("{address}, package {}", package.name);
            let documents = self.documents(package)?;
            fbc.add_file(&name, documents.as_bytes(), limits)
                .map_err(|error| Error::Documents(Box::new(error)))?;
        }
        if let Some(package) = self.channels.keys().next() {
            let detail = format!("package `{package}` has bundles and is not in the list");
            return Err(Error::Changed { detail });
        }
        Ok(Served { fbc, left_out: self.left_out })
    }

    /// All documents of one package, a line each.
    fn documents(&mut self, message: wire::Package) -> Result<String, Error> {
        let package = message.name;
        let mut entries = self.channels.remove(&package).unwrap_or_default();
        let mut documents = vec![json!({
            "schema": "olm.package",
            "name": package,
            "defaultChannel": message.default_channel_name,
        })];
        let mut deprecations = Vec::new();
        let mut note = |schema: &str, name: &str, message: String| {
            let reference = json!({ "schema": schema, "name": name });
            deprecations.push(json!({ "reference": reference, "message": message }));
        };
        if let Some(deprecation) = message.deprecation {
            note("olm.package", "", deprecation.message);
        }
        for wire::Channel { name, deprecation, .. } in message.channels {
            let Some(entries) = entries.remove(&name) else {
                let detail = format!("channel `{name}` of package `{package}` is empty");
                return Err(Error::Changed { detail });
            };
            if let Some(deprecation) = deprecation {
                note("olm.channel", &name, deprecation.message);
            }
            documents.push(json!({
                "schema": "olm.channel", "package": package, "name": name, "entries": entries,
            }));
        }
        if let Some(channel) = entries.keys().next() {
            let detail = format!("channel `{channel}` of package `{package}` is not in the list");
            return Err(Error::Changed { detail });
        }
        for (name, bundle) in self.bundles.remove(&package).unwrap_or_default() {
            if let Some(message) = bundle.deprecation {
                note("olm.bundle", &name, message);
            }
            documents.push(bundle.document);
        }
        if !deprecations.is_empty() {
            documents.push(json!({
                "schema": "olm.deprecations", "package": package, "entries": deprecations,
            }));
        }
        let lines: Vec<String> = documents.iter().map(ToString::to_string).collect();
        Ok(lines.join("\n"))
    }
}

/// A bundle as its author wrote it, but what was not sent.
fn document(message: &wire::Bundle) -> Result<Value, Error> {
    let mut properties = Vec::new();
    for property in &message.properties {
        let value: Value = serde_json::from_str(&property.value).map_err(|source| Error::Json {
            package: message.package_name.clone(),
            bundle: message.csv_name.clone(),
            field: format!("property `{}`", property.r#type),
            source,
        })?;
        properties.push(json!({ "type": property.r#type, "value": value }));
    }
    let has_package = || message.properties.iter().any(|p| p.r#type == Property::PACKAGE);
    // Registries that read from a database may know the version without having the property.
    if !message.version.is_empty() && !has_package() {
        let value = json!({ "packageName": message.package_name, "version": message.version });
        properties.push(json!({ "type": Property::PACKAGE, "value": value }));
    }
    for object in &message.object {
        let value = json!({ "data": STANDARD.encode(object) });
        properties.push(json!({ "type": Property::BUNDLE_OBJECT, "value": value }));
    }
    Ok(json!({
        "schema": "olm.bundle",
        "package": message.package_name,
        "name": message.csv_name,
        "image": message.bundle_path,
        "properties": properties,
    }))
}

pub(super) fn content(message: wire::Bundle) -> Result<BundleContent, Error> {
    let csv = match message.csv_json.as_str() {
        "" => None,
        text => Some(serde_json::from_str(text).map_err(|source| Error::Json {
            package: message.package_name.clone(),
            bundle: message.csv_name.clone(),
            field: "the ClusterServiceVersion".to_owned(),
            source,
        })?),
    };
    // Where there are no manifests, the description stands in for the only one.
    let is_inline = message.object.len() > 1
        || message.object.first().is_some_and(|object| *object != message.csv_json)
        || csv.as_ref().is_some_and(|csv: &Value| !is_stub(csv));
    let manifests = if is_inline { message.object } else { Vec::new() };
    Ok(BundleContent { image: message.bundle_path, csv, manifests })
}

/// Whether a CSV was made up from a description: it names no Deployment at all.
fn is_stub(csv: &Value) -> bool {
    let deployments = csv.pointer("/spec/install/spec/deployments");
    deployments.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// A document as JSON. Its nesting is bounded where the message was decoded.
pub(super) fn json_of(document: prost_types::Struct) -> Value {
    let fields = document.fields.into_iter().map(|(name, value)| (name, json_of_value(value)));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn json_of_value(value: prost_types::Value) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(value)) => Value::Bool(value),
        Some(Kind::NumberValue(value)) => number(value),
        Some(Kind::StringValue(value)) => Value::String(value),
        Some(Kind::StructValue(value)) => json_of(value),
        Some(Kind::ListValue(list)) => {
            Value::Array(list.values.into_iter().map(json_of_value).collect())
        }
    }
}

/// Numbers travel as floating point. Those that were integers become integers again.
fn number(value: f64) -> Value {
    /// 2 to the power of 53: up to here every integer is one in floating point too.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "an integer within range, as checked"
        )]
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
