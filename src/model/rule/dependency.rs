//! Dependencies between beliefs.

use super::contradiction::contradict;
use super::{ClaimLookup, RuleError, RuleOutcome, dependencies, find, new_claim};
use crate::model::Kind;
use crate::model::claim::{Dependency, DependencyType};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Adds a dependency with the id derived from its ends ([`Dependency::id`]). A dependency of type
/// `contradicts` has the consequences and errors of
/// [`contradict_beliefs`](super::contradict_beliefs); others have no trigger.
///
/// # Errors
/// [`RuleError::NoEnds`], [`RuleError::NotFound`] for a belief, [`RuleError::AlreadyExists`] if a
/// dependency has this id, [`RuleError::Cycle`] with the shortest cycle if a belief would rest on
/// itself, or an error for its fields or id (both ends together may have at most 198 bytes).
pub fn add_dependency(
    claims: &impl ClaimLookup,
    dependency: &Dependency,
) -> Result<RuleOutcome, RuleError> {
    let (Some(from), Some(to)) = (&dependency.from, &dependency.to) else {
        return Err(RuleError::NoEnds);
    };
    if dependency.dependency_type == Some(DependencyType::Contradicts) {
        return contradict(claims, from, to, dependency);
    }
    find(claims, Kind::Belief, from)?;
    find(claims, Kind::Belief, to)?;
    let change =
        new_claim(claims, Kind::Dependency, &Dependency::id(from, to), &dependency.to_value())?;
    if let Some((rests, ground)) = dependency.rests_on()
        && let Some(path) = shortest_path(claims, ground, rests)
    {
        let cycle = std::iter::once(rests.to_owned()).chain(path).collect();
        return Err(RuleError::Cycle(cycle));
    }
    Ok(RuleOutcome { changes: vec![change], ..RuleOutcome::default() })
}

/// Returns the shortest path along "rests on" from one belief to another, both included; of
/// several, the first in the order of ids.
fn shortest_path(claims: &impl ClaimLookup, start: &str, goal: &str) -> Option<Vec<String>> {
    let mut grounds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for dependency in dependencies(claims) {
        if let Some((rests, ground)) = dependency.rests_on() {
            grounds.entry(rests.to_owned()).or_default().insert(ground.to_owned());
        }
    }
    let mut came_from: BTreeMap<String, Option<String>> = BTreeMap::new();
    came_from.insert(start.to_owned(), None);
    let mut waiting = VecDeque::from([start.to_owned()]);
    while let Some(here) = waiting.pop_front() {
        if here == goal {
            let mut path = vec![here];
            while let Some(Some(before)) = path.last().and_then(|last| came_from.get(last)) {
                path.push(before.clone());
            }
            path.reverse();
            return Some(path);
        }
        for next in grounds.remove(&here).unwrap_or_default() {
            if !came_from.contains_key(&next) {
                came_from.insert(next.clone(), Some(here.clone()));
                waiting.push_back(next);
            }
        }
    }
    None
}
