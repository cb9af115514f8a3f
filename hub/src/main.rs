//! `wavelift-hub`.

use clap::Parser as _;
use wavelift_hub::config::Arguments;
use wavelift_runtime::{shutdown::Shutdown, telemetry};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    telemetry::init(&arguments.telemetry())?;
    let shutdown = Shutdown::on_signals()?;
    tokio::select! {
        ended = wavelift_hub::run(&arguments, shutdown.asked.clone()) => ended,
        () = shutdown.insisted.cancelled() => Ok(()),
    }
}
