//! The key file of a remote: its secret as text, for the keyring and for other machines.

use super::RemoteFormatError;
use crate::format::format_marker::{check, hex, unhex};
use crate::model::RemoteId;
use std::fmt;

const FIRST_LINE: &str = "forge remote key ";
const VERSION: u32 = 1;
const WHAT: &str = "key file";

/// The secret of a remote, with the id of the remote that it opens.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteKeyFile {
    /// The remote.
    pub remote: RemoteId,
    /// Its secret.
    pub secret: [u8; 32],
    /// Where the remote is, in a keyring. A file for another machine does not say it.
    pub url: Option<String>,
}

impl fmt::Debug for RemoteKeyFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RemoteKeyFile").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl RemoteKeyFile {
    /// Encodes the text of the file.
    #[must_use]
    pub fn encode(&self) -> String {
        let url = self.url.as_ref().map_or_else(String::new, |url| format!("url {url}\n"));
        let text = format!(
            "{FIRST_LINE}{VERSION}\n{url}remote {}\nsecret {}\n",
            self.remote,
            hex(&self.secret)
        );
        format!("{text}check {}\n", check(&text))
    }

    /// Decodes the text of the file. Its lines may also be separated by spaces, as in an
    /// environment variable.
    ///
    /// # Errors
    /// [`RemoteFormatError::Damaged`] if it is no key file or was altered,
    /// [`RemoteFormatError::LaterVersion`].
    pub fn decode(text: &str) -> Result<Self, RemoteFormatError> {
        let damaged = |reason: &str| RemoteFormatError::damaged(WHAT, reason);
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let ["forge", "remote", "key", version, fields @ ..] = words.as_slice() else {
            return Err(damaged("it does not begin with 'forge remote key'"));
        };
        let version: u32 = version.parse().map_err(|_| damaged("it has no version"))?;
        if version > VERSION {
            let needs = format!("version {version}");
            return Err(RemoteFormatError::LaterVersion { what: WHAT, needs });
        }
        let (url, fields) = match fields {
            ["url", url, fields @ ..] => (Some((*url).to_owned()), fields),
            fields => (None, fields),
        };
        let ["remote", remote, "secret", secret, "check", _] = fields else {
            return Err(damaged("a line is missing"));
        };
        let remote = unhex(remote).ok_or_else(|| damaged("it has no valid id"))?;
        let secret = unhex(secret).ok_or_else(|| damaged("it has no valid secret"))?;
        let file = Self { remote: RemoteId::from_bytes(remote), secret, url };
        if file.encode().split_ascii_whitespace().ne(words.iter().copied()) {
            return Err(damaged("its last line does not match the others"));
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(url: Option<&str>) -> RemoteKeyFile {
        let url = url.map(str::to_owned);
        RemoteKeyFile { remote: RemoteId::from_bytes([1; 16]), secret: [2; 32], url }
    }

    #[test]
    fn a_key_file_has_the_golden_text_and_comes_back() {
        let (one, two) = ("01".repeat(16), "02".repeat(32));
        let text = file(None).encode();
        let golden = "043d7a65d6122b33";
        let text_of =
            |check| format!("forge remote key 1\nremote {one}\nsecret {two}\ncheck {check}\n");
        assert_eq!(text, text_of(golden));
        for file in [file(None), file(Some("file:///a%20b"))] {
            let text = file.encode();
            for same in [text.clone(), text.replace('\n', " "), text.replace('\n', "\r\n")] {
                assert_eq!(RemoteKeyFile::decode(&same).unwrap(), file);
            }
            assert!(!format!("{file:?}").contains("02"), "{file:?}");
        }
    }

    #[test]
    fn what_is_no_key_file_is_refused_with_the_reason() {
        let text = file(Some("file:///x")).encode();
        let said = |text: &str| RemoteKeyFile::decode(text).unwrap_err().to_string();
        assert!(said("").contains("does not begin with 'forge remote key'"));
        assert!(said("forge remote key one").contains("no version"));
        assert!(said(&text.replace("key 1", "key 2")).contains("needs version 2"));
        let short: Vec<&str> = text.lines().take(3).collect();
        assert!(said(&short.join("\n")).contains("a line is missing"));
        for (place, found) in text.match_indices(|found: char| found.is_ascii_alphanumeric()) {
            let mut wrong = text.clone();
            wrong.replace_range(place..=place, if found == "0" { "1" } else { "0" });
            assert!(RemoteKeyFile::decode(&wrong).is_err(), "{wrong}");
        }
    }
}
