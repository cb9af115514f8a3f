//! One kubeconfig for the hub and every simulated cluster.

use std::{io, path::Path};

/// Writes a kubeconfig with a context for each (name, URL); the first one is the current one.
pub(crate) fn write(path: &Path, servers: &[(String, String)]) -> io::Result<()> {
    let mut clusters = String::new();
    let mut contexts = String::new();
    for (name, url) in servers {
        clusters.push_str(&format!("- name: {name}\n  cluster:\n    server: {url}\n"));
        contexts.push_str(&format!(
            "- name: {name}\n  context:\n    cluster: {name}\n    user: demo\n    \
             namespace: {}\n",
            crate::fleet::NAMESPACE
        ));
    }
    let current = servers.first().map_or("", |(name, _)| name.as_str());
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {current}\nclusters:\n{clusters}\
         users:\n- name: demo\n  user: {{}}\ncontexts:\n{contexts}"
    );
    std::fs::write(path, text)
}
