//! What is issued is read back with x509-parser, not with our own reader.

use rcgen::CertificateParams;
use x509_parser::{extensions::GeneralName, pem::parse_x509_pem};

use super::*;

const DAY: Duration = Duration::from_hours(24);

fn ca() -> Ca {
    Ca::generate("test agents", Validity::from_now(30 * DAY)).unwrap()
}

fn request(key: RequestedKey) -> AgentCertificateRequest {
    AgentCertificateRequest {
        cluster: ClusterName::try_from("prod-mad-03").unwrap(),
        uid: Uid::try_from("11ee-22").unwrap(),
        key,
    }
}

fn public_key() -> RequestedKey {
    RequestedKey::PublicKeyPem(PrivateKey::generate().unwrap().public_key_pem())
}

#[test]
fn an_agents_certificate_has_the_exact_subject_the_uid_and_client_use_alone() {
    let issued = issue_agent_certificate(&ca(), &request(public_key()), Validity::from_now(DAY));
    let (_, pem) = parse_x509_pem(issued.unwrap().certificate_pem.as_bytes()).unwrap();
    let leaf = pem.parse_x509().unwrap();
    assert_eq!(
        leaf.subject().to_string(),
        "CN=system:open-cluster-management:cluster:prod-mad-03:addon:wavelift:agent:wavelift-agent, \
         O=system:open-cluster-management:cluster:prod-mad-03:addon:wavelift"
    );
    let sans = &leaf.subject_alternative_name().unwrap().unwrap().value.general_names;
    assert_eq!(sans, &[GeneralName::URI("urn:wavelift:managedcluster-uid:11ee-22")]);
    let usage = leaf.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.client_auth && !usage.server_auth && !usage.any);
    assert!(!leaf.is_ca());
}

#[test]
fn a_signing_request_gives_its_key_and_nothing_else() {
    let key = KeyPair::generate().unwrap();
    let mut asked = CertificateParams::new(vec!["hub.example.com".to_owned()]).unwrap();
    asked.distinguished_name.push(DnType::CommonName, "victim");
    asked.distinguished_name.push(DnType::OrganizationName, "system:masters");
    asked.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    asked.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let csr = RequestedKey::CsrPem(asked.serialize_request(&key).unwrap().pem().unwrap());
    let issued = issue_agent_certificate(&ca(), &request(csr), Validity::from_now(DAY)).unwrap();
    let (_, pem) = parse_x509_pem(issued.certificate_pem.as_bytes()).unwrap();
    let leaf = pem.parse_x509().unwrap();
    assert_eq!(leaf.public_key().raw, key.subject_public_key_info());
    let subject = leaf.subject().to_string();
    assert!(!subject.contains("victim") && !subject.contains("masters"), "{subject}");
    assert!(!leaf.is_ca());
    assert!(!leaf.extended_key_usage().unwrap().unwrap().value.server_auth);
    let sans = &leaf.subject_alternative_name().unwrap().unwrap().value.general_names;
    assert_eq!(sans, &[GeneralName::URI("urn:wavelift:managedcluster-uid:11ee-22")]);
}

#[test]
fn a_request_that_is_not_signed_by_its_own_key_is_refused() {
    let key = KeyPair::generate().unwrap();
    let csr = CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
    // The signature stands last; one character of its text is changed.
    let mut lines: Vec<String> = csr.lines().map(str::to_owned).collect();
    let last = lines.iter().rposition(|line| !line.starts_with('-')).unwrap();
    let changed = if lines[last].starts_with('A') { "B" } else { "A" };
    lines[last].replace_range(..1, changed);
    let forged = RequestedKey::CsrPem(lines.join("\n"));
    let result = issue_agent_certificate(&ca(), &request(forged), Validity::from_now(DAY));
    assert_eq!(result.unwrap_err().kind(), "request");
}

#[test]
fn a_certificate_never_outlives_its_authority() {
    let ca = ca();
    let asked = Validity::from_now(365 * DAY);
    let issued = issue_agent_certificate(&ca, &request(public_key()), asked).unwrap();
    assert_eq!(issued.not_after, ca.not_after());
}

#[test]
fn an_empty_validity_is_refused() {
    let now = Timestamp::now();
    let empty = Validity { not_before: now, not_after: now };
    let result = issue_agent_certificate(&ca(), &request(public_key()), empty);
    assert_eq!(result.unwrap_err().kind(), "validity");
}

#[test]
fn two_certificates_of_one_key_have_two_serial_numbers() {
    let (ca, request) = (ca(), request(public_key()));
    let serial = || {
        let issued = issue_agent_certificate(&ca, &request, Validity::from_now(DAY)).unwrap();
        let (_, pem) = parse_x509_pem(issued.certificate_pem.as_bytes()).unwrap();
        pem.parse_x509().unwrap().raw_serial_as_string()
    };
    assert_ne!(serial(), serial());
}

#[test]
fn an_authority_read_back_signs_what_its_certificate_verifies() {
    let ca = ca();
    let read = Ca::from_pem(ca.certificate_pem(), &ca.key_pem()).unwrap();
    let issued =
        issue_agent_certificate(&read, &request(public_key()), Validity::from_now(DAY)).unwrap();
    let (_, pem) = parse_x509_pem(issued.certificate_pem.as_bytes()).unwrap();
    let (_, ca_pem) = parse_x509_pem(ca.certificate_pem().as_bytes()).unwrap();
    let authority = ca_pem.parse_x509().unwrap();
    let leaf = pem.parse_x509().unwrap();
    leaf.verify_signature(Some(authority.public_key())).unwrap();
    assert_eq!(leaf.issuer(), authority.subject());
    assert_eq!(read.not_after().as_second(), ca.not_after().as_second());
}

#[test]
fn an_authority_with_another_ones_key_is_refused() {
    let result = Ca::from_pem(ca().certificate_pem(), &ca().key_pem());
    assert_eq!(result.unwrap_err().kind(), "authority_key");
}

#[test]
fn a_servers_certificate_is_for_its_names_and_server_use_alone() {
    let names = ["hub.example.com".to_owned(), "127.0.0.1".to_owned()];
    let key = PrivateKey::generate().unwrap();
    let issued = issue_server_certificate(&ca(), &names, &key, Validity::from_now(DAY)).unwrap();
    let (_, pem) = parse_x509_pem(issued.certificate_pem.as_bytes()).unwrap();
    let leaf = pem.parse_x509().unwrap();
    let usage = leaf.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && !usage.client_auth);
    let sans = &leaf.subject_alternative_name().unwrap().unwrap().value.general_names;
    assert_eq!(
        sans,
        &[GeneralName::DNSName("hub.example.com"), GeneralName::IPAddress(&[127, 0, 0, 1])]
    );
}

#[test]
fn debug_output_shows_no_key() {
    let ca = ca();
    assert!(!format!("{ca:?}").contains("PRIVATE"));
    assert_eq!(format!("{:?}", PrivateKey::generate().unwrap()), "PrivateKey(..)");
}
