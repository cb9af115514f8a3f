//! The answer, and the other ones that OLM may give.
//!
//! OLM hands its solver the Subscriptions, and the channels of one bundle, in the order in which a
//! hash map gives them out: in any order. Where the order decides, so does chance. Subscriptions that
//! can't touch each other are looked at apart, and where every question got its own first alternative
//! the order can't matter; the rest is searched in every order.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    chance::Chance,
    explain,
    nodes::{Asker, Claim, NodeId, Problem, QuestionId},
    search::{Ending, search},
    solver::{Budget, Exhausted},
};
use crate::engine::{Listing, ResolveError};

/// Work for one answer. Real namespaces need some thousands.
const STEPS_MAX: u64 = 10_000_000;

/// Work for the other answers of one group of Subscriptions.
const OTHER_STEPS_MAX: u64 = 2_000_000;

/// Up to so many questions are asked in all orders; 720 for six.
const ALL_ORDERS_MAX: usize = 6;

/// Other answers that are listed.
const OTHERS_MAX: usize = 64;

/// All that is known of the answers.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) chosen: BTreeSet<NodeId>,
    pub(super) others: Vec<BTreeSet<NodeId>>,
    pub(super) listing: Listing,
}

/// The questions from which everything starts, as the request has them.
fn first(problem: &Problem<'_>) -> Vec<QuestionId> {
    let subscriptions = problem.question_ids().filter(|id| match problem.question(*id).asker {
        Asker::Subscription => true,
        Asker::Need { .. } => false,
    });
    let needs = problem.mandatory.iter().flat_map(|id| problem.needs(*id)).copied();
    needs.chain(subscriptions).collect()
}

/// The one answer, with the order of the request.
pub(super) fn answer(problem: &Problem<'_>) -> Result<BTreeSet<NodeId>, ResolveError> {
    let mut budget = Budget::new(STEPS_MAX);
    let first = first(problem);
    match search(problem, &first, &mut Chance::default(), &mut budget) {
        Ok(Ending::Chosen { nodes, .. }) => Ok(nodes),
        Ok(Ending::Unsatisfiable) => {
            Err(ResolveError::Unsatisfiable { unmet: explain::unmet(problem) })
        }
        Err(Exhausted) => Err(ResolveError::TooHard { steps: budget.all() }),
    }
}

/// The one answer and the other ones.
pub(super) fn answers(problem: &Problem<'_>) -> Result<Found, ResolveError> {
    let chosen = answer(problem)?;
    let mut listing = Listing::All;
    let mut others = vec![chosen.clone()];
    for group in groups(problem, &first(problem)) {
        let (ways, covered) = ways(problem, &group);
        listing = listing.min(covered);
        let [first, more @ ..] = ways.as_slice() else { continue };
        let mut combined = Vec::new();
        for base in &others {
            for way in more {
                let swapped: BTreeSet<NodeId> =
                    base.difference(first).chain(way).copied().collect();
                combined.push(swapped);
            }
        }
        others.extend(combined);
        if others.len() > OTHERS_MAX {
            others.truncate(OTHERS_MAX);
            listing = Listing::Part;
        }
    }
    others.retain(|other| *other != chosen);
    Ok(Found { chosen, others, listing })
}

/// The answers of one group of questions, the one in the order of the request first.
fn ways(problem: &Problem<'_>, group: &[QuestionId]) -> (Vec<BTreeSet<NodeId>>, Listing) {
    let mut budget = Budget::new(OTHER_STEPS_MAX);
    let mut ways: Vec<BTreeSet<NodeId>> = Vec::new();
    let (orders, mut listing) = orders(group);
    'orders: for order in &orders {
        let mut chance = Chance::default();
        loop {
            match search(problem, order, &mut chance, &mut budget) {
                Ok(Ending::Chosen { nodes, is_certain }) => {
                    if is_certain {
                        return (vec![nodes], Listing::All);
                    }
                    if !ways.contains(&nodes) {
                        ways.push(nodes);
                    }
                }
                Ok(Ending::Unsatisfiable) => {}
                Err(Exhausted) => {
                    listing = Listing::Part;
                    break 'orders;
                }
            }
            if !chance.advance() {
                break;
            }
        }
    }
    (ways, listing)
}

/// The orders in which the questions are asked: all, or where those are too many, each question
/// once first and once last.
fn orders(group: &[QuestionId]) -> (Vec<Vec<QuestionId>>, Listing) {
    let mut orders = vec![group.to_vec()];
    if group.len() > ALL_ORDERS_MAX {
        for at in 0..group.len() {
            let (mut early, mut late) = (group.to_vec(), group.to_vec());
            early[..=at].rotate_right(1);
            late[at..].rotate_left(1);
            orders.extend([early, late]);
        }
        return (orders, Listing::Part);
    }
    let mut indices: Vec<usize> = (0..group.len()).collect();
    while next_permutation(&mut indices) {
        orders.push(indices.iter().map(|index| group[*index]).collect());
    }
    (orders, Listing::All)
}

/// The next order of the numbers by size; false after the last one.
fn next_permutation(numbers: &mut [usize]) -> bool {
    let Some(pivot) = (1..numbers.len()).rev().find(|at| numbers[at - 1] < numbers[*at]) else {
        return false;
    };
    let larger = (pivot..numbers.len()).rev().find(|at| numbers[*at] > numbers[pivot - 1]);
    if let Some(larger) = larger {
        numbers.swap(pivot - 1, larger);
    }
    numbers[pivot..].reverse();
    true
}

/// Questions that can touch each other, by sharing a node or a claim, are in one group.
fn groups(problem: &Problem<'_>, first: &[QuestionId]) -> Vec<Vec<QuestionId>> {
    let mut of_node: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut of_claim: BTreeMap<Claim<'_>, usize> = BTreeMap::new();
    let mut joined: Vec<usize> = (0..first.len()).collect();
    for (index, question) in first.iter().enumerate() {
        let mut stack = problem.question(*question).members.clone();
        while let Some(id) = stack.pop() {
            if let Some(other) = of_node.insert(id, index) {
                join(&mut joined, index, other);
                // Whoever came here first went on from here already.
                continue;
            }
            for claim in problem.claims_of(id) {
                if let Some(other) = of_claim.insert(*claim, index) {
                    join(&mut joined, index, other);
                }
            }
            stack.extend(problem.rivals[id.index()].iter());
            let needs = problem.needs(id).iter();
            stack.extend(needs.flat_map(|need| &problem.question(*need).members));
        }
    }
    let mut groups: BTreeMap<usize, Vec<QuestionId>> = BTreeMap::new();
    for (index, question) in first.iter().enumerate() {
        groups.entry(root(&joined, index)).or_default().push(*question);
    }
    groups.into_values().collect()
}

fn root(joined: &[usize], mut at: usize) -> usize {
    while joined[at] != at {
        at = joined[at];
    }
    at
}

fn join(joined: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(joined, a), root(joined, b));
    joined[a.max(b)] = a.min(b);
}
