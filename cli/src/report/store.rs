//! Reports about the store as a whole.

use super::entity_write::MadeCheckpoint;
use super::remote::{FailedExchange, UnpushedLine};
use super::session::{OTHER_SESSIONS, SessionLine};
use crate::output::{Report, Screen, Tone};
use crate::report::import::FoundTranscript;
use crate::text::count_text;
use forge_store::shell::quoted;
use forge_store::store::UnfinishedImport;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct StatusReport {
    /// The directory of the store; only for people.
    #[serde(skip)]
    pub path: String,
    pub sessions: usize,
    /// The size of the journal's tail, in bytes.
    pub tail_bytes: u64,
    /// Imports that have begun and not ended; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<UnfinishedStream>,
    /// How many losses an earlier repair listed; absent if there are none, or if they were
    /// acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_in_repair: Option<u64>,
    /// What is not pushed, by remote; absent if everything is pushed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpushed: Vec<UnpushedLine>,
    /// Exchanges with the remote that hooks began and that failed; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_exchanges: Vec<FailedExchange>,
    /// The session that was named, or else the current one; null if there is none yet.
    pub session: Option<String>,
    /// Its current branch.
    pub branch: Option<String>,
    /// The number of that branch's head.
    pub head: Option<u64>,
    /// The checkpoint of the session that was written last.
    pub last_checkpoint: Option<MadeCheckpoint>,
    /// Further data of the session.
    pub summary: Option<SessionLine>,
}

/// The source of an unfinished pull.
const PULL: &str = "pull:";

/// An import that has begun and not ended.
#[derive(Debug, Serialize)]
pub struct UnfinishedStream {
    /// The session with the imported part.
    pub session: String,
    /// The name of the stream.
    pub source: String,
    /// The command that imports the rest.
    pub command: String,
}

impl From<UnfinishedImport> for UnfinishedStream {
    fn from(one: UnfinishedImport) -> Self {
        if let Some(file) = one.source.strip_prefix("bundle:") {
            // The name of the file is not known if the bundle came from standard input, or if the
            // store is encrypted.
            let file = if file.is_empty() { "FILE" } else { file };
            let command = format!("forge import bundle {}", quoted(file));
            return Self { session: one.session, source: one.source, command };
        }
        if one.source == PULL {
            let command = format!("forge pull {}", quoted(&one.session));
            return Self { session: one.session, source: one.source, command };
        }
        let file = one.source.strip_prefix("events:").unwrap_or(&one.source);
        let file = match file.strip_prefix('-') {
            // Standard input has no name: its source is the hash of its first line.
            Some(hash) if is_hash(hash) => "-".to_owned(),
            Some(_) => format!("./{file}"),
            None => file.to_owned(),
        };
        let command = format!("forge import events {}", quoted(&file));
        Self { session: one.session, source: one.source, command }
    }
}

/// Returns whether this is a hash in the form that names standard input as a source.
fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl UnfinishedStream {
    /// Prints the command that imports the rest.
    pub(crate) fn print(&self, screen: &mut Screen) {
        let (source, other) = match &*self.source {
            "bundle:" => ("a bundle", ""),
            // What was imported from standard input has no name either.
            PULL => ("a pull or a bundle", ", or 'forge import bundle FILE' if it was a bundle"),
            source => (source, ""),
        };
        let text = format!(
            "The session '{}' holds a part of {source}, unless it is being imported now: '{}' \
            imports the rest{other}",
            self.session, self.command
        );
        screen.warning(&text);
    }
}

impl Report for StatusReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, &format!("Store {}", self.path));
        screen.dim(&format!(" ({})", count_text(self.sessions as u64, "session")));
        self.unfinished.iter().for_each(|one| one.print(screen));
        if let Some(count) = self.lost_in_repair {
            let losses = if count == 1 { "1 loss" } else { &format!("{count} losses") };
            screen.warning(&format!(
                "A repair of this store listed {losses}: 'forge log' names lost revisions, \
                    'forge repair --acknowledge' ends this notice"
            ));
        }
        self.unpushed.iter().for_each(|line| line.print(screen));
        self.failed_exchanges.iter().for_each(|one| one.print(screen));
        let (Some(name), Some(summary)) = (&self.session, &self.summary) else {
            if self.sessions > 0 {
                screen.plain("No debugging session has been begun yet.");
                return screen.dim(&format!("{OTHER_SESSIONS}."));
            }
            screen.plain("No session has been begun yet.");
            return screen.dim("'forge session new NAME' or the first thing you record does.");
        };
        screen.put(Tone::Plain, "Session ");
        screen.put(Tone::Id, name);
        let head = self.head.map(|head| format!(", at #{head}")).unwrap_or_default();
        let branch = self.branch.as_deref().unwrap_or_default();
        let branches = match summary.branches {
            1 => String::new(),
            several => format!(" (of {several})"),
        };
        screen.plain(&format!(" on branch {branch}{branches}{head}"));
        summary.print_in_status(screen);
        if let Some(checkpoint) = &self.last_checkpoint {
            checkpoint.print(screen);
        }
        let forge = screen.forge();
        let next = format!("'{forge} brief' shows what is known, '{forge} log' what happened.");
        screen.dim(&next);
    }
}

/// A store that was created.
#[derive(Debug, Default, Serialize)]
pub struct InitReport {
    /// The directory of the store; only for people.
    #[serde(skip)]
    pub path: String,
    /// The directory of the next store above, if there is one; only for people.
    #[serde(skip)]
    pub above: Option<String>,
    pub session: Option<String>,
    /// Whether the store is encrypted.
    pub encrypted: bool,
    /// The name of the store and the address of its database, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Whether the database had the store already.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// The directory of the demo, if the store is part of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demo: Option<String>,
    /// Transcripts of earlier work here, which can be imported; only for people.
    #[serde(skip)]
    pub transcripts: Vec<FoundTranscript>,
    /// Whether the store existed already. Then nothing was changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub existing: bool,
}

impl Report for InitReport {
    fn human(&self, screen: &mut Screen) {
        if let Some(demo) = &self.demo {
            screen.plain(&format!("Made a demo with a recorded session in {demo}"));
            return screen.dim(&format!("Next: cd {demo} && forge brief, then forge tui"));
        }
        if self.existing {
            let message = format!("There is a store already: {}; nothing was changed", self.path);
            return screen.plain(&message);
        }
        match &self.database {
            Some(database) if self.joined => {
                let message = format!("Joined the store {database}: {} opens it", self.path);
                return screen.plain(&message);
            }
            Some(database) => {
                screen.plain(&format!("Made the store {database}: {} opens it", self.path));
            }
            None => screen.plain(&format!("Made the store {}", self.path)),
        }
        if let Some(above) = &self.above {
            screen.plain(&format!("Commands there use it instead of the store above: {above}"));
        }
        if self.encrypted {
            screen.warning(
                "It is encrypted. Without its key it cannot be read by anybody: keep a copy \
                 ('forge key export FILE')",
            );
        }
        if let Some(session) = &self.session {
            screen.put(Tone::Plain, "Began session ");
            screen.line(Tone::Id, session);
        }
        if self.transcripts.is_empty() {
            screen.dim("Next: forge hypothesis add 'what might explain the problem'");
        }
    }
}

/// The result of maintenance.
#[derive(Debug, Serialize)]
pub struct MaintainReport {
    /// Whether a new generation of the index was published. It is not if the index is up to date,
    /// or if another process is updating it.
    pub applied: bool,
    /// Whether the index was compacted.
    pub compacted: bool,
    /// How many prunings were swept.
    pub swept: u64,
    /// The size of the journal's tail before, in bytes.
    pub tail_bytes_before: u64,
    /// Its size now, in bytes.
    pub tail_bytes: u64,
}

impl Report for MaintainReport {
    fn human(&self, screen: &mut Screen) {
        let (before, now) = (self.tail_bytes_before, self.tail_bytes);
        screen.plain(&match self.applied {
            true => format!("Brought the index up to date ({before} → {now} bytes to apply)"),
            false => "The index is up to date, or another process is updating it.".to_owned(),
        });
        if self.swept > 0 {
            let swept = count_text(self.swept, "pruning");
            screen.plain(&format!("Permanently deleted {swept}."));
        }
        if self.compacted {
            screen.plain("Rewrote the index.");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_finishes_an_import_names_its_file() {
        for (source, command) in [
            ("events:a.jsonl", "forge import events a.jsonl"),
            ("events:-0123456789abcdef", "forge import events -"),
            // It would be read as standard input, or as an option.
            ("events:-a.jsonl", "forge import events ./-a.jsonl"),
            ("bundle:/w/my work.bundle", "forge import bundle '/w/my work.bundle'"),
            ("bundle:", "forge import bundle FILE"),
            ("pull:", "forge pull s"),
        ] {
            let one = UnfinishedImport { session: "s".to_owned(), source: source.to_owned() };
            assert_eq!(UnfinishedStream::from(one).command, command);
        }
    }
}
