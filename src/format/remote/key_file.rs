//! The key file of a remote: its secret as text, for the keyring and for other machines.

use super::{RemoteFormatError, SeenRef, SeenRefs};
use crate::format::format_marker::{check, hex, unhex};
use crate::model::RemoteId;
use std::fmt::{self, Write as _};

const FIRST_LINE: &str = "forge remote key ";
/// The version of a file that says what was seen.
const VERSION: u32 = 2;
/// The version of a file that does not.
const PLAIN_VERSION: u32 = 1;
const SEEN_LINE: &str = "seen";
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
    /// What was seen of the refs when the file was written for another machine, which refuses an
    /// older state of the remote. A keyring keeps that elsewhere.
    pub seen: SeenRefs,
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
        let version = if self.seen.is_empty() { PLAIN_VERSION } else { VERSION };
        let mut text = format!(
            "{FIRST_LINE}{version}\n{url}remote {}\nsecret {}\n",
            self.remote,
            hex(&self.secret)
        );
        for (handle, seen) in &self.seen {
            let _ = writeln!(text, "{SEEN_LINE} {handle} {} {}", seen.version, seen.link);
        }
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
        let ["remote", remote, "secret", secret, seen @ .., "check", _] = fields else {
            return Err(damaged("a line is missing"));
        };
        let remote = unhex(remote).ok_or_else(|| damaged("it has no valid id"))?;
        let secret = unhex(secret).ok_or_else(|| damaged("it has no valid secret"))?;
        let seen = seen_in(seen).ok_or_else(|| damaged("a line of what was seen is not valid"))?;
        let file = Self { remote: RemoteId::from_bytes(remote), secret, url, seen };
        if file.encode().split_ascii_whitespace().ne(words.iter().copied()) {
            return Err(damaged("its last line does not match the others"));
        }
        Ok(file)
    }
}

/// Reads the lines of what was seen.
fn seen_in(words: &[&str]) -> Option<SeenRefs> {
    let lines = words.chunks(4).map(|line| {
        let [SEEN_LINE, handle, version, link] = line else { return None };
        let seen = SeenRef { version: version.parse().ok()?, link: link.parse().ok()? };
        Some((handle.parse().ok()?, seen))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RefLink, SessionHandle};

    fn file(url: Option<&str>) -> RemoteKeyFile {
        let url = url.map(str::to_owned);
        let seen = SeenRefs::new();
        RemoteKeyFile { remote: RemoteId::from_bytes([1; 16]), secret: [2; 32], url, seen }
    }

    fn with_witness() -> RemoteKeyFile {
        let seen = [(4, 17), (3, u64::MAX)].map(|(handle, version)| {
            let link = RefLink::from_bytes([handle + 1; 32]);
            (SessionHandle::from_bytes([handle; 16]), SeenRef { version, link })
        });
        RemoteKeyFile { seen: seen.into(), ..file(None) }
    }

    #[test]
    fn a_key_file_has_the_golden_text_and_comes_back() {
        let (one, two) = ("01".repeat(16), "02".repeat(32));
        let text = file(None).encode();
        let golden = "043d7a65d6122b33";
        let text_of =
            |check| format!("forge remote key 1\nremote {one}\nsecret {two}\ncheck {check}\n");
        assert_eq!(text, text_of(golden));
        let [three, four, five] = [3, 4, 5].map(|byte: u8| format!("{byte:02x}"));
        let witness = format!(
            "forge remote key 2\nremote {one}\nsecret {two}\nseen {} 18446744073709551615 {}\n\
             seen {} 17 {}\ncheck 148b38f23e010af1\n",
            three.repeat(16),
            four.repeat(32),
            four.repeat(16),
            five.repeat(32),
        );
        assert_eq!(with_witness().encode(), witness);
        for file in [file(None), file(Some("file:///a%20b")), with_witness()] {
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
        assert!(said(&text.replace("key 1", "key 3")).contains("needs version 3"));
        let short: Vec<&str> = text.lines().take(3).collect();
        assert!(said(&short.join("\n")).contains("a line is missing"));
        let witness = with_witness().encode();
        for (old, new) in [
            ("seen 0303", "seen zz03"),
            ("seen ", "sane "),
            (" 17 ", " 17 17 "),
            (" 17 ", " 017 "),
            ("key 2", "key 1"),
        ] {
            assert!(said(&witness.replacen(old, new, 1)).contains("the key file"), "{new}");
        }
        for (place, found) in text.match_indices(|found: char| found.is_ascii_alphanumeric()) {
            let mut wrong = text.clone();
            wrong.replace_range(place..=place, if found == "0" { "1" } else { "0" });
            assert!(RemoteKeyFile::decode(&wrong).is_err(), "{wrong}");
        }
    }
}
