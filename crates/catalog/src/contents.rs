//! What a catalog holds beside its graph: the manifests of its bundles and the documents that
//! authors wrote for its packages, each piece named by the SHA-256 of its bytes.
//!
//! The [`Contents`] are the table of these names. The table has a name itself, which stands in a
//! cluster's inventory beside the graph's digest. So whoever knows the name of a table can tell of
//! every piece that somebody sends whether it belongs to that catalog, whoever sent it.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalog::Catalog,
    graph::{Digest, canonical},
    manifests::Manifests,
};

/// The table of one catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// Packages that have something, by name.
    #[serde(default)]
    pub packages: BTreeMap<String, PackageContents>,
}

/// What one package has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageContents {
    /// The name of its documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<Digest>,
    /// The name of each bundle's manifests, of those whose manifests the catalog carries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bundles: BTreeMap<String, Digest>,
}

/// Why bytes are not the piece that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They have another name.
    #[error("named {announced}, but it is {found}")]
    Digest {
        /// The name that was asked for.
        announced: Digest,
        /// The name of what came.
        found: Digest,
    },
    /// They are not of the form.
    #[error("not {what}")]
    Parse {
        /// What they should be.
        what: &'static str,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

// === impl Contents ===

impl Contents {
    pub(crate) fn of(catalog: &Catalog) -> Self {
        let mut packages: BTreeMap<String, PackageContents> = BTreeMap::new();
        for (package, bundle, manifests) in catalog.all_manifests() {
            let name = Digest::of(&manifests_bytes(manifests));
            packages.entry(package.to_owned()).or_default().bundles.insert(bundle.to_owned(), name);
        }
        for package in catalog.with_documents() {
            let name = Digest::of(&documents_bytes(catalog.documents(package)));
            packages.entry(package.to_owned()).or_default().documents = Some(name);
        }
        Self { packages }
    }

    /// The bytes that are named.
    pub fn to_bytes(&self) -> Vec<u8> {
        let value = serde_json::to_value(self)
            .expect("a table has only string keys and texts, so it always serialises");
        let mut out = Vec::new();
        canonical::write(&value, &mut out);
        out
    }

    /// The name of the table.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }

    /// Reads a table that somebody sent under a name.
    pub fn read(bytes: &[u8], name: &Digest) -> Result<Self, Error> {
        parse(bytes, name, "a table of contents")
    }

    /// The name of a bundle's manifests, when the catalog carries them.
    pub fn manifests(&self, package: &str, bundle: &str) -> Option<&Digest> {
        self.packages.get(package)?.bundles.get(bundle)
    }

    /// The name of a package's documents, when it has any.
    pub fn documents(&self, package: &str) -> Option<&Digest> {
        self.packages.get(package)?.documents.as_ref()
    }
}

// === impl Catalog ===

impl Catalog {
    /// The piece of this name, or the table itself.
    pub fn piece(&self, name: &Digest) -> Option<Vec<u8>> {
        let contents = self.contents();
        for (package, held) in &contents.packages {
            if held.documents.as_ref() == Some(name) {
                return Some(documents_bytes(self.documents(package)));
            }
            if let Some((bundle, _)) = held.bundles.iter().find(|(_, found)| *found == name) {
                return self.manifests(package, bundle).map(manifests_bytes);
            }
        }
        (self.contents_digest() == name).then(|| contents.to_bytes())
    }
}

/// Reads a bundle's manifests that somebody sent under a name.
pub fn read_manifests(bytes: &[u8], name: &Digest) -> Result<Manifests, Error> {
    let encoded: Vec<String> = parse(bytes, name, "a list of manifests")?;
    Ok(Manifests::from_encoded(encoded))
}

/// Reads a package's documents that somebody sent under a name.
pub fn read_documents(bytes: &[u8], name: &Digest) -> Result<Vec<Value>, Error> {
    parse(bytes, name, "a list of documents")
}

fn parse<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    name: &Digest,
    what: &'static str,
) -> Result<T, Error> {
    let found = Digest::of(bytes);
    if found != *name {
        return Err(Error::Digest { announced: name.clone(), found });
    }
    serde_json::from_slice(bytes).map_err(|source| Error::Parse { what, source })
}

fn manifests_bytes(manifests: &Manifests) -> Vec<u8> {
    let encoded: Vec<Cow<'_, str>> = manifests.encoded().collect();
    serde_json::to_vec(&encoded).expect("a list of texts always serialises")
}

fn documents_bytes(documents: &[Value]) -> Vec<u8> {
    let mut each: Vec<Vec<u8>> = documents
        .iter()
        .map(|document| {
            let mut out = Vec::new();
            canonical::write(document, &mut out);
            out
        })
        .collect();
    each.sort();
    let mut out = vec![b'['];
    for (index, document) in each.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(document);
    }
    out.push(b']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fbc, Limits};

    fn catalog(object: &str, note: &str) -> Catalog {
        let text = format!(
            r#"{{"schema": "olm.package", "name": "oak", "defaultChannel": "stable"}}
            {{"schema": "olm.channel", "package": "oak", "name": "stable",
                "entries": [{{"name": "oak.v1"}}]}}
            {{"schema": "olm.bundle", "package": "oak", "name": "oak.v1", "image": "oak:1",
                "properties": [{{"type": "olm.package",
                    "value": {{"packageName": "oak", "version": "1.0.0"}}}},
                    {{"type": "olm.bundle.object", "value": {{"data": "{object}"}}}}]}}
            {{"schema": "example.notes", "package": "oak", "text": "{note}", "a": 1}}"#
        );
        let fbc = Fbc::parse("oak.json", text.as_bytes(), &Limits::default()).unwrap();
        Catalog::from_fbc(fbc, &Limits::default()).unwrap()
    }

    #[test]
    fn every_piece_is_found_by_its_name_and_read_back() {
        let catalog = catalog("e30=", "new");
        let contents = catalog.contents();
        let name = contents.digest();
        let table = Contents::read(&catalog.piece(&name).unwrap(), &name).unwrap();
        assert_eq!(table, *contents);
        let name = table.manifests("oak", "oak.v1").unwrap();
        let manifests = read_manifests(&catalog.piece(name).unwrap(), name).unwrap();
        assert_eq!(manifests.objects().unwrap(), [serde_json::json!({})]);
        let name = table.documents("oak").unwrap();
        let documents = read_documents(&catalog.piece(name).unwrap(), name).unwrap();
        assert_eq!(documents[0]["text"], "new");
        let other = Digest::of(b"other");
        assert!(catalog.piece(&other).is_none());
        assert_eq!(table.manifests("oak", "oak.v2"), None);
    }

    #[test]
    fn a_table_differs_where_the_graph_does_not() {
        let (one, two, three) =
            (catalog("e30=", "new"), catalog("W10=", "new"), catalog("e30=", "old"));
        let name = |catalog: &Catalog| catalog.contents().digest();
        assert_ne!(name(&one), name(&two));
        assert_ne!(name(&one), name(&three));
        assert_eq!(one.digest(), three.digest());
        let graphs = (one.graph().to_canonical_json(), three.graph().to_canonical_json());
        assert_eq!(graphs.0, graphs.1);
    }

    #[test]
    fn a_packed_catalog_holds_the_same_pieces() {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let object = serde_json::json!({"kind": "ConfigMap", "data": {"text": "x".repeat(500)}});
        let make = || catalog(&STANDARD.encode(object.to_string()), "new");
        let (packed, plain) = (make().packed(), make());
        assert_eq!(packed.contents(), plain.contents());
        let name = plain.contents().manifests("oak", "oak.v1").unwrap();
        assert_eq!(packed.piece(name), plain.piece(name));
        let manifests = packed.manifests("oak", "oak.v1").unwrap();
        assert_eq!(manifests.objects().unwrap(), [object]);
    }

    #[test]
    fn bytes_under_another_name_are_refused() {
        let name = Digest::of(b"[]");
        assert!(read_manifests(b"[]", &name).is_ok());
        assert!(matches!(read_manifests(b"[ ]", &name), Err(Error::Digest { .. })));
        let name = Digest::of(b"{}");
        assert!(matches!(read_manifests(b"{}", &name), Err(Error::Parse { .. })));
    }
}
