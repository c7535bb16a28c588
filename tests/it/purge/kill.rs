//! kill -9 at calls that change a file, while a store is purged.
#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]

use super::{MASK, SECRET, assert_whole, comparable, in_files, planted, purge, said};
use crate::bundle::law::same;
use crate::fault::{can_strike, copy, killed_at};
use forge_store::store::{Options, Store};
use std::path::PathBuf;

const FOLDER: &str = "FORGE_PURGE_FOLDER";

/// Not a test of its own: the body of the processes that are killed.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let store = Store::open(&PathBuf::from(folder), Options::default()).unwrap();
    purge(&store, 31);
}

#[test]
fn a_process_killed_anywhere_while_purging_leaves_a_whole_store_and_the_next_finishes() {
    if !can_strike("killed while purging") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let before = said(&planted(&first, Options::default()));
    let cut = format!("purged{}", "x".repeat(6));
    let wanted = comparable(&before.replace(SECRET, MASK).replace(&SECRET[..12], &cut));
    let mut struck = 0;
    for call in ["pwrite64", "fdatasync", "fsync", "rename", "unlink", "unlinkat"] {
        for nth in (1..6).chain((6..).step_by(9)) {
            let path = folder.path().join(format!("{call}-{nth}"));
            copy(&first, &path);
            let killed = killed_at("purge::kill::child", (FOLDER, &path), call, nth);
            let context = format!("{call}, {nth}");
            assert_whole(&path);
            let store = Store::open(&path, Options::default()).unwrap();
            // Before it or behind it: the texts are those of before, or of after.
            let now = said(&store);
            let masked = now.replace(SECRET, MASK).replace(&SECRET[..12], &cut);
            same(&comparable(&masked), &wanted, &context);
            let purged = purge(&store, 40);
            assert!(purged.is_done(), "{context}: {purged:#?}");
            assert_eq!(in_files(&path, SECRET), 0, "{context}");
            same(&comparable(&said(&store)), &wanted, &context);
            assert_whole(&path);
            std::fs::remove_dir_all(&path).unwrap();
            if !killed {
                break;
            }
            struck += 1;
        }
    }
    eprintln!("killed while purging: {struck} times");
    assert!(struck > 10, "the kills hardly struck");
}
