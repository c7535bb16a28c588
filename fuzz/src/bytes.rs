//! Bytes on disk and on a remote: they are refused, or decode to a value that can be encoded again.

use forge_store::format::remote::{
    PackKey, PurgeNotice, PurgeTrack, RemoteKeys, RemoteMarker, RemoteRef, SessionPlace, handle_in,
    open_pack, pack_in, pack_name, ref_name, seal_pack,
};
use forge_store::format::{
    BookmarkRow, CheckpointRow, CompressionEffort, Delta, DeltaSide, DeltaSideRange, FactPage,
    FactRow, FormatMarker, KeyframeRow, ObjectKind, OperationRow, Record, RevisionBody,
    RevisionHeader, RevisionRow, SegmentRow, SequenceRow, SpoolEntry, StateChunk, decode_entry,
    decode_key, decode_object, decode_object_with_prefix, encode_entry, encode_key, encode_object,
    encode_object_with_prefix, object_id,
};
use forge_store::model::{PackId, RemoteId, SessionId};

/// Encodes a decoded value and decodes it again, which must give a value with the same encoding.
/// The encodings are compared, because NaN is not equal to itself.
macro_rules! comes_back {
    ($kind:ty, $bytes:expr) => {
        if let Ok(known) = <$kind>::decode($bytes) {
            let again = known.encode();
            let read = <$kind>::decode(&again).expect("what was encoded decodes");
            assert!(read.encode() == again, "{known:?} comes back as {read:?}");
        }
    };
}

/// Records of the journal, and the bodies and headers in them.
pub fn record(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    match which % 3 {
        0 => comes_back!(Record, bytes),
        1 => comes_back!(RevisionBody, bytes),
        _ => {
            if let Ok(header) = RevisionHeader::decode(bytes) {
                let again = header.encode();
                assert_eq!(RevisionHeader::decode(&again).as_ref(), Ok(&header));
                assert_eq!(again, bytes, "a header has one form: its id is the hash of it");
            }
        }
    }
}

const KINDS: [ObjectKind; 4] =
    [ObjectKind::Delta, ObjectKind::Chunk, ObjectKind::Page, ObjectKind::Blob];

/// Objects: these bytes are decoded as an object, or encoded as one, with or without a prefix.
pub fn object(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    let kind = KINDS[usize::from(*which) % 4];
    let (prefix, content) = bytes.split_at(bytes.len() / 2);
    match which / 4 % 4 {
        0 => {
            for kind in KINDS {
                if let Ok(content) = decode_object(kind, bytes) {
                    assert_eq!(object_id(bytes), Ok(encode_object(kind, &content).0));
                }
            }
        }
        1 => drop(decode_object_with_prefix(kind, prefix, content)),
        2 => {
            let (id, encoded) = encode_object(kind, bytes);
            assert_eq!(decode_object(kind, &encoded).as_deref(), Ok(bytes));
            assert_eq!(object_id(&encoded), Ok(id));
        }
        _ => {
            let (_, encoded) =
                encode_object_with_prefix(kind, prefix, content, CompressionEffort::Quick);
            assert_eq!(decode_object_with_prefix(kind, prefix, &encoded).as_deref(), Ok(content));
        }
    }
}

/// Deltas: decoding and scanning give the same result.
pub fn delta(data: &[u8]) {
    let scanned = Delta::scan(data);
    let decoded = Delta::decode(data);
    assert_eq!(scanned.is_ok(), decoded.is_ok());
    let (Ok(scanned), Ok(decoded)) = (scanned, decoded) else { return };
    assert_eq!(scanned.len(), decoded.changes.len());
    for (range, change) in scanned.iter().zip(&decoded.changes) {
        let at = |range: &std::ops::Range<u32>| &data[range.start as usize..range.end as usize];
        assert_eq!(at(&range.key), change.key);
        for (range, side) in [(&range.old, &change.old), (&range.new, &change.new)] {
            match (range, side) {
                (DeltaSideRange::Inline(range), DeltaSide::Inline(bytes)) => {
                    assert_eq!(at(range), &**bytes)
                }
                (DeltaSideRange::Absent, DeltaSide::Absent) => {}
                (DeltaSideRange::Blob(one), DeltaSide::Blob(other)) => assert_eq!(one, other),
                _ => panic!("{range:?} is not {side:?}"),
            }
        }
    }
    let mut salt = [0; 16];
    salt.copy_from_slice(&data[..16]);
    let again = decoded.encode(salt);
    assert_eq!(Delta::decode(&again), Ok(decoded));
}

/// Frames the content with a mark, its length and the beginning of its hash, as in
/// `docs/format.md`, so that the decoders get past the hash.
fn wrapped(mark: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut out = mark.to_vec();
    out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    out.extend_from_slice(&blake3::hash(content).as_bytes()[..16]);
    out.extend_from_slice(content);
    out
}

/// Rows of the index, chunks of states, pages of facts, spooled writes, store markers, keys,
/// entries.
pub fn rows(data: &[u8]) {
    let Some((which, content)) = data.split_first() else { return };
    let mark = if which % 15 == 12 { b"fSp1" } else { b"fRw1" };
    let row = if which & 0x80 == 0 { wrapped(mark, content) } else { content.to_vec() };
    match which % 15 {
        0 => comes_back!(RevisionRow, &row),
        1 => comes_back!(SequenceRow, &row),
        2 => comes_back!(FactRow, &row),
        3 => comes_back!(KeyframeRow, &row),
        4 => comes_back!(CheckpointRow, &row),
        5 => comes_back!(BookmarkRow, &row),
        6 => comes_back!(SegmentRow, &row),
        7 => comes_back!(OperationRow, &row),
        8 => comes_back!(FactPage, content),
        9 => chunk(content),
        10 => {
            if let Ok(key) = decode_key(content) {
                assert_eq!(decode_key(&encode_key(&key)), Ok(key));
            }
        }
        11 => {
            if let Ok(entry) = decode_entry(content) {
                let again = encode_entry(&entry);
                let read = decode_entry(&again).expect("what was encoded decodes");
                assert!(encode_entry(&read) == again, "{entry:?} comes back as {read:?}");
            }
        }
        12 => comes_back!(SpoolEntry, &row),
        _ => {
            if let Ok(text) = std::str::from_utf8(content)
                && let Ok(marker) = FormatMarker::decode(text)
            {
                assert_eq!(FormatMarker::decode(&marker.encode()).ok().as_ref(), Some(&marker));
            }
        }
    }
}

fn chunk(bytes: &[u8]) {
    let Ok(entries) = StateChunk::decode(bytes) else { return };
    let mut again = StateChunk::default();
    for entry in &entries {
        let at = |range: &std::ops::Range<u32>| &bytes[range.start as usize..range.end as usize];
        again.push(at(&entry.key), at(&entry.entry));
    }
    let again = StateChunk::decode(&again.encode()).expect("what was made of a chunk is one");
    assert_eq!(again.len(), entries.len());
}

const SESSION: SessionId = SessionId::from_bytes([7; 16]);
const PACK: PackId = PackId::from_bytes([5; 16]);

/// Keys with which no input of the corpus was encrypted.
fn remote_keys() -> RemoteKeys {
    RemoteKeys::new(&[0xf0; 32])
}

fn session_place() -> SessionPlace {
    SessionPlace { remote: RemoteId::from_bytes([2; 16]), handle: remote_keys().handle(&SESSION) }
}

/// Markers of remotes, as they are and with a corrected last line. A marker that decodes gives the
/// same marker after encoding.
pub fn remote_marker(data: &[u8]) {
    let decoded = RemoteMarker::decode(data);
    let corrected = RemoteMarker::decode(&with_right_check(data));
    for marker in decoded.into_iter().chain(corrected) {
        let again = RemoteMarker::decode(marker.encode().as_bytes());
        assert_eq!(again.as_ref(), Ok(&marker));
        assert!(marker.check_key(&remote_keys()).is_err(), "{marker:?} was made without the key");
    }
}

/// Returns the lines before the last line, and a last line that matches them.
fn with_right_check(data: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(data);
    let before = text.rfind("check ").map_or(&*text, |at| &text[..at]);
    let hash = blake3::hash(before.as_bytes()).to_hex();
    format!("{before}check {}\n", &hash[..16]).into_bytes()
}

/// Remote refs and their contents. No bytes can be opened without the key. A content that decodes
/// is the same after encoding and after encryption.
pub fn remote_ref(data: &[u8]) {
    let key = remote_keys().session(&remote_keys().handle(&SESSION));
    assert!(RemoteRef::open(&session_place(), &key, data).is_err());
    if let Ok(content) = RemoteRef::decode(data) {
        let again = content.encode().expect("what decodes is within the limits");
        assert_eq!(RemoteRef::decode(&again).as_ref(), Ok(&content));
        let sealed =
            content.seal(&session_place(), &key).expect("what decodes is within the limits");
        let opened =
            RemoteRef::open(&session_place(), &key, &sealed.bytes).expect("it was encrypted here");
        assert_eq!((opened.content, opened.link), (content, sealed.link));
    }
}

/// Purge notices, their contents and lists of them. No bytes can be opened without the key. A
/// content that decodes is the same after encoding and after encryption.
pub fn remote_notice(data: &[u8]) {
    let (place, keys) = ((RemoteId::from_bytes([2; 16]), 3), remote_keys());
    assert!(PurgeNotice::open(place, keys.notices(), data).is_err());
    if let Ok(content) = PurgeNotice::decode(data) {
        let again = content.encode().expect("what decodes is within the limits");
        assert_eq!(PurgeNotice::decode(&again).as_ref(), Ok(&content));
        let sealed =
            content.seal(place, keys.notices()).expect("what decodes is within the limits");
        assert_eq!(PurgeNotice::open(place, keys.notices(), &sealed).as_ref(), Ok(&content));
    }
    comes_back!(PurgeTrack, data);
}

/// Packs and their names. No bytes can be opened without the key. A sealed pack can be opened, but
/// not with one wrong bit.
pub fn remote_pack(data: &[u8]) {
    let key = PackKey::from_bytes([0xf0; 32]);
    assert!(open_pack(&session_place(), &PACK, &key, data).is_err());
    let mut sealed = seal_pack(&session_place(), &PACK, &key, data).expect("it is small");
    assert_eq!(open_pack(&session_place(), &PACK, &key, &sealed).as_deref(), Ok(data));
    let at = data.iter().fold(0, |sum: usize, byte| sum * 31 % 65_521 + usize::from(*byte));
    let at = at % sealed.len();
    sealed[at] ^= 1 << (at % 8);
    assert!(open_pack(&session_place(), &PACK, &key, &sealed).is_err(), "byte {at} was altered");
    let name = String::from_utf8_lossy(data);
    if let Some(handle) = handle_in(&name) {
        assert_eq!(ref_name(&handle), name);
    }
    if let Some((handle, pack)) = pack_in(&name) {
        assert_eq!(pack_name(&handle, &pack), name);
    }
}
