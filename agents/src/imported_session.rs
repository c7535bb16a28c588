//! Turns what a reader found into a session with its name, and into checkpoints.

use crate::claude_code::TranscriptDialect;
use crate::piece::{CheckpointDraft, SessionDraft};
use forge_store::error::Result;
use forge_store::model::claim;
use forge_store::store::{NewCheckpoint, NewSession, Session, Store, WriteContext};

/// The maximum length of a session's name that is made from a title.
const NAME_CHARACTERS: usize = 60;
/// The number of characters of the agent's session id that name a session without a title.
const ID_CHARACTERS: usize = 8;

/// Returns the agent's name in sessions and sources.
#[must_use]
pub const fn agent_name(dialect: TranscriptDialect) -> &'static str {
    match dialect {
        TranscriptDialect::ClaudeCode => "claude-code",
        TranscriptDialect::Codex => "codex",
        TranscriptDialect::Gemini => "gemini",
    }
}

/// Returns the session with this id of the agent. If there is none, creates it, named by the title
/// of the draft or else by the beginning of the id.
///
/// # Errors
/// If the store cannot be written.
pub fn session_of_agent(
    store: &Store,
    act: &WriteContext,
    dialect: TranscriptDialect,
    id: &str,
    draft: Option<&SessionDraft>,
) -> Result<Session> {
    let title = draft.and_then(|draft| draft.title.as_deref()).and_then(session_name);
    let name = title.unwrap_or_else(|| id.chars().take(ID_CHARACTERS).collect());
    let new = NewSession {
        agent: Some(agent_name(dialect).to_owned()),
        agent_session: Some(id.to_owned()),
        started_at: draft.and_then(|draft| draft.started_at),
        ..NewSession::imported(name)
    };
    store.session_for_agent(act, new)
}

/// Returns a title as a session's name: one line with single spaces, of limited length. `None` if
/// that is not a valid name, such as an empty one.
#[must_use]
pub fn session_name(title: &str) -> Option<String> {
    let line: String = title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let beginning: String = line.chars().take(NAME_CHARACTERS).collect();
    let name = beginning.trim_end_matches([' ', ':', ',']);
    claim::check_id(name).is_ok().then(|| name.to_owned())
}

impl From<CheckpointDraft> for NewCheckpoint {
    fn from(draft: CheckpointDraft) -> Self {
        Self {
            message: draft.message,
            tags: draft.tags,
            trigger: draft.trigger,
            at: Some(draft.time),
            body: draft.body,
            key: Some(draft.key),
        }
    }
}
