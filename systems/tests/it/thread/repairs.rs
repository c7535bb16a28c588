//! Results that do not quite fit their calls, and values that only one provider refuses.

use super::cases::{chat_call, sanitized, tool, user};
use forge_systems::thread::{HistoryDocument, SanitizeError, SanitizeOptions, sanitize_history};
use serde_json::{Value, json};

/// Regression: the call was reported without a result, and its real result became a text.
#[test]
fn a_result_of_another_type_than_its_call_is_converted() {
    let call = |kind: &str| match kind {
        "function_call" => {
            json!({"type": kind, "call_id": "a", "name": "f", "arguments": "{}"})
        }
        "custom_tool_call" => json!({"type": kind, "call_id": "a", "name": "f", "input": "x"}),
        kind => json!({"type": kind, "call_id": "a", "action": {}}),
    };
    let result = |kind: &str, field: &str| json!({"type": format!("{kind}_output"), field: "a", "output": "valuable"});
    let kinds = ["function_call", "custom_tool_call", "local_shell_call"];
    for (of_call, of_result) in kinds.into_iter().flat_map(|one| kinds.map(|other| (one, other))) {
        let history = [user("hi"), call(of_call), result(of_result, "call_id")];
        let (out, faults) = sanitized("openai_responses", &history);
        if of_call == of_result {
            assert_eq!((out, faults.len()), (history.to_vec(), 0));
            continue;
        }
        let field = if of_call == "local_shell_call" { "id" } else { "call_id" };
        assert_eq!(out, [history[0].clone(), call(of_call), result(of_call, field)]);
        let fault =
            "message 2: a result that names another type or tool than its call a: corrected";
        assert_eq!(faults, [fault]);
    }
    // A local shell result may name its call in `id`.
    let (out, _) =
        sanitized("openai_responses", &[call("function_call"), result("local_shell_call", "id")]);
    assert_eq!(out[1], result("function_call", "call_id"));
    // The id of the item is one of the old type.
    let mut named = result("custom_tool_call", "call_id");
    named["id"] = json!("ctco_1");
    let (out, _) = sanitized("openai_responses", &[call("function_call"), named]);
    assert_eq!(out[1], result("function_call", "call_id"));
    // A result of the proper type has precedence, and a screenshot is no text.
    let history = [
        call("function_call"),
        call("custom_tool_call"),
        result("function_call", "call_id"),
        json!({"type": "function_call_output", "call_id": "a", "output": "another"}),
    ];
    let (out, faults) = sanitized("openai_responses", &history);
    assert_eq!((&out[2], &out[3]["type"]), (&history[2], &json!("custom_tool_call_output")));
    assert_eq!((&out[3]["output"], faults.len()), (&json!("another"), 1));
    let screen = json!({"type": "computer_call_output", "call_id": "a", "output": {"type": "computer_screenshot"}});
    let (out, _) = sanitized("openai_responses", &[call("function_call"), screen]);
    assert!(Value::from(out).to_string().contains("computer_screenshot"));
}

/// Regression: the call was reported without a result, and its real result became a text: "No tool
/// call found for function call output with call_id fc_1".
#[test]
fn a_result_with_the_id_of_the_item_of_its_call_belongs_to_this_call() {
    let call = |id: &str, call_id: &str| json!({"type": "function_call", "id": id, "call_id": call_id, "name": "f", "arguments": "{}"});
    let result = |id: &str, content: &str| json!({"type": "function_call_output", "call_id": id, "output": content});
    let calls = [call("fc_1", "a"), call("fc_2", "b")];
    let given = [result("fc_2", "rb"), result("fc_1", "ra")];
    let (out, faults) = sanitized("openai_responses", &[calls.clone(), given].concat());
    assert_eq!(out, [calls.clone(), [result("b", "rb"), result("a", "ra")]].concat());
    let fault =
        "message 2: a result that names another type or tool than its call fc_2: given another id";
    assert_eq!(faults[0], fault);
    // A result with the id of the call has precedence.
    let given = [result("fc_1", "another"), result("a", "ra"), result("b", "rb")];
    let (out, faults) = sanitized("openai_responses", &[&calls[..], &given].concat());
    assert!(out.contains(&given[1]) && faults.len() == 1, "{out:#?}");
}

/// Regression: the call was reported without a result, and its real result became a text.
#[test]
fn gemini_results_without_ids_belong_to_their_calls_by_order() {
    let hi = json!({"role": "user", "parts": [{"text": "hi"}]});
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let response = |name: &str, content: &str| json!({"functionResponse": {"name": name, "response": {"o": content}}});
    let asks = |names: &[&str]| json!({"role": "model", "parts": names.iter().map(|name| call(name)).collect::<Vec<_>>()});
    let answers = |role: &str, results: &[Value]| json!({"role": role, "parts": results});
    let (out, faults) =
        sanitized("gemini", &[hi.clone(), asks(&["f"]), answers("user", &[response("g", "1")])]);
    assert_eq!(out[2], answers("user", &[response("f", "1")]));
    let fault = "message 2: a result that names another type or tool than its call g: corrected";
    assert_eq!(faults, [fault]);
    // What is left after the names were matched.
    let given = answers("user", &[response("h", "1"), response("f", "2")]);
    let (out, _) = sanitized("gemini", &[hi.clone(), asks(&["f", "g"]), given]);
    assert_eq!(out[2], answers("user", &[response("g", "1"), response("f", "2")]));
    // If there are more calls than results, their order says nothing.
    let given = answers("user", &[response("h", "1")]);
    let (out, _) = sanitized("gemini", &[hi.clone(), asks(&["f", "g"]), given]);
    assert!(
        out[3]["parts"][0]["text"].as_str().is_some_and(|text| text.contains("\"1\"")),
        "{out:#?}"
    );
    // The role of results in the examples of the SDK.
    let whole = [hi, asks(&["f"]), answers("tool", &[response("f", "1")])];
    assert_eq!(sanitized("gemini", &whole), (whole.to_vec(), Vec::new()));
}

/// Regression: the results of a message were read before its calls, so the first call got the
/// result of the second one, and the reverse.
#[test]
fn a_result_belongs_to_the_call_before_it_in_the_same_message() {
    let used =
        |place: &str| json!({"type": "tool_use", "id": "x", "name": "f", "input": {"p": place}});
    let result =
        |content: &str| json!({"type": "tool_result", "tool_use_id": "x", "content": content});
    let asks = |blocks: Value| json!({"role": "assistant", "content": blocks});
    // The inputs of the calls, and the results, each with the id that joins them.
    let joined = |out: &[Value]| {
        let blocks = out.iter().filter_map(|message| message["content"].as_array()).flatten();
        let (calls, results): (Vec<&Value>, Vec<&Value>) = blocks
            .filter(|block| block["type"] != "text")
            .partition(|block| block["type"] == "tool_use");
        let result_of = |call: &Value| {
            let result = results.iter().find(|result| result["tool_use_id"] == call["id"]);
            result.map_or(Value::Null, |result| result["content"].clone())
        };
        let pairs = calls.into_iter().map(|call| json!([call["input"]["p"], result_of(call)]));
        pairs.collect::<Vec<_>>()
    };
    let right = [json!(["a", "ra"]), json!(["b", "rb"])];
    for messages in [
        // In two messages, in one, and after the calls of one.
        vec![asks(json!([used("a"), result("ra")])), asks(json!([used("b"), result("rb")]))],
        vec![asks(json!([used("a"), result("ra"), used("b"), result("rb")]))],
        vec![asks(json!([used("a"), used("b"), result("ra"), result("rb")]))],
        // A result before the call of its message belongs to the call before it.
        vec![asks(json!([used("a")])), asks(json!([result("ra"), used("b"), result("rb")]))],
    ] {
        let (out, _) = sanitized("anthropic", &[vec![user("hi")], messages].concat());
        assert_eq!(joined(&out), right, "{out:#?}");
    }
    // The call before the message has no result.
    let history = [user("hi"), asks(json!([used("a")])), asks(json!([used("b"), result("rb")]))];
    let (out, _) = sanitized("anthropic", &history);
    assert_eq!(joined(&out)[1], right[1], "{out:#?}");
    // Gemini without ids.
    let hi = json!({"role": "user", "parts": [{"text": "hi"}]});
    let call = |place: &str| json!({"functionCall": {"name": "f", "args": {"p": place}}});
    let response =
        |content: &str| json!({"functionResponse": {"name": "f", "response": {"o": content}}});
    let model = |parts: Value| json!({"role": "model", "parts": parts});
    let answers = |content: &str| json!({"role": "user", "parts": [response(content)]});
    let history = [
        hi.clone(),
        model(json!([call("a"), response("ra")])),
        model(json!([call("b"), response("rb")])),
    ];
    let (out, _) = sanitized("gemini", &history);
    let asks = |place: &str| model(json!([call(place)]));
    assert_eq!(out, [hi, asks("a"), answers("ra"), asks("b"), answers("rb")]);
}

#[test]
fn an_id_that_is_a_number_becomes_a_text() {
    let one = json!(1);
    let histories = [
        (
            "openai_chat",
            json!({"role": "assistant", "tool_calls": [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{\"id\":1}"}}]}),
            json!({"role": "tool", "tool_call_id": one, "content": "r"}),
        ),
        (
            "openai_responses",
            json!({"type": "function_call", "call_id": one, "name": "f", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": one, "output": "r"}),
        ),
        (
            "anthropic",
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": one, "name": "f", "input": {"id": 1}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": one, "content": "r"}]}),
        ),
        (
            "bedrock",
            json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": one, "name": "f", "input": {"id": 1}}}]}),
            json!({"role": "user", "content": [{"toolResult": {"toolUseId": one, "content": [{"json": {"id": 1}}]}}]}),
        ),
        (
            "gemini",
            json!({"role": "model", "parts": [{"functionCall": {"id": one, "name": "f", "args": {"id": 1}}}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"id": one, "name": "f", "response": {"id": 1}}}]}),
        ),
        (
            "ai_sdk",
            json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": one, "toolName": "f", "input": {"id": 1}}]}),
            json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": one, "toolName": "f", "output": {"type": "text", "value": "r"}}]}),
        ),
    ];
    for (form, call, result) in histories {
        let hi = match form {
            "bedrock" => json!({"role": "user", "content": [{"text": "hi"}]}),
            "gemini" => json!({"role": "user", "parts": [{"text": "hi"}]}),
            _ => user("hi"),
        };
        let (out, faults) = sanitized(form, &[hi, call.clone(), result.clone()]);
        // Only the id changes: the arguments and the content keep their numbers.
        for (at, given) in [(1, &call), (2, &result)] {
            let numbers = |message: &Value| message.to_string().matches(":1").count();
            assert!(out[at].to_string().contains(":\"1\""), "{form}: {out:#?}");
            assert_eq!(numbers(&out[at]) + 1, numbers(given), "{form}: {out:#?}");
            let fault = format!("message {at}: an id that the provider refuses 1: corrected");
            assert_eq!(faults[at - 1], fault, "{form}");
        }
        assert_eq!((out.len(), faults.len()), (3, 2), "{form}");
    }
    // Gemini's ids may be missing, so one of another type is not replaced by a new one.
    let call =
        json!({"role": "model", "parts": [{"functionCall": {"id": 1.5, "name": "f", "args": {}}}]});
    let result = json!({"role": "user", "parts": [{"functionResponse": {"id": 1.5, "name": "f", "response": {}}}]});
    let hi = json!({"role": "user", "parts": [{"text": "hi"}]});
    let (out, faults) = sanitized("gemini", &[hi, call, result]);
    assert_eq!(out[1]["parts"][0]["functionCall"]["id"], "1.5");
    assert_eq!(out[2]["parts"][0]["functionResponse"]["id"], "1.5");
    assert_eq!(faults.len(), 2, "{faults:?}");
}

/// Regression: such ids counted as missing, so each call got the result of the other.
#[test]
fn results_belong_to_their_calls_by_ids_that_are_no_texts() {
    for ids in [
        [json!(-1), json!(-2)],
        [json!(1.5), json!(2.5)],
        [json!({"$oid": "a"}), json!({"$oid": "b"})],
        [json!(false), json!(true)],
    ] {
        let call = |id: &Value| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let result = |id: &Value, content: &str| json!({"role": "tool", "tool_call_id": id, "content": content});
        let asks =
            json!({"role": "assistant", "content": null, "tool_calls": ids.each_ref().map(call)});
        let history = [user("hi"), asks, result(&ids[1], "second"), result(&ids[0], "first")];
        let (out, _) = sanitized("openai_chat", &history);
        assert_eq!((&out[2]["content"], &out[3]["content"]), (&json!("second"), &json!("first")));
        assert_eq!(out[2]["tool_call_id"], out[1]["tool_calls"][1]["id"]);
        assert_eq!(out[1]["tool_calls"][0]["id"], ids[0].to_string());
    }
    // A column of a table with gaps has decimal numbers.
    let call = json!({"id": 7, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": 7.0, "content": "r"});
    let (out, _) = sanitized("openai_chat", &[user("hi"), asks, result]);
    assert_eq!((&out[1]["tool_calls"][0]["id"], &out[2]), (&json!("7"), &tool("7", "r")));
    for missing in [json!(false), json!([]), json!({})] {
        let asks = json!({"role": "assistant", "tool_calls": [chat_call("a", "{}")]});
        let result = json!({"role": "tool", "tool_call_id": missing, "content": "r"});
        let (out, _) = sanitized("openai_chat", &[user("hi"), asks, result]);
        assert_eq!(out[2], tool("a", "r"));
    }
}

#[test]
fn a_tool_name_that_the_provider_refuses_is_corrected() {
    let long = "x".repeat(65);
    for (given, right) in [("my.tool", "my_tool"), ("größe", "gr__e"), (&long, &long[..64])] {
        let mut call = chat_call("a", "{}");
        call["function"]["name"] = json!(given);
        let asks = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let (out, faults) = sanitized("openai_chat", &[user("hi"), asks, tool("a", "r")]);
        assert_eq!(out[1]["tool_calls"][0]["function"]["name"], right);
        assert_eq!(faults, ["message 1: a name that the provider refuses a: corrected"]);
        let history = [
            json!({"role": "user", "content": [{"text": "hi"}]}),
            json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": given, "input": "{}"}}]}),
            json!({"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": []}}]}),
        ];
        let (out, faults) = sanitized("bedrock", &history);
        let used = json!({"toolUse": {"toolUseId": "a", "name": right, "input": {}}});
        assert_eq!((&out[1]["content"][0], faults.len()), (&used, 2), "{faults:?}");
    }
    // The older form: the result names its function.
    let history = [
        json!({"role": "assistant", "content": null, "function_call": {"name": "my.tool", "arguments": "{}"}}),
        json!({"role": "function", "name": "my.tool", "content": "r"}),
    ];
    let (out, faults) = sanitized("openai_chat", &history);
    let names = (&out[0]["function_call"]["name"], &out[1]["name"]);
    assert_eq!((names, faults.len()), ((&json!("my_tool"), &json!("my_tool")), 2));
    let history = [
        json!({"type": "function_call", "call_id": "a", "name": "my.tool", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "a", "output": "r"}),
    ];
    let (out, faults) = sanitized("openai_responses", &history);
    assert_eq!((&out[0]["name"], faults.len()), (&json!("my_tool"), 1));
}

/// Regression: a use that only MCP blocks showed was read as a plain history and not checked; and
/// the last answer could wait although the user went on.
#[test]
fn a_server_tool_use_waits_only_if_nothing_but_results_follows() {
    let answer = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let text = json!({"type": "text", "text": "k"});
    let mcp =
        json!({"type": "mcp_tool_use", "id": "m", "name": "q", "server_name": "s", "input": {}});
    let web =
        json!({"type": "server_tool_use", "id": "srvtoolu_w", "name": "web_search", "input": {}});
    let history = [user("hi"), answer(json!([mcp])), user("x"), answer(json!([text]))];
    let (out, faults) = sanitized("anthropic", &history);
    assert_eq!(out, [user("hi"), user("x"), answer(json!([text]))]);
    assert_eq!(faults, ["message 1: a server tool's use without its result m: removed"]);
    let (out, faults) =
        sanitized("anthropic", &[user("hi"), answer(json!([web, text])), user("x")]);
    assert_eq!((&out[1], faults.len()), (&answer(json!([text])), 1));
    // The results of the client's own tools do not end the turn, but a text next to them does.
    let call = json!({"type": "tool_use", "id": "t", "name": "f", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": "r"});
    let asks = answer(json!([web, call]));
    let whole = [user("hi"), asks.clone(), json!({"role": "user", "content": [result]})];
    assert_eq!(sanitized("anthropic", &whole), (whole.to_vec(), Vec::new()));
    let (out, faults) = sanitized("anthropic", &[user("hi"), asks.clone()]);
    assert_eq!((&out[1], faults.len()), (&asks, 1));
    let message = json!({"role": "user", "content": [result, text]});
    let (out, _) = sanitized("anthropic", &[user("hi"), asks, message]);
    assert_eq!(out[1], answer(json!([call])));
}

/// Regression: OpenAI takes only texts in a message of a tool.
#[test]
fn an_image_in_a_result_goes_to_a_message_of_the_user() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let text = json!({"type": "text", "text": "a map"});
    let result =
        |id: &str, content: Value| json!({"role": "tool", "tool_call_id": id, "content": content});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [chat_call("a", "{}"), chat_call("b", "{}")]});
    let done = json!({"role": "assistant", "content": "done"});
    let history = [
        user("hi"),
        asks,
        result("a", json!([text, image, {"type": "json", "json": 1}])),
        result("b", json!([image])),
        done.clone(),
    ];
    let (out, faults) = sanitized("openai_chat", &history);
    assert_eq!(out[2]["content"][0], text);
    assert!(out[2]["content"][1]["text"].as_str().is_some_and(|string| string.contains("json")));
    assert_eq!(out[3]["content"][0]["text"], "The result is in a message of the user below.");
    for (at, id) in [(4, "a"), (5, "b")] {
        let note = format!("The result of the tool call {id} has this content too:");
        let blocks = json!([{"type": "text", "text": note}, image]);
        assert_eq!(out[at], json!({"role": "user", "content": blocks}));
    }
    assert_eq!((&out[6], out.len()), (&done, 7));
    let fault_at = |at: usize, id: &str| {
        format!("message {at}: a result without proper content {id}: corrected")
    };
    assert_eq!(faults, [fault_at(2, "a"), fault_at(3, "b")]);
    // A result without a call keeps its image too.
    let (out, _) = sanitized("openai_chat", &[user("hi"), result("a", json!([image]))]);
    assert_eq!(out[1]["content"][1], image);
}

/// Regression: such a text was reported as right, and the API refuses the request because of it.
#[test]
fn a_text_block_gets_the_type_that_the_api_of_the_thread_accepts() {
    let says =
        |role: &str, kind: &str| json!({"role": role, "content": [{"type": kind, "text": "x"}]});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [chat_call("a", "{}")]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": [{"type": "input_text", "text": "r"}]});
    let cited = json!({"role": "assistant", "content": [
        {"type": "output_text", "text": "x", "annotations": [], "logprobs": []},
    ]});
    let (out, faults) =
        sanitized("openai_chat", &[says("user", "input_text"), asks, result, cited]);
    assert_eq!(out[0], says("user", "text"));
    assert_eq!(out[2]["content"], json!([{"type": "text", "text": "r"}]));
    assert_eq!((&out[3], faults.len()), (&says("assistant", "text"), 3), "{faults:?}");
    assert_eq!(
        faults[0],
        "message 0: an invalid block, or a field that the provider refuses: corrected"
    );
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "call_id": "a", "output": "r"});
    for (role, right) in [("user", "input_text"), ("assistant", "output_text")] {
        for given in ["text", "input_text", "output_text"] {
            let history = [says(role, given), call.clone(), result.clone()];
            let (out, faults) = sanitized("openai_responses", &history);
            assert_eq!(out[0], says(role, right));
            assert_eq!(faults.len(), usize::from(given != right), "{faults:?}");
        }
    }
    // LangChain converts both kinds of texts itself.
    let history = [json!({"type": "human", "content": [{"type": "input_text", "text": "x"}]})];
    assert_eq!(sanitized("langchain_flat", &history), (history.to_vec(), Vec::new()));
}

/// Regression: the call was removed as an "empty list of calls", and its result became a text.
#[test]
fn calls_that_are_not_in_a_list_are_put_into_one() {
    let call = chat_call("a", "{}");
    for given in [call.clone(), json!(json!([call]).to_string()), json!(call.to_string())] {
        let asks = json!({"role": "assistant", "content": null, "tool_calls": given});
        let (out, faults) = sanitized("openai_chat", &[user("hi"), asks.clone(), tool("a", "r")]);
        assert_eq!(out[1]["tool_calls"], json!([call]));
        assert_eq!((&out[2], faults.len()), (&tool("a", "r"), 1));
        assert_eq!(faults, ["message 1: a malformed call: corrected"]);
        // Among messages of Anthropic, the call becomes a block.
        let result = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "r"},
        ]});
        let mut asks = asks;
        asks["content"] = json!([{"type": "tool_use", "id": "b", "name": "g", "input": {}}]);
        let (out, _) = sanitized("anthropic", &[user("hi"), asks, result]);
        let used = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
        assert_eq!(out[1]["content"][1], used, "{out:#?}");
    }
    for given in [json!(""), json!("no call"), json!({})] {
        let asks = json!({"role": "assistant", "content": "x", "tool_calls": given});
        let (out, faults) = sanitized("openai_chat", &[user("hi"), asks, user("go on")]);
        assert_eq!((out[1].get("tool_calls"), faults.len()), (None, 1));
    }
}

/// Regression: the pieces were removed, so the call had no arguments; calls by their index were
/// removed too.
#[test]
fn calls_that_a_program_collected_from_a_stream_are_kept() {
    let begins = |index: u8, id: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": "f", "arguments": ""}});
    let piece = |index: u8, said: &str| json!({"index": index, "id": null, "function": {"name": null, "arguments": said}});
    let given =
        [begins(0, "a"), piece(0, "{\"x\""), begins(1, "b"), piece(1, "{}"), piece(0, ":1}")];
    let asks = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let history = |calls| [user("hi"), asks(calls), tool("a", "ra"), tool("b", "rb")];
    let (out, faults) = sanitized("openai_chat", &history(json!(given)));
    let mut right = [begins(0, "a"), begins(1, "b")];
    right[0]["function"]["arguments"] = json!("{\"x\":1}");
    right[1]["function"]["arguments"] = json!("{}");
    assert_eq!(out, history(json!(right)));
    assert_eq!(faults, ["message 1: a malformed call: corrected"]);
    let mut given = given;
    given[0]["function"]["arguments"] = json!("{}");
    assert_eq!(sanitized("openai_chat", &history(json!(given))).0, out);
    // White space does not replace it.
    let blank = json!([right[1], piece(1, "\n")]);
    let (kept, _) = sanitized("openai_chat", &[user("hi"), asks(blank), tool("b", "rb")]);
    assert_eq!(kept[1], asks(json!([right[1]])));
    let (out, _) = sanitized("openai_chat", &history(json!({"0": right[0], "1": right[1]})));
    assert_eq!(out, history(json!(right)));
    // A call by its id would get another id, so its result would not belong to it.
    let flat = json!({"a": {"name": "f", "arguments": "{}"}});
    let (out, _) = sanitized("openai_chat", &[user("hi"), asks(flat), tool("a", "ra")]);
    assert_eq!(out.len(), 2, "{out:#?}");
    // A piece without its beginning is no call.
    let (out, _) = sanitized("openai_chat", &[user("hi"), asks(json!([piece(0, "{}")]))]);
    assert_eq!(out, [user("hi")]);
}

/// Regression: the call was removed, and its result became a text. Clients in TypeScript and the
/// protocol AG-UI write such messages.
#[test]
fn calls_in_a_field_in_camel_case_are_kept() {
    let call = chat_call("a", "{}");
    let flat = json!({"toolCallId": "a", "toolName": "f", "args": {}});
    let asks = json!({"role": "assistant", "tool_calls": [call]});
    for given in [
        json!({"role": "assistant", "toolCalls": [call]}),
        json!({"role": "assistant", "toolCalls": [flat]}),
        json!({"role": "assistant", "tool_calls": [flat]}),
        json!({"toolCalls": [call]}),
    ] {
        let result = json!({"role": "tool", "toolCallId": "a", "content": "r"});
        let (out, faults) = sanitized("openai_chat", &[user("hi"), given, result]);
        assert_eq!(out[1]["tool_calls"], asks["tool_calls"]);
        assert_eq!((&out[1]["role"], &out[2]), (&asks["role"], &tool("a", "r")), "{faults:?}");
    }
    let asks = json!({"role": "assistant", "content": "", "toolCalls": [call]});
    let (out, faults) = sanitized("openai_chat", &[user("hi"), asks, user("go on")]);
    assert_eq!((&out[2]["role"], out.len()), (&json!("tool"), 4));
    assert_eq!(faults[1], "message 1: a call without a result a: a result is inserted");
    // What programs add to display it is no call without a result.
    let shown = json!([{"id": "a", "name": "f", "args": {}, "result": "r"}]);
    let failed = json!([{"id": "a", "name": "f", "args": {}, "error": "e"}]);
    let inner = json!([{"id": "a", "function": {"name": "f", "arguments": "{}", "result": "r"}}]);
    let nothing = [json!([]), json!({}), json!("[]"), json!(false), json!(["f"])];
    for given in nothing.into_iter().chain([shown, failed, inner]) {
        let whole = [user("hi"), json!({"role": "assistant", "content": "x", "toolCalls": given})];
        assert_eq!(sanitized("plain", &whole), (whole.to_vec(), Vec::new()));
    }
    let results = json!([{"toolCallId": "a", "result": "r"}]);
    let step =
        json!({"role": "assistant", "content": "x", "toolCalls": [flat], "toolResults": results});
    let whole = [user("hi"), step];
    assert_eq!(sanitized("plain", &whole), (whole.to_vec(), Vec::new()));
    let asks = json!({"role": "assistant", "functionCall": {"name": "f", "arguments": "{}"}});
    let (out, _) = sanitized("openai_chat", &[user("hi"), asks]);
    assert_eq!(out[1]["function_call"]["name"], "f");
}

/// Regression: the results were matched by their order, so each call got the result of the other.
#[test]
fn results_of_one_id_belong_to_the_calls_of_the_tools_that_they_name() {
    let mut second = chat_call("x", "{}");
    second["function"]["name"] = json!("g");
    let asks =
        json!({"role": "assistant", "content": null, "tool_calls": [chat_call("x", "{}"), second]});
    let result = |name: &str| json!({"role": "tool", "tool_call_id": "x", "name": name, "content": format!("of {name}")});
    let history = [user("hi"), asks, result("g"), result("f")];
    let (out, _) = sanitized("openai_chat", &history);
    for (place, name) in [(0_usize, "f"), (1, "g")] {
        let call = &out[1]["tool_calls"][place];
        assert_eq!(call["function"]["name"], name);
        let found = out.iter().find(|one| one["tool_call_id"] == call["id"]).unwrap();
        assert_eq!(found["content"], format!("of {name}"), "{out:#?}");
    }
}

/// Regression: a history of such messages became an empty one.
#[test]
fn content_that_is_a_number_or_a_truth_value_is_kept_as_a_text() {
    for (given, said) in [(json!(5), "5"), (json!(-1.5), "-1.5"), (json!(false), "false")] {
        let (out, faults) = sanitized("plain", &[json!({"role": "user", "content": given})]);
        assert_eq!(out, [json!({"role": "user", "content": said})]);
        assert_eq!(
            faults,
            ["message 0: an invalid block, or a field that the provider refuses: corrected"]
        );
    }
}

#[test]
fn an_image_of_another_api_gets_the_form_of_the_thread() {
    let data = "data:image/png;base64,AA==";
    let chat = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let item = |url: &str| json!({"type": "input_image", "image_url": url});
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AA=="});
    let block = json!({"type": "image", "source": source});
    let mcp = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    // The AI SDK, Transformers, and two versions of LangChain.
    let of_frameworks = [
        json!({"type": "image", "image": "AA==", "mediaType": "image/png"}),
        json!({"type": "file", "data": data, "mediaType": "image/png"}),
        json!({"type": "image", "url": data}),
        json!({"type": "image", "source_type": "base64", "data": "AA==", "mime_type": "image/png"}),
        json!({"type": "image", "base64": "AA==", "mime_type": "image/png"}),
        // AG-UI.
        json!({"type": "binary", "data": "AA==", "mimeType": "image/png"}),
        json!({"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}}),
    ];
    let says = |image: &Value| json!({"role": "user", "content": [image]});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [chat_call("a", "{}")]});
    let used = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let result = |content: Value| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": content}]});
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "r"});
    let histories = [
        ("openai_chat", chat(data), vec![asks.clone(), tool("a", "r")]),
        ("openai_responses", item(data), vec![call, output]),
        ("anthropic", block.clone(), vec![used.clone(), result(json!("r"))]),
    ];
    for (form, right, rest) in &histories {
        for given in [&chat(data), &item(data), &block, &mcp].into_iter().chain(&of_frameworks) {
            let history = [vec![says(given)], rest.clone()].concat();
            let (out, faults) = sanitized(form, &history);
            assert_eq!(out[0], says(right), "{form}");
            assert_eq!(faults.len(), usize::from(given != right), "{form}: {faults:?}");
        }
    }
    // A path or an id is no data, a caption would be lost, and the API takes no other file.
    for kept in [
        json!({"type": "image", "image": "a.png", "mediaType": "image/png"}),
        json!({"type": "image", "image": "images/cat", "mediaType": "image/png"}),
        json!({"type": "image", "data": "größe", "mimeType": "image/png"}),
        json!({"type": "file", "data": "file-abc123", "mediaType": "application/pdf"}),
        json!({"type": "file", "data": "", "mediaType": "application/pdf"}),
        json!({"type": "file", "data": "AAAA", "mediaType": "audio/mpeg"}),
        json!({"type": "file", "url": "https://example.org/a.html"}),
        json!({"type": "image", "url": "https://example.org/a.png", "alt": "cat"}),
        json!({"type": "image", "url": "data:image/svg+xml,<image href='data:image/png;base64,AA=='/>"}),
    ] {
        let (out, _) = sanitized("anthropic", &[says(&kept), used.clone(), result(json!("r"))]);
        assert_eq!(out[0]["content"][0]["text"], kept.to_string());
    }
    let whole = [says(&block), json!({"role": "assistant", "content": "x"})];
    assert_eq!(sanitized("anthropic", &whole), (whole.to_vec(), Vec::new()));
    // An address, and images in results.
    let web = "https://example.org/a.png";
    for given in [chat(web), json!({"type": "file", "data": web, "mediaType": "image/png"})] {
        let (out, _) = sanitized("anthropic", &[says(&given), used.clone(), result(json!("r"))]);
        assert_eq!(out[0]["content"][0]["source"], json!({"type": "url", "url": web}));
    }
    let (out, faults) =
        sanitized("anthropic", &[user("hi"), used, result(json!([chat(data), mcp]))]);
    assert_eq!((&out[2], faults.len()), (&result(json!([block, block])), 1));
    let (out, _) = sanitized(
        "openai_chat",
        &[user("hi"), asks, json!({"role": "tool", "tool_call_id": "a", "content": [mcp]})],
    );
    assert_eq!(out[3]["content"][1], chat(data));
}

#[test]
fn a_name_of_a_speaker_or_tool_that_the_api_refuses_is_corrected() {
    let named = |name: &str| json!({"role": "user", "name": name, "content": "hi"});
    let (out, faults) = sanitized("plain", &[named("John <Doe>"), named("größe.x")]);
    assert_eq!(out, [named("John__Doe_"), named("größe.x")]);
    assert_eq!(faults, ["message 0: a name that the provider refuses: corrected"]);
    // A name that is removed with its message is not corrected.
    let empty = json!({"role": "user", "name": "John Doe", "content": []});
    let (out, faults) = sanitized("plain", &[named("x"), empty]);
    assert_eq!(out, [named("x")]);
    assert_eq!(faults, ["message 1: an empty message or text block: removed"]);
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]});
    for (given, right) in [("my.tool", "my_tool"), (&"x".repeat(201), &"x".repeat(128))] {
        let used = |name: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": name, "input": {}}]});
        let (out, faults) = sanitized("anthropic", &[user("hi"), used(given), result.clone()]);
        assert_eq!(out[1..], [used(right), result.clone()]);
        assert_eq!(faults, ["message 1: a name that the provider refuses a: corrected"]);
    }
}

/// "A maximum of 4 blocks with cache_control may be provided."
#[test]
fn only_the_last_four_marks_of_the_cache_are_kept() {
    let mark = json!({"type": "ephemeral"});
    let text = |marked: bool| match marked {
        true => json!({"type": "text", "text": "x", "cache_control": mark}),
        false => json!({"type": "text", "text": "x"}),
    };
    let used = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let history = |marks: [bool; 6]| {
        let [one, two, three, four, five, six] = marks.map(text);
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": [four, five]});
        [
            json!({"role": "user", "content": [one, two, three]}),
            used.clone(),
            json!({"role": "user", "content": [result, six]}),
        ]
    };
    let (out, faults) = sanitized("anthropic", &history([true; 6]));
    let right = history([false, false, true, true, true, true]);
    assert_eq!(out, right);
    assert_eq!(faults, ["message 0: more marks of the cache than the provider takes: corrected"]);
    assert_eq!(sanitized("anthropic", &right), (right.to_vec(), Vec::new()));
}

/// "Expected an ID that begins with 'fc'." and "Duplicate item found with id rs_1."
#[test]
fn ids_of_items_that_the_responses_api_refuses_are_removed() {
    let call = |id: &str| json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "id": id});
    let says = |id: &str, text: &str| json!({"type": "message", "role": "assistant", "content": text, "id": id});
    let thinks = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "r"});
    let history = [
        user("hi"),
        thinks.clone(),
        call("call_1"),
        output.clone(),
        thinks.clone(),
        says("msg_1", "x"),
        says("msg_1", "y"),
        says("__fake_id__", "z"),
    ];
    let without = |mut item: Value| {
        item.as_object_mut().unwrap().remove("id");
        item
    };
    let (out, faults) = sanitized("openai_responses", &history);
    let right = [
        user("hi"),
        thinks,
        without(call("")),
        output,
        says("msg_1", "x"),
        without(says("", "y")),
        without(says("", "z")),
    ];
    assert_eq!(out, right);
    assert_eq!(
        faults,
        [
            "message 2: an id that the provider refuses call_1: corrected",
            "message 4: an item with the id of an earlier one rs_1: removed",
            "message 6: an item with the id of an earlier one msg_1: corrected",
            "message 7: an id that the provider refuses __fake_id__: corrected",
        ]
    );
    assert_eq!(sanitized("openai_responses", &right), (right.to_vec(), Vec::new()));
}

/// Mistral's thinking is a list of blocks, and only Anthropic's has a signature.
#[test]
fn thinking_of_mistral_is_kept() {
    let thinks = json!({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]});
    let answer = json!({"role": "assistant", "content": [thinks, {"type": "text", "text": "x"}]});
    let history = [user("hi"), answer];
    assert_eq!(sanitized("plain", &history), (history.to_vec(), Vec::new()));
}

/// Lists and blocks within others overflowed the stack.
#[test]
fn nested_blocks_and_lists_are_searched_to_a_limit() {
    let nested =
        |open: &str, inner: &str, close: &str| open.repeat(50_000) + inner + &close.repeat(50_000);
    let done = |texts: &[String]| sanitize_history(texts, &SanitizeOptions::default());
    let block = nested(r#"{"type":"text","text":"x","content":["#, r#"{"cache_control":{}}"#, "]}");
    let used =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}"#;
    let result = r#"{"type":"tool_result","tool_use_id":"a","content":"r"}"#;
    let answer = format!(r#"{{"role":"user","content":[{result},{block}]}}"#);
    let mut history = [user("hi").to_string(), used.to_owned(), answer];
    let out = done(&history).unwrap().messages;
    // The API does not know the field with the nested blocks.
    history[2] = format!(r#"{{"role":"user","content":[{result},{{"type":"text","text":"x"}}]}}"#);
    assert_eq!(out, history);
    // What is too deep to be searched may be a message.
    let list = nested("[", "", "]");
    for lost in [list.clone(), format!(r#"{{"content":{list}}}"#)] {
        let found = done(&[user("hi").to_string(), lost]);
        assert!(matches!(found, Err(SanitizeError::UnknownForm { index: 1, .. })));
    }
}

/// The call of a result may be an item that the provider stored: `previous_response_id` names it
/// or, in the history, an item reference. Such a result became a text.
#[test]
fn a_result_of_a_stored_call_is_kept() {
    let refers = |id: &str| json!({"type": "item_reference", "id": id});
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": "r"});
    let done = |history: &[Value], continues: bool| {
        let texts: Vec<String> = history.iter().map(Value::to_string).collect();
        let options = SanitizeOptions { continues, ..SanitizeOptions::default() };
        sanitize_history(&texts, &options).unwrap()
    };
    assert!(done(&[output.clone(), user("hi")], true).is_clean());
    assert!(!done(&[output.clone(), user("hi")], false).is_clean());
    assert!(!done(&[output.clone(), refers("fc_1")], false).is_clean());
    let whole = [user("hi"), refers("rs_1"), refers("fc_1"), output];
    assert!(done(&whole, false).is_clean());
    // "Duplicate item found with id rs_1."
    let thinks = json!({"type": "reasoning", "id": "rs_2", "summary": []});
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "call_id": "a", "output": "r"});
    let rest = [thinks, call, result];
    let repeated = [refers("rs_1"), refers("rs_2")];
    let history = [whole.to_vec(), rest.to_vec(), repeated.to_vec()].concat();
    let faults: Vec<String> =
        done(&history, false).faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "message 7: an item with the id of an earlier one rs_1: removed",
            "message 8: an item with the id of an earlier one rs_2: removed",
        ]
    );
    let texts: Vec<Value> =
        done(&history, false).messages.iter().map(|text| text.parse().unwrap()).collect();
    assert_eq!(texts, [whole.to_vec(), rest.to_vec()].concat());
}

#[test]
fn a_request_says_whether_it_continues_stored_items() {
    let continues = |text: &str| HistoryDocument::parse(text).unwrap().continues();
    assert!(continues(r#"{"previous_response_id":"resp_1","input":[{"type":"x"}]}"#));
    assert!(continues(r#"{"conversation":{"id":"conv_1"},"input":[{"type":"x"}]}"#));
    assert!(!continues(r#"{"previous_response_id":null,"input":[{"type":"x"}]}"#));
    assert!(!continues(r#"[{"type":"x"}]"#));
}

/// "Expected an ID that begins with 'ctc'.", "string too long", and a missing `summary`.
#[test]
fn items_are_corrected_where_the_responses_api_refuses_them() {
    let item = |kind: &str, id: &str| match kind {
        "custom_tool_call" => {
            json!({"type": kind, "id": id, "call_id": "a", "name": "f", "input": "x"})
        }
        "custom_tool_call_output" => {
            json!({"type": kind, "id": id, "call_id": "a", "output": "r"})
        }
        kind => json!({"type": kind, "id": id, "role": "assistant", "content": "x"}),
    };
    let long = format!("msg_{}", "x".repeat(61));
    let given = ["ctc_1", "ctco_1", "msg_1"].map(str::to_owned);
    for (at, refused) in [(0, "fc_1"), (1, "fc_1"), (2, long.as_str()), (2, ""), (2, "msg_a:b")] {
        let mut ids = given.clone();
        refused.clone_into(&mut ids[at]);
        let kinds = ["custom_tool_call", "custom_tool_call_output", "message"];
        let items: Vec<Value> = kinds.iter().zip(&ids).map(|(kind, id)| item(kind, id)).collect();
        let (out, faults) = sanitized("openai_responses", &items);
        assert!(out[at].get("id").is_none() && faults.len() == 1, "{refused}: {faults:?}");
        assert_eq!(out.iter().filter(|item| item.get("id").is_some()).count(), 2);
    }
    let whole: Vec<Value> = vec![
        user("hi"),
        json!({"type": "compaction_summary", "encrypted_content": "x"}),
        json!({"type": "reasoning", "id": "rs_1", "summary": []}),
        json!({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}),
        item("message", "msg_1"),
    ];
    assert_eq!(sanitized("openai_responses", &whole), (whole.clone(), Vec::new()));
    for (given, right) in
        [(Value::Null, json!([])), (json!("s"), json!([{"type": "summary_text", "text": "s"}]))]
    {
        let mut history = whole.clone();
        history[2]["summary"] = given;
        let (out, faults) = sanitized("openai_responses", &history);
        assert_eq!((&out[2]["summary"], faults.len()), (&right, 1));
    }
}

/// MCP and other APIs have other blocks in a result, and the provider refuses them.
#[test]
fn blocks_of_a_result_get_a_form_that_the_provider_accepts() {
    let resource = json!({"type": "resource", "resource": {"uri": "file:///a", "text": "r"}});
    let said = |kind: &str| json!({"type": kind, "text": "t"});
    let mcp = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let output =
        |content: Value| json!({"type": "function_call_output", "call_id": "a", "output": content});
    let (out, faults) = sanitized(
        "openai_responses",
        &[call.clone(), output(json!([said("text"), mcp, resource]))],
    );
    assert_eq!(out[1]["output"][0], said("input_text"));
    assert_eq!(out[1]["output"][1]["image_url"], "data:image/png;base64,AA==");
    let kept = json!({"type": "input_text", "text": resource.to_string()});
    assert_eq!((&out[1]["output"][2], faults.len()), (&kept, 1));
    let whole = [call, output(json!([said("input_text")]))];
    assert_eq!(sanitized("openai_responses", &whole), (whole.to_vec(), Vec::new()));
    let used = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let result = |content: Value| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": content}]});
    let (out, faults) =
        sanitized("anthropic", &[user("hi"), used.clone(), result(json!([resource]))]);
    let kept = json!([{"type": "text", "text": resource.to_string()}]);
    assert_eq!((&out[2], faults.len()), (&result(kept), 1));
    let whole = [user("hi"), used, result(json!([]))];
    assert_eq!(sanitized("anthropic", &whole), (whole.to_vec(), Vec::new()));
    let used = json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}]});
    let result = |content: Value| json!({"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": content}}]});
    let hi = json!({"role": "user", "content": [{"text": "hi"}]});
    let (out, faults) = sanitized("bedrock", &[hi, used, result(json!([said("text")]))]);
    assert_eq!((&out[2], faults.len()), (&result(json!([{"text": "t"}])), 1));
}

/// "'image' blocks are not permitted within assistant turns", "Image URLs are only allowed for
/// messages with role 'user'", and "Supported values are: 'output_text' and 'refusal'."
#[test]
fn an_image_in_an_answer_goes_to_a_message_of_the_user() {
    let data = "data:image/png;base64,AA==";
    let chat = json!({"type": "image_url", "image_url": {"url": data}});
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AA=="});
    let block = json!({"type": "image", "source": source});
    let item = json!({"type": "input_image", "image_url": data});
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "r"});
    let used = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "r"});
    let answer = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let mut asks = answer(json!([chat]));
    asks["tool_calls"] = json!([chat_call("a", "{}")]);
    let next = [user("x")];
    let results = json!({"role": "user", "content": [result]});
    for (form, image, history) in [
        ("openai_chat", &chat, vec![asks, tool("a", "r")]),
        ("openai_responses", &item, vec![answer(json!([item])), call, output]),
        ("anthropic", &block, vec![answer(json!([block, used])), results]),
    ] {
        let history = [vec![user("hi")], history, next.to_vec()].concat();
        let (out, faults) = sanitized(form, &history);
        let place = out.iter().position(|one| one["content"][1] == *image);
        assert_eq!(out[place.unwrap()]["role"], "user", "{form}: {out:#?}");
        assert!(!out[1].to_string().contains("AA=="), "{form}: {out:#?}");
        assert_eq!(
            faults,
            ["message 1: an invalid block, or a field that the provider refuses: corrected"],
            "{form}"
        );
        assert_eq!(out.len(), history.len() + 1, "{form}");
    }
}

/// Thinking of other APIs, marks of the cache on thinking, and what a client left in a block of a
/// stream: "Extra inputs are not permitted".
#[test]
fn blocks_that_only_another_api_takes_are_corrected_or_removed() {
    let text = json!({"type": "text", "text": "x"});
    let signed = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let reasons = json!({"type": "reasoning", "text": "hm"});
    let answer = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let mut asks = answer(json!([signed, reasons, text]));
    asks["tool_calls"] = json!([chat_call("a", "{}")]);
    let (out, faults) = sanitized("openai_chat", &[user("hi"), asks, tool("a", "r")]);
    assert_eq!((&out[1]["content"], faults.len()), (&json!([text]), 2));
    let with = |block: &Value, field: &str| {
        let mut block = block.clone();
        block[field] = json!({});
        block
    };
    let refusal = json!({"type": "refusal", "refusal": "no"});
    let history = [
        json!({"role": "user", "content": [signed, text]}),
        answer(json!([with(&signed, "cache_control"), reasons, with(&text, "index"), refusal])),
    ];
    let (out, faults) = sanitized("anthropic", &history);
    let kept = json!({"type": "text", "text": refusal.to_string()});
    let right = [json!({"role": "user", "content": [text]}), answer(json!([signed, text, kept]))];
    assert_eq!((out.as_slice(), faults.len()), (&right[..], 5), "{faults:?}");
    assert_eq!(sanitized("anthropic", &right), (right.to_vec(), Vec::new()));
}

#[test]
fn an_image_that_no_api_takes_as_it_is_is_corrected() {
    let data = "data:image/jpeg;base64,AA==";
    let source = |kind: &str, data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}});
    let used = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]});
    let says = |image: Value| json!({"role": "user", "content": [image]});
    for given in [
        source("image/jpg", "AA=="),
        source("image/jpeg", data),
        json!({"type": "image", "source": {"type": "url", "url": data}}),
        json!({"type": "image_url", "image_url": data}),
    ] {
        let (out, faults) = sanitized("anthropic", &[says(given), used.clone(), result.clone()]);
        assert_eq!((&out[0], faults.len()), (&says(source("image/jpeg", "AA==")), 1));
    }
    let chat = json!({"type": "image_url", "image_url": {"url": data}});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [chat_call("a", "{}")]});
    let given = says(json!({"type": "image_url", "image_url": data}));
    let (out, _) = sanitized("openai_chat", &[given, asks, tool("a", "r")]);
    assert_eq!(out[0], says(chat));
    let part = |data: &str| json!({"role": "user", "parts": [{"inlineData": {"mimeType": "image/jpeg", "data": data}}]});
    // Each address in another one was one step of a recursion.
    for given in [data, &format!("{}AA==", "data:image/png;base64,".repeat(20_000))] {
        let (out, faults) = sanitized("gemini", &[part(given)]);
        assert_eq!((&out[0], faults.len()), (&part("AA=="), 1));
    }
    // An image without data is none.
    let empty = says(source("image/png", ""));
    let (out, faults) = sanitized("anthropic", &[empty, used, result]);
    assert_eq!((&out[0]["content"][0]["type"], faults.len()), (&json!("text"), 1));
}

/// "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
#[test]
fn no_mark_of_the_cache_has_an_hour_after_a_shorter_one() {
    let short = json!({"type": "ephemeral"});
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    let text = |mark: &Value| json!({"type": "text", "text": "x", "cache_control": mark});
    let used = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let history = |marks: [&Value; 4]| {
        let [one, two, three, four] = marks.map(text);
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": [three]});
        [
            json!({"role": "user", "content": [one, two]}),
            used.clone(),
            json!({"role": "user", "content": [result, four]}),
        ]
    };
    let (out, faults) = sanitized("anthropic", &history([&long, &short, &long, &long]));
    let right = history([&long, &short, &short, &short]);
    assert_eq!(out, right);
    assert_eq!(
        faults,
        ["message 2: an invalid block, or a field that the provider refuses: corrected"]
    );
    assert_eq!(sanitized("anthropic", &right), (right.to_vec(), Vec::new()));
}

/// 'Unknown name "id" at contents[1].parts[0]', "tool_use.text: Extra inputs are not permitted",
/// and a null of a database, which the AI SDK refuses.
#[test]
fn fields_of_a_client_are_removed_from_blocks() {
    let part = json!({"text": "hi"});
    let contents = |part: &Value| [json!({"role": "user", "parts": [part]})];
    let call = json!({"type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {}});
    let output = json!({"type": "text", "value": "r"});
    let result = json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "a", "toolName": "f", "output": output}]});
    let asks = |call: &Value| {
        [user("hi"), json!({"role": "assistant", "content": [call]}), result.clone()]
    };
    let used = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    let answer = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]});
    let uses = |used: &Value| {
        [user("hi"), json!({"role": "assistant", "content": [used]}), answer.clone()]
    };
    let with = |block: &Value, field: &str, value: Value| {
        let mut block = block.clone();
        block[field] = value;
        block
    };
    for (form, given, right) in [
        ("gemini", contents(&with(&part, "id", json!("p1"))).to_vec(), contents(&part).to_vec()),
        (
            "ai_sdk",
            asks(&with(&call, "providerExecuted", Value::Null)).to_vec(),
            asks(&call).to_vec(),
        ),
        ("anthropic", uses(&with(&used, "text", json!("x"))).to_vec(), uses(&used).to_vec()),
    ] {
        let (out, faults) = sanitized(form, &given);
        assert_eq!((&out, faults.len()), (&right, 1), "{form}: {faults:?}");
        assert_eq!(sanitized(form, &right), (right.clone(), Vec::new()));
    }
    // A stream of the SDK gives an error as a part of its own.
    let failed = json!({"type": "tool-error", "toolCallId": "a", "toolName": "f", "input": {}, "error": "e"});
    let history = [user("hi"), json!({"role": "assistant", "content": [call, failed]})];
    let (out, _) = sanitized("ai_sdk", &history);
    assert_eq!(out[2]["content"][0]["output"], json!({"type": "error-text", "value": "e"}));
}

#[test]
fn a_file_of_another_api_gets_the_form_of_the_thread() {
    let data = "data:application/pdf;base64,AA==";
    let chat = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": data}});
    let item = json!({"type": "input_file", "filename": "a.pdf", "file_data": data});
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": "AA=="});
    let block = json!({"type": "document", "source": source, "title": "a.pdf"});
    let sdk = json!({"type": "file", "data": "AA==", "mediaType": "application/pdf", "filename": "a.pdf"});
    let langchain = json!({"type": "file", "base64": "AA==", "mime_type": "application/pdf", "filename": "a.pdf"});
    let says = |file: &Value| json!({"role": "user", "content": [file]});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [chat_call("a", "{}")]});
    let used = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]});
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "r"});
    for (form, right, rest) in [
        ("openai_chat", &chat, [asks, tool("a", "r")]),
        ("openai_responses", &item, [call, output]),
        ("anthropic", &block, [used, result]),
    ] {
        for given in [&chat, &item, &block, &sdk, &langchain] {
            let history = [vec![says(given)], rest.to_vec()].concat();
            let (out, faults) = sanitized(form, &history);
            assert_eq!(out[0], says(right), "{form}");
            assert_eq!(faults.len(), usize::from(given != right), "{form}: {faults:?}");
        }
    }
}

/// "messages.1.name: Extra inputs are not permitted", also for a whole answer of the API and for
/// texts of MCP in results.
#[test]
fn fields_that_anthropic_does_not_know_are_removed() {
    let used = json!({"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}});
    let text = json!({"type": "text", "text": "r"});
    let result = json!({"type": "tool_result", "tool_use_id": "a", "content": [text]});
    let whole = [
        user("hi"),
        json!({"role": "assistant", "content": [used]}),
        json!({"role": "user", "content": [result]}),
        json!({"role": "system", "output_config": {"effort": "low"}}),
    ];
    assert_eq!(sanitized("anthropic", &whole), (whole.to_vec(), Vec::new()));
    let config = json!({"effort": "low"});
    for (role, config) in [("user", config.clone()), ("system", json!({}))] {
        let empty = json!({"role": role, "output_config": config});
        let (out, faults) = sanitized("anthropic", &[&whole[..3], &[empty]].concat());
        assert_eq!((&out[..], faults.len()), (&whole[..3], 1), "{faults:?}");
    }
    let marked = |at: usize, path: &str, field: &str, value: Value| {
        let mut history = whole.clone();
        history[at].pointer_mut(path).unwrap()[field] = value;
        history
    };
    for given in [
        marked(0, "", "name", json!("Init")),
        marked(0, "", "output_config", config),
        marked(1, "", "reasoning_details", json!([{"text": "hm"}])),
        marked(1, "/content/0", "status", json!("completed")),
        marked(2, "/content/0", "name", json!("f")),
        marked(2, "/content/0/content/0", "_meta", Value::Null),
        marked(2, "/content/0", "duration_ms", json!(12)),
    ] {
        let (out, faults) = sanitized("anthropic", &given);
        assert_eq!((&out, faults.len()), (&whole.to_vec(), 1), "{faults:?}");
    }
    let mut answer = whole[1].clone();
    for (name, value) in [("id", "msg_1"), ("type", "message"), ("stop_reason", "tool_use")] {
        answer[name] = json!(value);
    }
    let given = [whole[0].clone(), answer, whole[2].clone()];
    let (out, faults) = sanitized("anthropic", &given);
    assert_eq!((&out[1], faults.len()), (&whole[1], 1));
    // A word only labels a result. What other fields say becomes a text in it.
    let given = marked(2, "/content/0", "timestamp", json!("2026-01-01T10:00:00Z"));
    let (out, faults) = sanitized("anthropic", &given);
    assert_eq!((out[2]["content"][0]["content"].clone(), faults.len()), (json!([text]), 1));
    for (name, value, is_said) in [
        ("structuredContent", json!({"a": 1}), true),
        ("error", json!("ENOENT"), true),
        ("output", json!(42), true),
        ("note", json!("今天晴天"), true),
        ("error", json!(true), false),
        ("meta", json!({"id": "a"}), false),
        ("input", json!({"command": "ls"}), false),
        ("output", json!([text]), false),
    ] {
        let given = marked(2, "/content/0", name, value.clone());
        let said = json!({"type": "text", "text": json!({name: value}).to_string()});
        let right = if is_said { json!([text, said]) } else { json!([text]) };
        let (out, faults) = sanitized("anthropic", &given);
        assert_eq!((&out[2]["content"][0]["content"], faults.len()), (&right, 1), "{name}");
    }
    // What the field of another API holds is kept.
    let moved = |block: &Value, from: &str, to: &str| {
        let mut block = block.clone();
        block[to] = block[from].take();
        block.as_object_mut().unwrap().remove(from);
        block
    };
    let given = [
        user("hi"),
        json!({"role": "assistant", "content": [moved(&used, "input", "arguments")]}),
        json!({"role": "user", "content": [moved(&result, "content", "output")]}),
    ];
    assert_eq!(sanitized("anthropic", &given).0, whole[..3]);
}

/// "The image was specified using the image/png media type, but the image appears to be a
/// image/jpeg image" and "media_type: Input should be 'image/jpeg', 'image/png', ...".
#[test]
fn an_image_has_the_type_that_its_data_show() {
    let block = |kind: &str, data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}});
    let used = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let history = |image: &Value| {
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": [image]});
        [
            json!({"role": "user", "content": [image]}),
            used.clone(),
            json!({"role": "user", "content": [result]}),
        ]
    };
    let shown = [
        ("image/jpeg", "/9j/4AAQSkZJRg=="),
        ("image/png", "iVBORw0KGgoAAAANSUhEUg=="),
        ("image/gif", "R0lGODlhAQABAIAAAA=="),
        ("image/webp", "UklGRiIAAABXRUJQVlA4IA=="),
    ];
    for (kind, data) in shown {
        let right = history(&block(kind, data));
        assert_eq!(sanitized("anthropic", &right), (right.to_vec(), Vec::new()));
        for given in ["image/png", "image/jpeg", "image/bmp"].iter().filter(|one| **one != kind) {
            let (out, faults) = sanitized("anthropic", &history(&block(given, data)));
            assert_eq!((&out, faults.len()), (&right.to_vec(), 2), "{faults:?}");
        }
        let image = |format: &str| json!({"image": {"format": format, "source": {"bytes": data}}});
        let history = |format: &str| {
            [
                json!({"role": "user", "content": [image(format)]}),
                json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}]}),
                json!({"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [image(format)]}}]}),
            ]
        };
        let right = history(&kind["image/".len()..]);
        assert_eq!(sanitized("bedrock", &right), (right.to_vec(), Vec::new()));
        assert_eq!(sanitized("bedrock", &history("JPG")).0, right);
    }
    let mut marked = block("image/png", shown[0].1);
    for field in ["cache_control", "transformations"] {
        marked[field] = json!({"type": "ephemeral"});
    }
    let mut right = marked.clone();
    right["source"]["media_type"] = json!("image/jpeg");
    assert_eq!(sanitized("anthropic", &history(&marked)).0, history(&right));
    let right = history(&block("image/png", "AAAA"));
    assert_eq!(sanitized("anthropic", &history(&block("image/PNG", "AAAA"))).0, right);
    // An image that the API does not take is kept as a text, as is a file.
    let svg = block("image/svg+xml", "PHN2Zz4=");
    let mut sheet = block("application/msexcel", "AA==");
    sheet["type"] = json!("document");
    for refused in [svg, sheet] {
        let (out, faults) = sanitized("anthropic", &history(&refused));
        let text = json!({"type": "text", "text": refused.to_string()});
        assert_eq!((&out, faults.len()), (&history(&text).to_vec(), 2), "{faults:?}");
    }
}

/// A status of another API becomes a mark of a failure, or says nothing: no result claims an
/// outcome that its status does not give.
#[test]
fn a_status_of_another_api_claims_no_other_outcome() {
    let failed = ["FAILED", "failure", "denied", "rejected", "cancelled", "timeout", "Error"];
    let succeeded = ["SUCCESS", "ok", "succeeded"];
    let open = ["deferred", "transferred", "no_error", "in_progress", "completed", ""];
    let used = json!({"toolUse": {"toolUseId": "a", "name": "f", "input": {}}});
    let bedrock = |status: &str| {
        let result = json!({"toolUseId": "a", "content": [{"text": "r"}], "status": status});
        let history = [
            json!({"role": "user", "content": [{"text": "hi"}]}),
            json!({"role": "assistant", "content": [used]}),
            json!({"role": "user", "content": [{"toolResult": result}]}),
        ];
        sanitized("bedrock", &history).0[2]["content"][0]["toolResult"]["status"].clone()
    };
    let used = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    let anthropic = |field: &str, status: Value| {
        let mut result = json!({"type": "tool_result", "tool_use_id": "a", "content": "r"});
        result[field] = status;
        let history = [
            user("hi"),
            json!({"role": "assistant", "content": [used]}),
            json!({"role": "user", "content": [result]}),
        ];
        sanitized("anthropic", &history).0[2]["content"][0].clone()
    };
    let plain = json!({"type": "tool_result", "tool_use_id": "a", "content": "r"});
    let mut marked = plain.clone();
    marked["is_error"] = json!(true);
    for status in failed {
        assert_eq!(bedrock(status), "error", "{status}");
        assert_eq!(anthropic("status", json!(status)), marked, "{status}");
    }
    for status in succeeded {
        assert_eq!(bedrock(status), "success", "{status}");
        assert_eq!(anthropic("status", json!(status)), plain, "{status}");
    }
    for status in open {
        assert_eq!(bedrock(status), Value::Null, "{status}");
        assert_eq!(anthropic("status", json!(status)), plain, "{status}");
    }
    assert_eq!(anthropic("isError", json!(true)), marked);
}

/// "server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"
#[test]
fn an_id_of_a_server_tool_begins_as_the_api_requires() {
    let history = |id: &str| {
        let used = json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}});
        let result = json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []});
        let text = json!({"type": "text", "text": "x"});
        [user("hi"), json!({"role": "assistant", "content": [used, result, text]})]
    };
    for (given, right) in [
        ("toolu_1", "srvtoolu_toolu_1"),
        ("srvtoolu_a-b", "srvtoolu_a_b"),
        ("srvtoolu_", "srvtoolu__"),
    ] {
        let (out, faults) = sanitized("anthropic", &history(given));
        assert_eq!((&out, faults.len()), (&history(right).to_vec(), 2), "{faults:?}");
    }
}

/// Version 4 of the AI SDK marks a failure beside the result, and version 5 in its output.
#[test]
fn a_marked_failure_of_the_ai_sdk_stays_one() {
    let call = json!({"type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {}});
    for (content, kind) in [(json!("boom"), "error-text"), (json!({"m": 1}), "error-json")] {
        let result = json!({"type": "tool-result", "toolCallId": "a", "toolName": "f",
            "content": content, "isError": true});
        let history = [
            user("hi"),
            json!({"role": "assistant", "content": [call]}),
            json!({"role": "tool", "content": [result]}),
        ];
        let (out, _) = sanitized("ai_sdk", &history);
        assert_eq!(out[2]["content"][0]["output"], json!({"type": kind, "value": content}));
    }
}

/// OpenRouter takes marks of the cache in chat completions, and gives fields that Anthropic
/// refuses.
#[test]
fn marks_of_the_cache_beside_fields_of_another_api_do_not_show_anthropic() {
    let text = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    let marked = json!({"role": "user", "content": [text]});
    let mut answer = json!({"role": "assistant", "content": "y"});
    let history = [marked.clone(), answer.clone(), user("z")];
    assert_eq!(sanitized("anthropic", &history), (history.to_vec(), Vec::new()));
    answer["reasoning_details"] = json!([{"text": "hm"}]);
    let history = [marked, answer, user("z")];
    assert_eq!(sanitized("plain", &history), (history.to_vec(), Vec::new()));
}

/// The marks of the tools and the instructions of a request count too.
#[test]
fn marks_of_the_cache_count_together_with_those_of_the_request() {
    let mark = json!({"type": "ephemeral"});
    let text = json!({"type": "text", "text": "x", "cache_control": mark});
    let history = [
        json!({"role": "user", "content": [text, text]}),
        json!({"role": "assistant", "content": "y"}),
        json!({"role": "user", "content": [text]}),
    ];
    for (tools, system, left) in [(0, 1, 3), (1, 1, 2), (2, 3, 0)] {
        let used = json!({"name": "f", "input_schema": {}, "cache_control": mark});
        let request = json!({"tools": vec![used; tools], "system": vec![text.clone(); system],
            "messages": history});
        let document = HistoryDocument::parse(&request.to_string()).unwrap();
        let marks = document.cache_marks();
        assert_eq!((marks.count, marks.has_short), (tools + system, true));
        let options = SanitizeOptions { marks, ..SanitizeOptions::default() };
        let done = sanitize_history(&document.messages, &options).unwrap();
        assert_eq!(done.messages.concat().matches("cache_control").count(), left);
        assert_eq!(done.is_clean(), left == 3);
    }
    // "A maximum of 4 blocks with cache_control may be provided. Found 5."
    let request = json!({"system": [text], "messages": history, "cache_control": mark});
    let marks = HistoryDocument::parse(&request.to_string()).unwrap().cache_marks();
    assert_eq!((marks.count, marks.has_short), (2, true));
    let request = json!({"messages": history, "cache_control": mark});
    let marks = HistoryDocument::parse(&request.to_string()).unwrap().cache_marks();
    assert_eq!((marks.count, marks.has_short), (1, false));
    assert_eq!(sanitized("anthropic", &history), (history.to_vec(), Vec::new()));
}

/// "oneof field 'data' is already set. Cannot set 'text'"
#[test]
fn a_part_of_gemini_with_two_values_becomes_two_parts() {
    let call = json!({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "AA=="});
    let result =
        json!({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]});
    let history = |parts: Value| {
        let asks = json!({"role": "model", "parts": parts});
        [json!({"role": "user", "parts": [{"text": "hi"}]}), asks, result.clone()]
    };
    for (said, right) in [("I look", json!([{"text": "I look"}, call])), ("", json!([call]))] {
        let mut both = call.clone();
        both["text"] = json!(said);
        let (out, _) = sanitized("gemini", &history(json!([both])));
        assert_eq!(out, history(right));
    }
    let mut twice = call.clone();
    twice["function_call"] = twice["functionCall"].clone();
    assert_eq!(sanitized("gemini", &history(json!([twice]))).0, history(json!([call])));
    let mut whole = call;
    whole["text"] = Value::Null;
    let whole = history(json!([whole]));
    assert_eq!(sanitized("gemini", &whole), (whole.to_vec(), Vec::new()));
}

/// Items of the newest Responses API, and fields that OpenAI's client adds to its answers.
#[test]
fn newer_items_are_kept_and_parsed_values_are_removed() {
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "r"});
    let text = json!({"type": "output_text", "text": "x", "annotations": []});
    let whole = [
        json!({"type": "additional_tools", "role": "developer", "tools": []}),
        json!({"type": "configuration_update", "reasoning": {"effort": "low"}}),
        user("hi"),
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}]}),
        json!({"type": "program", "id": "prog_1", "call_id": "p", "code": "1", "fingerprint": "f"}),
        call,
        output,
        json!({"type": "program_output", "id": "po_1", "call_id": "p", "result": "1", "status": "completed"}),
        json!({"type": "message", "role": "assistant", "content": [text]}),
    ];
    assert_eq!(sanitized("openai_responses", &whole), (whole.to_vec(), Vec::new()));
    let mut given = whole.clone();
    given[3]["summary"] = json!(["s"]);
    // "Unknown parameter: 'input[3].status'".
    given[3]["status"] = Value::Null;
    given[3]["content"] = Value::Null;
    given[5]["parsed_arguments"] = json!({});
    given[8]["content"][0]["parsed"] = Value::Null;
    let (out, faults) = sanitized("openai_responses", &given);
    assert_eq!((&out, faults.len()), (&whole.to_vec(), 3), "{faults:?}");
}

#[test]
fn a_name_of_a_refused_length_is_cut_or_removed() {
    let named = |name: &str| json!({"role": "user", "name": name, "content": "hi"});
    let (out, faults) = sanitized("plain", &[named(&"x".repeat(65)), named("")]);
    assert_eq!(out, [named(&"x".repeat(64)), user("hi")]);
    assert_eq!(faults.len(), 2);
    // The result of an older call may be null.
    let call = json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}});
    let result = json!({"role": "function", "name": "f", "content": null});
    let whole = [user("hi"), call, result];
    assert_eq!(sanitized("openai_chat", &whole), (whole.to_vec(), Vec::new()));
}

/// Regression: a result whose id was in a field of another API was matched by its order, so each of
/// two parallel calls got the result of the other. Arguments and contents in such fields were lost.
#[test]
fn ids_and_contents_in_fields_of_other_apis_are_found() {
    let input = json!({"x": 1});
    let used =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": "f", name: input});
    let result = |field: &str, id: &str, name: &str, said: &str| json!({"type": "tool_result", field: id, name: said});
    let anthropic = |field: &str, name: &str, arguments: &str| {
        let results = [result(field, "b", name, "second"), result(field, "a", name, "first")];
        vec![
            user("hi"),
            json!({"role": "assistant", "content": [used("a", arguments), used("b", arguments)]}),
            json!({"role": "user", "content": results}),
        ]
    };
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": "f", name: "{}"}});
    let chat = |field: &str, name: &str, arguments: &str| {
        let result = |id: &str, said: &str| json!({"role": "tool", field: id, name: said});
        let asks = json!([call("a", arguments), call("b", arguments)]);
        vec![
            user("hi"),
            json!({"role": "assistant", "content": null, "tool_calls": asks}),
            result("b", "second"),
            result("a", "first"),
        ]
    };
    let item = |id: &str, name: &str| json!({"type": "function_call", "call_id": id, "name": "f", name: "{}"});
    let items = |field: &str, name: &str, arguments: &str| {
        let output =
            |id: &str, said: &str| json!({"type": "function_call_output", field: id, name: said});
        let calls = [item("a", arguments), item("b", arguments)];
        [&[user("hi")][..], &calls, &[output("b", "second"), output("a", "first")]].concat()
    };
    let bedrock = |field: &str, name: &str, arguments: &str| {
        let used = |id: &str| json!({"toolUse": {"toolUseId": id, "name": "f", arguments: input}});
        let result =
            |id: &str, said: &str| json!({"toolResult": {field: id, name: [{"text": said}]}});
        vec![
            json!({"role": "user", "content": [{"text": "hi"}]}),
            json!({"role": "assistant", "content": [used("a"), used("b")]}),
            json!({"role": "user", "content": [result("b", "second"), result("a", "first")]}),
        ]
    };
    let lang = |field: &str, name: &str, arguments: &str| {
        let call = |id: &str| json!({"id": id, "name": "f", arguments: input, "type": "tool_call"});
        let result = |id: &str, said: &str| json!({"type": "tool", field: id, name: said});
        vec![
            json!({"type": "human", "content": "hi"}),
            json!({"type": "ai", "content": "", "tool_calls": [call("a"), call("b")]}),
            result("b", "second"),
            result("a", "first"),
        ]
    };
    type History<'h> = &'h dyn Fn(&str, &str, &str) -> Vec<Value>;
    let forms: [(&str, History<'_>, [&str; 3], [&str; 3]); 5] = [
        ("anthropic", &anthropic, ["tool_use_id", "content", "input"], ["id", "output", "args"]),
        (
            "openai_chat",
            &chat,
            ["tool_call_id", "content", "arguments"],
            ["call_id", "result", "parameters"],
        ),
        (
            "openai_responses",
            &items,
            ["call_id", "output", "arguments"],
            ["tool_call_id", "content", "input"],
        ),
        (
            "bedrock",
            &bedrock,
            ["toolUseId", "content", "input"],
            ["tool_use_id", "result", "arguments"],
        ),
        (
            "langchain_flat",
            &lang,
            ["tool_call_id", "content", "args"],
            ["toolCallId", "output", "arguments"],
        ),
    ];
    for (form, history, [id, content, arguments], [other_id, other_content, other_arguments]) in
        forms
    {
        let right = history(id, content, arguments);
        assert_eq!(sanitized(form, &right), (right.clone(), Vec::new()));
        for given in [
            history(other_id, content, arguments),
            history(id, other_content, arguments),
            history(id, content, other_arguments),
        ] {
            assert_eq!(sanitized(form, &given).0, right, "{form}");
        }
    }
    // A result whose own id is the one of its call.
    for (form, given, field) in [
        ("openai_chat", chat("id", "content", "arguments"), "tool_call_id"),
        ("openai_responses", items("id", "output", "arguments"), "call_id"),
    ] {
        let (out, _) = sanitized(form, &given);
        let [.., second, first] = &out[..] else { panic!("{out:?}") };
        assert_eq!((&second[field], &first[field]), (&json!("b"), &json!("a")));
    }
    // LangChain's calls in OpenAI's form, and an item that has only its own id.
    let mut given = lang("tool_call_id", "content", "args");
    let right = given.clone();
    for (place, id) in ["a", "b"].into_iter().enumerate() {
        given[1]["tool_calls"][place] = chat_call(id, "{\"x\":1}");
    }
    assert_eq!(sanitized("langchain_flat", &given).0, right);
    let mut given = items("call_id", "output", "arguments");
    let right = given.clone();
    for call in &mut given[1..3] {
        call["id"] = call["call_id"].take();
    }
    assert_eq!(sanitized("openai_responses", &given).0, right);
}
