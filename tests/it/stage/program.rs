//! The program `wavelift` itself, built once a test run so that no stale one is tested.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use super::soon;

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
    // target/<profile>/deps/<this test>
    let here = std::env::current_exe().unwrap();
    let dir = here.ancestors().nth(2).unwrap();
    let profile = dir.file_name().unwrap().to_str().unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--bins"])
        .args(["--profile", if profile == "debug" { "dev" } else { profile }])
        // This crate too: with it the dependencies have the features they were tested with.
        .args(["-p", "wavelift-tests", "-p", "wavelift-cli"])
        .arg("--target-dir")
        .arg(dir.parent().unwrap())
        .current_dir(wavelift_runtime::testing::workspace_root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let program = dir.join("wavelift");
    assert!(program.is_file(), "cargo built no {}", program.display());
    program
}
