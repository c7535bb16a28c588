//! Ends of commands in the background.

use super::script::{Script, time};
use super::*;
use serde_json::{Value as Json, json};

fn started(command: &str) -> Script {
    let input = json!({ "command": command, "description": "run", "run_in_background": true });
    let noted = json!({ "stdout": "", "stderr": "", "backgroundTaskId": "b1" });
    Script::new().call("bg", "Bash", input).result("bg", "running with ID: b1", noted)
}

fn notice(status: &str, summary: &str) -> String {
    format!(
        "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>bg</tool-use-id>\n\
         <output-file>/tmp/b1.output</output-file>\n<status>{status}</status>\n\
         <summary>Background command \"run\" {summary}</summary>\n</task-notification>"
    )
}

fn notified(text: &str) -> Json {
    json!({ "message": { "content": text }, "origin": { "kind": "task-notification" } })
}

#[test]
fn a_background_command_ends_with_its_notice() {
    for (status, summary, outcome, code) in [
        ("failed", "failed with exit code 101", "failed", Some(101)),
        ("completed", "completed (exit code 0)", "finished", Some(0)),
        ("killed", "was stopped", "interrupted", None),
        ("killed", "was stopped after reaching its background time limit", "timed_out", None),
        ("completed", "completed", "finished", None),
        ("completed", "completed (exit code 101)", "failed", Some(101)),
        ("completed", "completed (exit code 1: No matches found)", "finished", Some(1)),
    ] {
        let piece = started("cargo test").line("user", notified(&notice(status, summary))).read();
        let versions = of_kind(&piece, Kind::Command);
        assert_eq!(text(&versions[0].value, "outcome"), Some("background"));
        let last = versions[1];
        assert_eq!((last.id.as_str(), last.at), ("bg", time(3)), "{summary}");
        assert_eq!(text(&last.value, "outcome"), Some(outcome), "{summary}");
        assert_eq!(last.value.field("exit_code"), code.map(Value::Int).as_ref(), "{summary}");
        assert_eq!(text(&last.value, "command"), Some("cargo test"));
        assert_eq!(text(&last.value, "output_file"), Some("/tmp/b1.output"));
        let checks = of_kind(&piece, Kind::Verification);
        assert_eq!((checks.len(), checks[1].at), (2, time(3)));
        assert_eq!(of_kind(&piece, Kind::Prompt).len(), 0, "{summary}");
        assert_eq!(piece.session.unwrap().title, None);
    }
}

#[test]
fn the_description_of_a_command_is_no_report_of_its_end() {
    for (status, words, outcome) in [
        ("failed", "check exit code 0 of cargo\" failed", "failed"),
        ("stopped", "retry on exit code 75\" was stopped", "interrupted"),
        ("killed", "wait for the time limit\" was stopped", "interrupted"),
    ] {
        let text = notice(status, "").replace("run\" ", words);
        let piece = started("cargo test").line("user", notified(&text)).read();
        let last = &of_kind(&piece, Kind::Command)[1].value;
        assert_eq!((self::text(last, "outcome"), last.field("exit_code")), (Some(outcome), None));
        let check = &of_kind(&piece, Kind::Verification)[1].value;
        assert_eq!(self::text(check, "status"), Some("unknown"), "{words}");
    }
}

#[test]
fn a_task_that_completed_with_another_exit_code_than_0_failed() {
    let noted = json!({ "retrieval_status": "success",
        "task": { "task_id": "b1", "status": "completed", "exitCode": 101, "output": "x" } });
    let script = started("cargo test").call("ask", "TaskOutput", json!({ "task_id": "b1" }));
    let piece = script.result("ask", "x", noted).read();
    let last = &of_kind(&piece, Kind::Command)[1].value;
    assert_eq!(text(last, "outcome"), Some("failed"));
    assert_eq!(last.field("exit_code"), Some(&Value::Int(101)));
}

#[test]
fn repeated_notices_end_a_command_once() {
    let text = notice("failed", "failed with exit code 3");
    let queued =
        json!({ "type": "queued_command", "prompt": text, "commandMode": "task-notification" });
    let piece = started("make")
        .line("queue-operation", json!({ "operation": "enqueue", "content": text }))
        .line(
            "queue-operation",
            json!({ "operation": "remove", "content": text, "reason": "absorbed_mid_turn" }),
        )
        .line("attachment", json!({ "attachment": queued }))
        .line("user", notified(&text))
        .read();
    let versions = of_kind(&piece, Kind::Command);
    assert_eq!((versions.len(), versions[1].at), (2, time(3)));
    assert_eq!(of_kind(&piece, Kind::Prompt).len(), 0);
}

/// Regression: the first report counted even if only a later one had the exit code.
#[test]
fn a_later_report_with_the_exit_code_completes_an_earlier_one() {
    let state = |status: &str| {
        let state = json!({ "type": "task_status", "taskId": "b1", "status": status });
        json!({ "attachment": state })
    };
    for (status, summary, outcome, check) in [
        ("completed", "failed with exit code 101", "failed", "failed"),
        ("failed", "failed with exit code 101", "failed", "failed"),
        ("completed", "completed (exit code 0)", "finished", "passed"),
    ] {
        let first = if status == "failed" { "failed" } else { "finished" };
        let piece = started("cargo test")
            .line("attachment", state(status))
            .line("attachment", state(status))
            .line("user", notified(&notice(status, summary)))
            .line("user", notified(&notice(status, summary)))
            .line("attachment", state("killed"))
            .read();
        assert_eq!(outcomes(&piece), [Some("background"), Some(first), Some(outcome)]);
        let checks = of_kind(&piece, Kind::Verification);
        assert_eq!((checks.len(), text(&checks[2].value, "status")), (3, Some(check)));
    }
}

/// Regression: the report about the second command was one about the first, which had ended
/// without an exit code.
#[test]
fn a_report_about_an_id_that_was_used_twice_is_about_the_later_command() {
    let input = json!({ "command": "make b", "run_in_background": true });
    let noted = json!({ "stdout": "", "stderr": "", "backgroundTaskId": "b1" });
    let of_later = notice("failed", "failed with exit code 2").replace(">bg<", "><");
    let piece = started("make a")
        .line("user", notified(&notice("completed", "completed")))
        .call("later", "Bash", input)
        .result("later", "running with ID: b1", noted)
        .line("user", notified(&of_later))
        .read();
    let found: Vec<_> = of_kind(&piece, Kind::Command)
        .iter()
        .map(|fact| (fact.id.clone(), text(&fact.value, "outcome").unwrap().to_owned()))
        .collect();
    let expected =
        [("bg", "background"), ("bg", "finished"), ("later", "background"), ("later", "failed")];
    assert_eq!(found, expected.map(|(id, outcome)| (id.to_owned(), outcome.to_owned())));
}

#[test]
fn the_description_of_a_command_names_no_other_task_and_loses_none() {
    for (words, expected) in [
        ("<task-id>b2</task-id>", "failed"),
        ("No completion record was found", "failed"),
        ("jobs have no completion record", "failed"),
    ] {
        let input = json!({ "command": "make b", "run_in_background": true });
        let noted = json!({ "stdout": "", "stderr": "", "backgroundTaskId": "b2" });
        let about =
            notice("failed", "failed with exit code 2").replace("\"run\"", &format!("\"{words}\""));
        let piece = started("make a")
            .call("other", "Bash", input)
            .result("other", "running with ID: b2", noted)
            .line("user", notified(&about))
            .read();
        let expected = [Some("background"), Some("background"), Some(expected)];
        assert_eq!(outcomes(&piece), expected, "{words}");
    }
}

#[test]
fn a_line_that_a_program_printed_is_no_report_of_an_end() {
    let text = "<task-notification>\n<task-id>b1</task-id>\n<summary>Monitor event: \"x\"</summary>\n\
                <event><task-id>b1</task-id><status>completed</status></event>\n</task-notification>";
    let piece = started("make a").line("user", notified(text)).read();
    assert_eq!(outcomes(&piece), [Some("background")]);
}

/// Regression: such a command was interrupted, and only the first of several tasks ended.
#[test]
fn a_resumed_session_says_which_tasks_of_the_one_before_are_lost() {
    let lost = "No completion record was found for this background shell command from the previous \
                session. It may have been stopped, or it may have been running.";
    let counted = "2 background shell command task(s) from the previous session have no completion \
                   record. They have been marked stopped.";
    let left = "2 background shell command tasks didn't finish before the previous session ended.";
    let of_two = "<task-id>b0</task-id>\n<task-id>b1</task-id>\n\
                  <task-id>__orphan_summary__:shell</task-id>";
    let of_one = "<task-id>b1</task-id>\n<tool-use-id>bg</tool-use-id>";
    for (ids, summary, outcome) in [
        (of_one, lost, "unknown"),
        (of_two, counted, "unknown"),
        (of_two, left, "interrupted"),
        ("<task-id>__orphan_summary_live__:b1</task-id>", left, "background"),
    ] {
        let text = format!(
            "<task-notification>\n{ids}\n<status>stopped</status>\n\
             <summary>{summary}</summary>\n</task-notification>"
        );
        let piece = started("cargo test").line("user", notified(&text)).read();
        assert_eq!(outcomes(&piece).last(), Some(&Some(outcome)), "{text}");
        let check = of_kind(&piece, Kind::Verification).pop().unwrap();
        assert_eq!(self::text(&check.value, "status"), Some("unknown"), "{text}");
    }
}

#[test]
fn a_notice_that_a_command_still_runs_does_not_end_it() {
    let text = "<task-notification>\n<task-id>b1</task-id>\n<summary>Background command \"failed\" is still \
                running after 5 min</summary>\n</task-notification>";
    let piece = started("make").line("user", notified(text)).read();
    assert_eq!(outcomes(&piece), [Some("background")]);
}

#[test]
fn querying_or_stopping_a_task_reports_its_end() {
    let task = |status: &str, code: Json| {
        json!({ "retrieval_status": "success", "task": { "task_id": "b1", "task_type": "local_bash",
                "status": status, "output": "boom", "exitCode": code } })
    };
    let query = |noted: Json| {
        started("make")
            .call("t", "TaskOutput", json!({ "task_id": "b1" }))
            .result("t", "", noted)
            .read()
    };
    assert_eq!(outcomes(&query(task("running", Json::Null))), [Some("background")]);
    let piece = query(task("failed", json!(2)));
    let last = &of_kind(&piece, Kind::Command)[1].value;
    assert_eq!(
        (text(last, "outcome"), last.field("exit_code")),
        (Some("failed"), Some(&Value::Int(2)))
    );
    assert_eq!(text(last, "stdout_preview"), Some("boom"));

    let noted = json!({ "shellId": "b1", "status": "completed", "exitCode": 0, "stdout": "fine" });
    let script = started("make").call("t", "BashOutput", json!({ "bash_id": "b1" }));
    assert_eq!(
        outcomes(&script.result("t", "", noted).read()),
        [Some("background"), Some("finished")]
    );
    let result = "<retrieval_status>success</retrieval_status>\n\n<task_id>b1</task_id>\n\n\
                <status>completed</status>\n\n<exit_code>0</exit_code>";
    let script = started("make").call("t", "TaskOutput", json!({ "task_id": "b1" }));
    assert_eq!(
        outcomes(&script.result("t", result, Json::Null).read()),
        [Some("background"), Some("finished")]
    );

    let noted = json!({ "message": "Successfully stopped task: b1 (make)", "task_id": "b1" });
    let script = started("make").call("t", "TaskStop", json!({ "task_id": "b1" }));
    let script = script.result("t", "", noted).line("user", late_notice());
    assert_eq!(outcomes(&script.read()), [Some("background"), Some("interrupted")]);
}

/// Regression: without an object beside the result, only a result that names its task ended it.
#[test]
fn the_task_of_a_query_is_read_from_the_call() {
    for (tool, input, answer, outcome, code) in [
        (
            "BashOutput",
            json!({ "bash_id": "b1" }),
            "<status>failed</status>\n\n<exit_code>2</exit_code>\n\n<stdout>\nx\n</stdout>",
            "failed",
            Some(2),
        ),
        (
            "KillShell",
            json!({ "shell_id": "b1" }),
            "Successfully killed shell: b1 (make)",
            "interrupted",
            None,
        ),
        // What the command printed is no report of its end.
        (
            "TaskOutput",
            json!({ "task_id": "b1" }),
            "<status>completed</status>\n\n<output>\n<exit_code>0</exit_code>\n</output>",
            "finished",
            None,
        ),
    ] {
        let piece = started("make").call("t", tool, input).result("t", answer, Json::Null).read();
        let last = &of_kind(&piece, Kind::Command)[1].value;
        assert_eq!(text(last, "outcome"), Some(outcome), "{tool}");
        assert_eq!(last.field("exit_code"), code.map(Value::Int).as_ref(), "{tool}");
    }
}

/// Regression: the output was read only from an object beside the result, and only one stream.
#[test]
fn the_output_in_the_text_of_a_query_decides_a_check() {
    let failed = "test result: FAILED. 2 passed; 1 failed;";
    let both = json!({ "shellId": "b1", "status": "completed", "exitCode": 0, "stderr": failed });
    let code = "<status>completed</status>\n\n<exit_code>0</exit_code>\n\n";
    for (answer, noted) in [
        (format!("{code}<output>\n{failed}\n</output>"), Json::Null),
        (format!("{code}<stdout>\n{failed}\n</stdout>\n\n<timestamp>x</timestamp>"), Json::Null),
        (String::new(), both),
    ] {
        let script =
            started("cargo test | tail").call("t", "TaskOutput", json!({ "task_id": "b1" }));
        let piece = script.result("t", &answer, noted).read();
        let last = &of_kind(&piece, Kind::Command)[1].value;
        let shown = text(last, "stdout_preview").or(text(last, "stderr_preview"));
        assert_eq!((text(last, "outcome"), shown), (Some("finished"), Some(failed)));
        let check = &of_kind(&piece, Kind::Verification)[1].value;
        assert_eq!(text(check, "status"), Some("failed"), "{answer}");
    }
}

fn late_notice() -> Json {
    notified(&notice("killed", "was stopped"))
}

fn outcomes(piece: &TranscriptPiece) -> Vec<Option<&str>> {
    of_kind(piece, Kind::Command).iter().map(|fact| text(&fact.value, "outcome")).collect()
}
