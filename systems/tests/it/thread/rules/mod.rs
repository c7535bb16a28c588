//! What providers publish about the histories they accept, written independently of the code that
//! it checks.
//!
//! OpenAI: the schemas of chat completions and of Responses (`openai`), and the messages of their
//! errors. Anthropic: the schema (`anthropic`), the pages on messages and tool use, and the
//! messages of their errors. Bedrock: the service model of `bedrock-runtime` (`botocore`), and the
//! messages of its errors. Gemini: the types of `google-genai`, the page on function calling, and
//! the messages of its errors. Vercel: the schemas and `convertToLanguageModelPrompt` of `ai`.
//! LangChain: the conversion of messages in `langchain-openai`.

mod ai_sdk;
mod anthropic;
mod bedrock;
mod gemini;
mod langchain;
mod openai;

use serde_json::Value;

type Verdict = Result<(), String>;

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

fn name<'v>(value: &'v Value, field: &str) -> Result<&'v str, String> {
    text(value, field).filter(|text| !text.is_empty()).ok_or(format!("missing '{field}': {value}"))
}

/// An id of letters, digits, `_` and `-`, of at most this length.
fn plain_id<'v>(value: &'v Value, field: &str, longest: usize) -> Result<&'v str, String> {
    let id = name(value, field)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if id.len() > longest || !id.bytes().all(is_plain) {
        return Err(format!("{field} does not match the pattern: {id}"));
    }
    Ok(id)
}

/// An id of at most this length.
fn short_id<'v>(value: &'v Value, field: &str, longest: usize) -> Result<&'v str, String> {
    let id = name(value, field)?;
    if id.chars().count() > longest {
        return Err(format!("{field}: string too long: {id}"));
    }
    Ok(id)
}

/// A name of letters, digits, `_` and `-`, of at most this length.
fn plain_name(value: &Value, longest: usize) -> Verdict {
    plain_id(value, "name", longest).map(|_| ())
}

fn parts(content: &Value) -> Verdict {
    match content {
        Value::String(_) => Ok(()),
        Value::Array(parts) if !parts.is_empty() => parts.iter().try_for_each(|part| {
            let kind = name(part, "type")?;
            if kind == "text" && text(part, "text").is_none() {
                return Err(format!("a text part without text: {part}"));
            }
            Ok(())
        }),
        other => Err(format!("invalid content: {other}")),
    }
}

/// Checks messages by the rules of the form with this name.
pub(crate) fn of(form: &str, messages: &[Value]) -> Verdict {
    match form {
        "plain" | "openai_chat" => openai::chat(messages, 40, true),
        "openai_responses" => openai::responses(messages),
        "anthropic" => anthropic::messages(messages),
        "bedrock" => bedrock::messages(messages),
        "gemini" => gemini::contents(messages),
        "ai_sdk" => ai_sdk::messages(messages),
        _ => langchain::messages(messages),
    }
}
