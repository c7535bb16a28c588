//! Planted faults in the order of writing: the journal's segments are removed although the index
//! that they were applied to is missing or not durable. forge itself never does this: the system
//! calls that prevent it are replaced by no-ops.

use crate::crash::child::Task;
use crate::crash::kill::{kill, listen};
use crate::crash::oracle::Oracle;
use crate::crash::power::{IMAGE_BYTES, Keys, begin, folder};
use crate::crash::work::Planted;
use crate::crash::{create, open};
use crate::fault::{Breaker, Disk, can_inject_faults};
use forge_store::store::VerifyDepth;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

const FOLDER: &str = "FORGE_CRASH_APPLY";

/// Not a test: the body of the process that applies the journal and removes its
/// segments.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    assert!(open(Path::new(&folder)).unwrap().maintain(0).unwrap());
}

/// Applies the journal in a process some of whose system calls do nothing. Returns whether it
/// reports success.
fn apply(path: &Path, lies: &[&str]) -> bool {
    let done = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(lies)
        .arg(std::env::current_exe().unwrap())
        .args([
            "crash::planted::order::child", "--exact", "--ignored", "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, path)
        .stdout(Stdio::null())
        .status();
    done.unwrap().success()
}

/// A store with some history, all of it in the journal.
fn worked(path: &Path) -> Oracle {
    let (sender, lines) = channel();
    let task = Task { writer: 0, seed: 7, second: 1, planted: Planted::Nothing, once: false };
    let mut child = task.spawn(path, &sender);
    drop(sender);
    let mut oracle = Oracle::default();
    assert!(listen(&lines, 20, &mut oracle), "the writer stopped by itself");
    kill(&mut child);
    for line in lines {
        oracle.hear(&line);
    }
    assert_eq!(oracle.audit(path, u64::MAX, VerifyDepth::Quick), Ok(()));
    oracle
}

/// If calls were faked, the audit must find a loss, otherwise nothing.
fn judge(name: &str, lied: bool, path: &Path, oracle: &mut Oracle) {
    let found = oracle.audit(path, u64::MAX, VerifyDepth::Quick);
    if !lied {
        return assert_eq!(found, Ok(()), "{name}");
    }
    let found = found.expect_err(name);
    eprintln!("planted {name}: found as '{}'", found.lines().next().unwrap_or_default());
}

/// With real calls nothing is lost: the audit detects the order, and not the surroundings of the
/// test.
const HONEST: [&str; 2] = ["-e", "trace=none"];

#[test]
fn removing_the_journal_before_the_index_is_in_place_is_detected() {
    if !can_inject_faults("a rename left out") {
        return;
    }
    for lies in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".forge");
        create(&path);
        let mut oracle = worked(&path);
        let work = path.join("index/work");
        let leave_out =
            ["-P", work.to_str().unwrap(), "-e", "trace=rename", "-e", "inject=rename:retval=0"];
        assert!(apply(&path, if lies { &leave_out } else { &HONEST }));
        judge("rename of the index left out", lies, &path, &mut oracle);
    }
}

#[test]
fn removing_the_journal_before_the_index_is_durable_is_detected_after_a_power_cut() {
    let test = "syncs of the index left out";
    if !can_inject_faults(test) {
        return;
    }
    let Some(disk) = Disk::new(test, IMAGE_BYTES) else { return };
    for lies in [false, true] {
        if begin(test, &disk, Keys::None).is_none() {
            return;
        }
        let mount = disk.mount(test).expect("it could be mounted before");
        let Some(breaker) = Breaker::new(test, &disk.place) else { return };
        let path = folder(&disk);
        let mut oracle = worked(&path);
        let calls = "fsync,fdatasync,sync_file_range,syncfs";
        let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:retval=0"));
        let leave_out = ["-e", trace.as_str(), "-e", inject.as_str()];
        assert!(apply(&path, if lies { &leave_out } else { &HONEST }));
        // The journal and all names are durable then; the content of the index's files is not.
        for entry in fs::read_dir(path.join("journal")).unwrap() {
            File::open(entry.unwrap().path()).unwrap().sync_all().unwrap();
        }
        File::open(path.join("journal")).unwrap().sync_all().unwrap();
        breaker.cut();
        drop(mount);
        let _mount = disk.mount(test).expect("it could be mounted before");
        judge(test, lies, &path, &mut oracle);
    }
}
