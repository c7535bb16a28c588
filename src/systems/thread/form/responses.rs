//! Items of OpenAI's Responses API.

use super::evidence::is_item;
use super::{
    Answer, Call, Content, Looked, Sort, Speaker, content, is_block, mend_result, named, own_id,
};
use crate::systems::thread::fault::FaultKind;
use crate::systems::thread::json::{Object, written_list};
use std::borrow::Cow;

pub(super) fn look<'a>(text: &'a str, mut object: Object<'_>) -> Looked<'a> {
    let looked = Looked::new(text, Speaker::Other, own_id(&object));
    let kind = object.text("type").map(Cow::into_owned);
    match kind.as_deref() {
        None | Some("message") => message(looked, object),
        Some("reasoning") => Looked { speaker: Speaker::Reasoning, ..looked },
        Some(kind) if kind.ends_with("_output") => {
            let Some(sort) = sort(kind.trim_end_matches("_output")) else { return looked };
            let mut looked = Looked { speaker: Speaker::Tool, ..looked };
            let Some(id) = named(&object, "call_id").or_else(|| own_result_id(&object, sort))
            else {
                return looked.gone(FaultKind::MalformedResult);
            };
            let takes_text = matches!(sort, Sort::Function | Sort::Custom);
            if takes_text && mend_result(&mut object, "output") {
                looked.problem(FaultKind::MalformedResult, Some(id.clone()));
                looked.text = Cow::Owned(object.write());
            }
            looked.answers.push(Answer { id, sort });
            looked
        }
        Some(kind) => {
            let mut looked = Looked { speaker: Speaker::Assistant, ..looked };
            let Some(sort) = sort(kind) else {
                // The API refuses a type it does not know; and alone it would not even show its form.
                if !is_item(kind) {
                    return looked.gone(FaultKind::NotAMessage);
                }
                let from_model = kind.ends_with("_call") || kind == "mcp_approval_request";
                looked.speaker = if from_model { Speaker::Assistant } else { Speaker::Other };
                return looked;
            };
            match call(&object, sort) {
                Some(call) => {
                    looked.call(call);
                    looked
                }
                None => {
                    looked.problem(FaultKind::MalformedCall, named(&object, "call_id"));
                    looked.gone(FaultKind::MalformedCall)
                }
            }
        }
    }
}

/// The sort of the calls of this type that the caller of the API answers.
fn sort(kind: &str) -> Option<Sort> {
    Some(match kind {
        "function_call" => Sort::Function,
        "custom_tool_call" => Sort::Custom,
        "computer_call" => Sort::Computer,
        "local_shell_call" => Sort::LocalShell,
        "shell_call" => Sort::Shell,
        "apply_patch_call" => Sort::ApplyPatch,
        _ => return None,
    })
}

/// A local shell's output names its call by `id`.
fn own_result_id(object: &Object<'_>, sort: Sort) -> Option<String> {
    if sort == Sort::LocalShell { named(object, "id") } else { None }
}

fn call(object: &Object<'_>, sort: Sort) -> Option<Call> {
    let id = named(object, "call_id")?;
    let (name, arguments) = match sort {
        Sort::Function => (named(object, "name")?, object.text("arguments")?.into_owned()),
        Sort::Custom => (named(object, "name")?, object.text("input")?.into_owned()),
        _ => {
            let name = object.text("type").unwrap_or_default().into_owned();
            (name, object.get("action").unwrap_or_default().to_owned())
        }
    };
    Some(Call { id, name, arguments, sort })
}

fn message<'a>(mut looked: Looked<'a>, mut object: Object<'_>) -> Looked<'a> {
    looked.speaker = match object.text("role").as_deref() {
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        Some("system" | "developer") => Speaker::Other,
        _ => return looked.gone(FaultKind::NotAMessage),
    };
    let kept = match content(&object, "content") {
        Content::Text(_) => return looked,
        Content::Nothing | Content::Other(_) => return looked.gone(FaultKind::EmptyMessage),
        Content::Blocks(blocks) => {
            let kept: Vec<&str> = blocks.iter().copied().filter(|block| is_block(block)).collect();
            if kept.len() == blocks.len() {
                return looked;
            }
            if kept.is_empty() {
                return looked.gone(FaultKind::EmptyMessage);
            }
            written_list(&kept)
        }
    };
    object.set("content", kept);
    looked.problem(FaultKind::MalformedBlock, None);
    looked.text = Cow::Owned(object.write());
    looked
}
