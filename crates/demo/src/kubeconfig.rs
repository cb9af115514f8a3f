//! One kubeconfig for the hub and every simulated cluster.

use std::{io, path::Path};

/// An API server and the namespace that is looked at there.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) namespace: &'static str,
}

/// Writes a kubeconfig with a context for each server; the first one is the current one.
pub(crate) fn write(path: &Path, servers: &[Server]) -> io::Result<()> {
    let mut clusters = String::new();
    let mut contexts = String::new();
    for Server { name, url, namespace } in servers {
        clusters.push_str(&format!("- name: {name}\n  cluster:\n    server: {url}\n"));
        contexts.push_str(&format!(
            "- name: {name}\n  context:\n    cluster: {name}\n    user: demo\n    \
             namespace: {namespace}\n"
        ));
    }
    let current = servers.first().map_or("", |server| server.name.as_str());
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {current}\nclusters:\n{clusters}\
         users:\n- name: demo\n  user: {{}}\ncontexts:\n{contexts}"
    );
    std::fs::write(path, text)
}
