//! Checks the store: whether it can be opened, read and written, how large it is, and what blocks
//! it.

use super::DoctorFinding;
use super::agent::KnownCompaction;
use crate::compaction;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::doctor::StoreHealth;
use crate::workspace::{UNSEALED_REMEDY, unsealed_text};
use forge_store::error::{Error, LockHolder};
use forge_store::plain_file;
use forge_store::store::{Options, SealStatus, Store};
use rustix::fs::{Access, access};
use std::fs::{self, TryLockError};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The maximum number of tries to get a lock that should soon be free.
const TRIES: u32 = 25;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);
/// A journal tail longer than this slows down every reading command.
const LONG_TAIL_BYTES: u64 = 16 << 20;

/// Returns the health of the store in this directory, its compactions, and what is wrong with it.
#[must_use]
pub fn examine(
    path: &Path,
    options: &Options,
) -> (StoreHealth, Vec<KnownCompaction>, Vec<DoctorFinding>) {
    let mut findings = Vec::new();
    let (bytes, files) = disk_usage(path);
    let generations = generations(&path.join("index"));
    let is_in_database = Store::database_of(path).is_ok_and(|place| place.is_some());
    let mut health = StoreHealth {
        path: path.display().to_string(),
        writable: is_writable(path, is_in_database),
        bytes,
        files,
        generations: generations.len() as u64,
        old_generation_bytes: generations.iter().rev().skip(1).map(|(_, bytes)| bytes).sum(),
        spooled: count(&path.join("spool")),
        ..StoreHealth::default()
    };
    if !health.writable {
        findings.push(DoctorFinding::problem(
            "store",
            "it cannot be written: hooks save nothing, reading still works",
            format!("make '{}' writable for you", path.display()),
        ));
    }
    if let Some(holder) = holder(&path.join("journal/append.lock")) {
        let who = match holder {
            Some(id) => format!("process {id}"),
            None => "another process".to_owned(),
        };
        findings.push(DoctorFinding::problem(
            "store",
            format!("{who} holds the lock for writing and does not release it"),
            "end it, if it hangs; what it was writing is kept or left out as a whole",
        ));
        health.lock_holder = Some(who);
    }
    if generations.len() > 2 {
        let mib = health.old_generation_bytes >> 20;
        findings.push(DoctorFinding::advice(
            "store",
            format!(
                "{} old generations of the index are there, of {mib} MiB",
                generations.len() - 1
            ),
            "'forge maintain' removes those that no process reads; an old 'forge tui' can be \
            reading one",
        ));
    }
    let mut compactions = Vec::new();
    match read(path, options, &mut health) {
        Ok((found, risks)) => {
            health.is_whole = true;
            compactions = found;
            findings.extend(risks);
        }
        Err(error) => findings.push(unusable_store(&error)),
    }
    if health.unsealed > 0 {
        let what = unsealed_text(health.unsealed);
        findings.push(DoctorFinding::problem("store", what, UNSEALED_REMEDY));
    }
    let waiting = health.spooled.saturating_sub(health.unsealed);
    if waiting > 0 {
        let (entries, them) = match waiting {
            1 => ("1 entry waits".to_owned(), "it"),
            many => (format!("{many} entries wait"), "them"),
        };
        findings.push(DoctorFinding::advice(
            "store",
            format!("{entries} in the spool for a writer"),
            format!("'forge maintain' applies {them}"),
        ));
    }
    // For an encrypted store without its key, the error already says so.
    let is_reported = health.encrypted == Some(true) && !health.opens;
    // A store in a database cannot be sealed later.
    let is_unavoidable = |seals: SealStatus| is_in_database && seals == SealStatus::Unsealed;
    let seals = health.seals.filter(|seals| !is_reported && !is_unavoidable(*seals));
    findings.extend(seals.and_then(seal_finding));
    if health.tail_bytes.is_some_and(|bytes| bytes > LONG_TAIL_BYTES) {
        findings.push(DoctorFinding::advice(
            "store",
            "much of the journal is not in the index yet, so that every command reads it",
            "'forge maintain' brings the index up to date",
        ));
    }
    (health, compactions, findings)
}

/// Returns the finding about seals that are missing or cannot be checked.
fn seal_finding(seals: SealStatus) -> Option<DoctorFinding> {
    let finding = |what: &str, remedy| Some(DoctorFinding::problem("store", what, remedy));
    match seals {
        SealStatus::NoKey => finding(
            "its key is missing on this machine, or damaged: what is read cannot be verified, \
            and writes wait in the spool",
            "'forge key import' restores the key; 'forge adopt' accepts the store as it is",
        ),
        SealStatus::NoWitness => finding(
            "its witness is missing on this machine: a missing end cannot be noticed",
            "'forge key import' restores it from a copy; 'forge adopt' accepts the store as it is",
        ),
        SealStatus::Unsealed => Some(DoctorFinding::advice(
            "store",
            "it has no seals: anyone who can write to it can change it unnoticed",
            "'forge adopt' seals it",
        )),
        SealStatus::Sealed => None,
    }
}

fn unusable_store(error: &CommandError) -> DoctorFinding {
    let what = error.message_with_causes();
    let remedy = match (error.hints().first(), error.kind()) {
        (Some(hint), _) => hint.clone(),
        (None, CommandErrorKind::Unsupported) => {
            "use the forge that wrote it, or a newer one".to_owned()
        }
        (None, CommandErrorKind::Corrupt) => {
            "keep a copy of the directory before anything else; put a backup in its place"
                .to_owned()
        }
        (None, _) => "correct what the system reports".to_owned(),
    };
    DoctorFinding::problem("store", what, remedy)
}

/// Opens the store, describes it in `health`, and checks each session's head state against its
/// digest. Returns the compactions, and what is wrong with the store's version and database.
fn read(
    path: &Path,
    options: &Options,
    health: &mut StoreHealth,
) -> Result<(Vec<KnownCompaction>, Vec<DoctorFinding>), CommandError> {
    let key = Store::key_state(path, options)?;
    health.seals = Some(key.seal_status);
    health.encrypted = Some(key.encrypted);
    health.witnessed = key.witnessed;
    health.adopted_at = key.adopted.map(|(_, time)| time);
    let store = Store::open(path, options.clone().read_only(true))?;
    health.opens = true;
    health.unsealed = store.spool_status()?.unsealed.len() as u64;
    if let Some(database) = store.database() {
        let version = database.version().map_err(Error::from)?;
        // The other words say how the database was built.
        let version: Vec<_> = version.split_whitespace().take(2).collect();
        health.database = Some(format!("{} ({})", database.place(), version.join(" ")));
    }
    health.tail_bytes = Some(store.tail_bytes()?);
    let sessions = store.sessions()?;
    health.sessions = Some(sessions.len() as u64);
    let mut compactions = Vec::new();
    for summary in sessions {
        let session = store.session(&summary.info.id.to_string())?;
        session.check_digest(&session.head()?)?;
        let Some(agent_session) = summary.info.agent_session else { continue };
        let known = compaction::newest_compactions(&session, None)?.into_iter();
        let own = known.filter(|one| !one.is_copied());
        compactions.extend(own.map(|one| KnownCompaction {
            session: agent_session.clone(),
            time: one.checkpoint.time,
        }));
    }
    let mut findings = database_findings(&store)?;
    if key.read_only {
        health.writable = false;
        findings.push(DoctorFinding::problem(
            "store",
            "a later version of forge wrote it: hooks save nothing, reading still works",
            "use the forge that wrote it, or a newer one",
        ));
    }
    Ok((compactions, findings))
}

fn database_findings(store: &Store) -> Result<Vec<DoctorFinding>, CommandError> {
    let Some(database) = store.database() else { return Ok(Vec::new()) };
    let risks = database.risks().map_err(Error::from)?;
    let remedy = "docs/postgres.md says what a store in a database promises";
    let mut found: Vec<_> =
        risks.into_iter().map(|risk| DoctorFinding::advice("database", risk, remedy)).collect();
    if store.keeps_purged()? {
        found.push(DoctorFinding::advice(
            "database",
            "its files still hold rows that a purge has replaced",
            "'forge purge FILE --yes --vacuum', with the secret again, rewrites its tables; so does \
            VACUUM FULL by its administrator",
        ));
    }
    Ok(found)
}

/// Returns the number of bytes and files below a directory.
pub fn disk_usage(path: &Path) -> (u64, u64) {
    let Ok(entries) = fs::read_dir(path) else { return (0, 0) };
    entries.flatten().fold((0, 0), |(bytes, files), entry| {
        match entry.metadata() {
            Ok(about) if about.is_dir() => {
                let (more, inside) = disk_usage(&entry.path());
                (bytes + more, files + inside)
            }
            Ok(about) => (bytes + about.len(), files + 1),
            // It was removed during the count.
            Err(_) => (bytes, files),
        }
    })
}

fn count(folder: &Path) -> u64 {
    fs::read_dir(folder).map_or(0, |entries| entries.flatten().count() as u64)
}

/// Returns the generations of an index, oldest first: number, and size in bytes.
fn generations(index: &Path) -> Vec<(u64, u64)> {
    let Ok(entries) = fs::read_dir(index) else { return Vec::new() };
    let mut found: Vec<(u64, u64)> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (number, position) = name.split_once('-')?;
            u64::from_str_radix(position, 16).ok()?;
            Some((number.parse().ok()?, disk_usage(&entry.path()).0))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Whether files can be created and written in the places that a writer needs.
fn is_writable(path: &Path, is_in_database: bool) -> bool {
    let journal = path.join("journal");
    let places = [path, &journal, &journal.join("append.lock")];
    // The journal of a store in a database is not in its directory.
    let places = if is_in_database { &places[..1] } else { &places[..] };
    places.iter().all(|place| access(*place, Access::WRITE_OK).is_ok())
}

/// Returns the id of the process that holds a lock for longer than a write takes. `None` if there
/// is no such process, `Some(None)` if the system does not say which process it is.
fn holder(lock: &Path) -> Option<Option<u32>> {
    let file = plain_file::open(lock).ok()?;
    for _ in 0..TRIES {
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => thread::park_timeout(PAUSE),
            Ok(()) | Err(TryLockError::Error(_)) => return None,
        }
    }
    Some(LockHolder::of(&file).map(|holder| holder.pid))
}
