//! Reports of imports.

use crate::error::CommandError;
use crate::output::{Report, Screen, TextTable, Tone, cells};
use crate::text::{count_text, first_names};
use crate::verb::EitherReport;
use forge_agents::SkippedLine;
use forge_agents::claude_code::TranscriptDialect;
use forge_store::model::{Fact, Kind, Timestamp};
use forge_store::shell::quoted;
use forge_store::store::StreamImportReport;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// What was imported from one transcript.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TranscriptFileReport {
    /// The path of the file, as it was given.
    pub file: String,
    /// The session's name; null while there is none.
    pub session: Option<String>,
    /// The agent's own id of it; null if no line names one.
    pub agent_session: Option<String>,
    /// The session that the file's first lines name, if it is another one. Its prompts in the file
    /// are taken for copies.
    pub other_session: Option<String>,
    /// The number of lines imported now.
    pub lines: u64,
    /// The number of bytes imported now.
    pub bytes: u64,
    /// The number of entities that the new facts are about, by kind; several versions of one count
    /// once.
    pub facts: BTreeMap<&'static str, u64>,
    /// The number of checkpoints that were made or completed.
    pub checkpoints: u64,
    /// The number of secrets that were redacted.
    pub redacted: u64,
    /// The lines that cannot be read as they are. They were skipped, except those marked as read.
    pub skipped: Vec<SkippedLine>,
    /// The number of bytes in an incomplete line at the end of the file.
    pub waiting_bytes: u64,
    /// Whether the file was read from its beginning, because its imported part has changed.
    pub again: bool,
    /// Whether nothing was imported, because nothing is new.
    pub unchanged: bool,
    /// Whether the file has no complete line yet.
    #[serde(skip)]
    pub begun: bool,
    /// The entities that were already counted.
    #[serde(skip)]
    counted: HashSet<(Kind, String)>,
}

impl TranscriptFileReport {
    /// Creates the report of a file from which nothing was imported yet.
    pub fn new(path: &Path) -> Self {
        Self { file: path.display().to_string(), ..Self::default() }
    }

    /// Counts the entities that new facts are about, each once.
    pub fn count_facts(&mut self, facts: &[Fact]) {
        for fact in facts {
            if self.counted.insert((fact.kind, fact.id.clone())) {
                *self.facts.entry(fact.kind.plural()).or_default() += 1;
            }
        }
    }

    fn print_skipped(&self, screen: &mut Screen) {
        if self.redacted > 0 {
            let secrets = count_text(self.redacted, "secret");
            screen.warning(&format!("  removed {secrets} before storing"));
        }
        let read = self.skipped.iter().filter(|line| line.read).count();
        let skipped = self.skipped.len() - read;
        if skipped > 0 {
            let lines = count_text(skipped as u64, "line");
            screen.warning(&format!("  skipped {lines} that cannot be read"));
        }
        if read > 0 {
            let lines = count_text(read as u64, "line");
            let text = format!("  read {lines} with U+FFFD in place of bytes that are not UTF-8");
            screen.warning(&text);
        }
    }

    fn human(&self, screen: &mut Screen, dry_run: bool) {
        let Some(id) = &self.agent_session else {
            let why = match self.waiting_bytes {
                0 => "the file is empty",
                _ if self.begun => "it has no whole line yet",
                _ => "no line names a session yet",
            };
            screen.plain(&format!("{}: nothing to import, {why}", self.file));
            return self.print_skipped(screen);
        };
        screen.put(Tone::Plain, &format!("{}: ", self.file));
        match &self.session {
            Some(name) => screen.put(Tone::Heading, name),
            None => screen.put(Tone::Id, id),
        }
        screen.end_line();
        if self.unchanged {
            screen.dim("  nothing new");
        } else {
            let verb = if dry_run { "would import" } else { "imported" };
            let size = size_text(self.bytes);
            screen.plain(&format!("  {verb} {}, {size}", count_text(self.lines, "line")));
            let mut facts = fact_counts(&self.facts);
            facts.push(count_text(self.checkpoints, "checkpoint"));
            screen.paragraph(Tone::Plain, 2, &facts.join(", "));
            if self.again {
                let why = "the imported part of it has changed, so it was read from the beginning";
                screen.paragraph(Tone::Warning, 2, why);
            }
        }
        self.print_skipped(screen);
        print_waiting(self.waiting_bytes, screen);
    }
}

/// Prints how many bytes at the end of a file are not read yet.
fn print_waiting(bytes: u64, screen: &mut Screen) {
    match bytes {
        0 => {}
        1 => screen.dim("  1 byte waits for the rest of its line"),
        many => screen.dim(&format!("  {} wait for the rest of their line", size_text(many))),
    }
}

/// Returns the counts of facts by the plural of their kind, as text.
fn fact_counts(facts: &BTreeMap<&'static str, u64>) -> Vec<String> {
    let count = |(kind, count): (&&'static str, &u64)| match (*kind, count) {
        ("code", 1) => "1 code change".to_owned(),
        ("code", count) => format!("{count} code changes"),
        (kind, 1) => format!("1 {}", kind.strip_suffix('s').unwrap_or(kind)),
        (kind, count) => format!("{count} {kind}"),
    };
    facts.iter().map(count).collect()
}

/// A transcript that was found and was not imported yet.
#[derive(Clone, Debug, Serialize)]
pub struct FoundTranscript {
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last written.
    pub modified: Option<Timestamp>,
    /// Whether it is a sub-agent's own transcript.
    pub sub_agent: bool,
}

/// The result of `forge import claude-code`, `forge import codex` or `forge import gemini`.
#[derive(Debug, Default, Serialize)]
pub struct TranscriptImportReport {
    /// The agent of the transcripts.
    #[serde(skip)]
    pub dialect: TranscriptDialect,
    /// Whether it was a dry run, which writes nothing.
    pub dry_run: bool,
    /// The result for each file.
    pub files: Vec<TranscriptFileReport>,
    /// The transcripts in the agent's folder, if no file was given and the user did not agree to
    /// import them.
    pub found: Vec<FoundTranscript>,
    /// The error after which no other file was imported.
    #[serde(skip)]
    pub failure: Option<CommandError>,
}

impl Report for TranscriptImportReport {
    fn take_failure(&mut self) -> Option<CommandError> {
        self.failure.take()
    }

    fn human(&self, screen: &mut Screen) {
        let (agent, title) = match self.dialect {
            TranscriptDialect::ClaudeCode => ("claude-code", "Claude Code"),
            TranscriptDialect::Codex => ("codex", "Codex"),
            TranscriptDialect::Gemini => ("gemini", "Gemini CLI"),
        };
        for file in &self.files {
            file.human(screen, self.dry_run);
        }
        let is_new = |file: &&TranscriptFileReport| !file.unchanged;
        let mut new = self.files.iter().filter(is_new).filter_map(|file| file.session.as_ref());
        if let Some(session) = new.next_back().filter(|_| !self.dry_run) {
            screen.dim(&brief_command(session));
        }
        if !self.found.is_empty() {
            print_found(&self.found, screen);
            screen.gap();
            screen.plain(&format!("Nothing was imported. 'forge import {agent} --yes' does it."));
        } else if self.files.is_empty() {
            screen.plain(&format!("There are no transcripts of {title} for this directory."));
        }
    }
}

/// Returns how to read an imported session.
pub fn brief_command(session: &str) -> String {
    format!("Next: forge brief --session {}", quoted(session))
}

/// Writes a table of transcripts that were found.
pub fn print_found(found: &[FoundTranscript], screen: &mut Screen) {
    let mut table = TextTable::new(&["Transcript", "Size", "Last written"]).flexible(0).right(1);
    for one in found {
        let modified = one.modified.map(|time| screen.time(time));
        table.row(cells![&one.file, size_text(one.bytes), modified.unwrap_or_default()]);
    }
    screen.table(&table);
}

/// The result of `forge import swe-agent`, `mini-swe-agent` or `openhands`.
#[derive(Debug, Serialize)]
pub struct TrajectoryImportReport {
    /// The path of the file, as it was given.
    pub file: String,
    pub session: String,
    /// The number of new facts, by kind.
    pub facts: BTreeMap<&'static str, u64>,
    /// Whether nothing was imported, because it had been imported before.
    pub unchanged: bool,
    /// Whether neither the file nor the caller said when the run began.
    #[serde(skip)]
    pub has_no_time: bool,
    /// How to read the session, unless it is the current one.
    #[serde(skip)]
    pub next: Option<String>,
}

impl Report for TrajectoryImportReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, &format!("{}: ", self.file));
        screen.line(Tone::Heading, &self.session);
        if self.unchanged {
            return screen.dim("  nothing new");
        }
        screen.paragraph(Tone::Plain, 2, &fact_counts(&self.facts).join(", "));
        if self.has_no_time {
            screen.dim("  The file has no times: the run is shown as of 1970.");
            screen.dim(&format!(
                "  To say when it began: 'forge undo --session {}', and import it with \
                 '--started-at T'",
                quoted(&self.session)
            ));
        }
        self.next.iter().for_each(|next| screen.dim(next));
    }
}

/// The result of `forge import langgraph`.
#[derive(Debug, Serialize, Deserialize)]
pub struct LangGraphImportReport {
    /// The number of new threads.
    pub threads: u64,
    /// The number of new checkpoints.
    pub checkpoints: u64,
    /// The number of new pending writes.
    pub writes: u64,
    /// The number of checkpoints that were imported before.
    pub known: u64,
    /// The size of the source's tables, in bytes.
    pub bytes_there: u64,
    /// By how many bytes the store grew.
    pub bytes_here: u64,
}

impl Report for LangGraphImportReport {
    fn human(&self, screen: &mut Screen) {
        let parts = [
            count_text(self.threads, "new thread"),
            count_text(self.checkpoints, "checkpoint"),
            count_text(self.writes, "pending write"),
        ];
        screen.plain(&format!("imported {}", parts.join(", ")));
        if self.known > 0 {
            let known = count_text(self.known, "checkpoint");
            screen.dim(&format!("imported before: {known}"));
        }
        let (there, here) = (size_text(self.bytes_there), size_text(self.bytes_here));
        screen.dim(&format!("{there} there; the store grew by {here}"));
    }
}

/// The result of `forge import events`.
#[derive(Debug, Serialize)]
pub struct EventsImportReport {
    /// The path of the file, as it was given.
    pub file: String,
    #[serde(flatten)]
    pub done: StreamImportReport,
    /// Whether nothing was imported, because nothing is new.
    pub unchanged: bool,
    /// How to read the session, unless it is the current one.
    #[serde(skip)]
    pub next: Option<String>,
}

impl Report for EventsImportReport {
    fn human(&self, screen: &mut Screen) {
        let done = &self.done;
        if done.sessions.is_empty() {
            screen.plain(&format!("{}: nothing to import, it has no new event", self.file));
            return print_waiting(done.waiting_bytes, screen);
        }
        screen.put(Tone::Plain, &format!("{}: ", self.file));
        screen.line(Tone::Heading, &first_names(&done.sessions, done.session_count));
        if self.unchanged {
            screen.line(Tone::Dim, "  nothing new");
        } else {
            let parts = [
                count_text(done.lines, "line"),
                count_text(done.revisions, "revision"),
                count_text(done.checkpoints, "checkpoint"),
                count_text(done.facts, "fact"),
            ];
            screen.line(Tone::Plain, &format!("  imported {}", parts.join(", ")));
        }
        print_waiting(done.waiting_bytes, screen);
        self.next.iter().for_each(|next| screen.dim(next));
    }
}

/// What was imported from one file that is no transcript.
pub type DetectedImportReport = EitherReport<TrajectoryImportReport, EventsImportReport>;

/// The result of `forge import` with several files that are no transcripts.
#[derive(Debug, Serialize)]
pub struct DetectedImportsReport {
    /// The result for each file.
    pub files: Vec<DetectedImportReport>,
}

impl Report for DetectedImportsReport {
    fn human(&self, screen: &mut Screen) {
        self.files.iter().for_each(|file| file.human(screen));
    }
}

/// Formats a size for people, in decimal units: 1 kB is 1000 bytes.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return count_text(bytes, "byte");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    let unit = UNITS.get(unit).copied().unwrap_or_default();
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}
