//! The grant of a session: a text that opens one session of a remote and nothing else.

use super::{RemoteFormatError, SeenRef, SessionKey};
use crate::format::format_marker::check;
use crate::model::{RefLink, RemoteId, SessionHandle, SessionId, hex, unhex};

const BEGIN: &str = "forge-grant-";
const VERSION: u32 = 1;
const WHAT: &str = "grant";
/// Bytes of the remote, the session, the handle, the key, the version and the link.
const BYTES: usize = 16 + 16 + 16 + 32 + 8 + 32;

/// The right to read and push one session of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteGrant {
    /// The remote.
    pub remote: RemoteId,
    /// The session.
    pub session: SessionId,
    /// The handle of the session on the remote.
    pub handle: SessionHandle,
    /// The key of its ref.
    pub key: SessionKey,
    /// The version of the ref when the grant was made. An older version is rejected.
    pub seen: SeenRef,
}

impl RemoteGrant {
    /// Returns whether a text begins like a grant: it is no path, for example.
    #[must_use]
    pub fn is_grant(text: &str) -> bool {
        text.trim_start().starts_with(BEGIN)
    }

    /// Encodes the grant as one word of ASCII.
    #[must_use]
    pub fn encode(&self) -> String {
        let bytes = [
            &self.remote.as_bytes()[..],
            self.session.as_bytes(),
            self.handle.as_bytes(),
            self.key.as_bytes(),
            &self.seen.version.to_le_bytes(),
            self.seen.link.as_bytes(),
        ];
        let text = format!("{BEGIN}{VERSION}-{}", hex(&bytes.concat()));
        format!("{text}-{}", check(&text))
    }

    /// Decodes a grant. White space around it is ignored.
    ///
    /// # Errors
    /// [`RemoteFormatError::Damaged`] if it is no grant, was cut or was altered;
    /// [`RemoteFormatError::LaterVersion`] if it needs a later version of forge.
    pub fn decode(text: &str) -> Result<Self, RemoteFormatError> {
        let damaged = |reason: &str| RemoteFormatError::damaged(WHAT, reason);
        let text = text.trim();
        let begins = || damaged("it does not begin with 'forge-grant-'");
        let rest = text.strip_prefix(BEGIN).ok_or_else(begins)?;
        let cut = || damaged("it was cut or altered");
        let (version, rest) = rest.split_once('-').ok_or_else(cut)?;
        let version: u32 = version.parse().map_err(|_| damaged("it has no version"))?;
        if version > VERSION {
            let needs = format!("version {version}");
            return Err(RemoteFormatError::LaterVersion { what: WHAT, needs });
        }
        let (digits, _) = rest.split_once('-').ok_or_else(cut)?;
        let bytes: [u8; BYTES] = unhex(digits).ok_or_else(cut)?;
        let grant = Self::from_bytes(&bytes).ok_or_else(cut)?;
        if grant.encode() == text { Ok(grant) } else { Err(cut()) }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (remote, rest) = bytes.split_first_chunk()?;
        let (session, rest) = rest.split_first_chunk()?;
        let (handle, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (version, rest) = rest.split_first_chunk()?;
        let link = RefLink::from_bytes(rest.try_into().ok()?);
        Some(Self {
            remote: RemoteId::from_bytes(*remote),
            session: SessionId::from_bytes(*session),
            handle: SessionHandle::from_bytes(*handle),
            key: SessionKey::from_bytes(*key),
            seen: SeenRef { version: u64::from_le_bytes(*version), link },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> RemoteGrant {
        RemoteGrant {
            remote: RemoteId::from_bytes([1; 16]),
            session: SessionId::from_bytes([2; 16]),
            handle: SessionHandle::from_bytes([3; 16]),
            key: SessionKey::from_bytes([0xab; 32]),
            seen: SeenRef { version: 17, link: RefLink::from_bytes([5; 32]) },
        }
    }

    #[test]
    fn a_grant_is_read_back_and_its_debug_output_hides_its_key() {
        let text = grant().encode();
        assert!(text.is_ascii() && !text.contains(char::is_whitespace), "{text}");
        for same in [text.clone(), format!(" {text}\r\n")] {
            assert!(RemoteGrant::is_grant(&same));
            assert_eq!(RemoteGrant::decode(&same).unwrap(), grant());
        }
        assert!(!format!("{:?}", grant()).contains("ab"), "{:?}", grant());
        assert!(!RemoteGrant::is_grant("/run/forge-grant"));
    }

    #[test]
    fn a_text_that_is_no_grant_is_refused_with_the_reason() {
        let text = grant().encode();
        let error_of = |text: &str| RemoteGrant::decode(text).unwrap_err().to_string();
        assert!(error_of("").contains("does not begin with 'forge-grant-'"));
        assert!(error_of("forge-grant-x-").contains("no version"));
        assert!(error_of(&text.replacen("-1-", "-2-", 1)).contains("needs version 2"));
        for end in 12..text.len() {
            assert!(RemoteGrant::decode(&text[..end]).is_err(), "cut at {end}");
        }
        for (place, found) in text.match_indices(|found: char| found.is_ascii_alphanumeric()) {
            let mut wrong = text.clone();
            wrong.replace_range(place..=place, if found == "0" { "1" } else { "0" });
            assert!(RemoteGrant::decode(&wrong).is_err(), "{wrong}");
        }
    }
}
