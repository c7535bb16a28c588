//! Purges objects: segments of sources, long texts, fact pages, deltas.

use super::{PurgeKind, PurgeRewriter, PurgedSource, duplicate_name_error, reserved_word_error};
use crate::backend::ScanDirection;
use crate::engine::random::random;
use crate::engine::table_rows::for_each_row;
use crate::engine::{blob, object};
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{
    CompressionEffort, Delta, DeltaChange, DeltaSide, EntryBytes, FactPage, ObjectKind,
    RevisionRow, SegmentRow, decode_entry, decode_key, encode_object, encode_object_with_prefix,
    entity_hash, object_id, object_kind, purge_entry, rekey_entry, rewrite_texts,
};
use crate::model::{BranchNumber, ObjectId, SessionNumber, TextRef, Value};
use crate::redact::TextPieces;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// The offset of a segment, and its row.
type PlacedSegment = (u64, SegmentRow);

struct OpenedSegment {
    offset: u64,
    length: usize,
    row: SegmentRow,
}

impl PurgeRewriter<'_> {
    /// Purges growing blobs. A secret may cross a segment border. If the mask can search in pieces,
    /// each blob is searched first, and only a blob with a secret is read as a whole.
    pub(super) fn segments(&mut self) -> Result<()> {
        let mut blobs: Vec<(Vec<u8>, Vec<PlacedSegment>)> = Vec::new();
        for_each_row(self.view, key::SEGMENTS, |place, row| {
            let row = SegmentRow::decode(row).map_err(Error::corrupt("a part of a blob"))?;
            let name = place.get(..12).unwrap_or_default();
            if blobs.last().is_none_or(|(known, _)| known != name) {
                blobs.push((name.to_vec(), Vec::new()));
            }
            if let Some((_, parts)) = blobs.last_mut() {
                parts.push((key::last_number(place).unwrap_or(0), row));
            }
            Ok(())
        })?;
        for (name, rows) in blobs {
            let is_searched = self.task.mask.pieces().is_some();
            if is_searched {
                let count = self.search_segments(&rows)?;
                if !self.keeps {
                    let called = self.source_name(&name);
                    self.note(key::short_at(&name, 0), PurgeKind::Bytes, called, count);
                    continue;
                }
                if count == 0 {
                    for (_, row) in &rows {
                        if object::is_object_number(row.object) {
                            self.keep(row.object, object::encoded(self.view, row.object)?);
                        }
                    }
                    continue;
                }
            }
            let (mut parts, mut content) = (Vec::new(), Vec::new());
            for (offset, row) in rows {
                if !object::is_object_number(row.object) {
                    // No segment's prefix reaches across lost or dropped bytes.
                    self.blob(name.clone(), &parts, &content)?;
                    (parts, content) = (Vec::new(), Vec::new());
                    continue;
                }
                let own = blob::segment_content(self.view, &row, &content)?;
                self.segment_objects.insert(row.object);
                if !is_searched {
                    (self.task.progress)(own.len() as u64);
                }
                content.extend_from_slice(&own);
                parts.push(OpenedSegment { offset, length: own.len(), row });
            }
            self.blob(name, &parts, &content)?;
        }
        Ok(())
    }

    /// Searches a growing blob, and returns how many known secrets it has. Holds only its last
    /// bytes.
    fn search_segments(&mut self, rows: &[PlacedSegment]) -> Result<u64> {
        // The first byte that is still needed after each segment: a prefix of a later one begins
        // there.
        let mut first = u64::MAX;
        let mut needed: Vec<u64> = Vec::with_capacity(rows.len());
        for (offset, row) in rows.iter().rev() {
            needed.push(first);
            first = first.min(offset.saturating_sub(row.prefix));
        }
        needed.reverse();
        let mask = self.task.mask;
        let mut search = mask.pieces();
        let mut count = 0;
        let mut end = |search: &mut Option<TextPieces<'_>>| match search.take() {
            Some(TextPieces::Known(stream)) => count += stream.finish(),
            Some(TextPieces::Sought(stream)) => stream.finish(),
            None => {}
        };
        // The last bytes, which a segment may need as its prefix.
        let mut last: Vec<u8> = Vec::new();
        for ((offset, row), needed) in rows.iter().zip(needed) {
            if !object::is_object_number(row.object) {
                end(&mut search);
                (search, last) = (mask.pieces(), Vec::new());
                continue;
            }
            let own = blob::segment_content(self.view, row, &last)?;
            self.segment_objects.insert(row.object);
            (self.task.progress)(own.len() as u64);
            match &mut search {
                Some(TextPieces::Known(stream)) => stream.push(&own),
                Some(TextPieces::Sought(stream)) => stream.push(&own),
                None => {}
            }
            let kept = (offset + own.len() as u64).saturating_sub(needed);
            let kept = usize::try_from(kept).unwrap_or(usize::MAX);
            last.extend_from_slice(&own);
            // Then moving the rest costs no more than was removed.
            let gone = last.len().saturating_sub(kept);
            if gone >= last.len() / 2 {
                last.drain(..gone);
            }
        }
        end(&mut search);
        Ok(count)
    }

    /// Returns the name of a blob or source without secrets. `place` is the key of one of its rows.
    pub(super) fn source_name(&self, place: &[u8]) -> String {
        let text = place.get(4..12).and_then(|text| text.first_chunk::<8>());
        text.and_then(|text| self.clean_names.get(text)).cloned().unwrap_or_default()
    }

    fn blob(&mut self, name: Vec<u8>, parts: &[OpenedSegment], content: &[u8]) -> Result<()> {
        let masked = self.task.mask.masked(content);
        let new = masked.as_ref().map_or(content, |(new, _)| new);
        let start = parts.first().map_or(0, |part| part.offset);
        let first = masked.as_ref().and_then(|(_, found)| found.first());
        let first = first.map_or(usize::MAX, |first| first.start);
        let mut at = 0;
        for part in if self.keeps { parts } else { &[] } {
            let end = at + part.length;
            let encoded = if end <= first {
                object::encoded(self.view, part.row.object)?
            } else {
                let prefix = usize::try_from(part.row.prefix).unwrap_or(usize::MAX);
                let prefix = at.checked_sub(prefix).and_then(|from| new.get(from..at));
                let prefix =
                    prefix.ok_or_else(|| Error::missing("what precedes a part of a blob"))?;
                let own = new.get(at..end).unwrap_or_default();
                let much = own.len() >= blob::MUCH_BYTES;
                let effort =
                    if much { CompressionEffort::Quick } else { CompressionEffort::Thorough };
                encode_object_with_prefix(ObjectKind::Blob, prefix, own, effort).1
            };
            self.keep(part.row.object, encoded);
            at = end;
        }
        if let Some((content, found)) = masked {
            let called = self.source_name(&name);
            self.note(key::short_at(&name, 0), PurgeKind::Bytes, called, found.len() as u64);
            let range = |one: &Range<usize>| start + one.start as u64..start + one.end as u64;
            let changed = found.iter().map(range).collect();
            let source = PurgedSource { start, content, changed };
            self.sources.entry(name).or_default().push(source);
        }
        Ok(())
    }

    /// Purges all other objects. Chunks of keyframes are left out: keyframes are made again.
    pub(super) fn objects(&mut self) -> Result<()> {
        let view = self.view;
        let mut entries: HashSet<ObjectId> = HashSet::new();
        let mut blobs = Vec::new();
        let mut pages = Vec::new();
        let mut deltas = Vec::new();
        for_each_row(view, key::OBJECTS, |place, encoded| {
            let number = key::last_number(place).unwrap_or(0);
            let wrong = Error::corrupt(format!("the object number {number}"));
            match object_kind(encoded).map_err(wrong)? {
                ObjectKind::Chunk => {}
                ObjectKind::Page => pages.push(number),
                ObjectKind::Blob => blobs.push(number),
                ObjectKind::Delta => {
                    let content = object::decoded(ObjectKind::Delta, number, encoded)?;
                    (self.task.progress)(content.len() as u64);
                    entries.extend(object::blobs_named_in_delta(&content)?);
                    deltas.push(number);
                }
            }
            Ok(())
        })?;
        blobs.retain(|number| !self.segment_objects.contains(number));
        let mut entry_blobs: HashMap<ObjectId, u64> = HashMap::new();
        for number in blobs {
            let encoded = object::encoded(view, number)?;
            let id = object_id(&encoded).map_err(Error::corrupt("an object"))?;
            if entries.contains(&id) {
                entry_blobs.insert(id, number);
            } else {
                self.text(number, id, encoded)?;
            }
        }
        self.pages(&pages)?;
        let named = self.deltas(&deltas)?;
        for (id, number) in entry_blobs {
            // Entries that were replaced in every delta are left out.
            if self.keeps && named.contains(&id) {
                self.keep(number, object::encoded(view, number)?);
            }
        }
        Ok(())
    }

    fn keep(&mut self, number: u64, encoded: Vec<u8>) {
        if self.keeps {
            self.rows.put(key::OBJECTS, KeyBuilder::new().number(number).build(), encoded);
        }
    }

    fn text(&mut self, number: u64, id: ObjectId, encoded: Vec<u8>) -> Result<()> {
        let content = object::decoded(ObjectKind::Blob, number, &encoded)?;
        match self.task.mask.masked(&content) {
            None => self.keep(number, encoded),
            Some((new, found)) => {
                let (name, encoded) = encode_object(ObjectKind::Blob, &new);
                self.names.put(id, name);
                let called = format!("of {} bytes", new.len());
                self.note(None, PurgeKind::Text, called, found.len() as u64);
                self.keep(number, encoded);
            }
        }
        Ok(())
    }

    fn pages(&mut self, pages: &[u64]) -> Result<()> {
        let sessions = self.sessions_of_pages()?;
        let mut masked = Vec::with_capacity(pages.len());
        for number in pages {
            let encoded = object::encoded(self.view, *number)?;
            let old = object::decoded(ObjectKind::Page, *number, &encoded)?;
            let session = sessions.get(number).copied();
            let before = FactPage::decode(&old).map_err(Error::corrupt("a page of facts"))?;
            let new = self.packed_texts(&old);
            let count = new.as_ref().map_or(0, |(_, count)| *count);
            let new = new.map(|(new, _)| new);
            if let Some(new) = &new {
                FactPage::decode(new).map_err(|_| reserved_word_error())?;
            }
            if let (Some(session), Some(source)) = (session, &before.source) {
                let blob = of(session).text(source).build();
                for fact in &before.facts {
                    self.references(&blob, &fact.value);
                }
            }
            let kinds: BTreeSet<_> = before.facts.iter().map(|fact| fact.kind.name()).collect();
            let kinds: Vec<_> = kinds.into_iter().collect();
            let name = format!(
                "{} of {}",
                kinds.join(", "),
                before.facts.first().map_or_else(String::new, |fact| fact.at.to_string())
            );
            self.note(session, PurgeKind::Facts, name, count);
            let id = object_id(&encoded).map_err(Error::corrupt("a page of facts"))?;
            if self.keeps {
                masked.push((*number, session, id, encoded, old, new));
            }
        }
        for (number, session, id, encoded, old, new) in masked {
            let renamed = self.names.rewrite(new.as_deref().unwrap_or(&old))?;
            self.change(session.filter(|_| renamed.is_some()), 0);
            match renamed.or(new) {
                None => self.keep(number, encoded),
                Some(content) => {
                    let (name, encoded) = encode_object(ObjectKind::Page, &content);
                    self.names.put(id, name);
                    self.keep(number, encoded);
                }
            }
        }
        Ok(())
    }

    /// Updates the hashes of long texts in a source whose bytes have changed.
    fn references(&mut self, blob: &[u8], value: &Value) {
        let mut changed = Vec::new();
        for source in self.sources.get(blob).into_iter().flatten() {
            TextRef::each_in(value, &mut |text| {
                let Some((offset, length)) = text.place else { return };
                let end = offset.saturating_add(length);
                // The ranges are in order and disjoint.
                let next = source.changed.partition_point(|one| one.end <= offset);
                if source.changed.get(next).is_none_or(|one| one.start >= end) {
                    return;
                }
                let within = |at: u64| {
                    let at = at.checked_sub(source.start).map(usize::try_from);
                    at.and_then(Result::ok).unwrap_or(usize::MAX)
                };
                let range = within(offset)..within(end);
                let document = source.content.get(range).unwrap_or_default();
                let text_now = (self.task.resolve)(document, &text.pointer);
                let hash =
                    text_now.map_or([0; 32], |text| *blake3::hash(text.as_bytes()).as_bytes());
                changed.push((text.hash, ObjectId::from_bytes(hash)));
            });
        }
        for (old, new) in changed {
            self.names.put(old, new);
        }
    }

    /// Purges deltas. Returns the ids of the large entries that they name afterwards.
    fn deltas(&mut self, deltas: &[u64]) -> Result<HashSet<ObjectId>> {
        let mut revisions: HashMap<u64, (SessionNumber, u64)> = HashMap::new();
        for table in [key::REVISIONS, key::FOLDED] {
            for_each_row(self.view, table, |place, row| {
                if let Ok(row) = RevisionRow::decode(row) {
                    let session = key::short_at(place, 0).unwrap_or(0);
                    let number = key::last_number(place).unwrap_or(0);
                    row.parts.iter().for_each(|part| {
                        let first = revisions.entry(*part).or_insert((session, number));
                        if first.0 == session {
                            first.1 = number.min(first.1);
                        }
                    });
                }
                Ok(())
            })?;
        }
        let mut named = HashSet::new();
        let mut made: HashSet<ObjectId> = HashSet::new();
        for number in deltas {
            let encoded = object::encoded(self.view, *number)?;
            let old = object::decoded(ObjectKind::Delta, *number, &encoded)?;
            let mut delta = Delta::decode(&old).map_err(Error::corrupt("a delta"))?;
            let mut count = 0;
            let mut touched = false;
            for change in &mut delta.changes {
                let key = change.key.clone();
                for side in [&mut change.old, &mut change.new] {
                    touched |= self.side(&key, side, &mut count, &mut made)?;
                }
                let new_key = self.new_key(&key, &mut count)?;
                if let Some(new) = new_key {
                    if let Some((session, _)) = revisions.get(number) {
                        self.check_key_free(*session, &key, &new)?;
                    }
                    // The entries of a renamed claim must keep their contribution to digests.
                    for side in [&mut change.old, &mut change.new] {
                        self.rekey(&key, side, &mut made)?;
                    }
                    change.key = new;
                    touched = true;
                }
            }
            // Another claim may still refer to an entry that was replaced in a renamed one.
            for side in delta.changes.iter().flat_map(|change| [&change.old, &change.new]) {
                if let DeltaSide::Blob(id) = side {
                    named.insert(*id);
                }
            }
            if !touched {
                self.keep(*number, encoded);
                continue;
            }
            delta.changes.sort_by(|a, b| a.key.cmp(&b.key));
            let is_twice = |pair: &[DeltaChange]| matches!(pair, [a, b] if a.key == b.key);
            if delta.changes.windows(2).any(is_twice) {
                return Err(duplicate_name_error("ids"));
            }
            let new = delta.encode_for(random()?, &Delta::name(&old));
            self.longer.insert(*number, new.len() as i64 - old.len() as i64);
            if let Some((session, sequence)) = revisions.get(number) {
                self.change(Some(*session), *sequence);
                self.note_at(Some(*session), PurgeKind::Revision, *sequence, count);
            } else {
                self.note(None, PurgeKind::Revision, String::new(), count);
            }
            self.keep(*number, encode_object(ObjectKind::Delta, &new).1);
        }
        Ok(named)
    }

    /// Checks that no other claim of a session has, or gets, the new key of a claim.
    fn check_key_free(&mut self, session: SessionNumber, old: &[u8], new: &[u8]) -> Result<()> {
        let Some(renamed) = &mut self.renamed else { return Ok(()) };
        let is_free = match renamed.entry((session, new.to_vec())) {
            Entry::Occupied(known) => known.get() == old,
            Entry::Vacant(free) => {
                free.insert(old.to_vec());
                let id = self.refs.sessions.get(session)?.map(|session| session.info.id);
                let id = id.ok_or_else(|| Error::missing(format!("the session {session}")))?;
                let place = of(session).bytes(&entity_hash(&id, new));
                let to = place.clone().branch(BranchNumber::MAX).number(u64::MAX).build();
                let from = place.build();
                self.view.scan(key::HISTORY, &from, &to, ScanDirection::Ascending, 1)?.is_empty()
            }
        };
        if is_free { Ok(()) } else { Err(duplicate_name_error("ids")) }
    }

    /// Purges one side of a change. Returns whether it changed.
    fn side(
        &mut self,
        key: &[u8],
        side: &mut DeltaSide,
        count: &mut u64,
        made: &mut HashSet<ObjectId>,
    ) -> Result<bool> {
        let (entry, is_large) = match side {
            DeltaSide::Absent => return Ok(false),
            DeltaSide::Inline(entry) => (EntryBytes::clone(entry), false),
            DeltaSide::Blob(id) => {
                (object::content_of(self.view, ObjectKind::Blob, id)?.into(), true)
            }
        };
        let mut failed = None;
        let new = purge_entry(key, &entry, |value| {
            let mask = self.task.mask;
            let masked = rewrite_texts(value, |text| {
                let (new, found) = mask.masked(text)?;
                *count += found.len() as u64;
                Some(new)
            });
            match self.names.rewrite(masked.as_deref().unwrap_or(value)) {
                Ok(renamed) => renamed.or(masked),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        });
        failed.map_or(Ok(()), Err)?;
        let Some(new) = new else { return Ok(false) };
        decode_entry(&new).map_err(|_| duplicate_name_error("names of fields"))?;
        *side =
            if is_large { DeltaSide::Blob(self.large(&new, made)) } else { DeltaSide::Inline(new) };
        Ok(true)
    }

    fn large(&mut self, entry: &[u8], made: &mut HashSet<ObjectId>) -> ObjectId {
        let (id, encoded) = encode_object(ObjectKind::Blob, entry);
        if made.insert(id) {
            let number = self.next;
            self.next += 1;
            self.keep(number, encoded);
        }
        id
    }

    fn rekey(
        &mut self,
        key: &[u8],
        side: &mut DeltaSide,
        made: &mut HashSet<ObjectId>,
    ) -> Result<()> {
        match side {
            DeltaSide::Absent => {}
            DeltaSide::Inline(entry) => *side = DeltaSide::Inline(rekey_entry(key, entry)),
            DeltaSide::Blob(id) => {
                // An entry that was just created has the right contribution to digests.
                let Some(number) = object::find_number(self.view, id)? else { return Ok(()) };
                let entry = object::content(self.view, ObjectKind::Blob, number)?;
                let id = self.large(&rekey_entry(key, &entry), made);
                *side = DeltaSide::Blob(id);
            }
        }
        Ok(())
    }

    fn new_key(&mut self, key: &[u8], count: &mut u64) -> Result<Option<Vec<u8>>> {
        let Some((kind, id)) = key.split_first() else { return Ok(None) };
        let Some((new, found)) = self.task.mask.masked(id) else { return Ok(None) };
        *count += found.len() as u64;
        let new = [&[*kind], new.as_slice()].concat();
        decode_key(&new).map_err(Error::corrupt("a claim"))?;
        Ok(Some(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::EmptySnapshot;
    use crate::engine::purge::{Objects, PurgeTask, SourceNaming};
    use crate::engine::refs::StoreRefs;
    use crate::engine::row_overlay::{OverlaySnapshot, RowOverlay};
    use crate::model::{Operation, OperationAuthor, OperationId, Timestamp};
    use crate::redact::{KnownSecrets, TextMasker};

    /// Regression: if a part of a source was lost, a long text before it kept the hash that it had
    /// with the secret, because only what follows the lost part was remembered. The text could not
    /// be read any more.
    #[test]
    fn texts_before_and_after_a_lost_part_of_a_source_get_new_hashes() {
        const SECRET: &str = "s3cr3t-Zx9Kq2Lm7Pv4";
        let rows = RowOverlay::default();
        let view = OverlaySnapshot::new(&EmptySnapshot, &rows, 0);
        let refs = StoreRefs::default();
        let mask = KnownSecrets::new([SECRET]).unwrap();
        let task = PurgeTask {
            mask: &mask,
            resolve: &|document, _| Some(String::from_utf8_lossy(document).into_owned()),
            operation: Operation {
                id: OperationId::from_bytes([1; 16]),
                verb: "purge".to_owned(),
                author: OperationAuthor::Asked,
                time: Timestamp::default(),
            },
            reason: None,
            progress: &|_| (),
        };
        let (naming, objects) = (SourceNaming::NewOnly, Objects::Passed);
        let mut rewriter = PurgeRewriter::new(&view, &refs, &task, naming, objects).unwrap();
        let blob = of(0).text("log").build();
        let texts = [(0, format!("before {SECRET}")), (1000, format!("and after {SECRET}"))];
        for (offset, text) in &texts {
            let length = text.len();
            let row = SegmentRow { object: 1, length: length as u64, prefix: 0 };
            let part = OpenedSegment { offset: *offset, length, row };
            rewriter.blob(blob.clone(), &[part], text.as_bytes()).unwrap();
        }
        for (offset, text) in &texts {
            let hash = |text: &str| *blake3::hash(text.as_bytes()).as_bytes();
            let reference = TextRef {
                preview: String::new(),
                bytes: text.len() as u64,
                hash: ObjectId::from_bytes(hash(text)),
                place: Some((*offset, text.len() as u64)),
                pointer: String::new(),
            };
            rewriter.references(&blob, &Value::from([("text", reference.into_value())]));
            let new = rewriter.names.rewrite(&hash(text)).unwrap();
            assert_eq!(new, Some(hash(&mask.masked_text(text)).to_vec()), "{text}");
        }
    }
}
