//! Certificates that are no identity are made with rcgen by hand, the good one by our signer.

use std::time::SystemTime;

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

use super::*;

const CN: &str =
    "system:open-cluster-management:cluster:prod-1:addon:wavelift:agent:wavelift-agent";
const O: &str = "system:open-cluster-management:cluster:prod-1:addon:wavelift";
const URI: &str = "urn:wavelift:managedcluster-uid:6f2a";

fn read(names: &[&str], organizations: &[&str], uris: &[&str]) -> Result<AgentIdentity, Error> {
    read_at(names, organizations, uris, 1_500)
}

fn read_at(
    names: &[&str],
    organizations: &[&str],
    uris: &[&str],
    now: i64,
) -> Result<AgentIdentity, Error> {
    AgentIdentity::from_leaf(&leaf(names, organizations, uris), second(now))
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A leaf that is valid from second 1000 to second 2000.
fn leaf(names: &[&str], organizations: &[&str], uris: &[&str]) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.not_before = SystemTime::from(second(1_000)).into();
    params.not_after = SystemTime::from(second(2_000)).into();
    params.distinguished_name = DistinguishedName::new();
    // rcgen keeps one value of a type, so a second one is pushed by its object identifier.
    for (kind, custom, values) in [
        (DnType::CommonName, DnType::CustomDnType(vec![2, 5, 4, 3]), names),
        (DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10]), organizations),
    ] {
        for (kind, value) in [kind, custom].into_iter().zip(values) {
            params.distinguished_name.push(kind, *value);
        }
    }
    params.subject_alt_names =
        uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
    let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    certificate.der().to_vec()
}

#[test]
fn the_exact_form_is_an_identity() {
    let identity = read(&[CN], &[O], &[URI, "https://example.com"]).unwrap();
    assert_eq!(identity.cluster.as_str(), "prod-1");
    assert_eq!(identity.uid.as_str(), "6f2a");
    assert_eq!(identity.not_after, second(2_000));
}

#[test]
fn another_common_name_is_none() {
    let check = |name: &str| {
        let error = read(&[name], &[O], &[URI]).unwrap_err();
        assert_eq!(error.kind(), "subject_form", "{name}");
    };
    check("prod-1");
    check("system:open-cluster-management:cluster:prod-1:addon:wavelift:agent");
    check(&format!("{CN}:more"));
    check(&format!(" {CN}"));
    check("system:open-cluster-management:cluster:PROD:addon:wavelift:agent:wavelift-agent");
    check("system:open-cluster-management:cluster::addon:wavelift:agent:wavelift-agent");
    check("system:open-cluster-management:cluster:prod-1:addon:wavelift:agent:other");
    check("system:serviceaccount:cluster:prod-1:addon:wavelift:agent:wavelift-agent");
    assert_eq!(read(&[], &[O], &[URI]).unwrap_err().kind(), "subject_form");
    assert_eq!(read(&[CN, CN], &[O], &[URI]).unwrap_err().kind(), "subject_form");
}

#[test]
fn another_addon_is_named_as_such() {
    let name = "system:open-cluster-management:cluster:prod-1:addon:search:agent:search-agent";
    let error = read(&[name], &[O], &[URI]).unwrap_err();
    assert_eq!(error, Error::Addon { found: "search".to_owned() });
}

#[test]
fn the_organization_must_be_the_clusters_own_and_alone() {
    let other = "system:open-cluster-management:cluster:prod-2:addon:wavelift";
    for organizations in [&[][..], &[other], &[O, other], &["system:masters"]] {
        let error = read(&[CN], organizations, &[URI]).unwrap_err();
        assert_eq!(error.kind(), "subject_organization", "{organizations:?}");
    }
}

#[test]
fn there_must_be_exactly_one_uid() {
    let empty = "urn:wavelift:managedcluster-uid:";
    for uris in [&[][..], &["https://example.com"], &[URI, URI], &[empty], &[empty, URI]] {
        let error = read(&[CN], &[O], uris).unwrap_err();
        assert_eq!(error.kind(), "subject_uid", "{uris:?}");
    }
}

#[test]
fn a_certificate_counts_from_its_first_to_its_last_second() {
    let kind = |now| read_at(&[CN], &[O], &[URI], now).err().map(|error| error.kind());
    assert_eq!(kind(999), Some("certificate_not_yet_valid"));
    assert_eq!(kind(1_000), None);
    assert_eq!(kind(2_000), None);
    assert_eq!(kind(2_001), Some("certificate_expired"));
}

#[test]
fn bytes_that_are_no_certificate_are_refused() {
    let error = AgentIdentity::from_leaf(b"nonsense", Timestamp::UNIX_EPOCH).unwrap_err();
    assert_eq!(error, Error::Malformed);
}
