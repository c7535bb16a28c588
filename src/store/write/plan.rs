//! Plans a write: computes its record and its report from the current state.

use super::checkpoint::{automatic, name_automatic};
use super::checkpoint_name::name_of_claims;
use super::{
    HeadClaims, NewCheckpoint, RedactionCounts, SessionWrite, WriteReport, WriteStep, check_claim,
    rule_error,
};
use crate::backend::Snapshot;
use crate::engine::checkpoint;
use crate::engine::encoded_change::DigestedEntry;
use crate::engine::plan_context::PlanContext;
use crate::engine::planned_revision::{CommitTarget, PlannedRevision, PreparedDelta};
use crate::engine::refs::session as session_refs;
use crate::engine::revision_plan::{self, ClaimChange};
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange, decode_entry, encode_key};
use crate::model::{
    BranchNumber, Checkpoint, CheckpointId, Key, Operation, SessionKind, SessionNumber, Value,
};
use crate::store::redaction_gate::warning;
use crate::store::snapshot_diff;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// If the time of the write is earlier than the head by more than this, the report has a warning.
const CLOCK_BEHIND_MICROS: i64 = 5 * 60 * 1_000_000;

pub(super) type BranchOfSession = (SessionNumber, BranchNumber);

impl SessionWrite<'_> {
    #[expect(
        clippy::type_complexity,
        reason = "a plan gives the record, the report, and the new revision"
    )]
    pub(super) fn plan(
        &self,
        context: &PlanContext<'_>,
        operation: &Operation,
        facts: &[RecordChange],
        ids: &[CheckpointId],
        memo: &mut Option<PreparedDelta>,
    ) -> Result<(Option<Record>, (WriteReport, Option<(BranchOfSession, PlannedRevision)>))> {
        let time = self.time.unwrap_or(self.act.now);
        let mut begun = self.place(context, time)?;
        let advanced = begun.refs.take().map(|refs| context.with_refs(refs));
        let context = advanced.as_ref().unwrap_or(context);
        let (number, branch) = (begun.session, begun.branch);
        let session = session_refs(&context.refs, number)?;
        if let Some(precondition) = &self.import_precondition {
            precondition.check(&context.refs, number, || context.view())?;
        }
        let place = CommitTarget { session: number, branch, time, operation };
        let mut done = WriteReport::begun(operation, &session.info, &session.branch(branch)?.name);
        let mut wanted = self.checkpoint.clone();
        let mut removed = self.removed.clone();
        let new_id = self.find_next_id(number, Some(&context.refs), || context.view())?;
        let next_id = new_id.as_deref();
        let claims = self.claims(
            context,
            ((number, branch), next_id),
            memo,
            (&mut wanted, &mut removed),
            &mut done,
        )?;
        let next_facts = match next_id {
            Some(id) => self.next_fact_pages(number, id, &mut removed)?,
            None => Vec::new(),
        };
        done.warnings.extend(warning(&removed));
        let mut planned = match claims.as_slice() {
            [] => None,
            claims => revision_plan::plan(context, place, claims, memo)?,
        };
        let mut changes = Vec::new();
        if let Some(planned) = &mut planned {
            if let Some(head) = session.branch(branch)?.head
                && !self.by_import
                && head.effective.micros_since(time) > CLOCK_BEHIND_MICROS
            {
                done.warnings.push(format!(
                    "the clock says {time}, but the last revision was made at {}: this one gets that \
                     time too. Correct the clock that is wrong, here or on another machine",
                    head.effective
                ));
            }
            done.new_branch = begun.begins_branch();
            changes.append(&mut begun.branch_changes);
            changes.append(&mut planned.changes);
            done.revision = Some((planned.head.sequence, planned.head.id));
            if let Some(wanted) = &mut wanted {
                let claims = claims.iter().map(|change| (&change.key, change.value.as_ref()));
                name_automatic(wanted, |trigger| name_of_claims(trigger, claims));
            }
            let made = claims.into_iter().filter_map(|change| match change {
                Cow::Owned(change) => Some((change.key, change.value)),
                // The report takes the write's own changes after the commit, without a copy.
                Cow::Borrowed(_) => None,
            });
            done.changed = made.collect();
        }
        for page in facts.iter().chain(&next_facts) {
            if let RecordChange::Facts { count, .. } = page {
                done.facts += count;
            }
            changes.push(numbered(page, number));
        }
        changes.extend(self.extra.iter().map(|change| numbered(change, number)));
        let head = planned.as_ref().map(|planned| planned.head.sequence);
        let branch = if head.is_some() { branch } else { begun.branch_as_is };
        done.branch.clone_from(&session.branch(branch)?.name);
        if wanted.is_none() && !changes.is_empty() && !self.by_import {
            wanted = self.scheduled(session);
        }
        let mut next = session.next_sequence + u64::from(head.is_some());
        let wanted = wanted.filter(|wanted| self.is_wanted(session, wanted));
        for (place, (wanted, id)) in
            self.checkpoints.iter().cloned().chain(wanted).zip(ids).enumerate()
        {
            let replaces = self.replaces && place == self.checkpoints.len();
            let made = self.make_checkpoint(
                context,
                number,
                (wanted, replaces),
                (*id, next),
                (branch, head),
            )?;
            if let Some(checkpoint) = made {
                let is_new = checkpoint.sequence == next;
                next += u64::from(is_new);
                if replaces && !is_new {
                    changes.extend(replacing(&context.view()?, number, &checkpoint, &changes)?);
                } else {
                    changes.push(RecordChange::checkpoint(number, checkpoint.clone()));
                }
                done.checkpoints += 1;
                done.checkpoint = Some(checkpoint);
            }
        }
        if changes.is_empty() {
            return Ok((None, (done, None)));
        }
        let used = context.refs.last_used == Some(number);
        if !self.by_import && !used && session.info.kind == SessionKind::Debug {
            changes.push(RecordChange::Used { session: number });
        }
        done.new_id = new_id;
        let changes = begun.begun_session.into_iter().chain(changes).collect();
        let record = Record { operation: operation.clone(), changes };
        Ok((Some(record), (done, planned.map(|planned| ((number, branch), planned)))))
    }

    /// Returns all changes of claims, including those made by rules. Adds the checkpoint that a
    /// rule triggers to `wanted`, removed secrets to `removed`, and warnings to `done`.
    fn claims(
        &self,
        context: &PlanContext<'_>,
        (place, next_id): (BranchOfSession, Option<&str>),
        memo: &mut Option<PreparedDelta>,
        (wanted, removed): (&mut Option<NewCheckpoint>, &mut RedactionCounts),
        done: &mut WriteReport,
    ) -> Result<Vec<Cow<'_, ClaimChange>>> {
        let gate = self.store.gate();
        let mut changes: Vec<Cow<'_, ClaimChange>> = Vec::with_capacity(self.steps.len());
        // If there are other kinds of steps, the changes are cloned, so that the report lists all
        // changes in order.
        let plain = self.is_plain();
        let mut head: Option<HeadClaims> = None;
        for step in &self.steps {
            match step {
                WriteStep::Change(change) => {
                    if let Some(head) = &mut head {
                        head.add(change);
                    }
                    changes.push(if plain {
                        Cow::Borrowed(change)
                    } else {
                        Cow::Owned(change.clone())
                    });
                }
                WriteStep::AddNext(value) => {
                    // The id may differ from that of the last plan.
                    *memo = None;
                    let (Some(next), Some(id)) = (&self.next_id, next_id) else { continue };
                    let change = ClaimChange::add(Key::new(next.kind, id), value.clone());
                    if let Some(head) = &mut head {
                        head.add(&change);
                    }
                    changes.push(Cow::Owned(change));
                }
                WriteStep::Whole(kinds, claims) => {
                    *memo = None;
                    if head.is_none() {
                        head = Some(HeadClaims::read(context, place, &changes)?);
                    }
                    let held = head.as_mut().expect("read above");
                    for change in snapshot_diff::snapshot_changes(held, kinds, claims)? {
                        held.add(&change);
                        changes.push(Cow::Owned(change));
                    }
                }
                WriteStep::Edit(keys, edit) => {
                    *memo = None;
                    let known = held_claims(context, place, keys, &changes)?;
                    for mut change in edit(&known)? {
                        gate.claim(&mut change, removed)?;
                        check_claim(&mut change)?;
                        if let Some(head) = &mut head {
                            head.add(&change);
                        }
                        changes.push(Cow::Owned(change));
                    }
                }
                WriteStep::Rule(_) | WriteStep::RuleWithNextId(_) => {
                    // The result of a rule depends on the head, so a delta prepared earlier cannot
                    // be used again.
                    *memo = None;
                    if head.is_none() {
                        head = Some(HeadClaims::read(context, place, &changes)?);
                    }
                    let claims = head.as_mut().expect("read above");
                    let outcome = match step {
                        WriteStep::RuleWithNextId(rule) => {
                            rule(claims, next_id.unwrap_or_default())
                        }
                        WriteStep::Rule(rule) => rule(claims),
                        _ => continue,
                    };
                    let outcome = self.triggered(claims, outcome.map_err(rule_error)?);
                    if let Some(error) = claims.take_error() {
                        return Err(error);
                    }
                    for (key, value) in outcome.changes {
                        let mut change = ClaimChange::put(key, value);
                        gate.claim(&mut change, removed)?;
                        claims.add(&change);
                        changes.push(Cow::Owned(change));
                    }
                    for key in outcome.removed {
                        let change = ClaimChange::remove(key);
                        claims.add(&change);
                        changes.push(Cow::Owned(change));
                    }
                    if let (Some(trigger), None) = (outcome.trigger, &wanted) {
                        *wanted = Some(automatic(trigger, outcome.tag));
                    }
                    done.warnings.extend(outcome.contradiction);
                }
            }
        }
        Ok(changes)
    }
}

/// Returns the values of these claims at a branch's head after these changes.
fn held_claims(
    context: &PlanContext<'_>,
    (number, branch): BranchOfSession,
    keys: &[Key],
    changes: &[Cow<'_, ClaimChange>],
) -> Result<Vec<Option<Value>>> {
    let head = session_refs(&context.refs, number)?.branch(branch)?.head;
    let encoded: Vec<Vec<u8>> = keys.iter().map(encode_key).collect();
    let entries = context.head_entries(number, branch, head.as_ref(), &encoded)?;
    let held = |(key, held): (&Key, Option<DigestedEntry>)| -> Result<Option<Value>> {
        if let Some(change) = changes.iter().rfind(|change| change.key == *key) {
            return Ok(change.value.clone());
        }
        let entry = held.map(|held| decode_entry(&held.entry)).transpose();
        Ok(entry.map_err(Error::corrupt(format!("the {key}")))?.map(|entry| entry.value))
    };
    keys.iter().zip(entries).map(held).collect()
}

/// Returns the changes that replace the checkpoint with this id, in a record that begins with
/// `before`. The old one is hidden first, so that the time of the last checkpoint is right.
fn replacing(
    view: &dyn Snapshot,
    session: SessionNumber,
    checkpoint: &Checkpoint,
    before: &[RecordChange],
) -> Result<[RecordChange; 2]> {
    let id = checkpoint.id;
    let stored = checkpoint::last_time_without(view, session, &BTreeSet::from([id]))?;
    let made = before.iter().filter_map(|change| match change {
        RecordChange::Checkpoint { checkpoint, .. } => Some(checkpoint.time),
        _ => None,
    });
    let last = made.max().max(stored);
    let checkpoint = Box::new(checkpoint.clone());
    Ok([
        RecordChange::CheckpointHidden { session, id, last },
        RecordChange::CheckpointShown { session, checkpoint },
    ])
}

/// Returns a copy of a change with this session number: the number is known only in the plan.
fn numbered(change: &RecordChange, number: SessionNumber) -> RecordChange {
    let mut change = change.clone();
    if let Some(session) = change.session_mut() {
        *session = number;
    }
    change
}
