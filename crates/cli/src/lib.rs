//! The command line: what a person types to see, launch and steer campaigns.
//!
//! `args` holds what was typed, `commands` has one function a command, `render` turns views
//! into text and nothing else, and `printer` is the only place that writes. Spec changes go to the
//! Kubernetes API with the user's kubeconfig; live data comes through `live::Live`.

pub mod args;
pub mod commands;
pub mod exit;
mod fault;
mod invoked;
mod kubernetes;
mod live;
mod offline;
mod picture;
mod printer;
mod render;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::{args::Args, exit::Exit, printer::Printer};

/// Parses what was typed, runs it and gives the process' exit code.
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let invoked = invoked::Invoked::from_program(words.first().map(OsString::as_os_str));
    if invoked.is_completion() {
        return invoked::complete(&words).into();
    }
    let command = Args::command().bin_name(invoked.usage());
    let args = match command.try_get_matches_from(words).and_then(|m| Args::from_arg_matches(&m)) {
        Ok(args) => args,
        Err(error) => return printer::usage(&error).into(),
    };
    run(args, invoked).into()
}

fn run(args: Args, invoked: invoked::Invoked) -> Exit {
    let printer = Printer::new(&args.output, invoked.usage());
    wavelift_runtime::tls::install_crypto();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            printer.error(&anyhow::Error::new(error).context("cannot start"));
            return Exit::Error;
        }
    };
    match runtime.block_on(commands::run(args, &printer)) {
        Ok(exit) => exit,
        Err(error) => {
            printer.error(&error);
            fault::exit(&error)
        }
    }
}
