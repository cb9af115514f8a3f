//! What follows from what was chosen: nodes that can't be any more, and nodes that have to be.
//!
//! This is unit propagation over three kinds of rules: a chosen node needs one of its question's
//! alternatives, a claim is held by at most one chosen node, and rivals exclude each other. It sees
//! what OLM's solver sees at once after each choice, no more and no less.

use super::nodes::{NodeId, Problem, QuestionId};

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Open,
    In,
    Out,
}

/// The rules can't all hold any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contradiction;

/// The search took more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

/// How much may still be done. Counted in propagated facts, so that it is the same everywhere.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    left: u64,
    all: u64,
}

/// What is known of all nodes.
#[derive(Debug, Clone)]
pub(super) struct Solver<'p> {
    problem: &'p Problem<'p>,
    values: Vec<Value>,
    trail: Vec<NodeId>,
    /// Facts up to here have been propagated.
    done: usize,
    questions: Vec<Counts>,
    /// Of each node the questions that it can answer.
    answers: Vec<Vec<QuestionId>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    not_out: usize,
    chosen: usize,
    owners: usize,
    is_asked: bool,
}

// === impl Budget ===

impl Budget {
    pub(super) fn new(all: u64) -> Self {
        Self { left: all, all }
    }

    pub(super) fn all(&self) -> u64 {
        self.all
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(steps).ok_or(Exhausted)?;
        Ok(())
    }
}

// === impl Solver ===

impl<'p> Solver<'p> {
    /// Everything that is known before the first choice. `asking` are the questions that have to
    /// be answered.
    pub(super) fn new(
        problem: &'p Problem<'p>,
        asking: &[QuestionId],
        budget: &mut Budget,
    ) -> Result<Result<Self, Contradiction>, Exhausted> {
        let count = problem.ids().count();
        let mut solver = Self {
            problem,
            values: vec![Value::Open; count],
            trail: Vec::new(),
            done: 0,
            questions: vec![Counts::default(); problem.questions.len()],
            answers: vec![Vec::new(); count],
        };
        for id in problem.question_ids() {
            let question = problem.question(id);
            solver.questions[id.index()].not_out = question.members.len();
            for member in &question.members {
                solver.answers[member.index()].push(id);
            }
        }
        for id in asking {
            solver.questions[id.index()].is_asked = true;
        }
        Ok(solver.start(budget)?.map(|()| solver))
    }

    fn start(&mut self, budget: &mut Budget) -> Result<Result<(), Contradiction>, Exhausted> {
        let problem = self.problem;
        for id in problem.ids().filter(|id| problem.node(*id).traits().is_prohibited) {
            if self.assign(id, Value::Out).is_err() {
                return Ok(Err(Contradiction));
            }
        }
        for id in &problem.mandatory {
            if self.assign(*id, Value::In).is_err() {
                return Ok(Err(Contradiction));
            }
        }
        // A need that nothing can meet, and a question with one answer, are known from the start.
        for id in problem.question_ids() {
            if problem.question(id).members.len() <= 1 && self.look_at(id).is_err() {
                return Ok(Err(Contradiction));
            }
        }
        self.propagate(budget)
    }

    pub(super) fn value(&self, id: NodeId) -> Value {
        self.values[id.index()]
    }

    /// A place to come back to.
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    pub(super) fn back_to(&mut self, mark: usize) {
        while self.trail.len() > mark {
            if let Some(id) = self.trail.pop() {
                let is_counted = self.trail.len() < self.done;
                if is_counted {
                    self.count(id, false);
                }
                self.values[id.index()] = Value::Open;
            }
        }
        self.done = self.done.min(mark);
    }

    /// Chooses a node, with everything that follows.
    pub(super) fn choose(
        &mut self,
        id: NodeId,
        budget: &mut Budget,
    ) -> Result<Result<(), Contradiction>, Exhausted> {
        self.set(id, Value::In, budget)
    }

    pub(super) fn set(
        &mut self,
        id: NodeId,
        value: Value,
        budget: &mut Budget,
    ) -> Result<Result<(), Contradiction>, Exhausted> {
        budget.spend(1)?;
        if self.assign(id, value).is_err() {
            return Ok(Err(Contradiction));
        }
        self.propagate(budget)
    }

    /// A question that has to be answered and is not.
    pub(super) fn unanswered(&self, budget: &mut Budget) -> Result<Option<QuestionId>, Exhausted> {
        let is_open =
            |counts: &Counts| counts.chosen == 0 && (counts.is_asked || counts.owners > 0);
        let place = self.questions.iter().position(is_open);
        // Looking at a question is far less than propagating a fact.
        budget.spend(place.unwrap_or(self.questions.len()) / 16)?;
        Ok(place.and_then(|place| self.problem.question_ids().nth(place)))
    }

    fn assign(&mut self, id: NodeId, value: Value) -> Result<(), Contradiction> {
        let known = &mut self.values[id.index()];
        if *known == Value::Open {
            *known = value;
            self.trail.push(id);
            Ok(())
        } else if *known == value {
            Ok(())
        } else {
            Err(Contradiction)
        }
    }

    fn propagate(&mut self, budget: &mut Budget) -> Result<Result<(), Contradiction>, Exhausted> {
        while let Some(id) = self.trail.get(self.done).copied() {
            self.done += 1;
            self.count(id, true);
            budget.spend(1 + self.answers[id.index()].len())?;
            let result = match self.value(id) {
                Value::In => self.exclude(id, budget)?,
                Value::Out | Value::Open => Ok(()),
            };
            if result.and_then(|()| self.look_around(id)).is_err() {
                return Ok(Err(Contradiction));
            }
        }
        Ok(Ok(()))
    }

    /// Adds a fact to the counts, or takes it out again.
    fn count(&mut self, id: NodeId, is_new: bool) {
        let change = |count: &mut usize, up: bool| {
            *count = if up { *count + 1 } else { *count - 1 };
        };
        let value = self.values[id.index()];
        for question in &self.answers[id.index()] {
            let counts = &mut self.questions[question.index()];
            match value {
                Value::In => change(&mut counts.chosen, is_new),
                Value::Out => change(&mut counts.not_out, !is_new),
                Value::Open => {}
            }
        }
        if value == Value::In {
            for question in self.problem.needs(id) {
                change(&mut self.questions[question.index()].owners, is_new);
            }
        }
    }

    /// What a chosen node shuts out.
    fn exclude(
        &mut self,
        id: NodeId,
        budget: &mut Budget,
    ) -> Result<Result<(), Contradiction>, Exhausted> {
        let problem = self.problem;
        let claims = problem.claims_of(id).iter().filter_map(|claim| problem.claims.get(claim));
        for other in claims.flatten().chain(&problem.rivals[id.index()]) {
            budget.spend(1)?;
            if *other != id && self.assign(*other, Value::Out).is_err() {
                return Ok(Err(Contradiction));
            }
        }
        Ok(Ok(()))
    }

    fn look_around(&mut self, id: NodeId) -> Result<(), Contradiction> {
        for index in 0..self.answers[id.index()].len() {
            let question = self.answers[id.index()][index];
            self.look_at(question)?;
        }
        let problem = self.problem;
        problem.needs(id).iter().try_for_each(|question| self.look_at(*question))
    }

    /// A question that only one node can answer is answered by it; one that none can must not be
    /// asked.
    fn look_at(&mut self, id: QuestionId) -> Result<(), Contradiction> {
        let counts = self.questions[id.index()];
        if counts.chosen > 0 || counts.not_out > 1 {
            return Ok(());
        }
        let question = self.problem.question(id);
        let is_asked = counts.is_asked || counts.owners > 0;
        if is_asked {
            let last = question.members.iter().find(|m| self.value(**m) != Value::Out);
            return last.map_or(Err(Contradiction), |last| self.assign(*last, Value::In));
        }
        if counts.not_out == 0 {
            return question.owners().iter().try_for_each(|owner| self.assign(*owner, Value::Out));
        }
        Ok(())
    }
}
