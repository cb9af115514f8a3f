//! The certificates of an API server and of who talks to it.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType,
};

/// An authority that signs.
pub(crate) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, both in PEM.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// What all API servers of a run share, in a folder.
pub(crate) struct Certificates {
    dir: PathBuf,
    authority: Authority,
}

// === impl Authority ===

impl Authority {
    fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    fn sign(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Leaf> {
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Leaf { certificate, key: key.serialize_pem() })
    }
}

// === impl Certificates ===

impl Certificates {
    /// Makes all that an API server wants to be given.
    pub(crate) fn new(dir: &Path) -> Result<Self> {
        let authority = Authority::new("clients and servers")?;
        // The API server wants another authority for whoever speaks in others' names.
        let fronts = Authority::new("front proxies")?;
        let mut server = CertificateParams::new(["localhost".to_owned()])?;
        server.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let server = authority.sign(server, ExtendedKeyUsagePurpose::ServerAuth)?;
        let accounts = KeyPair::generate()?;
        let write = |name: &str, text: &str| fs::write(dir.join(name), text);
        write("ca.crt", &authority.pem)?;
        write("front-ca.crt", &fronts.pem)?;
        write("server.crt", &server.certificate)?;
        write("server.key", &server.key)?;
        write("accounts.key", &accounts.serialize_pem())?;
        write("accounts.pub", &accounts.public_key_pem())?;
        Ok(Self { dir: dir.to_owned(), authority })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The authority's certificate.
    pub(crate) fn authority(&self) -> &str {
        &self.authority.pem
    }

    /// A client's certificate: its user and group.
    pub(crate) fn client(&self, user: &str, group: &str) -> Result<Leaf> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        self.authority.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }
}
