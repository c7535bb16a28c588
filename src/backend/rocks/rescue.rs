//! Salvaging the readable rows of a damaged generation: through RocksDB where possible, otherwise
//! directly from its files.

use super::folder::{GenerationId, IndexFolder};
use super::generation_seal::{IndexSealer, RepairedFiles};
use super::layout::row_key;
use super::options;
use super::read::RocksDatabase;
use super::sst_blocks::entries;
use crate::backend::{
    CLUSTERS, Error, LogPosition, ScanDirection, SealMode, Snapshot, TableId, files, plain_file,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// The readable content of the newest generation.
#[derive(Clone, Debug, Default)]
pub struct RescuedIndex {
    /// The position of the generation; 0 if there is none.
    pub position: LogPosition,
    /// The rows by table and key. If `problem` is set, they are only as trustworthy as the
    /// checksums inside them.
    pub rows: BTreeMap<TableKey, Vec<u8>>,
    /// Why the generation could not be read completely.
    pub problem: Option<String>,
    /// The number of blocks or files in which a single wrong bit was corrected.
    pub corrected_bits: u64,
    /// How the generation differs from what was sealed, if it does.
    pub breach: Option<String>,
}

/// The repaired files of a generation that differs from what was sealed only in single bits.
#[derive(Debug)]
pub struct RepairedGeneration {
    generation: GenerationId,
    files: RepairedFiles,
}

/// Reads everything readable of the index in this folder. Writes nothing.
pub fn rescue(path: &Path, seals: &SealMode) -> Result<RescuedIndex, Error> {
    rescue_with_repairs(path, seals, None)
}

/// Reads the index like [`rescue`], reusing the result of [`find_repairs`], which takes long to
/// compute.
pub fn rescue_with_repairs(
    path: &Path,
    seals: &SealMode,
    known: Option<RepairedGeneration>,
) -> Result<RescuedIndex, Error> {
    let folder = IndexFolder::new(path.to_owned());
    let generation = match folder.newest() {
        Ok(Some(generation)) => generation,
        Ok(None) => return Ok(RescuedIndex::default()),
        Err(error @ Error::Io { .. }) => return Err(error),
        Err(error) => {
            let problem = Some(error_text(&error));
            return Ok(RescuedIndex { problem, ..RescuedIndex::default() });
        }
    };
    let place = folder.path(generation);
    let mut rescued = RescuedIndex { position: generation.position, ..RescuedIndex::default() };
    let sealer = sealer_of(seals);
    if place.symlink_metadata().is_ok_and(|about| !about.is_dir()) {
        let problem = Some("its newest generation is not a folder".to_owned());
        return Ok(RescuedIndex { breach: sealer.and(problem.clone()), problem, ..rescued });
    }
    if let Some(odd) = odd_entry(&place)? {
        // RocksDB would wait endlessly to read a pipe.
        let what = format!("'{odd}' in the index is not a file");
        let (rows, corrected_bits) = raw(&place, &RepairedFiles::new())?;
        let breach = sealer.map(|_| what.clone());
        return Ok(RescuedIndex { rows, corrected_bits, breach, problem: Some(what), ..rescued });
    }
    let right = sealer.as_ref().map_or(Ok(()), |sealer| sealer.check(&place, generation).map(drop));
    if let (Err(error @ Error::Breach { .. }), Some(sealer)) = (&right, sealer) {
        let known = known.filter(|known| known.generation == generation).map(|known| known.files);
        let files = match known {
            Some(known) => Some(known),
            None => sealer.repaired_files(&place, generation)?,
        };
        if let Some(files) = files {
            let (rows, _) = raw(&place, &files)?;
            return Ok(RescuedIndex { rows, corrected_bits: files.len() as u64, ..rescued });
        }
        rescued.breach = Some(error.to_string());
    }
    let opened = right.and_then(|()| {
        RocksDatabase::open_read_only(&place, generation.position, &options::cache())
    });
    let read = opened.and_then(|database| {
        // Every table is read, even after one that fails.
        let read = |table| table_of(&database, table, &mut rescued);
        (0..CLUSTERS.0).map(read).fold(Ok(()), Result::and)
    });
    if let Err(error) = read {
        rescued.problem = Some(error_text(&error));
        let (rows, corrected_bits) = raw(&place, &RepairedFiles::new())?;
        for (key, value) in rows {
            rescued.rows.entry(key).or_insert(value);
        }
        rescued.corrected_bits = corrected_bits;
    }
    Ok(rescued)
}

/// A table and a key in it.
type TableKey = (TableId, Vec<u8>);
/// A row with its table and key.
pub type KeyedRow = (TableKey, Vec<u8>);

/// Returns up to `most` rows from the start of each table of the newest generation; `None` if they
/// cannot be read.
pub fn first_rows(path: &Path, most: usize) -> Option<Vec<KeyedRow>> {
    let folder = IndexFolder::new(path.to_owned());
    let generation = folder.newest().ok()??;
    let place = folder.path(generation);
    let database =
        RocksDatabase::open_read_only(&place, generation.position, &options::cache()).ok()?;
    let mut found = Vec::new();
    for table in (0..CLUSTERS.0).map(TableId) {
        let rows = database.scan(table, &[], &[], ScanDirection::Ascending, most).ok()?;
        found.extend(rows.into_iter().map(|(key, value)| ((table, key), value)));
    }
    Some(found)
}

fn error_text(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Reads the rows of one table, as far as possible.
fn table_of(database: &RocksDatabase, table: u8, rescued: &mut RescuedIndex) -> Result<(), Error> {
    let table = TableId(table);
    let mut from = Vec::new();
    loop {
        let rows = database.scan(table, &from, &[], ScanDirection::Ascending, 256)?;
        let more = rows.len() == 256;
        if let Some((last, _)) = rows.last() {
            from.clone_from(last);
            from.push(0);
        }
        rescued.rows.extend(rows.into_iter().map(|(key, value)| ((table, key), value)));
        if !more {
            return Ok(());
        }
    }
}

type LiveRows = BTreeMap<TableKey, Vec<u8>>;

/// Finds the files of the newest generation that would be exactly what was sealed with one bit
/// flipped, and repairs them in memory. `None` without a key, if the generation is intact, or if
/// more is wrong.
pub fn find_repairs(path: &Path, seals: &SealMode) -> Result<Option<RepairedGeneration>, Error> {
    let folder = IndexFolder::new(path.to_owned());
    let (Some(sealer), Ok(Some(generation))) = (sealer_of(seals), folder.newest()) else {
        return Ok(None);
    };
    let files = sealer.repaired_files(&folder.path(generation), generation)?;
    Ok(files
        .filter(|files| !files.is_empty())
        .map(|files| RepairedGeneration { generation, files }))
}

/// Returns the name of a pipe, link or device in the folder of a generation, if there is one.
fn odd_entry(place: &Path) -> Result<Option<String>, Error> {
    for entry in files::entries(place)? {
        let kind = entry.file_type().map_err(Error::io("look at", &entry.path()))?;
        if !kind.is_file() && !kind.is_dir() {
            return Ok(Some(entry.file_name().to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

fn sealer_of(seals: &SealMode) -> Option<IndexSealer> {
    seals.key().map(|key| IndexSealer::new(key.clone(), None))
}

/// Returns the rows in the files of a folder, the newest for each key, and the number of corrected
/// bits. For files in `known`, the repaired content is read instead.
fn raw(place: &Path, known: &RepairedFiles) -> Result<(LiveRows, u64), Error> {
    let mut corrected_bits = 0;
    let mut newest: BTreeMap<TableKey, (u64, Option<Vec<u8>>)> = BTreeMap::new();
    for entry in files::entries(place)? {
        let path = entry.path();
        let is_file = path.symlink_metadata().is_ok_and(|about| about.is_file());
        if !is_file || path.extension().is_none_or(|extension| extension != "sst") {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let bytes = match name.and_then(|name| known.get(name)) {
            Some(bytes) => Cow::Borrowed(bytes),
            // An unreadable file is treated as lost.
            None => match plain_file::read_written(&path) {
                Ok(bytes) => Cow::Owned(bytes),
                Err(_) => continue,
            },
        };
        let (found, turned) = entries(&bytes);
        corrected_bits += turned;
        for entry in found {
            let Some((table, key)) = row_key(&entry.key) else { continue };
            let known = newest.entry((table, key)).or_insert((0, None));
            if entry.number >= known.0 {
                *known = (entry.number, entry.value);
            }
        }
    }
    let live = newest.into_iter().filter_map(|(key, (_, value))| Some((key, value?))).collect();
    Ok((live, corrected_bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::rocks::sst_blocks::repair_file;
    use crate::backend::rocks::{ClusteredTables, RocksIndex, manifest};
    use crate::backend::{Index, OBJECTS, RowBatch};
    use std::fs;
    use std::path::PathBuf;

    fn written(path: &Path) -> LiveRows {
        written_by(&RocksIndex::new(path))
    }

    fn written_by(index: &RocksIndex) -> LiveRows {
        let mut all = LiveRows::new();
        for round in 0_u64..3 {
            let mut applier = index.try_writer().unwrap().unwrap();
            let mut batch = RowBatch::default();
            for n in 0..200_u64 {
                let key = (round * 150 + n).to_be_bytes().to_vec();
                let value = vec![n as u8; 40 + n as usize];
                batch.rows.push((OBJECTS, key.clone(), Some(value.clone())));
                batch.rows.push((TableId(2), key.clone(), Some(value.clone())));
                all.insert((OBJECTS, key.clone()), value.clone());
                all.insert((TableId(2), key.clone()), value);
                // Like a row of numbers, this looks like the end of a block in many places.
                let value = 1_u32.to_le_bytes().repeat(2 * (n % 9) as usize + 2);
                let value = [&[0; 5], value.as_slice()].concat();
                batch.rows.push((TableId(3), key.clone(), Some(value.clone())));
                all.insert((TableId(3), key), value);
            }
            let removed = (round * 150 + 7).to_be_bytes().to_vec();
            batch.rows.push((TableId(2), removed.clone(), None));
            all.remove(&(TableId(2), removed));
            applier.write(batch).unwrap();
            applier.publish(round + 1).unwrap();
        }
        all.insert((TableId(super::super::POSITION_KEY[0]), Vec::new()), position_row(index));
        all
    }

    fn position_row(index: &RocksIndex) -> Vec<u8> {
        let generation = index.folder.newest().unwrap().unwrap();
        let path = index.folder.path(generation);
        let database =
            RocksDatabase::open_read_only(&path, generation.position, &index.cache).unwrap();
        database.position_bytes(generation.position)
    }

    fn newest(path: &Path) -> PathBuf {
        IndexFolder::new(path.to_owned())
            .path(IndexFolder::new(path.to_owned()).newest().unwrap().unwrap())
    }

    #[test]
    fn a_rescue_reads_all_rows_from_the_files_alone() {
        for clustered in
            [ClusteredTables::default(), ClusteredTables::new(|table| table == TableId(2))]
        {
            let folder = tempfile::tempdir().unwrap();
            let mut all = written_by(&RocksIndex::new(folder.path()).with_clustered(clustered));
            assert_eq!(
                raw(&newest(folder.path()), &RepairedFiles::new()).unwrap(),
                (all.clone(), 0)
            );
            let rescued = rescue(folder.path(), &SealMode::Absent).unwrap();
            assert_eq!((rescued.position, rescued.problem), (3, None));
            all.retain(|(table, _), _| table.0 != super::super::POSITION_KEY[0]);
            assert_eq!(rescued.rows, all);
        }
    }

    #[test]
    fn a_rescue_without_manifest_and_with_a_wrong_byte_finds_nearly_all_rows() {
        let folder = tempfile::tempdir().unwrap();
        let all = written(folder.path());
        let place = newest(folder.path());
        for entry in fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "sst") {
                fs::remove_file(path).unwrap();
            } else {
                let mut bytes = fs::read(&path).unwrap();
                bytes[100] ^= 0x80;
                fs::write(&path, bytes).unwrap();
            }
        }
        let rescued = rescue(folder.path(), &SealMode::Absent).unwrap();
        assert!(rescued.problem.is_some());
        let same = all.iter().filter(|(key, value)| rescued.rows.get(*key) == Some(*value)).count();
        assert!(same * 100 >= all.len() * 95, "{same} of {}", all.len());
    }

    /// Regression test: RocksDB read such a record endlessly, so that a store with one wrong bit in
    /// its manifest could not be opened, verified or repaired, without any message.
    #[test]
    fn a_wrong_bit_in_the_kind_of_a_manifest_record_does_not_block_a_rescue() {
        let folder = tempfile::tempdir().unwrap();
        let all = written(folder.path());
        let entries = fs::read_dir(newest(folder.path())).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let list = paths.find(|path| path.to_string_lossy().contains(manifest::NAME)).unwrap();
        let whole = fs::read(&list).unwrap();
        let mut at = 0;
        while at + 7 <= whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at + 6] ^= 1 << bit;
                fs::write(&list, bytes).unwrap();
                let rescued = rescue(folder.path(), &SealMode::Absent).unwrap();
                assert!(rescued.problem.is_some(), "the kind at {at}, bit {bit}");
                assert_eq!(rescued.rows, all, "the kind at {at}, bit {bit}");
            }
            at += 7 + usize::from(u16::from_le_bytes([whole[at + 4], whole[at + 5]]));
        }
    }

    /// Regression test: a wrong bit in lengths or keys lost the rest of its block, which in a small
    /// store is nearly everything.
    #[test]
    fn a_wrong_bit_in_a_table_file_loses_at_most_one_value() {
        let folder = tempfile::tempdir().unwrap();
        let all = written(folder.path());
        let place = newest(folder.path());
        let (mut turned, mut corrected_bits) = (0_usize, 0);
        for entry in fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "sst") {
                continue;
            }
            let whole = fs::read(&path).unwrap();
            for place_in in (0..whole.len()).step_by(61) {
                let mut bytes = whole.clone();
                bytes[place_in] ^= 1 << (turned % 8);
                turned += 1;
                fs::write(&path, bytes).unwrap();
                let (rows, right) = raw(&place, &RepairedFiles::new()).unwrap();
                corrected_bits += right;
                let same = all.iter().filter(|(key, value)| rows.get(*key) == Some(*value)).count();
                assert!(same + 1 >= all.len(), "{} byte {place_in}: {same}", path.display());
                assert!(all.keys().all(|key| rows.contains_key(key)), "byte {place_in}");
            }
            fs::write(&path, whole).unwrap();
        }
        assert!(
            turned > 1000 && corrected_bits as usize > turned / 20,
            "{corrected_bits} of {turned}"
        );
    }

    /// Regression test: a length of 9 became 22,000, which led to an apparent key. That was too
    /// long to try each bit, so the block and the next one were lost.
    #[test]
    fn a_wrong_bit_in_the_length_of_a_key_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let all = written(folder.path());
        let place = newest(folder.path());
        let mut turned = 0;
        for path in fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()) {
            if path.extension().is_none_or(|extension| extension != "sst") {
                continue;
            }
            let whole = fs::read(&path).unwrap();
            let lengths = |at: &usize| whole[*at..].starts_with(&[8, 9]) && whole[at + 2] > 127;
            for at in (0..whole.len() - 3).filter(lengths).step_by(5) {
                let mut bytes = whole.clone();
                bytes[at + 1] ^= 0x80;
                turned += 1;
                fs::write(&path, bytes).unwrap();
                let (rows, right) = raw(&place, &RepairedFiles::new()).unwrap();
                assert!(rows == all && right == 1, "{} byte {}", path.display(), at + 1);
            }
            fs::write(&path, whole).unwrap();
        }
        assert!(turned > 20, "{turned}");
    }

    /// Regression test: with a wrong bit in the footer all blocks looked wrong, and a wrong bit in
    /// a block of over 90 KB was not searched: both were reported as forgeries.
    #[test]
    fn a_file_with_one_wrong_bit_is_restored_by_its_hash() {
        let folder = tempfile::tempdir().unwrap();
        let mut batch = RowBatch::default();
        let content: Vec<u8> = (0..150_000_u64).map(|n| (n.pow(2) >> 7) as u8).collect();
        for n in 0..500_u64 {
            let size = if n == 250 { content.len() } else { 40 };
            batch.rows.push((TableId(2), n.to_be_bytes().to_vec(), Some(content[..size].to_vec())));
        }
        let mut applier = RocksIndex::new(folder.path()).try_writer().unwrap().unwrap();
        applier.write(batch).unwrap();
        applier.publish(1).unwrap();
        let is_table =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == "sst");
        let mut files =
            fs::read_dir(newest(folder.path())).unwrap().map(|file| file.unwrap().path());
        let right = fs::read(files.find(is_table).unwrap()).unwrap();
        let hash = blake3::hash(&right);
        let end = right.len();
        let behind_rows = (end - 3000..end - 100).step_by(97).chain(end - 100..end);
        for place in [0, 7000, 20_000].into_iter().chain(behind_rows) {
            let mut bytes = right.clone();
            bytes[place] ^= 1 << (place % 8);
            assert!(repair_file(&mut bytes, &hash), "{place} of {end}");
            assert!(bytes == right, "{place} of {end}");
        }
    }
}
