//! A transcript as a file: what may be read at all, and whose it is.

use crate::error::CommandError;
use forge_agents::claude_code::{Ending, Options, Reader, session_of};
use forge_store::model::Timestamp;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// So many bytes at the beginning or end of a file are looked through for its session first.
const FIRST_BYTES: u64 = 64 << 10;
/// A line longer than this names no session that could be found cheaply.
const LONG_BYTES: usize = 64 << 20;

/// Opens a plain file.
///
/// # Errors
///
/// Not found; invalid if it is a directory, a pipe or a device.
pub fn open_plain(path: &Path) -> Result<(File, u64), CommandError> {
    let shown = path.display();
    // Opening a pipe that nobody writes to would wait for ever.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| CommandError::io(&format!("cannot read '{shown}'"), error))?;
    let about = file
        .metadata()
        .map_err(|error| CommandError::io(&format!("cannot look at '{shown}'"), error))?;
    if about.is_dir() {
        return Err(CommandError::invalid(format!("'{shown}' is a directory"))
            .hinted("name the files in it"));
    }
    if !about.is_file() {
        return Err(CommandError::invalid(format!("'{shown}' is not a plain file")));
    }
    Ok((file, about.len()))
}

/// The session that the last of a file's lines belongs to which names one.
///
/// # Errors
///
/// If the file cannot be read.
pub(super) fn last_session(file: &File, bytes: u64) -> io::Result<Option<String>> {
    let mut end = bytes;
    let mut length = FIRST_BYTES;
    // What stands before the first line break of a part belongs to the part before it.
    let mut behind = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(length);
        length = length.saturating_mul(2);
        let mut part = read_at(file, start, end - start)?;
        part.append(&mut behind);
        let whole = match part.iter().position(|byte| *byte == b'\n') {
            _ if start == 0 => 0,
            Some(place) => place + 1,
            None => part.len(),
        };
        let lines = part.get(whole..).unwrap_or_default();
        let id = lines.rsplit(|byte| *byte == b'\n').find_map(session_of);
        if id.is_some() {
            return Ok(id);
        }
        part.truncate(whole);
        // The line before it will do.
        behind = if part.len() > LONG_BYTES { Vec::new() } else { part };
        end = start;
    }
    Ok(None)
}

/// The session that the first of a file's lines names, for agents that name it there.
///
/// # Errors
///
/// If the file cannot be read.
pub(super) fn first_session(
    file: &File,
    bytes: u64,
    options: Options,
) -> io::Result<Option<String>> {
    let options = Options { strict: false, ..options };
    let mut length = FIRST_BYTES;
    loop {
        let part = read_at(file, 0, length)?;
        let ending = if length >= bytes { Ending::File } else { Ending::More };
        let read = Reader::new(options).read(&part, ending, Timestamp::default());
        let id = read.ok().and_then(|piece| piece.session).map(|session| session.agent_session);
        if id.is_some() || length >= bytes {
            return Ok(id);
        }
        length = length.saturating_mul(8);
    }
}

/// This part of a file, or as much of it as there is.
///
/// # Errors
///
/// If the file cannot be read.
pub fn read_at(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let there = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(length.min(there)).unwrap_or(0)];
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_of(text: &[u8]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, text).unwrap();
        let (file, bytes) = open_plain(&path).unwrap();
        last_session(&file, bytes).unwrap()
    }

    #[test]
    fn the_last_line_that_names_a_session_counts() {
        let text = b"{\"sessionId\":\"a\"}\n{\"sessionId\":\"b\",\"x\":{\"sessionId\":\"c\"}}\n{}\n{\"sess";
        assert_eq!(last_of(text).as_deref(), Some("b"));
        assert_eq!(last_of(b"{\"x\":{\"sessionId\":\"c\"}}\n"), None);
        assert_eq!(last_of(b""), None);
        // However the line was written.
        let torn = b"\xef\xbb\xbf{\"sess{\"type\":\"x\",\"sessionId\":\"d\"}\0\0\n";
        assert_eq!(last_of(torn).as_deref(), Some("d"));
    }

    #[test]
    fn a_line_over_several_parts_is_found() {
        let long = "x".repeat(3 << 20);
        let text = format!("{{\"sessionId\":\"far\",\"x\":\"{long}\"}}\n{{}}\n");
        assert_eq!(last_of(text.as_bytes()).as_deref(), Some("far"));
    }

    #[test]
    fn a_directory_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = open_plain(folder.path()).unwrap_err();
        assert!(error.message().ends_with("is a directory"), "{error}");
    }
}
