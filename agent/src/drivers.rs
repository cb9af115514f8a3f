//! What turns a step into actions, one driver for each way of installing operators.

pub mod olm_v0;
