//! Development: certificates for agents, written to a folder. On a real hub the add-on's
//! registration takes this place.

use std::{fs, path::Path};

use kube::{Api, Client, ResourceExt as _};
use tracing::info;
use wavelift_api::managed_cluster::ManagedCluster;
use wavelift_core::ids::{self, ClusterName, Uid};
use wavelift_runtime::{pki, tls::Material};

use crate::start::Hub;

/// Why certificates were not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The ManagedClusters can't be read.
    #[error("failed to read the ManagedClusters")]
    Read(#[source] Box<kube::Error>),
    /// A name is not one.
    #[error("a ManagedCluster's name or uid")]
    Name(#[from] ids::Error),
    /// There is no such cluster.
    #[error("there is no ManagedCluster {0}")]
    Unknown(String),
    /// The certificate can't be issued.
    #[error("failed to issue a certificate")]
    Issue(#[from] pki::Error),
    /// A file can't be written.
    #[error("failed to write to {path}")]
    Write {
        /// Where.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Every ManagedCluster.
const ALL: &str = "*";

/// Writes `<dir>/<cluster>/{tls.crt,tls.key,ca.crt}` for each of `names`.
pub(crate) async fn write(
    hub: &Hub,
    client: &Client,
    dir: &Path,
    names: &[String],
) -> Result<(), Error> {
    let api: Api<ManagedCluster> = Api::all(client.clone());
    let list =
        api.list(&kube::api::ListParams::default()).await.map_err(|e| Error::Read(Box::new(e)))?;
    let is_wanted = |name: &str| names.iter().any(|wanted| wanted == ALL || wanted == name);
    for name in names.iter().filter(|name| *name != ALL) {
        if list.items.iter().all(|cluster| cluster.name_any() != *name) {
            return Err(Error::Unknown(name.clone()));
        }
    }
    for cluster in list.items.iter().filter(|cluster| is_wanted(&cluster.name_any())) {
        let name = ClusterName::try_from(cluster.name_any())?;
        let uid = Uid::try_from(cluster.uid().unwrap_or_default())?;
        let folder = dir.join(name.as_str());
        save(&folder, &hub.issue_agent(&name, &uid)?)?;
        info!(cluster = %name, folder = %folder.display(), "wrote a certificate");
    }
    Ok(())
}

fn save(folder: &Path, material: &Material) -> Result<(), Error> {
    let failed = |path: &Path, source| Error::Write { path: path.display().to_string(), source };
    fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    // The certificate last: whoever waits for it finds the rest.
    let files =
        [("ca.crt", &material.ca), ("tls.key", &material.key), ("tls.crt", &material.certificates)];
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|source| failed(&path, source))?;
    }
    Ok(())
}
