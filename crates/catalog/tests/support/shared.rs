//! Where real catalogs, bundles and vectors lie.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

/// The folder of shared data, if it has the folder `inside` with `what`; else nothing, with one line
/// that says so, and a failure where nothing may be left out.
pub(crate) fn dir(test: &str, inside: &str, what: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let dir = std::env::var_os("WAVELIFT_SHARED").map_or(beside, PathBuf::from);
    if dir.join(inside).is_dir() {
        return Some(dir);
    }
    assert!(
        std::env::var_os("WAVELIFT_REQUIRE_ALL").is_none_or(|value| value != "1"),
        "{test}: no {what} at {}",
        dir.join(inside).display()
    );
    leave_out(
        "left out: tests with real catalogs and recordings; to run them, set WAVELIFT_SHARED to \
         their folder",
    );
    None
}

/// Leaves the line where `cargo xtask test` collects it, else prints it.
fn leave_out(line: &str) {
    let Some(file) = std::env::var_os("WAVELIFT_LEFT_OUT") else { return println!("{line}") };
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}
