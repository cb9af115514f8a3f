//! Where the programs are, built once a test run so that no stale one is tested.

use std::{path::PathBuf, process::Command, sync::OnceLock};

use anyhow::{Context as _, Result, anyhow, ensure};

/// A folder with the programs, for a test that runs where nothing can be built.
const PROGRAMS: &str = "WAVELIFT_PROGRAMS";
/// The profile of what is shipped.
const SHIPPED: &str = "dist";

static BUILT: OnceLock<Result<Programs, String>> = OnceLock::new();

/// The programs under test.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    /// `wavelift-hub`.
    pub(crate) hub: PathBuf,
    /// `wavelift-agent`.
    pub(crate) agent: PathBuf,
}

/// The programs of the profile that this test was built with. The first call takes its time.
pub(crate) fn programs() -> Result<Programs> {
    let built = BUILT.get_or_init(|| find().map_err(|error| format!("{error:#}")));
    built.clone().map_err(|error| anyhow!(error))
}

fn find() -> Result<Programs> {
    let dir = match std::env::var_os(PROGRAMS) {
        Some(dir) => PathBuf::from(dir),
        None => build(&["wavelift-hub", "wavelift-agent"])?,
    };
    let programs = Programs { hub: dir.join("wavelift-hub"), agent: dir.join("wavelift-agent") };
    for path in [&programs.hub, &programs.agent] {
        ensure!(path.is_file(), "there is no {}", path.display());
    }
    Ok(programs)
}

/// Builds the programs of packages in the profile of this test; the folder that they are in then.
pub(crate) fn build(packages: &[&str]) -> Result<PathBuf> {
    let dir = profile_dir()?;
    let profile = dir.file_name().and_then(|name| name.to_str()).unwrap_or("debug");
    let profile = if profile == "debug" { "dev" } else { profile };
    // This crate too: with it the dependencies have the features they were tested with.
    cargo_build(profile, &[&["wavelift-tests"], packages].concat(), &[])?;
    Ok(dir)
}

/// Builds the agent as it is shipped: as one file that needs nothing of its image.
pub(crate) fn shipped_agent() -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    cargo_build(SHIPPED, &["wavelift-agent"], &["--target", &target])
        .with_context(|| format!("is the target there? `rustup target add {target}`"))?;
    let built = profile_dir()?.with_file_name(target).join(SHIPPED);
    Ok(built.join("wavelift-agent"))
}

/// `target/<profile>`, where this test is `target/<profile>/deps/<test>`.
fn profile_dir() -> Result<PathBuf> {
    let here = std::env::current_exe().context("where is this test?")?;
    Ok(here.ancestors().nth(2).context("a test lies two folders deep")?.to_path_buf())
}

fn cargo_build(profile: &str, packages: &[&str], more: &[&str]) -> Result<()> {
    let dir = profile_dir()?;
    let output = cargo()
        .args(["build", "--quiet", "--bins", "--profile", profile])
        .args(packages.iter().flat_map(|package| ["-p", package]))
        .args(more)
        .arg("--target-dir")
        .arg(dir.parent().context("a profile lies in the target folder")?)
        .current_dir(wavelift_runtime::testing::workspace_root())
        .output()
        .context("cannot run cargo")?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo cannot build the programs under test:\n{told}");
    Ok(())
}

/// The cargo that runs this test, without what it says of this crate: build scripts that look at
/// that would run again, and much be built twice.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let of_this_crate = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name.to_str().is_some_and(|name| of_this_crate.iter().any(|of| name.starts_with(of))) {
            command.env_remove(name);
        }
    }
    command
}
