//! `cargo xtask bench`: numbers, not verdicts. What they mean is in `docs/performance.md`.

use anyhow::Result;

use crate::shell::{self, cargo};

/// Tests that measure where they are asked to.
const MEASURED: &str = "numbers::";

/// The pure parts, or what needs whole programs and takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    Pure,
    Whole,
}

pub(crate) fn run(parts: Parts, args: &[String]) -> Result<()> {
    let mut command = match parts {
        Parts::Pure => cargo(&["bench", "--package", "wavelift-tests", "--benches", "--"]),
        Parts::Whole => {
            // One at a time: each wants the machine for itself.
            let mut command = cargo(&["test", "--release", "-p", "wavelift-tests", "--test", "it"]);
            command.args(["--", "--nocapture", "--test-threads", "1", MEASURED]);
            command.env("WAVELIFT_MEASURE", "1");
            command
        }
    };
    shell::run(command.args(args))
}
