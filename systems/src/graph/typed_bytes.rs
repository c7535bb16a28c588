//! A value as the framework's serialiser gives it.

/// Bytes of a value, and the word for their encoding. Nothing in them is changed or judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedBytes {
    /// The serialiser's word for the encoding, such as `msgpack`.
    pub encoding: String,
    /// The encoded value.
    pub bytes: Vec<u8>,
}
