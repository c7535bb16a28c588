//! Files with several sessions: each session is imported separately, unless one continues the
//! other.

use crate::environment::Environment;
use serde_json::{Value, json};

fn prompt_line(session: &str, minute: u32, parent: Option<&str>, text: &str) -> String {
    let line = json!({"type": "user", "uuid": format!("{session}-{minute}"), "parentUuid": parent,
        "sessionId": session, "timestamp": format!("2026-01-05T10:{minute:02}:00Z"), "cwd": "/w",
        "message": {"role": "user", "content": text}});
    line.to_string() + "\n"
}

fn import(environment: &Environment, agent: &str, text: &str) -> Value {
    import_file(environment, agent, "all.jsonl", text)
}

fn import_file(environment: &Environment, agent: &str, file: &str, text: &str) -> Value {
    environment.write(&format!("project/{file}"), text);
    let output = environment.forge(["import", agent, file, "--json"]);
    assert_eq!(output.code, 0, "{output}");
    serde_json::from_str(&output.stdout).unwrap()
}

fn sessions(imported: &Value) -> Vec<(&str, u64)> {
    let files = imported["files"].as_array().unwrap();
    let one = |file: &'_ Value| file["facts"]["prompts"].as_u64().unwrap_or(0);
    files.iter().map(|file| (file["agent_session"].as_str().unwrap(), one(file))).collect()
}

#[test]
fn each_session_of_a_file_is_imported_once_whatever_is_appended() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let title = json!({"type": "ai-title", "aiTitle": "the second", "sessionId": "b"});
    let begun = [
        prompt_line("a", 1, None, "read the lease"),
        prompt_line("b", 2, None, "write the report"),
        format!("{title}\n"),
        prompt_line("a", 3, Some("a-1"), "and the other one"),
    ];
    let imported = import(&environment, "claude-code", &begun.concat());
    assert_eq!(sessions(&imported), [("a", 2), ("b", 1)]);
    let again = import(&environment, "claude-code", &begun.concat());
    let unchanged: Vec<_> =
        again["files"].as_array().unwrap().iter().map(|file| &file["unchanged"]).collect();
    assert_eq!(unchanged, [true, true]);
    let more = [begun.concat(), prompt_line("b", 4, Some("b-2"), "send it")].concat();
    assert_eq!(sessions(&import(&environment, "claude-code", &more)), [("a", 0), ("b", 1)]);
    let found = environment.forge(["session", "list"]).success();
    assert!(found.contains("read the lease") && found.contains("the second"), "{found}");
    // A transcript that contains only one of the sessions adds nothing.
    let alone = [
        prompt_line("a", 1, None, "read the lease"),
        prompt_line("a", 3, Some("a-1"), "and the other one"),
    ];
    let alone = import(&environment, "claude-code", &alone.concat());
    assert_eq!(alone["files"][0]["unchanged"], true, "{alone}");
}

#[test]
fn sessions_that_share_a_line_are_separated_and_bad_lines_keep_their_number() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let first = prompt_line("a", 1, None, "read the lease");
    let text = [
        first.trim_end().to_owned(),
        prompt_line("b", 2, None, "write the report"),
        "no record\n".to_owned(),
        prompt_line("b", 3, Some("b-2"), "send it"),
    ];
    let imported = import(&environment, "claude-code", &text.concat());
    assert_eq!(sessions(&imported), [("a", 1), ("b", 2)]);
    assert_eq!(imported["files"][1]["skipped"][0]["line"], 2, "{imported}");
    let offset = text[0].len() + text[1].len();
    assert_eq!(imported["files"][1]["skipped"][0]["offset"], offset);
    let fresh = Environment::new();
    fresh.forge(["init"]).success();
    fresh.write("project/all.jsonl", &text.concat());
    let refused = fresh.forge(["import", "claude-code", "all.jsonl", "--strict"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("line 2"), "{refused}");
    let list = fresh.forge(["session", "list", "--json"]).json();
    assert_eq!(list["sessions"].as_array().map(Vec::len), Some(0), "{list}");
}

#[test]
fn copied_lines_before_the_own_lines_belong_to_the_same_session() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let text = [
        prompt_line("a", 1, None, "read the lease"),
        prompt_line("b", 2, Some("a-1"), "write the report"),
        prompt_line("b", 3, Some("b-2"), "send it"),
    ];
    let imported = import(&environment, "claude-code", &text.concat());
    assert_eq!(sessions(&imported), [("b", 2)]);
    assert_eq!(imported["files"][0]["other_session"], "a");
    // The client names a file after its session, so lines of other sessions in it are copies.
    let text = [
        prompt_line("c", 1, None, "read the lease"),
        prompt_line("d", 2, None, "write the report"),
    ];
    let imported = import_file(&environment, "claude-code", "d.jsonl", &text.concat());
    assert_eq!(sessions(&imported), [("d", 1)]);
}

#[test]
fn rollouts_in_one_file_are_separated_and_a_fork_is_one_session() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let begun = |minute: u32, id: &str, origin: Option<&str>| {
        let at = format!("2026-01-05T10:{minute:02}:00Z");
        let payload = json!({"id": id, "timestamp": at, "cwd": "/w", "forked_from_id": origin});
        json!({"timestamp": at, "type": "session_meta", "payload": payload}).to_string() + "\n"
    };
    let line = |minute: u32, text: &str| {
        let payload = json!({"type": "user_message", "message": text});
        let at = format!("2026-01-05T10:{minute:02}:00Z");
        json!({"timestamp": at, "type": "event_msg", "payload": payload}).to_string() + "\n"
    };
    let text = [
        begun(1, "a", None),
        line(2, "read the lease"),
        begun(10, "b", None),
        line(11, "write the report"),
    ];
    let imported = import(&environment, "codex", &text.concat());
    assert_eq!(sessions(&imported), [("a", 1), ("b", 1)]);
    let fork = [
        begun(20, "c", Some("a")),
        begun(20, "a", None),
        line(20, "read the lease"),
        line(30, "another way"),
    ];
    let imported = import_file(&environment, "codex", "fork.jsonl", &fork.concat());
    assert_eq!(sessions(&imported), [("c", 1)]);
}

#[test]
fn recordings_of_gemini_in_one_file_are_separated() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let begun = |id: &str| {
        let head = json!({"sessionId": id, "projectHash": "p", "kind": "main",
            "startTime": "2026-01-05T10:00:00Z", "lastUpdated": "2026-01-05T10:00:00Z"});
        head.to_string() + "\n"
    };
    let line = |id: &str, text: &str| {
        json!({"id": id, "timestamp": "2026-01-05T10:01:00Z", "type": "user", "content": text})
            .to_string()
            + "\n"
    };
    let text = [begun("a"), line("1", "read the lease"), begun("b"), line("2", "write the report")];
    let imported = import(&environment, "gemini", &text.concat());
    assert_eq!(sessions(&imported), [("a", 1), ("b", 1)]);
}
