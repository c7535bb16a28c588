//! Ids of new claims that the write itself chooses, in its plan under the append lock.

use super::{FUTURE_MICROS, HeadClaims, SessionWrite, WriteStep};
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::{StoreRefs, session as session_refs};
use crate::engine::timeline;
use crate::engine::{lineage, lookup};
use crate::error::{Error, Result};
use crate::format::{RecordChange, encode_key};
use crate::model::rule::{RuleError, RuleOutcome};
use crate::model::{BranchNumber, Fact, Key, Kind, SessionNumber, Value};
use crate::store::fact_pages::fact_pages;
use crate::store::redaction_gate::RedactionCounts;
use crate::store::validate::check_fact;
use std::cell::Cell;
use std::collections::VecDeque;

/// A request for the next free id of a kind: a prefix and a number.
pub(super) struct NextIdRequest {
    pub(super) kind: Kind,
    pub(super) prefix: String,
    /// The number that the last plan found. If the write is planned again, the search starts here.
    start: Cell<u64>,
}

impl<'a> SessionWrite<'a> {
    /// Adds a new claim under the next id that is free on all branches of the session: `prefix` and
    /// a number. The id is chosen under the append lock, so concurrent writers get different ids;
    /// [`super::WriteReport::new_id`] contains it.
    pub fn add_next(mut self, kind: Kind, prefix: &str, value: Value) -> Self {
        self.next_id = Some(NextIdRequest::new(kind, prefix));
        self.steps.push(WriteStep::AddNext(value));
        self
    }

    /// Adds the changes that a rule makes from the current claims and the next free id, which is
    /// chosen as in [`Self::add_next`].
    pub fn rule_with_next_id(
        mut self,
        kind: Kind,
        prefix: &str,
        rule: impl Fn(&HeadClaims, &str) -> Result<RuleOutcome, RuleError> + 'a,
    ) -> Self {
        self.next_id = Some(NextIdRequest::new(kind, prefix));
        self.steps.push(WriteStep::RuleWithNextId(Box::new(rule)));
        self
    }

    /// Adds the fact that `fact` makes from the id which [`Self::add_next`] chooses, unless it
    /// returns `None`.
    pub fn fact_of_next(mut self, fact: impl Fn(&str) -> Option<Fact> + 'a) -> Self {
        self.next_facts.push(Box::new(fact));
        self
    }

    /// Returns the next free id, if one is requested, by the refs of the plan or, without them, of
    /// the view.
    pub(super) fn find_next_id(
        &self,
        session: SessionNumber,
        refs: Option<&StoreRefs>,
        view: impl FnOnce() -> Result<ReadSnapshot>,
    ) -> Result<Option<String>> {
        let Some(next) = &self.next_id else { return Ok(None) };
        let own = |key: &Key| {
            self.steps
                .iter()
                .any(|step| matches!(step, WriteStep::Change(change) if change.key == *key))
        };
        let view = view()?;
        let refs = refs.unwrap_or(&view.refs);
        let tag = self.store.id_tag(session_refs(refs, session)?.info.id);
        next.find(&view, refs, (session, tag.as_deref()), own).map(Some)
    }

    /// Returns the facts that are made from the chosen id, in pages.
    pub(super) fn next_fact_pages(
        &self,
        session: SessionNumber,
        id: &str,
        removed: &mut RedactionCounts,
    ) -> Result<Vec<RecordChange>> {
        let gate = self.store.gate();
        let latest = self.act.now.plus_micros(FUTURE_MICROS);
        let mut facts = Vec::with_capacity(self.next_facts.len());
        for make in &self.next_facts {
            let Some(mut fact) = make(id) else { continue };
            if fact.at > latest {
                return Err(super::future_time(fact.at));
            }
            check_fact(gate, &mut fact, removed)?;
            facts.push(fact);
        }
        fact_pages(session, self.source.as_ref(), facts)
    }
}

impl NextIdRequest {
    fn new(kind: Kind, prefix: &str) -> Self {
        Self { kind, prefix: prefix.to_owned(), start: Cell::new(1) }
    }

    /// Returns an id that no claim has, or had before it was removed, on any branch that was not
    /// undone, so that one id never means two claims. In a session that another store began, the id
    /// ends with the tag of this store, so that the two stores never choose the same id. `own` says
    /// whether the write itself uses a key.
    fn find(
        &self,
        view: &ReadSnapshot,
        refs: &StoreRefs,
        (number, tag): (SessionNumber, Option<&str>),
        own: impl Fn(&Key) -> bool,
    ) -> Result<String> {
        let session = session_refs(refs, number)?;
        let mut ranges = Vec::new();
        for (branch, known) in (0..).zip(&session.branches) {
            if !known.hidden
                && let Some(head) = timeline::head_of(refs, number, branch as BranchNumber)?
            {
                ranges.extend(lineage::state_ranges(view, refs, number, head)?);
            }
        }
        let plain = |free: u64| format!("{}{free}", self.prefix);
        let tagged = |free: u64| tag.map(|tag| format!("{}-{tag}", plain(free)));
        let keys = |free: u64| {
            let ids = tagged(free).into_iter().chain([plain(free)]);
            ids.map(|id| Key::new(self.kind, id))
        };
        let place = (&session.info.id, number);
        let is_taken = |free: u64, next: &[u64]| -> Result<bool, Error> {
            let candidate_keys =
                || next.iter().flat_map(|free| keys(*free)).map(|key| encode_key(&key));
            lookup::prefetch_touched(view, place, &ranges, &|| candidate_keys().collect())?;
            for key in keys(free) {
                if own(&key) || lookup::is_touched(view, place, &ranges, &encode_key(&key))? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let free = first_free(self.start.get(), is_taken)?;
        self.start.set(free);
        Ok(tagged(free).unwrap_or_else(|| plain(free)))
    }
}

/// How many numbers are looked up at once: that costs about as much as looking up one.
const READ_AHEAD: usize = 15;

/// Returns a number from `start` on that is free while the one before it is taken: the first free
/// one if numbers are taken in order. It doubles its steps and then searches by halves, so the
/// number of lookups is about twice the binary logarithm of the distance. The second argument of
/// `is_taken` are the numbers that may be looked up next, this one included, to be read at once; it
/// is empty if they were passed before.
fn first_free<E>(start: u64, is_taken: impl Fn(u64, &[u64]) -> Result<bool, E>) -> Result<u64, E> {
    let (mut taken, mut free, mut step) = (start - 1, start, 1);
    let mut known: Vec<u64> = Vec::new();
    let mut is_taken = |number: u64, next: &dyn Fn() -> Vec<u64>| {
        if known.contains(&number) {
            return is_taken(number, &[]);
        }
        known = next();
        is_taken(number, &known)
    };
    let steps = |free: u64, step: u64| {
        let after = |ahead: usize| step.saturating_mul((1 << ahead) - 1);
        (0..READ_AHEAD).map(|ahead| free.saturating_add(after(ahead))).collect()
    };
    while is_taken(free, &|| steps(free, step))? {
        taken = free;
        free += step;
        step *= 2;
    }
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        if is_taken(middle, &|| middles(taken, free))? {
            taken = middle;
        } else {
            free = middle;
        }
    }
    Ok(free)
}

/// Returns the numbers that a search by halves between two numbers can look up next.
fn middles(after: u64, before: u64) -> Vec<u64> {
    let mut found = Vec::with_capacity(READ_AHEAD);
    let mut ranges = VecDeque::from([(after, before)]);
    while let Some((after, before)) = ranges.pop_front().filter(|_| found.len() < READ_AHEAD) {
        if before - after > 1 {
            let middle = after + (before - after) / 2;
            found.push(middle);
            ranges.extend([(after, middle), (middle, before)]);
        }
    }
    found
}

#[cfg(test)]
mod tests;
