//! Full disks and folders that cannot be written.

use super::oracle::read_all;
use super::{Mount, WAIT, add};
use forge_store::backend::journal::Journal;
use forge_store::backend::{Error, WriteAheadLog};
use std::fs;
use std::io::ErrorKind;

#[test]
fn a_full_disk_changes_nothing_and_writing_continues_once_there_is_space() {
    let root = tempfile::tempdir().unwrap();
    let options = ["-t", "tmpfs", "-o", "size=600k", "tmpfs"];
    let Some(_mount) = Mount::new("full disk", &options, root.path()) else { return };
    let ballast = root.path().join("ballast");
    fs::write(&ballast, vec![1; 200_000]).unwrap();
    let folder = root.path().join("journal");
    let journal = Journal::create(&folder).unwrap();
    let mut ends = vec![0];
    let full = |error: &Error| match error {
        Error::Io { source, .. } => source.kind() == ErrorKind::StorageFull,
        _ => false,
    };
    loop {
        let from = *ends.last().unwrap();
        match journal.append(from, WAIT, &mut |_| Some(vec![7; 9_000])) {
            Ok(appended) => {
                let end = appended.unwrap().end;
                journal.sync(end).unwrap();
                ends.push(end);
            }
            Err(error) if full(&error) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    let end = *ends.last().unwrap();
    let file = folder.join("0000000000000000.log");
    assert_eq!(fs::metadata(&file).unwrap().len(), end, "the part that fitted is still there");
    let rotated = journal.rotate(end, WAIT, &mut |_| Some(vec![7; 9_000]));
    assert!(rotated.as_ref().is_err_and(full), "{rotated:?}");
    for reader in [&journal, &Journal::open(&folder).unwrap()] {
        assert_eq!(read_all(reader).unwrap().len(), ends.len() - 1);
    }
    fs::remove_file(ballast).unwrap();
    let next = add(&journal, end, &[7; 9_000]);
    assert_eq!(next.position, end);
    journal.sync(next.end).unwrap();
    super::rotate(&journal, next.end, &[7; 9_000]);
    assert_eq!(read_all(&Journal::open(&folder).unwrap()).unwrap().len(), ends.len() + 1);
}

#[test]
fn a_read_only_folder_is_readable() {
    let root = tempfile::tempdir().unwrap();
    let options = ["-t", "tmpfs", "-o", "size=1m", "tmpfs"];
    let Some(mount) = Mount::new("read-only folder", &options, root.path()) else { return };
    let folder = root.path().join("journal");
    let one = add(&Journal::create(&folder).unwrap(), 0, b"one");
    assert!(mount.remount("ro"));
    let journal = Journal::open_read_only(&folder).unwrap();
    assert_eq!(journal.read(0, u64::MAX).unwrap().end, one.end);
    assert_eq!(journal.read(one.end, 1).unwrap().frames, []);
    assert!(matches!(Journal::open(&folder), Err(Error::Io { .. })));
    assert!(matches!(Journal::create(&folder), Err(Error::Io { .. })));
}
