//! The agent's own task list.

use super::script::{Script, time};
use super::*;
use serde_json::json;

/// Id, seconds and status of every version, in the order of the file.
fn versions(piece: &TranscriptPiece) -> Vec<(String, i64, String)> {
    let facts = of_kind(piece, Kind::Task).into_iter();
    facts
        .map(|fact| {
            let status = text(&fact.value, "status").unwrap_or("?").to_owned();
            (fact.id.clone(), fact.at.micros_since(time(0)) / 1_000_000, status)
        })
        .collect()
}

fn version(id: &str, seconds: i64, status: &str) -> (String, i64, String) {
    (id.to_owned(), seconds, status.to_owned())
}

#[test]
fn a_task_has_a_version_for_each_change() {
    let update = |status: &str| json!({ "taskId": "1", "status": status });
    let piece = Script::new()
        .call("a", "TaskCreate", json!({ "subject": "fix it", "description": "all of it" }))
        .result("a", "Task #1 created", json!({ "task": { "id": "1", "subject": "fix it" } }))
        .call("b", "TaskUpdate", update("in_progress"))
        .result("b", "", json!({ "success": true, "taskId": "1" }))
        .call("c", "TaskUpdate", update("in_progress"))
        .result("c", "", json!({ "success": true, "taskId": "1", "updatedFields": [] }))
        .call("d", "TaskUpdate", update("completed"))
        .error("d", "no", json!("Error: no"))
        .call("e", "TaskUpdate", json!({ "taskId": "1", "status": "completed", "owner": "me" }))
        .result("e", "", json!({ "success": true, "taskId": "1" }))
        .read();
    let expected =
        [version("1", 2, "pending"), version("1", 4, "in_progress"), version("1", 10, "completed")];
    assert_eq!(versions(&piece), expected);
    let refused = &only_of_kind(&piece, Kind::Tool).value;
    assert_eq!((text(refused, "tool"), text(refused, "reason")), (Some("TaskUpdate"), Some("no")));
    let last = &of_kind(&piece, Kind::Task)[2].value;
    assert_eq!((text(last, "subject"), text(last, "owner")), (Some("fix it"), Some("me")));
    assert_eq!(text(last, "description"), Some("all of it"));
}

#[test]
fn the_id_of_a_new_task_is_read_from_the_text_of_the_result() {
    let piece = Script::new()
        .call("a", "TaskCreate", json!({ "subject": "x" }))
        .result("a", "Task #12 created successfully: x", json!(null))
        .read();
    assert_eq!(versions(&piece), [version("12", 2, "pending")]);
}

#[test]
fn a_task_that_is_not_found_is_not_changed() {
    let hook = "TaskCompleted hook feedback:\n- [check.sh]: the tests fail";
    for answer in ["Task not found", "Task #1 not found", hook] {
        let piece = Script::new()
            .call("a", "TaskCreate", json!({ "subject": "x" }))
            .result("a", "Task #1 created successfully: x", json!(null))
            .call("b", "TaskUpdate", json!({ "taskId": "1", "status": "completed" }))
            .result("b", answer, json!(null))
            .read();
        assert_eq!(versions(&piece), [version("1", 2, "pending")]);
    }
}

#[test]
fn the_id_of_a_todo_is_the_hash_of_its_text() {
    let todo =
        |text: &str, status: &str| json!({ "content": text, "status": status, "activeForm": "…" });
    let write = |script: Script, todos: serde_json::Value| {
        script.call("t", "TodoWrite", json!({ "todos": todos })).result("t", "", json!({}))
    };
    let script = write(Script::new(), json!([todo("a", "in_progress"), todo("b", "pending")]));
    let script = write(script, json!([todo("b", "pending"), todo("a", "completed")]));
    let piece = write(script, json!([todo("c", "pending")])).read();
    let id = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let mut found = versions(&piece);
    found.sort_by_key(|(id, seconds, _)| (*seconds, id.clone()));
    let mut expected = vec![
        version(&id("a"), 2, "in_progress"),
        version(&id("b"), 2, "pending"),
        version(&id("a"), 4, "completed"),
        version(&id("b"), 6, "dropped"),
        version(&id("c"), 6, "pending"),
    ];
    expected.sort_by_key(|(id, seconds, _)| (*seconds, id.clone()));
    assert_eq!(found, expected);
}
