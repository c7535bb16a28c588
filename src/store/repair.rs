//! Repair: never in place. What can be saved is written to a new folder; what cannot is listed.

use super::keyring::{Keyring, Trust};
use super::{FORMAT_FILE, INDEX_FOLDER, JOURNAL_FOLDER, Options, Store, found, private};
use crate::backend::journal::{self, Journal, Mark, Witness};
use crate::backend::rocks;
use crate::backend::spool::{SpoolFolder, folder_in};
use crate::backend::{self, Index, Position, SealKey, Seals, Spool};
use crate::engine::commit::random;
use crate::engine::maintain::refs_record;
use crate::engine::rebuild;
use crate::engine::salvage::{Salvage, salvage};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{KeyFile, Marker, MarkerError, Spooled, mend};
use crate::model::Timestamp;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// What could not be saved, each in a line.
    pub lost: Vec<String>,
    /// How many places had a single wrong bit that was put right, since a hash says what was there.
    pub mended: u64,
    /// How many revisions are whole in the new store.
    pub revisions: u64,
    /// How many writes wait in its spool.
    pub waiting: u64,
}

/// All that can be saved of the store in this folder. Writes nothing.
pub(super) fn rescue(path: &Path, seals: &Seals, now: Timestamp) -> Result<Salvage> {
    let index = rocks::rescue(&path.join(INDEX_FOLDER), seals)?;
    let breach = index.breach.clone();
    let folder = path.join(JOURNAL_FOLDER);
    let (pieces, end) = journal::rescue(&folder, seals, &|bytes, is_whole| mend(bytes, is_whole))?;
    let mut saved = salvage(index, pieces, end, now)?;
    if let Some(breach) = breach {
        saved
            .lost
            .push(format!("proof of what the index held: {breach}; it was believed as it is"));
    }
    if let Err(reason) = marker(path) {
        let (text, mended) = reason?;
        saved.mended += u64::from(mended);
        if !mended {
            saved.lost.push(format!("the store's own id and key ({text})"));
        }
    }
    for (name, bytes) in spooled(path, seals)? {
        if Spooled::decode(&bytes).is_err() {
            saved.lost.push(format!("the write '{name}' in the spool"));
        }
    }
    Ok(saved)
}

type Mended = (String, bool);

/// The marker, or the text to be written in its place and whether that was put right.
fn marker(path: &Path) -> Result<String, Result<Mended>> {
    let is_right =
        |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| Marker::decode(text).is_ok());
    let mut bytes = match fs::read(path.join(FORMAT_FILE)) {
        Ok(bytes) => bytes,
        Err(error) => return Err(Ok((error.to_string(), false))),
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match Marker::decode(&text) {
        Ok(_) => Ok(text),
        Err(_) if mend(&mut bytes, &is_right) => {
            Err(Ok((String::from_utf8_lossy(&bytes).into_owned(), true)))
        }
        Err(MarkerError::Foreign(reason)) => Err(Ok((format!("FORMAT {reason}"), false))),
        Err(other) => Err(Err(other.into())),
    }
}

/// The files of the spool by name, those that were put aside too, with a wrong bit put right.
fn spooled(path: &Path, seals: &Seals) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = folder_in(path);
    let spool = SpoolFolder::new(folder.clone()).with_seals(seals.clone());
    let mut found = Vec::new();
    for name in spool.names()? {
        match spool.read(&name) {
            Ok(bytes) => found.extend(bytes.map(|bytes| (name, bytes))),
            // Sealing it would vouch for it.
            Err(backend::Error::Breach { .. }) => found.push((name, Vec::new())),
            Err(error) => return Err(error.into()),
        }
    }
    for name in spool.set_aside()? {
        let file = folder.join(format!("{name}.damaged"));
        let bytes = fs::read(&file).map_err(backend::Error::io("read", &file))?;
        found.push((name, bytes));
    }
    for (_, bytes) in &mut found {
        let is_right = |bytes: &[u8]| Spooled::decode(bytes).is_ok();
        if !is_right(bytes) {
            mend(bytes, &is_right);
        }
    }
    Ok(found)
}

/// What the old store's FORMAT says, or would say, and what seals it bears.
fn beginning(from: &Path, keyring: Option<&Path>) -> Result<(Marker, Seals)> {
    let text = match marker(from) {
        Ok(text) => text,
        Err(reason) => match reason? {
            (text, true) => text,
            (_, false) => return Ok((Marker::new(random()?, random()?), Seals::Unknown)),
        },
    };
    let marker = Marker::decode(&text)?;
    let options =
        Options { keyring: keyring.map(Path::to_owned), read_only: true, ..Options::default() };
    match Trust::of(from, &marker, &options) {
        Ok(trust) => Ok((marker, trust.seals)),
        Err(error) if error.kind() == ErrorKind::Forged => Ok((marker.sealed(), Seals::Unknown)),
        Err(error) => Err(error),
    }
}

/// The marker and the seals of the new store. A sealed one becomes another store: with a key of its own, if there is a
/// keyring, else without seals. What was saved may not be all that the old one's witness saw.
fn anew(
    marker: Marker,
    keyring: Option<&Path>,
    end: Position,
    now: Timestamp,
) -> Result<(Marker, (Seals, Option<Witness>))> {
    if !marker.is_sealed() {
        return Ok((marker, (Seals::Absent, None)));
    }
    let marker = Marker::new(random()?, marker.key);
    let Some(keyring) = keyring.map(Keyring::new) else {
        return Ok((marker, (Seals::Absent, None)));
    };
    let secret = random()?;
    let file = KeyFile { store: marker.id, secret, adopted: Some((end, now)), witness: None };
    keyring.add(&file, &Mark { position: 0, hash: [0; 32] })?;
    let seals = Seals::Keyed(SealKey::new(&secret, &marker.id, &marker.key));
    let witness = keyring.witness(&marker.id)?;
    Ok((marker.sealed(), (seals, witness)))
}

impl Store {
    /// Saves what can be saved of the store in `from` into a new store in `to`, which must not be there yet or be empty.
    /// `from` stays as it is. Of a sealed store whose key is in this keyring only records that bear its seal are saved. The
    /// new one is another store: it has an id and a key of its own, or no seals without a keyring. Takes about as much memory as the index has on disk.
    ///
    /// What was lost stays named: reading a revision that was lost, or a state that needs it, is an error that says so.
    /// A branch whose head cannot be made gets a new revision with the claims that are known.
    ///
    /// # Errors
    /// [`Error::NoStore`], [`Error::Corrupt`] if nothing can be saved, [`Error::StoreExists`], [`Error::Backend`].
    pub fn repair(
        from: &Path,
        to: &Path,
        now: Timestamp,
        keyring: Option<&Path>,
    ) -> Result<Repaired> {
        if !from.join(JOURNAL_FOLDER).exists() && !from.join(FORMAT_FILE).exists() {
            return Err(Error::NoStore { path: from.to_owned() });
        }
        if to.join(FORMAT_FILE).exists() {
            return Err(Error::StoreExists { path: to.to_owned() });
        }
        let listed = fs::read_dir(to).map(|mut entries| entries.next().is_some());
        if listed.unwrap_or(false) {
            return Err(Error::invalid(format!(
                "{} is not empty: name another folder for the repaired store",
                to.display()
            )));
        }
        let (marker, seals) = beginning(from, keyring)?;
        let saved = rescue(from, &seals, now)?;
        let waiting_before = spooled(from, &seals)?;
        let (marker, about) = anew(marker, keyring, saved.end, now)?;
        let (seals, witness) = about;
        let io = |action| backend::Error::io(action, to);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(to).map_err(io("make"))?;
        private(to, 0o700)?;
        let index = super::index(to, &seals, None);
        let mut applier = index
            .try_applier()?
            .ok_or_else(|| Error::Conflict(format!("somebody else is at {}", to.display())))?;
        rebuild::write(&mut *applier, saved.rows)?;
        applier.publish(saved.end)?;
        let first = refs_record(saved.refs).encode();
        drop(Journal::create_at(
            &to.join(JOURNAL_FOLDER),
            saved.end,
            &first,
            seals.clone(),
            witness,
        )?);
        let spool = SpoolFolder::new(folder_in(to)).with_seals(seals);
        let mut waiting = 0;
        for (name, bytes) in waiting_before {
            spool.put(&name, &bytes)?;
            if Spooled::decode(&bytes).is_ok() {
                waiting += 1;
            } else {
                spool.put_aside(&name)?;
            }
        }
        // FORMAT makes the folder a store, so it comes last.
        found(to, marker.encode().as_bytes())?;
        let Salvage { lost, mended, revisions, .. } = saved;
        Ok(Repaired { lost, mended, revisions, waiting })
    }
}
