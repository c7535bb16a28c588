//! Calls without a result when their turn ends.

use super::*;

fn event(second: u32, payload: &Json) -> String {
    at(second, "event_msg", payload)
}

fn aborted(second: u32) -> String {
    event(second, &json!({"type": "turn_aborted", "turn_id": "t1", "reason": "interrupted"}))
}

fn begins(second: u32) -> String {
    event(second, &json!({"type": "task_started", "turn_id": "t2"}))
}

fn runs(second: u32, id: &str, command: &str) -> String {
    call(second, "exec_command", id, &json!({"cmd": command}))
}

/// Returns the versions of the facts of a kind: id, outcome or status, exit code, minute and
/// second.
fn ends(piece: &TranscriptPiece, kind: Kind) -> Vec<String> {
    let ends = of_kind(piece, kind).into_iter().map(|fact| {
        let outcome = text(fact, "outcome").or(text(fact, "status")).unwrap();
        let code = field(fact, "exit_code").and_then(Value::as_i64);
        let code = code.map(|code| format!(" {code}")).unwrap_or_default();
        format!("{} {outcome}{code} {}", fact.id, fact.at.to_string().get(14..19).unwrap())
    });
    ends.collect()
}

const PATCH: &str = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch";

#[test]
fn an_aborted_turn_interrupts_its_open_calls() {
    let patch = json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "k3",
        "input": PATCH});
    let script = [
        meta(),
        begins(0),
        runs(1, "k0", "ls"),
        output(2, "k0", &json!("Exit code: 0\nWall time: 0 seconds\nOutput:\na\n")),
        runs(3, "k1", "cargo test"),
        call(4, "view_image", "k2", &json!({"path": "a.png"})),
        item(5, &patch),
        call(6, "update_plan", "k4", &json!({"plan": [{"step": "a", "status": "pending"}]})),
        aborted(9),
        begins(20),
        runs(21, "k5", "ls"),
        aborted(22),
    ]
    .concat();
    let piece = read(&script);
    assert_eq!(
        ends(&piece, Kind::Command),
        ["k0 finished 0 00:02", "k1 interrupted 00:09", "k5 interrupted 00:22"]
    );
    assert_eq!(ends(&piece, Kind::Verification), ["k1 unknown 00:09"]);
    assert_eq!(ends(&piece, Kind::Tool), ["k3 interrupted 00:09", "k2 interrupted 00:09"]);
    let commands = of_kind(&piece, Kind::Command);
    assert_eq!(text(commands[1], "command").as_deref(), Some("cargo test"));
    assert_eq!(text(commands[1], "called_at").as_deref(), Some("2026-05-01T10:00:03Z"));
    assert_eq!(field(commands[1], "interrupted"), Some(&true.into()));
    assert_eq!(text(of_kind(&piece, Kind::Tool)[0], "path").as_deref(), Some("a.txt"));
    assert!(of_kind(&piece, Kind::Code).is_empty());
    assert!(of_kind(&piece, Kind::Task).is_empty());
    check_same_in_pieces(&script);
}

#[test]
fn a_result_after_the_abort_makes_another_version() {
    let script = [
        meta(),
        runs(1, "k1", "cargo test"),
        aborted(9),
        output(10, "k1", &json!("Exit code: 101\nWall time: 8 seconds\nOutput:\nno\n")),
        aborted(12),
    ]
    .concat();
    let piece = read(&script);
    assert_eq!(ends(&piece, Kind::Command), ["k1 interrupted 00:09", "k1 failed 101 00:10"]);
    assert_eq!(ends(&piece, Kind::Verification), ["k1 unknown 00:09", "k1 failed 101 00:10"]);
    check_same_in_pieces(&script);
}

#[test]
fn a_stopped_process_is_not_recorded_again_at_the_abort() {
    let end = json!({"type": "exec_command_end", "call_id": "k1", "command": ["bash", "-lc", "make"],
        "status": "failed", "exit_code": -1, "aggregated_output": ""});
    let script = [meta(), runs(1, "k1", "make"), event(3, &end), aborted(4)].concat();
    assert_eq!(ends(&read(&script), Kind::Command), ["k1 failed -1 00:03"]);
    check_same_in_pieces(&script);
}

#[test]
fn how_a_call_ended_is_unknown_if_the_next_turn_begins_without_an_abort() {
    let script = [
        meta(),
        begins(0),
        runs(1, "k1", "cargo build"),
        call(2, "view_image", "k2", &json!({"path": "a.png"})),
        // The client was killed, and its session continued later.
        begins(30),
        aborted(40),
    ]
    .concat();
    let piece = read(&script);
    assert_eq!(ends(&piece, Kind::Command), ["k1 unknown 00:30"]);
    assert_eq!(ends(&piece, Kind::Verification), ["k1 unknown 00:30"]);
    assert_eq!(ends(&piece, Kind::Tool), ["k2 unknown 00:30"]);
    check_same_in_pieces(&script);
}

#[test]
fn commands_of_an_aborted_script_have_an_unknown_end() {
    let script = r#"const r = await tools.exec_command({cmd: "cargo test", workdir: "/w"});"#;
    let called = json!({"type": "custom_tool_call", "name": "exec", "call_id": "k1",
        "input": script});
    let end = json!({"type": "item_completed", "item": {"type": "CommandExecution", "id": "x",
        "command": ["bash", "-lc", "cargo test"], "status": "completed", "exit_code": 0,
        "aggregated_output": "test result: ok. 1 passed; 0 failed"}});
    let script = [meta(), item(1, &called), aborted(5)].concat();
    let piece = read(&script);
    assert_eq!(ends(&piece, Kind::Command), ["k1/1 unknown 00:05"]);
    assert_eq!(ends(&piece, Kind::Verification), ["k1/1 unknown 00:05"]);
    check_same_in_pieces(&script);
    // A later event reports the end of the same command.
    let script = script + &event(6, &end);
    let commands = ends(&read(&script), Kind::Command);
    assert_eq!(commands, ["k1/1 unknown 00:05", "k1/1 finished 0 00:06"]);
    check_same_in_pieces(&script);
}
