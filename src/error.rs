//! What can go wrong, grouped by what to do next.

use crate::backend;
use crate::format::{DecodeError, MarkerError};
use crate::model::Timestamp;
use std::fmt;
use std::path::PathBuf;

/// What to do next about an error. Exhaustive on purpose: the compiler then points at every edge when one is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was named is not there: name something else.
    NotFound,
    /// What was asked for makes no sense: ask differently.
    Invalid,
    /// Somebody else changed the same thing: look, and try again.
    Conflict,
    /// Somebody else is busy: try again later.
    Locked,
    /// The disk, a permission: mend that and try again.
    Unavailable,
    /// What is stored is damaged: verify and repair.
    Corrupt,
    /// What is stored is not what the holder of the store's key has written: find out who did, then go back to a copy,
    /// or take it over as it is.
    Forged,
    /// The key of a sealed store is not here: bring it, or take the store over.
    Unkeyed,
    /// Another version of forge is needed.
    Unsupported,
    /// A fault of forge itself: report it.
    Internal,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was named is not there.
    #[error("there is no {what} '{name}'")]
    NotFound {
        /// What kind of thing was named.
        what: &'static str,
        /// How.
        name: String,
    },
    /// A revision that pruning has folded into a later one.
    #[error("#{sequence} was folded into #{into}")]
    Folded {
        /// Its number.
        sequence: u64,
        /// The number of the revision that holds what it changed.
        into: u64,
    },
    /// A text whose source was dropped by pruning.
    #[error("the text stood in '{blob}', which was pruned")]
    Dropped {
        /// The growing blob it stood in.
        blob: String,
    },
    /// A beginning of an id that several ids have.
    #[error("'{prefix}' is the beginning of {} ids: {}", matches.len(), matches.join(", "))]
    Ambiguous {
        /// The beginning.
        prefix: String,
        /// What begins so, each with what it is.
        matches: Vec<String>,
    },
    /// A time before anything happened.
    #[error("nothing is known at {time}: the session '{session}' begins at {earliest}")]
    NothingAt {
        /// The time asked for.
        time: Timestamp,
        /// The session asked.
        session: String,
        /// When it begins.
        earliest: Timestamp,
        /// A session that something is known of at that time.
        other: Option<String>,
    },
    /// Nothing has been recorded at all.
    #[error("the session '{session}' is empty")]
    EmptySession {
        /// The session.
        session: String,
    },
    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A bundle holds what this store was opened to take out.
    #[error(
        "the bundle holds {found}, and none can be taken out since what held it would have another id: nothing of it was \
         taken; let them through, or redact nothing"
    )]
    Secrets {
        /// How many, and of which kinds.
        found: String,
    },
    /// A claim that is there already.
    #[error("there is a {kind} '{id}' already")]
    Duplicate {
        /// Its kind.
        kind: &'static str,
        /// Its id.
        id: String,
    },
    /// A claim that refers to one that is not there.
    #[error("{from} refers to {to}, which is not there")]
    Dangling {
        /// The claim that refers.
        from: String,
        /// What it refers to.
        to: String,
    },
    /// Somebody else changed the same thing.
    #[error("{0}")]
    Conflict(String),
    /// Somebody else has taken something for a while.
    #[error("{what} is held by '{by}' until {until}")]
    Held {
        /// What.
        what: String,
        /// Who has it.
        by: String,
        /// Until when at most.
        until: Timestamp,
    },
    /// A folder without a store.
    #[error("there is no store at {}", path.display())]
    NoStore {
        /// The folder.
        path: PathBuf,
    },
    /// A folder that is a store already.
    #[error("there is a store at {} already", path.display())]
    StoreExists {
        /// The folder.
        path: PathBuf,
    },
    /// The store is opened for reading only, or can only be read.
    #[error("the store cannot be written: {reason}")]
    ReadOnly {
        /// Why.
        reason: String,
    },
    /// The store is sealed, and what its seals are checked and made with is not here.
    #[error(
        "the store is sealed, and its {missing} is not on this machine: it can be read, not written"
    )]
    Unkeyed {
        /// What is missing: `key` or `witness`.
        missing: &'static str,
    },
    /// The store is encrypted, and its key is not here.
    #[error("the store is encrypted, and its key is not on this machine: it cannot be read")]
    Encrypted,
    /// The file of the store's key is damaged by more than a single wrong bit.
    #[error("the store's key, {}, is damaged{}", path.display(), reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    DamagedKey {
        /// The file.
        path: PathBuf,
        /// Why it was not read, if it was not.
        reason: Option<String>,
    },
    /// The folder is something else, or another version's.
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// What is stored is damaged.
    #[error("{what} is damaged")]
    Corrupt {
        /// What.
        what: String,
        /// How it was found out.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Where bytes are kept.
    #[error(transparent)]
    Backend(#[from] backend::Error),
    /// A part of what connected systems keep could not be captured or restored.
    #[error("the connected system '{system}' could not be {action}")]
    Connected {
        /// The system.
        system: String,
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A fault of forge itself.
    #[error("forge contradicts itself: {0}")]
    Internal(String),
}

/// Most functions of this crate return this.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether it went wrong since there is no room on the disk, or none for this user.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        backend::is_disk_full(self)
    }

    /// Something asked for makes no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Something named is not there.
    pub fn not_found(what: &'static str, name: impl Into<String>) -> Self {
        Self::NotFound { what, name: name.into() }
    }

    /// Says what is damaged.
    pub fn corrupt(what: impl fmt::Display) -> impl FnOnce(DecodeError) -> Self {
        // Nothing is put into words unless it comes to that.
        move |source| Self::Corrupt { what: what.to_string(), source: Box::new(source) }
    }

    /// Says that a row is missing that another one points to.
    pub fn missing(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into(), source: "it is not in the index".into() }
    }

    /// What to do next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. }
            | Self::Folded { .. }
            | Self::Dropped { .. }
            | Self::NothingAt { .. }
            | Self::EmptySession { .. }
            | Self::NoStore { .. } => ErrorKind::NotFound,
            Self::Ambiguous { .. }
            | Self::Invalid(_)
            | Self::Secrets { .. }
            | Self::Duplicate { .. }
            | Self::Dangling { .. }
            | Self::StoreExists { .. }
            | Self::Marker(MarkerError::Foreign(_)) => ErrorKind::Invalid,
            Self::Conflict(_) => ErrorKind::Conflict,
            Self::Marker(_) => ErrorKind::Unsupported,
            Self::Corrupt { .. }
            | Self::Backend(
                backend::Error::Damaged { .. }
                | backend::Error::Gone { .. }
                | backend::Error::DamagedIndex { .. },
            ) => ErrorKind::Corrupt,
            Self::Backend(backend::Error::Breach { .. }) => ErrorKind::Forged,
            Self::Unkeyed { .. } | Self::Encrypted | Self::DamagedKey { .. } => ErrorKind::Unkeyed,
            Self::Held { .. } | Self::Backend(backend::Error::Busy { .. }) => ErrorKind::Locked,
            Self::ReadOnly { .. } | Self::Connected { .. } | Self::Backend(_) => {
                ErrorKind::Unavailable
            }
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}
