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
    /// Bytes of what is here.
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
    /// Where it is looked for, in this order.
    registries: Vec<String>,
    /// Clusters that need it, as far as this pass has come, and in the one before.
    users: (usize, usize),
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
    /// It is being fetched.
    Open,
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
            entry.users = (0, entry.users.0);
            entry.used >= last || matches!(entry.shown, Shown::Here(_)) || entry.work == Work::Open
        });
        self.silent.retain(|_, (until, _)| *until > now);
    }

    /// Where the manifests of an image are; those that are not here will be fetched.
    pub(crate) fn find(&mut self, image: &str, users: usize, now: Instant) -> Image {
        self.tick += 1;
        if !self.entries.contains_key(image)
            && let Err(why) = self.begin(image, users)
        {
            return Image::Missing(why.to_owned());
        }
        let (pass, tick) = (self.pass, self.tick);
        let Some(entry) = self.entries.get_mut(image) else { return Image::Awaited };
        entry.used = pass;
        entry.users.0 = entry.users.0.max(users);
        if matches!(entry.work, Work::Again(at) if at <= now) {
            entry.work = Work::Queued(tick);
        }
        match &entry.shown {
            Shown::Nothing => Image::Awaited,
            Shown::Here(fetched) => Image::Here(fetched.clone()),
            Shown::Missing(why) => Image::Missing(why.clone()),
        }
    }

    fn begin(&mut self, image: &str, users: usize) -> Result<(), &'static str> {
        let Some(fetcher) = &self.fetcher else {
            return Err("this hub does not fetch bundle images (--bundle-images)");
        };
        // What is no name fails when it is fetched, at once.
        let registries = fetcher.registries(image).unwrap_or_default();
        if self.entries.len() >= self.room.known && !self.drop_one(users, |_| true) {
            return Err("the hub has no room for its image");
        }
        let (shown, work) = (Shown::Nothing, Work::Queued(self.tick));
        let entry = Entry { shown, work, registries, users: (users, 0), used: self.pass };
        self.entries.insert(image.to_owned(), entry);
        Ok(())
    }

    /// What is to be fetched next, if there is room: what most clusters need, then what was asked
    /// for first.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Fetch> {
        let fetcher = self.fetcher.clone()?;
        let mut open: BTreeMap<&[String], usize> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| entry.work == Work::Open) {
            *open.entry(&entry.registries).or_default() += 1;
        }
        if open.values().sum::<usize>() >= self.room.at_once {
            return None;
        }
        let is_full = |entry: &Entry| {
            open.get(&*entry.registries).is_some_and(|count| *count >= self.room.at_one_place)
        };
        let mut queued: Vec<(usize, u64, String)> = self
            .entries
            .iter()
            .filter(|(_, entry)| !is_full(entry))
            .filter_map(|(image, entry)| {
                let Work::Queued(order) = entry.work else { return None };
                Some((entry.needed(), order, image.clone()))
            })
            .collect();
        queued.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, _, image) in queued {
            let Some(entry) = self.entries.get_mut(&image) else { continue };
            let silence = self.silent.get(&entry.registries).filter(|(until, _)| *until > now);
            let Some((until, told)) = silence.cloned() else {
                entry.work = Work::Open;
                return Some(Fetch { image, fetcher, end: self.end.clone() });
            };
            self.failed(&image, format!("failed to pull image {image}: {told}"), until);
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
        let asked = self.entries.get(image).filter(|entry| entry.work == Work::Open);
        let Some(registries) = asked.map(|entry| entry.registries.clone()) else {
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
            if entry.work == Work::Open {
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
        let Some(entry) = self.entries.get_mut(image) else { return "unasked" };
        let users = entry.needed();
        // What it replaces counts no more.
        let before = std::mem::replace(&mut entry.shown, Shown::Nothing);
        self.bytes -= before.bytes();
        while !self.has_room(fetched.bytes) {
            if !self.drop_one(users, |entry| matches!(entry.shown, Shown::Here(_))) {
                let why = "the hub has no room for its manifests".to_owned();
                self.failed(image, why, now + TRANSIENT_PAUSE);
                return "no_room";
            }
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

    fn has_room(&self, bytes: usize) -> bool {
        let here = self.entries.values().filter(|entry| matches!(entry.shown, Shown::Here(_)));
        here.count() < self.room.images && self.bytes + bytes <= self.room.bytes
    }

    /// Drops one of these that fewer clusters need than `users`, or nobody: one cluster must not
    /// push out what others use. False if there is none.
    fn drop_one(&mut self, users: usize, which: impl Fn(&Entry) -> bool) -> bool {
        let idle = self.entries.iter().filter(|(_, entry)| {
            entry.work != Work::Open
                && (entry.needed() < users || entry.needed() == 0)
                && which(entry)
        });
        let least = idle.min_by_key(|(_, entry)| (entry.needed(), entry.used));
        let Some(entry) =
            least.map(|(image, _)| image.clone()).and_then(|image| self.entries.remove(&image))
        else {
            return false;
        };
        self.bytes -= entry.shown.bytes();
        true
    }
}

// === impl Entry ===

impl Entry {
    /// How many clusters need it.
    fn needed(&self) -> usize {
        self.users.0.max(self.users.1)
    }
}

// === impl Shown ===

impl Shown {
    fn bytes(&self) -> usize {
        match self {
            Self::Here(fetched) => fetched.bytes,
            Self::Nothing | Self::Missing(_) => 0,
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
