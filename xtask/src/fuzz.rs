//! `cargo xtask fuzz`: every fuzz target for a short while.

use std::{
    fs,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use crate::shell::{self, root, say};

/// Where the targets, their seeds and what was found are.
const FOLDER: &str = "fuzz";

pub(crate) fn run(seconds: u32, only: &[String]) -> Result<()> {
    if !is_there("cargo", &["+nightly", "--version"]) || !is_there("cargo", &["fuzz", "--version"])
    {
        say(
            "left out: fuzzing; to run it: rustup toolchain install nightly && cargo install cargo-fuzz",
        );
        return Ok(());
    }
    for target in targets()? {
        if !only.is_empty() && !only.contains(&target) {
            continue;
        }
        // The first folder takes what is found to be of interest, the second is only read.
        let corpus = root().join(FOLDER).join("corpus").join(&target);
        fs::create_dir_all(&corpus).with_context(|| format!("can't make {}", corpus.display()))?;
        let seeds = root().join(FOLDER).join("seeds").join(&target);
        // Not the cargo that runs this: another toolchain is asked for by name.
        let mut command = Command::new("cargo");
        command
            .current_dir(root())
            .args(["+nightly", "fuzz", "run", "--fuzz-dir", FOLDER, &target])
            .args([&corpus, &seeds])
            .arg("--")
            .arg(format!("-max_total_time={seconds}"))
            .args(["-max_len=65536", "-timeout=10", "-rss_limit_mb=2048"])
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO");
        shell::run(&mut command)
            .with_context(|| format!("fuzz target {target} found something: see fuzz/artifacts"))?;
    }
    Ok(())
}

/// The names of the targets, sorted.
fn targets() -> Result<Vec<String>> {
    let folder = root().join(FOLDER).join("fuzz_targets");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("can't read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|name| name.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn is_there(program: &str, arguments: &[&str]) -> bool {
    let quiet = Command::new(program)
        .args(arguments)
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}
