//! Errors of this crate, grouped by what the caller should do next.

pub use crate::backend::{DepotError, Error as BackendError, IntegrityBreach, LockHolder};
pub use crate::format::{DecodeError, MarkerError, RemoteFormatError};

use crate::backend;
use crate::model::{SessionHandle, Timestamp};
use std::fmt;
use std::path::PathBuf;

/// What the caller should do about an error. Exhaustive on purpose: the compiler then points at
/// every caller when a kind is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The named thing does not exist: name something else.
    NotFound,
    /// The request is not valid: change it.
    Invalid,
    /// A concurrent change of the same thing: read it again and retry.
    Conflict,
    /// A lock or lease is held by another process: retry later.
    Locked,
    /// An I/O problem, such as a full disk or a missing permission: fix it and retry.
    Unavailable,
    /// Stored data is damaged: verify and repair.
    Corrupt,
    /// Stored data was not written by the holder of the store's key, or a remote is not what was
    /// seen before: find the cause, then restore a copy or adopt the store as it is.
    Forged,
    /// The key of a store or remote is missing, damaged or not the right one: import the right key.
    /// A sealed store can also be adopted.
    Unkeyed,
    /// The store needs another version of forge.
    Unsupported,
    /// A bug in forge: report it.
    Internal,
}

/// Any error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The named thing does not exist.
    #[error("there is no {what} '{name}'")]
    NotFound {
        /// What kind of thing was named.
        what: &'static str,
        /// The name that was given.
        name: String,
    },
    /// A revision that pruning has folded into a later one.
    #[error("#{sequence} was folded into #{into}")]
    Folded {
        /// The sequence number of the revision.
        sequence: u64,
        /// The sequence number of the revision that now contains its changes.
        into: u64,
    },
    /// A text in the bytes of a source that were pruned or dropped.
    #[error("the text was in '{blob}', which was pruned or dropped")]
    TextRemoved {
        /// The blob that contained it.
        blob: String,
    },
    /// An id prefix that several ids share.
    #[error("'{prefix}' is the beginning of {} ids: {}", matches.len(), first_matches(matches))]
    Ambiguous {
        /// The prefix that was given.
        prefix: String,
        /// The ids that match, each with its type.
        matches: Vec<String>,
    },
    /// A time before the session's first event.
    #[error("nothing is known at {time}: the session '{session}' begins at {earliest}")]
    NothingAt {
        /// The requested time.
        time: Timestamp,
        /// The session that was searched.
        session: String,
        /// The time of its first event.
        earliest: Timestamp,
        /// Another session that has data at that time.
        other: Option<String>,
    },
    /// A session in which nothing has been recorded.
    #[error("the session '{session}' is empty")]
    EmptySession {
        /// The name of the session.
        session: String,
    },
    /// No operation of the session can be undone.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// The last operation of the session was not an undo.
    #[error("there is nothing to do again: the last thing done was not an undo")]
    NothingToRedo,
    /// The request is not valid.
    #[error("{0}")]
    Invalid(String),
    /// A bundle contains secrets that this store is configured to redact.
    #[error(
        "the bundle holds {found}, which cannot be removed because the ids would change: nothing \
        was imported"
    )]
    Secrets {
        /// The number of secrets of each kind.
        found: String,
    },
    /// A claim that already exists.
    #[error("there is a {kind} '{id}' already")]
    Duplicate {
        /// The kind of the claim.
        kind: &'static str,
        /// The id of the claim.
        id: String,
    },
    /// A claim that refers to a claim that does not exist.
    #[error("{from} refers to {to}, which is not there")]
    Dangling {
        /// The claim that refers.
        from: String,
        /// The missing claim.
        to: String,
    },
    /// A concurrent change of the same thing.
    #[error("{0}")]
    Conflict(String),
    /// Something that another writer has leased.
    #[error("{what} is held by '{by}' until {until}")]
    Held {
        /// The leased thing.
        what: String,
        /// The holder of the lease.
        by: String,
        /// When the lease ends at the latest.
        until: Timestamp,
    },
    /// A folder that contains no store.
    #[error("there is no store at {}", path.display())]
    NoStore {
        /// The path of the folder.
        path: PathBuf,
    },
    /// A folder that already contains a store.
    #[error("there is a store at {} already", path.display())]
    StoreExists {
        /// The path of the folder.
        path: PathBuf,
    },
    /// The store was opened read-only, or its format can only be read.
    #[error("the store cannot be written: {reason}")]
    ReadOnly {
        /// Why it cannot be written.
        reason: String,
    },
    /// The store is sealed, and its key or witness is not on this machine.
    #[error(
        "the store is sealed, and its {missing} is not on this machine: it can be read, not written"
    )]
    Unkeyed {
        /// What is missing: `key` or `witness`.
        missing: &'static str,
    },
    /// The store is encrypted, and its key is not on this machine.
    #[error("the store is encrypted, and its key is not on this machine: it cannot be read")]
    Encrypted,
    /// The store's key file is damaged by more than one wrong bit, or cannot be read.
    #[error("the store's key, {}, is damaged{}", path.display(), reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    DamagedKey {
        /// The path of the key file.
        path: PathBuf,
        /// Why the file could not be read, if it could not.
        reason: Option<String>,
    },
    /// The folder is not a store, or is a store of another version.
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// Stored data is damaged.
    #[error("{what} is damaged")]
    Corrupt {
        /// The damaged thing.
        what: String,
        /// How the damage was detected.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An error of the storage backend.
    #[error(transparent)]
    Backend(#[from] backend::Error),
    /// A remote that has another history of a session than this store has seen.
    #[error(
        "the remote does not match what was seen of the session '{session}': it {what}; find the \
        cause before pushing or pulling the session"
    )]
    RemoteHistory {
        /// The name of the session.
        session: String,
        /// What the remote has.
        what: &'static str,
    },
    /// A join that would change the order of a session, although others push the session to another
    /// remote, which could not take the new order.
    #[error(
        "the session '{session}' was changed here and on the remote, and others push it to the \
        remote '{remote}' too: that one could not take the order of a join, and nothing was joined"
    )]
    SharedElsewhere {
        /// The name of the session.
        session: String,
        /// The name of the other remote.
        remote: String,
    },
    /// A session that has another order since a join with another remote. This remote cannot take
    /// that order.
    #[error(
        "the session '{session}' was joined with another remote, which has it in another order, and \
        not all of it is on this one: both cannot be joined"
    )]
    OtherOrder {
        /// The name of the session.
        session: String,
    },
    /// A depot that contains another remote than before. Nothing was read or written.
    #[error("the remote {what}: nothing was pulled or pushed")]
    OtherRemote {
        /// What happened to the remote.
        what: &'static str,
    },
    /// A remote that has its key from before a rotation again. Nothing was read or written.
    #[error(
        "the remote has the key again that it had before a rotation: nothing was pulled or pushed"
    )]
    RemoteKeySetBack,
    /// A key that no longer opens the remote, because the key of the remote was rotated.
    #[error(
        "the key of the remote was changed, and the key on this machine does not open it any more"
    )]
    RemoteKeyChanged,
    /// A ref that does not open with the new key of a remote whose key was rotated.
    #[error(
        "the session with the handle {handle} does not open with the key of the remote: it was \
         pushed with an earlier key, or its ref is damaged"
    )]
    UnopenedSession {
        /// The place of the session on the remote.
        handle: SessionHandle,
    },
    /// A grant that does not open the session on this remote.
    #[error("the grant {what}")]
    WrongGrant {
        /// What is wrong with it.
        what: &'static str,
    },
    /// Something on a remote that a grant of one session does not open.
    #[error("the grant opens one session of the remote and nothing else of it")]
    NotGranted,
    /// A session that has secrets which are not on the remote yet.
    #[error(
        "the session '{session}' holds {found} that the remote does not have yet: nothing was pushed"
    )]
    UnpushedSecrets {
        /// The name of the session.
        session: String,
        /// The number of secrets of each kind.
        found: String,
    },
    /// A held session: data in it was purged elsewhere and cannot be purged here.
    #[error(
        "the session '{session}' holds what was purged elsewhere and cannot be purged here: \
        {reason}. Nothing was pushed"
    )]
    PurgedSecrets {
        /// The name of the session, without secrets.
        session: String,
        /// Why it cannot be purged.
        reason: String,
    },
    /// A remote that lacks purge notices which the ref of a session takes into account.
    #[error("the remote lacks notices of purges that the session '{session}' needs")]
    LostNotices {
        /// The name of the session.
        session: String,
    },
    /// An error of the depot of a remote.
    #[error(transparent)]
    Depot(#[from] DepotError),
    /// An object of a remote that cannot be used.
    #[error(transparent)]
    RemoteFormat(#[from] RemoteFormatError),
    /// A connected system could not be captured or restored.
    #[error("the connected system '{system}' could not be {action}")]
    Connected {
        /// The name of the system.
        system: String,
        /// What was attempted.
        action: &'static str,
        /// The error that the system reported.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes: try again later")]
    NoRandomBytes {
        /// The error that it reported.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A bug in forge.
    #[error("forge contradicts itself: {0}")]
    Internal(String),
}

/// Returns the first ids that match an ambiguous prefix.
fn first_matches(matches: &[String]) -> String {
    const SHOWN: usize = 8;
    match matches.get(..SHOWN) {
        Some(first) if matches.len() > SHOWN => format!("{}, ...", first.join(", ")),
        _ => matches.join(", "),
    }
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns whether the cause is a full disk or an exhausted quota.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        backend::is_disk_full(self)
    }

    /// Makes an error for a request that is not valid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Makes an error for a named thing that does not exist.
    pub fn not_found(what: &'static str, name: impl Into<String>) -> Self {
        Self::NotFound { what, name: name.into() }
    }

    /// Returns a function that wraps a decoding error as damage of `what`.
    pub fn corrupt(what: impl fmt::Display) -> impl FnOnce(DecodeError) -> Self {
        // The text is only formatted if there is an error.
        move |source| Self::Corrupt { what: what.to_string(), source: Box::new(source) }
    }

    /// Makes an error for a missing row that another row refers to.
    pub fn missing(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into(), source: "it is not in the index".into() }
    }

    /// Returns whether the data was lost before an earlier repair.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = next {
            if error.downcast_ref::<DecodeError>().is_some_and(DecodeError::is_lost) {
                return true;
            }
            next = error.source();
        }
        false
    }

    /// Returns what the caller should do about this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. }
            | Self::Folded { .. }
            | Self::TextRemoved { .. }
            | Self::NothingAt { .. }
            | Self::EmptySession { .. }
            | Self::NothingToUndo
            | Self::NothingToRedo
            | Self::NoStore { .. } => ErrorKind::NotFound,
            Self::Ambiguous { .. }
            | Self::Invalid(_)
            | Self::Secrets { .. }
            | Self::UnpushedSecrets { .. }
            | Self::PurgedSecrets { .. }
            | Self::Duplicate { .. }
            | Self::Dangling { .. }
            | Self::StoreExists { .. }
            | Self::Marker(MarkerError::Foreign(_))
            | Self::Backend(backend::Error::DatabaseAddress { .. })
            | Self::Depot(DepotError::InvalidName { .. } | DepotError::InvalidAddress { .. }) => {
                ErrorKind::Invalid
            }
            Self::Conflict(_) | Self::SharedElsewhere { .. } | Self::OtherOrder { .. } => {
                ErrorKind::Conflict
            }
            Self::Marker(_) | Self::RemoteFormat(RemoteFormatError::LaterVersion { .. }) => {
                ErrorKind::Unsupported
            }
            Self::Corrupt { .. }
            | Self::Backend(
                backend::Error::Damaged { .. }
                | backend::Error::Gone { .. }
                | backend::Error::DamagedIndex { .. },
            )
            | Self::Depot(DepotError::Damaged { .. })
            | Self::RemoteFormat(
                RemoteFormatError::Damaged { .. } | RemoteFormatError::TooLarge { .. },
            ) => ErrorKind::Corrupt,
            Self::Backend(backend::Error::Breach { .. })
            | Self::RemoteHistory { .. }
            | Self::LostNotices { .. }
            | Self::OtherRemote { .. }
            | Self::RemoteKeySetBack => ErrorKind::Forged,
            Self::Unkeyed { .. }
            | Self::Encrypted
            | Self::DamagedKey { .. }
            | Self::RemoteKeyChanged
            | Self::UnopenedSession { .. }
            | Self::WrongGrant { .. }
            | Self::NotGranted
            | Self::RemoteFormat(RemoteFormatError::WrongKey) => ErrorKind::Unkeyed,
            Self::Held { .. }
            | Self::Backend(backend::Error::Busy { .. })
            | Self::Depot(DepotError::Busy { .. }) => ErrorKind::Locked,
            Self::ReadOnly { .. }
            | Self::Connected { .. }
            | Self::NoRandomBytes { .. }
            | Self::Backend(_)
            | Self::Depot(_) => ErrorKind::Unavailable,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}
