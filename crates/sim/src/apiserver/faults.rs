//! Faults on demand: refuse, drop, delay, or call back around the n-th request of someone.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;

use super::{
    audit::{Request, Verb},
    error::ApiError,
    kind::Gk,
};

/// Called with the request at hand; it runs on the server's thread and may block it.
pub type Hook = Arc<dyn Fn(&Request) -> Verdict + Send + Sync>;

/// What a hook wants to happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request goes on as if nothing had been.
    GoOn,
    /// The connection is dropped without an answer. Said before the write, the write is not done.
    Drop,
}

/// Something that goes wrong.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Which requests count.
    pub on: Matcher,
    /// Which of them are hit.
    pub times: Times,
    /// What happens to them.
    pub action: Action,
}

/// Which requests count; what is left out matches everything.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    /// How the user agent begins.
    pub user_agent: Option<String>,
    /// What they are for.
    pub verbs: Verbs,
    /// The kind.
    pub gk: Option<Gk>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// The subresource; empty for the object itself.
    pub subresource: Option<String>,
}

/// A choice of verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbs {
    /// All.
    #[default]
    Any,
    /// Those that may change something.
    Mutating,
    /// One.
    Only(Verb),
}

/// Which of the matching requests are hit, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The first.
    pub first: u64,
    /// How many from there on.
    pub count: u64,
}

/// What happens to a request.
#[derive(Clone)]
pub enum Action {
    /// It is answered with this error and not carried out.
    Refuse(ApiError),
    /// It is not carried out and the connection is dropped.
    DropBefore,
    /// It is carried out and the connection is dropped without an answer.
    DropAfter,
    /// It waits (in real time) before it is carried out.
    Delay(Duration),
    /// The hook is called before it is carried out.
    Before(Hook),
    /// The hook is called after it was carried out and before it is answered.
    After(Hook),
}

/// Names a fault of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

/// The faults of one server; starts empty.
#[derive(Debug, Default)]
pub struct FaultPlan {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    faults: Vec<(FaultId, Fault, u64)>,
}

impl Times {
    /// The n-th only.
    pub fn nth(n: u64) -> Self {
        Self { first: n, count: 1 }
    }

    /// All of them.
    pub fn all() -> Self {
        Self { first: 1, count: u64::MAX }
    }

    fn hit(self, number: u64) -> bool {
        number >= self.first && number - self.first < self.count
    }
}

impl Matcher {
    /// The mutating requests of one user agent.
    pub fn writes_of(user_agent: &str) -> Self {
        Self { user_agent: Some(user_agent.to_owned()), verbs: Verbs::Mutating, ..Self::default() }
    }

    fn matches(&self, request: &Request) -> bool {
        fn is(wanted: Option<&String>, found: &str) -> bool {
            wanted.is_none_or(|wanted| wanted == found)
        }
        let verb = match self.verbs {
            Verbs::Any => true,
            Verbs::Mutating => request.verb.is_mutating(),
            Verbs::Only(verb) => request.verb == verb,
        };
        verb && self.user_agent.as_ref().is_none_or(|agent| request.user_agent.starts_with(agent))
            && self.gk.as_ref().is_none_or(|gk| request.gk.as_ref() == Some(gk))
            && is(self.namespace.as_ref(), request.namespace.as_deref().unwrap_or_default())
            && is(self.name.as_ref(), request.name.as_deref().unwrap_or_default())
            && is(self.subresource.as_ref(), &request.subresource)
    }
}

impl FaultPlan {
    /// Adds a fault; it starts counting now.
    pub fn add(&self, fault: Fault) -> FaultId {
        let mut inner = self.inner.lock();
        inner.next += 1;
        let id = FaultId(inner.next);
        inner.faults.push((id, fault, 0));
        id
    }

    /// Takes a fault away.
    pub fn remove(&self, id: FaultId) {
        self.inner.lock().faults.retain(|(known, ..)| *known != id);
    }

    /// Takes all faults away.
    pub fn clear(&self) {
        self.inner.lock().faults.clear();
    }

    /// How many requests have matched a fault so far, whether it hit them or not.
    pub fn seen(&self, id: FaultId) -> u64 {
        let inner = self.inner.lock();
        inner.faults.iter().find(|(known, ..)| *known == id).map_or(0, |(.., seen)| *seen)
    }

    /// Counts a request and answers what happens to it.
    pub(super) fn strike(&self, request: &Request) -> Vec<Action> {
        let mut inner = self.inner.lock();
        let mut actions = Vec::new();
        for (_, fault, seen) in &mut inner.faults {
            if fault.on.matches(request) {
                *seen += 1;
                if fault.times.hit(*seen) {
                    actions.push(fault.action.clone());
                }
            }
        }
        actions
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse(error) => f.debug_tuple("Refuse").field(error).finish(),
            Self::DropBefore => f.write_str("DropBefore"),
            Self::DropAfter => f.write_str("DropAfter"),
            Self::Delay(duration) => f.debug_tuple("Delay").field(duration).finish(),
            Self::Before(_) => f.write_str("Before(..)"),
            Self::After(_) => f.write_str("After(..)"),
        }
    }
}
