//! `cargo xtask bench`: numbers, not verdicts. What they mean is in `docs/performance.md`.

use anyhow::Result;

use crate::shell::{self, cargo, root, say};

const BENCHES: &str = "tests/benches";

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !root().join(BENCHES).is_dir() {
        say("no benches yet");
        return Ok(());
    }
    let mut command = cargo(&["bench", "--package", "wavelift-tests", "--benches", "--"]);
    shell::run(command.args(args))
}
