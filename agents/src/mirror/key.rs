//! The names of transcripts that are handed over, and of the sources that they are stored as.

use crate::claude_code::TranscriptDialect;
use crate::imported_session::agent_name;
use crate::text_hash::text_hash;
use forge_store::error::{Error, Result};
use forge_store::model::claim;

/// The beginning of the name of a source that marks a session of a project. The project follows.
pub(super) const PROJECT: &str = "claude-project:";
/// How many characters of a project's hash distinguish sessions of two projects with the same id.
const HASH_CHARACTERS: usize = 8;
pub(super) const DIALECT: TranscriptDialect = TranscriptDialect::ClaudeCode;
const AGENT: &str = agent_name(DIALECT);

/// The name of a transcript that is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorKey {
    /// The project of the session.
    pub project: String,
    /// The agent's own id of the session.
    pub session: String,
    /// The path of a transcript below the session, such as `subagents/agent-1`; `None` for the
    /// session's own transcript.
    pub subpath: Option<String>,
}

impl MirrorKey {
    pub(super) fn check(&self) -> Result<()> {
        claim::check_id(&self.session).map_err(|error| Error::invalid(error.to_string()))?;
        for part in [Some(&self.project), self.subpath.as_ref()].into_iter().flatten() {
            if part.is_empty() || part.chars().any(char::is_control) {
                return Err(Error::invalid(format!(
                    "the key of a transcript has the part {part:?}: give one that is not empty, \
                     without control characters"
                )));
            }
        }
        Ok(())
    }

    /// Returns the id for a session if a session of another project has its own id already.
    pub(super) fn id_with_project(&self) -> String {
        format!("{}{}", self.session, project_mark(&self.project))
    }

    /// Returns the name of the transcript's source. `id` is the agent's id of the session in the
    /// store.
    pub(super) fn source(&self, id: &str) -> String {
        let Some(path) = &self.subpath else { return format!("{AGENT}:{id}") };
        match path.strip_prefix("subagents/").filter(|name| is_agent_file(name)) {
            // An import of the sub-agent's file uses the same name.
            Some(name) => format!("{AGENT}:{name}.jsonl"),
            None => format!("{AGENT}:./{path}.jsonl"),
        }
    }
}

fn is_agent_file(name: &str) -> bool {
    name.starts_with("agent-") && !name.contains('/')
}

fn project_mark(project: &str) -> String {
    let hash = text_hash(project);
    format!("@{}", hash.get(..HASH_CHARACTERS).unwrap_or_default())
}

/// Returns the path below the session of the transcript that is stored as this source.
pub(super) fn subpath(source: &str) -> Option<String> {
    let name = source.strip_prefix(AGENT)?.strip_prefix(':')?.strip_suffix(".jsonl")?;
    match name.strip_prefix("./") {
        Some(path) => Some(path.to_owned()),
        None => is_agent_file(name).then(|| format!("subagents/{name}")),
    }
}

/// Returns the id of the session whose own transcript is stored as this source.
pub(super) fn session_id(source: &str, project: &str) -> Option<String> {
    let id = source.strip_prefix(AGENT)?.strip_prefix(':')?;
    let own = id.strip_suffix(project_mark(project).as_str()).unwrap_or(id);
    subpath(source).is_none().then(|| own.to_owned())
}
