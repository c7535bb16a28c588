//! The claims that rules read while a write is planned.

use crate::engine::plan_context::PlanContext;
use crate::engine::revision_plan::ClaimChange;
use crate::engine::state::RevisionState;
use crate::error::{Error, Result};
use crate::model::rule::ClaimLookup;
use crate::model::{BranchNumber, Key, Kind, SessionNumber, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The claims at a branch's head with the changes of the write so far.
pub struct HeadClaims {
    state: Arc<RevisionState>,
    changed: BTreeMap<Key, Option<Value>>,
    error: RefCell<Option<Error>>,
}

impl fmt::Debug for HeadClaims {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HeadClaims")
            .field("claims", &self.state.len())
            .field("changed", &self.changed)
            .finish_non_exhaustive()
    }
}

impl HeadClaims {
    pub(super) fn read(
        context: &PlanContext<'_>,
        (session, branch): (SessionNumber, BranchNumber),
        changes: &[Cow<'_, ClaimChange>],
    ) -> Result<Self> {
        let state = context.head_state(session, branch)?;
        let changed =
            changes.iter().map(|change| (change.key.clone(), change.value.clone())).collect();
        Ok(Self { state, changed, error: RefCell::new(None) })
    }

    /// Adds a change of the write itself.
    pub(super) fn add(&mut self, change: &ClaimChange) {
        self.changed.insert(change.key.clone(), change.value.clone());
    }

    /// Returns the error of the last read that failed, if any, and forgets it: a rule cannot return
    /// it.
    pub(super) fn take_error(&self) -> Option<Error> {
        self.error.take()
    }

    pub(in crate::store) fn state(&self) -> &RevisionState {
        &self.state
    }

    /// Returns the changes of the write itself so far.
    pub(in crate::store) const fn changed(&self) -> &BTreeMap<Key, Option<Value>> {
        &self.changed
    }

    /// Keeps the error of a failed read.
    fn note<T>(&self, result: Result<T>) -> Option<T> {
        result.map_err(|error| *self.error.borrow_mut() = Some(error)).ok()
    }
}

impl ClaimLookup for HeadClaims {
    fn claim(&self, key: &Key) -> Option<Value> {
        match self.changed.get(key) {
            Some(value) => value.clone(),
            None => self.note(self.state.entry(key)).flatten().map(|entry| entry.value),
        }
    }

    fn all(&self, kind: Kind) -> Vec<(String, Value)> {
        let mut all: BTreeMap<String, Value> = self
            .state
            .entries_of_kind(kind)
            .filter_map(|entry| self.note(entry))
            .map(|(key, entry)| (key.id, entry.value))
            .collect();
        for (key, value) in self.changed.iter().filter(|(key, _)| key.kind == kind) {
            match value {
                Some(value) => all.insert(key.id.clone(), value.clone()),
                None => all.remove(&key.id),
            };
        }
        all.into_iter().collect()
    }
}
