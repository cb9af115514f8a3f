//! One function a command.

mod bundles;
mod campaign;
pub(crate) mod catalog;
mod completion;
mod control;
mod demo;
mod diff;
mod local;
mod path;
mod preview;
mod resolve;
mod status;

use std::{cell::RefCell, future::Future, time::Duration};

use wavelift_api::{
    FleetUpgrade,
    live::{PhaseName, UpgradeView},
};

use crate::{
    args::{Args, ChangeArgs, Command, DryRun, Form},
    exit::Exit,
    kubernetes::Kubernetes,
    live::{self, Live},
    printer::Printer,
};

/// Nothing is watched longer than a year.
const WATCH_SECONDS_MAX: u64 = 60 * 60 * 24 * 365;

/// What every command works with.
struct Context<'a> {
    kubernetes: Kubernetes,
    live: Box<dyn Live>,
    printer: &'a Printer,
}

/// Runs what was typed.
pub(crate) async fn run(args: Args, printer: &Printer) -> anyhow::Result<Exit> {
    let command = match args.command {
        Command::Completion(what) => return completion::print(&what),
        Command::Demo(what) => return demo::run(&what, printer).await,
        Command::Catalog(what) => return catalog::catalog(&what.command, printer),
        Command::Resolve(what) => return resolve::resolve(&what, printer),
        Command::Path(what) => return path::path(&what, printer),
        Command::Diff(what) => return diff::catalogs(&what, printer),
        Command::DiffCrd(what) => return diff::definitions(&what, printer),
        Command::Preview(what)
            if !what.files.bundles.is_empty() || !what.files.catalogs.is_empty() =>
        {
            return bundles::preview(&what, printer).await;
        }
        Command::Preview(_)
        | Command::Preflight(_)
        | Command::Launch(_)
        | Command::Status(_)
        | Command::Clusters(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Freeze(_)
        | Command::Cancel(_)
        | Command::Retry(_)
        | Command::Skip(_) => args.command,
    };
    let kubernetes = Kubernetes::connect(&args.access).await?;
    if let Command::Status(what) = &command
        && what.local
    {
        let namespace = args.access.namespace.as_deref().unwrap_or(local::NAMESPACE);
        return local::status(&kubernetes, namespace, what, printer).await;
    }
    let live = live::connect(&args.access, &kubernetes)?;
    let context = Context { kubernetes, live, printer };
    match command {
        Command::Preview(what) => preview::preview(&context, &what).await,
        Command::Preflight(what) => campaign::preflight(&context, &what).await,
        Command::Launch(what) => campaign::launch(&context, &what).await,
        Command::Status(what) => status::status(&context, &what).await,
        Command::Clusters(what) => status::clusters(&context, &what).await,
        Command::Pause(what) => control::set(&context, &what, control::Verb::Pause).await,
        Command::Resume(what) => control::set(&context, &what, control::Verb::Resume).await,
        Command::Freeze(what) => control::set(&context, &what, control::Verb::Freeze).await,
        Command::Cancel(what) => control::cancel(&context, &what).await,
        Command::Retry(what) => control::act(&context, &what, control::Act::Retry).await,
        Command::Skip(what) => control::act(&context, &what, control::Act::Skip).await,
        Command::Completion(what) => completion::print(&what),
        Command::Demo(what) => demo::run(&what, printer).await,
        Command::Catalog(what) => catalog::catalog(&what.command, printer),
        Command::Resolve(what) => resolve::resolve(&what, printer),
        Command::Path(what) => path::path(&what, printer),
        Command::Diff(what) => diff::catalogs(&what, printer),
        Command::DiffCrd(what) => diff::definitions(&what, printer),
    }
}

impl Context<'_> {
    /// `fleetupgrade.wavelift.io/NAME verbed`, as kubectl says it.
    fn done(&self, name: &str, verbed: &str, change: &ChangeArgs) {
        let how = how(change);
        self.printer.text(&format!("fleetupgrade.wavelift.io/{name} {verbed}{how}"));
    }

    /// The campaign once it has come to one of `phases`, as the hub sees this very generation.
    async fn wait_for(
        &self,
        namespace: &str,
        name: &str,
        generation: i64,
        phases: &[PhaseName],
        timeout: Duration,
    ) -> anyhow::Result<Option<UpgradeView>> {
        let look = || async {
            let upgrade = self.live.upgrade(namespace, name).await?.upgrade;
            let seen = upgrade.row.generation >= generation;
            let ready = seen && phases.contains(&upgrade.row.phase);
            anyhow::Ok(ready.then_some(upgrade))
        };
        poll(timeout, look).await
    }
}

/// Looks again and again until there is something to see or the time is over.
async fn poll<T, F, L>(timeout: Duration, mut look: L) -> anyhow::Result<Option<T>>
where
    F: Future<Output = anyhow::Result<Option<T>>>,
    L: FnMut() -> F,
{
    let until = tokio::time::Instant::now() + timeout;
    let mut errors = 0;
    loop {
        match look().await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => errors = 0,
            // A hub that changes its leader answers again in a moment.
            Err(error) if errors >= 5 => return Err(error),
            Err(_) => errors += 1,
        }
        if tokio::time::Instant::now() >= until {
            return Ok(None);
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// How something that is watched is shown.
#[derive(Debug, Clone, Copy)]
enum Shown {
    /// As JSON, on one line.
    Json,
    /// Drawn on a terminal.
    Drawn,
    /// As one sentence.
    Sentence,
}

/// Shows what `look` sees until it has ended: redraws on a terminal; elsewhere prints a line whenever
/// it is another one. `None` when the time is up.
async fn watch<T, F: Future<Output = anyhow::Result<T>>>(
    seconds: Option<u64>,
    printer: &Printer,
    look: impl Fn() -> F,
    words: impl Fn(&T, Shown) -> anyhow::Result<String>,
    is_ended: impl Fn(&T) -> bool,
) -> anyhow::Result<Option<T>> {
    let shown = match (printer.form(), printer.is_terminal()) {
        (Some(Form::Json), _) => Shown::Json,
        (_, true) => Shown::Drawn,
        (_, false) => Shown::Sentence,
    };
    let last = RefCell::new(String::new());
    let timeout = Duration::from_secs(seconds.unwrap_or(WATCH_SECONDS_MAX));
    let turn = || async {
        let seen = look().await?;
        let text = words(&seen, shown)?;
        match shown {
            Shown::Drawn => printer.redraw(&text),
            Shown::Json | Shown::Sentence if *last.borrow() == text => {}
            Shown::Json | Shown::Sentence => {
                printer.text(&text);
                last.replace(text);
            }
        }
        anyhow::Ok(is_ended(&seen).then_some(seen))
    };
    poll(timeout, turn).await
}

/// What follows a change that was not made for real.
fn how(change: &ChangeArgs) -> &'static str {
    match change.dry_run {
        DryRun::None => "",
        DryRun::Client => " (dry run)",
        DryRun::Server => " (server dry run)",
    }
}

/// The generation of an object, 0 before the API server has given one.
fn generation(fleet: &FleetUpgrade) -> i64 {
    fleet.metadata.generation.unwrap_or(0)
}
