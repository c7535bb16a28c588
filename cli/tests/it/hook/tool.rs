//! Hooks of tool calls.

use super::player::{Player, imported, reference};
use super::{call, log};
use crate::transcript::{call as called, line, result};
use forge_store::model::{AutoTrigger, CheckpointTrigger, FactOrigin, Kind, Timestamp};
use serde_json::json;
use std::process::Command;

fn at(second: i64) -> Timestamp {
    let begin = Timestamp::parse_rfc3339("2026-01-28T10:00:00Z").unwrap();
    begin.plus_micros(second * 1_000_000)
}

fn bash(id: &str, command: &str, stdout: &str) -> serde_json::Value {
    json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": command},
        "tool_response": {"stdout": stdout, "stderr": ""}})
}

#[test]
fn a_tool_call_is_visible_at_once_and_its_transcript_replaces_it() {
    let mut player = Player::new("cc-1");
    let test = bash("c1", "cargo test", "test result: ok. 3 passed");
    player.hook("PostToolUse", at(9), test.clone());
    player.hook("PostToolUse", at(9), test);
    let failure = json!({"tool_name": "Bash", "tool_use_id": "c2", "tool_input": {"command": "make"},
        "error": "Exit code 2\nno rule"});
    player.hook("PostToolUseFailure", at(20), failure);
    let facts = |player: &Player, kind| {
        let session = player.session();
        let state = session.state(&session.head().unwrap()).unwrap();
        let facts = state.facts_of(kind).unwrap().into_iter();
        facts.map(|known| (known.fact.id, known.fact.origin)).collect::<Vec<_>>()
    };
    let by = |origin| vec![("c1".to_owned(), origin), ("c2".to_owned(), origin)];
    assert_eq!(facts(&player, Kind::Command), by(FactOrigin::Hook));
    assert_eq!(facts(&player, Kind::Verification), [("c1".to_owned(), FactOrigin::Hook)]);
    let text = [
        line(0, "user", "\"message\":{\"role\":\"user\",\"content\":\"go\"}"),
        called(2, "c1", "Bash", "{\"command\":\"cargo test\"}"),
        result(9, "c1", "ok", "{\"stdout\":\"test result: ok. 3 passed\",\"stderr\":\"\"}"),
        called(12, "c2", "Bash", "{\"command\":\"make\"}"),
        result(20, "c2", "no rule", "{\"stdout\":\"no rule\",\"stderr\":\"\"}"),
    ]
    .concat();
    player.append(&text);
    player.hook("Stop", at(30), json!({}));
    assert_eq!(facts(&player, Kind::Command), by(FactOrigin::Imported));
    assert_eq!(imported(&player.session()), reference(&text));
}

#[test]
fn checkpoints_of_tool_calls_are_throttled() {
    let mut player = Player::new("cc-1");
    for second in 0..20 {
        let id = format!("c{second}");
        player.hook("PostToolUse", at(second * 10), bash(&id, "cargo test", "ok"));
    }
    let checkpoints = player.session().checkpoints(&Default::default()).unwrap();
    let times: Vec<i64> =
        checkpoints.iter().map(|one| one.time.micros_since(at(0)) / 1_000_000).collect();
    assert_eq!(times, [180, 120, 60, 0]);
    assert_eq!(checkpoints[0].message, "cargo test passed");
}

#[test]
fn a_tool_that_changes_nothing_writes_nothing() {
    let mut player = Player::new("cc-1");
    player.hook(
        "PostToolUse",
        at(0),
        json!({"tool_name": "Read", "tool_input": {"file_path": "/a"}}),
    );
    assert!(player.store().sessions().unwrap().is_empty());
    let log = log(&player.environment, "project/.forge/log/hooks.jsonl");
    assert_eq!(log[0]["outcome"], "unchanged");
}

#[test]
fn the_state_of_the_code_is_saved_when_it_changes() {
    let mut player = Player::new("cc-1");
    let project = player.environment.path("project");
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e"])
            .args(args)
            .current_dir(&project)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "-q", "-b", "main"]);
    player.environment.write("project/a.txt", "one\n");
    git(&["add", "a.txt"]);
    git(&["commit", "-q", "-m", "first"]);
    player.environment.write("project/a.txt", "two\n");
    player.environment.write("project/new.txt", "new\n");
    let status = git(&["status", "--porcelain"]);
    player.append(&line(0, "user", "\"message\":{\"role\":\"user\",\"content\":\"go\"}"));
    player.hook("Stop", at(10), json!({}));
    player.hook("Stop", at(100), json!({}));
    let states = |player: &Player| {
        let session = player.session();
        session.recent_facts(&session.head().unwrap(), Kind::Code, 10).unwrap()
    };
    assert_eq!(states(&player).len(), 1, "the same state is not saved twice");
    player.environment.write("project/a.txt", "three\n");
    player.hook("PreCompact", at(200), json!({"trigger": "auto"}));
    let known = states(&player);
    assert_eq!(known.len(), 2);
    let patches = known[0].fact.value.field("patches").unwrap().as_list().unwrap().to_vec();
    assert_eq!(patches.len(), 2);
    assert!(patches[0].as_text().unwrap().contains("+three"), "{patches:?}");
    let compactions = player.compactions();
    let code = compactions[0].checkpoint.body.field("code").unwrap();
    assert_eq!(code.as_text(), Some(known[0].fact.id.as_str()));
    assert_eq!(git(&["status", "--porcelain"]), status, "nothing of the user's has changed");
    let log = log(&player.environment, "project/.forge/log/hooks.jsonl");
    assert_eq!(log.len(), 3);
    // A switch to another branch makes a checkpoint, even with a clean checkout, but not two of
    // them within a minute.
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "second"]);
    player.hook("Stop", at(300), json!({}));
    let newest = |player: &Player| {
        let points = player.session().checkpoints(&Default::default()).unwrap();
        (points.len(), points[0].trigger, points[0].time)
    };
    let before = newest(&player).0;
    git(&["checkout", "-q", "-b", "other"]);
    player.hook("Stop", at(400), json!({}));
    let switched = (before + 1, CheckpointTrigger::Automatic(AutoTrigger::BranchSwitch), at(400));
    assert_eq!(newest(&player), switched);
    git(&["checkout", "-q", "main"]);
    player.hook("Stop", at(410), json!({}));
    assert_eq!(newest(&player), switched);
}

#[test]
fn other_agents_tool_calls_are_saved_too() {
    let environment = crate::environment::Environment::new();
    environment.forge(["init"]).success();
    let project = environment.path("project");
    let project = project.to_str().unwrap();
    let input = json!({"conversation_id": "k1", "workspace_roots": [project], "command": "make", "output": "x"});
    assert_eq!(call(&environment, "cursor", "afterShellExecution", &input.to_string()), "{}\n");
    let input = json!({"session_id": "g1", "cwd": project, "tool_name": "run_shell_command",
        "tool_input": {"command": "make"}, "tool_response": {"llmContent": "Exit Code: 2"}});
    assert_eq!(call(&environment, "gemini", "AfterTool", &input.to_string()), "{}\n");
    let output = environment.forge(["session", "list", "--json"]).json();
    let agents: Vec<&str> = output["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["agent"].as_str().unwrap())
        .collect();
    assert_eq!(agents, ["gemini", "cursor"]);
}
