//! Tool uses, sub-agents, notices, tokens, and the messages that a compaction kept.

use super::*;

#[test]
fn uses_of_other_tools_keep_their_input() {
    let mcp = json!({"type": "function_call", "namespace": "mcp__docs", "name": "find", "call_id": "m1",
        "arguments": "{\"query\":\"lexer\",\"limit\":3}"});
    let mcp_end = json!({"type": "mcp_tool_call_end", "call_id": "m1", "duration": {"secs": 1, "nanos": 0},
        "invocation": {"server": "docs", "tool": "find", "arguments": {"query": "lexer"}},
        "result": {"Ok": {"content": []}}});
    let in_script = json!({"type": "mcp_tool_call_end", "call_id": "exec-3", "duration": {"secs": 0, "nanos": 0},
        "invocation": {"server": "docs", "tool": "open", "arguments": {"path": "/w/a.md"}},
        "result": {"Err": "no such page"}});
    let search = json!({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "rust zst"}});
    let searched = json!({"type": "web_search_end", "call_id": "ws_1", "query": "rust zst", "action": {"type": "search", "query": "rust zst"}});
    let script = [
        meta(),
        call(1, "view_image", "v1", &json!({"path": "/w/a.png"})),
        output(2, "v1", &json!("attached local image path")),
        item(3, &mcp),
        at(4, "event_msg", &mcp_end),
        output(5, "m1", &json!("found")),
        at(6, "event_msg", &in_script),
        at(7, "event_msg", &searched),
        item(7, &search),
        call(8, "view_image", "v2", &json!({"path": "/w/b.png"})),
        output(9, "v2", &json!("unsupported call: view_image")),
    ]
    .concat();
    let piece = read(&script);
    let actual: Vec<_> = of_kind(&piece, Kind::Tool)
        .iter()
        .map(|fact| (text(fact, "tool").unwrap(), text(fact, "outcome").unwrap()))
        .collect();
    let expected = [
        ("view_image", "finished"),
        ("mcp__docs__find", "finished"),
        ("mcp__docs__open", "failed"),
        ("web_search", "finished"),
        ("view_image", "failed"),
    ];
    assert_eq!(actual, expected.map(|(tool, outcome)| (tool.to_owned(), outcome.to_owned())));
    let tools = of_kind(&piece, Kind::Tool);
    assert_eq!(text(tools[0], "path").as_deref(), Some("/w/a.png"));
    assert_eq!(text(tools[1], "query").as_deref(), Some("lexer"));
    assert_eq!(field(tools[1], "duration_ms"), Some(&1000_i64.into()));
    assert_eq!(text(tools[2], "reason").as_deref(), Some("no such page"));
    assert_eq!(text(tools[3], "query").as_deref(), Some("rust zst"));
    check_same_in_pieces(&script);
}

/// Regression: a result that is only an image left no fact.
#[test]
fn an_image_and_a_cancelled_question_end_their_calls() {
    let image = json!([{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]);
    let script = [
        meta(),
        call(1, "view_image", "v1", &json!({"path": "/w/a.png"})),
        output(2, "v1", &image),
        call(3, "request_user_input", "r1", &json!({"questions": []})),
        output(4, "r1", &json!("request_user_input was cancelled before receiving a response")),
    ];
    let piece = read(&script.concat());
    let tools = of_kind(&piece, Kind::Tool).into_iter();
    let outcomes: Vec<_> = tools.map(|fact| text(fact, "outcome").unwrap()).collect();
    assert_eq!(outcomes, ["finished", "interrupted"]);
}

#[test]
fn questions_refused_edits_and_refused_agents_are_uses_of_tools() {
    let asks = json!({"questions": [{"id": "q1", "header": "H", "question": "Which one?", "options": []}]});
    let patch = json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "p1",
        "input": "*** Begin Patch\n*** Delete File: src/a.rs\n*** End Patch"});
    let refused = json!({"type": "custom_tool_call_output", "call_id": "p1", "output": "patch rejected by user"});
    let script = [
        meta(),
        call(1, "request_user_input", "r1", &asks),
        output(2, "r1", &json!("{\"answers\":{\"q1\":{\"answers\":[\"the first\",\"as now\"]}}}")),
        item(3, &patch),
        item(4, &refused),
        call(5, "spawn_agent", "s1", &json!({"message": "look"})),
        output(6, "s1", &json!("rejected by user")),
    ];
    let piece = read(&script.concat());
    let tools = of_kind(&piece, Kind::Tool);
    let actual: Vec<_> = tools
        .iter()
        .map(|fact| {
            (text(fact, "tool").unwrap(), text(fact, "outcome").unwrap(), text(fact, "reason"))
        })
        .collect();
    let expect = |tool: &str, outcome: &str, reason: Option<&str>| {
        (tool.to_owned(), outcome.to_owned(), reason.map(str::to_owned))
    };
    assert_eq!(
        actual,
        [
            expect("request_user_input", "finished", None),
            expect("apply_patch", "refused", Some("patch rejected by user")),
            expect("spawn_agent", "refused", Some("rejected by user")),
        ]
    );
    let answers = Value::from([("Which one?", "the first, as now".into())]);
    assert_eq!(field(tools[0], "answers"), Some(&answers));
    assert_eq!(text(tools[1], "path").as_deref(), Some("src/a.rs"));
    assert_eq!((of_kind(&piece, Kind::Code).len(), of_kind(&piece, Kind::Agent).len()), (0, 0));
}

#[test]
fn start_and_end_of_a_sub_agent_are_read_from_the_parent_rollout() {
    let spawn = json!({"agent_type": "explorer", "message": "find the lexer"});
    let script = [
        meta(),
        call(1, "spawn_agent", "s1", &spawn),
        output(2, "s1", &json!("{\"agent_id\":\"a-1\",\"nickname\":\"Ada\"}")),
        call(3, "wait_agent", "w1", &json!({"ids": ["a-1"]})),
        output(
            9,
            "w1",
            &json!(
                "{\"status\":{\"a-1\":{\"completed\":\"it is in lex.rs\"}},\"timed_out\":false}"
            ),
        ),
        call(10, "close_agent", "c1", &json!({"id": "a-1"})),
        output(11, "c1", &json!("{\"status\":{\"completed\":\"it is in lex.rs\"}}")),
    ];
    let piece = read(&script.concat());
    let actual: Vec<_> = of_kind(&piece, Kind::Agent)
        .iter()
        .map(|fact| (fact.id.as_str(), text(fact, "status").unwrap(), text(fact, "result")))
        .collect();
    assert_eq!(
        actual,
        [
            ("a-1", "running".to_owned(), None),
            ("a-1", "completed".to_owned(), Some("it is in lex.rs".to_owned())),
        ]
    );
    let first = of_kind(&piece, Kind::Agent)[0];
    assert_eq!(text(first, "prompt").as_deref(), Some("find the lexer"));
    assert_eq!(of_kind(&piece, Kind::Tool).len(), 0);
}

#[test]
fn other_events_of_a_session_become_notices() {
    let script = [
        meta(),
        at(1, "turn_context", &json!({"model": "gpt-8"})),
        at(2, "turn_context", &json!({"model": "gpt-8"})),
        at(3, "turn_context", &json!({"model": "gpt-9"})),
        at(
            4,
            "event_msg",
            &json!({"type": "turn_aborted", "turn_id": "t", "reason": "interrupted"}),
        ),
        at(5, "event_msg", &json!({"type": "thread_name_updated", "thread_name": "The lexer"})),
    ];
    let piece = read(&script.concat());
    let actual: Vec<_> = of_kind(&piece, Kind::Notice)
        .iter()
        .map(|fact| (text(fact, "type").unwrap(), text(fact, "text").unwrap()))
        .collect();
    let expected = [("model", "gpt-9"), ("interrupted", "interrupted")];
    assert_eq!(actual, expected.map(|(kind, text)| (kind.to_owned(), text.to_owned())));
    assert_eq!(piece.session.unwrap().title.as_deref(), Some("The lexer"));
}

#[test]
fn a_message_has_the_tokens_of_its_response() {
    let usage = |input: u32, cached: u32, output: u32| json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "total_tokens": input + output});
    let count = |second, total: &Json, last: &Json| {
        let info = json!({"total_token_usage": total, "last_token_usage": last});
        at(second, "event_msg", &json!({"type": "token_count", "info": info, "rate_limits": null}))
    };
    let says = |second, id: &str| {
        item(
            second,
            &json!({"type": "message", "role": "assistant", "id": id,
            "content": [{"type": "output_text", "text": "ok"}]}),
        )
    };
    let script = [
        meta(),
        says(1, "m1"),
        count(2, &usage(100, 40, 7), &usage(100, 40, 7)),
        // The event is repeated when a limit changes.
        says(3, "m2"),
        count(3, &usage(100, 40, 7), &usage(100, 40, 7)),
        at(4, "token_usage_record", &json!({"usage": usage(50, 0, 9)})),
        count(5, &usage(150, 40, 16), &usage(50, 0, 9)),
    ]
    .concat();
    let piece = read(&script);
    let tokens: Vec<_> = of_kind(&piece, Kind::Message)
        .iter()
        .filter_map(|fact| {
            let number = |name| field(fact, name).and_then(Value::as_i64);
            Some((
                fact.id.as_str(),
                number("input_tokens")?,
                number("cache_read_tokens")?,
                number("output_tokens")?,
            ))
        })
        .collect();
    assert_eq!(tokens, [("m1", 60, 40, 7), ("m2", 50, 0, 9)]);
    check_same_in_pieces(&script);
}

#[test]
fn a_compaction_lists_the_kept_messages() {
    let message = |role: &str, text: &str| {
        json!({"type": "message", "role": role,
        "content": [{"type": "input_text", "text": text}]})
    };
    let long = "never touch the lexer ".repeat(20);
    let history = json!([message("user", "fix it"), message("user", &long), {"type": "compaction", "encrypted_content": "gAAA"}]);
    let script =
        [meta(), at(1, "compacted", &json!({"message": "", "replacement_history": history}))]
            .concat();
    let piece = read(&script);
    let Value::Map(body) = &piece.checkpoints[0].body else { panic!() };
    assert_eq!(body.get("summary"), None);
    assert_eq!(body.get("summary_encrypted"), Some(&true.into()));
    let kept = body.get("kept").and_then(Value::as_list).unwrap();
    assert_eq!(kept[0], Value::from([("role", "user".into()), ("text", "fix it".into())]));
    let found = TextRef::from_value(kept[1].field("text").unwrap()).unwrap();
    let (offset, length) = found.place.unwrap();
    let (from, to) = (usize::try_from(offset).unwrap(), usize::try_from(offset + length).unwrap());
    assert_eq!(resolve(&script.as_bytes()[from..to], &found.pointer), Some(long));
    // The newest form refers to messages in the file by their ids.
    let entries = json!([{"type": "reference", "item_id": "msg_1"}, {"type": "inline", "item": message("user", "go on")}]);
    let script = [
        meta(),
        at(1, "compacted", &json!({"message": "", "replacement_history_entries": entries})),
    ];
    let piece = read(&script.concat());
    let Value::Map(body) = &piece.checkpoints[0].body else { panic!() };
    let kept = body.get("kept").and_then(Value::as_list).unwrap();
    assert_eq!(kept[0], Value::from([("message", "msg_1".into())]));
    assert_eq!(kept[1].field("text"), Some(&"go on".into()));
}

#[test]
fn statements_of_the_agent_are_inferred_only_if_enabled() {
    let message = |second, role: &str, kind: &str| {
        let text = "I looked. The root cause is a stale cache.";
        item(
            second,
            &json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}),
        )
    };
    let script =
        meta() + &message(1, "user", "input_text") + &message(2, "assistant", "output_text");
    let read = |infer| {
        TranscriptReader::new(TranscriptOptions { infer, ..options() })
            .read(script.as_bytes(), InputEnding::File, Timestamp::default())
            .unwrap()
    };
    let wanted = read(true);
    let [found] = of_kind(&wanted, Kind::Inference)[..] else { panic!("{wanted:?}") };
    assert_eq!(text(found, "description").as_deref(), Some("The root cause is a stale cache."));
    let messages = of_kind(&wanted, Kind::Message);
    assert_eq!(text(found, "message").as_deref(), Some(messages[1].id.as_str()));
    assert_eq!(of_kind(&read(false), Kind::Inference).len(), 0);
}

/// Regression: calls of an MCP server that did not run counted as finished, and a search with
/// several queries was lost.
#[test]
fn calls_that_did_not_run_and_uses_of_the_models_own_tools_are_read() {
    let declined = json!({"type": "item_completed", "item": {"type": "McpToolCall", "id": "m1",
        "server": "docs", "tool": "find", "arguments": {}, "status": "declined"}});
    let search = json!({"type": "web_search_call", "status": "completed",
        "action": {"type": "search", "queries": ["rust zst", "zst"]}});
    let image = json!({"type": "image_generation_call", "id": "ig_1", "status": "completed",
        "revised_prompt": "a cat", "result": "AAAA"});
    let script = [
        meta(),
        at(1, "event_msg", &declined),
        call(2, "mcp__docs__find", "m2", &json!({"query": "a"})),
        output(3, "m2", &json!("Wall time: 0 seconds\nOutput:\nuser rejected MCP tool call")),
        call(4, "mcp__docs__find", "m3", &json!({"query": "a"})),
        output(5, "m3", &json!("err: \"tool call error: timed out\"")),
        item(6, &search),
        item(7, &image),
    ];
    let piece = read(&script.concat());
    let tools = of_kind(&piece, Kind::Tool);
    let actual: Vec<_> = tools
        .iter()
        .map(|fact| (text(fact, "tool").unwrap(), text(fact, "outcome").unwrap()))
        .collect();
    let expected = [
        ("mcp__docs__find", "refused"),
        ("mcp__docs__find", "refused"),
        ("mcp__docs__find", "failed"),
        ("web_search", "finished"),
        ("image_generation", "finished"),
    ];
    assert_eq!(actual, expected.map(|(tool, outcome)| (tool.to_owned(), outcome.to_owned())));
    assert_eq!(text(tools[3], "query").as_deref(), Some("rust zst"));
    assert_eq!(text(tools[4], "prompt").as_deref(), Some("a cat"));
}

#[test]
fn the_end_of_an_agent_is_read_in_each_form() {
    let closed = json!({"type": "collab_close_end", "call_id": "w1", "receiver_thread_id": "a1",
        "status": {"completed": "found"}});
    let states = |state: &Json| {
        let item = json!({"type": "CollabAgentToolCall", "id": "w1", "tool": "wait",
            "agents_states": {"a1": state}});
        at(3, "event_msg", &json!({"type": "item_completed", "item": item}))
    };
    let notice = |status: &Json| {
        let notice = json!({"agent_id": "a1", "status": status});
        format!("<subagent_notification>\n{notice}\n</subagent_notification>\n")
    };
    let notices = notice(&json!("running")) + &notice(&json!({"completed": "found"}));
    let notices = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": notices}]});
    let close = call(3, "close_agent", "w1", &json!({"target": "a1"}));
    let previous = json!({"previous_status": {"errored": "boom"}}).to_string();
    for (lines, status, result) in [
        (at(3, "event_msg", &closed), "completed", Some("found")),
        (close + &output(4, "w1", &json!(previous)), "failed", Some("boom")),
        (states(&json!({"status": "completed", "message": "found"})), "completed", Some("found")),
        (states(&json!({"completed": null})), "completed", None),
        (states(&json!({"status": "running", "message": null})), "running", None),
        (item(3, &notices), "completed", Some("found")),
    ] {
        let start = call(1, "spawn_agent", "s1", &json!({"message": "look"}));
        let started = output(2, "s1", &json!("{\"agent_id\":\"a1\"}"));
        let piece = read(&[meta(), start, started, lines].concat());
        let agents = of_kind(&piece, Kind::Agent);
        let last = agents.last().unwrap();
        assert_eq!(text(last, "status").as_deref(), Some(status));
        assert_eq!(text(last, "result").as_deref(), result);
    }
}

/// Regression: a call without arguments, or with arguments that its tool refused, was lost.
#[test]
fn a_call_without_readable_arguments_is_the_use_of_a_tool() {
    let bare = |second: u32, name: &str, id: &str, arguments: &str| {
        let call =
            json!({"type": "function_call", "name": name, "call_id": id, "arguments": arguments});
        item(second, &call)
    };
    let script = [
        meta(),
        bare(1, "list_mcp_resources", "t1", ""),
        output(2, "t1", &json!("{\"resources\":[]}")),
        bare(3, "exec_command", "t2", "{\"cmd\": ls}"),
        output(4, "t2", &json!("failed to parse function arguments: expected value")),
        call(5, "exec_command", "t3", &json!({"line": "ls"})),
        output(6, "t3", &json!("failed to parse function arguments: missing field `cmd`")),
        call(7, "apply_patch", "t4", &json!({"input": "no patch"})),
        output(8, "t4", &json!("apply_patch verification failed: no patch")),
    ];
    let piece = read(&script.concat());
    let tools = of_kind(&piece, Kind::Tool).into_iter();
    let actual: Vec<_> =
        tools.map(|fact| (text(fact, "tool").unwrap(), text(fact, "outcome").unwrap())).collect();
    let expected = [
        ("list_mcp_resources", "finished"),
        ("exec_command", "failed"),
        ("exec_command", "failed"),
        ("apply_patch", "failed"),
    ];
    assert_eq!(actual, expected.map(|(tool, outcome)| (tool.to_owned(), outcome.to_owned())));
    assert_eq!(of_kind(&piece, Kind::Command).len(), 0);
}

/// Regression: an agent was running for ever if only its final answer reported its end.
#[test]
fn the_final_answer_of_an_agent_ends_it() {
    let spawn = json!({"type": "function_call", "namespace": "collaboration",
        "name": "spawn_agent", "call_id": "s1",
        "arguments": "{\"task_name\":\"look\",\"message\":\"find the lexer\"}"});
    let activity = |second: u32, kind: &str| {
        let event = json!({"type": "sub_agent_activity", "event_id": "s1", "kind": kind,
            "agent_path": "/root/look", "agent_thread_id": "t1"});
        at(second, "event_msg", &event)
    };
    let answer = |payload: &str| {
        format!(
            "Message Type: FINAL_ANSWER\nTask name: /root\nSender: /root/look\nPayload:\n{payload}"
        )
    };
    let message = |payload: &str| {
        let content = json!([{"type": "input_text", "text": answer(payload)}]);
        let message = json!({"type": "agent_message", "author": "/root/look", "content": content});
        item(5, &message)
    };
    let line = json!({"author": "/root/look", "content": answer("found")});
    let line = at(5, "inter_agent_communication", &line);
    let failed = "Agent errored: no route\n\nTry again.";
    for (lines, status, result) in [
        (message("found"), "completed", Some("found")),
        (line + &message("found"), "completed", Some("found")),
        (activity(4, "completed"), "completed", None),
        (activity(4, "completed") + &message("found"), "completed", Some("found")),
        (message("found") + &activity(6, "completed"), "completed", Some("found")),
        (message(""), "completed", None),
        (message(failed), "failed", Some(failed)),
        (message("Agent shut down."), "stopped", Some("Agent shut down.")),
        (message("Agent was not found."), "running", None),
        (activity(4, "interrupted"), "interrupted", None),
        (activity(4, "interacted"), "running", None),
    ] {
        let started = [
            meta(),
            item(1, &spawn),
            activity(2, "started"),
            output(3, "s1", &json!("{\"task_name\":\"/root/look\"}")),
        ];
        let piece = read(&(started.concat() + &lines));
        let agents = of_kind(&piece, Kind::Agent);
        let last = agents.last().unwrap();
        assert_eq!(text(last, "status").as_deref(), Some(status), "{lines}");
        assert_eq!(text(last, "result").as_deref(), result, "{lines}");
        assert_eq!(text(last, "prompt").as_deref(), Some("find the lexer"));
    }
}

#[test]
fn searches_for_tools_and_images_that_only_an_event_reports_are_read() {
    let search = json!({"type": "tool_search_call", "id": "tsc_1", "call_id": "t1",
        "status": "completed", "arguments": {"query": "calendar", "limit": 8}});
    let image = json!({"type": "image_generation_end", "call_id": "ig_1", "status": "completed",
        "revised_prompt": "a cat", "result": "AAAA"});
    let image_item = json!({"type": "item_completed", "item": {"type": "ImageGeneration",
        "id": "ig_1", "status": "completed", "revised_prompt": "a cat", "result": "AAAA"}});
    let script = [
        meta(),
        item(1, &search),
        at(2, "event_msg", &image),
        // The same image.
        at(2, "event_msg", &image_item),
    ];
    let piece = read(&script.concat());
    let tools = of_kind(&piece, Kind::Tool);
    let actual: Vec<_> = tools.iter().map(|fact| text(fact, "tool").unwrap()).collect();
    assert_eq!(actual, ["tool_search", "image_generation"]);
    assert_eq!(text(tools[0], "query").as_deref(), Some("calendar"));
    assert_eq!(text(tools[1], "prompt").as_deref(), Some("a cat"));
}

/// Regression: a word in the error of a server made its call `refused`.
#[test]
fn an_error_of_an_mcp_server_is_no_refusal() {
    for (error, outcome) in [
        ("tool call error: rejected: the limit is 100", "failed"),
        ("connection rejected by peer", "failed"),
        ("user rejected MCP tool call", "refused"),
        ("MCP tool call blocked by app configuration", "refused"),
        ("This action was rejected due to unacceptable risk.", "refused"),
    ] {
        let end = json!({"type": "mcp_tool_call_end", "call_id": "m1", "result": {"Err": error},
            "invocation": {"server": "docs", "tool": "find", "arguments": {}}});
        let ended = json!({"type": "item_completed", "item": {"type": "DynamicToolCall",
            "id": "m1", "tool": "find", "status": "failed", "error": error}});
        for event in [end, ended] {
            let piece = read(&(meta() + &at(1, "event_msg", &event)));
            let [tool] = of_kind(&piece, Kind::Tool)[..] else { panic!("{event}") };
            assert_eq!(text(tool, "outcome").as_deref(), Some(outcome), "{event}");
            assert_eq!(text(tool, "reason").as_deref(), Some(error), "{event}");
        }
    }
}

/// Regression: words in the answer of a server made its call `refused`.
#[test]
fn an_answer_of_an_mcp_server_is_no_refusal() {
    let content = |said: &str| json!([{"type": "input_text", "text": said}]);
    for (result, outcome) in [
        (content("The request is blocked by policy 7: two reviews are missing"), "finished"),
        (json!("The review was declined by the user ada"), "finished"),
        (content("user rejected MCP tool call"), "refused"),
        (json!("err: \"user cancelled MCP tool call\""), "refused"),
        (json!("Tool call blocked by PreToolUse hook: no"), "refused"),
        (json!("rejected by user"), "refused"),
        (json!("approval required by policy, but AskForApproval is set to Never"), "refused"),
    ] {
        let called = call(1, "mcp__docs__find", "m1", &json!({"query": "a"}));
        let piece = read(&[meta(), called, output(2, "m1", &result)].concat());
        let [tool] = of_kind(&piece, Kind::Tool)[..] else { panic!("{result}") };
        assert_eq!(text(tool, "outcome").as_deref(), Some(outcome), "{result}");
    }
}

#[test]
fn a_plan_whose_call_was_aborted_changes_no_task() {
    let plan = json!({"plan": [{"step": "a", "status": "pending"}]});
    for (result, tasks) in [("Plan updated", 1), ("aborted", 0), ("aborted by user after 1.0s", 0)]
    {
        let script = [meta(), call(1, "update_plan", "u1", &plan), output(2, "u1", &json!(result))];
        assert_eq!(of_kind(&read(&script.concat()), Kind::Task).len(), tasks, "{result}");
    }
}
