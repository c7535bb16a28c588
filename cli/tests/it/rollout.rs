//! `forge import codex` and `forge import gemini`: files that grow, and the imported data.

use crate::environment::Environment;
use serde_json::json;

fn rollout(environment: &Environment, lines: usize) -> String {
    let cwd = environment.path("project").canonicalize().unwrap();
    let item = |time: &str, payload: serde_json::Value| json!({"timestamp": format!("2026-01-05T10:0{time}Z"), "type": "response_item", "payload": payload});
    let all = [
        json!({"timestamp": "2026-01-05T10:00:00Z", "type": "session_meta",
            "payload": {"id": "c0de-1", "cwd": cwd, "git": {"branch": "main"}}}),
        json!({"timestamp": "2026-01-05T10:00:01Z", "type": "event_msg",
            "payload": {"type": "user_message", "message": "fix the flaky test"}}),
        item(
            "0:05",
            json!({"type": "function_call", "name": "shell_command", "call_id": "k1",
            "arguments": "{\"command\":\"cargo test\"}"}),
        ),
        item(
            "0:09",
            json!({"type": "function_call_output", "call_id": "k1",
            "output": "Exit code: 101\nWall time: 4 seconds\nOutput:\ntest result: FAILED. 1 failed\n"}),
        ),
        json!({"timestamp": "2026-01-05T10:01:00Z", "type": "compacted", "payload": {"message": "one test fails"}}),
        item(
            "2:00",
            json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "It is the clock."}]}),
        ),
    ];
    all.iter().take(lines).map(|line| line.to_string() + "\n").collect()
}

#[test]
fn a_rollout_is_found_imported_and_continued() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let file = "home/.codex/sessions/2026/01/05/rollout-2026-01-05T10-00-00-c0de-1.jsonl";
    environment.write(file, &rollout(&environment, 3));
    environment.write(
        "home/.codex/sessions/2026/01/05/rollout-x.jsonl",
        "{\"payload\":{\"cwd\":\"/elsewhere\"}}\n",
    );
    let shown = environment.forge(["import", "codex", "--json"]).json();
    assert_eq!(shown["schema"], "forge.import.codex/1");
    assert_eq!(shown["found"].as_array().unwrap().len(), 1);
    let took = environment.forge(["import", "codex", "--yes"]).success();
    assert!(took.contains("imported 3 lines"), "{took}");
    environment.write(file, &rollout(&environment, 6));
    let took = environment.forge(["import", "codex", "--yes", "--json"]).json();
    let one = &took["files"][0];
    assert_eq!((&one["lines"], &one["again"]), (&3.into(), &false.into()));
    assert_eq!((&one["facts"]["commands"], &one["checkpoints"]), (&1.into(), &1.into()));
    let again = environment.forge(["import", "codex", "--yes", "--json"]).json();
    assert_eq!(again["files"][0]["unchanged"], true);
    let commands = environment.forge(["command", "list", "--json"]).json();
    assert_eq!(commands["commands"].as_array().map(Vec::len), Some(1), "{commands}");
    let prompts = environment.forge(["prompt", "list"]).success();
    assert!(prompts.contains("fix the flaky test"), "{prompts}");
    let checks = environment.forge(["verification", "list"]).success();
    assert!(checks.contains("cargo test") && checks.contains("failed"), "{checks}");
    let points = environment.forge(["checkpoint", "list"]).success();
    assert!(points.contains("context compacted"), "{points}");
}

#[test]
fn archived_compressed_and_worktree_sessions_are_offered() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let project = environment.path("project").canonicalize().unwrap();
    let tree = environment.path("fix");
    std::fs::create_dir_all(&tree).unwrap();
    let tree = tree.canonicalize().unwrap();
    let gitdir = format!("{}/.git\n", tree.display());
    environment.write("project/.git/worktrees/fix/gitdir", &gitdir);
    let long = "x".repeat(2 << 20);
    for (file, cwd) in [
        ("archived_sessions/rollout-a.jsonl", project.clone()),
        ("sessions/2026/01/05/rollout-b.jsonl", tree.join("src")),
        ("sessions/2026/01/05/rollout-c.jsonl", project.join("sub")),
        ("sessions/2026/01/05/rollout-d.jsonl", environment.path("elsewhere")),
    ] {
        let first = json!({"type": "session_meta", "timestamp": "2026-01-05T10:00:00Z",
            "payload": {"base_instructions": {"text": long}, "id": "s", "cwd": cwd}});
        environment.write(&format!("home/.codex/{file}"), &format!("{first}\n"));
    }
    let packed = zstd::bulk::compress(rollout(&environment, 2).as_bytes(), 3).unwrap();
    let file = environment.path("home/.codex/archived_sessions/rollout-e.jsonl.zst");
    std::fs::write(file, packed).unwrap();
    environment.make_directory("project/sub");
    // The sessions are also found from a subdirectory, and each file only once.
    for from in ["project", "project/sub"] {
        let shown = environment.forge_in(from, ["import", "codex", "--json"]).json();
        let mut found: Vec<&str> = shown["found"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["file"].as_str()?.rsplit('/').next())
            .collect();
        found.sort_unstable();
        assert_eq!(
            found,
            ["rollout-a.jsonl", "rollout-b.jsonl", "rollout-c.jsonl", "rollout-e.jsonl.zst"],
            "{from}"
        );
    }
}

#[test]
fn a_command_that_ended_later_counts_once() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let call = |second: u32, id: &str, name: &str, arguments: &str| {
        json!({"timestamp": format!("2026-01-05T10:00:0{second}Z"), "type": "response_item",
        "payload": {"type": "function_call", "name": name, "call_id": id, "arguments": arguments}})
    };
    let output = |second: u32, id: &str, text: &str| {
        json!({"timestamp": format!("2026-01-05T10:00:0{second}Z"), "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": id, "output": text}})
    };
    let mut lines = rollout(&environment, 2);
    for line in [
        call(2, "k1", "exec_command", "{\"cmd\":\"cargo test\"}"),
        output(3, "k1", "Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\n"),
        call(4, "k2", "write_stdin", "{\"session_id\":7,\"chars\":\"\"}"),
        output(5, "k2", "Wall time: 1 seconds\nProcess exited with code 101\nOutput:\n"),
    ] {
        lines += &(line.to_string() + "\n");
    }
    environment.write("project/a.jsonl", &lines);
    let took = environment.forge(["import", "codex", "a.jsonl", "--json"]).json();
    let facts = &took["files"][0]["facts"];
    assert_eq!((&facts["commands"], &facts["verifications"]), (&1.into(), &1.into()), "{facts}");
}

#[test]
fn text_that_a_compaction_kept_verbatim_is_not_reported_as_lost() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let message = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let kept = format!("please keep: the lexer is src/lexer.rs. {}", "And so on. ".repeat(40));
    let history = json!([message("go on"), message(&kept), {"type": "compaction", "encrypted_content": "gA"}]);
    let edited = json!({"timestamp": "2026-01-05T10:02:00Z", "type": "event_msg", "payload": {
        "type": "patch_apply_end", "call_id": "p1", "success": true, "changes": {
            "src/lexer.rs": {"type": "add", "content": "a\n"},
            "src/scheduler.rs": {"type": "add", "content": "b\n"}}}});
    let compacted = json!({"timestamp": "2026-01-05T10:05:00Z", "type": "compacted",
        "payload": {"message": "", "replacement_history": history}});
    let script = rollout(&environment, 2) + &format!("{edited}\n{compacted}\n");
    environment.write("project/x.jsonl", &script);
    environment.forge(["import", "codex", "x.jsonl"]).success();
    let shown = environment.forge(["compaction", "show", "--json"]).json();
    let lost = shown["lost"].as_array().unwrap_or_else(|| panic!("{shown}"));
    let of_kind = |kind: &str| -> Vec<&str> {
        let lost = lost.iter().filter(|one| one["kind"] == kind);
        lost.map(|one| one["id"].as_str().unwrap()).collect()
    };
    assert_eq!(of_kind("file"), ["src/scheduler.rs"], "{shown}");
    assert_eq!((of_kind("prompt").len(), &shown["kept"]), (1, &json!(2)), "{shown}");
}

#[test]
fn recordings_in_both_formats_continue_one_session() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let project = environment.path("project").canonicalize().unwrap();
    environment.write("home/.gemini/tmp/p-1/.project_root", project.to_str().unwrap());
    let meta =
        json!({"sessionId": "9e31", "projectHash": "x", "startTime": "2026-01-05T10:00:00Z"});
    let question = json!({"id": "m1", "timestamp": "2026-01-05T10:00:01Z", "type": "user",
        "content": [{"text": "why is it slow?"}]});
    let answered = json!({"id": "m2", "timestamp": "2026-01-05T10:00:02Z", "type": "gemini",
        "content": "Let me look.", "toolCalls": [{"id": "t1", "name": "run_shell_command",
            "args": {"command": "make bench"}, "status": "success", "timestamp": "2026-01-05T10:00:09Z",
            "result": [{"functionResponse": {"response": {"output": "Output: 3 s"}}}]}]});
    let mut document = meta.clone();
    document["messages"] = json!([question, answered]);
    let old = "home/.gemini/tmp/p-1/chats/session-2026-01-05T10-00-9e31.json";
    environment.write(old, &serde_json::to_string_pretty(&document).unwrap());
    let took = environment.forge(["import", "gemini", "--yes", "--json"]).json();
    assert_eq!(took["schema"], "forge.import.gemini/1");
    let facts = &took["files"][0]["facts"];
    assert!(facts.is_object(), "{took}");
    assert_eq!(
        (&facts["prompts"], &facts["commands"], &facts["messages"]),
        (&1.into(), &1.into(), &2.into())
    );
    let again = environment.forge(["import", "gemini", "--yes", "--json"]).json();
    assert_eq!(again["files"][0]["unchanged"], true, "{again}");
    // A later version continues the same session, with one line per record.
    let lines: String =
        [meta, question, answered].iter().map(|line| line.to_string() + "\n").collect();
    std::fs::remove_file(environment.path(old)).unwrap();
    environment.write("home/.gemini/tmp/p-1/chats/session-2026-01-05T10-00-9e31.jsonl", &lines);
    environment.forge(["import", "gemini", "--yes"]).success();
    let commands = environment.forge(["command", "list", "--json"]).json();
    assert_eq!(commands["commands"].as_array().map(Vec::len), Some(1), "{commands}");
    let sessions = environment.forge(["session", "list", "--json"]).json();
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(1), "{sessions}");
    // The session of another worktree is offered too.
    environment.make_directory("fix");
    let tree = environment.path("fix").canonicalize().unwrap();
    let gitdir = format!("{}/.git\n", tree.display());
    environment.write("project/.git/worktrees/fix/gitdir", &gitdir);
    environment.write("home/.gemini/tmp/p-2/.project_root", tree.to_str().unwrap());
    environment.write("home/.gemini/tmp/p-2/chats/session-b.jsonl", "");
    let shown = environment.forge(["import", "gemini", "--json"]).json();
    assert_eq!(shown["found"].as_array().map(Vec::len), Some(2), "{shown}");
}

#[test]
fn a_file_that_is_no_rollout_is_refused() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.write("project/x.jsonl", "junk\n{\"type\":\"response_item\"}\n");
    let refused = environment.forge(["import", "codex", "x.jsonl"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("'x.jsonl' is not a rollout of Codex"), "{refused}");
    let none = environment.forge(["import", "gemini"]).success();
    assert!(none.contains("There are no transcripts of Gemini CLI for this directory."), "{none}");
}
