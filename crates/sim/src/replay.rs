//! Recordings of a real OLM v0, played on a simulated cluster.
//!
//! A recording is what somebody did to a real cluster, in order, with every event that followed.
//! Here the same things are done to a [`SimCluster`](crate::cluster::SimCluster), each when the
//! simulation has come to where the recording was, and what happened to each object is compared:
//! the distinct (state, currentCSV, installedCSV) of a Subscription, (phase, reason) of a CSV,
//! (phase, approved) of an InstallPlan, in order. How the objects interleave is free, and so is the
//! moment in which a good upgrade falls back. In the one recording in which two CSVs take a
//! Deployment from each other the number and order of their turns is free too, but there is at
//! least one. Nothing else is overlooked.
//!
//! The recordings lie outside the repository; without them the test says so and passes, unless
//! `WAVELIFT_REQUIRE_ALL` is 1.

use crate::olm_v0::Timing;

mod bundles;
mod recording;
mod sequences;
mod stage;

/// What is done with one recording.
struct Entry {
    /// The start of its file name.
    name: &'static str,
    treatment: Treatment,
}

enum Treatment {
    /// It is played, at this pace, with this freedom.
    Play(Pace, Freedom),
    /// It is not, for this reason.
    Leave(&'static str),
}

/// How busy the recorded OLM was; most recordings were made several at a time.
#[derive(Clone, Copy)]
enum Pace {
    Usual,
    /// Subscriptions followed so late that the recording ends, or goes on, before they did.
    Throttled,
}

/// What may differ beside the order between objects and the moment of falling back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freedom {
    Nothing,
    /// How often, and who first, takes the Deployment from the other.
    Fight,
}

impl Pace {
    fn timing(self) -> Timing {
        match self {
            Self::Usual => Timing::default(),
            Self::Throttled => Timing::throttled(),
        }
    }
}

const fn play(name: &'static str, pace: Pace) -> Entry {
    Entry { name, treatment: Treatment::Play(pace, Freedom::Nothing) }
}

const fn leave(name: &'static str, why: &'static str) -> Entry {
    Entry { name, treatment: Treatment::Leave(why) }
}

/// Every recording there is, and what becomes of it.
const RECORDINGS: &[Entry] = &[
    play("01-", Pace::Usual),
    play("02-", Pace::Usual),
    play("03-", Pace::Usual),
    play("04-", Pace::Throttled),
    play("05-", Pace::Throttled),
    play("06-", Pace::Throttled),
    play("07-", Pace::Usual),
    play("07b-", Pace::Usual),
    play("08-", Pace::Usual),
    play("09-", Pace::Usual),
    play("10-", Pace::Usual),
    play("11-", Pace::Usual),
    play("12-", Pace::Usual),
    play("12b-", Pace::Usual),
    play("12c-", Pace::Throttled),
    play("12d-", Pace::Usual),
    play("13-", Pace::Usual),
    play("13a-", Pace::Throttled),
    play("14-", Pace::Usual),
    play("15-", Pace::Throttled),
    Entry { name: "16-", treatment: Treatment::Play(Pace::Usual, Freedom::Fight) },
    play("17-", Pace::Usual),
    play("17b-", Pace::Usual),
    play("18-", Pace::Usual),
    play("19-", Pace::Usual),
    play("20-", Pace::Usual),
    play("21-", Pace::Usual),
    play("22-", Pace::Throttled),
    play("23-", Pace::Usual),
    play("24-", Pace::Throttled),
    play("25-", Pace::Usual),
    play("26-", Pace::Usual),
    play("27-", Pace::Usual),
    leave("27a-", "a write by hand is lost in a race within the real operator"),
];

/// Where the recordings lie.
const FOLDER: &str = "recordings/olm-v0";

/// Seeds with which each recording is played; each gives other delays and other falls.
const SEEDS: std::ops::Range<u64> = 0..3;

/// The recordings that are there, by the start of their names.
fn recordings(dir: &std::path::Path) -> std::collections::BTreeMap<String, std::path::PathBuf> {
    let files = std::fs::read_dir(dir).expect("the folder can be read");
    let files = files.map(|file| file.expect("its entries can be read").path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            let start = name.split_inclusive('-').next()?.to_owned();
            Some((start, path))
        })
        .collect()
}

#[test]
fn every_recording_is_in_the_table() {
    let Some(shared) = wavelift_runtime::testing::shared_or_skip() else { return };
    let there: Vec<String> = recordings(&shared.join(FOLDER)).into_keys().collect();
    let mut known: Vec<String> = RECORDINGS.iter().map(|entry| entry.name.to_owned()).collect();
    known.sort();
    assert_eq!(there, known);
}

#[test]
fn the_simulation_does_what_the_recorded_operator_did() {
    let Some(shared) = wavelift_runtime::testing::shared_or_skip() else { return };
    let there = recordings(&shared.join(FOLDER));
    let mut wrong = Vec::new();
    for Entry { name, treatment } in RECORDINGS {
        let (pace, freedom) = match treatment {
            Treatment::Play(pace, freedom) => (*pace, *freedom),
            Treatment::Leave(why) => {
                println!("{name}: not played, {why}");
                continue;
            }
        };
        let text = std::fs::read_to_string(&there[*name]).expect("the recording can be read");
        let lines = recording::read(&text);
        for seed in SEEDS {
            if let Err(why) = stage::play(&lines, pace, freedom, seed) {
                wrong.push(format!("{name} seed {seed}: {why}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
