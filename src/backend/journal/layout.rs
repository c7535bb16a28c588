//! The bytes of the mark in `SYNCED`, and the names of segments. No I/O. Specified in
//! `docs/format.md`; both must change together.

use crate::backend::frame::array;
use crate::backend::{LogPosition, RecordHash};
use std::ops::Range;

/// Bytes of the mark in `SYNCED`.
pub(crate) const MARK_BYTES: usize = 64;

const MARK_MAGIC: [u8; 8] = *b"FRJSYNC\x01";

const MARK_POSITION: Range<usize> = 8..16;
const MARK_HASH: Range<usize> = 16..48;
const MARK_CHECKSUM: Range<usize> = 56..64;

/// The content of `SYNCED`: a mark that everything before `position` is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncMark {
    /// The end of a record.
    pub(crate) position: LogPosition,
    /// The hash of that record.
    pub(crate) hash: RecordHash,
}

impl SyncMark {
    /// Encodes the mark for the file.
    pub(crate) fn encode(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..8].copy_from_slice(&MARK_MAGIC);
        bytes[MARK_POSITION].copy_from_slice(&self.position.to_le_bytes());
        bytes[MARK_HASH].copy_from_slice(&self.hash);
        let checksum = blake3::hash(&bytes[..MARK_CHECKSUM.start]);
        bytes[MARK_CHECKSUM].copy_from_slice(&checksum.as_bytes()[..8]);
        bytes
    }

    /// Decodes the mark if its magic number and checksum are right.
    pub(crate) fn decode(bytes: &[u8; MARK_BYTES]) -> Option<Self> {
        let checksum = blake3::hash(&bytes[..MARK_CHECKSUM.start]);
        let whole = bytes[..8] == MARK_MAGIC && bytes[MARK_CHECKSUM] == checksum.as_bytes()[..8];
        whole.then(|| Self {
            position: u64::from_le_bytes(array(bytes, MARK_POSITION)),
            hash: array(bytes, MARK_HASH),
        })
    }
}

/// Returns the file name of the segment that starts at a position.
pub(crate) fn segment_name(start: LogPosition) -> String {
    format!("{start:016x}.log")
}

/// Parses the start position from a segment's file name; `None` for other names.
pub(crate) fn segment_start(name: &str) -> Option<LogPosition> {
    let digits = name.strip_suffix(".log")?;
    let plain =
        digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hex;
    use proptest::prelude::*;

    #[test]
    fn a_mark_when_encoded_has_the_golden_bytes() {
        assert_eq!(
            hex(&SyncMark { position: 0x1122, hash: [7; 32] }.encode()),
            "46524a53594e4301221100000000000007070707070707070707070707070707\
             0707070707070707070707070707070700000000000000004bc2f67c3814cad8"
        );
    }

    #[test]
    fn a_segment_name_reads_back_and_other_names_do_not() {
        assert_eq!(segment_start(&segment_name(0xabc)), Some(0xabc));
        for name in ["SYNCED", "1.log", "000000000000ABCD.log", "+00000000000000a.log", ".log"] {
            assert_eq!(segment_start(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_mark_reads_back_and_with_one_flipped_bit_does_not(
            position: u64, hash: [u8; 32], bit in 0..MARK_BYTES * 8,
        ) {
            let mark = SyncMark { position, hash };
            let mut bytes = mark.encode();
            prop_assert_eq!(SyncMark::decode(&bytes), Some(mark));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(SyncMark::decode(&bytes), None);
        }
    }
}
