//! Operations on a whole store, killed at the first, second, third, ... system call that changes a
//! file: the original store is unchanged, and the operation can be repeated.

use super::child::Task;
use super::oracle::Oracle;
use super::work::Planted;
use super::{act, create, keyring, open};
use crate::fault::{can_inject_faults, copy, count, killed_at};
use forge_store::error::Error;
use forge_store::store::{BundleRange, NewSession, Options, SealStatus, Store, VerifyDepth};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

const FOLDER: &str = "FORGE_CRASH_VERB";

/// An operation in a folder where `store` and `bundle` exist, `keyring` may exist, and `made` does
/// not.
struct Verb {
    name: &'static str,
    sealed: bool,
    act: fn(&Path) -> Result<(), Error>,
    /// The store that is audited afterwards.
    done: &'static str,
}

fn store(root: &Path) -> PathBuf {
    root.join("store")
}

const VERBS: [Verb; 6] = [
    Verb {
        name: "create",
        sealed: true,
        act: |root| {
            let options = Options::default().keyring(root.join("keyring"));
            let path = root.join("made");
            let made = match Store::create(&path, options.clone()) {
                Err(Error::StoreExists { .. }) => Store::open(&path, options)?,
                made => made?,
            };
            match made.create_session(&act(1), NewSession::named("first")) {
                Err(Error::Duplicate { .. }) => Ok(()),
                made => made.map(drop),
            }
        },
        done: "store",
    },
    Verb {
        name: "repair",
        sealed: true,
        act: |root| {
            made(root, |from, to| {
                Store::repair(from, to, act(1).now, keyring(from).as_deref()).map(drop)
            })
        },
        done: "made",
    },
    Verb {
        name: "backup",
        sealed: false,
        act: |root| made(root, |from, to| Store::backup(from, to, act(1).now, None).map(drop)),
        done: "made",
    },
    Verb {
        name: "adopt",
        sealed: false,
        act: |root| {
            let options = Options::default().keyring(root.join("keyring"));
            Store::adopt(&store(root), &options, act(1).now).map(drop)
        },
        done: "store",
    },
    Verb {
        name: "rebuild",
        sealed: true,
        act: |root| open(&store(root))?.rebuild().map(drop),
        done: "store",
    },
    Verb {
        name: "import",
        sealed: true,
        act: |root| {
            let into = open(&root.join("into"))?;
            let mut bundle = File::open(root.join("bundle")).unwrap();
            into.import_bundle(&act(9), &mut bundle, None).map(drop)
        },
        done: "into",
    },
];

/// Makes a copy unless there is a complete one. Removes an unfinished copy first.
fn made(root: &Path, make: fn(&Path, &Path) -> Result<(), Error>) -> Result<(), Error> {
    let to = root.join("made");
    match make(&store(root), &to) {
        Err(Error::StoreExists { .. }) => Ok(()),
        Err(Error::Invalid { .. }) => {
            fs::remove_dir_all(&to).unwrap();
            make(&store(root), &to)
        }
        made => made,
    }
}

/// Not a test: the body of the processes that are killed.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    let name = fs::read_to_string(folder.join("verb")).unwrap();
    let verb = VERBS.iter().find(|verb| verb.name == name).unwrap();
    (verb.act)(&folder).unwrap();
}

/// A store in which everything was done once, with its acknowledgements, and a bundle of it next to
/// it.
fn worked(root: &Path, sealed: bool) -> Oracle {
    if sealed {
        fs::create_dir_all(root.join("keyring")).unwrap();
    }
    let path = store(root);
    create(&path);
    assert_eq!(open(&path).unwrap().seal_status() == SealStatus::Sealed, sealed);
    let (sender, lines) = channel();
    let task = Task { writer: 0, seed: 7, second: 1, planted: Planted::Nothing, once: true };
    let mut child = task.spawn(&path, &sender);
    drop(sender);
    let mut oracle = Oracle::default();
    for line in lines {
        oracle.hear(&line);
    }
    child.wait().unwrap();
    assert_eq!(oracle.audit(&path, 4, VerifyDepth::ReadData), Ok(()));
    let from = open(&path).unwrap();
    let mut bundle = Vec::new();
    let sessions = from.every_session().unwrap().into_iter();
    let ranges: Vec<_> =
        sessions.map(|session| BundleRange { session, from: 0, to: None }).collect();
    let mut write = |bytes: &[u8]| {
        bundle.extend_from_slice(bytes);
        Ok::<_, Error>(())
    };
    from.export_bundle(&ranges, &mut write).unwrap();
    fs::write(root.join("bundle"), bundle).unwrap();
    let into = Options::default().keyring(keyring(&path));
    Store::create(&root.join("into"), into).unwrap();
    oracle
}

#[test]
fn a_verb_killed_at_any_call_succeeds_when_it_is_repeated() {
    let test = "crash killed verbs";
    if !can_inject_faults(test) {
        return;
    }
    let step = count("FORGE_CRASH_STEP", 11).max(1) as usize;
    let calls = [
        "pwrite64", "write", "fdatasync", "fsync", "rename", "unlink", "link", "ftruncate", "mkdir",
    ];
    let mut struck = 0;
    for verb in &VERBS {
        let first = tempfile::tempdir().unwrap();
        let oracle = worked(first.path(), verb.sealed);
        fs::write(first.path().join("verb"), verb.name).unwrap();
        let mut struck_here = 0;
        for call in calls {
            for nth in (1..6).chain((6..).step_by(step)) {
                let root = tempfile::tempdir().unwrap();
                copy(first.path(), root.path());
                if !killed_at("crash::verbs::child", (FOLDER, root.path()), call, nth) {
                    break;
                }
                let at = format!("{}: {call} {nth}", verb.name);
                let before = oracle.clone().audit(&store(root.path()), 4, VerifyDepth::Quick);
                assert_eq!(before, Ok(()), "{at}, before it is done again");
                assert_eq!(
                    (verb.act)(root.path()).map_err(|error| error.to_string()),
                    Ok(()),
                    "{at}"
                );
                let done = root.path().join(verb.done);
                assert_eq!(oracle.clone().audit(&done, 4, VerifyDepth::Quick), Ok(()), "{at}");
                struck_here += 1;
            }
        }
        assert!(struck_here > 3, "{} was hardly struck", verb.name);
        struck += struck_here;
    }
    eprintln!("{test}: {struck} kills, 0 lost");
}
