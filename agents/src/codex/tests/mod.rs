//! Rollouts, read from lines built in the tests.

mod edits;
mod ends;
mod prompts;
mod turn_ends;
mod wanted;

use crate::claude_code::{InputEnding, TranscriptDialect, TranscriptOptions, TranscriptReader};
use crate::piece_facts::of_kind;
use crate::{TranscriptPiece, resolve};
use forge_store::model::{Fact, Kind, TextRef, Timestamp, Value};
use serde_json::{Value as Json, json};

fn at(second: u32, kind: &str, payload: &Json) -> String {
    let (minute, second) = (second / 60, second % 60);
    let timestamp = format!("2026-05-01T10:{minute:02}:{second:02}.000Z");
    json!({ "timestamp": timestamp, "type": kind, "payload": payload }).to_string() + "\n"
}

fn item(second: u32, payload: &Json) -> String {
    at(second, "response_item", payload)
}

fn meta() -> String {
    at(
        0,
        "session_meta",
        &json!({"id": "0197-aa", "cwd": "/w", "cli_version": "0.150.0", "git": {"branch": "main"}}),
    )
}

fn call(second: u32, name: &str, id: &str, arguments: &Json) -> String {
    let arguments = arguments.to_string();
    item(
        second,
        &json!({"type": "function_call", "name": name, "call_id": id, "arguments": arguments}),
    )
}

fn output(second: u32, id: &str, output: &Json) -> String {
    item(second, &json!({"type": "function_call_output", "call_id": id, "output": output}))
}

fn options() -> TranscriptOptions {
    TranscriptOptions { dialect: TranscriptDialect::Codex, ..TranscriptOptions::default() }
}

fn read(text: &str) -> TranscriptPiece {
    TranscriptReader::new(options())
        .read(text.as_bytes(), InputEnding::File, Timestamp::default())
        .unwrap()
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

/// Checks that reading a rollout in two pieces, whatever the cut, gives the same as reading it at
/// once.
fn check_same_in_pieces(script: &str) {
    let whole = read(script);
    // A short rollout is cut at every byte. A long one is cut at every 37th byte, so that lines are
    // cut at different places.
    let step = if script.len() < 1500 { 1 } else { 37 };
    for cut in (0..script.len()).step_by(step) {
        let mut first = TranscriptReader::new(options());
        let mut facts = Vec::new();
        let mut checkpoints = Vec::new();
        let piece =
            first.read(&script.as_bytes()[..cut], InputEnding::More, Timestamp::default()).unwrap();
        let taken = usize::try_from(piece.taken).unwrap();
        facts.extend(piece.facts);
        checkpoints.extend(piece.checkpoints);
        // Another process continues, from the serialised carry.
        let carry = serde_json::from_slice(&serde_json::to_vec(first.carry()).unwrap()).unwrap();
        let piece = TranscriptReader::resume(options(), carry)
            .read(&script.as_bytes()[taken..], InputEnding::File, Timestamp::default())
            .unwrap();
        facts.extend(piece.facts);
        checkpoints.extend(piece.checkpoints);
        assert_eq!((&facts, &checkpoints), (&whole.facts, &whole.checkpoints), "cut at {cut}");
    }
}

#[test]
fn a_prompt_and_messages_of_a_codex_session_are_read() {
    let user = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "fix the cache"}]});
    let surroundings = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]});
    let answer = json!({"type": "message", "role": "assistant", "id": "msg_1",
        "content": [{"type": "output_text", "text": "Looking"}, {"type": "output_text", "text": "now"}]});
    let thought = json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "gAAA"});
    let script = [
        meta(),
        at(1, "turn_context", &json!({"cwd": "/w/sub", "model": "gpt-9"})),
        item(1, &surroundings),
        item(2, &user),
        at(2, "event_msg", &json!({"type": "user_message", "message": "fix the cache"})),
        item(3, &thought),
        item(3, &json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"})),
        item(4, &answer),
        at(4, "event_msg", &json!({"type": "agent_message", "message": "Looking\nnow"})),
        at(5, "event_msg", &json!({"type": "user_message", "message": "fix the cache"})),
        item(5, &user),
        at(6, "world_state", &json!({"anything": 1})),
    ]
    .concat();
    let piece = read(&script);
    let session = piece.session.clone().unwrap();
    assert_eq!(session.agent_session, "0197-aa");
    assert_eq!(
        (session.cwd.as_deref(), session.git_branch.as_deref()),
        (Some("/w/sub"), Some("main"))
    );
    assert_eq!(session.title.as_deref(), Some("fix the cache"));
    // The same words twice are two prompts. Two lines report each prompt, which is recorded once.
    assert_eq!(of_kind(&piece, Kind::Prompt).len(), 2);
    let messages = of_kind(&piece, Kind::Message);
    assert_eq!(messages.len(), 5);
    assert_eq!(field(messages[0], "meta"), Some(&true.into()));
    assert_eq!(text(messages[2], "thinking").as_deref(), Some("hm"));
    assert_eq!(
        (messages[3].id.as_str(), text(messages[3], "text").unwrap().as_str()),
        ("msg_1", "Looking\nnow")
    );
    assert_eq!(text(messages[3], "model").as_deref(), Some("gpt-9"));
    assert_eq!(piece.skipped, []);
}

#[test]
fn commands_are_read_in_the_forms_of_all_codex_versions() {
    let script = [
        meta(),
        call(10, "shell", "c1", &json!({"command": ["bash", "-lc", "cargo test"], "workdir": "/w/a"})),
        output(14, "c1", &json!("{\"output\":\"test result: FAILED. 1 failed\\n\",\"metadata\":{\"exit_code\":101,\"duration_seconds\":3.5}}")),
        call(20, "shell_command", "c2", &json!({"command": "ls", "workdir": "sub"})),
        output(21, "c2", &json!("Exit code: 0\nWall time: 0.1 seconds\nOutput:\na\nb\n")),
        call(22, "exec_command", "c3", &json!({"cmd": "sleep 100"})),
        output(23, "c3", &json!("Wall time: 1.0 seconds\nProcess running with session ID 4\nOutput:\n")),
        call(24, "exec_command", "c4", &json!({"cmd": "rm -rf /"})),
        output(25, "c4", &json!([{"type": "input_text", "text": "exec command rejected by user"}])),
        item(26, &json!({"type": "local_shell_call", "call_id": "c5", "status": "completed",
            "action": {"type": "exec", "command": ["ls", "-l"], "working_directory": "/x"}})),
        output(27, "c5", &json!({"content": "Exit code: 2\nOutput:\nno", "success": false})),
        call(28, "web_search", "c6", &json!({"q": "x"})),
        output(29, "c6", &json!("found")),
        call(30, "exec_command", "c7", &json!({"cmd": "never answered"})),
    ]
    .concat();
    let piece = read(&script);
    let commands = of_kind(&piece, Kind::Command);
    let actual: Vec<_> = commands
        .iter()
        .map(|fact| {
            let code = field(fact, "exit_code").and_then(Value::as_i64);
            (text(fact, "command").unwrap(), text(fact, "outcome").unwrap(), code)
        })
        .collect();
    let expected = [
        ("cargo test", "failed", Some(101)),
        ("ls", "finished", Some(0)),
        ("sleep 100", "background", None),
        ("rm -rf /", "refused", None),
        ("ls -l", "failed", Some(2)),
    ];
    assert_eq!(actual, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c)));
    assert_eq!(commands[0].at, Timestamp::parse_rfc3339("2026-05-01T10:00:14Z").unwrap());
    assert_eq!(text(commands[0], "working_dir").as_deref(), Some("/w/a"));
    assert_eq!(field(commands[0], "duration_ms"), Some(&3500_i64.into()));
    assert_eq!(text(commands[1], "stdout_preview").as_deref(), Some("a\nb\n"));
    assert_eq!(text(commands[1], "working_dir").as_deref(), Some("/w/sub"));
    assert_eq!(text(commands[2], "working_dir").as_deref(), Some("/w"));
    assert_eq!(text(commands[4], "working_dir").as_deref(), Some("/x"));
    let checks = of_kind(&piece, Kind::Verification);
    assert_eq!((checks.len(), text(checks[0], "status").as_deref()), (1, Some("failed")));
}

#[test]
fn a_patch_is_read_as_one_code_fact_for_each_file() {
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-old\n+new\n+more\n*** Add File: c.txt\n+hello\n*** Delete File: d\n*** End Patch";
    let custom = json!({"type": "custom_tool_call", "status": "completed", "call_id": "p1",
        "name": "apply_patch", "input": patch});
    let done = json!({"type": "custom_tool_call_output", "call_id": "p1",
        "output": "{\"output\":\"Success. Updated the following files:\\nM src/a.rs\\n\",\"metadata\":{\"exit_code\":0}}"});
    let failed = json!({"type": "custom_tool_call_output", "call_id": "p2",
        "output": "apply_patch verification failed: no such line"});
    let mut again = custom.clone();
    again["call_id"] = "p2".into();
    let shell = json!({"command": ["apply_patch", patch]});
    let script = [
        meta(),
        item(1, &custom),
        item(2, &done),
        item(3, &again),
        item(4, &failed),
        call(5, "shell", "p3", &shell),
        output(6, "p3", &json!("Exit code: 0\nOutput:\nSuccess.")),
    ]
    .concat();
    let piece = read(&script);
    let code = of_kind(&piece, Kind::Code);
    let actual: Vec<_> = code
        .iter()
        .map(|fact| {
            let number = |name| field(fact, name).and_then(Value::as_i64).unwrap();
            (
                fact.id.as_str(),
                text(fact, "path").unwrap(),
                number("lines_added"),
                number("lines_removed"),
            )
        })
        .collect();
    let expect = |id, path: &str, added, removed| (id, path.to_owned(), added, removed);
    assert_eq!(
        actual,
        [
            expect("p1", "src/a.rs", 2, 1),
            expect("p1/2", "c.txt", 1, 0),
            expect("p1/3", "d", 0, 0),
            expect("p3", "src/a.rs", 2, 1),
            expect("p3/2", "c.txt", 1, 0),
            expect("p3/3", "d", 0, 0),
        ]
    );
    assert_eq!(text(code[0], "moved_to").as_deref(), Some("src/b.rs"));
    assert!(text(code[1], "patch").unwrap().starts_with("*** Add File: c.txt\n+hello\n"));
}

#[test]
fn a_plan_is_read_as_tasks_and_a_compaction_as_a_checkpoint() {
    let plan = |a: &str, b: &str| json!({"plan": [{"step": "read", "status": a}, {"step": "write", "status": b}]});
    let script = [
        meta(),
        call(1, "update_plan", "u1", &plan("in_progress", "pending")),
        output(1, "u1", &json!("Plan updated")),
        call(2, "update_plan", "u2", &plan("completed", "in_progress")),
        output(3, "u2", &json!("Plan updated")),
        call(4, "update_plan", "u3", &plan("completed", "completed")),
        output(5, "u3", &json!("unsupported call: update_plan")),
        at(90, "compacted", &json!({"message": "we found the bug", "replacement_history": []})),
        at(91, "event_msg", &json!({"type": "context_compacted"})),
    ]
    .concat();
    let piece = read(&script);
    let tasks: Vec<_> =
        of_kind(&piece, Kind::Task).iter().map(|fact| text(fact, "status").unwrap()).collect();
    assert_eq!(tasks.len(), 4);
    let [checkpoint] = piece.checkpoints.as_slice() else { panic!("{:?}", piece.checkpoints) };
    assert_eq!(checkpoint.tags, ["compaction"]);
    // The hook of Codex knows the cause, so a rollout does not say that it is unknown.
    assert_eq!(checkpoint.message, "context compacted");
    assert_eq!(checkpoint.time, Timestamp::parse_rfc3339("2026-05-01T10:01:30Z").unwrap());
    assert!(checkpoint.key.starts_with("compaction:"));
    let Value::Map(body) = &checkpoint.body else { panic!() };
    assert_eq!(body.get("summary").and_then(Value::as_text), Some("we found the bug"));
}

#[test]
fn a_long_text_is_resolved_from_its_source() {
    let long = "x".repeat(400);
    let line = format!("echo {long}");
    let script = [
        meta(),
        call(1, "shell", "c1", &json!({"command": ["bash", "-lc", line]})),
        output(2, "c1", &json!(format!("Exit code: 0\nOutput:\n{long}"))),
    ]
    .concat();
    let piece = read(&script);
    let command = of_kind(&piece, Kind::Command)[0];
    for (name, expected) in [("command", &line), ("stdout_preview", &long)] {
        let found = TextRef::from_value(field(command, name).unwrap()).unwrap();
        let (offset, length) = found.place.unwrap();
        let (from, to) =
            (usize::try_from(offset).unwrap(), usize::try_from(offset + length).unwrap());
        assert_eq!(resolve(&script.as_bytes()[from..to], &found.pointer).as_ref(), Some(expected));
    }
}

#[test]
fn junk_is_skipped_and_reported() {
    let script = [
        "nonsense\n".to_owned(),
        json!({"type": "message", "role": "user", "content": []}).to_string() + "\n",
        json!({"type": "response_item", "payload": {"type": "message"}}).to_string() + "\n",
        json!({"type": "response_item", "timestamp": 3, "payload": [1]}).to_string() + "\n",
        json!({"type": "event_msg"}).to_string() + "\n",
        meta(),
        "{\"timestamp\": \"2026".to_owned(),
    ]
    .concat();
    let piece = read(&script);
    let skipped: Vec<_> = piece.skipped.iter().map(|it| (it.line, it.reason.as_str())).collect();
    assert_eq!(skipped, [(1, "is not a JSON object"), (2, "has no time"), (3, "has no time")]);
    assert_eq!(piece.session.unwrap().agent_session, "0197-aa");
    let strict = TranscriptOptions { strict: true, ..options() };
    assert!(
        TranscriptReader::new(strict)
            .read(b"nonsense\n", InputEnding::File, Timestamp::default())
            .is_err()
    );
}

#[test]
fn reading_a_file_in_two_parts_gives_the_same_facts_wherever_it_is_cut() {
    let script = [
        meta(),
        call(1, "shell_command", "c1", &json!({"command": "make test"})),
        at(2, "event_msg", &json!({"type": "user_message", "message": "go on"})),
        output(400, "c1", &json!("Exit code: 0\nOutput:\nok")),
        item(401, &json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]})),
        at(402, "compacted", &json!({"message": "s"})),
    ]
    .concat();
    check_same_in_pieces(&script);
}

#[test]
fn a_word_of_a_command_with_a_semicolon_or_bar_is_no_command() {
    let words = [
        json!(["git", "commit", "-m", "fix; cargo test"]),
        json!(["rg", "foo|cargo test", "src"]),
        json!(["ssh", "-oBatchMode=yes", "host"]),
    ];
    let calls = words.iter().zip(1_u32..).map(|(words, second)| {
        let id = format!("k{second}");
        call(second, "shell", &id, &json!({"command": words}))
            + &output(second, &id, &json!("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n"))
    });
    let piece = read(&(meta() + &calls.collect::<String>()));
    let commands = of_kind(&piece, Kind::Command);
    let lines: Vec<_> = commands.iter().filter_map(|fact| text(fact, "command")).collect();
    assert_eq!(
        lines,
        ["git commit -m 'fix; cargo test'", "rg 'foo|cargo test' src", "ssh -oBatchMode=yes host"]
    );
    assert!(of_kind(&piece, Kind::Verification).is_empty());
}

#[test]
fn unescaped_control_characters_lose_no_text() {
    // The control characters are in the line, and in the JSON of a call's arguments.
    let called = json!({"type": "function_call", "name": "shell_command", "call_id": "k1",
        "arguments": "{\"command\":\"printf 'a\n\tb'\"}"});
    let script = [meta(), item(1, &called), output(2, "k1", &json!("Exit code: 0\nOutput:\nBELL"))]
        .concat()
        .replace("BELL", "\u{7}\u{1b}[1mbold");
    let piece = read(&script);
    assert!(piece.skipped.is_empty());
    let command = of_kind(&piece, Kind::Command)[0];
    assert_eq!(text(command, "command").as_deref(), Some("printf 'a\n\tb'"));
    assert_eq!(text(command, "stdout_preview").as_deref(), Some("\u{7}\u{1b}[1mbold"));
    check_same_in_pieces(&script);
    assert_eq!(
        crate::begun_codex_session("{\"timestamp\":\"\",\"type\":\"session_meta\",\"payload\":{\"id\":\"c1\",\"cwd\":\"/a\tb\"}}".as_bytes()),
        Some(("c1".to_owned(), None))
    );
}

#[test]
fn the_directory_may_be_a_url() {
    let script = [
        at(0, "session_meta", &json!({"id": "a", "cwd": "file:///w/my%20app"})),
        item(
            1,
            &json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "go"}]}),
        ),
        at(2, "turn_context", &json!({"cwd": "file:///w/b", "model": "m"})),
        call(3, "exec_command", "k1", &json!({"cmd": "ls"})),
        output(4, "k1", &json!("Exit code: 0\nOutput:\n")),
    ];
    let piece = read(&script.concat());
    let prompt = of_kind(&piece, Kind::Prompt)[0];
    assert_eq!(text(prompt, "cwd").as_deref(), Some("/w/my app"));
    let command = of_kind(&piece, Kind::Command)[0];
    assert_eq!(text(command, "working_dir").as_deref(), Some("/w/b"));
}
