//! `wavelift completion`

use clap::CommandFactory as _;

use crate::{
    args::{Args, CompletionArgs},
    exit::Exit,
    printer,
};

pub(super) fn print(what: &CompletionArgs) -> anyhow::Result<Exit> {
    let mut script = vec![];
    clap_complete::generate(what.shell, &mut Args::command(), "wavelift", &mut script);
    Ok(printer::lines(&[String::from_utf8(script)?]))
}
