//! Errors as the user sees them: kind, message, causes, hints, exit code.

use forge_store::error as store;
use forge_store::error::{BackendError, DepotError, RemoteFormatError};
use serde::Serialize;
use std::borrow::Cow;
use std::error::Error;
use std::path::Path;
use std::{fmt, io};

/// Defines the exit codes, and the list of all of them.
macro_rules! exit_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: u8 = $code;)*
        /// Every exit code of the command.
        pub const EXIT_CODES: &[u8] = &[$($code),*];
    };
}

exit_codes! {
    /// Success.
    EXIT_OK = 0;
    /// The answer is "no", in a way that the command documents: differences with `--exit-code`, for
    /// example.
    EXIT_NO = 1;
    /// Wrong usage or invalid input.
    EXIT_INVALID = 2;
    /// The named thing does not exist.
    EXIT_NOT_FOUND = 3;
    /// Locked, in conflict, or not available now: retrying may help.
    EXIT_UNAVAILABLE = 4;
    /// The store or the remote is damaged, or has a version that this forge does not know.
    EXIT_CORRUPT = 5;
    /// The store was not written by the holder of its key, or the remote is not the one that was
    /// seen.
    EXIT_FORGED = 6;
    /// The store's key or witness is missing here: reads are not verified, and writes are refused.
    /// Also if a remote's key or grant is wrong.
    EXIT_UNKEYED = 7;
    /// Done as far as possible now, but not complete: another process still uses data that should
    /// be removed, or a database keeps replaced rows.
    EXIT_NOT_YET = 8;
    /// A bug in forge.
    EXIT_INTERNAL = 70;
}

/// What to know about damage on a remote.
const UNAFFECTED: &str = "what is recorded here is not affected";

/// The kind of an error, by what the user can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandErrorKind {
    /// The command line is invalid.
    Usage,
    /// An input is invalid.
    Invalid,
    /// Messages have an unknown form, so nothing was done with them.
    UnknownForm,
    /// The named thing does not exist.
    NotFound,
    /// Another process changed the same thing.
    Conflict,
    /// Another process holds the lock.
    Locked,
    /// The system refused: permissions, a full disk.
    Unavailable,
    /// The store or the remote is damaged.
    Corrupt,
    /// The store was not written by the holder of its key, or the remote is not the one that was
    /// seen.
    Forged,
    /// The store's key is missing here, or a remote's key or grant is wrong.
    Unkeyed,
    /// The version of the store, or the kind of the request, is not supported by this forge.
    Unsupported,
    /// A bug in forge.
    Internal,
    /// The reader of forge's output has closed it.
    BrokenPipe,
}

impl From<store::ErrorKind> for CommandErrorKind {
    fn from(kind: store::ErrorKind) -> Self {
        match kind {
            store::ErrorKind::NotFound => Self::NotFound,
            store::ErrorKind::Invalid => Self::Invalid,
            store::ErrorKind::Conflict => Self::Conflict,
            store::ErrorKind::Locked => Self::Locked,
            store::ErrorKind::Unavailable => Self::Unavailable,
            store::ErrorKind::Corrupt => Self::Corrupt,
            store::ErrorKind::Forged => Self::Forged,
            store::ErrorKind::Unkeyed => Self::Unkeyed,
            store::ErrorKind::Unsupported => Self::Unsupported,
            store::ErrorKind::Internal => Self::Internal,
        }
    }
}

/// An error of a command.
#[derive(Debug)]
pub struct CommandError {
    kind: CommandErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    hints: Vec<String>,
}

impl CommandError {
    /// Creates an error of this kind.
    pub fn new(kind: CommandErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None, hints: Vec::new() }
    }

    /// Creates an error about wrong usage, as clap reports it.
    pub fn usage(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        // A list of arguments follows on indented lines.
        let more = lines.by_ref().take_while(|line| line.starts_with(' ')).map(str::trim);
        let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
        for line in more {
            message.push(' ');
            message.push_str(line);
        }
        let tips = lines.filter_map(|line| line.trim().strip_prefix("tip: "));
        let mut error = Self::new(CommandErrorKind::Usage, message);
        error.hints.extend(tips.map(str::to_owned));
        error.hinted("'--help' after the command explains it")
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(CommandErrorKind::Invalid, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(CommandErrorKind::NotFound, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(CommandErrorKind::Unsupported, message)
    }

    /// Creates an error about a bug in forge.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(CommandErrorKind::Internal, message)
            .hinted("this is a bug in forge; what was acknowledged before is safe")
    }

    /// Returns the nearest cause that is an error of the store.
    pub fn store_error(&self) -> Option<&store::Error> {
        let mut next = self.source();
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<store::Error>() {
                return Some(error);
            }
            next = error.source();
        }
        None
    }

    /// Whether the reason is that the store's disk is full.
    pub fn is_disk_full(&self) -> bool {
        self.store_error().is_some_and(store::Error::is_disk_full)
    }

    /// Creates an error about a failed system call. Its kind follows from the error of the system.
    pub fn io(what: &str, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::BrokenPipe => CommandErrorKind::BrokenPipe,
            io::ErrorKind::NotFound => CommandErrorKind::NotFound,
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory => CommandErrorKind::Invalid,
            _ => CommandErrorKind::Unavailable,
        };
        Self::new(kind, what).caused_by(error)
    }

    /// Creates an error about a failed system call at a path, which follows `what`.
    pub fn io_at(what: &str, path: &Path, error: io::Error) -> Self {
        Self::io(&format!("{what} '{}'", path.display()), error)
    }

    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Wraps this error in one of the same kind, with the same hints, whose message says what was
    /// being done.
    pub fn with_context(mut self, message: impl Into<String>) -> Self {
        let hints = std::mem::take(&mut self.hints);
        Self { kind: self.kind, message: message.into(), source: Some(self.into()), hints }
    }

    /// Adds a hint about what to do next.
    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Replaces the hints by this one.
    pub fn with_only_hint(self, hint: impl Into<String>) -> Self {
        Self { hints: vec![hint.into()], ..self }
    }

    pub fn kind(&self) -> CommandErrorKind {
        self.kind
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the hints about what to do next.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Returns the causes, nearest first. One whose text is in the text before it is left out.
    pub fn causes(&self) -> Vec<String> {
        let mut causes: Vec<String> = Vec::new();
        let mut next = self.source();
        while let Some(error) = next {
            let text = error.to_string();
            if !causes.last().unwrap_or(&self.message).contains(&text) {
                causes.push(text);
            }
            next = error.source();
        }
        causes
    }

    /// Returns the message and the causes as one line.
    pub fn message_with_causes(&self) -> String {
        [vec![self.message.clone()], self.causes()].concat().join(": ")
    }

    pub fn exit_code(&self) -> u8 {
        match self.kind {
            CommandErrorKind::BrokenPipe => EXIT_OK,
            CommandErrorKind::UnknownForm => EXIT_NO,
            CommandErrorKind::Usage | CommandErrorKind::Invalid => EXIT_INVALID,
            CommandErrorKind::NotFound => EXIT_NOT_FOUND,
            CommandErrorKind::Conflict
            | CommandErrorKind::Locked
            | CommandErrorKind::Unavailable => EXIT_UNAVAILABLE,
            CommandErrorKind::Corrupt | CommandErrorKind::Unsupported => EXIT_CORRUPT,
            CommandErrorKind::Forged => EXIT_FORGED,
            CommandErrorKind::Unkeyed => EXIT_UNKEYED,
            CommandErrorKind::Internal => EXIT_INTERNAL,
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl Error for CommandError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn Error + 'static))
    }
}

impl From<store::Error> for CommandError {
    fn from(error: store::Error) -> Self {
        let hint = hint_of(&error);
        // The chain omits a cause that repeats the error that it caused.
        let outer = Self::new(error.kind().into(), error.to_string()).caused_by(error);
        hint.into_iter().fold(outer, Self::hinted)
    }
}

/// Returns what to do about an error of the store.
fn hint_of(error: &store::Error) -> Option<Cow<'static, str>> {
    Some(Cow::Owned(match error {
        store::Error::NothingAt { other: Some(other), .. } => {
            format!("another session has data for that time: use '--session {other}'")
        }
        store::Error::Folded { into, .. } => {
            format!("name '#{into}'; or undo the pruning: 'forge log --operations' names it")
        }
        store::Error::Held { by, .. } => format!(
            "wait for that, or longer with '--lock-timeout SECONDS'; if '{by}' has ended, an \
            append with '--writer {by}' releases it"
        ),
        store::Error::Duplicate { kind: "session", id } => {
            format!("use 'forge session use {id}' to continue it, or choose another name")
        }
        store::Error::Duplicate { kind: "branch", id } => {
            format!("use 'forge branch switch {id}' to continue on it, or choose another name")
        }
        store::Error::UnopenedSession { handle } => {
            let handle = handle.to_string();
            let folder: String = handle.chars().take(2).collect();
            format!(
                "push it again on the machine that pushed it, once that has the new key; 'forge \
                push --accept-history' there takes what is on the remote if that knows it no \
                longer; if the ref is damaged, remove refs/{folder}/{handle} from the remote before"
            )
        }
        store::Error::Depot(DepotError::Damaged { name, .. }) => {
            let parts: Vec<&str> = name.split('/').collect();
            let ["refs" | "packs", folder, handle, ..] = parts.as_slice() else {
                return Some(Cow::Borrowed(UNAFFECTED));
            };
            format!(
                "{UNAFFECTED}; put the object back from a backup of the remote, or remove \
                refs/{folder}/{handle} there: then 'forge push SESSION --accept-history' pushes \
                the session again from here"
            )
        }
        other => return fixed_hint(other).map(Cow::Borrowed),
    }))
}

/// Returns what to do about an error of the store, if that does not depend on its details.
fn fixed_hint(error: &store::Error) -> Option<&'static str> {
    Some(match error {
        store::Error::Ambiguous { .. } => "write more of the id",
        store::Error::EmptySession { .. } => {
            "record something first, such as 'forge note add TEXT'"
        }
        store::Error::NoStore { .. } => {
            "'forge init' makes one, with the same '--store' if you gave one"
        }
        store::Error::StoreExists { .. } => "'forge status' says what is in it",
        store::Error::Duplicate { kind: "message" | "receipt of the message", .. } => {
            "another message needs another id"
        }
        store::Error::Duplicate { .. } => "update it, or give the new one another id",
        store::Error::Dangling { .. } => "add that first, or name another",
        store::Error::ReadOnly { .. } => "reading still works",
        store::Error::Unkeyed { .. } => {
            "'forge key import' restores the key; 'forge adopt' accepts the store as it is"
        }
        store::Error::DamagedKey { .. } => {
            "restore it from a copy, or import an exported key with 'forge key import'; \
            'forge adopt' accepts a store that is not encrypted without it"
        }
        store::Error::Encrypted => {
            "restore the key with 'forge key import'; without it the store cannot be read"
        }
        store::Error::Backend(BackendError::Breach { .. }) => {
            "'forge verify' checks the whole store; 'forge repair TO' saves what is undamaged in a \
            new folder, 'forge adopt' keeps it as it is"
        }
        store::Error::Backend(BackendError::Busy { .. }) => {
            "try again, or wait longer with '--lock-timeout SECONDS'"
        }
        store::Error::Backend(BackendError::Database { unsure: true, .. }) => {
            "'forge log' shows whether it was; do it again if not"
        }
        store::Error::Backend(BackendError::Database { source, .. })
            if is_about_password(source.as_ref()) =>
        {
            "nothing was written; the password is looked for in the service that PGSERVICE or the \
            address names, in PGPASSWORD and in ~/.pgpass"
        }
        store::Error::Backend(BackendError::Database { .. }) => {
            "nothing was written; docs/postgres.md says what forge needs of a database"
        }
        store::Error::RemoteKeyChanged => {
            "'forge remote key export FILE' writes the new key on a machine that has it, then \
            'forge remote add URL NAME --key FILE' replaces the key here, or FORGE_REMOTE_KEY \
            names that file"
        }
        store::Error::WrongGrant { .. } | store::Error::NotGranted => {
            "'forge remote grant --session SESSION' prints the grant of a session where the key of \
            the remote is"
        }
        store::Error::PurgedSecrets { .. } => {
            "change what is named, or purge more of the text around the secret with 'forge purge', \
            then push again; if it is not a secret, '--allow-secrets' pushes it"
        }
        store::Error::UnpushedSecrets { .. } => {
            "'forge purge --rules --dry-run' shows where, 'forge purge --rules --yes' removes them; \
            '--redact-allow TEXT' is for what is not a secret, '--allow-secrets' pushes all"
        }
        store::Error::RemoteFormat(RemoteFormatError::Damaged { what: "key file", .. }) => {
            "'forge remote key export FILE' writes it where the remote is known"
        }
        store::Error::RemoteFormat(RemoteFormatError::Damaged { what: "grant", .. }) => {
            "copy all of what 'forge remote grant' printed, or let it print another"
        }
        store::Error::RemoteFormat(
            RemoteFormatError::Damaged { .. } | RemoteFormatError::TooLarge { .. },
        ) => UNAFFECTED,
        full @ store::Error::Depot(_) if full.is_disk_full() => "make room where the remote is",
        full if full.is_disk_full() => {
            "make room on the disk, or delete old data at once with 'forge checkpoint prune --now \
            --yes' ('--dry-run' shows it); reading still works"
        }
        damaged if damaged.kind() == store::ErrorKind::Corrupt => {
            "'forge verify' checks the whole store; 'forge repair TO' saves what is undamaged in a \
            new folder"
        }
        store::Error::Backend(BackendError::Io { source, .. })
            if matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            "the store cannot be written from here; reading still works"
        }
        _ => return None,
    })
}

/// Returns whether a database refused the password, or needs one and none was found.
fn is_about_password(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |&error| error.source()).any(|error| {
        let text = error.to_string();
        text.contains("password missing") || text.contains("password authentication failed")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_store_keeps_kind_message_and_causes() {
        let what = "segment 7".to_owned();
        let error: CommandError =
            store::Error::Corrupt { what, source: "bad checksum at 12".into() }.into();
        assert_eq!(error.exit_code(), EXIT_CORRUPT);
        assert_eq!(error.message(), "segment 7 is damaged");
        assert_eq!(error.causes(), ["bad checksum at 12"]);
        assert!(error.hints()[0].contains("'forge repair TO'"), "{:?}", error.hints());
        let (prefix, matches) = ("ab".to_owned(), vec!["abc".to_owned(), "abd".to_owned()]);
        let error: CommandError = store::Error::Ambiguous { prefix, matches }.into();
        assert_eq!((error.exit_code(), error.hints().len()), (EXIT_INVALID, 1));
        let what = "the session 's' ends there at #1, not at #2".to_owned();
        let error: CommandError =
            store::Error::Backend(BackendError::DamagedIndex { what: what.clone() }).into();
        assert_eq!(error.exit_code(), EXIT_CORRUPT);
        assert_eq!(error.message(), format!("the index is damaged: {what}"));
        assert!(error.hints()[0].contains("'forge repair TO'"), "{:?}", error.hints());
    }

    #[test]
    fn an_error_about_the_password_of_a_database_says_where_it_is_looked_for() {
        let hints = |source: CommandError| {
            let (action, place) = ("read", "postgres://db/forge".to_owned());
            let source = Box::new(source);
            let error = BackendError::Database { action, place, unsure: false, source };
            CommandError::from(store::Error::Backend(error)).hints().concat()
        };
        let missing = CommandError::invalid("password missing");
        let refused = CommandError::invalid("password authentication failed for user \"passwd\"");
        for error in [missing, refused] {
            let error = error.with_context("invalid configuration");
            assert!(hints(error).contains("PGPASSWORD"));
        }
        let other = CommandError::invalid("database \"password\" does not exist");
        assert!(!hints(other).contains("PGPASSWORD"));
    }

    #[test]
    fn causes_of_an_error_are_listed_without_repetitions() {
        let inner = CommandError::invalid("no such byte");
        let same = CommandError::invalid("cannot read").caused_by(inner);
        let outer = CommandError::invalid("cannot read").caused_by(same);
        assert_eq!(outer.causes(), ["no such byte"]);
        // An error of object storage has the texts of its causes.
        let inner = CommandError::invalid("403 Forbidden");
        let denied = CommandError::invalid("cannot put: 403 Forbidden").caused_by(inner);
        assert_eq!(denied.with_context("cannot push").causes(), ["cannot put: 403 Forbidden"]);
    }

    #[test]
    fn a_broken_pipe_is_success_and_a_full_disk_is_not() {
        let pipe = CommandError::io("cannot write", io::ErrorKind::BrokenPipe.into());
        assert_eq!((pipe.kind(), pipe.exit_code()), (CommandErrorKind::BrokenPipe, EXIT_OK));
        let full = CommandError::io("cannot write", io::ErrorKind::StorageFull.into());
        assert_eq!(
            (full.kind(), full.exit_code()),
            (CommandErrorKind::Unavailable, EXIT_UNAVAILABLE)
        );
        let missing = CommandError::io("cannot read", io::ErrorKind::NotFound.into());
        assert_eq!(missing.exit_code(), EXIT_NOT_FOUND);
    }
}
