//! Ends of commands: in polls, events and items.

use super::*;
use crate::claude_code::open_call::{CallRequest, OpenCall};
use crate::codex::state::{CodexState, ScriptCommand};
use forge_store::model::FieldMap;

/// Returns the versions of the commands: id, outcome, exit code, minute and second.
fn ends(piece: &TranscriptPiece) -> Vec<(String, String, Option<i64>, String)> {
    let commands = of_kind(piece, Kind::Command).into_iter().map(|fact| {
        let code = field(fact, "exit_code").and_then(Value::as_i64);
        let at = fact.at.to_string().get(14..19).unwrap_or_default().to_owned();
        (fact.id.clone(), text(fact, "outcome").unwrap(), code, at)
    });
    commands.collect()
}

fn end(
    id: &str,
    outcome: &str,
    code: Option<i64>,
    at: &str,
) -> (String, String, Option<i64>, String) {
    (id.to_owned(), outcome.to_owned(), code, at.to_owned())
}

fn verdicts(piece: &TranscriptPiece) -> Vec<String> {
    of_kind(piece, Kind::Verification).iter().map(|fact| text(fact, "status").unwrap()).collect()
}

fn runs(second: u32, id: &str, command: &str) -> String {
    call(second, "exec_command", id, &json!({"cmd": command, "workdir": "/w"}))
}

fn still_running(second: u32, id: &str, process: u32, printed: &str) -> String {
    let result_text = format!(
        "Chunk ID: a\nWall time: 1.0 seconds\nProcess running with session ID {process}\nOutput:\n{printed}"
    );
    output(second, id, &json!(result_text))
}

fn poll(second: u32, id: &str, process: u32, typed: &str) -> String {
    call(second, "write_stdin", id, &json!({"session_id": process, "chars": typed}))
}

fn exited(second: u32, id: &str, code: i64, seconds: f64, printed: &str) -> String {
    let result_text = format!(
        "Chunk ID: b\nWall time: {seconds} seconds\nProcess exited with code {code}\nOutput:\n{printed}"
    );
    output(second, id, &json!(result_text))
}

fn item_of(second: u32, item: &Json) -> String {
    at(second, "event_msg", &json!({"type": "item_completed", "thread_id": "t", "item": item}))
}

fn execution(id: &str, process: &str, command: &str, status: &str, code: Option<i64>) -> Json {
    json!({"type": "CommandExecution", "id": id, "process_id": process, "cwd": "file:///w/a%20b",
        "command": ["/bin/bash", "-lc", command], "source": "unified_exec_startup", "status": status,
        "aggregated_output": "printed\n", "exit_code": code, "duration": {"secs": 6, "nanos": 5_000_000}})
}

#[test]
fn a_background_command_ends_with_the_poll_that_reports_it() {
    let script = [
        meta(),
        runs(1, "k1", "cargo test"),
        still_running(12, "k1", 7, "Compiling\n"),
        poll(13, "k2", 7, ""),
        still_running(20, "k2", 7, "test result: ok\n"),
        poll(21, "k3", 7, "y\n"),
        exited(50, "k3", 101, 29.0, ""),
    ];
    let piece = read(&script.concat());
    assert_eq!(
        ends(&piece),
        [end("k1", "background", None, "00:12"), end("k1", "failed", Some(101), "00:50")]
    );
    let last = of_kind(&piece, Kind::Command)[1];
    // The last poll printed nothing, so the output before it is shown.
    assert_eq!(text(last, "stdout_preview").as_deref(), Some("test result: ok\n"));
    assert_eq!(field(last, "duration_ms"), Some(&49_000_i64.into()));
    assert_eq!(verdicts(&piece), ["unknown", "failed"]);
}

#[test]
fn a_poll_without_a_process_reports_nothing() {
    for result_text in [
        "write_stdin failed: Unknown process id 7",
        "write_stdin failed: UnknownSessionId { session_id: 7 }",
    ] {
        let script = [
            meta(),
            runs(1, "k1", "cargo test"),
            still_running(2, "k1", 7, ""),
            poll(3, "k2", 7, ""),
            output(4, "k2", &json!(result_text)),
            poll(5, "k3", 99, ""),
            exited(6, "k3", 1, 0.1, ""),
        ];
        let piece = read(&script.concat());
        assert_eq!(ends(&piece), [end("k1", "background", None, "00:02")]);
        assert_eq!(verdicts(&piece), ["unknown"]);
    }
}

#[test]
fn a_reused_number_names_the_newer_process() {
    let script = [
        meta(),
        runs(1, "k1", "make one"),
        runs(1, "k2", "make two"),
        still_running(2, "k1", 7, ""),
        still_running(3, "k2", 8, ""),
        runs(4, "k3", "make three"),
        still_running(5, "k3", 7, ""),
        poll(6, "p1", 7, ""),
        poll(6, "p2", 8, ""),
        exited(7, "p2", 2, 1.0, ""),
        exited(8, "p1", 0, 1.0, ""),
    ];
    let piece = read(&script.concat());
    assert_eq!(
        ends(&piece)[3..],
        [end("k2", "failed", Some(2), "00:07"), end("k3", "finished", Some(0), "00:08")]
    );
}

/// Regression: the event of a command ended an earlier one whose process had the same number.
#[test]
fn an_event_ends_its_own_command_and_not_an_earlier_one() {
    let script = [
        meta(),
        runs(1, "k1", "make serve"),
        still_running(2, "k1", 7, ""),
        runs(3, "k2", "make test"),
        item_of(4, &execution("k2", "7", "make test", "failed", Some(2))),
        exited(5, "k2", 2, 0.1, ""),
    ];
    let piece = read(&script.concat());
    assert_eq!(
        ends(&piece),
        [end("k1", "background", None, "00:02"), end("k2", "failed", Some(2), "00:04")]
    );
}

#[test]
fn an_end_that_several_lines_report_is_recorded_once() {
    let event = json!({"type": "exec_command_end", "call_id": "k1", "process_id": "7",
        "command": ["bash", "-lc", "cargo test"], "cwd": "/w", "source": "unified_exec_startup",
        "stdout": "", "stderr": "", "aggregated_output": "test result: FAILED. 1 passed\n",
        "exit_code": 101, "duration": {"secs": 9, "nanos": 0}, "status": "failed"});
    let script = [
        meta(),
        runs(1, "k1", "cargo test"),
        still_running(2, "k1", 7, ""),
        at(10, "event_msg", &event),
        item_of(10, &execution("k1", "7", "cargo test", "failed", Some(101))),
        poll(11, "k2", 7, ""),
        exited(12, "k2", 101, 0.0, ""),
        runs(13, "k3", "ls"),
        item_of(14, &execution("k3", "9", "ls", "completed", Some(0))),
        exited(15, "k3", 0, 0.1, "a"),
    ];
    let piece = read(&script.concat());
    assert_eq!(
        ends(&piece),
        [
            end("k1", "background", None, "00:02"),
            end("k1", "failed", Some(101), "00:10"),
            end("k3", "finished", Some(0), "00:14"),
        ]
    );
    let last = of_kind(&piece, Kind::Command)[1];
    assert_eq!(field(last, "duration_ms"), Some(&9000_i64.into()));
    assert_eq!(text(last, "stdout_preview").as_deref(), Some("test result: FAILED. 1 passed\n"));
}

#[test]
fn a_stopped_process_gives_no_verdict() {
    let script = [
        meta(),
        runs(1, "k1", "cargo test"),
        still_running(2, "k1", 7, ""),
        item_of(9, &execution("k1", "7", "cargo test", "failed", Some(-1))),
        // This item comes before the call's own result, which has priority.
        runs(10, "k2", "make test"),
        item_of(11, &execution("k2", "8", "make test", "failed", Some(-1))),
        output(12, "k2", &json!("Wall time: 1.0 seconds\naborted by user")),
        runs(13, "k3", "make lint"),
        output(
            14,
            "k3",
            &json!(
                "Exit code: 124\nWall time: 1 seconds\nOutput:\ncommand timed out after 1000 milliseconds\n"
            ),
        ),
    ];
    let piece = read(&script.concat());
    assert_eq!(
        ends(&piece)[1..],
        [
            end("k1", "failed", Some(-1), "00:09"),
            end("k2", "failed", Some(-1), "00:11"),
            end("k2", "interrupted", None, "00:12"),
            end("k3", "timed_out", Some(124), "00:14"),
        ]
    );
    // The first verdict of `k1` is given while it runs in the background.
    assert_eq!(verdicts(&piece), ["unknown", "unknown", "unknown", "unknown", "timed_out"]);
}

#[test]
fn commands_of_a_script_are_read_from_their_items() {
    let script_call = |second, id: &str, input: &str| {
        item(
            second,
            &json!({"type": "custom_tool_call", "name": "exec", "call_id": id, "input": input}),
        )
    };
    let printed = |second, id: &str, text: &str| {
        item(
            second,
            &json!({"type": "custom_tool_call_output", "call_id": id, "output": [
            {"type": "input_text", "text": "Script completed\nWall time 0.1 seconds\nOutput:\n"},
            {"type": "input_text", "text": text}]}),
        )
    };
    let script = [
        meta(),
        script_call(
            1,
            "s1",
            "const r = await tools.exec_command({cmd: 'cargo test'}); text(r.output);",
        ),
        item_of(8, &execution("exec-1", "7", "cargo test", "failed", Some(101))),
        printed(9, "s1", "printed"),
        // This command still runs after its script has ended.
        script_call(10, "s2", "tools.exec_command({cmd: 'make test'}); text('started')"),
        printed(11, "s2", "started"),
        item_of(30, &execution("exec-2", "8", "make test", "completed", Some(0))),
    ];
    let piece = read(&script.concat());
    assert_eq!(
        ends(&piece),
        [end("exec-1", "failed", Some(101), "00:08"), end("exec-2", "finished", Some(0), "00:30")]
    );
    let first = of_kind(&piece, Kind::Command)[0];
    assert_eq!(text(first, "command").as_deref(), Some("cargo test"));
    assert_eq!(text(first, "working_dir").as_deref(), Some("/w/a b"));
    assert_eq!(field(first, "duration_ms"), Some(&6005_i64.into()));
    assert_eq!(verdicts(&piece), ["failed", "passed"]);
}

#[test]
fn a_script_without_items_leaves_its_commands_unknown() {
    let call = json!({"type": "custom_tool_call", "name": "exec", "call_id": "s1",
        "input": "const r = await tools.exec_command({cmd:\"make lint; exit 3\", workdir:\"/w/b\"}); text(r.exit_code)"});
    let printed = json!({"type": "custom_tool_call_output", "call_id": "s1",
        "output": "Script completed\nWall time 0.1 seconds\nOutput:\n{\"exit_code\":0}"});
    let script = [meta(), item(1, &call), item(2, &printed)];
    let piece = read(&script.concat());
    assert_eq!(ends(&piece), [end("s1/1", "unknown", None, "00:02")]);
    assert_eq!(verdicts(&piece), ["unknown"]);
    let command = of_kind(&piece, Kind::Command)[0];
    assert_eq!(text(command, "working_dir").as_deref(), Some("/w/b"));
    // A later item reports the end of the command, which becomes a version of the same fact.
    let late = item_of(3, &execution("exec-9", "7", "make lint; exit 3", "failed", Some(3)));
    let piece = read(&(script.concat() + &late));
    assert_eq!(
        ends(&piece),
        [end("s1/1", "unknown", None, "00:02"), end("s1/1", "failed", Some(3), "00:03")]
    );
}

#[test]
fn a_command_of_a_script_runs_below_the_directory_of_the_session() {
    let call = json!({"type": "custom_tool_call", "name": "exec", "call_id": "s1",
        "input": "tools.exec_command({cmd: 'make lint', workdir: 'b'})"});
    let printed = json!({"type": "custom_tool_call_output", "call_id": "s1",
        "output": "Script completed\nWall time 0.1 seconds\nOutput:\n"});
    let piece = read(&[meta(), item(1, &call), item(2, &printed)].concat());
    let command = of_kind(&piece, Kind::Command)[0];
    assert_eq!(text(command, "working_dir").as_deref(), Some("/w/b"));
}

#[test]
fn a_running_script_is_judged_by_its_final_output() {
    let input = "const [a, b] = await Promise.all([tools.exec_command({cmd: 'git status'}), tools.exec_command({cmd: 'pytest -q'})]); text(b.output)";
    let request =
        json!({"type": "custom_tool_call", "name": "exec", "call_id": "s1", "input": input});
    let printed = |second, id: &str, head: &str, text: &str| {
        item(
            second,
            &json!({"type": "custom_tool_call_output", "call_id": id, "output": [
            {"type": "input_text", "text": format!("{head}\nWall time 1.0 seconds\nOutput:\n")},
            {"type": "input_text", "text": text}]}),
        )
    };
    let script = [
        meta(),
        item(1, &request),
        printed(2, "s1", "Script running with cell ID 66", ""),
        call(3, "wait", "w1", &json!({"cell_id": "66"})),
        printed(4, "w1", "Script running with cell ID 66", ""),
        call(5, "wait", "w2", &json!({"cell_id": "66"})),
        printed(9, "w2", "Script completed", "{\"chunk_id\":\"a\",\"exit_code\":1,\"output\":\"F.\\n1 failed, 1 passed in 0.10s\\n\"}"),
    ]
    .concat();
    let piece = read(&script);
    let expected = [
        end("s1/1", "unknown", None, "00:02"),
        end("s1/2", "unknown", None, "00:02"),
        end("s1/1", "unknown", None, "00:09"),
        end("s1/2", "unknown", None, "00:09"),
    ];
    assert_eq!(ends(&piece), expected);
    assert_eq!(verdicts(&piece), ["unknown", "failed"]);
    check_same_in_pieces(&script);
}

/// Regression: the cell of a script that never ended was remembered for ever.
#[test]
fn only_the_latest_of_many_running_scripts_are_remembered() {
    let printed = |second, id: &str, head: &str| {
        let text = format!("{head}\nWall time 1.0 seconds\nOutput:\n");
        item(second, &json!({"type": "custom_tool_call_output", "call_id": id, "output": text}))
    };
    let mut script = meta();
    for number in 0..600 {
        let id = format!("s{number}");
        let input = format!("tools.exec_command({{cmd: 'make part{number}'}})");
        script += &item(
            1,
            &json!({"type": "custom_tool_call", "name": "exec", "call_id": id, "input": input}),
        );
        script += &printed(2, &id, &format!("Script running with cell ID {number}"));
    }
    for cell in ["0", "599"] {
        let id = format!("w{cell}");
        script += &call(3, "wait", &id, &json!({"cell_id": cell}));
        script += &printed(9, &id, "Script completed");
    }
    let mut reader = TranscriptReader::new(options());
    let piece = reader.read(script.as_bytes(), InputEnding::File, Timestamp::default()).unwrap();
    let mut ends = ends(&piece);
    ends.retain(|(_, _, _, at)| at == "00:09");
    assert_eq!(ends, [end("s599/1", "unknown", None, "00:09")]);
    let cells = &reader.carry().other.codex.cells;
    assert!(cells.len() <= 256, "{}", cells.len());
}

/// Regression: among many running scripts, one without commands took the place of another one,
/// whose end then reported nothing.
#[test]
fn a_running_script_without_commands_replaces_no_other() {
    let mut state = CodexState::default();
    for number in 0..256 {
        let id = format!("s{number}/1");
        let call = OpenCall {
            called_at: Timestamp::default(),
            cwd: None,
            tool: "exec".to_owned(),
            request: CallRequest::Tool { fields: FieldMap::default() },
        };
        state.unended.push(ScriptCommand { id: id.clone(), hash: String::new(), call });
        state.keep_cell(number.to_string(), vec![id]);
    }
    state.keep_cell("256".to_owned(), Vec::new());
    assert!(state.cells.contains_key("0") && !state.cells.contains_key("256"));
}

#[test]
fn a_refused_or_failed_start_has_no_check() {
    let declined = json!({"type": "CommandExecution", "id": "k3", "command": ["bash", "-lc", "make lint"],
        "cwd": "/w", "source": "agent", "status": "declined", "exit_code": -1,
        "aggregated_output": "exec command rejected by user", "duration": {"secs": 0, "nanos": 0}});
    let script = [
        meta(),
        runs(1, "k1", "make lint"),
        output(
            2,
            "k1",
            &json!(
                "exec_command failed for `/bin/zsh -lc 'make lint'`: CreateProcess { message: \"Rejected(\\\"too risky\\\")\" }"
            ),
        ),
        runs(3, "k2", "make lint"),
        output(
            4,
            "k2",
            &json!(
                "exec_command failed for `make lint`: CreateProcess { message: \"No such file or directory (os error 2)\" }"
            ),
        ),
        item_of(5, &declined),
    ];
    let piece = read(&script.concat());
    assert_eq!(
        ends(&piece),
        [
            end("k1", "refused", None, "00:02"),
            end("k2", "failed", None, "00:04"),
            end("k3", "refused", None, "00:05"),
        ]
    );
    let reasons: Vec<_> =
        of_kind(&piece, Kind::Command).iter().filter_map(|fact| text(fact, "reason")).collect();
    assert_eq!(reasons, ["too risky", "exec command rejected by user"]);
    assert_eq!(verdicts(&piece), [] as [&str; 0]);
}

#[test]
fn a_commit_that_ends_in_a_poll_makes_its_checkpoint() {
    let script = [
        meta(),
        runs(1, "k1", "git commit -m 'fix the cache'"),
        still_running(2, "k1", 7, "hooks run\n"),
        poll(3, "k2", 7, ""),
        exited(9, "k2", 0, 5.0, "[main 49f6518] fix the cache\n 1 file changed\n"),
    ];
    let piece = read(&script.concat());
    let [checkpoint] = piece.checkpoints.as_slice() else { panic!("{:?}", piece.checkpoints) };
    assert_eq!(
        (checkpoint.key.as_str(), checkpoint.message.as_str()),
        ("commit:k1", "fix the cache")
    );
}

#[test]
fn ends_of_commands_are_the_same_if_the_file_is_read_in_two_parts() {
    let script = [
        meta(),
        runs(1, "k1", "cargo test"),
        still_running(2, "k1", 7, "x\n"),
        poll(3, "k2", 7, ""),
        exited(9, "k2", 0, 5.0, ""),
        item_of(10, &execution("k1", "7", "cargo test", "completed", Some(0))),
        item(11, &json!({"type": "custom_tool_call", "name": "exec", "call_id": "s1", "input": "tools.exec_command({cmd: 'ls'})"})),
        item_of(12, &execution("exec-1", "8", "ls", "completed", Some(0))),
    ]
    .concat();
    check_same_in_pieces(&script);
}

#[test]
fn a_bad_element_of_a_list_does_not_lose_the_others() {
    let long = format!("cargo test {}", "x".repeat(300));
    let ended = json!({"type": "CommandExecution", "id": "k1", "status": "failed", "exit_code": 101,
        "command": ["/bin/bash", null, "-lc", long], "cwd": "/w", "aggregated_output": "x"});
    let script = [
        meta(),
        call(
            1,
            "update_plan",
            "u1",
            &json!({"plan": [null, {"step": "a", "status": "pending"}, 3]}),
        ),
        output(2, "u1", &json!("Plan updated")),
        at(3, "event_msg", &json!({"type": "item_completed", "item": ended})),
        at(
            4,
            "event_msg",
            &json!({"type": "item_completed", "item": {"type": "UserMessage", "id": "i1",
                "content": [null, {"type": "text", "text": "go on"}]}}),
        ),
    ]
    .concat();
    let piece = read(&script);
    assert_eq!(text(of_kind(&piece, Kind::Task)[0], "subject").as_deref(), Some("a"));
    assert_eq!(text(of_kind(&piece, Kind::Prompt)[0], "text").as_deref(), Some("go on"));
    let [check] = of_kind(&piece, Kind::Verification)[..] else { panic!("{:?}", piece.facts) };
    assert_eq!(text(check, "status").as_deref(), Some("failed"));
    // The reference leads to the line at its own place in the list.
    let line = field(of_kind(&piece, Kind::Command)[0], "command").unwrap();
    let found = TextRef::from_value(line).unwrap();
    let (offset, length) = found.place.unwrap();
    let (from, to) = (usize::try_from(offset).unwrap(), usize::try_from(offset + length).unwrap());
    assert_eq!(resolve(&script.as_bytes()[from..to], &found.pointer), Some(long));
}

/// Regression: a command in a list was lost if the field was `cmd`.
#[test]
fn a_command_in_a_list_of_words_is_read() {
    for (tool, arguments) in [
        ("container.exec", json!({"cmd": ["bash", "-lc", "cargo test"]})),
        ("exec_command", json!({"cmd": ["bash", "-l", "-c", "cargo test"]})),
        ("shell", json!({"command": ["powershell.exe", "-NoProfile", "-Command", "cargo test"]})),
    ] {
        let result = json!("Exit code: 101\nOutput:\nx");
        let script = [meta(), call(1, tool, "k1", &arguments), output(2, "k1", &result)].concat();
        let piece = read(&script);
        let [command] = of_kind(&piece, Kind::Command)[..] else { panic!("{:?}", piece.facts) };
        assert_eq!(text(command, "command").as_deref(), Some("cargo test"), "{tool}");
        assert_eq!(text(command, "outcome").as_deref(), Some("failed"), "{tool}");
    }
}

/// Regression: some versions write the fields of an item in camel case, and the exit code was lost.
#[test]
fn an_item_with_fields_in_camel_case_is_read() {
    let ended = json!({"type": "CommandExecution", "id": "k2", "processId": "7", "cwd": "/w",
        "command": ["/bin/bash", "-lc", "cargo test"], "source": "agent", "status": "failed",
        "aggregatedOutput": "x".repeat(300), "exitCode": 101, "duration": {"secs": 2, "nanos": 0}});
    let script =
        [meta(), runs(1, "k1", "cargo test"), still_running(2, "k1", 7, ""), item_of(3, &ended)];
    let piece = read(&script.concat());
    assert_eq!(ends(&piece)[1..], [end("k1", "failed", Some(101), "00:03")]);
    assert_eq!(verdicts(&piece), ["unknown", "failed"]);
    let shown = field(of_kind(&piece, Kind::Command)[1], "stdout_preview").unwrap();
    let found = TextRef::from_value(shown).unwrap();
    assert_eq!(found.pointer, "/payload/item/aggregatedOutput");
}

/// Regression: the event of a command that timed out made the command and its check `failed`.
#[test]
fn an_event_does_not_hide_that_a_command_timed_out() {
    const TIMEOUT: &str = "command timed out after 1000 milliseconds\n";
    let event = |formatted: &str| {
        let end = json!({"type": "exec_command_end", "call_id": "k1", "status": "failed",
            "command": ["bash", "-lc", "cargo test"], "exit_code": 124,
            "aggregated_output": "Compiling\n", "formatted_output": formatted});
        at(3, "event_msg", &end)
    };
    let result = |begin: &str| {
        output(4, "k1", &json!(format!("Exit code: 124\nOutput:\n{begin}Compiling\n")))
    };
    for (lines, outcome) in [
        (event(TIMEOUT), "timed_out"),
        (event("") + &result(TIMEOUT), "timed_out"),
        // The code of the program `timeout`.
        (event("") + &result(""), "failed"),
        (event(""), "failed"),
    ] {
        let script = [meta(), runs(1, "k1", "cargo test"), lines].concat();
        let piece = read(&script);
        let (_, last, code, _) = ends(&piece).pop().unwrap();
        assert_eq!((last.as_str(), code), (outcome, Some(124)));
        assert_eq!(verdicts(&piece).pop().as_deref(), Some(outcome));
        check_same_in_pieces(&script);
    }
}

/// Regression: a command that the person typed was read only from an event, which most versions do
/// not write.
#[test]
fn a_command_that_the_person_typed_is_read_from_its_message() {
    let typed = |second: u32, command: &str, code: i64| {
        let said = format!(
            "<user_shell_command>\n<command>\n{command}\n</command>\n<result>\nExit code: {code}\nDuration: 1.5000 seconds\nOutput:\nno\n</result>\n</user_shell_command>"
        );
        let content = json!([{"type": "input_text", "text": said}]);
        let id = format!("m{second}");
        item(second, &json!({"type": "message", "role": "user", "id": id, "content": content}))
    };
    let event = json!({"type": "exec_command_end", "call_id": "u1", "source": "user_shell",
        "command": ["bash", "-lc", "ls"], "status": "completed", "exit_code": 0,
        "aggregated_output": "a\n"});
    let script = [
        meta(),
        typed(1, "cargo test", 101),
        at(2, "event_msg", &event),
        typed(2, "ls", 0),
        typed(3, "ls", 2),
    ]
    .concat();
    let piece = read(&script);
    let expected = [
        end("m1", "failed", Some(101), "00:01"),
        end("u1", "finished", Some(0), "00:02"),
        end("m3", "failed", Some(2), "00:03"),
    ];
    assert_eq!(ends(&piece), expected);
    assert_eq!(verdicts(&piece), ["failed"]);
    let first = of_kind(&piece, Kind::Command)[0];
    assert_eq!(text(first, "description").as_deref(), Some("typed by the person"));
    assert_eq!(text(first, "stdout_preview").as_deref(), Some("no"));
    assert_eq!(field(first, "duration_ms"), Some(&1500_i64.into()));
    check_same_in_pieces(&script);
}
