//! `wavelift`, also by the names `kubectl-wavelift` and `oc-wavelift`.

use std::process::ExitCode;

fn main() -> ExitCode {
    wavelift_cli::main(std::env::args_os())
}
