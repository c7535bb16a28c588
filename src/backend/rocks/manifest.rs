//! The list of a generation's files, looked at before RocksDB reads it.
//!
//! It is a log of RocksDB's: blocks of 32 KiB of records, each with a header of 7 bytes (checksum, length, kind) that no block's
//! end divides. RocksDB's `db/log_format.h` has the kinds.

use crate::backend::Error;
use std::fs;
use std::path::Path;

/// How its name begins.
pub(super) const NAME: &str = "MANIFEST-";
const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;

/// Refuses a list with a record of a kind that only logs have whose files are used again. RocksDB 11.8 does not pass over it,
/// but reads it again and again without end; one wrong bit makes one of a sound record.
pub(super) fn check(generation: &Path) -> Result<(), Error> {
    // What cannot be read is told by RocksDB.
    let entries = fs::read_dir(generation).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME)) {
        let path = entry.path();
        if fs::read(&path).is_ok_and(|bytes| kinds(&bytes).any(is_recycled)) {
            let what = format!("{} has a record of a kind that it cannot have", path.display());
            return Err(Error::DamagedIndex { what });
        }
    }
    Ok(())
}

fn is_recycled(kind: u8) -> bool {
    matches!(kind, 5..=8 | 11 | 131)
}

/// The kinds of the records of a log, as far as their lengths lead.
fn kinds(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.chunks(BLOCK_BYTES).flat_map(|block| {
        let mut rest = block;
        std::iter::from_fn(move || {
            let ([_, _, _, _, low, high, kind], behind) =
                rest.split_first_chunk::<HEADER_BYTES>()?;
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            rest = behind.get(length..).unwrap_or_default();
            Some(*kind)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_each_record_is_looked_at_over_blocks_and_behind_lengths_that_lead_nowhere() {
        let record = |length: usize, kind: u8| {
            let [low, high] = (length as u16).to_le_bytes();
            [&[9, 9, 9, 9, low, high, kind], vec![7; length].as_slice()].concat()
        };
        let first = [record(100, 1), record(BLOCK_BYTES - 107 - 7 - 3, 2), vec![0; 3]].concat();
        assert_eq!(first.len(), BLOCK_BYTES);
        let log = [first, record(40, 4), record(0, 1)].concat();
        assert_eq!(kinds(&log).collect::<Vec<_>>(), [1, 2, 4, 1]);
        assert_eq!(kinds(&[record(9, 3), vec![1, 2, 3, 4, 255, 255, 5]].concat()).count(), 2);
        assert_eq!(kinds(&[]).count(), 0);
    }
}
