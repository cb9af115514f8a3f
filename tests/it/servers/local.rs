//! One cluster and no hub: a person orders, looks, and tries again.

use serde_json::Value;

use super::{Cluster, rig::Rig, upgrades::chain};
use crate::stage::program::{answer, wavelift};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_on_its_own_is_upgraded_and_shows_it() {
    let Some(cluster) = Cluster::shared().await else { return };
    let kubeconfig = cluster.api().kubeconfig();
    let rig = Rig::start(cluster, "alone", &chain("sledge", &["1.0.0", "1.1.0"])).await.unwrap();
    let run = async |args: &[&str]| {
        let mut command = tokio::process::Command::new(wavelift());
        command.args(["status", "--local", "-n", rig.home(), "--kubeconfig"]);
        command.arg(&kubeconfig).args(args).env_remove("WAVELIFT_URL");
        answer(&mut command).await
    };
    let nothing = run(&[]).await;
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""), "{nothing:?}");
    assert!(nothing.err.contains("No ClusterUpgrades in namespace alone-agent"), "{nothing:?}");
    let unknown = run(&["go"]).await.bad(1);
    assert!(unknown.contains("no ClusterUpgrade go"), "{unknown}");

    rig.install(&[("sledge", "1.0.0")]).await.unwrap();
    let _agent = rig.agent().await.unwrap();
    rig.order(&["sledge"]).await.unwrap();
    let watched = run(&["go", "--watch"]).await.good();
    let last = watched.lines().last().unwrap();
    assert!(last.starts_with("Succeeded 100%: "), "{watched}");
    let list = run(&[]).await.good();
    let row: Vec<&str> = list.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row[0], "go", "{list}");
    assert!(list.contains("sledge 1.0.0 -> 1.1.0"), "{list}");
    let shown = run(&["go"]).await.good();
    let step = format!("{}: sledge 1.0.0 -> 1.1.0", rig.namespace);
    assert!(shown.contains(&step) && shown.contains("Succeeded"), "{shown}");
    let json: Value = run(&["go", "-o", "json"]).await.json();
    assert_eq!(json["steps"][0]["state"], "Done", "{json}");
}
