use crate::piece_facts::of_kind;
use crate::trajectory::{TrajectoryAuthor, read as read_trajectory};
use crate::{TranscriptPiece, resolve};
use forge_store::model::{Kind, TextRef, Timestamp, Value};
use serde_json::{Value as Json, json};

const START: Timestamp = Timestamp::from_micros(1_000_000);

fn piece(document: &Json) -> TranscriptPiece {
    read_trajectory(
        TrajectoryAuthor::MiniSweAgent,
        document.to_string().as_bytes(),
        START,
        START,
        false,
    )
    .unwrap()
}

fn commands(piece: &TranscriptPiece) -> Vec<(&str, &str, Option<i64>)> {
    of_kind(piece, Kind::Command)
        .into_iter()
        .map(|fact| {
            let text =
                |name: &str| fact.value.field(name).and_then(Value::as_text).unwrap_or_default();
            let code = fact.value.field("exit_code").and_then(Value::as_i64);
            (text("command"), text("outcome"), code)
        })
        .collect()
}

#[test]
fn a_block_of_code_is_a_command_and_the_next_message_its_result() {
    let long = "x".repeat(400);
    let document = json!({
        "info": {"exit_status": "Submitted", "submission": "diff --git a/a.py b/a.py\n", "mini_version": "1.9.0",
            "config": {"agent": {"instance_template": "Please solve this issue: {{task}}\n\nYou can run bash."}}},
        "messages": [
            {"role": "system", "content": "You are helpful."},
            {"role": "user", "content": "Please solve this issue: the sum is wrong\n\nYou can run bash."},
            {"role": "assistant", "content": "THOUGHT: look\n\n```bash\npytest -q\n```"},
            {"role": "user", "content": format!("<returncode>1</returncode>\n<output>\n{long}\n</output>")},
            {"role": "assistant", "content": "wait\n\n```bash\nsleep 99\n```"},
            {"role": "user", "content": "The last command <command>sleep 99</command> timed out and has been killed."},
            {"role": "assistant", "content": "two blocks\n```bash\na\n```\n```bash\nb\n```"},
            {"role": "user", "content": "Please always provide EXACTLY ONE action"},
            {"role": "assistant", "content": "done\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A\n```"},
        ],
        "trajectory_format": "mini-swe-agent-1",
    });
    let piece = piece(&document);
    assert_eq!(
        commands(&piece),
        [
            ("pytest -q", "failed", Some(1)),
            ("sleep 99", "timed_out", None),
            ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A", "finished", None),
        ]
    );
    let [check] = of_kind(&piece, Kind::Verification)[..] else { panic!() };
    assert_eq!(check.value.field("status"), Some(&"failed".into()));
    let [prompt] = of_kind(&piece, Kind::Prompt)[..] else { panic!() };
    assert_eq!(prompt.value.field("text"), Some(&"the sum is wrong".into()));
    assert!(piece.facts.iter().all(|fact| fact.value.field("synthetic") == Some(&true.into())));
    let text = document.to_string();
    let shown = of_kind(&piece, Kind::Command)[0].value.field("stdout_preview").unwrap();
    let found = TextRef::from_value(shown).unwrap();
    assert_eq!(resolve(text.as_bytes(), &found.pointer), Some(format!("\n{long}\n")));
    assert_eq!(of_kind(&piece, Kind::Code)[0].value.field("paths"), Some(&vec!["a.py"].into()));
}

#[test]
fn return_codes_times_and_refusals_are_read_from_their_fields() {
    let call = |at: f64, id: &str, command: &str| {
        json!({"role": "assistant", "content": "look", "tool_calls": [], "extra": {"timestamp": at,
            "actions": [{"command": command, "tool_call_id": id}],
            "response": {"model": "m1", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}}})
    };
    let result = |at: f64, id: &str, code: i64, error: &str| {
        json!({"role": "tool", "tool_call_id": id, "content": "{\"returncode\": 0}", "extra": {"timestamp": at,
            "raw_output": "printed", "returncode": code, "exception_info": error}})
    };
    let document = json!({
        "info": {"exit_status": "LimitsExceeded", "submission": ""},
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "fix it"},
            call(100.0, "c1", "cargo test"),
            result(101.5, "c1", 0, ""),
            call(102.0, "c2", "make check"),
            result(103.0, "c2", -1, "An error occurred while executing the command: Command 'x' timed out after 30 seconds"),
            call(104.0, "c3", "rm -r x"),
            result(105.0, "c3", -1, "action was not executed"),
            call(106.0, "c4", "./crash"),
            result(107.0, "c4", -11, ""),
            {"role": "user", "content": "Interrupted by user: never touch b.py", "extra": {"interrupt_type": "UserInterruption"}},
            {"role": "user", "content": "Tool call error", "extra": {"interrupt_type": "FormatError"}},
        ],
        "trajectory_format": "mini-swe-agent-1.1",
    });
    let piece = piece(&document);
    assert_eq!(
        commands(&piece),
        [
            ("cargo test", "finished", Some(0)),
            ("make check", "timed_out", None),
            ("rm -r x", "refused", None),
            ("./crash", "failed", None),
        ]
    );
    let first = of_kind(&piece, Kind::Command)[0];
    assert_eq!(first.at, Timestamp::from_micros(101_500_000));
    assert_eq!(first.value.field("synthetic"), None);
    assert_eq!(first.value.field("stdout_preview"), Some(&"printed".into()));
    let prompts: Vec<_> =
        of_kind(&piece, Kind::Prompt).iter().map(|it| it.value.field("text").cloned()).collect();
    assert_eq!(prompts, [Some("fix it".into()), Some("never touch b.py".into())]);
    assert_eq!(of_kind(&piece, Kind::Message)[2].value.field("input_tokens"), Some(&7_i64.into()));
    assert_eq!(piece.session.unwrap().started_at, Some(Timestamp::from_micros(100_000_000)));
}

/// Returns a run of version 1 with these messages after the task.
fn first_version(messages: &[(&str, &str)]) -> TranscriptPiece {
    let mut list = vec![json!({"role": "user", "content": "fix it"})];
    list.extend(messages.iter().map(|(role, text)| json!({"role": role, "content": text})));
    piece(&json!({"info": {"exit_status": "Submitted"}, "messages": list}))
}

/// Regression: a command without a result got the result of the next one.
#[test]
fn a_command_without_a_result_does_not_get_the_next_one() {
    let (checks, lists) = ("```bash\ncargo test\n```", "```bash\nls\n```");
    let passed = "<returncode>0</returncode>\n<output>\n</output>";
    for (between, outcome, prompts) in [
        (
            "Command not executed. The user rejected your command with the following message: no",
            "refused",
            1,
        ),
        ("Command not executed. Switching to human mode", "refused", 1),
        ("Interrupted by user: use make", "interrupted", 2),
        ("Interrupted by user: Temporary interruption caught.", "interrupted", 1),
        ("The user added a new task: more", "finished", 2),
        ("no result", "unknown", 1),
    ] {
        let messages =
            [("assistant", checks), ("user", between), ("assistant", lists), ("user", passed)];
        let piece = first_version(&messages);
        let expected = [("cargo test", outcome, None), ("ls", "finished", Some(0))];
        assert_eq!(commands(&piece), expected, "{between}");
        assert_eq!(of_kind(&piece, Kind::Prompt).len(), prompts, "{between}");
        let checks = of_kind(&piece, Kind::Verification);
        let status = checks.first().and_then(|check| check.value.field("status").cloned());
        assert_eq!(status, (outcome != "refused").then(|| "unknown".into()), "{between}");
    }
    let piece = first_version(&[("assistant", checks), ("assistant", lists), ("user", passed)]);
    assert_eq!(commands(&piece), [("cargo test", "unknown", None), ("ls", "finished", Some(0))]);
}

#[test]
fn a_block_of_code_is_found_in_each_form() {
    for (text, expected) in [
        ("a\n```bash \n\nmake\n```", Some("make")),
        ("a\r\n```bash\r\nmake\r\n```", Some("make")),
        ("a <bash_code>make</bash_code>", Some("make")),
        ("<mswea_bash_command>\nmake\n</mswea_bash_command>", Some("make")),
        ("```bash\n```", None),
        ("```shell\nmake\n```", None),
        ("```bash\nmake", None),
        ("```bash\nmake\n```\n<bash_code>ls</bash_code>", None),
        // Regression: a block inside a block was a second command, or the only one.
        (
            "```bash\necho '<bash_code>ls</bash_code>'\n```",
            Some("echo '<bash_code>ls</bash_code>'"),
        ),
        (
            "<bash_code>cat <<E\n```bash\nls\n```\nE\n</bash_code>",
            Some("cat <<E\n```bash\nls\n```\nE"),
        ),
    ] {
        let piece = first_version(&[("assistant", text)]);
        let found: Vec<_> = commands(&piece).into_iter().map(|(line, ..)| line).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{text}");
    }
}

/// Regression: the command that submitted the result was refused, as the client writes for it that
/// it was not executed.
#[test]
fn the_command_at_which_a_run_stopped_is_not_refused() {
    let exit =
        |status: &str| json!({"role": "exit", "content": "", "extra": {"exit_status": status}});
    let by_user =
        |kind: &str| json!({"role": "user", "content": "x", "extra": {"interrupt_type": kind}});
    let result = |id: &str| {
        json!({"role": "tool", "tool_call_id": id, "content": "",
            "extra": {"returncode": -1, "raw_output": "", "exception_info": "action was not executed"}})
    };
    for (next, outcome) in [
        (exit("Submitted"), "finished"),
        (exit("RuntimeError"), "unknown"),
        (by_user("UserNewTask"), "finished"),
        (by_user("UserInterruption"), "interrupted"),
        (by_user("UserRejection"), "refused"),
    ] {
        let piece = piece(&json!({"messages": [
            {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": "", "extra": {"actions": [
                {"command": "sh submit.sh", "tool_call_id": "c1"},
                {"command": "ls", "tool_call_id": "c2"},
            ]}},
            result("c1"), result("c2"), next,
        ]}));
        let expected = [("sh submit.sh", outcome, None), ("ls", "refused", None)];
        assert_eq!(commands(&piece), expected, "{next}");
    }
}

#[test]
fn a_result_ends_only_the_command_that_it_names() {
    let piece = piece(&json!({"messages": [
        {"role": "user", "content": "fix it"},
        {"role": "assistant", "content": "", "extra": {"actions": [{"command": "ls", "tool_call_id": "c1"}]}},
        {"role": "tool", "tool_call_id": "c9", "content": "", "extra": {"returncode": 0}},
    ]}));
    assert_eq!(commands(&piece), [("ls", "unknown", None)]);
}

/// Regression: the result of the second command was that of the first one. With many commands
/// without a result, a run was read in quadratic time.
#[test]
fn a_command_without_a_result_is_unknown_when_the_next_one_begins() {
    let call = |line: &str| json!({"role": "assistant", "content": "", "extra": {"actions": [{"command": line, "tool_call_id": "c1"}]}});
    let piece = piece(&json!({"messages": [
        {"role": "user", "content": "fix it"},
        call("make"),
        call("ls"),
        {"role": "tool", "tool_call_id": "c1", "content": "", "extra": {"returncode": 0}},
    ]}));
    assert_eq!(commands(&piece), [("make", "unknown", None), ("ls", "finished", Some(0))]);
}

#[test]
fn a_damaged_document_is_read() {
    // Half of a character, a tab that is not escaped, and NUL bytes at the end.
    let document = b"{\"messages\":[{\"role\":\"user\",\"content\":\"a\\ud83d\tb\"}]}\n\0\0";
    let piece = read_trajectory(TrajectoryAuthor::MiniSweAgent, document, START, START, false);
    let piece = piece.unwrap();
    let [prompt] = of_kind(&piece, Kind::Prompt)[..] else { panic!() };
    assert_eq!(prompt.value.field("text"), Some(&"a\u{fffd}\tb".into()));
}

#[test]
fn a_config_of_another_form_does_not_hide_the_submission() {
    // Regression: the whole summary of the run was left out.
    for config in [json!(null), json!("a"), json!({"agent": null})] {
        let piece = piece(&json!({
            "info": {"submission": "diff --git a/a.py b/a.py\n", "config": config},
            "messages": [{"role": "user", "content": "fix it"}],
        }));
        assert_eq!(of_kind(&piece, Kind::Code).len(), 1, "{config}");
    }
}

#[test]
fn a_trajectory_of_another_agent_is_refused() {
    // An export of OpenCode has messages too.
    let other = br#"{"messages":[{"info":{"role":"user"},"parts":[]}]}"#;
    for bytes in [&b"{}"[..], b"", b"[]", b"{\"messages\":3}", other, &[b'['; 100_000]] {
        assert!(
            read_trajectory(TrajectoryAuthor::MiniSweAgent, bytes, START, START, false).is_err()
        );
    }
}
