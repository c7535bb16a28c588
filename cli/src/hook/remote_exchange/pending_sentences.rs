//! Sentences about purges and joins that a hook still has to report to an agent: in a file of its
//! session, next to the stamp.

use super::stamp::ExchangeStamp;
use crate::error::CommandError;
use crate::private_files;
use forge_store::store::Store;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The maximum number of sentences that [`keep_once`] remembers. Of more, those are forgotten that
/// were not added for the longest time.
const MAX_REMEMBERED: usize = 256;

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
    let known: Vec<&str> = known.split_inclusive('\n').collect();
    let is_new = |line: &&String| !known.contains(&line.as_str());
    let new: String = lines.iter().filter(is_new).map(String::as_str).collect();
    if new.is_empty() {
        return Ok(());
    }
    append(path, &new)?;
    let others = known.iter().copied().filter(|one| !lines.iter().any(|line| line == one));
    let all: Vec<&str> = others.chain(lines.iter().map(String::as_str)).collect();
    let forgotten = all.len().saturating_sub(MAX_REMEMBERED);
    private_files::replace_file(&before, all[forgotten..].concat().as_bytes())
        .map_err(|error| CommandError::io_at("cannot write", &before, error))
}

fn append(path: &Path, lines: &str) -> Result<(), CommandError> {
    if lines.is_empty() {
        return Ok(());
    }
    private_files::open_to_append(path)
        .and_then(|mut file| file.write_all(lines.as_bytes()))
        .map_err(|error| CommandError::io_at("cannot write", path, error))
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

    /// What was reported once was remembered for ever, in a file that only grew.
    #[test]
    fn of_many_sentences_the_latest_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.purged");
        let line = |number: usize| format!("forge: s{number} holds one.\n");
        // The first sentence is reported by each exchange, with another one.
        for number in 1..=2 * MAX_REMEMBERED {
            append_once(&path, &[line(0), line(number)]).unwrap();
        }
        let remembered = fs::read_to_string(path.with_extension("held")).unwrap();
        assert_eq!(remembered.lines().count(), MAX_REMEMBERED);
        fs::remove_file(&path).unwrap();
        let last = 2 * MAX_REMEMBERED;
        append_once(&path, &[line(0), line(1), line(last)]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), line(1), "it was forgotten");
    }
}
