//! From the messages of a registry back to the documents they were made of.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use prost_types::value::Kind;
use serde_json::{Map, Number, Value, json};
use wavelift_catalog::{fbc, graph::Property};
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

/// A catalog as it comes in, one message at a time.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    bundles: BTreeMap<String, BTreeMap<String, fbc::Bundle>>,
    channels: BTreeMap<String, BTreeMap<String, Vec<fbc::Entry>>>,
    /// Notes on bundles, by package and name.
    deprecated: BTreeMap<String, BTreeMap<String, String>>,
    packages: Vec<wire::Package>,
    served: Served,
}

// === impl Assembly ===

impl Assembly {
    pub(super) fn add_bundle(&mut self, message: wire::Bundle) -> Result<(), Error> {
        let (package, name) = (message.package_name.clone(), message.csv_name.clone());
        let entry = fbc::Entry {
            name: name.clone(),
            replaces: message.replaces.clone(),
            skips: message.skips.clone(),
            skip_range: message.skip_range.clone(),
        };
        let channels = self.channels.entry(package.clone()).or_default();
        channels.entry(message.channel_name.clone()).or_default().push(entry);

        let is_left_out = message.csv_json.is_empty() && message.object.is_empty();
        let deprecation = message.deprecation.as_ref().map(|d| d.message.clone());
        let bundle = bundle(message)?;
        let bundles = self.bundles.entry(package.clone()).or_default();
        let noted = self.deprecated.entry(package.clone()).or_default();
        if let Some(known) = bundles.get(&name) {
            if *known != bundle || noted.get(&name) != deprecation.as_ref() {
                return Err(Error::Contradiction { package, bundle: name });
            }
            return Ok(());
        }
        bundles.insert(name.clone(), bundle);
        noted.extend(deprecation.map(|message| (name.clone(), message)));
        if is_left_out {
            self.served.left_out.entry(package).or_default().insert(name);
        }
        Ok(())
    }

    pub(super) fn add_package(&mut self, message: wire::Package) {
        self.packages.push(message);
    }

    pub(super) fn finish(mut self) -> Result<Served, Error> {
        for package in std::mem::take(&mut self.packages) {
            self.close_package(package)?;
        }
        if let Some(package) = self.channels.keys().next() {
            let detail = format!("package `{package}` has bundles and is not in the list");
            return Err(Error::Changed { detail });
        }
        Ok(self.served)
    }

    /// Puts together what came of one package.
    fn close_package(&mut self, message: wire::Package) -> Result<(), Error> {
        let name = message.name;
        let mut entries = self.channels.remove(&name).unwrap_or_default();
        let mut deprecations = Vec::new();
        let mut note = |schema: &str, name: &str, message: String| {
            let (schema, name) = (schema.to_owned(), name.to_owned());
            deprecations.push(fbc::Deprecation { schema, name, message });
        };
        if let Some(deprecation) = message.deprecation {
            note("olm.package", "", deprecation.message);
        }
        for channel in message.channels {
            let Some(entries) = entries.remove(&channel.name) else {
                let detail = format!("channel `{}` of package `{name}` is empty", channel.name);
                return Err(Error::Changed { detail });
            };
            if let Some(deprecation) = channel.deprecation {
                note("olm.channel", &channel.name, deprecation.message);
            }
            let channel = fbc::Channel { package: name.clone(), name: channel.name, entries };
            self.served.fbc.channels.push(channel);
        }
        if let Some(channel) = entries.keys().next() {
            let detail = format!("channel `{channel}` of package `{name}` is not in the list");
            return Err(Error::Changed { detail });
        }
        for (bundle, message) in self.deprecated.remove(&name).unwrap_or_default() {
            note("olm.bundle", &bundle, message);
        }
        self.served
            .fbc
            .bundles
            .extend(self.bundles.remove(&name).unwrap_or_default().into_values());
        if !deprecations.is_empty() {
            let entries = deprecations;
            self.served.fbc.deprecations.push(fbc::Deprecations { package: name.clone(), entries });
        }
        let default_channel = message.default_channel_name;
        self.served.fbc.packages.push(fbc::Package {
            name,
            default_channel,
            ..fbc::Package::default()
        });
        Ok(())
    }
}

fn bundle(message: wire::Bundle) -> Result<fbc::Bundle, Error> {
    let not_json = |field: String, source| Error::Json {
        package: message.package_name.clone(),
        bundle: message.csv_name.clone(),
        field,
        source,
    };
    let mut properties = Vec::new();
    for property in &message.properties {
        let value = serde_json::from_str(&property.value)
            .map_err(|source| not_json(format!("property `{}`", property.r#type), source))?;
        properties.push(Property { kind: property.r#type.clone(), value });
    }
    // Registries that read from a database may know the version without having the property.
    if !message.version.is_empty() && !properties.iter().any(|p| p.kind == Property::PACKAGE) {
        let value = json!({ "packageName": message.package_name, "version": message.version });
        properties.push(Property { kind: Property::PACKAGE.to_owned(), value });
    }
    let objects = message.object.iter().map(|object| STANDARD.encode(object)).collect();
    Ok(fbc::Bundle {
        package: message.package_name,
        name: message.csv_name,
        image: message.bundle_path,
        properties,
        objects,
        ..fbc::Bundle::default()
    })
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
