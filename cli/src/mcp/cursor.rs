//! Cursors of pages: the key of the last row, so that rows added or removed in the meantime neither
//! repeat nor hide others.

use crate::error::CommandError;
use crate::text::hex;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How many digits of the query's hash a cursor contains.
const DIGITS: usize = 8;

/// Returns the cursor after this key in the pages of this query.
pub(super) fn encode(question: &impl Serialize, key: &impl Serialize) -> String {
    let key = serde_json::to_vec(key).unwrap_or_default();
    format!("{}{}", question_hash(question), hex(&key))
}

/// Returns the key at the end of the previous page.
pub(super) fn decode<K: DeserializeOwned>(
    question: &impl Serialize,
    cursor: &str,
) -> Result<K, CommandError> {
    let refused = || {
        CommandError::invalid("this cursor belongs to other arguments, or is none").hinted(
            "repeat the arguments of the previous page, or leave the cursor out to begin again",
        )
    };
    let key = cursor.strip_prefix(&question_hash(question)).ok_or_else(refused)?;
    let bytes: Option<Vec<u8>> = key
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(refused)
}

fn question_hash(question: &impl Serialize) -> String {
    let question = serde_json::to_vec(question).unwrap_or_default();
    blake3::hash(&question).to_hex()[..DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_by_the_question_it_was_made_for_alone() {
        let cursor = encode(&("HEAD", 3), &(7_u64, "é:H1"));
        assert_eq!(decode::<(u64, String)>(&("HEAD", 3), &cursor).unwrap(), (7, "é:H1".to_owned()));
        for (question, cursor) in [
            (("HEAD~1", 3), cursor.as_str()),
            (("HEAD", 3), ""),
            (("HEAD", 3), &cursor[..cursor.len() - 1]),
            (("HEAD", 3), "zz\u{e9}"),
        ] {
            let error = decode::<(u64, String)>(&question, cursor).unwrap_err();
            assert!(error.hints()[0].contains("leave the cursor out"), "{cursor}");
        }
    }
}
