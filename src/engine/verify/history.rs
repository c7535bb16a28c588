//! Verifies revisions and checkpoints: each is in its place, none is missing, and each revision has
//! the right id and follows its parent.

use super::VerifyFindings;
use crate::backend::{Snapshot, TableId, TableRow};
use crate::engine::parallel;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::session_rows::digest_of_all;
use crate::engine::table_rows::TableRows;
use crate::error::Result;
use crate::format::key;
use crate::format::{
    CheckpointRow, HeadRow, RevisionBody, RevisionHeader, RevisionRow, SequenceRow, SessionRefs,
};
use crate::model::{RevisionId, SessionId, SessionNumber};
use std::collections::HashMap;
use std::iter::Peekable;

/// The tables that the history of a session is read from.
const TABLES: [TableId; 4] = [key::REVISIONS, key::FOLDED, key::SEQUENCES, key::CHECKPOINTS];
/// Number of sessions whose rows are read together: as many as are decoded at once.
const BLOCK_SESSIONS: SessionNumber = 256;
/// Maximum number of their rows, of all tables together. For sessions with more rows, the tables
/// are read one after another.
const BLOCK_ROWS: usize = 1 << 13;

/// Verifies that the index has the head of the store and all sessions.
pub(super) fn sessions(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    let row = view.get(key::COUNTERS, key::HEAD)?;
    if let Some(Err(error)) = row.map(|row| HeadRow::decode(&row)) {
        findings.add_derived("the second copy of the head of the store", &error);
    }
    let (digest, count) = digest_of_all(view)?;
    let head = view.refs.head_without_sessions();
    if (digest, count) != (head.digest(), head.sessions) {
        let problem = format!("there are {count} of {}, or some of them differ", head.sessions);
        findings.add_primary("the sessions", &problem);
    }
    Ok(())
}

/// Verifies the revisions and checkpoints, session by session, on all cores.
pub(super) fn history(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    let count = view.refs.sessions.len() as SessionNumber;
    let shares = parallel::shares(count);
    let found = parallel::map(&shares, 2, |(first, end)| {
        let mut findings = VerifyFindings::default();
        let done = history_between(view, *first, *end, &mut findings);
        (findings, done)
    });
    for (part, done) in found {
        findings.add_all(part);
        done?;
    }
    // The remaining rows belong to no session.
    let [mut revisions, mut folded] = [key::REVISIONS, key::FOLDED]
        .map(|table| TableRows::range(view, table, key::of(count).build(), Vec::new()).peekable());
    let mut history = SessionHistory::default();
    while let Some((place, row)) = next_of(&mut revisions, SessionNumber::MAX)? {
        history.add_revision((&place, &row), None, findings);
    }
    while let Some((place, row)) = next_of(&mut folded, SessionNumber::MAX)? {
        history.add_folded((&place, &row), findings);
    }
    for row in TableRows::range(view, key::CHECKPOINTS, key::of(count).build(), Vec::new()) {
        let (place, _) = row?;
        findings.add_primary(checkpoint_at(&place), &"it belongs to no session");
    }
    Ok(())
}

fn checkpoint_at(place: &[u8]) -> String {
    format!("the checkpoint #{}", key::last_number(place).unwrap_or(0))
}

/// Verifies the history of the sessions from `first` up to, but not including, `end`.
fn history_between(
    view: &ReadSnapshot,
    first: SessionNumber,
    end: SessionNumber,
    findings: &mut VerifyFindings,
) -> Result<()> {
    let each = if reads_together(view)? { BLOCK_SESSIONS } else { end.saturating_sub(first) };
    let mut from = first;
    while from < end {
        let to = from.saturating_add(each).min(end);
        let together = view.scan_clusters(&TABLES, from..to, BLOCK_ROWS)?;
        match together.and_then(|found| <[Vec<TableRow>; 4]>::try_from(found).ok()) {
            Some(found) => {
                let found = found.map(|rows| rows.into_iter().map(Ok));
                check_sessions(view, (from, to), found, findings)?;
            }
            None => {
                let (first_key, end_key) = (key::of(from).build(), key::of(to).build());
                let rows =
                    |table| TableRows::range(view, table, first_key.clone(), end_key.clone());
                check_sessions(view, (from, to), TABLES.map(rows), findings)?;
            }
        }
        from = to;
    }
    Ok(())
}

/// Returns whether the rows of several tables can be read at once.
pub(super) fn reads_together(view: &ReadSnapshot) -> Result<bool> {
    Ok(view.scan_clusters(&TABLES, 0..0, 0)?.is_some())
}

/// Verifies the history of the sessions from `first` up to, but not including, `end`, given their
/// rows in [`TABLES`].
fn check_sessions(
    view: &ReadSnapshot,
    (first, end): (SessionNumber, SessionNumber),
    rows: [impl Iterator<Item = Result<TableRow>>; 4],
    findings: &mut VerifyFindings,
) -> Result<()> {
    let [mut revisions, mut folded, mut sequences, mut checkpoints] = rows.map(Iterator::peekable);
    for one in view.refs.sessions.between(first, end) {
        let (number, session) = one?;
        let mut history = SessionHistory::default();
        while let Some((place, row)) = next_of(&mut revisions, number)? {
            history.add_revision((&place, &row), Some(session.info.id), findings);
        }
        while let Some((place, row)) = next_of(&mut folded, number)? {
            history.add_folded((&place, &row), findings);
        }
        history.check_parents(findings);
        history.check_heads(&session, findings);
        let mut next = 1;
        while let Some((place, row)) = next_of(&mut sequences, number)? {
            let found = key::last_number(&place).unwrap_or(0);
            history.check_number(found, &row, findings);
            if found != next {
                let problem = format!("#{next} is followed by #{found}");
                findings.add_derived(numbers_of(&session), &problem);
            }
            next = found.saturating_add(1);
        }
        if next != session.next_sequence {
            let problem = format!("they end before #{next}, not #{}", session.next_sequence);
            findings.add_primary(numbers_of(&session), &problem);
        }
        while let Some((place, row)) = next_of(&mut checkpoints, number)? {
            check_checkpoint(number, &session, (&place, &row), findings);
        }
    }
    Ok(())
}

/// Verifies the row of a checkpoint. That its revision has a row is verified by the number of the
/// revision.
fn check_checkpoint(
    number: SessionNumber,
    session: &SessionRefs,
    (place, row): (&[u8], &[u8]),
    findings: &mut VerifyFindings,
) {
    let what = || checkpoint_at(place);
    let checkpoint = match CheckpointRow::decode(row) {
        Err(error) => return findings.add_primary(what(), &error),
        Ok(row) => row.checkpoint,
    };
    let own = key::of(number).time(checkpoint.time).number(checkpoint.sequence).build();
    if own != place {
        findings.add_primary(what(), &"it is another one's row");
    }
    let exists = |revision: u64| (1..session.next_sequence).contains(&revision);
    if let Some(revision) = checkpoint.revision.filter(|revision| !exists(*revision)) {
        findings.add_primary(what(), &format!("its revision #{revision} is not there"));
    }
}

fn numbers_of(session: &SessionRefs) -> String {
    format!("the numbers of '{}'", session.info.name)
}

/// Returns the next row, unless it belongs to a later session.
fn next_of(
    rows: &mut Peekable<impl Iterator<Item = Result<TableRow>>>,
    number: SessionNumber,
) -> Result<Option<TableRow>> {
    let is_later = |(place, _): &TableRow| key::short_at(place, 0).unwrap_or(0) > number;
    match rows.peek() {
        Some(Ok(row)) if is_later(row) => Ok(None),
        _ => rows.next().transpose(),
    }
}

/// The revisions of one session that were read.
#[derive(Default)]
struct SessionHistory {
    /// The headers of its revisions that are not folded, with their sequence numbers.
    headers: Vec<(u64, RevisionHeader)>,
    /// The ids of all its revisions, including folded ones; `None` if the row is lost or damaged.
    ids: HashMap<u64, Option<RevisionId>>,
}

impl SessionHistory {
    fn add_revision(
        &mut self,
        (place, row): (&[u8], &[u8]),
        session: Option<SessionId>,
        findings: &mut VerifyFindings,
    ) {
        let sequence = key::last_number(place).unwrap_or(0);
        findings.checked.revisions += 1;
        self.ids.insert(sequence, None);
        if row == RevisionRow::LOST {
            findings.lost_before += 1;
            return;
        }
        let decoded = RevisionRow::decode(row)
            .and_then(|row| RevisionHeader::decode(&row.header).map(|header| (row, header)));
        let (row, header) = match decoded {
            Err(error) => return findings.add_primary(format!("revision #{sequence}"), &error),
            Ok(decoded) => decoded,
        };
        let branch = key::short_at(place, 4).unwrap_or(0);
        if (header.branch, header.sequence, Some(header.session)) != (branch, sequence, session) {
            let problem = "its row is that of another revision";
            findings.add_primary(format!("revision #{sequence}"), &problem);
        }
        // What was permanently removed before an import has no body, until the fold is imported.
        let is_removed = row.body.is_empty() && row.parts.is_empty();
        if !is_removed && RevisionBody::name(&row.body) != header.body {
            let place = format!("the body of revision #{sequence}");
            findings.add_primary(place, &"its hash differs");
        }
        // A reset takes its claims from another revision: its changes are not read.
        if header.reset.is_some() && !row.parts.is_empty() {
            let problem = "it is a reset with changes of its own, so its claims cannot be read";
            findings.add_primary(format!("revision #{sequence}"), &problem);
        }
        self.ids.insert(sequence, Some(RevisionHeader::id_of(&row.header)));
        self.headers.push((sequence, header));
    }

    fn add_folded(&mut self, (place, row): (&[u8], &[u8]), findings: &mut VerifyFindings) {
        let sequence = key::last_number(place).unwrap_or(0);
        let row = RevisionRow::decode(row);
        if let Err(error) = &row {
            findings.add_primary(format!("revision #{sequence}"), error);
        }
        // The target of a fold also has a row among the revisions that are not folded.
        if key::number_at(place, 8) != Some(sequence) {
            self.ids.insert(sequence, row.ok().map(|row| RevisionHeader::id_of(&row.header)));
        }
    }

    fn id_of(&self, sequence: u64) -> Option<RevisionId> {
        self.ids.get(&sequence).copied().flatten()
    }

    /// Verifies that there is a revision with this number, unless it is the number of a checkpoint.
    fn check_number(&self, sequence: u64, row: &[u8], findings: &mut VerifyFindings) {
        match SequenceRow::decode(row) {
            Err(error) => findings.add_derived(format!("the number #{sequence}"), &error),
            Ok(SequenceRow::Revision(_) | SequenceRow::Folded(..))
                if !self.ids.contains_key(&sequence) =>
            {
                findings.add_primary(format!("revision #{sequence}"), &"it is missing");
            }
            Ok(_) => {}
        }
    }

    fn check_parents(&self, findings: &mut VerifyFindings) {
        for (sequence, header) in &self.headers {
            for parent in &header.parents {
                if self.id_of(parent.sequence).is_some_and(|id| id != parent.id) {
                    let place = format!("revision #{sequence}");
                    findings.add_primary(place, &format!("#{} is not its parent", parent.sequence));
                }
            }
        }
    }

    fn check_heads(&self, session: &SessionRefs, findings: &mut VerifyFindings) {
        for branch in &session.branches {
            let Some(head) = branch.head else { continue };
            if self.id_of(head.sequence).is_some_and(|id| id != head.id) {
                let place = format!("the head of '{}'", branch.name);
                findings.add_primary(place, &"it is another revision");
            }
        }
    }
}
