//! What can be typed without a cluster: commands on catalogs and bundles in files.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

/// `wavelift catalog`
#[derive(Debug, Clone, ClapArgs)]
pub struct CatalogArgs {
    #[command(subcommand)]
    pub(crate) command: CatalogCommand,
}

/// What to do with a catalog.
#[derive(Debug, Clone, Subcommand)]
pub enum CatalogCommand {
    /// List what a catalog holds
    Show(ShowArgs),
    /// Draw the upgrade graph of a package
    Graph(GraphArgs),
    /// List all that OLM's own tools would refuse in catalogs
    Validate(ValidateArgs),
}

/// `wavelift catalog validate`
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Example (exit code 2 where something is wrong):\n  wavelift catalog validate ./catalog -o json"
)]
pub struct ValidateArgs {
    /// Directories or files of FBC; each is one catalog
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

/// `wavelift catalog show`
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  wavelift catalog show ./catalog\n  wavelift catalog show ./catalog logging -o yaml"
)]
pub struct ShowArgs {
    /// Directory or file of a File-Based Catalog
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// One package with its channels and bundles
    #[arg(value_name = "PACKAGE")]
    pub(crate) package: Option<String>,
}

/// `wavelift catalog graph`
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  wavelift catalog graph ./catalog logging --channel stable\n  wavelift catalog graph ./catalog logging --format svg > logging.svg"
)]
pub struct GraphArgs {
    /// Directory or file of a File-Based Catalog
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// The package; may be left out where the catalog has only one
    #[arg(value_name = "PACKAGE")]
    pub(crate) package: Option<String>,
    /// Only this channel
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,
    /// Form of the picture
    #[arg(short, long, value_enum, default_value = "tree", value_name = "AS")]
    pub(crate) format: Drawing,
}

/// Forms of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Drawing {
    /// Text
    Tree,
    /// Graphviz
    Dot,
    /// Mermaid, for Markdown
    Mermaid,
    /// An image
    Svg,
}

/// Which OLM answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Olm {
    /// The OLM of Subscriptions and InstallPlans
    V0,
    /// The OLM of ClusterExtensions
    V1,
}

/// `wavelift resolve`
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  echo '{\"namespace\":[{\"package\":\"logging\",\"channel\":\"stable\",\"installed\":\"logging.v6.1.4\",\"version\":\"6.1.4\"}]}' |\n    wavelift resolve --olm v0 --catalog ./catalog\n  wavelift resolve --olm v1 --catalog ./catalog -f questions.jsonl"
)]
pub struct ResolveArgs {
    /// Which OLM answers
    #[arg(long, value_enum, value_name = "VERSION")]
    pub(crate) olm: Olm,
    /// Directory or file of a File-Based Catalog; several are one catalog
    #[arg(long = "catalog", value_name = "PATH")]
    pub(crate) catalogs: Vec<PathBuf>,
    /// Questions, one JSON object a line (- for standard input)
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    pub(crate) filename: PathBuf,
}

/// `wavelift path`
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples (exit code 3 where there is no path):\n  wavelift path logging --catalog ./catalog --from 6.0.9 --to 6.2.3\n  wavelift path logging --catalog ./catalog --from logging.v6.0.9 --to '>=6.1.0 <6.3.0' -o json"
)]
pub struct PathArgs {
    /// The package
    pub(crate) package: String,
    /// Directory or file of a File-Based Catalog; several are one catalog
    #[arg(long = "catalog", required = true, value_name = "PATH")]
    pub(crate) catalogs: Vec<PathBuf>,
    /// What is installed: a CSV's name or a version
    #[arg(long, value_name = "CSV|VERSION")]
    pub(crate) from: String,
    /// Where to: a version, or a range such as ">=6.1.0 <6.3.0"; without it, as far as OLM goes
    #[arg(long, value_name = "VERSION|RANGE")]
    pub(crate) to: Option<String>,
    /// The channel of the Subscription; without it, the package's default channel
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,
    /// Which OLM takes it there
    #[arg(long, value_enum, default_value = "v0", value_name = "VERSION")]
    pub(crate) olm: Olm,
}

/// `wavelift diff`
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Example:\n  wavelift diff ./4.20 ./4.21 --installed logging@stable=logging.v6.1.4 --exit-code"
)]
pub struct DiffArgs {
    /// The catalog as it is: directory or file
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// The catalog as it will be
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// An installed operator, PACKAGE=CSV or PACKAGE@CHANNEL=CSV; may be given several times
    #[arg(long, value_name = "OPERATOR")]
    pub(crate) installed: Vec<String>,
    /// Installed operators, one JSON object a line: {"package","channel","installed","version"}
    #[arg(short, long, value_name = "FILE")]
    pub(crate) filename: Option<PathBuf>,
    /// Exit code 3 when an installed operator loses its way
    #[arg(long)]
    pub(crate) exit_code: bool,
}

/// `wavelift diff-crd`
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Example:\n  wavelift diff-crd ./6.1.4/manifests/lokistacks.yaml ./6.2.3/manifests/lokistacks.yaml -o json"
)]
pub struct DiffCrdArgs {
    /// The CustomResourceDefinition as it is, YAML or JSON
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// The CustomResourceDefinition as it will be
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
}
