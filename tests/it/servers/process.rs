//! A real server as a child process.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use crate::harness::{child, wait};

/// Starts a program and ends it when standard input does. The input is a
/// pipe of which nobody else holds the other end: so the program ends with this process however
/// that ends.
const KEEPER: &str = r#"
exec 3<&0
"$@" </dev/null >>"$LOG" 2>&1 &
program=$!
(trap '' INT TERM; cat <&3 >/dev/null; kill -KILL $program 2>/dev/null) &
wait $program
"#;

/// What is started.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    program: PathBuf,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    log: PathBuf,
}

/// A running server; it is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    recipe: Recipe,
    keeper: std::process::Child,
    /// Closed, it ends the program.
    life: Option<ChildStdin>,
}

// === impl Recipe ===

impl Recipe {
    pub(crate) fn new(program: &Path, log: &Path) -> Self {
        Self { program: program.to_owned(), args: vec![], envs: vec![], log: log.to_owned() }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Starts it; that it is ready is another question.
    pub(crate) fn start(self) -> Result<Server> {
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&self.program)
            .args(&self.args)
            .env_remove("KUBECONFIG")
            .env("LOG", &self.log)
            .envs(self.envs.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let life = keeper.stdin.take();
        Ok(Server { recipe: self, keeper, life })
    }
}

// === impl Server ===

impl Server {
    /// SIGKILL; it is gone when this returns.
    pub(crate) fn kill(&mut self) {
        drop(self.life.take());
        // Fails only for one that is gone already.
        drop(self.keeper.wait());
    }

    /// Kills it and starts it as it was.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.kill();
        *self = self.recipe.clone().start()?;
        Ok(())
    }

    /// Waits until it says `line` in its log.
    pub(crate) async fn says(&mut self, line: &str) -> Result<()> {
        let what = format!("{} to say `{line}`", self.recipe.program.display());
        let said = wait::polled(&what, || {
            let log = fs::read_to_string(&self.recipe.log).unwrap_or_default();
            ensure!(!self.has_ended(), "it ended");
            Ok(log.contains(line).then_some(()))
        });
        let said = said.await;
        said.with_context(|| child::tail(&self.recipe.log))
    }

    /// Whether it ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.keeper.try_wait().is_ok_and(|ended| ended.is_some())
    }

    /// Its log.
    pub(crate) fn log(&self) -> &Path {
        &self.recipe.log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An empty log.
pub(crate) fn log(dir: &Path, name: &str) -> Result<PathBuf> {
    let path = dir.join(format!("{name}.log"));
    File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}
