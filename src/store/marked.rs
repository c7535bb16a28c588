//! What a store's FORMAT says, and what is known of a store whose FORMAT is damaged.

use super::folder::{FORMAT_FILE, INDEX_FOLDER, JOURNAL_FOLDER};
use super::keyring::Keyring;
use crate::backend::journal::{self, Piece};
use crate::backend::{Cipher, Frame, Place, Seals, rocks};
use crate::error::Result;
use crate::format::{Marker, MarkerError, Record, mend};
use std::fs;
use std::path::Path;

/// One record that a key opens tells as much as all of them.
const MANY: usize = 16;

/// FORMAT as it is found.
pub(super) enum Marked {
    Right(Marker),
    /// One bit of it is wrong: what its own checksum says that it was.
    Mended(Marker),
    /// Nobody knows what it said; and why.
    Lost(String),
}

/// What the FORMAT of the store in this folder says.
///
/// # Errors
/// If it is one that this version of forge cannot use.
pub(super) fn marked(path: &Path) -> Result<Marked> {
    let mut bytes = match fs::read(path.join(FORMAT_FILE)) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Marked::Lost(format!("cannot be read: {error}"))),
    };
    let wrong = match decode(&bytes) {
        Ok(marker) => return Ok(Marked::Right(marker)),
        Err(wrong) => wrong,
    };
    if mend(&mut bytes, &|bytes| decode(bytes).is_ok()) {
        return Ok(Marked::Mended(decode(&bytes)?));
    }
    match wrong {
        MarkerError::Foreign(reason) => Ok(Marked::Lost(reason)),
        other => Err(other.into()),
    }
}

fn decode(bytes: &[u8]) -> Result<Marker, MarkerError> {
    // What is no text matches no checksum.
    Marker::decode(&String::from_utf8_lossy(bytes))
}

/// What the store in this folder, whose FORMAT is lost, is encrypted with, if it is and the key is here. Nothing but FORMAT says
/// so, or names the key: it is the one that opens what was written.
pub(super) fn cipher_found(path: &Path, keyring: Option<&Path>) -> Result<Option<Cipher>> {
    let Some(keyring) = keyring else { return Ok(None) };
    let ciphers = Keyring::new(keyring).ciphers()?;
    let (pieces, _) =
        journal::rescue(&path.join(JOURNAL_FOLDER), &Seals::Unknown, None, &|_, _| false)?;
    let records = pieces.into_iter().filter_map(|piece| match piece {
        Piece::Record(frame, _) => Some(frame),
        Piece::Lost { .. } => None,
    });
    let records: Vec<Frame> = records.take(MANY).collect();
    if records.iter().any(|frame| Record::decode(&frame.payload).is_ok()) {
        return Ok(None);
    }
    let opens_record = |cipher: &Cipher, frame: &Frame| {
        cipher.open(Place::Record(frame.position), &frame.payload).is_ok()
    };
    let opens_one = |cipher: &&Cipher| records.iter().any(|frame| opens_record(cipher, frame));
    if let Some(cipher) = ciphers.iter().find(opens_one) {
        return Ok(Some(cipher.clone()));
    }
    // Nothing of the journal is whole.
    let index = rocks::rescue(&path.join(INDEX_FOLDER), &Seals::Unknown)?;
    let opens_row = |cipher: &&Cipher| {
        let mut rows = index.rows.iter();
        rows.any(|((table, key), value)| cipher.open(Place::Row(*table, key), value).is_ok())
    };
    Ok(ciphers.iter().find(opens_row).cloned())
}
