//! The journal: whatever happens to its files, it returns no record that was not appended.

use forge_store::backend::WriteAheadLog as _;
use forge_store::backend::journal::Journal;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

struct Place {
    _directory: TempDir,
    folder: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
    payloads: Vec<Vec<u8>>,
}

fn make() -> Place {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }
        .expect("a directory");
    let folder = directory.path().join("journal");
    let journal = Journal::create(&folder).expect("a journal");
    let payloads: Vec<Vec<u8>> = (1..=6_u8).map(|n| vec![n; usize::from(n) * 17]).collect();
    for (number, payload) in payloads.iter().enumerate() {
        let wait = Duration::from_secs(5);
        let mut build = |_: &_| Some(payload.clone());
        let done = if number == 3 {
            journal.rotate(0, wait, &mut build)
        } else {
            journal.append(0, wait, &mut build)
        };
        journal.sync(done.expect("an append").expect("a record").end).expect("a sync");
    }
    drop(journal);
    let mut files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.clone(), fs::read(path).expect("a file")))
        .collect();
    files.sort();
    Place { _directory: directory, folder, files, payloads }
}

/// One file of a journal is changed: replaced, overwritten in part, cut, extended or removed.
pub fn journal(data: &[u8]) {
    static PLACE: OnceLock<Place> = OnceLock::new();
    let place = PLACE.get_or_init(make);
    let [which, how, low, high, bytes @ ..] = data else { return };
    for (path, before) in &place.files {
        fs::write(path, before).expect("the file is put back");
    }
    for extra in fs::read_dir(&place.folder).expect("the folder") {
        let extra = extra.expect("an entry").path();
        if !place.files.iter().any(|(path, _)| *path == extra) {
            fs::remove_file(extra).expect("what an input made goes");
        }
    }
    let (path, before) = &place.files[usize::from(*which) % place.files.len()];
    let at = usize::from(u16::from_le_bytes([*low, *high])) % (before.len() + 1);
    let mut after = before.clone();
    match how % 5 {
        0 => after = bytes.to_vec(),
        1 => {
            let end = (at + bytes.len()).min(after.len());
            after.splice(at..end, bytes.iter().copied());
        }
        2 => after.truncate(at),
        3 => drop(after.splice(at..at, bytes.iter().copied())),
        _ => {}
    }
    if how % 5 == 4 {
        fs::remove_file(path).expect("the file goes");
    } else {
        fs::write(path, &after).expect("the file is changed");
    }
    let read = |journal: &Journal| {
        let tail = journal.read(0, u64::MAX).ok()?;
        Some(tail.frames.into_iter().map(|frame| frame.payload).collect::<Vec<_>>())
    };
    if let Ok(journal) = Journal::open_read_only(&place.folder)
        && let Some(found) = read(&journal)
    {
        assert!(
            place.payloads.starts_with(&found),
            "records came out that were never put in: {found:?}"
        );
        let is_mark = path.file_name().is_some_and(|name| name == "SYNCED");
        assert!(
            is_mark || found.len() == place.payloads.len(),
            "{} of {} synced records, and no error: {}",
            found.len(),
            place.payloads.len(),
            path.display()
        );
    }
    if let Ok(journal) = Journal::open(&place.folder)
        && let Some(before) = read(&journal)
        && let Ok(Some(_)) =
            journal.append(0, Duration::from_secs(5), &mut |_: &_| Some(vec![7; 7]))
    {
        let after = read(&journal).expect("what was just written can be read");
        assert_eq!(
            after.split_last(),
            Some((&vec![7; 7], before.as_slice())),
            "the record stands at the end"
        );
    }
}
