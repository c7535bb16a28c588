//! A claim of a state as it is stored.

use crate::error::{Error, Result};
use crate::format::{self, decode_entry, decode_key, entry_fields};
use crate::model::{ClaimEntry, Key, Timestamp};
use serde::Deserialize;
use std::fmt;

/// A claim as it is stored: nothing is copied, and only what is asked for is decoded.
#[derive(Clone, Copy)]
pub struct StoredClaim<'a> {
    key: &'a [u8],
    entry: &'a [u8],
}

impl fmt::Debug for StoredClaim<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, bytes) = (decode_key(self.key), self.entry.len());
        out.debug_struct("StoredClaim").field("key", &key).field("bytes", &bytes).finish()
    }
}

impl<'a> StoredClaim<'a> {
    pub(super) const fn new(key: &'a [u8], entry: &'a [u8]) -> Self {
        Self { key, entry }
    }

    /// Returns the id of the claim.
    pub fn id(&self) -> Result<&'a str> {
        let id = self.key.get(1..).unwrap_or_default();
        str::from_utf8(id).map_err(|error| Error::Corrupt {
            what: "the key of a claim".to_owned(),
            source: Box::new(error),
        })
    }

    /// Returns the stored bytes of the claim: equal bytes are the same claim, added at the same
    /// time.
    #[must_use]
    pub const fn entry(&self) -> &'a [u8] {
        self.entry
    }

    /// Returns the time of the claim: when it was added.
    pub fn added_at(&self) -> Result<Timestamp> {
        format::added_at(self.entry).map_err(|error| self.corrupt(error))
    }

    /// Returns the fields that `T` names. Texts and bytes can be borrowed from the state.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a field is missing or of another type.
    pub fn fields<T: Deserialize<'a>>(&self) -> Result<T> {
        entry_fields(self.entry).map_err(|error| self.corrupt(error))
    }

    /// Decodes the claim.
    pub fn decode(&self) -> Result<(Key, ClaimEntry)> {
        let key = decode_key(self.key).map_err(Error::corrupt("the key of a claim"))?;
        let entry = decode_entry(self.entry).map_err(|error| self.corrupt(error))?;
        Ok((key, entry))
    }

    fn corrupt(&self, error: format::DecodeError) -> Error {
        match decode_key(self.key) {
            Ok(key) => Error::corrupt(format!("the {key}"))(error),
            Err(_) => Error::corrupt("a claim")(error),
        }
    }
}
