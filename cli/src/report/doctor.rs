//! Reports whether forge works here.

use crate::doctor::{DoctorFinding, FindingSeverity};
use crate::error::{EXIT_NO, EXIT_OK};
use crate::integration::agent::{CodingAgent, InstallScope};
use crate::output::{Report, Screen, TextTable, Tone, cells};
use crate::text::count_text;
use forge_store::model::Timestamp;
use forge_store::store::SealStatus;
use serde::Serialize;

/// The examined parts, and the findings.
#[derive(Debug, Serialize)]
pub struct DoctorReport {
    /// Whether there is no problem; there may be advice.
    pub healthy: bool,
    pub version: String,
    /// The running binary.
    pub forge: String,
    pub agents: Vec<AgentHealth>,
    /// The store; null if there is none here.
    pub store: Option<StoreHealth>,
    /// The findings, problems first.
    pub findings: Vec<DoctorFinding>,
}

/// The state of an agent.
#[derive(Debug, Serialize)]
pub struct AgentHealth {
    pub agent: CodingAgent,
    /// The path of the agent's own program.
    pub program: Option<String>,
    /// The scopes in which forge is installed.
    pub installed: Vec<InstallScope>,
    /// When it last called a hook in this store.
    pub last_fired: Option<Timestamp>,
    /// The event of that call.
    pub last_event: Option<String>,
    pub calls: HookCallStatistics,
    pub events: Vec<HookCallStatistics>,
    /// The number of compactions that a hook announced.
    pub compactions_seen: u64,
    /// The number of compactions that were found later and that no hook announced.
    pub compactions_missed: u64,
}

/// Statistics of the calls of hooks in the log.
#[derive(Debug, Serialize)]
pub struct HookCallStatistics {
    /// The event; empty for all events.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub event: String,
    pub calls: u64,
    /// The number of failed calls.
    pub failed: u64,
    /// The median duration, in microseconds.
    pub p50_micros: Option<u64>,
    /// The 99th percentile of the duration, in microseconds.
    pub p99_micros: Option<u64>,
    /// The longest duration, in microseconds.
    pub slowest_micros: Option<u64>,
}

/// The state of the store.
#[derive(Debug, Default, Serialize)]
pub struct StoreHealth {
    /// The directory; only for people.
    #[serde(skip)]
    pub path: String,
    /// The database that contains it, with its version; absent if the store is in files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Whether it can be opened.
    pub opens: bool,
    /// Whether all of its sessions could be read; only for people.
    #[serde(skip)]
    pub is_whole: bool,
    /// Whether it can be written.
    pub writable: bool,
    /// Its size on disk, in bytes.
    pub bytes: u64,
    pub files: u64,
    pub sessions: Option<u64>,
    /// The size of the journal's tail, in bytes.
    pub tail_bytes: Option<u64>,
    /// The number of generations of the index.
    pub generations: u64,
    /// The size of all generations except the newest, in bytes.
    pub old_generation_bytes: u64,
    /// The number of spooled writes.
    pub spooled: u64,
    /// How many of them do not have the seal of the store.
    #[serde(skip)]
    pub unsealed: u64,
    /// Whether it is encrypted; null if that is not known.
    pub encrypted: Option<bool>,
    /// The state of its seals: `sealed`, `unsealed`, `no_key` or `no_witness`; null if it is not
    /// known.
    pub seals: Option<SealStatus>,
    /// The journal position that its witness has seen, in bytes.
    pub witnessed: Option<u64>,
    /// When it was adopted, if it was not sealed from the start.
    pub adopted_at: Option<Timestamp>,
    /// The holder of the write lock, if it holds the lock longer than a write takes.
    pub lock_holder: Option<String>,
}

impl Report for DoctorReport {
    fn exit_code(&self) -> u8 {
        if self.healthy { EXIT_OK } else { EXIT_NO }
    }

    fn human(&self, screen: &mut Screen) {
        screen.plain(&format!("forge {} ({})", self.version, self.forge));
        screen.gap();
        self.print_agents(screen);
        screen.gap();
        match &self.store {
            Some(store) => store.print(screen),
            None => screen.dim("No store here: 'forge init' makes one."),
        }
        if self.findings.is_empty() {
            screen.gap();
            screen.good("Nothing is wrong.");
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
            "Agent", "Installed", "Last fired", "Calls", "p50", "p99", "Compactions",
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
            table.row(cells![
                agent.agent.title(), (tone): scopes, fired, calls,
                milliseconds(agent.calls.p50_micros), milliseconds(agent.calls.p99_micros),
                compactions,
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
        let (tone, state) = match (self.opens, self.is_whole, self.writable) {
            (false, ..) => (Tone::Bad, "cannot be used"),
            (true, false, _) => (Tone::Bad, "cannot be read as a whole"),
            (true, true, false) => (Tone::Warning, "can be read only"),
            (true, true, true) => (Tone::Good, "whole"),
        };
        screen.put(tone, state);
        let kib = self.bytes.div_ceil(1024);
        let files = self.files;
        let hidden = if self.encrypted == Some(true) { ", encrypted" } else { "" };
        screen.dim(&format!(" ({kib} KiB in {files} files{hidden})"));
        if let Some(database) = &self.database {
            screen.dim(&format!("  in a database: {database}"));
        }
        if let (Some(sessions), Some(tail)) = (self.sessions, self.tail_bytes) {
            let kib = tail.div_ceil(1024);
            let sessions = count_text(sessions, "session");
            let generations = match &self.database {
                Some(_) => String::new(),
                None => {
                    format!(", {} of the index", count_text(self.generations, "generation"))
                }
            };
            screen.dim(&format!("  {sessions}, {kib} KiB of journal not indexed{generations}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Local;

    /// Regression: a store was called whole as soon as it could be opened, also if the state of a
    /// session in it was damaged, which was a problem further down.
    #[test]
    fn a_store_that_opens_is_whole_only_if_its_sessions_can_be_read() {
        for (opens, is_whole, state) in [
            (true, true, "whole"),
            (true, false, "cannot be read as a whole"),
            (false, false, "cannot be used"),
        ] {
            let path = "there".to_owned();
            let health =
                StoreHealth { path, opens, is_whole, writable: true, ..StoreHealth::default() };
            let mut screen = Screen::new(None, false, Local, Timestamp::default());
            health.print(&mut screen);
            assert_eq!(screen.into_text(), format!("Store there: {state} (0 KiB in 0 files)\n"));
        }
    }

    /// Regression: a store with one generation of its index was said to have "1 generations".
    #[test]
    fn one_generation_is_counted_in_the_singular() {
        for (generations, counted) in [(1, "1 generation"), (2, "2 generations")] {
            let (sessions, tail_bytes) = (Some(1), Some(0));
            let health =
                StoreHealth { generations, sessions, tail_bytes, ..StoreHealth::default() };
            let mut screen = Screen::new(None, false, Local, Timestamp::default());
            health.print(&mut screen);
            let text = screen.into_text();
            assert!(text.contains(&format!(", {counted} of the index\n")), "{text}");
        }
    }
}
