//! `wavelift-agent`: see the library.

use clap::Parser as _;
use wavelift_agent::config::{Args, run};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Args::parse()).await
}
