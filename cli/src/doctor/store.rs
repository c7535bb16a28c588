//! The store: whether it can be opened, read and written, how large it is, and what stands in the way.

use super::Finding;
use super::agent::Compaction;
use crate::compaction;
use crate::error::{CommandError, ErrorKind};
use crate::report::doctor::StoreHealth;
use crate::report::key::word;
use forge_store::plain_file;
use forge_store::store::{Options, Store};
use rustix::fs::{Access, access};
use std::fs::{self, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How often a lock is tried that should be free in a moment, and how long is waited in between.
const TRIES: u32 = 25;
const PAUSE: Duration = Duration::from_millis(10);
/// A journal that is longer than this makes every reading command slow.
const LONG_TAIL_BYTES: u64 = 16 << 20;

/// What is known of the store in this directory, the compactions in it, and what is wrong with it.
#[must_use]
pub fn examine(path: &Path, options: &Options) -> (StoreHealth, Vec<Compaction>, Vec<Finding>) {
    let mut findings = Vec::new();
    let (bytes, files) = size(path);
    let generations = generations(&path.join("index"));
    let mut health = StoreHealth {
        path: path.display().to_string(),
        opens: false,
        writable: is_writable(path),
        bytes,
        files,
        sessions: None,
        tail_bytes: None,
        generations: generations.len() as u64,
        old_generation_bytes: generations.iter().rev().skip(1).map(|(_, bytes)| bytes).sum(),
        spooled: count(&path.join("spool")),
        encrypted: None,
        seals: None,
        witnessed: None,
        adopted_at: None,
        lock_holder: None,
    };
    if !health.writable {
        findings.push(Finding::problem(
            "store",
            "it cannot be written: hooks save nothing, reading goes on",
            format!("make '{}' writable for you", path.display()),
        ));
    }
    if let Some(holder) = holder(&path.join("journal/append.lock")) {
        let who = match holder {
            Some(id) => format!("process {id}"),
            None => "another process".to_owned(),
        };
        findings.push(Finding::problem(
            "store",
            format!("{who} holds the lock for writing and does not let it go"),
            "end it, if it hangs; what it was writing is kept or left out as a whole",
        ));
        health.lock_holder = Some(who);
    }
    if generations.len() > 2 {
        let mib = health.old_generation_bytes >> 20;
        findings.push(Finding::advice(
            "store",
            format!(
                "{} old generations of the index are there, of {mib} MiB",
                generations.len() - 1
            ),
            "'forge maintain' removes those that nobody reads; an old 'forge tui' may read one",
        ));
    }
    if health.spooled > 0 {
        findings.push(Finding::advice(
            "store",
            format!("{} entries wait in the spool for a writer", health.spooled),
            "'forge maintain' takes them in",
        ));
    }
    let mut compactions = Vec::new();
    match read(path, options, &mut health) {
        Ok(found) => compactions = found,
        Err(error) => findings.push(unusable(&error)),
    }
    // Of an encrypted one without its key the error has said it.
    let told = health.encrypted == Some(true) && !health.opens;
    findings.extend(health.seals.filter(|_| !told).and_then(about_seals));
    if health.tail_bytes.is_some_and(|bytes| bytes > LONG_TAIL_BYTES) {
        findings.push(Finding::advice(
            "store",
            "much of the journal is not in the index yet, so that every command reads it",
            "'forge maintain' brings the index up to date",
        ));
    }
    (health, compactions, findings)
}

/// What is missing of what its seals are checked with.
fn about_seals(seals: &str) -> Option<Finding> {
    let finding = |what: &str, remedy| Some(Finding::problem("store", what, remedy));
    match seals {
        "no_key" => finding(
            "its key is not on this machine, or damaged: nobody vouches for what is read, and writes wait in the spool",
            "'forge key import' brings the key from where it is; 'forge adopt' takes the store over",
        ),
        "no_witness" => finding(
            "its witness is not on this machine: nobody knows whether its end is missing",
            "'forge key import' brings it from a copy; 'forge adopt' takes the store over",
        ),
        "unsealed" => Some(Finding::advice(
            "store",
            "it bears no seals: whoever can write to it can change it unnoticed",
            "'forge adopt' seals it",
        )),
        _ => None,
    }
}

fn unusable(error: &CommandError) -> Finding {
    let causes = error.causes();
    let what = match causes.first() {
        Some(cause) => format!("{}: {cause}", error.message()),
        None => error.message().to_owned(),
    };
    let remedy = match (error.hints().first(), error.kind()) {
        (Some(hint), _) => hint.clone(),
        (None, ErrorKind::Unsupported) => "use the forge that wrote it, or a newer one".to_owned(),
        (None, ErrorKind::Corrupt) => {
            "keep a copy of the directory before anything else; put a backup in its place"
                .to_owned()
        }
        (None, _) => "put right what the system says".to_owned(),
    };
    Finding::problem("store", what, remedy)
}

/// Reads what a healthy store can be read for: each session's present state is checked against its digest.
fn read(
    path: &Path,
    options: &Options,
    health: &mut StoreHealth,
) -> Result<Vec<Compaction>, CommandError> {
    let key = Store::key_state(path, options)?;
    health.seals = Some(word(key.standing));
    health.encrypted = Some(key.encrypted);
    health.witnessed = key.witnessed;
    health.adopted_at = key.adopted.map(|(_, time)| time);
    let store = Store::open(path, options.clone().read_only(true))?;
    health.opens = true;
    health.tail_bytes = Some(store.tail_bytes()?);
    let sessions = store.sessions()?;
    health.sessions = Some(sessions.len() as u64);
    let mut compactions = Vec::new();
    for summary in sessions {
        let session = store.session(&summary.info.id.to_string())?;
        session.check_digest(&session.head()?)?;
        let Some(agent_session) = summary.info.agent_session else { continue };
        let known = compaction::newest(&session, None)?.into_iter();
        compactions.extend(
            known.map(|one| Compaction {
                session: agent_session.clone(),
                time: one.checkpoint.time,
            }),
        );
    }
    Ok(compactions)
}

/// The bytes and the files below a directory.
pub fn size(path: &Path) -> (u64, u64) {
    let Ok(entries) = fs::read_dir(path) else { return (0, 0) };
    entries.flatten().fold((0, 0), |(bytes, files), entry| {
        match entry.metadata() {
            Ok(about) if about.is_dir() => {
                let (more, inside) = size(&entry.path());
                (bytes + more, files + inside)
            }
            Ok(about) => (bytes + about.len(), files + 1),
            // It went while it was counted.
            Err(_) => (bytes, files),
        }
    })
}

fn count(folder: &Path) -> u64 {
    fs::read_dir(folder).map_or(0, |entries| entries.flatten().count() as u64)
}

/// The generations of an index with their bytes, the oldest first.
fn generations(index: &Path) -> Vec<(u64, u64)> {
    let Ok(entries) = fs::read_dir(index) else { return Vec::new() };
    let mut found: Vec<(u64, u64)> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (number, position) = name.split_once('-')?;
            u64::from_str_radix(position, 16).ok()?;
            Some((number.parse().ok()?, size(&entry.path()).0))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Whether files can be written and made in the places that a writer needs.
fn is_writable(path: &Path) -> bool {
    let journal = path.join("journal");
    [path, &journal, &journal.join("append.lock")]
        .iter()
        .all(|place| access(*place, Access::WRITE_OK).is_ok())
}

/// Who holds a lock for longer than a writer does: nobody, or the process if the system names it.
fn holder(lock: &Path) -> Option<Option<u32>> {
    let file = plain_file::open(lock).ok()?;
    for _ in 0..TRIES {
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => thread::park_timeout(PAUSE),
            Ok(()) | Err(TryLockError::Error(_)) => return None,
        }
    }
    let inode = file.metadata().ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    // 1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF
    let process = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = words.iter().position(|word| *word == "WRITE")?;
        let of = words.get(place + 2)?.rsplit(':').next()?;
        (of == inode.to_string()).then(|| words.get(place + 1)?.parse().ok())?
    });
    Some(process)
}
