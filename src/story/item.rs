//! One line of a story.

use super::whole_text::PendingText;
use crate::model::{Key, Kind, Timestamp};
use serde::{Serialize, Serializer};
use std::fmt;

/// The sort of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoryKind {
    /// A person asked for something.
    Prompt,
    /// A person answered a question that the agent asked with a tool.
    Answer,
    /// A hypothesis was stated or changed.
    Hypothesis,
    /// Evidence that moved no hypothesis in the same revision.
    Evidence,
    /// A belief was stated or changed.
    Belief,
    /// A gap was opened, filled or changed.
    Gap,
    /// A note.
    Note,
    /// Another claim changed.
    Claim,
    /// The claims of an earlier moment came back.
    Restore,
    /// A test, build or check ended.
    Check,
    /// Files were edited.
    Edit,
    /// The state of the code was captured.
    Code,
    /// A commit.
    Commit,
    /// A push.
    Push,
    /// A pull request was opened, marked ready or merged.
    PullRequest,
    /// An agent's context was compacted.
    Compaction,
    /// A sub-agent worked.
    Agent,
    /// A value was measured.
    Measurement,
    /// A person or agent named a moment.
    Checkpoint,
    /// A branch was created, merged, abandoned or archived.
    Branch,
    /// An agent said something.
    Message,
    /// A command ran.
    Command,
    /// Another tool was used.
    Tool,
    /// A task of an agent's own list changed.
    Task,
    /// The session received a notice.
    Notice,
    /// A revision that a repair could not save.
    Lost,
}

/// The meaning of an item, which a page shows with a sign or a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoryMark {
    /// Nothing special.
    #[default]
    Plain,
    /// Something was added.
    New,
    /// The confidence rose.
    Up,
    /// The confidence fell.
    Down,
    /// Confirmed, passed, filled.
    Good,
    /// Rejected, failed.
    Bad,
    /// An open question.
    Open,
}

/// The sort as which a folded item is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FoldKey {
    /// Commands.
    Command,
    /// Repeated or unknown results of checks.
    Check,
    /// Messages that are not the last of their turn.
    Message,
    /// Uses of other tools.
    Tool,
    /// Changes of tasks.
    Task,
    /// Notices.
    Notice,
    /// Changes of claims that a reader need not see.
    Claim,
    /// Captured states of the code.
    Code,
}

impl FoldKey {
    /// Returns the word for one item of this sort: the key in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.words().0
    }

    /// Returns a number of items in words: `3 commands`.
    #[must_use]
    pub fn counted(self, count: usize) -> String {
        let (one, many) = self.words();
        format!("{count} {}", if count == 1 { one } else { many })
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Command => ("command", "commands"),
            Self::Check => ("check", "checks"),
            Self::Message => ("message", "messages"),
            Self::Tool => ("tool use", "tool uses"),
            Self::Task => ("task", "tasks"),
            Self::Notice => ("notice", "notices"),
            Self::Claim => ("change", "changes"),
            Self::Code => ("code state", "code states"),
        }
    }
}

impl Serialize for FoldKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Something that an item is about. It is written as commands of forge name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoryRef {
    /// A claim or a fact.
    Entity(Key),
    /// The revision or checkpoint with this number.
    Sequence(u64),
}

impl fmt::Display for StoryRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entity(key) => write!(out, "{}:{}", key.kind, key.id),
            Self::Sequence(sequence) => write!(out, "#{sequence}"),
        }
    }
}

impl Serialize for StoryRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One line of a story.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoryItem {
    /// When it happened.
    pub at: Timestamp,
    /// The sort of the event.
    pub kind: StoryKind,
    /// Its meaning.
    pub mark: StoryMark,
    /// Whether a reader should see it; else it is folded, or left out if it has no fold key.
    pub loud: bool,
    /// What happened, in one line: the subject first, then the change.
    pub text: String,
    /// The reason, the description, or the question that a short answer answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The entities, revision or checkpoint that it is about.
    pub refs: Vec<StoryRef>,
    /// The sort as which it is counted if it is folded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold_key: Option<FoldKey>,
    /// The sub-agent that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The branch, if claims changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The edited files, relative to the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Whether a prompt is a command to the client, such as `/compact`.
    #[serde(skip)]
    pub(super) is_client_command: bool,
    /// The whole of a long text, if the item has only its beginning.
    #[serde(skip)]
    pub(super) pending: Option<PendingText>,
}

impl StoryItem {
    /// Returns the ids of the edits that this line is about.
    pub fn edit_ids(&self) -> impl Iterator<Item = &str> {
        self.refs.iter().filter_map(|about| match about {
            StoryRef::Entity(key) if key.kind == Kind::Code => Some(key.id.as_str()),
            _ => None,
        })
    }

    /// Creates an item that a reader should see.
    pub(super) fn loud(at: Timestamp, kind: StoryKind, text: impl Into<String>) -> Self {
        Self {
            at,
            kind,
            mark: StoryMark::Plain,
            loud: true,
            text: text.into(),
            detail: None,
            refs: Vec::new(),
            fold_key: None,
            agent: None,
            branch: None,
            paths: Vec::new(),
            is_client_command: false,
            pending: None,
        }
    }

    /// Creates an item that is folded.
    pub(super) fn quiet(
        at: Timestamp,
        kind: StoryKind,
        fold_key: FoldKey,
        text: impl Into<String>,
    ) -> Self {
        Self { loud: false, fold_key: Some(fold_key), ..Self::loud(at, kind, text) }
    }

    pub(super) fn marked(self, mark: StoryMark) -> Self {
        Self { mark, ..self }
    }

    /// Sets the detail, unless it is empty.
    pub(super) fn detailed(self, detail: Option<String>) -> Self {
        Self { detail: detail.filter(|detail| !detail.is_empty()), ..self }
    }

    pub(super) fn about(mut self, kind: Kind, id: &str) -> Self {
        self.refs.push(StoryRef::Entity(Key::new(kind, id)));
        self
    }

    pub(super) fn at_sequence(mut self, sequence: u64) -> Self {
        self.refs.push(StoryRef::Sequence(sequence));
        self
    }

    pub(super) fn by(self, agent: Option<String>) -> Self {
        Self { agent, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_item_refers_to_its_entity_and_revision() {
        let item = StoryItem::quiet(
            Timestamp::from_micros(0),
            StoryKind::Command,
            FoldKey::Command,
            "$ make",
        )
        .about(Kind::Command, "c1")
        .at_sequence(7);
        let refs: Vec<String> = item.refs.iter().map(ToString::to_string).collect();
        assert_eq!(refs, ["command:c1", "#7"]);
        assert!(!item.loud);
        assert_eq!(FoldKey::Command.counted(1), "1 command");
        assert_eq!(FoldKey::Tool.counted(2), "2 tool uses");
    }
}
