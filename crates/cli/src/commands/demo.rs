//! `wavelift demo`

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use tokio_util::sync::CancellationToken;
use wavelift_api::live::PhaseName;
use wavelift_demo::{AfterEnd, Options, Scenario, Source, Teller};

use crate::{
    args::{DemoArgs, Form},
    exit::Exit,
    printer::Printer,
};

pub(super) async fn run(what: &DemoArgs, printer: &Printer) -> anyhow::Result<Exit> {
    if what.list_faults {
        let scenario = Scenario::new(what.seed, usize::from(what.clusters));
        let text = serde_json::to_string_pretty(&scenario).context("cannot write the scenario")?;
        printer.text(&text);
        return Ok(Exit::Success);
    }
    let machine = matches!(printer.form(), Some(Form::Json | Form::Yaml | Form::Name));
    let hold = what.hold || (printer.is_terminal() && !what.once && !machine);
    let options = Options {
        clusters: usize::from(what.clusters),
        seed: what.seed,
        speed: what.speed,
        source: match &what.catalog {
            Some(path) => Source::Catalog { path: path.clone(), packages: what.packages.clone() },
            None => Source::Own,
        },
        after_end: if hold { AfterEnd::Hold } else { AfterEnd::Stop },
        http: what.listen,
    };
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let signal = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    let mut teller: Box<dyn Teller> = if machine {
        Box::new(Silent)
    } else if printer.is_terminal() {
        Box::new(Bar::new(printer.clone()))
    } else {
        Box::new(Lines { printer: printer.clone() })
    };
    let outcome = wavelift_demo::run(&options, teller.as_mut(), shutdown).await;
    signal.abort();
    let summary = outcome.context("the demo did not come to its end")?.summary;
    printer.machine(&summary, |summary| vec![format!("{:?}", summary.phase)])?;
    Ok(match summary.phase {
        PhaseName::Failed | PhaseName::Halting | PhaseName::Cancelled => Exit::Blocked,
        PhaseName::Planning
        | PhaseName::Previewed
        | PhaseName::Preflighting
        | PhaseName::Preflighted
        | PhaseName::AwaitingConsent
        | PhaseName::Running
        | PhaseName::Paused
        | PhaseName::Frozen
        | PhaseName::Succeeded
        | PhaseName::SucceededWithFailures => {
            if summary.unexpected.is_empty() {
                Exit::Success
            } else {
                Exit::Error
            }
        }
    })
}

/// Only the summary is wanted.
struct Silent;

/// A line an event.
struct Lines {
    printer: Printer,
}

/// Lines above a bar.
struct Bar {
    printer: Printer,
    bar: ProgressBar,
}

impl Teller for Silent {
    fn line(&mut self, _: &str) {}
    fn progress(&mut self, _: u64, _: u64, _: &str) {}
    fn finish(&mut self) {}
}

impl Teller for Lines {
    fn line(&mut self, line: &str) {
        self.printer.text(line);
    }
    fn progress(&mut self, _: u64, _: u64, _: &str) {}
    fn finish(&mut self) {}
}

impl Bar {
    fn new(printer: Printer) -> Self {
        let style = ProgressStyle::with_template("{bar:40.cyan} {pos}/{len}  {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::hidden().with_style(style);
        Self { printer, bar }
    }
}

impl Teller for Bar {
    fn line(&mut self, line: &str) {
        self.bar.suspend(|| self.printer.text(line));
    }

    fn progress(&mut self, done: u64, of: u64, sentence: &str) {
        if self.bar.is_hidden() {
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        self.bar.set_length(of);
        self.bar.set_position(done);
        self.bar.set_message(sentence.to_owned());
    }

    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}
