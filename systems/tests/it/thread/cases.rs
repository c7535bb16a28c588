//! Histories from real use, each with the expected result.

use super::rules;
use forge_systems::thread::{SanitizeError, SanitizeOptions, SanitizedHistory, sanitize_history};
use serde_json::{Value, json};

/// Sanitises a history, and checks the result against the rules of its form.
pub(super) fn sanitized(form: &str, history: &[Value]) -> (Vec<Value>, Vec<String>) {
    let texts: Vec<String> = history.iter().map(Value::to_string).collect();
    let done = sanitize_history(&texts, &SanitizeOptions::default()).unwrap();
    assert_eq!(done.form.word(), form);
    let out = values(&done);
    assert_eq!(rules::of(form, &out), Ok(()), "{out:#?}");
    (out, done.faults.iter().map(ToString::to_string).collect())
}

fn values(done: &SanitizedHistory) -> Vec<Value> {
    done.messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

fn seems(history: &[Value]) -> String {
    let texts: Vec<String> = history.iter().map(Value::to_string).collect();
    match sanitize_history(&texts, &SanitizeOptions::default()) {
        Err(SanitizeError::UnknownForm { index, seems }) => format!("{index}: {seems}"),
        other => panic!("it is not refused: {other:?}"),
    }
}

pub(super) fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

pub(super) fn chat_call(id: &str, arguments: impl Into<Value>) -> Value {
    let arguments = arguments.into();
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}})
}

pub(super) fn tool(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

#[test]
fn an_unknown_form_is_refused_with_a_description() {
    let ui = json!({"id": "1", "role": "user", "content": "", "parts": [{"type": "text", "text": "hi"}]});
    let line = json!({"type": "user", "uuid": "u", "parentUuid": null, "sessionId": "s",
        "message": {"role": "user", "content": "hi"}});
    let rollout =
        json!({"timestamp": "t", "type": "response_item", "payload": {"type": "message"}});
    for (history, expected) in [
        (vec![ui], "0: a UIMessage of the Vercel AI SDK"),
        (vec![user("hi"), line], "1: a line of a Claude Code transcript"),
        (vec![rollout], "0: a line of a Codex rollout"),
        (vec![json!({"values": {"messages": [user("hi")]}})], "0: a state of LangGraph"),
        (vec![json!({"choices": []})], "0: an answer of OpenAI's API"),
        (vec![json!({"from": "human", "value": "hi"})], "0: a conversation of ShareGPT"),
        (
            vec![json!({"kind": "request", "parts": [{"part_kind": "text"}]})],
            "0: a message of Pydantic AI",
        ),
        (
            vec![
                json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "args": {}}]}),
            ],
            "0: a CoreMessage of version 4",
        ),
        (
            vec![
                user("hi"),
                json!({"role": "assistant", "content": [{"type": "toolRequest", "id": "c", "toolCall": {}}]}),
            ],
            "1: a message with a call or a result in another form",
        ),
        (
            vec![json!({"role": "tool", "content": [{"tool_call_result": {"result": "r"}}]})],
            "0: a message with a call or a result in another form",
        ),
        (
            vec![
                json!({"role": "tool", "content": "r", "additional_kwargs": {"tool_call_id": "c"}}),
            ],
            "0: a message of LlamaIndex",
        ),
        (
            vec![json!({"role": "tool", "tool_call_id": "c", "content": [
                {"type": "document", "document": {"data": "r"}},
            ]})],
            "0: a message of Cohere",
        ),
        (
            vec![json!({"role": "tool", "content": "r", "tool_responses": []})],
            "0: a message of AutoGen",
        ),
        (
            vec![
                json!({"role": "user", "content": "r", "options": {"toolResult": {"id": "c", "result": "r"}}}),
            ],
            "0: a message of LlamaIndex",
        ),
        (
            vec![
                json!({"role": "assistant", "content": [{"type": "tool-f", "toolCallId": "c", "state": "output-available", "output": "r"}]}),
            ],
            "0: a UIMessage of the Vercel AI SDK",
        ),
        (
            vec![
                json!({"role": "user", "content": [{"image": "https://example.org/a.png"}, {"text": "hi"}]}),
            ],
            "0: a message of DashScope",
        ),
        (
            vec![json!({"role": "user", "parts": [{"kind": "text", "text": "hi"}]})],
            "0: a message of A2A",
        ),
        (
            vec![json!({"role": "user", "content": {"format": 2, "parts": [{"type": "text"}]}})],
            "0: a message of Mastra",
        ),
        (
            vec![json!({"role": "user", "content": [{"type": "tool_result", "toolUseID": "t"}]})],
            "0: a message of Amp",
        ),
        (
            vec![json!({"role": "user", "text": "hi"})],
            "0: an object with the fields 'role', 'text'",
        ),
        (vec![json!({})], "0: an empty object"),
        (vec![json!("hi"), json!("there")], "0: a text"),
        (vec![json!(7)], "0: a bare value"),
        (
            vec![user("hi"), json!({"role": "assistant", "text": "hello"})],
            "1: a message without `content`, an object with the fields 'role', 'text'",
        ),
        (
            vec![
                json!({"type": "human", "content": "hi"}),
                json!({"lc": 1, "type": "not_implemented", "id": ["x", "ToolMessage"], "repr": "ToolMessage(content='r')"}),
            ],
            "1: content without a known role or type",
        ),
        (
            vec![user("hi"), json!({"content": "hi", "toolCalls": []})],
            "1: content without a known role or type",
        ),
        (
            vec![user("hi"), json!({"content": "hi", "toolCalls": ["search"]})],
            "1: content without a known role or type",
        ),
        // A text among messages may be one of them.
        (vec![user("hi"), user("x"), json!("hello")], "2: content without a known role"),
        // Most of it has no known form.
        (vec![user("hi"), json!({"a": 1}), json!({"b": 2})], "1: an object with the fields 'a'"),
    ] {
        let seen = seems(&history);
        assert!(seen.starts_with(expected), "{seen}");
    }
}

/// Regression: it was taken for a UIMessage.
#[test]
fn a_part_of_a_model_message_may_have_a_state() {
    let history = [
        user("hi"),
        json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {}, "state": "done"}]}),
        json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a", "toolName": "f", "output": {"type": "text", "value": "r"}, "state": "done"}]}),
    ];
    assert_eq!(sanitized("ai_sdk", &history), (history.to_vec(), Vec::new()));
}

#[test]
fn arguments_and_a_missing_type_are_corrected() {
    let call = |call: Value| json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let untyped = json!({"id": "c2", "function": {"name": "f", "arguments": "{}"}});
    let flat = json!({"id": "c3", "name": "f", "args": {"b": 2}});
    let history = [
        user("hi"),
        call(chat_call("c1", json!({"a": 1}))),
        tool("c1", "r1"),
        call(untyped),
        tool("c2", "r2"),
        call(flat),
        tool("c3", "r3"),
    ];
    let (out, faults) = sanitized("openai_chat", &history);
    assert_eq!(out[1]["tool_calls"], json!([chat_call("c1", json!("{\"a\":1}"))]));
    assert_eq!(out[3]["tool_calls"], json!([chat_call("c2", json!("{}"))]));
    assert_eq!(out[5]["tool_calls"], json!([chat_call("c3", json!("{\"b\":2}"))]));
    assert_eq!((&out[2], &out[4], &out[6]), (&history[2], &history[4], &history[6]));
    let mistyped = "message 1: arguments of another type than the provider takes c1: corrected";
    assert_eq!(faults[0], mistyped);
    let used = |input: Value| json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": input}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]});
    for (given, right) in [
        (json!("{\"a\": 1}"), json!({"a": 1})),
        (json!(""), json!({})),
        (Value::Null, json!({})),
        (json!("no object"), json!({"arguments": "no object"})),
        (json!([1]), json!({"arguments": [1]})),
    ] {
        let (out, _) = sanitized("anthropic", &[user("hi"), used(given), result.clone()]);
        assert_eq!(out[1..], [used(right), result.clone()]);
    }
}

#[test]
fn calls_without_ids_get_ids_and_results_are_matched_by_order() {
    let call = json!({"function": {"name": "f", "arguments": {}}});
    let result = |content: &str| json!({"role": "tool", "tool_name": "f", "content": content});
    let history = [
        user("hi"),
        json!({"role": "assistant", "content": "", "tool_calls": [call.clone(), call]}),
        result("ra"),
        result("rb"),
    ];
    let (out, _) = sanitized("openai_chat", &history);
    let id = |at: usize| out[1]["tool_calls"][at]["id"].clone();
    assert!(id(0).is_string() && id(0) != id(1));
    assert_eq!((&out[2]["tool_call_id"], &out[2]["content"]), (&id(0), &json!("ra")));
    assert_eq!((&out[3]["tool_call_id"], &out[3]["content"]), (&id(1), &json!("rb")));
}

#[test]
fn the_second_parallel_call_with_one_id_is_renamed_with_its_result() {
    let used = |place: &str| json!({"type": "tool_use", "id": "grep_3", "name": "grep", "input": {"p": place}});
    let result =
        |content: &str| json!({"type": "tool_result", "tool_use_id": "grep_3", "content": content});
    let history = [
        user("hi"),
        json!({"role": "assistant", "content": [used("a"), used("b")]}),
        json!({"role": "user", "content": [result("ra"), result("rb")]}),
    ];
    let (out, faults) = sanitized("anthropic", &history);
    assert_eq!(out[1]["content"][1]["id"], "grep_3_2");
    assert_eq!(out[1]["content"][1]["input"], json!({"p": "b"}));
    assert_eq!(out[2]["content"][0]["content"], "ra");
    let second = &out[2]["content"][1];
    assert_eq!((&second["tool_use_id"], &second["content"]), (&json!("grep_3_2"), &json!("rb")));
    assert_eq!(faults[0], "message 1: a second call of the same id grep_3: given another id");
    // LangChain lists a call in several places.
    let block =
        |place: &str| json!({"type": "tool_use", "id": "x", "name": "f", "input": {"p": place}});
    let entry = |place: &str| json!({"name": "f", "args": {"p": place}, "id": "x"});
    let result = |content: &str| json!({"type": "tool", "content": content, "tool_call_id": "x"});
    let history = [
        json!({"type": "ai", "content": [block("a"), block("b")], "tool_calls": [entry("a"), entry("b")]}),
        result("ra"),
        result("rb"),
    ];
    let (out, _) = sanitized("langchain_flat", &history);
    assert_eq!(
        (&out[0]["tool_calls"][1]["id"], &out[0]["content"][1]["id"]),
        (&json!("x_2"), &json!("x_2"))
    );
    assert_eq!((&out[2]["tool_call_id"], &out[2]["content"]), (&json!("x_2"), &json!("rb")));
}

#[test]
fn repeated_ids_get_the_first_free_numbers() {
    let ids = ["x", "x", "x_3", "x", "y", "x", "y", "x_3"];
    let calls: Vec<Value> = ids
        .iter()
        .enumerate()
        .map(|(at, id)| json!({"type": "tool_use", "id": id, "name": "f", "input": {"p": at}}))
        .collect();
    let results: Vec<Value> = ids
        .iter()
        .enumerate()
        .map(|(at, id)| json!({"type": "tool_result", "tool_use_id": id, "content": format!("r{at}")}))
        .collect();
    let history = [
        user("hi"),
        json!({"role": "assistant", "content": calls}),
        json!({"role": "user", "content": results}),
    ];
    let (out, _) = sanitized("anthropic", &history);
    let named = ["x", "x_2", "x_3", "x_4", "y", "x_5", "y_2", "x_3_2"];
    for (at, name) in named.into_iter().enumerate() {
        let (call, result) = (&out[1]["content"][at], &out[2]["content"][at]);
        assert_eq!((&call["id"], &call["input"]), (&json!(name), &json!({"p": at})));
        let answer = (&result["tool_use_id"], &result["content"]);
        assert_eq!(answer, (&json!(name), &json!(format!("r{at}"))));
    }
}

#[test]
fn a_gemini_result_takes_the_first_call_of_its_name_that_its_id_allows() {
    let call = |id: &str| json!({"functionCall": {"id": id, "name": "f", "args": {"of": id}}});
    let nameless = json!({"functionCall": {"name": "f", "args": {}}});
    let response = |id: Option<&str>, content: &str| match id {
        Some(id) => {
            json!({"functionResponse": {"id": id, "name": "f", "response": {"o": content}}})
        }
        None => json!({"functionResponse": {"name": "f", "response": {"o": content}}}),
    };
    let history = [
        json!({"role": "user", "parts": [{"text": "hi"}]}),
        json!({"role": "model", "parts": [call("a"), nameless, call("b")]}),
        json!({"role": "user", "parts": [
            response(Some("other"), "of the call without an id"), response(None, "ra"), response(Some("b"), "rb"),
        ]}),
    ];
    assert_eq!(sanitized("gemini", &history), (history.to_vec(), Vec::new()));
}

#[test]
fn an_exact_duplicate_of_a_call_is_removed() {
    let call =
        json!({"role": "assistant", "content": null, "tool_calls": [chat_call("c1", json!("{}"))]});
    let (out, faults) =
        sanitized("openai_chat", &[user("hi"), call.clone(), call.clone(), tool("c1", "r")]);
    assert_eq!(out, [user("hi"), call, tool("c1", "r")]);
    assert_eq!(faults, ["message 2: a second call of the same id c1: removed"]);
}

#[test]
fn a_result_without_a_call_is_kept_as_a_text() {
    let (out, faults) = sanitized("openai_chat", &[user("hi"), tool("c9", "the lost result")]);
    assert_eq!(out[1]["role"], "user");
    assert!(out[1]["content"].as_str().unwrap().ends_with("\nthe lost result"));
    assert_eq!(faults, ["message 1: a result without a call c9: kept as a text"]);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let lost = json!({"type": "tool_result", "tool_use_id": "t9", "content": [image]});
    let (out, _) = sanitized("anthropic", &[json!({"role": "user", "content": [lost]})]);
    assert_eq!(out[0]["content"][1], image);
    let call =
        json!({"role": "assistant", "content": null, "tool_calls": [chat_call("c1", json!("{}"))]});
    let (out, faults) = sanitized(
        "openai_chat",
        &[call.clone(), tool("c1", "r"), tool("c1", "another"), tool("c1", "r")],
    );
    assert_eq!(out[..2], [call, tool("c1", "r")]);
    assert!(out[2]["content"].as_str().unwrap().ends_with("\nanother"));
    assert_eq!(out.len(), 3, "what says the same goes");
    assert_eq!(faults[1], "message 3: a second result of the same call c1: removed");
}

#[test]
fn faults_that_anthropic_refuses_are_found() {
    let answer = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let history = [
        user("hi"),
        answer(json!([used("functions.bash:0")])),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "functions.bash:0", "content": "ok"}]}),
        answer(json!([{"type": "thinking", "thinking": "hm"}, used("t2")])),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": [image], "is_error": true}]}),
        answer(json!("The answer is ")),
    ];
    let (out, faults) = sanitized("anthropic", &history);
    assert_eq!(out[1]["content"][0]["id"], "functions_bash_0");
    assert_eq!(out[2]["content"][0]["tool_use_id"], "functions_bash_0");
    assert_eq!(out[3]["content"], json!([used("t2")]));
    let result = &out[4]["content"][0];
    assert_eq!((result.get("is_error"), &result["content"][1]), (None, &image));
    assert_eq!(out[5], answer(json!("The answer is")));
    assert_eq!(
        faults,
        [
            "message 1: an id that the provider refuses functions.bash:0: given another id",
            "message 2: an id that the provider refuses functions.bash:0: given another id",
            "message 3: thinking without its signature: removed",
            "message 4: the result of an error that is not text alone t2: corrected",
            "message 5: white space at the end of the last answer: corrected",
        ]
    );
}

#[test]
fn a_server_tool_use_and_its_result_need_each_other() {
    let answer = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let used =
        |id: &str| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}});
    let result =
        |id: &str| json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []});
    let text = json!({"type": "text", "text": "done"});
    let whole = [
        user("hi"),
        answer(json!([used("srvtoolu_1"), result("srvtoolu_1"), text])),
        user("go on"),
        // A turn that has not ended may still get its result.
        answer(json!([used("srvtoolu_2")])),
    ];
    assert_eq!(sanitized("anthropic", &whole), (whole.to_vec(), Vec::new()));
    let history = [
        user("hi"),
        answer(json!([result("srvtoolu_1"), text])),
        user("go on"),
        answer(json!([text, used("srvtoolu_2")])),
        user("so?"),
        answer(json!([{"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": []}])),
        answer(json!([text])),
    ];
    let (out, faults) = sanitized("anthropic", &history);
    let reply = answer(json!([text]));
    assert_eq!(out, [user("hi"), reply.clone(), user("go on"), reply.clone(), user("so?"), reply]);
    assert_eq!(
        faults,
        [
            "message 1: a server tool's result without its use srvtoolu_1: removed",
            "message 3: a server tool's use without its result srvtoolu_2: removed",
            "message 5: a server tool's result without its use mcptoolu_1: removed",
        ]
    );
}

#[test]
fn a_call_in_two_forms_in_one_message_is_kept_once() {
    let block = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {"a": 1}});
    let text = json!({"type": "text", "text": "x"});
    let call = |id: &str, arguments: &str| chat_call(id, json!(arguments));
    let history = [
        user("hi"),
        json!({"role": "assistant", "content": [text, block("t1"), block("t2")], "tool_calls": [call("t1", "{}")]}),
        tool("t1", "r1"),
        tool("t2", "r2"),
    ];
    let (out, faults) = sanitized("openai_chat", &history);
    let asks = json!({"role": "assistant", "content": [text],
        "tool_calls": [call("t1", "{}"), call("t2", "{\"a\":1}")]});
    assert_eq!(out, [user("hi"), asks, tool("t1", "r1"), tool("t2", "r2")]);
    assert_eq!(faults[0], "message 1: a call in the form of another provider t1: removed");
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "r"});
    let results = json!({"role": "user", "content": [result("t1"), result("t2")]});
    let asks = json!({"role": "assistant", "content": [block("t1")], "tool_calls": [call("t1", "{}"), call("t2", "{\"a\":1}")]});
    let (out, _) = sanitized("anthropic", &[user("hi"), asks, results.clone()]);
    assert_eq!(out[1], json!({"role": "assistant", "content": [block("t1"), block("t2")]}));
    assert_eq!(out[2], results);
}

#[test]
fn long_ids_are_shortened_in_call_and_result() {
    let long = "x".repeat(41);
    let call = json!({"role": "assistant", "content": null, "tool_calls": [chat_call(&long, json!("{}"))]});
    let (out, faults) = sanitized("openai_chat", &[user("hi"), call, tool(&long, "r")]);
    let id = out[1]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() <= 40 && out[2]["tool_call_id"] == id);
    assert_eq!((out[2]["content"].as_str(), faults.len()), (Some("r"), 2));
}

#[test]
fn bedrock_roles_alternate_from_the_user_and_texts_are_not_blank() {
    let message = |role: &str, text: &str| json!({"role": role, "content": [{"text": text}]});
    let history = [
        message("assistant", "hello"),
        message("user", "one"),
        message("user", "two"),
        json!({"role": "assistant", "content": [{"text": " "}, {"toolUse": {"toolUseId": "t1", "name": "f", "input": "{}"}}]}),
        json!({"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": "rain"}}]}),
    ];
    let (out, faults) = sanitized("bedrock", &history);
    assert_eq!((&out[0]["role"], &out[1]), (&json!("user"), &history[0]));
    assert_eq!(out[2]["content"], json!([{"text": "one"}, {"text": "two"}]));
    assert_eq!(
        out[3]["content"],
        json!([{"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}])
    );
    assert_eq!(out[4]["content"][0]["toolResult"]["content"], json!([{"text": "rain"}]));
    assert_eq!(
        faults[0],
        "message 0: no message of the user at the beginning: a message is inserted before it"
    );
    assert_eq!(
        faults[1],
        "message 2: a second message of the same role in a row: made part of the message before it"
    );
}

#[test]
fn gemini_is_corrected_with_and_without_ids_in_both_spellings() {
    let message = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}, "thoughtSignature": "c2ln"});
    let response = |name: &str, content: &str| json!({"functionResponse": {"name": name, "response": {"output": content}}});
    let asks = json!({"role": "model", "parts": [call("f"), call("g"), call("f")]});
    let answers = json!({"role": "user", "parts": [response("f", "1"), response("g", "2"), response("f", "3")]});
    let whole = [message("user", "hi"), asks.clone(), answers, message("model", "done")];
    assert_eq!(sanitized("gemini", &whole), (whole.to_vec(), Vec::new()));
    // A response is missing, and a user message comes in between.
    let late = json!({"role": "user", "parts": [response("g", "2")]});
    let (out, faults) =
        sanitized("gemini", &[message("user", "hi"), asks, message("user", "so?"), late]);
    assert_eq!(out[2]["parts"].as_array().unwrap().len(), 3);
    assert_eq!(out[2]["parts"][0], response("g", "2"));
    assert_eq!(out[3], message("user", "so?"));
    assert_eq!(faults.len(), 3, "{faults:?}");
    // In snake case, with ids (one belongs to no call), after a turn of the model.
    let history = [
        message("user", "hi"),
        message("model", "let me see"),
        json!({"role": "model", "parts": [{"function_call": {"id": "a", "name": "f", "args": "{\"x\": 1}"}}]}),
        json!({"role": "function", "parts": [{"function_response": {"id": "b", "name": "f", "response": "rain"}}]}),
    ];
    let (out, _) = sanitized("gemini", &history);
    assert_eq!(out[1]["parts"][1]["function_call"]["args"], json!({"x": 1}));
    assert_eq!(
        out[2]["parts"][0]["functionResponse"]["id"], "a",
        "nothing says that it is the result of 'a'"
    );
    assert!(out.iter().any(|content| content.to_string().contains("rain")));
}

#[test]
fn a_complete_vercel_thread_with_approvals_and_provider_tools_is_unchanged() {
    let result = |id: &str, content: &str| json!({"type": "tool-result", "toolCallId": id, "toolName": "f", "output": {"type": "text", "value": content}});
    let call =
        |id: &str| json!({"type": "tool-call", "toolCallId": id, "toolName": "f", "input": {}});
    let own = json!({"type": "tool-call", "toolCallId": "p1", "toolName": "web", "input": {}, "providerExecuted": true});
    let asks = json!({"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"});
    let agrees = json!({"type": "tool-approval-response", "approvalId": "a1", "approved": true});
    let whole = [
        json!({"role": "user", "content": [{"type": "text", "text": "hi"}]}),
        json!({"role": "assistant", "content": [own, result("p1", "found"), call("c1"), asks, call("c2")]}),
        json!({"role": "tool", "content": [agrees]}),
        json!({"role": "tool", "content": [result("c2", "two")]}),
        json!({"role": "tool", "content": [result("c1", "one")]}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "done"}]}),
    ];
    assert_eq!(sanitized("ai_sdk", &whole), (whole.to_vec(), Vec::new()));
    // `c1` waits for a person's approval. The result of `c2` is lost.
    let (out, faults) = sanitized("ai_sdk", &whole[..2]);
    assert_eq!(faults, ["message 1: a call without a result c2: a result is inserted"]);
    assert_eq!(out[2]["content"].as_array().unwrap().len(), 1);
    // With a user message after it, the question is closed.
    let (_, faults) = sanitized("ai_sdk", &[whole[1].clone(), whole[0].clone()]);
    assert_eq!(faults.len(), 2, "{faults:?}");
}

/// Regression: a block without role, type and call id was removed, although it was the only place
/// of a result.
#[test]
fn a_block_without_type_and_id_keeps_its_text() {
    let use_ = json!({"type": "tool_use", "id": "t1", "name": "f", "input": {}});
    let part = json!({"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {}});
    let shapes = [
        (
            "anthropic",
            json!({"role": "assistant", "content": [use_]}),
            json!({"role": "user", "content": [{"content": "rain"}]}),
        ),
        (
            "bedrock",
            json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}]}),
            json!({"role": "user", "content": [{"content": [{"text": "rain"}], "status": "success"}]}),
        ),
        (
            "gemini",
            json!({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}),
            json!({"role": "user", "parts": [{"response": {"said": "rain"}}]}),
        ),
        (
            "ai_sdk",
            json!({"role": "assistant", "content": [part]}),
            json!({"role": "user", "content": [{"result": "rain"}]}),
        ),
        (
            "langchain_flat",
            json!({"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {}, "id": "c1"}]}),
            json!({"type": "human", "content": [{"result": "rain"}]}),
        ),
        (
            "openai_responses",
            json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}),
            json!({"role": "user", "content": [{"result": "rain"}, "and wind"]}),
        ),
        (
            "openai_chat",
            json!({"role": "assistant", "tool_calls": [chat_call("c1", "{}")]}),
            json!({"role": "user", "content": [{"result": "rain"}, {"text": "and wind"}]}),
        ),
    ];
    for (form, call, result) in shapes {
        let hi = match form {
            "bedrock" => json!({"role": "user", "content": [{"text": "hi"}]}),
            "gemini" => json!({"role": "user", "parts": [{"text": "hi"}]}),
            "langchain_flat" => json!({"type": "human", "content": "hi"}),
            _ => user("hi"),
        };
        let (out, _) = sanitized(form, &[hi, call, result]);
        assert!(Value::from(out).to_string().contains("rain"), "{form}");
    }
}

#[test]
fn a_lost_role_or_type_is_restored_or_the_history_is_refused() {
    let call = json!({"tool_calls": [chat_call("c1", "{}")]});
    let whole = json!({"role": "assistant", "tool_calls": [chat_call("c1", "{}")]});
    let result = json!({"tool_call_id": "c1", "content": "rain"});
    let (out, faults) = sanitized("openai_chat", &[user("hi"), call, tool("c1", "rain")]);
    assert_eq!(out[1]["role"], "assistant");
    assert_eq!(faults, ["message 1: a message that does not say its role or type: corrected"]);
    let (out, _) = sanitized("openai_chat", &[user("hi"), whole.clone(), result]);
    assert_eq!(out[2], json!({"tool_call_id": "c1", "content": "rain", "role": "tool"}));
    let call = json!({"call_id": "c1", "name": "f", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "call_id": "c1", "output": "rain"});
    let (out, _) = sanitized("openai_responses", &[user("hi"), call, result]);
    assert_eq!((out.len(), &out[1]["type"]), (3, &json!("function_call")));
    for lost in [json!({"content": "rain"}), json!({"role": "bot", "content": "rain"})] {
        let seems = seems(&[user("hi"), whole.clone(), lost]);
        assert!(seems.starts_with("2: content without a known role or type, an object"), "{seems}");
    }
}

#[test]
fn a_single_block_in_place_of_a_list_is_kept() {
    let text = json!({"type": "text", "text": "hi"});
    let (out, _) = sanitized("plain", &[json!({"role": "user", "content": text})]);
    assert_eq!(out[0]["content"], json!([text]));
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]});
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": "rain"});
    let alone = json!({"role": "user", "content": result});
    let (out, _) = sanitized("anthropic", &[user("hi"), call, alone]);
    assert_eq!(out[2]["content"], json!([result]));
}

/// Regression: the result of a call in OpenAI's older form was removed if its content was not a
/// text or its name was lost.
#[test]
fn a_result_of_the_older_function_call_is_kept() {
    let call =
        json!({"role": "assistant", "function_call": {"name": "f", "arguments": {"city": "Rome"}}});
    let named = json!({"role": "function", "name": "f", "content": {"said": "rain"}});
    let (out, faults) = sanitized("openai_chat", &[user("hi"), call.clone(), named]);
    assert_eq!(out[1]["function_call"]["arguments"], "{\"city\": \"Rome\"}".replace(' ', ""));
    assert_eq!(out[2]["content"], "{\"said\":\"rain\"}");
    assert_eq!(faults.len(), 2, "{faults:?}");
    let nameless = json!({"role": "function", "content": "rain"});
    let (out, _) = sanitized("openai_chat", &[user("hi"), call, nameless]);
    assert_eq!(
        (&out[2]["role"], out[2]["content"].as_str().unwrap().contains("rain")),
        (&json!("user"), true)
    );
}

/// A damaged field name left a Bedrock block with two fields; both are kept, each as a block.
#[test]
fn a_bedrock_block_of_two_members_becomes_two_blocks() {
    let (out, faults) = sanitized(
        "bedrock",
        &[
            json!({"role": "user", "content": [{"text": "go"}]}),
            json!({"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}, "text": "I look"},
            ]}),
            json!({"role": "user", "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "found"}]}},
            ]}),
        ],
    );
    let blocks = out[1]["content"].as_array().unwrap();
    assert!(blocks.iter().any(|block| block["text"] == "I look"), "{out:#?}");
    assert!(blocks.iter().any(|block| block["toolUse"]["toolUseId"] == "a"), "{out:#?}");
    assert_eq!(out[2]["content"][0]["toolResult"]["content"][0]["text"], "found");
    assert!(faults.iter().any(|fault| fault.contains("block")), "{faults:?}");
}

/// A result inside a model's message is moved out; the thinking before it is then at the end of the
/// answer, which Anthropic refuses. Sanitising again must find nothing more.
#[test]
fn thinking_left_at_the_end_by_a_moved_result_is_removed_at_once() {
    let thinks = json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"});
    let history = [
        user("go"),
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        ]}),
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "so"},
            thinks,
            {"type": "tool_result", "tool_use_id": "a", "content": "found"},
        ]}),
    ];
    let (out, _) = sanitized("anthropic", &history);
    let written = json!(out).to_string();
    assert!(written.contains("found") && !written.contains("thinking"), "{out:#?}");
    assert_eq!(sanitized("anthropic", &out), (out, Vec::new()));
}

/// A signature that is empty or not a text is invalid, and redacted thinking has its own in `data`.
#[test]
fn thinking_with_an_invalid_signature_is_removed() {
    let thinks = [
        json!({"type": "thinking", "thinking": "hm", "signature": {"a": 1}}),
        json!({"type": "thinking", "thinking": "hm", "signature": ""}),
        json!({"type": "redacted_thinking", "data": ""}),
        json!({"type": "redacted_thinking"}),
    ];
    let [one, two, three, four] = thinks;
    let answer = json!({"role": "assistant", "content": [
        one, two, three, four, {"type": "text", "text": "done"},
    ]});
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]});
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "found"},
    ]});
    let (out, faults) = sanitized("anthropic", &[user("go"), call, result, answer]);
    assert_eq!(out[3]["content"], json!([{"type": "text", "text": "done"}]));
    assert_eq!(faults.len(), 4, "{faults:?}");
}

/// Regression: a repeated field was split off again and again until the stack overflowed.
#[test]
fn a_bedrock_block_with_a_repeated_member_terminates() {
    let block = r#"{"text":"I look","text":"again"}"#;
    let texts = [
        r#"{"role":"user","content":[{"text":"go"}]}"#.to_owned(),
        format!(r#"{{"role":"assistant","content":[{block},{{"toolUse":{{"toolUseId":"a","name":"f","input":{{}}}}}}]}}"#),
        r#"{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"found"}]}}]}"#.to_owned(),
    ];
    let done = sanitize_history(&texts, &SanitizeOptions::default()).unwrap();
    assert_eq!(rules::of("bedrock", &values(&done)), Ok(()));
}
