//! OLM's search: question by question in the order in which they come up, the preferred alternative
//! first.
//!
//! The order in which OLM asks is partly left to chance. A [`Chance`] stands for it, so that one way
//! can be followed, or all of them. One trait of OLM's search decides answers and is kept: when it
//! goes back, a question that stays open goes on with its next alternative and does not start over.
//! A question that has run out of alternatives this way is left without an answer, if only there is
//! some way to answer it: OLM then makes an InstallPlan that leaves a need unmet.

use std::collections::{BTreeSet, VecDeque};

use super::{
    chance::Chance,
    nodes::{NodeId, Problem, QuestionId},
    solver::{Budget, Contradiction, Exhausted, Solver, Value},
};

/// How a search ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// The chosen nodes.
    Chosen {
        nodes: BTreeSet<NodeId>,
        /// Whether any order would have come to the same.
        is_certain: bool,
    },
    /// Nothing satisfies everything.
    Unsatisfiable,
}

/// A question that is still open.
#[derive(Debug, Clone)]
struct Open {
    question: QuestionId,
    /// The alternatives in the order that chance gave them, as far as it was asked.
    order: Vec<NodeId>,
    next: usize,
}

/// A question that was answered or left.
#[derive(Debug)]
struct Guess {
    open: Open,
    /// What was newly chosen, and where the solver stood before.
    chosen: Option<(NodeId, usize)>,
    /// How many questions it raised.
    raised: usize,
}

/// What is known of the choices that were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Nothing speaks against them.
    Nothing,
    /// They lead nowhere.
    DeadEnd,
}

/// One search.
struct Search<'p, 'c> {
    problem: &'p Problem<'p>,
    solver: Solver<'p>,
    open: VecDeque<Open>,
    guesses: Vec<Guess>,
    chosen: BTreeSet<NodeId>,
    /// The questions that were there from the start.
    first: &'p [QuestionId],
    /// Where the solver stood before the first choice.
    start: usize,
    chance: &'c mut Chance,
    /// Every question so far took its own first alternative.
    is_certain: bool,
}

/// Searches for the answers to these questions, asked in this order: those of Subscriptions and the
/// needs of mandatory nodes.
pub(super) fn search<'p>(
    problem: &'p Problem<'p>,
    first: &'p [QuestionId],
    chance: &mut Chance,
    budget: &mut Budget,
) -> Result<Ending, Exhausted> {
    let Ok(solver) = Solver::new(problem, first, budget)? else {
        return Ok(Ending::Unsatisfiable);
    };
    let search = Search {
        problem,
        start: solver.mark(),
        solver,
        first,
        open: first.iter().copied().map(Open::new).collect(),
        guesses: Vec::new(),
        chosen: problem.mandatory.iter().copied().collect(),
        chance,
        is_certain: true,
    };
    search.run(budget)
}

impl Open {
    fn new(question: QuestionId) -> Self {
        Self { question, order: Vec::new(), next: 0 }
    }
}

impl Search<'_, '_> {
    fn run(mut self, budget: &mut Budget) -> Result<Ending, Exhausted> {
        let mut known = Known::Nothing;
        loop {
            if self.open.is_empty() && known == Known::Nothing {
                if self.is_possible(budget)? {
                    let inevitable = self.inevitable(budget)?;
                    let Self { chosen: mut nodes, is_certain, .. } = self;
                    nodes.extend(inevitable);
                    return Ok(Ending::Chosen { nodes, is_certain });
                }
                known = Known::DeadEnd;
            }
            known = match known {
                Known::Nothing => self.guess(budget)?,
                Known::DeadEnd => {
                    self.is_certain = false;
                    match self.undo() {
                        None if self.guesses.is_empty() => return Ok(Ending::Unsatisfiable),
                        None => known,
                        // OLM's solver has learned enough to see that earlier choices lead nowhere too.
                        Some(()) if self.is_possible(budget)? => Known::Nothing,
                        Some(()) => Known::DeadEnd,
                    }
                }
            };
        }
    }

    /// Answers the first open question, by an earlier choice or by its next alternative.
    fn guess(&mut self, budget: &mut Budget) -> Result<Known, Exhausted> {
        let Some(mut open) = self.open.pop_front() else { return Ok(Known::Nothing) };
        let members = &self.problem.question(open.question).members;
        // To go through a long list of alternatives is work too.
        budget.spend(1 + members.len() / 16)?;
        let is_answered = members.iter().any(|id| self.chosen.contains(id));
        let is_by_first = members.first().is_some_and(|id| self.chosen.contains(id));
        self.is_certain &= !is_answered || is_by_first;
        let next = if is_answered { None } else { self.next_of(&mut open) };
        let Some(id) = next else {
            self.guesses.push(Guess { open, chosen: None, raised: 0 });
            return Ok(Known::Nothing);
        };
        let mark = self.solver.mark();
        self.chosen.insert(id);
        let needs = self.problem.needs(id);
        self.open.extend(needs.iter().copied().map(Open::new));
        self.guesses.push(Guess { open, chosen: Some((id, mark)), raised: needs.len() });
        Ok(match self.solver.choose(id, budget)? {
            Ok(()) => Known::Nothing,
            Err(Contradiction) => Known::DeadEnd,
        })
    }

    /// The next alternative of a question; within a rank chance says which.
    fn next_of(&mut self, open: &mut Open) -> Option<NodeId> {
        let question = self.problem.question(open.question);
        if open.next == open.order.len() {
            let mut before = 0;
            let rank = question.ranks.iter().find(|rank| {
                before += rank.len();
                before > open.next
            })?;
            let mut left: Vec<NodeId> =
                rank.iter().copied().filter(|id| !open.order.contains(id)).collect();
            // An alternative that can't be is passed over wherever it stands: no need to try all
            // orders of those.
            left.sort_by_key(|id| self.solver.value(*id) == Value::Out);
            let possible = left.iter().filter(|id| self.solver.value(**id) != Value::Out).count();
            self.is_certain &= rank.len() < 2;
            let picked = self.chance.pick(possible.max(1));
            open.order.push(*left.get(picked)?);
        }
        open.order.get(open.next).copied()
    }

    /// Takes the last guess back; nothing if it chose nothing.
    fn undo(&mut self) -> Option<()> {
        let guess = self.guesses.pop()?;
        for _ in 0..guess.raised {
            self.open.pop_back();
        }
        let mut open = guess.open;
        let result = guess.chosen.map(|(id, mark)| {
            self.chosen.remove(&id);
            self.solver.back_to(mark);
            open.next += 1;
        });
        self.open.push_front(open);
        result
    }

    /// Whether there is any way to answer every question beside what was chosen.
    fn is_possible(&mut self, budget: &mut Budget) -> Result<bool, Exhausted> {
        self.fill(budget, 0)
    }

    /// Where a question was left without an answer: what the solver has learned by then to be part of
    /// every solution, and so adds by itself.
    fn inevitable(&mut self, budget: &mut Budget) -> Result<Vec<NodeId>, Exhausted> {
        let problem = self.problem;
        let is_open = |id: &&QuestionId| {
            problem.question(**id).members.iter().all(|member| !self.chosen.contains(member))
        };
        let open: Vec<QuestionId> = self.first.iter().filter(is_open).copied().collect();
        self.solver.back_to(self.start);
        let mut inevitable = Vec::new();
        for id in open.iter().flat_map(|question| &problem.question(*question).members) {
            if self.solver.value(*id) != Value::Out {
                let can_be_without = self.solver.value(*id) == Value::Open
                    && self.solver.set(*id, Value::Out, budget)?.is_ok()
                    && self.fill(budget, 0)?;
                self.solver.back_to(self.start);
                if !can_be_without {
                    inevitable.push(*id);
                }
            }
        }
        Ok(inevitable)
    }

    /// Answers what is unanswered, trying every alternative, and takes all of it back. An alternative
    /// that led nowhere is out for the ones after it.
    fn fill(&mut self, budget: &mut Budget, depth: usize) -> Result<bool, Exhausted> {
        let Some(question) = self.solver.unanswered(budget)? else { return Ok(true) };
        if depth > DEPTH_MAX {
            return Err(Exhausted);
        }
        let start = self.solver.mark();
        let members = &self.problem.question(question).members;
        let mut found = false;
        for id in members {
            if self.solver.value(*id) == Value::Out {
                continue;
            }
            budget.spend(1)?;
            let before = self.solver.mark();
            found = self.solver.choose(*id, budget)?.is_ok() && self.fill(budget, depth + 1)?;
            self.solver.back_to(before);
            if found || self.solver.set(*id, Value::Out, budget)?.is_err() {
                break;
            }
        }
        self.solver.back_to(start);
        Ok(found)
    }
}

/// How many choices may hang on each other where the search has to try all.
const DEPTH_MAX: usize = 2000;
