//! The commands that need no cluster, through the program itself: what a script gets.

mod documents;
mod edges;
mod images;
mod schema;
mod vectors;

use std::{
    fs::File,
    io::{Seek as _, Write as _},
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::stage::wavelift;

/// What the program said and how it ended.
#[derive(Debug)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    /// All its output, which came with exit code 0 and no talk.
    #[track_caller]
    fn good(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        self.out
    }

    /// Its complaint, which came with `code` and no output.
    #[track_caller]
    fn bad(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        self.err
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// One JSON document a line.
    #[track_caller]
    fn json_lines(&self) -> Vec<Value> {
        let read = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(read).collect()
    }
}

/// A command as a person's shell starts it, in `dir`, whose home is there too.
fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(wavelift());
    command
        .args(args)
        .current_dir(dir)
        .env("HOME", dir)
        .env_remove("XDG_CACHE_HOME")
        .env_remove("KUBECONFIG")
        .env_remove("WAVELIFT_URL")
        .stdin(Stdio::null());
    command
}

/// Runs it with nothing to read.
fn run(dir: &Path, args: &[&str]) -> Said {
    said(command(dir, args).output().unwrap())
}

/// Runs it with this on its standard input.
fn feed(dir: &Path, args: &[&str], input: &[u8]) -> Said {
    // A file, not a pipe: nobody has to write while the program answers.
    let mut file: File = tempfile::tempfile().unwrap();
    file.write_all(input).unwrap();
    file.rewind().unwrap();
    said(command(dir, args).stdin(file).output().unwrap())
}

fn said(output: Output) -> Said {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap_or_else(|| panic!("it ended with {}", output.status));
    Said { code, out: text(output.stdout), err: text(output.stderr) }
}

/// Files below a folder: a path and its content.
fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}
