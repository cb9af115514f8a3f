//! A whole fleet in one process: a hub, simulated clusters and their agents over real mutual TLS,
//! and one campaign from Preview to its end.
//!
//! [`scenario`] makes a fleet and its faults from a seed, [`spread`] one from a real catalog,
//! [`cast`] what either needs, [`fleet`] brings it to life, [`drive`] takes the campaign through its stages as a person would,
//! [`story`] tells what happens and [`summary`] what came of it.

pub mod cast;
pub mod drive;
pub mod fleet;
mod kubeconfig;
pub mod options;
pub mod own_catalog;
mod pace;
pub mod run;
pub mod scenario;
pub mod spread;
pub mod story;
pub mod summary;

pub use self::{
    cast::Cast,
    fleet::Fleet,
    options::{AfterEnd, Options, Source},
    run::{Outcome, Teller, run, run_cast},
    scenario::Scenario,
    summary::Summary,
};
