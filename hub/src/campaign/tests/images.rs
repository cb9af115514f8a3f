//! Previews of catalogs that name images and carry no manifests.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri},
    response::{IntoResponse as _, Response},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{net::TcpListener, sync::watch};
use wavelift_sources::{
    BundleImages, Patience, Retries,
    bundle_image::{Digest, Options},
};

use super::{
    harness::*,
    previews::{VERSIONS, clusters, made, preview_of},
};
use crate::preview::{Preview, counts, sections};

/// A registry with the images of `tea`, in the clear; clones are the same one.
#[derive(Clone)]
struct Registry {
    host: String,
    content: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// While it is closed nothing is answered, afterwards everything that it is busy.
    is_open: watch::Sender<bool>,
}

async fn answer(State(registry): State<Registry>, uri: Uri) -> Response {
    registry.asked.lock().push(uri.path().to_owned());
    if !*registry.is_open.borrow() {
        let mut gate = registry.is_open.subscribe();
        drop(gate.wait_for(|is_open| *is_open).await);
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let path = uri.path().strip_prefix("/v2/team/tea/").unwrap_or_default();
    match registry.content.lock().get(path) {
        Some(content) => content.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

impl Registry {
    async fn serve() -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let registry = Self {
            host: tcp.local_addr().unwrap().to_string(),
            content: Arc::default(),
            asked: Arc::default(),
            is_open: watch::channel(true).0,
        };
        let router = Router::new().fallback(answer).with_state(registry.clone());
        tokio::spawn(async move { axum::serve(tcp, router).await });
        registry
    }

    fn put(&self, kind: &str, content: &[u8]) -> Digest {
        let digest = Digest::of(content);
        self.content.lock().insert(format!("{kind}/{digest}"), content.to_vec());
        digest
    }

    /// Adds the bundle image of a version that may do this to secrets, also under its tag.
    fn push(&self, version: &str, verbs: &[&str]) -> Digest {
        let csv = csv(&format!("tea.v{version}"), version, verbs).to_string();
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(csv.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, "manifests/csv.yaml", csv.as_bytes()).unwrap();
        let layer = archive.into_inner().unwrap();
        let part = |content: &[u8]| json!({"digest": self.put("blobs", content).as_str(), "size": content.len()});
        let manifest = json!({"schemaVersion": 2, "config": part(b"{}"), "layers": [part(&layer)]});
        let manifest = manifest.to_string().into_bytes();
        self.content.lock().insert(format!("manifests/v{version}"), manifest.clone());
        self.put("manifests", &manifest)
    }

    /// All versions; the newest may read secrets. By version.
    fn push_all(&self) -> BTreeMap<&'static str, Digest> {
        VERSIONS
            .into_iter()
            .map(|version| {
                let verbs: &[&str] = if version == "1.2.0" { &["get"] } else { &[] };
                (version, self.push(version, verbs))
            })
            .collect()
    }

    /// Answers with another image.
    fn forge(&self, asked: &Digest, given: &Digest) {
        let mut content = self.content.lock();
        let forged = content[&format!("manifests/{given}")].clone();
        content.insert(format!("manifests/{asked}"), forged);
    }

    fn asked_for_manifests(&self) -> usize {
        self.asked.lock().iter().filter(|path| path.contains("/manifests/")).count()
    }
}

fn fetcher(hosts: &[&str]) -> BundleImages {
    BundleImages::new(Options {
        plaintext: hosts.iter().map(|&host| host.to_owned()).collect(),
        patience: Patience { connect: Duration::from_secs(5), ..Patience::default() },
        retries: Retries::NONE,
        ..Options::default()
    })
    .unwrap()
}

fn missing(preview: &Preview, cluster: &str) -> Vec<String> {
    counts(preview.group_of(cluster).unwrap()).missing
}

#[tokio::test]
async fn images_show_what_a_catalog_without_manifests_changes_and_each_is_fetched_once() {
    let registry = Registry::serve().await;
    let digests = registry.push_all();
    let all = ["a", "b", "c"];
    let mut world = World::new(&all);
    world.images = Some(fetcher(&[&registry.host]));
    let image = |version: &str| format!("{}/team/tea@{}", registry.host, digests[version]);
    let catalog = brew_in(&VERSIONS, &|_| None, None, &image);
    for (cluster, version) in [("a", "1.0.0"), ("b", "1.0.0"), ("c", "1.1.0")] {
        world.agents.set_inventory(cluster, version, &catalog);
    }
    let leader = world.lead(1);
    world.connect(&leader, &all).await;
    world.apply_fleet("up", &preview_of(&all));
    let preview = made(&world, &leader, 2).await;
    assert_eq!((clusters(&preview, 0), clusters(&preview, 1)), (vec!["a", "b"], vec!["c"]));
    for shown in &preview.groups {
        let counts = counts(shown);
        assert_eq!((counts.permissions_gained, counts.missing_total), (1, 0), "{counts:?}");
        assert!(counts.dangerous[0].contains("secrets"), "{:?}", counts.dangerous);
    }
    assert_eq!(registry.asked_for_manifests(), 3);
    assert_eq!(leader.metrics.images.with(["fetched"]).get(), 3);
    leader.stop().await;
}

#[tokio::test]
async fn what_was_looked_at_under_a_tag_is_said_to_move() {
    let registry = Registry::serve().await;
    registry.push_all();
    let mut world = World::new(&["a"]);
    world.images = Some(fetcher(&[&registry.host]));
    let image = |version: &str| format!("{}/team/tea:v{version}", registry.host);
    world.agents.set_inventory("a", "1.1.0", &brew_in(&VERSIONS, &|_| None, None, &image));
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    world.apply_fleet("up", &preview_of(&["a"]));
    let preview = made(&world, &leader, 1).await;
    let shown = &preview.groups[0];
    assert_eq!(counts(shown).permissions_gained, 1);
    let sections = sections(&shown.made.as_ref().unwrap()[0]);
    let said = sections.iter().find(|section| section.title.contains("tag")).unwrap();
    assert_eq!(said.lines, [image("1.1.0"), image("1.2.0")]);
    leader.stop().await;
}

#[tokio::test]
async fn registries_that_do_not_answer_are_named_and_hold_up_nobody_else() {
    let (good, slow) = (Registry::serve().await, Registry::serve().await);
    let digests = good.push_all();
    slow.is_open.send_replace(false);
    let closed = "127.0.0.1:1";
    let all = ["good", "slow", "gone"];
    let mut world = World::new(&all);
    world.images = Some(fetcher(&[&good.host, &slow.host, closed]));
    for (cluster, host) in [("good", &*good.host), ("slow", &*slow.host), ("gone", closed)] {
        let image = |version: &str| format!("{host}/team/tea@{}", digests[version]);
        let catalog = brew_in(&VERSIONS, &|_| None, None, &image);
        world.agents.set_inventory(cluster, "1.1.0", &catalog);
    }
    let leader = world.lead(1);
    world.connect(&leader, &all).await;
    world.apply_fleet("up", &preview_of(&all));
    let is_made = |preview: &Preview, cluster: &str| {
        preview.group_of(cluster).is_some_and(|shown| shown.made.is_some())
    };
    let both = || {
        let preview = leader.preview("up");
        is_made(&preview, "good") && is_made(&preview, "gone")
    };
    world.until("two of three are made", both).await;
    let preview = leader.preview("up");
    assert!(!is_made(&preview, "slow"), "its registry has not answered");
    assert_eq!(missing(&preview, "good"), Vec::<String>::new());
    assert_eq!(counts(preview.group_of("good").unwrap()).permissions_gained, 1);
    let gone = missing(&preview, "gone");
    assert_eq!(gone.len(), 2);
    // The whole reason stands with the changes; lists show its beginning.
    let whole = &preview.group_of("gone").unwrap().made.as_ref().unwrap()[0].preview.overall;
    let reasons: Vec<&str> = whole.missing.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons.len(), 2);
    for reason in reasons {
        for part in ["does not carry them; ", "can't connect to 127.0.0.1:1", "check the address"] {
            assert!(reason.contains(part), "{reason}");
        }
    }
    slow.is_open.send_replace(true);
    slow.content.lock().clear();
    let preview = made(&world, &leader, 3).await;
    let slow = missing(&preview, "slow");
    assert!(!slow.is_empty() && slow.iter().all(|line| line.contains("carry them; failed")));
    leader.stop().await;
}

#[tokio::test]
async fn a_registry_that_serves_something_else_is_not_believed() {
    let registry = Registry::serve().await;
    let digests = registry.push_all();
    // In place of the version that reads secrets, one that reads nothing.
    let harmless = registry.push("1.2.0", &[]);
    registry.forge(&digests["1.2.0"], &harmless);
    let mut world = World::new(&["a"]);
    world.images = Some(fetcher(&[&registry.host]));
    let image = |version: &str| format!("{}/team/tea@{}", registry.host, digests[version]);
    world.agents.set_inventory("a", "1.1.0", &brew_in(&VERSIONS, &|_| None, None, &image));
    let leader = world.lead(1);
    world.connect(&leader, &["a"]).await;
    world.apply_fleet("up", &preview_of(&["a"]));
    let preview = made(&world, &leader, 1).await;
    let whole = &preview.groups[0].made.as_ref().unwrap()[0].preview.overall;
    assert_eq!((whole.missing.len(), whole.permissions.len()), (1, 0));
    let reason = &whole.missing[0].reason;
    assert!(reason.contains(&format!("has digest {harmless}")), "{reason}");
    assert!(reason.contains("damaged or forged"), "{reason}");
    assert_eq!(leader.metrics.images.with(["refused"]).get(), 1);
    leader.stop().await;
}
