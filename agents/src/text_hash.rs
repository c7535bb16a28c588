//! Hashes of texts, for ids and for comparisons.

/// Returns the BLAKE3 hash of a text in hexadecimal.
pub(crate) fn text_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
