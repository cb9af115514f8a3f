//! What tests need from outside the project, and how they say that it is not there.
//!
//! A test that needs something which cannot be found calls [`skip`] and returns. That leaves one
//! line behind, and fails the test where `WAVELIFT_REQUIRE_ALL=1` says that nothing may be left
//! out. This is an ordinary module so that the tests of every crate can use it.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use parking_lot::Mutex;

/// Where the data that real operators and real OLM left behind is kept.
pub const SHARED: &str = "WAVELIFT_SHARED";
/// Set to 1: a test that would be left out fails instead.
pub const REQUIRE_ALL: &str = "WAVELIFT_REQUIRE_ALL";
/// A file that takes one line for each thing left out; standard error if not set.
pub const LEFT_OUT: &str = "WAVELIFT_LEFT_OUT";
/// Where `cargo xtask tools` puts what it builds; `~/.cache/wavelift/tools` if not set.
pub const TOOLS: &str = "WAVELIFT_TOOLS";

/// Set to 1: tests run too that take their minutes.
pub const LONG: &str = "WAVELIFT_LONG";

/// Measures are taken where this is `1`.
pub const MEASURE: &str = "WAVELIFT_MEASURE";

/// The oldest kubectl that tests make sense with.
const KUBECTL_MINOR_MIN: u32 = 30;

/// What has been reported by this process.
static REPORTED: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);

/// The workspace's root.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The folder of shared data: `$WAVELIFT_SHARED`, else `shared` beside the workspace.
pub fn shared_dir() -> Option<PathBuf> {
    let dir = match std::env::var_os(SHARED) {
        Some(dir) => PathBuf::from(dir),
        None => workspace_root().parent()?.join("shared"),
    };
    dir.is_dir().then_some(dir)
}

/// The shared data, or `None` after saying that it was left out.
pub fn shared_or_skip() -> Option<PathBuf> {
    let dir = shared_dir();
    if dir.is_none() {
        skip("real catalogs and recordings", "set WAVELIFT_SHARED to their folder");
    }
    dir
}

/// A `kubectl` to test with: the one `cargo xtask tools` built, else one on the path.
pub fn kubectl() -> Option<PathBuf> {
    built("kubectl").or_else(|| on_path(&["kubectl"])).filter(|path| is_recent_kubectl(path))
}

/// `kubectl`, or `None` after saying that it was left out.
pub fn kubectl_or_skip() -> Option<PathBuf> {
    let path = kubectl();
    if path.is_none() {
        skip("kubectl", "put 1.30 or newer on the path, or run `cargo xtask tools`");
    }
    path
}

/// A Chromium to test the page with.
pub fn chromium() -> Option<PathBuf> {
    on_path(&["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"])
}

/// Chromium, or `None` after saying that it was left out.
pub fn chromium_or_skip() -> Option<PathBuf> {
    let path = chromium();
    if path.is_none() {
        skip("Chromium", "install it (`cargo xtask tools` does on Debian)");
    }
    path
}

/// A real program to test with: the one `cargo xtask tools` built, else one on the path.
pub fn program(name: &str) -> Option<PathBuf> {
    built(name).or_else(|| on_path(&[name]))
}

/// The paths of real programs in this order, or `None` after saying that they were left out.
pub fn programs_or_skip<const N: usize>(names: [&str; N]) -> Option<[PathBuf; N]> {
    all_or_skip(names, "tools")
}

/// The paths of real servers in this order, or `None` after saying that they were left out.
pub fn servers_or_skip<const N: usize>(names: [&str; N]) -> Option<[PathBuf; N]> {
    all_or_skip(names, "servers")
}

fn all_or_skip<const N: usize>(names: [&str; N], chore: &str) -> Option<[PathBuf; N]> {
    let found = names.map(program);
    if found.iter().any(Option::is_none) {
        skip(
            &format!("a real {}", names.join(", ")),
            &format!("run `cargo xtask {chore}`, with Go and on Debian"),
        );
        return None;
    }
    Some(found.map(Option::unwrap_or_default))
}

/// Says once that tests with `what` were left out, and `how_to_get` it. Name the thing that is
/// missing, not the test: many tests may miss the same thing.
///
/// # Panics
///
/// Where nothing may be left out.
pub fn skip(what: &str, how_to_get: &str) {
    let line = format!("left out: tests with {what}; to run them, {how_to_get}");
    assert!(!is_all_required(), "{line}");
    if !REPORTED.lock().insert(line.clone()) {
        return;
    }
    let reported = match std::env::var_os(LEFT_OUT) {
        Some(file) => append(Path::new(&file), &line),
        // Written past the test harness, which keeps the output of good tests to itself.
        None => writeln!(io::stderr(), "{line}"),
    };
    assert!(reported.is_ok(), "cannot report `{line}`: {reported:?}");
}

/// Whether tests run too that take their minutes (`cargo xtask test --long`).
pub fn is_long() -> bool {
    std::env::var_os(LONG).is_some_and(|value| value == "1")
}

/// Whether what wants the machine for itself is measured (`cargo xtask bench --whole`).
pub fn is_measured() -> bool {
    std::env::var_os(MEASURE).is_some_and(|value| value == "1")
}

/// Whether nothing may be left out.
pub fn is_all_required() -> bool {
    std::env::var_os(REQUIRE_ALL).is_some_and(|value| value == "1")
}

/// Where built tools are kept, each set in a folder of its own.
pub fn tools_dir() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os(TOOLS) {
        return Some(PathBuf::from(dir));
    }
    std::env::home_dir().map(|home| home.join(".cache/wavelift/tools"))
}

fn append(file: &Path, line: &str) -> io::Result<()> {
    // One write in append mode: lines of test processes that run side by side do not mix.
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// The tool of this name that was built last, or the folder.
fn built(name: &str) -> Option<PathBuf> {
    let sets = fs::read_dir(tools_dir()?).ok()?;
    let tools = sets.filter_map(|set| {
        let path = set.ok()?.path().join(name);
        let built_at = path.metadata().ok()?.modified().ok()?;
        Some((built_at, path))
    });
    tools.max().map(|(_, path)| path)
}

fn on_path(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<_> = std::env::split_paths(&path).collect();
    names.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name))).find(|p| p.is_file())
}

fn is_recent_kubectl(path: &Path) -> bool {
    let output = Command::new(path).args(["version", "--client", "-o", "json"]).output();
    let Ok(output) = output else { return false };
    minor_version(&output.stdout).is_some_and(|minor| minor >= KUBECTL_MINOR_MIN)
}

/// The minor version in kubectl's own words; vendors add a `+` to it.
fn minor_version(json: &[u8]) -> Option<u32> {
    let version: serde_json::Value = serde_json::from_slice(json).ok()?;
    let minor = version["clientVersion"]["minor"].as_str()?;
    minor.trim_end_matches('+').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_root_has_the_lock_file() {
        assert!(workspace_root().join("Cargo.lock").is_file());
    }

    #[test]
    fn versions_of_kubectl_are_read() {
        let json = |minor: &str| format!(r#"{{"clientVersion":{{"minor":"{minor}"}}}}"#);
        assert_eq!(minor_version(json("36").as_bytes()), Some(36));
        assert_eq!(minor_version(json("20+").as_bytes()), Some(20));
        assert_eq!(minor_version(b"{}"), None);
        assert_eq!(minor_version(b"Client Version: v1.36"), None);
    }
}
