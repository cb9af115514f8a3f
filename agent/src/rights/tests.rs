//! The list beside what it must never hold.

use serde_json::json;

use super::{Grant, Place, RIGHTS, manifests};

const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

#[test]
fn every_row_is_one_right_that_is_given_once() {
    let mut seen = vec![];
    for right in RIGHTS {
        assert!(!right.why.is_empty() && !right.verbs.is_empty(), "{right:?}");
        assert!(!right.group.contains('*') && !right.resource.contains('*'), "{right:?}");
        for verb in right.verbs {
            assert!(VERBS.contains(verb), "{right:?}");
            let one = (right.place, right.group, right.resource, *verb);
            assert!(!seen.contains(&one), "{one:?} is given twice");
            seen.push(one);
        }
    }
}

#[test]
fn what_would_make_the_agent_an_administrator_is_in_no_row() {
    let never = [
        ("", "secrets"),
        ("", "pods/exec"),
        ("", "pods"),
        ("", "serviceaccounts"),
        ("", "serviceaccounts/token"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
        ("rbac.authorization.k8s.io", "roles"),
        ("rbac.authorization.k8s.io", "rolebindings"),
    ];
    for (group, resource) in never {
        let row = RIGHTS.iter().find(|right| (right.group, right.resource) == (group, resource));
        assert!(row.is_none(), "{row:?}");
    }
    let writes = |right: &&super::Right| {
        right.grant == Grant::Always
            && right.place == Place::Everywhere
            && right.verbs.iter().any(|verb| !["get", "list", "watch"].contains(verb))
    };
    let written: Vec<_> =
        RIGHTS.iter().filter(writes).map(|right| (right.resource, right.verbs)).collect();
    let wanted: [(&str, &[&str]); 3] = [
        ("subscriptions", &["patch"]),
        ("installplans", &["patch"]),
        ("installplans", &["delete"]),
    ];
    assert_eq!(written, wanted);
}

#[test]
fn a_grant_is_a_role_and_its_binding() {
    let [role, binding] = &manifests(Grant::PinnedCatalogs)[..] else { unreachable!() };
    assert_eq!(role["kind"], "ClusterRole");
    let rules = json!([{"apiGroups": ["operators.coreos.com"], "resources": ["catalogsources"],
        "verbs": ["create", "delete"]}]);
    assert_eq!(role["rules"], rules);
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["name"], "wavelift-agent");
}

#[test]
fn rows_of_one_resource_become_one_rule() {
    let all = manifests(Grant::Always);
    let role = all.iter().find(|object| object["kind"] == "Role").unwrap();
    assert_eq!(role["metadata"]["namespace"], "wavelift-agent");
    let rules = json!([
        {"apiGroups": ["wavelift.io"], "resources": ["clusterupgrades"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
        {"apiGroups": ["wavelift.io"], "resources": ["clusterupgrades/status"],
            "verbs": ["update"]},
    ]);
    assert_eq!(role["rules"], rules);
}
