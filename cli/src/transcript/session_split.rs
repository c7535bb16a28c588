//! Splits a transcript file that contains several sessions.
//!
//! A session that was resumed or forked from another may begin with a copy of the other's lines.
//! Its own lines follow the copied ones, so the two sessions stay together. Sessions without such a
//! link were put into one file by another program than the agent, and are imported separately.

use super::read_at;
use forge_agents::claude_code::{RecordLinks, TranscriptDialect, record_links};
use forge_agents::{begun_codex_session, begun_gemini_session};
use memchr::memmem::Finder;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::ops::Range;
use std::path::Path;

/// The number of bytes of a file that are read at once.
const PART_BYTES: usize = 4 << 20;

/// The lines of one of several sessions in a file.
#[derive(Default)]
pub(super) struct SessionLines(Vec<SessionLine>);

/// A line, or the records of one session in a line.
#[derive(Clone, Copy)]
struct SessionLine {
    number: u64,
    offset: u64,
    length: u64,
    /// Whether it is only a part of a line, so that a copy needs a line break after it.
    cut: bool,
}

impl SessionLines {
    /// Copies the lines into an unnamed file in a folder. Returns it with its length.
    pub(super) fn copy(&self, from: &File, folder: &Path) -> io::Result<(File, u64)> {
        let mut bytes = 0;
        let mut file = BufWriter::new(tempfile::tempfile_in(folder)?);
        for line in &self.0 {
            let text = read_at(from, line.offset, line.length)?;
            file.write_all(&text)?;
            bytes += text.len() as u64;
            if line.cut {
                file.write_all(b"\n")?;
                bytes += 1;
            }
        }
        Ok((file.into_inner().map_err(io::IntoInnerError::into_error)?, bytes))
    }

    /// Returns the number and the offset that a line of the copy has in the original file. Numbers
    /// begin with 1.
    pub(super) fn place(&self, number: u64) -> Option<(u64, u64)> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.0.get(index).map(|line| (line.number, line.offset))
    }
}

/// Returns the lines of each session or group of linked sessions, in the order in which they begin;
/// `None` if there is only one.
pub(super) fn split(
    file: &File,
    path: &Path,
    dialect: TranscriptDialect,
) -> io::Result<Option<Vec<SessionLines>>> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let is_sub_agent = dialect == TranscriptDialect::ClaudeCode && name.starts_with("agent-");
    if is_sub_agent || !has_several(file, dialect)? {
        return Ok(None);
    }
    let mut sessions = SessionTable::default();
    let mut lines = Vec::new();
    for_each_line(file, |number, offset, line| {
        sessions.read(dialect, line, |session, range, cut| {
            let (start, end) = (range.start as u64, range.end as u64);
            let line = SessionLine { number, offset: offset + start, length: end - start, cut };
            lines.push((session, line));
        });
        true
    })?;
    // Claude Code names a file after its session: the lines of another session in it were copied.
    let own = name.split('.').next().unwrap_or_default();
    if dialect == TranscriptDialect::ClaudeCode && sessions.last() == Some(own) {
        return Ok(None);
    }
    let groups = sessions.groups();
    let mut split: Vec<SessionLines> = Vec::new();
    let mut places = HashMap::new();
    for (session, line) in lines {
        let group = groups.get(session.unwrap_or(0)).copied().unwrap_or(0);
        let place = *places.entry(group).or_insert_with(|| {
            split.push(SessionLines::default());
            split.len() - 1
        });
        if let Some(lines) = split.get_mut(place) {
            lines.0.push(line);
        }
    }
    Ok((split.len() > 1).then_some(split))
}

/// Whether the lines of a file name more than one session.
fn has_several(file: &File, dialect: TranscriptDialect) -> io::Result<bool> {
    let field = Finder::new(match dialect {
        TranscriptDialect::Codex => "\"session_meta\"",
        _ => "\"sessionId\"",
    });
    // Nearly every line of Claude Code names the same session as the line before. Such a line need
    // not be parsed.
    let mut same_session: Option<Finder<'_>> = None;
    let mut sessions = SessionTable::default();
    for_each_line(file, |_, _, line| {
        if same_session.as_ref().is_some_and(|same| same.find(line).is_some())
            || field.find(line).is_none()
        {
            sessions.after_first_line = false;
            return true;
        }
        sessions.read(dialect, line, |_, _, _| {});
        if dialect == TranscriptDialect::ClaudeCode
            && let Some(id) = sessions.last()
        {
            let named = format!("\"sessionId\":\"{id}\"");
            same_session = Some(Finder::new(named.as_bytes()).into_owned());
        }
        sessions.names.len() < 2
    })?;
    Ok(sessions.names.len() > 1)
}

/// Calls a function with the number, offset and bytes of each line of a file, until the function
/// returns false.
fn for_each_line(file: &File, mut call: impl FnMut(u64, u64, &[u8]) -> bool) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(PART_BYTES, file);
    reader.rewind()?;
    let (mut number, mut offset) = (0, 0);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        if !call(number, offset, &line) {
            break;
        }
        offset += line.len() as u64;
        line.clear();
    }
    Ok(())
}

/// The sessions that the lines of a file name.
#[derive(Default)]
struct SessionTable {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// The session of the last record.
    current: Option<usize>,
    /// For the id of each record, the sessions that have such a record.
    records: HashMap<String, Vec<usize>>,
    /// The records that do not follow a record of their own session: the session, and the id of the
    /// record that they follow.
    roots: Vec<(usize, String)>,
    /// Whether the previous line is the first line of a rollout, or a copy of such a line.
    after_first_line: bool,
    /// The session that the current one was forked from.
    origin: Option<String>,
}

impl SessionTable {
    fn last(&self) -> Option<&str> {
        self.names.get(self.current?).map(String::as_str)
    }

    /// Reads the records of a line. Calls `each` for consecutive records of one session: with the
    /// session, their range, and whether the line also has records of other sessions.
    fn read(
        &mut self,
        dialect: TranscriptDialect,
        line: &[u8],
        mut each: impl FnMut(Option<usize>, Range<usize>, bool),
    ) {
        let begun = match dialect {
            TranscriptDialect::ClaudeCode => return self.read_records(line, each),
            TranscriptDialect::Codex => self.begun_codex(line),
            TranscriptDialect::Gemini => begun_gemini_session(line),
        };
        if let Some(id) = begun {
            self.current = Some(self.number(&id));
        }
        each(self.current, 0..line.len(), false);
    }

    /// Returns the session that a line of a rollout begins. In a fork, a copy of the first line of
    /// the original session follows the fork's own first line, and begins no session.
    fn begun_codex(&mut self, line: &[u8]) -> Option<String> {
        let was_first = std::mem::take(&mut self.after_first_line);
        let (id, origin) = begun_codex_session(line)?;
        self.after_first_line = true;
        if was_first || self.origin.as_ref() == Some(&id) {
            return None;
        }
        self.origin = origin;
        Some(id)
    }

    fn read_records(
        &mut self,
        line: &[u8],
        mut each: impl FnMut(Option<usize>, Range<usize>, bool),
    ) {
        let records = record_links(line);
        let mut parts: Vec<(Option<usize>, Range<usize>)> = Vec::new();
        for (range, links) in &records {
            if let Some(id) = &links.session {
                self.current = Some(self.number(id));
            }
            self.link(links);
            match parts.last_mut() {
                Some((session, part)) if *session == self.current => part.end = range.end,
                _ => parts.push((self.current, range.clone())),
            }
        }
        match parts.as_slice() {
            [] => each(self.current, 0..line.len(), false),
            [(session, _)] => each(*session, 0..line.len(), false),
            parts => parts.iter().for_each(|(session, part)| each(*session, part.clone(), true)),
        }
    }

    fn number(&mut self, id: &str) -> usize {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        self.names.push(id.to_owned());
        self.numbers.insert(id.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn link(&mut self, links: &RecordLinks) {
        let Some(session) = self.current else { return };
        for parent in &links.parents {
            if !self.records.get(parent).is_some_and(|known| known.contains(&session)) {
                self.roots.push((session, parent.clone()));
            }
        }
        if let Some(uuid) = &links.uuid {
            let known = self.records.entry(uuid.clone()).or_default();
            if !known.contains(&session) {
                known.push(session);
            }
        }
    }

    /// Returns for each session the number of its group. Two sessions are in one group if records
    /// of one follow records of the other.
    fn groups(&self) -> Vec<usize> {
        let mut groups: Vec<usize> = (0..self.names.len()).collect();
        for (session, parent) in &self.roots {
            let Some(known) = self.records.get(parent) else { continue };
            let Some(other) = known.first().filter(|_| !known.contains(session)) else { continue };
            let (Some(one), Some(two)) =
                (groups.get(*session).copied(), groups.get(*other).copied())
            else {
                continue;
            };
            groups.iter_mut().filter(|group| **group == two).for_each(|group| *group = one);
        }
        groups
    }
}
