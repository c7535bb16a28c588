//! Adds new heads to branches whose states cannot be computed, and corrects the counts of sessions.

use super::{SalvagedStore, repair_operation};
use crate::engine::index::{self, PositionedRecord};
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::object::{self, LOST_OBJECT};
use crate::engine::planned_revision::{self, CommitTarget, PlannedRevision};
use crate::engine::refs::{StoreRefs, put_changed_sessions};
use crate::engine::row_overlay::RowOverlay;
use crate::engine::row_totals;
use crate::engine::table_rows::{self, for_each_row};
use crate::engine::{keyframe, materialize, timeline};
use crate::error::Result;
use crate::format::key::{self, of};
use crate::format::{
    Delta, EntryBytes, ObjectKind, OperationEffect, OperationRow, Record, RevisionRow,
    SessionRemoval,
};
use crate::model::{Operation, SessionNumber, Timestamp};
use std::collections::{BTreeMap, HashMap};

impl SalvagedStore {
    /// Adds a new head with the known claims to each branch whose state cannot be computed or has
    /// another digest than its head.
    pub(super) fn replace_lost_heads(&mut self, now: Timestamp) -> Result<()> {
        let refs = self.refs.clone();
        for one in refs.sessions.all() {
            let (number, session) = one?;
            // A join that was stopped left it. The next one begins again.
            if session.removal == Some(SessionRemoval::Incomplete) {
                continue;
            }
            for (branch, one) in (0..).zip(&session.branches) {
                let Some(head) = one.head else { continue };
                let at = timeline::head_of(&refs, number, branch)?;
                let Some(at) = at else { continue };
                let state = materialize::materialize(&self.view(), &refs, number, at);
                if state.is_ok_and(|state| keyframe::digest(&state) == head.digest) {
                    continue;
                }
                let claims = self.known_claims(&refs, number, at)?;
                // A reset has no changes, so the next revision adds the claims.
                let cleared = self.add_revision(now, |refs, operation| {
                    let place = CommitTarget { session: number, branch, time: now, operation };
                    planned_revision::plan_cleared(refs, place, *operation.id.as_bytes())
                })?;
                let sequence = if claims.is_empty() {
                    cleared
                } else {
                    self.add_revision(now, |refs, operation| {
                        let place = CommitTarget { session: number, branch, time: now, operation };
                        let salt = *operation.id.as_bytes();
                        planned_revision::plan_additions(refs, place, claims, salt)
                    })?
                };
                self.lost.push(format!(
                    "the exact claims at the head of the branch '{}' of '{}': #{sequence} has the claims that are known",
                    one.name, session.info.name
                ));
            }
        }
        Ok(())
    }

    /// Adds a revision with an operation of its own. Returns its sequence number.
    fn add_revision(
        &mut self,
        now: Timestamp,
        plan: impl FnOnce(&StoreRefs, &Operation) -> Result<PlannedRevision>,
    ) -> Result<u64> {
        let operation = repair_operation(self.end, now);
        let planned = plan(&self.refs, &operation)?;
        let sequence = planned.head.sequence;
        let record = Record { operation, changes: planned.changes };
        let placed = PositionedRecord { position: self.end, hash: Default::default(), record };
        self.end += 1;
        let (mut rows, mut moved) = (RowOverlay::default(), self.refs.clone());
        index::apply(&self.view(), &mut rows, &mut moved, &placed)?;
        self.rows.extend(rows);
        self.refs = moved;
        Ok(sequence)
    }

    /// Returns the claims of a revision that can be read from the deltas that are left.
    pub(super) fn known_claims(
        &self,
        refs: &StoreRefs,
        number: SessionNumber,
        at: RevisionRef,
    ) -> Result<Vec<(Vec<u8>, EntryBytes)>> {
        let view = self.view();
        let mut claims: BTreeMap<Vec<u8>, EntryBytes> = BTreeMap::new();
        let mut ranges = lineage::state_ranges(&view, refs, number, at)?;
        ranges.reverse();
        for range in ranges {
            let place = of(number).branch(range.branch);
            // The range begins after a reset. The reset is read too, because resets by
            // earlier repairs have changes.
            let from = place.clone().number(range.after).build();
            let to = place.number(range.to.saturating_add(1)).build();
            for (_, row) in table_rows::rows_between(&view, key::REVISIONS, &from, &to)? {
                let Ok(row) = RevisionRow::decode(&row) else { continue };
                for part in &row.parts {
                    let Ok(content) = object::content(&view, ObjectKind::Delta, *part) else {
                        continue;
                    };
                    let Ok(delta) = Delta::decode(&content) else { continue };
                    for change in delta.changes {
                        match crate::engine::lookup::delta_side_bytes(&view, &change.new) {
                            Ok(Some(entry)) => drop(claims.insert(change.key, entry)),
                            Ok(None) => drop(claims.remove(&change.key)),
                            Err(_) => {}
                        }
                    }
                }
            }
        }
        Ok(claims.into_iter().collect())
    }

    /// Returns the number of facts of each session, without lost pages, according to its
    /// operations.
    pub(super) fn known_facts(&self) -> Result<HashMap<SessionNumber, u64>> {
        let mut facts: HashMap<SessionNumber, u64> = HashMap::new();
        for_each_row(&self.view(), key::OPERATIONS, |_, row| {
            let Ok(row) = OperationRow::decode(row) else { return Ok(()) };
            for effect in &row.effects {
                if let OperationEffect::Facts { page, count, .. } = effect
                    && *page != LOST_OBJECT
                {
                    *facts.entry(row.session).or_default() += count;
                }
            }
            Ok(())
        })?;
        Ok(facts)
    }

    /// Corrects the numbers of facts and checkpoints in the refs and the totals of the index, and
    /// counts the intact revisions.
    pub(super) fn counts(&mut self) -> Result<()> {
        let facts = self.known_facts()?;
        let mut checkpoints: HashMap<SessionNumber, u64> = HashMap::new();
        let mut whole = 0;
        for_each_row(&self.view(), key::CHECKPOINTS, |place, _| {
            *checkpoints.entry(key::short_at(place, 0).unwrap_or(0)).or_default() += 1;
            Ok(())
        })?;
        let view = self.view();
        for_each_row(&view, key::REVISIONS, |_, row| {
            let row = RevisionRow::decode(row);
            let has = |part: &u64| object::encoded(&view, *part).is_ok();
            whole += u64::from(row.is_ok_and(|row| row.parts.iter().all(has)));
            Ok(())
        })?;
        self.revisions = whole;
        for number in 0..self.refs.sessions.len() as SessionNumber {
            self.refs.sessions.change(number, |session| {
                session.facts = facts.get(&number).copied().unwrap_or(0);
                session.checkpoints = checkpoints.get(&number).copied().unwrap_or(0);
            })?;
        }
        let totals = row_totals::count_totals(&self.view())?;
        self.rows.put(key::COUNTERS, key::TOTALS.to_vec(), totals.encode());
        let mut rows = RowOverlay::default();
        put_changed_sessions(&self.view(), &mut rows, &self.refs)?;
        self.rows.extend(rows);
        Ok(())
    }
}
