//! Writing RocksDB's tables to disk at a steady pace.
//!
//! RocksDB hands a table over to the disk in pieces, except for its last megabyte, which is written
//! when RocksDB syncs the file. A concurrent sync of a record would wait for that megabyte. So
//! tables are synced piece by piece while they are written.

use super::folder::is_table;
use super::options::PIECE_MICROS;
use crate::backend::files::PIECE_BYTES;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

const PAUSE: Duration = Duration::from_micros(PIECE_MICROS.unsigned_abs());

/// Runs `work`, which makes RocksDB write tables into a folder, and meanwhile syncs what is
/// written. RocksDB still syncs each table at its end, which makes it durable.
pub(super) fn with_paced_sync<T>(folder: &Path, work: impl FnOnce() -> T) -> T {
    let mut tables = UnsyncedTables::new(folder);
    thread::scope(|scope| {
        let (_working, ended) = channel::<()>();
        // If no thread can be started, RocksDB writes the data at its final sync.
        let _ = thread::Builder::new().spawn_scoped(scope, move || {
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                for table in tables.due() {
                    // RocksDB opened the file earlier, so its own sync reports the error too.
                    let _ = table.sync_data();
                }
            }
        });
        work()
    })
}

/// The tables in a folder that are being written.
struct UnsyncedTables {
    folder: PathBuf,
    /// The open file and number of synced bytes of each table; `None` for tables that existed
    /// before.
    known: HashMap<OsString, Option<(File, u64)>>,
}

impl UnsyncedTables {
    fn new(folder: &Path) -> Self {
        let known = names(folder).map(|name| (name, None)).collect();
        Self { folder: folder.to_owned(), known }
    }

    /// Returns the tables that grew by at least a piece since they were last returned.
    fn due(&mut self) -> Vec<&File> {
        for name in names(&self.folder) {
            let path = self.folder.join(&name);
            self.known.entry(name).or_insert_with(|| Some((File::open(path).ok()?, 0)));
        }
        let begun = self.known.values_mut().flatten();
        let due = begun.filter_map(|(file, synced)| {
            let bytes = file.metadata().ok()?.len();
            (bytes >= *synced + PIECE_BYTES).then(|| {
                *synced = bytes;
                &*file
            })
        });
        due.collect()
    }
}

fn names(folder: &Path) -> impl Iterator<Item = OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| is_table(&entry.path())).map(|entry| entry.file_name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_files_created_meanwhile_are_synced_piece_by_piece() {
        let folder = tempfile::tempdir().unwrap();
        let piece = vec![7; PIECE_BYTES as usize];
        let add = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            let mut file = File::options().create(true).append(true).open(path).unwrap();
            file.write_all(bytes).unwrap();
        };
        add("000001.sst", &piece);
        let mut tables = UnsyncedTables::new(folder.path());
        let mut due = || tables.due().len();
        add("000001.sst", &piece);
        add("000002.sst", &piece[1..]);
        add("MANIFEST-000003", &piece);
        assert_eq!(due(), 0);
        add("000002.sst", &[7]);
        add("000004.sst", &piece);
        assert_eq!(due(), 2);
        assert_eq!(due(), 0);
        add("000004.sst", &piece);
        fs::remove_file(folder.path().join("000002.sst")).unwrap();
        assert_eq!(due(), 1);
    }

    #[test]
    fn the_work_during_a_paced_sync_is_done_once_even_without_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path(), &folder.path().join("none")] {
            let mut count = 0;
            let given = with_paced_sync(path, || {
                count += 1;
                "given"
            });
            assert_eq!((given, count), ("given", 1));
        }
    }
}
