//! What to do about the lease, given what it says and when it was last seen to change.
//!
//! Pure: the record, the time it was observed to change and the time now are arguments. The
//! `renewTime` in the record was written by another machine's clock, so nothing is ever computed
//! from it; it only tells two renewals apart.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use wavelift_core::fence::Term;

/// What a lease said when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; absent after a release.
    pub holder: Option<String>,
    /// The number of the present (or, after a release, the last) leader.
    pub term: Term,
    /// For how long after each renewal nobody else may take it.
    pub duration: Duration,
    /// The holder's own word about its last renewal: compared for equality, never with a clock.
    pub renewed: Option<Timestamp>,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Me<'a> {
    /// The identity, unique to this process.
    pub identity: &'a str,
    /// The term this process leads with, if it leads.
    pub held: Option<Term>,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is no lease: create it with this term.
    Create {
        /// The term to lead with.
        term: Term,
    },
    /// The lease is free or its time is over: take it with this term.
    Take {
        /// The term to lead with.
        term: Term,
    },
    /// It is ours and in force: renew it.
    Renew {
        /// The term that goes on.
        term: Term,
    },
    /// Somebody else holds it, at least until then if nothing is heard.
    Wait {
        /// When its time is over unless it changes.
        until: Instant,
    },
}

/// Decides the next step for `me` from a record last seen to change at `observed_at`.
///
/// A lease in our name that we do not lead with (an earlier life of this process, or a claim of
/// ours that ran out) is taken under a new term at once: nobody else can be harmed by that, and
/// what the earlier life still has under way carries a lower term. `floor` is the highest term
/// known from elsewhere, so that deleting the lease does not lower the number.
pub fn decide(
    record: Option<&Record>,
    observed_at: Instant,
    me: Me<'_>,
    now: Instant,
    floor: Term,
) -> Step {
    let Some(record) = record else {
        return Step::Create { term: above(floor) };
    };
    let take = Step::Take { term: above(record.term.max(floor)) };
    let until = observed_at + record.duration;
    match record.holder.as_deref() {
        None => take,
        Some(holder) if holder == me.identity => {
            if me.held == Some(record.term) && now < until {
                Step::Renew { term: record.term }
            } else {
                take
            }
        }
        Some(_) if now >= until => take,
        Some(_) => Step::Wait { until },
    }
}

/// The term after `term`.
fn above(term: Term) -> Term {
    Term(term.0.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(15);

    fn mk_record(holder: Option<&str>, term: u64) -> Record {
        Record {
            holder: holder.map(str::to_owned),
            term: Term(term),
            duration: DURATION,
            renewed: None,
        }
    }

    /// Decides for `anna`, who leads with `held`, `seconds` after the record was seen to change.
    fn step(record: Option<&Record>, held: Option<u64>, seconds: u64, floor: u64) -> Step {
        let observed_at = Instant::now();
        let me = Me { identity: "anna", held: held.map(Term) };
        decide(record, observed_at, me, observed_at + Duration::from_secs(seconds), Term(floor))
    }

    #[test]
    fn no_lease_is_created_above_the_floor() {
        assert_eq!(step(None, None, 0, 0), Step::Create { term: Term(1) });
        assert_eq!(step(None, None, 0, 41), Step::Create { term: Term(42) });
    }

    #[test]
    fn a_released_lease_is_taken_at_once_with_the_next_term() {
        assert_eq!(step(Some(&mk_record(None, 6)), None, 0, 0), Step::Take { term: Term(7) });
        assert_eq!(step(Some(&mk_record(None, 6)), None, 0, 9), Step::Take { term: Term(10) });
    }

    #[test]
    fn another_holder_is_left_alone_until_its_time_by_our_clock_is_over() {
        let record = mk_record(Some("bert"), 3);
        assert!(matches!(step(Some(&record), None, 0, 0), Step::Wait { .. }));
        assert!(matches!(step(Some(&record), None, 14, 0), Step::Wait { .. }));
        assert_eq!(step(Some(&record), None, 15, 0), Step::Take { term: Term(4) });
    }

    #[test]
    fn the_holders_own_clock_is_not_believed() {
        for renewed in [Timestamp::MIN, Timestamp::MAX] {
            let record = Record { renewed: Some(renewed), ..mk_record(Some("bert"), 3) };
            assert!(matches!(step(Some(&record), None, 14, 0), Step::Wait { .. }));
            assert_eq!(step(Some(&record), None, 15, 0), Step::Take { term: Term(4) });
        }
    }

    #[test]
    fn our_own_lease_is_renewed_while_it_is_in_force() {
        let record = mk_record(Some("anna"), 5);
        assert_eq!(step(Some(&record), Some(5), 14, 0), Step::Renew { term: Term(5) });
    }

    #[test]
    fn our_own_lease_that_ran_out_is_taken_under_a_new_term() {
        let record = mk_record(Some("anna"), 5);
        assert_eq!(step(Some(&record), Some(5), 15, 0), Step::Take { term: Term(6) });
    }

    #[test]
    fn a_lease_in_our_name_that_we_do_not_lead_with_gets_a_new_term() {
        let record = mk_record(Some("anna"), 5);
        assert_eq!(step(Some(&record), None, 1, 0), Step::Take { term: Term(6) });
        assert_eq!(step(Some(&record), Some(4), 1, 0), Step::Take { term: Term(6) });
    }
}
