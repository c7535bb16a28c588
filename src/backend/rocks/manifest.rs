//! Checking the manifest, the list of a generation's files, before RocksDB reads it.
//!
//! The manifest is a RocksDB log: blocks of 32 KiB of records, each with a header of 7 bytes
//! (checksum, length, kind) that never crosses a block boundary. The kinds are listed in RocksDB's
//! `db/log_format.h`.

use crate::backend::Error;
use std::fs;
use std::path::Path;

/// The prefix of its file name.
pub(super) const NAME: &str = "MANIFEST-";
const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;
/// The maximum size of a manifest. A hundred thousand files need a tenth of it.
const MAX_BYTES: u64 = 256 << 20;

/// Rejects a manifest that is too large to be read, and one with a record of a kind that occurs
/// only in recycled logs. RocksDB 11.8 reads such a record again and again without end, and one
/// wrong bit can turn a valid record into one.
pub(super) fn check(generation: &Path) -> Result<(), Error> {
    // RocksDB reports a file that cannot be read.
    let entries = fs::read_dir(generation).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME)) {
        let path = entry.path();
        check_size(&path)?;
        if fs::read(&path).is_ok_and(|bytes| kinds(&bytes).any(is_recycled)) {
            let what = format!("{} has a record of a kind that it cannot have", path.display());
            return Err(Error::DamagedIndex { what });
        }
    }
    Ok(())
}

/// Rejects a manifest of a size that no list of files has: reading it would take minutes.
pub(super) fn check_size(manifest: &Path) -> Result<(), Error> {
    let bytes = fs::metadata(manifest).map_or(0, |about| about.len());
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let shown = manifest.display();
    let what = format!("{shown} has {bytes} bytes, and a list of files has at most {MAX_BYTES}");
    Err(Error::DamagedIndex { what })
}

fn is_recycled(kind: u8) -> bool {
    matches!(kind, 5..=8 | 11 | 131)
}

/// Iterates over the kinds of the records of a log, as far as their lengths can be followed.
fn kinds(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.chunks(BLOCK_BYTES).flat_map(|block| {
        let mut rest = block;
        std::iter::from_fn(move || {
            let ([_, _, _, _, low, high, kind], after) =
                rest.split_first_chunk::<HEADER_BYTES>()?;
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            rest = after.get(length..).unwrap_or_default();
            Some(*kind)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_of_an_impossible_size_is_refused_unread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("MANIFEST-000001");
        fs::File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        let error = check(folder.path()).unwrap_err();
        assert!(matches!(error, Error::DamagedIndex { .. }), "{error:?}");
        fs::File::create(&path).unwrap().set_len(0).unwrap();
        check(folder.path()).unwrap();
    }

    #[test]
    fn the_kinds_of_manifest_records_are_read_across_blocks_and_after_a_wrong_length() {
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
