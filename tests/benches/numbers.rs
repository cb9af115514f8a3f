//! `cargo xtask bench`: how long the pure parts take. Numbers, not verdicts.
//!
//! Each row is the best, the middle and the worst of several runs after one that is thrown away.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::{
    collections::BTreeMap,
    hint::black_box,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use wavelift_catalog::{
    Catalog, Engine, Fbc, Limits, OlmV0,
    engine::{CatalogKey, Catalogs, Installed, InstalledProperties, Request, Subscription},
};
use wavelift_core::{
    campaign::{
        self, Budget, BudgetMode, Campaign, Cluster, Consent, Control, Link, Offline, PlanFact,
        PreflightFact, Request as Wish, Run, Stage, Wave,
    },
    ids::ClusterName,
    inventory::{self, Inventory},
    plan,
};
use wavelift_hub::preview;
use wavelift_runtime::testing::shared_dir;

fn main() {
    println!("{:<58} {:>10} {:>10} {:>10}", "what", "best", "middle", "worst");
    scheduler(1_000);
    scheduler(10_000);
    scheduler(100_000);
    own_catalog();
    fleet_preview(5_000, 40);
    if let Some(shared) = shared_dir() {
        real_catalogs(&shared);
    } else {
        println!("real catalogs are left out: set WAVELIFT_SHARED to a folder that has them");
    }
}

/// Times `work` and prints a row.
fn row<T>(what: &str, runs: usize, mut work: impl FnMut() -> T) {
    black_box(work());
    let mut times: Vec<Duration> = (0..runs.max(1))
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed()
        })
        .collect();
    times.sort();
    let (best, worst) = (times[0], times[times.len() - 1]);
    println!("{what:<58} {best:>10.1?} {:>10.1?} {worst:>10.1?}", times[times.len() / 2]);
}

/// One pass over a campaign in the middle of its second wave.
fn scheduler(clusters: usize) {
    let names: Vec<ClusterName> = (0..clusters)
        .map(|i| ClusterName::try_from(format!("c{i:06}")).expect("a label"))
        .collect();
    let wave = |name: &str, members: &[ClusterName]| Wave {
        name: name.try_into().expect("a label"),
        members: members.to_vec(),
        max_concurrent: 500,
        max_failures: 500,
    };
    let (first, second) = names.split_at(clusters / 10);
    let campaign = Campaign {
        stage: Stage::Rollout,
        control: Control::Running,
        waves: vec![wave("canary", first), wave("rest", second)],
        budget: Budget { max_failures: Some(600), mode: BudgetMode::Strict },
        offline: Offline::Wait,
        consent: Consent::Given,
        rollout_since: Some(Timestamp::UNIX_EPOCH),
    };
    let now = Timestamp::from_second(1_000).expect("in range");
    let facts: BTreeMap<ClusterName, Cluster> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let run = match index {
                i if i < clusters / 10 => Run::Succeeded,
                i if i < clusters / 2 => Run::Succeeded,
                i if i < clusters / 2 + 400 => Run::InFlight { verifying: false },
                _ => Run::NotStarted,
            };
            let cluster = Cluster {
                plan: PlanFact::Planned,
                link: Link::Connected,
                run,
                preflight: PreflightFact::Clear { at: now },
                request: Wish::None,
                holder: None,
            };
            (name.clone(), cluster)
        })
        .collect();
    let limits = campaign::Limits::default();
    row(&format!("decide about {clusters} clusters, one pass"), 9, || {
        campaign::decide(&campaign, &facts, &limits, now)
    });
}

fn own_catalog() {
    let text = wavelift_demo::own_catalog::fbc();
    row("read the demo's own catalog and make its graph", 99, || {
        let limits = Limits::default();
        let fbc = Fbc::parse("own", text.as_bytes(), &limits).expect("valid");
        Catalog::from_fbc(fbc, &limits).expect("valid")
    });
}

/// The preview of a fleet whose clusters see one of some catalogs: everything that the hub does once
/// the pieces are there.
fn fleet_preview(clusters: usize, catalogs: usize) {
    let catalog = wavelift_demo::own_catalog::own().expect("valid");
    let package = wavelift_demo::own_catalog::FERRY;
    let versions = ["2.0.0", "2.1.0", "2.2.0", "2.3.0"];
    let csv = |version: &str| wavelift_demo::own_catalog::csv(package, version);
    let steps = versions.windows(2).map(|pair| plan::Step {
        namespace: "ferry-system".try_into().expect("a label"),
        moves: vec![plan::Move {
            package: package.try_into().expect("a name"),
            from: Some(csv(pair[0]).try_into().expect("a name")),
            to: csv(pair[1]).try_into().expect("a name"),
            from_version: Some(pair[0].to_owned()),
            to_version: pair[1].to_owned(),
        }],
        via: plan::Via::Cluster,
    });
    let plan = plan::Plan { steps: steps.collect() };
    let inventories: Vec<Inventory> = (0..catalogs).map(|i| inventory(package, i)).collect();
    let names: Vec<ClusterName> = (0..clusters)
        .map(|i| ClusterName::try_from(format!("c{i:06}")).expect("a label"))
        .collect();
    let documents: Arc<[serde_json::Value]> = catalog.documents(package).into();
    let question = |group: &preview::Group, way: &preview::Way| {
        let bundles = way.versions().map(|version| {
            let name = version.csv.to_string();
            let manifests = catalog.manifests(package, &name).expect("inline").clone();
            let manifests = Ok((format!("{}{name}", group.id), Arc::new(manifests)));
            preview::Bundle {
                name,
                version: version.text.clone(),
                manifests,
                moving: None,
                skipped: vec![],
            }
        });
        let digest = catalog.digest().to_string();
        let documents = Ok((group.id.clone(), Arc::clone(&documents)));
        preview::Question::new(
            way,
            bundles.collect(),
            documents,
            Some((digest, Arc::clone(&catalog))),
        )
    };
    row(&format!("preview {clusters} clusters in {catalogs} groups, nothing kept"), 9, || {
        let planned = names.iter().enumerate().map(|(index, cluster)| preview::Planned {
            cluster,
            plan: &plan,
            inventory: Some(&inventories[index % catalogs]),
        });
        let groups = preview::groups(planned, &preview::Unread);
        assert_eq!(groups.len(), catalogs);
        let shown = groups.into_iter().map(|group| {
            let made = group.ways.iter().map(|way| Arc::new(question(&group, way).answer()));
            let made = Some(made.collect());
            Arc::new(preview::GroupPreview { group, made })
        });
        let fleet = preview::Preview { groups: shown.collect(), ..preview::Preview::default() };
        preview::report("bench", &fleet, None, preview::Form::Markdown).len()
    });
}

/// What a cluster with one package sees; its catalog is one of many.
fn inventory(package: &str, catalog: usize) -> Inventory {
    Inventory {
        namespaces: vec![inventory::NamespaceInventory {
            namespace: "ferry-system".try_into().expect("a label"),
            operator_groups: 1,
            global_catalogs_excluded: false,
            subscriptions: vec![inventory::Subscription {
                package: package.to_owned(),
                source: "own".to_owned(),
                source_namespace: "marketplace".to_owned(),
                ..inventory::Subscription::default()
            }],
            csvs: vec![],
        }],
        catalogs: vec![inventory::CatalogSource {
            namespace: "marketplace".to_owned(),
            name: "own".to_owned(),
            digest: Some(format!("sha256:{catalog:064x}")),
            contents: Some(format!("sha256:{catalog:064x}")),
            ..inventory::CatalogSource::default()
        }],
        ..Inventory::default()
    }
}

fn real_catalogs(shared: &Path) {
    let limits = Limits::default();
    for path in [
        "catalogs/rendered/argocd-operator.json",
        "catalogs/rendered/opendatahub-operator.json",
        "catalogs/fbc/certified-operators/catalogs/v4.20/gpu-operator-certified",
        "catalogs/fbc/community-operators-prod/catalogs/v4.20/rabbitmq-cluster-operator",
    ] {
        let name = path.rsplit('/').next().unwrap_or(path);
        let full = shared.join(path);
        row(&format!("read {name}"), 9, || {
            let fbc = Fbc::read(&full, &limits).expect("readable");
            Catalog::from_fbc(fbc, &limits).expect("a graph")
        });
        let fbc = Fbc::read(&full, &limits).expect("readable");
        let catalog = Arc::new(Catalog::from_fbc(fbc, &limits).expect("a graph"));
        next(name, &catalog);
    }
}

/// The whole way from the last entry of the first package's default channel.
fn next(name: &str, catalog: &Arc<Catalog>) {
    let Some((package, content)) = catalog.graph().packages.iter().next() else { return };
    let channel = content.default_channel.clone().unwrap_or_default();
    let Ok(chain) = catalog.chain(package, &channel) else { return };
    let Some(last) = chain.last().map(|csv| (*csv).to_owned()) else { return };
    let version = catalog.bundle(package, &last).and_then(|bundle| bundle.version.clone());
    let key = CatalogKey { name: "catalog".to_owned(), namespace: "marketplace".to_owned() };
    let catalogs = Catalogs::one(key.clone(), Arc::clone(catalog));
    let request = Request {
        namespace: "operators".to_owned(),
        subscriptions: vec![Subscription {
            package: package.clone(),
            channel: channel.clone(),
            catalog: key,
            installed: Some(Installed {
                csv: last,
                version,
                properties: InstalledProperties::AsInCatalog,
            }),
            starting_csv: None,
        }],
        unreferenced: vec![],
    };
    row(&format!("  the next step from the tail of {name}"), 99, || {
        OlmV0.next(&catalogs, &request)
    });
    row("  the whole path from there", 9, || OlmV0.path(&catalogs, &request, &BTreeMap::new()));
}
