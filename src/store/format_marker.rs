//! Reading a store's FORMAT, and finding the cipher of a store whose FORMAT is damaged.

use super::folder::{FORMAT_FILE, INDEX_FOLDER, JOURNAL_FOLDER, MAX_MARKER_BYTES};
use super::keyring::Keyring;
use crate::backend::rocks::{KeyedRow, RescuedIndex};
use crate::backend::{Cipher, EncryptionContext, LogFrame, SealMode, journal, plain_file, rocks};
use crate::error::{Error, Result};
use crate::format::{FormatMarker, MarkerError, Record, is_whole, key, repair_bit};
use std::path::Path;

/// How many records or rows are tried with each key. If a key opens one of them, it is the key of
/// the store. A damaged one proves nothing, so several are tried.
const MANY: usize = 16;

pub(super) enum MarkerState {
    Valid(FormatMarker),
    /// One bit is wrong; this is the content with the bit corrected.
    Corrected(FormatMarker),
    /// The content is lost; this is the reason.
    Lost(String),
}

/// Reads the FORMAT of the store in this folder.
///
/// # Errors
/// If the store needs another version of forge.
pub(super) fn read_marker_state(path: &Path) -> Result<MarkerState> {
    let mut bytes = match plain_file::read(&path.join(FORMAT_FILE), MAX_MARKER_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(MarkerState::Lost(format!("cannot be read: {error}"))),
    };
    let wrong = match decode(&bytes) {
        Ok(marker) => return Ok(MarkerState::Valid(marker)),
        Err(wrong) => wrong,
    };
    if repair_bit(&mut bytes, &|bytes| decode(bytes).is_ok()) {
        return Ok(MarkerState::Corrected(decode(&bytes)?));
    }
    match wrong {
        MarkerError::Foreign(reason) => Ok(MarkerState::Lost(reason)),
        other => Err(other.into()),
    }
}

fn decode(bytes: &[u8]) -> Result<FormatMarker, MarkerError> {
    // Invalid UTF-8 matches no checksum.
    FormatMarker::decode(&String::from_utf8_lossy(bytes))
}

/// Returns the cipher of the store in this folder, whose FORMAT is lost; `None` if the store is not
/// encrypted. Every key of the keyring is tried on the first records or, if the journal has no
/// whole record, on the first rows of the index. If the index is damaged, all its readable rows are
/// tried.
///
/// # Errors
/// [`Error::Encrypted`] if the store is encrypted and its key is not here.
pub(super) fn find_cipher(path: &Path, keyring: Option<&Path>) -> Result<Option<Cipher>> {
    let ciphers = keyring.map_or(Ok(Vec::new()), |keyring| Keyring::new(keyring).ciphers())?;
    let opening = |opens: &dyn Fn(&Cipher) -> bool| {
        ciphers.iter().find(|cipher| opens(cipher)).cloned().map(Some).ok_or(Error::Encrypted)
    };
    let records = journal::first_records(&path.join(JOURNAL_FOLDER), MANY);
    if records.iter().any(|frame| Record::decode(&frame.payload).is_ok()) {
        return Ok(None);
    }
    if !records.is_empty() {
        return opening(&|cipher| {
            let opens = |frame: &LogFrame| {
                cipher.open(EncryptionContext::Record(frame.position), &frame.payload)
            };
            records.iter().any(|frame| opens(frame).is_ok())
        });
    }
    // No record of the journal is whole.
    let folder = path.join(INDEX_FOLDER);
    let all = |index: RescuedIndex| index.rows.into_iter().collect();
    let rows: Vec<KeyedRow> = match rocks::first_rows(&folder, MANY) {
        Some(rows) => rows,
        None => all(rocks::rescue(&folder, &SealMode::Unknown)?),
    };
    let objects = || rows.iter().filter(|((table, _), _)| *table == key::OBJECTS);
    if objects().next().is_none() || objects().any(|(_, value)| is_whole(value)) {
        return Ok(None);
    }
    opening(&|cipher| {
        let opens = |(place, value): &KeyedRow| {
            cipher.open(EncryptionContext::Row(place.0, &place.1), value)
        };
        rows.iter().any(|row| opens(row).is_ok())
    })
}
