//! Checks the agents: what is installed, and what the log of the hooks shows.

use super::DoctorFinding;
use crate::context::Environment;
use crate::hook::log::{HookLogEntry, HookOutcome};
use crate::integration::agent::{CodingAgent, InstallScope, IntegrationPart};
use crate::integration::binary;
use crate::report::doctor::{AgentHealth, HookCallStatistics};
use crate::report::hooks::ScopeStatus;
use forge_agents::hook::{self, HookEventKind};
use forge_store::model::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum time between the hook call before a compaction and the compaction's boundary: the
/// model writes the summary in between.
const COMPACTION_MICROS: i64 = 15 * 60 * 1_000_000;
/// A hook that takes longer than this makes the agent wait noticeably.
const SLOW_MICROS: u64 = 1_000_000;
/// The minimum number of calls for a statement about their duration.
const MIN_CALLS: usize = 20;

#[derive(Clone, Debug)]
pub struct KnownCompaction {
    /// The agent's own id of the session.
    pub session: String,
    pub time: Timestamp,
}

/// Returns what is known about each agent, and what is wrong with it.
#[must_use]
pub fn examine(
    environment: &Environment,
    installed: impl Fn(CodingAgent) -> Vec<ScopeStatus>,
    log: &[HookLogEntry],
    compactions: &[KnownCompaction],
    has_store: bool,
) -> (Vec<AgentHealth>, Vec<DoctorFinding>) {
    let mut findings = Vec::new();
    let agents = CodingAgent::ALL.map(|agent| {
        let lines: Vec<&HookLogEntry> =
            log.iter().filter(|line| line.agent == agent.name()).collect();
        let installed = installed(agent);
        let health = health(environment, agent, &installed, &lines, compactions);
        add_findings(agent, &installed, &lines, &health, has_store, &mut findings);
        health
    });
    (agents.into(), findings)
}

fn health(
    environment: &Environment,
    agent: CodingAgent,
    installed: &[ScopeStatus],
    lines: &[&HookLogEntry],
    compactions: &[KnownCompaction],
) -> AgentHealth {
    let mut by_event: BTreeMap<&str, Vec<&HookLogEntry>> = BTreeMap::new();
    for line in lines {
        by_event.entry(&line.event).or_default().push(line);
    }
    let sessions: BTreeSet<&str> =
        lines.iter().filter_map(|line| line.session.as_deref()).collect();
    let before: Vec<&&HookLogEntry> =
        lines.iter().filter(|line| is_before_compaction(agent, &line.event)).collect();
    // Before the log began, a call may be missing from it. Gemini CLI announces no compactions:
    // only its transcripts contain them.
    let first = lines.first().map(|line| line.time);
    let missed = compactions.iter().filter(|compaction| {
        agent != CodingAgent::Gemini
            && sessions.contains(compaction.session.as_str())
            && first.is_some_and(|first| compaction.time >= first)
            && !before.iter().any(|line| {
                let after = compaction.time.as_micros() - line.time.as_micros();
                line.session.as_deref() == Some(&compaction.session)
                    && (-5_000_000..COMPACTION_MICROS).contains(&after)
            })
    });
    // A compaction calls its hook two to four times at the same time.
    let mut seen = 0;
    let mut last: BTreeMap<Option<&str>, Timestamp> = BTreeMap::new();
    for line in &before {
        let last = last.insert(line.session.as_deref(), line.time);
        let again = last.is_some_and(|last| line.time.micros_since(last) < 10_000_000);
        seen += u64::from(!again);
    }
    AgentHealth {
        agent,
        program: program(environment, agent),
        installed: installed.iter().map(|status| status.scope).collect(),
        last_fired: lines.last().map(|line| line.time),
        last_event: lines.last().map(|line| line.event.clone()),
        calls: HookCallStatistics::from_lines("", lines),
        events: by_event
            .iter()
            .map(|(event, lines)| HookCallStatistics::from_lines(event, lines))
            .collect(),
        compactions_seen: seen,
        compactions_missed: missed.count() as u64,
    }
}

fn is_before_compaction(agent: CodingAgent, event: &str) -> bool {
    let happening = hook::HookAgent::from_word(agent.name()).map(|agent| agent.happening(event));
    matches!(happening, Some(HookEventKind::PreCompact { .. }))
}

fn program(environment: &Environment, agent: CodingAgent) -> Option<String> {
    let name = if agent == CodingAgent::Cursor { "cursor" } else { agent.name() };
    binary::on_path(environment, name).map(|path| path.display().to_string())
}

impl HookCallStatistics {
    fn from_lines(event: &str, lines: &[&HookLogEntry]) -> Self {
        let mut micros: Vec<u64> = lines.iter().map(|line| line.micros).collect();
        micros.sort_unstable();
        Self {
            event: event.to_owned(),
            calls: lines.len() as u64,
            failed: lines.iter().filter(|line| line.outcome == HookOutcome::Failed).count() as u64,
            p50_micros: percentile(&micros, 50),
            p99_micros: percentile(&micros, 99),
            slowest_micros: micros.last().copied(),
        }
    }
}

/// The percentile of sorted values (nearest rank).
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

fn add_findings(
    agent: CodingAgent,
    installed: &[ScopeStatus],
    lines: &[&HookLogEntry],
    health: &AgentHealth,
    has_store: bool,
    findings: &mut Vec<DoctorFinding>,
) {
    let (name, title) = (agent.name(), agent.title());
    for status in installed {
        let scope = status.scope.name();
        let again = format!("'forge hooks install {name} --{scope}' repairs it");
        for part in &status.parts {
            let what = format!("{} in {}", part.part.title(), part.file);
            findings.extend(part.faults.iter().map(|fault| DoctorFinding {
                severity: fault.severity,
                about: name.to_owned(),
                what: format!("{what}: {}", fault.what),
                remedy: fault.remedy.clone().unwrap_or_else(|| again.clone()),
            }));
            if let Some(error) = &part.error {
                let remedy = "correct the file, or move it away";
                findings.push(DoctorFinding::problem(name, format!("{what}: {error}"), remedy));
            } else if !part.missing_binaries.is_empty() {
                let missing = part.missing_binaries.join(", ");
                let what = format!("{what}: calls '{missing}', which is not there");
                findings.push(DoctorFinding::problem(name, what, again.clone()));
            } else if part.installed && !part.current {
                let binaries = part.binaries.join(", ");
                let what = format!("{what}: calls '{binaries}', not this forge");
                findings.push(DoctorFinding::advice(name, what, again.clone()));
            } else if !part.installed && part.part != IntegrationPart::Permissions {
                let what = format!("{what}: missing");
                findings.push(DoctorFinding::advice(name, what, again.clone()));
            }
        }
    }
    let hooks = installed.iter().any(|status| {
        status.parts.iter().any(|it| it.part == IntegrationPart::Hooks && it.installed)
    });
    if installed.is_empty() && health.program.is_some() {
        let scope = agent.default_scope().name();
        findings.push(DoctorFinding::advice(
            name,
            format!("{title} is here, and does not call forge"),
            format!("'forge hooks install {name} --{scope}' makes it save before each compaction"),
        ));
    }
    if hooks && has_store && lines.is_empty() {
        let remedy = match agent {
            CodingAgent::Codex => "start 'codex' here and trust the hooks with '/hooks'",
            CodingAgent::Claude => "start 'claude' here once; '/hooks' in it lists what it calls",
            CodingAgent::Gemini => {
                "start 'gemini' here once; '/hooks panel' in it lists what it calls"
            }
            CodingAgent::Cursor => "open the project in Cursor once; its settings list the hooks",
            CodingAgent::OpenCode => {
                "start 'opencode' here once; 'opencode debug config' lists plugins"
            }
        };
        findings.push(DoctorFinding::advice(name, "its hooks have never been called here", remedy));
    }
    let user_only = installed.iter().all(|status| status.scope == InstallScope::User);
    if hooks && user_only && !has_store {
        findings.push(DoctorFinding::advice(
            name,
            "its hooks do nothing in this project, which has no store",
            "'forge init' makes one",
        ));
    }
    if let Some(line) = lines.iter().rev().find(|line| line.outcome == HookOutcome::Failed) {
        let failed = health.calls.failed;
        let of = health.calls.calls;
        let error = line.error.as_deref().unwrap_or("for no known reason");
        let what = format!("{failed} of {of} calls failed, the last one '{}': {error}", line.event);
        findings.push(DoctorFinding::problem(
            name,
            what,
            "the calls are in .forge/log/hooks.jsonl, the older ones in hooks.1.jsonl beside it",
        ));
    }
    if health.compactions_missed > 0 {
        let missed = health.compactions_missed;
        findings.push(DoctorFinding::problem(
            name,
            match missed {
                1 => "1 compaction was not announced by a hook; it was found later".to_owned(),
                _ => format!(
                    "{missed} compactions were not announced by a hook; they were found later"
                ),
            },
            format!("'forge hooks status {name}' says whether all hooks are installed"),
        ));
    }
    if lines.len() >= MIN_CALLS && health.calls.p50_micros.is_some_and(|it| it > SLOW_MICROS) {
        let what = "half of the calls take longer than a second";
        findings.push(DoctorFinding::advice(
            name,
            what,
            "'forge maintain' shortens what is read first",
        ));
    }
    if let Some(line) = lines.last().filter(|line| line.version != env!("CARGO_PKG_VERSION")) {
        let what = format!("the last call was by forge {}", line.version);
        let remedy = format!("'forge hooks install {name}' lets it call this one");
        findings.push(DoctorFinding::advice(name, what, remedy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, second: i64, session: &str, outcome: HookOutcome) -> HookLogEntry {
        let time = Timestamp::from_micros(second * 1_000_000);
        let mut line = HookLogEntry::new(time, "claude", event);
        line.session = Some(session.to_owned());
        line.micros = second.unsigned_abs() * 1000;
        line.outcome = outcome;
        line
    }

    fn compaction(session: &str, second: i64) -> KnownCompaction {
        KnownCompaction {
            session: session.to_owned(),
            time: Timestamp::from_micros(second * 1_000_000),
        }
    }

    fn examined(
        log: &[HookLogEntry],
        compactions: &[KnownCompaction],
    ) -> (AgentHealth, Vec<DoctorFinding>) {
        let none = |_| Vec::new();
        let (agents, findings) = examine(&Environment::default(), none, log, compactions, true);
        (agents.into_iter().next().unwrap(), findings)
    }

    #[test]
    fn a_compaction_is_missed_if_no_hook_announced_it() {
        let log = [
            line("SessionStart", 10, "s1", HookOutcome::Saved),
            line("PreCompact", 100, "s1", HookOutcome::Saved),
            line("PreCompact", 101, "s1", HookOutcome::Unchanged),
            line("Stop", 5000, "s1", HookOutcome::Saved),
        ];
        // Before the log began; announced; in a session that no hook reported; not announced.
        let known = [
            compaction("s1", 5),
            compaction("s1", 160),
            compaction("s2", 170),
            compaction("s1", 4000),
        ];
        let (health, findings) = examined(&log, &known);
        assert_eq!((health.compactions_seen, health.compactions_missed), (1, 1));
        assert_eq!(health.last_event.as_deref(), Some("Stop"));
        assert!(findings.iter().any(|it| it.what.starts_with("1 compaction was not announced")));
    }

    #[test]
    fn compactions_of_two_sessions_at_the_same_time_are_counted_once_each() {
        let log = [("s1", 100), ("s2", 101), ("s1", 102), ("s2", 103), ("s1", 104)];
        let log = log.map(|(session, at)| line("PreCompact", at, session, HookOutcome::Saved));
        let (health, _) = examined(&log, &[]);
        assert_eq!(health.compactions_seen, 2);
    }

    #[test]
    fn a_compaction_is_seen_by_whatever_name_its_agent_gives_the_event() {
        for (agent, event) in [
            ("claude", "PreCompact"),
            ("claude-code", "PreCompact"),
            ("codex", "PreCompact"),
            ("cursor", "preCompact"),
            ("opencode", "session.compacting"),
            // The plugin's own name of the event.
            ("opencode", "experimental.session.compacting"),
        ] {
            let mut line = HookLogEntry::new(Timestamp::from_micros(0), agent, event);
            line.session = Some("s".to_owned());
            let none = |_| Vec::new();
            let (agents, _) = examine(&Environment::default(), none, &[line], &[], true);
            let seen: u64 = agents.iter().map(|agent| agent.compactions_seen).sum();
            assert_eq!(seen, 1, "{agent} {event}");
        }
    }

    #[test]
    fn calls_are_counted_and_their_times_ranked() {
        let log: Vec<HookLogEntry> = (1..=200)
            .map(|n| {
                let outcome = if n == 7 { HookOutcome::Failed } else { HookOutcome::Unchanged };
                line("Stop", n, "s", outcome)
            })
            .collect();
        let (health, findings) = examined(&log, &[]);
        let calls = &health.events[0];
        assert_eq!((calls.calls, calls.failed), (200, 1));
        assert_eq!((calls.p50_micros, calls.p99_micros), (Some(100_000), Some(198_000)));
        assert_eq!(calls.slowest_micros, Some(200_000));
        assert!(findings[0].what.starts_with("1 of 200 calls failed, the last one 'Stop'"));
        // The failed call may be in the rotated log.
        assert!(findings[0].remedy.contains("hooks.1.jsonl"));
        assert_eq!(percentile(&[], 50), None);
        assert_eq!(percentile(&[3], 99), Some(3));
    }
}
