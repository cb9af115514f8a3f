//! The generated files, and whether they are current.
//!
//! With `WAVELIFT_GENERATE=1` (as `cargo xtask codegen` sets it) stale files are written instead.

#[cfg(test)]
mod check;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod rights;
