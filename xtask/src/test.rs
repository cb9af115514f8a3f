//! `cargo xtask test`: every test, then what was left out and how to get it.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, ErrorKind},
    path::Path,
};

use anyhow::{Context as _, Result};

use crate::shell::{self, cargo, say};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let left_out = std::env::temp_dir().join(format!("left-out-{}.txt", std::process::id()));
    let mut command = cargo(&["test", "--workspace"]);
    let outcome = shell::run(command.args(args).env("WAVELIFT_LEFT_OUT", &left_out));
    let lines = take_lines(&left_out).context("failed to read what was left out")?;
    say("");
    for line in &lines {
        say(line);
    }
    say(
        "situations that take minutes on real servers are not among them: `cargo xtask test --long`",
    );
    match (&outcome, lines.len()) {
        (Err(_), _) => say("tests failed"),
        (Ok(()), 0) => say("all tests passed, nothing was left out"),
        (Ok(()), 1) => say("all tests that ran passed; 1 thing was left out (above)"),
        (Ok(()), n) => say(&format!("all tests that ran passed; {n} things were left out (above)")),
    }
    outcome
}

/// The distinct lines of the file, which is removed.
fn take_lines(file: &Path) -> io::Result<BTreeSet<String>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    fs::remove_file(file)?;
    Ok(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_left_out_is_told_once() {
        let file = std::env::temp_dir().join(format!("xtask-left-out-{}", std::process::id()));
        fs::write(&file, "left out: b\nleft out: a\nleft out: b\n").unwrap();
        let lines: Vec<_> = take_lines(&file).unwrap().into_iter().collect();
        assert_eq!(lines, ["left out: a", "left out: b"]);
        assert!(take_lines(&file).unwrap().is_empty(), "the file is gone, and that is fine");
    }
}
