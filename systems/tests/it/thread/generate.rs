//! Generates histories in every form: valid and invalid ones.

use proptest::prelude::*;
use serde_json::{Value, json};

/// The names of the forms; Gemini also with ids and in snake case.
pub(crate) const FORMS: [&str; 10] = [
    "openai_chat", "openai_responses", "anthropic", "bedrock", "gemini", "gemini_ids", "ai_sdk",
    "langchain", "langchain_flat", "langchain_lc",
];

/// The name under which the form is known to forge.
pub(crate) fn word(form: &str) -> &str {
    form.trim_end_matches("_ids")
}

/// A step of a history, independent of the form.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    System,
    User,
    Assistant,
    /// A message with these calls, and with a text if the flag is set.
    Calls(Vec<u8>, bool),
    Result(u8),
    /// Results in one message, with or without a text before or after them; one message for each
    /// result in forms that cannot combine results.
    Results(Vec<u8>, u8),
    Empty(u8),
    /// Thinking, followed by these calls or by none.
    Thinks(Vec<u8>),
    /// A broken message.
    Broken(u8),
}

fn ids() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..4_u8, 1..4)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::System),
        3 => Just(Step::User),
        3 => Just(Step::Assistant),
        6 => (ids(), any::<bool>()).prop_map(|(ids, says)| Step::Calls(ids, says)),
        6 => (0..4_u8).prop_map(Step::Result),
        3 => (ids(), 0..3_u8).prop_map(|(ids, text)| Step::Results(ids, text)),
        1 => (0..4_u8).prop_map(Step::Empty),
        2 => prop::collection::vec(0..4_u8, 0..3).prop_map(Step::Thinks),
        3 => (0..20_u8).prop_map(Step::Broken),
    ]
}

/// Any steps.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 0..14)
}

/// Steps of a history without faults, as an agent writes it. Turns differ in the number of their
/// calls, in whether the calls have a text, and in the order of the results.
pub(crate) fn turns() -> impl Strategy<Value = Vec<Step>> {
    let turn = (0..4_u8, any::<bool>(), any::<bool>()).prop_map(|(calls, says, turned)| {
        let ids: Vec<u8> = (0..calls).collect();
        let mut answered = ids.clone();
        if turned {
            answered.reverse();
        }
        let mut steps = vec![Step::User];
        if !ids.is_empty() {
            steps.push(Step::Calls(ids, says));
            steps.push(Step::Results(answered, 0));
        }
        steps.push(Step::Assistant);
        steps
    });
    prop::collection::vec(turn, 0..6).prop_map(|turns| turns.concat())
}

fn id(step: usize, id: u8, unique: bool) -> String {
    if unique { format!("call_{step}_{id}") } else { format!("call_{id}") }
}

/// The messages of these steps. `unique`: a call's id includes the number of its `Calls` step, and
/// a result answers the last of those steps.
pub(crate) fn messages(form: &str, steps: &[Step], unique: bool) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut turn = 0;
    for (place, step) in steps.iter().enumerate() {
        let words = format!("text {place}");
        match step {
            Step::System => messages.push(speaker(form, "system", &json!(words))),
            Step::User => messages.push(speaker(form, "user", &json!(words))),
            Step::Assistant => messages.push(speaker(form, "assistant", &json!(words))),
            Step::Calls(ids, says) => {
                turn = place;
                let ids: Vec<String> = ids.iter().map(|one| id(turn, *one, unique)).collect();
                messages.extend(calls(form, &ids, says.then_some(words.as_str()), false));
            }
            Step::Result(one) => {
                messages.extend(results(form, &[id(turn, *one, unique)], 0, &words));
            }
            Step::Results(ids, text) => {
                let ids: Vec<String> = ids.iter().map(|one| id(turn, *one, unique)).collect();
                messages.extend(results(form, &ids, *text, &words));
            }
            Step::Empty(which) => {
                let content =
                    [json!(""), json!([]), Value::Null, json!([{"type": "text", "text": ""}])];
                let role = if which % 2 == 0 { "assistant" } else { "user" };
                messages.push(speaker(form, role, &content[*which as usize % 4]));
            }
            Step::Thinks(ids) => {
                turn = place;
                let ids: Vec<String> = ids.iter().map(|one| id(turn, *one, unique)).collect();
                messages.extend(calls(form, &ids, None, true));
            }
            Step::Broken(which) => messages.push(broken(form, *which)),
        }
    }
    messages
}

fn wrapped(form: &str, kind: &str, class: &str, body: Value) -> Value {
    let mut body = body;
    match form {
        "langchain" => {
            body["type"] = json!(kind);
            json!({"type": kind, "data": body})
        }
        "langchain_flat" => {
            body["type"] = json!(kind);
            body
        }
        _ => {
            json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class], "kwargs": body})
        }
    }
}

fn speaker(form: &str, role: &str, content: &Value) -> Value {
    match (form, role) {
        ("openai_chat" | "anthropic", _) => json!({"role": role, "content": content}),
        ("openai_responses", _) => json!({"type": "message", "role": role, "content": content}),
        ("ai_sdk", _) => match content {
            // Instructions are one text.
            Value::Array(_) if role == "system" => json!({"role": role, "content": ""}),
            content => json!({"role": role, "content": content}),
        },
        ("bedrock", _) => {
            let content = match content {
                Value::String(words) => json!([{"text": words}]),
                Value::Array(blocks) => {
                    blocks.iter().map(|block| json!({"text": block["text"]})).collect()
                }
                other => other.clone(),
            };
            json!({"role": role, "content": content})
        }
        ("gemini" | "gemini_ids", _) => {
            let role = if role == "assistant" { "model" } else { role };
            let parts = match content {
                Value::String(words) => json!([{"text": words}]),
                Value::Array(blocks) => {
                    blocks.iter().map(|block| json!({"text": block["text"]})).collect()
                }
                other => other.clone(),
            };
            json!({"role": role, "parts": parts})
        }
        (_, "user") => {
            wrapped(form, "human", "HumanMessage", json!({"content": content, "id": "h"}))
        }
        (_, "system") => wrapped(form, "system", "SystemMessage", json!({"content": content})),
        _ => wrapped(form, "ai", "AIMessage", json!({"content": content, "tool_calls": []})),
    }
}

fn calls(form: &str, ids: &[String], says: Option<&str>, thinks: bool) -> Vec<Value> {
    let functions: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}))
        .collect();
    match form {
        "openai_chat" => {
            let mut message = json!({"role": "assistant", "content": says});
            message["tool_calls"] = json!(functions);
            vec![message]
        }
        "openai_responses" => {
            let mut items = Vec::new();
            if thinks {
                items.push(json!({"type": "reasoning", "summary": []}));
            }
            items.extend(says.map(|words| speaker(form, "assistant", &json!(words))));
            items.extend(ids.iter().map(
                |id| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"}),
            ));
            items
        }
        "anthropic" => {
            let mut blocks = Vec::new();
            if thinks {
                blocks.push(json!({"type": "thinking", "thinking": "hm", "signature": "s"}));
            }
            blocks.extend(says.map(|words| json!({"type": "text", "text": words})));
            blocks.extend(
                ids.iter()
                    .map(|id| json!({"type": "tool_use", "id": id, "name": "f", "input": {}})),
            );
            vec![json!({"role": "assistant", "content": blocks})]
        }
        "bedrock" | "gemini" | "gemini_ids" | "ai_sdk" => {
            let mut blocks: Vec<Value> = Vec::new();
            if thinks {
                blocks.push(match form {
                    "bedrock" => json!({"reasoningContent": {"reasoningText": {"text": "hm"}}}),
                    "ai_sdk" => json!({"type": "reasoning", "text": "hm"}),
                    _ => json!({"text": "hm", "thought": true}),
                });
            }
            blocks.extend(says.map(|words| match form {
                "ai_sdk" => json!({"type": "text", "text": words}),
                _ => json!({"text": words}),
            }));
            blocks.extend(ids.iter().map(|id| match form {
                "bedrock" => json!({"toolUse": {"toolUseId": id, "name": "f", "input": {}}}),
                "gemini" => {
                    json!({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"})
                }
                "gemini_ids" => json!({"function_call": {"id": id, "name": "f", "args": {}}}),
                _ => json!({"type": "tool-call", "toolCallId": id, "toolName": "f", "input": {}}),
            }));
            let (role, field) = if form.starts_with("gemini") {
                ("model", "parts")
            } else {
                ("assistant", "content")
            };
            vec![json!({"role": role, field: blocks})]
        }
        _ => {
            let calls: Vec<Value> = ids
                .iter()
                .map(|id| json!({"name": "f", "args": {}, "id": id, "type": "tool_call"}))
                .collect();
            let blocks: Vec<Value> = ids
                .iter()
                .map(|id| json!({"type": "tool_use", "id": id, "name": "f", "input": {}}))
                .collect();
            let body = match (thinks, says) {
                // In the form that ChatAnthropic writes.
                (true, _) => json!({"content": blocks, "tool_calls": calls}),
                (false, Some(words)) => json!({"content": words, "tool_calls": calls, "id": "m"}),
                // The form before the list of calls was filled.
                (false, None) => {
                    json!({"content": "", "additional_kwargs": {"tool_calls": functions}})
                }
            };
            vec![wrapped(form, "ai", "AIMessage", body)]
        }
    }
}

fn results(form: &str, ids: &[String], text: u8, words: &str) -> Vec<Value> {
    // The text of each result is unique.
    let done = |place: usize| format!("<result {place} of {words}>");
    let one = |(place, id): (usize, &String)| match form {
        "openai_chat" => json!({"role": "tool", "tool_call_id": id, "content": done(place)}),
        "openai_responses" => {
            json!({"type": "function_call_output", "call_id": id, "output": done(place)})
        }
        "anthropic" => json!({"type": "tool_result", "tool_use_id": id, "content": done(place)}),
        "bedrock" => json!({"toolResult": {"toolUseId": id, "content": [{"text": done(place)}]}}),
        "gemini" => json!({"functionResponse": {"name": "f", "response": {"output": done(place)}}}),
        "gemini_ids" => {
            json!({"function_response": {"id": id, "name": "f", "response": {"output": done(place)}}})
        }
        "ai_sdk" => {
            let output = json!({"type": "text", "value": done(place)});
            json!({"type": "tool-result", "toolCallId": id, "toolName": "f", "output": output})
        }
        _ => {
            let body = json!({"content": done(place), "tool_call_id": id});
            wrapped(form, "tool", "ToolMessage", body)
        }
    };
    let mut results: Vec<Value> = ids.iter().enumerate().map(one).collect();
    let (role, field, words) = match form {
        "anthropic" => ("user", "content", json!({"type": "text", "text": words})),
        "bedrock" => ("user", "content", json!({"text": words})),
        "gemini" | "gemini_ids" => ("user", "parts", json!({"text": words})),
        // In one message or in one message each.
        "ai_sdk" if text == 1 => {
            return results
                .into_iter()
                .map(|part| json!({"role": "tool", "content": [part]}))
                .collect();
        }
        "ai_sdk" => return vec![json!({"role": "tool", "content": results})],
        _ => return results,
    };
    match text {
        1 => results.insert(0, words),
        2 => results.push(words),
        _ => {}
    }
    vec![json!({"role": role, field: results})]
}

fn broken(form: &str, which: u8) -> Value {
    let any = [
        json!(null),
        json!(7),
        json!({}),
        json!({"hello": "world"}),
        json!([{"role": "user", "content": "nested"}]),
        json!({"role": "wizard", "content": "x"}),
    ];
    if let Some(value) = any.get(which as usize) {
        return value.clone();
    }
    let which = which - 6;
    match form {
        "openai_chat" => [
            json!({"role": "tool", "content": "of nothing"}),
            json!({"role": "tool", "tool_call_id": "call_0", "content": {"a": 1}}),
            json!({"role": "tool", "tool_call_id": "call_0"}),
            json!({"role": "assistant", "tool_calls": []}),
            json!({"role": "assistant", "content": "x", "tool_calls": null, "function_call": null}),
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_1"}, 5]}),
            json!({"role": "assistant", "content": 4, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
            json!({"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text"}, 3]}),
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": 7, "type": "function", "function": {"name": "my.tool", "arguments": "{}"}}]}),
            json!({"role": "tool", "tool_call_id": 7, "content": "x"}),
            json!({"role": "tool", "tool_call_id": "call_0", "content": [
                {"type": "image_url", "image_url": {"url": "<result of an image>"}}, {"type": "json", "json": 1}
            ]}),
            json!({"role": "assistant", "content": null, "function_call": {"name": "my.tool", "arguments": "{}"}}),
        ][which as usize % 12].clone(),
        "openai_responses" => [
            json!({"type": "function_call", "name": "f", "arguments": "{}"}),
            json!({"type": "function_call", "call_id": "call_1", "name": "f", "arguments": {}}),
            json!({"type": "function_call_output", "output": "x"}),
            json!({"type": "function_call_output", "call_id": "call_0", "output": {"a": 1}}),
            json!({"type": "reasoning", "summary": []}),
            json!({"type": "custom_tool_call", "call_id": "call_0", "name": "c", "input": "x"}),
            json!({"type": "computer_call", "call_id": "call_0", "action": {}}),
            json!({"type": "computer_call_output", "call_id": "call_0", "output": {"type": "computer_screenshot"}}),
            json!({"type": "custom_tool_call_output", "call_id": "call_0", "output": "of a custom tool"}),
            json!({"type": "local_shell_call", "call_id": "call_1", "action": {}}),
            json!({"type": "local_shell_call_output", "id": "call_1", "output": "of a shell"}),
            json!({"type": "function_call", "call_id": 7, "name": "my.tool", "arguments": "{}"}),
        ][which as usize % 12].clone(),
        "anthropic" => [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "call_0", "input": {}}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "call_0", "name": "f", "input": "no"}]}),
            json!({"role": "user", "content": [{"type": "tool_use", "id": "call_1", "name": "f", "input": {}}]}),
            json!({"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "x"}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_2", "content": null}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_2", "content": {"a": 1}}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "thinking", "thinking": "cut"}]}),
            json!({"role": "user", "content": [{"text": "no type"}, {"type": "text", "text": "  "}, "bare"]}),
            json!({"role": "assistant", "content": [{"type": "mcp_tool_use", "id": "m1", "name": "q", "server_name": "s", "input": {}}]}),
            json!({"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                {"type": "tool_use", "id": "call_3", "name": "f", "input": {}}
            ]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_3", "content": "x"}]}),
            json!({"role": "user", "content": [{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}]}),
        ][which as usize % 12].clone(),
        "bedrock" => [
            json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "call_0", "input": {}}}]}),
            json!({"role": "assistant", "content": [{"text": "x"}, {"toolUse": {"toolUseId": "call_0", "name": "f", "input": "no"}}]}),
            json!({"role": "user", "content": [{"toolUse": {"toolUseId": "call_1", "name": "f", "input": {}}}]}),
            json!({"role": "assistant", "content": [{"toolResult": {"toolUseId": "call_1", "content": [{"text": "x"}]}}]}),
            json!({"role": "user", "content": [{"toolResult": {"toolUseId": "call_2", "content": null}}]}),
            json!({"role": "user", "content": [{"toolResult": {"toolUseId": "call_2", "content": [{"json": [1]}, 4]}}]}),
            json!({"role": "assistant", "content": [{"text": "x"}, {"reasoningContent": {}}]}),
            json!({"role": "user", "content": [{"wizard": 1}, {"text": "  "}, "bare"]}),
            json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": 7, "name": "my.tool", "input": {}}}]}),
        ][which as usize % 9].clone(),
        "gemini" | "gemini_ids" => [
            json!({"role": "model", "parts": [{"functionCall": {"args": {}}}]}),
            json!({"role": "model", "parts": [{"text": "x"}, {"functionCall": {"name": "f", "args": "no"}}]}),
            json!({"role": "user", "parts": [{"functionCall": {"name": "f", "args": {}}}]}),
            json!({"role": "model", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}),
            json!({"role": "function", "parts": [{"functionResponse": {"name": "f", "response": "x"}}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"id": "call_2", "name": "g"}}]}),
            json!({"role": "model", "parts": [{"text": ""}, {"thought": true}]}),
            json!({"role": "user", "parts": ["bare", 7]}),
            json!({"role": "tool", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"name": "g", "response": {"a": 2}}}]}),
        ][which as usize % 10].clone(),
        "ai_sdk" => [
            json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "call_0", "input": {}}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "tool-call", "toolCallId": "call_0", "toolName": "f", "input": "{\"a\":1}"}]}),
            json!({"role": "assistant", "content": [
                {"type": "tool-call", "toolCallId": "call_1", "toolName": "f", "input": {}, "providerExecuted": true},
                {"type": "tool-result", "toolCallId": "call_1", "toolName": "f", "output": {"type": "json", "value": 1}}
            ]}),
            json!({"role": "assistant", "content": [{"type": "tool-result", "toolCallId": "call_2", "toolName": "f", "output": {"type": "json", "value": 1}}]}),
            json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "call_2", "output": null}]}),
            json!({"role": "assistant", "content": [
                {"type": "tool-call", "toolCallId": "call_3", "toolName": "f", "input": {}},
                {"type": "tool-approval-request", "approvalId": "a3", "toolCallId": "call_3"}
            ]}),
            json!({"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a3", "approved": true}]}),
            json!({"role": "user", "content": [{"type": "text"}, {"text": "no type"}, "bare"]}),
        ][which as usize % 8].clone(),
        _ => [
            wrapped(form, "remove", "RemoveMessage", json!({"id": "x", "content": ""})),
            wrapped(form, "ai", "AIMessage", json!({"content": "x", "tool_calls": [{"name": "f", "args": {}, "id": null}]})),
            wrapped(form, "ai", "AIMessage", json!({"content": "", "invalid_tool_calls": [{"name": "f", "args": "{", "id": "call_3", "error": "x"}]})),
            wrapped(form, "ai", "AIMessage", json!({"content": "", "invalid_tool_calls": [{"name": null, "args": null, "id": "call_3"}]})),
            wrapped(form, "ai", "AIMessage", json!({"content": [{"type": "tool_use", "id": "call_2", "name": "f", "input": {}}], "tool_calls": []})),
            wrapped(form, "tool", "ToolMessage", json!({"content": null, "tool_call_id": "call_0"})),
            wrapped(form, "tool", "ToolMessage", json!({"content": "x"})),
            wrapped(form, "ai", "AIMessage", json!({"tool_calls": "none"})),
        ][which as usize % 8].clone(),
    }
}
