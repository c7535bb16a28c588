//! What was purged here because others purged it, until a hook has said it to the agent: a file of
//! the session, beside its stamp.

use super::stamp::ExchangeStamp;
use crate::error::CommandError;
use crate::private_files;
use forge_store::store::Store;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Adds sentences to what the next hook of a session says.
pub(super) fn keep(store: &Store, session: &str, sentences: &[String]) -> Result<(), CommandError> {
    let (false, Some(path)) = (sentences.is_empty(), path_of(store, session)) else {
        return Ok(());
    };
    let lines: String = sentences.iter().map(|sentence| format!("forge: {sentence}.\n")).collect();
    let write = || {
        if let Some(folder) = path.parent() {
            private_files::create_directories(folder)?;
        }
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        file.write_all(lines.as_bytes())
    };
    write().map_err(|error| CommandError::io(&format!("cannot write '{}'", path.display()), error))
}

/// Takes what the next hook of a session says. It is said once.
pub fn take(store: &Store, session: &str) -> Option<String> {
    let path = path_of(store, session)?;
    // Of two hooks at the same time, one finds it.
    let taken = path.with_extension(format!("purged-{}", std::process::id()));
    fs::rename(&path, &taken).ok()?;
    let text = fs::read_to_string(&taken).ok();
    let _ = fs::remove_file(&taken);
    text.map(|text| format!("{text}Tell the user.\n"))
}

fn path_of(store: &Store, session: &str) -> Option<PathBuf> {
    Some(ExchangeStamp::of(store, session)?.path().with_extension("purged"))
}
