//! `wavelift preview`: of a campaign, of bundles, or of a way through catalogs.

use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs};

use super::{ChangeArgs, offline::Olm};

const EXAMPLES: &str = "Examples:
  wavelift preview logging-6-2                    what a campaign changes, on all its clusters
  wavelift preview --bundle ./6.1.4 --bundle ./6.2.3 -o html --out change.html
  wavelift preview --bundle ./6.1.4 --bundle docker://registry.example.com/logging@sha256:...
  wavelift preview --catalog ./catalog --package logging --from 6.0.9 --to 6.2.3";

/// What is asked for with no cluster.
pub(crate) const OFFLINE: &str = "offline";

/// `wavelift preview`
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new(OFFLINE).args(["bundles", "catalogs"])
)]
pub struct PreviewArgs {
    /// Name of the FleetUpgrade
    #[arg(
        required_unless_present_any = ["filename", OFFLINE],
        conflicts_with_all = ["filename", OFFLINE]
    )]
    pub(crate) name: Option<String>,
    /// File with a FleetUpgrade, which is made or changed first (- for standard input)
    #[arg(short, long, value_name = "FILE", conflicts_with = OFFLINE)]
    pub(crate) filename: Option<PathBuf>,
    /// One group of clusters that see the same, whole: its number in the list, or its id
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["cluster", OFFLINE])]
    pub(crate) group: Option<String>,
    /// The group of this cluster, whole
    #[arg(long, value_name = "NAME", conflicts_with = OFFLINE)]
    pub(crate) cluster: Option<String>,
    /// Write the answer to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Seconds to wait for the answer before exit code 6
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub(crate) timeout: u64,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    #[command(flatten)]
    pub(crate) files: FilesArgs,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
}

/// A preview of files, which asks no cluster.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Without a cluster")]
pub struct FilesArgs {
    /// Bundle directory, or bundle image as docker://NAME; several, in the order of the path, the
    /// first as installed
    #[arg(long = "bundle", value_name = "DIR|IMAGE")]
    pub(crate) bundles: Vec<String>,
    /// Directory or file of a File-Based Catalog, whose path from --from is shown; several are one
    /// catalog
    #[arg(long = "catalog", value_name = "PATH", requires_all = ["package", "from"])]
    pub(crate) catalogs: Vec<PathBuf>,
    /// The package, with --catalog
    #[arg(long, value_name = "NAME", requires = "catalogs")]
    pub(crate) package: Option<String>,
    /// What is installed: a CSV's name or a version
    #[arg(long, value_name = "CSV|VERSION", requires = "catalogs")]
    pub(crate) from: Option<String>,
    /// Where to: a version, or a range such as ">=6.1.0 <6.3.0"; without it, as far as OLM goes
    #[arg(long, value_name = "VERSION|RANGE", requires = "catalogs")]
    pub(crate) to: Option<String>,
    /// The channel of the Subscription; without it, the package's default channel
    #[arg(long, value_name = "NAME", requires = "catalogs")]
    pub(crate) channel: Option<String>,
    /// Which OLM takes it there
    #[arg(long, value_enum, default_value = "v0", value_name = "VERSION")]
    pub(crate) olm: Olm,
    /// Get manifests that the catalog does not carry from the bundles' images
    #[arg(long, requires = "catalogs")]
    pub(crate) fetch_images: bool,
    /// Everything, hop by hop too
    #[arg(long, requires = OFFLINE)]
    pub(crate) all: bool,
}

/// How bundle images are fetched.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Bundle images")]
pub struct ImageArgs {
    /// Mirror rules, as the cluster has them: ImageDigestMirrorSets, ImageTagMirrorSets,
    /// ImageContentSourcePolicies, YAML or JSON
    #[arg(long, value_name = "FILE", requires = OFFLINE)]
    pub(crate) image_mirrors: Option<PathBuf>,
    /// Pull secret, the content of .dockerconfigjson
    #[arg(long, value_name = "FILE", requires = OFFLINE)]
    pub(crate) pull_secret: Option<PathBuf>,
    /// Authorities that signed a registry's certificate, PEM; beside those the system trusts
    #[arg(long, value_name = "FILE", requires = OFFLINE)]
    pub(crate) image_ca: Option<PathBuf>,
    /// Registry without TLS, as HOST or HOST:PORT; may be given several times
    #[arg(long, value_name = "HOST", requires = OFFLINE)]
    pub(crate) image_plaintext: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::Args;

    fn is_taken(words: &str) -> bool {
        let words = std::iter::once("wavelift").chain(words.split(' '));
        Args::try_parse_from(words).is_ok()
    }

    #[test]
    fn a_preview_is_of_a_campaign_or_of_bundles_or_of_a_catalog() {
        for good in [
            "preview demo",
            "preview -f demo.yaml",
            "preview demo --group 1 --out f",
            "preview --bundle a --bundle docker://b --all --pull-secret s --image-plaintext h:1",
            "preview --catalog c --package p --from 1.0.0",
            "preview --catalog c --catalog d --package p --from 1.0.0 --to 2 --channel x \
             --fetch-images --image-ca f --image-mirrors m --olm v1",
        ] {
            assert!(is_taken(good), "{good}");
        }
        for bad in [
            "preview",
            "preview demo -f demo.yaml",
            "preview demo --bundle a",
            "preview -f demo.yaml --catalog c --package p --from 1",
            "preview --bundle a --catalog c --package p --from 1",
            "preview --catalog c --package p",
            "preview --catalog c --from 1",
            "preview demo --from 1",
            "preview --bundle a --to 1",
            "preview --bundle a --cluster c",
            "preview demo --pull-secret s",
            "preview demo --all",
            "preview --bundle a --fetch-images",
        ] {
            assert!(!is_taken(bad), "{bad}");
        }
    }
}
