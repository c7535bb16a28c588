//! The file with a store's seal key, kept outside the store; also as a portable file for another
//! machine.

use super::format_marker::check;
use crate::model::{Timestamp, hex, unhex};
use std::fmt;

const FIRST_LINE: &str = "forge seal key 1";

/// The content of a key file.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// The id of the store.
    pub store: [u8; 16],
    /// The secret of its seals.
    pub secret: [u8; 32],
    /// The secret of its encryption, if it is encrypted. It does not change when the store is
    /// adopted.
    pub cipher: Option<[u8; 32]>,
    /// The position and time at which the store was adopted: data before that position is
    /// unverified. `None` for a store that was sealed from its beginning.
    pub adopted: Option<(u64, Timestamp)>,
    /// The end of the store and the hash of its last record when this portable file was made.
    pub witness: Option<(u64, [u8; 32])>,
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = hex(&self.store);
        out.debug_struct("KeyFile").field("store", &store).finish_non_exhaustive()
    }
}

impl KeyFile {
    /// Encodes the text of the file.
    #[must_use]
    pub fn encode(&self) -> String {
        let none = || "-".to_owned();
        let adopted = self
            .adopted
            .map_or_else(none, |(position, time)| format!("{position} {}", time.as_micros()));
        let witness =
            self.witness.map_or_else(none, |(position, hash)| format!("{position} {}", hex(&hash)));
        let cipher = self.cipher.map_or_else(String::new, |it| format!("cipher {}\n", hex(&it)));
        let text = format!(
            "{FIRST_LINE}\nstore {}\nsecret {}\nadopted {adopted}\nwitness {witness}\n{cipher}",
            hex(&self.store),
            hex(&self.secret),
        );
        format!("{text}check {}\n", check(&text))
    }

    /// Decodes the text of the file; `None` if it is not a key file, or is damaged.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let (before, line) = text.split_at_checked(text.rfind("check ")?)?;
        if line != format!("check {}\n", check(before)) {
            return None;
        }
        let mut lines = before.lines();
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let store = unhex(field("store")?)?;
        let secret = unhex(field("secret")?)?;
        let adopted = match field("adopted")? {
            "-" => None,
            text => {
                let (position, time) = text.split_once(' ')?;
                let time = Timestamp::from_micros(time.parse().ok()?);
                Some((position.parse().ok()?, time))
            }
        };
        let witness = match field("witness")? {
            "-" => None,
            text => {
                let (position, hash) = text.split_once(' ')?;
                Some((position.parse().ok()?, unhex(hash)?))
            }
        };
        let cipher = match lines.next() {
            None => None,
            Some(line) => Some(unhex(line.strip_prefix("cipher ")?)?),
        };
        Some(Self { store, secret, cipher, adopted, witness })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> KeyFile {
        KeyFile { store: [1; 16], secret: [2; 32], cipher: None, adopted: None, witness: None }
    }

    #[test]
    fn a_key_file_reads_back_and_its_debug_output_has_no_secret() {
        let adopted = Some((96, Timestamp::from_micros(1_700_000_000_000_000)));
        let full = KeyFile { adopted, witness: Some((7, [9; 32])), ..plain() };
        let encrypted = KeyFile { cipher: Some([0xc2; 32]), ..plain() };
        for file in [plain(), full, encrypted] {
            assert_eq!(KeyFile::decode(&file.encode()), Some(file.clone()));
            assert!(!format!("{file:?}").contains("02") && !format!("{file:?}").contains("c2"));
        }
    }

    #[test]
    fn a_key_file_has_the_golden_text() {
        let adopted = Some((96, Timestamp::from_micros(1_700_000_000_000_000)));
        let witness = Some((7, [9; 32]));
        let file = KeyFile { adopted, witness, ..plain() };
        let (one, two, nine) = ("01".repeat(16), "02".repeat(32), "09".repeat(32));
        assert_eq!(
            file.encode(),
            format!(
                "forge seal key 1\nstore {one}\nsecret {two}\nadopted 96 1700000000000000\n\
                 witness 7 {nine}\ncheck 6807c5d9cd679a1b\n"
            )
        );
        let encrypted = KeyFile { cipher: Some([3; 32]), ..plain() };
        let three = "03".repeat(32);
        assert_eq!(
            encrypted.encode(),
            format!(
                "forge seal key 1\nstore {one}\nsecret {two}\nadopted -\nwitness -\ncipher {three}\n\
                 check 2527078e1b6eedda\n"
            )
        );
    }

    #[test]
    fn a_key_file_with_a_wrong_byte_is_refused() {
        let text = KeyFile { cipher: Some([3; 32]), ..plain() }.encode();
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1);
            let Ok(text) = String::from_utf8(bytes) else { continue };
            assert_eq!(KeyFile::decode(&text), None, "byte {place}");
        }
        assert_eq!(KeyFile::decode(""), None);
    }
}
