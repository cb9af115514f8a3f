//! The search: choices in order, the preferred alternative first, back when nothing is left.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    ResolveError,
    nodes::{NodeId, Problem},
};
use crate::engine::Unmet;

/// Real namespaces need tens of guesses. An adversary's catalog must not hold a hub up.
const GUESSES_MAX: usize = 200_000;

/// How many reasons are listed.
const UNMET_MAX: usize = 16;

/// A question that is still open: one of these must be chosen.
#[derive(Debug, Clone, Copy)]
struct Choice<'p> {
    alternatives: &'p [NodeId],
    next: usize,
}

/// A question that was answered.
#[derive(Debug)]
struct Guess<'p> {
    choice: Choice<'p>,
    /// What was newly chosen; nothing if an earlier choice answers the question too.
    chosen: Option<NodeId>,
    /// How many questions it raised.
    raised: usize,
}

struct Search<'p> {
    problem: &'p Problem<'p>,
    is_hopeless: Vec<bool>,
    open: VecDeque<Choice<'p>>,
    guesses: Vec<Guess<'p>>,
    chosen: BTreeSet<NodeId>,
    guessed: usize,
}

/// The chosen nodes.
pub(super) fn solve(problem: &Problem<'_>) -> Result<BTreeSet<NodeId>, ResolveError> {
    let is_hopeless = hopeless(problem);
    let questions = problem
        .mandatory
        .iter()
        .map(std::slice::from_ref)
        .chain(problem.choices.iter().map(Vec::as_slice));
    let open = questions.map(|alternatives| Choice { alternatives, next: 0 }).collect();
    let search = Search {
        problem,
        is_hopeless,
        open,
        guesses: Vec::new(),
        chosen: BTreeSet::new(),
        guessed: 0,
    };
    search.run()
}

impl<'p> Search<'p> {
    fn run(mut self) -> Result<BTreeSet<NodeId>, ResolveError> {
        while let Some(choice) = self.open.pop_front() {
            if self.answer(choice) {
                continue;
            }
            self.open.push_front(Choice { next: 0, ..choice });
            if !self.back() {
                return Err(ResolveError::Unsatisfiable { unmet: self.unmet() });
            }
            if self.guessed > GUESSES_MAX {
                return Err(ResolveError::TooHard { guesses: self.guessed });
            }
        }
        Ok(self.chosen)
    }

    /// Answers a question by an earlier choice or by its next alternative that fits.
    fn answer(&mut self, choice: Choice<'p>) -> bool {
        if choice.alternatives.iter().any(|id| self.chosen.contains(id)) {
            self.guesses.push(Guess { choice, chosen: None, raised: 0 });
            return true;
        }
        for (at, id) in choice.alternatives.iter().enumerate().skip(choice.next) {
            self.guessed += 1;
            if self.fits(*id) {
                self.choose(*id, Choice { next: at + 1, ..choice });
                if self.leaves_all_answerable() {
                    return true;
                }
                self.undo();
                self.open.pop_front();
            }
        }
        false
    }

    fn choose(&mut self, id: NodeId, choice: Choice<'p>) {
        self.chosen.insert(id);
        let needs = self.problem.needs(id);
        for need in needs {
            self.open.push_back(Choice { alternatives: &need.providers, next: 0 });
        }
        self.guesses.push(Guess { choice, chosen: Some(id), raised: needs.len() });
    }

    /// Takes the last answer back and puts its question in front again.
    fn undo(&mut self) -> Option<NodeId> {
        let guess = self.guesses.pop()?;
        for _ in 0..guess.raised {
            self.open.pop_back();
        }
        if let Some(id) = guess.chosen {
            self.chosen.remove(&id);
        }
        self.open.push_front(guess.choice);
        guess.chosen
    }

    /// Takes answers back until one was a real choice, which then goes on with its next alternative.
    fn back(&mut self) -> bool {
        while !self.guesses.is_empty() {
            if self.undo().is_some() {
                return true;
            }
        }
        false
    }

    fn fits(&self, id: NodeId) -> bool {
        !self.is_hopeless[id.index()]
            && self.chosen.iter().all(|chosen| !self.problem.conflict(*chosen, id))
    }

    /// Looks one question ahead: a question that nothing can answer any more ends this branch.
    fn leaves_all_answerable(&self) -> bool {
        self.open.iter().all(|choice| {
            choice.alternatives.iter().any(|id| self.chosen.contains(id) || self.fits(*id))
        })
    }

    /// What each Subscription's alternatives lack by themselves.
    fn unmet(&self) -> Vec<Unmet> {
        let nodes = self.problem;
        let asked = self.problem.mandatory.iter().chain(self.problem.choices.iter().flatten());
        let mut unmet = BTreeMap::new();
        for id in asked.filter(|id| self.is_hopeless[id.index()]) {
            let bundle = nodes.node(*id).name().to_owned();
            if nodes.node(*id).traits().is_prohibited {
                unmet.insert(
                    (bundle.clone(), String::new()),
                    Unmet::Deprecated { bundle: bundle.clone() },
                );
            }
            for need in nodes.needs(*id) {
                if need.providers.iter().all(|id| self.is_hopeless[id.index()]) {
                    let need = need.need.to_string();
                    let reason = Unmet::Need { bundle: bundle.clone(), need: need.clone() };
                    unmet.insert((bundle.clone(), need), reason);
                }
            }
        }
        unmet.into_values().take(UNMET_MAX).collect()
    }
}

/// The nodes that can't be chosen whatever else is: prohibited ones, and those with a need that only
/// such nodes satisfy.
fn hopeless(problem: &Problem<'_>) -> Vec<bool> {
    let nodes = problem;
    let mut is_hopeless: Vec<bool> =
        nodes.ids().map(|id| nodes.node(id).traits().is_prohibited).collect();
    loop {
        let mut changed = false;
        for id in nodes.ids().filter(|id| !is_hopeless[id.index()]).collect::<Vec<_>>() {
            let unmet = |providers: &[NodeId]| providers.iter().all(|p| is_hopeless[p.index()]);
            if nodes.needs(id).iter().any(|need| unmet(&need.providers)) {
                is_hopeless[id.index()] = true;
                changed = true;
            }
        }
        if !changed {
            return is_hopeless;
        }
    }
}
