//! Planted faults in the order of writing: the journal's segments go although the index that they were applied to is not there, or
//! not there for good. Nothing in forge does so: the calls that would prevent it are told to do nothing.

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

/// Not a test of its own: the body of the process that applies the journal and lets go of it.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    assert!(open(Path::new(&folder)).unwrap().maintain(0).unwrap());
}

/// Applies the journal in a process some of whose calls do nothing; whether it believes that it did.
fn apply(path: &Path, lies: &[&str]) -> bool {
    let done = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(lies)
        .arg(std::env::current_exe().unwrap())
        .args(["crash::planted::order::child", "--exact", "--nocapture", "--test-threads=1"])
        .env(FOLDER, path)
        .stdout(Stdio::null())
        .status();
    done.unwrap().success()
}

/// A store in which somebody was at work, with all of it in the journal.
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

/// Where calls lied something must be missed, else nothing.
fn judge(name: &str, lied: bool, path: &Path, oracle: &mut Oracle) {
    let found = oracle.audit(path, u64::MAX, VerifyDepth::Quick);
    if !lied {
        return assert_eq!(found, Ok(()), "{name}");
    }
    let found = found.expect_err(name);
    eprintln!("planted {name}: found as '{}'", found.lines().next().unwrap_or_default());
}

/// With honest calls nothing is lost: it is the order that is found, not what is done around it.
const HONEST: [&str; 2] = ["-e", "trace=none"];

#[test]
fn an_index_that_was_not_put_in_its_place_when_the_journal_goes_is_missed() {
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
fn an_index_that_is_not_durable_when_the_journal_goes_is_missed_after_a_power_cut() {
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
        // The journal and all names are durable then; what stands in the index's files is not.
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
