//! The index of clusters and the catalogs.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;
use wavelift_catalog::{Catalog, Graph};

use super::*;
use crate::cluster::{KeptCatalog, Room};

fn name(text: &str) -> ClusterName {
    ClusterName::try_from(text).unwrap()
}

fn hello() -> AgentHello {
    AgentHello { agent_version: String::new(), kube_version: String::new(), boot: 1 }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn managed(cluster: &str, uid: &str) -> ManagedCluster {
    let mut object = ManagedCluster::new(
        cluster,
        wavelift_api::managed_cluster::ManagedClusterSpec { hub_accepts_client: true },
    );
    object.metadata.uid = Some(uid.to_owned());
    object
}

fn held(digest: &str) -> Held {
    Held { digest: digest.to_owned(), inventory: Inventory::default().into() }
}

#[test]
fn the_end_of_an_older_session_is_no_news() {
    let mut clusters = Clusters::new(Admissions::default(), at(0));
    let a = name("a");
    clusters.connected(&a, SessionId(1), hello(), at(10));
    clusters.connected(&a, SessionId(2), hello(), at(20));
    assert!(!clusters.disconnected(&a, SessionId(1), at(30)));
    assert_eq!(clusters.link(&a), Link::Connected);
    clusters.apply(&managed("a", "u"));
    assert!(clusters.disconnected(&a, SessionId(2), at(40)));
    assert_eq!(clusters.link(&a), Link::Silent { since: at(40) });
    assert_eq!(clusters.link(&name("b")), Link::Silent { since: at(0) }, "never heard");
}

#[test]
fn a_connected_cluster_is_planned_from_what_it_announced_and_nothing_older() {
    let mut clusters = Clusters::new(Admissions::default(), at(0));
    let a = name("a");
    clusters.apply(&managed("a", "u"));
    clusters.connected(&a, SessionId(1), hello(), at(1));
    assert_eq!(clusters.announced(&a, "one".to_owned()), Some("one".to_owned()));
    clusters.inventoried(&a, held("one"));
    let current =
        |clusters: &Clusters| clusters.get(&a).unwrap().current().map(|held| held.digest.clone());
    assert_eq!(current(&clusters), Some("one".to_owned()));
    assert_eq!(clusters.announced(&a, "one".to_owned()), None);
    assert_eq!(clusters.announced(&a, "two".to_owned()), Some("two".to_owned()));
    assert_eq!(current(&clusters), None);
    clusters.disconnected(&a, SessionId(1), at(2));
    assert_eq!(current(&clusters), Some("one".to_owned()), "the last one known of a silent one");
    clusters.connected(&a, SessionId(2), hello(), at(3));
    assert_eq!(current(&clusters), None, "a new session has to say so first");
}

#[test]
fn a_cluster_that_is_listed_no_more_is_gone() {
    let admissions = Admissions::default();
    let mut clusters = Clusters::new(admissions.clone(), at(0));
    clusters.restart();
    clusters.apply(&managed("a", "1"));
    clusters.apply(&managed("b", "2"));
    clusters.complete();
    assert_eq!(admissions.accepted().len(), 2);
    clusters.restart();
    clusters.apply(&managed("b", "2"));
    clusters.complete();
    assert_eq!(admissions.accepted().into_keys().collect::<Vec<_>>(), [name("b")]);
    // A late word about an object that was made again is not about the new one.
    clusters.apply(&managed("b", "3"));
    clusters.delete(&managed("b", "2"));
    assert_eq!(admissions.accepted().len(), 1);
}

#[test]
fn a_catalog_is_asked_of_one_cluster_and_of_another_when_that_fails() {
    let mut catalogs = Catalogs::new(Room::default());
    let (a, b) = (name("a"), name("b"));
    let now = Instant::now();
    assert!(catalogs.want(&a, "d", now));
    assert!(!catalogs.want(&b, "d", now));
    catalogs.failed(&a, "d");
    assert!(!catalogs.want(&a, "d", now), "it could not give it");
    assert!(catalogs.want(&b, "d", now));
    let late = now + Duration::from_mins(1);
    catalogs.left(&a);
    assert!(catalogs.want(&a, "d", late), "b takes too long");
    catalogs.left(&a);
    assert!(catalogs.want(&b, "d", late));
}

#[test]
fn what_nobody_uses_makes_room_and_what_is_in_use_does_not() {
    let room = Room { catalogs_max: 2, bytes_max: 100 };
    let mut catalogs = Catalogs::new(room);
    let catalog = || Catalog::from_graph(Graph::default());
    let none = BTreeSet::new();
    for digest in ["one", "two"] {
        assert_eq!(catalogs.keep(digest.to_owned(), catalog(), 10, &none), KeptCatalog::Yes);
    }
    // One was used last.
    assert!(!catalogs.want(&name("a"), "one", Instant::now()));
    assert_eq!(catalogs.keep("three".to_owned(), catalog(), 10, &none), KeptCatalog::Yes);
    assert!(catalogs.get("two").is_none() && catalogs.get("one").is_some());
    let in_use = BTreeSet::from(["one", "three"]);
    assert_eq!(catalogs.keep("four".to_owned(), catalog(), 10, &in_use), KeptCatalog::NoRoom);
    assert_eq!(catalogs.keep("five".to_owned(), catalog(), 101, &none), KeptCatalog::NoRoom);
}

#[test]
fn a_catalog_that_is_not_what_it_was_called_is_refused() {
    let bytes = bytes::Bytes::from(Graph::default().to_canonical_json());
    let digest = Graph::default().digest();
    assert!(read_catalog(&bytes, digest.as_str()).is_ok());
    let other = format!("sha256:{}", "0".repeat(64));
    assert!(read_catalog(&bytes, &other).is_err());
    assert!(read_catalog(&bytes, "latest").is_err());
}

#[test]
fn a_cluster_that_joined_again_under_an_old_name_is_another() {
    let mut clusters = Clusters::new(Admissions::default(), at(0));
    let a = name("a");
    clusters.apply(&managed("a", "1"));
    clusters.connected(&a, SessionId(1), hello(), at(1));
    clusters.announced(&a, "one".to_owned());
    clusters.inventoried(&a, held("one"));
    clusters.apply(&managed("a", "1"));
    assert!(clusters.get(&a).unwrap().inventory.is_some());
    clusters.apply(&managed("a", "2"));
    assert!(clusters.get(&a).unwrap().inventory.is_none());
}
