//! Repairs a history so that its provider accepts it, and keeps everything that is valid, in order.

use super::action::SanitizeAction;
use super::document::CacheMarks;
use super::fault::{FaultKind, ThreadFault};
use super::message_form::{
    CallResult, CheckedMessage, FormEvidence, MessageContext, MessageForm, check_message,
    describe_unknown, evidence, has_cache_mark, holds_message, provider_calls,
};
use super::raw_json::RawObject;
use super::sanitize_plan::SanitizePlan;
use forge_store::model::replace_lone_surrogates;
use std::collections::BTreeMap;

/// What to do with a call without a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrphanPolicy {
    /// Insert a result that says that none was recorded.
    #[default]
    Answer,
    /// Remove the call.
    Remove,
    /// Keep it, because the call may still be running.
    Leave,
}

/// Options of sanitising.
#[derive(Clone, Debug, Default)]
pub struct SanitizeOptions {
    /// What to do with a call without a result.
    pub orphans: OrphanPolicy,
    /// Results known from other sources, by call id.
    pub results: BTreeMap<String, CallResult>,
    /// Whether the history continues items that the provider stored, as with OpenAI's
    /// `previous_response_id`. Then a result may belong to a call among them.
    pub continues: bool,
    /// The marks of the cache outside of the history, in a request of Anthropic.
    pub marks: CacheMarks,
}

/// Why a history cannot be sanitised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SanitizeError {
    /// The messages are of several forms.
    #[error(
        "message {first} is of the form {} and message {second} of the form {}: give messages of one form", forms.0.word(), forms.1.word()
    )]
    MixedForms {
        /// Index of a message of the first form, from 0.
        first: usize,
        /// Index of a message of the second form.
        second: usize,
        /// The two forms.
        forms: (MessageForm, MessageForm),
    },
    /// The form of the messages is not known, or a message with content has no known role or
    /// type.
    #[error("the form of the messages is not known: message {index} seems to be {seems}")]
    UnknownForm {
        /// Index of a message that shows it, from 0.
        index: usize,
        /// What it seems to be.
        seems: String,
    },
}

/// Fields and types that only results of calls have, as JSON texts. A message with one of them is
/// never removed: if it is unusable, sanitising fails.
const RESULT_NAMES: [&str; 7] = [
    "\"tool_call_id\"", "\"tool_use_id\"", "\"toolResult\"", "\"tool-result\"",
    "\"functionResponse\"", "\"function_response\"", "\"output\"",
];

/// The names of the known forms, for the error about messages of an unknown form.
pub const KNOWN_FORMS: &str = "OpenAI chat completions and Responses, Anthropic messages, Bedrock Converse, Gemini contents, \
     ModelMessage of the Vercel AI SDK, and LangChain's messages";

/// A sanitised history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanitizedHistory {
    /// The form of its messages.
    pub form: MessageForm,
    /// The messages, as JSON.
    pub messages: Vec<String>,
    /// For each message, the index of its source in the original history; `None` if inserted.
    pub sources: Vec<Option<usize>>,
    /// The actions that were applied, in order.
    pub actions: Vec<SanitizeAction>,
    /// The faults that were found, in the order of the messages.
    pub faults: Vec<ThreadFault>,
    /// Whether the original history had messages, and none could be kept.
    pub reset: bool,
    /// The renamed calls: index of the message in the original history, old id (the name of the
    /// tool if there was none) and new id.
    pub renamed: Vec<(usize, String, String)>,
}

impl SanitizedHistory {
    /// Returns whether nothing had to be changed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.actions.is_empty()
    }
}

/// Detects the form of a history from its messages.
///
/// # Errors
/// [`SanitizeError`] if they show several forms, or no known form.
pub fn form_of<T: AsRef<str>>(messages: &[T]) -> Result<MessageForm, SanitizeError> {
    let texts: Vec<&str> = messages.iter().map(AsRef::as_ref).collect();
    let parsed: Vec<_> = texts.iter().map(|text| RawObject::parse(text)).collect();
    shown_form(&texts, &parsed)
}

/// Detects the form of these messages.
fn shown_form(
    texts: &[&str],
    objects: &[Option<RawObject<'_>>],
) -> Result<MessageForm, SanitizeError> {
    let (mut strong, mut weak): (Option<(usize, MessageForm)>, Option<MessageForm>) = (None, None);
    let (mut known, mut unrecognised) = (0_usize, Vec::new());
    for (index, object) in objects.iter().enumerate() {
        match object.as_ref().map_or(FormEvidence::None, evidence) {
            FormEvidence::Foreign(seems) => {
                return Err(SanitizeError::UnknownForm { index, seems: seems.to_owned() });
            }
            FormEvidence::Strong(form) => match strong {
                Some((first, known)) if known != form => {
                    let forms = (known, form);
                    return Err(SanitizeError::MixedForms { first, second: index, forms });
                }
                Some(_) => {}
                None => strong = Some((index, form)),
            },
            FormEvidence::Weak(form) => weak = weak.or(Some(form)),
            FormEvidence::Any => {}
            FormEvidence::None => {
                unrecognised.push(index);
                continue;
            }
        }
        known += 1;
    }
    // A torn line or a null between messages can be removed. But an error follows if no message is
    // recognised, or more texts other than null are not recognised than messages are.
    let lost = unrecognised.iter().filter(|index| texts[**index].trim() != "null").count();
    if known < lost.max(1)
        && let Some(index) = unrecognised.first()
    {
        let seems = describe_unknown(texts[*index]);
        return Err(SanitizeError::UnknownForm { index: *index, seems });
    }
    let shown = strong.map(|(_, form)| form).or(weak);
    Ok(shown.unwrap_or_else(|| form_of_marks(objects)))
}

/// Returns the form of messages that several forms can have, by the marks of the cache: of the
/// supported APIs, only Anthropic's has them. Services that accept them in chat completions also
/// accept fields that Anthropic refuses, so a message with another field shows nothing.
fn form_of_marks(objects: &[Option<RawObject<'_>>]) -> MessageForm {
    let is_role = |role: &str| ["user", "assistant", "system"].contains(&role);
    let is_turn = |object: &RawObject<'_>| {
        object.names().iter().all(|name| matches!(*name, "role" | "content"))
            && object.text("role").is_some_and(|role| is_role(&role))
    };
    let messages = || objects.iter().flatten();
    if messages().all(is_turn) && messages().any(has_cache_mark) {
        MessageForm::Anthropic
    } else {
        MessageForm::Plain
    }
}

/// Sanitises a history.
///
/// ```
/// use forge_systems::thread::{SanitizeOptions, sanitize_history};
///
/// let history = [
///     r#"{"role":"user","content":"weather?"}"#,
///     r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function",
///         "function":{"name":"w","arguments":"{}"}}]}"#,
///     r#"{"role":"user","content":"are you there?"}"#,
/// ];
/// let sanitized = sanitize_history(&history, &SanitizeOptions::default())?;
/// assert_eq!(sanitized.messages.len(), 4);
/// assert_eq!(sanitized.actions[0].tool_call_id.as_deref(), Some("c1"));
/// assert!(sanitized.messages[2].contains(r#""role":"tool""#));
/// # Ok::<(), forge_systems::thread::SanitizeError>(())
/// ```
///
/// # Errors
/// [`SanitizeError`] if the messages are of several forms or no known form, or if a message has
/// content but no known role or type, so that removing it would lose the content.
pub fn sanitize_history<T: AsRef<str>>(
    messages: &[T],
    options: &SanitizeOptions,
) -> Result<SanitizedHistory, SanitizeError> {
    let texts: Vec<&str> = messages.iter().map(AsRef::as_ref).collect();
    let whole: Vec<_> = texts.iter().map(|text| replace_lone_surrogates(text)).collect();
    let objects: Vec<_> = whole.iter().map(|text| RawObject::parse(text)).collect();
    let form = shown_form(&texts, &objects)?;
    let provider_calls = provider_calls(form, &objects);
    let last = messages.len().saturating_sub(1);
    let mut checked = Vec::with_capacity(texts.len());
    for (index, (text, object)) in texts.into_iter().zip(objects).enumerate() {
        let around = MessageContext { last: index == last, provider_calls: Some(&provider_calls) };
        checked.push(check_message(text, object, form, around));
    }
    let holds_result = |text: &str| RESULT_NAMES.iter().any(|name| text.contains(name));
    let is_none = |one: &CheckedMessage<'_>| {
        one.problems.iter().any(|problem| problem.fault == FaultKind::NotAMessage)
    };
    let is_lost = |one: &CheckedMessage<'_>| {
        one.is_unusable && (holds_result(&one.text) || is_none(one) && holds_message(&one.text))
    };
    if let Some(index) = checked.iter().position(has_text_elsewhere) {
        let seems =
            format!("a message without `content`, {}", describe_unknown(&checked[index].text));
        return Err(SanitizeError::UnknownForm { index, seems });
    }
    if let Some(index) = checked.iter().position(is_lost) {
        let unknown = describe_unknown(&checked[index].text);
        let seems = format!("content without a known role or type, {unknown}");
        return Err(SanitizeError::UnknownForm { index, seems });
    }
    Ok(SanitizePlan::new(form, checked, options).outcome())
}

/// Returns whether a message is empty in its form but has a text in a field of another name.
fn has_text_elsewhere(message: &CheckedMessage<'_>) -> bool {
    let has_text =
        |object: RawObject<'_>| object.text("text").is_some_and(|said| !said.trim().is_empty());
    message.is_unusable
        && message.problems.iter().any(|problem| problem.fault == FaultKind::EmptyMessage)
        && RawObject::parse(&message.text).is_some_and(has_text)
}
