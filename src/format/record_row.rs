//! The row of a record: its hash, and the sessions that it changed.

use super::codec::DecodeError;
use crate::model::SessionNumber;

const HASH_BYTES: usize = 32;

/// The row of a record of the journal in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRow {
    /// The hash of the record.
    pub hash: [u8; HASH_BYTES],
    /// The sessions that it changed or needed, ascending. They show which sessions have changed
    /// since a position.
    pub sessions: Vec<SessionNumber>,
}

impl RecordRow {
    /// Encodes this row's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.hash.to_vec();
        self.sessions.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
        out
    }

    /// Decodes a row's value.
    ///
    /// # Errors
    /// [`DecodeError`] if it is not a hash and ascending numbers.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong = || DecodeError::new("record's row", "not a hash and ascending sessions");
        let (hash, rest) = bytes.split_first_chunk().ok_or_else(wrong)?;
        let (numbers, left) = rest.as_chunks();
        let sessions: Vec<_> = numbers.iter().map(|number| u32::from_be_bytes(*number)).collect();
        if !left.is_empty() || !sessions.is_sorted_by(|one, next| one < next) {
            return Err(wrong());
        }
        Ok(Self { hash: *hash, sessions })
    }
}
