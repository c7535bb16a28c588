//! Verifies a store, and rebuilds its derived data.

use super::folder::{
    FORMAT_FILE, INDEX_FOLDER, JOURNAL_FOLDER, LOST_FILE, check_files, open_index, read_marker,
};
use super::format_marker::{MarkerState, find_cipher, read_marker_state};
use super::keyring::StoreTrust;
use super::repair::{KnownKeys, read_losses, rescue};
use super::{Options, SealStatus, SpoolStatus, Store};
use crate::backend::journal::Journal;
use crate::backend::spool::SpoolFolder;
use crate::backend::{Spool, rocks};
use crate::engine::rebuild::RebuildCounts;
use crate::engine::spool;
use crate::engine::verify::{
    INDEX, VerifyCounts, VerifyDepth, VerifyFinding, VerifyFindings, chain,
};
use crate::error::{ErrorKind, Result};
use crate::format::{FormatMarker, repair_bit};
use crate::model::Timestamp;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

const UNSEALED: &str = "it was not written with the store's key";

/// The overall result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyOutcome {
    /// Everything that was checked is intact.
    Clean,
    /// Something is damaged, but can be rebuilt or corrected completely.
    Repairable,
    /// Some data is lost.
    Loss,
    /// Some data was not written by the holder of the store's key.
    Forged,
}

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// The overall result.
    pub outcome: VerifyOutcome,
    /// What is damaged.
    pub findings: Vec<VerifyFinding>,
    /// What a repair could not save, one line for each.
    pub lost: Vec<String>,
    /// How much was checked.
    pub checked: VerifyCounts,
    /// Revisions and deltas that an earlier repair listed as lost.
    pub lost_before: u64,
    /// How many losses an earlier repair listed, until [`Store::acknowledge_losses`].
    pub lost_in_repair: Option<u64>,
    /// The state of the spool.
    pub waiting: SpoolStatus,
    /// The seal status. All checked seals are valid, unless a finding says otherwise.
    pub seal_status: SealStatus,
    /// Whether the store is encrypted.
    pub encrypted: bool,
}

impl Store {
    /// Verifies the store in this folder, including its seals if its key is in this keyring. Writes
    /// nothing, and works on stores that cannot be opened.
    ///
    /// # Errors
    /// [`crate::error::Error::NoStore`] if there is none; [`crate::error::Error::Marker`] if it
    /// needs another version of forge; [`crate::error::Error::Encrypted`] if it is encrypted and
    /// its key is not in this keyring; [`crate::error::Error::Corrupt`] if it contains a link.
    /// Other damage is reported as a finding.
    pub fn verify(
        path: &Path,
        depth: VerifyDepth,
        now: Timestamp,
        keyring: Option<&Path>,
    ) -> Result<VerifyReport> {
        Self::verify_with(path, depth, now, (keyring, true))
    }

    /// Verifies a store like [`Store::verify`]. If `checks_seals` is false, its seals and its
    /// witness are not checked.
    pub(super) fn verify_with(
        path: &Path,
        depth: VerifyDepth,
        now: Timestamp,
        (keyring, checks_seals): (Option<&Path>, bool),
    ) -> Result<VerifyReport> {
        let mut findings = VerifyFindings::default();
        if path.join(FORMAT_FILE).symlink_metadata().is_ok() || path.join(JOURNAL_FOLDER).exists() {
            check_files(path)?;
        }
        let options =
            Options { read_only: true, keyring: keyring.map(Path::to_owned), ..Options::default() };
        let found = read_marker_state(path)?;
        if matches!(found, MarkerState::Corrected(_)) {
            findings.add_primary(FORMAT_FILE, &"one bit of it is wrong");
        }
        let (marker, trust) = match found {
            MarkerState::Lost(why) => {
                if !path.join(JOURNAL_FOLDER).exists() {
                    // Nothing else shows that this is a store: return the same error as opening it.
                    read_marker(path)?;
                }
                findings.add_primary(FORMAT_FILE, &format!("it {why}"));
                let trust = StoreTrust::with_cipher_only(find_cipher(path, keyring)?);
                (FormatMarker::new([0; 16], [0; 32]), trust)
            }
            MarkerState::Valid(marker) | MarkerState::Corrected(marker) => {
                let trust = match StoreTrust::for_store(path, &marker, &options) {
                    Err(error) if error.kind() == ErrorKind::Forged => {
                        findings.add_unreadable(FORMAT_FILE, &error);
                        StoreTrust::unverified(path, &marker, &options)?
                    }
                    Ok(_) if !checks_seals => StoreTrust::unverified(path, &marker, &options)?,
                    trust => trust?,
                };
                (marker, trust)
            }
        };
        let (seal_status, store) = (trust.seal_status, marker.id);
        let (seals, cipher) = (trust.seals.clone(), trust.cipher.clone());
        let mut waiting = SpoolStatus::default();
        match Journal::open_read_only(&path.join(JOURNAL_FOLDER)) {
            Err(error) => findings.add_primary("the journal", &chain(&error.into())),
            Ok(journal) => {
                let journal = journal.with_seals(trust.seals.clone(), trust.witness);
                let journal = journal.with_cipher(trust.cipher.clone());
                // The list of files that were verified before is ignored: all are checked.
                let index = open_index(path, &trust.seals, trust.cipher.clone(), None);
                let about = (seal_status, trust.seals, trust.cipher);
                let assembled =
                    Self::assemble(Arc::new(journal), index, marker, options, about, Some(path));
                assembled.engine.verify(depth, &mut findings);
                match assembled.spool_status() {
                    Ok(known) => waiting = known,
                    Err(error) => findings.add_primary("the spool", &chain(&error)),
                }
            }
        }
        let known = KnownKeys { seals: &seals, cipher: cipher.as_ref(), keyring, store };
        add_spool_findings(&known.spool(path), &waiting, &mut findings)?;
        let losses = read_losses(path).unwrap_or_else(|error| {
            findings.add_primary(LOST_FILE, &chain(&error));
            None
        });
        // If correcting single bits gives the sealed content, it is damage and not a forgery: an
        // attacker gains nothing by such a change.
        let only_index = findings.forged == [INDEX];
        let index = path.join(INDEX_FOLDER);
        let index_repair = if only_index { rocks::find_repairs(&index, &seals)? } else { None };
        if index_repair.is_some() {
            findings.add_primary(INDEX, &"single bits differ from what was sealed");
            findings.forged.clear();
        }
        let VerifyFindings { found, checked, lost_before, forged } = findings;
        let mut lost = Vec::new();
        let is_derived = found.iter().all(|finding| finding.derived);
        if !is_derived || !forged.is_empty() {
            match rescue(path, &known, index_repair, now) {
                Ok((rescued, _)) => lost = rescued.lost,
                Err(error) => lost.push(chain(&error)),
            }
        }
        let encrypted = cipher.is_some();
        Ok(VerifyReport {
            outcome: outcome(&found, &forged, lost.is_empty()),
            findings: found,
            lost,
            checked,
            lost_before,
            lost_in_repair: losses.map(|losses| losses.count),
            waiting,
            seal_status,
            encrypted,
        })
    }

    /// Rebuilds every derived table and every keyframe from primary data. Takes about as much
    /// memory as the index takes on disk. Waits at most [`Options::lock_timeout`] for other
    /// processes that hold the index.
    ///
    /// # Errors
    /// [`crate::error::Error::Backend`], which names the holder, if the lock is held for longer;
    /// [`crate::error::Error::Corrupt`] if primary data is damaged: then nothing has changed. Fails
    /// if the store cannot be written.
    pub fn rebuild(&self) -> Result<RebuildCounts> {
        self.engine.rebuild()
    }
}

/// Returns the outcome of a check with these findings and forged parts. `is_repairable` says that a
/// repair would lose nothing.
pub(super) const fn outcome(
    found: &[VerifyFinding],
    forged: &[String],
    is_repairable: bool,
) -> VerifyOutcome {
    if found.is_empty() {
        VerifyOutcome::Clean
    } else if !forged.is_empty() {
        VerifyOutcome::Forged
    } else if is_repairable {
        VerifyOutcome::Repairable
    } else {
        VerifyOutcome::Loss
    }
}

/// Adds what is wrong with the writes in this spool. `waiting` says which ones cannot be read.
pub(super) fn add_spool_findings(
    spool: &SpoolFolder,
    waiting: &SpoolStatus,
    findings: &mut VerifyFindings,
) -> Result<()> {
    let place = |name: &str| format!("the write '{name}' in the spool");
    for (name, problem) in &waiting.damaged {
        let is_acknowledged = spool.is_acknowledged(name);
        let is_whole = |bytes: &[u8]| spool::is_whole(name, bytes);
        if is_acknowledged && spool.repaired(name, &repair_bit, &is_whole)?.is_none() {
            findings.forged.push(place(name));
        }
        findings.add_primary(place(name), problem);
    }
    for name in &waiting.unsealed {
        let is_whole = |bytes: &[u8]| spool::is_whole(name, bytes);
        if spool.repaired(name, &repair_bit, &is_whole)?.is_some() {
            findings.add_primary(place(name), &"one bit differs from what was sealed");
        } else {
            findings.forged.push(place(name));
            findings.add_primary(place(name), &UNSEALED);
        }
    }
    for name in spool.names()? {
        let is_whole = |bytes: &[u8]| spool::is_whole(&name, bytes);
        if spool.read(&name, &is_whole).is_ok_and(|bytes| bytes.is_some_and(|it| is_whole(&it))) {
            for (folder, problem) in spool.flaws(&name, &is_whole)? {
                findings.add_derived(format!("the write '{name}' in {folder}/"), &problem);
            }
        }
    }
    findings.lost_before += waiting.set_aside.len() as u64;
    Ok(())
}
