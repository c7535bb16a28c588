//! kill -9 at system calls that change a file, while a store is pruned, applied and swept.
#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]

use super::{act, all, bare, create, history, open, time};
use crate::fault::{can_inject_faults, copy, count, killed_at};
use forge_store::store::{CheckpointFilter, Options, Store};
use std::path::PathBuf;

const FOLDER: &str = "FORGE_PRUNE_FOLDER";

/// Not a test: the body of the processes that are killed.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let path = PathBuf::from(folder);
    let store = Store::open(&path, Options::default()).unwrap();
    let session = store.session("s").unwrap();
    session.prune(&act(60), &bare()).unwrap();
    store.maintain(0).unwrap();
    std::fs::write(path.join("pruned"), "").unwrap();
    store.sweep(time(61), time(61)).unwrap();
    store.maintain(0).unwrap();
}

#[test]
fn a_process_killed_anywhere_while_pruning_leaves_every_state_unchanged() {
    if !can_inject_faults("killed while pruning") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let before = all(&history(&create(&first)));
    let mut struck = 0;
    let step = count("FORGE_CRASH_STEP", 7).max(1) as usize;
    for call in ["pwrite64", "write", "fdatasync", "fsync", "rename", "unlink", "ftruncate"] {
        // Every call at first, then some: most are RocksDB's.
        let numbers = (1..8).chain((8..).step_by(step));
        for nth in numbers {
            let path = folder.path().join(format!("{call}-{nth}"));
            copy(&first, &path);
            let killed = killed_at("prune::kill::child", (FOLDER, &path), call, nth);

            let context = format!("{call}, {nth}");
            let store = open(&path);
            let session = store.session("s").unwrap();
            let found = all(&session);
            for (number, state) in &found {
                assert_eq!(before.get(number), Some(state), "{context}: #{number}");
            }
            let head = before.last_key_value().unwrap().0;
            assert!(found.contains_key(head), "{context}: the head stays");
            // Every visible checkpoint has the same state as before.
            for one in session.checkpoints(&CheckpointFilter::default()).unwrap() {
                assert!(found.contains_key(&one.revision.unwrap()), "{context}: {}", one.message);
            }
            let pruning = session.operations(99).unwrap().into_iter().find(|one| {
                one.effects
                    .iter()
                    .any(|effect| effect.contains("folded") || effect.contains("took"))
            });
            if !path.join("pruned").exists()
                && let Some(pruning) = pruning
            {
                session.undo(&act(70), Some(&pruning.id.to_string())).unwrap();
                assert_eq!(all(&session), before, "{context}: undo brings all of it back");
            }
            // The next pruning finishes it.
            session.prune(&act(80), &bare()).unwrap();
            store.maintain(0).unwrap();
            store.sweep(time(81), time(81)).unwrap();
            store.maintain(0).unwrap();
            assert_eq!(all(&session).len(), 1, "{context}");
            std::fs::remove_dir_all(&path).unwrap();
            if !killed {
                break;
            }
            struck += 1;
        }
    }
    eprintln!("killed while pruning: {struck} kills, every state what it was");
    assert!(struck > 10, "the kills hardly struck");
}
