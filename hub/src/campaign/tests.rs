//! The driver against the simulated API server, with scripted agents in place of the link.

mod campaigns;
mod changes;
mod fences;
mod harness;
mod images;
mod leaders;
mod previews;
mod steering;
