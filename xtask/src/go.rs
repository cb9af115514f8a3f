//! Programs that are built with Go from the module files in `tests/servers`, once for each state of
//! those files, into `~/.cache/wavelift/tools/<hash>`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::shell::{self, is_on_path, root, say};

/// Where the module files are, one folder a module.
const MODULES: &str = "tests/servers";

/// What keeps container libraries from asking for C libraries that nobody here needs.
const CONTAINER_TAGS: &str =
    "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper";

/// The release of the module files. Without these flags a program says that it is version 0.0.0,
/// and OLM then installs nothing that needs a newer one.
const KUBERNETES_LDFLAGS: &str = "-s -w \
    -X k8s.io/component-base/version.gitVersion=v1.36.3 \
    -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=36";

/// A module of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Module {
    Kubernetes,
    OlmV0,
    Ocm,
}

/// A program of a module.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) module: Module,
    pub(crate) package: &'static str,
}

/// Files of a dependency that a server needs beside its program.
#[derive(Debug)]
pub(crate) struct Files {
    /// The folder that they get.
    pub(crate) name: &'static str,
    pub(crate) module: Module,
    /// The dependency that has them, and where.
    pub(crate) dependency: &'static str,
    pub(crate) folder: &'static str,
}

// === impl Module ===

impl Module {
    fn folder(self) -> PathBuf {
        let name = match self {
            Self::Kubernetes => "kubernetes",
            Self::OlmV0 => "olm",
            Self::Ocm => "ocm",
        };
        root().join(MODULES).join(name)
    }

    fn tags(self) -> &'static str {
        match self {
            Self::Kubernetes | Self::Ocm => "",
            Self::OlmV0 => CONTAINER_TAGS,
        }
    }

    fn ldflags(self) -> &'static str {
        match self {
            Self::Kubernetes => KUBERNETES_LDFLAGS,
            Self::OlmV0 | Self::Ocm => "-s -w",
        }
    }

    /// A folder for what is built from it: another state of its files, another folder.
    fn cache(self) -> Result<PathBuf> {
        let folder = self.folder();
        let mut hash = Sha256::new();
        for file in ["go.mod", "go.sum"] {
            let path = folder.join(file);
            let content =
                fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
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
}

/// Builds those that are not built yet. Without Go it says so and builds none.
pub(crate) fn build(programs: &[Program]) -> Result<()> {
    for program in programs {
        provide(program.module, program.name, |partial| program.build(partial))?;
    }
    Ok(())
}

/// Copies files of dependencies to where the programs are. Without Go it says so and copies none.
pub(crate) fn copy(all: &[Files]) -> Result<()> {
    for files in all {
        provide(files.module, files.name, |partial| files.copy(partial))?;
    }
    Ok(())
}

/// Has `make` put something into the cache that is not there yet.
fn provide(module: Module, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let target = module.cache()?.join(name);
    if !target.exists() {
        if !is_on_path("go") {
            say(&format!("{name}: cannot be had without Go"));
            return Ok(());
        }
        // Made under another name and renamed: what is cut off leaves nothing that looks whole.
        let partial = target.with_extension(format!("partial-{}", std::process::id()));
        let start = Instant::now();
        make(&partial)?;
        fs::rename(&partial, &target)
            .with_context(|| format!("failed to move {name} into the cache"))?;
        say(&format!("{name}: made in {} s", start.elapsed().as_secs()));
    }
    say(&format!("{name}: {}", target.display()));
    Ok(())
}

// === impl Program ===

impl Program {
    fn build(&self, target: &Path) -> Result<()> {
        say(&format!("{}: being built, which takes a few minutes", self.name));
        shell::run(
            Command::new("go")
                .args(["build", "-mod=readonly", "-tags", self.module.tags()])
                .args(["-ldflags", self.module.ldflags(), "-o"])
                .arg(target)
                .arg(self.package)
                .current_dir(self.module.folder())
                .env("CGO_ENABLED", "0"),
        )
    }
}

// === impl Files ===

impl Files {
    fn copy(&self, target: &Path) -> Result<()> {
        // Where no program of the module was built, nothing of it has been fetched yet.
        shell::run(
            Command::new("go")
                .args(["mod", "download", self.dependency])
                .current_dir(self.module.folder()),
        )?;
        let found = Command::new("go")
            .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", self.dependency])
            .current_dir(self.module.folder())
            .output()
            .with_context(|| format!("failed to ask for {}", self.dependency))?;
        let told = String::from_utf8_lossy(&found.stderr);
        ensure!(found.status.success(), "Go does not find {}: {}", self.dependency, told.trim());
        let folder = String::from_utf8(found.stdout).context("Go did not answer in UTF-8")?;
        let folder = Path::new(folder.trim()).join(self.folder);
        fs::create_dir_all(target)
            .with_context(|| format!("failed to make {}", target.display()))?;
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("failed to read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let is_yaml = path.extension().is_some_and(|extension| extension == "yaml");
            if let (true, Some(name)) = (is_yaml, path.file_name()) {
                let content = fs::read(&path)?;
                // Written, not copied: what Go keeps is read-only.
                fs::write(target.join(name), content)?;
            }
        }
        Ok(())
    }
}
