//! Message forms, and a form-independent view of a message: the calls it makes, the calls it
//! answers, and what no provider accepts.

mod ai_sdk;
mod anthropic;
mod bedrock;
mod blocks;
mod cache_marks;
mod call_id_rule;
mod foreign_form;
mod form_evidence;
mod gemini;
mod held_content;
mod image_block;
mod langchain;
mod lost_role;
mod openai_chat;
mod openai_responses;
mod recover_content;
mod result_text;
mod rewrite_ids;

pub(super) use blocks::{SplitMessage, results_message, split, with_blocks};
pub(super) use cache_marks::has_cache_mark;
pub(super) use call_id_rule::CallIdRule;
pub(super) use foreign_form::describe_unknown;
pub(super) use form_evidence::{FormEvidence, evidence};
pub(super) use held_content::holds_message;
pub(super) use result_text::{
    beginning, rest_of_message, rest_of_result, result_as_user_blocks, result_as_user_message,
    result_message,
};
pub(super) use rewrite_ids::{CallIdChanges, ResultIdChange, with_ids};

use super::document::CacheMarks;
use super::fault::{FaultKind, Remedy};
use super::raw_json::{RawObject, quoted, text};
use forge_store::model::replace_lone_surrogates;
use std::borrow::Cow;
use std::collections::HashSet;

words! {
    /// The form of messages.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum MessageForm {
        /// Only `role` and `content`, which several providers accept.
        #[default]
        Plain = "plain",
        /// OpenAI chat completions: `tool_calls`, and messages of role `tool`.
        OpenaiChat = "openai_chat",
        /// Items of OpenAI's Responses API: `function_call` and `function_call_output`.
        OpenaiResponses = "openai_responses",
        /// Anthropic messages: content blocks `tool_use` and `tool_result`.
        Anthropic = "anthropic",
        /// Bedrock's Converse API: content blocks `toolUse` and `toolResult`.
        Bedrock = "bedrock",
        /// Gemini's contents: parts `functionCall` and `functionResponse`.
        Gemini = "gemini",
        /// `ModelMessage` of the Vercel AI SDK: parts `tool-call` and `tool-result`.
        AiSdk = "ai_sdk",
        /// LangChain's `type` and `data`.
        Langchain = "langchain",
        /// LangChain's messages as `model_dump` writes them: `type` next to the other fields.
        LangchainFlat = "langchain_flat",
        /// LangChain's `lc` dumps: `id` and `kwargs`.
        LangchainLc = "langchain_lc",
    }
}

/// The relevant roles of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageRole {
    User,
    Assistant,
    /// The result of a call.
    Tool,
    /// A reasoning item, which belongs to the item after it.
    Reasoning,
    /// Instructions, and items of other kinds.
    Other,
}

impl MessageRole {
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

/// The kind of a call. A result can only answer a call of the same kind.
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
pub(super) enum ToolCallKind {
    #[default]
    Function,
    Custom,
    /// A use of a computer. Its result, and the results of the three kinds after it, are more than
    /// a text, so no result is inserted if one is missing.
    Computer,
    LocalShell,
    Shell,
    ApplyPatch,
    /// An approval request for a call. Its answer is not a result, and none is inserted.
    Approval,
}

impl ToolCallKind {
    /// Returns whether this result, perhaps of another kind, can be the result of a call of this
    /// kind without losing content.
    pub(super) fn takes_result(self, answer: &ToolResultPart) -> bool {
        let takes = |kind: Self| match kind {
            Self::Function | Self::Custom => true,
            Self::LocalShell => text(&answer.content).is_some(),
            _ => false,
        };
        self == answer.kind || takes(self) && takes(answer.kind)
    }
}

/// A call in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolCallPart {
    /// The id of the call; empty if it has none.
    pub(super) id: String,
    /// The original id, if it was renamed.
    pub(super) given: Option<String>,
    pub(super) name: String,
    /// JSON text, or another text that the model wrote instead.
    pub(super) arguments: String,
    pub(super) kind: ToolCallKind,
    /// Whether it may wait for its result, because a person is asked first.
    pub(super) waits: bool,
}

impl ToolCallPart {
    fn new(id: String, name: String, arguments: String) -> Self {
        Self { id, given: None, name, arguments, kind: ToolCallKind::Function, waits: false }
    }

    /// Returns the name shown to people: the original id, or the tool's name if there is no id.
    pub(super) fn display_name(&self) -> &str {
        let id = self.given.as_ref().unwrap_or(&self.id);
        if id.is_empty() { &self.name } else { id }
    }
}

/// The result of a call, in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolResultPart {
    /// The id of the call; empty if it has none.
    pub(super) id: String,
    /// The tool name, if given.
    pub(super) name: Option<String>,
    pub(super) kind: ToolCallKind,
    /// The content as JSON; empty if there is none.
    pub(super) content: String,
    /// Its position among the blocks of the message, in forms where results are blocks.
    pub(super) at: usize,
    /// The number of calls before it in its message.
    pub(super) calls_before: usize,
}

impl ToolResultPart {
    fn new(id: String, content: &str) -> Self {
        let content = content.to_owned();
        Self { id, name: None, kind: ToolCallKind::Function, content, at: 0, calls_before: 0 }
    }

    /// Returns the name shown to people: the id, or the name of the tool if there is no id.
    pub(super) fn display_name(&self) -> Option<String> {
        if self.id.is_empty() { self.name.clone() } else { Some(self.id.clone()) }
    }
}

/// A problem of a message, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageProblem {
    pub(super) fault: FaultKind,
    pub(super) call: Option<String>,
    pub(super) remedy: Remedy,
    /// The index of the message in which it was found, if that is not the changed message.
    pub(super) at: Option<usize>,
}

impl MessageProblem {
    pub(super) fn new(fault: FaultKind, call: Option<&str>, remedy: Remedy) -> Self {
        let call = call.filter(|id| !id.is_empty()).map(str::to_owned);
        Self { fault, call, remedy, at: None }
    }

    /// Sets the index of the message in which it was found.
    pub(super) const fn at(mut self, message: usize) -> Self {
        self.at = Some(message);
        self
    }
}

#[derive(Debug)]
pub(super) struct CheckedMessage<'a> {
    /// The valid part of it; the original text if nothing is wrong.
    pub(super) text: Cow<'a, str>,
    pub(super) problems: Vec<MessageProblem>,
    /// Whether nothing of it is valid.
    pub(super) is_unusable: bool,
    pub(super) role: MessageRole,
    /// Whether it is an assistant message without text, which is valid only at the end.
    pub(super) unwritten: bool,
    pub(super) calls: Vec<ToolCallPart>,
    pub(super) answers: Vec<ToolResultPart>,
    /// Content blocks of it or of its result that are valid only in a user message.
    pub(super) user_blocks: Vec<String>,
    /// The message's own id.
    pub(super) id: Option<String>,
}

impl<'a> CheckedMessage<'a> {
    fn new(text: &'a str, role: MessageRole, id: Option<String>) -> Self {
        Self {
            text: Cow::Borrowed(text),
            problems: Vec::new(),
            is_unusable: false,
            role,
            unwritten: false,
            calls: Vec::new(),
            answers: Vec::new(),
            user_blocks: Vec::new(),
            id,
        }
    }

    fn into_unusable(mut self, fault: FaultKind) -> Self {
        self.is_unusable = true;
        self.calls.clear();
        self.answers.clear();
        if !self.problems.iter().any(|problem| problem.remedy == Remedy::Removed) {
            self.problems.push(MessageProblem::new(fault, None, Remedy::Removed));
        }
        self
    }

    /// Records that something is removed.
    fn note_removed(&mut self, fault: FaultKind, call: Option<&str>) {
        self.problems.push(MessageProblem::new(fault, call, Remedy::Removed));
    }

    /// Records that something is repaired.
    pub(super) fn note_repaired(&mut self, fault: FaultKind, call: Option<&str>) {
        self.problems.push(MessageProblem::new(fault, call, Remedy::Changed));
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct MessageContext<'a> {
    pub(super) last: bool,
    /// The calls of the history that the provider runs itself.
    pub(super) provider_calls: Option<&'a HashSet<String>>,
}

/// Checks a message in a thread of this form.
pub(super) fn check_message<'a>(
    text: &'a str,
    object: Option<RawObject<'_>>,
    form: MessageForm,
    around: MessageContext<'_>,
) -> CheckedMessage<'a> {
    if let Cow::Owned(whole) = replace_lone_surrogates(text) {
        return check_repaired(&whole, FaultKind::CutCharacter, form, around);
    }
    let Some(object) = object else {
        return CheckedMessage::new(text, MessageRole::Other, None)
            .into_unusable(FaultKind::NotAMessage);
    };
    if let Some((field, lost)) = lost_role::lost_role(&object, form) {
        let mut whole = object;
        whole.set(field, quoted(lost));
        return check_repaired(&whole.write(), FaultKind::MissingRole, form, around);
    }
    if let Some(said) = lost_role::bare_content(&object) {
        let mut whole = object;
        whole.set("content", said);
        return check_repaired(&whole.write(), FaultKind::MalformedBlock, form, around);
    }
    let checked = match form {
        MessageForm::Plain | MessageForm::OpenaiChat => openai_chat::check_message(text, object),
        MessageForm::OpenaiResponses => openai_responses::check_message(text, object),
        MessageForm::Anthropic => anthropic::check_message(text, object, around.last),
        MessageForm::Bedrock => bedrock::check_message(text, object),
        MessageForm::Gemini => gemini::check_message(text, object),
        MessageForm::AiSdk => ai_sdk::check_message(text, object, around.provider_calls),
        MessageForm::Langchain | MessageForm::LangchainFlat | MessageForm::LangchainLc => {
            langchain::check_message(text, object)
        }
    };
    rewrite_ids::with_text_ids(checked, form)
}

/// Checks the text of a message after the repair of this fault.
fn check_repaired(
    whole: &str,
    fault: FaultKind,
    form: MessageForm,
    around: MessageContext<'_>,
) -> CheckedMessage<'static> {
    let mut checked = check_message(whole, RawObject::parse(whole), form, around);
    checked.note_repaired(fault, None);
    CheckedMessage { text: Cow::Owned(checked.text.into_owned()), ..checked }
}

/// Returns the ids of the calls that the provider runs itself, in forms where a message alone
/// does not show this.
pub(super) fn provider_calls(
    form: MessageForm,
    objects: &[Option<RawObject<'_>>],
) -> HashSet<String> {
    if form != MessageForm::AiSdk {
        return HashSet::new();
    }
    objects.iter().flatten().flat_map(ai_sdk::provider_calls).collect()
}

/// The calls to remove from a message: by id, and by position in forms where a call need not have
/// an id.
pub(super) struct CallRemoval<'c> {
    pub(super) ids: Vec<&'c str>,
    pub(super) places: Vec<bool>,
}

/// Returns the message without these calls; `None` if nothing is left.
pub(super) fn without_calls(
    text: &str,
    form: MessageForm,
    cut: &CallRemoval<'_>,
) -> Option<String> {
    let object = RawObject::parse(text)?;
    match form {
        MessageForm::Plain | MessageForm::OpenaiChat => {
            openai_chat::without_calls(object, &cut.ids)
        }
        MessageForm::OpenaiResponses => None,
        MessageForm::Anthropic => anthropic::without_calls(object, &cut.ids),
        MessageForm::Bedrock => bedrock::without_calls(object, &cut.ids),
        MessageForm::Gemini => gemini::without_calls(object, &cut.places),
        MessageForm::AiSdk => ai_sdk::without_calls(object, &cut.ids),
        MessageForm::Langchain | MessageForm::LangchainFlat | MessageForm::LangchainLc => {
            langchain::without_calls(object, &cut.ids)
        }
    }
}

/// Returns the message with its result as the result of a call of this kind; `None` in forms
/// without kinds of calls.
pub(super) fn with_result_kind(
    text: &str,
    form: MessageForm,
    kind: ToolCallKind,
) -> Option<String> {
    (form == MessageForm::OpenaiResponses)
        .then(|| openai_responses::with_result_kind(RawObject::parse(text)?, kind))?
}

/// One of the two blocks about a use of a server tool, which the provider runs itself. Contains the
/// id of the use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerToolHalf {
    /// The call.
    Use(String),
    Result(String),
}

/// Returns the uses and results of server tools in a message, in order.
pub(super) fn server_tool_halves(form: MessageForm, text: &str) -> Vec<ServerToolHalf> {
    match form {
        MessageForm::Anthropic => anthropic::server_tool_halves(text),
        _ => Vec::new(),
    }
}

/// Repairs what the provider refuses in a message because of other messages: halves of the uses of
/// server tools, too many or badly ordered marks of the cache, and repeated ids of items.
/// `marks`: the marks of the cache outside of the messages.
pub(super) fn tidy_together(
    form: MessageForm,
    checked: &mut [CheckedMessage<'_>],
    marks: CacheMarks,
) {
    match form {
        MessageForm::Anthropic => {
            anthropic::pair_server_tools(checked);
            cache_marks::limit_cache_marks(checked, marks);
            cache_marks::order_cache_marks(checked, marks);
        }
        MessageForm::OpenaiResponses => openai_responses::drop_repeated_ids(checked),
        _ => {}
    }
}

/// Returns whether a message refers to an item that the provider stored.
pub(super) fn refers_to_item(form: MessageForm, text: &str) -> bool {
    form == MessageForm::OpenaiResponses && openai_responses::referred_id(text).is_some()
}

/// Returns an assistant message at the end without trailing white space, which some providers
/// refuse. `None` if nothing changes.
pub(super) fn without_trailing_space(form: MessageForm, text: &str) -> Option<String> {
    let block = match form {
        MessageForm::Anthropic => anthropic::trimmed,
        MessageForm::Bedrock => bedrock::trimmed,
        _ => return None,
    };
    block(RawObject::parse(text)?)
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// The content given to the model.
    pub content: String,
    /// Whether it is an error.
    pub is_error: bool,
}

/// The content of the result that is inserted for a call whose result is unknown.
pub const NO_RESULT: &str =
    "No result was recorded for this tool call. It may or may not have run.";

/// The text for an error result that is empty, or that has other blocks than text and so cannot be
/// marked as an error.
const FAILED: &str = "The tool call failed.";

impl CallResult {
    /// Returns the result to insert for a call whose result is unknown.
    #[must_use]
    pub fn unknown() -> Self {
        Self { content: NO_RESULT.to_owned(), is_error: true }
    }
}

/// Returns a message's own id.
fn own_id(object: &RawObject<'_>) -> Option<String> {
    object.text("id").filter(|id| !id.is_empty()).map(Cow::into_owned)
}

/// Returns the field if it is a non-empty text.
fn nonempty_text(object: &RawObject<'_>, field: &str) -> Option<String> {
    object.text(field).filter(|text| !text.is_empty()).map(Cow::into_owned)
}

/// Returns the id in this field; empty if there is none. A number or another value that is no text
/// is converted to text: otherwise, results would be matched by their order, which such ids may
/// contradict. Tables of messages have `1.0` for `1`.
fn id_in(object: &RawObject<'_>, field: &str) -> String {
    let bare = || match object.get(field).unwrap_or_default() {
        // A result has these if its id is missing.
        "false" | "[]" | "{}" if field != "id" => String::new(),
        json => json.strip_suffix(".0").unwrap_or(json).to_owned(),
    };
    object.text(field).map_or_else(bare, Cow::into_owned)
}

/// The fields in which the APIs have the id of a call, in its result or in the call.
const CALL_IDS: [&str; 6] =
    ["call_id", "callId", "tool_call_id", "toolCallId", "tool_use_id", "toolUseId"];

/// The fields in which the APIs have the arguments of a call.
const ARGUMENTS: [&str; 4] = ["arguments", "args", "input", "parameters"];

/// The fields in which the APIs have the content of a result.
const RESULTS: [&str; 5] = ["content", "output", "result", "response", "text"];

/// Gives the first of these fields that has a value the name that it has in this API, if the object
/// has no value of that name. Returns whether it did.
fn adopt(object: &mut RawObject<'_>, names: &[&str], own: &str) -> bool {
    if object.get(own).is_some() {
        return false;
    }
    let found = names.iter().find_map(|name| Some((*name, object.get(name)?.to_owned())));
    let Some((name, value)) = found else { return false };
    object.remove(name);
    object.set(own, value);
    true
}

/// Gives the id of a call that is in a field of another API the name that it has in this one, if
/// the object has no id of that name. Returns whether it did. Otherwise, results would be matched
/// by their order, which their ids may contradict.
fn adopt_id(object: &mut RawObject<'_>, own: &str) -> bool {
    let name = CALL_IDS.into_iter().find(|name| !id_in(object, name).is_empty());
    let Some(name) = name.filter(|_| id_in(object, own).is_empty()) else { return false };
    let id = quoted(&id_in(object, name));
    object.remove(name);
    object.set(own, id);
    true
}

/// Returns whether a call failed by this status of its result; `None` if the status does not say
/// so: a result must not claim an outcome that is not known.
fn has_failed(status: &str) -> Option<bool> {
    match &*status.to_ascii_lowercase() {
        "success" | "succeeded" | "ok" => Some(false),
        "error" | "failed" | "failure" | "denied" | "rejected" | "cancelled" | "canceled"
        | "aborted" | "timeout" => Some(true),
        _ => None,
    }
}

/// Converts arguments to an object, for forms that need one. `None` if they are an object.
fn as_object(json: Option<&str>) -> Option<String> {
    let Some(json) = json else { return Some("{}".to_owned()) };
    if RawObject::parse(json).is_some() {
        return None;
    }
    let Some(text) = text(json) else {
        return Some(format!(r#"{{"arguments":{json}}}"#));
    };
    if text.trim().is_empty() {
        return Some("{}".to_owned());
    }
    let inner = text.trim();
    if RawObject::parse(inner).is_some() {
        return Some(super::raw_json::compact(&replace_lone_surrogates(inner)).into_owned());
    }
    Some(format!(r#"{{"arguments":{json}}}"#))
}

/// Converts arguments to a text, for forms that need one. `None` if they are a text.
fn as_text(json: Option<&str>) -> Option<String> {
    match json {
        None => Some(quoted("{}")),
        Some(json) if text(json).is_some() => None,
        Some(json) => Some(quoted(json)),
    }
}

/// The value of a content field.
enum ContentField<'a> {
    Text(Cow<'a, str>),
    /// A non-empty list.
    Blocks(Vec<&'a str>),
    /// Absent, null or an empty list.
    Nothing,
    /// A value that is not valid content.
    Other(&'a str),
}

fn content<'o>(object: &'o RawObject<'_>, field: &str) -> ContentField<'o> {
    let Some(json) = object.get(field) else { return ContentField::Nothing };
    if let Some(text) = text(json) {
        return ContentField::Text(text);
    }
    match super::raw_json::list(json) {
        Some(blocks) if blocks.is_empty() => ContentField::Nothing,
        Some(blocks) => ContentField::Blocks(blocks),
        None => ContentField::Other(json),
    }
}

/// Makes a result's content valid. Returns whether it changed.
fn repair_result(object: &mut RawObject<'_>, field: &str) -> bool {
    let repaired = match content(object, field) {
        ContentField::Text(_) => return false,
        ContentField::Blocks(blocks) if blocks.iter().all(|block| is_block(block)) => return false,
        ContentField::Nothing => quoted(""),
        ContentField::Blocks(_) => quoted(object.get(field).unwrap_or_default()),
        ContentField::Other(json) => quoted(json),
    };
    object.set(field, repaired);
    true
}

/// Returns a block without a type, with the type that one of its fields shows. `types` has pairs of
/// a field and its type. `None` if nothing changes.
fn typed(json: &str, types: &[(&str, &str)]) -> Option<String> {
    let mut block = RawObject::parse(json).filter(|block| !block.has("type"))?;
    let (_, kind) = types.iter().find(|(field, _)| block.has(field))?;
    block.set("type", quoted(kind));
    Some(block.write())
}

/// Returns whether a block has no text, or only white space in it.
fn is_blank(block: &RawObject<'_>) -> bool {
    block.text("text").is_none_or(|text| text.trim().is_empty())
}

/// Returns a content block of this type with this text.
fn typed_text(kind: &str, said: &str) -> String {
    format!(r#"{{"type":"{kind}","text":{}}}"#, quoted(said))
}

/// Returns whether this is a content block: an object with a type and, if that is `text`, with a
/// text.
fn is_block(json: &str) -> bool {
    RawObject::parse(json).is_some_and(|block| is_typed(&block))
}

/// Returns whether this object is a content block: see [`is_block`].
fn is_typed(block: &RawObject<'_>) -> bool {
    match block.text("type") {
        Some(kind) if kind == "text" => block.text("text").is_some(),
        kind => kind.is_some_and(|kind| !kind.is_empty()),
    }
}
