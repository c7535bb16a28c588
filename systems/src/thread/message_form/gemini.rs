//! Gemini's contents: a part is an object with one field whose name is its type, in camel or snake
//! case.

use super::blocks::{NormalizedBlocks, put_blocks};
use super::image_block::data_of;
use super::{
    ARGUMENTS, CheckedMessage, MessageForm, MessageRole, RESULTS, ToolCallPart, ToolResultPart,
    adopt, as_object, id_in, nonempty_text, own_id,
};
use crate::thread::fault::FaultKind;
use crate::thread::raw_json::{RawObject, list, quoted, text};
use std::borrow::Cow;

/// The type fields of a part.
pub(super) const PARTS: [&str; 17] = [
    "text", "functionCall", "function_call", "functionResponse", "function_response", "inlineData",
    "inline_data", "fileData", "file_data", "executableCode", "executable_code",
    "codeExecutionResult", "code_execution_result", "toolCall", "tool_call", "toolResponse",
    "tool_response",
];

pub(super) fn check_message<'a>(text: &'a str, object: RawObject<'_>) -> CheckedMessage<'a> {
    let mut checked = CheckedMessage::new(text, MessageRole::Other, own_id(&object));
    let role = object.text("role").map(Cow::into_owned);
    checked.role = match role.as_deref() {
        // Examples of the SDK give results the role `tool`.
        None | Some("user" | "function" | "tool") => MessageRole::User,
        Some("model") => MessageRole::Assistant,
        Some("system") => MessageRole::Other,
        _ => return checked.into_unusable(FaultKind::NotAMessage),
    };
    let mut changed = false;
    let parts: Vec<String> = match object.get("parts") {
        None => return checked.into_unusable(FaultKind::EmptyMessage),
        Some(json) => match list(json) {
            Some(parts) => parts.into_iter().map(str::to_owned).collect(),
            None => {
                changed = true;
                checked.note_repaired(FaultKind::MalformedBlock, None);
                vec![json.to_owned()]
            }
        },
    };
    let mut tidied = NormalizedBlocks::new();
    for part in &parts {
        tidy_part(part, &mut checked, &mut tidied);
    }
    tidied.finish(checked, object, MessageForm::Gemini, changed)
}

pub(super) fn text_part(said: &str) -> String {
    format!(r#"{{"text":{}}}"#, quoted(said))
}

/// Returns which of two spellings of a field a part has, if its value is an object.
pub(super) fn spelling(
    part: &RawObject<'_>,
    camel: &'static str,
    snake: &'static str,
) -> Option<&'static str> {
    [camel, snake].into_iter().find(|name| part.object(name).is_some())
}

pub(super) fn call_field(part: &RawObject<'_>) -> Option<&'static str> {
    spelling(part, "functionCall", "function_call")
}

pub(super) fn response_field(part: &RawObject<'_>) -> Option<&'static str> {
    spelling(part, "functionResponse", "function_response")
}

/// Returns a part whose data are an address that contains them, with the data alone.
fn without_address(part: &RawObject<'_>) -> Option<String> {
    let field = spelling(part, "inlineData", "inline_data")?;
    let mut inner = part.object(field)?;
    let data = {
        let address = inner.text("data")?;
        quoted(data_of(&address)?.1)
    };
    inner.set("data", data);
    let (mut part, inner) = (part.clone(), inner.write());
    part.set(field, inner);
    Some(part.write())
}

/// Splits a part with values in several type fields, because the API accepts only one: "oneof field
/// 'data' is already set". The first of the two parts has the text, or the first value, and whether
/// it is a thought. A value in both spellings of its field is one value, so only one part is left.
/// `None` for other parts.
fn members(part: &RawObject<'_>) -> Option<Vec<String>> {
    let mut given = PARTS.iter().filter(|name| part.get(name).is_some());
    let (first, second) = (given.next()?, given.next()?);
    let (mut one, mut rest) = (part.clone(), part.clone());
    if part.get(first) == part.get(second) {
        one.remove(second);
        return Some(vec![one.write()]);
    }
    let own = if *first == "text" { ["text", "thought"] } else { [*first, *first] };
    one.keep(&own);
    for name in own {
        rest.remove(name);
    }
    Some(vec![one.write(), rest.write()])
}

/// Adds a part to `tidied` as far as it is valid, and its call or result to `checked`.
fn tidy_part(json: &str, checked: &mut CheckedMessage<'_>, tidied: &mut NormalizedBlocks) {
    let Some(mut part) = RawObject::parse(json) else {
        return tidied.keep_text(json, text_part);
    };
    if let Some(part) = without_address(&part) {
        tidied.changed = true;
        checked.note_repaired(FaultKind::MalformedBlock, None);
        return tidy_part(&part, checked, tidied);
    }
    if part.has("id") {
        // An id of the client: the API knows ids only in calls and responses.
        part.remove("id");
        tidied.changed = true;
        checked.note_repaired(FaultKind::MalformedBlock, None);
        return tidy_part(&part.write(), checked, tidied);
    }
    if let Some(parts) = members(&part) {
        tidied.changed = true;
        checked.note_repaired(FaultKind::MalformedBlock, None);
        return parts.iter().for_each(|part| tidy_part(part, checked, tidied));
    }
    if let Some(field) = call_field(&part) {
        let Some(mut call) = part.object(field) else { return };
        if adopt(&mut call, &ARGUMENTS, "args") {
            part.set(field, call.write());
            tidied.changed = true;
            checked.note_repaired(FaultKind::MalformedCall, None);
            return tidy_part(&part.write(), checked, tidied);
        }
        let id = id_in(&call, "id");
        let name = nonempty_text(&call, "name").filter(|_| checked.role == MessageRole::Assistant);
        let Some(name) = name else {
            return tidied.leave_out(FaultKind::MalformedCall, Some(&id));
        };
        let mistyped = call.get("args").and_then(|json| as_object(Some(json)));
        let arguments =
            mistyped.clone().unwrap_or_else(|| call.get("args").unwrap_or("{}").to_owned());
        match mistyped {
            Some(args) => {
                call.set("args", args);
                let (call, shown_name) = (call.write(), if id.is_empty() { &name } else { &id });
                part.set(field, call);
                tidied.put(part.write(), FaultKind::MistypedArguments, Some(shown_name));
            }
            None => tidied.keep(json),
        }
        checked.calls.push(ToolCallPart::new(id, name, arguments));
    } else if let Some(field) = response_field(&part) {
        let Some(mut response) = part.object(field) else { return };
        if adopt(&mut response, &RESULTS, "response") {
            part.set(field, response.write());
            tidied.changed = true;
            checked.note_repaired(FaultKind::MalformedResult, None);
            return tidy_part(&part.write(), checked, tidied);
        }
        let id = id_in(&response, "id");
        let name = nonempty_text(&response, "name");
        let given = response.get("response").unwrap_or_default().to_owned();
        let answer = ToolResultPart::new(id, &given);
        let calls_before = checked.calls.len();
        let answer = ToolResultPart { name, at: tidied.kept.len(), calls_before, ..answer };
        if RawObject::parse(&given).is_none() {
            let output =
                if given.is_empty() { "{}".to_owned() } else { format!(r#"{{"output":{given}}}"#) };
            response.set("response", output);
            part.set(field, response.write());
            let shown_name = answer.display_name();
            tidied.put(part.write(), FaultKind::MalformedResult, shown_name.as_deref());
        } else {
            tidied.keep(json);
        }
        checked.answers.push(answer);
    } else if let Some(bare) = part.get("text").filter(|json| text(json).is_none()) {
        tidied.put(text_part(bare), FaultKind::MalformedBlock, None);
    } else if is_empty_text(&part) {
        tidied.leave_out(FaultKind::EmptyMessage, None);
    } else if PARTS.iter().any(|name| part.get(name).is_some()) {
        tidied.keep(json);
    } else {
        tidied.keep_text(json, text_part);
    }
}

/// Returns whether a part is an empty text without a thought signature.
fn is_empty_text(part: &RawObject<'_>) -> bool {
    let others = PARTS.iter().any(|name| *name != "text" && part.get(name).is_some());
    let signed = part.has("thoughtSignature") || part.has("thought_signature");
    part.has("text") && !others && !signed && part.text("text").is_none_or(|text| text.is_empty())
}

pub(super) fn without_calls(object: RawObject<'_>, cut: &[bool]) -> Option<String> {
    let mut cut = cut.iter();
    let mut keep = |json: &&str| {
        let is_call = RawObject::parse(json).is_some_and(|part| call_field(&part).is_some());
        !is_call || !cut.next().copied().unwrap_or(false)
    };
    let parts = object.list("parts")?.into_iter();
    let kept = parts.filter(|json| keep(json)).map(str::to_owned).collect();
    put_blocks(object, MessageForm::Gemini, kept)
}
