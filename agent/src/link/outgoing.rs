//! What goes to the hub next, and how large contents are cut into parts.
//!
//! Signs of life come first, then statuses, then the queue, then parts of an upload: a large
//! catalog never holds up a transition.

use bytes::Bytes;
use prost::Message as _;
use tracing::warn;
use wavelift_proto::v1::AgentMessage;

use super::{
    convert,
    handle::Shared,
    message::{AgentReport, StatusReport},
    metrics::Metrics,
};

/// Room in a part for everything but its content.
const PART_OVERHEAD: usize = 512;

/// One part of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) digest: String,
    pub(super) index: u32,
    pub(super) count: u32,
    pub(super) bytes: Bytes,
}

/// What waits to be sent. It outlives sessions.
#[derive(Debug)]
pub(super) struct Outgoing {
    metrics: Metrics,
    /// A report taken from the queue that has not been sent.
    front: Option<AgentReport>,
    upload: Option<Upload>,
    is_heartbeat_due: bool,
}

#[derive(Debug)]
struct Upload {
    wrap: fn(Part) -> AgentMessage,
    digest: String,
    content: Bytes,
    next: u32,
}

impl Outgoing {
    pub(super) fn new(metrics: Metrics) -> Self {
        Self { metrics, front: None, upload: None, is_heartbeat_due: false }
    }

    /// A new session knows nothing of the former: uploads begin anew, statuses are sent again.
    pub(super) fn begin_session(&mut self, shared: &Shared) {
        shared.outbox.lock().repeat();
        self.is_heartbeat_due = false;
        if let Some(upload) = &mut self.upload {
            upload.next = 0;
        }
    }

    pub(super) fn heartbeat(&mut self) {
        self.is_heartbeat_due = true;
    }

    /// Whether another report can be taken from the queue.
    pub(super) fn wants_report(&self) -> bool {
        self.front.is_none()
    }

    pub(super) fn put(&mut self, report: AgentReport) {
        self.front = Some(report);
    }

    pub(super) fn is_waiting(&self, shared: &Shared) -> bool {
        self.is_heartbeat_due
            || self.front.is_some()
            || self.upload.is_some()
            || shared.outbox.lock().has_due()
    }

    /// The next message of at most `bytes_max` bytes.
    pub(super) fn next(&mut self, shared: &Shared, bytes_max: usize) -> Option<AgentMessage> {
        if std::mem::take(&mut self.is_heartbeat_due) {
            return Some(convert::heartbeat());
        }
        while let Some(status) = next_status(shared) {
            if let Some(message) = self.fitting("status", convert::status(status), bytes_max) {
                return Some(message);
            }
        }
        if let Some(message) = self.next_report(bytes_max) {
            return Some(message);
        }
        let upload = self.upload.as_mut()?;
        let (part, is_last) = upload.part(bytes_max);
        let message = (upload.wrap)(part);
        if is_last {
            self.upload = None;
        }
        Some(message)
    }

    fn next_report(&mut self, bytes_max: usize) -> Option<AgentMessage> {
        let report = self.front.take()?;
        let kind = convert::kind(&report);
        let message = match report {
            AgentReport::Inventory { .. }
            | AgentReport::Catalog { .. }
            | AgentReport::Piece { .. }
                if self.upload.is_some() =>
            {
                // It waits for its turn, and what is behind it waits too.
                self.front = Some(report);
                return None;
            }
            AgentReport::Inventory { digest, content } => {
                self.upload = Some(Upload::new(convert::inventory_part, digest, content));
                return None;
            }
            AgentReport::Catalog { digest, content } => {
                self.upload = Some(Upload::new(convert::catalog_part, digest, content));
                return None;
            }
            AgentReport::Piece { digest, content } => {
                self.upload = Some(Upload::new(convert::piece_part, digest, content));
                return None;
            }
            AgentReport::PieceMissing { digest, reason } => convert::piece_missing(digest, reason),
            AgentReport::InventoryDigest(digest) => convert::inventory_digest(digest),
            AgentReport::Progress(progress) => convert::progress(progress),
            AgentReport::CheckReport(report) => convert::check_report(report),
            AgentReport::QueryAnswer { id, result } => {
                let message = convert::answer(id, result);
                return Some(if message.encoded_len() > bytes_max {
                    self.metrics.dropped.with_label_values(&["too_large"]).inc();
                    convert::answer(id, Err("the answer is too long for the link".to_owned()))
                } else {
                    message
                });
            }
        };
        self.fitting(kind, message, bytes_max)
    }

    /// Holds back what would cost the session.
    fn fitting(
        &self,
        kind: &'static str,
        message: AgentMessage,
        bytes_max: usize,
    ) -> Option<AgentMessage> {
        let bytes = message.encoded_len();
        if bytes <= bytes_max {
            return Some(message);
        }
        self.metrics.dropped.with_label_values(&["too_large"]).inc();
        warn!(kind, bytes, bytes_max, "not sent: longer than the hub takes");
        None
    }
}

fn next_status(shared: &Shared) -> Option<StatusReport> {
    shared.outbox.lock().next()
}

impl Upload {
    fn new(wrap: fn(Part) -> AgentMessage, digest: String, content: Bytes) -> Self {
        Self { wrap, digest, content, next: 0 }
    }

    /// The next part, and whether it is the last.
    fn part(&mut self, bytes_max: usize) -> (Part, bool) {
        let size = bytes_max.saturating_sub(PART_OVERHEAD).max(1);
        let count = self.content.len().div_ceil(size).max(1);
        let index = self.next;
        self.next += 1;
        let start = (index as usize).saturating_mul(size).min(self.content.len());
        let end = start.saturating_add(size).min(self.content.len());
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let bytes = self.content.slice(start..end);
        (Part { digest: self.digest.clone(), index, count, bytes }, self.next >= count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(content: &'static str, size: usize) -> Vec<(u32, u32, Bytes)> {
        let content = Bytes::from_static(content.as_bytes());
        let mut upload = Upload::new(convert::catalog_part, "d".to_owned(), content);
        let mut parts = Vec::new();
        loop {
            let (part, is_last) = upload.part(size + PART_OVERHEAD);
            parts.push((part.index, part.count, part.bytes));
            if is_last {
                return parts;
            }
        }
    }

    #[test]
    fn a_content_is_cut_into_parts_that_make_it_again() {
        assert_eq!(parts("", 4), [(0, 1, Bytes::new())]);
        assert_eq!(parts("abcd", 4), [(0, 1, "abcd".into())]);
        let three = [(0, 3, "abcd".into()), (1, 3, "efgh".into()), (2, 3, "i".into())];
        assert_eq!(parts("abcdefghi", 4), three);
    }
}
