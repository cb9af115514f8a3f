//! Running other programs, and saying so.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Prints a line for the person who started the chore.
pub(crate) fn say(line: &str) {
    // Nobody is left to be told when standard error is closed.
    drop(writeln!(io::stderr(), "{line}"));
}

/// The cargo that runs this, in the workspace's root, without what it says of this crate: build
/// scripts that look at that would run again, and much be built twice.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    for (name, _) in std::env::vars_os() {
        let of_this_crate = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name.to_str().is_some_and(|name| of_this_crate.iter().any(|of| name.starts_with(of))) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the command to its end; a failure is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    say(&format!("$ {shown}"));
    let status = command.status().with_context(|| format!("failed to start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Whether a program of this name is on the path.
pub(crate) fn is_on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// The command as one would type it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let args = command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        if arg.contains(' ') { format!("'{arg}'") } else { arg.into_owned() }
    });
    std::iter::once(program.into_owned()).chain(args).collect::<Vec<_>>().join(" ")
}
