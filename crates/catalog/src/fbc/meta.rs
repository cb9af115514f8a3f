//! From one document to what its schema says it is.

use std::collections::BTreeMap;

use wavelift_core::causes::cut;

use super::{
    Bundle, Channel, Deprecation, Deprecations, Entry, Meta, Package, RelatedImage,
    add::{Adder, at_most},
    fields::{Fields, Path, Refused, text, wrong},
};
use crate::{
    graph::Property,
    json::{self, Json},
};

/// Which field of a document is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// There is nothing in the document, or only comments.
    #[error("document is empty: between two `---` must be an object")]
    Empty,
    /// The document is not a mapping.
    #[error("document is no object")]
    NoObject,
    /// There is no `schema`, or it is empty.
    #[error("`schema` is missing")]
    NoSchema,
    /// Two fields differ in upper and lower case only.
    #[error("field `{field}` is there more than once, in upper and lower case")]
    Folded {
        /// The field in lower case.
        field: String,
    },
    /// A field has a value of another kind.
    #[error("field `{field}` is not {expected}")]
    Kind {
        /// The field, with the path to it.
        field: String,
        /// What it should be, as a phrase.
        expected: &'static str,
    },
    /// A field breaks a rule of its own.
    #[error("field `{field}` {reason}")]
    Rule {
        /// The field, with the path to it.
        field: String,
        /// Which one, as a phrase.
        reason: String,
    },
}

const ROOT: Path<'_> = Path::Root;

/// Bytes of a name in an error.
const NAME_MAX: usize = 200;

pub(super) fn add(to: &mut Adder<'_>, fields: &Fields<'_>) -> Result<(), Refused> {
    let keys = fold(fields)?;
    let [schema, package, name] = ["schema", "package", "name"].map(|field| {
        let Some(raw) = keys.get(field) else { return Ok(String::new()) };
        let text = Some(*raw).filter(|raw| *raw != "null").and_then(text);
        let text = text.ok_or_else(|| wrong(&ROOT, field, "a text"))?;
        at_most("bytes in a name", text.len(), to.limits.name_bytes)?;
        Ok::<_, Refused>(text.into_owned())
    });
    let (schema, package, name) = (schema?, package?, name?);
    match schema.as_str() {
        "" => return Err(FieldError::NoSchema.into()),
        "olm.package" => {
            let default_channel = fields.name(&ROOT, "defaultChannel", to.limits)?;
            let description = fields.text(&ROOT, "description")?;
            icon(fields)?;
            has_properties(fields)?;
            to.fbc.packages.push(Package { name, default_channel, description });
        }
        "olm.channel" => {
            has_properties(fields)?;
            let entries = entries(to, fields)?;
            to.fbc.channels.push(Channel { package, name, entries });
        }
        "olm.bundle" => {
            to.count_bundle()?;
            let bundle = bundle(to, package, name, fields)?;
            to.fbc.bundles.push(bundle);
        }
        "olm.deprecations" => {
            let entries = deprecations(to, fields)?;
            to.fbc.deprecations.push(Deprecations { package, entries });
        }
        _ => {
            let json = Json::known(&object(fields));
            to.fbc.others.push(Meta { schema, package, name, json });
        }
    }
    Ok(())
}

/// Values by folded name. Two names that differ in case alone are an error.
fn fold<'a>(fields: &Fields<'a>) -> Result<BTreeMap<String, &'a str>, FieldError> {
    let mut keys: BTreeMap<String, (&str, &'a str)> = BTreeMap::new();
    for (name, value) in fields.iter() {
        // Upper case first joins letters that have several lower-case forms.
        let folded = if name.is_ascii() {
            name.to_ascii_lowercase()
        } else {
            name.to_uppercase().to_lowercase()
        };
        match keys.insert(folded, (name, value)) {
            Some((other, _)) if other != name => {
                return Err(FieldError::Folded { field: cut(&name.to_lowercase(), NAME_MAX) });
            }
            Some(_) | None => {}
        }
    }
    Ok(keys.into_iter().map(|(folded, (_, value))| (folded, value)).collect())
}

/// The object that has these fields.
fn object(fields: &Fields<'_>) -> String {
    // Of equal names the last one counts, so that only it is kept.
    let fields: BTreeMap<&str, &str> = fields.iter().collect();
    let mut out = String::from("{");
    for (index, (name, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&serde_json::Value::from(name).to_string());
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    out
}

fn icon(fields: &Fields<'_>) -> Result<(), FieldError> {
    let icon = fields.object(&ROOT, "icon")?;
    let path = Path::Field(&ROOT, "icon");
    icon.text(&path, "mediatype")?;
    let data = icon.text(&path, "base64data")?;
    if crate::base64::is_valid(&data) { Ok(()) } else { Err(wrong(&path, "base64data", "base64")) }
}

/// Checks the form of properties that are not kept.
fn has_properties(fields: &Fields<'_>) -> Result<(), FieldError> {
    for (index, property) in fields.objects(&ROOT, "properties")?.iter().enumerate() {
        property.text(&Path::Item(&ROOT, "properties", index), "type")?;
    }
    Ok(())
}

fn entries(to: &mut Adder<'_>, fields: &Fields<'_>) -> Result<Vec<Entry>, Refused> {
    let mut entries = Vec::new();
    for (index, fields) in fields.objects(&ROOT, "entries")?.iter().enumerate() {
        let path = Path::Item(&ROOT, "entries", index);
        let entry = Entry {
            name: fields.name(&path, "name", to.limits)?,
            replaces: fields.name(&path, "replaces", to.limits)?,
            skips: fields.names(&path, "skips", to.limits)?,
            skip_range: fields.name(&path, "skipRange", to.limits)?,
        };
        to.count_entry(entry.skips.len())?;
        entries.push(entry);
    }
    Ok(entries)
}

fn deprecations(to: &Adder<'_>, fields: &Fields<'_>) -> Result<Vec<Deprecation>, Refused> {
    let entries = fields.objects(&ROOT, "entries")?;
    let entries = entries.iter().enumerate().map(|(index, fields)| {
        let path = Path::Item(&ROOT, "entries", index);
        let reference = fields.object(&path, "reference")?;
        let inner = Path::Field(&path, "reference");
        Ok(Deprecation {
            schema: reference.name(&inner, "schema", to.limits)?,
            name: reference.name(&inner, "name", to.limits)?,
            message: fields.text(&path, "message")?,
        })
    });
    entries.collect()
}

fn bundle(
    to: &mut Adder<'_>,
    package: String,
    name: String,
    fields: &Fields<'_>,
) -> Result<Bundle, Refused> {
    let image = fields.name(&ROOT, "image", to.limits)?;
    let mut bundle = Bundle { package, name, image, ..Bundle::default() };
    for (index, fields) in fields.objects(&ROOT, "properties")?.iter().enumerate() {
        property(to, &mut bundle, &Path::Item(&ROOT, "properties", index), fields)?;
    }
    for (index, image) in fields.objects(&ROOT, "relatedImages")?.iter().enumerate() {
        let path = Path::Item(&ROOT, "relatedImages", index);
        let (name, image) = (image.text(&path, "name")?, image.name(&path, "image", to.limits)?);
        bundle.related_images.push(RelatedImage { name, image });
    }
    Ok(bundle)
}

fn property(
    to: &mut Adder<'_>,
    bundle: &mut Bundle,
    path: &Path<'_>,
    fields: &Fields<'_>,
) -> Result<(), Refused> {
    let kind = fields.text(path, "type")?;
    let Some(value) = fields.raw("value") else {
        bundle.without_value.push(kind);
        return Ok(());
    };
    match kind.as_str() {
        Property::BUNDLE_OBJECT => {
            let value = fields.object(path, "value")?;
            bundle.objects.push(value.text(&Path::Field(path, "value"), "data")?);
        }
        Property::CSV_METADATA => bundle.csv_metadata.push(Json::known(value)),
        _ => {
            let depth = json::size(value).depth;
            at_most("levels of nesting", depth, to.limits.depth)?;
            let property = to.interner.property(&kind, value);
            bundle.properties.push(property.map_err(|_| wrong(path, "value", "JSON"))?);
        }
    }
    Ok(())
}
