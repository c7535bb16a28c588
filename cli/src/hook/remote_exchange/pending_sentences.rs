//! Sentences about purges that a hook still has to report to an agent: in a file of its session,
//! next to the stamp.

use super::stamp::ExchangeStamp;
use crate::error::CommandError;
use crate::private_files;
use forge_store::store::Store;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Adds sentences that the next hook of a session reports.
pub(super) fn keep(store: &Store, session: &str, sentences: &[String]) -> Result<(), CommandError> {
    let lines = lines_of(sentences);
    path_of(store, session).map_or(Ok(()), |path| append(&path, &lines.concat()))
}

/// Adds sentences that the next hook of a session reports, without the sentences that this function
/// added before: another file keeps them.
pub(super) fn keep_once(
    store: &Store,
    session: &str,
    sentences: &[String],
) -> Result<(), CommandError> {
    path_of(store, session).map_or(Ok(()), |path| append_once(&path, &lines_of(sentences)))
}

fn lines_of(sentences: &[String]) -> Vec<String> {
    sentences.iter().map(|sentence| format!("forge: {sentence}.\n")).collect()
}

fn append_once(path: &Path, lines: &[String]) -> Result<(), CommandError> {
    let before = path.with_extension("held");
    let known = fs::read_to_string(&before).unwrap_or_default();
    let is_new = |line: &&String| !known.split_inclusive('\n').any(|one| one == line.as_str());
    let new: String = lines.iter().filter(is_new).map(String::as_str).collect();
    append(path, &new)?;
    append(&before, &new)
}

fn append(path: &Path, lines: &str) -> Result<(), CommandError> {
    if lines.is_empty() {
        return Ok(());
    }
    private_files::open_to_append(path)
        .and_then(|mut file| file.write_all(lines.as_bytes()))
        .map_err(|error| CommandError::io(&format!("cannot write '{}'", path.display()), error))
}

/// Removes the sentences for an agent, and returns them as a text, so that they are reported once.
pub fn take(store: &Store, session: &str) -> Option<String> {
    let path = path_of(store, session)?;
    // If two hooks run at the same time, only one of them can rename the file.
    let taken = path.with_extension(format!("purged-{}", std::process::id()));
    fs::rename(&path, &taken).ok()?;
    let text = fs::read_to_string(&taken).ok();
    let _ = fs::remove_file(&taken);
    text.map(|text| format!("{text}Tell the user.\n"))
}

fn path_of(store: &Store, session: &str) -> Option<PathBuf> {
    Some(ExchangeStamp::of(store, session)?.path().with_extension("purged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_sentence_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log/x.purged");
        let (one, other) = ("forge: s holds one.\n".to_owned(), "forge: t holds one.\n".to_owned());
        append_once(&path, std::slice::from_ref(&one)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), one);
        fs::remove_file(&path).unwrap();
        append_once(&path, std::slice::from_ref(&one)).unwrap();
        assert!(!path.exists(), "it was reported before");
        append_once(&path, &[one, other.clone()]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), other);
    }
}
