//! The right to lead, which ends by itself.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::time::Instant;
use wavelift_core::fence::Term;

/// A leader's right to act under its term, until a time that its elector keeps pushing on.
///
/// Cheap to clone; all clones end together. Ask [`Claim::check`] right before each write: a process
/// that was stopped for longer than its lease learns there, on its own clock, that its time is
/// over, before the elector had a turn to say so.
#[derive(Clone)]
pub struct Claim {
    term: Term,
    valid_until: Arc<Mutex<Instant>>,
}

/// The claim is over: whatever was about to be written belongs to a former leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the claim of term {} is over", term.0)]
pub struct Expired {
    /// The term that is over.
    pub term: Term,
}

// === impl Claim ===

impl Claim {
    pub(super) fn new(term: Term, valid_until: Instant) -> Self {
        Self { term, valid_until: Arc::new(Mutex::new(valid_until)) }
    }

    /// A claim that nobody contends: for a process that is the only one of its kind.
    pub fn sole(term: Term) -> Self {
        // Thirty years: far enough, and no overflow on any platform.
        let far = std::time::Duration::from_hours(30 * 365 * 24);
        Self::new(term, Instant::now() + far)
    }

    /// The number that everything done under this claim carries.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Whether the claim is in force at `now`.
    pub fn is_valid_at(&self, now: Instant) -> bool {
        now < *self.valid_until.lock()
    }

    /// Whether the claim is in force; to be asked right before each write.
    pub fn check(&self) -> Result<Term, Expired> {
        if self.is_valid_at(Instant::now()) {
            Ok(self.term)
        } else {
            Err(Expired { term: self.term })
        }
    }

    /// When the claim ends if it is not renewed.
    pub fn valid_until(&self) -> Instant {
        *self.valid_until.lock()
    }

    /// Pushes the end on, unless the claim is over already: what has ended stays ended.
    pub(super) fn renew(&self, now: Instant, until: Instant) -> Result<(), Expired> {
        let mut valid_until = self.valid_until.lock();
        if now >= *valid_until {
            return Err(Expired { term: self.term });
        }
        *valid_until = until.max(*valid_until);
        Ok(())
    }

    /// Ends the claim now, for all its clones.
    pub(super) fn revoke(&self, now: Instant) {
        let mut valid_until = self.valid_until.lock();
        *valid_until = now.min(*valid_until);
    }
}

impl PartialEq for Claim {
    fn eq(&self, other: &Self) -> bool {
        self.term == other.term && Arc::ptr_eq(&self.valid_until, &other.valid_until)
    }
}

impl Eq for Claim {}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("term", &self.term).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_claim_ends_by_itself_and_stays_ended() {
        let start = Instant::now();
        let end = start + Duration::from_secs(10);
        let claim = Claim::new(Term(4), end);
        assert!(claim.is_valid_at(end - Duration::from_millis(1)));
        assert!(!claim.is_valid_at(end));
        let late = end + Duration::from_secs(1);
        assert_eq!(
            claim.renew(late, late + Duration::from_secs(10)),
            Err(Expired { term: Term(4) })
        );
        assert!(!claim.is_valid_at(late));
    }

    #[test]
    fn a_renewal_never_shortens_a_claim() {
        let start = Instant::now();
        let claim = Claim::new(Term(1), start + Duration::from_secs(10));
        claim.renew(start, start + Duration::from_secs(3)).unwrap();
        assert!(claim.is_valid_at(start + Duration::from_secs(9)));
    }

    #[test]
    fn all_clones_end_together() {
        let start = Instant::now();
        let claim = Claim::new(Term(1), start + Duration::from_secs(10));
        let clone = claim.clone();
        claim.revoke(start);
        assert!(!clone.is_valid_at(start));
        assert_eq!(clone, claim);
    }
}
