//! `cargo xtask tools`: the real programs that some tests talk to.
//!
//! kubectl and opm are built from their module files with Go, once for each state of those files,
//! into `~/.cache/wavelift/tools/<hash>`. Chromium, an image registry and the tools that put images
//! together come from the distribution. What cannot be had is named, and the tests that need it leave
//! it out.

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

/// What keeps container libraries from asking for C libraries that nobody here needs.
const OPM_TAGS: &str =
    "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper";

/// A program that is built from the module files of a server.
struct GoProgram {
    name: &'static str,
    /// The folder of its module files.
    module: &'static str,
    package: &'static str,
    tags: &'static str,
    ldflags: &'static str,
}

const GO_PROGRAMS: [GoProgram; 2] = [
    GoProgram {
        name: "kubectl",
        module: "kubernetes",
        package: "k8s.io/kubernetes/cmd/kubectl",
        tags: "",
        ldflags: KUBECTL_LDFLAGS,
    },
    // OLM's own tool: it serves a catalog as a CatalogSource's pod does.
    GoProgram {
        name: "opm",
        module: "olm",
        package: "github.com/operator-framework/operator-registry/cmd/opm",
        tags: OPM_TAGS,
        ldflags: "-s -w",
    },
];

/// Programs that come from the distribution: any of these names will do, and the package that has it.
const DEBIAN_PROGRAMS: [(&[&str], &str); 4] = [
    (&["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"], "chromium"),
    (&["docker-registry"], "docker-registry"),
    (&["skopeo"], "skopeo"),
    (&["umoci"], "umoci"),
];

pub(crate) fn run() -> Result<()> {
    for program in &GO_PROGRAMS {
        program.build()?;
    }
    debian()
}

impl GoProgram {
    fn build(&self) -> Result<()> {
        let name = self.name;
        let Some(module) = module_dir(self.module) else {
            say(&format!("{name}: no module files (set WAVELIFT_SHARED); one on the path will do"));
            return Ok(());
        };
        let target = cache_dir(&module)?.join(name);
        if target.is_file() {
            say(&format!("{name}: {}", target.display()));
            return Ok(());
        }
        if !is_on_path("go") {
            say(&format!("{name}: cannot be built without Go; one on the path will do"));
            return Ok(());
        }
        // Built under another name and renamed: a build that is cut off leaves nothing that looks
        // whole.
        let partial = target.with_extension(format!("partial-{}", std::process::id()));
        shell::run(
            Command::new("go")
                .args([
                    "build",
                    "-mod=readonly",
                    "-tags",
                    self.tags,
                    "-ldflags",
                    self.ldflags,
                    "-o",
                ])
                .arg(&partial)
                .arg(self.package)
                .current_dir(&module)
                .env("CGO_ENABLED", "0"),
        )?;
        fs::rename(&partial, &target)
            .with_context(|| format!("failed to move {name} into the cache"))?;
        say(&format!("{name}: {}", target.display()));
        Ok(())
    }
}

/// Installs what is missing, all at once.
fn debian() -> Result<()> {
    let mut missing = Vec::new();
    for (names, package) in DEBIAN_PROGRAMS {
        match names.iter().find(|name| is_on_path(name)) {
            Some(name) => say(&format!("{package}: {name}")),
            None => missing.push(package),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    if !is_on_path("apt-get") || !is_root() {
        let missing = missing.join(", ");
        say(&format!("{missing}: not found; install with your distribution's package manager"));
        return Ok(());
    }
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        shell::run(&mut command)
    };
    apt(&["update", "-qq"])?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(missing);
    apt(&install)
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
