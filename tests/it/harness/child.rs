//! A child process that ends with whoever holds it.

use std::{
    ffi::OsString,
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

/// How much of a log is shown when something went wrong.
const TAIL_LINES: usize = 60;

/// A running program; SIGKILL on drop, also when a test panics.
#[derive(Debug)]
pub(crate) struct Child {
    process: std::process::Child,
}

impl Child {
    /// Starts a program whose output goes to a file.
    pub(crate) fn spawn(program: &Path, args: Vec<OsString>, log: &Path) -> Result<Self> {
        let out = File::options().create(true).append(true).open(log)?;
        let process = Command::new(program)
            .args(args)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { process })
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// SIGKILL; it is gone when this returns.
    pub(crate) fn kill(&mut self) {
        // Both fail only for a process that has ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// SIGSTOP: nothing of it runs from here on, its sockets stay open.
    pub(crate) fn pause(&self) -> Result<()> {
        self.signal("STOP")
    }

    /// SIGCONT.
    pub(crate) fn resume(&self) -> Result<()> {
        self.signal("CONT")
    }

    /// SIGTERM, and waits until it is gone.
    pub(crate) async fn end(&mut self) -> Result<std::process::ExitStatus> {
        self.signal("TERM")?;
        super::wait::polled("a process to end", || Ok(self.ended())).await
    }

    fn signal(&self, name: &str) -> Result<()> {
        let id = self.process.id();
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status()?;
        ensure!(status.success(), "cannot send SIG{name} to process {id}");
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    format!("--- {}\n{}", log.display(), lines[from..].join("\n"))
}

/// How often something outside of this process is looked at.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
