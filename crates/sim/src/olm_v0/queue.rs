//! What the simulated OLM has still to do, and when.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

/// Tasks in the order of their times, each at most once.
///
/// Tasks of the same time come out in the order in which they were put in.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    due: BTreeSet<(Timestamp, u64, T)>,
    of: BTreeMap<T, (Timestamp, u64)>,
    sequence: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { due: BTreeSet::new(), of: BTreeMap::new(), sequence: 0 }
    }
}

impl<T: Ord + Clone> Queue<T> {
    /// Puts `task` in at `at`; one that is already in keeps the earlier of both times.
    pub(crate) fn push(&mut self, at: Timestamp, task: T) {
        if let Some((earlier, sequence)) = self.of.get(&task) {
            if *earlier <= at {
                return;
            }
            self.due.remove(&(*earlier, *sequence, task.clone()));
        }
        self.sequence += 1;
        self.of.insert(task.clone(), (at, self.sequence));
        self.due.insert((at, self.sequence, task));
    }

    /// Takes the first task that is due at `now`, with its time.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, T)> {
        if self.next()? > now {
            return None;
        }
        let (at, _, task) = self.due.pop_first()?;
        self.of.remove(&task);
        Some((at, task))
    }

    /// The time of the first task.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, ..)| *at)
    }
}

/// `at` plus `delay`; the end of time when that is beyond it.
pub(crate) fn after(at: Timestamp, delay: Duration) -> Timestamp {
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    at.checked_add(delay).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_task_that_is_put_in_twice_comes_out_once_at_the_earlier_time() {
        let mut queue = Queue::default();
        queue.push(second(5), "a");
        queue.push(second(3), "a");
        queue.push(second(9), "a");
        queue.push(second(3), "b");
        assert_eq!(queue.pop_due(second(2)), None);
        assert_eq!(queue.pop_due(second(9)), Some((second(3), "a")));
        assert_eq!(queue.pop_due(second(9)), Some((second(3), "b")));
        assert_eq!(queue.pop_due(second(9)), None);
    }
}
