//! The registry of kinds, and the kinds every server starts with.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use super::kind::{Column, Gk, Kind, Origin, Scope, StatusEndpoint};

/// Group and kind of what is built in, for use as arguments.
pub mod gk {
    use super::Gk;

    macro_rules! names {
        ($($name:ident = $group:literal $kind:literal;)*) => {
            $(#[doc = concat!("`", $kind, "` of group `", $group, "`.")]
            pub static $name: Gk = Gk::of($group, $kind);)*
        };
    }

    names! {
        NAMESPACE = "" "Namespace";
        CONFIG_MAP = "" "ConfigMap";
        SECRET = "" "Secret";
        EVENT = "" "Event";
        SERVICE_ACCOUNT = "" "ServiceAccount";
        SERVICE = "" "Service";
        POD = "" "Pod";
        NODE = "" "Node";
        DEPLOYMENT = "apps" "Deployment";
        LEASE = "coordination.k8s.io" "Lease";
        CRD = "apiextensions.k8s.io" "CustomResourceDefinition";
        SUBSCRIPTION = "operators.coreos.com" "Subscription";
        INSTALL_PLAN = "operators.coreos.com" "InstallPlan";
        CSV = "operators.coreos.com" "ClusterServiceVersion";
        CATALOG_SOURCE = "operators.coreos.com" "CatalogSource";
        OPERATOR_GROUP = "operators.coreos.com" "OperatorGroup";
        OPERATOR_CONDITION = "operators.coreos.com" "OperatorCondition";
        CLUSTER_VERSION = "config.openshift.io" "ClusterVersion";
        MANAGED_CLUSTER = "cluster.open-cluster-management.io" "ManagedCluster";
        FLEET_UPGRADE = "wavelift.io" "FleetUpgrade";
        CLUSTER_UPGRADE = "wavelift.io" "ClusterUpgrade";
    }
}

/// What a server knows of kinds.
#[derive(Clone, Debug)]
pub struct Kinds(BTreeMap<Gk, Arc<Kind>>);

/// One line of the table of built-in kinds: `shape` is `ns` or `cluster`, then `status` and
/// `generation` where they apply, then `custom` for what a real cluster has by CRD.
struct Line {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    shape: &'static str,
    short: &'static str,
    categories: &'static str,
    /// `Name:type=path` separated by `;`.
    columns: &'static str,
    selectable: &'static str,
}

const OLM: &str = "operators.coreos.com";
const RBAC: &str = "rbac.authorization.k8s.io";
const AGE: &str = "Age:date=.metadata.creationTimestamp";

/// One line, written densely because the table is read as a table.
const fn line(
    at: [&'static str; 4],
    shape: &'static str,
    short: &'static str,
    columns: &'static str,
) -> Line {
    let [group, version, kind, plural] = at;
    Line { group, version, kind, plural, shape, short, categories: "", columns, selectable: "" }
}

#[rustfmt::skip]
const BUILT_IN: &[Line] = &[
    line(["", "v1", "Namespace", "namespaces"], "cluster status", "ns", "Status=.status.phase"),
    line(["", "v1", "ConfigMap", "configmaps"], "ns", "cm", "Data=count:.data"),
    Line { selectable: "type", ..line(["", "v1", "Secret", "secrets"], "ns", "", "Type=.type;Data=count:.data") },
    Line {
        selectable: "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid \
            involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath \
            reason type source reportingComponent",
        ..line(["", "v1", "Event", "events"], "ns", "ev",
            "Last Seen:date=.lastTimestamp|.eventTime|.firstTimestamp;Type=.type;Reason=.reason;\
            Object=lower:{.involvedObject.kind}/{.involvedObject.name};Message=.message")
    },
    line(["", "v1", "ServiceAccount", "serviceaccounts"], "ns", "sa", "Secrets=count:.secrets"),
    line(["", "v1", "Service", "services"], "ns status", "svc", "Type=.spec.type;Cluster-IP=.spec.clusterIP"),
    Line {
        selectable: "spec.nodeName status.phase", categories: "all",
        ..line(["", "v1", "Pod", "pods"], "ns status", "po", "Status=.status.phase")
    },
    line(["", "v1", "Node", "nodes"], "cluster status", "no",
        "Ready=.status.conditions[?(@.type==\"Ready\")].status;Version=.status.nodeInfo.kubeletVersion"),
    Line {
        categories: "all",
        ..line(["apps", "v1", "Deployment", "deployments"], "ns status generation", "deploy",
            "Ready={.status.readyReplicas:0}/{.spec.replicas:0};Up-to-date:integer=.status.updatedReplicas;\
            Available:integer=.status.availableReplicas")
    },
    line(["coordination.k8s.io", "v1", "Lease", "leases"], "ns", "", "Holder=.spec.holderIdentity"),
    line(["apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"],
        "cluster status generation", "crd crds", "Created At=.metadata.creationTimestamp"),
    line([RBAC, "v1", "Role", "roles"], "ns", "", "Created At=.metadata.creationTimestamp"),
    line([RBAC, "v1", "RoleBinding", "rolebindings"], "ns", "", "Role={.roleRef.kind}/{.roleRef.name}"),
    line([RBAC, "v1", "ClusterRole", "clusterroles"], "cluster", "", "Created At=.metadata.creationTimestamp"),
    line([RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings"], "cluster", "",
        "Role={.roleRef.kind}/{.roleRef.name}"),
    Line {
        categories: "olm",
        ..line([OLM, "v1alpha1", "Subscription", "subscriptions"], "ns status generation custom", "sub subs",
            "Package=.spec.name;Source=.spec.source;Channel=.spec.channel")
    },
    Line {
        categories: "olm",
        ..line([OLM, "v1alpha1", "InstallPlan", "installplans"], "ns status generation custom", "ip",
            "CSV=.spec.clusterServiceVersionNames[0];Approval=.spec.approval;Approved:boolean=.spec.approved")
    },
    Line {
        categories: "olm",
        ..line([OLM, "v1alpha1", "ClusterServiceVersion", "clusterserviceversions"],
            "ns status generation custom", "csv csvs",
            "Display=.spec.displayName;Version=.spec.version;Replaces=.spec.replaces;Phase=.status.phase")
    },
    Line {
        categories: "olm",
        ..line([OLM, "v1alpha1", "CatalogSource", "catalogsources"], "ns status generation custom", "catsrc",
            "Display=.spec.displayName;Type=.spec.sourceType;Publisher=.spec.publisher;\
            Age:date=.metadata.creationTimestamp")
    },
    Line {
        categories: "olm",
        ..line([OLM, "v1", "OperatorGroup", "operatorgroups"], "ns status generation custom", "og", AGE)
    },
    Line {
        categories: "olm",
        ..line([OLM, "v2", "OperatorCondition", "operatorconditions"], "ns status generation custom",
            "condition", AGE)
    },
    line(["config.openshift.io", "v1", "ClusterVersion", "clusterversions"], "cluster status generation custom", "",
        "Version=.status.history[?(@.state==\"Completed\")].version;\
        Available=.status.conditions[?(@.type==\"Available\")].status;\
        Progressing=.status.conditions[?(@.type==\"Progressing\")].status;\
        Status=.status.conditions[?(@.type==\"Progressing\")].message"),
    line(["cluster.open-cluster-management.io", "v1", "ManagedCluster", "managedclusters"],
        "cluster status generation custom", "mcl mcls",
        "Hub Accepted:boolean=.spec.hubAcceptsClient;\
        Joined=.status.conditions[?(@.type==\"ManagedClusterJoined\")].status;\
        Available=.status.conditions[?(@.type==\"ManagedClusterConditionAvailable\")].status;\
        Age:date=.metadata.creationTimestamp"),
];

static SHARED: LazyLock<Arc<Kinds>> = LazyLock::new(|| {
    let kinds = BUILT_IN.iter().map(Line::kind).map(|kind| (kind.gk.clone(), kind));
    Arc::new(Kinds(kinds.collect()))
});

// === impl Kinds ===

impl Kinds {
    /// The built-in kinds, one copy for the whole process.
    pub(super) fn built_in() -> Arc<Self> {
        Arc::clone(&SHARED)
    }

    /// The kind of that name.
    pub fn get(&self, gk: &Gk) -> Option<&Arc<Kind>> {
        self.0.get(gk)
    }

    /// The kind served under a path.
    pub fn serving(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.0.values().find(|k| {
            k.gk.group() == group && k.plural == plural && k.versions().any(|v| v == version)
        })
    }

    /// All kinds, by group and name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.0.values()
    }

    pub(super) fn insert(&mut self, kind: Arc<Kind>) {
        self.0.insert(kind.gk.clone(), kind);
    }

    pub(super) fn remove(&mut self, gk: &Gk) {
        self.0.remove(gk);
    }
}

// === impl Line ===

impl Line {
    fn kind(&self) -> Arc<Kind> {
        let is = |word: &str| self.shape.split(' ').any(|w| w == word);
        let words = |text: &'static str| text.split_whitespace().map(Cow::Borrowed).collect();
        let mut columns: Vec<Column> = self.columns.split(';').filter_map(column).collect();
        if !is("custom") && self.kind != "Event" && !self.columns.contains("Created At") {
            columns.extend(column(AGE));
        }
        Arc::new(Kind {
            gk: Gk::of(self.group, self.kind),
            version: Cow::Borrowed(self.version),
            others: vec![],
            plural: Cow::Borrowed(self.plural),
            singular: Cow::Owned(self.kind.to_lowercase()),
            scope: if is("ns") { Scope::Namespaced } else { Scope::Cluster },
            status: if is("status") { StatusEndpoint::Apart } else { StatusEndpoint::None },
            counts_generation: is("generation"),
            short_names: words(self.short),
            categories: words(self.categories),
            columns,
            selectable: words(self.selectable),
            schema: None,
            openapi: None,
            origin: if is("custom") { Origin::Custom } else { Origin::BuiltIn },
        })
    }
}

fn column(text: &'static str) -> Option<Column> {
    let (head, path) = text.trim().split_once('=')?;
    let (name, kind) = head.split_once(':').unwrap_or((head, "string"));
    Some(Column {
        name: Cow::Borrowed(name),
        kind: Cow::Borrowed(kind),
        priority: 0,
        description: Cow::Borrowed(name),
        path: Cow::Borrowed(path),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_as_it_is_meant() {
        let kinds = Kinds::built_in();
        let csv = kinds.get(&gk::CSV).unwrap();
        assert_eq!(csv.api_version(), "operators.coreos.com/v1alpha1");
        assert!(csv.is_namespaced() && csv.has_status() && csv.counts_generation);
        assert_eq!(
            csv.columns.iter().map(|c| &*c.name).collect::<Vec<_>>(),
            ["Display", "Version", "Replaces", "Phase"]
        );
        let deployment = kinds.serving("apps", "v1", "deployments").unwrap();
        assert_eq!(deployment.short_names, ["deploy"]);
        assert_eq!(deployment.columns.last().unwrap().name, "Age");
        assert!(!kinds.get(&gk::NODE).unwrap().is_namespaced());
    }
}
