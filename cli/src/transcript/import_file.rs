//! Opens transcripts, detects their format, and finds the session that they belong to.

use crate::error::{CommandError, CommandErrorKind};
use forge_agents::claude_code::{
    InputEnding, TranscriptDialect, TranscriptOptions, TranscriptReader, session_of,
};
use forge_agents::{FileFormat, is_document};
use forge_store::model::Timestamp;
use forge_store::plain_file;
use serde::de::IgnoredAny;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How many bytes at the beginning or end of a file are searched for its session first.
const FIRST_BYTES: u64 = 64 << 10;
/// A line longer than this is not searched for a session.
const LONG_BYTES: usize = 64 << 20;

/// The field of the messages in a document of Gemini CLI.
const MESSAGES: &[u8] = b"\"messages\"";
/// How much of a file is read to detect its form, if its first part is not enough.
const HEAD_BYTES: u64 = 1 << 20;
/// The maximum length of the first line of a document over several lines.
const LINE_BYTES: u64 = 4 << 10;
/// The maximum size of a compressed file's content.
const MAX_UNPACKED_BYTES: u64 = 16 << 30;
/// The maximum window of a compressed file, as a power of two: 128 MiB.
const MAX_WINDOW_LOG: u32 = 27;

/// A file to import: the file itself or, if it is compressed, its content.
pub struct ImportFile {
    /// The file; for a compressed one, an unnamed private file with its content.
    pub file: File,
    /// Its length in bytes.
    pub bytes: u64,
    /// The detected format; `None` if the file is blank, or if no format was detected for a live
    /// one.
    pub form: Option<FileFormat>,
    /// Whether it is one document over several lines.
    pub document: bool,
}

impl ImportFile {
    /// Opens a regular file and detects its format. If several formats are possible, `wanted` is
    /// chosen where it is one of them. A compressed file is unpacked into an unnamed file in
    /// `folder`.
    pub fn new(
        path: &Path,
        wanted: Option<FileFormat>,
        folder: &Path,
    ) -> Result<Self, CommandError> {
        let (file, bytes) = open_plain(path)?;
        let opened = Self::look(file, bytes, wanted).map_err(|error| cannot_read(path, error))?;
        if opened.form != Some(FileFormat::Zstd) {
            return Ok(opened);
        }
        let (file, bytes) = unpacked(&opened.file, path, folder)?;
        Self::look(file, bytes, wanted).map_err(|error| cannot_read(path, error))
    }

    /// Opens a file that an agent is writing and has named to its hook. Its format is not detected.
    pub fn live(path: &Path) -> Result<Self, CommandError> {
        let (file, bytes) = open_plain(path)?;
        let line = read_at(&file, 0, LINE_BYTES).map_err(|error| cannot_read(path, error))?;
        Ok(Self { file, bytes, form: None, document: is_document(&line) })
    }

    fn look(file: File, bytes: u64, wanted: Option<FileFormat>) -> io::Result<Self> {
        let mut head = read_at(&file, 0, FIRST_BYTES)?;
        let mut form = FileFormat::detect(&head, wanted);
        if matches!(form, None | Some(FileFormat::Json | FileFormat::Other)) && bytes > FIRST_BYTES
        {
            head = read_at(&file, 0, HEAD_BYTES)?;
            form = FileFormat::detect(&head, wanted);
        }
        Ok(Self { file, bytes, form, document: is_document(&head) })
    }

    /// Refuses a file that seems to have another format than `wanted`. An unknown format is
    /// accepted.
    ///
    /// # Errors
    ///
    /// Invalid; names the detected format.
    pub fn check(&self, path: &Path, wanted: FileFormat) -> Result<(), CommandError> {
        match self.form {
            Some(form) if !form.may_be(wanted) && form != FileFormat::Other => {
                Err(wrong_format(path, wanted, form))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether it has no complete line yet, because an agent has only begun to write it.
    pub fn is_begun(&self) -> io::Result<bool> {
        let head = read_at(&self.file, 0, HEAD_BYTES)?;
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii();
        let json = matches!(text.first(), None | Some(b'{' | b'['));
        if self.is_cut_document(text) {
            return Ok(false);
        }
        let whole = serde_json::from_slice::<IgnoredAny>(text).is_ok();
        Ok(self.bytes <= head.len() as u64 && json && !whole && !text.contains(&b'\n'))
    }

    /// Returns whether this beginning of a file is a recording of Gemini CLI in one document that
    /// is cut off. The client writes the document in one go, so it is not still being written.
    fn is_cut_document(&self, head: &[u8]) -> bool {
        let named = head.windows(MESSAGES.len()).any(|part| part == MESSAGES);
        self.form == Some(FileFormat::Transcript(TranscriptDialect::Gemini))
            && (named || self.document)
            && self.bytes <= HEAD_BYTES
            && serde_json::from_slice::<IgnoredAny>(head).is_err()
    }

    /// Returns the error for a file that no agent can have begun to write: it has only NUL bytes
    /// and white space, or it is a document that is cut off.
    pub(super) fn damage(&self, path: &Path) -> io::Result<Option<CommandError>> {
        let shown = path.display();
        let head = read_at(&self.file, 0, HEAD_BYTES)?;
        let blank = head.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0);
        if self.form.is_none() && blank && head.contains(&0) {
            return Ok(Some(no_text(path)));
        }
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii();
        Ok(self.is_cut_document(text).then(|| {
            CommandError::invalid(format!("'{shown}' is a recording of Gemini CLI that is cut off"))
                .hinted("it was cut when it was written or copied: import a whole copy of it")
        }))
    }
}

/// Returns the error for a file that holds nothing but white space or NUL bytes.
pub fn no_text(path: &Path) -> CommandError {
    let shown = path.display();
    match std::fs::metadata(path).map(|it| it.len()) {
        Ok(0) => CommandError::invalid(format!("'{shown}' is empty")),
        _ => CommandError::invalid(format!("'{shown}' holds nothing but white space or NUL bytes"))
            .hinted("a file system that lost power leaves such files; import another copy of it"),
    }
}

/// Returns the error for a file with another format than expected.
pub fn wrong_format(path: &Path, wanted: FileFormat, found: FileFormat) -> CommandError {
    let shown = path.display();
    let error = match found {
        FileFormat::Other | FileFormat::Json => CommandError::invalid(format!(
            "'{shown}' is not {}: it seems to be {}",
            wanted.title(),
            found.title()
        )),
        _ => CommandError::invalid(format!("'{shown}' seems to be {}", found.title())),
    };
    match (found, found.import_subcommand()) {
        (FileFormat::Packed(_, Some(command)), _) => {
            error.hinted(format!("'{command} {shown}' makes it readable: import the result"))
        }
        (_, Some(verb)) => error.hinted(format!("import it with 'forge import {verb} {shown}'")),
        (FileFormat::Messages, None) => {
            error.hinted(format!("'forge thread check {shown}' checks whether it is complete"))
        }
        _ => error.hinted(
            "'forge import --help' lists the known formats; 'forge import events' reads any \
            program's record",
        ),
    }
}

pub(super) fn no_session_named(path: &Path, form: FileFormat) -> CommandError {
    let shown = path.display();
    let message = format!("'{shown}' is {} that names no session", form.title());
    CommandError::invalid(message)
        .hinted("the first line, which names it, is missing or damaged: import another copy")
}

/// Returns the error for a file whose records span several lines.
pub(super) fn records_over_lines(path: &Path, form: FileFormat) -> CommandError {
    let shown = path.display();
    let message = format!("'{shown}' is {} with records over several lines", form.title());
    CommandError::invalid(message)
        .hinted(format!("'jq -c . {shown}' writes each record on one line: import the result"))
}

pub(super) fn cannot_read(path: &Path, error: io::Error) -> CommandError {
    CommandError::io_at("cannot read", path, error)
}

/// Detects the format of a file; `None` if it is empty. The beginning of a compressed file is
/// unpacked in memory.
pub fn detect_format(path: &Path) -> Result<Option<FileFormat>, CommandError> {
    let (file, bytes) = open_plain(path)?;
    let opened = ImportFile::look(file, bytes, None).map_err(|error| cannot_read(path, error))?;
    if opened.form != Some(FileFormat::Zstd) {
        return Ok(opened.form);
    }
    let mut head = Vec::new();
    let decoder = decoder(&opened.file, path)?;
    decoder
        .take(HEAD_BYTES)
        .read_to_end(&mut head)
        .map_err(|error| damaged_archive(path, error))?;
    Ok(FileFormat::detect(&head, None))
}

fn damaged_archive(path: &Path, error: io::Error) -> CommandError {
    let shown = path.display();
    CommandError::invalid(format!("'{shown}' is compressed with zstd, and damaged or not whole"))
        .caused_by(error)
        .hinted(format!("'zstd -t {shown}' checks it"))
}

/// Returns a decoder of a compressed file. Its memory depends on the compression's window, not on
/// the size.
fn decoder(
    packed: &File,
    path: &Path,
) -> Result<zstd::Decoder<'static, BufReader<File>>, CommandError> {
    let mut packed = packed.try_clone().map_err(|error| cannot_read(path, error))?;
    packed.seek(SeekFrom::Start(0)).map_err(|error| cannot_read(path, error))?;
    let begun = zstd::Decoder::new(packed).and_then(|mut decoder| {
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        Ok(decoder)
    });
    begun.map_err(|error| damaged_archive(path, error))
}

/// Unpacks a file compressed with zstd into an unnamed file in a folder, which disappears when it
/// is closed.
fn unpacked(packed: &File, path: &Path, folder: &Path) -> Result<(File, u64), CommandError> {
    let shown = path.display();
    let no_room = |error| CommandError::io_at("cannot unpack", path, error);
    let mut decoder = decoder(packed, path)?;
    let mut file = tempfile::tempfile_in(folder).map_err(no_room)?;
    let mut part = vec![0; FIRST_BYTES as usize];
    let mut bytes = 0;
    loop {
        let length = decoder.read(&mut part).map_err(|error| damaged_archive(path, error))?;
        if length == 0 {
            return Ok((file, bytes));
        }
        bytes += length as u64;
        if bytes > MAX_UNPACKED_BYTES {
            return Err(CommandError::invalid(format!(
                "'{shown}' holds more than {MAX_UNPACKED_BYTES} bytes"
            ))
            .hinted("unpack it and import the file"));
        }
        io::Write::write_all(&mut file, part.get(..length).unwrap_or_default()).map_err(no_room)?;
    }
}

/// Opens a regular file, and returns it with its length in bytes.
pub fn open_plain(path: &Path) -> Result<(File, u64), CommandError> {
    let refused = |error: io::Error| {
        let is_folder = error.kind() == io::ErrorKind::IsADirectory;
        let error = cannot_read(path, error);
        match error.kind() {
            _ if is_folder => error.hinted("name the files in it"),
            CommandErrorKind::NotFound => {
                error.hinted("the path is relative to the working directory")
            }
            _ => error,
        }
    };
    let file = plain_file::open(path).map_err(refused)?;
    let bytes = file.metadata().map_err(refused)?.len();
    Ok((file, bytes))
}

/// Returns the session of the last line in a file that names one.
pub(super) fn last_session(file: &File, bytes: u64) -> io::Result<Option<String>> {
    let mut end = bytes;
    let mut length = FIRST_BYTES;
    // The bytes of a part up to its first line break end a line that begins in an earlier part.
    let mut line_end = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(length);
        length = length.saturating_mul(2);
        let mut part = read_at(file, start, end - start)?;
        part.append(&mut line_end);
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
        // A line that is too long is not searched: one before it is enough.
        line_end = if part.len() > LONG_BYTES { Vec::new() } else { part };
        end = start;
    }
    Ok(None)
}

/// Returns the session that the first lines of a transcript of Claude Code name, if it is not
/// `own`.
pub(super) fn other_session(file: &File, own: &str) -> io::Result<Option<String>> {
    let head = read_at(file, 0, FIRST_BYTES)?;
    let mut lines = head.split_inclusive(|byte| *byte == b'\n');
    Ok(lines.find_map(session_of).filter(|first| first != own))
}

/// Returns the session of the first line in a file that names one, for agents that name it there.
pub(super) fn first_session(
    file: &File,
    bytes: u64,
    options: TranscriptOptions,
) -> io::Result<Option<String>> {
    let options = TranscriptOptions { strict: false, ..options };
    let mut length = FIRST_BYTES;
    loop {
        let part = read_at(file, 0, length)?;
        let ending = if length >= bytes { InputEnding::File } else { InputEnding::More };
        let read = TranscriptReader::new(options).read(&part, ending, Timestamp::default());
        let id = read.ok().and_then(|piece| piece.session).map(|session| session.agent_session);
        if id.is_some() || length >= bytes {
            return Ok(id);
        }
        length = length.saturating_mul(8);
    }
}

/// Reads a range of a file; less if the file ends within it.
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
        // The line may be damaged.
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
        assert_eq!(error.causes(), ["it is a directory, not a file"]);
    }
}
