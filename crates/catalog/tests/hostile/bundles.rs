//! Bundle directories that somebody made to do harm.

use std::{fs, os::unix, path::Path};

use tempfile::TempDir;
use wavelift_catalog::{Manifests, manifests::Limits};
use wavelift_core::causes::sentence;

use crate::hostile::check_memory;

const CSV: &str = r#"{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",
    "metadata":{"name":"oak.v1"},"spec":{"version":"1.0.0"}}"#;

fn bundle() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("manifests")).unwrap();
    fs::write(dir.path().join("manifests/csv.json"), CSV).unwrap();
    assert!(Manifests::from_dir(dir.path(), &Limits::default()).is_ok());
    dir
}

#[track_caller]
fn refused(dir: &Path) -> String {
    let error = Manifests::from_dir(dir, &Limits::default()).unwrap_err();
    check_memory();
    sentence(&error)
}

#[test]
fn links_that_lead_out_of_the_bundle() {
    let other = tempfile::tempdir().unwrap();
    let secret = other.path().join("secret.yaml");
    fs::write(&secret, "kind: Secret").unwrap();
    let dir = bundle();
    let link = dir.path().join("manifests/linked.yaml");
    unix::fs::symlink(&secret, &link).unwrap();
    assert!(refused(dir.path()).ends_with("linked.yaml leads out of the bundle directory"));
    fs::remove_file(&link).unwrap();
    unix::fs::symlink("nowhere.yaml", &link).unwrap();
    assert!(refused(dir.path()).starts_with("can't read "));
    fs::remove_file(&link).unwrap();
    // A whole folder.
    unix::fs::symlink(other.path(), dir.path().join("metadata")).unwrap();
    assert!(refused(dir.path()).contains("leads out of the bundle directory"));
    fs::remove_file(dir.path().join("metadata")).unwrap();
    // Within the bundle links are followed: mounted ConfigMaps have them.
    fs::create_dir(dir.path().join("..data")).unwrap();
    fs::rename(dir.path().join("manifests/csv.json"), dir.path().join("..data/csv.json")).unwrap();
    unix::fs::symlink("../..data/csv.json", dir.path().join("manifests/csv.json")).unwrap();
    assert_eq!(Manifests::from_dir(dir.path(), &Limits::default()).unwrap().len(), 1);
}

#[test]
fn what_is_called_like_a_file_and_is_none() {
    let dir = bundle();
    let path = dir.path().join("manifests/x.yaml");
    let pipe = std::process::Command::new("mkfifo").arg(&path).status();
    if pipe.is_ok_and(|status| status.success()) {
        assert!(refused(dir.path()).ends_with("x.yaml is no file"));
        fs::remove_file(&path).unwrap();
    }
    let socket = unix::net::UnixListener::bind(&path).unwrap();
    assert!(refused(dir.path()).ends_with("x.yaml is no file"));
    drop(socket);
    fs::remove_file(&path).unwrap();
    unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(refused(dir.path()).ends_with("x.yaml is no file"));
    // A folder of such a name is no manifest.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(Manifests::from_dir(dir.path(), &Limits::default()).is_ok());
}

#[test]
fn more_than_a_bundle_holds() {
    let dir = bundle();
    let file = dir.path().join("manifests/big.yaml");
    fs::File::create(&file).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(refused(dir.path()), "manifests/big.yaml has 16777217 bytes, more than 16777216");
    fs::remove_file(file).unwrap();
    // However many there are, no more are looked at than may be; whatever they are.
    for index in 0..2_500 {
        fs::write(dir.path().join(format!("manifests/{index}")), "").unwrap();
    }
    assert_eq!(refused(dir.path()), "bundle has 2001 files, more than 2000");
}
