//! The lines of a brief, one for each entity, and the short texts in them.

use crate::model::claim::{FactText, FieldValue};
use crate::model::text::with_ellipsis;
use crate::model::{Kind, Timestamp, Value};

/// The maximum number of bytes of a text in a brief.
const TEXT_BYTES: usize = 400;
/// How many digits of a commit are shown before its message.
const COMMIT_CHARS: usize = 10;

/// An entity on one line.
#[derive(Clone, Debug, PartialEq)]
pub struct BriefLine {
    /// The kind of the entity.
    pub kind: Kind,
    /// The id of the entity.
    pub id: String,
    /// Its text, or the beginning of it.
    pub text: String,
    /// Its status, criticality or outcome, if it has one.
    pub word: Option<&'static str>,
    /// The confidence, from 0 to 1, if recorded.
    pub confidence: Option<f64>,
    /// The reason, if recorded.
    pub reason: Option<String>,
    /// For a verification that failed: the tests that failed and the first line of the error, if
    /// its output names them.
    pub error: Option<String>,
    /// How many similar entries before this one are not listed.
    pub similar: usize,
    /// The exit code, for a command.
    pub exit_code: Option<i64>,
    /// The time of the entity.
    pub at: Timestamp,
}

pub(super) fn line(kind: Kind, id: String, text: Option<&str>, at: Timestamp) -> BriefLine {
    BriefLine::new(kind, id, text.map(cut).unwrap_or_default(), at)
}

impl BriefLine {
    /// Creates a line with a text and without optional fields.
    pub(crate) const fn new(kind: Kind, id: String, text: String, at: Timestamp) -> Self {
        Self {
            kind,
            id,
            text,
            word: None,
            confidence: None,
            reason: None,
            error: None,
            similar: 0,
            exit_code: None,
            at,
        }
    }
}

pub(super) fn cut(text: &str) -> String {
    cut_to(text, TEXT_BYTES)
}

/// Cuts a text to at most `bytes` bytes, including a mark at the end if it was cut.
pub(super) fn cut_to(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    with_ellipsis(&text[..text.floor_char_boundary(bytes.saturating_sub("…".len()))])
}

/// Returns the text that shows an entity in a list: the field that says what the entity is. It has
/// at most 400 bytes. A use of a tool is shown by its tool and its subject, a captured state of the
/// code by its commit and its message, a value of a memory by the value itself; the text is empty
/// if the entity has no such field.
#[must_use]
pub fn entity_title(kind: Kind, value: &Value) -> String {
    let names: &[&str] = match kind {
        Kind::Message | Kind::Prompt => &["text"],
        Kind::Command => &["command"],
        Kind::Code => &["path", "commit", "description"],
        Kind::Verification | Kind::Measurement => &["name", "command", "description"],
        Kind::Task => &["subject", "description"],
        Kind::Dependency => &["reason", "description"],
        Kind::Notice => &["text", "address", "path"],
        _ => &["description", "name", "title", "text", "content"],
    };
    let text = |name: &&str| Some(cut(&FactText::read(value.field(name)?)?.shown()));
    if kind == Kind::MemoryItem {
        return match value.field("value") {
            Some(Value::Text(text)) => cut(text),
            Some(other) => cut(&serde_json::to_string(other).unwrap_or_default()),
            None => String::new(),
        };
    }
    if kind == Kind::Tool {
        let subject = ["pattern", "query", "address", "path"].iter().filter_map(text);
        let words: Vec<String> = text(&"tool").into_iter().chain(subject).collect();
        return cut(&words.join(" "));
    }
    if kind == Kind::Code
        && text(&"path").is_none()
        && let (Some(commit), Some(message)) = (text(&"commit"), text(&"description"))
    {
        // As in 'git log --oneline'.
        let commit: String = commit.chars().take(COMMIT_CHARS).collect();
        return cut(&format!("{commit} {message}"));
    }
    names.iter().find_map(text).unwrap_or_default()
}
