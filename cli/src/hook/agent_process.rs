//! Finds the process of the agent among the ancestors of this process. Hooks record that process,
//! and commands that the agent runs look for it.
//!
//! The folder `agents` of the store has a file for each recorded process of an agent. The name of
//! the file is the process id, and the file contains the session in which the process works. The
//! system reuses process ids, so the file also contains the start time of the process.

use crate::private_files;
use forge_agents::hook::HookAgent;
use forge_store::plain_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the folder in the store.
const FOLDER: &str = "agents";
/// The maximum number of ancestors that are searched.
const MOST_ANCESTORS: usize = 32;
/// Programs with which agents start hooks. None of them is the agent.
const SHELLS: [&str; 12] = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "env", "timeout", "nice", "sudo",
];
/// The number of files above which the files of ended processes are removed.
const MOST_FILES: usize = 32;

/// A process of an agent, and the session that it works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProcess {
    /// The process id.
    pub pid: u32,
    /// The start time, in clock ticks after the start of the system.
    pub began: u64,
    /// The agent's name in `forge hook`, such as `claude`.
    pub agent: String,
    /// The agent's own id of the session.
    pub session: String,
}

impl AgentProcess {
    fn is_running(&self) -> bool {
        ProcessStat::read_proc(self.pid).is_some_and(|stat| stat.began == self.began)
    }
}

/// The fields of `/proc/PID/stat` that identify a process and its parent.
struct ProcessStat {
    name: String,
    parent: u32,
    began: u64,
}

impl ProcessStat {
    /// Reads `/proc/PID/stat` of this process; `None` if the process has ended or the system has no
    /// `/proc`.
    fn read_proc(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses `/proc/PID/stat`: process id, name in parentheses, state, parent, and as the 22nd
    /// field the start time (proc(5)).
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once('(')?;
        // The name may also contain parentheses.
        let (name, fields) = rest.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let began = fields.nth(17)?.parse().ok()?;
        Some(Self { name: name.to_owned(), parent, began })
    }
}

/// Returns a name of this process: the process id and the start time, so that a later process with
/// the same id has another name.
#[must_use]
pub fn process_name() -> String {
    let pid = std::process::id();
    format!("{pid}:{}", ProcessStat::read_proc(pid).map_or(0, |stat| stat.began))
}

/// Whether the process with this name from [`process_name`] still runs.
#[must_use]
pub fn is_alive(name: &str) -> bool {
    let Some((pid, began)) = name.split_once(':') else { return false };
    let stat = pid.parse().ok().and_then(ProcessStat::read_proc);
    stat.is_some_and(|stat| stat.began.to_string() == began)
}

/// Iterates over the ancestors of this process, the parent first.
fn ancestors() -> impl Iterator<Item = (u32, ProcessStat)> {
    let mut next = ProcessStat::read_proc(std::process::id()).map(|stat| stat.parent);
    std::iter::from_fn(move || {
        let pid = next.take().filter(|pid| *pid > 1)?;
        let stat = ProcessStat::read_proc(pid)?;
        next = Some(stat.parent);
        Some((pid, stat))
    })
    .take(MOST_ANCESTORS)
}

/// Records that the process of the agent that called this hook works in this session.
pub fn note_session(store: &Path, agent: HookAgent, session: &str) {
    let Some((pid, stat)) = ancestors().find(|(_, stat)| !SHELLS.contains(&stat.name.as_str()))
    else {
        return;
    };
    let process = AgentProcess {
        pid,
        began: stat.began,
        agent: agent.word().to_owned(),
        session: session.to_owned(),
    };
    let path = file(store, pid);
    if read(&path).as_ref() == Some(&process) {
        return;
    }
    // If this fails, the agent's commands use the current session.
    let _ = serde_json::to_vec(&process).map(|text| {
        let folder = store.join(FOLDER);
        private_files::create_directories(&folder)
            .and_then(|()| private_files::replace_file(&path, &text))
            .inspect(|()| remove_dead(&folder))
    });
}

/// Returns the nearest ancestor of this process that a hook recorded as an agent's process.
#[must_use]
pub fn ancestor_agent(store: &Path) -> Option<AgentProcess> {
    if !store.join(FOLDER).is_dir() {
        return None;
    }
    ancestors().find_map(|(pid, stat)| {
        read(&file(store, pid)).filter(|process| (process.pid, process.began) == (pid, stat.began))
    })
}

/// Whether a hook recorded a process of an agent that works in this session.
#[must_use]
pub fn is_noted(store: Option<&Path>, session: &str) -> bool {
    noted(store).any(|process| process.session == session)
}

/// Returns the processes of agents that hooks recorded and that still run.
pub fn running_agents(store: Option<&Path>) -> impl Iterator<Item = AgentProcess> {
    noted(store).filter(AgentProcess::is_running)
}

fn noted(store: Option<&Path>) -> impl Iterator<Item = AgentProcess> {
    let entries = store.and_then(|store| fs::read_dir(store.join(FOLDER)).ok());
    entries.into_iter().flatten().flatten().filter_map(|entry| read(&entry.path()))
}

fn file(store: &Path, pid: u32) -> PathBuf {
    store.join(FOLDER).join(format!("{pid}.json"))
}

/// The maximum size of a process file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

fn read(path: &Path) -> Option<AgentProcess> {
    serde_json::from_slice(&plain_file::read(path, MOST_BYTES).ok()?).ok()
}

/// Removes the files of ended processes, if there are more than [`MOST_FILES`] files.
fn remove_dead(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    if paths.len() <= MOST_FILES {
        return;
    }
    for path in paths {
        if !read(&path).as_ref().is_some_and(AgentProcess::is_running) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_any_name_is_read() {
        let numbers = (4..=22).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let stat = ProcessStat::parse(&format!("12 (a) b (c) S {numbers}")).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent, stat.began), ("a) b (c", 4, 22));
        assert!(ProcessStat::parse("nonsense").is_none());
        assert!(ProcessStat::parse("12 (short) S 1").is_none());
    }

    #[test]
    fn a_process_is_identified_by_its_id_and_start_time() {
        assert!(is_alive(&process_name()));
        assert!(!is_alive(&format!("{}:1", std::process::id())));
        assert!(!is_alive("nonsense"));
    }

    #[test]
    fn the_session_of_the_parent_process_is_found() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ancestor_agent(folder.path()), None);
        note_session(folder.path(), HookAgent::Claude, "s1");
        note_session(folder.path(), HookAgent::Claude, "s2");
        let found = ancestor_agent(folder.path()).unwrap();
        assert_eq!((found.agent.as_str(), found.session.as_str()), ("claude", "s2"));
        // Now another process has this process id.
        let path = file(folder.path(), found.pid);
        let other = AgentProcess { began: 1, ..found };
        fs::write(&path, serde_json::to_vec(&other).unwrap()).unwrap();
        assert_eq!(ancestor_agent(folder.path()), None);
        fs::write(&path, b"junk").unwrap();
        assert_eq!(ancestor_agent(folder.path()), None);
    }
}
