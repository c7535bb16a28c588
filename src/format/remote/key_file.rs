//! The key file of a remote: its secret as text, for the keyring and for other machines.

use super::{RemoteFormatError, RemoteKeys, SeenRef, SeenRefs};
use crate::backend::debug_by_name;
use crate::format::format_marker::check;
use crate::model::{RemoteId, hex, unhex};
use std::fmt::Write as _;

const FIRST_LINE: &str = "forge remote key ";
/// The latest version: a file with the lines about a rotation of the key.
const VERSION: u32 = 3;
/// The version of a file with `seen` lines and without a rotation.
const SEEN_VERSION: u32 = 2;
/// The version of any other file.
const PLAIN_VERSION: u32 = 1;
const SEEN_LINE: &str = "seen";
const NAMES_LINE: &str = "names";
const LEAVING_LINE: &str = "rotates";
const LEFT_LINE: &str = "rotated";
const WHAT: &str = "key file";

/// The secret of a remote, with the id of the remote that it opens.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteKeyFile {
    /// The remote.
    pub remote: RemoteId,
    /// Its secret.
    pub secret: [u8; 32],
    /// The URL of the remote, in a keyring. A file for another machine does not contain it.
    pub url: Option<String>,
    /// The newest known version of each ref when the file was written for another machine, which
    /// refuses an older state of the remote. A keyring keeps these versions in other files.
    pub seen: SeenRefs,
    /// What is kept of earlier keys, if the key of the remote was rotated.
    pub rotated: Option<RotatedKey>,
}

/// What is kept of the earlier keys of a remote whose key was rotated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RotatedKey {
    /// The key of names, which a rotation does not change.
    pub names: [u8; 32],
    /// The previous secret, in a keyring. A file for another machine does not contain it.
    pub earlier: Option<EarlierSecret>,
}

impl RotatedKey {
    /// Returns a copy in which the last rotation has not ended.
    #[must_use]
    pub fn leaving(self) -> Self {
        Self { earlier: self.earlier.map(|one| EarlierSecret::Leaving(one.secret())), ..self }
    }

    /// Returns a copy in which the last rotation has ended.
    #[must_use]
    pub fn left(self) -> Self {
        Self { earlier: self.earlier.map(|one| EarlierSecret::Left(one.secret())), ..self }
    }
}

impl EarlierSecret {
    const fn secret(self) -> [u8; 32] {
        match self {
            Self::Leaving(secret) | Self::Left(secret) => secret,
        }
    }
}

/// The secret that a remote had before the last rotation of its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum EarlierSecret {
    /// The rotation has not ended: the remote may still use this secret, or contain refs and
    /// notices that are encrypted with it.
    Leaving([u8; 32]),
    /// The rotation has ended: only what a store keeps of a remote may still be encrypted with this
    /// secret.
    Left([u8; 32]),
}

debug_by_name!(RotatedKey, EarlierSecret);
debug_by_name!(RemoteKeyFile { remote });

impl RemoteKeyFile {
    /// Encodes the text of the file.
    #[must_use]
    pub fn encode(&self) -> String {
        let url = self.url.as_ref().map_or_else(String::new, |url| format!("url {url}\n"));
        let version = match (self.rotated, self.seen.is_empty()) {
            (Some(_), _) => VERSION,
            (None, false) => SEEN_VERSION,
            (None, true) => PLAIN_VERSION,
        };
        let mut text = format!(
            "{FIRST_LINE}{version}\n{url}remote {}\nsecret {}\n",
            self.remote,
            hex(&self.secret)
        );
        if let Some(RotatedKey { names, earlier }) = &self.rotated {
            let _ = writeln!(text, "{NAMES_LINE} {}", hex(names));
            let _ = match earlier {
                Some(EarlierSecret::Leaving(secret)) => {
                    writeln!(text, "{LEAVING_LINE} secret {}", hex(secret))
                }
                Some(EarlierSecret::Left(secret)) => {
                    writeln!(text, "{LEFT_LINE} secret {}", hex(secret))
                }
                None => Ok(()),
            };
        }
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
        let ["remote", remote, "secret", secret, fields @ .., "check", _] = fields else {
            return Err(damaged("a line is missing"));
        };
        let (rotated, seen) = rotated_in(fields)
            .ok_or_else(|| damaged("a line about a rotation of the key is not valid"))?;
        let remote = unhex(remote).ok_or_else(|| damaged("it has no valid id"))?;
        let secret = unhex(secret).ok_or_else(|| damaged("it has no valid secret"))?;
        let seen = seen_in(seen).ok_or_else(|| damaged("a line of what was seen is not valid"))?;
        let file = Self { remote: RemoteId::from_bytes(remote), secret, url, seen, rotated };
        if file.encode().split_ascii_whitespace().ne(words.iter().copied()) {
            return Err(damaged("its last line does not match the others"));
        }
        Ok(file)
    }

    /// Returns the keys of the remote.
    #[must_use]
    pub fn keys(&self) -> RemoteKeys {
        self.keys_of(&self.secret)
    }

    /// Returns the keys of the remote before the last rotation, if the file has the secret of then.
    #[must_use]
    pub fn earlier_keys(&self) -> Option<RemoteKeys> {
        Some(self.keys_of(&self.earlier()?.secret()))
    }

    /// Returns the secret before the last rotation, if the file has it.
    #[must_use]
    pub fn earlier(&self) -> Option<EarlierSecret> {
        self.rotated?.earlier
    }

    /// Returns whether a rotation of the key has begun but not ended.
    #[must_use]
    pub fn is_rotating(&self) -> bool {
        matches!(self.earlier(), Some(EarlierSecret::Leaving(_)))
    }

    /// Returns the key file for another machine, without the secret before the last rotation and
    /// without the URL, which can contain credentials.
    #[must_use]
    pub fn for_others(&self) -> Self {
        let rotated = self.rotated.map(|rotated| RotatedKey { earlier: None, ..rotated });
        Self { rotated, url: None, ..self.clone() }
    }

    fn keys_of(&self, secret: &[u8; 32]) -> RemoteKeys {
        let keys = RemoteKeys::new(secret);
        match self.rotated {
            Some(rotated) => keys.with_names(rotated.names),
            None => keys,
        }
    }
}

/// Reads the lines about a rotation, if any. Returns what they say and the words after them.
fn rotated_in<'a>(words: &'a [&'a str]) -> Option<(Option<RotatedKey>, &'a [&'a str])> {
    let [NAMES_LINE, names, words @ ..] = words else { return Some((None, words)) };
    let (earlier, words) = match words {
        [LEAVING_LINE, "secret", secret, words @ ..] => {
            (Some(EarlierSecret::Leaving(unhex(secret)?)), words)
        }
        [LEFT_LINE, "secret", secret, words @ ..] => {
            (Some(EarlierSecret::Left(unhex(secret)?)), words)
        }
        words => (None, words),
    };
    Some((Some(RotatedKey { names: unhex(names)?, earlier }), words))
}

/// Reads the `seen` lines: the handle, version and link of each ref.
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
        let (remote, secret) = (RemoteId::from_bytes([1; 16]), [2; 32]);
        RemoteKeyFile { remote, secret, url, seen, rotated: None }
    }

    fn rotated(earlier: Option<EarlierSecret>) -> RemoteKeyFile {
        let rotated = Some(RotatedKey { names: [6; 32], earlier });
        RemoteKeyFile { rotated, ..with_witness() }
    }

    fn with_witness() -> RemoteKeyFile {
        let seen = [(4, 17), (3, u64::MAX)].map(|(handle, version)| {
            let link = RefLink::from_bytes([handle + 1; 32]);
            (SessionHandle::from_bytes([handle; 16]), SeenRef { version, link })
        });
        RemoteKeyFile { seen: seen.into(), ..file(None) }
    }

    #[test]
    fn a_key_file_is_the_golden_text_and_is_read_back() {
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
        let (six, seven) = ("06".repeat(32), "07".repeat(32));
        let left =
            RemoteKeyFile { seen: SeenRefs::new(), ..rotated(Some(EarlierSecret::Left([7; 32]))) };
        let golden = format!(
            "forge remote key 3\nremote {one}\nsecret {two}\nnames {six}\nrotated secret {seven}\n\
             check 2084a97f90e5a853\n",
        );
        assert_eq!(left.encode(), golden);
        let leaving = rotated(Some(EarlierSecret::Leaving([7; 32])));
        assert!(leaving.is_rotating() && !left.is_rotating() && !rotated(None).is_rotating());
        let plain = [file(None), file(Some("file:///a%20b")), with_witness()];
        for file in plain.into_iter().chain([left, leaving, rotated(None)]) {
            let text = file.encode();
            for same in [text.clone(), text.replace('\n', " "), text.replace('\n', "\r\n")] {
                assert_eq!(RemoteKeyFile::decode(&same).unwrap(), file);
            }
            assert!(!format!("{file:?}").contains("02"), "{file:?}");
        }
    }

    /// The URL of a keyring's file stayed in the file for another machine, with its credentials.
    #[test]
    fn a_key_file_for_another_machine_has_no_url_and_no_earlier_secret() {
        let rotated = rotated(Some(EarlierSecret::Left([7; 32])));
        let own = RemoteKeyFile { url: Some("https://me:word@depot/a".to_owned()), ..rotated };
        let others = own.for_others().encode();
        let earlier = "07".repeat(32);
        for kept_here in ["url", "word", "depot", earlier.as_str()] {
            assert!(own.encode().contains(kept_here) && !others.contains(kept_here), "{kept_here}");
        }
        let others = RemoteKeyFile::decode(&others).unwrap();
        assert_eq!((others.remote, others.secret), (own.remote, own.secret));
        assert_eq!(others.seen, own.seen);
        assert_eq!(others.rotated.map(|rotated| rotated.names), Some([6; 32]));
    }

    #[test]
    fn a_text_that_is_no_remote_key_file_is_refused_with_the_reason() {
        let text = file(Some("file:///x")).encode();
        let error_of = |text: &str| RemoteKeyFile::decode(text).unwrap_err().to_string();
        assert!(error_of("").contains("does not begin with 'forge remote key'"));
        assert!(error_of("forge remote key one").contains("no version"));
        assert!(error_of(&text.replace("key 1", "key 4")).contains("needs version 4"));
        let short: Vec<&str> = text.lines().take(3).collect();
        assert!(error_of(&short.join("\n")).contains("a line is missing"));
        let witness = with_witness().encode();
        for (old, new) in [
            ("seen 0303", "seen zz03"),
            ("seen ", "sane "),
            (" 17 ", " 17 17 "),
            (" 17 ", " 017 "),
            ("key 2", "key 1"),
        ] {
            assert!(error_of(&witness.replacen(old, new, 1)).contains("the key file"), "{new}");
        }
        let rotated = rotated(Some(EarlierSecret::Leaving([7; 32]))).encode();
        for (old, new) in [("names 06", "names zz"), ("rotates ", "rotats "), ("key 3", "key 2")] {
            assert!(error_of(&rotated.replacen(old, new, 1)).contains("the key file"), "{new}");
        }
        for (place, found) in text.match_indices(|found: char| found.is_ascii_alphanumeric()) {
            let mut wrong = text.clone();
            wrong.replace_range(place..=place, if found == "0" { "1" } else { "0" });
            assert!(RemoteKeyFile::decode(&wrong).is_err(), "{wrong}");
        }
    }
}
