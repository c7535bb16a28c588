//! Imports transcripts into the store: file, reader, session, bookmark.

mod compare;
mod import_file;
mod part_reader;
mod session_split;

pub use import_file::{ImportFile, detect_format, no_text, open_plain, read_at, wrong_format};

use crate::error::{CommandError, CommandErrorKind};
use crate::report::import::TranscriptFileReport;
use compare::FileComparison;
use forge_agents::claude_code::{TranscriptDialect, TranscriptOptions, TranscriptState};
use forge_agents::{
    FileFormat, SkippedLine, TranscriptPiece, agent_name, codex_session_name, session_of_agent,
};
use forge_store::model::OperationId;
use forge_store::store::{
    APPLY_BYTES, NewCheckpoint, RedactedSource, Session, SourceBookmark, SourceChunk, Store,
    WriteContext,
};
use import_file::{cannot_read, first_session, last_session, no_session_named, records_over_lines};
use part_reader::{TranscriptPart, TranscriptPartReader};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;

/// The maximum number of attempts to import a file while another process imports it too.
const MAX_ATTEMPTS: usize = 8;
/// How many bytes of a file are compared with its imported part at once; whole blocks of a
/// bookmark.
const READ_BYTES: u64 = 4 << 20;
/// The maximum number of bytes that are held in memory until the start time of the session is
/// known.
const MAX_HELD_BYTES: usize = 16 << 20;
/// The number of stored bytes from which reading their end takes longer than starting a thread.
const MANY_KEPT_BYTES: u64 = 512 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranscriptImportOptions {
    /// Refuse a file with a bad line.
    pub strict: bool,
    /// Only report what would be imported.
    pub dry_run: bool,
    /// Let rules find statements in the agent's sentences.
    pub infer: bool,
    /// Import as hooks do: only the end of the imported part is compared, so that the cost depends
    /// only on what is new, and the index is not updated.
    pub live: bool,
}

/// Imports transcripts. All that is imported into one session is one operation.
pub struct TranscriptImporter<'a> {
    store: &'a Store,
    act: &'a WriteContext,
    options: TranscriptImportOptions,
    operations: BTreeMap<String, OperationId>,
    progress: &'a dyn Fn(u64),
    /// The length of the sessions of the current file that were imported before this one.
    read_before: u64,
    dialect: TranscriptDialect,
    /// Codex's own directory, for the names of sessions.
    codex_home: Option<PathBuf>,
    /// The title of a new session whose transcript gives it none.
    title: Option<String>,
}

/// The state of importing a file.
struct TranscriptIntake {
    opened: ImportFile,
    /// The name of its source; empty as long as its session is not known.
    source: String,
    session: Option<Session>,
    bookmark: SourceBookmark,
    report: TranscriptFileReport,
}

impl TranscriptIntake {
    /// Creates the state of a file whose session is not known yet.
    fn new(opened: ImportFile, path: &Path) -> Self {
        Self {
            opened,
            source: String::new(),
            session: None,
            bookmark: SourceBookmark::default(),
            report: TranscriptFileReport::new(path),
        }
    }
}

impl<'a> TranscriptImporter<'a> {
    /// Creates an importer; `progress` is called with the number of bytes read from the current
    /// file.
    pub fn new(
        store: &'a Store,
        act: &'a WriteContext,
        options: TranscriptImportOptions,
        progress: &'a dyn Fn(u64),
    ) -> Self {
        let dialect = TranscriptDialect::default();
        let operations = BTreeMap::new();
        let (read_before, codex_home, title) = (0, None, None);
        Self { store, act, options, operations, progress, read_before, dialect, codex_home, title }
    }

    /// Sets the agent of the transcripts.
    pub fn with_dialect(self, dialect: TranscriptDialect) -> Self {
        Self { dialect, ..self }
    }

    /// Sets Codex's own directory. Without it, the name of a session is only read if the rollout is
    /// in that directory.
    pub fn with_codex_home(self, codex_home: Option<PathBuf>) -> Self {
        Self { codex_home, ..self }
    }

    /// Sets the title of a new session whose transcript gives it none.
    pub fn with_title(self, title: Option<String>) -> Self {
        Self { title, ..self }
    }

    /// Imports one file into the session that it names: for Claude Code the last one, for other
    /// agents the first one. It is durable once [`Store::sync`] was called.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or seems to be something else than a transcript of this agent;
    /// with `strict`, for its first bad line: then nothing of it was imported.
    pub fn import_file(&mut self, path: &Path) -> Result<TranscriptFileReport, CommandError> {
        self.retry(|importer| {
            let opened = importer.open(path)?;
            importer.import_opened(path, opened)
        })
    }

    /// Imports one file like [`Self::import_file`], but each of several sessions in it separately,
    /// unless one continues the other.
    pub fn import_sessions(
        &mut self,
        path: &Path,
    ) -> Result<Vec<TranscriptFileReport>, CommandError> {
        let opened = self.open(path)?;
        let failed = |error: std::io::Error| cannot_read(path, error);
        let split = match opened.document {
            true => None,
            false => session_split::split(&opened.file, path, self.dialect).map_err(failed)?,
        };
        let Some(sessions) = split else {
            let mut first = Some(opened);
            let report = self.retry(|importer| {
                let opened = first.take().map_or_else(|| importer.open(path), Ok)?;
                importer.import_opened(path, opened)
            })?;
            return Ok(vec![report]);
        };
        let mut intake = TranscriptIntake::new(opened, path);
        if self.options.strict {
            // A bad line in any session must be found before one is written.
            self.read_to_end(&mut intake, path, true)?;
        }
        let ImportFile { file: all, form, document, .. } = intake.opened;
        let mut reports = Vec::new();
        for lines in sessions {
            let (file, bytes) = lines.copy(&all, &unpack_folder(self.store)).map_err(failed)?;
            let mut report = self.retry(|importer| {
                let file = file.try_clone().map_err(failed)?;
                importer.import_opened(path, ImportFile { file, bytes, form, document })
            })?;
            for skipped in &mut report.skipped {
                if let Some((number, offset)) = lines.place(skipped.line) {
                    (skipped.line, skipped.offset) = (number, offset);
                }
            }
            self.read_before += bytes;
            reports.push(report);
        }
        self.read_before = 0;
        Ok(reports)
    }

    /// Calls `import` again, up to [`MAX_ATTEMPTS`] times in all, while another process imports the
    /// same file, as two hooks of one event do. The slower one continues where the other ended.
    fn retry<T>(
        &mut self,
        mut import: impl FnMut(&mut Self) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        for _ in 1..MAX_ATTEMPTS {
            match import(self) {
                Err(error) if error.kind() == CommandErrorKind::Conflict => {}
                done => return done,
            }
        }
        import(self)
    }

    /// Opens a file, and checks that it can be a transcript of this agent.
    fn open(&self, path: &Path) -> Result<ImportFile, CommandError> {
        let wanted = FileFormat::Transcript(self.dialect);
        let opened = if self.options.live {
            ImportFile::live(path)?
        } else {
            ImportFile::new(path, Some(wanted), &unpack_folder(self.store))?
        };
        opened.check(path, wanted)?;
        Ok(opened)
    }

    fn import_opened(
        &mut self,
        path: &Path,
        opened: ImportFile,
    ) -> Result<TranscriptFileReport, CommandError> {
        let mut intake = TranscriptIntake::new(opened, path);
        let ImportFile { file, bytes, document, .. } = &intake.opened;
        let id = match self.dialect {
            TranscriptDialect::ClaudeCode => last_session(file, *bytes),
            _ => first_session(file, *bytes, self.reader_options(*document)),
        };
        let Some(id) = id.map_err(|error| cannot_read(path, error))? else {
            return self.without_session(intake, path);
        };
        if self.dialect == TranscriptDialect::ClaudeCode && !self.options.live {
            let other = import_file::other_session(file, &id);
            let other = other.map_err(|error| cannot_read(path, error))?;
            intake.report.other_session = other.map(|other| self.store.without_secrets(&other));
        }
        let id = self.store.without_secrets(&id);
        let source = source_name(agent_name(self.dialect), path, &id);
        intake.source = self.store.without_secrets(&source);
        intake.session = self.store.agent_session(&id)?;
        intake.report.agent_session = Some(id);
        let mut known = None;
        if let Some(session) = &intake.session {
            known = session.bookmark(&intake.source)?;
            intake.report.session = Some(session.summary()?.info.name);
        }
        if let Some(known) = known {
            match self.compare(&intake, &known, path)? {
                FileComparison::Grown => intake.bookmark = known,
                FileComparison::Shorter => {
                    intake.report.unchanged = true;
                    return Ok(intake.report);
                }
                FileComparison::Changed => intake.report.again = true,
            }
        }
        if self.options.strict {
            // A bad line must be found before anything is written.
            self.read_to_end(&mut intake, path, true)?;
        }
        self.read_to_end(&mut intake, path, self.options.dry_run)
    }

    fn reader_options(&self, document: bool) -> TranscriptOptions {
        TranscriptOptions {
            strict: self.options.strict,
            dialect: self.dialect,
            whole: self.dialect == TranscriptDialect::Gemini && document,
            infer: self.options.infer,
            ..TranscriptOptions::default()
        }
    }

    /// Returns the error for a file that names no session, or an empty report if that is no error:
    /// an agent has only begun to write the file, or it may have no session. Nothing is imported.
    fn without_session(
        &mut self,
        mut intake: TranscriptIntake,
        path: &Path,
    ) -> Result<TranscriptFileReport, CommandError> {
        let wanted = FileFormat::Transcript(self.dialect);
        let opened = &intake.opened;
        let damage = opened.damage(path).map_err(|error| cannot_read(path, error))?;
        if let Some(error) = damage.filter(|_| !self.options.live) {
            return Err(error);
        }
        let begun = opened.is_begun().map_err(|error| cannot_read(path, error))?;
        let unlike = opened.form.filter(|form| *form != wanted && !begun);
        // Claude Code also writes files that contain only titles; all other agents name the session
        // first.
        let headless = opened.form == Some(wanted)
            && self.dialect != TranscriptDialect::ClaudeCode
            && !(begun || opened.document);
        // Only Gemini CLI writes a document over several lines.
        let spreads = opened.form == Some(wanted)
            && self.dialect != TranscriptDialect::Gemini
            && opened.document
            && !begun;
        (intake.report.begun, intake.report.waiting_bytes) = (begun, opened.bytes);
        let skipped = self.read_to_end(&mut intake, path, true)?.skipped;
        let error = match unlike {
            Some(found) => wrong_format(path, wanted, found),
            None if headless => no_session_named(path, wanted),
            None if spreads && !skipped.is_empty() => records_over_lines(path, wanted),
            None => {
                intake.report.skipped = skipped;
                return Ok(intake.report);
            }
        };
        Err(match skipped.first() {
            Some(SkippedLine { line, reason, .. }) => {
                error.caused_by(CommandError::invalid(format!("line {line} {reason}")))
            }
            None => error,
        })
    }

    /// Reads from the bookmark to the end of the file and reports what was in it; with `only_look`,
    /// nothing is written.
    fn read_to_end(
        &mut self,
        intake: &mut TranscriptIntake,
        path: &Path,
        only_look: bool,
    ) -> Result<TranscriptFileReport, CommandError> {
        let options = self.reader_options(intake.opened.document);
        let carry: TranscriptState = match intake.bookmark.carry.as_slice() {
            [] => TranscriptState::default(),
            bytes => serde_json::from_slice(bytes).map_err(|error| {
                CommandError::internal("the bookmark of a transcript cannot be read")
                    .caused_by(error)
            })?,
        };
        let ImportFile { file, bytes, .. } = &intake.opened;
        let file = file.try_clone().map_err(|error| cannot_read(path, error))?;
        let (from, store, now) = ((intake.bookmark.bytes, !only_look), self.store, self.act.now);
        let reading =
            TranscriptPartReader::new(store, (path, file, *bytes), (options, carry), now, from);
        let reading = match &intake.report.agent_session {
            Some(id) if self.dialect == TranscriptDialect::ClaudeCode => reading.of_session(id),
            _ => reading,
        };
        let mut report = intake.report.clone();
        let mut held: Vec<TranscriptPart> = Vec::new();
        let bookmark = intake.bookmark.clone();
        let is_long = bookmark.bytes >= MANY_KEPT_BYTES && *bytes > bookmark.bytes;
        let continued = intake.session.clone().filter(|_| is_long && !only_look);
        report.waiting_bytes = thread::scope(|scope| {
            if let Some(session) = continued {
                // The end of the stored source is read into the store's cache in advance. If that
                // fails, the write reads it, and reports the error.
                let read = move || session.load_end_of_source(&bookmark);
                let _ = thread::Builder::new().spawn_scoped(scope, read);
            }
            reading.for_each_part(|read| {
                (self.progress)(self.read_before + read.end);
                report.count(&read.piece, &read.clean, read.lines);
                if only_look && self.options.dry_run {
                    self.count_new(intake, &read.piece, &mut report)?;
                }
                let began =
                    read.piece.session.as_ref().is_some_and(|draft| draft.started_at.is_some());
                held.push(read);
                let length: usize = held.iter().map(|read| read.clean.source().len()).sum();
                if only_look {
                    held.clear();
                } else if began || length > MAX_HELD_BYTES {
                    for read in held.drain(..) {
                        self.write_part(intake, read, &mut report)?;
                    }
                }
                Ok(())
            })
        })?;
        for read in held {
            self.write_part(intake, read, &mut report)?;
        }
        report.unchanged = report.bytes == 0;
        Ok(report)
    }

    /// Counts the new checkpoints of a piece for a dry run; also the new facts, if the file is read
    /// again.
    fn count_new(
        &self,
        intake: &TranscriptIntake,
        piece: &TranscriptPiece,
        report: &mut TranscriptFileReport,
    ) -> Result<(), CommandError> {
        let known = intake.session.as_ref().filter(|_| report.again);
        if let Some(session) = known {
            report.count_facts(&session.unknown_facts(piece.facts.clone())?);
        }
        for draft in &piece.checkpoints {
            let is_known = match known {
                Some(session) => session.checkpoint_of(&draft.key)?.is_some(),
                None => false,
            };
            report.checkpoints += u64::from(!is_known);
        }
        Ok(())
    }

    fn write_part(
        &mut self,
        intake: &mut TranscriptIntake,
        read: TranscriptPart,
        report: &mut TranscriptFileReport,
    ) -> Result<(), CommandError> {
        let id = report.agent_session.clone().unwrap_or_default();
        let session = match &intake.session {
            Some(session) => session.clone(),
            None => {
                let mut draft = read.piece.session.clone();
                if let (TranscriptDialect::Codex, Some(draft)) = (self.dialect, &mut draft) {
                    let (file, home) = (Path::new(&report.file), self.codex_home.as_deref());
                    let name = codex_session_name(file, home, &id);
                    let name = name.map(|name| self.store.without_secrets(&name));
                    draft.title = name.or_else(|| draft.title.take());
                }
                if let Some(draft) = &mut draft {
                    draft.title = draft.title.take().or_else(|| self.title.clone());
                }
                let draft = draft.as_ref();
                let session = session_of_agent(self.store, self.act, self.dialect, &id, draft)?;
                report.session = Some(session.summary()?.info.name);
                intake.session.insert(session).clone()
            }
        };
        let operation = match self.operations.get(&id) {
            Some(operation) => *operation,
            None => *self.operations.entry(id).or_insert(self.store.new_operation()?),
        };
        let open_at = intake.bookmark.open_block();
        let open = read_at(&intake.opened.file, open_at, intake.bookmark.bytes - open_at)
            .map_err(|error| CommandError::io("cannot read the transcript again", error))?;
        let mut facts = read.piece.facts;
        if report.again {
            facts = session.unknown_facts(facts)?;
            report.count_facts(&facts);
        }
        let drafts = read.piece.checkpoints.into_iter().map(NewCheckpoint::from).collect();
        let checkpoints = crate::compaction::match_hook_compactions(&session, &facts, drafts)?;
        let taken = SourceChunk {
            bookmark: std::mem::take(&mut intake.bookmark),
            open: &open,
            bytes: read.clean,
            lines: read.lines,
            keep: true,
            rereads: report.again,
            carry: read.carry,
            facts,
            checkpoints,
        };
        let (done, bookmark) = session.import_chunk(self.act, operation, &intake.source, taken)?;
        report.checkpoints += done.checkpoints;
        intake.bookmark = bookmark;
        if !self.options.live {
            self.store.maintain(APPLY_BYTES)?;
        }
        Ok(())
    }
}

/// Returns the name of the source in its session's bookmarks and facts.
fn source_name(agent: &str, path: &Path, id: &str) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    // The same transcript in compressed form is the same source.
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    if name.starts_with("agent-") && name.ends_with(".jsonl") {
        format!("{agent}:{name}")
    } else {
        format!("{agent}:{id}")
    }
}

impl TranscriptFileReport {
    fn count(&mut self, piece: &TranscriptPiece, clean: &RedactedSource<'_>, lines: u64) {
        self.lines += lines;
        self.bytes += clean.source().len() as u64;
        self.redacted += clean.removed();
        if !self.again {
            self.count_facts(&piece.facts);
        }
        self.skipped.extend_from_slice(&piece.skipped);
    }
}

/// Returns the folder for unpacked files: inside the store, where other users cannot read them.
pub fn unpack_folder(store: &Store) -> PathBuf {
    store.path().map_or_else(std::env::temp_dir, Path::to_owned)
}
