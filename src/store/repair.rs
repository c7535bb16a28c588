//! Repair, never in place: what can be saved is written to a new folder; what cannot is listed.

use super::folder::{
    FORMAT_FILE, INDEX_FOLDER, JOURNAL_FOLDER, LOST_FILE, UNFINISHED_FILE, check_empty,
    check_others, is_folder_or_missing, list_odd, open_index, private, write_marker,
};
use super::format_marker::{MarkerState, find_cipher, read_marker_state};
use super::in_database::check_in_files;
use super::keyring::{Keyring, StoreTrust};
use super::{Options, Store};
use crate::backend::journal::{self, Journal, JournalWitness, SyncMark};
use crate::backend::rocks::{self, RepairedGeneration, RescuedIndex};
use crate::backend::spool::SpoolFolder;
use crate::backend::{
    self, Cipher, LogPosition, SealKey, SealMode, Spool, encrypted, files, plain_file,
};
use crate::engine::maintain::head_record;
use crate::engine::random::random;
use crate::engine::rebuild;
use crate::engine::salvage::{SalvagedStore, salvage};
use crate::engine::spool;
use crate::engine::verify::chain;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{FormatMarker, KeyFile, SpoolEntry, key, repair_bit};
use crate::model::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// How many revisions are complete in the new store.
    pub revisions: u64,
    /// How many places with a single wrong bit were corrected, using a stored hash.
    pub mended: u64,
    /// How many writes are in its spool.
    pub waiting: u64,
    /// What could not be saved, one line each.
    pub lost: Vec<String>,
}

/// Reads everything that can be saved of the store in this folder and its spool. `index_repair` has
/// the wrong bits of its index that were found before, if any. Writes nothing.
pub(super) fn rescue(
    path: &Path,
    known: &KnownKeys<'_>,
    index_repair: Option<RepairedGeneration>,
    now: Timestamp,
) -> Result<(SalvagedStore, Vec<RescuedWrite>)> {
    let (seals, cipher) = (known.seals, known.cipher);
    let correct_bit: journal::BitRepair<'_> = &|bytes, is_whole| repair_bit(bytes, is_whole);
    let odd = list_odd(path)?;
    let folder = path.join(INDEX_FOLDER);
    let mut index = if is_folder_or_missing(&folder) {
        rocks::rescue_with_repairs(&folder, seals, index_repair)?
    } else {
        RescuedIndex::default()
    };
    if let Some(cipher) = cipher {
        index = encrypted::decrypt_rescued(index, cipher, key::hidden, correct_bit);
    }
    let (breach, corrected_bits) = (index.breach.clone(), index.corrected_bits);
    let folder = path.join(JOURNAL_FOLDER);
    let witnessed = known.witnessed()?;
    let (pieces, end) = if is_folder_or_missing(&folder) {
        journal::rescue(&folder, seals, cipher, correct_bit)?
    } else {
        (Vec::new(), 0)
    };
    let marked = read_marker_state(path)?;
    let saved = salvage(index, pieces, end.max(witnessed), now);
    let mut saved = saved.map_err(|error| match (&marked, cipher) {
        (MarkerState::Lost(_), None) => hinted(error),
        _ => error,
    })?;
    saved.corrected_bits += corrected_bits;
    saved.lost.extend(odd);
    if let Some(breach) = breach {
        saved.lost.push(format!(
            "proof that the index is unchanged: {breach}; its content was saved unverified"
        ));
    }
    match marked {
        MarkerState::Valid(_) => {}
        MarkerState::Corrected(_) => saved.corrected_bits += 1,
        MarkerState::Lost(why) => {
            saved.lost.push(format!("the id and key in FORMAT, which {why}"));
        }
    }
    if let Err(error) = read_losses(path) {
        saved.lost.push(format!("how many losses an earlier repair listed: {}", chain(&error)));
    }
    let kept = spooled(&known.spool(path), &mut saved)?;
    saved.lost.sort();
    saved.lost.dedup();
    Ok((saved, kept))
}

/// The known keys of a store, and the keyring.
pub(super) struct KnownKeys<'a> {
    pub(super) seals: &'a SealMode,
    pub(super) cipher: Option<&'a Cipher>,
    pub(super) keyring: Option<&'a Path>,
    pub(super) store: [u8; 16],
}

impl KnownKeys<'_> {
    /// Returns the store's keyring, if its key is in it.
    fn keyring(&self) -> Option<Keyring> {
        self.keyring.filter(|_| self.seals.key().is_some()).map(Keyring::new)
    }

    pub(super) fn spool(&self, path: &Path) -> SpoolFolder {
        let witness = self.keyring().map(|keyring| keyring.spool(&self.store));
        let spool = SpoolFolder::new(path).with_seals(self.seals.clone()).with_witness(witness);
        spool.with_cipher(self.cipher.cloned())
    }

    /// Returns the position up to which the store's witness has seen the journal.
    fn witnessed(&self) -> Result<LogPosition> {
        let seen = self
            .keyring()
            .map(|keyring| keyring.witnessed_mark(&self.store))
            .transpose()?
            .flatten();
        Ok(seen.map_or(0, |mark| mark.position))
    }
}

/// Adds to an error that unreadable data may be encrypted, for a store whose FORMAT is lost.
fn hinted(error: Error) -> Error {
    match error {
        Error::Corrupt { what, source } => {
            let source = format!(
                "{source}. FORMAT, which would say whether the store is encrypted, is lost: if it is, repair it where its key is"
            );
            Error::Corrupt { what, source: source.into() }
        }
        other => other,
    }
}

/// A write in the spool of a damaged store.
pub(super) struct RescuedWrite {
    name: String,
    bytes: Vec<u8>,
    /// Whether it can be read. Then it is put into the spool of the repaired store; otherwise it is
    /// only kept beside it.
    is_whole: bool,
}

/// Reads the writes in the spool: with single wrong bits corrected, and also those that are stored
/// under the name of another write. A write that cannot be read is listed as lost, unless an
/// earlier repair listed it.
fn spooled(spool: &SpoolFolder, saved: &mut SalvagedStore) -> Result<Vec<RescuedWrite>> {
    let (mut found, mut broken, mut misnamed) = (BTreeMap::new(), Vec::new(), Vec::new());
    let mut names = spool.kept_names()?;
    names.retain(|name| !saved.holds(name));
    for name in names {
        let is_whole = |bytes: &[u8]| spool::is_whole(&name, bytes);
        let problem = match spool.read(&name, &is_whole) {
            Ok(None) => continue,
            Ok(Some(bytes)) if is_whole(&bytes) => {
                found.insert(name, bytes);
                continue;
            }
            Ok(Some(bytes)) => match SpoolEntry::decode(&bytes) {
                Ok(other) => {
                    misnamed.push((other.operation.id.to_string(), bytes));
                    "its file holds another write".to_owned()
                }
                Err(error) => error.to_string(),
            },
            Err(error @ backend::Error::Breach { .. }) => error.to_string(),
            Err(error) => odd_cause(error)?,
        };
        if let Some(bytes) = spool.repaired(&name, &repair_bit, &is_whole)? {
            saved.corrected_bits += 1;
            found.insert(name, bytes);
        } else {
            broken.push((name, problem));
        }
    }
    for (name, bytes) in misnamed {
        if !saved.holds(&name) {
            found.entry(name).or_insert(bytes);
        }
    }
    let kept = |(name, bytes)| RescuedWrite { name, bytes, is_whole: true };
    let is_found = |name: &str| found.contains_key(name);
    broken.retain(|(name, _)| !is_found(name));
    let mut left = Vec::with_capacity(broken.len());
    for (name, problem) in broken {
        if !is_renamed(spool, &name)? {
            left.push((name, problem));
        }
    }
    let mut all: Vec<RescuedWrite> = found.into_iter().map(kept).collect();
    for (name, problem) in left {
        saved.lost.push(format!("the write '{name}' in the spool: {problem}"));
        // Keep the bytes as they are stored: a new seal would declare an unverified write valid.
        let stored = spool.stored(&name)?.into_iter().next();
        all.extend(stored.map(|(_, bytes)| RescuedWrite { name, bytes, is_whole: false }));
    }
    let aside = match spool.set_aside() {
        // The folder is listed as odd already.
        Err(error) => odd_cause(error).map(|_| Vec::new())?,
        Ok(aside) => aside,
    };
    for name in aside {
        match spool.read_aside(&name) {
            Ok(bytes) => all.push(RescuedWrite { name, bytes, is_whole: false }),
            Err(error) => {
                let problem = odd_cause(error)?;
                saved.lost.push(format!("the damaged write '{name}' in the spool: {problem}"));
            }
        }
    }
    Ok(all)
}

/// Returns why a file cannot be read, if the reason is its type or size. Other errors may be
/// temporary, and are returned as errors.
fn odd_cause(error: backend::Error) -> Result<String> {
    match error {
        backend::Error::Io { source, .. } if plain_file::is_no_file(&source) => {
            Ok(source.to_string())
        }
        other => Err(other.into()),
    }
}

/// Returns whether the files of this name contain another write, which has no file under its own
/// name: then no write of this name ever existed.
fn is_renamed(spool: &SpoolFolder, name: &str) -> Result<bool> {
    let stored = spool.stored(name)?;
    let own = |path: &Path, bytes: &[u8]| {
        let other = SpoolEntry::decode(bytes).ok()?;
        Some(path.with_file_name(other.operation.id.to_string()))
    };
    Ok(!stored.is_empty()
        && stored.iter().all(|(path, bytes)| own(path, bytes).is_some_and(|own| !own.exists())))
}

type SealsAndCipher = (SealMode, Option<Cipher>);

/// Reads the old store's FORMAT, or makes a new one if it is lost, and finds the store's keys.
fn beginning(from: &Path, keyring: Option<&Path>) -> Result<(FormatMarker, SealsAndCipher)> {
    let marker = match read_marker_state(from)? {
        MarkerState::Valid(marker) | MarkerState::Corrected(marker) => marker,
        MarkerState::Lost(_) => {
            let (marker, cipher) =
                (FormatMarker::new(random()?, random()?), find_cipher(from, keyring)?);
            let marker = if cipher.is_some() { marker.encrypted() } else { marker };
            return Ok((marker, (SealMode::Unknown, cipher)));
        }
    };
    let options =
        Options { keyring: keyring.map(Path::to_owned), read_only: true, ..Options::default() };
    match StoreTrust::for_store(from, &marker, &options) {
        Ok(trust) => Ok((marker, (trust.seals, trust.cipher))),
        Err(error) if error.kind() == ErrorKind::Forged => {
            let trust = StoreTrust::unverified(from, &marker, &options)?;
            Ok((marker.sealed(), (SealMode::Unknown, trust.cipher)))
        }
        Err(error) => Err(error),
    }
}

/// Makes the marker and the keys of the new store. If the old one was sealed, the new one has a new
/// id and a new key, or no seals if there is no keyring; if it was encrypted, also a new cipher. A
/// new id also begins a new witness: the old one may have seen more than could be saved.
fn new_keys(
    marker: FormatMarker,
    keyring: Option<&Path>,
    end: LogPosition,
    now: Timestamp,
) -> Result<(FormatMarker, SealsAndCipher, Option<JournalWitness>)> {
    if !marker.is_sealed() {
        return Ok((marker, (SealMode::Absent, None), None));
    }
    let is_encrypted = marker.is_encrypted();
    let marker = FormatMarker::new(random()?, marker.key);
    let Some(keyring) = keyring.map(Keyring::new) else {
        return Ok((marker, (SealMode::Absent, None), None));
    };
    let (secret, cipher) = (random()?, is_encrypted.then(random).transpose()?);
    let adopted = Some((end, now));
    let file = KeyFile { store: marker.id, secret, cipher, adopted, witness: None };
    keyring.add(&file, &SyncMark { position: 0, hash: [0; 32] })?;
    let seals = SealMode::Keyed(SealKey::new(&secret, &marker.id, &marker.key));
    let witness = keyring.witness(&marker.id)?;
    let marker = if is_encrypted { marker.encrypted() } else { marker.sealed() };
    Ok((marker, (seals, cipher.as_ref().map(Cipher::new)), witness))
}

/// What an earlier repair of a store could not save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairLosses {
    /// When the store was repaired.
    pub at: Timestamp,
    /// How many losses the repair listed.
    pub count: u64,
}

/// Writes how much was lost: without names, because they may be secret in an encrypted store.
fn write_losses(store: &Path, losses: RepairLosses) -> Result<()> {
    let text = format!("{} {}\n", losses.at.as_micros(), losses.count);
    files::replace(&store.join(LOST_FILE), &store.join(UNFINISHED_FILE), text.as_bytes())?;
    Ok(())
}

pub(super) fn read_losses(store: &Path) -> Result<Option<RepairLosses>> {
    const MAX_BYTES: u64 = 64;
    let file = store.join(LOST_FILE);
    let Some(bytes) = plain_file::read_if_there(&file, MAX_BYTES)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    let mut numbers = text.split_ascii_whitespace();
    let at = numbers.next().and_then(|at| at.parse().ok()).map(Timestamp::from_micros);
    let count = numbers.next().and_then(|count| count.parse().ok());
    Ok(at.zip(count).map(|(at, count)| RepairLosses { at, count }))
}

impl Store {
    /// Returns what an earlier repair of this store could not save, until
    /// [`Store::acknowledge_losses`].
    pub fn repair_losses(&self) -> Result<Option<RepairLosses>> {
        self.path().map_or(Ok(None), read_losses)
    }

    /// Records that the losses of an earlier repair were acknowledged. Returns the losses.
    pub fn acknowledge_losses(&self) -> Result<Option<RepairLosses>> {
        let losses = self.repair_losses()?;
        if let (Some(path), Some(_)) = (self.path(), &losses) {
            files::remove(&path.join(LOST_FILE))?;
        }
        Ok(losses)
    }

    /// Saves what can be saved of the store in `from` into a new store in `to`, which must not
    /// exist yet or be empty. `from` is not changed. If the store is sealed and its key is in this
    /// keyring, only records with a valid seal are saved. The new store of a sealed one has a new
    /// id and a new key, or no seals if there is no keyring; that of an unsealed one keeps the id.
    /// Takes about as much memory as the index has on disk.
    ///
    /// Lost data stays listed: reading a lost revision, or a state that needs it, returns an error
    /// that says so. A branch whose head cannot be computed gets a new revision with the claims
    /// that are known.
    ///
    /// # Errors
    /// [`Error::NoStore`], [`Error::Encrypted`] if the store is encrypted and its key is not in
    /// this keyring, [`Error::Corrupt`] if nothing can be saved, [`Error::StoreExists`],
    /// [`Error::Backend`].
    pub fn repair(
        from: &Path,
        to: &Path,
        now: Timestamp,
        keyring: Option<&Path>,
    ) -> Result<RepairReport> {
        let instead = "restore a backup of the database, or import a bundle into a new store";
        check_in_files(from, "a repair", instead)?;
        let marked = from.join(FORMAT_FILE).symlink_metadata().is_ok();
        if !from.join(JOURNAL_FOLDER).exists() && !marked {
            return Err(Error::NoStore { path: from.to_owned() });
        }
        check_others(from)?;
        check_empty(to, "repaired store")?;
        let (marker, (seals, cipher)) = beginning(from, keyring)?;
        let known = KnownKeys { seals: &seals, cipher: cipher.as_ref(), keyring, store: marker.id };
        let (saved, kept) = rescue(from, &known, None, now)?;
        let (marker, (seals, cipher), witness) = new_keys(marker, keyring, saved.end, now)?;
        files::make_private_folders(to)?;
        private(to, 0o700)?;
        let index = open_index(to, &seals, cipher.clone(), None);
        let mut applier = index
            .try_writer()?
            .ok_or_else(|| Error::Conflict(format!("another process uses {}", to.display())))?;
        rebuild::write(&mut *applier, saved.rows)?;
        applier.publish(saved.end)?;
        let first = head_record(saved.refs.head()).encode();
        drop(Journal::create_at(
            &to.join(JOURNAL_FOLDER),
            saved.end,
            &first,
            (seals.clone(), cipher.clone()),
            witness,
        )?);
        let known = KnownKeys { seals: &seals, cipher: cipher.as_ref(), keyring, store: marker.id };
        let spool = known.spool(to);
        let mut waiting = 0;
        for RescuedWrite { name, bytes, is_whole } in kept {
            if is_whole {
                spool.put(&name, &bytes)?;
                waiting += 1;
            } else {
                spool.keep_aside(&name, &bytes)?;
            }
        }
        let before = read_losses(from).unwrap_or_default();
        let count = saved.lost.len() as u64 + before.map_or(0, |before| before.count);
        if count > 0 {
            write_losses(to, RepairLosses { at: now, count })?;
        }
        // FORMAT makes the folder a store, so it comes last.
        write_marker(to, marker.encode().as_bytes())?;
        let SalvagedStore { lost, corrected_bits, revisions, .. } = saved;
        Ok(RepairReport { lost, mended: corrected_bits, revisions, waiting })
    }
}
