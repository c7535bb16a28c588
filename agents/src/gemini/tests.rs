use crate::claude_code::{InputEnding, TranscriptDialect, TranscriptOptions, TranscriptReader};
use crate::piece_facts::of_kind;
use crate::{TranscriptPiece, resolve};
use forge_store::model::{Fact, Kind, TextRef, Timestamp, Value};
use serde_json::{Value as Json, json};

fn options() -> TranscriptOptions {
    TranscriptOptions { dialect: TranscriptDialect::Gemini, ..TranscriptOptions::default() }
}

fn read(text: &str) -> TranscriptPiece {
    TranscriptReader::new(options())
        .read(text.as_bytes(), InputEnding::File, Timestamp::default())
        .unwrap()
}

fn lines(records: &[Json]) -> String {
    records.iter().map(|record| record.to_string() + "\n").collect()
}

fn meta() -> Json {
    json!({"sessionId": "g1", "projectHash": "ab", "startTime": "2026-05-01T10:00:00.000Z",
        "lastUpdated": "2026-05-01T10:00:00.000Z", "directories": ["/w"]})
}

fn time(second: u32) -> String {
    format!("2026-05-01T10:{:02}:{:02}.000Z", second / 60, second % 60)
}

fn user(second: u32, id: &str, text: &str) -> Json {
    json!({"id": id, "timestamp": time(second), "type": "user", "content": [{"text": text}]})
}

fn gemini(second: u32, id: &str, calls: &Json) -> Json {
    json!({"id": id, "timestamp": time(second), "type": "gemini", "content": "on it", "model": "gemini-9",
        "thoughts": [{"subject": "Plan", "description": "look first", "timestamp": time(second)}],
        "tokens": {"input": 1}, "toolCalls": calls})
}

fn shell(second: u32, id: &str, command: &str, status: &str, output: &str) -> Json {
    json!({"id": id, "name": "run_shell_command", "args": {"command": command, "dir_path": "sub"},
        "status": status, "timestamp": time(second),
        "result": [{"functionResponse": {"id": id, "name": "run_shell_command", "response": {"output": output}}}]})
}

fn field<'a>(fact: &'a Fact, name: &str) -> Option<&'a Value> {
    match &fact.value {
        Value::Map(fields) => fields.get(name),
        _ => None,
    }
}

fn text(fact: &Fact, name: &str) -> Option<String> {
    field(fact, name).and_then(Value::as_text).map(str::to_owned)
}

#[test]
fn a_growing_message_records_each_call_once() {
    let failing = shell(
        5,
        "c1",
        "npm test",
        "success",
        "Output: 1 failed\nExit Code: 1\nProcess Group PGID: 9",
    );
    let passing = shell(
        7,
        "c2",
        "ls",
        "success",
        "Command: ls\nDirectory: (root)\nOutput: a\nError: not an error\nb\nError: (none)\nExit Code: 0\nSignal: (none)",
    );
    let running = json!({"id": "c2", "name": "run_shell_command", "args": {"command": "ls"}, "status": "executing"});
    let refused = shell(
        8,
        "c3",
        "rm x",
        "cancelled",
        "[Operation Cancelled] Reason: User did not allow tool call",
    );
    let script = lines(&[
        meta(),
        user(1, "m1", "why does it fail?"),
        gemini(2, "m2", &json!([])),
        gemini(2, "m2", &json!([failing, running])),
        gemini(2, "m2", &json!([failing, passing, refused])),
        json!({"$set": {"summary": "Fixing the test", "lastUpdated": time(9)}}),
        json!({"$rewindTo": "m2"}),
        json!({"id": "m3", "timestamp": time(9), "type": "info", "content": "note"}),
    ]);
    let piece = read(&script);
    let session = piece.session.clone().unwrap();
    assert_eq!(
        (session.agent_session.as_str(), session.title.as_deref()),
        ("g1", Some("Fixing the test"))
    );
    assert_eq!(session.cwd.as_deref(), Some("/w"));
    assert_eq!(of_kind(&piece, Kind::Prompt).len(), 1);
    let commands: Vec<_> = of_kind(&piece, Kind::Command)
        .iter()
        .map(|fact| {
            let code = field(fact, "exit_code").and_then(Value::as_i64);
            (fact.id.clone(), text(fact, "outcome").unwrap(), code, text(fact, "stdout_preview"))
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        commands,
        [
            ("c1".to_owned(), "failed".to_owned(), Some(1), some("1 failed")),
            ("c2".to_owned(), "finished".to_owned(), Some(0), some("a\nError: not an error\nb")),
            ("c3".to_owned(), "refused".to_owned(), None, None),
        ]
    );
    assert_eq!(text(of_kind(&piece, Kind::Verification)[0], "status").as_deref(), Some("failed"));
    // Three versions of one message: the last counts.
    let versions = of_kind(&piece, Kind::Message).iter().filter(|fact| fact.id == "m2").count();
    assert_eq!(versions, 3);
    assert_eq!(piece.skipped, []);
}

#[test]
fn edits_and_to_dos_are_recorded() {
    let diff = "--- a.rs\n+++ a.rs\n@@ -1 +1,2 @@\n-old\n+new\n+more\n";
    let calls = json!([
        {"id": "e1", "name": "replace", "args": {"file_path": "/w/a.rs", "old_string": "old", "new_string": "new"},
            "status": "success", "timestamp": time(3),
            "resultDisplay": {"fileDiff": diff, "fileName": "a.rs", "originalContent": "old", "newContent": "new\nmore"}},
        {"id": "e2", "name": "write_file", "args": {"file_path": "b"}, "status": "error", "timestamp": time(4)},
        {"id": "t1", "name": "write_todos", "status": "success", "timestamp": time(5),
            "args": {"todos": [{"description": "read", "status": "completed"}]}},
    ]);
    let piece = read(&lines(&[meta(), gemini(2, "m1", &calls)]));
    let [code] = of_kind(&piece, Kind::Code)[..] else {
        panic!("{:?}", of_kind(&piece, Kind::Code))
    };
    assert_eq!(text(code, "path").as_deref(), Some("/w/a.rs"));
    assert_eq!(text(code, "patch").as_deref(), Some(diff));
    assert_eq!(
        (field(code, "lines_added"), field(code, "lines_removed")),
        (Some(&2_i64.into()), Some(&1_i64.into()))
    );
    assert_eq!(text(of_kind(&piece, Kind::Task)[0], "status").as_deref(), Some("completed"));
}

#[test]
fn a_changed_line_that_looks_like_the_name_of_a_file_is_counted() {
    let diff = "--- q.sql\n+++ q.sql\n@@ -1,2 +1 @@\n--- a comment\n-x\n+++ more\n";
    let calls = json!([{"id": "e1", "name": "replace", "args": {"file_path": "/w/q.sql"},
        "status": "success", "timestamp": time(3), "resultDisplay": {"fileDiff": diff}}]);
    let piece = read(&lines(&[meta(), gemini(2, "m1", &calls)]));
    let [code] = of_kind(&piece, Kind::Code)[..] else {
        panic!("{:?}", of_kind(&piece, Kind::Code))
    };
    assert_eq!(
        (field(code, "lines_added"), field(code, "lines_removed")),
        (Some(&1_i64.into()), Some(&2_i64.into()))
    );
}

#[test]
fn a_compaction_that_is_recorded_twice_is_one_checkpoint_at_its_time() {
    let summary = json!({"id": "s1", "timestamp": time(100), "type": "user",
        "content": [{"text": "<state_snapshot>\nthe cache was stale\n</state_snapshot>"}]});
    let answer =
        json!({"id": "s2", "timestamp": time(100), "type": "gemini", "content": "Got it."});
    let set = json!({"$set": {"messages": [summary, answer], "lastUpdated": time(101)}});
    let piece =
        read(&lines(&[meta(), user(1, "m1", "go"), set.clone(), set, user(110, "m2", "on")]));
    let [checkpoint] = piece.checkpoints.as_slice() else { panic!("{:?}", piece.checkpoints) };
    assert_eq!(
        (checkpoint.key.as_str(), checkpoint.tags.as_slice()),
        ("compaction:s1", &["compaction".to_owned()][..])
    );
    assert_eq!(checkpoint.time, Timestamp::parse_rfc3339(&time(100)).unwrap());
    let Value::Map(body) = &checkpoint.body else { panic!() };
    assert!(body.get("summary").and_then(Value::as_text).unwrap().contains("the cache was stale"));
    assert_eq!(of_kind(&piece, Kind::Prompt).len(), 2);
}

#[test]
fn an_older_recording_is_one_document() {
    let long = "y".repeat(500);
    let mut document = meta();
    document["messages"] = json!([
        user(1, "m1", &long),
        gemini(2, "m2", &json!([shell(3, "c1", "ls", "success", &format!("Output: {long}"))])),
    ]);
    let script = serde_json::to_string_pretty(&document).unwrap();
    let whole = TranscriptOptions { whole: true, ..options() };
    let mut reader = TranscriptReader::new(whole);
    let half = &script.as_bytes()[..script.len() / 2];
    assert_eq!(reader.read(half, InputEnding::File, Timestamp::default()).unwrap().taken, 0);
    let piece = reader.read(script.as_bytes(), InputEnding::File, Timestamp::default()).unwrap();
    assert_eq!(piece.taken, script.len() as u64);
    assert_eq!(piece.session.clone().unwrap().agent_session, "g1");
    assert_eq!((of_kind(&piece, Kind::Prompt).len(), of_kind(&piece, Kind::Command).len()), (1, 1));
    for (kind, name) in [(Kind::Prompt, "text"), (Kind::Command, "stdout_preview")] {
        let found = TextRef::from_value(field(of_kind(&piece, kind)[0], name).unwrap()).unwrap();
        assert_eq!(resolve(script.as_bytes(), &found.pointer).as_ref(), Some(&long));
    }
}

#[test]
fn junk_is_skipped_and_reported() {
    let script = lines(&[
        json!({"id": "m1", "type": "user", "content": "no time"}),
        json!({"id": "m2", "timestamp": time(1), "type": "unheard of"}),
        json!({"$set": 3}),
        json!({"toolCalls": "x"}),
        json!({"id": "m3", "timestamp": time(1), "type": "gemini", "toolCalls": [{"id": 4}], "thoughts": 1, "content": {"x": 1}}),
        meta(),
    ]) + "{\"id\"";
    let piece = read(&script);
    assert_eq!(piece.skipped.len(), 1);
    assert_eq!((piece.skipped[0].line, piece.skipped[0].reason.as_str()), (1, "has no time"));
    assert_eq!(of_kind(&piece, Kind::Message).len(), 1);
}

#[test]
fn a_cut_at_any_byte_changes_neither_facts_nor_checkpoints() {
    let script = lines(&[
        meta(),
        user(1, "m1", "go"),
        gemini(2, "m2", &json!([])),
        gemini(2, "m2", &json!([shell(5, "c1", "ls", "success", "Output: a")])),
        user(400, "m3", "on"),
        gemini(401, "m4", &json!([shell(402, "c1", "ls", "success", "Output: a")])),
    ]);
    let whole = read(&script);
    for cut in 0..script.len() {
        let mut first = TranscriptReader::new(options());
        let piece =
            first.read(&script.as_bytes()[..cut], InputEnding::More, Timestamp::default()).unwrap();
        let taken = usize::try_from(piece.taken).unwrap();
        let (mut facts, mut checkpoints) = (piece.facts, piece.checkpoints);
        let carry = serde_json::from_slice(&serde_json::to_vec(first.carry()).unwrap()).unwrap();
        let piece = TranscriptReader::resume(options(), carry)
            .read(&script.as_bytes()[taken..], InputEnding::File, Timestamp::default())
            .unwrap();
        facts.extend(piece.facts);
        checkpoints.extend(piece.checkpoints);
        assert_eq!((&facts, &checkpoints), (&whole.facts, &whole.checkpoints), "cut at {cut}");
    }
}

fn call(second: u32, id: &str, name: &str, args: &Json, status: &str, response: &Json) -> Json {
    json!({"id": id, "name": name, "args": args, "status": status, "timestamp": time(second),
        "result": [{"functionResponse": {"id": id, "name": name, "response": response}}]})
}

/// Returns the last version of the fact with this kind and id.
fn last_version<'a>(piece: &'a TranscriptPiece, kind: Kind, id: &str) -> &'a Fact {
    of_kind(piece, kind).into_iter().rev().find(|fact| fact.id == id).unwrap()
}

#[test]
fn a_background_command_ends_with_the_list_of_processes() {
    let moved = json!({"output": "Command moved to background (PID: 7). Output hidden. Press Ctrl+B to view."});
    let list = json!({"output": "- [PID 7] EXITED: `cargo test` (Exit Code: 101)\n- [PID 9] RUNNING: `x`"});
    let piece = read(&lines(&[
        meta(),
        gemini(
            2,
            "m1",
            &json!([call(
                3,
                "c1",
                "run_shell_command",
                &json!({"command": "cargo test"}),
                "success",
                &moved
            )]),
        ),
        gemini(
            8,
            "m2",
            &json!([call(9, "c2", "list_background_processes", &json!({}), "success", &list)]),
        ),
    ]));
    let [first, second] = of_kind(&piece, Kind::Command)[..] else { panic!() };
    let ended =
        |fact: &Fact| (text(fact, "outcome"), field(fact, "exit_code").and_then(Value::as_i64));
    assert_eq!((first.id.as_str(), second.id.as_str()), ("c1", "c1"));
    assert_eq!(ended(first), (Some("background".to_owned()), None));
    assert_eq!(ended(second), (Some("failed".to_owned()), Some(101)));
    assert_eq!(second.at, Timestamp::parse_rfc3339(&time(9)).unwrap());
    assert_eq!(
        text(last_version(&piece, Kind::Verification, "c1"), "status").as_deref(),
        Some("failed")
    );
}

#[test]
fn a_command_that_never_started_is_not_a_check() {
    let denied = json!({"error": "Tool execution denied by policy. Not in this project."});
    let piece = read(&lines(&[
        meta(),
        gemini(
            2,
            "m1",
            &json!([call(
                3,
                "c1",
                "run_shell_command",
                &json!({"command": "cargo test"}),
                "error",
                &denied
            )]),
        ),
    ]));
    let command = last_version(&piece, Kind::Command, "c1");
    assert_eq!(text(command, "outcome").as_deref(), Some("refused"));
    assert_eq!(
        text(command, "reason").as_deref(),
        Some("Tool execution denied by policy. Not in this project.")
    );
    assert_eq!(of_kind(&piece, Kind::Verification).len(), 0);
}

#[test]
fn reads_searches_questions_and_refusals_are_recorded() {
    let args = |path: &str| json!({"file_path": path});
    let no = json!({"error": "[Operation Cancelled] Reason: User denied execution."});
    let questions = json!({"questions": [{"question": "Which one?", "type": "text"}]});
    let unknown = json!({"error": "Tool \"search_files\" not found in registry."});
    let calls = json!([
        call(3, "t1", "read_file", &args("/w/a.rs"), "success", &json!({"output": "x"})),
        call(
            4,
            "t2",
            "grep_search",
            &json!({"pattern": "fn", "dir_path": "src"}),
            "success",
            &json!({"output": "x"})
        ),
        call(
            5,
            "t3",
            "web_fetch",
            &json!({"prompt": "read https://example.org/a."}),
            "success",
            &json!({})
        ),
        call(
            6,
            "t4",
            "ask_user",
            &questions,
            "success",
            &json!({"output": "{\"answers\":{\"0\":\"the first\"}}"})
        ),
        call(7, "t5", "replace", &args("/w/b.rs"), "cancelled", &no),
        call(8, "t6", "read_file", &args("/w/none"), "error", &json!({"error": "File not found."})),
        call(
            9,
            "t7",
            "mcp_files_list",
            &json!({"query": "all"}),
            "success",
            &json!({"output": "x"})
        ),
        call(10, "t8", "search_files", &json!({"pattern": "fn"}), "error", &unknown),
    ]);
    let piece = read(&lines(&[meta(), gemini(2, "m1", &calls)]));
    let tool_text = |id: &str, name: &str| text(last_version(&piece, Kind::Tool, id), name);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        (tool_text("t1", "tool"), tool_text("t1", "path")),
        (some("read_file"), some("/w/a.rs"))
    );
    assert_eq!((tool_text("t2", "pattern"), tool_text("t2", "path")), (some("fn"), some("src")));
    assert_eq!(tool_text("t3", "address"), some("https://example.org/a"));
    let answers = field(last_version(&piece, Kind::Tool, "t4"), "answers").unwrap();
    assert_eq!(answers.field("Which one?"), Some(&"the first".into()));
    assert_eq!(
        (tool_text("t5", "outcome"), tool_text("t5", "path")),
        (some("refused"), some("/w/b.rs"))
    );
    assert_eq!(
        (tool_text("t6", "outcome"), tool_text("t6", "reason")),
        (some("failed"), some("File not found."))
    );
    assert_eq!(
        (tool_text("t7", "outcome"), tool_text("t7", "query")),
        (some("finished"), some("all"))
    );
    assert_eq!(
        (tool_text("t8", "outcome"), tool_text("t8", "pattern")),
        (some("refused"), some("fn"))
    );
    assert_eq!(of_kind(&piece, Kind::Code).len(), 0);
}

#[test]
fn bad_to_dos_are_left_out_of_the_list() {
    let list = json!({"todos": [{"description": "a", "status": "pending"}, null, {"description": null}, 3,
        {"description": "b", "status": "in_progress"}]});
    let piece = read(&lines(&[
        meta(),
        gemini(2, "m1", &json!([null, call(3, "c1", "write_todos", &list, "success", &json!({}))])),
    ]));
    let mut tasks: Vec<_> = of_kind(&piece, Kind::Task)
        .iter()
        .map(|it| (text(it, "subject"), text(it, "status")))
        .collect();
    tasks.sort();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(tasks, [(some("a"), some("pending")), (some("b"), some("in_progress"))]);
}

#[test]
fn only_typed_text_is_a_prompt_of_gemini() {
    let typed = json!({"id": "u2", "timestamp": time(2), "type": "user",
        "content": [{"text": "<div> is <b>, why?"}, {"text": "<hook_context>be brief</hook_context>"}]});
    let piece = read(&lines(&[
        meta(),
        user(1, "u1", "<session_context>\nThis is the Gemini CLI."),
        typed,
        gemini(3, "m1", &json!([])),
        json!({"id": "u3", "timestamp": time(4), "type": "user", "content": [{"functionResponse": {"id": "c1"}}]}),
    ]));
    let results = field(last_version(&piece, Kind::Message, "u3"), "tool_results");
    assert_eq!(results, Some(&Value::List(vec![Value::from([("id", "c1".into())])])));
    let [prompt] = of_kind(&piece, Kind::Prompt)[..] else {
        panic!("{:?}", of_kind(&piece, Kind::Prompt))
    };
    assert_eq!(
        (prompt.id.as_str(), text(prompt, "text").as_deref()),
        ("u2", Some("<div> is <b>, why?"))
    );
    assert_eq!(piece.session.clone().unwrap().title.as_deref(), Some("<div> is <b>, why?"));
    assert_eq!(field(last_version(&piece, Kind::Message, "u1"), "meta"), Some(&true.into()));
}

/// The provider counts the tokens from a cache as input too: the total is input, output and
/// thoughts. `input_tokens` has only those that were not in a cache.
#[test]
fn cached_tokens_are_not_counted_as_input_too() {
    for (counts, expected) in [
        (
            json!({"input": 1000, "output": 10, "cached": 4, "thoughts": 2, "total": 1012}),
            [Some(996), Some(10), Some(4)],
        ),
        (json!({"input": 7, "output": 1}), [Some(7), Some(1), None]),
        (json!({"input": 3, "cached": 4}), [Some(0), None, Some(4)]),
        (json!({"cached": 4}), [None, None, Some(4)]),
    ] {
        let mut answer = gemini(2, "m1", &json!([]));
        answer["tokens"] = counts;
        let piece = read(&lines(&[meta(), user(1, "u1", "why?"), answer]));
        let number = |name: &str| {
            field(last_version(&piece, Kind::Message, "m1"), name).and_then(Value::as_i64)
        };
        let found = ["input_tokens", "output_tokens", "cache_read_tokens"].map(number);
        assert_eq!(found, expected);
    }
}

#[test]
fn a_sub_agent_is_known_by_its_call_and_its_prompts_are_not_typed() {
    let mut first = meta();
    first["kind"] = json!("subagent");
    let piece = read(&lines(&[first, user(1, "u1", "look for the cause")]));
    assert_eq!(of_kind(&piece, Kind::Prompt).len(), 0);
    let mut called = call(
        5,
        "c1",
        "invoke_agent",
        &json!({"agent_name": "finder", "prompt": "look for the cause"}),
        "success",
        &json!({"output": "Subagent 'finder' finished."}),
    );
    called["agentId"] = json!("a7");
    called["resultDisplay"] =
        json!({"isSubagentProgress": true, "agentName": "finder", "result": "the cache"});
    let piece = read(&lines(&[meta(), gemini(2, "m1", &json!([called]))]));
    let agent = last_version(&piece, Kind::Agent, "a7");
    for (name, value) in
        [("type", "finder"), ("status", "completed"), ("result", "the cache"), ("call", "c1")]
    {
        assert_eq!(text(agent, name).as_deref(), Some(value));
    }
}

#[test]
fn a_typed_snapshot_tag_is_not_a_compaction() {
    let piece = read(&lines(&[meta(), user(1, "u1", "<state_snapshot> is empty, why?")]));
    assert_eq!((piece.checkpoints.len(), of_kind(&piece, Kind::Prompt).len()), (0, 1));
}

#[test]
fn statements_of_the_agent_are_inferred_if_that_is_wanted() {
    let words = "I looked. The root cause is a stale cache.";
    let mut answer = gemini(2, "m2", &json!([]));
    answer["content"] = words.into();
    let script = lines(&[meta(), user(1, "m1", words), answer]);
    let read = |infer| {
        TranscriptReader::new(TranscriptOptions { infer, ..options() })
            .read(script.as_bytes(), InputEnding::File, Timestamp::default())
            .unwrap()
    };
    let wanted = read(true);
    let [found] = of_kind(&wanted, Kind::Inference)[..] else { panic!("{wanted:?}") };
    assert_eq!(text(found, "description").as_deref(), Some("The root cause is a stale cache."));
    assert_eq!(text(found, "message").as_deref(), Some("m2"));
    assert_eq!(of_kind(&read(false), Kind::Inference).len(), 0);
}

/// Regression: an edit that changed nothing counted as an edit, and a result that is one part, not
/// a list of parts, was lost.
#[test]
fn an_edit_that_changed_nothing_is_no_edit_and_a_single_part_is_read() {
    let part =
        |output: &str| json!({"functionResponse": {"id": "x", "response": {"output": output}}});
    let calls = json!([
        {"id": "e1", "name": "replace", "args": {"file_path": "/w/a.rs"}, "status": "success",
            "timestamp": time(3), "result": [part("No changes to apply. The strings are identical")]},
        {"id": "c1", "name": "run_shell_command", "args": {"command": "cargo test"}, "status": "success",
            "timestamp": time(4), "result": part("Output: x\nExit Code: 101")},
        {"id": "e2", "name": "write_file", "args": {"absolute_path": "/w/b.rs"}, "status": "success",
            "timestamp": time(5), "result": [part("Successfully overwrote file: /w/b.rs.")]},
    ]);
    let piece = read(&lines(&[meta(), gemini(2, "m1", &calls)]));
    let [code] = of_kind(&piece, Kind::Code)[..] else { panic!("{:?}", piece.facts) };
    assert_eq!(text(code, "path").as_deref(), Some("/w/b.rs"));
    let tool = of_kind(&piece, Kind::Tool)[0];
    assert_eq!((tool.id.as_str(), text(tool, "outcome").as_deref()), ("e1", Some("failed")));
    let command = of_kind(&piece, Kind::Command)[0];
    assert_eq!(field(command, "exit_code"), Some(&101_i64.into()));
}

/// Regression: a sub-agent that failed, or that reached a limit, was completed, because its call
/// has the status `success`. A sub-agent that is a tool with its own name was a tool.
#[test]
fn a_call_that_succeeds_does_not_mean_that_its_agent_did() {
    let shown =
        |state: &str| json!({"isSubagentProgress": true, "agentName": "finder", "state": state});
    for (name, output, display, status) in [
        ("invoke_agent", "Subagent 'finder' failed. Error: x", shown("error"), "failed"),
        ("invoke_agent", "Subagent 'finder' failed. Error: x", json!(null), "failed"),
        (
            "finder",
            "Subagent 'finder' finished.\nTermination Reason: GOAL\nResult:\nx",
            json!("x"),
            "completed",
        ),
        (
            "finder",
            "Subagent 'finder' finished.\nTermination Reason: TIMEOUT\nResult:\nx",
            shown("completed"),
            "failed",
        ),
        ("finder", "x", shown("completed"), "completed"),
        ("finder", "x", shown("cancelled"), "interrupted"),
    ] {
        let arguments = json!({"objective": "look for the cause"});
        let mut called = call(5, "c1", name, &arguments, "success", &json!({"output": output}));
        called["resultDisplay"] = display;
        let piece = read(&lines(&[meta(), gemini(2, "m1", &json!([called]))]));
        let agent = last_version(&piece, Kind::Agent, "c1");
        assert_eq!(text(agent, "status").as_deref(), Some(status), "{output}");
        assert_eq!(text(agent, "prompt").as_deref(), Some("look for the cause"));
    }
}

/// Regression: an edit that was made before the person cancelled the turn was lost, and edits with
/// the text of a failure counted as made.
#[test]
fn an_edit_is_made_if_its_result_says_so() {
    let args = json!({"file_path": "/w/a.rs"});
    let cancelled = "[Operation Cancelled] User cancelled tool execution.";
    for (status, output, is_made) in [
        ("cancelled", "Successfully modified file: /w/a.rs (1 replacements).", true),
        ("cancelled", "Successfully cancelled.", false),
        ("cancelled", "Created new file: /w/a.rs with provided content.", true),
        ("cancelled", "File not found: /w/a.rs", false),
        ("success", "File not found: /w/a.rs", false),
        ("success", "File already exists, cannot create: /w/a.rs", false),
    ] {
        let response = json!({"output": output, "error": cancelled});
        let calls = json!([call(3, "e1", "replace", &args, status, &response)]);
        let piece = read(&lines(&[meta(), gemini(2, "m1", &calls)]));
        let found = (of_kind(&piece, Kind::Code).len(), of_kind(&piece, Kind::Tool).len());
        assert_eq!(found, if is_made { (1, 0) } else { (0, 1) }, "{status} {output}");
    }
}

/// Regression: a call with the status `success` and only an error was finished.
#[test]
fn a_call_whose_result_is_only_an_error_failed() {
    let error = json!({"error": "the disk is full"});
    let args = json!({"file_path": "/w/a.rs", "command": "cargo test"});
    let calls = ["run_shell_command", "write_file", "mcp_files_list"];
    let calls = calls.map(|name| call(3, name, name, &args, "success", &error));
    let piece = read(&lines(&[meta(), gemini(2, "m1", &json!(calls))]));
    assert_eq!(of_kind(&piece, Kind::Code).len(), 0);
    for (kind, id) in [
        (Kind::Command, "run_shell_command"),
        (Kind::Tool, "write_file"),
        (Kind::Tool, "mcp_files_list"),
    ] {
        let fact = last_version(&piece, kind, id);
        assert_eq!(text(fact, "outcome").as_deref(), Some("failed"), "{id}");
    }
}

/// Regression: to-dos that are no list dropped all tasks.
#[test]
fn to_dos_that_are_no_list_change_no_task() {
    let todos = |second, id: &str, list: &Json| {
        let args = json!({"todos": list});
        let call = call(second, id, "write_todos", &args, "success", &json!({}));
        gemini(second, &format!("message of {id}"), &json!([call]))
    };
    let list = json!([{"description": "read", "status": "pending"}]);
    let piece = read(&lines(&[meta(), todos(2, "t1", &list), todos(3, "t2", &json!(null))]));
    let [task] = of_kind(&piece, Kind::Task)[..] else { panic!("{:?}", piece.facts) };
    assert_eq!(text(task, "status").as_deref(), Some("pending"));
}
