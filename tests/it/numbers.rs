//! Numbers that need a whole agent or a whole fleet: they are measured, printed, and no verdict is
//! passed on them. `cargo xtask bench --whole` takes them, on a machine that has nothing else to do.

mod agent;
mod latency;

/// Prints a row.
fn row(what: &str, result: &str) {
    println!("{what:<72} {result}");
}
