//! Previews of upgrades that really happened, against facts that were read from the manifests by
//! other means.
//!
//! How the expected facts were found: a script of its own, in another language and with another YAML
//! parser, read every manifest of both bundles. It flattened `permissions` and `clusterPermissions`
//! to one tuple per service account, scope, group, resource or URL, verb and names, and took the two
//! sets' differences; it looked every gained tuple up among the old ones with each field replaced by
//! `*`, and in the whole cluster; it compared Deployments, webhooks and other objects by name; it
//! collected `relatedImages` and the images of all containers. What it printed was then looked at in
//! the manifests by eye; each test below says what there was to see.

#[cfg(test)]
#[path = "support/shared.rs"]
mod shared;

#[cfg(test)]
mod support {
    use std::path::{Path, PathBuf};

    use wavelift_catalog::{
        Manifests, manifests,
        preview::{self, Change, Changes, Danger, Preview, Step},
    };

    /// Where bundles lie.
    pub(crate) fn bundles(test: &str) -> Option<PathBuf> {
        const BUNDLES: &str = "catalogs/bundles";
        Some(crate::shared::dir(test, BUNDLES, "real bundles")?.join(BUNDLES))
    }

    pub(crate) fn read(bundle: &Path) -> Manifests {
        Manifests::from_dir(bundle, &manifests::Limits::default())
            .unwrap_or_else(|error| panic!("{}: {error:?}", bundle.display()))
    }

    /// The preview of a path through these versions of an operator.
    pub(crate) fn preview(bundles: &Path, operator: &str, versions: &[&str]) -> Preview {
        let read: Vec<Manifests> =
            versions.iter().map(|version| read(&bundles.join(operator).join(version))).collect();
        let steps: Vec<Step<'_>> = read.iter().map(|of| Step::of_manifests(of).unwrap()).collect();
        preview::path(&steps)
    }

    /// How permissions change, in numbers.
    #[derive(Debug, PartialEq, Eq)]
    pub(crate) struct Counts {
        pub(crate) gained: usize,
        /// Of the gained, those that were given before by a wider entry.
        pub(crate) had: usize,
        pub(crate) lost: usize,
        /// Of the lost, those that a wider entry still gives.
        pub(crate) still: usize,
        pub(crate) kept: usize,
    }

    pub(crate) fn counts(changes: &Changes) -> Counts {
        let of = |change: Change, is_covered: bool| {
            let permissions = changes.permissions.iter().filter(|p| p.change == change);
            permissions.filter(|p| p.covered_by.is_some() || !is_covered).count()
        };
        Counts {
            gained: of(Change::Gained, false),
            had: of(Change::Gained, true),
            lost: of(Change::Lost, false),
            still: of(Change::Lost, true),
            kept: changes.permissions_kept,
        }
    }

    /// How many permissions that are really gained have a danger.
    pub(crate) fn dangerous(changes: &Changes, danger: Danger) -> usize {
        let gained = changes.permissions.iter().filter(|p| p.change == Change::Gained);
        gained.filter(|p| p.covered_by.is_none() && p.dangers.contains(&danger)).count()
    }

    /// `added name`, and so on.
    pub(crate) fn lines<T>(
        items: &[T],
        of: impl Fn(&T) -> (preview::ObjectChange, &str),
    ) -> Vec<String> {
        let line = |item| {
            let (change, name) = of(item);
            format!("{change} {name}")
        };
        items.iter().map(line).collect()
    }
}

#[cfg(test)]
mod upgrades {
    use std::collections::BTreeMap;

    use wavelift_catalog::preview::{
        Aspect, Change, Changes, CrdRefusal, Danger, DependencyChange, DependencyKind, Importance,
        Section,
    };

    use super::support::{self, Counts, counts, dangerous, lines};

    fn crds(changes: &Changes) -> Vec<String> {
        lines(&changes.crds, |crd| (crd.change, &crd.name))
    }

    fn deployments(changes: &Changes) -> Vec<String> {
        lines(&changes.deployments, |deployment| (deployment.change, &deployment.name))
    }

    fn objects(changes: &Changes) -> Vec<String> {
        lines(&changes.objects, |object| (object.change, &object.name))
    }

    /// RBAC grows, on paper: 96 permissions more in the cluster, 7 of them on secrets. The old CSV
    /// had a rule of nothing but wildcards already, which the new one keeps, so that none of them is
    /// anything new. Two CRDs come, one goes, one of six others is the same file.
    #[test]
    fn rules_grow_under_a_wildcard() {
        let Some(bundles) = support::bundles("rules_grow_under_a_wildcard") else { return };
        let preview = support::preview(&bundles, "opendatahub-operator", &["1.11.0", "2.0.0"]);
        let expected = Counts { gained: 96, had: 96, lost: 0, still: 0, kept: 19 };
        assert_eq!(counts(&preview.hops[0]), expected);
        let secrets = preview.hops[0].permissions.iter();
        let secrets = secrets.filter(|p| p.entry.resource.as_deref() == Some("secrets"));
        assert_eq!(secrets.count(), 7);
        let headline = preview.summary.iter().find(|h| h.section == Section::Permissions).unwrap();
        assert_eq!(headline.importance, Importance::Low, "{}", headline.text);
        assert_eq!(
            crds(&preview.overall)
                .iter()
                .filter(|line| !line.starts_with("changed"))
                .collect::<Vec<_>>(),
            [
                "added datascienceclusters.datasciencecluster.opendatahub.io",
                "added dscinitializations.dscinitialization.opendatahub.io",
                "removed acceleratorprofiles.dashboard.opendatahub.io",
            ]
        );
        assert_eq!(preview.overall.crds.len(), 7);
        assert_eq!(objects(&preview.overall), ["changed opendatahub-operator-manager-config"]);
    }

    /// Along its whole path the same operator takes 50 permissions that it gives up again: 34 come
    /// with 2.0.0 and go with 2.1.0, 16 come with 2.1.0 and go with 2.2.0. The target has 652 more
    /// than the first version and one less.
    #[test]
    fn some_permissions_are_needed_only_on_the_way() {
        let test = "some_permissions_are_needed_only_on_the_way";
        let Some(bundles) = support::bundles(test) else { return };
        let versions = [
            "1.8.0", "1.9.0", "1.10.0", "1.10.1", "1.11.0", "2.0.0", "2.1.0", "2.2.0", "2.2.1",
            "2.3.0", "2.4.0",
        ];
        let preview = support::preview(&bundles, "opendatahub-operator", &versions);
        let mut spans: BTreeMap<(String, String), usize> = BTreeMap::new();
        for permission in &preview.overall.permissions_on_the_way {
            let short = |name: &Option<String>| {
                name.as_deref().unwrap().rsplit_once(".v").unwrap().1.to_owned()
            };
            let span = (short(&permission.gained_in), short(&permission.lost_in));
            *spans.entry(span).or_default() += 1;
        }
        let span = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        assert_eq!(
            spans,
            BTreeMap::from([(span("2.0.0", "2.1.0"), 34), (span("2.1.0", "2.2.0"), 16)])
        );
        let found = counts(&preview.overall);
        assert_eq!((found.gained, found.lost), (652, 1));
        assert_eq!(preview.hops.len(), 10);
    }

    /// Two service accounts lose the use of two security context constraints again before the
    /// target: seen in the CSVs of 1.0.0 and 5.3.0, and no longer in 6.5.1.
    #[test]
    fn constraints_are_used_on_the_way() {
        let Some(bundles) = support::bundles("constraints_are_used_on_the_way") else { return };
        let versions = [
            "0.0.1", "0.0.2", "1.0.0", "1.0.1", "1.0.2", "5.3.0", "6.0.0", "6.5.0", "6.5.1",
            "6.5.2", "6.5.5", "6.5.6", "2022.4.0", "2022.4.1", "2022.4.2",
        ];
        let preview = support::preview(&bundles, "aqua", &versions);
        let mut found: Vec<_> = preview
            .overall
            .permissions_on_the_way
            .iter()
            .map(|p| (p.service_account.as_str(), p.entry.to_string(), p.dangers.as_slice()))
            .collect();
        found.sort();
        let used = "use securitycontextconstraints.security.openshift.io (hostaccess, privileged)";
        let danger = [Danger::SecurityContextConstraints].as_slice();
        assert_eq!(
            found,
            [
                ("aqua-kube-enforcer-sa", used.to_owned(), danger),
                ("aqua-sa", used.to_owned(), danger),
            ]
        );
    }

    /// The conversion webhook goes, with the three versions of all six CRDs that it was for; the
    /// admission webhooks listen on a port by name. One permission is new: patching secrets.
    #[test]
    fn a_conversion_webhook_and_versions_go() {
        let Some(bundles) = support::bundles("a_conversion_webhook_and_versions_go") else {
            return;
        };
        let preview = support::preview(&bundles, "cert-manager", &["1.6.2", "1.7.1"]);
        let changes = &preview.hops[0];
        let expected = Counts { gained: 1, had: 0, lost: 0, still: 0, kept: 139 };
        assert_eq!(counts(changes), expected);
        assert_eq!(dangerous(changes, Danger::Secrets), 1);
        let webhooks = lines(&changes.webhooks, |webhook| (webhook.change, &webhook.name));
        assert_eq!(
            webhooks,
            [
                "changed mutate.webhooks.cert-manager.io",
                "changed validate.webhooks.cert-manager.io",
                "removed convert.webhooks.cert-manager.io",
            ]
        );
        let fields: Vec<_> =
            changes.webhooks[0].differences.iter().map(|d| d.field.as_str()).collect();
        assert_eq!(fields, ["admissionReviewVersions", "targetPort"]);
        assert_eq!(changes.webhooks[2].conversion_crds.len(), 6);
        assert_eq!(changes.webhooks[2].importance(), Importance::High);
        assert_eq!(
            crds(changes),
            [
                "changed certificaterequests.cert-manager.io",
                "changed certificates.cert-manager.io",
                "changed challenges.acme.cert-manager.io",
                "changed clusterissuers.cert-manager.io",
                "changed issuers.cert-manager.io",
                "changed orders.acme.cert-manager.io",
            ]
        );
        for crd in &changes.crds {
            let versions: Vec<String> = crd.versions.iter().map(ToString::to_string).collect();
            let removed =
                |name: &str| format!("version {name} removed, objects may be stored in it");
            assert_eq!(
                versions,
                [
                    removed("v1alpha2"),
                    removed("v1alpha3"),
                    removed("v1beta1"),
                    "conversion None (was Webhook)".to_owned(),
                ]
            );
            assert_eq!(crd.refused_by_v0, CrdRefusal::IfStored);
        }
        assert_eq!((changes.images.len(), changes.images_gone.len()), (3, 3));
        let roles = lines(&changes.rbac_objects, |object| (object.change, &object.name));
        assert_eq!(roles, ["changed cert-manager-edit", "changed cert-manager-view"]);
        assert_eq!(
            objects(changes),
            ["added cert-manager-webhook", "changed cert-manager", "changed cert-manager-webhook"]
        );
        let links = changes.notes.release_notes.iter().filter_map(|note| note.title.as_deref());
        assert_eq!(links.collect::<Vec<_>>(), ["Release Notes"]);
    }

    /// Four mutating and five validating webhooks come at once, all with failure policy `Fail`, and
    /// rules on service accounts, roles and bindings move from the cluster to the namespace: 11 of
    /// the 16 gained were given in the whole cluster before.
    #[test]
    fn webhooks_come_and_rules_narrow() {
        let Some(bundles) = support::bundles("webhooks_come_and_rules_narrow") else { return };
        let preview = support::preview(&bundles, "infinispan", &["2.2.4", "2.2.5"]);
        let changes = &preview.hops[0];
        let expected = Counts { gained: 16, had: 11, lost: 12, still: 0, kept: 249 };
        assert_eq!(counts(changes), expected);
        assert_eq!(dangerous(changes, Danger::ClusterWide), 0);
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for webhook in &changes.webhooks {
            assert_eq!(webhook.failure_policy.as_deref(), Some("Fail"));
            *kinds.entry(&webhook.kind).or_default() += 1;
        }
        assert_eq!(
            kinds,
            BTreeMap::from([("MutatingAdmissionWebhook", 4), ("ValidatingAdmissionWebhook", 5)])
        );
        assert_eq!(changes.crds.len(), 4);
        assert_eq!(deployments(changes), ["changed infinispan-operator-controller-manager"]);
    }

    /// The Deployment carries the version in its name; its service account and its one container
    /// stay. The image is by tag before and by digest after. The images of what it manages stand in
    /// its environment only. 316 permissions stay, none changes.
    #[test]
    fn a_deployment_has_a_new_name() {
        let Some(bundles) = support::bundles("a_deployment_has_a_new_name") else { return };
        let preview = support::preview(&bundles, "strimzi-kafka-operator", &["0.14.0", "0.15.0"]);
        let changes = &preview.hops[0];
        let expected = Counts { gained: 0, had: 0, lost: 0, still: 0, kept: 316 };
        assert_eq!(counts(changes), expected);
        let [deployment] = changes.deployments.as_slice() else {
            panic!("{:?}", changes.deployments)
        };
        assert_eq!(deployment.name, "strimzi-cluster-operator-v0.15.0");
        assert_eq!(deployment.was.as_deref(), Some("strimzi-cluster-operator-v0.14.0"));
        assert!(deployment.aspects.contains(&Aspect::Images));
        assert!(!deployment.aspects.contains(&Aspect::ServiceAccount));
        let [image] = changes.images.as_slice() else { panic!("{:?}", changes.images) };
        assert!(image.image.starts_with("docker.io/strimzi/operator@sha256:c4e6c474"));
        assert!(image.digest.as_deref().unwrap().starts_with("sha256:c4e6c474"));
        assert_eq!(changes.images_gone, ["strimzi/operator:0.14.0"]);
        let mentioned = &changes.images_in_environment;
        assert!(mentioned.iter().all(|image| image.digest.is_some()));
        let has = |start: &str| mentioned.iter().any(|image| image.image.starts_with(start));
        assert!(has("docker.io/strimzi/kafka@sha256:179118d4"));
        assert!(has("docker.io/strimzi/kafka@sha256:c537e7a8"));
        assert!(has("docker.io/strimzi/kafka-bridge@sha256:feea4b8c"));
        assert_eq!(crds(changes).len(), 5);
    }

    /// `dependencies.yaml` appears, with a package and an API; the CSV requires the CRD of the same
    /// API. A Service goes, 13 webhooks and 13 CRDs change, no permission does.
    #[test]
    fn another_package_is_needed() {
        let Some(bundles) = support::bundles("another_package_is_needed") else { return };
        let operator = "rabbitmq-messaging-topology-operator";
        let preview = support::preview(&bundles, operator, &["1.14.2", "1.15.0"]);
        let changes = &preview.hops[0];
        let expected = Counts { gained: 0, had: 0, lost: 0, still: 0, kept: 172 };
        assert_eq!(counts(changes), expected);
        let dependencies: Vec<_> = changes
            .compatibility
            .dependencies
            .iter()
            .filter(|d| d.kind != DependencyKind::NativeApi)
            .map(|d| (d.change, d.kind, d.name.as_str(), d.new.as_deref()))
            .collect();
        let gained = DependencyChange::Gained;
        assert_eq!(
            dependencies,
            [
                (gained, DependencyKind::Package, "rabbitmq-cluster-operator", Some(">2.0.0")),
                (gained, DependencyKind::Api, "RabbitmqCluster.v1beta1.rabbitmq.com", None),
            ]
        );
        assert_eq!(objects(changes), ["removed webhook-service"]);
        assert_eq!((changes.webhooks.len(), changes.crds.len()), (13, 13));
    }

    /// The other way round: eight packages are no longer needed, and the last OpenShift minor moves
    /// from 4.18 to 4.19. No permission, CRD or image changes.
    #[test]
    fn packages_are_no_longer_needed() {
        let Some(bundles) = support::bundles("packages_are_no_longer_needed") else { return };
        let preview = support::preview(&bundles, "odf-operator", &["4.17.0", "4.18.0"]);
        let changes = &preview.hops[0];
        let lost = changes.compatibility.dependencies.iter();
        let lost: Vec<_> = lost.map(|d| (d.change, d.kind)).collect();
        assert_eq!(lost, [(DependencyChange::Lost, DependencyKind::Package); 8]);
        let max = changes.compatibility.max_openshift_version.as_ref().unwrap();
        assert_eq!((max.old.as_deref(), max.new.as_deref()), (Some("4.18"), Some("4.19")));
        let expected = Counts { gained: 0, had: 0, lost: 0, still: 0, kept: 126 };
        assert_eq!(counts(changes), expected);
        assert!(changes.crds.is_empty() && changes.images_gone.is_empty());
        assert!(changes.images.iter().all(|image| !image.is_new));
    }

    /// 22 rules that held in the namespace hold in the whole cluster now, secrets and `pods/exec`
    /// among the 58 gained. Two CRDs of one group leave the bundle, one of a new group comes. The
    /// last OpenShift minor is an unquoted number. Six alerts go, two change.
    #[test]
    fn an_operator_goes_cluster_wide() {
        let Some(bundles) = support::bundles("an_operator_goes_cluster_wide") else { return };
        let preview = support::preview(&bundles, "cluster-logging", &["5.9.0", "6.0.0"]);
        let changes = &preview.hops[0];
        let expected = Counts { gained: 58, had: 17, lost: 40, still: 35, kept: 19 };
        assert_eq!(counts(changes), expected);
        assert_eq!(dangerous(changes, Danger::ClusterWide), 22);
        assert_eq!(dangerous(changes, Danger::Secrets), 1);
        assert_eq!(dangerous(changes, Danger::PodsExec), 1);
        // `use` of constraints was given by `*` before.
        assert_eq!(dangerous(changes, Danger::SecurityContextConstraints), 0);
        assert_eq!(
            crds(changes),
            [
                "added clusterlogforwarders.observability.openshift.io",
                "changed logfilemetricexporters.logging.openshift.io",
                "removed clusterlogforwarders.logging.openshift.io",
                "removed clusterloggings.logging.openshift.io",
            ]
        );
        let max = changes.compatibility.max_openshift_version.as_ref().unwrap();
        assert_eq!((max.old.as_deref(), max.new.as_deref()), (Some("4.16"), Some("4.17")));
        let mut alerts = lines(&changes.alerts, |a| (a.change.unwrap(), &a.alert));
        alerts.sort();
        assert_eq!(
            alerts,
            [
                "changed CollectorNodeDown",
                "changed DiskBufferUsage",
                "removed CollectorHighErrorRate",
                "removed CollectorVeryHighErrorRate",
                "removed ElasticsearchDeprecation",
                "removed FluentdDeprecation",
                "removed FluentdQueueLengthIncreasing",
                "removed KibanaDeprecation",
            ]
        );
        assert_eq!(changes.rbac_objects.len(), 7);
    }

    /// A new major under other names: another service account, so that all permissions are new, and
    /// another Deployment with the image's repository and the container's name in common. An install
    /// mode goes, another comes; Kubernetes must be newer; the four old CRDs leave the bundle.
    #[test]
    fn a_new_major_has_new_names_and_one_install_mode_less() {
        let test = "a_new_major_has_new_names_and_one_install_mode_less";
        let Some(bundles) = support::bundles(test) else { return };
        let preview = support::preview(&bundles, "crunchy-postgres-operator", &["4.7.5", "5.0.4"]);
        let changes = &preview.hops[0];
        let expected = Counts { gained: 85, had: 0, lost: 144, still: 0, kept: 0 };
        assert_eq!(counts(changes), expected);
        assert_eq!(dangerous(changes, Danger::Secrets), 6);
        assert_eq!(dangerous(changes, Danger::PodsExec), 1);
        let modes = changes.compatibility.install_modes.iter();
        let modes: Vec<_> = modes.map(|mode| (mode.change, mode.mode.as_str())).collect();
        assert_eq!(modes, [(Change::Gained, "AllNamespaces"), (Change::Lost, "MultiNamespace")]);
        let min = changes.compatibility.min_kube_version.as_ref().unwrap();
        assert_eq!((min.old.as_deref(), min.new.as_deref()), (Some("1.11.0"), Some("1.18.0")));
        let span = changes.compatibility.openshift_versions.as_ref().unwrap();
        assert_eq!(span.meaning.as_deref(), Some("4.6 to 4.9"));
        assert_eq!((changes.images.len(), changes.images_gone.len()), (1, 4));
        let removed = crds(changes).into_iter().filter(|line| line.starts_with("removed"));
        assert_eq!(removed.count(), 4);
    }
}

#[cfg(test)]
mod all {
    use std::fs;

    use wavelift_catalog::{Manifests, manifests};

    use super::support;

    /// Every bundle at hand is read, but three folders that hold no manifests at all.
    #[test]
    fn every_real_bundle_is_read() {
        let Some(bundles) = support::bundles("every_real_bundle_is_read") else { return };
        let mut refused = Vec::new();
        let mut count = 0;
        for operator in fs::read_dir(&bundles).unwrap() {
            for version in fs::read_dir(operator.unwrap().path()).unwrap() {
                let path = version.unwrap().path();
                count += 1;
                if let Err(error) = Manifests::from_dir(&path, &manifests::Limits::default()) {
                    let name = path.strip_prefix(&bundles).unwrap().display().to_string();
                    refused.push(format!("{name}: {error}"));
                }
            }
        }
        refused.sort();
        let no_csv = |version: &str| {
            format!(
                "rabbitmq-messaging-topology-operator/{version}: bundle has no \
                 ClusterServiceVersion"
            )
        };
        assert_eq!(refused, [no_csv("1.18.3"), no_csv("1.19.0"), no_csv("1.19.1")]);
        assert_eq!(count, 289);
    }
}
