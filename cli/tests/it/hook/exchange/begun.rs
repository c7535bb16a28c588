//! An agent that goes on while its session is still being pulled.

use super::{CLAUDE, Machine, SESSION, used};
use crate::environment::Environment;
use serde_json::json;
use std::fs::{self, File};

#[test]
fn events_during_a_slow_pull_are_saved_in_the_pulled_session() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    first.runs("cargo test");
    let second = Machine::joined(&environment, CLAUDE);
    // The pull waits for another push or pull of this store.
    fs::create_dir(second.path("project/.forge/remotes")).unwrap();
    let lock = File::create(second.path("project/.forge/remotes/lock")).unwrap();
    lock.lock().unwrap();
    let (_, mut pull) = second.call(second.prepared("SessionStart", json!({"source": "resume"})));
    assert!(pull.is_running());
    let (_, sync) = second.call(second.prepared("PostToolUse", used("cargo run")));
    second.forge(["--session", SESSION, "note", "add", "it fails"]).success();
    assert_eq!(second.commands(), ["cargo run"]);
    lock.unlock().unwrap();
    sync.end();
    pull.end();
    assert_eq!(second.commands(), ["cargo test", "cargo run"]);
    let listed = second.forge(["session", "list", "--json"]).json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    assert!(
        second
            .exchanges()
            .iter()
            .any(|(verb, ended)| (verb.as_str(), ended.as_str()) == ("sync", "saved"))
    );
    first.starts("resume");
    assert_eq!(first.commands(), ["cargo test", "cargo run"]);
    let on_remote = first.forge(["session", "list", "--remote", "--json"]).json();
    assert_eq!(on_remote["sessions"].as_array().unwrap().len(), 1, "{on_remote}");
}
