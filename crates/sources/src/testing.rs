//! What several tests of this crate need.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::bounds::{Patience, Retries};

/// A certificate authority of a test's own.
pub(crate) struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        // Each process needs a provider, whichever test comes first.
        wavelift_runtime::tls::install_crypto();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn pem(&self) -> String {
        self.pem.clone()
    }

    /// A server certificate and its key, PEM.
    pub(crate) fn server(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// Serves until the test's runtime ends, over TLS if there is a certificate with its key; the answer
/// is the port of localhost.
pub(crate) async fn serve(router: axum::Router, tls: Option<(String, String)>) -> u16 {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = tcp.local_addr().unwrap().port();
    let Some((certificate, key)) = tls else {
        tokio::spawn(async move { axum::serve(tcp, router).await });
        return port;
    };
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    tokio::spawn(async move { axum::serve(Tls { tcp, acceptor }, router).await });
    port
}

struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            // A client that trusts nobody breaks off here.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// As patient as a test is.
pub(crate) fn patience() -> Patience {
    Patience { silence: Duration::from_millis(500), ..Patience::default() }
}

/// Two more attempts, at once.
pub(crate) fn retries() -> Retries {
    let pause = Duration::from_millis(1);
    Retries { again_max: 2, first_pause: pause, pause_max: pause }
}
