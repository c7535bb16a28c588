//! Cursors between pages. A cursor contains the key of the last row of a page, so rows that are
//! added or removed in the meantime neither repeat nor hide others.

use crate::error::CommandError;
use crate::text::hex;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How many digits of the query's hash a cursor contains.
const HASH_DIGITS: usize = 8;

/// Returns the cursor for the page after this key. Only the same query can use it.
pub(super) fn encode(query: &impl Serialize, key: &impl Serialize) -> String {
    let key = serde_json::to_vec(key).unwrap_or_default();
    format!("{}{}", query_hash(query), hex(&key))
}

/// Returns the key at the end of the previous page.
///
/// # Errors
/// Invalid if it is not a cursor of this query.
pub(super) fn decode<K: DeserializeOwned>(
    query: &impl Serialize,
    cursor: &str,
) -> Result<K, CommandError> {
    let refused = || {
        CommandError::invalid("this cursor belongs to other arguments, or is not a cursor").hinted(
            "repeat the arguments of the previous page, or leave the cursor out to begin again",
        )
    };
    let key = cursor.strip_prefix(&query_hash(query)).ok_or_else(refused)?;
    let bytes: Option<Vec<u8>> = key
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(refused)
}

fn query_hash(query: &impl Serialize) -> String {
    let query = serde_json::to_vec(query).unwrap_or_default();
    blake3::hash(&query).to_hex()[..HASH_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_query_can_use_a_cursor() {
        let cursor = encode(&("HEAD", 3), &(7_u64, "é:H1"));
        assert_eq!(decode::<(u64, String)>(&("HEAD", 3), &cursor).unwrap(), (7, "é:H1".to_owned()));
        for (query, cursor) in [
            (("HEAD~1", 3), cursor.as_str()),
            (("HEAD", 3), ""),
            (("HEAD", 3), &cursor[..cursor.len() - 1]),
            (("HEAD", 3), "zz\u{e9}"),
        ] {
            let error = decode::<(u64, String)>(&query, cursor).unwrap_err();
            assert!(error.hints()[0].contains("leave the cursor out"), "{cursor}");
        }
    }
}
