//! Tests over the whole workspace, in one binary: linking is the slow part.

// Under `cfg(test)` so that clippy knows these are tests and lets them unwrap.
#[cfg(test)]
mod catalogs;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod kubectl;
#[cfg(test)]
mod leader;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod offline;
#[cfg(test)]
mod page;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod tidy;
