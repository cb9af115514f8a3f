#![expect(clippy::needless_pass_by_value, reason = "values of json! read best in place")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Change, Danger, Preview, Scope, Section, Step, path};
use crate::manifests::{Limits, Manifests};

mod authors;
mod cluster;
mod objects;
mod written;

/// A bundle of the operator `pump` with this in its CSV's `spec` and these other manifests.
pub(super) fn bundle(version: &str, spec: Value, others: &[Value]) -> Manifests {
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("pump.v{version}")}, "spec": spec,
    });
    csv["spec"]["version"] = version.into();
    let mut text = csv.to_string();
    for other in others {
        text.push_str(&other.to_string());
    }
    let files = BTreeMap::from([("manifests/all.json".to_owned(), text.into_bytes())]);
    Manifests::from_files(&files, BTreeMap::new(), &Limits::default()).unwrap()
}

pub(super) fn preview(bundles: &[Manifests]) -> Preview {
    let steps: Vec<Step<'_>> = bundles.iter().map(|b| Step::of_manifests(b).unwrap()).collect();
    path(&steps)
}

mod permissions {
    use super::*;

    /// A CSV whose service account `sa` has these rules in its namespace and in the cluster.
    fn with_rules(version: &str, namespace: Value, cluster: Value) -> Manifests {
        let of = |rules: Value| json!([{"serviceAccountName": "sa", "rules": rules}]);
        let spec = json!({"permissions": of(namespace), "clusterPermissions": of(cluster)});
        bundle(version, json!({"install": {"spec": spec}}), &[])
    }

    fn rule(group: &str, resource: &str, verb: &str) -> Value {
        json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]})
    }

    /// Each change in a line.
    fn lines(preview: &Preview, hop: usize) -> Vec<String> {
        let line = |p: &super::super::Permission| {
            let mut line = format!("{:?} {:?} {}", p.change, p.scope, p.entry);
            if let Some(covered) = &p.covered_by {
                line.push_str(&format!(" <- {:?} {}", covered.scope, covered.entry));
            }
            line
        };
        let mut lines: Vec<_> = preview.hops[hop].permissions.iter().map(line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn rules_are_flattened_and_taken_literally() {
        let old = with_rules("1.0.0", json!([rule("", "pods", "get")]), json!(null));
        let rules = json!([
            {"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["*"], "verbs": ["get"], "resourceNames": ["b", "a"]},
        ]);
        let urls = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
        let new = with_rules("1.1.0", rules, urls);
        let preview = preview(&[old, new]);
        assert_eq!(
            lines(&preview, 0),
            [
                "Gained Cluster get /metrics",
                "Gained Namespace get * (a, b)",
                "Gained Namespace get pods.apps",
                "Gained Namespace list pods",
                "Gained Namespace list pods.apps",
            ]
        );
        assert_eq!(preview.hops[0].permissions_kept, 1);
        let json = serde_json::to_value(&preview).unwrap();
        let url = &json["hops"][0]["permissions"].as_array().unwrap();
        let url = url.iter().find(|p| p["nonResourceURL"] == "/metrics").unwrap();
        assert_eq!(
            *url,
            json!({
                "serviceAccount": "sa", "scope": "Cluster", "change": "Gained", "apiGroup": "",
                "nonResourceURL": "/metrics", "verb": "get", "resourceNames": [],
                "source": "FromManifests", "confidence": "Certain",
            })
        );
    }

    #[test]
    fn what_a_wider_entry_gives_already_says_so() {
        let check = |old: Value, old_cluster: Value, new: Value, expected: &str| {
            let old = with_rules("1.0.0", old, old_cluster);
            let gained = with_rules("1.1.0", json!([new]), json!(null));
            let preview = preview(&[old, gained]);
            let lines = lines(&preview, 0);
            let line = lines.iter().find(|line| line.starts_with("Gained")).unwrap();
            assert_eq!(line.strip_prefix("Gained Namespace get pods/log").unwrap(), expected);
        };
        let log = || rule("", "pods/log", "get");
        let none = || json!(null);
        check(json!([rule("", "*", "*")]), none(), log(), " <- Namespace * *");
        check(json!([rule("", "*/log", "get")]), none(), log(), " <- Namespace get */log");
        check(json!([rule("*", "pods/log", "get")]), none(), log(), " <- Namespace get pods/log.*");
        check(none(), json!([log()]), log(), " <- Cluster get pods/log");
        check(json!([rule("apps", "*", "*")]), none(), log(), "");
        check(json!([rule("", "pods", "*")]), none(), log(), "");
        let mut named = log();
        named["resourceNames"] = json!(["a"]);
        check(json!([log()]), none(), named.clone(), " (a) <- Namespace get pods/log");
        let mut more = log();
        more["resourceNames"] = json!(["b", "a"]);
        check(json!([more]), none(), named, " (a) <- Namespace get pods/log (a, b)");
    }

    #[test]
    fn dangers_are_named_and_come_first() {
        let check = |dangerous: Value, expected: &[Danger]| {
            let old = with_rules("1.0.0", json!([rule("", "events", "get")]), json!(null));
            let new = with_rules("1.1.0", json!(null), json!([dangerous]));
            let preview = preview(&[old, new]);
            let gained =
                preview.overall.permissions.iter().find(|p| p.change == Change::Gained).unwrap();
            assert_eq!(gained.dangers, expected, "{}", gained.entry);
        };
        let rbac = "rbac.authorization.k8s.io";
        check(rule("*", "*", "*"), &[Danger::Everything]);
        check(rule(rbac, "clusterroles", "bind"), &[Danger::Escalate]);
        check(rule("", "users", "impersonate"), &[Danger::Impersonate]);
        check(rule("", "nodes/proxy", "get"), &[Danger::NodesProxy]);
        check(rule("", "secrets", "list"), &[Danger::Secrets]);
        check(rule("", "secrets", "*"), &[Danger::Secrets, Danger::Wildcard]);
        check(rule("", "pods/exec", "create"), &[Danger::PodsExec]);
        check(rule("", "*/exec", "create"), &[Danger::PodsExec, Danger::Wildcard]);
        check(
            rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "patch"),
            &[Danger::WebhookConfigurations],
        );
        check(
            rule("security.openshift.io", "securitycontextconstraints", "use"),
            &[Danger::SecurityContextConstraints],
        );
        check(rule("", "pods", "create"), &[Danger::Workloads]);
        check(rule("", "pods", "list"), &[]);
        check(rule("", "events", "get"), &[Danger::ClusterWide]);
        check(rule("example.com", "secrets", "get"), &[]);
    }

    #[test]
    fn the_gravest_change_is_the_first_and_what_changes_nothing_the_last() {
        let old = with_rules("1.0.0", json!([rule("", "*", "list")]), json!(null));
        let rules = [rule("", "secrets", "list"), rule("", "pods", "watch"), rule("", "pods", "*")];
        let new = with_rules("1.1.0", json!(rules), json!([rule("", "users", "impersonate")]));
        let preview = preview(&[old, new]);
        let permissions = preview.overall.permissions.iter();
        let order: Vec<_> = permissions.map(|p| format!("{:?} {}", p.change, p.entry)).collect();
        assert_eq!(
            order,
            [
                "Gained impersonate users",
                "Gained * pods",
                "Gained watch pods",
                "Lost list *",
                "Gained list secrets",
            ]
        );
    }

    #[test]
    fn what_only_the_way_needs_is_told() {
        let of = |version: &str, extra: &[Value]| {
            let mut rules = vec![rule("", "pods", "get")];
            rules.extend_from_slice(extra);
            with_rules(version, json!(rules), json!(null))
        };
        let bundles = [
            of("1.0.0", &[rule("", "services", "get")]),
            of("1.1.0", &[rule("", "secrets", "get")]),
            of("1.2.0", &[rule("", "services", "get")]),
        ];
        let preview = preview(&bundles);
        assert!(preview.overall.permissions.is_empty(), "{:?}", preview.overall.permissions);
        let [on_the_way] = preview.overall.permissions_on_the_way.as_slice() else {
            panic!("{:?}", preview.overall.permissions_on_the_way)
        };
        assert_eq!(on_the_way.entry.resource.as_deref(), Some("secrets"));
        assert_eq!(on_the_way.gained_in.as_deref(), Some("pump.v1.1.0"));
        assert_eq!(on_the_way.lost_in.as_deref(), Some("pump.v1.2.0"));
        let marked: Vec<_> =
            preview.hops[0].permissions.iter().filter(|p| p.only_on_the_way).collect();
        assert_eq!(marked.len(), 1);
        assert_eq!(marked[0].scope, Scope::Namespace);
    }

    #[test]
    fn a_rule_that_stands_for_too_many_is_refused() {
        let refused = |rule: Value| {
            let spec = json!({"install": {"spec": {"permissions": [{"rules": [rule]}]}}});
            let csv = json!({"kind": "ClusterServiceVersion", "spec": spec});
            let files = BTreeMap::from([("a.json".to_owned(), csv.to_string().into_bytes())]);
            let read = Manifests::from_files(&files, BTreeMap::new(), &Limits::default());
            std::error::Error::source(&read.unwrap_err()).unwrap().to_string()
        };
        let many = |count: usize| (0..count).map(|n| format!("r{n}")).collect::<Vec<String>>();
        assert_eq!(
            refused(json!({"apiGroups": many(400), "resources": many(400), "verbs": ["get"]})),
            "field `spec.install.spec.permissions[0].rules` is not short: it stands for more than \
             100,000 permissions"
        );
        // Few permissions, but each has all the names.
        let named = json!({"apiGroups": [""], "resources": many(400), "verbs": ["get"],
            "resourceNames": many(4_000)});
        assert!(refused(named).ends_with("its permissions have more than 1,000,000 names"));
    }
}

mod images {
    use super::*;

    fn with_images(version: &str, container: &str, related: &[&str]) -> Manifests {
        let related: Vec<_> =
            related.iter().map(|image| json!({"name": "r", "image": image})).collect();
        let pod = json!({
            "initContainers": [{"name": "init", "image": "r.example/init@sha256:aa"}],
            "containers": [{"name": "manager", "image": container}],
        });
        let deployment = json!({"name": "pump", "spec": {"template": {"spec": pod}}});
        let spec = json!({
            "relatedImages": related, "install": {"spec": {"deployments": [deployment]}},
        });
        bundle(version, spec, &[])
    }

    #[test]
    fn a_hop_lists_all_that_its_new_version_pulls_and_a_path_all_of_its_versions() {
        let bundles = [
            with_images("1.0.0", "r.example/pump:1.0", &[]),
            with_images("1.1.0", "r.example/pump:1.1", &["r.example/side@sha256:bb"]),
            with_images("1.2.0", "r.example/pump:1.2", &["", "r.example/pump:1.2"]),
        ];
        let preview = preview(&bundles);
        let names = |changes: &super::super::Changes| -> Vec<String> {
            let mark = |is_new: bool| if is_new { "new" } else { "kept" };
            changes.images.iter().map(|i| format!("{} {}", mark(i.is_new), i.image)).collect()
        };
        assert_eq!(
            names(&preview.hops[1]),
            ["new r.example/pump:1.2", "kept r.example/init@sha256:aa"]
        );
        assert_eq!(
            names(&preview.overall),
            [
                "new r.example/pump:1.1",
                "new r.example/pump:1.2",
                "new r.example/side@sha256:bb",
                "kept r.example/init@sha256:aa",
            ]
        );
        let init = &preview.overall.images[3];
        assert_eq!(init.digest.as_deref(), Some("sha256:aa"));
        assert_eq!(init.bundles, ["pump.v1.1.0", "pump.v1.2.0"]);
        assert_eq!(init.used_by, ["deployment pump, initContainer init"]);
        let target = &preview.hops[1].images[0];
        assert_eq!(target.digest, None);
        assert_eq!(target.used_by, ["relatedImages r", "deployment pump, container manager"]);
    }
}

mod missing {
    use super::*;

    #[test]
    fn missing_manifests_are_told_and_are_no_change() {
        let old = bundle("1.0.0", json!({}), &[]);
        let steps = [
            Step::of_manifests(&old).unwrap(),
            Step {
                name: "pump.v1.1.0".to_owned(),
                missing_because: "registry does not answer".to_owned(),
                ..Step::default()
            },
        ];
        let preview = path(&steps);
        for changes in [&preview.hops[0], &preview.overall] {
            let [missing] = changes.missing.as_slice() else { panic!("{:?}", changes.missing) };
            assert_eq!(missing.bundle, "pump.v1.1.0");
            assert_eq!(missing.reason, "registry does not answer");
            assert!(missing.sections.contains(&Section::Permissions));
            assert!(missing.sections.contains(&Section::Images));
        }
    }

    #[test]
    fn an_inline_manifest_that_does_not_parse_is_missing() {
        let manifests = Manifests::new(["!".to_owned()]);
        let step = Step { manifests: Some(&manifests), ..Step::default() };
        let preview = path(&[Step::default(), step]);
        assert!(preview.overall.missing[1].reason.starts_with("manifest 0 is not base64: "));
    }

    #[test]
    fn no_bundle_and_one_bundle_are_no_path() {
        assert_eq!(path(&[]), Preview::default());
        let preview = path(&[Step { name: "pump.v1.0.0".to_owned(), ..Step::default() }]);
        assert!(preview.hops.is_empty());
        assert_eq!(preview.overall.to, "pump.v1.0.0");
    }
}
