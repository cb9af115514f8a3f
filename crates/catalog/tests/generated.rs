//! The JSON Schemas of what this crate writes and reads, and whether they are current.
//!
//! With `WAVELIFT_GENERATE=1` (as `cargo xtask codegen` sets it) stale files are written instead.

#[cfg(test)]
mod schemas {
    use std::{collections::BTreeMap, fs, path::Path};

    use schemars::{Schema, schema_for};
    use wavelift_catalog::{
        crd::CrdDiff,
        preview::Preview,
        release::{Release, SCHEMA},
    };

    /// Every published schema, by its file's name.
    fn files() -> BTreeMap<String, Schema> {
        BTreeMap::from([
            ("diff-crd.schema.json".to_owned(), schema_for!(CrdDiff)),
            ("preview.schema.json".to_owned(), schema_for!(Preview)),
            (format!("{SCHEMA}.schema.json"), schema_for!(Release)),
        ])
    }

    #[test]
    fn published_schemas_are_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        let is_writing = std::env::var_os("WAVELIFT_GENERATE").is_some_and(|value| value == "1");
        let mut stale = Vec::new();
        for (name, schema) in files() {
            let content = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
            let path = folder.join(&name);
            if fs::read_to_string(&path).ok().as_ref() == Some(&content) {
                continue;
            }
            if is_writing {
                fs::write(&path, content).unwrap();
                println!("wrote docs/reference/{name}");
            } else {
                stale.push(name);
            }
        }
        assert!(stale.is_empty(), "run `cargo xtask codegen`; stale: {stale:?}");
    }
}
