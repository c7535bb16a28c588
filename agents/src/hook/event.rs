//! One event type for the hooks of all agents.

use crate::claude_code::TranscriptDialect;
use serde_json::Value;
use std::path::PathBuf;

/// An agent whose hooks are supported.
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
    /// All supported agents.
    pub const ALL: [Self; 5] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Cursor, Self::OpenCode];

    /// Returns the agent's word on the command line and in the log.
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

    /// Returns the agent with this word, in any case. Claude Code also has the word `claude-code`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.trim();
        let word = if word.eq_ignore_ascii_case("claude-code") { "claude" } else { word };
        Self::ALL.into_iter().find(|agent| agent.word().eq_ignore_ascii_case(word))
    }

    /// Returns the dialect of the agent's transcripts, if forge reads them.
    #[must_use]
    pub const fn dialect(self) -> Option<TranscriptDialect> {
        match self {
            Self::Claude => Some(TranscriptDialect::ClaudeCode),
            Self::Codex => Some(TranscriptDialect::Codex),
            Self::Gemini => Some(TranscriptDialect::Gemini),
            Self::Cursor | Self::OpenCode => None,
        }
    }

    /// Returns the agent's name in a session, which is also that of its imported transcripts.
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
    /// A new session.
    Startup,
    /// A session that had ended continues.
    Resume,
    /// A new conversation; the one before was cleared.
    Clear,
    /// The session continues after its context was compacted.
    Compact,
    /// The session is a copy of another one.
    Fork,
}

/// A tool call with its outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolUse {
    /// The name of the tool: Claude Code's name (`Bash`, `Edit`, `Write`) if it has such a tool,
    /// else the agent's own.
    pub tool: String,
    /// The id of the call, if the agent gives one.
    pub call: Option<String>,
    /// The input of the tool, with Claude Code's field names.
    pub input: Value,
    /// The response of the tool.
    pub response: Value,
    /// The error, if the call failed.
    pub error: Option<String>,
    /// Whether the call was interrupted.
    pub interrupted: bool,
    /// How long the call took, in milliseconds.
    pub duration_ms: Option<i64>,
    /// The reason for which the call was refused; empty if the agent gives none; `None` if it was
    /// not refused.
    pub refused: Option<String>,
    /// How a command ended. `Unknown` for Claude Code, which says it in `response` and `error`.
    pub ended: HookCommandEnd,
}

impl ToolUse {
    /// Whether the tool runs a command.
    pub(super) fn is_command(&self) -> bool {
        matches!(self.tool.as_str(), "Bash" | "PowerShell")
    }

    /// Whether the tool edits a file in the form of Claude Code.
    pub(super) fn is_edit(&self) -> bool {
        matches!(self.tool.as_str(), "Edit" | "MultiEdit" | "Write" | "NotebookEdit")
    }
}

/// How a command ended, as far as its agent says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookCommandEnd {
    /// The agent does not say.
    #[default]
    Unknown,
    /// With this exit code.
    Code(i64),
    /// Not yet: it still runs in the background.
    Background,
    /// The agent stopped it after its time limit.
    TimedOut,
    /// The person stopped it.
    Interrupted,
}

/// What happened, in the same words for all agents.
#[derive(Clone, Debug, PartialEq)]
pub enum HookEventKind {
    /// A session begins or continues.
    SessionStart {
        /// How it began.
        start: SessionStartKind,
    },
    /// The agent gets a prompt.
    Prompt {
        /// What a person typed; `None` if the agent does not report it, or if no person typed it.
        text: Option<String>,
    },
    /// A tool was used, or was refused.
    ToolUsed(Box<ToolUse>),
    /// The agent ended its turn: it is done, was interrupted, or failed.
    Stop,
    /// A sub-agent begins.
    SubAgentStart,
    /// A sub-agent ended.
    SubAgentStop,
    /// A task of the agent's own list was added or completed.
    Task,
    /// The context is about to be compacted.
    PreCompact {
        /// Whether the agent began it by itself, rather than at a person's request.
        automatic: Option<bool>,
        /// How many tokens the context has, if the agent says.
        tokens: Option<i64>,
    },
    /// The context was compacted.
    PostCompact {
        /// Whether the agent began it by itself, rather than at a person's request.
        automatic: Option<bool>,
        /// The agent's own summary of the conversation, if it gives one.
        summary: Option<String>,
    },
    /// The model is about to be called, and a hook may add a text.
    BeforeModel,
    /// A session ends.
    SessionEnd {
        /// The reason, in the agent's own word.
        reason: Option<String>,
    },
    /// An event that forge does not use.
    Other,
}

/// One call of a hook by an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct HookEvent {
    /// The agent that called the hook.
    pub agent: HookAgent,
    /// The event's name, in the agent's own word.
    pub name: String,
    /// The agent's own id of its session.
    pub session: Option<String>,
    /// The path of its transcript.
    pub transcript: Option<PathBuf>,
    /// The path of the sub-agent's own transcript, if the event is about one.
    pub sub_transcript: Option<PathBuf>,
    /// The agent's current working directory.
    pub cwd: Option<PathBuf>,
    /// The directories that are open in the agent's editor.
    pub roots: Vec<PathBuf>,
    /// The sub-agent in which the event happened, if any.
    pub sub_agent: Option<String>,
    /// The turn or generation in which the event happened, if the agent says.
    pub turn: Option<String>,
    /// What happened, with its data.
    pub kind: HookEventKind,
}
