//! OLM v0 and what serves its catalogs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    Programs,
    api::{ApiServer, free_port},
    objects::{CATALOG_SOURCE, CRD, NAMESPACE, OLM_CONFIG, Objects},
    process::{self, Recipe, Server},
};
use crate::harness;

/// OLM's own namespace, whose catalogs are everybody's.
pub(crate) const HOME: &str = "olm";

/// The two programs of OLM v0 on one cluster, and the garbage collector that they rely on.
#[derive(Debug)]
pub(crate) struct OlmV0 {
    _catalog: Server,
    _olm: Server,
    _controllers: Server,
}

/// A catalog that is served as a CatalogSource's pod would.
#[derive(Debug)]
pub(crate) struct Registry {
    dir: PathBuf,
    address: String,
    server: Server,
}

// === impl OlmV0 ===

impl OlmV0 {
    /// Installs OLM on a cluster that has none.
    pub(crate) async fn start(programs: &Programs, cluster: &ApiServer) -> Result<Self> {
        let objects = Objects::new(cluster.client().await?);
        install_crds(programs, &objects).await?;
        objects.create(NAMESPACE, "", &json!({"metadata": {"name": HOME}})).await?;
        // An operator of all namespaces would leave copies in every test's.
        let config = json!({"metadata": {"name": "cluster"},
            "spec": {"features": {"disableCopiedCSVs": true}}});
        objects.create(OLM_CONFIG, "", &config).await?;
        let log = |name: &str| process::log(cluster.dir(), name);
        let controllers = Recipe::new(&programs.controllers, &log("controllers")?)
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig())
            .arg("--authentication-kubeconfig")
            .arg(cluster.kubeconfig())
            .arg("--authorization-kubeconfig")
            .arg(cluster.kubeconfig())
            .args([
                "--controllers",
                "garbage-collector-controller,clusterrole-aggregation-controller",
            ])
            .args(["--leader-elect=false", "--bind-address", "127.0.0.1"])
            .args(["--secure-port", &free_port()?.to_string()])
            .start()?;
        let catalog = Recipe::new(&programs.catalog, &log("catalog")?)
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig())
            .args(["--namespace", HOME, "--interval", "1m", "--writeStatusName", ""])
            .start()?;
        let olm = Recipe::new(&programs.olm, &log("olm")?)
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("OPERATOR_NAMESPACE", HOME)
            .args(["--namespace", HOME, "--writeStatusName", ""])
            .args(["--writePackageServerStatusName", ""])
            .start()?;
        Ok(Self { _catalog: catalog, _olm: olm, _controllers: controllers })
    }
}

async fn install_crds(programs: &Programs, objects: &Objects) -> Result<()> {
    let mut crds = read_crds(&programs.olm_crds)?;
    crds.extend_from_slice(harness::crds());
    establish(objects, &crds).await
}

/// The CRDs in a folder.
pub(crate) fn read_crds(folder: &Path) -> Result<Vec<Value>> {
    let mut crds = vec![];
    for file in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&path)?;
            let crd: Value = serde_saphyr::from_str(&text)
                .with_context(|| format!("cannot read {}", path.display()))?;
            crds.push(crd);
        }
    }
    Ok(crds)
}

/// Creates CRDs and waits until they are served.
pub(crate) async fn establish(objects: &Objects, crds: &[Value]) -> Result<()> {
    for crd in crds {
        objects.create(CRD, "", crd).await?;
    }
    for crd in crds {
        let name = crd["metadata"]["name"].as_str().context("a CRD has a name")?;
        let established = |crd: &Value| {
            let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
            conditions.clone().any(|c| c["type"] == "Established" && c["status"] == "True")
        };
        objects.until_object(CRD, ("", name), established).await?;
    }
    Ok(())
}

// === impl Registry ===

impl Registry {
    /// Serves `catalog`, the documents of an FBC.
    pub(crate) async fn start(programs: &Programs, dir: &Path, catalog: &[Value]) -> Result<Self> {
        fs::create_dir_all(dir.join("configs"))?;
        write(dir, catalog)?;
        let port = free_port()?;
        let server = Recipe::new(&programs.opm, &process::log(dir, "opm")?)
            .args(["serve", "--cache-enforce-integrity=false", "--pprof-addr", "127.0.0.1:0"])
            .args(["--port", &port.to_string()])
            .arg("--cache-dir")
            .arg(dir.join("cache"))
            .arg("--termination-log")
            .arg(dir.join("termination"))
            .arg(dir.join("configs"))
            .start()?;
        let mut registry =
            Self { dir: dir.to_owned(), address: format!("127.0.0.1:{port}"), server };
        registry.server.says("serving registry").await?;
        Ok(registry)
    }

    /// Serves another catalog from now on, at the same place.
    pub(crate) async fn serve(&mut self, catalog: &[Value]) -> Result<()> {
        write(&self.dir, catalog)?;
        fs::remove_dir_all(self.dir.join("cache")).context("opm's cache")?;
        // Its log is looked into for a word that the life before has said too.
        fs::write(self.server.log(), "")?;
        self.server.restart()?;
        self.server.says("serving registry").await
    }

    /// The process itself.
    pub(crate) fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// A CatalogSource of it.
    pub(crate) async fn source(
        &self,
        objects: &Objects,
        namespace: &str,
        name: &str,
    ) -> Result<()> {
        let spec = json!({"sourceType": "grpc", "address": self.address, "displayName": name});
        let source = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
        objects.create(CATALOG_SOURCE, namespace, &source).await
    }
}

fn write(dir: &Path, catalog: &[Value]) -> Result<()> {
    let lines: Vec<String> = catalog.iter().map(Value::to_string).collect();
    fs::write(dir.join("configs/catalog.json"), lines.join("\n"))?;
    Ok(())
}
