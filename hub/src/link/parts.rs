//! Puts inventories and catalogs together from their parts, within limits.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;

use super::event::UploadDropped;

/// One part of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) digest: String,
    pub(super) index: u32,
    pub(super) count: u32,
    pub(super) bytes: Bytes,
}

/// What a part led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// More parts must follow.
    More,
    /// The upload is whole.
    Whole { digest: String, bytes: Bytes },
    /// The upload is given up.
    Dropped { digest: String, reason: UploadDropped },
    /// The part belongs to an upload that was given up before.
    Ignored,
}

/// The room that all unfinished uploads of all sessions share.
#[derive(Debug, Clone)]
pub(super) struct Room {
    used: Arc<AtomicUsize>,
    max: usize,
}

/// The unfinished upload of one kind in one session.
#[derive(Debug)]
pub(super) struct Assembly {
    room: Room,
    bytes_max: usize,
    current: Option<Upload>,
}

#[derive(Debug)]
struct Upload {
    digest: String,
    count: u32,
    next: u32,
    bytes: Vec<u8>,
    share: Share,
}

/// What one upload takes of the room, given back when it is dropped.
#[derive(Debug)]
struct Share {
    room: Room,
    bytes: usize,
}

// === impl Room ===

impl Room {
    pub(super) fn new(max: usize) -> Self {
        Self { used: Arc::new(AtomicUsize::new(0)), max }
    }
}

// === impl Share ===

impl Share {
    fn grow(&mut self, by: usize) -> bool {
        let before = self.room.used.fetch_add(by, Ordering::Relaxed);
        self.bytes += by;
        before.saturating_add(by) <= self.room.max
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

// === impl Assembly ===

impl Assembly {
    pub(super) fn new(room: Room, bytes_max: usize) -> Self {
        Self { room, bytes_max, current: None }
    }

    /// Takes the next part. Parts come in order, because a stream keeps its order; a part with
    /// index 0 begins anew.
    pub(super) fn take(&mut self, part: Part) -> Taken {
        let Part { digest, index, count, bytes } = part;
        let mut upload = match self.current.take() {
            Some(upload) if upload.expects(&digest, index, count) => upload,
            Some(upload) if index > 0 => {
                return Taken::Dropped { digest: upload.digest, reason: UploadDropped::Incomplete };
            }
            Some(_) | None if index == 0 => {
                let share = Share { room: self.room.clone(), bytes: 0 };
                Upload { digest, count, next: 0, bytes: Vec::new(), share }
            }
            Some(_) | None => return Taken::Ignored,
        };
        let dropped = |upload: Upload, reason| Taken::Dropped { digest: upload.digest, reason };
        if upload.bytes.len().saturating_add(bytes.len()) > self.bytes_max {
            return dropped(upload, UploadDropped::TooLarge);
        }
        if !upload.share.grow(bytes.len()) {
            return dropped(upload, UploadDropped::NoRoom);
        }
        upload.bytes.extend_from_slice(&bytes);
        upload.next += 1;
        if upload.next >= upload.count {
            return Taken::Whole { digest: upload.digest, bytes: upload.bytes.into() };
        }
        self.current = Some(upload);
        Taken::More
    }

    /// Gives up what is unfinished; its digest, if there is one.
    pub(super) fn give_up(&mut self) -> Option<String> {
        self.current.take().map(|upload| upload.digest)
    }
}

impl Upload {
    fn expects(&self, digest: &str, index: u32, count: u32) -> bool {
        index > 0 && self.next == index && self.count == count && self.digest == digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(digest: &str, index: u32, count: u32, bytes: &'static str) -> Part {
        let bytes = Bytes::from_static(bytes.as_bytes());
        Part { digest: digest.to_owned(), index, count, bytes }
    }

    fn dropped(digest: &str, reason: UploadDropped) -> Taken {
        Taken::Dropped { digest: digest.to_owned(), reason }
    }

    #[test]
    fn parts_in_order_make_the_whole() {
        let mut assembly = Assembly::new(Room::new(100), 100);
        assert_eq!(assembly.take(part("a", 0, 3, "one ")), Taken::More);
        assert_eq!(assembly.take(part("a", 1, 3, "two ")), Taken::More);
        let whole = Taken::Whole { digest: "a".to_owned(), bytes: "one two three".into() };
        assert_eq!(assembly.take(part("a", 2, 3, "three")), whole);
        let small = Taken::Whole { digest: "b".to_owned(), bytes: "x".into() };
        assert_eq!(assembly.take(part("b", 0, 1, "x")), small);
    }

    #[test]
    fn a_gap_drops_the_upload_and_the_rest_of_it_is_ignored() {
        let mut assembly = Assembly::new(Room::new(100), 100);
        assert_eq!(assembly.take(part("a", 1, 3, "x")), Taken::Ignored);
        assert_eq!(assembly.take(part("a", 0, 4, "x")), Taken::More);
        assert_eq!(assembly.take(part("a", 2, 4, "x")), dropped("a", UploadDropped::Incomplete));
        assert_eq!(assembly.take(part("a", 3, 4, "x")), Taken::Ignored);
        assert_eq!(assembly.take(part("b", 0, 2, "x")), Taken::More);
        assert_eq!(assembly.take(part("c", 1, 2, "x")), dropped("b", UploadDropped::Incomplete));
    }

    #[test]
    fn an_upload_that_begins_anew_forgets_its_first_try() {
        let mut assembly = Assembly::new(Room::new(100), 100);
        assert_eq!(assembly.take(part("a", 0, 2, "old")), Taken::More);
        assert_eq!(assembly.take(part("a", 0, 2, "new")), Taken::More);
        let whole = Taken::Whole { digest: "a".to_owned(), bytes: "newer".into() };
        assert_eq!(assembly.take(part("a", 1, 2, "er")), whole);
    }

    #[test]
    fn one_upload_and_all_together_have_a_limit_and_give_their_room_back() {
        let room = Room::new(8);
        let mut first = Assembly::new(room.clone(), 6);
        let mut second = Assembly::new(room.clone(), 6);
        assert_eq!(first.take(part("a", 0, 3, "12345")), Taken::More);
        assert_eq!(first.take(part("a", 1, 3, "67")), dropped("a", UploadDropped::TooLarge));
        assert_eq!(first.take(part("a", 0, 2, "12345")), Taken::More);
        assert_eq!(second.take(part("b", 0, 2, "1234")), dropped("b", UploadDropped::NoRoom));
        assert_eq!(first.give_up(), Some("a".to_owned()));
        assert_eq!(second.take(part("b", 0, 2, "1234")), Taken::More);
        assert_eq!(room.used.load(Ordering::Relaxed), 4);
        drop(second);
        assert_eq!(room.used.load(Ordering::Relaxed), 0);
    }
}
