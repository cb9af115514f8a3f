//! etcd, and API servers that share it.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{interval, timeout};

use super::{
    Programs,
    certificates::Certificates,
    process::{self, Recipe, Server},
};
use crate::harness::{child, wait::PATIENCE};

/// A running etcd.
#[derive(Debug)]
pub(crate) struct Etcd {
    address: String,
    _server: Server,
}

/// A running API server: one cluster.
#[derive(Debug)]
pub(crate) struct ApiServer {
    dir: PathBuf,
    log: PathBuf,
    server: Mutex<Server>,
}

// === impl Etcd ===

impl Etcd {
    pub(crate) async fn start(programs: &Programs, dir: &Path) -> Result<Self> {
        let address = format!("http://127.0.0.1:{}", free_port()?);
        let peers = format!("http://127.0.0.1:{}", free_port()?);
        let mut server = Recipe::new(&programs.etcd, &process::log(dir, "etcd")?)
            .arg("--data-dir")
            .arg(dir.join("etcd"))
            .args(["--listen-client-urls", &address, "--advertise-client-urls", &address])
            .args(["--listen-peer-urls", &peers, "--unsafe-no-fsync"])
            .start()?;
        server.says("ready to serve client requests").await?;
        Ok(Self { address, _server: server })
    }
}

// === impl ApiServer ===

impl ApiServer {
    /// Starts one and waits until it is ready. What it is asked is written down in its audit log.
    pub(crate) async fn start(
        programs: &Programs,
        etcd: &Etcd,
        certificates: &Certificates,
        parent: &Path,
        name: &str,
    ) -> Result<Self> {
        let dir = parent.join(name);
        fs::create_dir_all(&dir)?;
        let port = free_port()?;
        fs::write(dir.join("audit.yaml"), AUDIT_POLICY)?;
        let path = |name: &str| certificates.path(name);
        let server = Recipe::new(&programs.kube_apiserver, &process::log(&dir, "kube-apiserver")?)
            .args(["--etcd-servers", &etcd.address, "--etcd-prefix", &format!("/{name}")])
            .args(["--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"])
            .args(["--secure-port", &port.to_string(), "--endpoint-reconciler-type", "none"])
            .arg("--client-ca-file")
            .arg(path("ca.crt"))
            .arg("--requestheader-client-ca-file")
            .arg(path("front-ca.crt"))
            .arg("--tls-cert-file")
            .arg(path("server.crt"))
            .arg("--tls-private-key-file")
            .arg(path("server.key"))
            .arg("--service-account-key-file")
            .arg(path("accounts.pub"))
            .arg("--service-account-signing-key-file")
            .arg(path("accounts.key"))
            .args(["--service-account-issuer", "https://kubernetes.default.svc"])
            .args(["--service-cluster-ip-range", "10.0.0.0/24", "--authorization-mode", "RBAC"])
            .args(["--disable-admission-plugins", "ServiceAccount", "--allow-privileged"])
            .arg("--audit-policy-file")
            .arg(dir.join("audit.yaml"))
            .arg("--audit-log-path")
            .arg(dir.join("audit.log"))
            .args(["--audit-log-mode", "blocking-strict"])
            .start()?;
        let log = server.log().to_owned();
        let server = Self { dir, log, server: Mutex::new(server) };
        let admin = certificates.client("admin", "system:masters")?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority-data": STANDARD.encode(certificates.authority()),
            }}],
            "users": [{"name": "admin", "user": {
                "client-certificate-data": STANDARD.encode(admin.certificate),
                "client-key-data": STANDARD.encode(admin.key),
            }}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
        });
        fs::write(server.kubeconfig(), kubeconfig.to_string())?;
        server.ready().await?;
        Ok(server)
    }

    /// A folder of its own.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A kubeconfig of its admin.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// A client of its admin, for this test's runtime.
    pub(crate) async fn client(&self) -> Result<Client> {
        self.client_as("tests").await
    }

    /// A client that calls itself so in the audit log.
    pub(crate) async fn client_as(&self, agent: &str) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig())?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.headers.push((http::header::USER_AGENT, agent.parse()?));
        Ok(Client::try_from(config)?)
    }

    /// SIGKILL; nobody answers any more when this returns.
    pub(crate) fn stop(&self) {
        self.server.lock().kill();
    }

    /// Starts it again as it was, and waits until it answers.
    pub(crate) async fn resume(&self) -> Result<()> {
        self.server.lock().restart()?;
        self.ready().await
    }

    /// Waits until it answers.
    pub(crate) async fn ready(&self) -> Result<()> {
        let client = self.client().await?;
        let asked = async {
            let mut turns = interval(child::LOOK);
            loop {
                turns.tick().await;
                let request = http::Request::get("/readyz").body(vec![])?;
                if client.request_text(request).await.is_ok() {
                    return anyhow::Ok(());
                }
            }
        };
        let ready = timeout(PATIENCE, asked).await.context("it is not ready");
        ready.with_context(|| child::tail(&self.log))?
    }

    /// What was asked of it, as it was written down: one audit event a line.
    pub(crate) fn audit(&self) -> Result<Vec<serde_json::Value>> {
        let text = fs::read_to_string(self.dir.join("audit.log"))?;
        // The last line may still be under way.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let events = whole.lines().map(serde_json::from_str);
        events.collect::<Result<_, _>>().context("the audit log")
    }
}

/// Writes and who made them; reads would fill the disk.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  resources: [{group: coordination.k8s.io}, {group: '', resources: [events]}, {group: events.k8s.io}]
- level: Request
";

/// A port of 127.0.0.1 that nobody has.
pub(crate) fn free_port() -> Result<u16> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    ensure!(port > 0, "no port");
    Ok(port)
}
