//! What imports took.

use crate::output::{Report, Screen, TableCell, TextTable, Tone};
use forge_agents::claude_code::TranscriptDialect;
use forge_agents::trajectory::TrajectoryAuthor;
use forge_store::model::{Fact, Kind, Timestamp};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// A line that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct SkippedLineJson {
    /// Its number in the file, from 1.
    pub line: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// What was taken of one transcript.
#[derive(Clone, Debug, Serialize)]
pub struct TranscriptFileReport {
    /// The file, as it was named.
    pub file: String,
    /// The session's name; null while there is none.
    pub session: Option<String>,
    /// The agent's own id of it; null if no line names one.
    pub agent_session: Option<String>,
    /// Lines taken now.
    pub lines: u64,
    /// Bytes taken now.
    pub bytes: u64,
    /// How many things the new facts are about, by kind; several versions of one count as one.
    pub facts: BTreeMap<&'static str, u64>,
    /// How many checkpoints were made or completed.
    pub checkpoints: u64,
    /// How many secrets were taken out.
    pub redacted: u64,
    /// Lines passed over since they cannot be read.
    pub skipped: Vec<SkippedLineJson>,
    /// Bytes at the end of the file that are no whole line yet.
    pub waiting_bytes: u64,
    /// Whether the file was read from its beginning, since what had been taken of it has changed.
    pub again: bool,
    /// Whether nothing was taken, since nothing is new.
    pub unchanged: bool,
    /// Whether the file has no whole line yet.
    #[serde(skip)]
    pub begun: bool,
    /// What was counted already.
    #[serde(skip)]
    counted: HashSet<(Kind, String)>,
}

impl TranscriptFileReport {
    /// Nothing taken yet of this file.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            file: path.display().to_string(),
            session: None,
            agent_session: None,
            lines: 0,
            bytes: 0,
            facts: BTreeMap::new(),
            checkpoints: 0,
            redacted: 0,
            skipped: Vec::new(),
            waiting_bytes: 0,
            again: false,
            unchanged: false,
            begun: false,
            counted: HashSet::new(),
        }
    }

    /// Counts what new facts are about, each thing once.
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
            screen.line(Tone::Warning, &format!("  took {secrets} out before storing"));
        }
        if !self.skipped.is_empty() {
            let lines = count_text(self.skipped.len() as u64, "line");
            screen.line(Tone::Warning, &format!("  skipped {lines} that cannot be read"));
        }
    }

    fn human(&self, screen: &mut Screen, dry_run: bool) {
        let Some(id) = &self.agent_session else {
            let why = match self.waiting_bytes {
                0 => "the file is empty",
                _ if self.begun => "it has no whole line yet",
                _ => "no line names a session yet",
            };
            screen.line(Tone::Plain, &format!("{}: nothing to take, {why}", self.file));
            return self.print_skipped(screen);
        };
        screen.put(Tone::Plain, &format!("{}: ", self.file));
        match &self.session {
            Some(name) => screen.put(Tone::Heading, name),
            None => screen.put(Tone::Id, id),
        }
        screen.end_line();
        if self.unchanged {
            screen.line(Tone::Dim, "  nothing new");
        } else {
            let verb = if dry_run { "would take" } else { "took" };
            let size = size_text(self.bytes);
            screen
                .line(Tone::Plain, &format!("  {verb} {}, {size}", count_text(self.lines, "line")));
            let mut facts: Vec<String> =
                self.facts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            facts.push(count_text(self.checkpoints, "checkpoint"));
            screen.paragraph(Tone::Plain, 2, &facts.join(", "));
            if self.again {
                let why =
                    "what had been taken of it has changed, so it was read from the beginning";
                screen.paragraph(Tone::Warning, 2, why);
            }
        }
        self.print_skipped(screen);
        if self.waiting_bytes > 0 {
            let text =
                format!("  {} wait for the rest of their line", size_text(self.waiting_bytes));
            screen.line(Tone::Dim, &text);
        }
    }
}

/// A transcript that was found and not imported yet.
#[derive(Clone, Debug, Serialize)]
pub struct FoundTranscript {
    /// The file.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// When it was last written.
    pub modified: Option<Timestamp>,
    /// Whether it is a sub-agent's own.
    pub sub_agent: bool,
}

/// What `forge import claude-code`, `codex` or `gemini` did.
#[derive(Debug, Default, Serialize)]
pub struct TranscriptImportReport {
    /// Whose transcripts they are.
    #[serde(skip)]
    pub dialect: TranscriptDialect,
    /// Whether nothing was written, since only that was asked for.
    pub dry_run: bool,
    /// What was taken of each file.
    pub files: Vec<TranscriptFileReport>,
    /// What lies where the agent keeps its transcripts, if no file was named and nobody agreed to take it.
    pub found: Vec<FoundTranscript>,
}

impl Report for TranscriptImportReport {
    const SCHEMA: &'static str = "forge.import.claude-code/1";

    fn schema(&self) -> &'static str {
        match self.dialect {
            TranscriptDialect::ClaudeCode => Self::SCHEMA,
            TranscriptDialect::Codex => "forge.import.codex/1",
            TranscriptDialect::Gemini => "forge.import.gemini/1",
        }
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
        if !self.found.is_empty() {
            table(&self.found, screen);
            screen.gap();
            screen.line(
                Tone::Plain,
                &format!("Nothing was imported. 'forge import {agent} --yes' does it."),
            );
        } else if self.files.is_empty() {
            let none = format!("There are no transcripts of {title} for this directory.");
            screen.line(Tone::Plain, &none);
        }
    }
}

/// Shows what was found.
pub fn table(found: &[FoundTranscript], screen: &mut Screen) {
    let mut table = TextTable::new(&["Transcript", "Size", "Last written"]).flexible(0).right(1);
    for one in found {
        let modified = one.modified.map(|time| screen.time(time));
        table.row(vec![
            TableCell::plain(&one.file),
            TableCell::plain(size_text(one.bytes)),
            TableCell::plain(modified.unwrap_or_default()),
        ]);
    }
    screen.table(&table);
}

/// What `forge import swe-agent`, `mini-swe-agent` or `openhands` did.
#[derive(Debug, Serialize)]
pub struct TrajectoryImportReport {
    /// Whose trajectory it is.
    #[serde(skip)]
    pub author: TrajectoryAuthor,
    /// The file, as it was named.
    pub file: String,
    /// The session.
    pub session: String,
    /// How many facts were new, by kind.
    pub facts: BTreeMap<&'static str, u64>,
    /// Whether nothing was taken, since it had been already.
    pub unchanged: bool,
}

impl Report for TrajectoryImportReport {
    const SCHEMA: &'static str = "forge.import.swe-agent/1";

    fn schema(&self) -> &'static str {
        match self.author {
            TrajectoryAuthor::SweAgent => Self::SCHEMA,
            TrajectoryAuthor::MiniSweAgent => "forge.import.mini-swe-agent/1",
            TrajectoryAuthor::OpenHands => "forge.import.openhands/1",
        }
    }

    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, &format!("{}: ", self.file));
        screen.line(Tone::Heading, &self.session);
        if self.unchanged {
            return screen.line(Tone::Dim, "  nothing new");
        }
        let facts: Vec<String> =
            self.facts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        screen.paragraph(Tone::Plain, 2, &facts.join(", "));
    }
}

/// What `forge import events` did.
#[derive(Debug, Serialize)]
pub struct EventsImportReport {
    /// The file, as it was named.
    pub file: String,
    /// The sessions it went to.
    pub sessions: Vec<String>,
    /// Lines taken now.
    pub lines: u64,
    /// Bytes taken now.
    pub bytes: u64,
    /// Revisions made.
    pub revisions: u64,
    /// Checkpoints made or completed.
    pub checkpoints: u64,
    /// Facts recorded.
    pub facts: u64,
    /// Bytes at the end of the file that are no whole line yet.
    pub waiting_bytes: u64,
    /// Whether nothing was taken, since nothing is new.
    pub unchanged: bool,
}

impl Report for EventsImportReport {
    const SCHEMA: &'static str = "forge.import.events/1";

    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, &format!("{}: ", self.file));
        screen.line(Tone::Heading, &self.sessions.join(", "));
        if self.unchanged {
            screen.line(Tone::Dim, "  nothing new");
        } else {
            let parts = [
                count_text(self.lines, "line"),
                count_text(self.revisions, "revision"),
                count_text(self.checkpoints, "checkpoint"),
                count_text(self.facts, "fact"),
            ];
            screen.line(Tone::Plain, &format!("  took {}", parts.join(", ")));
        }
        if self.waiting_bytes > 0 {
            let text =
                format!("  {} wait for the rest of their line", size_text(self.waiting_bytes));
            screen.line(Tone::Dim, &text);
        }
    }
}

/// So many of these.
#[must_use]
pub fn count_text(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A size for a person.
#[must_use]
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
