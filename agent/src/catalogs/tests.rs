//! Files and memory; registries have tests of their own.

use serde_json::json;

use super::*;

pub(super) fn asked(namespace: &str, name: &str) -> Asked {
    let object = json!({"metadata": {"namespace": namespace, "name": name}});
    Asked::of(serde_json::from_value(object).unwrap())
}

#[test]
fn a_catalog_flag_names_its_source_and_its_path() {
    let (key, path) = parse_flag("openshift-marketplace/own=/catalogs/own").unwrap();
    assert_eq!(key.to_string(), "openshift-marketplace/own");
    assert_eq!(path, PathBuf::from("/catalogs/own"));
    for bad in ["own=/x", "a/b", "/b=/x", "a/=/x", "a/b="] {
        assert!(parse_flag(bad).is_err(), "`{bad}` was taken");
    }
}

#[tokio::test]
async fn a_catalog_is_read_once_and_one_that_cannot_be_read_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("catalog.json");
    let key = CatalogKey { name: "own".to_owned(), namespace: "market".to_owned() };
    let files = Files::new([(key, path.clone())]);
    assert_eq!(files.read(&asked("market", "own")).await.unwrap_err().kind(), "unreadable");
    let blobs = r#"{"schema": "olm.package", "name": "oak", "defaultChannel": "stable"}
        {"schema": "olm.channel", "package": "oak", "name": "stable",
            "entries": [{"name": "oak.v1.0.0"}]}
        {"schema": "olm.bundle", "package": "oak", "name": "oak.v1.0.0", "image": "oak:1",
            "properties": [{"type": "olm.package",
                "value": {"packageName": "oak", "version": "1.0.0"}}]}"#;
    std::fs::write(&path, blobs).unwrap();
    let catalog = files.read(&asked("market", "own")).await.unwrap();
    assert!(catalog.bundle("oak", "oak.v1.0.0").is_some());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(files.read(&asked("market", "own")).await.unwrap().digest(), catalog.digest());
}

#[tokio::test]
async fn a_catalog_that_nobody_named_is_not_known() {
    let key = CatalogKey { name: "own".to_owned(), namespace: "market".to_owned() };
    let files = Files::new([(key, PathBuf::from("/nonexistent/catalog"))]);
    assert_eq!(files.read(&asked("market", "own")).await.unwrap_err().kind(), "unreadable");
    assert_eq!(files.read(&asked("market", "other")).await.unwrap_err().kind(), "not_known");
    assert_eq!(
        Shared::new().read(&asked("market", "other")).await.unwrap_err().kind(),
        "not_known"
    );
}
