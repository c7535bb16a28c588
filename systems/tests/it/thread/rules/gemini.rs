//! The rules of Gemini.

use super::{Verdict, name, text};
use serde_json::Value;

const DATA: [&str; 9] = [
    "text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode",
    "codeExecutionResult", "toolCall", "toolResponse",
];

/// The field of a part, in camel case or in snake case.
fn field<'v>(part: &'v Value, camel: &str) -> Option<&'v Value> {
    let snake: String = camel
        .chars()
        .flat_map(|character| {
            let head = character.is_ascii_uppercase().then_some('_');
            head.into_iter().chain(character.to_lowercase())
        })
        .collect();
    part.get(camel).or_else(|| part.get(&snake)).filter(|value| !value.is_null())
}

/// Checks the contents of a request.
pub(super) fn contents(contents: &[Value]) -> Verdict {
    let mut waiting: Vec<(Option<String>, String)> = Vec::new();
    let mut after_model = false;
    for (index, content) in contents.iter().enumerate() {
        let at = |what: String| format!("contents[{index}]: {what}");
        let role = match content.get("role") {
            None => "user",
            Some(role) => role.as_str().ok_or(at("role: expected a text".into()))?,
        };
        // The examples of `google-genai` give responses the role `tool`.
        if !["user", "model", "function", "tool", "system"].contains(&role) {
            return Err(at(format!("Please use a valid role: user, model. {role}")));
        }
        let parts = content["parts"].as_array().filter(|parts| !parts.is_empty());
        let parts = parts.ok_or(at("parts must not be empty".into()))?;
        let (mut calls, mut answers) = (Vec::new(), Vec::new());
        for part in parts {
            if !DATA.iter().any(|name| field(part, name).is_some()) {
                return Err(at(format!("required oneof field 'data' must be initialized: {part}")));
            }
            if let Some(call) = field(part, "functionCall") {
                calls.push(called(call).map_err(at)?);
            }
            if let Some(response) = field(part, "functionResponse") {
                text_id(response).map_err(at)?;
                if !response["response"].is_object() {
                    return Err(at("response: expected a Struct".into()));
                }
                answers.push((id(response), name(response, "name")?.to_owned()));
            }
            let signed = field(part, "thoughtSignature").is_some();
            if !signed && text(part, "text") == Some("") {
                return Err(at("must have a text parameter".into()));
            }
        }
        if !calls.is_empty() && (role != "model" || index == 0 || after_model) {
            return Err(at("function call turn must come immediately after a user turn".into()));
        }
        if answers.len() != waiting.len() {
            return Err(at(format!(
                "the number of function response parts must equal that of the calls: {waiting:?}"
            )));
        }
        // Responses that name the id of a call come first.
        let names =
            |id: &Option<String>| id.is_some() && waiting.iter().any(|(known, _)| known == id);
        answers.sort_by_key(|(id, _)| !names(id));
        for (id, name) in answers {
            let fits = |(known, called): &(Option<String>, String)| {
                *called == name && (known.is_none() || id.is_none() || *known == id)
            };
            let exact =
                |(known, called): &(Option<String>, String)| *called == name && *known == id;
            let place = waiting.iter().position(exact).or_else(|| waiting.iter().position(fits));
            let place = place.ok_or(at(format!("no call of {name}")))?;
            waiting.remove(place);
        }
        waiting = calls;
        after_model = role == "model";
    }
    if waiting.is_empty() { Ok(()) } else { Err(format!("no responses at the end: {waiting:?}")) }
}

/// Checks that an id is a text.
fn text_id(value: &Value) -> Verdict {
    match &value["id"] {
        Value::Null | Value::String(_) => Ok(()),
        other => Err(format!("id: expected a text: {other}")),
    }
}

fn called(call: &Value) -> Result<(Option<String>, String), String> {
    text_id(call)?;
    if call.get("args").is_some_and(|args| !args.is_object() && !args.is_null()) {
        return Err("args: expected a Struct".into());
    }
    Ok((id(call), name(call, "name")?.to_owned()))
}

fn id(value: &Value) -> Option<String> {
    text(value, "id").filter(|id| !id.is_empty()).map(str::to_owned)
}
