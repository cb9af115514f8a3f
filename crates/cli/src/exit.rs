//! Exit codes: what a script may rely on.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Exit {
    /// 0: success; tolerated failures too, unless `--fail-on warn`.
    Success,
    /// 1: something could not be done or read.
    Error,
    /// 2: what was typed makes no sense, or a file is not what it should be.
    Usage,
    /// 3: blocked by checks, or the campaign failed or halted.
    Blocked,
    /// 4: only warnings, and `--fail-on warn` was given.
    Warnings,
    /// 5: could not tell.
    Unknown,
    /// 6: `--timeout` passed while it was still going on.
    Timeout,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Error => 1,
            Self::Usage => 2,
            Self::Blocked => 3,
            Self::Warnings => 4,
            Self::Unknown => 5,
            Self::Timeout => 6,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
