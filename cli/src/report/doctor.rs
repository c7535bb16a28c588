//! Whether forge works here.

use crate::doctor::{DoctorFinding, FindingSeverity};
use crate::integration::agent::{CodingAgent, InstallScope};
use crate::output::{Report, Screen, TableCell, TextTable, Tone};
use forge_store::model::Timestamp;
use serde::Serialize;

/// What was examined, and what was found.
#[derive(Debug, Serialize)]
pub struct DoctorReport {
    /// Whether nothing is wrong; advice may be there all the same.
    pub healthy: bool,
    /// The version of forge.
    pub version: String,
    /// The running binary.
    pub forge: String,
    /// The agents.
    pub agents: Vec<AgentHealth>,
    /// The store; null if there is none here.
    pub store: Option<StoreHealth>,
    /// What is wrong or could be better, problems first.
    pub findings: Vec<DoctorFinding>,
}

/// What is known of an agent.
#[derive(Debug, Serialize)]
pub struct AgentHealth {
    /// Which.
    pub agent: CodingAgent,
    /// The agent's own program on the path.
    pub program: Option<String>,
    /// For whom forge is installed in it.
    pub installed: Vec<InstallScope>,
    /// When it last called a hook in this store.
    pub last_fired: Option<Timestamp>,
    /// Which one that was.
    pub last_event: Option<String>,
    /// Its calls.
    pub calls: HookCallStatistics,
    /// The same of each event.
    pub events: Vec<HookCallStatistics>,
    /// The compactions that a hook announced.
    pub compactions_seen: u64,
    /// Those that were found later, and that no hook announced.
    pub compactions_missed: u64,
}

/// Calls of hooks that are in the log.
#[derive(Debug, Serialize)]
pub struct HookCallStatistics {
    /// Of which event; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub event: String,
    /// How many.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
    /// The microseconds that half of them do not exceed.
    pub p50_micros: Option<u64>,
    /// The microseconds that 99 in a hundred do not exceed.
    pub p99_micros: Option<u64>,
    /// The microseconds of the slowest.
    pub slowest_micros: Option<u64>,
}

/// What is known of the store.
#[derive(Debug, Serialize)]
pub struct StoreHealth {
    /// The directory: for people only.
    #[serde(skip)]
    pub path: String,
    /// Whether it can be opened and its present states are what they should be.
    pub opens: bool,
    /// Whether it can be written.
    pub writable: bool,
    /// Its bytes on disk.
    pub bytes: u64,
    /// Its files.
    pub files: u64,
    /// How many sessions there are.
    pub sessions: Option<u64>,
    /// The bytes of journal behind the index.
    pub tail_bytes: Option<u64>,
    /// The generations of the index.
    pub generations: u64,
    /// The bytes of all but the newest.
    pub old_generation_bytes: u64,
    /// The entries that wait in the spool.
    pub spooled: u64,
    /// Whether it is encrypted; null if it cannot be told.
    pub encrypted: Option<bool>,
    /// What is known of its seals: `sealed`, `unsealed`, `no_key` or `no_witness`; null if it cannot be told.
    pub seals: Option<&'static str>,
    /// How far its witness has seen it, in bytes of its journal.
    pub witnessed: Option<u64>,
    /// When it was taken over, if it was not sealed from its beginning.
    pub adopted_at: Option<Timestamp>,
    /// Who holds the lock for writing, if somebody keeps it.
    pub lock_holder: Option<String>,
}

impl Report for DoctorReport {
    const SCHEMA: &'static str = "forge.doctor/1";

    fn human(&self, screen: &mut Screen) {
        screen.line(Tone::Plain, &format!("forge {} ({})", self.version, self.forge));
        screen.gap();
        self.print_agents(screen);
        screen.gap();
        match &self.store {
            Some(store) => store.print(screen),
            None => screen.line(Tone::Dim, "No store here."),
        }
        if self.findings.is_empty() {
            screen.gap();
            screen.line(Tone::Good, "Nothing is wrong.");
        }
        for finding in &self.findings {
            screen.gap();
            let (tone, label) = match finding.severity {
                FindingSeverity::Problem => (Tone::Bad, "problem"),
                FindingSeverity::Advice => (Tone::Warning, "advice"),
            };
            screen.put(tone, label);
            screen.paragraph(Tone::Plain, 0, &format!(" {}: {}", finding.about, finding.what));
            screen.paragraph(Tone::Dim, 2, &finding.remedy);
        }
    }
}

impl DoctorReport {
    fn print_agents(&self, screen: &mut Screen) {
        let mut table = TextTable::new(&[
            "Agent",
            "Installed",
            "Last fired",
            "Calls",
            "p50",
            "p99",
            "Compactions",
        ])
        .right(3)
        .right(4)
        .right(5)
        .flexible(2);
        for agent in &self.agents {
            let scopes: Vec<&str> = agent.installed.iter().map(|scope| scope.name()).collect();
            let (tone, scopes) = match scopes.as_slice() {
                [] => (Tone::Dim, "no".to_owned()),
                _ => (Tone::Good, scopes.join(", ")),
            };
            let fired = match (agent.last_fired, &agent.last_event) {
                (Some(time), Some(event)) => format!("{} ({event})", screen.ago(time)),
                _ => "never".to_owned(),
            };
            let calls = match (agent.calls.calls, agent.calls.failed) {
                (calls, 0) => calls.to_string(),
                (calls, failed) => format!("{calls} ({failed} failed)"),
            };
            let compactions = match (agent.compactions_seen, agent.compactions_missed) {
                (0, 0) => "-".to_owned(),
                (seen, 0) => format!("{seen} seen"),
                (seen, missed) => format!("{seen} seen, {missed} missed"),
            };
            table.row(vec![
                TableCell::plain(agent.agent.title()),
                TableCell::new(tone, scopes),
                TableCell::plain(fired),
                TableCell::plain(calls),
                TableCell::plain(milliseconds(agent.calls.p50_micros)),
                TableCell::plain(milliseconds(agent.calls.p99_micros)),
                TableCell::plain(compactions),
            ]);
        }
        screen.table(&table);
    }
}

fn milliseconds(micros: Option<u64>) -> String {
    match micros {
        None => "-".to_owned(),
        Some(micros) => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
    }
}

impl StoreHealth {
    fn print(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, &format!("Store {}: ", self.path));
        let (tone, state) = match (self.opens, self.writable) {
            (false, _) => (Tone::Bad, "cannot be used"),
            (true, false) => (Tone::Warning, "can be read only"),
            (true, true) => (Tone::Good, "whole"),
        };
        screen.put(tone, state);
        let kib = self.bytes.div_ceil(1024);
        let files = self.files;
        let hidden = if self.encrypted == Some(true) { ", encrypted" } else { "" };
        screen.line(Tone::Dim, &format!(" ({kib} KiB in {files} files{hidden})"));
        if let (Some(sessions), Some(tail)) = (self.sessions, self.tail_bytes) {
            let kib = tail.div_ceil(1024);
            let sessions_word = if sessions == 1 { "session" } else { "sessions" };
            screen.line(
                Tone::Dim,
                &format!(
                    "  {sessions} {sessions_word}, {kib} KiB of journal not indexed, \
                     {} generations of the index",
                    self.generations
                ),
            );
        }
    }
}
