//! What can be saved of a damaged store: every row and record that is whole, a list of what is not, and branches that
//! can be gone on with. Nothing is invented: what is not known to be right is left out and named.

use super::derive;
use super::index::{self, Placed};
use super::lineage::{self, At};
use super::object;
use super::rebuild::complete;
use super::revise::{self, Place};
use super::rows::{Merged, Nothing, Rows};
use super::verify::chain;
use super::{keyframe, materialize, timeline};
use crate::backend::journal::Piece;
use crate::backend::rocks::Rescued;
use crate::backend::{Direction, Position, Snapshot, Table};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BookmarkRow, CheckpointRow, Delta, Effect, EntryBytes, Header, KeyframeRow, ObjectKind,
    OperationRow, Record, RecordChange, Refs, RefsRow, RevisionRow, SegmentRow, SequenceRow,
    is_whole, mend, opens, sealed_id,
};
use crate::model::{
    Author, BranchNumber, Checkpoint, CheckpointId, ObjectId, Operation, OperationId,
    SessionNumber, Timestamp, Trigger, Value,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What was saved.
pub(crate) struct Salvage {
    pub(crate) rows: Rows,
    pub(crate) refs: Refs,
    /// Where the journal ended.
    pub(crate) end: Position,
    /// What is lost, each in a line.
    pub(crate) lost: Vec<String>,
    /// How many rows and records had a single wrong bit that was put right.
    pub(crate) mended: u64,
    /// How many revisions are whole, with their changes.
    pub(crate) revisions: u64,
}

/// The object number that stands for one that was lost: none is ever given out.
pub(crate) const LOST_OBJECT: u64 = 0;

/// Saves what can be saved of an index and the journal behind it.
///
/// # Errors
/// [`Error::Corrupt`] if not even the sessions and branches are known.
pub(crate) fn salvage(
    index: Rescued,
    pieces: Vec<Piece>,
    end: Position,
    now: Timestamp,
) -> Result<Salvage> {
    let position = index.position;
    let mut saved = Salvage {
        rows: Rows::default(),
        refs: Refs::default(),
        end: end.max(position),
        lost: Vec::new(),
        mended: 0,
        revisions: 0,
    };
    saved.refs = saved.first_refs(&index, &pieces)?;
    if position > 0 {
        saved.index(index)?;
        saved.numbers(now)?;
        let mut lost = Vec::new();
        complete(&mut saved.rows, &saved.refs, position, &mut |place, error| {
            lost.push(format!("{place}: {}", chain(&error)));
        })?;
        saved.lost.append(&mut lost);
    }
    saved.tail(pieces, position, now)?;
    saved.heads(now)?;
    saved.counts()?;
    saved.lost.sort();
    saved.lost.dedup();
    Ok(saved)
}

fn repair_operation(seed: u64, now: Timestamp) -> Operation {
    let hash = blake3::hash(format!("repair {seed} {now}").as_bytes());
    let id = OperationId::from_bytes(*hash.as_bytes().first_chunk().expect("16 of 32 bytes"));
    Operation { id, verb: "repair".to_owned(), author: Author::Hook, time: now }
}

impl Salvage {
    fn view(&self) -> Merged<'_> {
        Merged { base: &Nothing, rows: &self.rows, position: self.end }
    }

    /// The refs at the position of the index.
    fn first_refs(&mut self, index: &Rescued, pieces: &[Piece]) -> Result<Refs> {
        let of_record = |piece: &Piece| match piece {
            Piece::Record(frame, _) if frame.position >= index.position => {
                let changes = Record::decode(&frame.payload).ok()?.changes;
                match changes.into_iter().next() {
                    Some(RecordChange::Refs(refs)) => Some((frame.position, *refs)),
                    _ => None,
                }
            }
            _ => None,
        };
        let first = pieces.iter().find_map(of_record);
        if let Some((at, refs)) = &first
            && *at == index.position
        {
            return Ok(refs.clone());
        }
        let row = index.rows.get(&(key::COUNTERS, key::REFS.to_vec()));
        if let Some(row) = row {
            let mut row = row.clone();
            let is_right = |row: &[u8]| RefsRow::decode(row).is_ok();
            if (is_right(&row) || self.mend(&mut row, &is_right))
                && let Ok(row) = RefsRow::decode(&row)
            {
                return Ok(row.refs);
            }
        }
        match first {
            // Of a later moment: what it knows and the rows do not is named as lost.
            Some((_, refs)) => Ok(refs),
            None if index.position == 0 => Ok(Refs::default()),
            None => Err(Error::Corrupt {
                what: "what sessions and branches there are".to_owned(),
                source: "both copies of the refs are damaged: nothing can be saved".into(),
            }),
        }
    }

    fn mend(&mut self, bytes: &mut [u8], is_right: &dyn Fn(&[u8]) -> bool) -> bool {
        let mended = mend(bytes, is_right);
        self.mended += u64::from(mended);
        mended
    }

    /// Takes over the primary rows of the index that are whole.
    fn index(&mut self, index: Rescued) -> Result<()> {
        let mut sequences = BTreeMap::new();
        let mut named = BTreeSet::new();
        for ((table, place), mut value) in index.rows {
            if table == key::OBJECT_NAMES {
                named.extend(key::last_number(&value));
                continue;
            }
            if table == key::SEQUENCES {
                sequences.insert(place, value);
                continue;
            }
            let Some(is_right) = check_of(table) else { continue };
            // Of one that takes a prefix to open nothing proves alone what it was.
            let proof: IsRight = if table == key::OBJECTS { opens } else { is_right };
            if !is_right(&value) && !self.mend(&mut value, &proof) {
                // A chunk or keyframe is made again where it can be; a revision is missed by its number.
                if ![key::REVISIONS, key::KEYFRAMES, key::OBJECTS].contains(&table) {
                    self.lost.push(format!("a row of table {}", table.0));
                }
                continue;
            }
            let place = self.place_of(table, place, &value);
            self.rows.put(table, place, value);
        }
        // Where a number is missing these say what it was.
        for (place, value) in sequences {
            if SequenceRow::decode(&value).is_ok() {
                self.rows.put(key::SEQUENCES, place, value);
            }
        }
        self.deltas()?;
        self.segments()?;
        self.named(named)
    }

    /// Names the objects that something found by their names and that are not there: long texts and values.
    fn named(&mut self, mut named: BTreeSet<u64>) -> Result<()> {
        // Full states are made again.
        derive::each(&self.view(), key::KEYFRAMES, |_, row| {
            let row = KeyframeRow::decode(row).map_err(Error::corrupt("a keyframe"))?;
            named.retain(|number| row.chunks.iter().all(|chunk| chunk.object != *number));
            Ok(())
        })?;
        derive::each(&self.view(), key::OBJECTS, |place, _| {
            named.remove(&key::last_number(place).unwrap_or(0));
            Ok(())
        })?;
        let lost = named.into_iter();
        self.lost.extend(lost.map(|number| format!("a long text or value (the object {number})")));
        Ok(())
    }

    /// Marks the parts of growing blobs that cannot be opened, and those that cannot without them.
    fn segments(&mut self) -> Result<()> {
        let (mut changed, mut lost) = (Rows::default(), Vec::new());
        let (mut blob, mut before) = (Vec::new(), Some(Vec::new()));
        let view = self.view();
        derive::each(&view, key::SEGMENTS, |place, bytes| {
            let Ok(row) = SegmentRow::decode(bytes) else { return Ok(()) };
            let offset = key::last_number(place).unwrap_or(0);
            let name = place.get(..12).unwrap_or_default();
            if name != blob || super::blob::restart_before(offset) == offset {
                (blob, before) = (name.to_vec(), Some(Vec::new()));
            }
            let content = before.as_ref().and_then(|before: &Vec<u8>| {
                let prefix = usize::try_from(row.prefix).ok()?;
                let prefix = before.get(before.len().checked_sub(prefix)?..)?;
                let sealed = object::sealed(&view, row.object).ok()?;
                crate::format::open_with_prefix(ObjectKind::Blob, prefix, &sealed).ok()
            });
            if let (Some(before), Some(content)) = (&mut before, content) {
                before.extend_from_slice(&content);
            } else {
                before = None;
                let session = self.session_name(key::short_at(place, 0).unwrap_or(0));
                let to = offset + row.length;
                lost.push(format!("the bytes {offset} to {to} of a source of {session}"));
                let row = SegmentRow { object: LOST_OBJECT, ..row };
                changed.put(key::SEGMENTS, place.to_vec(), row.encode());
            }
            Ok(())
        })?;
        self.rows.extend(changed);
        self.lost.append(&mut lost);
        Ok(())
    }

    /// The key of a row, from what it says of itself where it says enough.
    fn place_of(&self, table: Table, place: Vec<u8>, value: &[u8]) -> Vec<u8> {
        if table == key::REVISIONS
            && let Ok(row) = RevisionRow::decode(value)
            && let Ok(header) = Header::decode(&row.header)
        {
            let own = |session: &crate::format::SessionRefs| session.info.id == header.session;
            if let Some(number) = self.refs.sessions.iter().position(own) {
                let number = number as SessionNumber;
                return of(number).branch(header.branch).number(header.sequence).build();
            }
        }
        if table == key::OPERATIONS
            && let Ok(row) = OperationRow::decode(value)
        {
            let id = row.operation.id;
            return of(row.session).number(row.position).bytes(id.as_bytes()).build();
        }
        place
    }

    /// Finds the parts of deltas and the pages that operations name, by number or by name.
    fn deltas(&mut self) -> Result<()> {
        let mut names: HashMap<ObjectId, u64> = HashMap::new();
        let mut numbers: HashMap<u64, ObjectId> = HashMap::new();
        derive::each(&self.view(), key::OBJECTS, |place, sealed| {
            if let Ok(id) = sealed_id(sealed) {
                let number = key::last_number(place).unwrap_or(0);
                names.insert(id, number);
                numbers.insert(number, id);
            }
            Ok(())
        })?;
        let (mut changed, mut lost) = (Rows::default(), Vec::new());
        derive::each(&self.view(), key::REVISIONS, |place, bytes| {
            let Ok(mut row) = RevisionRow::decode(bytes) else { return Ok(()) };
            let Ok(header) = Header::decode(&row.header) else { return Ok(()) };
            let found: Option<Vec<ObjectId>> =
                row.parts.iter().map(|part| numbers.get(part).copied()).collect();
            if found.is_some_and(|names| revise::list_id(&names) == header.delta) {
                return Ok(());
            }
            match (row.parts.as_slice(), names.get(&header.delta)) {
                ([_], Some(number)) => row.parts = vec![*number],
                _ => {
                    let session = self.session_name(key::short_at(place, 0).unwrap_or(0));
                    lost.push(format!("the changes of revision #{} of {session}", header.sequence));
                    let known = |part: &u64| numbers.contains_key(part);
                    row.parts
                        .iter_mut()
                        .filter(|part| !known(part))
                        .for_each(|part| *part = LOST_OBJECT);
                    if !row.parts.contains(&LOST_OBJECT) {
                        row.parts = vec![LOST_OBJECT];
                    }
                }
            }
            changed.put(key::REVISIONS, place.to_vec(), row.encode());
            Ok(())
        })?;
        derive::each(&self.view(), key::OPERATIONS, |place, bytes| {
            let Ok(mut row) = OperationRow::decode(bytes) else { return Ok(()) };
            let mut touched = false;
            for effect in &mut row.effects {
                let Effect::Facts { page, name, count } = effect else { continue };
                if *page == LOST_OBJECT || numbers.get(page) == Some(name) {
                    continue;
                }
                touched = true;
                *page = names.get(name).copied().unwrap_or(LOST_OBJECT);
                if *page == LOST_OBJECT {
                    let session = self.session_name(row.session);
                    lost.push(format!("{count} facts of {session}"));
                }
            }
            if touched {
                changed.put(key::OPERATIONS, place.to_vec(), row.encode());
            }
            Ok(())
        })?;
        self.rows.extend(changed);
        self.lost.append(&mut lost);
        Ok(())
    }

    fn session_name(&self, number: SessionNumber) -> String {
        let session = self.refs.sessions.get(number as usize);
        session.map_or_else(|| format!("session {number}"), |one| format!("'{}'", one.info.name))
    }

    /// Names every number of the one count that nothing has, and puts something in its place.
    fn numbers(&mut self, now: Timestamp) -> Result<()> {
        let refs = self.refs.clone();
        for (number, session) in (0..).zip(&refs.sessions) {
            let mut known = BTreeSet::new();
            let mut parents: HashMap<u64, BranchNumber> = HashMap::new();
            derive::each(&self.view(), key::REVISIONS, |place, row| {
                if key::short_at(place, 0) == Some(number) {
                    known.extend(key::last_number(place));
                    if let Ok(header) =
                        RevisionRow::decode(row).and_then(|row| Header::decode(&row.header))
                        && let Some(parent) = header.parents.first()
                    {
                        parents.insert(parent.sequence, header.branch);
                    }
                }
                Ok(())
            })?;
            derive::each(&self.view(), key::CHECKPOINTS, |place, _| {
                if key::short_at(place, 0) == Some(number) {
                    known.extend(key::last_number(place));
                }
                Ok(())
            })?;
            derive::each(&self.view(), key::OPERATIONS, |_, row| {
                let Ok(row) = OperationRow::decode(row) else { return Ok(()) };
                if row.session == number {
                    known.extend(row.effects.iter().filter_map(|effect| match effect {
                        Effect::CheckpointHidden { old } => Some(old.sequence),
                        _ => None,
                    }));
                }
                Ok(())
            })?;
            for (branch, one) in (0..).zip(&session.branches) {
                if let Some(head) = one.head
                    && one.base.is_none_or(|(_, sequence)| sequence != head.sequence)
                {
                    parents.entry(head.sequence).or_insert(branch);
                }
                if let Some((base, sequence)) = one.base {
                    parents.insert(sequence, base);
                }
            }
            let missing: Vec<u64> =
                (1..session.next_sequence).filter(|sequence| !known.contains(sequence)).collect();
            self.missing(number, &missing, &parents, now)?;
        }
        // What they said has been used; they are made again.
        let places: Vec<Vec<u8>> = self
            .view()
            .scan(key::SEQUENCES, &[], &[], Direction::Ascending, usize::MAX)?
            .into_iter()
            .map(|(place, _)| place)
            .collect();
        for place in places {
            self.rows.delete(key::SEQUENCES, place);
        }
        Ok(())
    }

    /// Puts something in the place of numbers that nothing has: of a revision what says that it is lost, of a checkpoint
    /// one that was taken back.
    fn missing(
        &mut self,
        number: SessionNumber,
        missing: &[u64],
        parents: &HashMap<u64, BranchNumber>,
        now: Timestamp,
    ) -> Result<()> {
        let name = self.session_name(number);
        let mut effects = Vec::new();
        for sequence in missing {
            let place = of(number).number(*sequence).build();
            let said = self.view().get(key::SEQUENCES, &place)?;
            let said = said.and_then(|row| SequenceRow::decode(&row).ok());
            let branch = match said {
                Some(SequenceRow::Checkpoint(_)) => None,
                Some(SequenceRow::Revision(branch)) => Some(branch),
                None => parents.get(sequence).copied(),
            };
            if let Some(branch) = branch {
                self.lost.push(format!("revision #{sequence} of {name}"));
                self.rows.put(key::SEQUENCES, place, SequenceRow::Revision(branch).encode());
                let place = of(number).branch(branch).number(*sequence).build();
                self.rows.put(key::REVISIONS, place, RevisionRow::LOST.to_vec());
            } else {
                self.lost.push(format!("the checkpoint #{sequence} of {name}"));
                let hash = blake3::hash(format!("lost checkpoint {number} {sequence}").as_bytes());
                let id = *hash.as_bytes().first_chunk().expect("16 of 32 bytes");
                let old = Checkpoint {
                    id: CheckpointId::from_bytes(id),
                    sequence: *sequence,
                    time: now,
                    branch: 0,
                    revision: None,
                    message: "lost before a repair".to_owned(),
                    tags: Vec::new(),
                    trigger: Trigger::Manual,
                    body: Value::Null,
                    key: None,
                };
                self.rows.put(key::SEQUENCES, place, SequenceRow::Checkpoint(old.id).encode());
                effects.push(Effect::CheckpointHidden { old: Box::new(old) });
            }
        }
        if !effects.is_empty() {
            let row = OperationRow {
                operation: repair_operation(self.end + u64::from(number), now),
                effects,
                takes_back: None,
                taken_back_by: None,
                sequence: 0,
                session: number,
                position: self.end,
            };
            let id = row.operation.id;
            let place = of(number).number(row.position).bytes(id.as_bytes()).build();
            self.rows.put(key::OPERATION_IDS, key::operation_id(&id), place.clone());
            self.rows.put(key::OPERATIONS, place, row.encode());
            self.end += 1;
        }
        Ok(())
    }

    /// Takes in the records behind the index.
    fn tail(&mut self, pieces: Vec<Piece>, position: Position, now: Timestamp) -> Result<()> {
        for piece in pieces {
            let (frame, mended) = match piece {
                Piece::Lost { from, to } if to > position => {
                    let from = from.max(position);
                    self.lost.push(format!("{} bytes of the journal at {from}", to - from));
                    continue;
                }
                Piece::Record(frame, mended) if frame.position >= position => (frame, mended),
                _ => continue,
            };
            self.mended += u64::from(mended);
            let what = format!("the record at {} of the journal", frame.position);
            let record = match Record::decode(&frame.payload) {
                Ok(record) => record,
                Err(error) => {
                    self.lost.push(format!("{what}: {error}"));
                    continue;
                }
            };
            let placed = Placed { position: frame.position, hash: frame.hash, record };
            if let Err(error) = self.take_in(&placed, now) {
                self.lost.push(format!("{what}: {}", chain(&error)));
            }
        }
        Ok(())
    }

    fn take_in(&mut self, placed: &Placed, now: Timestamp) -> Result<()> {
        for change in &placed.record.changes {
            match change {
                RecordChange::Revision { session, header, .. } => {
                    let header =
                        Header::decode(&header.0).map_err(Error::corrupt("a revision's header"))?;
                    let parent = header.parents.first().map(|parent| parent.sequence);
                    self.skip_to(
                        *session,
                        header.sequence,
                        parent.map(|one| (one, header.branch)),
                        now,
                    )?;
                    break;
                }
                RecordChange::Checkpoint { session, checkpoint } => {
                    let parent = checkpoint.revision.map(|one| (one, checkpoint.branch));
                    self.skip_to(*session, checkpoint.sequence, parent, now)?;
                    break;
                }
                _ => {}
            }
        }
        if let Some(RecordChange::Refs(refs)) = placed.record.changes.first() {
            // They know what was lost before them.
            let refs = (**refs).clone();
            for (number, session) in (0..).zip(&refs.sessions) {
                if (number as usize) < self.refs.sessions.len() {
                    self.skip_to(number, session.next_sequence, None, now)?;
                }
            }
        }
        let mut refs = self.refs.clone();
        let mut rows = Rows::default();
        index::apply(&self.view(), &mut rows, &mut refs, placed)?;
        self.rows.extend(rows);
        self.refs = refs;
        Ok(())
    }

    /// Names the numbers before this one that nothing has.
    fn skip_to(
        &mut self,
        number: SessionNumber,
        sequence: u64,
        parent: Option<(u64, BranchNumber)>,
        now: Timestamp,
    ) -> Result<()> {
        let Some(session) = self.refs.sessions.get_mut(number as usize) else { return Ok(()) };
        let missing: Vec<u64> = (session.next_sequence..sequence).collect();
        if missing.is_empty() {
            return Ok(());
        }
        session.next_sequence = sequence;
        let current = session.current_branch;
        // A record holds one revision at most, and then perhaps its checkpoint.
        let mut parents: HashMap<u64, BranchNumber> = parent.into_iter().collect();
        if parents.keys().all(|known| !missing.contains(known))
            && let Some(first) = missing.first()
        {
            parents.insert(*first, current);
        }
        self.missing(number, &missing, &parents, now)
    }

    /// Gives each branch whose head cannot be made a new one, with the claims that are known.
    fn heads(&mut self, now: Timestamp) -> Result<()> {
        let refs = self.refs.clone();
        for (number, session) in (0..).zip(&refs.sessions) {
            for (branch, one) in (0..).zip(&session.branches) {
                let Some(head) = one.head else { continue };
                let at = timeline::head_of(&refs, number, branch)?;
                let Some(at) = at else { continue };
                let state = materialize::materialize(&self.view(), &refs, number, at);
                if state.is_ok_and(|state| keyframe::digest(&state) == head.digest) {
                    continue;
                }
                let claims = self.known_claims(&refs, number, at)?;
                let operation = repair_operation(self.end, now);
                let place = Place { session: number, branch, time: now, operation: &operation };
                let salt = *operation.id.as_bytes();
                let planned = revise::plan_saved(&self.refs, place, claims, salt)?;
                let sequence = planned.head.sequence;
                let record = Record { operation: operation.clone(), changes: planned.changes };
                let placed = Placed { position: self.end, hash: Default::default(), record };
                self.end += 1;
                let (mut rows, mut moved) = (Rows::default(), self.refs.clone());
                index::apply(&self.view(), &mut rows, &mut moved, &placed)?;
                self.rows.extend(rows);
                self.refs = moved;
                self.lost.push(format!(
                    "the exact claims at the head of the branch '{}' of '{}': #{sequence} holds those that are known",
                    one.name, session.info.name
                ));
            }
        }
        Ok(())
    }

    /// The claims of a revision as far as the deltas that are left tell.
    fn known_claims(
        &self,
        refs: &Refs,
        number: SessionNumber,
        at: At,
    ) -> Result<Vec<(Vec<u8>, EntryBytes)>> {
        let view = self.view();
        let mut claims: BTreeMap<Vec<u8>, EntryBytes> = BTreeMap::new();
        let mut stretches = lineage::stretches(&view, refs, number, at)?;
        stretches.reverse();
        for stretch in stretches {
            let place = of(number).branch(stretch.branch);
            let from = place.clone().number(stretch.after.saturating_add(1)).build();
            let to = place.number(stretch.to.saturating_add(1)).build();
            for (_, row) in
                view.scan(key::REVISIONS, &from, &to, Direction::Ascending, usize::MAX)?
            {
                let Ok(row) = RevisionRow::decode(&row) else { continue };
                for part in &row.parts {
                    let Ok(content) = object::content(&view, ObjectKind::Delta, *part) else {
                        continue;
                    };
                    let Ok(delta) = Delta::decode(&content) else { continue };
                    for change in delta.changes {
                        match super::lookup::bytes(&view, &change.new) {
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

    /// Brings the counts of the refs in line with what is there, and counts.
    fn counts(&mut self) -> Result<()> {
        let mut facts: HashMap<SessionNumber, u64> = HashMap::new();
        let mut checkpoints: HashMap<SessionNumber, u64> = HashMap::new();
        let mut whole = 0;
        for (table, counts) in [(key::FACTS, &mut facts), (key::CHECKPOINTS, &mut checkpoints)] {
            derive::each(&self.view(), table, |place, _| {
                *counts.entry(key::short_at(place, 0).unwrap_or(0)).or_default() += 1;
                Ok(())
            })?;
        }
        let view = self.view();
        derive::each(&view, key::REVISIONS, |_, row| {
            let row = RevisionRow::decode(row);
            let has = |part: &u64| object::sealed(&view, *part).is_ok();
            whole += u64::from(row.is_ok_and(|row| row.parts.iter().all(has)));
            Ok(())
        })?;
        self.revisions = whole;
        for (number, session) in (0..).zip(&mut self.refs.sessions) {
            session.facts = facts.get(&number).copied().unwrap_or(0);
            session.checkpoints = checkpoints.get(&number).copied().unwrap_or(0);
        }
        let row = RefsRow { refs: self.refs.clone() };
        self.rows.put(key::COUNTERS, key::REFS.to_vec(), row.encode());
        Ok(())
    }
}

type IsRight = fn(&[u8]) -> bool;

/// What the rows of a table are checked by; `None` for those that are made again.
fn check_of(table: Table) -> Option<IsRight> {
    let check: IsRight = match table {
        key::OBJECTS => is_whole,
        key::REVISIONS => |row| row == RevisionRow::LOST || RevisionRow::decode(row).is_ok(),
        key::CHECKPOINTS => |row| CheckpointRow::decode(row).is_ok(),
        key::OPERATIONS => |row| OperationRow::decode(row).is_ok(),
        key::BOOKMARKS => |row| BookmarkRow::decode(row).is_ok(),
        key::SEGMENTS => |row| SegmentRow::decode(row).is_ok(),
        key::KEYFRAMES => |row| KeyframeRow::decode(row).is_ok(),
        key::RECORDS => |row| row.len() == 32,
        _ => return None,
    };
    Some(check)
}
