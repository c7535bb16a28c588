//! Undo and redo: each reverses the effects of one operation.

mod inverse;

use super::Store;
use super::session::Session;
use super::write_context::WriteContext;
use crate::backend::{ScanDirection, Snapshot};
use crate::engine::commit::CommitDurability;
use crate::engine::index::find_operation;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::{UNFINISHED, session as session_refs};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{OperationEffect, OperationRow, Record, SessionRefs};
use crate::model::text::count_text;
use crate::model::{BranchNumber, OperationAuthor, OperationId, SessionNumber, Timestamp};
use serde::Serialize;
use std::collections::{BTreeSet, HashSet};

/// A summary of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperationSummary {
    /// The operation id.
    pub id: OperationId,
    /// The verb of the operation.
    pub verb: String,
    /// The author of the operation.
    pub author: OperationAuthor,
    /// The time of the operation.
    pub time: Timestamp,
    /// Its effects, each in words.
    pub effects: Vec<String>,
    /// The number of the last revision that it made; absent if it made none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The operation that it undid; for a redo, the undo.
    pub takes_back: Option<OperationId>,
    /// Whether it is undone now.
    pub taken_back: bool,
}

impl OperationSummary {
    /// Summarises an operation of this session.
    fn new(row: OperationRow, session: &SessionRefs) -> Self {
        let revision = row.effects.iter().rev().find_map(|effect| match effect {
            OperationEffect::Revision { sequence, .. } => Some(*sequence),
            _ => None,
        });
        let shown = row.effects.iter().filter(|effect| !is_mark(effect));
        Self {
            revision,
            id: row.operation.id,
            verb: row.operation.verb,
            author: row.operation.author,
            time: row.operation.time,
            effects: shown.map(|effect| describe(effect, session)).collect(),
            takes_back: row.takes_back,
            taken_back: row.taken_back_by.is_some(),
        }
    }
}

/// Returns an effect on this session in words.
fn describe(effect: &OperationEffect, session: &SessionRefs) -> String {
    let named = |branch: &BranchNumber| match session.branch(*branch) {
        Ok(branch) => format!("branch {}", branch.name),
        Err(_) => "a branch".to_owned(),
    };
    match effect {
        OperationEffect::Revision { sequence, .. } => format!("revision #{sequence}"),
        OperationEffect::CheckpointMade { id } => format!("checkpoint {}", id.short()),
        OperationEffect::CheckpointChanged { old } => {
            format!("changed checkpoint #{}", old.sequence)
        }
        OperationEffect::CheckpointHidden { old } => {
            format!("took checkpoint #{} back", old.sequence)
        }
        OperationEffect::BranchMade { branch } => named(branch),
        OperationEffect::BranchChanged { branch, .. } => format!("changed {}", named(branch)),
        OperationEffect::BranchHidden { branch, hidden: true, .. } => {
            format!("took {} back", named(branch))
        }
        OperationEffect::BranchHidden { branch, hidden: false, .. } => {
            format!("brought {} back", named(branch))
        }
        OperationEffect::Switched { branch, elsewhere: true, .. } => {
            format!("checked out {} in another store", named(branch))
        }
        OperationEffect::Switched { branch, .. } => format!("checked out {}", named(branch)),
        OperationEffect::Facts { count, .. } => count_text(*count, "fact"),
        OperationEffect::Bookmark { source, bytes, .. } => format!("{source} up to byte {bytes}"),
        OperationEffect::Schedule { .. } => "the schedule".to_owned(),
        OperationEffect::Folded { first, last, .. } => {
            format!("folded #{first} and on into #{last}")
        }
        OperationEffect::Unfolded { first, last, .. } => {
            format!("unfolded #{first} and later from #{last}")
        }
        OperationEffect::SessionDropped { .. } => "dropped a session".to_owned(),
        OperationEffect::SessionShown { .. } => "brought a session back".to_owned(),
        OperationEffect::TextDropped { blob, bytes, .. } => {
            format!("dropped {bytes} bytes of {blob}")
        }
        OperationEffect::TextShown { blob, .. } => format!("brought {blob} back"),
        OperationEffect::Swept { checkpoints, revisions } => {
            let checkpoints = count_text(checkpoints.len() as u64, "checkpoint");
            let revisions = count_text(*revisions, "revision");
            format!("permanently pruned {checkpoints} and {revisions}")
        }
        OperationEffect::Purged { reason, places, .. } => {
            let why = reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
            let found = count_text(*places, "occurrence");
            format!("permanently purged {found} of secrets{why}")
        }
    }
}

/// Returns whether the effect only marks the beginning or end of an import.
fn is_mark(effect: &OperationEffect) -> bool {
    matches!(effect, OperationEffect::Bookmark { source, .. } if source.starts_with(UNFINISHED))
}

/// Returns whether an operation cannot be undone.
fn is_permanent(row: &OperationRow) -> bool {
    let is_final = |effect: &OperationEffect| {
        matches!(effect, OperationEffect::Swept { .. } | OperationEffect::Purged { .. })
    };
    row.effects.iter().any(is_final)
}

/// Returns the error for undoing an operation whose hidden data was swept.
fn swept(row: &OperationRow) -> Error {
    Error::Conflict(format!(
        "what '{}' pruned was permanently deleted: it is too late to undo it",
        row.operation.verb
    ))
}

/// What an undo or redo did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoReport {
    /// The operation of the undo or redo itself.
    pub operation: OperationId,
    /// The operation that was undone or, for a redo, is in force again.
    pub target: OperationSummary,
    /// The new revision, if claims changed.
    pub revision: Option<u64>,
    /// The last operation, if no operation was named and this one cannot be undone, such as a
    /// purge: the operation before it was undone.
    pub passed: Option<OperationSummary>,
}

/// Whether an operation is undone or redone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UndoDirection {
    Undo,
    Redo,
}

impl Store {
    /// Returns how many of a session's facts are hidden by undo.
    pub(super) fn facts_taken_back(&self, session: &SessionRefs) -> Result<u64> {
        if session.hidden.is_empty() {
            return Ok(0);
        }
        let view = self.engine.follower.view()?;
        let mut count = 0;
        for id in &session.hidden {
            let effects = find_operation(&view, id)?.map(|row| row.effects).unwrap_or_default();
            for effect in &effects {
                if let OperationEffect::Facts { count: facts, .. } = effect {
                    count += *facts;
                }
            }
        }
        Ok(count)
    }
}

impl Session {
    /// Returns the newest operations of this session, at most `limit`, newest first.
    pub fn operations(&self, limit: usize) -> Result<Vec<OperationSummary>> {
        let view = self.view()?;
        let session = session_refs(&view.refs, self.number)?;
        let rows = self.operation_rows(&view, limit)?.into_iter();
        Ok(rows.map(|row| OperationSummary::new(row, session)).collect())
    }

    /// Returns the operation that [`Session::undo`] without an id would undo, or that
    /// [`Session::redo`] would redo; `None` if there is none.
    pub fn next_to_undo(&self, redo: bool) -> Result<Option<OperationSummary>> {
        let view = self.view()?;
        let rows = self.operation_rows(&view, usize::MAX)?;
        let foreign = self.foreign_operations(&view)?;
        let found = match redo {
            true => redoable(&view, &rows, &foreign),
            false => undoable(&rows, &foreign, None),
        };
        let row = match found {
            Ok(row) => row,
            Err(Error::NothingToUndo | Error::NothingToRedo) => return Ok(None),
            Err(error) => return Err(error),
        };
        let undone = row.takes_back.filter(|_| redo);
        let undone = undone.map(|first| find_operation(&view, &first)).transpose()?.flatten();
        let shown = undone.unwrap_or_else(|| row.clone());
        Ok(Some(OperationSummary::new(shown, session_refs(&view.refs, self.number)?)))
    }

    /// Returns the operations of this session that were pulled from others.
    fn foreign_operations(&self, view: &ReadSnapshot) -> Result<HashSet<OperationId>> {
        self.store.foreign_operations(session_refs(&view.refs, self.number)?.info.id)
    }

    /// Returns the rows of the newest operations of this session, newest first.
    fn operation_rows(&self, view: &ReadSnapshot, limit: usize) -> Result<Vec<OperationRow>> {
        let from = of(self.number).build();
        let to = of(self.number).end();
        let rows = view.scan(key::OPERATIONS, &from, &to, ScanDirection::Descending, limit)?;
        rows.iter()
            .map(|(_, row)| OperationRow::decode(row).map_err(Error::corrupt("an operation")))
            .collect()
    }

    /// Undoes the operation whose id begins with `operation`; without an id, the newest operation
    /// of author [`OperationAuthor::Asked`] that was not pulled from others, is in force and can be
    /// undone.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none with this id; [`Error::NothingToUndo`] if there is none
    /// at all; [`Error::Ambiguous`] if several ids begin with `operation`; [`Error::Conflict`] if
    /// it was undone already, if what it changed was changed again later, or if what it hid was
    /// swept.
    pub fn undo(&self, act: &WriteContext, operation: Option<&str>) -> Result<UndoReport> {
        self.take_back(act, UndoDirection::Undo, operation)
    }

    /// Undoes the last undo that was not redone, unless a later operation of author
    /// [`OperationAuthor::Asked`] was neither pulled from others, nor a purge, nor without effect.
    ///
    /// # Errors
    /// [`Error::NothingToRedo`] if there is no undo to redo, [`Error::Conflict`] as for
    /// [`Session::undo`].
    pub fn redo(&self, act: &WriteContext) -> Result<UndoReport> {
        self.take_back(act, UndoDirection::Redo, None)
    }

    /// Undoes or redoes an operation.
    fn take_back(
        &self,
        act: &WriteContext,
        direction: UndoDirection,
        named: Option<&str>,
    ) -> Result<UndoReport> {
        let operation = act.operation()?;
        let mut texts = BTreeSet::new();
        let undone = self.store.engine.commit(CommitDurability::Now, &mut |context| {
            let view = context.view()?;
            let rows = self.operation_rows(&view, usize::MAX)?;
            let foreign = self.foreign_operations(&view)?;
            let target = match direction {
                UndoDirection::Undo => undoable(&rows, &foreign, named)?,
                UndoDirection::Redo => redoable(&view, &rows, &foreign)?,
            };
            let done_by = last_done_by(&rows, target);
            let (changes, planned) =
                self.inverse_changes(context, &view, &operation, target, done_by)?;
            texts = target.effects.iter().filter_map(texts_of).collect();
            let revision = planned.map(|planned| planned.head.sequence);
            // A redo reports the operation that is in force again, not the undo.
            let shown = match (direction, target.takes_back) {
                (UndoDirection::Redo, Some(first)) => find_operation(&view, &first)?,
                _ => None,
            };
            let shown = shown.unwrap_or_else(|| target.clone());
            let passed = match (direction, named) {
                (UndoDirection::Undo, None) => {
                    rows.iter().find(|row| is_own(row, &foreign)).filter(|row| is_permanent(row))
                }
                _ => None,
            };
            let refs = session_refs(&view.refs, self.number)?;
            let undone = UndoReport {
                operation: operation.id,
                target: OperationSummary::new(shown, refs),
                revision,
                passed: passed.cloned().map(|row| OperationSummary::new(row, refs)),
            };
            let record = Record { operation: operation.clone(), changes };
            Ok((Some(record), undone))
        })?;
        self.store.forget_text_copies(texts)?;
        Ok(undone)
    }
}

/// Returns the operation that [`Session::undo`] undoes. If `named` is the id of a redo, that is the
/// operation which it brought back into force. Here and in the functions below, `rows` are newest
/// first.
fn undoable<'a>(
    rows: &'a [OperationRow],
    foreign: &HashSet<OperationId>,
    named: Option<&str>,
) -> Result<&'a OperationRow> {
    if let Some(prefix) = named {
        let lower_case = prefix.to_ascii_lowercase();
        let is_named = |row: &&OperationRow| {
            !prefix.is_empty() && row.operation.id.to_string().starts_with(&lower_case)
        };
        let mut found: Vec<_> = rows.iter().filter(is_named).collect();
        return match (found.len(), found.pop()) {
            (1, Some(row)) => match redone_by(rows, row).unwrap_or(row) {
                row if row.taken_back_by.is_some() => Err(Error::Conflict(format!(
                    "'{}' ({}) was undone already",
                    row.operation.verb,
                    row.operation.id.short()
                ))),
                row => Ok(row),
            },
            (_, None) => Err(Error::not_found("operation", prefix)),
            (_, Some(last)) => Err(Error::Ambiguous {
                prefix: prefix.to_owned(),
                matches: found
                    .iter()
                    .chain([&last])
                    .map(|row| format!("{} ({})", row.operation.id.short(), row.operation.verb))
                    .collect(),
            }),
        };
    }
    rows.iter()
        .find(|row| {
            is_own(row, foreign)
                && row.takes_back.is_none()
                && row.taken_back_by.is_none()
                && !is_permanent(row)
        })
        .ok_or(Error::NothingToUndo)
}

/// Returns whether an operation of author [`OperationAuthor::Asked`] changed this session, and was
/// not pulled from others.
fn is_own(row: &OperationRow, foreign: &HashSet<OperationId>) -> bool {
    row.operation.author == OperationAuthor::Asked
        && !foreign.contains(&row.operation.id)
        && !row.effects.is_empty()
}

/// Returns the operation that a redo brought back into force; `None` if this row is no redo.
fn redone_by<'a>(rows: &'a [OperationRow], redo: &OperationRow) -> Option<&'a OperationRow> {
    let find = |id: OperationId| rows.iter().find(|row| row.operation.id == id);
    let undo = find(redo.takes_back?)?;
    find(undo.takes_back?)
}

/// Returns the last undo that was not redone. After it, there may only be redone undos, redos,
/// operations of hooks, operations that only purged or had no effect, and pulled operations.
fn redoable<'a>(
    view: &ReadSnapshot,
    rows: &'a [OperationRow],
    foreign: &HashSet<OperationId>,
) -> Result<&'a OperationRow> {
    for row in rows.iter().filter(|row| !foreign.contains(&row.operation.id)) {
        let Some(first) = row.takes_back else {
            let purged =
                |effect: &OperationEffect| matches!(effect, OperationEffect::Purged { .. });
            if row.operation.author == OperationAuthor::Hook || row.effects.iter().all(purged) {
                continue;
            }
            break;
        };
        let is_redo = find_operation(view, &first)?.is_some_and(|first| first.takes_back.is_some());
        if !is_redo && row.taken_back_by.is_none() {
            return Ok(row);
        }
    }
    Err(Error::NothingToRedo)
}

/// Returns the operation that last applied the effects of `target`: `target` itself, or its last
/// redo.
fn last_done_by<'a>(rows: &'a [OperationRow], target: &'a OperationRow) -> &'a OperationRow {
    let newer = || rows.iter().take_while(|row| row.operation.id != target.operation.id);
    let takes_target_back = |id: &OperationId| {
        newer().any(|row| row.operation.id == *id && row.takes_back == Some(target.operation.id))
    };
    let redo = newer().find(|row| row.takes_back.as_ref().is_some_and(takes_target_back));
    redo.unwrap_or(target)
}

/// Returns the session in which an effect dropped or restored texts.
const fn texts_of(effect: &OperationEffect) -> Option<SessionNumber> {
    match effect {
        OperationEffect::TextDropped { of, .. }
        | OperationEffect::TextShown { of, .. }
        | OperationEffect::SessionDropped { of }
        | OperationEffect::SessionShown { of } => Some(*of),
        _ => None,
    }
}
