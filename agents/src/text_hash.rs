//! Names texts by their content.

/// The BLAKE3 hash of a text in hexadecimal, used as its name.
pub(crate) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
