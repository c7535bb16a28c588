//! The file FORMAT, which identifies a folder as a store. It is read before anything else.

use crate::backend::database::DatabasePlace;
use crate::backend::debug_by_name;
use crate::model::{hex, unhex};

/// The format that this version writes: major, minor. A reader rejects another major version.
pub const FORMAT_VERSION: (u32, u32) = (2, 0);

const FIRST_LINE: &str = "forge store";
/// The features of the format that this version knows. A store that requires an unknown feature is
/// rejected; one with an unknown optional feature is read-only.
const KNOWN_FEATURES: &[&str] = &[SEALED, ENCRYPTED, DATABASE];
/// The feature of a store with seals. It is optional: a program without it can read the store, but
/// must not write.
const SEALED: &str = "sealed";
/// The feature of an encrypted store. It is required, and an encrypted store is always sealed.
const ENCRYPTED: &str = "encrypted";
/// The feature of a folder whose journal and index are in a database. It is required. Two more
/// lines have the address of the database and the name of the store.
const DATABASE: &str = "database";

/// The content of FORMAT.
#[derive(Clone, PartialEq, Eq)]
pub struct FormatMarker {
    /// Major and minor version of the format.
    pub version: (u32, u32),
    /// The permanent id of the store.
    pub id: [u8; 16],
    /// The key of the stored hashes of foreign bytes, such as imported sources.
    pub key: [u8; 32],
    /// The features needed to read the store.
    pub required: Vec<String>,
    /// The features needed to write the store.
    pub optional: Vec<String>,
    /// The place of journal and index, if they are in a database.
    pub database: Option<DatabasePlace>,
}

/// Returns what to do with a store of another version.
fn remedy(found: (u32, u32)) -> &'static str {
    if found < FORMAT_VERSION {
        "export its sessions with the version that wrote it ('forge export bundle --all FILE'), and \
        import the bundle into a new store"
    } else {
        "use a later version of forge"
    }
}

debug_by_name!(FormatMarker { version });

/// Why this version cannot use a folder as a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkerError {
    /// It is not a store.
    #[error("not a forge store: its FORMAT file {0}")]
    Foreign(String),
    /// Another version wrote it.
    #[error("the store has format {}.{}, this version of forge reads {}.x: {}", found.0, found.1, FORMAT_VERSION.0, remedy(*found))]
    Version {
        /// The version of its format.
        found: (u32, u32),
    },
    /// It requires a feature that this version lacks.
    #[error("the store requires the feature '{feature}', which this version of forge (format {}.{}) lacks; the store has format {}.{}: use a later version of forge", FORMAT_VERSION.0, FORMAT_VERSION.1, found.0, found.1)]
    Feature {
        /// The missing feature.
        feature: String,
        /// The version of its format.
        found: (u32, u32),
    },
}

impl FormatMarker {
    /// Creates the marker of a new store.
    #[must_use]
    pub const fn new(id: [u8; 16], key: [u8; 32]) -> Self {
        Self {
            version: FORMAT_VERSION,
            id,
            key,
            required: Vec::new(),
            optional: Vec::new(),
            database: None,
        }
    }

    /// Encodes the text of the file.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = format!(
            "{FIRST_LINE}\nformat {}.{}\nid {}\nkey {}\nrequired {}\noptional {}\n",
            self.version.0,
            self.version.1,
            hex(&self.id),
            hex(&self.key),
            self.required.join(" "),
            self.optional.join(" "),
        );
        if let Some(DatabasePlace { address, name }) = &self.database {
            text.push_str(&format!("address {address}\nname {name}\n"));
        }
        format!("{text}check {}\n", check(&text))
    }

    /// Decodes the text of the file, if this version can use the store.
    ///
    /// # Errors
    /// [`MarkerError`] if it is not a marker, or if this version cannot read the store.
    pub fn decode(text: &str) -> Result<Self, MarkerError> {
        let foreign = |reason: &str| MarkerError::Foreign(reason.to_owned());
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return Err(foreign("does not begin with 'forge store'"));
        }
        let mut field = |name: &str| {
            lines
                .next()
                .and_then(|line| line.strip_prefix(name)?.strip_prefix(' '))
                .ok_or_else(|| MarkerError::Foreign(format!("has no line '{name}'")))
        };
        let found = version_in(field("format")?).ok_or_else(|| foreign("has no version"))?;
        // The other lines may look different in another major version, so this is checked first.
        if found.0 != FORMAT_VERSION.0 {
            return Err(MarkerError::Version { found });
        }
        let id = unhex(field("id")?).ok_or_else(|| foreign("has no valid id"))?;
        let key = unhex(field("key")?).ok_or_else(|| foreign("has no valid key"))?;
        let checked = text.rfind("check ").and_then(|at| text.split_at_checked(at));
        if checked.is_none_or(|(before, line)| line != format!("check {}\n", check(before))) {
            return Err(foreign("is damaged: its last line does not match the others"));
        }
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let required = words(field("required")?);
        let optional = words(field("optional")?);
        if let Some(feature) = required.iter().find(|name| !KNOWN_FEATURES.contains(&name.as_str()))
        {
            return Err(MarkerError::Feature { feature: feature.clone(), found });
        }
        let database = match required.iter().any(|name| name == DATABASE) {
            true => Some(DatabasePlace {
                address: field("address")?.to_owned(),
                name: field("name")?.to_owned(),
            }),
            false => None,
        };
        Ok(Self { version: found, id, key, required, optional, database })
    }

    /// Adds the seal feature.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        if !self.is_sealed() {
            self.optional.push(SEALED.to_owned());
        }
        self
    }

    /// Adds the features of an encrypted store.
    #[must_use]
    pub fn encrypted(mut self) -> Self {
        if !self.is_encrypted() {
            self.required.push(ENCRYPTED.to_owned());
        }
        self.sealed()
    }

    /// Returns the marker of a folder for the same store, whose journal and index are in a
    /// database.
    #[must_use]
    pub fn in_database(mut self, place: DatabasePlace) -> Self {
        if self.database.replace(place).is_none() {
            self.required.push(DATABASE.to_owned());
        }
        self
    }

    /// Returns whether the content of the store is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.required.iter().any(|name| name == ENCRYPTED)
    }

    /// Returns whether the store has seals.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.optional.iter().any(|name| name == SEALED)
    }

    /// Returns whether this version may write the store: it knows all optional features and the
    /// minor version.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.version.1 <= FORMAT_VERSION.1
            && self.optional.iter().all(|name| KNOWN_FEATURES.contains(&name.as_str()))
    }
}

/// Decodes a version: major, minor.
pub(super) fn version_in(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the checksum of the preceding lines, for the last line.
pub(super) fn check(text: &str) -> String {
    hex(blake3::hash(text.as_bytes()).as_bytes().first_chunk::<8>().expect("8 of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_marker_decodes_as_it_was_encoded() {
        let marker = FormatMarker::new([1; 16], [2; 32]);
        assert_eq!(FormatMarker::decode(&marker.encode()), Ok(marker.clone()));
        assert!(marker.is_writable());
    }

    #[test]
    fn another_version_is_refused_by_both_numbers_and_with_a_remedy() {
        let text = FormatMarker::new([1; 16], [2; 32]).encode();
        let error = |version: &str| {
            let text = text.replace("format 2.0", &format!("format {version}"));
            FormatMarker::decode(&text).unwrap_err().to_string()
        };
        let later =
            "the store has format 3.7, this version of forge reads 2.x: use a later version";
        assert!(error("3.7").starts_with(later), "{}", error("3.7"));
        let earlier =
            "the store has format 1.0, this version of forge reads 2.x: export its sessions";
        assert!(error("1.0").starts_with(earlier), "{}", error("1.0"));
    }

    #[test]
    fn an_unknown_required_feature_is_refused_and_an_optional_one_read_only() {
        let marker = FormatMarker::new([1; 16], [2; 32]);
        let sharded = FormatMarker { required: vec!["sharded".to_owned()], ..marker.clone() };
        let refused = FormatMarker::decode(&sharded.encode()).unwrap_err().to_string();
        assert!(refused.starts_with("the store requires the feature 'sharded'"), "{refused}");
        assert!(refused.ends_with(": use a later version of forge"), "{refused}");
        let hinted = FormatMarker { optional: vec!["hints".to_owned()], ..marker };
        assert!(!FormatMarker::decode(&hinted.encode()).unwrap().is_writable());
    }

    #[test]
    fn the_marker_of_an_encrypted_store_requires_encryption_and_says_it_is_sealed() {
        let marker = FormatMarker::new([1; 16], [2; 32]).encrypted();
        let text = marker.encode();
        assert!(text.contains("\nrequired encrypted\noptional sealed\n"), "{text}");
        let read = FormatMarker::decode(&text).unwrap();
        assert!(read.is_encrypted() && read.is_sealed() && read.is_writable());
        assert!(!FormatMarker::new([1; 16], [2; 32]).sealed().is_encrypted());
    }

    #[test]
    fn a_folder_for_a_store_in_a_database_names_it() {
        let place = DatabasePlace {
            address: "postgres://db.example/forge".to_owned(),
            name: "nightly".to_owned(),
        };
        let marker = FormatMarker::new([1; 16], [2; 32]).sealed().in_database(place.clone());
        let text = marker.encode();
        let lines = "\nrequired database\noptional sealed\naddress postgres://db.example/forge\nname nightly\ncheck ";
        assert!(text.contains(lines), "{text}");
        let read = FormatMarker::decode(&text).unwrap();
        assert_eq!(read.database, Some(place));
        assert_eq!(read, marker);
    }

    #[test]
    fn the_marker_of_a_sealed_store_is_sealed_and_writable() {
        let plain = FormatMarker::new([1; 16], [2; 32]);
        let sealed = FormatMarker::decode(&plain.clone().sealed().encode()).unwrap();
        assert!(!plain.is_sealed() && sealed.is_sealed() && sealed.is_writable());
        assert_eq!(sealed.clone().sealed(), sealed);
    }

    #[test]
    fn a_file_that_is_no_format_marker_is_refused() {
        for text in ["", "git", "forge store\nformat x\n", "forge store\nformat 2.0\nid zz\n"] {
            assert!(matches!(FormatMarker::decode(text), Err(MarkerError::Foreign(_))), "{text}");
        }
    }
}
