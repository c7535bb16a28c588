//! Errors in the middle of a file.

use crate::error::CommandError;
use forge_agents::claude_code::UnreadableLine;
use forge_store::error::Error;
use std::path::Path;

/// An error in the middle of a file.
pub(super) enum ImportFailure {
    File(std::io::Error),
    Store(Error),
}

impl From<std::io::Error> for ImportFailure {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

impl From<Error> for ImportFailure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl ImportFailure {
    pub(super) fn within_file(self, path: &Path) -> CommandError {
        match self {
            Self::File(error) => {
                CommandError::io(&format!("cannot read '{}'", path.display()), error)
            }
            Self::Store(error) => error.into(),
        }
    }
}

pub(super) fn bad_line(path: &Path, bad: &UnreadableLine) -> CommandError {
    CommandError::invalid(format!("'{}', line {}: {}", path.display(), bad.line, bad.reason))
        .hinted("nothing of this file was imported; without '--strict' such lines are skipped")
}
