//! Which agent's process is around this one: hooks note it, commands that the agent runs find it.
//!
//! In the store's folder `agents` each process of an agent has a file, named by its number, with the session it works in
//! now. A number is given again to another process some day, so the time at which the process began stands in it too.

use crate::private;
use forge_agents::hook::HookAgent;
use forge_store::plain_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder in the store.
const FOLDER: &str = "agents";
/// So many processes up it is looked for.
const MOST_ANCESTORS: usize = 32;
/// Programs that agents start other programs by: none of them is the agent.
const SHELLS: [&str; 12] = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "env", "timeout", "nice", "sudo",
];
/// Files of processes that are gone are taken away when there are more than this.
const MOST_FILES: usize = 32;

/// A process of an agent and the session it works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProcess {
    /// Its number.
    pub pid: u32,
    /// When it began, in the system's ticks since it was started.
    pub began: u64,
    /// The agent's word.
    pub agent: String,
    /// The agent's own id of the session.
    pub session: String,
}

/// What the system says of a process.
struct Stat {
    name: String,
    parent: u32,
    began: u64,
}

impl Stat {
    /// `/proc/PID/stat`: number, name in brackets, state, parent, and as the 22nd field when it began (proc(5)).
    fn of(pid: u32) -> Option<Self> {
        Self::read(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn read(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once('(')?;
        // A name may hold brackets of its own.
        let (name, fields) = rest.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let began = fields.nth(17)?.parse().ok()?;
        Some(Self { name: name.to_owned(), parent, began })
    }
}

/// This process, named so that no later one has the name.
#[must_use]
pub fn own_name() -> String {
    let pid = std::process::id();
    format!("{pid}:{}", Stat::of(pid).map_or(0, |stat| stat.began))
}

/// Whether the process of this name is still there.
#[must_use]
pub fn is_alive(name: &str) -> bool {
    let Some((pid, began)) = name.split_once(':') else { return false };
    let stat = pid.parse().ok().and_then(Stat::of);
    stat.is_some_and(|stat| stat.began.to_string() == began)
}

/// The processes around this one, the nearest first.
fn ancestors() -> impl Iterator<Item = (u32, Stat)> {
    let mut next = Stat::of(std::process::id()).map(|stat| stat.parent);
    std::iter::from_fn(move || {
        let pid = next.take().filter(|pid| *pid > 1)?;
        let stat = Stat::of(pid)?;
        next = Some(stat.parent);
        Some((pid, stat))
    })
    .take(MOST_ANCESTORS)
}

/// Notes that the agent around this hook works in this session.
pub fn note(store: &Path, agent: HookAgent, session: &str) {
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
    // Commands can do without it: they take the current session then.
    let _ = serde_json::to_vec(&process).map(|text| {
        let folder = store.join(FOLDER);
        private::create_directories(&folder)
            .and_then(|()| private::replace_file(&path, &text))
            .inspect(|()| clear(&folder))
    });
}

/// The agent's process around this one and its session, if a hook noted one.
#[must_use]
pub fn around(store: &Path) -> Option<AgentProcess> {
    if !store.join(FOLDER).is_dir() {
        return None;
    }
    ancestors().find_map(|(pid, stat)| {
        read(&file(store, pid)).filter(|process| (process.pid, process.began) == (pid, stat.began))
    })
}

/// Whether a hook noted a process of an agent with this session.
#[must_use]
pub fn is_noted(store: Option<&Path>, session: &str) -> bool {
    let entries = store.and_then(|store| fs::read_dir(store.join(FOLDER)).ok());
    entries
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| read(&entry.path()).is_some_and(|process| process.session == session))
}

fn file(store: &Path, pid: u32) -> PathBuf {
    store.join(FOLDER).join(format!("{pid}.json"))
}

/// The largest note of a process that is read.
const MOST_BYTES: u64 = 1 << 20;

fn read(path: &Path) -> Option<AgentProcess> {
    serde_json::from_slice(&plain_file::read(path, MOST_BYTES).ok()?).ok()
}

/// Takes away the files of processes that are gone, where there are many.
fn clear(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    if paths.len() <= MOST_FILES {
        return;
    }
    for path in paths {
        let known = read(&path);
        let alive = known.as_ref().is_some_and(|process| {
            Stat::of(process.pid).is_some_and(|stat| stat.began == process.began)
        });
        if !alive {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name() {
        let numbers = (4..=22).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let stat = Stat::read(&format!("12 (a) b (c) S {numbers}")).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent, stat.began), ("a) b (c", 4, 22));
        assert!(Stat::read("nonsense").is_none());
        assert!(Stat::read("12 (short) S 1").is_none());
    }

    #[test]
    fn a_process_is_found_by_number_and_beginning_only() {
        assert!(is_alive(&own_name()));
        assert!(!is_alive(&format!("{}:1", std::process::id())));
        assert!(!is_alive("nonsense"));
    }

    #[test]
    fn the_session_of_the_process_around_is_found() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(around(folder.path()), None);
        note(folder.path(), HookAgent::Claude, "s1");
        note(folder.path(), HookAgent::Claude, "s2");
        let found = around(folder.path()).unwrap();
        assert_eq!((found.agent.as_str(), found.session.as_str()), ("claude", "s2"));
        // The number was given to another process since.
        let path = file(folder.path(), found.pid);
        let other = AgentProcess { began: 1, ..found };
        fs::write(&path, serde_json::to_vec(&other).unwrap()).unwrap();
        assert_eq!(around(folder.path()), None);
        fs::write(&path, b"junk").unwrap();
        assert_eq!(around(folder.path()), None);
    }
}
