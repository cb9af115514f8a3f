//! Real data that tests need and a clean clone does not have.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

const LINE: &str = "left out: tests with real catalogs and recordings; to run them, set \
                    WAVELIFT_SHARED to their folder";

/// Where the data lies when it has `part`; else nothing, and one line says so.
pub(crate) fn shared(part: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let dir = std::env::var_os("WAVELIFT_SHARED").map_or(beside, PathBuf::from);
    if dir.join(part).is_dir() {
        return Some(dir);
    }
    let must = std::env::var_os("WAVELIFT_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!must, "there is no {part} in {}", dir.display());
    say();
    None
}

/// Leaves the line where `cargo xtask test` collects it, else prints it.
fn say() {
    let Some(file) = std::env::var_os("WAVELIFT_LEFT_OUT") else { return println!("{LINE}") };
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(format!("{LINE}\n").as_bytes()).unwrap();
}
