//! The user's own access to the hub cluster: FleetUpgrades are read and changed with it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;
use wavelift_api::FleetUpgrade;

use crate::args::{AccessArgs, ChangeArgs, DryRun};

/// How often a change is tried again because the status was written in between.
const CONFLICTS_MAX: usize = 20;
/// HTTP's word for it.
const CONFLICT: u16 = 409;

/// FleetUpgrades of one namespace.
#[derive(Clone)]
pub(crate) struct Kubernetes {
    client: Client,
    namespace: String,
}

impl std::fmt::Debug for Kubernetes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubernetes").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Kubernetes {
    /// Connects as the kubeconfig and the flags say.
    pub(crate) async fn connect(access: &AccessArgs) -> anyhow::Result<Self> {
        let options =
            KubeConfigOptions { context: access.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &access.kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path)
                    .with_context(|| format!("cannot read kubeconfig {}", path.display()))?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await
            }
            None => match Config::from_kubeconfig(&options).await {
                Ok(config) => Ok(config),
                Err(error) => match Config::incluster() {
                    Ok(config) => Ok(config),
                    Err(_) => Err(error),
                },
            },
        }
        .context("no usable kubeconfig: give --kubeconfig or set KUBECONFIG")?;
        let timeout = Some(Duration::from_secs(access.request_timeout));
        (config.connect_timeout, config.read_timeout) = (timeout, timeout);
        if let Some(user) = &access.as_user {
            config.auth_info.impersonate = Some(user.clone());
        }
        if !access.as_group.is_empty() {
            config.auth_info.impersonate_groups = Some(access.as_group.clone());
        }
        let namespace =
            access.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).context("cannot make a client")?;
        Ok(Self { client, namespace })
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    fn api(&self) -> Api<FleetUpgrade> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The FleetUpgrade of this name.
    pub(crate) async fn get(&self, name: &str) -> anyhow::Result<FleetUpgrade> {
        self.api().get_opt(name).await.context("cannot read the FleetUpgrade")?.with_context(|| {
            format!("no FleetUpgrade {name} in namespace {}: is -n right?", self.namespace)
        })
    }

    /// Changes a part of the spec, if nobody else changed the spec since it was read. That the hub
    /// has written its status meanwhile, as it does all the time, is no reason to refuse.
    pub(crate) async fn change(
        &self,
        read: &FleetUpgrade,
        mut patch: Value,
        change: &ChangeArgs,
    ) -> anyhow::Result<()> {
        if change.dry_run == DryRun::Client {
            return Ok(());
        }
        let name = read.metadata.name.as_deref().unwrap_or_default();
        let params = PatchParams {
            dry_run: change.dry_run == DryRun::Server,
            field_manager: Some(change.field_manager.clone()),
            ..PatchParams::default()
        };
        let mut version = read.metadata.resource_version.clone();
        for _ in 0..CONFLICTS_MAX {
            if let Some(version) = &version {
                patch["metadata"]["resourceVersion"] = Value::String(version.clone());
            }
            match self.api().patch(name, &params, &Patch::Merge(&patch)).await {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == CONFLICT => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot change FleetUpgrade {name}"));
                }
            }
            let now = self.get(name).await?.metadata;
            if (&now.uid, now.generation) != (&read.metadata.uid, read.metadata.generation) {
                bail!(
                    "somebody else changed FleetUpgrade {name} at this moment: look, and try again"
                );
            }
            version = now.resource_version;
        }
        bail!("FleetUpgrade {name} is written too often to be changed: try again")
    }

    /// Makes or changes a FleetUpgrade as a file has it.
    pub(crate) async fn apply(
        &self,
        object: &FleetUpgrade,
        change: &ChangeArgs,
    ) -> anyhow::Result<FleetUpgrade> {
        let Some(name) = object.metadata.name.clone() else {
            bail!("the file's FleetUpgrade has no metadata.name");
        };
        let namespace = object.metadata.namespace.clone().unwrap_or_else(|| self.namespace.clone());
        let mut value = serde_json::to_value(object).context("cannot write the FleetUpgrade")?;
        if let Some(map) = value.as_object_mut() {
            map.remove("status");
        }
        let params = PatchParams {
            dry_run: change.dry_run == DryRun::Server,
            field_manager: Some(change.field_manager.clone()),
            ..PatchParams::default()
        };
        let api: Api<FleetUpgrade> = Api::namespaced(self.client.clone(), &namespace);
        api.patch(&name, &params, &Patch::Apply(value))
            .await
            .with_context(|| format!("cannot apply FleetUpgrade {name}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wavelift_runtime::Clock;
    use wavelift_sim::apiserver::{ApiServer, gk};

    use super::*;

    const CHANGE: ChangeArgs = ChangeArgs { dry_run: DryRun::None, field_manager: String::new() };

    fn server() -> (ApiServer, Kubernetes) {
        let api = ApiServer::new(Clock::real());
        for crd in wavelift_api::crds() {
            api.install_crd(&serde_json::to_value(crd).unwrap()).unwrap();
        }
        let fleet = json!({
            "metadata": {"name": "up", "namespace": "default"},
            "spec": {
                "targets": {"operators": [{"package": "tea", "version": "1.2.0"}]},
                "clusters": {"names": ["a"]},
            },
        });
        api.store().create(&gk::FLEET_UPGRADE, fleet).unwrap();
        let client = api.client("person");
        (api, Kubernetes { client, namespace: "default".to_owned() })
    }

    fn write(api: &ApiServer, edit: impl Fn(&mut Value)) {
        let edited = api.store().modify(&gk::FLEET_UPGRADE, Some("default"), "up", edit);
        edited.unwrap();
    }

    #[tokio::test]
    async fn a_status_written_in_between_does_not_refuse_a_change() {
        let (api, kubernetes) = server();
        let read = kubernetes.get("up").await.unwrap();
        write(&api, |object| object["status"] = json!({"phase": "Running"}));
        let patch = json!({"spec": {"control": "Paused"}});
        kubernetes.change(&read, patch, &CHANGE).await.unwrap();
        let object = api.store().get(&gk::FLEET_UPGRADE, Some("default"), "up").unwrap();
        assert_eq!(object["spec"]["control"], "Paused");
        assert_eq!(object["status"]["phase"], "Running");
    }

    #[tokio::test]
    async fn a_spec_changed_in_between_is_not_written_over() {
        let (api, kubernetes) = server();
        let read = kubernetes.get("up").await.unwrap();
        write(&api, |object| object["spec"]["control"] = json!("Cancelled"));
        let patch = json!({"spec": {"control": "Paused"}});
        let refused = kubernetes.change(&read, patch, &CHANGE).await.unwrap_err();
        assert!(refused.to_string().contains("somebody else changed"), "{refused}");
        let object = api.store().get(&gk::FLEET_UPGRADE, Some("default"), "up").unwrap();
        assert_eq!(object["spec"]["control"], "Cancelled");
    }
}
