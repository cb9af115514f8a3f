//! What is on the clusters, and what upgrading them must come to, by hand.

use std::collections::BTreeMap;

use wavelift_demo::{
    own_catalog::{CHANNEL, FERRY, KILN, LOOM, NAMESPACES, SPINDLE, csv},
    spread::SOURCE,
};
use wavelift_sim::cluster::{Approval, Operator};

/// What a cluster has installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Content {
    /// One operator, three hops behind.
    Ferry,
    /// Two operators that share a namespace and so an InstallPlan.
    Weaving,
    /// Both.
    FerryAndWeaving,
    /// Everything newest already.
    Newest,
    /// One operator whose new version cannot be installed.
    BrokenKiln,
}

/// A cluster to be.
#[derive(Debug, Clone)]
pub(crate) struct Blueprint {
    /// Its name.
    pub(crate) name: String,
    /// Its wave, as a label.
    pub(crate) wave: String,
    /// What it has installed.
    pub(crate) content: Content,
    /// Its dice.
    pub(crate) seed: u64,
}

impl Content {
    /// What is installed, with its version.
    fn installed(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Ferry => vec![(FERRY, "2.0.0")],
            Self::Weaving => vec![(LOOM, "3.1.0"), (SPINDLE, "5.0.2")],
            Self::FerryAndWeaving => {
                vec![(FERRY, "2.0.0"), (LOOM, "3.1.0"), (SPINDLE, "5.0.2")]
            }
            Self::Newest => vec![(LOOM, "3.2.0"), (SPINDLE, "5.1.0")],
            Self::BrokenKiln => vec![(KILN, "0.9.0")],
        }
    }

    /// The Subscriptions.
    pub(crate) fn operators(self) -> Vec<Operator> {
        let namespaces = BTreeMap::from(NAMESPACES);
        let operator = |(package, version): (&str, &str)| Operator {
            namespace: namespaces[package].to_owned(),
            package: package.to_owned(),
            channel: CHANNEL.to_owned(),
            source: (SOURCE.0.to_owned(), SOURCE.1.to_owned()),
            installed: Some(csv(package, version)),
            approval: Approval::Manual,
        };
        self.installed().into_iter().map(operator).collect()
    }

    /// The CSVs that cannot be installed.
    pub(crate) fn refused(self) -> &'static [&'static str] {
        match self {
            Self::BrokenKiln => &["kiln-operator.v1.0.0"],
            Self::Ferry | Self::Weaving | Self::FerryAndWeaving | Self::Newest => &[],
        }
    }

    /// The InstallPlans that are to be approved, one a step: namespace and CSVs.
    pub(crate) fn approvals(self) -> Vec<(&'static str, Vec<&'static str>)> {
        let ferry = ["ferry-operator.v2.1.0", "ferry-operator.v2.2.0", "ferry-operator.v2.3.0"]
            .map(|csv| ("ferry-system", vec![csv]));
        let weaving = ("weaving", vec!["loom-operator.v3.2.0", "spindle-operator.v5.1.0"]);
        match self {
            Self::Ferry => ferry.to_vec(),
            Self::Weaving => vec![weaving],
            Self::FerryAndWeaving => [&ferry[..], &[weaving]].concat(),
            Self::Newest => vec![],
            Self::BrokenKiln => vec![("kiln-system", vec!["kiln-operator.v1.0.0"])],
        }
    }

    /// The CSVs that upgrading makes.
    pub(crate) fn made(self) -> Vec<&'static str> {
        // One that is refused is there before what it needs is.
        let mut made: Vec<_> = self.approvals().into_iter().flat_map(|(_, csvs)| csvs).collect();
        made.sort_unstable();
        made
    }
}

/// `count` clusters in waves of `wave_size`.
pub(crate) fn fleet(contents: &[Content], wave_size: usize) -> Vec<Blueprint> {
    let blueprint = |(index, content): (usize, &Content)| Blueprint {
        name: format!("prod-{}", index + 1),
        wave: format!("wave-{}", index / wave_size + 1),
        content: *content,
        seed: index as u64,
    };
    contents.iter().enumerate().map(blueprint).collect()
}
