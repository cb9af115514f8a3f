//! `cargo xtask tools`: the real programs that some tests talk to.
//!
//! kubectl is built from its module files with Go, once for each state of those files, into
//! `~/.cache/wavelift/tools/<hash>`. Chromium comes from the distribution. What cannot be had is
//! named, and the tests that need it leave it out.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::shell::{self, is_on_path, root, say};

/// The release whose module files are in the shared folder. Without these flags the program says
/// that it is version 0.0.0.
const KUBECTL_LDFLAGS: &str = "-s -w \
    -X k8s.io/component-base/version.gitVersion=v1.36.3 \
    -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=36";

pub(crate) fn run() -> Result<()> {
    kubectl()?;
    chromium()
}

fn kubectl() -> Result<()> {
    let Some(module) = module_dir("kubernetes") else {
        say("kubectl: no module files (set WAVELIFT_SHARED); one on the path will do");
        return Ok(());
    };
    let target = cache_dir(&module)?.join("kubectl");
    if target.is_file() {
        say(&format!("kubectl: {}", target.display()));
        return Ok(());
    }
    if !is_on_path("go") {
        say("kubectl: cannot be built without Go; one on the path will do");
        return Ok(());
    }
    // Built under another name and renamed: a build that is cut off leaves nothing that looks whole.
    let partial = target.with_extension(format!("partial-{}", std::process::id()));
    shell::run(
        Command::new("go")
            .args(["build", "-mod=readonly", "-ldflags", KUBECTL_LDFLAGS, "-o"])
            .arg(&partial)
            .arg("k8s.io/kubernetes/cmd/kubectl")
            .current_dir(&module)
            .env("CGO_ENABLED", "0"),
    )?;
    fs::rename(&partial, &target).context("failed to move kubectl into the cache")?;
    say(&format!("kubectl: {}", target.display()));
    Ok(())
}

fn chromium() -> Result<()> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    if let Some(name) = names.into_iter().find(|name| is_on_path(name)) {
        say(&format!("chromium: {name}"));
        return Ok(());
    }
    if !is_on_path("apt-get") || !is_root() {
        say("chromium: not found; install it with your distribution's package manager");
        return Ok(());
    }
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        shell::run(&mut command)
    };
    apt(&["update", "-qq"])?;
    apt(&["install", "-y", "-qq", "--no-install-recommends", "chromium"])
}

/// The module files of a server or tool, in the shared folder.
fn module_dir(name: &str) -> Option<PathBuf> {
    let shared = match std::env::var_os("WAVELIFT_SHARED") {
        Some(dir) => PathBuf::from(dir),
        None => root().parent()?.join("shared"),
    };
    let dir = shared.join("servers").join(name);
    dir.join("go.mod").is_file().then_some(dir)
}

/// A folder for what is built from `module`: another state of its files, another folder.
fn cache_dir(module: &Path) -> Result<PathBuf> {
    let mut hash = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        let content = fs::read(module.join(file))
            .with_context(|| format!("failed to read {}", module.join(file).display()))?;
        hash.update(content);
    }
    let tools = match std::env::var_os("WAVELIFT_TOOLS") {
        Some(dir) => PathBuf::from(dir),
        None => std::env::home_dir().context("no home folder")?.join(".cache/wavelift/tools"),
    };
    let digest = hex::encode(hash.finalize());
    let dir = tools.join(digest.get(..16).unwrap_or(&digest));
    fs::create_dir_all(&dir).with_context(|| format!("failed to make {}", dir.display()))?;
    Ok(dir)
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
