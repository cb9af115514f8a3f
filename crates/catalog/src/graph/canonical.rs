//! JSON with sorted keys and no spaces, so that equal graphs are equal bytes.
//!
//! Written by hand and not by serde: the keys of `serde_json::Value` keep insertion order as soon as
//! any crate of the build asks for that, and a graph has more than its canonical form.

use std::io;

use serde_json::Value;

use super::{Bundle, Channel, Entry, Graph, Package, Property};

/// Writes any value in the canonical form.
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) {
    Writer { out }.value(value);
}

/// Writes a graph to memory or to a hash, which can't fail.
pub(super) fn write_graph(graph: &Graph, out: &mut impl io::Write) {
    let mut writer = Writer { out };
    writer.object(|object| {
        object.field("packages", |writer| {
            writer.map(&graph.packages, Writer::package);
        });
    });
}

struct Writer<'a, W> {
    out: &'a mut W,
}

/// An object that is being written; its fields must come sorted.
struct Object<'a, 'b, W> {
    writer: &'a mut Writer<'b, W>,
    is_empty: bool,
}

impl<'b, W: io::Write> Object<'_, 'b, W> {
    fn field(&mut self, name: &str, value: impl FnOnce(&mut Writer<'b, W>)) {
        if !self.is_empty {
            self.writer.raw(b",");
        }
        self.is_empty = false;
        self.writer.text(name);
        self.writer.raw(b":");
        value(self.writer);
    }

    fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.field(name, |writer| writer.text(text));
        }
    }
}

impl<'b, W: io::Write> Writer<'b, W> {
    fn package(&mut self, package: &Package) {
        self.object(|object| {
            object.field("bundles", |writer| {
                writer.map(&package.bundles, Writer::bundle);
            });
            object.field("channels", |writer| {
                writer.map(&package.channels, |writer, channel| writer.channel(package, channel));
            });
            object.text("defaultChannel", package.default_channel.as_deref());
            object.text("deprecation", package.deprecation.as_deref());
        });
    }

    fn bundle(&mut self, bundle: &Bundle) {
        self.object(|object| {
            object.text("deprecation", bundle.deprecation.as_deref());
            object.text("image", bundle.image.as_deref());
            if !bundle.properties.is_empty() {
                object.field("properties", |writer| {
                    writer.list(&bundle.properties, |writer, property| writer.property(property));
                });
            }
            object.text("release", bundle.release.as_deref());
            object.text("version", bundle.version.as_ref().map(ToString::to_string).as_deref());
        });
    }

    fn property(&mut self, property: &Property) {
        self.object(|object| {
            object.text("type", Some(&property.kind));
            object.field("value", |writer| writer.value(&property.value));
        });
    }

    fn channel(&mut self, package: &Package, channel: &Channel) {
        self.object(|object| {
            object.text("deprecation", channel.deprecation.as_deref());
            object.field("entries", |writer| {
                let with_bundle =
                    channel.entries.iter().filter(|(name, _)| package.bundles.contains_key(*name));
                writer.map(with_bundle, Writer::entry);
            });
        });
    }

    fn entry(&mut self, entry: &Entry) {
        self.object(|object| {
            object.text("replaces", entry.replaces.as_deref());
            object.text("skipRange", entry.skip_range.as_deref());
            if !entry.skips.is_empty() {
                object.field("skips", |writer| {
                    writer.list(&entry.skips, |writer, name| writer.text(name));
                });
            }
        });
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                let mut fields: Vec<_> = map.iter().collect();
                fields.sort_by_key(|(key, _)| *key);
                self.map(fields, Self::value);
            }
            Value::Array(items) => self.list(items, Self::value),
            Value::String(text) => self.text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.raw(value.to_string().as_bytes());
            }
        }
    }

    fn map<'m, T: 'm>(
        &mut self,
        fields: impl IntoIterator<Item = (&'m String, &'m T)>,
        value: impl Fn(&mut Self, &T),
    ) {
        self.object(|object| {
            for (name, field) in fields {
                object.field(name, |writer| value(writer, field));
            }
        });
    }

    fn list<'m, T: 'm>(
        &mut self,
        items: impl IntoIterator<Item = &'m T>,
        value: impl Fn(&mut Self, &T),
    ) {
        self.raw(b"[");
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.raw(b",");
            }
            value(self, item);
        }
        self.raw(b"]");
    }

    fn object(&mut self, fields: impl FnOnce(&mut Object<'_, 'b, W>)) {
        self.raw(b"{");
        fields(&mut Object { writer: self, is_empty: true });
        self.raw(b"}");
    }

    fn text(&mut self, text: &str) {
        serde_json::to_writer(&mut *self.out, text).expect(WRITES);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.out.write_all(bytes).expect(WRITES);
    }
}

const WRITES: &str = "memory and hashes take whatever is written";
