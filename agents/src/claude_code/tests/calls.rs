//! Commands, checks and edits.

use super::script::{Script, answered, time};
use super::*;
use forge_store::model::TextRef;
use serde_json::json;

fn ran(stdout: &str) -> serde_json::Value {
    json!({ "stdout": stdout, "stderr": "", "interrupted": false, "isImage": false })
}

#[test]
fn a_command_that_ran_has_exit_code_0_and_its_output() {
    let input = json!({ "command": "ls", "description": "list" });
    let noted = json!({ "stdout": "a\nb", "stderr": "warned", "interrupted": false });
    let piece = Script::new().call("c", "Bash", input).result("c", "a\nb", noted).read();
    let fact = only_of_kind(&piece, Kind::Command);
    assert_eq!((fact.id.as_str(), fact.at), ("c", time(2)));
    let expected = Value::from([
        ("command", "ls".into()),
        ("description", "list".into()),
        ("exit_code", Value::Int(0)),
        ("outcome", "finished".into()),
        ("working_dir", "/work".into()),
        ("called_at", time(1).to_string().into()),
        ("stdout_preview", "a\nb".into()),
        ("stderr_preview", "warned".into()),
    ]);
    assert_eq!(fact.value, expected);
}

/// Regression: nothing of a transcript was stored if the id of a call was longer than 200 bytes.
#[test]
fn a_call_with_a_long_id_is_a_fact_with_an_id_that_a_store_accepts() {
    let long = "call_1__thought__".to_owned() + &"Cr9A".repeat(400);
    let input = json!({ "command": "make test" });
    let piece = Script::new().call(&long, "Bash", input).result(&long, "a", ran("a")).read();
    for fact in [only_of_kind(&piece, Kind::Command), only_of_kind(&piece, Kind::Verification)] {
        assert!(fact.id.starts_with("call_1__thought__") && fact.id.len() < 200, "{}", fact.id);
    }
}

#[test]
fn a_failed_command_has_the_exit_code_at_the_beginning_of_its_error() {
    let piece = Script::new().failed("ls x", "Exit code 2\nno such file").read();
    let value = &only_of_kind(&piece, Kind::Command).value;
    assert_eq!(value.field("exit_code"), Some(&Value::Int(2)));
    assert_eq!(text(value, "outcome"), Some("failed"));
    assert_eq!(
        (text(value, "stdout_preview"), text(value, "streams")),
        (Some("no such file"), Some("merged"))
    );
    // Another program that writes this format may report the code only in the object.
    let noted = json!({ "stdout": "no", "stderr": "", "exitCode": 3 });
    let piece = Script::new().bash("cargo test", "no", noted).read();
    let value = &only_of_kind(&piece, Kind::Command).value;
    assert_eq!(value.field("exit_code"), Some(&Value::Int(3)));
    assert_eq!(text(value, "outcome"), Some("failed"));
    assert_eq!(text(&only_of_kind(&piece, Kind::Verification).value, "status"), Some("failed"));
}

/// Regression: a code that is null was 0, and so was one with both names.
#[test]
fn a_recorded_code_that_is_null_is_not_0_and_does_not_contradict_an_error() {
    let script = || Script::new().call("c", "Bash", json!({ "command": "cargo test" }));
    let refused = "The user doesn't want to proceed with this tool use.";
    let both = json!({ "stdout": "no", "exitCode": 3, "exit_code": 3 });
    for (script, code, outcome) in [
        (script().result("c", "no", json!({ "stdout": "no", "exitCode": null })), None, "unknown"),
        (script().result("c", "no", both), Some(3), "failed"),
        (script().error("c", "no", json!({ "exitCode": 3 })), Some(3), "failed"),
        (script().error("c", "no", json!({ "exitCode": 0 })), None, "unknown"),
        (script().error("c", refused, json!({ "exitCode": 1 })), None, "refused"),
    ] {
        let piece = script.read();
        let value = &only_of_kind(&piece, Kind::Command).value;
        assert_eq!(text(value, "outcome"), Some(outcome));
        assert_eq!(value.field("exit_code"), code.map(Value::Int).as_ref());
    }
}

#[test]
fn an_error_without_exit_code_has_an_unknown_code() {
    let piece = Script::new().failed("ls x", "spawn /bin/zsh ENOENT").read();
    let value = &only_of_kind(&piece, Kind::Command).value;
    assert_eq!((value.field("exit_code"), text(value, "outcome")), (None, Some("failed")));
    assert_eq!(text(value, "stdout_preview"), Some("spawn /bin/zsh ENOENT"));
    // With an unknown message, it is not known either whether the command ran.
    let piece = Script::new().failed("cargo test", "the words of another client").read();
    let value = &only_of_kind(&piece, Kind::Command).value;
    assert_eq!((value.field("exit_code"), text(value, "outcome")), (None, Some("unknown")));
    assert_eq!(text(value, "reason"), Some("the words of another client"));
    assert_eq!(text(&only_of_kind(&piece, Kind::Verification).value, "status"), Some("unknown"));
    let piece =
        Script::new().failed("cargo test", "test result: FAILED. 1 passed; 1 failed;").read();
    assert_eq!(text(&only_of_kind(&piece, Kind::Verification).value, "status"), Some("failed"));
}

#[test]
fn a_command_with_a_time_out_is_recorded_as_such() {
    let answer = "Exit code 143\nCommand timed out after 2m 0s\nhalf of it";
    let value = &only_of_kind(&Script::new().failed("make test", answer).read(), Kind::Command)
        .value
        .clone();
    assert_eq!(text(value, "outcome"), Some("timed_out"));
    assert_eq!(value.field("exit_code"), Some(&Value::Int(143)));
}

#[test]
fn an_exit_code_that_the_client_interprets_is_not_known() {
    let noted =
        json!({ "stdout": "", "stderr": "", "returnCodeInterpretation": "No matches found" });
    let piece = Script::new().bash("grep x y", "", noted).read();
    let value = &only_of_kind(&piece, Kind::Command).value;
    assert_eq!((value.field("exit_code"), text(value, "outcome")), (None, Some("finished")));
}

#[test]
fn a_refused_call_did_not_run_and_has_a_reason() {
    let answer = "The user doesn't want to proceed with this tool use. The tool use was rejected. \
                To tell you how to proceed, the user said:\nnot yet";
    for noted in [json!(format!("Error: {answer}")), json!("User rejected tool use")] {
        let script = Script::new().call("c", "Bash", json!({ "command": "make test" }));
        let piece = script.error("c", answer, noted).read();
        let value = &only_of_kind(&piece, Kind::Command).value;
        assert_eq!((value.field("exit_code"), text(value, "outcome")), (None, Some("refused")));
        assert_eq!(value.field("stdout_preview"), None);
        assert_eq!(text(value, "reason"), Some("not yet"));
        assert_eq!(of_kind(&piece, Kind::Verification).len(), 0);
        let message = of_kind(&piece, Kind::Message)[1];
        assert_eq!(message.value.field("refused"), Some(&true.into()));
    }
}

#[test]
fn an_interrupted_command_has_no_exit_code() {
    let noted = json!({ "stdout": "half", "stderr": "", "interrupted": true });
    let piece = Script::new().bash("make test", "half", noted).read();
    let value = &only_of_kind(&piece, Kind::Command).value;
    assert_eq!((value.field("exit_code"), text(value, "outcome")), (None, Some("interrupted")));
    assert_eq!(value.field("interrupted"), Some(&true.into()));
    assert_eq!(text(&only_of_kind(&piece, Kind::Verification).value, "status"), Some("unknown"));
    for answer in [
        "[Request interrupted by user for tool use]",
        "half\n<error>Command was aborted before completion</error>",
    ] {
        let piece = Script::new().failed("x", answer).read();
        let value = &only_of_kind(&piece, Kind::Command).value;
        assert_eq!(text(value, "outcome"), Some("interrupted"), "{answer}");
    }
    let answer = "Exit code 137\n[Request interrupted by user for tool use]\nrunning 3 tests";
    let piece = Script::new().failed("cargo test", answer).read();
    let value = &only_of_kind(&piece, Kind::Command).value;
    assert_eq!(text(value, "outcome"), Some("interrupted"));
    assert_eq!(value.field("exit_code"), Some(&Value::Int(137)));
    assert_eq!(text(&only_of_kind(&piece, Kind::Verification).value, "status"), Some("unknown"));
}

#[test]
fn a_command_in_the_background_has_no_exit_code() {
    let noted =
        json!({ "stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": "b1" });
    let piece = Script::new().bash("make serve", "running", noted).read();
    let value = &only_of_kind(&piece, Kind::Command).value;
    assert_eq!((value.field("exit_code"), text(value, "outcome")), (None, Some("background")));
    assert_eq!(text(value, "background_task"), Some("b1"));
    let input = json!({ "command": "sleep 9", "run_in_background": true });
    let script = Script::new().call("c", "Bash", input);
    let piece = script.clone().result("c", "id b2", ran("")).read();
    assert_eq!(text(&only_of_kind(&piece, Kind::Command).value, "outcome"), Some("background"));
    // The client allowed no commands in the background, and waited.
    let piece = script.result("c", "done", ran("done")).read();
    assert_eq!(text(&only_of_kind(&piece, Kind::Command).value, "outcome"), Some("finished"));
    // Regression: without an object beside the result, these were finished with exit code 0.
    for answer in [
        "Command exceeded the assistant-mode blocking budget (15s) and was moved to the background with ID: b3. It is still running",
        "Compiling a\nCommand timed out after 2s and was moved to the background with ID: b3. It is still running\n",
        "Command did not complete within its 120s timeout and was moved to the background (ID: b3)",
    ] {
        let piece = Script::new().bash("cargo test", answer, json!(null)).read();
        let value = &only_of_kind(&piece, Kind::Command).value;
        assert_eq!((value.field("exit_code"), text(value, "outcome")), (None, Some("background")));
        assert_eq!(text(value, "background_task"), Some("b3"));
        let check = &only_of_kind(&piece, Kind::Verification).value;
        assert_eq!(text(check, "status"), Some("unknown"), "{answer}");
    }
    // With the object, such a line is what the command printed.
    for answer in
        ["found:\nCommand running in background with ID: b3.", "Command in background with ID: b3"]
    {
        let piece = Script::new().bash("grep -r background", answer, ran(answer)).read();
        assert_eq!(text(&only_of_kind(&piece, Kind::Command).value, "outcome"), Some("finished"));
    }
}

#[test]
fn a_call_without_result_and_another_tools_call_are_no_commands() {
    let script = Script::new().call("c", "Bash", json!({ "command": "ls" }));
    let piece = script.call("g", "Grep", json!({})).result("g", "found it", json!({})).read();
    assert_eq!(of_kind(&piece, Kind::Command).len(), 0);
    let message = &of_kind(&piece, Kind::Message)[2].value;
    let result = &message.field("tool_results").unwrap().as_list().unwrap()[0];
    assert_eq!(text(result, "text"), Some("found it"));
}

#[test]
fn several_results_in_a_line_use_the_text_for_the_agent() {
    let script = Script::new().call("a", "Bash", json!({ "command": "one" })).call(
        "b",
        "Bash",
        json!({ "command": "two" }),
    );
    let block = |id: &str, output_text: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": output_text });
    let content = json!([block("a", "1"), block("b", "2")]);
    let piece = script
        .line("user", json!({ "message": { "content": content }, "toolUseResult": ran("wrong") }))
        .read();
    let outputs: Vec<_> =
        of_kind(&piece, Kind::Command).iter().map(|it| text(&it.value, "stdout_preview")).collect();
    assert_eq!(outputs, [Some("1"), Some("2")]);
}

#[test]
fn a_long_output_is_a_reference_to_its_source() {
    let long = "line of output\n".repeat(50);
    let script = Script::new().failed("x", &format!("Exit code 1\n{long}"));
    let value = &only_of_kind(&script.read(), Kind::Command).value.clone();
    let stdout = TextRef::from_value(value.field("stdout_preview").unwrap()).unwrap();
    assert_eq!(stdout.pointer, format!("/toolUseResult#19-{}", 19 + long.len()));
    let (offset, length) = stdout.place.unwrap();
    let line = &script.text.as_bytes()[offset as usize..(offset + length) as usize];
    assert_eq!(crate::resolve(line, &stdout.pointer), Some(long));
}

#[test]
fn a_check_is_a_verification_with_the_calls_id() {
    let piece =
        Script::new().bash("cargo test | tail -3", "", ran("test result: ok. 3 passed")).read();
    let fact = only_of_kind(&piece, Kind::Verification);
    let expected = Value::from([
        ("name", "cargo test".into()),
        ("tool", "cargo".into()),
        ("call", "test".into()),
        ("working_dir", "/work".into()),
        ("check", "test".into()),
        ("status", "passed".into()),
        ("command", "cargo test | tail -3".into()),
        ("exit_code", Value::Int(0)),
    ]);
    assert_eq!((fact.id.as_str(), &fact.value), ("c", &expected));
    let piece = Script::new().failed("cargo test", "Exit code 101\ntest result: FAILED.").read();
    assert_eq!(text(&only_of_kind(&piece, Kind::Verification).value, "status"), Some("failed"));
}

#[test]
fn each_check_of_a_list_is_a_verification() {
    let line = "cd sub && cargo clippy && cargo test --lib";
    let piece = Script::new().bash(line, "", ran("")).read();
    let checks = of_kind(&piece, Kind::Verification);
    let field = |fact: &Fact, name| text(&fact.value, name).unwrap_or_default().to_owned();
    let actual: Vec<_> = checks
        .iter()
        .map(|fact| {
            (
                fact.id.clone(),
                field(fact, "name"),
                field(fact, "status"),
                field(fact, "working_dir"),
            )
        })
        .collect();
    let expected = |id: &str, name: &str| {
        (id.to_owned(), name.to_owned(), "passed".to_owned(), "/work/sub".to_owned())
    };
    assert_eq!(actual, [expected("c", "cargo clippy"), expected("c/2", "cargo test")]);
    // A check that did not run after a failure has no verification.
    let output = "Exit code 101\nerror: could not compile `a` (lib) due to 1 previous error";
    let piece = Script::new().failed("cargo fmt --check && cargo clippy && pytest", output).read();
    let ids: Vec<_> = of_kind(&piece, Kind::Verification)
        .iter()
        .map(|fact| (fact.id.as_str(), text(&fact.value, "status").unwrap_or_default()))
        .collect();
    assert_eq!(ids, [("c", "passed"), ("c/2", "failed")]);
}

#[test]
fn an_edit_is_code_with_its_patch_and_the_file_as_it_was() {
    let noted = json!({
        "filePath": "/a.rs", "oldString": "a", "newString": "b", "originalFile": "a\n",
        "structuredPatch": [{ "oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1,
                              "lines": ["-a", "+b"] }],
        "userModified": true,
    });
    let input = json!({ "file_path": "/a.rs", "old_string": "a", "new_string": "b" });
    let piece = Script::new().call("e", "Edit", input).result("e", "done", noted).read();
    let fact = only_of_kind(&piece, Kind::Code);
    let expected = Value::from([
        ("tool", "Edit".into()),
        ("path", "/a.rs".into()),
        ("patch", "--- /a.rs\n+++ /a.rs\n@@ -1,1 +1,1 @@\n-a\n+b\n".into()),
        ("lines_added", Value::Int(1)),
        ("lines_removed", Value::Int(1)),
        ("user_modified", true.into()),
        ("original_file", "a\n".into()),
        ("cwd", "/work".into()),
        ("git_branch", "main".into()),
    ]);
    assert_eq!((fact.id.as_str(), fact.at, &fact.value), ("e", time(2), &expected));
}

#[test]
fn a_new_file_a_notebook_and_several_edits_are_code() {
    let script = Script::new()
        .call("w", "Write", json!({ "file_path": "/n", "content": "x\n" }))
        .result(
            "w",
            "",
            json!({ "type": "create", "filePath": "/n", "content": "x\n",
                                 "structuredPatch": [], "originalFile": null }),
        )
        .call("n", "NotebookEdit", json!({ "notebook_path": "/b.ipynb", "new_source": "y" }))
        .result(
            "n",
            "",
            json!({ "new_source": "y", "edit_mode": "replace", "error": "",
                                 "original_file": "{}" }),
        )
        .call("m", "MultiEdit", json!({ "file_path": "/m", "edits": [] }))
        .result(
            "m",
            "",
            json!({ "filePath": "/m", "originalFileContents": "1\n",
            "edits": [{ "old_string": "1", "new_string": "2" }],
            "structuredPatch": [{ "oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1,
                                  "lines": ["-1", "+2"] }] }),
        );
    let piece = script.read();
    let code = of_kind(&piece, Kind::Code);
    let paths: Vec<_> = code.iter().map(|fact| text(&fact.value, "path").unwrap()).collect();
    assert_eq!(paths, ["/n", "/b.ipynb", "/m"]);
    assert!(text(&code[0].value, "patch").unwrap().starts_with("--- /dev/null\n+++ /n\n"));
    assert_eq!(text(&code[1].value, "original_file"), Some("{}"));
    assert_eq!(text(&code[2].value, "original_file"), Some("1\n"));
}

#[test]
fn an_edit_that_did_not_happen_is_not_code() {
    let input = || json!({ "file_path": "/a", "old_string": "a", "new_string": "b" });
    let piece = Script::new()
        .call("r", "Edit", input())
        .error("r", "The user doesn't want to proceed with this tool use.", json!("Error: no"))
        .call("s", "Write", json!({ "file_path": "/a", "content": "x" }))
        .error("s", "Sibling tool call errored", json!("Error: Sibling tool call errored"))
        .call("t", "Edit", input())
        .result("t", "odd", json!("a text where an object should be"))
        .call("n", "NotebookEdit", json!({ "notebook_path": "/b", "new_source": "y" }))
        .result("n", "no such cell", json!({ "new_source": "y", "error": "no such cell" }))
        .read();
    assert_eq!(of_kind(&piece, Kind::Code).len(), 0);
    let notebook = &of_kind(&piece, Kind::Tool)[2].value;
    assert_eq!(
        (text(notebook, "outcome"), text(notebook, "reason")),
        (Some("failed"), Some("no such cell"))
    );
}

/// Regression: without a flag for an error, a command that failed had the exit code 0.
#[test]
fn a_recorded_error_without_a_flag_is_an_error() {
    let script = Script::new().call("c", "Bash", json!({ "command": "cargo test" }));
    let refusal = "The user doesn't want to proceed with this tool use. It was rejected.";
    for (output, recorded, outcome) in [
        ("Exit code 101\nx", json!("Error: Exit code 101\nx"), "failed"),
        (
            "Permission to use Bash has been denied.",
            json!("Error: Permission to use Bash has been denied."),
            "refused",
        ),
        (refusal, json!("User rejected tool use"), "refused"),
        (refusal, json!(null), "refused"),
        ("Exit code 101\nx", json!(null), "failed"),
        ("<tool_use_error>Cancelled: x errored</tool_use_error>", json!(null), "refused"),
        ("Permission to use Bash has been denied.", json!(null), "refused"),
        ("Command timed out after 2m 0s\nx", json!(null), "timed_out"),
        ("[Request interrupted by user for tool use]", json!(null), "interrupted"),
        ("Exit code 101\nx", json!({ "stdout": "Exit code 101\nx" }), "finished"),
        ("Exit code 1 means no match", json!(null), "finished"),
        ("Exit code 0\nx", json!(null), "finished"),
        ("Permission to use x is denied by default", json!(null), "finished"),
        ("fine", json!({ "stdout": "fine" }), "finished"),
        ("fine", json!(null), "finished"),
    ] {
        let mut message = answered("c", output, false);
        message["content"][0].as_object_mut().unwrap().remove("is_error");
        let line = json!({ "message": message, "toolUseResult": recorded });
        let value =
            &only_of_kind(&script.clone().line("user", line).read(), Kind::Command).value.clone();
        assert_eq!(text(value, "outcome"), Some(outcome), "{output} {recorded}");
    }
    // The flag and the record disagree.
    let piece = script.result("c", "Exit code 2\nx", json!("Error: Exit code 2\nx")).read();
    let value = &only_of_kind(&piece, Kind::Command).value;
    assert_eq!(
        (text(value, "outcome"), value.field("exit_code")),
        (Some("failed"), Some(&Value::Int(2)))
    );
}

#[test]
fn a_call_that_never_started_is_refused() {
    for answer in [
        "<tool_use_error>Cancelled: parallel tool call Bash(go vet) errored</tool_use_error>",
        "This command requires approval",
        "PreToolUse:Bash hook error: [check.sh]: not allowed",
        "This Bash command contains multiple operations. The following part requires approval: make",
        "Bash operation blocked by hook:\n- [guard.sh]: no tests now",
        "Tool permission request failed: Error: Tool permission stream closed before response received",
        "Command contains $() command substitution",
        "sed command requires approval (contains potentially dangerous operations)",
        "Tool use aborted",
        "Permission denied by PermissionRequest hook",
    ] {
        let piece = Script::new().failed("cargo test", answer).read();
        assert_eq!(of_kind(&piece, Kind::Verification).len(), 0, "{answer}");
        let value = &only_of_kind(&piece, Kind::Command).value;
        assert_eq!((value.field("exit_code"), text(value, "outcome")), (None, Some("refused")));
        assert_eq!(value.field("stdout_preview"), None, "{answer}");
        assert!(answer.contains(text(value, "reason").unwrap()), "{answer}");
    }
    // A command that prints the words of a refusal did run.
    let answer = "Exit code 1\nPermission to use Bash has been denied.";
    let piece = Script::new().failed("./run", answer).read();
    assert_eq!(text(&only_of_kind(&piece, Kind::Command).value, "outcome"), Some("failed"));
}

#[test]
fn the_kind_of_a_refusal_counts_before_its_words() {
    let script = Script::new().call("c", "Bash", json!({ "command": "make" }));
    let line = |kind: &str, after: bool| {
        json!({
            "message": answered("c", "words of another client", true),
            "toolUseResult": "Error: words", "toolDenialKind": kind, "toolDenialAfterRun": after,
        })
    };
    for (kind, after, expected) in [
        ("automode-blocked", false, "refused"),
        ("cancelled", false, "refused"),
        ("permission-rule", true, "failed"),
        ("interrupted", false, "unknown"),
    ] {
        let script = script.clone().line("user", line(kind, after));
        let value = &only_of_kind(&script.read(), Kind::Command).value.clone();
        assert_eq!(text(value, "outcome"), Some(expected), "{kind}");
    }
}

#[test]
fn the_permission_decision_of_a_record_is_read() {
    let script = Script::new().call("c", "Bash", json!({ "command": "cargo test" }));
    for (decision, answer, outcome) in [
        (json!({ "decision": "reject", "source": "hook" }), "not today", "refused"),
        (json!("deny"), "not today", "refused"),
        (json!({ "decision": "accept", "source": "config" }), "not today", "unknown"),
        (json!(null), "not today", "unknown"),
        // The exit code shows that it ran, whatever the decision was.
        (json!("deny"), "Exit code 1\nnot today", "failed"),
    ] {
        let piece = script.clone().line(
            "user",
            json!({ "message": answered("c", answer, true), "toolUseResult": format!("Error: {answer}"),
                    "permissionDecision": decision }),
        );
        let value = &only_of_kind(&piece.read(), Kind::Command).value.clone();
        assert_eq!(text(value, "outcome"), Some(outcome), "{decision} {answer}");
    }
}

#[test]
fn the_input_of_a_tool_is_kept_with_its_outcome() {
    let long = "x".repeat(300);
    let input = json!({ "pattern": "fn main", "path": "/w/src", "note": long, "-A": 3,
                        "deep": { "a": { "b": { "c": 1 } } } });
    let script = Script::new()
        .call("g", "Grep", input)
        .result("g", "found", json!({ "durationMs": 7 }))
        .call("r", "Read", json!({ "file_path": "/w/no" }))
        .error("r", "<tool_use_error>File does not exist.</tool_use_error>", json!("Error: no"))
        .call("f", "WebFetch", json!({ "url": "https://a.example/b", "prompt": "?" }))
        .error("f", "Permission to use WebFetch has been denied.", json!("Error: denied"));
    let piece = script.read();
    let tools = of_kind(&piece, Kind::Tool);
    let shown: Vec<_> = tools
        .iter()
        .map(|fact| (fact.id.as_str(), text(&fact.value, "tool"), text(&fact.value, "outcome")))
        .collect();
    let expected = [
        ("g", Some("Grep"), Some("finished")),
        ("r", Some("Read"), Some("failed")),
        ("f", Some("WebFetch"), Some("refused")),
    ];
    assert_eq!(shown, expected);
    let grep = &tools[0].value;
    assert_eq!((text(grep, "pattern"), text(grep, "path")), (Some("fn main"), Some("/w/src")));
    assert_eq!((tools[0].at, grep.field("duration_ms")), (time(2), Some(&Value::Int(7))));
    let input = grep.field("input").unwrap();
    assert_eq!(input.field("-A"), Some(&Value::Int(3)));
    assert_eq!(text(input.field("deep").unwrap(), "a"), Some("{\"b\":{\"c\":1}}"));
    let note = TextRef::from_value(input.field("note").unwrap()).unwrap();
    let (offset, length) = note.place.unwrap();
    let line = &script.text.as_bytes()[offset as usize..(offset + length) as usize];
    assert_eq!(crate::resolve(line, &note.pointer), Some(long));
    assert_eq!(text(&tools[1].value, "reason"), Some("File does not exist."));
    assert_eq!(text(&tools[2].value, "address"), Some("https://a.example/b"));
}

#[test]
fn answers_plans_and_refused_edits_are_uses_of_tools() {
    let questions = json!({ "questions": [{ "question": "Which?", "options": [] }] });
    let plan = json!({ "plan": "1. read\n2. write" });
    let edit = json!({ "file_path": "/a", "old_string": "a", "new_string": "b" });
    let refused = "The user doesn't want to proceed with this tool use. \
                   To tell you how to proceed, the user said:\nkeep a";
    let piece = Script::new()
        .call("q", "AskUserQuestion", questions)
        .result("q", "User answered", json!({ "answers": { "Which?": "the first" } }))
        .call("p", "ExitPlanMode", plan)
        .result("p", "User has approved your plan", json!({}))
        .call("e", "Edit", edit)
        .error("e", refused, json!("User rejected tool use"))
        .read();
    let tools = of_kind(&piece, Kind::Tool);
    let answers = tools[0].value.field("answers").unwrap();
    assert_eq!(text(answers, "Which?"), Some("the first"));
    assert_eq!(text(&tools[1].value, "plan"), Some("1. read\n2. write"));
    let refused = &tools[2].value;
    assert_eq!((text(refused, "tool"), text(refused, "path")), (Some("Edit"), Some("/a")));
    assert_eq!(
        (text(refused, "outcome"), text(refused, "reason")),
        (Some("refused"), Some("keep a"))
    );
    assert_eq!(of_kind(&piece, Kind::Code).len(), 0);
}

/// Regression: the call of a tool whose input cannot be read was lost.
#[test]
fn a_call_without_readable_input_is_the_use_of_its_tool() {
    let error = "<tool_use_error>InputValidationError: x</tool_use_error>";
    for tool in ["Bash", "Edit", "Agent", "TodoWrite", "TaskUpdate"] {
        let script = Script::new().call("c", tool, json!("{\"file_path\":"));
        let piece = script.error("c", error, json!(format!("Error: {error}"))).read();
        let used = &only_of_kind(&piece, Kind::Tool).value;
        assert_eq!((text(used, "tool"), text(used, "outcome")), (Some(tool), Some("refused")));
        assert_eq!(of_kind(&piece, Kind::Command).len() + of_kind(&piece, Kind::Code).len(), 0);
    }
}

/// Regression: such a call was finished.
#[test]
fn the_outcome_of_a_call_that_goes_on_in_the_background_is_not_known() {
    let note = "MCP tool \"db/query\" is still running after 60s. It was moved to the background as \
                task m1 and keeps running; you'll receive a notification.";
    for (answer, outcome) in [(note, "unknown"), ("MCP tool \"x\" is listed", "finished")] {
        let script = Script::new().call("c", "mcp__db__query", json!({ "q": 1 }));
        let piece = script.result("c", answer, json!(null)).read();
        assert_eq!(text(&only_of_kind(&piece, Kind::Tool).value, "outcome"), Some(outcome));
    }
    let launched = "Workflow launched in background. Task ID: t1\nRun ID: wf_1";
    let noted = json!({ "status": "async_launched", "taskId": "t1", "runId": "wf_1" });
    for (answer, noted) in [(launched, json!(null)), ("ok", noted)] {
        let script = Script::new().call("c", "Workflow", json!({ "script": "x" }));
        let piece = script.result("c", answer, noted).read();
        assert_eq!(text(&only_of_kind(&piece, Kind::Tool).value, "outcome"), Some("unknown"));
    }
}

#[test]
fn a_call_that_the_api_runs_is_the_use_of_a_tool() {
    for (content, outcome) in [
        (json!([{ "type": "web_search_result", "url": "https://a.example" }]), "finished"),
        (json!({ "type": "web_search_tool_result_error", "error_code": "unavailable" }), "failed"),
    ] {
        let block = |block: serde_json::Value| json!({ "message": { "content": [block] } });
        let call = json!({ "type": "server_tool_use", "id": "s", "name": "web_search",
                           "input": { "query": "x" } });
        let result =
            json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": content });
        let script = Script::new().line("assistant", block(call)).line("assistant", block(result));
        let value = &only_of_kind(&script.read(), Kind::Tool).value.clone();
        let shown = (text(value, "tool"), text(value, "query"), text(value, "outcome"));
        assert_eq!(shown, (Some("web_search"), Some("x"), Some(outcome)));
    }
}

/// Regression: the call was a command with exit code 0, or a change of a file without a name.
#[test]
fn a_call_of_another_program_with_the_name_of_a_tool_of_claude_code_is_the_use_of_a_tool() {
    let block = |block: serde_json::Value| json!({ "message": { "content": [block] } });
    let call = json!({ "type": "mcp_tool_use", "id": "s", "name": "Bash",
                       "input": { "command": "make test" } });
    let result = json!({ "type": "mcp_tool_result", "tool_use_id": "s", "is_error": false,
                         "content": [{ "type": "text", "text": "Exit code 2" }] });
    let of_api = Script::new().line("assistant", block(call)).line("assistant", block(result));
    let input = json!({ "pattern": "a", "replacement": "b" });
    let replaced = Script::new().call("s", "Replace", input).result("s", "ok", json!(null));
    for (script, tool) in [(of_api, "Bash"), (replaced, "Replace")] {
        let piece = script.read();
        assert_eq!(text(&only_of_kind(&piece, Kind::Tool).value, "tool"), Some(tool));
        assert_eq!(of_kind(&piece, Kind::Command).len() + of_kind(&piece, Kind::Code).len(), 0);
    }
}
