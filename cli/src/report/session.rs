//! Reports of sessions.

use crate::args::value::to_micros;
use crate::error::CommandError;
use crate::output::{Report, Screen, TableCell, TextTable, Tone, cells};
use forge_store::model::claim::SessionMetrics;
use forge_store::model::time_grammar::describe_distance;
use forge_store::model::{SessionId, SessionKind, Timestamp};
use forge_store::store::{Session, SessionSummary};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct SessionListReport {
    /// The sessions, the one with the latest event first.
    pub sessions: Vec<SessionLine>,
    /// How many more sessions there are.
    pub more: usize,
    /// How many sessions of kinds that were not requested there are.
    pub others: usize,
}

#[derive(Debug, Serialize)]
pub struct SessionLine {
    pub name: String,
    pub id: SessionId,
    pub kind: SessionKind,
    /// Whether commands use it if no session is given.
    pub current: bool,
    /// The agent that works in it.
    pub agent: Option<String>,
    /// The agent's own id of the session.
    pub agent_session: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// The time of its earliest event.
    pub first_event: Option<Timestamp>,
    /// The time of its latest event.
    pub last_event: Option<Timestamp>,
    /// Its current branch.
    pub branch: String,
    pub branches: u64,
    /// The greatest sequence number that was assigned, also if that was pruned or undone; 0 if
    /// there is none.
    pub last_sequence: u64,
    pub checkpoints: u64,
    /// The time of its latest checkpoint.
    pub last_checkpoint: Option<Timestamp>,
    /// The number of claims on the current branch.
    pub claims: u64,
    /// The number of its facts that were not undone.
    pub facts: u64,
    /// Seconds between scheduled checkpoints; null if there is no schedule.
    pub schedule_seconds: Option<i64>,
    /// The sources that were imported into it.
    pub sources: Vec<ImportedSource>,
    /// The agents' own ids of the sessions that joined it; absent if none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct ImportedSource {
    pub name: String,
    /// How many bytes of it were imported.
    pub bytes: u64,
}

/// What to do if a store has sessions, but no debugging session.
pub const OTHER_SESSIONS: &str =
    "'forge session list --all' lists the others, and '--session NAME' chooses one";

impl From<SessionSummary> for SessionLine {
    fn from(session: SessionSummary) -> Self {
        let sources = session.sources.into_iter();
        Self {
            name: session.info.name,
            id: session.info.id,
            kind: session.info.kind,
            current: session.current,
            agent: session.info.agent,
            agent_session: session.info.agent_session,
            started_at: session.info.started_at,
            first_event: session.first_event,
            last_event: session.last_event,
            branch: session.branch,
            branches: session.branches,
            last_sequence: session.last_sequence,
            checkpoints: session.checkpoints,
            last_checkpoint: session.last_checkpoint,
            claims: session.claims,
            facts: session.facts,
            schedule_seconds: session.schedule_micros.map(|micros| micros / 1_000_000),
            sources: sources.map(|(name, bytes)| ImportedSource { name, bytes }).collect(),
            joined: session.joined,
        }
    }
}

impl Report for SessionListReport {
    fn human(&self, screen: &mut Screen) {
        match (self.sessions.len(), self.more, self.others) {
            (0, 0, 0) => {
                screen.plain("No session has been begun yet.");
                screen.dim("The first thing you record begins one.");
            }
            (0, 0, _) => screen.plain("No session of this kind has been begun yet."),
            (0, ..) => {}
            _ => self.print_table(screen),
        }
        if self.more > 0 {
            screen.dim(&format!("{} more with a greater '--limit'", self.more));
        }
        if self.others > 0 {
            screen.dim(&format!("{} of other kinds with '--all'", self.others));
        }
    }
}

impl SessionListReport {
    fn print_table(&self, screen: &mut Screen) {
        let has_kinds = self.sessions.iter().any(|session| session.kind != SessionKind::Debug);
        let titles = ["", "Session", "Agent", "Branch", "Claims", "Facts", "Checkpoints", "Last"];
        let titles: Vec<&str> = titles.into_iter().chain(has_kinds.then_some("Kind")).collect();
        let mut table = TextTable::new(&titles).right(4).right(5).right(6).flexible(1);
        for session in &self.sessions {
            let last = session.last_event.map(|last| screen.ago(last));
            let mut cells = cells![
                Good: if session.current { "*" } else { "" }, Id: &session.name,
                session.agent.as_deref().unwrap_or("-"), &session.branch, session.claims,
                session.facts, session.checkpoints, Dim: last.as_deref().unwrap_or("-"),
            ];
            cells.extend(has_kinds.then(|| TableCell::plain(session.kind.name())));
            table.row(cells);
        }
        screen.table(&table);
    }
}

/// An agent session that joined a session.
#[derive(Debug, Serialize)]
pub struct SessionJoinReport {
    pub session: String,
    /// The agent's own id of its session.
    pub agent_session: String,
}

impl Report for SessionJoinReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "This agent session (");
        screen.put(Tone::Id, &self.agent_session);
        screen.put(Tone::Plain, ") is part of ");
        screen.put(Tone::Id, &self.session);
        screen.plain(" from now on.");
        screen.dim("What it recorded before stays where it is.");
    }
}

/// A session that was dropped.
#[derive(Debug, Serialize)]
pub struct SessionDropReport {
    pub session: String,
    pub id: SessionId,
    pub kind: SessionKind,
    /// The session that is the current one from now on, if the dropped one was.
    #[serde(skip)]
    pub current: Option<String>,
    /// The command that brings it back.
    #[serde(skip)]
    pub restore: String,
}

impl Report for SessionDropReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "Dropped session ");
        screen.put(Tone::Id, &self.session);
        match &self.current {
            Some(current) => screen.dim(&format!(" (current from now on: {current})")),
            None => screen.dim(""),
        }
        screen.dim(&format!("'{}' brings it back", self.restore));
    }
}

#[derive(Debug, Serialize)]
pub struct SessionShowReport {
    #[serde(skip)]
    done: Option<&'static str>,
    /// The session that commands use here, if it is another one.
    #[serde(skip)]
    used_here: Option<String>,
    /// Its name.
    pub session: String,
    #[serde(flatten)]
    pub line: SessionLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SessionMetrics>,
}

impl SessionShowReport {
    pub fn load(session: &Session) -> Result<Self, CommandError> {
        let line = SessionLine::from(session.summary()?);
        let session = line.name.clone();
        Ok(Self { done: None, used_here: None, session, line, metrics: None })
    }

    pub fn with_metrics(mut self, session: &Session) -> Result<Self, CommandError> {
        self.metrics = Some(session.state(&session.head()?)?.metrics()?);
        Ok(self)
    }

    /// Returns the report of a command that changed the session; `done` is a past participle.
    pub const fn after(mut self, done: &'static str) -> Self {
        self.done = Some(done);
        self
    }

    /// Adds that commands use another session here, because the environment names it.
    pub fn but_here(self, other: String) -> Self {
        Self { used_here: Some(other), ..self }
    }
}

impl Report for SessionShowReport {
    fn human(&self, screen: &mut Screen) {
        let line = &self.line;
        if let Some(done) = self.done {
            screen.put(Tone::Plain, &format!("{done} session "));
            screen.put(Tone::Id, &line.name);
            let note = match &self.used_here {
                _ if !line.current => String::new(),
                None => " (current from now on)".to_owned(),
                Some(other) => format!(" (current from now on, but commands here use {other})"),
            };
            return screen.dim(&note);
        }
        screen.put(Tone::Id, &line.name);
        let current = if line.current { ", current" } else { "" };
        screen.dim(&format!(" ({}{current})", line.id.short()));
        line.print(screen);
        if let Some(metrics) = &self.metrics {
            for (label, figure) in [
                ("hypotheses tested", metrics.hypotheses_tested.to_string()),
                ("verifications run", metrics.verifications_run.to_string()),
                ("gaps filled", metrics.gaps_filled.to_string()),
                ("time in debugging", describe_distance(to_micros(metrics.time_in_debugging))),
            ] {
                screen.plain(&format!("  {label}: {figure}"));
            }
        }
    }
}

impl SessionLine {
    /// Writes its times and counts, for `forge status`.
    pub(super) fn print_in_status(&self, screen: &mut Screen) {
        screen.plain(&format!("  begun: {}", screen.time(self.started_at)));
        if let Some(last) = self.last_event {
            screen.plain(&format!("  last event: {}", screen.time(last)));
        }
        for (label, count, what) in [
            ("claims", self.claims, " (hypotheses, evidence, beliefs, gaps, notes)"),
            ("facts", self.facts, " (commands, checks, edits, messages)"),
            ("checkpoints", self.checkpoints, ""),
        ] {
            let what = if self.kind == SessionKind::Debug { what } else { "" };
            screen.put(Tone::Plain, &format!("  {label}: {count}"));
            screen.dim(what);
        }
    }

    /// Writes its data, one item per line.
    fn print(&self, screen: &mut Screen) {
        let mut lines = Vec::new();
        if self.kind != SessionKind::Debug {
            lines.push(("kind", self.kind.name().to_owned()));
        }
        if let Some(agent) = &self.agent {
            lines.push(("agent", agent.clone()));
        }
        lines.push(("begun", screen.time(self.started_at)));
        lines.extend(self.last_event.map(|last| ("last event", screen.time(last))));
        let branches = match self.branches {
            1 => self.branch.clone(),
            several => format!("{} (of {several})", self.branch),
        };
        lines.push(("branch", branches));
        lines.push(("claims", self.claims.to_string()));
        lines.push(("facts", self.facts.to_string()));
        lines.push(("checkpoints", self.checkpoints.to_string()));
        lines.extend(self.last_checkpoint.map(|last| ("last checkpoint", screen.time(last))));
        let schedule = self.schedule_seconds.map(|seconds| describe_distance(seconds * 1_000_000));
        lines.extend(schedule.map(|every| ("scheduled", format!("every {every}"))));
        for source in &self.sources {
            lines.push(("imported", format!("{} ({} bytes)", source.name, source.bytes)));
        }
        lines.extend(self.joined.iter().map(|id| ("joined by", id.clone())));
        for (label, text) in lines {
            screen.plain(&format!("  {label}: {text}"));
        }
    }
}
