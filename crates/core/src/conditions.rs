//! Conditions as Kubernetes writes them, computed from the state and never the other way round.

mod fleet;

use jiff::Timestamp;

pub use fleet::{FleetFacts, fleet_upgrade};

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Truth {
    /// It does.
    True,
    /// It does not.
    False,
    /// Could not tell.
    Unknown,
}

/// A condition as it was just computed, without its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    /// Its type, e.g. `Ready`.
    pub kind: &'static str,
    /// Whether it holds.
    pub status: Truth,
    /// CamelCase, never empty.
    pub reason: String,
    /// One sentence.
    pub message: String,
}

/// A condition with its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its type, e.g. `Ready`.
    pub kind: String,
    /// Whether it holds.
    pub status: Truth,
    /// CamelCase, never empty.
    pub reason: String,
    /// One sentence.
    pub message: String,
    /// The generation that it speaks of.
    pub observed_generation: i64,
    /// When `status` last changed.
    pub last_transition: Timestamp,
}

impl Truth {
    /// As Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// `True` for yes.
    pub fn from_bool(yes: bool) -> Self {
        if yes { Self::True } else { Self::False }
    }
}

impl Fresh {
    /// A condition of `kind`.
    pub fn new(
        kind: &'static str,
        status: Truth,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, status, reason: reason.into(), message: message.into() }
    }
}

/// Gives `fresh` conditions their transition times: kept where the status is what it was.
///
/// Conditions of other types in `old` are kept as they are, behind the fresh ones.
pub fn merge(
    old: &[Condition],
    fresh: Vec<Fresh>,
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    let mut merged: Vec<Condition> = fresh
        .into_iter()
        .map(|new| {
            let before = old.iter().find(|c| c.kind == new.kind && c.status == new.status);
            Condition {
                kind: new.kind.to_owned(),
                status: new.status,
                reason: new.reason,
                message: new.message,
                observed_generation: generation,
                last_transition: before.map_or(now, |c| c.last_transition),
            }
        })
        .collect();
    for kept in old {
        if merged.iter().all(|c| c.kind != kept.kind) {
            merged.push(kept.clone());
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_time_changes_only_with_the_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = merge(&[], vec![Fresh::new("Ready", Truth::False, "A", "a")], 1, at(1));
        let same = merge(&first, vec![Fresh::new("Ready", Truth::False, "B", "b")], 2, at(2));
        assert_eq!(same[0].last_transition, at(1));
        assert_eq!((same[0].reason.as_str(), same[0].observed_generation), ("B", 2));
        let other = merge(&same, vec![Fresh::new("Ready", Truth::True, "C", "c")], 2, at(3));
        assert_eq!(other[0].last_transition, at(3));
        let kept = merge(&other, vec![Fresh::new("Paused", Truth::True, "P", "p")], 2, at(4));
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[1].last_transition, at(3));
    }
}
