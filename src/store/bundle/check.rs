//! A bundle judged as a whole, before anything of it is written.

use super::{BundleSource, Items, damaged};
use crate::engine::blob::restart_before;
use crate::engine::refs::{advance_by, session as session_refs};
use crate::engine::revise::list_id;
use crate::error::{Error, Result};
use crate::format::{
    BundleContents, BundleEnd, Bytes, Delta, DeltaPart, EntryBytes, Header, ItemKind, ObjectKind,
    Page, Record, RecordChange, Refs, Reset, Side, decode_entry, decode_key, entry_hash, is_whole,
    open, open_with_prefix, sealed_id, sealed_kind,
};
use crate::model::{Digest, ObjectId, RevisionId, SessionNumber};
use crate::redact::{Ending, Form, Redactor};
use std::collections::HashMap;

/// What a revision leads to.
type Known = HashMap<u64, (RevisionId, Digest, u64)>;

/// The bytes of a growing blob from its last restart on, and where the next part begins.
type Blob = (u64, Option<Vec<u8>>);

struct Judge<'a> {
    items: Items<'a>,
    contents: BundleContents,
    /// Where the contents of objects stand.
    objects: HashMap<ObjectId, (u64, usize)>,
    known: Vec<Known>,
    blobs: HashMap<(SessionNumber, String), Blob>,
    /// What the records lead to, where the bundle has all of them.
    refs: Option<Refs>,
    redactor: Option<&'a Redactor>,
    secrets: u64,
}

/// Which session a change belongs to; `None` if a bundle holds no such change.
pub(super) fn session_of(change: &mut RecordChange) -> Option<&mut SessionNumber> {
    match change {
        RecordChange::Refs(_)
        | RecordChange::Session { .. }
        | RecordChange::Pinned { .. }
        | RecordChange::Used { .. }
        | RecordChange::Object { .. } => None,
        RecordChange::Branch { session, .. }
        | RecordChange::BranchChanged { session, .. }
        | RecordChange::BranchHidden { session, .. }
        | RecordChange::Switched { session, .. }
        | RecordChange::Segment { session, .. }
        | RecordChange::Revision { session, .. }
        | RecordChange::Checkpoint { session, .. }
        | RecordChange::CheckpointHidden { session, .. }
        | RecordChange::CheckpointShown { session, .. }
        | RecordChange::Facts { session, .. }
        | RecordChange::Bookmark { session, .. }
        | RecordChange::TakesBack { session, .. }
        | RecordChange::Schedule { session, .. } => Some(session),
    }
}

/// Reads a whole bundle and checks all that it says of itself: every checksum, hash, digest and number. Gives what it
/// holds, and how many secrets.
pub(super) fn judge(
    source: &mut dyn BundleSource,
    redactor: Option<&Redactor>,
) -> Result<(BundleContents, u64)> {
    let mut items = Items::begin(source)?;
    let first = items.next()?;
    if first.kind != ItemKind::Contents {
        return Err(damaged(first.at, "it does not begin with what it holds"));
    }
    let contents =
        BundleContents::decode(&first.content).map_err(|error| damaged(first.at, error))?;
    let mut refs = Some(Refs::default());
    for session in &contents.sessions {
        let change = RecordChange::Session { info: session.info.clone() };
        match &mut refs {
            Some(refs) if session.from == 0 => advance_by(refs, &change)?,
            _ => refs = None,
        }
    }
    let mut judge = Judge {
        items,
        known: vec![Known::new(); contents.sessions.len()],
        contents,
        objects: HashMap::new(),
        blobs: HashMap::new(),
        refs,
        redactor,
        secrets: 0,
    };
    judge.all()?;
    judge.items.finish()?;
    Ok((judge.contents, judge.secrets))
}

impl Judge<'_> {
    fn all(&mut self) -> Result<()> {
        let mut found = BundleEnd::default();
        loop {
            let item = self.items.next()?;
            let wrong = |error: Error| damaged(item.at, crate::engine::verify::chain(&error));
            match item.kind {
                ItemKind::Contents => return Err(damaged(item.at, "it says twice what it holds")),
                ItemKind::Object => {
                    found.objects += 1;
                    self.object(&item.content, item.at).map_err(wrong)?;
                }
                ItemKind::Record => {
                    found.records += 1;
                    let record =
                        Record::decode(&item.content).map_err(|error| damaged(item.at, error))?;
                    for change in record.changes {
                        self.change(change).map_err(wrong)?;
                    }
                }
                ItemKind::End => {
                    let end = BundleEnd::decode(&item.content)
                        .map_err(|error| damaged(item.at, error))?;
                    if end != found {
                        return Err(damaged(item.at, "it ends with other counts"));
                    }
                    return Ok(());
                }
            }
        }
    }

    fn read(&mut self, content: &[u8]) {
        if let Some(redactor) = self.redactor {
            let form = if content.first() == Some(&b'{') { Form::Json } else { Form::Plain };
            self.secrets += redactor.clean_part(content, form, Ending::End).findings.len() as u64;
        }
    }

    fn object(&mut self, sealed: &[u8], at: u64) -> Result<()> {
        let wrong = Error::corrupt("an object");
        let kind = sealed_kind(sealed).map_err(wrong)?;
        if kind == ObjectKind::Chunk {
            return Err(Error::invalid("full states are not exchanged"));
        }
        let content = open(kind, sealed).map_err(Error::corrupt("an object"))?;
        let id = sealed_id(sealed).map_err(Error::corrupt("an object"))?;
        self.read(&content);
        self.objects.insert(id, (at, sealed.len()));
        Ok(())
    }

    fn change(&mut self, mut change: RecordChange) -> Result<()> {
        let number = match session_of(&mut change) {
            Some(number) if (*number as usize) < self.known.len() => *number,
            _ => return Err(Error::invalid("a record that belongs to no session of it")),
        };
        match &change {
            RecordChange::Revision { header, body, delta, .. } => {
                self.revision(number, &header.0, &body.0, delta)?;
            }
            RecordChange::Facts { page, count, .. } => self.facts(page, *count)?,
            RecordChange::Segment { blob, offset, prefix, object, .. } => {
                self.segment((number, blob.clone()), *offset, *prefix, object)?;
            }
            // What they hold besides bytes is text.
            other => self.read(format!("{other:?}").as_bytes()),
        }
        let Some(refs) = &mut self.refs else { return Ok(()) };
        let session = session_refs(refs, number)?;
        match &change {
            RecordChange::Switched { branch, .. } => drop(session.branch(*branch)?),
            RecordChange::Branch { base, .. } => drop(session.branch(*base)?),
            RecordChange::Checkpoint { checkpoint, .. } => {
                session.branch(checkpoint.branch)?;
                if checkpoint.sequence > session.next_sequence {
                    return Err(Error::invalid("a number is left out"));
                }
            }
            _ => {}
        }
        advance_by(refs, &change)
    }

    /// The stored object of a part, and what it holds.
    fn part(&mut self, kind: ObjectKind, part: &DeltaPart) -> Result<(ObjectId, Vec<u8>)> {
        let named;
        let sealed = match part {
            DeltaPart::Inline(Bytes(sealed)) => sealed,
            DeltaPart::Named(id) => {
                named = self.stored(id)?.ok_or_else(|| missing(id))?;
                &named
            }
        };
        let id = sealed_id(sealed).map_err(Error::corrupt("an object"))?;
        let content = open(kind, sealed).map_err(Error::corrupt("an object"))?;
        Ok((id, content))
    }

    fn stored(&mut self, id: &ObjectId) -> Result<Option<Vec<u8>>> {
        let place = self.objects.get(id).copied();
        place.map(|(at, length)| self.items.again(at, length)).transpose()
    }

    fn revision(
        &mut self,
        number: SessionNumber,
        encoded: &[u8],
        body: &[u8],
        delta: &[DeltaPart],
    ) -> Result<()> {
        let header = Header::decode(encoded).map_err(Error::corrupt("a revision"))?;
        let what = format!("revision #{}", header.sequence);
        let wrong =
            |reason: &'static str| Error::Corrupt { what: what.clone(), source: reason.into() };
        let session = self.contents.sessions.get(number as usize);
        if session.is_none_or(|session| session.info.id != header.session) {
            return Err(wrong("it is of another session"));
        }
        if blake3::hash(body).as_bytes() != header.body.as_bytes() {
            return Err(wrong("its body is another one's"));
        }
        let known = self.known.get(number as usize);
        let find = |sequence: u64| known.and_then(|known| known.get(&sequence)).copied();
        let resets = match &header.reset {
            Some(Reset::To(parent)) => Some(parent),
            _ => None,
        };
        for parent in header.parents.iter().chain(resets) {
            if find(parent.sequence).is_some_and(|(id, ..)| id != parent.id) {
                return Err(wrong("its parent is another revision"));
            }
        }
        let mut sum = match (&header.reset, header.parents.first()) {
            (Some(Reset::Empty), _) | (None, None) => Some((Digest::EMPTY, 0)),
            (Some(Reset::To(from)), _) | (None, Some(from)) => {
                find(from.sequence).map(|(_, digest, count)| (digest, count))
            }
        };
        if sum.is_none() && self.refs.is_some() {
            return Err(wrong("its parent is not there"));
        }
        let mut names = Vec::new();
        for part in delta {
            let (id, content) = self.part(ObjectKind::Delta, part)?;
            names.push(id);
            self.read(&content);
            let delta = Delta::decode(&content).map_err(Error::corrupt("a delta"))?;
            for change in &delta.changes {
                decode_key(&change.key).map_err(Error::corrupt("a claim"))?;
                let (old, new) = (self.side(&change.old)?, self.side(&change.new)?);
                if let Some((digest, count)) = &mut sum {
                    if let Some(old) = &old {
                        *digest = digest.minus(&entry_hash(&change.key, old));
                        *count = count.wrapping_sub(1);
                    }
                    if let Some(new) = &new {
                        *digest = digest.plus(&entry_hash(&change.key, new));
                        *count = count.wrapping_add(1);
                    }
                }
                if let Some(new) = &new {
                    decode_entry(new).map_err(Error::corrupt("a claim"))?;
                }
            }
        }
        if list_id(&names) != header.delta {
            return Err(wrong("its delta is another one's"));
        }
        if sum.is_some_and(|sum| sum != (header.digest, header.count)) {
            return Err(wrong("its delta does not lead to its digest"));
        }
        let leads = (Header::id_of(encoded), header.digest, header.count);
        if let Some(known) = self.known.get_mut(number as usize) {
            known.insert(header.sequence, leads);
        }
        Ok(())
    }

    fn side(&mut self, side: &Side) -> Result<Option<EntryBytes>> {
        Ok(match side {
            Side::Absent => None,
            Side::Inline(entry) => Some(EntryBytes::clone(entry)),
            Side::Blob(id) => {
                let sealed = self.stored(id)?.ok_or_else(|| missing(id))?;
                let content = open(ObjectKind::Blob, &sealed);
                Some(content.map_err(Error::corrupt("a large value"))?.into())
            }
        })
    }

    fn facts(&mut self, page: &DeltaPart, count: u64) -> Result<()> {
        let (_, content) = self.part(ObjectKind::Page, page)?;
        self.read(&content);
        let page = Page::decode(&content).map_err(Error::corrupt("a page of facts"))?;
        if page.facts.len() as u64 != count {
            return Err(Error::invalid("a page of facts has another count"));
        }
        Ok(())
    }

    fn segment(
        &mut self,
        blob: (SessionNumber, String),
        offset: u64,
        prefix: u64,
        object: &Bytes,
    ) -> Result<()> {
        let ranged = self.refs.is_none();
        let first = || (if ranged { offset } else { 0 }, (offset == 0).then(Vec::new));
        let (next, mut before) = self.blobs.remove(&blob).unwrap_or_else(first);
        if next != offset {
            return Err(Error::invalid("a part of a source is left out"));
        }
        if restart_before(offset) == offset {
            before = Some(Vec::new());
        }
        let length = match &mut before {
            Some(before) => {
                let prefix = usize::try_from(prefix)
                    .ok()
                    .and_then(|prefix| before.len().checked_sub(prefix));
                let prefix = prefix.and_then(|from| before.get(from..));
                let prefix =
                    prefix.ok_or_else(|| Error::missing("what precedes a part of a source"))?;
                let content = open_with_prefix(ObjectKind::Blob, prefix, &object.0)
                    .map_err(Error::corrupt("a part of a source"))?;
                self.read(&content);
                before.extend_from_slice(&content);
                content.len() as u64
            }
            // It takes what precedes the range to open it.
            None if is_whole(&object.0) => crate::engine::object::length(&object.0)?,
            None => return Err(Error::invalid("a part of a source is damaged")),
        };
        if length == 0 {
            return Err(Error::invalid("a part of a source is empty"));
        }
        self.blobs.insert(blob, (offset + length, before));
        Ok(())
    }
}

fn missing(id: &ObjectId) -> Error {
    Error::invalid(format!("the object {id} is not in it"))
}
