//! The forms that messages come in, and what matters of a message whatever its form: which calls it makes, which it
//! answers, and what no provider would take.

mod anthropic;
mod chat;
mod evidence;
mod langchain;
mod responses;

pub(super) use anthropic::{results_message, with_results, without_results};
pub(super) use evidence::{Evidence, evidence};

use super::fault::FaultKind;
use super::json::{Object, quoted, without_halves};
use std::borrow::Cow;

/// The form in which messages are given.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `role` and `content` alone, which several providers take.
    #[default]
    Plain,
    /// OpenAI chat completions: `tool_calls`, and messages of role `tool`.
    OpenaiChat,
    /// Items of OpenAI's Responses: `function_call` and `function_call_output`.
    OpenaiResponses,
    /// Anthropic messages: content blocks `tool_use` and `tool_result`.
    Anthropic,
    /// LangChain's `type` and `data`.
    Langchain,
    /// LangChain's messages as their model dumps them: `type` beside the other fields.
    LangchainFlat,
    /// LangChain's `lc` dumps: `id` and `kwargs`.
    LangchainLc,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 7] = [
        Self::Plain,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Langchain,
        Self::LangchainFlat,
        Self::LangchainLc,
    ];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Langchain => "langchain",
            Self::LangchainFlat => "langchain_flat",
            Self::LangchainLc => "langchain_lc",
        }
    }

    /// The form of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.word() == word)
    }
}

/// Who speaks, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    /// The result of a call.
    Tool,
    /// A step of thinking that belongs to the item after it.
    Reasoning,
    /// Instructions, and items of other kinds.
    Other,
}

impl Speaker {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Reasoning => "reasoning",
            Self::Other => "other",
        }
    }
}

/// Whose calls a result may answer: only those of its own sort.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sort {
    #[default]
    Function,
    Custom,
    /// A call whose result is more than a text (a screenshot, a patch), so that none can be made up for it.
    Computer,
    LocalShell,
    Shell,
    ApplyPatch,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// JSON text, or whatever the model wrote for it.
    pub(super) arguments: String,
    pub(super) sort: Sort,
}

/// What a message says it is the result of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) sort: Sort,
}

/// What is wrong with a message by itself.
pub(super) type Problem = (FaultKind, Option<String>);

/// A message as far as it matters here.
#[derive(Debug)]
pub(super) struct Looked<'a> {
    /// What can be taken of it; without anything wrong, the message as it was.
    pub(super) text: Cow<'a, str>,
    pub(super) problems: Vec<Problem>,
    /// Whether nothing of it can be taken.
    pub(super) gone: bool,
    pub(super) speaker: Speaker,
    pub(super) calls: Vec<Call>,
    pub(super) answers: Vec<Answer>,
    /// The id that the message has itself.
    pub(super) id: Option<String>,
}

impl<'a> Looked<'a> {
    fn new(text: &'a str, speaker: Speaker, id: Option<String>) -> Self {
        Self {
            text: Cow::Borrowed(text),
            problems: Vec::new(),
            gone: false,
            speaker,
            calls: Vec::new(),
            answers: Vec::new(),
            id,
        }
    }

    fn gone(mut self, fault: FaultKind) -> Self {
        self.gone = true;
        self.calls.clear();
        self.answers.clear();
        if self.problems.is_empty() {
            self.problems.push((fault, None));
        }
        self
    }

    fn problem(&mut self, fault: FaultKind, call: Option<String>) {
        self.problems.push((fault, call));
    }

    /// Adds a call, unless the message makes one of that id already.
    fn call(&mut self, call: Call) -> bool {
        if self.calls.iter().any(|known| known.id == call.id) {
            self.problem(FaultKind::DoubledCall, Some(call.id));
            return false;
        }
        self.calls.push(call);
        true
    }
}

/// Looks at a message in a thread of this form. `last`: nothing comes after it.
pub(super) fn look<'a>(
    text: &'a str,
    object: Option<Object<'_>>,
    form: Form,
    last: bool,
) -> Looked<'a> {
    if let Cow::Owned(whole) = without_halves(text) {
        let mut looked = look(&whole, Object::parse(&whole), form, last);
        looked.problem(FaultKind::CutCharacter, None);
        return Looked { text: Cow::Owned(looked.text.into_owned()), ..looked };
    }
    let Some(object) = object else {
        return Looked::new(text, Speaker::Other, None).gone(FaultKind::NotAMessage);
    };
    match form {
        Form::Plain | Form::OpenaiChat => chat::look(text, object),
        Form::OpenaiResponses => responses::look(text, object),
        Form::Anthropic => anthropic::look(text, object, last),
        Form::Langchain | Form::LangchainFlat | Form::LangchainLc => langchain::look(text, object),
    }
}

/// The message without these calls; `None` if nothing is left of it.
pub(super) fn without_calls(text: &str, form: Form, ids: &[&str]) -> Option<String> {
    let object = Object::parse(text)?;
    match form {
        Form::Plain | Form::OpenaiChat => chat::without_calls(object, ids),
        Form::OpenaiResponses => None,
        Form::Anthropic => anthropic::without_calls(object, ids),
        Form::Langchain | Form::LangchainFlat | Form::LangchainLc => {
            langchain::without_calls(object, ids)
        }
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// What the model is told.
    pub content: String,
    /// Whether it is an error.
    pub is_error: bool,
}

/// What is said of a call whose result is not known: nothing of why.
pub const NO_RESULT: &str =
    "No result was recorded for this tool call. It may or may not have run.";

impl CallResult {
    /// The result of a call of which nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { content: NO_RESULT.to_owned(), is_error: true }
    }
}

/// The result of a call as a message of its own. `None` if a text cannot be the result of such a call. Of Anthropic's
/// form it is a content block.
pub(super) fn result_message(form: Form, call: &Call, result: &CallResult) -> Option<String> {
    let (id, content) = (quoted(&call.id), quoted(&result.content));
    let langchain = || {
        let status = if result.is_error { "error" } else { "success" };
        let name = quoted(&call.name);
        format!(r#""content":{content},"name":{name},"tool_call_id":{id},"status":"{status}""#)
    };
    Some(match (form, call.sort) {
        (Form::OpenaiResponses, Sort::Function) => {
            format!(r#"{{"type":"function_call_output","call_id":{id},"output":{content}}}"#)
        }
        (Form::OpenaiResponses, Sort::Custom) => {
            format!(r#"{{"type":"custom_tool_call_output","call_id":{id},"output":{content}}}"#)
        }
        (Form::OpenaiResponses, _) => return None,
        (Form::Plain | Form::OpenaiChat, _) => {
            format!(r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#)
        }
        (Form::Anthropic, _) => {
            let error = if result.is_error { r#","is_error":true"# } else { "" };
            // A text block must not be blank; a result without content may be.
            let content = if result.content.trim().is_empty() {
                String::new()
            } else {
                format!(r#","content":{content}"#)
            };
            format!(r#"{{"type":"tool_result","tool_use_id":{id}{content}{error}}}"#)
        }
        (Form::Langchain, _) => {
            format!(r#"{{"type":"tool","data":{{"type":"tool",{}}}}}"#, langchain())
        }
        (Form::LangchainFlat, _) => format!(r#"{{"type":"tool",{}}}"#, langchain()),
        (Form::LangchainLc, _) => format!(
            r#"{{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{{"type":"tool",{}}}}}"#,
            langchain()
        ),
    })
}

/// The id a message has itself.
fn own_id(object: &Object<'_>) -> Option<String> {
    object.text("id").filter(|id| !id.is_empty()).map(Cow::into_owned)
}

/// The field, if it is a text that is not empty.
fn named(object: &Object<'_>, field: &str) -> Option<String> {
    object.text(field).filter(|text| !text.is_empty()).map(Cow::into_owned)
}

/// What a content field holds.
enum Content<'a> {
    Text(Cow<'a, str>),
    /// Not empty.
    Blocks(Vec<&'a str>),
    /// Absent, null or an empty list.
    Nothing,
    /// Something that is no content.
    Other(&'a str),
}

fn content<'o>(object: &'o Object<'_>, field: &str) -> Content<'o> {
    let Some(json) = object.get(field) else { return Content::Nothing };
    if let Some(text) = super::json::text(json) {
        return Content::Text(text);
    }
    match super::json::list(json) {
        Some(blocks) if blocks.is_empty() => Content::Nothing,
        Some(blocks) => Content::Blocks(blocks),
        None => Content::Other(json),
    }
}

/// Makes a result's content something that is one. Returns whether it had to be changed.
fn mend_result(object: &mut Object<'_>, field: &str) -> bool {
    let mended = match content(object, field) {
        Content::Text(_) => return false,
        Content::Blocks(blocks) if blocks.iter().all(|block| is_block(block)) => return false,
        Content::Nothing => quoted(""),
        Content::Blocks(_) => quoted(object.get(field).unwrap_or_default()),
        Content::Other(json) => quoted(json),
    };
    object.set(field, mended);
    true
}

/// Whether this is a content block: an object that says its type, and, if that is text, has one.
fn is_block(json: &str) -> bool {
    Object::parse(json).is_some_and(|block| match block.text("type") {
        Some(kind) if kind == "text" => block.text("text").is_some(),
        kind => kind.is_some_and(|kind| !kind.is_empty()),
    })
}
