//! Planted faults: the audit, which finds nothing in the other tests, must find each of them.

mod order;

use super::child::Task;
use super::create;
use super::kill::{IN_DOUBT, kill, listen};
use super::oracle::Oracle;
use super::work::Planted;
use crate::fault::{SeededNumbers, copy};
use forge_store::store::VerifyDepth;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

/// The number of attempts for a fault that occurs only sometimes.
const TRIES: u64 = 60;

/// A store in which one writer worked until it was killed, and its acknowledgements; `None` if the
/// writer itself noticed the fault. A copy of the store from halfway is next to it.
fn worked(root: &Path, planted: Planted, numbers: &mut SeededNumbers) -> Option<(PathBuf, Oracle)> {
    let path = root.join(".forge");
    let _ = fs::remove_dir_all(&path);
    let _ = fs::remove_dir_all(root.join("earlier"));
    create(&path);
    let mut oracle = Oracle::default();
    for half in 0..2 {
        let (sender, lines) = channel();
        let seed = numbers.next();
        let task = Task { writer: 0, seed, second: 1 + 1000 * half, planted, once: false };
        let mut child = task.spawn(&path, &sender);
        drop(sender);
        let went_on = listen(&lines, 5 + numbers.below(40), &mut oracle);
        kill(&mut child);
        if !went_on {
            return None;
        }
        for line in lines {
            oracle.hear(&line);
        }
        if half == 0 {
            copy(&path, &root.join("earlier"));
        }
    }
    Some((path, oracle))
}

#[test]
fn every_fault_planted_in_a_process_is_found() {
    let mut numbers = SeededNumbers::from_environment("planted in processes");
    for planted in Planted::ALL.into_iter().filter(|one| *one != Planted::Nothing) {
        let root = tempfile::tempdir().unwrap();
        let found = (0..TRIES).find_map(|_| match worked(root.path(), planted, &mut numbers) {
            Some((path, mut oracle)) => oracle.audit(&path, IN_DOUBT, VerifyDepth::Quick).err(),
            None => Some("the writer itself read something else than it wrote".to_owned()),
        });
        let found = found.unwrap_or_else(|| panic!("{planted:?} was not found"));
        eprintln!("planted {planted:?}: found as '{found}'");
    }
}

/// The files in a folder of the store with this suffix, sorted by name.
fn files(path: &Path, folder: &str, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(path.join(folder)).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|file| file.to_string_lossy().ends_with(end))
        .collect();
    found.sort();
    found
}

fn segments(path: &Path) -> Vec<PathBuf> {
    files(path, "journal", ".log")
}

/// The generation of the index, if there is only one. A kill right after publishing leaves the
/// previous one with its segments; then nothing is lost with the newest.
fn generation(path: &Path) -> Option<PathBuf> {
    let mut leases = files(path, "index", ".lease");
    let only = leases.pop().filter(|_| leases.is_empty());
    only.map(|lease| lease.with_extension(""))
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 0x10;
    fs::write(file, bytes).unwrap();
}

/// The ends of the frames in a segment.
fn ends(segment: &Path) -> Vec<usize> {
    let bytes = fs::read(segment).unwrap();
    let mut ends = vec![0];
    loop {
        let at = *ends.last().unwrap();
        match bytes.get(at..at + 8) {
            Some([0x46, 0x52, 0x4a, 1, length @ ..]) => {
                let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
                ends.push(at + 96 + length);
            }
            _ => return ends,
        }
    }
}

/// Damages the files of a store. Returns whether there was anything to damage.
type Damage = fn(&Path) -> bool;

const DAMAGES: [(&str, Damage); 9] = [
    ("the last two records cut off, and the mark removed", |path| {
        let last = segments(path).pop().unwrap();
        let ends = ends(&last);
        let Some(cut) = ends.len().checked_sub(3).filter(|at| *at > 0) else { return false };
        let file = fs::File::options().write(true).open(&last).unwrap();
        file.set_len(ends[cut] as u64).unwrap();
        fs::remove_file(path.join("journal/SYNCED")).unwrap();
        true
    }),
    ("a bit of a record flipped", |path| {
        let last = segments(path).pop().unwrap();
        let Some(end) = ends(&last).get(1).copied() else { return false };
        flip(&last, end / 2 + 48);
        true
    }),
    ("the newest segment removed", |path| {
        fs::remove_file(segments(path).pop().unwrap()).unwrap();
        true
    }),
    ("the newest segment empty", |path| {
        fs::write(segments(path).pop().unwrap(), "").unwrap();
        true
    }),
    ("the segments of an earlier time", |path| {
        fs::remove_dir_all(path.join("journal")).unwrap();
        copy(&path.with_file_name("earlier").join("journal"), &path.join("journal"));
        true
    }),
    ("the whole store of an earlier time", |path| {
        fs::remove_dir_all(path).unwrap();
        copy(&path.with_file_name("earlier"), path);
        true
    }),
    ("the generation removed", |path| {
        let Some(only) = generation(path) else { return false };
        fs::remove_dir_all(only).unwrap();
        true
    }),
    ("the index removed", |path| {
        generation(path).is_some() && fs::remove_dir_all(path.join("index")).is_ok()
    }),
    ("a table of the index cut in half", |path| {
        let Some(only) = generation(path) else { return false };
        let tables = files(&only, "", ".sst");
        let Some(table) = tables.iter().max_by_key(|table| table.metadata().unwrap().len()) else {
            return false;
        };
        // Generations share their tables: another one holds the complete table.
        let bytes = fs::read(table).unwrap();
        fs::remove_file(table).unwrap();
        fs::write(table, &bytes[..bytes.len() / 2]).unwrap();
        true
    }),
];

#[test]
fn every_damage_to_the_files_is_found() {
    let mut numbers = SeededNumbers::from_environment("planted in files");
    for (name, damage) in DAMAGES {
        let root = tempfile::tempdir().unwrap();
        let mut tried = false;
        for _ in 0..TRIES {
            let (path, mut oracle) = worked(root.path(), Planted::Nothing, &mut numbers).unwrap();
            // The last record is the audit's own, because the writer may not have acknowledged its
            // last one.
            assert_eq!(oracle.audit(&path, IN_DOUBT, VerifyDepth::Quick), Ok(()), "{name}");
            if !damage(&path) {
                continue;
            }
            let found = oracle.audit(&path, IN_DOUBT, VerifyDepth::ReadData);
            let found = found.expect_err(name);
            eprintln!("planted {name}: found as '{}'", found.lines().next().unwrap_or_default());
            tried = true;
            break;
        }
        assert!(tried, "{name}: there was nothing to damage");
    }
}
