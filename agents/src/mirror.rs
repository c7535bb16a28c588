//! Transcripts of Claude Code that a program hands over line by line, as the Claude Agent SDK does.
//!
//! They are stored as if the same file were imported: as a source of the session, with its facts
//! and checkpoints. A source without bytes names the project of a session.

mod key;
mod known_transcript;

pub use key::MirrorKey;
pub(crate) use known_transcript::MirrorNote;

use crate::claude_code::{InputEnding, TranscriptOptions, TranscriptReader, TranscriptState};
use crate::imported_session::session_of_agent;
use forge_store::error::{Error, Result};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{Session, SourceBookmark, SourceChunk, Store, WriteContext};
use key::{DIALECT, PROJECT, session_id, subpath};
use known_transcript::KnownTranscript;

/// How far a transcript is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorState {
    /// The position at which the next lines are appended, in bytes.
    pub end: u64,
    /// Whether it has no lines, because all were deleted.
    pub is_empty: bool,
    /// The summary that was handed over with the last lines; `None` if lines were appended since in
    /// another way, such as by an import.
    pub summary: Option<String>,
}

/// A session in the list of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredSession {
    /// The agent's own id of the session.
    pub session: String,
    /// When lines were last handed over, in milliseconds since 1970. If lines were imported since:
    /// the time of the session's last event.
    pub written_at: i64,
    /// As [`MirrorState::summary`].
    pub summary: Option<String>,
}

/// The transcripts in a store that are handed over line by line.
#[derive(Clone, Copy, Debug)]
pub struct TranscriptMirror<'a>(&'a Store);

impl<'a> TranscriptMirror<'a> {
    /// Wraps a store.
    #[must_use]
    pub const fn new(store: &'a Store) -> Self {
        Self(store)
    }

    /// Returns a line as it is stored: without its secrets, if the store redacts.
    #[must_use]
    pub fn clean(&self, line: &str) -> String {
        let clean = self.0.redact_source(line.as_bytes(), TextForm::Json, PartEnding::End);
        String::from_utf8_lossy(clean.bytes()).into_owned()
    }

    /// Returns how far a transcript is stored; `None` if it never was.
    ///
    /// # Errors
    /// If the key is not valid, or the store cannot be read.
    pub fn state(&self, key: &MirrorKey) -> Result<Option<MirrorState>> {
        Ok(self.known(key)?.map(|known| MirrorState {
            end: known.bookmark.bytes,
            is_empty: known.is_empty(),
            summary: known.summary(),
        }))
    }

    /// Returns at most this many of the last stored bytes of a transcript.
    ///
    /// # Errors
    /// If the key is not valid, or the store cannot be read.
    pub fn tail(&self, key: &MirrorKey, length: u64) -> Result<Vec<u8>> {
        self.known(key)?.map_or_else(|| Ok(Vec::new()), |known| known.tail(length))
    }

    /// Returns the lines of a transcript; `None` if it has none.
    ///
    /// # Errors
    /// If the key is not valid, or the store cannot be read.
    pub fn lines(&self, key: &MirrorKey) -> Result<Option<Vec<u8>>> {
        match self.known(key)?.filter(|known| !known.is_empty()) {
            None => Ok(None),
            Some(known) => known.tail(u64::MAX).map(Some),
        }
    }

    /// Appends whole lines, as [`Self::clean`] returns them, to a transcript, and stores their
    /// facts and checkpoints. `end` is the [`MirrorState::end`] that the caller has seen, or 0.
    ///
    /// # Errors
    /// [`Error::Conflict`] if lines were appended since: nothing has changed. [`Error::Invalid`] if
    /// the key is not valid or the lines do not end with a line break. Another error if the store
    /// cannot be written.
    pub fn append(
        &self,
        act: &WriteContext,
        key: &MirrorKey,
        end: u64,
        lines: &str,
        summary: Option<String>,
    ) -> Result<()> {
        let known = self.known(key)?;
        if known.as_ref().map_or(0, |known| known.bookmark.bytes) != end {
            return Err(appended_meanwhile(key));
        }
        let begin = known.as_ref().map_or(0, KnownTranscript::begin);
        self.write(act, key, known, lines, (Some(begin), summary))
    }

    /// Deletes a transcript. If it is the session's own, the session is dropped, as by
    /// [`Store::drop_session`]. Any other transcript becomes empty, and its facts stay. If the
    /// session was joined to another one, all its transcripts become empty.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn delete(&self, act: &WriteContext, key: &MirrorKey) -> Result<()> {
        let Some((session, _)) = self.found(key)? else { return Ok(()) };
        let summary = session.summary()?;
        let is_own = summary.info.agent_session == Some(self.agent_id(key, &session)?);
        if key.subpath.is_none() && is_own {
            return self.0.drop_session(act, &session).map(drop);
        }
        // The facts of a session that was joined to another one stay there.
        let mut paths = vec![key.subpath.clone()];
        if key.subpath.is_none() {
            paths.extend(self.subpaths(key)?.into_iter().map(Some));
        }
        for subpath in paths {
            self.hide(act, &MirrorKey { subpath, ..key.clone() })?;
        }
        Ok(())
    }

    fn hide(&self, act: &WriteContext, key: &MirrorKey) -> Result<()> {
        let Some(known) = self.known(key)?.filter(|known| !known.is_empty()) else { return Ok(()) };
        // The empty line moves the end, so that a concurrent append is refused.
        self.write(act, key, Some(known), "\n", (None, None))
    }

    /// Returns the sessions of a project whose own transcript has lines.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn sessions(&self, project: &str) -> Result<Vec<MirroredSession>> {
        let mut listed = Vec::new();
        for session in self.0.sessions_of_source(&format!("{PROJECT}{project}"))? {
            let summary = session.summary()?;
            let last = summary.last_event.unwrap_or_default();
            for (source, _) in summary.sources {
                let Some(id) = session_id(&source, project) else { continue };
                let Some(known) = KnownTranscript::read(session.clone(), source)? else { continue };
                let summary = known.summary();
                let note = known.state.mirror.as_ref().filter(|_| known.is_noted());
                let written_at = note.map_or(last.as_micros() / 1000, |note| note.written_at);
                if !known.is_empty() {
                    listed.push(MirroredSession { session: id, written_at, summary });
                }
            }
        }
        Ok(listed)
    }

    /// Returns the paths below a session of the transcripts that have lines.
    ///
    /// # Errors
    /// If the key is not valid, or the store cannot be read.
    pub fn subpaths(&self, key: &MirrorKey) -> Result<Vec<String>> {
        let Some((session, _)) = self.found(key)? else { return Ok(Vec::new()) };
        let mut paths = Vec::new();
        for (source, _) in session.summary()?.sources {
            let Some(path) = subpath(&source) else { continue };
            if KnownTranscript::read(session.clone(), source)?
                .is_some_and(|known| !known.is_empty())
            {
                paths.push(path);
            }
        }
        Ok(paths)
    }

    /// Writes lines, with their facts and checkpoints and the note about the transcript. `begin` is
    /// the offset of the first byte that is shown; with `None`, none of the bytes are.
    fn write(
        &self,
        act: &WriteContext,
        key: &MirrorKey,
        known: Option<KnownTranscript>,
        lines: &str,
        (begin, summary): (Option<u64>, Option<String>),
    ) -> Result<()> {
        let tail = known.as_ref().map_or_else(|| Ok(Vec::new()), KnownTranscript::open_block)?;
        let (place, bookmark, state) = match known {
            Some(known) => (Some((known.session, known.source)), known.bookmark, known.state),
            None => (self.found(key)?, SourceBookmark::default(), TranscriptState::default()),
        };
        let is_block_open = bookmark.bytes > bookmark.open_block();
        // The last line of an imported file may have no line break.
        let starts = if matches!(tail.last(), None | Some(b'\n')) { "" } else { "\n" };
        let text = format!("{starts}{lines}");
        let bytes = self.0.redact_source(text.as_bytes(), TextForm::Json, PartEnding::End);
        let mut reader =
            TranscriptReader::resume(TranscriptOptions::default(), state).of_session(&key.session);
        let piece = reader
            .read(bytes.bytes(), InputEnding::More, act.now)
            .map_err(|error| Error::Internal(error.to_string()))?;
        if piece.taken != bytes.bytes().len() as u64 {
            return Err(Error::invalid("the lines of a transcript end without a line break"));
        }
        let (session, source) = match place {
            Some(place) => place,
            None => self.begin(act, key, piece.session.as_ref())?,
        };
        let operation = self.0.new_operation()?;
        let marker = format!("{PROJECT}{}", key.project);
        if !session.summary()?.sources.iter().any(|(known, _)| *known == marker) {
            session.import_chunk(act, operation, &marker, SourceChunk::default())?;
        }
        let count = text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        let end = bookmark.kept_bytes() + bytes.bytes().len() as u64;
        let mut state = reader.into_carry();
        state.mirror = Some(MirrorNote {
            written_at: act.now.as_micros() / 1000,
            lines: bookmark.lines + count,
            begin: begin.unwrap_or(end),
            summary,
        });
        let carry =
            serde_json::to_vec(&state).map_err(|error| Error::Internal(error.to_string()))?;
        let chunk = SourceChunk {
            bookmark,
            open: if is_block_open { &tail } else { &[] },
            bytes,
            lines: count,
            keep: true,
            rereads: false,
            carry,
            facts: piece.facts,
            checkpoints: piece.checkpoints.into_iter().map(Into::into).collect(),
        };
        session.import_chunk(act, operation, &source, chunk)?;
        self.0.sync()
    }

    /// Creates the session of a key, and returns it with the name of the transcript's source.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another writer has created it since the caller looked for it.
    fn begin(
        &self,
        act: &WriteContext,
        key: &MirrorKey,
        draft: Option<&crate::SessionDraft>,
    ) -> Result<(Session, String)> {
        let taken = self.0.agent_session(&self.0.without_secrets(&key.session))?.is_some();
        if taken && self.found(key)?.is_some() {
            return Err(appended_meanwhile(key));
        }
        let id = if taken { key.id_with_project() } else { key.session.clone() };
        let id = self.0.without_secrets(&id);
        let session = session_of_agent(self.0, act, DIALECT, &id, draft)?;
        Ok((session, key.source(&id)))
    }

    /// Returns the session of a key, and the name of the source of its transcript.
    fn found(&self, key: &MirrorKey) -> Result<Option<(Session, String)>> {
        key.check()?;
        let own = format!("{PROJECT}{}", key.project);
        for id in [key.session.clone(), key.id_with_project()] {
            let id = self.0.without_secrets(&id);
            let Some(session) = self.0.agent_session(&id)? else { continue };
            let sources = session.summary()?.sources;
            let mut projects = sources.iter().filter(|(source, _)| source.starts_with(PROJECT));
            // A session that an import or a hook made has no project yet, so any project may
            // continue it.
            if sources.iter().any(|(source, _)| *source == own) || projects.next().is_none() {
                return Ok(Some((session, key.source(&id))));
            }
        }
        Ok(None)
    }

    fn agent_id(&self, key: &MirrorKey, session: &Session) -> Result<String> {
        let own = session.summary()?.info.agent_session;
        let apart = self.0.without_secrets(&key.id_with_project());
        Ok(if own.as_ref() == Some(&apart) { apart } else { self.0.without_secrets(&key.session) })
    }

    fn known(&self, key: &MirrorKey) -> Result<Option<KnownTranscript>> {
        match self.found(key)? {
            None => Ok(None),
            Some((session, source)) => KnownTranscript::read(session, source),
        }
    }
}

fn appended_meanwhile(key: &MirrorKey) -> Error {
    Error::Conflict(format!(
        "the transcript of '{}' was appended to: read its end again",
        key.session
    ))
}
