//! The marker of a remote: an object with the id and the format of the remote. It is read first.

use super::{RemoteFormatError, RemoteKeys, check_limit};
use crate::format::format_marker::{check, version_in};
use crate::model::{RemoteId, hex, unhex};

/// The version of the format of remotes that forge writes: major, minor. Another major version is
/// rejected.
pub const REMOTE_VERSION: (u32, u32) = (1, 0);
/// Maximum size of a marker in bytes.
pub const MAX_REMOTE_MARKER_BYTES: usize = 4 << 10;

const FIRST_LINE: &str = "forge remote";
const WHAT: &str = "marker";

/// The content of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteMarker {
    /// Major and minor version of the format.
    pub version: (u32, u32),
    /// The permanent id of the remote.
    pub id: RemoteId,
    /// The features needed to read the remote.
    pub required: Vec<String>,
    /// The features needed to write to the remote.
    pub optional: Vec<String>,
    /// The keyed hash of the lines before the line `key`, by which keys are checked.
    key_hash: [u8; 16],
}

impl RemoteMarker {
    /// Creates the marker of a new remote.
    #[must_use]
    pub fn new(id: RemoteId, keys: &RemoteKeys) -> Self {
        let (required, optional) = (Vec::new(), Vec::new());
        let mut marker =
            Self { version: REMOTE_VERSION, id, required, optional, key_hash: [0; 16] };
        marker.key_hash = keys.marker_hash(&marker.lines());
        marker
    }

    /// Returns the lines that the keyed hash covers.
    fn lines(&self) -> String {
        format!(
            "{FIRST_LINE}\nformat {}.{}\nid {}\nrequired {}\noptional {}\n",
            self.version.0,
            self.version.1,
            self.id,
            self.required.join(" "),
            self.optional.join(" "),
        )
    }

    /// Encodes the text of the marker.
    #[must_use]
    pub fn encode(&self) -> String {
        let text = format!("{}key {}\n", self.lines(), hex(&self.key_hash));
        format!("{text}check {}\n", check(&text))
    }

    /// Decodes a marker, if this version of forge can read the remote. The caller must then call
    /// [`RemoteMarker::check_key`].
    ///
    /// # Errors
    /// [`RemoteFormatError::Damaged`] if it is no marker or was altered,
    /// [`RemoteFormatError::LaterVersion`], [`RemoteFormatError::TooLarge`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RemoteFormatError> {
        check_limit("marker in bytes", bytes.len(), MAX_REMOTE_MARKER_BYTES)?;
        let damaged = |reason: &str| RemoteFormatError::damaged(WHAT, reason);
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return Err(damaged("it does not begin with 'forge remote'"));
        }
        let mut field = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.ok_or_else(|| damaged(&format!("it has no line '{name}'")))
        };
        let version = version_in(field("format")?).ok_or_else(|| damaged("it has no version"))?;
        // Another major version may have other lines, so the version is checked first.
        if version.0 > REMOTE_VERSION.0 {
            let needs = format!("format {}.{}", version.0, version.1);
            return Err(RemoteFormatError::LaterVersion { what: WHAT, needs });
        }
        let checked = text.rfind("check ").and_then(|at| text.split_at_checked(at));
        if checked.is_none_or(|(before, line)| line != format!("check {}\n", check(before))) {
            return Err(damaged("its last line does not match the others"));
        }
        let id = unhex(field("id")?).ok_or_else(|| damaged("it has no valid id"))?;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let required = words(field("required")?);
        let optional = words(field("optional")?);
        let key_hash = unhex(field("key")?).ok_or_else(|| damaged("it has no valid line 'key'"))?;
        // This version knows no feature.
        if let Some(feature) = required.first() {
            let needs = format!("the feature '{feature}'");
            return Err(RemoteFormatError::LaterVersion { what: WHAT, needs });
        }
        let marker = Self { version, id: RemoteId::from_bytes(id), required, optional, key_hash };
        if version.0 < REMOTE_VERSION.0 || !text.starts_with(&marker.lines()) {
            return Err(damaged("its lines are not as forge writes them"));
        }
        Ok(marker)
    }

    /// Checks that these keys are the keys of the remote.
    ///
    /// # Errors
    /// [`RemoteFormatError::WrongKey`].
    pub fn check_key(&self, keys: &RemoteKeys) -> Result<(), RemoteFormatError> {
        // blake3 compares hashes in constant time.
        let hash = |bytes: &[u8; 16]| blake3::hash(bytes);
        if hash(&self.key_hash) == hash(&keys.marker_hash(&self.lines())) {
            return Ok(());
        }
        Err(RemoteFormatError::WrongKey)
    }

    /// Returns whether this version of forge may write to the remote: it knows all optional
    /// features and the minor version.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.version.1 <= REMOTE_VERSION.1 && self.optional.is_empty()
    }
}
