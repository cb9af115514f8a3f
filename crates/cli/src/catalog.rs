//! `wavelift catalog`: commands on catalogs as files. They ask no cluster.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use crate::{exit::Exit, printer::Printer};

mod validate;

/// `wavelift catalog`
#[derive(Debug, Clone, ClapArgs)]
pub struct CatalogArgs {
    #[command(subcommand)]
    pub(crate) command: CatalogCommand,
}

/// What to do with catalogs.
#[derive(Debug, Clone, Subcommand)]
pub enum CatalogCommand {
    /// List all that OLM's own tools would refuse in catalogs
    Validate(ValidateArgs),
}

/// `wavelift catalog validate`
#[derive(Debug, Clone, ClapArgs)]
pub struct ValidateArgs {
    /// Directories or files of FBC; each is one catalog
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

pub(crate) fn run(what: &CatalogArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match &what.command {
        CatalogCommand::Validate(what) => validate::run(what, printer),
    }
}
