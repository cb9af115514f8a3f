//! From the files of a bundle to its documents.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{Document, Error, Manifests, metadata, view::View};
use crate::{fbc::FieldError, json, preview};

/// Bounds on one bundle. The defaults are several times what the largest public bundle needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files.
    pub files: usize,
    /// Bytes of one file.
    pub file_bytes: usize,
    /// Bytes of all files together.
    pub total_bytes: usize,
    /// Documents in one file.
    pub file_documents: usize,
    /// Nesting of mappings and lists in one document.
    pub depth: usize,
    /// Scalars, mappings and lists in one file.
    pub file_nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 2_000,
            file_bytes: 16 << 20,
            total_bytes: 128 << 20,
            file_documents: 1_000,
            depth: 64,
            file_nodes: 2_000_000,
        }
    }
}

const METADATA: &str = "metadata/";
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The files of a bundle directory, by their paths in it. Other folders than `manifests` and
/// `metadata` are no part of a bundle.
pub(super) fn dir(root: &Path, limits: &Limits) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut files = BTreeMap::new();
    let mut bytes = 0;
    let has_manifests = root.join("manifests").is_dir();
    let manifests = if has_manifests { "manifests" } else { "" };
    for folder in [manifests, "metadata"] {
        let path = root.join(folder);
        if folder == "metadata" && !path.is_dir() {
            continue;
        }
        for file in documents_in(root, &path, limits)? {
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            at_most("bundle", "files", files.len() + 1, limits.files)?;
            let max = limits.file_bytes.min(limits.total_bytes - bytes);
            let content = content(&file, max)?;
            at_most(&name, "bytes", content.len(), max)?;
            bytes += content.len();
            files.insert(name, content);
        }
    }
    Ok(files)
}

/// The documents of a folder, sorted, without what lies in folders below it. Links are followed as
/// long as they stay in the bundle: mounted ConfigMaps link their files one by one.
fn documents_in(root: &Path, folder: &Path, limits: &Limits) -> Result<Vec<PathBuf>, Error> {
    let error = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Read { path, source }
    };
    let root = fs::canonicalize(root).map_err(error(root))?;
    let (mut files, mut visited) = (Vec::new(), 0);
    for entry in fs::read_dir(folder).map_err(error(folder))? {
        visited += 1;
        at_most("bundle", "files", visited, limits.files)?;
        let path = entry.map_err(error(folder))?.path();
        if !is_document(&path) {
            continue;
        }
        let metadata = fs::metadata(&path).map_err(error(&path))?;
        if metadata.is_dir() {
            continue;
        }
        // A pipe would be waited for, a device has no end.
        if !metadata.is_file() {
            return Err(Error::Kind { path });
        }
        if !fs::canonicalize(&path).map_err(error(&path))?.starts_with(&root) {
            return Err(Error::Outside { path });
        }
        files.push(path);
    }
    files.sort();
    Ok(files)
}

fn is_document(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

fn content(path: &Path, max: usize) -> Result<Vec<u8>, Error> {
    let error = |source| Error::Read { path: path.to_owned(), source };
    let mut content = Vec::new();
    // One byte more than allowed is enough to know that there is too much.
    let file = fs::File::open(path).map_err(error)?;
    file.take(max as u64 + 1).read_to_end(&mut content).map_err(error)?;
    Ok(content)
}

/// One inline manifest, JSON or YAML.
pub(super) fn inline(index: usize, content: &[u8], limits: &Limits) -> Result<Value, Error> {
    let place = format!("inline manifest {index}");
    at_most(&place, "bytes", content.len(), limits.file_bytes)?;
    // Text that is no JSON has some size all the same, and YAML has bounds of its own.
    at_most(&place, "values", json::size(content).nodes, limits.file_nodes)?;
    match serde_json::from_slice(content) {
        Ok(value) => Ok(value),
        Err(_) => serde_saphyr::from_slice(content)
            .map_err(|source| Error::Parse { index, source: Box::new(source) }),
    }
}

fn at_most(file: &str, what: &'static str, found: usize, max: usize) -> Result<(), Error> {
    if found > max {
        return Err(Error::TooLarge { file: file.to_owned(), what, found, max });
    }
    Ok(())
}

pub(super) fn files(
    files: &BTreeMap<String, Vec<u8>>,
    annotations: BTreeMap<String, String>,
    limits: &Limits,
) -> Result<Manifests, Error> {
    at_most("bundle", "files", files.len(), limits.files)?;
    at_most("bundle", "bytes", files.values().map(Vec::len).sum(), limits.total_bytes)?;
    let mut manifests = Manifests { annotations, ..Manifests::default() };
    for (name, content) in files.iter().filter(|(name, _)| is_document(Path::new(name))) {
        let documents = documents(name, content, limits)?;
        for (index, value) in documents.into_iter().enumerate() {
            let place = format!("{name}, document {}", index + 1);
            let added = match name.strip_prefix(METADATA) {
                Some(file) => metadata::add(&mut manifests, file, &value),
                None => add(&mut manifests, &place, value),
            };
            added.map_err(|source| Error::Field { place, source })?;
        }
    }
    check(&mut manifests)?;
    Ok(manifests)
}

fn add(manifests: &mut Manifests, place: &str, value: Value) -> Result<(), FieldError> {
    // An empty document, e.g. after a last `---`.
    if value.is_null() {
        return Ok(());
    }
    if !value.is_object() {
        return Err(FieldError::NoObject);
    }
    let object = View::root(&value);
    // Beside the manifests of a bundle in one folder lie files of other purpose.
    if !place.contains('/') && object.get("kind")?.value().is_none() {
        return Ok(());
    }
    object.get("kind")?.required_text()?;
    object.get("apiVersion")?.text()?;
    object.find(&["metadata", "name"])?.text()?;
    manifests.documents.push(Document::Read { place: place.into(), value: Arc::new(value) });
    Ok(())
}

/// There is one CSV, and the preview can read it.
fn check(manifests: &mut Manifests) -> Result<(), Error> {
    let mut csvs: Vec<(String, Arc<Value>)> = Vec::new();
    for document in &manifests.documents {
        if let Document::Read { place, value } = document
            && value["kind"] == "ClusterServiceVersion"
        {
            csvs.push((place.to_string(), Arc::clone(value)));
        }
    }
    match csvs.as_slice() {
        [] => Err(Error::NoCsv),
        [(place, csv)] => {
            let error = |source| Error::Field { place: place.clone(), source };
            preview::check(csv).map_err(error)?;
            metadata::add_of_csv(manifests, csv).map_err(error)
        }
        _ => Err(Error::SeveralCsvs { places: csvs.into_iter().map(|(place, _)| place).collect() }),
    }
}

fn documents(file: &str, content: &[u8], limits: &Limits) -> Result<Vec<Value>, Error> {
    at_most(file, "bytes", content.len(), limits.file_bytes)?;
    let documents = if content.trim_ascii_start().starts_with(b"{") {
        json(file, content, limits)?
    } else {
        yaml(file, content, limits)?
    };
    for value in &documents {
        at_most(file, "levels of nesting", depth(value), limits.depth)?;
    }
    Ok(documents)
}

fn json(file: &str, content: &[u8], limits: &Limits) -> Result<Vec<Value>, Error> {
    at_most(file, "values", json::size(content).nodes, limits.file_nodes)?;
    let mut documents = Vec::new();
    for value in serde_json::Deserializer::from_slice(content).into_iter::<Value>() {
        let document = documents.len() + 1;
        at_most(file, "documents", document, limits.file_documents)?;
        let error = |source| Error::Json { file: file.to_owned(), document, source };
        documents.push(value.map_err(error)?);
    }
    Ok(documents)
}

fn yaml(file: &str, content: &[u8], limits: &Limits) -> Result<Vec<Value>, Error> {
    let mut documents = Vec::new();
    let mut reader = content;
    for value in serde_saphyr::read_with_options::<_, Value>(&mut reader, options(limits)) {
        let document = documents.len() + 1;
        let error =
            |source| Error::Yaml { file: file.to_owned(), document, source: Box::new(source) };
        documents.push(value.map_err(error)?);
    }
    Ok(documents)
}

fn options(limits: &Limits) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(limits.file_bytes),
            // A node is at most a start and an end.
            max_events: limits.file_nodes.saturating_mul(2),
            max_nodes: limits.file_nodes,
            max_documents: limits.file_documents,
            max_depth: limits.depth,
            max_total_scalar_bytes: limits.file_bytes,
            max_total_comment_bytes: limits.file_bytes,
        },
        // The last one wins, as in the parser that OLM's own tools use.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    }
}

/// How deep a value is nested. The parsers have bounded it before.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
