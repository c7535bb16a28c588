//! One event, whichever agent sent it.

use crate::claude_code::TranscriptDialect;
use serde_json::Value;
use std::path::PathBuf;

/// An agent whose hooks are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookAgent {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
    /// OpenCode.
    OpenCode,
}

impl HookAgent {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Cursor, Self::OpenCode];

    /// Its word on the command line and in the log.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::OpenCode => "opencode",
        }
    }

    /// The agent of this word; `claude-code` is Claude Code too.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let word = if word == "claude-code" { "claude" } else { word };
        Self::ALL.into_iter().find(|agent| agent.word() == word)
    }

    /// How its transcripts are written, if they are understood.
    #[must_use]
    pub const fn dialect(self) -> Option<TranscriptDialect> {
        match self {
            Self::Claude => Some(TranscriptDialect::ClaudeCode),
            Self::Codex => Some(TranscriptDialect::Codex),
            Self::Gemini => Some(TranscriptDialect::Gemini),
            Self::Cursor | Self::OpenCode => None,
        }
    }

    /// What a session of it is said to be of: the word its imported transcripts have.
    #[must_use]
    pub const fn session_word(self) -> &'static str {
        match self {
            Self::Claude => "claude-code",
            other => other.word(),
        }
    }
}

/// How a session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStartKind {
    /// Afresh.
    Startup,
    /// Going on with one that had ended.
    Resume,
    /// Afresh, the conversation before it put away.
    Clear,
    /// Going on after its context was compacted.
    Compact,
    /// As a copy of another one.
    Fork,
}

/// A tool call with its outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolUse {
    /// The tool, as Claude Code names it where it has the like: `Bash`, `Edit`, `Write`.
    pub tool: String,
    /// The call's id; none if the agent gives none.
    pub call: Option<String>,
    /// What the tool was asked, with Claude Code's field names.
    pub input: Value,
    /// What it answered.
    pub response: Value,
    /// What went wrong, if it failed.
    pub error: Option<String>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<i64>,
    /// Why it was not let run, if it was not; empty if the agent does not say why.
    pub refused: Option<String>,
    /// How a command ended, where the agent is not Claude Code, whose form says it in `response` and `error`.
    pub ended: HookCommandEnd,
}

/// How a command ended, as far as its agent says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookCommandEnd {
    /// The agent does not say.
    #[default]
    Unknown,
    /// With this exit code.
    Code(i64),
    /// Not yet: it runs on in the background.
    Background,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum HookEventKind {
    /// A session begins or goes on.
    SessionStart {
        /// How.
        start: SessionStartKind,
    },
    /// The agent is asked for something.
    Prompt {
        /// What a person asked for; none if the agent does not say, or says that no person asked.
        text: Option<String>,
    },
    /// A tool was used, or was not let run.
    ToolUsed(Box<ToolUse>),
    /// The agent ended its turn: it is done, was interrupted, or failed.
    Stop,
    /// A sub-agent begins.
    SubAgentStart,
    /// A sub-agent is done.
    SubAgentStop,
    /// A task of the agent's own list was added or completed.
    Task,
    /// Context is about to be compacted.
    PreCompact {
        /// Whether nobody asked for it.
        automatic: Option<bool>,
        /// How many tokens the context has, if the agent says.
        tokens: Option<i64>,
    },
    /// Context was compacted.
    PostCompact {
        /// Whether nobody asked for it.
        automatic: Option<bool>,
        /// The agent's own summary of what it had, if it says.
        summary: Option<String>,
    },
    /// The model is about to be called, with room for a text.
    BeforeModel,
    /// A session ends.
    SessionEnd {
        /// Why, in the agent's own word.
        reason: Option<String>,
    },
    /// Something that no hook of forge is for.
    Other,
}

/// What an agent tells a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookEvent {
    /// Which agent.
    pub agent: HookAgent,
    /// The event, in the agent's own word.
    pub name: String,
    /// The agent's own id of its session.
    pub session: Option<String>,
    /// Where its transcript is.
    pub transcript: Option<PathBuf>,
    /// Where the transcript of the sub-agent is that the event is about, if it has one of its own.
    pub sub_transcript: Option<PathBuf>,
    /// The directory the agent works in now.
    pub cwd: Option<PathBuf>,
    /// The directories that are open in the agent's editor.
    pub roots: Vec<PathBuf>,
    /// The sub-agent it happened in, if it did in one.
    pub sub_agent: Option<String>,
    /// The turn or generation it happened in, if the agent says.
    pub turn: Option<String>,
    /// What happened.
    pub happening: HookEventKind,
}
