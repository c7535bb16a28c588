//! Searches the files of a store for secrets, byte by byte, and overwrites them.

use crate::backend::{self, files};
use crate::error::Result;
use crate::redact::KnownSecrets;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How many bytes are read at a time.
const READ_BYTES: usize = 1 << 20;

/// The result of a file search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileScanReport {
    /// How many files were searched.
    pub files: u64,
    /// How many bytes were searched.
    pub bytes: u64,
    /// The files with secrets, and how many each contains.
    pub found: Vec<(PathBuf, u64)>,
}

/// Searches for secrets in all files below these folders, except in the folders `skipped`.
/// `progress` gets the number of bytes of each read.
pub(super) fn search(
    folders: &[PathBuf],
    known: &KnownSecrets,
    skipped: &[PathBuf],
    progress: &dyn Fn(u64),
) -> Result<FileScanReport> {
    let mut searched = FileScanReport::default();
    let mut folders = folders.to_vec();
    while let Some(folder) = folders.pop() {
        // It may have been removed meanwhile.
        for entry in files::entries_if_there(&folder)? {
            let kind = entry.file_type().map_err(backend::Error::io("look at", &entry.path()))?;
            if kind.is_dir() && !skipped.contains(&entry.path()) {
                folders.push(entry.path());
            } else if kind.is_file() {
                file(&entry.path(), known, &mut searched, progress)?;
            }
        }
    }
    searched.found.sort();
    Ok(searched)
}

fn file(
    path: &Path,
    known: &KnownSecrets,
    searched: &mut FileScanReport,
    progress: &dyn Fn(u64),
) -> Result<()> {
    let opened = files::if_there(File::open(path)).map_err(backend::Error::io("open", path))?;
    let Some(mut file) = opened else { return Ok(()) };
    let mut held = Vec::new();
    let mut count = 0;
    loop {
        let before = held.len();
        let limit = READ_BYTES.max(known.max_bytes()) as u64;
        let read = file.by_ref().take(limit).read_to_end(&mut held);
        let read = read.map_err(backend::Error::io("read", path))?;
        searched.bytes += read as u64;
        progress(read as u64);
        // Keep the end of these bytes: a secret that begins there is found with the next ones.
        let last = held.len() == before;
        let keep = if last { 0 } else { known.max_bytes().min(held.len()) };
        let upto = held.len() - keep;
        let found = known.find_whole(&held).filter(|one| one.range.start < upto);
        count += found.count() as u64;
        held.drain(..upto);
        if last {
            break;
        }
    }
    searched.files += 1;
    if count > 0 {
        searched.found.push((path.to_owned(), count));
    }
    Ok(())
}

/// Overwrites the secrets in a file in place, with marks of the same length, so that a concurrent
/// append is not disturbed.
pub(super) fn overwrite(path: &Path, known: &KnownSecrets) -> Result<()> {
    let failed = || backend::Error::io("write over", path);
    let content = fs::read(path).map_err(failed())?;
    let file = File::options().write(true).open(path).map_err(failed())?;
    if let Some((new, _)) = known.mask(&content) {
        file.write_all_at(&new, 0).and_then(|()| file.sync_all()).map_err(failed())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwriting_a_secret_keeps_the_length_and_the_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        fs::write(&path, "{\"a\":\"a-secret\\/word\"}\n").unwrap();
        overwrite(&path, &KnownSecrets::new(["a-secret/word"]).unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":\"purgedxx\\/xxxx\"}\n");
    }

    #[test]
    fn a_secret_that_spans_two_reads_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let known = KnownSecrets::new(["a-secret-word"]).unwrap();
        for at in [0, READ_BYTES - 7, READ_BYTES, 2 * READ_BYTES - 1] {
            let mut bytes = vec![b'.'; 3 * READ_BYTES];
            bytes[at..at + 13].copy_from_slice(b"a-secret-word");
            let path = folder.path().join(at.to_string());
            fs::write(&path, bytes).unwrap();
            let here = [folder.path().to_owned()];
            let found = search(&here, &known, &[], &|_| ()).unwrap();
            assert_eq!(found.found, [(path.clone(), 1)], "{at}");
            assert_eq!((found.files, found.bytes), (1, 3 * READ_BYTES as u64));
            assert_eq!(
                search(&here, &KnownSecrets::new(["another-one"]).unwrap(), &[], &|_| ())
                    .unwrap()
                    .found,
                []
            );
            fs::remove_file(path).unwrap();
        }
    }
}
