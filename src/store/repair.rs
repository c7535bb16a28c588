//! Repair: never in place. What can be saved is written to a new folder; what cannot is listed.

use super::{FORMAT_FILE, IGNORE_FILE, INDEX_FOLDER, JOURNAL_FOLDER, Store, private, write_new};
use crate::backend::journal::{self, Journal};
use crate::backend::rocks::{self, RocksIndex};
use crate::backend::spool::{SpoolFolder, folder_in};
use crate::backend::{self, Index, Spool};
use crate::engine::commit::random;
use crate::engine::maintain::refs_record;
use crate::engine::rebuild;
use crate::engine::salvage::{Salvage, salvage};
use crate::error::{Error, Result};
use crate::format::{Marker, MarkerError, Spooled, mend};
use crate::model::Timestamp;
use std::fs;
use std::io;
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
pub(super) fn rescue(path: &Path, now: Timestamp) -> Result<Salvage> {
    let index = rocks::rescue(&path.join(INDEX_FOLDER))?;
    let folder = path.join(JOURNAL_FOLDER);
    let (pieces, end) = journal::rescue(&folder, &|bytes, is_whole| mend(bytes, is_whole))?;
    let mut saved = salvage(index, pieces, end, now)?;
    if let Err(reason) = marker(path) {
        let (text, mended) = reason?;
        saved.mended += u64::from(mended);
        if !mended {
            saved.lost.push(format!("the store's own id and key ({text})"));
        }
    }
    for (name, bytes) in spooled(path)? {
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
fn spooled(path: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = folder_in(path);
    let spool = SpoolFolder::new(folder.clone());
    let mut found = Vec::new();
    for name in spool.names()? {
        found.extend(spool.read(&name)?.map(|bytes| (name, bytes)));
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

impl Store {
    /// Saves what can be saved of the store in `from` into a new store in `to`, which must not be there yet or be empty.
    /// `from` stays as it is. Takes about as much memory as the index has on disk.
    ///
    /// What was lost stays named: reading a revision that was lost, or a state that needs it, is an error that says so.
    /// A branch whose head cannot be made gets a new revision with the claims that are known.
    ///
    /// # Errors
    /// [`Error::NoStore`], [`Error::Corrupt`] if nothing can be saved, [`Error::StoreExists`], [`Error::Backend`].
    pub fn repair(from: &Path, to: &Path, now: Timestamp) -> Result<Repaired> {
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
        let saved = rescue(from, now)?;
        let text = match marker(from) {
            Ok(text) => text,
            Err(reason) => match reason? {
                (text, true) => text,
                (_, false) => Marker::new(random()?, random()?).encode(),
            },
        };
        let io = |action| backend::Error::io(action, to);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(to).map_err(io("make"))?;
        private(to, 0o700)?;
        let index = RocksIndex::new(to.join(INDEX_FOLDER));
        let mut applier = index
            .try_applier()?
            .ok_or_else(|| Error::Conflict(format!("somebody else is at {}", to.display())))?;
        rebuild::write(&mut *applier, saved.rows)?;
        applier.publish(saved.end)?;
        let first = refs_record(saved.refs).encode();
        drop(Journal::create_at(&to.join(JOURNAL_FOLDER), saved.end, &first)?);
        let spool = SpoolFolder::new(folder_in(to));
        let mut waiting = 0;
        for (name, bytes) in spooled(from)? {
            spool.put(&name, &bytes)?;
            if Spooled::decode(&bytes).is_ok() {
                waiting += 1;
            } else {
                spool.put_aside(&name)?;
            }
        }
        write_new(&to.join(IGNORE_FILE), b"*\n")?;
        // FORMAT makes the folder a store, so it comes last.
        write_new(&to.join(FORMAT_FILE), text.as_bytes())?;
        let synced =
            fs::File::open(to).and_then(|folder: fs::File| -> io::Result<()> { folder.sync_all() });
        synced.map_err(io("sync"))?;
        let Salvage { lost, mended, revisions, .. } = saved;
        Ok(Repaired { lost, mended, revisions, waiting })
    }
}
