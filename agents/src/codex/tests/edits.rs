//! Edits: patches in calls, in command lines, in events and in items.

use super::*;

/// Returns the edits: id, path, lines added, lines removed.
fn edits(piece: &TranscriptPiece) -> Vec<(String, String, i64, i64)> {
    let code = of_kind(piece, Kind::Code).into_iter().map(|fact| {
        let number = |name| field(fact, name).and_then(Value::as_i64).unwrap();
        (
            fact.id.clone(),
            text(fact, "path").unwrap(),
            number("lines_added"),
            number("lines_removed"),
        )
    });
    code.collect()
}

fn edit(id: &str, path: &str, added: i64, removed: i64) -> (String, String, i64, i64) {
    (id.to_owned(), path.to_owned(), added, removed)
}

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n*** End Patch";

#[test]
fn a_patch_in_a_command_line_is_relative_to_where_it_is_applied() {
    let done =
        "Process exited with code 0\nOutput:\nSuccess. Updated the following files:\nM a.txt\n";
    for (arguments, path) in [
        (json!({"cmd": format!("cd sub && apply_patch <<'EOF'\n{PATCH}\nEOF")}), "sub/a.txt"),
        (
            json!({"cmd": format!("apply_patch <<EOF\n{PATCH}\nEOF\n"), "workdir": "/w/b"}),
            "b/a.txt",
        ),
        (json!({"cmd": format!("apply_patch '{PATCH}'"), "workdir": "/w"}), "a.txt"),
        (json!({"cmd": format!("cd /else && apply_patch <<\"X\"\n{PATCH}\nX")}), "/else/a.txt"),
        (
            json!({"command": ["bash", "-lc", format!("apply_patch <<'EOF'\n{PATCH}\nEOF")]}),
            "a.txt",
        ),
        (json!({"command": ["apply_patch", null, PATCH]}), "a.txt"),
        (
            json!({"cmd": format!("pushd sub >/dev/null && apply_patch <<'EOF'\n{PATCH}\nEOF\npopd")}),
            "sub/a.txt",
        ),
        // The folder is the value of a variable, so the path is not known.
        (json!({"cmd": format!("cd \"$DIR\" && apply_patch <<'EOF'\n{PATCH}\nEOF")}), "?/a.txt"),
    ] {
        let script =
            [meta(), call(1, "exec_command", "k1", &arguments), output(2, "k1", &json!(done))];
        let piece = read(&script.concat());
        assert_eq!(edits(&piece), [edit("k1", path, 1, 1)], "{arguments}");
        let patch = text(of_kind(&piece, Kind::Code)[0], "patch").unwrap();
        assert_eq!(patch, "*** Update File: a.txt\n@@\n-x\n+y\n");
        assert_eq!(of_kind(&piece, Kind::Command).len(), 0);
    }
}

/// Regression: the lines of a heredoc with `<<-` begin with tabs, and no file was found in them.
#[test]
fn a_patch_that_is_indented_by_tabs_names_its_files() {
    let patch = PATCH.replace('\n', "\n\t");
    let line = format!("cd sub && apply_patch <<-'EOF'\n\t{patch}\n\tEOF");
    let request = call(1, "exec_command", "k1", &json!({"cmd": line}));
    let done =
        "Process exited with code 0\nOutput:\nSuccess. Updated the following files:\nM a.txt\n";
    let piece = read(&[meta(), request, output(2, "k1", &json!(done))].concat());
    assert_eq!(edits(&piece), [edit("k1", "sub/a.txt", 1, 1)]);
}

#[test]
fn the_result_of_a_patch_may_be_in_the_output_of_a_command() {
    let request = call(
        1,
        "exec_command",
        "k1",
        &json!({"cmd": format!("apply_patch <<'EOF'\n{PATCH}\nEOF")}),
    );
    for (inner, applied) in [
        (
            "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nM a.txt\n",
            true,
        ),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno\n", false),
        (
            "{\"output\":\"Success. Updated the following files:\\nM a.txt\\n\",\"metadata\":{\"exit_code\":0}}",
            true,
        ),
        ("{\"output\":\"no\",\"metadata\":{\"exit_code\":1}}", false),
    ] {
        let result_text = json!(format!("Wall time: 0.0000 seconds\nOutput:\n{inner}"));
        let piece = read(&[meta(), request.clone(), output(2, "k1", &result_text)].concat());
        assert_eq!(edits(&piece).len(), usize::from(applied), "{inner}");
    }
}

#[test]
fn a_patch_next_to_other_commands_is_an_edit_and_a_command() {
    let line = format!("apply_patch <<'EOF'\n{PATCH}\nEOF\ncargo test");
    let result_text = |code: i64, output: &str| {
        json!(format!("Process exited with code {code}\nOutput:\n{output}"))
    };
    let request = call(1, "exec_command", "k1", &json!({"cmd": line}));
    let applied = output(
        2,
        "k1",
        &result_text(
            101,
            "Success. Updated the following files:\nM a.txt\ntest result: FAILED. 0 passed; 1 failed\n",
        ),
    );
    let piece = read(&[meta(), request.clone(), applied].concat());
    assert_eq!(edits(&piece), [edit("k1", "a.txt", 1, 1)]);
    assert_eq!(of_kind(&piece, Kind::Command).len(), 1);
    let failed = output(2, "k1", &result_text(1, "Failed to find expected lines in a.txt\n"));
    assert_eq!(edits(&read(&[meta(), request, failed].concat())), []);
}

#[test]
fn a_patch_that_was_not_applied_is_not_an_edit() {
    for (result_text, outcome, reason) in [
        ("patch rejected by user", "refused", "patch rejected by user"),
        (
            "apply_patch verification failed: Failed to find expected lines",
            "failed",
            "apply_patch verification failed: Failed to find expected lines",
        ),
        ("aborted by user after 2.0s", "interrupted", "aborted by user after 2.0s"),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\nno", "failed", "no"),
        ("{\"output\":\"no\",\"metadata\":{\"exit_code\":1}}", "failed", "no"),
        ("Wall time: 2 seconds\naborted by user", "interrupted", ""),
        ("something else", "unknown", "something else"),
    ] {
        let request = json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "p1", "input": PATCH});
        let answer =
            json!({"type": "custom_tool_call_output", "call_id": "p1", "output": result_text});
        let piece = read(&[meta(), item(1, &request), item(2, &answer)].concat());
        assert_eq!(edits(&piece), [], "{result_text}");
        // Regression: only a refused patch was recorded as the use of a tool.
        let [tool] = of_kind(&piece, Kind::Tool)[..] else { panic!("{result_text}") };
        assert_eq!(text(tool, "outcome").as_deref(), Some(outcome));
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        assert_eq!(text(tool, "reason").as_deref(), reason);
    }
}

fn changes() -> Json {
    json!({
        "/w/a.py": {"type": "update", "unified_diff": "@@ -1,2 +1,2 @@\n a\n--- b\n+c\n", "move_path": "/w/z.py"},
        "/w/b.py": {"type": "add", "content": "one\ntwo\n"},
        "/w/c.py": {"type": "delete", "content": "gone\n"},
    })
}

#[test]
fn changes_that_only_an_item_or_an_event_reports_are_edits() {
    let item_line = at(
        1,
        "event_msg",
        &json!({"type": "item_completed", "item":
        {"type": "FileChange", "id": "exec-1", "changes": changes(), "status": "completed"}}),
    );
    let event = at(
        1,
        "event_msg",
        &json!({"type": "patch_apply_end", "call_id": "exec-1", "changes": changes(),
        "success": true, "status": "completed", "stdout": "", "stderr": ""}),
    );
    for lines in [item_line.clone(), event.clone(), item_line + &event] {
        let script = meta() + &lines;
        let piece = read(&script);
        assert_eq!(
            edits(&piece),
            [
                edit("exec-1", "/w/a.py", 1, 1),
                edit("exec-1/2", "/w/b.py", 2, 0),
                edit("exec-1/3", "/w/c.py", 0, 1)
            ]
        );
        let code = of_kind(&piece, Kind::Code);
        assert_eq!(text(code[0], "moved_to").as_deref(), Some("/w/z.py"));
        assert_eq!(text(code[1], "patch").as_deref(), Some("@@ -0,0 +1,2 @@\n+one\n+two\n"));
        assert_eq!(text(code[2], "original_file").as_deref(), Some("gone\n"));
        check_same_in_pieces(&script);
    }
}

#[test]
fn a_long_change_is_resolved_from_its_source() {
    let content = "line of text\n".repeat(40);
    let script = meta()
        + &at(
            1,
            "event_msg",
            &json!({"type": "item_completed", "item": {"type": "FileChange",
        "id": "e1", "status": "completed", "changes": {"/w/a~b.py": {"type": "add", "content": content}}}}),
        );
    let piece = read(&script);
    let found =
        TextRef::from_value(field(of_kind(&piece, Kind::Code)[0], "patch").unwrap()).unwrap();
    let (offset, length) = found.place.unwrap();
    let (from, to) = (usize::try_from(offset).unwrap(), usize::try_from(offset + length).unwrap());
    let whole = resolve(&script.as_bytes()[from..to], &found.pointer).unwrap();
    assert_eq!(whole.lines().count(), 41);
    assert!(whole.starts_with("@@ -0,0 +1,40 @@\n+line of text\n"), "{whole}");
}

#[test]
fn failed_changes_are_uses_of_a_tool_and_a_call_and_its_event_are_one() {
    for (status, outcome) in [("failed", "failed"), ("declined", "refused")] {
        let script = meta()
            + &at(
                1,
                "event_msg",
                &json!({"type": "item_completed", "item":
            {"type": "FileChange", "id": "e1", "changes": changes(), "status": status}}),
            );
        let piece = read(&script);
        assert_eq!(edits(&piece), []);
        let [tool] = of_kind(&piece, Kind::Tool)[..] else { panic!("{status}") };
        assert_eq!(text(tool, "outcome").as_deref(), Some(outcome));
    }
    let declined = json!({"type": "patch_apply_end", "call_id": "p1", "success": false, "status": "declined",
        "stderr": "patch rejected by user", "changes": changes()});
    let request =
        json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "p1", "input": PATCH});
    let answer = json!({"type": "custom_tool_call_output", "call_id": "p1", "output": "patch rejected by user"});
    let script = [meta(), item(1, &request), at(2, "event_msg", &declined), item(3, &answer)];
    let piece = read(&script.concat());
    assert_eq!((edits(&piece).len(), of_kind(&piece, Kind::Tool).len()), (0, 1));
    assert_eq!(
        text(of_kind(&piece, Kind::Tool)[0], "reason").as_deref(),
        Some("patch rejected by user")
    );
    let request =
        json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "p1", "input": PATCH});
    let event = json!({"type": "patch_apply_end", "call_id": "p1", "success": true, "changes":
        {"/w/a.txt": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-x\n+y\n"}}});
    let answer = json!({"type": "custom_tool_call_output", "call_id": "p1",
        "output": "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nM a.txt\n"});
    let script = [meta(), item(1, &request), at(2, "event_msg", &event), item(3, &answer)];
    assert_eq!(edits(&read(&script.concat())), [edit("p1", "a.txt", 1, 1)]);
}

/// Regression: a patch in a line for another shell was lost, and so was a second patch; and a patch
/// that failed before one that was applied counted as applied.
#[test]
fn patches_in_an_inner_line_and_several_patches_are_read() {
    let apply = |name: &str| {
        format!(
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\nEOF\n"
        )
    };
    let done = |names: &str| {
        let text = format!(
            "Process exited with code 0\nOutput:\nSuccess. Updated the following files:\n{names}"
        );
        json!(text)
    };
    for (line, result, expected) in [
        (format!("bash -lc \"cd sub && {}\"", apply("a")), done("A a\n"), vec!["sub/a"]),
        (apply("a") + &apply("b"), done("A a\nA b\n"), vec!["a", "b"]),
        (apply("a") + &apply("b"), done("A b\n"), vec!["b"]),
        (format!("(cd sub && /opt/bin/{})", apply("a")), done("A a\n"), vec!["sub/a"]),
    ] {
        let script = [
            meta(),
            call(1, "exec_command", "k1", &json!({"cmd": line})),
            output(2, "k1", &result),
        ];
        let piece = read(&script.concat());
        let code = of_kind(&piece, Kind::Code).into_iter();
        let paths: Vec<_> = code.map(|fact| text(fact, "path").unwrap()).collect();
        assert_eq!(paths, expected, "{line}");
    }
}
