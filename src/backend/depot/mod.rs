//! Depots: shared storage of named objects, in which the data of a remote is kept.
//!
//! A depot offers no locks and no transactions, only conditional writes: [`Depot::put_new`] and
//! [`Depot::swap`] compare and write in one step. Implementations: [`FolderDepot`], and
//! [`MemoryDepot`] for tests.

mod check;
mod error;
mod folder;
mod guarded_folder;
mod memory;

pub use check::check_depot;
pub use error::DepotError;
pub use folder::FolderDepot;
pub use memory::{DepotRequests, MemoryDepot};

use crate::model::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::time::Duration;

/// Maximum size of an object in bytes. A reader does not accept a larger one, so that a hostile
/// depot cannot fill the memory.
pub const MAX_DEPOT_OBJECT_BYTES: usize = 128 << 20;
/// Maximum number of entries in one answer of [`Depot::list`].
pub const DEPOT_LIST_ENTRIES: usize = 1_000;
/// Maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 512;

/// A tag that identifies the contents of an object. The depot chooses it; callers only compare it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DepotTag(String);

impl DepotTag {
    /// Creates a tag from its text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the tag, for [`DepotTag::new`].
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DepotTag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "DepotTag({})", self.0)
    }
}

/// The answer of [`Depot::get`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DepotRead {
    /// There is no object with this name.
    Absent,
    /// The object still has the tag that the caller knows.
    Unchanged,
    /// The whole object.
    Whole {
        /// Its contents.
        bytes: Vec<u8>,
        /// The tag of these contents.
        tag: DepotTag,
    },
}

impl DepotRead {
    /// Makes the answer to a caller that knows the tag `known`; `found` is the object, if there is
    /// one.
    fn of(found: Option<(Vec<u8>, DepotTag)>, known: Option<&DepotTag>) -> Self {
        match found {
            None => Self::Absent,
            Some((_, tag)) if known == Some(&tag) => Self::Unchanged,
            Some((bytes, tag)) => Self::Whole { bytes, tag },
        }
    }
}

/// The answer of [`Depot::put_new`] and [`Depot::swap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DepotWrite {
    /// The object was written, durably, and has this tag.
    Done(DepotTag),
    /// Nothing was written. For `put_new`: there is an object with this name. For `swap`: the
    /// object has another tag, or there is none. An earlier attempt of the same caller may be the
    /// cause.
    Conflict,
}

/// An entry of a list of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepotEntry {
    /// The name of the object.
    pub name: String,
    /// The tag of its contents. `None` if the depot would have to send another request or read a
    /// large object to know it.
    pub tag: Option<DepotTag>,
    /// The size of the object in bytes.
    pub bytes: u64,
    /// When it was last written, by the depot's clock.
    pub changed: Timestamp,
}

/// Storage of named objects that many machines share. Each call is one request, and blocks until it
/// is answered.
///
/// A name is a path of ASCII letters, digits, `-`, `_` and `.`. Its parts are separated by `/`;
/// none is empty or begins with a `.`. No name is the folder of another.
///
/// Every read sees every write that was answered before it. An error of a write other than
/// [`DepotError::Unsure`] means that nothing was written.
pub trait Depot: Send + Sync {
    /// Returns an object, or [`DepotRead::Unchanged`] if it has the tag `known`.
    ///
    /// # Errors
    /// [`DepotError::Damaged`] if the object is larger than [`MAX_DEPOT_OBJECT_BYTES`] or cannot be
    /// read whole.
    fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError>;

    /// Writes an object if there is none with this name. It is durable on return.
    ///
    /// # Errors
    /// [`DepotError::Unsure`] if the answer was lost: read the object to learn what happened.
    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError>;

    /// Replaces an object if it has the tag `expected`. It is durable on return.
    ///
    /// A depot may use a hash of the contents as the tag. A caller that must notice every change
    /// must therefore never write contents that the object had before.
    ///
    /// # Errors
    /// See [`Depot::put_new`].
    fn swap(&self, name: &str, expected: &DepotTag, bytes: &[u8])
    -> Result<DepotWrite, DepotError>;

    /// Returns the objects in the folder `prefix` and below whose names are after `after` in byte
    /// order, sorted by name. `prefix` is empty or ends with `/`; `after` is empty or the last name
    /// of an earlier answer. An answer has at most [`DEPOT_LIST_ENTRIES`] entries; one with fewer
    /// is the last.
    ///
    /// If a name continues the name of a folder beside it with a `-` or a `.`, such as `a-b` beside
    /// `a/b`, its place in the order is not defined: some depots list one folder after the other.
    fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError>;

    /// Removes an object with all its earlier contents. It is no error if there is no such object.
    fn remove(&self, name: &str) -> Result<(), DepotError>;

    /// Returns the time of the depot's clock, to which [`DepotEntry::changed`] is compared.
    fn now(&self) -> Result<Timestamp, DepotError>;

    /// Returns the time since this machine was started. On Linux it includes the time in which the
    /// machine was suspended. A change of the wall clock does not affect it. A depot with simulated
    /// time returns that instead.
    fn uptime(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let now = clock_gettime(ClockId::Boottime);
        #[cfg(not(target_os = "linux"))]
        let now = clock_gettime(ClockId::Monotonic);
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
    }
}

/// Rejects a name that does not follow the rules of [`Depot`].
///
/// # Errors
/// [`DepotError::InvalidName`].
pub fn check_depot_name(name: &str) -> Result<(), DepotError> {
    let wrong = |reason| Err(DepotError::InvalidName { name: name.to_owned(), reason });
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.len() > MAX_NAME_BYTES {
        return wrong("it is longer than 512 bytes");
    }
    for part in name.split('/') {
        if part.is_empty() {
            return wrong("it has an empty part");
        }
        if part.starts_with('.') {
            return wrong("a part of it begins with '.'");
        }
        if part.len() > usize::from(u8::MAX) {
            return wrong("a part of it is longer than 255 bytes");
        }
        if !part.bytes().all(is_plain) {
            return wrong("it has other characters than ASCII letters, digits, '-', '_' and '.'");
        }
    }
    Ok(())
}

/// Rejects a prefix for [`Depot::list`] that is neither empty nor a folder.
///
/// # Errors
/// [`DepotError::InvalidName`].
pub fn check_depot_prefix(prefix: &str) -> Result<(), DepotError> {
    if prefix.is_empty() {
        return Ok(());
    }
    let reason = "a prefix ends with '/'";
    let wrong = || DepotError::InvalidName { name: prefix.to_owned(), reason };
    check_depot_name(prefix.strip_suffix('/').ok_or_else(wrong)?)
}

/// Rejects contents that no reader would accept.
///
/// # Errors
/// [`DepotError::Unsupported`].
pub fn check_depot_object(bytes: &[u8]) -> Result<(), DepotError> {
    if bytes.len() <= MAX_DEPOT_OBJECT_BYTES {
        return Ok(());
    }
    let what = format!("store an object of {} bytes", bytes.len());
    Err(DepotError::Unsupported { what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_plain_path_within_the_depot() {
        let longest = ["x".repeat(255), "y".repeat(255)].join("/");
        for name in ["forge", "refs/3f/3f9c", "purges/0", "a-b_c.d/E", &longest] {
            check_depot_name(name).unwrap();
            check_depot_prefix(&format!("{name}/")).unwrap();
            assert!(check_depot_prefix(name).is_err(), "{name}");
        }
        check_depot_prefix("").unwrap();
        let [long, part] = [["ab"; 200].join("/"), "x".repeat(256)];
        for name in [
            "", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.b", "a\\b", "a b", "a\0",
            "ä", "a\n", "a:b", "~", "a%2e", &long, &part,
        ] {
            let error = check_depot_name(name).unwrap_err();
            assert!(matches!(error, DepotError::InvalidName { .. }), "{name}: {error:?}");
        }
        assert!(check_depot_prefix("/").is_err() && check_depot_prefix("a//").is_err());
    }

    #[test]
    fn an_object_that_no_reader_accepts_is_not_written() {
        let error = check_depot_object(&vec![0; MAX_DEPOT_OBJECT_BYTES + 1]).unwrap_err();
        assert!(matches!(error, DepotError::Unsupported { .. }));
        assert!(error.to_string().contains("134217729 bytes"), "{error}");
    }
}
