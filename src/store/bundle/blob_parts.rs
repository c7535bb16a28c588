//! Decompresses the blobs of a bundle part by part. Each part needs the bytes before it. They are
//! kept for the blobs used last, and read again for others, so memory is bounded whatever the
//! bundle contains.

use super::secret_counter::SecretCounter;
use super::{BundleReader, damaged};
use crate::engine::blob::{RESTART_BYTES, restart_before};
use crate::error::{Error, Result};
use crate::format::{ObjectKind, Record, RecordBytes, RecordChange, decode_object_with_prefix};
use crate::model::SessionNumber;
use crate::redact::TextForm;
use std::collections::HashMap;

/// How many blobs are kept open. After each part, a blob takes at most 16 MiB.
const OPEN: usize = 4;

/// A blob, identified by its session and name.
pub(super) type BlobKey = (SessionNumber, String);

/// Where a part of a blob is in a bundle.
#[derive(Clone, Copy)]
struct BlobPartLocation {
    /// The offset of the part in the blob.
    offset: u64,
    /// How many bytes before it are needed to decompress it.
    prefix: u64,
    /// The position of the item of the bundle that contains it.
    at: u64,
    /// The length of that item.
    length: usize,
    /// The index of the change in the record of that item.
    index: usize,
}

/// A blob as far as its parts were read.
struct BlobState {
    /// The offset of the next part.
    next: u64,
    form: TextForm,
    /// The parts that later parts may need.
    places: Vec<BlobPartLocation>,
    /// How many bytes at its beginning were permanently dropped.
    dropped: u64,
}

/// The last bytes of a blob.
#[derive(Default)]
struct BlobWindow {
    start: u64,
    bytes: Vec<u8>,
}

/// A part of a blob, as in a record. Its fields are as in [`RecordChange::Segment`].
pub(super) struct BlobPart<'a> {
    pub(super) offset: u64,
    pub(super) prefix: u64,
    pub(super) object: &'a RecordBytes,
}

/// Reads a range of a blob from the store that the bundle is imported into.
pub(super) type StoredBlobReader<'a> = &'a dyn Fn(&BlobKey, u64, u64) -> Result<Vec<u8>>;

/// The blobs of a bundle.
#[derive(Default)]
pub(super) struct BundleBlobs {
    known: HashMap<BlobKey, BlobState>,
    /// The blobs used last, the latest at the end.
    open: Vec<(BlobKey, BlobWindow)>,
}

impl BlobWindow {
    fn between(&self, from: u64, to: u64) -> Option<&[u8]> {
        let from = usize::try_from(from.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(to.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..to)
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Decompresses and appends the next part. Returns its length.
    fn take(&mut self, offset: u64, prefix: u64, object: &RecordBytes) -> Result<u64> {
        let since = restart_before(offset);
        let before = offset.checked_sub(prefix).filter(|from| *from >= since);
        let before = before.and_then(|from| self.between(from, offset));
        let before = before.ok_or_else(|| Error::missing("what precedes a part of a source"))?;
        let content = decode_object_with_prefix(ObjectKind::Blob, before, &object.0)
            .map_err(Error::corrupt("a part of a source"))?;
        let length = content.len() as u64;
        if length == 0 || offset + length > since + RESTART_BYTES {
            return Err(Error::invalid("a part of a source is empty or too long"));
        }
        self.bytes.extend_from_slice(&content);
        Ok(length)
    }

    /// Drops bytes that no later part can need.
    fn trim(&mut self) {
        let from = kept_from(self.end());
        if from > self.start {
            let removed = usize::try_from(from - self.start).unwrap_or(usize::MAX);
            self.bytes.drain(..removed.min(self.bytes.len()));
            self.start = from;
        }
    }
}

/// Returns the offset of the first byte to keep: parts need the bytes after the last restart, and a
/// secret may begin before it.
const fn kept_from(end: u64) -> u64 {
    restart_before(end).saturating_sub(RESTART_BYTES)
}

impl BundleBlobs {
    /// Registers a blob whose first bytes were permanently dropped.
    pub(super) fn missing(&mut self, name: BlobKey, bytes: u64) -> Result<()> {
        let source =
            BlobState { next: bytes, form: TextForm::Plain, places: Vec::new(), dropped: bytes };
        if self.known.insert(name, source).is_some() {
            return Err(Error::invalid("a source begins twice"));
        }
        Ok(())
    }

    /// Decompresses the next part of a blob and counts its secrets. The part is change `index` of
    /// the record in the item at `at`, which has `length` bytes.
    pub(super) fn take(
        &mut self,
        (items, before): (&mut BundleReader<'_>, Option<StoredBlobReader<'_>>),
        secrets: &mut SecretCounter<'_>,
        name: BlobKey,
        part: &BlobPart<'_>,
        (at, length, index): (u64, usize, usize),
    ) -> Result<()> {
        if let Some(source) = self.known.get(&name) {
            if source.next != part.offset {
                return Err(Error::invalid("a part of a source is left out"));
            }
        } else {
            let first = match before {
                Some(before) if part.offset > 0 => before(&name, 0, 1)?,
                _ if part.offset > 0 => {
                    return Err(Error::invalid("a part of a source is left out"));
                }
                _ => Vec::new(),
            };
            // The form of a source depends on its first byte, which may be the first byte of this
            // part.
            let json = first.first() == Some(&b'{');
            let form = if json { TextForm::Json } else { TextForm::Plain };
            let source = BlobState { next: part.offset, form, places: Vec::new(), dropped: 0 };
            self.known.insert(name.clone(), source);
        }
        let mut window = self.window(items, before, &name, part.offset)?;
        let read = usize::try_from(part.offset - window.start).unwrap_or(usize::MAX);
        let bytes = window.take(part.offset, part.prefix, part.object)?;
        let source = self.known.get_mut(&name).expect("known, or inserted above");
        if part.offset == 0 && window.bytes.first() == Some(&b'{') {
            source.form = TextForm::Json;
        }
        let (old, new) = window.bytes.split_at(read.min(window.bytes.len()));
        let overlap = old.len().saturating_sub(secrets.overlap());
        secrets.count_after(old.get(overlap..).unwrap_or_default(), new, source.form);
        source.next += bytes;
        let (offset, prefix) = (part.offset, part.prefix);
        source.places.push(BlobPartLocation { offset, prefix, at, length, index });
        let from = kept_from(source.next);
        if source.places.first().is_some_and(|first| first.offset < from) {
            source.places.retain(|place| place.offset >= from);
        }
        window.trim();
        self.open.push((name, window));
        Ok(())
    }

    /// Returns the bytes before the next part: those that were kept, or else the bytes as read
    /// again from the bundle and the store.
    fn window(
        &mut self,
        items: &mut BundleReader<'_>,
        before: Option<StoredBlobReader<'_>>,
        name: &BlobKey,
        offset: u64,
    ) -> Result<BlobWindow> {
        if let Some(place) = self.open.iter().position(|(known, _)| known == name) {
            return Ok(self.open.remove(place).1);
        }
        if self.open.len() >= OPEN {
            self.open.remove(0);
        }
        let places = self.known.get(name).map(|source| source.places.clone()).unwrap_or_default();
        let dropped = self.known.get(name).map_or(0, |source| source.dropped);
        let begin = places.first().map_or(offset, |first| first.offset);
        let mut window = BlobWindow { start: begin, bytes: Vec::new() };
        // Trimmed bytes are not needed any more. Earlier bytes that the bundle does not contain are
        // in the store.
        let elsewhere = places.is_empty() || !begin.is_multiple_of(RESTART_BYTES);
        if let Some(before) = before
            && begin > dropped
            && elsewhere
        {
            window.start = kept_from(begin).max(dropped);
            window.bytes = before(name, window.start, begin)?;
            if window.end() != begin {
                return Err(Error::missing("what precedes a part of a source"));
            }
        }
        for place in places {
            let content = items.read_again(place.at, place.length)?;
            let record = Record::decode(&content).map_err(|error| damaged(place.at, error))?;
            match record.changes.get(place.index) {
                Some(RecordChange::Segment { object, .. }) => {
                    window.take(place.offset, place.prefix, object)?;
                }
                _ => return Err(damaged(place.at, "it changed while it was read")),
            }
        }
        Ok(window)
    }
}
