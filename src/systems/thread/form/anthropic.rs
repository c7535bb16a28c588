//! Anthropic messages: calls and results are content blocks.

use super::{
    Answer, Call, Content, Looked, Sort, Speaker, content, is_block, mend_result, named, own_id,
};
use crate::systems::thread::fault::FaultKind;
use crate::systems::thread::json::{Object, written_list};
use std::borrow::Cow;

pub(super) fn look<'a>(text: &'a str, mut object: Object<'_>, last: bool) -> Looked<'a> {
    let mut looked = Looked::new(text, Speaker::Other, own_id(&object));
    looked.speaker = match object.text("role").as_deref() {
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        Some("system") => Speaker::Other,
        _ => return looked.gone(FaultKind::NotAMessage),
    };
    let kept = match content(&object, "content") {
        Content::Text(said) => {
            // Only the last message may be an answer that is yet to be written.
            let may_be_empty = last && looked.speaker == Speaker::Assistant;
            if said.trim().is_empty() && !may_be_empty {
                return looked.gone(FaultKind::EmptyMessage);
            }
            return looked;
        }
        Content::Nothing | Content::Other(_) => return looked.gone(FaultKind::EmptyMessage),
        Content::Blocks(blocks) => {
            let mut changed = false;
            let mut kept: Vec<String> = Vec::new();
            for block in blocks {
                match tidy_block(block, &mut looked) {
                    Some(tidied) => {
                        changed |= matches!(tidied, Cow::Owned(_));
                        kept.push(tidied.into_owned());
                    }
                    None => changed = true,
                }
            }
            if looked.speaker == Speaker::Assistant && trim_thinking(&mut kept) {
                looked.problem(FaultKind::TrailingThinking, None);
                changed = true;
            }
            if kept.is_empty() {
                return looked.gone(FaultKind::EmptyMessage);
            }
            if !changed {
                return looked;
            }
            written_list(&kept)
        }
    };
    object.set("content", kept);
    looked.text = Cow::Owned(object.write());
    looked
}

/// The block, made such as can be taken; `None` if it cannot.
fn tidy_block<'b>(json: &'b str, looked: &mut Looked<'_>) -> Option<Cow<'b, str>> {
    let Some(mut block) = Object::parse(json).filter(|_| is_block(json)) else {
        looked.problem(FaultKind::MalformedBlock, None);
        return None;
    };
    let kind = block.text("type").unwrap_or_default().into_owned();
    match kind.as_str() {
        "text" if block.text("text").is_none_or(|text| text.trim().is_empty()) => {
            looked.problem(FaultKind::EmptyMessage, None);
            return None;
        }
        "tool_use" => {
            let call = call(&block).filter(|_| looked.speaker == Speaker::Assistant);
            let Some(call) = call else {
                looked.problem(FaultKind::MalformedCall, named(&block, "id"));
                return None;
            };
            if !looked.call(call) {
                return None;
            }
        }
        "tool_result" => {
            let id = named(&block, "tool_use_id").filter(|_| looked.speaker == Speaker::User);
            let Some(id) = id else {
                looked.problem(FaultKind::MalformedResult, named(&block, "tool_use_id"));
                return None;
            };
            looked.answers.push(Answer { id: id.clone(), sort: Sort::Function });
            if block.has("content") && mend_result(&mut block, "content") {
                looked.problem(FaultKind::MalformedResult, Some(id));
                return Some(Cow::Owned(block.write()));
            }
        }
        _ => {}
    }
    Some(Cow::Borrowed(json))
}

fn call(block: &Object<'_>) -> Option<Call> {
    let (id, name) = (named(block, "id")?, named(block, "name")?);
    block.object("input")?;
    let arguments = block.get("input").unwrap_or_default().to_owned();
    Some(Call { id, name, arguments, sort: Sort::Function })
}

/// Takes away thinking at the end, where it may not stand. Returns whether there was any.
fn trim_thinking(blocks: &mut Vec<String>) -> bool {
    let before = blocks.len();
    while blocks.last().is_some_and(|block| is_thinking(block)) {
        blocks.pop();
    }
    blocks.len() < before
}

fn is_thinking(json: &str) -> bool {
    let kind = |block: Object<'_>| block.text("type").map(Cow::into_owned);
    let kind = Object::parse(json).and_then(kind);
    matches!(kind.as_deref(), Some("thinking" | "redacted_thinking"))
}

pub(super) fn without_calls(mut object: Object<'_>, ids: &[&str]) -> Option<String> {
    let mut kept: Vec<String> = object
        .list("content")?
        .into_iter()
        .filter(|block| {
            let block = Object::parse(block);
            let is_call =
                |block: &Object<'_>| block.text("type").is_some_and(|kind| kind == "tool_use");
            let id = block.filter(is_call).and_then(|block| named(&block, "id"));
            id.is_none_or(|id| !ids.contains(&id.as_str()))
        })
        .map(str::to_owned)
        .collect();
    trim_thinking(&mut kept);
    if kept.is_empty() {
        return None;
    }
    object.set("content", written_list(&kept));
    Some(object.write())
}

/// The blocks of a message that are results, in their order, and whether they come first; then the other blocks.
fn parted(object: &Object<'_>) -> (Vec<String>, Vec<String>, bool) {
    let (mut results, mut others, mut first) = (Vec::new(), Vec::new(), true);
    for json in object.list("content").unwrap_or_default() {
        let kind = Object::parse(json).and_then(|block| block.text("type").map(Cow::into_owned));
        if kind.as_deref() == Some("tool_result") {
            first &= others.is_empty();
            results.push(json.to_owned());
        } else {
            others.push(json.to_owned());
        }
    }
    (results, others, first)
}

/// The message with the results at these places (counted among its results), then these other ones, then whatever
/// else it says. `None` if it says that already.
pub(in crate::systems::thread) fn with_results(
    text: &str,
    kept: &[usize],
    more: &[String],
) -> Option<String> {
    let mut object = Object::parse(text)?;
    let (results, others, first) = parted(&object);
    if first && more.is_empty() && kept.len() == results.len() {
        return None;
    }
    let kept = kept.iter().filter_map(|place| results.get(*place));
    let blocks: Vec<&String> = kept.chain(more).chain(&others).collect();
    object.set(
        "content",
        written_list(&blocks.iter().map(|block| block.as_str()).collect::<Vec<_>>()),
    );
    Some(object.write())
}

/// The message without any results, and the results. No message if nothing else was in it.
pub(in crate::systems::thread) fn without_results(text: &str) -> (Option<String>, Vec<String>) {
    let Some(mut object) = Object::parse(text) else { return (None, Vec::new()) };
    let (results, others, _) = parted(&object);
    if others.is_empty() {
        return (None, results);
    }
    object.set("content", written_list(&others));
    (Some(object.write()), results)
}

/// A message of results alone.
pub(in crate::systems::thread) fn results_message(blocks: &[String]) -> String {
    format!(r#"{{"role":"user","content":{}}}"#, written_list(blocks))
}
