//! `cargo xtask codegen`: files that are written by the code they describe.
//!
//! The generator is a test (`xtask/tests/generated`), so that `cargo test` notices a stale file
//! by itself, and so that nothing is compiled twice for it: it is built with the workspace's
//! features like every other test.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell::{self, cargo};

/// Writes what is stale.
pub(crate) fn write() -> Result<()> {
    shell::run(generator().env("WAVELIFT_GENERATE", "1"))
}

/// Fails if anything is stale.
pub(crate) fn check() -> Result<()> {
    shell::run(generator().env_remove("WAVELIFT_GENERATE"))
        .context("generated files are not current: run `cargo xtask codegen`")
}

fn generator() -> Command {
    cargo(&["test", "--workspace", "--quiet", "--test", "generated"])
}
