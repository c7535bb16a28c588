//! Checks a store against what it says of itself: records, rows, objects, digests, and every derived row.

use super::commit::Engine;
use super::derive::{self, each};
use super::live::View;
use super::object;
use crate::backend::{Snapshot, Table};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    Chunk, Delta, EntryBytes, Header, KeyframeRow, ObjectKind, Record, Refs, RefsRow, Reset,
    RevisionRow, SegmentRow, Side, entry_hash, is_whole, sealed_id,
};
use crate::model::{Digest, SessionNumber};
use std::collections::{HashMap, HashSet};

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The journal, the rows of revisions and checkpoints, and that nothing is missing between them.
    Quick,
    /// Every object, every digest and every derived row too.
    ReadData,
}

/// What is wrong about a place in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The place.
    pub place: String,
    /// What is wrong.
    pub problem: String,
    /// Whether all that is wrong can be made again from what is whole.
    pub derived: bool,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Records of the journal.
    pub records: u64,
    /// Revisions.
    pub revisions: u64,
    /// Objects opened.
    pub objects: u64,
    /// Derived rows compared.
    pub rows: u64,
}

/// What a check has come to.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) found: Vec<Finding>,
    pub(crate) checked: Checked,
    /// Revisions that were lost before a repair.
    pub(crate) lost_before: u64,
}

impl Findings {
    pub(crate) fn stored(&mut self, place: impl Into<String>, problem: &dyn std::fmt::Display) {
        let (place, problem) = (place.into(), problem.to_string());
        self.found.push(Finding { place, problem, derived: false });
    }

    pub(crate) fn derived(&mut self, place: impl Into<String>, problem: &dyn std::fmt::Display) {
        let (place, problem) = (place.into(), problem.to_string());
        self.found.push(Finding { place, problem, derived: true });
    }
}

/// An error with what caused it, in a line.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl Engine {
    /// Checks everything that the open store holds.
    pub(crate) fn verify(&self, depth: Depth, findings: &mut Findings) {
        if let Err(error) = self.verify_journal(findings) {
            findings.stored("the journal", &chain(&error));
        }
        match self.live.written() {
            Err(error) => findings.stored("the index", &chain(&error)),
            Ok(view) => {
                let checks: [(&str, Check); 2] =
                    [("refs", refs_row), ("revisions and checkpoints", history)];
                let deep: [(&str, Check); 5] = [
                    ("objects", objects),
                    ("digests", digests),
                    ("keyframes", keyframes),
                    ("growing blobs", segments),
                    ("derived tables", derived_rows),
                ];
                let deep = deep.iter().filter(|_| depth == Depth::ReadData);
                for (what, check) in checks.iter().chain(deep) {
                    // A file that cannot be read: what it would say of the rest is not known.
                    if let Err(error) = check(&view, findings) {
                        findings.stored(format!("the index, at its {what}"), &chain(&error));
                    }
                }
            }
        }
    }

    fn verify_journal(&self, findings: &mut Findings) -> Result<()> {
        let log = &self.live.log;
        let mut from = log.start()?;
        let position = self.live.index.position()?;
        if from > position {
            findings.stored(
                "the journal",
                &format!("it begins at {from}, the index ends at {position}"),
            );
        }
        loop {
            let tail = log.read(from, 4 << 20)?;
            if tail.frames.is_empty() {
                return Ok(());
            }
            for frame in &tail.frames {
                findings.checked.records += 1;
                if let Err(error) = Record::decode(&frame.payload) {
                    findings.stored(format!("the record at {}", frame.position), &error);
                }
            }
            from = tail.end;
        }
    }
}

type Check = fn(&View, &mut Findings) -> Result<()>;

/// The second copy of the refs.
fn refs_row(view: &View, findings: &mut Findings) -> Result<()> {
    let row = view.get(key::COUNTERS, key::REFS)?;
    if let Some(Err(error)) = row.map(|row| RefsRow::decode(&row)) {
        findings.derived("the second copy of the refs", &error);
    }
    Ok(())
}

fn history(view: &View, findings: &mut Findings) -> Result<()> {
    let mut headers: HashMap<(SessionNumber, u64), (u32, Header)> = HashMap::new();
    let mut effective = HashMap::new();
    each(view, key::REVISIONS, |place, row| {
        let number = key::short_at(place, 0).unwrap_or(0);
        let sequence = key::last_number(place).unwrap_or(0);
        findings.checked.revisions += 1;
        if row == RevisionRow::LOST {
            findings.lost_before += 1;
            return Ok(());
        }
        let decoded = RevisionRow::decode(row)
            .and_then(|row| Header::decode(&row.header).map(|header| (row, header)));
        match decoded {
            Err(error) => findings.stored(format!("revision #{sequence}"), &error),
            Ok((row, header)) => {
                let branch = key::short_at(place, 4).unwrap_or(0);
                let info = view.refs.sessions.get(number as usize).map(|session| session.info.id);
                if (header.branch, header.sequence, Some(header.session))
                    != (branch, sequence, info)
                {
                    findings.stored(format!("revision #{sequence}"), &"it is another one's row");
                }
                if blake3::hash(&row.body).as_bytes() != header.body.as_bytes() {
                    findings
                        .stored(format!("the body of revision #{sequence}"), &"its hash differs");
                }
                effective.insert((number, sequence), (Header::id_of(&row.header), row.effective));
                headers.insert((number, sequence), (branch, header));
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
                findings.stored(place, &format!("#{} is not its parent", parent.sequence));
            }
        }
    }
    for (number, session) in (0_u32..).zip(&view.refs.sessions) {
        let mut next = 1;
        let (from, to) = (of(number).build(), of(number).end());
        let all = crate::backend::Direction::Ascending;
        for (place, _) in view.scan(key::SEQUENCES, &from, &to, all, usize::MAX)? {
            let found = key::last_number(&place).unwrap_or(0);
            if found != next {
                let place = format!("the numbers of '{}'", session.info.name);
                findings.derived(place, &format!("#{next} is followed by #{found}"));
            }
            next = found + 1;
        }
        if next != session.next_sequence {
            let place = format!("the numbers of '{}'", session.info.name);
            findings
                .stored(place, &format!("they end before #{next}, not #{}", session.next_sequence));
        }
        for branch in &session.branches {
            let Some(head) = branch.head else { continue };
            let found = effective.get(&(number, head.sequence)).map(|(id, _)| *id);
            if found.is_some_and(|id| id != head.id) {
                findings
                    .stored(format!("the head of '{}'", branch.name), &"it is another revision");
            }
        }
    }
    Ok(())
}

fn objects(view: &View, findings: &mut Findings) -> Result<()> {
    let mut last = 0;
    each(view, key::OBJECTS, |place, sealed| {
        let number = key::last_number(place).unwrap_or(0);
        last = last.max(number);
        findings.checked.objects += 1;
        if !is_whole(sealed) {
            findings.stored(format!("the object number {number}"), &"its hash differs");
        }
        Ok(())
    })?;
    if last > 0 && object::next_number(view)? <= last {
        findings.derived("the counter of objects", &format!("it is behind the object {last}"));
    }
    each(view, key::OBJECT_NAMES, |name, number| {
        let number = key::last_number(number).unwrap_or(0);
        let sealed = object::sealed(view, number).ok();
        let found = sealed.and_then(|sealed| sealed_id(&sealed).ok());
        if found.is_none_or(|id| key::object_name(&id) != name) {
            findings.derived(format!("the name of the object {number}"), &"it has another one");
        }
        Ok(())
    })
}

/// Each revision's digest and count from its parent's, by what its delta says.
fn digests(view: &View, findings: &mut Findings) -> Result<()> {
    let mut sums: HashMap<(SessionNumber, u64), (Digest, u64)> = HashMap::new();
    let mut rows = Vec::new();
    each(view, key::REVISIONS, |place, row| {
        let number = key::short_at(place, 0).unwrap_or(0);
        if let Ok(row) = RevisionRow::decode(row)
            && let Ok(header) = Header::decode(&row.header)
        {
            sums.insert((number, header.sequence), (header.digest, header.count));
            rows.push((number, header, row.parts));
        }
        Ok(())
    })?;
    for (number, header, parts) in rows {
        let start = match (&header.reset, header.parents.first()) {
            (Some(Reset::Empty), _) | (None, None) => Some((Digest::EMPTY, 0)),
            (Some(Reset::To(from)), _) | (None, Some(from)) => {
                sums.get(&(number, from.sequence)).copied()
            }
        };
        let place = format!("revision #{}", header.sequence);
        if parts.contains(&super::salvage::LOST_OBJECT) {
            findings.lost_before += 1;
            continue;
        }
        // What its claims come from was lost: nothing can be said.
        let Some((digest, count)) = start else { continue };
        match replay(view, &parts, digest, count) {
            Ok((sum, names)) => {
                if sum != (header.digest, header.count) {
                    findings.stored(place.clone(), &"its delta does not lead to its digest");
                }
                if names != header.delta {
                    findings.stored(place, &"its delta is another one's");
                }
            }
            Err(error) => findings.stored(format!("the delta of {place}"), &chain(&error)),
        }
    }
    Ok(())
}

type Replayed = ((Digest, u64), crate::model::ObjectId);

fn replay(view: &View, parts: &[u64], digest: Digest, count: u64) -> Result<Replayed> {
    let (mut digest, mut count) = (digest, count);
    let mut names = Vec::new();
    for part in parts {
        let sealed = object::sealed(view, *part)?;
        names.push(sealed_id(&sealed).map_err(Error::corrupt("a delta"))?);
        let content = object::content(view, ObjectKind::Delta, *part)?;
        let delta = Delta::decode(&content).map_err(Error::corrupt("a delta"))?;
        for change in &delta.changes {
            let side =
                |side: &Side| -> Result<Option<EntryBytes>> { super::lookup::bytes(view, side) };
            if let Some(old) = side(&change.old)? {
                digest = digest.minus(&entry_hash(&change.key, &old));
                count = count.wrapping_sub(1);
            }
            if let Some(new) = side(&change.new)? {
                digest = digest.plus(&entry_hash(&change.key, &new));
                count = count.wrapping_add(1);
            }
        }
    }
    Ok(((digest, count), super::revise::list_id(&names)))
}

fn keyframes(view: &View, findings: &mut Findings) -> Result<()> {
    each(view, key::KEYFRAMES, |place, row| {
        let number = key::short_at(place, 0).unwrap_or(0);
        let branch = key::short_at(place, 4).unwrap_or(0);
        let sequence = key::last_number(place).unwrap_or(0);
        if let Err(error) = keyframe(view, number, branch, sequence, row) {
            findings.derived(format!("the full state of #{sequence}"), &chain(&error));
        }
        Ok(())
    })
}

/// Checks one keyframe against its revision.
pub(crate) fn keyframe(
    view: &dyn Snapshot,
    number: SessionNumber,
    branch: u32,
    sequence: u64,
    row: &[u8],
) -> Result<()> {
    let row = KeyframeRow::decode(row).map_err(Error::corrupt("a keyframe"))?;
    let mut digest = Digest::EMPTY;
    let mut count = 0;
    for chunk in &row.chunks {
        let content = object::content(view, ObjectKind::Chunk, chunk.object)?;
        for entry in Chunk::decode(&content).map_err(Error::corrupt("a chunk"))? {
            let bytes = |range: &std::ops::Range<u32>| {
                content.get(range.start as usize..range.end as usize).unwrap_or_default()
            };
            digest = digest.plus(&entry_hash(bytes(&entry.key), bytes(&entry.entry)));
            count += 1;
        }
    }
    let at = super::lineage::At { branch, sequence };
    let (head, _) = super::timeline::head_at(view, number, at)?;
    if (head.digest, head.count) == (digest, count) {
        return Ok(());
    }
    let what = format!("the full state of #{sequence}");
    Err(Error::Corrupt { what, source: "its digest is not the revision's".into() })
}

/// Every part of a growing blob, from its restarts on.
fn segments(view: &View, findings: &mut Findings) -> Result<()> {
    let mut rows = Vec::new();
    each(view, key::SEGMENTS, |place, row| {
        let decoded = SegmentRow::decode(row);
        rows.push((place.to_vec(), decoded));
        Ok(())
    })?;
    let mut blob: Vec<u8> = Vec::new();
    let mut before: Vec<u8> = Vec::new();
    let mut next = 0;
    for (place, row) in rows {
        let offset = key::last_number(&place).unwrap_or(0);
        let name = place.get(..12).unwrap_or_default();
        if name != blob {
            (blob, before, next) = (name.to_vec(), Vec::new(), 0);
        }
        let what = format!("a growing blob at {offset}");
        if let Ok(lost) = &row
            && lost.object == super::salvage::LOST_OBJECT
        {
            findings.lost_before += 1;
            (before, next) = (Vec::new(), offset + lost.length);
            continue;
        }
        let opened = row.map_err(Error::corrupt("a blob segment")).and_then(|row| {
            if offset != next {
                return Err(Error::missing(format!("the part before {offset}")));
            }
            let sealed = object::sealed(view, row.object)?;
            let prefix = usize::try_from(row.prefix).unwrap_or(usize::MAX);
            let prefix = before.len().checked_sub(prefix).and_then(|skip| before.get(skip..));
            let prefix = prefix.ok_or_else(|| Error::missing("what precedes it"))?;
            crate::format::open_with_prefix(ObjectKind::Blob, prefix, &sealed)
                .map_err(Error::corrupt(format!("the object number {}", row.object)))
        });
        match opened {
            Ok(content) => {
                next = offset + content.len() as u64;
                before.extend_from_slice(&content);
                // Prefixes never reach over a restart.
                if super::blob::restart_before(next) == next {
                    before.clear();
                }
            }
            Err(error) => {
                findings.stored(what, &chain(&error));
                (before, next) = (Vec::new(), offset);
            }
        }
    }
    Ok(())
}

/// Every derived row, made again and compared; and that there are no others.
fn derived_rows(view: &View, findings: &mut Findings) -> Result<()> {
    let mut made: HashSet<[u8; 8]> = HashSet::new();
    let mut wrong: HashMap<Table, u64> = HashMap::new();
    let mut troubles = Vec::new();
    let mut rows = 0;
    let refs: &Refs = &view.refs;
    derive::all(
        view,
        refs,
        &mut |table, key, value| {
            made.insert(short(table, &key));
            rows += 1;
            if view.get(table, &key)?.as_ref() != Some(&value) {
                *wrong.entry(table).or_default() += 1;
            }
            Ok(())
        },
        &mut |place, error| troubles.push((place, chain(&error))),
    )?;
    findings.checked.rows = rows;
    for table in derive::DERIVED {
        each(view, table, |key, _| {
            if !made.contains(&short(table, key)) {
                *wrong.entry(table).or_default() += 1;
            }
            Ok(())
        })?;
    }
    for (table, count) in wrong {
        // Where something stored is damaged, its derived rows cannot be made: that is said already.
        if troubles.is_empty() {
            findings.derived(format!("table {}", table.0), &format!("{count} rows are wrong"));
        }
    }
    let known: HashSet<String> = findings.found.iter().map(|one| one.place.clone()).collect();
    for (place, problem) in troubles {
        if !known.contains(&place) {
            findings.stored(place, &problem);
        }
    }
    Ok(())
}

fn short(table: Table, key: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[table.0]).update(key);
    *hasher.finalize().as_bytes().first_chunk().expect("8 of 32 bytes")
}
