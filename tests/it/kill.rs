//! Hub and agent, killed at any moment, lose nothing and do nothing twice.
//!
//! Each run kills one process once, with SIGKILL, right before or right after its n-th write to its
//! API server or the n-th TLS record between it and the other side, and starts it again at once.
//! What is hit follows from the run's number. Then everything must be as if nothing had been.

mod agent;
mod gone;
mod hub;

use std::{
    io::{self, Write as _},
    ops::RangeInclusive,
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use wavelift_sim::apiserver::{
    Action, ApiServer, Fault, FaultId, Matcher, Request, Times, Verbs, Verdict,
};

use crate::harness::{
    router::{Meter, Moment},
    victim::Victim,
};

/// How many runs each test makes; fewer while one works on something, or `41-41` for one again.
const RUNS: &str = "WAVELIFT_KILL_RUNS";
const RUNS_DEFAULT: u64 = 50;
/// Runs at the same time: each waits for leases more than it works.
const AT_ONCE: usize = 4;

/// What a run counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Mutating requests to the API server.
    Writes,
    /// TLS records of the link.
    Records,
}

/// Where a run strikes.
#[derive(Debug, Clone, Copy)]
struct Aim {
    counted: Counted,
    moment: Moment,
    n: u64,
}

/// How many there are of each in a run that nothing disturbs.
#[derive(Debug, Clone, Copy)]
struct Size {
    writes: u64,
    records: u64,
}

impl Aim {
    /// All four kinds in turn, anywhere in what an undisturbed run has of them.
    fn of(run: u64, size: Size) -> Self {
        let (counted, moment) = match run % 4 {
            0 => (Counted::Writes, Moment::Before),
            1 => (Counted::Writes, Moment::After),
            2 => (Counted::Records, Moment::Before),
            _ => (Counted::Records, Moment::After),
        };
        let most = match counted {
            Counted::Writes => size.writes,
            Counted::Records => size.records,
        };
        let n = ChaCha8Rng::seed_from_u64(run).random_range(1..=most.max(1));
        Self { counted, moment, n }
    }

    /// Sooner, for a run that had ended before.
    fn sooner(self) -> Self {
        Self { n: (self.n * 3 / 4).max(1), ..self }
    }

    fn arm(self, api: &ApiServer, meter: &Meter, victim: &Victim) {
        let victim = victim.clone();
        match self.counted {
            Counted::Writes => arm_write(self, api, victim),
            Counted::Records => {
                meter.set(meter.seen() + self.n, self.moment, move |what| {
                    victim.kill(&told(self.moment, &what));
                });
            }
        }
    }
}

fn arm_write(aim: Aim, api: &ApiServer, victim: Victim) {
    let hook = Arc::new(move |request: &Request| {
        victim.kill(&told(aim.moment, &format!("write {} {}", aim.n, named(request))));
        Verdict::Drop
    });
    let action = match aim.moment {
        Moment::Before => Action::Before(hook),
        Moment::After => Action::After(hook),
    };
    api.faults().add(Fault { on: writes(), times: Times::nth(aim.n), action });
}

/// Every mutating request: nobody but the process in question sends any over HTTP.
fn writes() -> Matcher {
    Matcher { verbs: Verbs::Mutating, ..Matcher::default() }
}

/// Counts writes and does nothing about them.
fn counting(api: &ApiServer) -> FaultId {
    let times = Times { first: u64::MAX, count: 1 };
    api.faults().add(Fault { on: writes(), times, action: Action::DropBefore })
}

fn told(moment: Moment, what: &str) -> String {
    match moment {
        Moment::Before => format!("killed before {what}"),
        Moment::After => format!("killed after {what}"),
    }
}

/// `Patch ClusterUpgrade/status prod-3/spring-0a1b2c3d`
fn named(request: &Request) -> String {
    let kind = request.gk.as_ref().map_or("", |gk| gk.kind());
    let subresource = if request.subresource.is_empty() { "" } else { "/" };
    let namespace = request.namespace.as_deref().unwrap_or_default();
    let name = request.name.as_deref().unwrap_or_default();
    let verb = request.verb;
    format!("{verb:?} {kind}{subresource}{} {namespace}/{name}", request.subresource)
}

/// Makes the runs, some at a time; each says what it hit.
async fn runs<F>(who: &str, run: impl Fn(u64) -> F) -> Result<()>
where
    F: Future<Output = Result<String>>,
{
    let numbers = match std::env::var(RUNS) {
        Ok(text) => {
            numbers(&text).with_context(|| format!("{RUNS}={text}: no number, no range"))?
        }
        Err(_) => 1..=RUNS_DEFAULT,
    };
    let failed = futures::stream::iter(numbers)
        .map(|number| {
            let run = run(number);
            async move {
                let done = run.await;
                let line = match &done {
                    Ok(hit) => format!("{who}, run {number}: {hit}"),
                    Err(error) => format!("{who}, run {number}: FAILED: {error:#}"),
                };
                // Past the test harness, which keeps the output of good tests to itself.
                writeln!(io::stderr(), "{line}")?;
                anyhow::Ok(done.is_err().then(|| brief(&line)))
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    let failed = failed.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
    ensure!(failed.is_empty(), "{} runs failed:\n{}", failed.len(), failed.join("\n"));
    Ok(())
}

/// `50` are the first fifty, `41-44` are these four.
fn numbers(text: &str) -> Result<RangeInclusive<u64>> {
    Ok(match text.split_once('-') {
        Some((first, last)) => first.parse()?..=last.parse()?,
        None => 1..=text.parse()?,
    })
}

/// What failed, without the logs that were told with it.
fn brief(line: &str) -> String {
    const CHARS: usize = 1_000;
    line.chars().take(CHARS).collect()
}
