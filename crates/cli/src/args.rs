//! What can be typed.

pub mod offline;
pub mod preview;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use self::{
    offline::{CatalogArgs, DiffArgs, DiffCrdArgs, PathArgs, ResolveArgs},
    preview::PreviewArgs,
};

/// Upgrades OLM operators across a fleet of clusters.
#[derive(Debug, Parser)]
#[command(name = "wavelift", version, propagate_version = true, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How the hub is reached.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Access")]
pub struct AccessArgs {
    /// Namespace of the FleetUpgrade
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Path of the kubeconfig file
    #[arg(long, global = true, env = "KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig file
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// User to act as
    #[arg(long = "as", global = true, value_name = "USER")]
    pub(crate) as_user: Option<String>,
    /// Group to act as; may be given several times
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub(crate) as_group: Vec<String>,
    /// Address of the hub for live data, e.g. http://127.0.0.1:8080; without it, what the objects in
    /// the cluster say is shown
    #[arg(long, global = true, env = "WAVELIFT_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Seconds after which a single request is given up
    #[arg(long, global = true, default_value_t = 30, value_name = "SECONDS")]
    pub(crate) request_timeout: u64,
}

/// How the answer looks.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Form of the answer
    #[arg(short, long, global = true, value_enum, value_name = "FORM")]
    pub(crate) output: Option<Form>,
    /// Leave out the headers of tables
    #[arg(long, global = true)]
    pub(crate) no_headers: bool,
    /// No colour, whatever the terminal can do (NO_COLOR does the same)
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

/// Forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The shapes of the hub's JSON API
    Json,
    /// The same as YAML
    Yaml,
    /// More columns
    Wide,
    /// Only names
    Name,
    /// A document for tickets (preview)
    Markdown,
    /// A document that stands for itself, to attach to a change request (preview)
    Html,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show which paths are taken and all that changes on them: of a campaign, of bundles, of a catalog
    Preview(Box<PreviewArgs>),
    /// Run the checks on every cluster and show what stands in the way
    Preflight(WaitArgs),
    /// Consent to the plan as previewed and begin
    Launch(LaunchArgs),
    /// Show where campaigns stand
    Status(StatusArgs),
    /// List a campaign's clusters
    Clusters(ClustersArgs),
    /// Start no further cluster; running ones go on
    Pause(NameArgs),
    /// Go on after pause or freeze
    Resume(NameArgs),
    /// Start no further cluster and stop running ones at the next safe point
    Freeze(NameArgs),
    /// End a campaign; running clusters stop at the next safe point
    Cancel(ConfirmArgs),
    /// Try clusters again after their failure
    Retry(ActionArgs),
    /// Leave clusters out
    Skip(ActionArgs),
    /// Show a campaign over simulated clusters, with a real hub and real agents
    Demo(DemoArgs),
    /// Look into catalogs in files: what they hold, what is wrong with them, how graphs look
    Catalog(CatalogArgs),
    /// Show by which hops OLM takes an operator to a version, from catalogs in files
    Path(PathArgs),
    /// Answer what OLM does next, one JSON question a line, from catalogs in files
    Resolve(ResolveArgs),
    /// Show what a new catalog changes, for installed operators and as a whole
    Diff(DiffArgs),
    /// Show what changes between two CustomResourceDefinitions, and what OLM refuses of it
    DiffCrd(DiffCrdArgs),
    /// Print a completion script
    Completion(CompletionArgs),
}

/// One campaign.
#[derive(Debug, Clone, ClapArgs)]
pub struct NameArgs {
    /// Name of the FleetUpgrade
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// How a change is made.
#[derive(Debug, Clone, ClapArgs)]
pub struct ChangeArgs {
    /// Only say what would be done: client asks nobody, server lets the API server check it
    #[arg(long, value_enum, default_value = "none", value_name = "HOW")]
    pub(crate) dry_run: DryRun,
    /// Name under which the change is recorded
    #[arg(long, default_value = "wavelift-cli", value_name = "NAME")]
    pub(crate) field_manager: String,
}

/// Whether a change is made for real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Make it
    None,
    /// Ask nobody
    Client,
    /// Let the API server check it
    Server,
}

/// How long to wait.
#[derive(Debug, Clone, ClapArgs)]
pub struct WaitArgs {
    /// Name of the FleetUpgrade
    pub(crate) name: String,
    /// Seconds to wait for the answer before exit code 6
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub(crate) timeout: u64,
    /// Warnings alone give exit code 4
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) fail_on: Option<FailOn>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// What else than blocked gives an exit code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Warnings
    Warn,
}

/// `wavelift launch`
#[derive(Debug, Clone, ClapArgs)]
pub struct LaunchArgs {
    /// Name of the FleetUpgrade
    pub(crate) name: String,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `wavelift cancel`
#[derive(Debug, Clone, ClapArgs)]
pub struct ConfirmArgs {
    /// Name of the FleetUpgrade
    pub(crate) name: String,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `wavelift status`
#[derive(Debug, Clone, ClapArgs)]
pub struct StatusArgs {
    /// Name of the FleetUpgrade; without it, all are listed
    pub(crate) name: Option<String>,
    /// All namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// The upgrades of this cluster itself, as its agent keeps them; NAME is then a ClusterUpgrade's
    /// and the namespace, if not given, wavelift-agent
    #[arg(long, conflicts_with_all = ["all_namespaces", "cluster", "fail_on", "details"])]
    pub(crate) local: bool,
    /// One cluster with its steps and checks
    #[arg(short, long, value_name = "NAME", requires = "name")]
    pub(crate) cluster: Option<String>,
    /// Go on showing it until the campaign ends
    #[arg(short, long, requires = "name")]
    pub(crate) watch: bool,
    /// Seconds to watch before exit code 6
    #[arg(long, value_name = "SECONDS", requires = "watch")]
    pub(crate) timeout: Option<u64>,
    /// Tolerated failures give exit code 4
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) fail_on: Option<FailOn>,
    /// Show more of it
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) details: Option<Details>,
}

/// What is shown in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Details {
    /// Findings with what to do next
    Health,
    /// What happened so far
    History,
    /// Both
    All,
}

/// `wavelift clusters`
#[derive(Debug, Clone, ClapArgs)]
pub struct ClustersArgs {
    /// Name of the FleetUpgrade
    pub(crate) name: String,
    /// Only clusters in these states, e.g. Failed,Stalled
    #[arg(long, value_name = "STATES")]
    pub(crate) state: Option<String>,
    /// Only clusters of these waves
    #[arg(long, value_name = "WAVES")]
    pub(crate) wave: Option<String>,
    /// Only clusters whose checks have these outcomes, e.g. Fail,Unknown
    #[arg(long, value_name = "OUTCOMES")]
    pub(crate) check: Option<String>,
    /// Only clusters whose name or message holds this text
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) query: Option<String>,
    /// Order: name, state, percent or wave
    #[arg(long, value_name = "FIELD")]
    pub(crate) sort: Option<String>,
}

/// `wavelift retry` and `wavelift skip`
#[derive(Debug, Clone, ClapArgs)]
pub struct ActionArgs {
    /// Name of the FleetUpgrade
    pub(crate) name: String,
    /// The clusters
    #[arg(short, long = "cluster", required = true, value_name = "NAME", num_args = 1..)]
    pub(crate) clusters: Vec<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `wavelift completion`
#[derive(Debug, Clone, ClapArgs)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// `wavelift demo`
#[derive(Debug, Clone, ClapArgs)]
pub struct DemoArgs {
    /// How many clusters
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) clusters: u16,
    /// What the fleet and its faults are made from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Times the default pace, at which thirty clusters take about two minutes
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    pub(crate) speed: f64,
    /// End with the campaign; exit code 3 if it was halted
    #[arg(long, conflicts_with = "hold")]
    pub(crate) once: bool,
    /// Keep the API and the page up when the campaign has ended (so does a terminal)
    #[arg(long)]
    pub(crate) hold: bool,
    /// A real catalog (directory or file of FBC) instead of the demo's own
    #[arg(long, value_name = "PATH")]
    pub(crate) catalog: Option<PathBuf>,
    /// Which packages of the catalog; without it, all of them
    #[arg(long = "package", value_name = "NAME", num_args = 1.., requires = "catalog")]
    pub(crate) packages: Vec<String>,
    /// Where the page and the API listen; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub(crate) listen: std::net::SocketAddr,
    /// Only print the fleet and the faults that the seed makes
    #[arg(long, conflicts_with_all = ["catalog", "hold", "once"])]
    pub(crate) list_faults: bool,
}

/// A pace that a machine can keep.
fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.01..=50.0).contains(&speed) {
        Ok(speed)
    } else {
        Err("it must be from 0.01 to 50".to_owned())
    }
}
