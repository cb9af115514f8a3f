//! Programs that come from the distribution.

use std::process::Command;

use anyhow::Result;

use crate::shell::{self, is_on_path, say};

/// A package, and the names that its program may have; any of them will do.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) programs: &'static [&'static str],
    pub(crate) name: &'static str,
}

/// Installs what is missing, all at once; where that cannot be done, says what is missing.
pub(crate) fn install(packages: &[Package]) -> Result<()> {
    let mut missing = Vec::new();
    for package in packages {
        match package.programs.iter().find(|name| is_on_path(name)) {
            Some(program) => say(&format!("{}: {program}", package.name)),
            None => missing.push(package.name),
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

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
