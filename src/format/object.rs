//! Objects: content, compressed if that makes it smaller, and named by its hash. An object begins
//! with a header by which it can be found in raw bytes.

use super::codec::{ByteReader, DecodeError};
use crate::model::ObjectId;
use std::cell::RefCell;
use std::io::Write;
use zstd::zstd_safe::{self, DCtx};

/// The kind of an object's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ObjectKind {
    /// A delta or a part of one.
    Delta = 1,
    /// A chunk of a full state.
    Chunk = 2,
    /// A page of facts.
    Page = 3,
    /// A large value, or a segment of a growing blob.
    Blob = 4,
}

impl ObjectKind {
    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Delta),
            2 => Some(Self::Chunk),
            3 => Some(Self::Page),
            4 => Some(Self::Blob),
            _ => None,
        }
    }
}

/// Maximum size of an object's content in bytes.
pub const MAX_OBJECT_BYTES: usize = 64 << 20;

const MAGIC: &[u8; 4] = b"fOb1";
const CODEC_RAW: u8 = 0;
const CODEC_ZSTD: u8 = 1;
const CODEC_ZSTD_PREFIX: u8 = 2;
const HEADER_BYTES: usize = 4 + 1 + 1 + 4 + 4 + 32;
const CHECK_BYTES: usize = 8;
const LEVEL: i32 = 3;
const THOROUGH_LEVEL: i32 = 6;
/// Below this size, compression costs more than it saves.
const MIN_COMPRESSED_BYTES: usize = 64;
/// Below this size, [`compress_object`] leaves an object as it is. Most deltas of one change are
/// below it: there are many, and compressing them costs much time for little space.
const MIN_LATER_COMPRESSED_BYTES: usize = 384;

thread_local! {
    // Creating a context costs more than compressing a small delta.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn compress(content: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|context| {
        if context.is_none() {
            *context = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        context.as_mut()?.compress(content).ok()
    })
}

fn decompress(stored: &[u8], length: usize) -> std::io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|context| {
        let context = match context {
            Some(context) => context,
            None => context.insert(zstd::bulk::Decompressor::new()?),
        };
        context.decompress(stored, length)
    })
}

fn assemble(kind: ObjectKind, codec: u8, content: &[u8], stored: &[u8]) -> (ObjectId, Vec<u8>) {
    let id = content_id(content);
    let encoded = put_together(kind, codec, content.len(), id.as_bytes(), stored);
    (id, encoded)
}

fn put_together(
    kind: ObjectKind,
    codec: u8,
    length: usize,
    hash: &[u8; 32],
    stored: &[u8],
) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(HEADER_BYTES + stored.len() + CHECK_BYTES);
    encoded.extend_from_slice(MAGIC);
    encoded.extend_from_slice(&[kind as u8, codec]);
    // Content is at most MAX_OBJECT_BYTES, so both lengths fit.
    encoded.extend_from_slice(&(length as u32).to_le_bytes());
    encoded.extend_from_slice(&(stored.len() as u32).to_le_bytes());
    encoded.extend_from_slice(hash);
    encoded.extend_from_slice(stored);
    let check = check_of(codec, &encoded);
    encoded.extend_from_slice(&check);
    encoded
}

/// Returns the check of an object, of the bytes before it. The name of an object covers only the
/// content; the check also covers kind and encoding, and can be verified without a prefix. For
/// uncompressed content it covers only the header, so that the content is hashed once.
fn check_of(codec: u8, before: &[u8]) -> [u8; CHECK_BYTES] {
    let covered = if codec == CODEC_RAW { HEADER_BYTES.min(before.len()) } else { before.len() };
    let (covered, _) = before.split_at(covered);
    *blake3::hash(covered).as_bytes().first_chunk().expect("8 of 32 bytes")
}

/// Returns the name that [`encode_object`] gives this content.
#[must_use]
pub fn content_id(content: &[u8]) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(content).as_bytes())
}

/// Encodes content as an object and returns its name and the bytes to store.
///
/// # Panics
/// If the content is larger than [`MAX_OBJECT_BYTES`]: callers must split it first.
#[must_use]
pub fn encode_object(kind: ObjectKind, content: &[u8]) -> (ObjectId, Vec<u8>) {
    assert!(content.len() <= MAX_OBJECT_BYTES, "content is split before it is encoded");
    if content.len() >= MIN_COMPRESSED_BYTES
        && let Some(smaller) = compress(content).filter(|bytes| bytes.len() < content.len())
    {
        return assemble(kind, CODEC_ZSTD, content, &smaller);
    }
    assemble(kind, CODEC_RAW, content, content)
}

/// Encodes an object like [`encode_object`], without compression. [`compress_object`] can compress
/// it later.
///
/// # Panics
/// See [`encode_object`].
#[must_use]
pub fn encode_object_raw(kind: ObjectKind, content: &[u8]) -> (ObjectId, Vec<u8>) {
    assert!(content.len() <= MAX_OBJECT_BYTES, "content is split before it is encoded");
    assemble(kind, CODEC_RAW, content, content)
}

/// Compresses an object and keeps its name. Returns `None` if the object is compressed already, is
/// small, or would not get smaller.
pub fn compress_object(encoded: &[u8]) -> Result<Option<Vec<u8>>, DecodeError> {
    let object = parse(encoded)?;
    if object.codec != CODEC_RAW || object.stored.len() < MIN_LATER_COMPRESSED_BYTES {
        return Ok(None);
    }
    check_content(&object, object.stored)?;
    let smaller = compress(object.stored).filter(|bytes| bytes.len() < object.stored.len());
    Ok(smaller
        .map(|stored| put_together(object.kind, CODEC_ZSTD, object.length, &object.id, &stored)))
}

/// How much work to spend on compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionEffort {
    /// Finds fewer repetitions.
    Quick,
    /// Finds more repetitions in the content and the prefix, for three times the work per byte.
    Thorough,
}

/// Encodes an object like [`encode_object`], compressed with the preceding content as prefix. The
/// object can be decoded only with the same prefix, unless [`is_self_contained`] is true for it.
///
/// # Panics
/// See [`encode_object`].
#[must_use]
pub fn encode_object_with_prefix(
    kind: ObjectKind,
    prefix: &[u8],
    content: &[u8],
    effort: CompressionEffort,
) -> (ObjectId, Vec<u8>) {
    assert!(content.len() <= MAX_OBJECT_BYTES, "content is split before it is encoded");
    let thorough = effort == CompressionEffort::Thorough;
    if prefix.is_empty() && !thorough {
        return encode_object(kind, content);
    }
    let level = if thorough { THOROUGH_LEVEL } else { LEVEL };
    let compressed = || -> std::io::Result<Vec<u8>> {
        let mut encoder = zstd::stream::Encoder::with_ref_prefix(Vec::new(), level, prefix)?;
        encoder.window_log(WINDOW_LOG)?;
        encoder.set_pledged_src_size(Some(content.len() as u64))?;
        encoder.write_all(content)?;
        encoder.finish()
    };
    let codec = if prefix.is_empty() { CODEC_ZSTD } else { CODEC_ZSTD_PREFIX };
    match compressed() {
        Ok(smaller) if smaller.len() < content.len() => assemble(kind, codec, content, &smaller),
        _ => encode_object(kind, content),
    }
}

/// The window must cover the longest prefix and the content after it: 16 MiB.
const WINDOW_LOG: u32 = 24;

struct ParsedObject<'a> {
    kind: ObjectKind,
    codec: u8,
    length: usize,
    id: [u8; 32],
    stored: &'a [u8],
}

fn parse(encoded: &[u8]) -> Result<ParsedObject<'_>, DecodeError> {
    let object = parse_unchecked(encoded)?;
    let agrees =
        encoded.split_last_chunk().is_some_and(|(before, check): (_, &[u8; CHECK_BYTES])| {
            check_of(object.codec, before) == *check
        });
    if agrees {
        return Ok(object);
    }
    Err(DecodeError::new("object", "its check differs: it is not what was written"))
}

/// Parses an object like [`parse`], without verifying its check.
fn parse_unchecked(encoded: &[u8]) -> Result<ParsedObject<'_>, DecodeError> {
    let mut reader = ByteReader::new("object", encoded);
    if &reader.array::<4>()? != MAGIC {
        return Err(reader.error("it does not begin with the mark of an object"));
    }
    let kind = ObjectKind::from_code(reader.byte()?).ok_or_else(|| reader.error("unknown kind"))?;
    let codec = reader.byte()?;
    let length = u32::from_le_bytes(reader.array()?) as usize;
    let stored = u32::from_le_bytes(reader.array()?) as usize;
    let id = reader.array()?;
    let stored = reader.take(stored)?;
    reader.take(CHECK_BYTES)?;
    reader.end()?;
    if length > MAX_OBJECT_BYTES {
        return Err(reader.error("its stated length is larger than any object"));
    }
    Ok(ParsedObject { kind, codec, length, id, stored })
}

/// Returns the name of an encoded object, without decoding it. It is not verified.
pub fn object_id(encoded: &[u8]) -> Result<ObjectId, DecodeError> {
    parse_unchecked(encoded).map(|object| ObjectId::from_bytes(object.id))
}

/// Returns the kind of an encoded object, without decoding it.
pub fn object_kind(encoded: &[u8]) -> Result<ObjectKind, DecodeError> {
    parse(encoded).map(|object| object.kind)
}

/// Returns whether an encoded object is intact. If it was compressed with a prefix, only its check
/// is verified: it cannot be decoded alone.
#[must_use]
pub fn is_whole(encoded: &[u8]) -> bool {
    parse(encoded)
        .is_ok_and(|object| object.codec == CODEC_ZSTD_PREFIX || content_of(&object, &[]).is_ok())
}

/// Returns whether an encoded object can be decoded without a prefix.
pub fn is_self_contained(encoded: &[u8]) -> Result<bool, DecodeError> {
    parse(encoded).map(|object| object.codec != CODEC_ZSTD_PREFIX)
}

/// Returns the length of an encoded object's content in bytes. It is not verified.
pub fn content_length(encoded: &[u8]) -> Result<u64, DecodeError> {
    parse_unchecked(encoded).map(|object| object.length as u64)
}

/// Returns the content of an encoded object, checked against its name.
pub fn decode_object(kind: ObjectKind, encoded: &[u8]) -> Result<Vec<u8>, DecodeError> {
    decode_object_with_prefix(kind, &[], encoded)
}

/// Decodes an object like [`decode_object`], if it was encoded with this prefix.
pub fn decode_object_with_prefix(
    kind: ObjectKind,
    prefix: &[u8],
    encoded: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    let object = parse(encoded)?;
    if object.kind != kind {
        return Err(DecodeError::new("object", "it is of another kind"));
    }
    content_of(&object, prefix)
}

/// Returns the content of a parsed object, checked against its name.
fn content_of(object: &ParsedObject<'_>, prefix: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let wrong = |reason: &str| DecodeError::new("object", reason);
    let content = match object.codec {
        CODEC_RAW => object.stored.to_vec(),
        CODEC_ZSTD => decompress(object.stored, object.length)
            .map_err(|error| wrong(&format!("it does not decompress: {error}")))?,
        CODEC_ZSTD_PREFIX => decompress_with_prefix(prefix, object)
            .map_err(|error| wrong(&format!("it does not decompress: {error}")))?,
        _ => return Err(wrong("unknown compression")),
    };
    check_content(object, &content)?;
    Ok(content)
}

fn check_content(object: &ParsedObject<'_>, content: &[u8]) -> Result<(), DecodeError> {
    if content.len() == object.length && blake3::hash(content).as_bytes() == &object.id {
        return Ok(());
    }
    Err(DecodeError::new("object", "its content does not match its name"))
}

fn decompress_with_prefix(
    prefix: &[u8],
    object: &ParsedObject<'_>,
) -> Result<Vec<u8>, &'static str> {
    // In one call: a decoder of a stream would copy the content through a window of its own.
    let mut context = DCtx::create();
    let mut content = Vec::with_capacity(object.length);
    context
        .ref_prefix(prefix)
        .and_then(|_| context.decompress(&mut content, object.stored))
        .map_err(zstd_safe::get_error_name)?;
    Ok(content)
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::format::repair_bit;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_content_of_an_object_is_read_back_and_a_wrong_bit_is_found_and_repaired(
            content in prop::collection::vec(0_u8..4, 0..2000),
            place: prop::sample::Index,
            bit in 0_u8..8,
        ) {
            let (id, mut encoded) = encode_object(ObjectKind::Delta, &content);
            prop_assert_eq!(object_id(&encoded).unwrap(), id);
            prop_assert_eq!(&decode_object(ObjectKind::Delta, &encoded).unwrap(), &content);
            prop_assert!(decode_object(ObjectKind::Page, &encoded).is_err());
            let place = place.index(encoded.len());
            let whole = encoded.clone();
            encoded[place] ^= 1_u8 << bit;
            prop_assert!(decode_object(ObjectKind::Delta, &encoded).is_err() && !is_whole(&encoded));
            prop_assert!(repair_bit(&mut encoded, &is_whole) && encoded == whole);
        }

        #[test]
        fn an_object_compressed_with_a_prefix_opens_only_with_that_prefix(words in prop::collection::vec("[a-z]{1,9}", 200..300)) {
            let prefix = words.join(" ").into_bytes();
            let content = [prefix.as_slice(), b"and a little more"].concat();
            let (id, encoded) = encode_object_with_prefix(ObjectKind::Blob, &prefix, &content, CompressionEffort::Quick);
            prop_assert!(encoded.len() < 200);
            prop_assert_eq!(&decode_object_with_prefix(ObjectKind::Blob, &prefix, &encoded).unwrap(), &content);
            prop_assert!(decode_object(ObjectKind::Blob, &encoded).is_err() && is_whole(&encoded));
            let mut damaged = encoded.clone();
            damaged[HEADER_BYTES] ^= 1;
            prop_assert!(!is_whole(&damaged) && repair_bit(&mut damaged, &is_whole) && damaged == encoded);
            let (same, smaller) =
                encode_object_with_prefix(ObjectKind::Blob, &prefix, &content, CompressionEffort::Thorough);
            prop_assert_eq!(same, id);
            prop_assert_eq!(&decode_object_with_prefix(ObjectKind::Blob, &prefix, &smaller).unwrap(), &content);
            let (_, alone) = encode_object_with_prefix(ObjectKind::Blob, &[], &content, CompressionEffort::Thorough);
            prop_assert_eq!(&decode_object(ObjectKind::Blob, &alone).unwrap(), &content);
        }
    }

    #[test]
    fn an_object_compressed_later_equals_an_object_compressed_at_once() {
        let content = b"a kettle of words, ".repeat(30);
        let (id, encoded) = encode_object(ObjectKind::Delta, &content);
        let (same, raw) = encode_object_raw(ObjectKind::Delta, &content);
        assert_eq!((id, decode_object(ObjectKind::Delta, &raw).unwrap()), (same, content));
        assert_eq!(compress_object(&raw).unwrap(), Some(encoded.clone()));
        assert_eq!(compress_object(&encoded).unwrap(), None);
        assert_eq!(
            compress_object(&encode_object_raw(ObjectKind::Delta, b"short").1).unwrap(),
            None
        );
        assert!(compress_object(b"no object").is_err());
    }

    /// The check must cover the kind: an object with a wrong bit in its kind must not pass as an
    /// intact object of another kind.
    #[test]
    fn a_wrong_bit_in_the_kind_of_an_object_is_found_and_repaired() {
        for (_, encoded) in [
            encode_object(ObjectKind::Delta, b"a small one"),
            encode_object(ObjectKind::Page, &[7; 900]),
        ] {
            for bit in 0..8 {
                let mut damaged = encoded.clone();
                damaged[4] ^= 1 << bit;
                assert!(!is_whole(&damaged) && object_kind(&damaged).is_err());
                assert!(repair_bit(&mut damaged, &is_whole));
                assert_eq!(damaged, encoded);
            }
        }
    }

    #[test]
    fn an_object_with_a_false_length_is_refused() {
        let bomb = compress(&vec![0; MAX_OBJECT_BYTES]).unwrap();
        assert!(bomb.len() < 10_000);
        let name = *blake3::hash(&[0; 100]).as_bytes();
        for codec in [CODEC_ZSTD, CODEC_ZSTD_PREFIX] {
            // Its check is right, as an attacker would make it.
            for length in [100, MAX_OBJECT_BYTES + 1, u32::MAX as usize] {
                let encoded = put_together(ObjectKind::Blob, codec, length, &name, &bomb);
                assert!(decode_object(ObjectKind::Blob, &encoded).is_err());
            }
        }
        let (_, mut encoded) = encode_object(ObjectKind::Blob, &[0; 100_000]);
        encoded[6..10].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode_object(ObjectKind::Blob, &encoded).is_err());
    }
}
