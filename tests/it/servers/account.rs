//! The agent's ServiceAccount on a real API server, with the roles that the chart ships.

use std::fs;

use anyhow::{Context as _, Result};
use http::header;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use wavelift_agent::rights::{Grant, NAME, NAMESPACE};
use wavelift_runtime::{metrics::Metrics, testing::workspace_root};

use super::{
    api::ApiServer,
    objects::{
        CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Kind, Objects, ROLE, ROLE_BINDING, SERVICE_ACCOUNT,
    },
    rig::AGENT,
};

/// The files of the chart, in which one document follows another.
const RBAC: &str = "charts/wavelift/rbac";
const VALID_SECONDS: i64 = 4 * 3600;

/// A ServiceAccount and a token of its.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    home: String,
    token: String,
    /// The API server's own kubeconfig.
    kubeconfig: Value,
}

/// Makes the roles that all agents of a cluster share, as installing the chart would.
pub(crate) async fn install_roles(objects: &Objects) -> Result<()> {
    for grant in Grant::ALL {
        for role in shipped(grant)?.iter().filter(|object| object["kind"] == "ClusterRole") {
            objects.create(CLUSTER_ROLE, "", role).await?;
        }
    }
    Ok(())
}

/// Whether a user of the audit log is an agent.
pub(crate) fn is_agent(user: &str) -> bool {
    let name = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    name.is_some_and(|(_, name)| name == NAME)
}

fn shipped(grant: Grant) -> Result<Vec<Value>> {
    let path = workspace_root().join(RBAC).join(format!("{}.yaml", grant.role()));
    let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
    serde_saphyr::from_multiple(&text).with_context(|| format!("cannot read {}", path.display()))
}

// === impl Account ===

impl Account {
    /// An account in this namespace with what every agent is given.
    pub(crate) async fn new(api: &ApiServer, objects: &Objects, home: &str) -> Result<Self> {
        for object in shipped(Grant::Always)? {
            install(objects, home, object).await?;
        }
        Self::of(api, objects, home).await
    }

    /// One that lacks every right to a resource, and has no more than the agent's own roles.
    pub(crate) async fn without(
        api: &ApiServer,
        objects: &Objects,
        home: &str,
        resource: &str,
    ) -> Result<Self> {
        let lesser = format!("{NAME}-{home}");
        for mut object in shipped(Grant::Always)? {
            let is_own = object["metadata"]["name"] == NAME;
            if object["kind"] == "ClusterRole" && is_own {
                let rules = object["rules"].as_array_mut().context("rules")?;
                rules.retain(|rule| rule["resources"] != json!([resource]));
                object["metadata"]["name"] = json!(lesser);
                objects.create(CLUSTER_ROLE, "", &object).await?;
            } else if object["kind"] == "ClusterRoleBinding" {
                if is_own {
                    object["roleRef"]["name"] = json!(lesser);
                    install(objects, home, object).await?;
                }
            } else {
                install(objects, home, object).await?;
            }
        }
        Self::of(api, objects, home).await
    }

    /// Gives it what an administrator may give.
    pub(crate) async fn allow(&self, objects: &Objects, grant: Grant) -> Result<()> {
        for object in shipped(grant)? {
            install(objects, &self.home, object).await?;
        }
        Ok(())
    }

    async fn of(api: &ApiServer, objects: &Objects, home: &str) -> Result<Self> {
        let accounts: Api<ServiceAccount> = Api::namespaced(objects.client(), home);
        let spec = TokenRequestSpec {
            expiration_seconds: Some(VALID_SECONDS),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let made = accounts.create_token_request(NAME, &PostParams::default(), &request).await?;
        let token = made.status.context("a token")?.token;
        let kubeconfig = serde_json::from_str(&fs::read_to_string(api.kubeconfig())?)?;
        Ok(Self { home: home.to_owned(), token, kubeconfig })
    }

    /// A kubeconfig of it, by way of somebody at `server` or straight.
    pub(crate) fn kubeconfig(&self, server: Option<&str>) -> Value {
        let mut kubeconfig = self.kubeconfig.clone();
        kubeconfig["users"][0]["user"] = json!({"token": self.token});
        if let Some(server) = server {
            kubeconfig["clusters"][0]["cluster"] = json!({"server": server});
        }
        kubeconfig
    }

    /// A client of it as the agent makes its own, for this test's runtime.
    pub(crate) async fn client(&self, server: Option<&str>, metrics: &Metrics) -> Result<Client> {
        Ok(wavelift_agent::client::client(self.config(server).await?, metrics)?)
    }

    /// What its clients are made of.
    pub(crate) async fn config(&self, server: Option<&str>) -> Result<Config> {
        let kubeconfig: Kubeconfig = serde_json::from_value(self.kubeconfig(server))?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.headers.push((header::USER_AGENT, AGENT.parse()?));
        Ok(config)
    }
}

/// Makes one object of the chart for the agent in `home`; the roles of all are there already.
async fn install(objects: &Objects, home: &str, mut object: Value) -> Result<()> {
    let kind: Kind = match object["kind"].as_str() {
        Some("ServiceAccount") => SERVICE_ACCOUNT,
        Some("Role") => ROLE,
        Some("RoleBinding") => ROLE_BINDING,
        Some("ClusterRoleBinding") => CLUSTER_ROLE_BINDING,
        _ => return Ok(()),
    };
    for subject in object["subjects"].as_array_mut().into_iter().flatten() {
        subject["namespace"] = json!(home);
    }
    if object["metadata"]["namespace"] == NAMESPACE {
        object["metadata"]["namespace"] = json!(home);
        return objects.create(kind, home, &object).await;
    }
    let name = object["metadata"]["name"].as_str().context("a name")?;
    object["metadata"]["name"] = json!(format!("{name}-{home}"));
    objects.create(kind, "", &object).await
}
