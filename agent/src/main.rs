//! `wavelift-agent`: see the library.

use clap::Parser as _;
use wavelift_agent::config::{Args, run};

// It waits nearly all the time, and a thread for each of a large node's processors would cost memory.
#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    run(Args::parse()).await
}
