//! Items of OpenAI's Responses API.

use super::evidence::is_item;
use super::rescue::{BlockTypes, mend_blocks};
use super::{
    Answer, Call, Content, Looked, Sort, Speaker, as_text, content, id_in, is_block, mend_result,
    named, own_id,
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
            let id = result_id(&object, sort);
            let takes_text = matches!(sort, Sort::Function | Sort::Custom);
            if takes_text && mend_result(&mut object, "output") {
                looked.mended(FaultKind::MalformedResult, Some(&id));
                looked.text = Cow::Owned(object.write());
            }
            let answer = Answer::new(id, object.get("output").unwrap_or_default());
            looked.answers.push(Answer { sort, ..answer });
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
            let Some(call) = call(&mut object, sort, &mut looked) else {
                let id = id_in(&object, "call_id");
                looked.removed(FaultKind::MalformedCall, Some(&id));
                return looked.gone(FaultKind::MalformedCall);
            };
            looked.calls.push(call);
            if !looked.problems.is_empty() {
                looked.text = Cow::Owned(object.write());
            }
            looked
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

/// The id of the call of a result; a local shell's output names it by `id`.
pub(super) fn result_id(object: &Object<'_>, sort: Sort) -> String {
    let id = id_in(object, "call_id");
    if id.is_empty() && sort == Sort::LocalShell { id_in(object, "id") } else { id }
}

/// The sort of the result that an item of this type is.
pub(super) fn result_sort(object: &Object<'_>) -> Sort {
    let kind = object.text("type");
    kind.and_then(|kind| sort(kind.strip_suffix("_output")?)).unwrap_or_default()
}

/// The call that this item is; its arguments are put right.
fn call(object: &mut Object<'_>, sort: Sort, looked: &mut Looked<'_>) -> Option<Call> {
    let id = id_in(object, "call_id");
    let field = match sort {
        Sort::Function => "arguments",
        Sort::Custom => "input",
        _ => {
            let name = object.text("type").unwrap_or_default().into_owned();
            let action = object.get("action").unwrap_or_default().to_owned();
            return Some(Call { sort, ..Call::new(id, name, action) });
        }
    };
    let name = named(object, "name")?;
    if let Some(text) = as_text(object.get(field)) {
        object.set(field, text);
        looked.mended(FaultKind::MistypedArguments, Some(&id));
    }
    let arguments = object.text(field)?.into_owned();
    Some(Call { sort, ..Call::new(id, name, arguments) })
}

/// What a content block without a type is, in what the model is given.
const INPUTS: BlockTypes = BlockTypes {
    fields: &[("text", "input_text"), ("image_url", "input_image"), ("file_data", "input_file")],
    text: "input_text",
};

/// What a content block without a type is, in what the model says.
const OUTPUTS: BlockTypes =
    BlockTypes { fields: &[("text", "output_text"), ("refusal", "refusal")], text: "output_text" };

fn message<'a>(mut looked: Looked<'a>, mut object: Object<'_>) -> Looked<'a> {
    looked.speaker = match object.text("role").as_deref() {
        Some("user") => Speaker::User,
        Some("assistant") => Speaker::Assistant,
        Some("system" | "developer") => Speaker::Other,
        _ => return looked.gone(FaultKind::NotAMessage),
    };
    let types = if looked.speaker == Speaker::Assistant { &OUTPUTS } else { &INPUTS };
    let kept = match content(&object, "content") {
        Content::Text(_) => return looked,
        Content::Nothing => return looked.gone(FaultKind::EmptyMessage),
        Content::Other(json) => mend_blocks(&[json], types, |_| false, &mut looked.problems),
        Content::Blocks(blocks) => mend_blocks(&blocks, types, is_block, &mut looked.problems),
    };
    let Some(kept) = kept else { return looked };
    if kept.is_empty() {
        return looked.gone(FaultKind::EmptyMessage);
    }
    object.set("content", written_list(&kept));
    looked.text = Cow::Owned(object.write());
    looked
}
