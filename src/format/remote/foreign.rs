//! The file in which a store lists the operations of a session that others wrote. It is never sent.

use crate::format::DecodeError;
use crate::model::OperationId;

const MAGIC: &[u8; 4] = b"fFo1";
const WHAT: &str = "list of operations of others";
const ID_BYTES: usize = 16;

/// The operations of a session that a store has pulled from others. The file only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignOperations {
    /// Whether another store began the session.
    pub begun_by_others: bool,
    /// The operations, in the order in which they were pulled.
    pub operations: Vec<OperationId>,
}

impl ForeignOperations {
    /// The number of bytes before the first operation.
    pub const HEADER_BYTES: usize = MAGIC.len() + 1;

    /// Encodes the content of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let header = MAGIC.iter().copied().chain([u8::from(self.begun_by_others)]);
        header.chain(Self::encode_ids(&self.operations)).collect()
    }

    /// Encodes operations that are added at the end of the file.
    #[must_use]
    pub fn encode_ids(operations: &[OperationId]) -> Vec<u8> {
        operations.iter().flat_map(|id| *id.as_bytes()).collect()
    }

    /// Returns the length of the file without a part of an id at its end: the writer of that part
    /// was killed.
    #[must_use]
    pub const fn whole_bytes(length: u64) -> u64 {
        let ids = length.saturating_sub(Self::HEADER_BYTES as u64);
        length - ids % ID_BYTES as u64
    }

    /// Decodes the content of the file, or its beginning. A part of an id at the end is ignored.
    ///
    /// # Errors
    /// [`DecodeError`] if it does not begin with the header.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong = || DecodeError::new(WHAT, "its header is damaged".to_owned());
        let (header, ids) = bytes.split_at_checked(Self::HEADER_BYTES).ok_or_else(wrong)?;
        let begun_by_others = match header.strip_prefix(MAGIC) {
            Some([0]) => false,
            Some([1]) => true,
            _ => return Err(wrong()),
        };
        let (ids, _) = ids.as_chunks::<ID_BYTES>();
        let operations = ids.iter().map(|id| OperationId::from_bytes(*id)).collect();
        Ok(Self { begun_by_others, operations })
    }
}
