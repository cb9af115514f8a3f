//! The project's chores: `cargo xtask help` lists them. CI runs the same commands.

mod bench;
mod codegen;
mod debian;
mod fidelity;
mod fuzz;
mod go;
mod lint;
mod servers;
mod shell;
mod test;
mod tools;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Chores of the Wavelift workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run every test, and say what was left out and how to get it
    Test {
        /// Run every situation on real servers instead, those too that take minutes (about an hour),
        /// or those whose name contains the first of ARGS, and write docs/fidelity.md
        #[arg(long)]
        long: bool,
        /// Passed on to `cargo test`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Check formatting, lints, documentation and generated files
    Lint,
    /// Write the generated files: custom resource definitions, API reference
    Codegen {
        /// Only say whether they are current
        #[arg(long)]
        check: bool,
    },
    /// Build or install the programs that some tests need: kubectl, opm, Chromium, an image registry
    Tools,
    /// Build the real servers that some tests run: API server, OLM v0, etcd (about ten minutes, once)
    Servers,
    /// Run every fuzz target for a short while
    Fuzz {
        /// How long each of them runs
        #[arg(long, default_value_t = 30, value_name = "SECONDS")]
        seconds: u32,
        /// Only these targets
        targets: Vec<String>,
    },
    /// Run the benches and print their numbers
    Bench {
        /// Instead: what takes whole programs and real servers, on an idle machine, for a quarter of an
        /// hour after a release build
        #[arg(long)]
        whole: bool,
        /// Passed on to the benches
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The causes on one line and no backtrace: what failed is another program.
            shell::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Test { long: true, args } => fidelity::run(args.first().map(String::as_str)),
        Task::Test { long: false, args } => test::run(&args),
        Task::Lint => lint::run(),
        Task::Codegen { check: true } => codegen::check(),
        Task::Codegen { check: false } => codegen::write(),
        Task::Tools => tools::run(),
        Task::Servers => servers::run(),
        Task::Bench { whole: true, args } => bench::run(bench::Parts::Whole, &args),
        Task::Bench { whole: false, args } => bench::run(bench::Parts::Pure, &args),
        Task::Fuzz { seconds, targets } => fuzz::run(seconds, &targets),
    }
}
