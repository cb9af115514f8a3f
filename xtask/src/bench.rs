//! `cargo xtask bench`: numbers, not verdicts. What they mean is in `docs/performance.md`.

use anyhow::Result;

use crate::shell::{self, cargo};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut command = cargo(&["bench", "--workspace", "--benches", "--"]);
    shell::run(command.args(args))
}
