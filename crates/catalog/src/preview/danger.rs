//! Which permissions deserve a second look, and which entry gives more than another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::permission::Entry;

/// Why a permission is dangerous. The gravest is the least.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Danger {
    /// Every verb on every resource of every group.
    Everything,
    /// Giving itself any role: `escalate` or `bind` on roles.
    Escalate,
    /// Acting as anybody: `impersonate`.
    Impersonate,
    /// Talking to kubelets, which run anything in any pod: `nodes/proxy`.
    NodesProxy,
    /// Reading or writing secrets.
    Secrets,
    /// Making tokens of service accounts.
    Tokens,
    /// Running commands in pods: `pods/exec`, `pods/attach`, `pods/ephemeralcontainers`.
    PodsExec,
    /// Writing webhook configurations: seeing and changing every request to the API server.
    WebhookConfigurations,
    /// Using a security context constraint or a pod security policy.
    SecurityContextConstraints,
    /// Writing roles or bindings.
    RolesAndBindings,
    /// Signing or approving certificates.
    Certificates,
    /// Writing definitions of APIs: CRDs or APIServices.
    ApiDefinitions,
    /// Writing nodes or persistent volumes.
    NodesAndVolumes,
    /// A wildcard as group, resource, verb or URL: it grows by itself.
    Wildcard,
    /// In the whole cluster, where it was in a namespace before.
    ClusterWide,
    /// Creating or changing pods, or what makes pods.
    Workloads,
}

const ANY: &str = "*";
const CORE: &str = "";
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const WRITE: &[&str] = &["create", "update", "patch"];
const READ: &[&str] = &["get", "list", "watch"];

/// Groups, resources and verbs of a danger.
struct Probe {
    danger: Danger,
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static [&'static str]],
}

const fn probe(
    danger: Danger,
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static [&'static str]],
) -> Probe {
    Probe { danger, group, resources, verbs }
}

const PROBES: &[Probe] = &[
    probe(Danger::Escalate, RBAC, &["roles", "clusterroles"], &[&["escalate", "bind"]]),
    probe(Danger::Impersonate, CORE, &["users", "groups", "serviceaccounts"], &[&["impersonate"]]),
    probe(
        Danger::Impersonate,
        "authentication.k8s.io",
        &["userextras", "uids"],
        &[&["impersonate"]],
    ),
    probe(Danger::NodesProxy, CORE, &["nodes/proxy"], &[&["get"], WRITE]),
    probe(Danger::Secrets, CORE, &["secrets"], &[READ, WRITE, &["delete", "deletecollection"]]),
    probe(Danger::Tokens, CORE, &["serviceaccounts/token"], &[&["create"]]),
    probe(
        Danger::PodsExec,
        CORE,
        &["pods/exec", "pods/attach", "pods/ephemeralcontainers", "pods/portforward"],
        &[&["get"], WRITE],
    ),
    probe(
        Danger::WebhookConfigurations,
        ADMISSION,
        &["validatingwebhookconfigurations", "mutatingwebhookconfigurations"],
        &[WRITE],
    ),
    probe(
        Danger::SecurityContextConstraints,
        "security.openshift.io",
        &["securitycontextconstraints"],
        &[&["use"], WRITE],
    ),
    probe(Danger::SecurityContextConstraints, "policy", &["podsecuritypolicies"], &[&["use"]]),
    probe(
        Danger::RolesAndBindings,
        RBAC,
        &["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
        &[WRITE],
    ),
    probe(
        Danger::Certificates,
        "certificates.k8s.io",
        &["certificatesigningrequests/approval", "certificatesigningrequests/status", "signers"],
        &[WRITE, &["approve", "sign"]],
    ),
    probe(Danger::ApiDefinitions, "apiextensions.k8s.io", &["customresourcedefinitions"], &[WRITE]),
    probe(Danger::ApiDefinitions, "apiregistration.k8s.io", &["apiservices"], &[WRITE]),
    probe(Danger::NodesAndVolumes, CORE, &["nodes", "persistentvolumes"], &[WRITE]),
    probe(Danger::Workloads, CORE, &["pods", "replicationcontrollers"], &[WRITE]),
    probe(
        Danger::Workloads,
        "apps",
        &["deployments", "daemonsets", "statefulsets", "replicasets"],
        &[WRITE],
    ),
    probe(Danger::Workloads, "batch", &["jobs", "cronjobs"], &[WRITE]),
];

/// The dangers of an entry, the gravest first.
pub(super) fn of(entry: &Entry, is_widened: bool) -> Vec<Danger> {
    let is_any = |text: Option<&str>| text.is_some_and(|text| text.contains(ANY));
    let resource = entry.resource.as_deref();
    let names_nothing = entry.resource_names.is_empty();
    if entry.api_group == ANY && resource == Some(ANY) && entry.verb == ANY && names_nothing {
        return vec![Danger::Everything];
    }
    let probed = PROBES.iter().filter(|probe| probe.reaches(entry)).map(|probe| probe.danger);
    let mut dangers: Vec<Danger> = probed.collect();
    let url = entry.non_resource_url.as_deref();
    if entry.api_group == ANY || entry.verb == ANY || is_any(resource) || is_any(url) {
        dangers.push(Danger::Wildcard);
    }
    if is_widened {
        dangers.push(Danger::ClusterWide);
    }
    dangers.sort_unstable();
    dangers.dedup();
    dangers
}

// === impl Probe ===

impl Probe {
    fn reaches(&self, entry: &Entry) -> bool {
        let Some(resource) = entry.resource.as_deref() else { return false };
        let is_group = entry.api_group == ANY || entry.api_group == self.group;
        let is_verb = entry.verb == ANY || self.verbs.iter().any(|v| v.contains(&&*entry.verb));
        is_group && is_verb && self.resources.iter().any(|probed| gives(resource, probed))
    }
}

/// Whether a resource of a rule stands for another one.
fn gives(resource: &str, probed: &str) -> bool {
    resource == ANY || resource == probed || any_with(probed).is_some_and(|any| any == resource)
}

/// The subresource of every resource.
fn any_with(resource: &str) -> Option<String> {
    resource.split_once('/').map(|(_, subresource)| format!("{ANY}/{subresource}"))
}

/// Every entry that would give what this one gives, itself included, as far as they can be counted
/// up: wildcards and the absence of resource names.
pub(super) fn wider(entry: &Entry) -> Vec<Entry> {
    let groups = or_any(&entry.api_group);
    let verbs = or_any(&entry.verb);
    let mut names = vec![entry.resource_names.clone()];
    if !entry.resource_names.is_empty() {
        names.push(Vec::new());
    }
    let mut wider = Vec::new();
    for (verb, names) in verbs.iter().flat_map(|v| names.iter().map(move |n| (v, n))) {
        let made = |group: &str, resource: Option<String>, url: Option<String>| Entry {
            api_group: group.to_owned(),
            resource,
            non_resource_url: url,
            verb: verb.clone(),
            resource_names: names.clone(),
        };
        if let Some(resource) = &entry.resource {
            let resources = or_any(resource).into_iter().chain(any_with(resource));
            for resource in resources {
                wider.extend(groups.iter().map(|g| made(g, Some(resource.clone()), None)));
            }
        }
        for url in entry.non_resource_url.iter().flat_map(|url| urls(url)) {
            wider.push(made("", None, Some(url)));
        }
    }
    wider
}

fn or_any(text: &str) -> Vec<String> {
    if text == ANY { vec![ANY.to_owned()] } else { vec![text.to_owned(), ANY.to_owned()] }
}

/// The URL and every pattern that it falls under.
fn urls(url: &str) -> Vec<String> {
    let ends = url.match_indices('/').map(|(at, _)| at + 1);
    let above = ends.filter_map(|end| url.get(..end)).map(|path| format!("{path}{ANY}"));
    std::iter::once(url.to_owned()).chain(above).chain(std::iter::once(ANY.to_owned())).collect()
}
