use super::*;
use forge_store::model::{Fact, FactOrigin, Kind, Timestamp, Value};
use serde_json::json;

fn event(agent: HookAgent, name: &str, input: &serde_json::Value) -> HookEvent {
    HookEvent::read(agent, name, input.to_string().as_bytes()).unwrap()
}

fn now() -> Timestamp {
    Timestamp::parse_rfc3339("2026-02-01T10:00:00Z").unwrap()
}

fn facts(agent: HookAgent, name: &str, input: &serde_json::Value) -> Vec<Fact> {
    tool_facts(&event(agent, name, input), now())
}

fn field<'f>(facts: &'f [Fact], kind: Kind, name: &str) -> Option<&'f Value> {
    facts.iter().find(|fact| fact.kind == kind)?.value.field(name)
}

#[test]
fn announcements_of_a_compaction_become_the_same_event() {
    let claude = json!({"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","trigger":"auto","custom_instructions":""});
    let codex =
        json!({"session_id":"s","turn_id":"7","transcript_path":null,"cwd":"/w","trigger":"auto"});
    let cursor =
        json!({"conversation_id":"s","workspace_roots":["/w"],"trigger":"auto","context_tokens":9});
    let opencode = json!({"sessionID":"s","directory":"/w"});
    for (agent, name, input) in [
        (HookAgent::Claude, "PreCompact", claude),
        (HookAgent::Codex, "PreCompact", codex),
        (HookAgent::Cursor, "preCompact", cursor),
        (HookAgent::OpenCode, "session.compacting", opencode),
    ] {
        let event = event(agent, name, &input);
        assert_eq!(event.session.as_deref(), Some("s"), "{agent:?}");
        assert_eq!(event.cwd.as_deref(), Some(std::path::Path::new("/w")), "{agent:?}");
        let HookEventKind::PreCompact { automatic, tokens } = event.kind else {
            panic!("{agent:?}: {event:?}")
        };
        let (wanted, count) = match agent {
            HookAgent::OpenCode => (None, None),
            HookAgent::Cursor => (Some(true), Some(9)),
            _ => (Some(true), None),
        };
        assert_eq!((automatic, tokens), (wanted, count), "{agent:?}");
    }
}

/// Gemini CLI calls `PreCompress` before each request to the model, whether or not it compacts.
#[test]
fn the_event_before_each_request_is_not_a_compaction() {
    let input = json!({"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","trigger":"auto"});
    let event = event(HookAgent::Gemini, "PreCompress", &input);
    assert_eq!((event.kind.clone(), reply_budget(&event)), (HookEventKind::Other, None));
}

#[test]
fn the_compaction_of_a_sub_agent_is_not_one_of_the_session() {
    for name in ["PreCompact", "PostCompact"] {
        let input =
            json!({"session_id":"s","agent_id":"a1","trigger":"auto","compact_summary":"x"});
        assert_eq!(event(HookAgent::Claude, name, &input).kind, HookEventKind::Other);
    }
}

#[test]
fn a_tool_that_failed_or_was_refused_is_recorded_so() {
    for (tool, error, outcome) in [
        ("Edit", "String to replace not found in file.", "failed"),
        ("Write", "The user doesn't want to proceed with this tool use.", "refused"),
        ("Read", "Permission to read /a has been denied.", "refused"),
        ("Read", "[Request interrupted by user for tool use]", "interrupted"),
        ("mcp__a__b", "404", "failed"),
    ] {
        let input = json!({"session_id":"s","tool_name":tool,"tool_use_id":"t1","error":error,
            "tool_input":{"file_path":"/a","old_string":"a","new_string":"b","content":"b"}});
        let facts = facts(HookAgent::Claude, "PostToolUseFailure", &input);
        assert_eq!(field(&facts, Kind::Tool, "outcome"), Some(&outcome.into()), "{tool} {error}");
        assert_eq!(facts.len(), 1, "{facts:?}");
    }
}

#[test]
fn a_prompt_is_from_a_person_unless_the_agent_says_otherwise() {
    for (source, wanted) in [
        (Some("user"), Some("go on")),
        (Some("sdk"), Some("go on")),
        (None, Some("go on")),
        (Some("system"), None),
        (Some("schedule_wakeup"), None),
    ] {
        let input = json!({"session_id":"s","prompt":"go on","source":source});
        let event = event(HookAgent::Claude, "UserPromptSubmit", &input);
        assert_eq!(event.kind, HookEventKind::Prompt { text: wanted.map(str::to_owned) });
    }
}

#[test]
fn a_prompt_is_the_part_that_a_person_typed() {
    let editor = "# Context from my IDE setup:\n\n## My request for Codex:\ngo on\n";
    for (agent, prompt, wanted) in [
        (HookAgent::Claude, "<ide_opened_file>a.rs</ide_opened_file>\ngo on", Some("go on")),
        (HookAgent::Claude, "<task-notification>\ndone\n</task-notification>", None),
        (HookAgent::Claude, "<div> is not closed", Some("<div> is not closed")),
        (HookAgent::Codex, editor, Some("go on")),
        (HookAgent::Codex, "<environment_context>\n</environment_context>", None),
        (HookAgent::Codex, "# a title", Some("# a title")),
        (HookAgent::Codex, "# Context from my IDE setup:\n\n## My request for Codex:\n", None),
    ] {
        let input = json!({"session_id":"s","prompt":prompt});
        let event = event(agent, "UserPromptSubmit", &input);
        assert_eq!(event.kind, HookEventKind::Prompt { text: wanted.map(str::to_owned) });
    }
}

#[test]
fn a_prompt_is_recorded_if_no_transcript_contains_it() {
    let kept = |agent, name: &str, input: serde_json::Value| {
        prompt_fact(&event(agent, name, &input), now()).map(|fact| (fact.id, fact.value))
    };
    let cursor = |turn: &str| {
        let input = json!({"conversation_id":"s","generation_id":turn,"prompt":"fix it"});
        kept(HookAgent::Cursor, "beforeSubmitPrompt", input).unwrap()
    };
    let (first, value) = cursor("g1");
    assert_eq!(value.field("text"), Some(&"fix it".into()));
    assert_eq!(cursor("g1").0, first, "the same turn is the same fact");
    assert_ne!(cursor("g2").0, first, "another turn is another fact");
    let input = json!({"sessionID":"s","messageID":"m1","prompt":"/init now"});
    let (_, value) = kept(HookAgent::OpenCode, "chat.message", input).unwrap();
    assert_eq!(value.field("tags"), Some(&vec!["slash"].into()));
    let input = json!({"sessionID":"s","messageID":"m1"});
    assert_eq!(
        kept(HookAgent::OpenCode, "chat.message", input),
        None,
        "the event of a sub-agent has no text"
    );
    let with = json!({"session_id":"s","transcript_path":"/t.jsonl","prompt":"fix it"});
    assert_eq!(kept(HookAgent::Claude, "UserPromptSubmit", with), None);
    let without = json!({"session_id":"s","transcript_path":null,"prompt":"fix it"});
    assert!(kept(HookAgent::Codex, "UserPromptSubmit", without).is_some());
}

#[test]
fn byte_order_marks_nuls_and_utf_16_from_shells_are_removed_from_the_input() {
    let text = r#"{"session_id":"s","prompt":"größer"}"#;
    let wide = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
    for input in [
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        [text.as_bytes(), b"\0\0\r\n\0"].concat(),
        [b"\0\n", text.as_bytes()].concat(),
        [text.as_bytes(), b"\r\n\x1a"].concat(),
        [b"\0", text.as_bytes()].concat(),
        [b"\xff\xfe".as_slice(), &little].concat(),
        [b"\xfe\xff".as_slice(), &big, b"\0\0"].concat(),
        [b"\r\0\n\0".as_slice(), &little].concat(),
        little,
    ] {
        let event = HookEvent::read(HookAgent::Claude, "UserPromptSubmit", &input).unwrap();
        assert_eq!(event.kind, HookEventKind::Prompt { text: Some("größer".to_owned()) });
    }
    for nothing in [b"\xef\xbb\xbf".as_slice(), b"\0\0", b"\xff\xfe", b"\xff\xfe\0\xd8"] {
        assert!(HookEvent::read(HookAgent::Claude, "Stop", nothing).is_err());
    }
}

/// Regression: such an input was not read, so nothing was saved (anthropics/claude-code#20015,
/// #89622).
#[test]
fn a_backslash_that_escapes_nothing_is_a_character_of_the_text() {
    for (written, read) in [
        (r"sed s/[\/\.]/-/g", r"sed s/[/\.]/-/g"),
        (r"C:\Users\new\table", r"C:\Users\new\table"),
        (r"C:\users\x", r"C:\users\x"),
        (r"C:\\Users\\new", r"C:\Users\new"),
        (r"\x1b[0m\u12", r"\x1b[0m\u12"),
        (r"größer \ü", r"größer \ü"),
        (r"so: \nwhy \.", "so: \nwhy \\."),
        (r#"it\'s \"so\""#, r#"it\'s "so""#),
    ] {
        let input = format!(r#"{{"session_id":"s","prompt":"{written}"}}"#);
        let event = HookEvent::read(HookAgent::Claude, "UserPromptSubmit", input.as_bytes());
        let text = Some(read.to_owned());
        assert_eq!(event.unwrap().kind, HookEventKind::Prompt { text }, "{written}");
    }
}

#[test]
fn an_event_without_a_name_is_named_by_its_input() {
    // The last two are from a script with CRLF at the ends of lines, and from a client of another
    // case.
    for name in ["", "Stop\r", "stop"] {
        let event = event(HookAgent::Claude, name, &json!({"hook_event_name":"Stop"}));
        assert_eq!((event.name.as_str(), event.kind), ("Stop", HookEventKind::Stop), "{name:?}");
    }
    for (name, said) in [("SubagentStop", "Stop"), ("PreToolUse", "PreToolUse"), ("Unheard", "no")]
    {
        let event = event(HookAgent::Claude, name, &json!({"hook_event_name":said}));
        assert_eq!(event.name, name);
    }
    for word in ["claude\r", "Claude", "CLAUDE-CODE"] {
        assert_eq!(HookAgent::from_word(word), Some(HookAgent::Claude), "{word:?}");
    }
}

/// A field may have several names. A blank one does not hide the value under another name.
#[test]
fn a_blank_field_counts_as_absent() {
    let input = json!({"session_id":"","conversation_id":" s\n","transcript_path":" ","transcript":"/t.jsonl",
        "cwd":"","agent_id":""});
    let event = event(HookAgent::Cursor, "stop", &input);
    assert_eq!(event.session.as_deref(), Some("s"));
    assert_eq!(event.transcript.as_deref(), Some(std::path::Path::new("/t.jsonl")));
    assert_eq!((event.cwd, event.sub_agent), (None, None));
}

#[test]
fn junk_is_an_error_and_fields_of_another_type_are_absent() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for junk in ["", " \n", "nonsense", "[1]", "3", "\"text\"", "{\"a\":", deep.as_str()] {
        assert!(HookEvent::read(HookAgent::Claude, "Stop", junk.as_bytes()).is_err(), "{junk:.20}");
    }
    assert!(HookEvent::read(HookAgent::Claude, "Stop", b"\xff{}").is_err());
    let event = event(
        HookAgent::Claude,
        "PostToolUse",
        &json!({"session_id":7,"cwd":[],"tool_name":{},"tool_input":"x","duration_ms":"long"}),
    );
    assert_eq!((event.session.as_deref(), event.cwd.as_deref()), (None, None));
    assert!(tool_facts(&event, now()).is_empty());
}

#[test]
fn fields_in_camel_case_are_read() {
    let input = json!({"sessionId":"s","transcriptPath":"/t.jsonl","hookEventName":"PostToolUse",
        "toolName":"Bash","toolUseId":"t1","toolInput":{"command":"make"},
        "toolResponse":{"stdout":"","stderr":"boom","exitCode":2}});
    let event = event(HookAgent::Claude, "", &input);
    assert_eq!((event.name.as_str(), event.session.as_deref()), ("PostToolUse", Some("s")));
    assert_eq!(event.transcript.as_deref(), Some(std::path::Path::new("/t.jsonl")));
    let facts = tool_facts(&event, now());
    assert_eq!(field(&facts, Kind::Command, "exit_code"), Some(&Value::Int(2)));
    let input = json!({"filePath":"/w/a.rs","edits":[{"old_string":"a","new_string":"b"}]});
    let facts = self::facts(HookAgent::Cursor, "afterFileEdit", &input);
    assert_eq!(field(&facts, Kind::Code, "path"), Some(&"/w/a.rs".into()));
}

#[test]
fn bytes_in_a_text_that_are_not_utf_8_are_replaced() {
    let input = b"{\"session_id\":\"s\",\"prompt\":\"gr\xf6\xdfer\"}";
    let event = HookEvent::read(HookAgent::Claude, "UserPromptSubmit", input).unwrap();
    assert_eq!(event.session.as_deref(), Some("s"));
    let prompt = Some("gr\u{fffd}\u{fffd}er".to_owned());
    assert_eq!(event.kind, HookEventKind::Prompt { text: prompt });
}

#[test]
fn half_a_surrogate_pair_in_an_input_is_not_an_error() {
    let input = br#"{"session_id":"s","prompt":"cut \ud83d"}"#;
    let event = HookEvent::read(HookAgent::Claude, "UserPromptSubmit", input).unwrap();
    assert_eq!(event.kind, HookEventKind::Prompt { text: Some("cut \u{fffd}".to_owned()) });
}

#[test]
fn a_command_with_its_check_is_read_from_a_tool_call() {
    let input = json!({"session_id":"s","cwd":"/w","tool_name":"Bash","tool_use_id":"t1","agent_id":"a1",
        "tool_input":{"command":"cargo test"},"tool_response":{"stdout":"test result: ok. 3 passed","stderr":""}});
    let facts = facts(HookAgent::Claude, "PostToolUse", &input);
    assert_eq!(facts.len(), 2, "{facts:?}");
    assert!(facts.iter().all(|fact| fact.origin == FactOrigin::Hook && fact.id == "t1"));
    assert_eq!(field(&facts, Kind::Command, "exit_code"), Some(&Value::Int(0)));
    assert_eq!(field(&facts, Kind::Verification, "status"), Some(&"passed".into()));
    assert_eq!(field(&facts, Kind::Command, "agent"), Some(&"a1".into()));
}

/// The facts of a hook and those of a transcript must have the same ids.
#[test]
fn a_long_id_of_a_call_becomes_the_id_of_its_fact_as_in_a_transcript() {
    let long = "c".repeat(500);
    for tool in ["Bash", "Read"] {
        let input = json!({"session_id":"s","tool_name":tool,"tool_use_id":long,
            "tool_input":{"command":"ls"},"tool_response":{"stdout":""}});
        let facts = facts(HookAgent::Claude, "PostToolUse", &input);
        assert_eq!(facts[0].id, crate::piece::fact_id(&long), "{tool}");
    }
}

#[test]
fn a_failure_has_its_exit_code() {
    let input = json!({"session_id":"s","tool_name":"Bash","tool_use_id":"t1",
        "tool_input":{"command":"cargo test"},"error":"Exit code 101\ntest result: FAILED"});
    let facts = facts(HookAgent::Claude, "PostToolUseFailure", &input);
    assert_eq!(field(&facts, Kind::Command, "exit_code"), Some(&Value::Int(101)));
    assert_eq!(field(&facts, Kind::Verification, "status"), Some(&"failed".into()));
}

#[test]
fn an_edit_is_read_from_every_agent_that_reports_one() {
    let claude = json!({"tool_name":"Edit","tool_use_id":"e","tool_input":{"file_path":"/w/a.rs","old_string":"a","new_string":"b"},
        "tool_response":{"filePath":"/w/a.rs","originalFile":"a".repeat(9000),
            "structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-a","+b"]}]}});
    let gemini = json!({"tool_name":"replace","tool_input":{"file_path":"/w/a.rs","old_string":"a","new_string":"b"},
        "tool_response":{"llmContent":"Successfully modified file"}});
    let cursor = json!({"file_path":"/w/a.rs","edits":[{"old_string":"a","new_string":"b"}]});
    let opencode = json!({"tool":"edit","callID":"e","args":{"filePath":"/w/a.rs","oldString":"a","newString":"b"},"output":"ok"});
    for (agent, name, input) in [
        (HookAgent::Claude, "PostToolUse", claude),
        (HookAgent::Gemini, "AfterTool", gemini),
        (HookAgent::Cursor, "afterFileEdit", cursor),
        (HookAgent::OpenCode, "tool.execute.after", opencode),
    ] {
        let facts = facts(agent, name, &input);
        assert_eq!(facts.len(), 1, "{agent:?}: {facts:?}");
        assert_eq!(field(&facts, Kind::Code, "path"), Some(&"/w/a.rs".into()), "{agent:?}");
        assert_eq!(field(&facts, Kind::Code, "lines_added"), Some(&Value::Int(1)), "{agent:?}");
        assert_eq!(field(&facts, Kind::Code, "original_file"), None, "{agent:?}");
    }
}

#[test]
fn exit_codes_are_found_in_the_form_of_each_agent() {
    let codex = json!({"tool_name":"shell","tool_input":{"command":["bash","-lc","make"]},
        "tool_response":{"output":"no rule","metadata":{"exit_code":2}}});
    let gemini = json!({"tool_name":"run_shell_command","tool_input":{"command":"make"},
        "tool_response":{"llmContent":"Command: make\nDirectory: (root)\nOutput: no rule\nError: (none)\nExit Code: 2\n"}});
    let opencode = json!({"tool":"bash","args":{"command":"make"},
        "output":{"output":"no rule","metadata":{"exit":2}}});
    for (agent, name, input) in [
        (HookAgent::Codex, "PostToolUse", codex),
        (HookAgent::Gemini, "AfterTool", gemini),
        (HookAgent::OpenCode, "tool.execute.after", opencode),
    ] {
        let facts = facts(agent, name, &input);
        let command_field = |name| field(&facts, Kind::Command, name);
        assert_eq!(command_field("command"), Some(&"make".into()), "{agent:?}");
        assert_eq!(command_field("exit_code"), Some(&Value::Int(2)), "{agent:?}: {facts:?}");
        assert_eq!(command_field("stdout_preview"), Some(&"no rule".into()), "{agent:?}");
    }
    let in_text = json!({"tool_name":"exec_command","tool_use_id":"k","tool_input":{"cmd":"make check"},
        "tool_response":"Wall time: 1.0 seconds\nProcess exited with code 2\nOutput:\nno rule"});
    let facts_from_text = facts(HookAgent::Codex, "PostToolUse", &in_text);
    assert_eq!(field(&facts_from_text, Kind::Command, "exit_code"), Some(&Value::Int(2)));
    assert_eq!(field(&facts_from_text, Kind::Verification, "status"), Some(&"failed".into()));
    let cursor = json!({"command":"cargo test","output":"running","exit_code":2});
    let facts_from_cursor = facts(HookAgent::Cursor, "afterShellExecution", &cursor);
    assert_eq!(field(&facts_from_cursor, Kind::Command, "exit_code"), Some(&Value::Int(2)));
    let cursor = json!({"command":"cargo test","output":"running","duration":5});
    let facts = facts(HookAgent::Cursor, "afterShellExecution", &cursor);
    assert_eq!(field(&facts, Kind::Command, "exit_code"), None, "Cursor reports no exit code");
    assert_eq!(field(&facts, Kind::Command, "outcome"), Some(&"unknown".into()));
    assert_eq!(field(&facts, Kind::Verification, "status"), Some(&"unknown".into()));
}

#[test]
fn a_command_of_opencode_that_was_stopped_is_recorded_so() {
    for (line, exit, outcome, status) in [
        (
            "bash tool terminated command after exceeding timeout 1000 ms",
            json!(null),
            "timed_out",
            "timed_out",
        ),
        ("User aborted the command", json!(null), "interrupted", "unknown"),
        ("User aborted the command", json!(0), "finished", "passed"),
        ("something else", json!(null), "unknown", "unknown"),
    ] {
        let output = format!("running\n\n<bash_metadata>\n{line}\n</bash_metadata>");
        let input = json!({"tool":"bash","callID":"c1","args":{"command":"cargo test"},
            "output":{"output":output,"metadata":{"exit":exit}}});
        let facts = facts(HookAgent::OpenCode, "tool.execute.after", &input);
        assert_eq!(field(&facts, Kind::Command, "outcome"), Some(&outcome.into()), "{line}");
        assert_eq!(field(&facts, Kind::Verification, "status"), Some(&status.into()), "{line}");
    }
}

/// Regression: a failure that only the response reports was stored as a check that passed.
#[test]
fn a_response_in_the_form_of_claude_code_may_report_a_failure() {
    let input = |response: serde_json::Value| {
        json!({"session_id":"s","tool_name":"Bash","tool_use_id":"t1",
            "tool_input":{"command":"make test"},"tool_response":response})
    };
    for (response, code, status) in [
        (json!("Error: Exit code 2\nboom"), 2, "failed"),
        (json!("Exit code 2\nboom"), 2, "failed"),
        (json!({"stdout":"","stderr":"boom","exitCode":2}), 2, "failed"),
        (json!([{"type":"text","text":"Error: Exit code 2\nboom"}]), 2, "failed"),
        (json!({"is_error":true,"content":"Exit code 2\nboom"}), 2, "failed"),
        (json!({"stdout":"","stderr":"boom","returncode":2}), 2, "failed"),
        (json!("{\"stdout\":\"\",\"exit_code\":2}"), 2, "failed"),
        (json!({"stdout":"ok","exit_code":0}), 0, "passed"),
        (json!({"stdout":"Exit code 2","stderr":"","interrupted":false}), 0, "passed"),
    ] {
        let facts = facts(HookAgent::Claude, "PostToolUse", &input(response.clone()));
        let exit_code = field(&facts, Kind::Command, "exit_code");
        assert_eq!(exit_code, Some(&Value::Int(code)), "{response}");
        let found = field(&facts, Kind::Verification, "status");
        assert_eq!(found, Some(&status.into()), "{response}");
    }
}

/// Regression: a command and an edit that only a field of the response calls failed were stored as
/// a check that passed and a change of the file.
#[test]
fn a_field_of_a_response_may_report_an_error() {
    for response in [
        json!({"isError":true,"content":[{"type":"text","text":"boom"}]}),
        json!({"success":false,"stdout":"","stderr":"boom"}),
        json!({"llmContent":"boom","error":{"message":"boom","type":"not_found"}}),
        json!({"error":"boom"}),
        json!({"error":{"code":"ENOENT"}}),
        json!({"is_error":true,"content":"Error: boom"}),
    ] {
        let tools = [
            (HookAgent::Claude, "PostToolUse", ["Bash", "Edit", "Read"]),
            (HookAgent::Codex, "PostToolUse", ["Bash", "Edit", "Read"]),
            (HookAgent::Gemini, "AfterTool", ["run_shell_command", "replace", "read_file"]),
        ];
        for (agent, name, [command, edit, read]) in tools {
            let used = |tool: &str| {
                let input = json!({"session_id":"s","tool_name":tool,"tool_use_id":"t1",
                    "tool_input":{"command":"make test","file_path":"/w/a.rs","old_string":"a","new_string":"b"},
                    "tool_response":response});
                facts(agent, name, &input)
            };
            let command = used(command);
            // In Claude Code's form, only an exit code says that a command failed.
            let outcome = if agent == HookAgent::Claude { "unknown" } else { "failed" };
            assert_eq!(field(&command, Kind::Command, "outcome"), Some(&outcome.into()));
            assert_eq!(field(&command, Kind::Command, "exit_code"), None, "{response}");
            assert_ne!(field(&command, Kind::Verification, "status"), Some(&"passed".into()));
            assert!(used(edit).iter().all(|fact| fact.kind != Kind::Code), "{agent:?} {response}");
            assert_eq!(field(&used(read), Kind::Tool, "outcome"), Some(&"failed".into()));
        }
    }
}

/// Regression: JSON that a command printed was read as the response of its tool.
#[test]
fn json_that_a_command_prints_does_not_say_how_it_ended() {
    for printed in [
        r#"{"exit_code":0}"#,
        r#"{"error":"boom"}"#,
        r#"{"success":false}"#,
        // A pod, and a notebook.
        r#"{"kind":"Pod","metadata":{"name":"a"}}"#,
        r#"{"cells":[],"metadata":{"exit":0}}"#,
    ] {
        let input = json!({"session_id":"s","tool_name":"Bash","tool_use_id":"t1",
            "tool_input":{"command":"make test"},"tool_response":printed});
        let facts = facts(HookAgent::Codex, "PostToolUse", &input);
        assert_eq!(field(&facts, Kind::Command, "outcome"), Some(&"unknown".into()), "{printed}");
        assert_eq!(field(&facts, Kind::Command, "stdout_preview"), Some(&printed.into()));
    }
}

#[test]
fn a_failure_is_read_from_an_object_and_an_unknown_exit_code_is_not_0() {
    let used = |name: &str, more: serde_json::Value| {
        let mut input = json!({"session_id":"s","tool_name":"Bash","tool_use_id":"t1",
            "tool_input":{"command":"make test"}});
        let serde_json::Value::Object(more) = more else { unreachable!("an object is given") };
        input.as_object_mut().unwrap().extend(more);
        let facts = facts(HookAgent::Claude, name, &input);
        field(&facts, Kind::Command, "exit_code").cloned()
    };
    let two = Some(Value::Int(2));
    for error in [json!("Error: Exit code 2\nx"), json!({"message":"Exit code 2\nx"})] {
        assert_eq!(used("PostToolUseFailure", json!({"error":error})), two, "{error}");
    }
    let response = |code: serde_json::Value| json!({"tool_response":{"stdout":"","stderr":"x","exit_code":code}});
    assert_eq!(used("PostToolUse", response(json!(2.0))), two);
    assert_eq!(used("PostToolUse", response(json!(null))), None);
    assert_eq!(used("PostToolUse", json!({"tool_response":"make: *** [test] Error 2"})), None);
    assert_eq!(used("PostToolUse", json!({})), None);
    let zero = json!({"tool_response":"Exit code 0\nx"});
    assert_eq!(used("PostToolUse", zero), Some(Value::Int(0)));
}

/// Regression: an object without an exit code was a success also if it was of another form, or had
/// a field that says that the command was stopped.
#[test]
fn a_response_without_an_exit_code_is_a_success_only_in_claude_codes_own_form() {
    for (response, status) in [
        (json!({"stdout":"","stderr":"","interrupted":false}), "passed"),
        (json!({"stdout":"","timedOut":false,"signal":null,"status":"completed"}), "passed"),
        (json!({"stdout":"","killed":0,"signal":"","status":0}), "passed"),
        (json!({"stdout":null}), "unknown"),
        (json!({"stdout":"","killed":"true"}), "unknown"),
        (json!({"stdout":"running","timedOut":true}), "unknown"),
        (json!({"stdout":"","killed":true}), "unknown"),
        (json!({"stdout":"","signal":"SIGTERM"}), "unknown"),
        (json!({"stdout":"","status":"failed"}), "unknown"),
        (json!({"stdout":"","status":1}), "unknown"),
        (json!({"stdout":"","exit-code":2}), "unknown"),
        (json!({"stdout":"","statusCode":"1"}), "unknown"),
        (json!({"stdout":"","ok":false}), "unknown"),
        (json!({"result":{"stdout":"","exit_code":2}}), "unknown"),
        (json!(0), "unknown"),
        (json!(true), "unknown"),
        (json!({}), "unknown"),
        (json!({"stdout":"","ExitCode":2}), "failed"),
        (json!({"stdout":"","rc":2}), "failed"),
    ] {
        let input = json!({"session_id":"s","tool_name":"Bash","tool_use_id":"t1",
            "tool_input":{"command":"make test"},"tool_response":response});
        let facts = facts(HookAgent::Claude, "PostToolUse", &input);
        let found = field(&facts, Kind::Verification, "status");
        assert_eq!(found, Some(&status.into()), "{input}");
    }
}

/// The first is the example of the documentation of Claude Code.
#[test]
fn the_exit_code_of_a_failure_is_read_in_other_words() {
    for (more, code) in [
        (json!({"error":"Command exited with non-zero status code 1"}), Some(1)),
        (json!({"error":"Command failed with exit code 2: make test\nboom"}), Some(2)),
        (json!({"error_message":"Process exited with code 2."}), Some(2)),
        (json!({"error":{"message":"boom","exitCode":2}}), Some(2)),
        (json!({"tool_response":{"stdout":"","exit_code":2}}), Some(2)),
        (json!({"error":"boom\nCommand exited with code 1"}), None),
        (json!({"error":"Command exited with code 0"}), None),
        (json!({"error":"Command make exited with code 1"}), None),
        (json!({"error":"Command failed: make test"}), None),
        (json!({"error":"Command failed with 2"}), None),
        (json!({"error":{"message":"boom","code":"ENOENT"}}), None),
    ] {
        let mut input = json!({"session_id":"s","tool_name":"Bash","tool_use_id":"t1",
            "tool_input":{"command":"make test"}});
        let serde_json::Value::Object(more) = more else { unreachable!("an object is given") };
        input.as_object_mut().unwrap().extend(more);
        let facts = facts(HookAgent::Claude, "PostToolUseFailure", &input);
        let exit_code = field(&facts, Kind::Command, "exit_code");
        assert_eq!(exit_code, code.map(Value::Int).as_ref(), "{input}");
        let status = if code.is_some() { "failed" } else { "unknown" };
        assert_eq!(field(&facts, Kind::Verification, "status"), Some(&status.into()), "{input}");
    }
}

/// Regression: a code beside the text made a failure of a command that never started.
#[test]
fn a_refusal_has_no_exit_code() {
    for error in [
        "Permission to use Bash with command make test has been denied.",
        "PreToolUse:Bash hook error: [check]: no",
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
    ] {
        let input = json!({"session_id":"s","tool_name":"Bash","tool_use_id":"t1",
            "tool_input":{"command":"make test"},"error":{"message":error,"code":1}});
        let facts = facts(HookAgent::Claude, "PostToolUseFailure", &input);
        assert_eq!(field(&facts, Kind::Command, "outcome"), Some(&"refused".into()), "{error}");
        assert_eq!(field(&facts, Kind::Verification, "status"), None, "{error}");
    }
}

/// Regression: an edit without a response, or with an error in a list of texts, was stored as a
/// change, and one that a text reports was not.
#[test]
fn an_edit_is_a_change_only_if_its_response_says_so() {
    let said = |text: &str| json!([{"type":"text","text":text}]);
    for (response, is_made) in [
        (json!({"filePath":"/w/a.rs","success":true}), true),
        (json!("The file /w/a.rs has been updated successfully."), true),
        (said("The file /w/a.rs has been updated. Here is a part of it:"), true),
        (json!("File created successfully at: /w/a.rs"), true),
        (json!("The file /w/a.rs has been updated since it was read."), false),
        (json!("The file /w/a.rs was not written: it has been created by root."), false),
        (json!({}), false),
        (json!({"filePath":"/w/a.rs","status":"failed"}), false),
        (json!(null), false),
        (json!(false), false),
        (json!([]), false),
        (json!(""), false),
        (said("String to replace not found in file.\nString: it has been updated"), false),
        (json!({"content":[{"type":"text","text":"File has not been read yet."}]}), false),
    ] {
        let input = json!({"session_id":"s","tool_name":"Edit","tool_use_id":"e","tool_response":response,
            "tool_input":{"file_path":"/w/a.rs","old_string":"a","new_string":"b"}});
        let facts = facts(HookAgent::Claude, "PostToolUse", &input);
        let path = field(&facts, Kind::Code, "path");
        assert_eq!(path, is_made.then(|| Value::from("/w/a.rs")).as_ref(), "{response}");
    }
    let input = json!({"tool_name":"replace",
        "tool_input":{"file_path":"/w/a.rs","old_string":"a","new_string":"b"}});
    assert_eq!(facts(HookAgent::Gemini, "AfterTool", &input), []);
}

#[test]
fn an_edit_of_gemini_that_says_that_it_failed_is_no_change() {
    let input = json!({"tool_name":"replace","tool_input":{"file_path":"/w/a.rs","old_string":"a","new_string":"b"},
        "tool_response":{"llmContent":"Failed to edit, 0 occurrences found"}});
    assert_eq!(facts(HookAgent::Gemini, "AfterTool", &input), []);
}

#[test]
fn an_event_with_something_before_or_after_it_is_read() {
    let event = r#"{"session_id":"s"}"#;
    for input in [
        format!("Active code page: 65001\r\n{event}"),
        format!("{event}\n{{}}"),
        format!("\u{1e}{event}\nEOF"),
        format!("{{\"status\":\"ok\"}}\n{event}"),
        format!("${{x}} {{it's}}\n{event}"),
        r#"{"session_id":"s","x":[NaN,-Infinity,undefined,1e999,],}"#.to_owned(),
        format!(r#"{{"session_id":"s","x":{}0{}}}"#, r#"{"a":["#.repeat(200), "]}".repeat(200)),
        serde_json::Value::from(event).to_string(),
    ] {
        let read = HookEvent::read(HookAgent::Claude, "Stop", input.as_bytes()).unwrap();
        assert_eq!(read.session.as_deref(), Some("s"), "{input}");
    }
}

#[test]
fn a_call_that_was_denied_ran_nothing_and_checked_nothing() {
    let input = json!({"session_id":"s","tool_name":"Bash","tool_use_id":"t1",
        "tool_input":{"command":"cargo test"},"reason":"the classifier says no"});
    let facts = facts(HookAgent::Claude, "PermissionDenied", &input);
    assert_eq!(facts.len(), 1, "{facts:?}");
    let command_field = |name| field(&facts, Kind::Command, name);
    assert_eq!(
        (command_field("outcome"), command_field("exit_code")),
        (Some(&"refused".into()), None)
    );
    assert_eq!(command_field("reason"), Some(&"the classifier says no".into()));
}

#[test]
fn the_use_of_another_tool_is_recorded_with_its_input() {
    let read = json!({"tool":"read","callID":"r1","args":{"filePath":"/w/a.rs","limit":20},"output":{"output":"text"}});
    let read = facts(HookAgent::OpenCode, "tool.execute.after", &read);
    let read_field = |name| field(&read, Kind::Tool, name);
    assert_eq!(
        (read_field("tool"), read_field("path")),
        (Some(&"read".into()), Some(&"/w/a.rs".into()))
    );
    assert_eq!(read_field("outcome"), Some(&"finished".into()));
    assert_eq!(read_field("input").unwrap().field("limit"), Some(&Value::Int(20)));
    let search = json!({"session_id":"s","tool_name":"mcp__docs__find","tool_use_id":"m1",
        "tool_input":{"query":"lexer","within":{"a":{"b":{"c":1}}}},"tool_response":[]});
    let search = facts(HookAgent::Codex, "PostToolUse", &search);
    assert_eq!(field(&search, Kind::Tool, "query"), Some(&"lexer".into()));
    let input = field(&search, Kind::Tool, "input").unwrap();
    let deep = input.field("within").and_then(|within| within.field("a"));
    assert_eq!(deep, Some(&"{\"b\":{\"c\":1}}".into()));
    for response in [
        json!({"status":"async_launched","taskId":"t1"}),
        json!("MCP tool \"a\" is still running. It was moved to the background as task m1."),
    ] {
        let goes_on =
            json!({"session_id":"s","tool_name":"a","tool_use_id":"w1","tool_response":response});
        let goes_on = facts(HookAgent::Claude, "PostToolUse", &goes_on);
        assert_eq!(field(&goes_on, Kind::Tool, "outcome"), Some(&"unknown".into()));
    }
    let denied = json!({"session_id":"s","tool_name":"Edit","tool_use_id":"e1",
        "tool_input":{"file_path":"/w/a.rs","old_string":"a","new_string":"b"},"reason":"not this one"});
    let denied = facts(HookAgent::Claude, "PermissionDenied", &denied);
    assert_eq!(field(&denied, Kind::Tool, "outcome"), Some(&"refused".into()));
    let list =
        json!({"tool":"todowrite","callID":"w1","args":{"todos":[]},"output":{"output":"ok"}});
    assert_eq!(facts(HookAgent::OpenCode, "tool.execute.after", &list), []);
}

#[test]
fn a_patch_in_codex_form_is_read_from_codex_and_opencode() {
    let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-a\n+b\n*** End Patch";
    let input = |response: &str| {
        json!({"session_id":"s","tool_name":"apply_patch","tool_use_id":"k1",
            "tool_input":{"command":patch},"tool_response":response})
    };
    let done = facts(
        HookAgent::Codex,
        "PostToolUse",
        &input("Success. Updated the following files:\nM a.rs"),
    );
    assert_eq!(field(&done, Kind::Code, "path"), Some(&"a.rs".into()));
    let with_exit_code = "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess. Updated the following files:\nM a.rs\n";
    assert_eq!(facts(HookAgent::Codex, "PostToolUse", &input(with_exit_code)), done);
    assert_eq!(
        facts(HookAgent::Codex, "PostToolUse", &input("verification failed: no such line")),
        []
    );
    let opencode = json!({"tool":"apply_patch","callID":"k1","args":{"patchText":patch}});
    let facts = facts(HookAgent::OpenCode, "tool.execute.after", &opencode);
    assert_eq!(field(&facts, Kind::Code, "path"), Some(&"a.rs".into()));
}

#[test]
fn a_long_output_is_kept_with_its_beginning_and_end() {
    let long = format!("begin{}end", "日".repeat(9000));
    let input = json!({"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"x"},"tool_response":{"stdout":long}});
    let facts = facts(HookAgent::Claude, "PostToolUse", &input);
    let text = field(&facts, Kind::Command, "stdout_preview").and_then(Value::as_text).unwrap();
    assert!(text.len() < 4100 && text.starts_with("begin") && text.ends_with("end"), "{text}");
    assert!(text.contains("bytes left out"));
}

#[test]
fn each_agent_is_answered_in_its_own_form() {
    let read = |agent, name: &str| event(agent, name, &json!({"session_id":"s"}));
    let text = Some("known");
    for (agent, name, with, without) in [
        (
            HookAgent::Claude,
            "SessionStart",
            "{\"hookSpecificOutput\":{\"additionalContext\":\"known\",\"hookEventName\":\"SessionStart\"}}\n",
            "",
        ),
        (HookAgent::Claude, "PreCompact", "known", ""),
        (HookAgent::Codex, "PostCompact", "", ""),
        (
            HookAgent::Codex,
            "UserPromptSubmit",
            "{\"hookSpecificOutput\":{\"additionalContext\":\"known\",\"hookEventName\":\"UserPromptSubmit\"}}\n",
            "",
        ),
        (
            HookAgent::Gemini,
            "BeforeAgent",
            "{\"hookSpecificOutput\":{\"additionalContext\":\"known\",\"hookEventName\":\"BeforeAgent\"}}\n",
            "{}\n",
        ),
        (
            HookAgent::Gemini,
            "AfterTool",
            "{\"hookSpecificOutput\":{\"additionalContext\":\"known\",\"hookEventName\":\"AfterTool\"}}\n",
            "{}\n",
        ),
        (HookAgent::Gemini, "PreCompress", "{}\n", "{}\n"),
        (HookAgent::Cursor, "sessionStart", "{\"additional_context\":\"known\"}\n", "{}\n"),
        (HookAgent::Cursor, "preCompact", "{}\n", "{}\n"),
        (HookAgent::OpenCode, "session.compacting", "{\"context\":[\"known\"]}\n", "{}\n"),
        (HookAgent::OpenCode, "chat.system.transform", "{\"context\":[\"known\"]}\n", "{}\n"),
    ] {
        let event = read(agent, name);
        assert_eq!(answer(&event, text), with, "{agent:?} {name}");
        assert_eq!(answer(&event, None), without, "{agent:?} {name}");
    }
}

#[test]
fn an_answer_never_exceeds_the_limit_of_the_agent() {
    let line = "a line about 😀 something\n";
    let text = line.repeat(2000);
    for agent in HookAgent::ALL {
        for name in ["SessionStart", "sessionStart", "chat.system.transform"] {
            let event = event(agent, name, &json!({}));
            let Some(budget) = reply_budget(&event) else { continue };
            let cut = budget.cut(&text);
            assert!(budget.holds(cut) && !budget.holds(&format!("{cut}\n{line}")), "{agent:?}");
            assert!(!cut.ends_with('\n') && cut.ends_with("something"), "whole lines");
        }
    }
    let budget = ReplyBudget { units: 4, bytes: usize::MAX };
    assert_eq!(budget.cut("😀😀😀"), "😀😀");
    assert_eq!(budget.cut("abcd"), "abcd");
}

/// Each event in the table of `docs/hooks.md` is known, and the events of a row are of one kind.
#[test]
fn the_page_lists_the_events_that_are_understood() {
    let page = include_str!("../../../docs/hooks.md");
    let table = page.split("| what happened |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut event_count = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let agents: [&[HookAgent]; 4] = [
            &[HookAgent::Claude, HookAgent::Codex],
            &[HookAgent::Gemini],
            &[HookAgent::Cursor],
            &[HookAgent::OpenCode],
        ];
        assert_eq!(cells.len(), 5, "{row}");
        let mut kinds = Vec::new();
        for (cell, agents) in cells[1..].iter().zip(agents) {
            for name in cell.split('`').skip(1).step_by(2) {
                for agent in agents {
                    let kind = event(*agent, name, &json!({})).kind;
                    assert_ne!(kind, HookEventKind::Other, "{agent:?} {name}");
                    kinds.push(std::mem::discriminant(&kind));
                    event_count += 1;
                }
            }
        }
        kinds.dedup();
        assert_eq!(kinds.len(), 1, "{row}");
    }
    assert!(event_count > 25, "{event_count}");
}
