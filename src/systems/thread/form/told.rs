//! Results that are put in, and results that no call takes, told to the model as a text.

use super::{Answer, Call, CallResult, Form, Sort, bedrock, gemini};
use crate::systems::thread::json::{Object, list, quoted, text, written_list};

/// The result of a call as a message or a block of its own. `None` if a text cannot be the result of such a call.
pub(in crate::systems::thread) fn result_message(
    form: Form,
    call: &Call,
    result: &CallResult,
) -> Option<String> {
    let (id, content) = (quoted(&call.id), quoted(&result.content));
    let name = quoted(&call.name);
    let langchain = || {
        let status = if result.is_error { "error" } else { "success" };
        format!(r#""content":{content},"name":{name},"tool_call_id":{id},"status":"{status}""#)
    };
    let blank = result.content.trim().is_empty();
    Some(match (form, call.sort) {
        (Form::OpenaiResponses, Sort::Function) => {
            format!(r#"{{"type":"function_call_output","call_id":{id},"output":{content}}}"#)
        }
        (Form::OpenaiResponses, Sort::Custom) => {
            format!(r#"{{"type":"custom_tool_call_output","call_id":{id},"output":{content}}}"#)
        }
        (Form::OpenaiResponses, _) | (_, Sort::Approval) => return None,
        (Form::Plain | Form::OpenaiChat, _) => {
            format!(r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#)
        }
        (Form::Anthropic, _) => {
            let error = if result.is_error { r#","is_error":true"# } else { "" };
            // A text block must not be blank; a result without content may be, unless it is an error.
            let content = match (blank, result.is_error) {
                (true, false) => String::new(),
                (true, true) => r#","content":"The tool call failed.""#.to_owned(),
                (false, _) => format!(r#","content":{content}"#),
            };
            format!(r#"{{"type":"tool_result","tool_use_id":{id}{content}{error}}}"#)
        }
        (Form::Bedrock, _) => {
            let status = if result.is_error { "error" } else { "success" };
            let said = match (blank, result.is_error) {
                (true, false) => String::new(),
                (true, true) => bedrock::text_block("The tool call failed."),
                (false, _) => bedrock::text_block(&result.content),
            };
            format!(
                r#"{{"toolResult":{{"toolUseId":{id},"content":[{said}],"status":"{status}"}}}}"#
            )
        }
        (Form::Gemini, _) => {
            let id = if call.id.is_empty() { String::new() } else { format!(r#""id":{id},"#) };
            let field = if result.is_error { "error" } else { "output" };
            format!(
                r#"{{"functionResponse":{{{id}"name":{name},"response":{{"{field}":{content}}}}}}}"#
            )
        }
        (Form::AiSdk, _) => {
            let kind = if result.is_error { "error-text" } else { "text" };
            format!(
                r#"{{"type":"tool-result","toolCallId":{id},"toolName":{name},"output":{{"type":"{kind}","value":{content}}}}}"#
            )
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

/// What stands before a result that is kept as a text.
fn introduction(answer: &Answer, doubled: bool) -> String {
    let of = match answer.told() {
        Some(id) => format!(" of the tool call {id}"),
        None => " of a tool call".to_owned(),
    };
    if doubled {
        format!("Another result{of}, beside the one that it has:")
    } else {
        format!("The result{of}, which is not in this history:")
    }
}

/// The content of a result as one text.
fn as_one_text(content: &str) -> String {
    match text(content) {
        Some(said) => said.into_owned(),
        None => content.to_owned(),
    }
}

/// A result that no call takes, as blocks of a message of the user.
pub(in crate::systems::thread) fn told_blocks(
    form: Form,
    answer: &Answer,
    doubled: bool,
) -> Vec<String> {
    let introduction = introduction(answer, doubled);
    let written = |said: &str| match form {
        Form::Bedrock => bedrock::text_block(said),
        Form::Gemini => gemini::text_part(said),
        Form::OpenaiResponses => format!(r#"{{"type":"input_text","text":{}}}"#, quoted(said)),
        _ => format!(r#"{{"type":"text","text":{}}}"#, quoted(said)),
    };
    let blocks = list(&answer.content).filter(|blocks| !blocks.is_empty());
    let Some(blocks) = blocks.filter(|blocks| blocks.iter().all(|json| is_told(form, json))) else {
        let said = as_one_text(&answer.content);
        return vec![written(format!("{introduction}\n{said}").trim_end())];
    };
    let blocks = blocks.into_iter().map(str::to_owned);
    std::iter::once(written(&introduction)).chain(blocks).collect()
}

/// Whether a message of the user may hold this block of a result as it is.
fn is_told(form: Form, json: &str) -> bool {
    let Some(block) = Object::parse(json) else { return false };
    let kind = block.text("type").unwrap_or_default();
    match form {
        Form::Anthropic => matches!(&*kind, "text" | "image" | "document" | "search_result"),
        Form::Bedrock => {
            ["text", "image", "document", "video"].iter().any(|name| block.get(name).is_some())
        }
        Form::OpenaiResponses => matches!(&*kind, "input_text" | "input_image" | "input_file"),
        Form::Gemini | Form::AiSdk => false,
        _ => matches!(&*kind, "text" | "image_url" | "input_audio" | "file"),
    }
}

/// A result that no call takes, as a message of the user.
pub(in crate::systems::thread) fn told_message(
    form: Form,
    answer: &Answer,
    doubled: bool,
) -> String {
    let blocks = told_blocks(form, answer, doubled);
    let content = match blocks.as_slice() {
        [one] => {
            let said = Object::parse(one).and_then(|block| Some(quoted(&block.text("text")?)));
            said.unwrap_or_else(|| written_list(&blocks))
        }
        _ => written_list(&blocks),
    };
    match form {
        Form::Langchain => {
            format!(r#"{{"type":"human","data":{{"type":"human","content":{content}}}}}"#)
        }
        Form::LangchainFlat => format!(r#"{{"type":"human","content":{content}}}"#),
        Form::LangchainLc => format!(
            r#"{{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{{"type":"human","content":{content}}}}}"#
        ),
        Form::OpenaiResponses => {
            format!(r#"{{"type":"message","role":"user","content":{content}}}"#)
        }
        Form::Bedrock => format!(r#"{{"role":"user","content":{}}}"#, written_list(&blocks)),
        Form::Gemini => format!(r#"{{"role":"user","parts":{}}}"#, written_list(&blocks)),
        Form::Plain | Form::OpenaiChat | Form::Anthropic | Form::AiSdk => {
            format!(r#"{{"role":"user","content":{content}}}"#)
        }
    }
}

/// What is said in place of a beginning that is not there.
pub(in crate::systems::thread) fn beginning(form: Form) -> String {
    let said = "The beginning of this conversation is not in this history.";
    let blocks = match form {
        Form::Bedrock => vec![bedrock::text_block(said)],
        _ => vec![gemini::text_part(said)],
    };
    super::results_message(form, &blocks)
}
