//! Writes the results that sanitising inserts. Writes a result that belongs to no call, or to a
//! call with another result, as a user message.

use super::{
    CallResult, FAILED, MessageForm, ToolCallKind, ToolCallPart, ToolResultPart, bedrock, gemini,
    typed_text,
};
use crate::thread::raw_json::{RawObject, list, quoted, text, written_list};
use std::borrow::Cow;

/// Returns the result of a call as a message, or as a block in forms in which results are blocks.
/// `None` if the result of a call of this kind cannot be a text.
pub(in crate::thread) fn result_message(
    form: MessageForm,
    call: &ToolCallPart,
    result: &CallResult,
) -> Option<String> {
    let (id, content) = (quoted(&call.id), quoted(&result.content));
    let name = quoted(&call.name);
    let langchain = || {
        let status = if result.is_error { "error" } else { "success" };
        format!(r#""content":{content},"name":{name},"tool_call_id":{id},"status":"{status}""#)
    };
    let blank = result.content.trim().is_empty();
    Some(match (form, call.kind) {
        (MessageForm::OpenaiResponses, ToolCallKind::Function) => {
            format!(r#"{{"type":"function_call_output","call_id":{id},"output":{content}}}"#)
        }
        (MessageForm::OpenaiResponses, ToolCallKind::Custom) => {
            format!(r#"{{"type":"custom_tool_call_output","call_id":{id},"output":{content}}}"#)
        }
        (MessageForm::OpenaiResponses, _) | (_, ToolCallKind::Approval) => return None,
        (MessageForm::Plain | MessageForm::OpenaiChat, _) => {
            format!(r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#)
        }
        (MessageForm::Anthropic, _) => {
            let error = if result.is_error { r#","is_error":true"# } else { "" };
            // A blank text block is not valid. A result without content is valid, unless it is an
            // error.
            let content = match (blank, result.is_error) {
                (true, false) => String::new(),
                (true, true) => format!(r#","content":{}"#, quoted(FAILED)),
                (false, _) => format!(r#","content":{content}"#),
            };
            format!(r#"{{"type":"tool_result","tool_use_id":{id}{content}{error}}}"#)
        }
        (MessageForm::Bedrock, _) => {
            let status = if result.is_error { "error" } else { "success" };
            let block = match (blank, result.is_error) {
                (true, false) => String::new(),
                (true, true) => bedrock::text_block(FAILED),
                (false, _) => bedrock::text_block(&result.content),
            };
            format!(
                r#"{{"toolResult":{{"toolUseId":{id},"content":[{block}],"status":"{status}"}}}}"#
            )
        }
        (MessageForm::Gemini, _) => {
            let id = if call.id.is_empty() { String::new() } else { format!(r#""id":{id},"#) };
            let field = if result.is_error { "error" } else { "output" };
            format!(
                r#"{{"functionResponse":{{{id}"name":{name},"response":{{"{field}":{content}}}}}}}"#
            )
        }
        (MessageForm::AiSdk, _) => {
            let kind = if result.is_error { "error-text" } else { "text" };
            format!(
                r#"{{"type":"tool-result","toolCallId":{id},"toolName":{name},"output":{{"type":"{kind}","value":{content}}}}}"#
            )
        }
        (MessageForm::Langchain, _) => {
            format!(r#"{{"type":"tool","data":{{"type":"tool",{}}}}}"#, langchain())
        }
        (MessageForm::LangchainFlat, _) => format!(r#"{{"type":"tool",{}}}"#, langchain()),
        (MessageForm::LangchainLc, _) => format!(
            r#"{{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{{"type":"tool",{}}}}}"#,
            langchain()
        ),
    })
}

/// Returns the introduction of a result that is kept as text. `doubled` says that its call has
/// another result.
fn introduction(answer: &ToolResultPart, doubled: bool) -> String {
    let of = match answer.display_name() {
        Some(id) => format!(" of the tool call {id}"),
        None => " of a tool call".to_owned(),
    };
    if doubled {
        format!("Another result{of}, which already has one:")
    } else {
        format!("The result{of}. The call is not in this history:")
    }
}

/// Returns an unmatched result as blocks of a user message. Its own blocks are kept if a user
/// message can contain all of them; otherwise the content becomes one text.
pub(in crate::thread) fn result_as_user_blocks(
    form: MessageForm,
    answer: &ToolResultPart,
    doubled: bool,
) -> Vec<String> {
    let introduction = introduction(answer, doubled);
    let written = |content: &str| match form {
        MessageForm::Bedrock => bedrock::text_block(content),
        MessageForm::Gemini => gemini::text_part(content),
        MessageForm::OpenaiResponses => typed_text("input_text", content),
        _ => typed_text("text", content),
    };
    let blocks = list(&answer.content).filter(|blocks| !blocks.is_empty());
    let Some(blocks) = blocks.filter(|blocks| blocks.iter().all(|json| is_user_block(form, json)))
    else {
        let content = text(&answer.content).unwrap_or(Cow::Borrowed(&answer.content));
        return vec![written(format!("{introduction}\n{content}").trim_end())];
    };
    let blocks = blocks.into_iter().map(str::to_owned);
    std::iter::once(written(&introduction)).chain(blocks).collect()
}

/// Returns whether a user message can contain this block of a result unchanged.
fn is_user_block(form: MessageForm, json: &str) -> bool {
    let Some(block) = RawObject::parse(json) else { return false };
    let kind = block.text("type").unwrap_or_default();
    match form {
        MessageForm::Anthropic => {
            matches!(&*kind, "text" | "image" | "document" | "search_result")
        }
        MessageForm::Bedrock => {
            ["text", "image", "document", "video"].iter().any(|name| block.get(name).is_some())
        }
        MessageForm::OpenaiResponses => {
            matches!(&*kind, "input_text" | "input_image" | "input_file")
        }
        MessageForm::Gemini | MessageForm::AiSdk => false,
        _ => matches!(&*kind, "text" | "image_url" | "input_audio" | "file"),
    }
}

/// Returns an unmatched result as a user message.
pub(in crate::thread) fn result_as_user_message(
    form: MessageForm,
    answer: &ToolResultPart,
    doubled: bool,
) -> String {
    let blocks = result_as_user_blocks(form, answer, doubled);
    let content = match blocks.as_slice() {
        [one] => {
            let text = RawObject::parse(one).and_then(|block| Some(quoted(&block.text("text")?)));
            text.unwrap_or_else(|| written_list(&blocks))
        }
        _ => written_list(&blocks),
    };
    match form {
        MessageForm::Langchain => {
            format!(r#"{{"type":"human","data":{{"type":"human","content":{content}}}}}"#)
        }
        MessageForm::LangchainFlat => format!(r#"{{"type":"human","content":{content}}}"#),
        MessageForm::LangchainLc => format!(
            r#"{{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{{"type":"human","content":{content}}}}}"#
        ),
        MessageForm::OpenaiResponses => {
            format!(r#"{{"type":"message","role":"user","content":{content}}}"#)
        }
        MessageForm::Bedrock | MessageForm::Gemini => super::results_message(form, &blocks),
        MessageForm::Plain
        | MessageForm::OpenaiChat
        | MessageForm::Anthropic
        | MessageForm::AiSdk => {
            format!(r#"{{"role":"user","content":{content}}}"#)
        }
    }
}

/// Returns a user message of chat completions with the blocks of a result that a message of role
/// `tool` cannot contain.
pub(in crate::thread) fn rest_of_result(answer: &ToolResultPart, blocks: &[String]) -> String {
    let of = answer.display_name().map(|id| format!(" {id}")).unwrap_or_default();
    let introduction = format!("The result of the tool call{of} has this content too:");
    introduced("text", &introduction, blocks)
}

/// Returns a user message with the blocks of a message of another role that cannot contain them.
pub(in crate::thread) fn rest_of_message(form: MessageForm, blocks: &[String]) -> String {
    let kind = if form == MessageForm::OpenaiResponses { "input_text" } else { "text" };
    introduced(kind, "The message above has this content too:", blocks)
}

/// Returns a user message with these blocks after an introduction: a text block of type `kind`.
fn introduced(kind: &str, introduction: &str, blocks: &[String]) -> String {
    let introduction = typed_text(kind, introduction);
    let blocks = [std::slice::from_ref(&introduction), blocks].concat();
    format!(r#"{{"role":"user","content":{}}}"#, written_list(&blocks))
}

/// Returns the user message to insert at the beginning of a history of Bedrock or Gemini.
pub(in crate::thread) fn beginning(form: MessageForm) -> String {
    let notice = "The beginning of this conversation is not in this history.";
    let blocks = match form {
        MessageForm::Bedrock => vec![bedrock::text_block(notice)],
        _ => vec![gemini::text_part(notice)],
    };
    super::results_message(form, &blocks)
}
