//! By which name the program was called: its own, or as a plugin of kubectl or oc.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use clap::CommandFactory as _;

use crate::{args::Args, exit::Exit, printer};

/// How the program was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Invoked {
    /// `wavelift`
    Own,
    /// `kubectl wavelift`
    Kubectl,
    /// `oc wavelift`
    Oc,
    /// `kubectl_complete-wavelift` or `oc_complete-wavelift`: kubectl asks for completions.
    Completion,
}

impl Invoked {
    /// From the name of the program as it was called.
    pub(crate) fn from_program(program: Option<&OsStr>) -> Self {
        let name = program.and_then(|program| Path::new(program).file_stem());
        match name.and_then(OsStr::to_str) {
            Some("kubectl-wavelift") => Self::Kubectl,
            Some("oc-wavelift") => Self::Oc,
            Some("kubectl_complete-wavelift" | "oc_complete-wavelift") => Self::Completion,
            Some(_) | None => Self::Own,
        }
    }

    pub(crate) fn is_completion(self) -> bool {
        self == Self::Completion
    }

    /// As usage and hints write it.
    pub(crate) fn usage(self) -> &'static str {
        match self {
            Self::Own | Self::Completion => "wavelift",
            Self::Kubectl => "kubectl wavelift",
            Self::Oc => "oc wavelift",
        }
    }
}

/// Answers kubectl's question for completions: one choice a line, then `:4` (no file names).
pub(crate) fn complete(words: &[OsString]) -> Exit {
    let typed: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let (last, before) = typed.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
    let mut command = &Args::command();
    for word in before {
        if let Some(sub) = command.find_subcommand(word) {
            command = sub;
        }
    }
    let subcommands = command.get_subcommands().map(|sub| sub.get_name().to_owned());
    let flags = command.get_arguments().filter_map(|arg| arg.get_long()).map(|f| format!("--{f}"));
    let mut choices: Vec<String> =
        subcommands.chain(flags).filter(|choice| choice.starts_with(last)).collect();
    if !last.starts_with('-') {
        choices.retain(|choice| !choice.starts_with('-'));
    }
    choices.sort();
    choices.push(":4".to_owned());
    printer::lines(&choices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_says_who_called() {
        let check = |program: &str, expected| {
            assert_eq!(Invoked::from_program(Some(OsStr::new(program))), expected);
        };
        check("/usr/local/bin/wavelift", Invoked::Own);
        check("kubectl-wavelift", Invoked::Kubectl);
        check("./oc-wavelift", Invoked::Oc);
        check("/usr/bin/kubectl_complete-wavelift", Invoked::Completion);
        check("anything-else", Invoked::Own);
        assert_eq!(Invoked::from_program(None), Invoked::Own);
    }
}
