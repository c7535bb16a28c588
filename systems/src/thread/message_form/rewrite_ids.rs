//! Rewrites the call ids in the calls and results of a message.

use super::{
    CheckedMessage, MessageForm, ToolCallKind, blocks, gemini, id_in, langchain, openai_responses,
};
use crate::thread::fault::FaultKind;
use crate::thread::raw_json::{RawObject, is_json, quoted, text, written_list};
use std::borrow::Cow;
use std::collections::HashMap;

/// The id changes of the calls and results of a message.
#[derive(Debug, Default)]
pub(in crate::thread) struct CallIdChanges {
    /// For each call: its current id, and the new one if it changes.
    pub(in crate::thread) calls: Vec<(String, Option<String>)>,
    pub(in crate::thread) answers: Vec<ResultIdChange>,
}

/// The new call id and tool name of a result.
#[derive(Debug)]
pub(in crate::thread) struct ResultIdChange {
    /// Its position among the blocks of the message, in forms where results are blocks.
    pub(in crate::thread) at: usize,
    /// The new call id, if it changes.
    pub(in crate::thread) id: Option<String>,
    /// The tool name, if it has to be set.
    pub(in crate::thread) name: Option<String>,
}

/// The new ids of calls. A call is identified by its old id and how often that id occurred before
/// it in the same list.
struct CallIdRenames<'n> {
    new: HashMap<(&'n str, usize), &'n str>,
    seen: HashMap<String, usize>,
    /// The first id of a call or result that was replaced and was no text.
    first_bare: Option<String>,
}

impl<'n> CallIdRenames<'n> {
    fn new(calls: &'n [(String, Option<String>)]) -> Self {
        let (mut new, mut count) = (HashMap::new(), HashMap::<&str, usize>::new());
        for (old, named) in calls {
            let seen = count.entry(old).or_default();
            if let Some(named) = named {
                new.insert((old.as_str(), *seen), named.as_str());
            }
            *seen += 1;
        }
        Self { new, seen: HashMap::new(), first_bare: None }
    }

    /// Returns the new id of the next call with this id in the list.
    fn take(&mut self, old: &str) -> Option<&'n str> {
        let seen = self.seen.entry(old.to_owned()).or_default();
        let new = self.new.get(&(old, *seen)).copied();
        *seen += 1;
        new
    }

    /// Sets the id of a call or result in this field.
    fn set(&mut self, object: &mut RawObject<'_>, field: &str, id: &str) {
        if self.first_bare.is_none() {
            let bare = object.get(field).filter(|json| text(json).is_none());
            self.first_bare = bare.map(str::to_owned);
        }
        object.set(field, quoted(id));
    }

    /// Gives new ids to the entries of a list, if the object has it. `field` returns the name of
    /// the id field of an entry.
    fn list(
        &mut self,
        object: &mut RawObject<'_>,
        name: &str,
        field: impl Fn(&RawObject<'_>) -> Option<&'static str>,
    ) {
        let Some(entries) = object.list(name) else { return };
        self.seen.clear();
        let entries: Vec<String> = entries
            .iter()
            .map(|json| {
                let Some(mut entry) = RawObject::parse(json) else { return (*json).to_owned() };
                let Some(field) = field(&entry) else { return (*json).to_owned() };
                match self.take(&id_in(&entry, field)) {
                    Some(new) => {
                        self.set(&mut entry, field, new);
                        entry.write()
                    }
                    None => (*json).to_owned(),
                }
            })
            .collect();
        object.set(name, written_list(&entries));
    }
}

/// Returns the message with these ids; `None` if it cannot be parsed.
pub(in crate::thread) fn with_ids(
    text: &str,
    form: MessageForm,
    ids: &CallIdChanges,
) -> Option<String> {
    with_renames(text, form, ids, &mut CallIdRenames::new(&ids.calls))
}

fn with_renames(
    text: &str,
    form: MessageForm,
    ids: &CallIdChanges,
    renames: &mut CallIdRenames<'_>,
) -> Option<String> {
    let mut object = RawObject::parse(text)?;
    let answer = ids.answers.first().and_then(|answer| answer.id.as_deref());
    match form {
        MessageForm::Plain | MessageForm::OpenaiChat => {
            renames.list(&mut object, "tool_calls", |_| Some("id"));
            if let Some(id) = answer {
                renames.set(&mut object, "tool_call_id", id);
            }
        }
        MessageForm::OpenaiResponses => {
            if let Some(new) = ids.calls.first().and_then(|(_, new)| new.as_deref()) {
                renames.set(&mut object, "call_id", new);
            }
            if let Some(id) = answer {
                // A local shell output that uses the field `id` for its call keeps that field.
                let by_id = id_in(&object, "call_id").is_empty()
                    && openai_responses::result_kind(&object) == ToolCallKind::LocalShell;
                renames.set(&mut object, if by_id { "id" } else { "call_id" }, id);
            }
        }
        MessageForm::Anthropic
        | MessageForm::Bedrock
        | MessageForm::Gemini
        | MessageForm::AiSdk => {
            let field = blocks::field(form);
            let blocks = in_blocks(object.list(field)?, form, renames, ids);
            object.set(field, blocks);
        }
        MessageForm::Langchain | MessageForm::LangchainFlat | MessageForm::LangchainLc => {
            return in_langchain(object, renames, answer);
        }
    }
    Some(object.write())
}

/// Writes the ids that are numbers, or other values than texts, as texts.
pub(super) fn with_text_ids<'a>(
    mut checked: CheckedMessage<'a>,
    form: MessageForm,
) -> CheckedMessage<'a> {
    let calls = checked.calls.iter().map(|call| &call.id);
    let mut ids = calls.chain(checked.answers.iter().map(|answer| &answer.id));
    if checked.is_unusable || !ids.any(|id| is_json(id)) {
        return checked;
    }
    let calls = checked.calls.iter().map(|call| (call.id.clone(), Some(call.id.clone())));
    let answers = checked.answers.iter().map(|answer| {
        let id = Some(answer.id.clone()).filter(|id| !id.is_empty());
        ResultIdChange { at: answer.at, id, name: None }
    });
    let same = CallIdChanges {
        calls: calls.filter(|(id, _)| !id.is_empty()).collect(),
        answers: answers.collect(),
    };
    let mut renames = CallIdRenames::new(&same.calls);
    let text = with_renames(&checked.text, form, &same, &mut renames);
    if let (Some(text), Some(id)) = (text, renames.first_bare) {
        checked.text = Cow::Owned(text);
        checked.note_repaired(FaultKind::RefusedId, Some(&id));
    }
    checked
}

fn in_langchain(
    mut object: RawObject<'_>,
    renames: &mut CallIdRenames<'_>,
    answer: Option<&str>,
) -> Option<String> {
    let (mut body, nested) = langchain::own_fields(&object)?;
    for field in langchain::LISTS {
        renames.list(&mut body, field, |_| Some("id"));
    }
    if let Some(mut more) = body.object("additional_kwargs")
        && more.list("tool_calls").is_some()
    {
        renames.list(&mut more, "tool_calls", |_| Some("id"));
        body.set("additional_kwargs", more.write());
    }
    renames.list(&mut body, "content", langchain::call_field);
    if let Some(id) = answer {
        renames.set(&mut body, "tool_call_id", id);
    }
    let written = body.write();
    Some(langchain::wrapped(&mut object, nested, written))
}

/// Where a block with a call or result has its ids.
struct BlockIdFields {
    /// The field with the object that contains the other fields; `None` if the block contains them.
    inner: Option<&'static str>,
    /// The field with the call id.
    id: &'static str,
    /// The field with the tool name, if a result has one.
    name: Option<&'static str>,
    /// Whether the block is a call.
    is_call: bool,
}

fn place(block: &RawObject<'_>, form: MessageForm) -> Option<BlockIdFields> {
    let kind = block.text("type").unwrap_or_default();
    let own = |id, name, is_call| Some(BlockIdFields { inner: None, id, name, is_call });
    let within =
        |inner, id, name, is_call| Some(BlockIdFields { inner: Some(inner), id, name, is_call });
    match form {
        MessageForm::Anthropic if kind == "tool_use" => own("id", None, true),
        MessageForm::Anthropic if kind == "tool_result" => own("tool_use_id", None, false),
        MessageForm::Bedrock if block.has("toolUse") => within("toolUse", "toolUseId", None, true),
        MessageForm::Bedrock if block.has("toolResult") => {
            within("toolResult", "toolUseId", None, false)
        }
        MessageForm::Gemini => match (gemini::call_field(block), gemini::response_field(block)) {
            (Some(field), _) => within(field, "id", None, true),
            (None, Some(field)) => within(field, "id", Some("name"), false),
            (None, None) => None,
        },
        MessageForm::AiSdk => match &*kind {
            "tool-call" if block.get("providerExecuted") != Some("true") => {
                own("toolCallId", None, true)
            }
            "tool-approval-request" => own("approvalId", None, true),
            "tool-approval-response" => own("approvalId", None, false),
            "tool-result" => own("toolCallId", Some("toolName"), false),
            _ => None,
        },
        _ => None,
    }
}

fn in_blocks(
    list: Vec<&str>,
    form: MessageForm,
    renames: &mut CallIdRenames<'_>,
    ids: &CallIdChanges,
) -> String {
    let mut renamed: HashMap<String, String> = HashMap::new();
    let mut blocks: Vec<String> = Vec::with_capacity(list.len());
    for (at, json) in list.into_iter().enumerate() {
        let Some(mut block) = RawObject::parse(json) else {
            blocks.push(json.to_owned());
            continue;
        };
        let Some(place) = place(&block, form) else {
            blocks.push(json.to_owned());
            continue;
        };
        let inner = place.inner.and_then(|field| block.get(field)).map(str::to_owned);
        let mut holder = match &inner {
            Some(inner) => RawObject::parse(inner).unwrap_or_else(|| block.clone()),
            None => block.clone(),
        };
        let old = id_in(&holder, place.id);
        let (id, name) = if place.is_call {
            (renames.take(&old).map(str::to_owned), None)
        } else {
            let new = ids.answers.iter().find(|answer| answer.at == at);
            new.map(|answer| (answer.id.clone(), answer.name.clone())).unwrap_or_default()
        };
        if let Some(id) = &id {
            renames.set(&mut holder, place.id, id);
            if place.is_call {
                renamed.insert(old.clone(), id.clone());
            }
        }
        if let (Some(field), Some(name)) = (place.name, &name) {
            holder.set(field, quoted(name));
        }
        // The approval request contains the call id too.
        let asks = place.id == "approvalId" && place.is_call;
        let asked = asks.then(|| renamed.get(&id_in(&holder, "toolCallId"))).flatten().cloned();
        if let Some(call) = &asked {
            holder.set("toolCallId", quoted(call));
        }
        if id.is_none() && name.is_none() && asked.is_none() {
            blocks.push(json.to_owned());
            continue;
        }
        let written = holder.write();
        match place.inner {
            Some(field) => {
                block.set(field, written);
                blocks.push(block.write());
            }
            None => blocks.push(written),
        }
    }
    written_list(&blocks)
}
