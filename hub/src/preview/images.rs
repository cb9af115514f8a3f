//! Manifests of bundles from their images, where catalogs do not carry them.
//!
//! Each image is fetched once for all campaigns and groups. What is named by digest is verified, so
//! it does not matter who named it, and is kept for good; what is named by tag is fetched again
//! after a while. Which images there are is the word of clusters' catalogs, so all of it is bounded:
//! the images that most clusters need come first, and registries that do not answer never take all
//! the room.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use wavelift_catalog::{Manifests, manifests::Limits};
use wavelift_core::causes::sentence;
use wavelift_sources::{
    BundleImages,
    bundle_image::{Error, Reference, Version},
};

/// How much is kept and done, at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageRoom {
    /// Images that something is known of.
    pub(crate) known: usize,
    /// Images whose manifests are kept.
    pub(crate) images: usize,
    /// Bytes of their files.
    pub(crate) bytes: usize,
    /// Images that are fetched at the same time.
    pub(crate) at_once: usize,
    /// Of these, images that are looked for at the same registries.
    pub(crate) at_one_place: usize,
}

/// How long one image may take, over all its mirrors.
const FETCH_MAX: Duration = Duration::from_mins(3);
/// How long after a failure that may pass an image is fetched again.
const TRANSIENT_PAUSE: Duration = Duration::from_mins(10);
/// How long after one that does not pass by itself.
const PERMANENT_PAUSE: Duration = Duration::from_hours(1);
/// How long what has a tag is taken to be what it was.
const TAG_PERIOD: Duration = Duration::from_hours(1);
/// Registries that are remembered as silent.
const SILENT_MAX: usize = 1_000;

/// What came from an image.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    /// The image's digest.
    pub(crate) digest: String,
    /// Its manifests.
    pub(crate) manifests: Arc<Manifests>,
    /// How it was named.
    pub(crate) named: Named,
    /// Bytes of its files.
    pub(crate) bytes: usize,
}

/// How an image is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// By its digest: it is always the same.
    Digest,
    /// By a tag, which may be another image's by now.
    Tag,
}

/// Where the manifests of an image are.
#[derive(Debug, Clone)]
pub(crate) enum Image {
    /// Here.
    Here(Fetched),
    /// On their way, or about to be fetched.
    Awaited,
    /// Nowhere, and why, for people.
    Missing(String),
}

/// Why an image could not be fetched.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    why: String,
    lasts: Lasts,
    /// What happened at its registries, if none of them answered at all.
    silence: Option<String>,
}

/// Whether a failure passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasts {
    /// It may.
    AWhile,
    /// Not by itself.
    Long,
}

/// An image that is to be fetched now.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) image: String,
    fetcher: BundleImages,
    end: CancellationToken,
}

/// The images that are known.
#[derive(Debug)]
pub(crate) struct Images {
    /// Nothing is fetched without.
    fetcher: Option<BundleImages>,
    room: ImageRoom,
    entries: BTreeMap<String, Entry>,
    /// Registries of which none answered: until when they are left alone, and what happened.
    silent: BTreeMap<Vec<String>, (Instant, String)>,
    bytes: usize,
    pass: u64,
    tick: u64,
    is_news: bool,
    end: CancellationToken,
}

#[derive(Debug)]
struct Entry {
    shown: Shown,
    work: Work,
    /// Clusters that need it, in this pass.
    users: usize,
    /// The pass in which it was needed last.
    used: u64,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Here(Fetched),
    Missing(String),
}

/// What is to be done about an image.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Work {
    /// Nothing.
    Nothing,
    /// It waits for its turn.
    Queued(u64),
    /// It is being fetched from one of these registries.
    Open(Vec<String>),
    /// It is to be fetched again then.
    Again(Instant),
}

impl Default for ImageRoom {
    fn default() -> Self {
        Self { known: 8_192, images: 2_048, bytes: 256 << 20, at_once: 4, at_one_place: 3 }
    }
}

// === impl Images ===

impl Images {
    pub(crate) fn new(room: ImageRoom, fetcher: Option<BundleImages>) -> Self {
        Self {
            fetcher,
            room,
            entries: BTreeMap::new(),
            silent: BTreeMap::new(),
            bytes: 0,
            pass: 0,
            tick: 0,
            is_news: false,
            end: CancellationToken::new(),
        }
    }

    /// Begins to count anew who needs what; called before all campaigns are looked at.
    pub(crate) fn recount(&mut self, now: Instant) {
        let last = self.pass;
        self.pass += 1;
        self.entries.retain(|_, entry| {
            entry.users = 0;
            let is_needed = entry.used >= last;
            is_needed
                || matches!(entry.shown, Shown::Here(_))
                || matches!(entry.work, Work::Open(_))
        });
        self.silent.retain(|_, (until, _)| *until > now);
    }

    /// Where the manifests of an image are; those that are not here will be fetched.
    pub(crate) fn find(&mut self, image: &str, users: usize, now: Instant) -> Image {
        if self.fetcher.is_none() {
            return Image::Missing(
                "this hub does not fetch bundle images (--bundle-images)".to_owned(),
            );
        }
        self.tick += 1;
        let (pass, tick) = (self.pass, self.tick);
        if !self.entries.contains_key(image) {
            if self.entries.len() >= self.room.known {
                return Image::Missing("the hub has no room for its image".to_owned());
            }
            let queued =
                Entry { shown: Shown::Nothing, work: Work::Queued(tick), users, used: pass };
            self.entries.insert(image.to_owned(), queued);
            return Image::Awaited;
        }
        let Some(entry) = self.entries.get_mut(image) else { return Image::Awaited };
        entry.used = pass;
        entry.users = entry.users.max(users);
        if matches!(&entry.work, Work::Again(at) if *at <= now) {
            entry.work = Work::Queued(tick);
        }
        match &entry.shown {
            Shown::Nothing => Image::Awaited,
            Shown::Here(fetched) => Image::Here(fetched.clone()),
            Shown::Missing(why) => Image::Missing(why.clone()),
        }
    }

    /// What is to be fetched next, if there is room: what most clusters need, then what was asked
    /// for first.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Fetch> {
        let fetcher = self.fetcher.clone()?;
        let mut open: BTreeMap<&[String], usize> = BTreeMap::new();
        for entry in self.entries.values() {
            if let Work::Open(registries) = &entry.work {
                *open.entry(registries).or_default() += 1;
            }
        }
        if open.values().sum::<usize>() >= self.room.at_once {
            return None;
        }
        let full: Vec<Vec<String>> = open
            .into_iter()
            .filter(|(_, count)| *count >= self.room.at_one_place)
            .map(|(registries, _)| registries.to_vec())
            .collect();
        let mut queued: Vec<(usize, u64, String)> = self
            .entries
            .iter()
            .filter_map(|(image, entry)| {
                let Work::Queued(order) = entry.work else { return None };
                Some((entry.users, order, image.clone()))
            })
            .collect();
        queued.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, _, image) in queued {
            // What is no name fails when it is fetched, at once.
            let registries = fetcher.registries(&image).unwrap_or_default();
            let silence = self.silent.get(&registries).filter(|(until, _)| *until > now);
            if let Some((until, told)) = silence.cloned() {
                self.failed(&image, format!("failed to pull image {image}: {told}"), until);
            } else if !full.contains(&registries)
                && let Some(entry) = self.entries.get_mut(&image)
            {
                entry.work = Work::Open(registries);
                return Some(Fetch { image, fetcher, end: self.end.clone() });
            }
        }
        None
    }

    /// Takes what became of an image. The answer says it in a word.
    pub(crate) fn fetched(
        &mut self,
        image: &str,
        result: Result<Fetched, Failure>,
        now: Instant,
    ) -> &'static str {
        let Some(entry) = self.entries.get_mut(image) else { return "unasked" };
        let work = std::mem::replace(&mut entry.work, Work::Nothing);
        let Work::Open(registries) = work else {
            entry.work = work;
            return "unasked";
        };
        let failure = match result {
            Ok(fetched) => {
                self.silent.remove(&registries);
                return self.keep(image, fetched, now);
            }
            Err(failure) => failure,
        };
        let (pause, word) = match failure.lasts {
            Lasts::AWhile => (TRANSIENT_PAUSE, "failed"),
            Lasts::Long => (PERMANENT_PAUSE, "refused"),
        };
        if let Some(told) = failure.silence
            && self.silent.len() < SILENT_MAX
        {
            self.silent.insert(registries, (now + TRANSIENT_PAUSE, told));
        }
        self.failed(image, failure.why, now + pause);
        word
    }

    /// Whether something is known now that was not when it was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    /// Nobody knows what became of what was being fetched.
    pub(crate) fn broke(&mut self) {
        for entry in self.entries.values_mut() {
            if matches!(entry.work, Work::Open(_)) {
                self.tick += 1;
                entry.work = Work::Queued(self.tick);
            }
        }
    }

    /// Lets all that is being fetched end.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// What was here before stays: it is better than nothing.
    fn failed(&mut self, image: &str, why: String, again: Instant) {
        let Some(entry) = self.entries.get_mut(image) else { return };
        entry.work = Work::Again(again);
        if !matches!(entry.shown, Shown::Here(_)) {
            entry.shown = Shown::Missing(why);
        }
        self.is_news = true;
    }

    fn keep(&mut self, image: &str, fetched: Fetched, now: Instant) -> &'static str {
        // What it replaces counts no more.
        if let Some(entry) = self.entries.get_mut(image)
            && let Shown::Here(before) = &entry.shown
        {
            self.bytes -= before.bytes;
            entry.shown = Shown::Nothing;
        }
        if !self.make_room(fetched.bytes) {
            let why = "the hub has no room for its manifests".to_owned();
            self.failed(image, why, now + TRANSIENT_PAUSE);
            return "no_room";
        }
        let Some(entry) = self.entries.get_mut(image) else { return "unasked" };
        self.bytes += fetched.bytes;
        entry.work = match fetched.named {
            Named::Digest => Work::Nothing,
            Named::Tag => Work::Again(now + TAG_PERIOD),
        };
        entry.shown = Shown::Here(fetched);
        self.is_news = true;
        "fetched"
    }

    /// Drops what nobody needs any more until there is room; false if that is not enough.
    fn make_room(&mut self, bytes: usize) -> bool {
        loop {
            let here = self.entries.iter().filter(|(_, e)| matches!(e.shown, Shown::Here(_)));
            let count = here.clone().count();
            if count < self.room.images && self.bytes + bytes <= self.room.bytes {
                return true;
            }
            let idle = here.filter(|(_, entry)| {
                entry.used < self.pass && !matches!(entry.work, Work::Open(_))
            });
            let oldest = idle.min_by_key(|(_, entry)| entry.used).map(|(image, _)| image.clone());
            let Some(entry) = oldest.and_then(|image| self.entries.remove(&image)) else {
                return false;
            };
            if let Shown::Here(fetched) = entry.shown {
                self.bytes -= fetched.bytes;
            }
        }
    }
}

// === impl Fetch ===

impl Fetch {
    /// Fetches it, and reads its manifests beside everything else.
    pub(crate) async fn run(self) -> Result<Fetched, Failure> {
        let Self { image, fetcher, end } = self;
        let fetching = timeout(FETCH_MAX, fetch(&fetcher, &image));
        match end.run_until_cancelled(fetching).await {
            Some(Ok(fetched)) => fetched,
            Some(Err(_)) => {
                let seconds = FETCH_MAX.as_secs();
                Err(Failure::passing(format!("image {image} did not come within {seconds} s")))
            }
            None => Err(Failure::passing(format!("fetching image {image} was given up"))),
        }
    }
}

async fn fetch(fetcher: &BundleImages, image: &str) -> Result<Fetched, Failure> {
    let found = fetcher.fetch(image).await.map_err(Failure::from)?;
    let named = match Reference::parse(image).map(|reference| reference.version) {
        Ok(Version::Digest(_)) => Named::Digest,
        Ok(Version::Tag(_)) | Err(_) => Named::Tag,
    };
    let bytes = found.files.values().map(Vec::len).sum();
    let digest = found.digest.to_string();
    let read = tokio::task::spawn_blocking(move || found.manifests(&Limits::default())).await;
    match read {
        Ok(Ok(manifests)) => Ok(Fetched { digest, manifests: Arc::new(manifests), named, bytes }),
        Ok(Err(error)) => Err(Failure {
            why: format!("the manifests in image {image} can't be read: {}", sentence(&error)),
            lasts: Lasts::Long,
            silence: None,
        }),
        Err(_) => Err(Failure::passing(format!("reading image {image} broke off"))),
    }
}

// === impl Failure ===

impl Failure {
    fn passing(why: String) -> Self {
        Self { why, lasts: Lasts::AWhile, silence: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let advice = error.advice();
        let silence = error.unreachable().map(|attempts| {
            let told: Vec<String> = attempts
                .iter()
                .map(|at| format!("{}: {}", at.place.registry, sentence(&at.error)))
                .collect();
            format!("{}; {advice}", told.join("; "))
        });
        Self {
            why: format!("{}; {advice}", sentence(&error)),
            lasts: if error.is_transient() { Lasts::AWhile } else { Lasts::Long },
            silence,
        }
    }
}

#[cfg(test)]
mod tests;
