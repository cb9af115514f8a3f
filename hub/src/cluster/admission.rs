//! Which clusters may have a session: those of the ManagedClusters that the hub accepts.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::RwLock;
use wavelift_core::ids::{ClusterName, Uid};

use crate::link::{Admission, Denied};

/// The part of the ManagedClusters that the link asks for. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admissions(Arc<RwLock<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    is_open: bool,
    clusters: BTreeMap<ClusterName, Admitted>,
}

/// What the link must know of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) uid: Uid,
    pub(crate) is_accepted: bool,
}

impl Admissions {
    pub(crate) fn put(&self, cluster: ClusterName, admitted: Admitted) {
        self.0.write().clusters.insert(cluster, admitted);
    }

    pub(crate) fn remove(&self, cluster: &ClusterName) {
        self.0.write().clusters.remove(cluster);
    }

    /// All ManagedClusters are known.
    pub(crate) fn open(&self) {
        self.0.write().is_open = true;
    }

    /// Nothing is known: this hub does not lead.
    pub(crate) fn close(&self) {
        *self.0.write() = Inner::default();
    }

    /// The uid of a cluster that may have a session.
    pub(crate) fn accepted(&self) -> BTreeMap<ClusterName, Uid> {
        let inner = self.0.read();
        let accepted = inner.clusters.iter().filter(|(_, admitted)| admitted.is_accepted);
        accepted.map(|(name, admitted)| (name.clone(), admitted.uid.clone())).collect()
    }

    fn judge(&self, cluster: &ClusterName, uid: &Uid) -> Result<(), Denied> {
        let inner = self.0.read();
        if !inner.is_open {
            return Err(Denied::Unavailable("its clusters are not listed yet".to_owned()));
        }
        let admitted = inner.clusters.get(cluster).ok_or(Denied::UnknownCluster)?;
        if admitted.uid != *uid {
            return Err(Denied::OtherUid { expected: admitted.uid.clone() });
        }
        if admitted.is_accepted { Ok(()) } else { Err(Denied::NotAccepted) }
    }
}

impl Admission for Admissions {
    async fn admit(&self, cluster: &ClusterName, uid: &Uid) -> Result<(), Denied> {
        self.judge(cluster, uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_accepted_cluster_with_its_own_uid_is_admitted() {
        let admissions = Admissions::default();
        let name = |text: &str| ClusterName::try_from(text).unwrap();
        let uid = |text: &str| Uid::try_from(text).unwrap();
        let judged = |cluster: &str, of: &str| {
            admissions.judge(&name(cluster), &uid(of)).map_err(|denied| denied.kind())
        };
        assert_eq!(judged("a", "1"), Err("admission_unavailable"));
        for (cluster, is_accepted) in [("a", true), ("b", false)] {
            admissions.put(name(cluster), Admitted { uid: uid("1"), is_accepted });
        }
        admissions.open();
        assert_eq!(judged("a", "1"), Ok(()));
        assert_eq!(judged("a", "2"), Err("other_uid"));
        assert_eq!(judged("b", "1"), Err("not_accepted"));
        assert_eq!(judged("c", "1"), Err("unknown_cluster"));
        admissions.close();
        assert_eq!(judged("a", "1"), Err("admission_unavailable"));
    }
}
