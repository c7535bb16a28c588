//! Turns keys of items into ids of claims, and names of memories into names of sessions.
//!
//! A text that is no valid id is replaced by its hash. Then a field of the claim has the text.

use forge_store::error::{Error, Result};
use forge_store::model::claim::check_id;

/// The maximum length of the key of an item and of the name of a memory, in bytes.
pub const MAX_MEMORY_KEY_BYTES: usize = 4096;

/// The first character of every id that is a hash. A key that begins with it is replaced by its
/// hash, too.
pub(super) const HASH_MARK: char = '~';

/// The id of the claim with the name of the memory, if that is no valid name of a session.
pub(super) const NAME_ID: &str = "~name";

/// The number of hexadecimal digits of a hash: 160 bits.
const HASH_DIGITS: usize = 40;

/// Returns the id for a text: the text itself if it is a valid id, else its hash.
///
/// # Errors
/// [`Error::Invalid`] if the text is empty or too long. `what` is its name in the message.
pub(super) fn id_of(what: &str, text: &str) -> Result<String> {
    if text.is_empty() || text.len() > MAX_MEMORY_KEY_BYTES {
        let length = text.len();
        return Err(Error::invalid(format!(
            "{what} has {length} bytes: use 1 to {MAX_MEMORY_KEY_BYTES}"
        )));
    }
    if is_plain(text) {
        return Ok(text.to_owned());
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    Ok(format!("{HASH_MARK}{}", &hash[..HASH_DIGITS]))
}

/// Returns whether a text is its own id.
pub(super) fn is_plain(text: &str) -> bool {
    check_id(text).is_ok() && !text.starts_with(HASH_MARK)
}
