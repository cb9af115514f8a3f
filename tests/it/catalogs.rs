//! The demo on real catalogs: every cluster goes the way that real OLM would take it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};
use wavelift_api::{
    cluster_upgrade::ClusterStateName,
    live::PhaseName,
    shared::{OnOutcome, PreflightPolicy},
};
use wavelift_demo::{
    Cast, Options, Source,
    summary::{self, HopSummary},
};
use wavelift_sim::apiserver::{Store, gk, meta};

use crate::stage::{Stage, answer, options, wavelift};

const ARGOCD: &str = "rendered/argocd-operator.json";
const OPENDATAHUB: &str = "rendered/opendatahub-operator.json";
const GPU: &str = "fbc/certified-operators/catalogs/v4.20/gpu-operator-certified";
const RABBITMQ: &str = "fbc/community-operators-prod/catalogs/v4.20/rabbitmq-cluster-operator";

/// How OLM refuses a definition without a version that objects are stored in.
const REFUSAL: &str = "risk of data loss updating";

/// Where an operator can be: package, channel and installed CSV.
type Place = (String, String, String);

/// What real OLM answered for one catalog: the CSVs of the next InstallPlan at every place. Where
/// it found none, or only contradictions, the set is empty.
struct Answers(BTreeMap<Place, BTreeSet<String>>);

/// The hops that one cluster took, in order: the CSV before and all CSVs of the InstallPlan.
type Hops = Vec<(String, BTreeSet<String>)>;

/// Versions that a bundle's definitions bring: by definition and version, whether objects are
/// stored in it.
type Versions = BTreeMap<String, BTreeMap<String, bool>>;

/// What the bundles of a catalog bring, by CSV. Empty for catalogs that hold no manifests.
#[derive(Default)]
struct Definitions(BTreeMap<String, Versions>);

/// Where a cluster's way ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing newer is there.
    Newest,
    /// OLM refuses the next step: a version that objects are stored in would go.
    Refused,
}

impl Answers {
    fn read(shared: &Path, catalog: &str) -> Self {
        let text = fs::read_to_string(shared.join("vectors/olm-v0-next.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_catalog = lines.filter(|line| line["catalog"] == catalog);
        let answers = of_catalog.map(|line| {
            let place = (word(&line["package"]), word(&line["channel"]), word(&line["installed"]));
            let next = line["next"].as_array().unwrap().iter();
            (place, next.map(|csv| csv.as_str().unwrap().to_owned()).collect())
        });
        Self(answers.collect())
    }

    /// Where a cluster that went these hops from its place has to end, or what is wrong with them.
    fn judge(&self, place: &Place, hops: &Hops, brought: &Definitions) -> Result<End, String> {
        let (package, channel, installed) = place;
        let mut at = installed.clone();
        let mut been = vec![at.clone()];
        for (index, (from, csvs)) in hops.iter().enumerate() {
            if *from != at {
                return Err(format!("hop {index} begins at {from}, the cluster was at {at}"));
            }
            let next = self.next(package, channel, &at)?;
            if next != csvs {
                return Err(format!("hop {index} from {at} is {csvs:?}, OLM's is {next:?}"));
            }
            if brought.refuse(&been, csvs) {
                return Err(format!("hop {index} from {at} is one that OLM refuses"));
            }
            // In these catalogs no InstallPlan holds a second CSV.
            at = csvs.iter().next().cloned().unwrap_or_default();
            been.push(at.clone());
        }
        match self.next(package, channel, &at)? {
            next if next.is_empty() => Ok(End::Newest),
            next if brought.refuse(&been, next) => Ok(End::Refused),
            next => Err(format!("it ended at {at}, but OLM goes on to {next:?}")),
        }
    }

    fn next(&self, package: &str, channel: &str, csv: &str) -> Result<&BTreeSet<String>, String> {
        let place = (package.to_owned(), channel.to_owned(), csv.to_owned());
        self.0.get(&place).ok_or_else(|| format!("OLM was not asked about {place:?}"))
    }
}

impl Definitions {
    /// Reads the bundle objects of a rendered catalog.
    fn read(catalog: &Path) -> Self {
        if !catalog.is_file() {
            return Self::default();
        }
        let text = fs::read_to_string(catalog).unwrap();
        let documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let bundles = documents.map(Result::unwrap).filter(|one| one["schema"] == "olm.bundle");
        let brought = bundles.map(|bundle| {
            let properties = bundle["properties"].as_array().unwrap().iter();
            let objects = properties.filter(|property| property["type"] == "olm.bundle.object");
            let objects = objects.map(|object| {
                let bytes = BASE64.decode(object["value"]["data"].as_str().unwrap()).unwrap();
                serde_json::from_slice::<Value>(&bytes).unwrap()
            });
            let crds = objects.filter(|object| object["kind"] == "CustomResourceDefinition");
            (word(&bundle["name"]), crds.map(|crd| versions(&crd)).collect())
        });
        Self(brought.collect())
    }

    /// Whether one of `csvs` is without a version that objects were stored in by one before it.
    fn refuse(&self, been: &[String], csvs: &BTreeSet<String>) -> bool {
        let brought = csvs.iter().filter_map(|csv| self.0.get(csv)).flatten();
        brought.into_iter().any(|(crd, new)| {
            let before = been.iter().filter_map(|csv| self.0.get(csv)?.get(crd)).flatten();
            before.into_iter().any(|(version, is_stored)| *is_stored && !new.contains_key(version))
        })
    }
}

fn versions(crd: &Value) -> (String, BTreeMap<String, bool>) {
    let versions = crd["spec"]["versions"].as_array().unwrap().iter();
    let versions = versions.map(|version| (word(&version["name"]), version["storage"] == true));
    (word(&crd["metadata"]["name"]), versions.collect())
}

fn word(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn argocd_goes_the_way_of_olm() {
    follow(ARGOCD, 6, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opendatahub_goes_the_way_of_olm() {
    // 2.0.0 and 2.1.0 store objects in v1alpha1, which every later version is without.
    follow(OPENDATAHUB, 11, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gpu_operator_goes_the_way_of_olm() {
    follow(GPU, 202, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_goes_the_way_of_olm() {
    follow(RABBITMQ, 26, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_tells_the_hops_on_a_real_catalog() {
    let Some(shared) = wavelift_runtime::testing::shared_or_skip() else { return };
    let catalog = shared.join("catalogs").join(ARGOCD);
    let mut command = tokio::process::Command::new(wavelift());
    command.args(["demo", "--once", "-o", "json", "--clusters", "6", "--speed", "20", "--catalog"]);
    let summary = answer(command.arg(&catalog)).await;
    assert_eq!((summary.code, summary.err.as_str()), (0, ""), "{summary:?}");
    let summary = summary.json();
    assert_eq!((&summary["phase"], &summary["succeeded"]), (&"Succeeded".into(), &6.into()));
    let hops: Vec<HopSummary> = serde_json::from_value(summary["hops"].clone()).unwrap();
    let cast = Cast::of(&of_catalog(catalog, 6)).unwrap();
    let answers = Answers::read(&shared, ARGOCD);
    judge(&answers, &Definitions::default(), &places(&cast), &by_cluster(hops));
}

/// Runs a campaign over a fleet with a cluster at every place of a catalog, and judges it.
///
/// `clusters` is the number of places, counted in the catalog: entries of all its channels. On
/// `refused` of them OLM refuses what it has resolved.
async fn follow(catalog: &str, clusters: usize, refused: usize) {
    let Some(shared) = wavelift_runtime::testing::shared_or_skip() else { return };
    let answers = Answers::read(&shared, catalog);
    let path = shared.join("catalogs").join(catalog);
    let brought = Definitions::read(&path);
    let mut stage = Stage::set(&of_catalog(path, clusters)).await;
    let spec = &mut stage.cast.campaign.spec;
    // What is followed is what OLM does. That it will refuse some of it is said by the checks, and
    // here it is done all the same.
    spec.preflight = Some(PreflightPolicy {
        on_fail: OnOutcome::Proceed,
        reason: Some("to follow OLM".to_owned()),
        ..PreflightPolicy::default()
    });
    let tolerated = i32::try_from(refused).unwrap();
    spec.waves.iter_mut().flatten().for_each(|wave| wave.max_failures = tolerated);
    spec.budget.as_mut().unwrap().max_failures = Some(tolerated);
    let places = places(&stage.cast);
    let taken: BTreeSet<&Place> = places.values().collect();
    assert_eq!(taken.len(), clusters, "every place is taken once");
    stage.preview().await;
    stage.launch().await;
    let upgrade = stage.ended().await;
    let phase = match refused {
        0 => PhaseName::Succeeded,
        _ => PhaseName::SucceededWithFailures,
    };
    assert_eq!(upgrade.view.row.phase, phase);
    let told = by_cluster(summary::hops(&upgrade, &stage.cast.channels));
    let ends = judge(&answers, &brought, &places, &told);
    assert_eq!(ends.values().filter(|end| **end == End::Refused).count(), refused, "{ends:?}");
    for cluster in &upgrade.clusters {
        let row = &cluster.row;
        let is_as_it_must_be = match ends[&row.name] {
            End::Newest => row.state == ClusterStateName::Succeeded,
            End::Refused => row.state == ClusterStateName::Failed && row.message.contains(REFUSAL),
        };
        assert!(is_as_it_must_be, "{}: {:?}: {}", row.name, row.state, row.message);
    }
    for member in stage.fleet.members() {
        let done = told.get(member.name()).cloned().unwrap_or_default();
        let sets: Vec<BTreeSet<String>> = done.into_iter().map(|(_, csvs)| csvs).collect();
        assert_eq!(install_plans(member.sim().store()), sets, "{} did otherwise", member.name());
    }
    stage.strike().await;
}

fn of_catalog(path: PathBuf, clusters: usize) -> Options {
    let source = Source::Catalog { path, packages: vec![] };
    Options { source, ..options(1, clusters, 20.0) }
}

/// Where every cluster begins.
fn places(cast: &Cast) -> BTreeMap<String, Place> {
    let place = |blueprint: &wavelift_demo::fleet::Blueprint| {
        let [operator] = blueprint.operators.as_slice() else { panic!("{blueprint:?}") };
        let installed = operator.installed.clone().unwrap();
        (operator.package.clone(), operator.channel.clone(), installed)
    };
    cast.blueprints.iter().map(|blueprint| (blueprint.name.clone(), place(blueprint))).collect()
}

fn by_cluster(mut hops: Vec<HopSummary>) -> BTreeMap<String, Hops> {
    hops.sort_by_key(|hop| hop.step);
    let mut clusters: BTreeMap<String, Hops> = BTreeMap::new();
    for hop in hops {
        let from = hop.from.unwrap_or_default();
        clusters.entry(hop.cluster).or_default().push((from, hop.csvs));
    }
    clusters
}

/// Where every cluster has to end.
#[track_caller]
fn judge(
    answers: &Answers,
    brought: &Definitions,
    places: &BTreeMap<String, Place>,
    hops: &BTreeMap<String, Hops>,
) -> BTreeMap<String, End> {
    let none = Hops::new();
    let mut ends = BTreeMap::new();
    let mut wrong = vec![];
    for (cluster, place) in places {
        let hops = hops.get(cluster).unwrap_or(&none);
        match answers.judge(place, hops, brought) {
            Ok(end) => drop(ends.insert(cluster.clone(), end)),
            Err(error) => wrong.push(format!("{cluster} at {place:?}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} clusters went astray:\n{}", wrong.len(), wrong.join("\n"));
    ends
}

/// The CSV sets of the InstallPlans that were carried out on a cluster, in order.
fn install_plans(store: &Store) -> Vec<BTreeSet<String>> {
    let mut done: Vec<(String, Arc<Value>)> = store
        .list(&gk::INSTALL_PLAN, None)
        .into_iter()
        .filter(|plan| plan["status"]["phase"] == "Complete")
        .map(|plan| (meta::text(&plan, "creationTimestamp").to_owned(), plan))
        .collect();
    done.sort_by(|(one, _), (other, _)| one.cmp(other));
    let csvs = |plan: &Value| {
        let names = plan["spec"]["clusterServiceVersionNames"].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    done.iter().map(|(_, plan)| csvs(plan)).collect()
}

#[test]
fn a_way_that_olm_would_not_take_is_noticed() {
    let set = |csvs: &[&str]| csvs.iter().map(|csv| (*csv).to_owned()).collect::<BTreeSet<_>>();
    let place = |csv: &str| ("p".to_owned(), "c".to_owned(), csv.to_owned());
    let answers = Answers(
        [
            (place("p.v1"), set(&["p.v2"])),
            (place("p.v2"), set(&["p.v3"])),
            (place("p.v3"), set(&[])),
        ]
        .into(),
    );
    let hop = |from: &str, to: &[&str]| (from.to_owned(), set(to));
    let versions = |stored: &str| {
        let crd = json!({"metadata": {"name": "ps"}, "spec": {"versions": [
            {"name": stored, "storage": true},
        ]}});
        Versions::from([versions(&crd)])
    };
    let brought = Definitions(
        [("p.v1", "v1"), ("p.v2", "v1"), ("p.v3", "v1")]
            .map(|(csv, stored)| (csv.to_owned(), versions(stored)))
            .into(),
    );
    let judge = |hops: &[(String, BTreeSet<String>)]| {
        answers.judge(&place("p.v1"), &hops.to_vec(), &brought)
    };
    assert_eq!(judge(&[hop("p.v1", &["p.v2"]), hop("p.v2", &["p.v3"])]), Ok(End::Newest));
    assert!(judge(&[]).is_err(), "it stayed though it could move");
    assert!(judge(&[hop("p.v1", &["p.v2"])]).is_err(), "it stopped half way");
    assert!(judge(&[hop("p.v1", &["p.v3"])]).is_err(), "it jumped");
    assert!(judge(&[hop("p.v1", &["p.v2", "q.v1"])]).is_err(), "it took another with it");
    assert!(judge(&[hop("p.v2", &["p.v3"])]).is_err(), "it began elsewhere");
    let brought = Definitions(
        [("p.v1", "v1"), ("p.v2", "v1"), ("p.v3", "v2")]
            .map(|(csv, stored)| (csv.to_owned(), versions(stored)))
            .into(),
    );
    let judge = |hops: &[(String, BTreeSet<String>)]| {
        answers.judge(&place("p.v1"), &hops.to_vec(), &brought)
    };
    assert_eq!(judge(&[hop("p.v1", &["p.v2"])]), Ok(End::Refused));
    let all = judge(&[hop("p.v1", &["p.v2"]), hop("p.v2", &["p.v3"])]);
    assert!(all.is_err(), "what OLM refuses was done");
}
