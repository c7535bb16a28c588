//! The forms that messages come in, and what matters of a message whatever its form: which calls it makes, which it
//! answers, and what no provider would take.

mod ai_sdk;
mod anthropic;
mod bedrock;
mod blocks;
mod chat;
mod evidence;
mod gemini;
mod idrule;
mod langchain;
mod newids;
mod rescue;
mod responses;
mod told;
mod unknown;

pub(super) use blocks::{Split, results_message, split, with_blocks};
pub(super) use evidence::{Evidence, evidence};
pub(super) use idrule::IdRule;
pub(super) use newids::{NewAnswer, NewIds, with_ids};
pub(super) use rescue::holds_message;
pub(super) use told::{beginning, result_message, told_blocks, told_message};
pub(super) use unknown::seems;

use super::fault::{FaultKind, Remedy};
use super::json::{Object, quoted, without_halves};
use std::borrow::Cow;
use std::collections::HashSet;

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
    /// Bedrock's Converse: content blocks `toolUse` and `toolResult`.
    Bedrock,
    /// Gemini's contents: parts `functionCall` and `functionResponse`.
    Gemini,
    /// `ModelMessage` of the Vercel AI SDK: parts `tool-call` and `tool-result`.
    AiSdk,
    /// LangChain's `type` and `data`.
    Langchain,
    /// LangChain's messages as their model dumps them: `type` beside the other fields.
    LangchainFlat,
    /// LangChain's `lc` dumps: `id` and `kwargs`.
    LangchainLc,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 10] = [
        Self::Plain,
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Bedrock,
        Self::Gemini,
        Self::AiSdk,
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
            Self::Bedrock => "bedrock",
            Self::Gemini => "gemini",
            Self::AiSdk => "ai_sdk",
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
    /// A question whether a call may run: its answer is no result, and none is put in.
    Approval,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Empty if it has none.
    pub(super) id: String,
    /// The id as it was given, if it was changed since.
    pub(super) given: Option<String>,
    pub(super) name: String,
    /// JSON text, or whatever the model wrote for it.
    pub(super) arguments: String,
    pub(super) sort: Sort,
    /// Whether it may wait for its result: a person is asked first.
    pub(super) waits: bool,
}

impl Call {
    fn new(id: String, name: String, arguments: String) -> Self {
        Self { id, given: None, name, arguments, sort: Sort::Function, waits: false }
    }

    /// What people name it by: the id as it was given, else the name of its tool.
    pub(super) fn told(&self) -> &str {
        let id = self.given.as_ref().unwrap_or(&self.id);
        if id.is_empty() { &self.name } else { id }
    }
}

/// What a message says it is the result of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Empty if it has none.
    pub(super) id: String,
    /// The name of the tool, if it says one.
    pub(super) name: Option<String>,
    pub(super) sort: Sort,
    /// The content as JSON; empty if there is none.
    pub(super) content: String,
    /// Its place among the blocks of the message, where results are blocks.
    pub(super) at: usize,
}

impl Answer {
    fn new(id: String, content: &str) -> Self {
        Self { id, name: None, sort: Sort::Function, content: content.to_owned(), at: 0 }
    }

    /// What people name it by.
    pub(super) fn told(&self) -> Option<String> {
        if self.id.is_empty() { self.name.clone() } else { Some(self.id.clone()) }
    }
}

/// What is wrong with a message, of which call, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) fault: FaultKind,
    pub(super) call: Option<String>,
    pub(super) remedy: Remedy,
    /// The message of the history that it is found at, if not the one that is changed.
    pub(super) at: Option<usize>,
}

impl Problem {
    pub(super) fn new(fault: FaultKind, call: Option<&str>, remedy: Remedy) -> Self {
        let call = call.filter(|id| !id.is_empty()).map(str::to_owned);
        Self { fault, call, remedy, at: None }
    }

    /// The same, found at this message.
    pub(super) const fn at(mut self, message: usize) -> Self {
        self.at = Some(message);
        self
    }
}

/// A message as far as it matters here.
#[derive(Debug)]
pub(super) struct Looked<'a> {
    /// What can be taken of it; without anything wrong, the message as it was.
    pub(super) text: Cow<'a, str>,
    pub(super) problems: Vec<Problem>,
    /// Whether nothing of it can be taken.
    pub(super) gone: bool,
    pub(super) speaker: Speaker,
    /// Whether it is an answer without text, which only the last message may be.
    pub(super) unwritten: bool,
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
            unwritten: false,
            calls: Vec::new(),
            answers: Vec::new(),
            id,
        }
    }

    fn gone(mut self, fault: FaultKind) -> Self {
        self.gone = true;
        self.calls.clear();
        self.answers.clear();
        if !self.problems.iter().any(|problem| problem.remedy == Remedy::Removed) {
            self.problems.push(Problem::new(fault, None, Remedy::Removed));
        }
        self
    }

    /// Notes something that is taken out.
    fn removed(&mut self, fault: FaultKind, call: Option<&str>) {
        self.problems.push(Problem::new(fault, call, Remedy::Removed));
    }

    /// Notes something that is put right.
    fn mended(&mut self, fault: FaultKind, call: Option<&str>) {
        self.problems.push(Problem::new(fault, call, Remedy::Changed));
    }
}

/// What a message must be judged by beside itself.
#[derive(Clone, Copy, Default)]
pub(super) struct Around<'a> {
    /// Whether nothing comes after it.
    pub(super) last: bool,
    /// The calls of the history that the provider runs itself.
    pub(super) provider_calls: Option<&'a HashSet<String>>,
}

/// Looks at a message in a thread of this form.
pub(super) fn look<'a>(
    text: &'a str,
    object: Option<Object<'_>>,
    form: Form,
    around: Around<'_>,
) -> Looked<'a> {
    if let Cow::Owned(whole) = without_halves(text) {
        let mut looked = look(&whole, Object::parse(&whole), form, around);
        looked.mended(FaultKind::CutCharacter, None);
        return Looked { text: Cow::Owned(looked.text.into_owned()), ..looked };
    }
    let Some(object) = object else {
        return Looked::new(text, Speaker::Other, None).gone(FaultKind::NotAMessage);
    };
    if let Some((field, lost)) = rescue::lost_role(&object, form) {
        let mut whole = object;
        whole.set(field, quoted(lost));
        let whole = whole.write();
        let mut looked = look(&whole, Object::parse(&whole), form, around);
        looked.mended(FaultKind::MissingRole, None);
        return Looked { text: Cow::Owned(looked.text.into_owned()), ..looked };
    }
    match form {
        Form::Plain | Form::OpenaiChat => chat::look(text, object),
        Form::OpenaiResponses => responses::look(text, object),
        Form::Anthropic => anthropic::look(text, object, around.last),
        Form::Bedrock => bedrock::look(text, object),
        Form::Gemini => gemini::look(text, object),
        Form::AiSdk => ai_sdk::look(text, object, around.provider_calls),
        Form::Langchain | Form::LangchainFlat | Form::LangchainLc => langchain::look(text, object),
    }
}

/// The ids of the calls in this history that the provider runs itself, where a message alone does not say it.
pub(super) fn provider_calls(form: Form, objects: &[Option<Object<'_>>]) -> HashSet<String> {
    if form != Form::AiSdk {
        return HashSet::new();
    }
    objects.iter().flatten().flat_map(ai_sdk::provider_calls).collect()
}

/// Which calls of a message are cut: by id, and by place where calls may have none.
pub(super) struct Cut<'c> {
    pub(super) ids: Vec<&'c str>,
    pub(super) places: Vec<bool>,
}

/// The message without these calls; `None` if nothing is left of it.
pub(super) fn without_calls(text: &str, form: Form, cut: &Cut<'_>) -> Option<String> {
    let object = Object::parse(text)?;
    match form {
        Form::Plain | Form::OpenaiChat => chat::without_calls(object, &cut.ids),
        Form::OpenaiResponses => None,
        Form::Anthropic => anthropic::without_calls(object, &cut.ids),
        Form::Bedrock => bedrock::without_calls(object, &cut.ids),
        Form::Gemini => gemini::without_calls(object, &cut.places),
        Form::AiSdk => ai_sdk::without_calls(object, &cut.ids),
        Form::Langchain | Form::LangchainFlat | Form::LangchainLc => {
            langchain::without_calls(object, &cut.ids)
        }
    }
}

/// Takes out the results of server tools without their use, and the reverse.
pub(super) fn pair_server_tools(form: Form, looked: &mut [Looked<'_>]) {
    if form == Form::Anthropic {
        anthropic::pair_server_tools(looked);
    }
}

/// The last answer without white space at its end, where the provider refuses that.
pub(super) fn without_trailing_space(form: Form, text: &str) -> Option<String> {
    let block = match form {
        Form::Anthropic => anthropic::trimmed,
        Form::Bedrock => bedrock::trimmed,
        _ => return None,
    };
    block(Object::parse(text)?)
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

/// The id a message has itself.
fn own_id(object: &Object<'_>) -> Option<String> {
    object.text("id").filter(|id| !id.is_empty()).map(Cow::into_owned)
}

/// The field, if it is a text that is not empty.
fn named(object: &Object<'_>, field: &str) -> Option<String> {
    object.text(field).filter(|text| !text.is_empty()).map(Cow::into_owned)
}

/// The id in this field; empty if there is none. A number is taken for the text of it.
fn id_in(object: &Object<'_>, field: &str) -> String {
    let number = || object.get(field).filter(|json| json.parse::<u64>().is_ok());
    named(object, field).or_else(|| number().map(str::to_owned)).unwrap_or_default()
}

/// Arguments that must be an object, made one. `None` if they are one.
fn as_object(json: Option<&str>) -> Option<String> {
    let Some(json) = json else { return Some("{}".to_owned()) };
    if Object::parse(json).is_some() {
        return None;
    }
    let Some(text) = super::json::text(json) else {
        return Some(format!(r#"{{"arguments":{json}}}"#));
    };
    if text.trim().is_empty() {
        return Some("{}".to_owned());
    }
    let inner = text.trim();
    if Object::parse(inner).is_some() {
        return Some(super::json::compact(&without_halves(inner)).into_owned());
    }
    Some(format!(r#"{{"arguments":{json}}}"#))
}

/// Arguments that must be a text, made one. `None` if they are one.
fn as_text(json: Option<&str>) -> Option<String> {
    match json {
        None => Some(quoted("{}")),
        Some(json) if super::json::text(json).is_some() => None,
        Some(json) => Some(quoted(json)),
    }
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

/// The block with the type that its fields show, if it says none.
fn typed(json: &str, types: &[(&str, &str)]) -> Option<String> {
    let mut block = Object::parse(json).filter(|block| !block.has("type"))?;
    let (_, kind) = types.iter().find(|(field, _)| block.has(field))?;
    block.set("type", quoted(kind));
    Some(block.write())
}

/// Whether this is a content block: an object that says its type, and, if that is text, has one.
fn is_block(json: &str) -> bool {
    Object::parse(json).is_some_and(|block| match block.text("type") {
        Some(kind) if kind == "text" => block.text("text").is_some(),
        kind => kind.is_some_and(|kind| !kind.is_empty()),
    })
}
