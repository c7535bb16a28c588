//! Verifies revisions and checkpoints: each has the right id and follows its parent, and none is
//! missing.

use super::VerifyFindings;
use crate::backend::{ScanDirection, Snapshot};
use crate::engine::derive::for_each_row;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::session_rows::digest_of_all;
use crate::error::Result;
use crate::format::key::{self, of};
use crate::format::{HeadRow, RevisionBody, RevisionHeader, RevisionRow};
use crate::model::SessionNumber;
use std::collections::HashMap;

/// Verifies that the index has the head of the store and all sessions.
pub(super) fn sessions(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    let row = view.get(key::COUNTERS, key::HEAD)?;
    if let Some(Err(error)) = row.map(|row| HeadRow::decode(&row)) {
        findings.add_derived("the second copy of the head of the store", &error);
    }
    let (digest, count) = digest_of_all(view)?;
    let head = view.refs.head_without_sessions();
    if (digest, count) != (head.digest(), head.sessions) {
        let problem = format!("there are {count} of {}, or some are others", head.sessions);
        findings.add_primary("the sessions", &problem);
    }
    Ok(())
}

pub(super) fn history(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    let mut headers: HashMap<(SessionNumber, u64), (u32, RevisionHeader)> = HashMap::new();
    let mut effective = HashMap::new();
    for_each_row(view, key::REVISIONS, |place, row| {
        let number = key::short_at(place, 0).unwrap_or(0);
        let sequence = key::last_number(place).unwrap_or(0);
        findings.checked.revisions += 1;
        if row == RevisionRow::LOST {
            findings.lost_before += 1;
            return Ok(());
        }
        let decoded = RevisionRow::decode(row)
            .and_then(|row| RevisionHeader::decode(&row.header).map(|header| (row, header)));
        match decoded {
            Err(error) => findings.add_primary(format!("revision #{sequence}"), &error),
            Ok((row, header)) => {
                let branch = key::short_at(place, 4).unwrap_or(0);
                let info = view.refs.sessions.get(number)?.map(|session| session.info.id);
                if (header.branch, header.sequence, Some(header.session))
                    != (branch, sequence, info)
                {
                    findings
                        .add_primary(format!("revision #{sequence}"), &"it is another one's row");
                }
                if RevisionBody::name(&row.body) != header.body {
                    findings.add_primary(
                        format!("the body of revision #{sequence}"),
                        &"its hash differs",
                    );
                }
                // The claims of a reset are those of another revision: its changes are not read.
                if header.reset.is_some() && !row.parts.is_empty() {
                    findings.add_primary(
                        format!("revision #{sequence}"),
                        &"it is a reset with changes of its own, so its claims cannot be read",
                    );
                }
                effective.insert(
                    (number, sequence),
                    (RevisionHeader::id_of(&row.header), row.effective),
                );
                headers.insert((number, sequence), (branch, header));
            }
        }
        Ok(())
    })?;
    for_each_row(view, key::FOLDED, |place, row| {
        let number = key::short_at(place, 0).unwrap_or(0);
        let sequence = key::last_number(place).unwrap_or(0);
        match RevisionRow::decode(row) {
            Err(error) => findings.add_primary(format!("revision #{sequence}"), &error),
            Ok(row) => {
                // The target of a fold has a row in its own table too.
                let known = (RevisionHeader::id_of(&row.header), row.effective);
                effective.entry((number, sequence)).or_insert(known);
            }
        }
        Ok(())
    })?;
    for ((number, sequence), (_, header)) in &headers {
        for parent in &header.parents {
            if let Some((id, _)) = effective.get(&(*number, parent.sequence))
                && *id != parent.id
            {
                let place = format!("revision #{sequence}");
                findings.add_primary(place, &format!("#{} is not its parent", parent.sequence));
            }
        }
    }
    for one in view.refs.sessions.all() {
        let (number, session) = one?;
        let mut next = 1;
        let (from, to) = (of(number).build(), of(number).end());
        let all = ScanDirection::Ascending;
        for (place, _) in view.scan(key::SEQUENCES, &from, &to, all, usize::MAX)? {
            let found = key::last_number(&place).unwrap_or(0);
            if found != next {
                let place = format!("the numbers of '{}'", session.info.name);
                findings.add_derived(place, &format!("#{next} is followed by #{found}"));
            }
            next = found + 1;
        }
        if next != session.next_sequence {
            let place = format!("the numbers of '{}'", session.info.name);
            findings.add_primary(
                place,
                &format!("they end before #{next}, not #{}", session.next_sequence),
            );
        }
        for branch in &session.branches {
            let Some(head) = branch.head else { continue };
            let found = effective.get(&(number, head.sequence)).map(|(id, _)| *id);
            if found.is_some_and(|id| id != head.id) {
                findings.add_primary(
                    format!("the head of '{}'", branch.name),
                    &"it is another revision",
                );
            }
        }
    }
    Ok(())
}
