use crate::piece_facts::of_kind;
use crate::trajectory::{TrajectoryAuthor, read as read_trajectory};
use crate::{TranscriptPiece, resolve};
use forge_store::model::{Fact, Kind, TextRef, Timestamp, Value};
use serde_json::{Value as Json, json};

const START: Timestamp = Timestamp::from_micros(1_000_000);

fn read(text: &str) -> TranscriptPiece {
    read_trajectory(TrajectoryAuthor::OpenHands, text.as_bytes(), START, START, false).unwrap()
}

fn text(fact: &Fact, name: &str) -> String {
    fact.value.field(name).and_then(Value::as_text).unwrap_or("-").to_owned()
}

fn commands(piece: &TranscriptPiece) -> Vec<(String, String, Option<i64>)> {
    let code = |fact: &Fact| fact.value.field("exit_code").and_then(Value::as_i64);
    let row = |fact: &Fact| (text(fact, "command"), text(fact, "outcome"), code(fact));
    of_kind(piece, Kind::Command).into_iter().map(row).collect()
}

fn time(second: u32) -> String {
    format!("2026-05-01T10:00:{second:02}.500000")
}

/// Returns the events of a run in the form of OpenHands's server.
fn server_events() -> Vec<Json> {
    let action = |id: u32, action: &str, args: Json| json!({"id": id, "timestamp": time(id), "source": "agent", "action": action, "args": args});
    let observed = |id: u32, cause: u32, observation: &str, content: &str, extras: Json| {
        json!({"id": id, "timestamp": time(id), "source": "agent", "cause": cause, "observation": observation,
            "content": content, "extras": extras})
    };
    let code = |code: i64| json!({"metadata": {"exit_code": code, "working_dir": "/w"}});
    vec![
        json!({"id": 0, "timestamp": time(0), "source": "user", "action": "message", "args": {"content": "fix the sum"}}),
        json!({"id": 1, "timestamp": time(1), "source": "environment", "observation": "agent_state_changed", "content": ""}),
        action(2, "run", json!({"command": "pytest -q", "thought": "look"})),
        observed(3, 2, "run", "1 failed", code(1)),
        action(
            4,
            "edit",
            json!({"path": "/w/a.py", "command": "str_replace", "old_str": "x = 1", "new_str": "x = 2",
            "file_text": null, "content": "", "start": 1}),
        ),
        observed(5, 4, "edit", "The file /w/a.py has been edited.", json!({"path": "/w/a.py"})),
        action(
            6,
            "edit",
            json!({"path": "/w/b.py", "command": "str_replace", "old_str": "y", "content": ""}),
        ),
        observed(7, 6, "error", "No replacement was performed", json!({})),
        action(8, "read", json!({"path": "/w/c.py"})),
        observed(9, 8, "read", "text", json!({"path": "/w/c.py"})),
        action(10, "run", json!({"command": "rm -r /"})),
        observed(11, 10, "user_rejected", "Action has been rejected by the user!", json!({})),
        action(12, "run", json!({"command": "make check"})),
        observed(
            13,
            12,
            "run",
            "...\n[The command has no new output after 30 seconds. You may wait longer",
            code(-1),
        ),
        action(14, "run", json!({"command": "", "is_input": true})),
        observed(15, 14, "run", "done", code(0)),
        action(
            16,
            "condensation",
            json!({"summary": "the sum was wrong", "forgotten_event_ids": [1, 2]}),
        ),
        action(
            17,
            "task_tracking",
            json!({"command": "plan", "task_list": [{"title": "test", "status": "in_progress"}]}),
        ),
        observed(
            18,
            17,
            "task_tracking",
            "",
            json!({"task_list": [{"title": "test", "status": "done"}, null]}),
        ),
        action(
            19,
            "call_tool_mcp",
            json!({"name": "fetch", "arguments": {"url": "https://example.org"}}),
        ),
        action(20, "finish", json!({"final_thought": "it is fixed", "thought": ""})),
    ]
}

fn check_server_events(piece: &TranscriptPiece) {
    let command =
        |command: &str, outcome: &str, code| (command.to_owned(), outcome.to_owned(), code);
    assert_eq!(
        commands(piece),
        [
            command("pytest -q", "failed", Some(1)),
            command("rm -r /", "refused", None),
            command("make check", "background", None),
            command("make check", "finished", Some(0)),
        ]
    );
    let checks: Vec<_> =
        of_kind(piece, Kind::Verification).iter().map(|it| text(it, "status")).collect();
    assert_eq!(checks.first().map(String::as_str), Some("failed"));
    assert_eq!(checks.last().map(String::as_str), Some("passed"));
    let [prompt] = of_kind(piece, Kind::Prompt)[..] else { panic!() };
    assert_eq!(
        (text(prompt, "text").as_str(), prompt.at),
        ("fix the sum", Timestamp::parse_rfc3339(&format!("{}Z", time(0))).unwrap())
    );
    let [code] = of_kind(piece, Kind::Code)[..] else { panic!() };
    assert_eq!(text(code, "path"), "/w/a.py");
    assert!(text(code, "patch").contains("-x = 1\n+x = 2\n"), "{code:?}");
    let tools: Vec<_> = of_kind(piece, Kind::Tool)
        .iter()
        .map(|it| (text(it, "tool"), text(it, "outcome")))
        .collect();
    let expected = [("edit", "failed"), ("read", "finished"), ("fetch", "unknown")];
    assert_eq!(tools, expected.map(|(tool, outcome)| (tool.to_owned(), outcome.to_owned())));
    assert_eq!(text(of_kind(piece, Kind::Tool)[2], "address"), "https://example.org");
    assert_eq!(text(of_kind(piece, Kind::Task)[0], "status"), "completed");
    let [compaction] = piece.checkpoints.as_slice() else { panic!("{:?}", piece.checkpoints) };
    assert_eq!(compaction.body.field("summary"), Some(&"the sum was wrong".into()));
    assert_eq!(text(of_kind(piece, Kind::Message).last().unwrap(), "text"), "it is fixed");
    assert!(piece.facts.iter().all(|fact| fact.value.field("synthetic").is_none()));
}

#[test]
fn the_events_of_the_server_are_read_as_a_list_and_as_lines() {
    let events = server_events();
    let list = read(&json!(events).to_string());
    check_server_events(&list);
    check_server_events(&read(&json!({"trajectory": events}).to_string()));
    check_server_events(&read(&json!({"history": events}).to_string()));
    let lines: String = events.iter().map(|event| event.to_string() + "\n").collect();
    let lines = read(&lines);
    check_server_events(&lines);
    assert_eq!(lines.session.unwrap().agent_session, list.session.unwrap().agent_session);
    // Early versions stored pairs of an action and its observation.
    let pairs: Vec<Json> = events.chunks(2).map(|pair| json!(pair)).collect();
    check_server_events(&read(&json!(pairs).to_string()));
}

#[test]
fn a_reference_leads_to_its_text_in_every_form() {
    let long = "z".repeat(400);
    let events = [
        json!({"id": 1, "timestamp": time(1), "source": "agent", "action": "run", "args": {"command": "ls"}}),
        json!({"id": 2, "timestamp": time(2), "cause": 1, "observation": "run", "content": long, "extras": {"exit_code": 0}}),
    ];
    let lines: String = events.iter().map(|event| event.to_string() + "\n").collect();
    for document in [
        json!(events).to_string(),
        json!({"history": [events]}).to_string(),
        lines,
        format!("\u{feff}{}", json!(events)),
    ] {
        let piece = read(&document);
        let found = TextRef::from_value(
            of_kind(&piece, Kind::Command)[0].value.field("stdout_preview").unwrap(),
        )
        .unwrap();
        let (offset, length) = found.place.unwrap();
        let part = &document.as_bytes()[offset as usize..(offset + length) as usize];
        assert_eq!(resolve(part, &found.pointer).as_ref(), Some(&long), "{document}");
        assert_eq!(commands(&piece), [("ls".to_owned(), "finished".to_owned(), Some(0))]);
    }
}

#[test]
fn the_events_of_the_sdk_are_read() {
    let event = |number: u32, kind: &str, source: &str, more: Json| {
        let mut event = json!({"kind": kind, "id": format!("e{number}"), "timestamp": time(number), "source": source});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let call = |number: u32, tool: &str, action: Json| {
        event(
            number,
            "ActionEvent",
            "agent",
            json!({"thought": [{"type": "text", "text": "look"}], "tool_name": tool,
            "tool_call_id": format!("call{number}"), "action": action}),
        )
    };
    let answer = |number: u32, to: u32, observation: Json| {
        event(
            number,
            "ObservationEvent",
            "environment",
            json!({"action_id": format!("e{to}"),
            "tool_call_id": format!("call{to}"), "observation": observation}),
        )
    };
    let text_blocks = |text: &str| json!([{"type": "text", "text": text}]);
    let events = [
        event(0, "SystemPromptEvent", "agent", json!({})),
        event(
            1,
            "MessageEvent",
            "user",
            json!({"llm_message": {"role": "user", "content": text_blocks("<b>fix</b> it")}}),
        ),
        call(
            2,
            "terminal",
            json!({"kind": "TerminalAction", "command": "cargo test", "is_input": false}),
        ),
        answer(
            3,
            2,
            json!({"kind": "TerminalObservation", "content": text_blocks("ok"), "exit_code": 0, "timeout": false}),
        ),
        call(
            4,
            "file_editor",
            json!({"kind": "FileEditorAction", "command": "create", "path": "/w/n.py", "file_text": "x\n"}),
        ),
        answer(
            5,
            4,
            json!({"kind": "FileEditorObservation", "content": text_blocks("created"), "path": "/w/n.py", "is_error": false}),
        ),
        call(6, "terminal", json!({"kind": "TerminalAction", "command": "sleep 99"})),
        answer(
            7,
            6,
            json!({"kind": "TerminalObservation", "content": text_blocks("x"), "exit_code": -1, "timeout": true}),
        ),
        call(8, "terminal", json!({"kind": "TerminalAction", "command": "C-c", "is_input": true})),
        answer(
            9,
            8,
            json!({"kind": "TerminalObservation", "content": text_blocks("^C"), "exit_code": 130}),
        ),
        call(10, "terminal", json!({"kind": "TerminalAction", "command": "rm -r x"})),
        event(
            11,
            "UserRejectObservation",
            "environment",
            json!({"action_id": "e10", "rejection_reason": "not that"}),
        ),
        call(12, "grep", json!({"kind": "GrepAction", "pattern": "fn", "path": "/w"})),
        answer(13, 12, json!({"kind": "GrepObservation", "content": text_blocks("a")})),
        call(14, "terminal", Json::Null),
        event(
            15,
            "AgentErrorEvent",
            "agent",
            json!({"tool_call_id": "call14", "error": "no such argument"}),
        ),
        event(16, "Condensation", "environment", json!({"summary": "so far"})),
        event(17, "ConversationStateUpdateEvent", "environment", json!({})),
    ];
    let piece = read(&json!(events).to_string());
    let command =
        |command: &str, outcome: &str, code| (command.to_owned(), outcome.to_owned(), code);
    assert_eq!(
        commands(&piece),
        [
            command("cargo test", "finished", Some(0)),
            command("sleep 99", "background", None),
            command("sleep 99", "interrupted", Some(130)),
            command("rm -r x", "refused", None),
        ]
    );
    assert_eq!(text(of_kind(&piece, Kind::Prompt)[0], "text"), "<b>fix</b> it");
    assert_eq!(text(of_kind(&piece, Kind::Code)[0], "path"), "/w/n.py");
    let tools: Vec<_> = of_kind(&piece, Kind::Tool)
        .iter()
        .map(|it| (text(it, "tool"), text(it, "outcome")))
        .collect();
    let expected = [("grep", "finished"), ("terminal", "failed")];
    assert_eq!(tools, expected.map(|(tool, outcome)| (tool.to_owned(), outcome.to_owned())));
    assert_eq!(piece.checkpoints.len(), 1);
}

#[test]
fn an_edit_that_the_editor_refused_is_not_code() {
    let refused = "No replacement was performed, old_str `a` did not appear verbatim in /w/a.py.";
    let error = format!("ERROR:\n{refused}");
    let edited = "The file /w/a.py has been edited. Here's the result:\n1\talready exists";
    let run = |action: &str, command: &str, observation: &str, content: &str, source: &str| {
        let args = json!({"path": "/w/a.py", "command": command, "old_str": "a", "new_str": "b"});
        let extras = json!({"path": "/w/a.py", "impl_source": source, "diff": null});
        read(
            &json!([
                {"id": 1, "timestamp": time(1), "source": "agent", "action": action, "args": args},
                {"id": 2, "timestamp": time(2), "source": "agent", "cause": 1,
                 "observation": observation, "content": content, "extras": extras},
            ])
            .to_string(),
        )
    };
    for content in [error.as_str(), refused] {
        let piece = run("edit", "str_replace", "edit", content, "oh_aci");
        let [tool] = of_kind(&piece, Kind::Tool)[..] else { panic!("{content}") };
        assert_eq!(
            (text(tool, "outcome").as_str(), text(tool, "reason").as_str()),
            ("failed", content)
        );
        assert_eq!(of_kind(&piece, Kind::Code).len(), 0, "{content}");
    }
    let piece = run("edit", "str_replace", "edit", edited, "oh_aci");
    assert_eq!((of_kind(&piece, Kind::Code).len(), of_kind(&piece, Kind::Tool).len()), (1, 0));
    // An error of the editor begins with `ERROR:`; from another source, this is the file's content.
    for (source, outcome) in [("oh_aci", "failed"), ("default", "finished")] {
        let piece = run("read", "view", "read", "ERROR:\nno such file", source);
        assert_eq!(text(of_kind(&piece, Kind::Tool)[0], "outcome"), outcome);
    }
}

#[test]
fn a_document_without_events_is_refused() {
    for text in ["", "3", "[]", "{}", "[3,null]", "{\"a\":1}\n{\"b\":2}\n", "[{\"role\":\"user\"}]"]
    {
        assert!(
            read_trajectory(TrajectoryAuthor::OpenHands, text.as_bytes(), START, START, false)
                .is_err(),
            "{text}"
        );
    }
    let runs = format!("{0}\n{0}\n", json!({"instance_id": "a", "history": server_events()}));
    let error = read_trajectory(TrajectoryAuthor::OpenHands, runs.as_bytes(), START, START, false)
        .unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("several runs"));
    let nested = "[".repeat(100_000);
    assert!(
        read_trajectory(TrajectoryAuthor::OpenHands, nested.as_bytes(), START, START, false)
            .is_err()
    );
}
