//! The log of the hooks: one line per call, so that a user can notice a hook that does nothing.
//!
//! `docs/hooks.md` describes the format.

use crate::private_files;
use forge_agents::hook::HookAgent;
use forge_store::model::Timestamp;
use forge_store::plain_file;
use forge_store::redact::{Redactor, TextForm};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// The maximum size of a log, in bytes. A larger log is renamed, and replaces the log that was
/// renamed before it.
const MOST_BYTES: u64 = 1 << 20;
/// The maximum length of a logged error, in characters.
const ERROR_CHARACTERS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// Something was saved.
    Saved,
    /// The agent got a text, whether or not something was saved.
    Handed,
    /// There was nothing new.
    Unchanged,
    /// forge does not use this event, or the project has no store.
    Ignored,
    Failed,
}

/// One call of a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookLogEntry {
    /// When it was called.
    pub time: Timestamp,
    /// The agent: forge's word for it, or the word of the call if forge does not know the agent.
    pub agent: String,
    /// The event, in the agent's own word.
    pub event: String,
    /// The agent's own id of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The duration in microseconds, without the start of the process and the work after this line.
    pub micros: u64,
    pub outcome: HookOutcome,
    /// How long git took, in microseconds; git runs in parallel with the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_micros: Option<u64>,
    /// The checkpoint that was made or completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The error, why the call was ignored, or a problem that did not stop the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The agent's directory, if no store was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    pub version: String,
}

impl HookLogEntry {
    /// Creates the line of a call that has not changed anything yet.
    #[must_use]
    pub fn new(time: Timestamp, agent: &str, event: &str) -> Self {
        Self {
            time,
            agent: HookAgent::from_word(agent)
                .map_or_else(|| agent.to_owned(), |it| it.word().to_owned()),
            event: event.to_owned(),
            session: None,
            micros: 0,
            outcome: HookOutcome::Unchanged,
            git_micros: None,
            checkpoint: None,
            error: None,
            directory: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Sets the outcome to failed, and the error as the reason.
    pub fn set_error(&mut self, error: &str) {
        self.outcome = HookOutcome::Failed;
        self.set_reason(error);
    }

    /// Redacts the secrets in the texts that do not come from forge itself.
    pub fn redact(&mut self, redactor: &Redactor) {
        let texts = [
            Some(&mut self.agent),
            Some(&mut self.event),
            self.session.as_mut(),
            self.error.as_mut(),
        ];
        for text in texts.into_iter().flatten() {
            if let Cow::Owned(clean) = redactor.clean(text, TextForm::Plain) {
                *text = clean;
            }
        }
        if let Some(directory) = &mut self.directory
            && let Cow::Owned(clean) = redactor.clean(&directory.to_string_lossy(), TextForm::Plain)
        {
            *directory = clean.into();
        }
    }

    /// Sets the text of `error`, cut to `ERROR_CHARACTERS`.
    pub fn set_reason(&mut self, reason: &str) {
        self.error = Some(reason.chars().take(ERROR_CHARACTERS).collect());
    }
}

/// Returns the path of the hook log in the folder of a store's notes.
#[must_use]
pub fn store_log(notes: &Path) -> PathBuf {
    notes.join("log").join("hooks.jsonl")
}

/// Returns the path of the log of calls in projects without a store:
/// `$XDG_STATE_HOME/forge/hooks.jsonl`, by default below `~/.local/state`.
#[must_use]
pub fn user_log(environment: &crate::context::Environment) -> Option<PathBuf> {
    Some(environment.state_directory()?.join("forge").join("hooks.jsonl"))
}

/// Appends a line in one write, so that the lines of concurrent calls do not mix.
pub fn append(log: &Path, line: &HookLogEntry) -> io::Result<()> {
    let mut text = serde_json::to_vec(line).map_err(io::Error::other)?;
    text.push(b'\n');
    let mut file = private_files::open_to_append(log)?;
    if file.metadata()?.len() > MOST_BYTES {
        std::fs::rename(log, rotated_log(log))?;
        file = private_files::open_to_append(log)?;
    }
    file.write_all(&text)
}

/// The path to which a log is renamed when it is too long.
fn rotated_log(log: &Path) -> PathBuf {
    log.with_extension("1.jsonl")
}

/// Reads the lines of a log, oldest first; invalid lines are skipped.
pub fn read(log: &Path) -> io::Result<Vec<HookLogEntry>> {
    let mut lines = Vec::new();
    for path in [rotated_log(log), log.to_owned()] {
        let file = match plain_file::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        for line in BufReader::new(file).split(b'\n') {
            lines.extend(serde_json::from_slice::<HookLogEntry>(&line?).ok());
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    fn line(event: &str) -> HookLogEntry {
        HookLogEntry::new(Timestamp::from_micros(1_770_000_000_000_000), "claude", event)
    }

    #[test]
    fn lines_are_read_in_order_and_invalid_lines_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let log = store_log(folder.path());
        assert_eq!(read(&log).unwrap(), []);
        append(&log, &line("a")).unwrap();
        let mut file = OpenOptions::new().append(true).open(&log).unwrap();
        file.write_all(b"junk\n{\"time\":3}\n\n").unwrap();
        let mut second = line("b");
        second.set_error(&"x".repeat(1000));
        append(&log, &second).unwrap();
        let found = read(&log).unwrap();
        assert_eq!(found, [line("a"), second]);
        assert_eq!(found[1].error.as_ref().unwrap().len(), ERROR_CHARACTERS);
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_log_that_is_too_long_is_renamed_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = store_log(folder.path());
        append(&log, &line("a")).unwrap();
        let filler = vec![b'\n'; usize::try_from(MOST_BYTES).unwrap()];
        OpenOptions::new().append(true).open(&log).unwrap().write_all(&filler).unwrap();
        append(&log, &line("b")).unwrap();
        append(&log, &line("c")).unwrap();
        let events: Vec<String> = read(&log).unwrap().into_iter().map(|line| line.event).collect();
        assert_eq!(events, ["a", "b", "c"]);
        assert!(log.metadata().unwrap().len() < 1000);
    }
}
