//! What makes a configuration, and how files turn into new ones.

use std::{fs, time::Duration};

use tokio_util::sync::CancellationToken;

use super::*;
use crate::pki::{Ca, PrivateKey, Validity, issue_server_certificate};

const HOUR: Duration = Duration::from_hours(1);

fn material() -> Material {
    let ca = Ca::generate("test", Validity::from_now(HOUR)).unwrap();
    let key = PrivateKey::generate().unwrap();
    let names = ["localhost".to_owned()];
    let issued = issue_server_certificate(&ca, &names, &key, Validity::from_now(HOUR)).unwrap();
    Material {
        certificates: issued.certificate_pem.into_bytes(),
        key: key.key_pem().into_bytes(),
        ca: ca.certificate_pem().as_bytes().to_vec(),
    }
}

fn write(dir: &Path, material: &Material) {
    fs::write(dir.join("tls.crt"), &material.certificates).unwrap();
    fs::write(dir.join("tls.key"), &material.key).unwrap();
    fs::write(dir.join("ca.crt"), &material.ca).unwrap();
}

#[test]
fn what_makes_no_configuration_says_which_part() {
    let good = material();
    let check = |material: Material, kind| {
        assert_eq!(server_config(&material).unwrap_err().kind(), kind);
        assert_eq!(client_config(&material).unwrap_err().kind(), kind);
    };
    server_config(&good).unwrap();
    client_config(&good).unwrap();
    check(Material { certificates: Vec::new(), ..good.clone() }, "pem");
    check(Material { ca: b"nonsense".to_vec(), ..good.clone() }, "pem");
    check(Material { key: Vec::new(), ..good.clone() }, "pem");
    check(Material { key: material().key, ..good }, "certificate");
}

#[test]
fn debug_output_shows_no_key() {
    assert_eq!(format!("{:?}", material()), "Material { .. }");
}

#[tokio::test]
async fn new_files_make_a_new_configuration_and_unusable_ones_leave_the_former() {
    let dir = tempfile::tempdir().unwrap();
    let first = material();
    write(dir.path(), &first);
    let every = Duration::from_millis(5);
    let shutdown = CancellationToken::new();
    let mut current = watch_dir(dir.path(), every, server_config, shutdown.clone()).await.unwrap();
    let before = Arc::clone(&current.borrow_and_update());

    // Another certificate's key: the pair is unusable until its certificate is there too. If the
    // half were taken, the configuration seen below would not be the only change.
    let second = material();
    fs::write(dir.path().join("tls.key"), &second.key).unwrap();
    write(dir.path(), &second);
    current.changed().await.unwrap();
    let after = Arc::clone(&current.borrow_and_update());
    assert!(!Arc::ptr_eq(&before, &after));

    shutdown.cancel();
    assert!(current.changed().await.is_err(), "the reloader ends with the process");
}

#[tokio::test]
async fn a_directory_without_certificates_is_an_error_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let result = watch_dir(dir.path(), HOUR, client_config, CancellationToken::new()).await;
    assert_eq!(result.unwrap_err().kind(), "read");
}
