//! The program `wavelift` itself, built once a test run so that no stale one is tested.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::OnceLock,
};

use super::soon;
use crate::harness::binaries;

/// What a program said and how it ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    /// Its output, which must be all that it had to say.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// Its complaint, which must come with `code` and no output.
    #[track_caller]
    pub(crate) fn bad(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        self.err
    }

    /// Its output as JSON: one document and nothing else.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a program to its end, with nothing to read.
pub(crate) async fn answer(command: &mut tokio::process::Command) -> Answer {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let what = format!("{:?}", command.as_std());
    let output = soon(&what, command.output()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap_or_else(|| panic!("{what}: {}", output.status));
    Answer { code, out: text(output.stdout), err: text(output.stderr) }
}

/// Where `wavelift` is, in the profile that this test was built with.
pub(crate) fn wavelift() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> PathBuf {
    let program = binaries::build(&["wavelift-cli"]).unwrap().join("wavelift");
    assert!(program.is_file(), "cargo built no {}", program.display());
    program
}
