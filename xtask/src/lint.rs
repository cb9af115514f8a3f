//! `cargo xtask lint`: everything a reviewer should not have to look for.

use anyhow::Result;

use crate::{
    codegen,
    shell::{self, cargo},
};

pub(crate) fn run() -> Result<()> {
    shell::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    shell::run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    shell::run(
        cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    codegen::check()
}
