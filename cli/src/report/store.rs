//! The store as a whole.

use super::entity_write::MadeCheckpoint;
use super::session::SessionLine;
use crate::output::{Report, Screen, Tone};
use forge_store::store::UnfinishedImport;
use serde::Serialize;

/// Where things stand.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    /// The directory of the store: for people only.
    #[serde(skip)]
    pub path: String,
    /// How many sessions there are.
    pub sessions: usize,
    /// How many bytes of journal stand behind the index.
    pub tail_bytes: u64,
    /// Imports of streams that have begun and not ended; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<UnfinishedStream>,
    /// The session commands work in; null if there is none yet.
    pub session: Option<String>,
    /// The branch checked out in it.
    pub branch: Option<String>,
    /// The number of that branch's last revision.
    pub head: Option<u64>,
    /// The session's last checkpoint.
    pub last_checkpoint: Option<MadeCheckpoint>,
    /// What else is known of the session.
    pub summary: Option<SessionLine>,
}

/// An import of a stream that has begun and not ended.
#[derive(Debug, Serialize)]
pub struct UnfinishedStream {
    /// The session that holds what was written of it.
    pub session: String,
    /// The stream.
    pub source: String,
    /// The command that takes the rest.
    pub command: String,
}

impl From<UnfinishedImport> for UnfinishedStream {
    fn from(one: UnfinishedImport) -> Self {
        let file = one.source.strip_prefix("events:").unwrap_or(&one.source);
        // Standard input has no name: what follows is the hash of its first line.
        let file = if file.starts_with('-') { "-" } else { file };
        let command = format!("forge import events {}", quoted(file));
        Self { session: one.session, source: one.source, command }
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl UnfinishedStream {
    /// Says what is to be done, unless a process is at it.
    pub(crate) fn print(&self, screen: &mut Screen) {
        let text = format!(
            "The session {} holds a part of {}, unless it is being imported now: '{}' takes the rest",
            self.session, self.source, self.command
        );
        screen.line(Tone::Warning, &text);
    }
}

impl Report for StatusReport {
    const SCHEMA: &'static str = "forge.status/1";

    fn human(&self, screen: &mut Screen) {
        let kib = self.tail_bytes.div_ceil(1024);
        let sessions = if self.sessions == 1 { "session" } else { "sessions" };
        screen.put(Tone::Plain, &format!("Store {}", self.path));
        screen.line(Tone::Dim, &format!(" ({} {sessions}, {kib} KiB not indexed)", self.sessions));
        self.unfinished.iter().for_each(|one| one.print(screen));
        let (Some(name), Some(summary)) = (&self.session, &self.summary) else {
            screen.line(Tone::Plain, "No session has been begun yet.");
            screen.line(Tone::Dim, "'forge session new NAME' or the first thing you record does.");
            return;
        };
        screen.put(Tone::Plain, "Session ");
        screen.put(Tone::Id, name);
        let head = self.head.map_or_else(|| "nothing yet".to_owned(), |head| format!("#{head}"));
        let branch = self.branch.as_deref().unwrap_or_default();
        screen.line(Tone::Plain, &format!(" on branch {branch}, at {head}"));
        summary.print(screen);
        if let Some(checkpoint) = &self.last_checkpoint {
            checkpoint.print(screen);
        }
    }
}

/// A store that was made.
#[derive(Debug, Serialize)]
pub struct InitReport {
    /// The directory of the store: for people only.
    #[serde(skip)]
    pub path: String,
    /// The session that was begun.
    pub session: Option<String>,
    /// Whether what is recorded is encrypted.
    pub encrypted: bool,
}

impl Report for InitReport {
    const SCHEMA: &'static str = "forge.init/1";

    fn human(&self, screen: &mut Screen) {
        screen.line(Tone::Plain, &format!("Made the store {}", self.path));
        if self.encrypted {
            screen.line(
                Tone::Warning,
                "It is encrypted. Without its key it cannot be read by anybody: keep a copy ('forge key export FILE')",
            );
        }
        if let Some(session) = &self.session {
            screen.put(Tone::Plain, "Began session ");
            screen.line(Tone::Id, session);
        }
        screen.line(Tone::Dim, "Next: forge hypothesis add 'what might explain the problem'");
    }
}

/// An index that was brought up to date.
#[derive(Debug, Serialize)]
pub struct MaintainReport {
    /// Whether there was something to do and nobody else was at it.
    pub applied: bool,
    /// Whether the index was rewritten to take the least room.
    pub compacted: bool,
    /// How many prunings were dropped that could no longer be taken back.
    pub swept: u64,
    /// How many bytes of journal stood behind the index before.
    pub tail_bytes_before: u64,
    /// How many do now.
    pub tail_bytes: u64,
}

impl Report for MaintainReport {
    const SCHEMA: &'static str = "forge.maintain/1";

    fn human(&self, screen: &mut Screen) {
        let (before, now) = (self.tail_bytes_before, self.tail_bytes);
        screen.line(
            Tone::Plain,
            &match self.applied {
                true => format!("Brought the index up to date ({before} -> {now} bytes to apply)"),
                false => "The index is up to date, or another process is at it.".to_owned(),
            },
        );
        if self.swept > 0 {
            let swept = self.swept;
            screen.line(Tone::Plain, &format!("Dropped {swept} prunings for good."));
        }
        if self.compacted {
            screen.line(Tone::Plain, "Rewrote the index.");
        }
    }
}
