//! `forge import codex` and `forge import gemini`: files that grow, and what is known afterwards.

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
fn a_rollout_is_found_taken_and_taken_on() {
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
    assert!(took.contains("took 3 lines"), "{took}");
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
fn a_recording_in_either_form_is_the_same_session() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let project = environment.path("project").canonicalize().unwrap();
    environment.write("home/.gemini/tmp/p-1/.project_root", project.to_str().unwrap());
    let meta =
        json!({"sessionId": "9e31", "projectHash": "x", "startTime": "2026-01-05T10:00:00Z"});
    let asked = json!({"id": "m1", "timestamp": "2026-01-05T10:00:01Z", "type": "user",
        "content": [{"text": "why is it slow?"}]});
    let answered = json!({"id": "m2", "timestamp": "2026-01-05T10:00:02Z", "type": "gemini",
        "content": "Let me look.", "toolCalls": [{"id": "t1", "name": "run_shell_command",
            "args": {"command": "make bench"}, "status": "success", "timestamp": "2026-01-05T10:00:09Z",
            "result": [{"functionResponse": {"response": {"output": "Output: 3 s"}}}]}]});
    let mut document = meta.clone();
    document["messages"] = json!([asked, answered]);
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
    // A later version goes on with the same session, a line for each record.
    let lines: String =
        [meta, asked, answered].iter().map(|line| line.to_string() + "\n").collect();
    std::fs::remove_file(environment.path(old)).unwrap();
    environment.write("home/.gemini/tmp/p-1/chats/session-2026-01-05T10-00-9e31.jsonl", &lines);
    environment.forge(["import", "gemini", "--yes"]).success();
    let commands = environment.forge(["command", "list", "--json"]).json();
    assert_eq!(commands["commands"].as_array().map(Vec::len), Some(1), "{commands}");
    let sessions = environment.forge(["session", "list", "--json"]).json();
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(1), "{sessions}");
}

#[test]
fn a_file_that_is_none_is_refused() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.write("project/x.jsonl", "junk\n{\"type\":\"response_item\"}\n");
    let told = environment.forge(["import", "codex", "x.jsonl"]);
    assert_eq!(told.code, 2, "{told}");
    assert!(told.stderr.contains("'x.jsonl' is not a rollout of Codex"), "{told}");
    let none = environment.forge(["import", "gemini"]).success();
    assert!(none.contains("There are no transcripts of Gemini CLI for this directory."), "{none}");
}
