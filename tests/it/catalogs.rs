//! The demo on real catalogs: every cluster goes the way that real OLM would take it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use wavelift_api::{
    live::PhaseName,
    shared::{OnOutcome, PreflightPolicy},
};
use wavelift_demo::{
    Cast, Options, Source,
    summary::{self, HopSummary},
};
use wavelift_hub::view::Upgrade;
use wavelift_sim::apiserver::{Store, gk, meta};

use crate::stage::{Stage, answer, options, wavelift};

const ARGOCD: &str = "rendered/argocd-operator.json";
const OPENDATAHUB: &str = "rendered/opendatahub-operator.json";
const GPU: &str = "fbc/certified-operators/catalogs/v4.20/gpu-operator-certified";
const RABBITMQ: &str = "fbc/community-operators-prod/catalogs/v4.20/rabbitmq-cluster-operator";

/// Where an operator can be: package, channel and installed CSV.
type Place = (String, String, String);

/// What real OLM answered for one catalog: the CSVs of the next InstallPlan at every place. Where
/// it found none, or only contradictions, the set is empty.
struct Answers(BTreeMap<Place, BTreeSet<String>>);

/// The hops that one cluster took, in order: the CSV before and all CSVs of the InstallPlan.
type Hops = Vec<(String, BTreeSet<String>)>;

impl Answers {
    fn read(shared: &Path, catalog: &str) -> Self {
        let text = fs::read_to_string(shared.join("vectors/olm-v0-next.jsonl")).unwrap();
        let word = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_catalog = lines.filter(|line| line["catalog"] == catalog);
        let answers = of_catalog.map(|line| {
            let place = (word(&line, "package"), word(&line, "channel"), word(&line, "installed"));
            let next = line["next"].as_array().unwrap().iter();
            (place, next.map(|csv| csv.as_str().unwrap().to_owned()).collect())
        });
        Self(answers.collect())
    }

    /// What is wrong with the way a cluster went from its place, if anything.
    fn judge(&self, place: &Place, hops: &Hops) -> Result<(), String> {
        let (package, channel, installed) = place;
        let mut at = installed.clone();
        for (index, (from, csvs)) in hops.iter().enumerate() {
            if *from != at {
                return Err(format!("hop {index} begins at {from}, the cluster was at {at}"));
            }
            let next = self.next(package, channel, &at)?;
            if next != csvs {
                return Err(format!("hop {index} from {at} is {csvs:?}, OLM's is {next:?}"));
            }
            // In these catalogs no InstallPlan holds a second CSV.
            at = csvs.iter().next().cloned().unwrap_or_default();
        }
        match self.next(package, channel, &at)? {
            next if next.is_empty() => Ok(()),
            next => Err(format!("it ended at {at}, but OLM goes on to {next:?}")),
        }
    }

    fn next(&self, package: &str, channel: &str, csv: &str) -> Result<&BTreeSet<String>, String> {
        let place = (package.to_owned(), channel.to_owned(), csv.to_owned());
        self.0.get(&place).ok_or_else(|| format!("OLM was not asked about {place:?}"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn argocd_goes_the_way_of_olm() {
    follow(ARGOCD, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opendatahub_goes_the_way_of_olm() {
    follow(OPENDATAHUB, 11).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gpu_operator_goes_the_way_of_olm() {
    follow(GPU, 202).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_goes_the_way_of_olm() {
    follow(RABBITMQ, 26).await;
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
    judge(&Answers::read(&shared, ARGOCD), &places(&cast), &by_cluster(hops));
}

/// Runs a campaign over a fleet with a cluster at every place of a catalog, and judges it.
///
/// `clusters` is the number of places, counted in the catalog: entries of all its channels.
async fn follow(catalog: &str, clusters: usize) {
    let Some(shared) = wavelift_runtime::testing::shared_or_skip() else { return };
    let answers = Answers::read(&shared, catalog);
    let options = of_catalog(shared.join("catalogs").join(catalog), clusters);
    let mut stage = Stage::set(&options).await;
    // What is followed is what OLM resolves. That it will refuse some of it, such as a definition
    // without a stored version, is said by the checks and is not the question here.
    stage.cast.campaign.spec.preflight = Some(PreflightPolicy {
        on_fail: OnOutcome::Proceed,
        reason: Some("to follow the resolution".to_owned()),
        ..PreflightPolicy::default()
    });
    let places = places(&stage.cast);
    let taken: BTreeSet<&Place> = places.values().collect();
    assert_eq!(taken.len(), clusters, "every place is taken once");
    stage.preview().await;
    stage.launch().await;
    let upgrade = stage.ended().await;
    assert_eq!(upgrade.view.row.phase, PhaseName::Succeeded, "{}", troubles(&upgrade));
    let told = by_cluster(summary::hops(&upgrade, &stage.cast.channels));
    judge(&answers, &places, &told);
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

#[track_caller]
fn judge(answers: &Answers, places: &BTreeMap<String, Place>, hops: &BTreeMap<String, Hops>) {
    let none = Hops::new();
    let wrong: Vec<String> = places
        .iter()
        .filter_map(|(cluster, place)| {
            let hops = hops.get(cluster).unwrap_or(&none);
            let error = answers.judge(place, hops).err()?;
            Some(format!("{cluster} at {place:?}: {error}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} clusters went astray:\n{}", wrong.len(), wrong.join("\n"));
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

fn troubles(upgrade: &Upgrade) -> String {
    let lines = upgrade.clusters.iter().map(|cluster| {
        let row = &cluster.row;
        format!("{}: {:?}: {}", row.name, row.state, row.message)
    });
    lines.collect::<Vec<_>>().join("\n")
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
    let judge = |hops: &[(String, BTreeSet<String>)]| answers.judge(&place("p.v1"), &hops.to_vec());
    assert_eq!(judge(&[hop("p.v1", &["p.v2"]), hop("p.v2", &["p.v3"])]), Ok(()));
    assert!(judge(&[]).is_err(), "it stayed though it could move");
    assert!(judge(&[hop("p.v1", &["p.v2"])]).is_err(), "it stopped half way");
    assert!(judge(&[hop("p.v1", &["p.v3"])]).is_err(), "it jumped");
    assert!(judge(&[hop("p.v1", &["p.v2", "q.v1"])]).is_err(), "it took another with it");
    assert!(judge(&[hop("p.v2", &["p.v3"])]).is_err(), "it began elsewhere");
}
