//! Hooks as an agent calls them: the event on stdin, the answer on stdout, always exit code 0.

mod driver;
mod handing;
mod player;
mod tool;
mod whose;

use crate::environment::Environment;
use std::io::Write;
use std::process::{Command, Stdio};

/// Calls a hook with this input and returns its answer.
#[track_caller]
pub(crate) fn call(environment: &Environment, agent: &str, event: &str, input: &str) -> String {
    call_by(&mut environment.command(["hook", agent, event]), input)
}

#[track_caller]
pub(crate) fn call_by(command: &mut Command, input: &str) -> String {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    // A hook that fails early may not read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of a log, each without what differs from run to run.
pub(crate) fn log(environment: &Environment, path: &str) -> Vec<serde_json::Value> {
    let Ok(text) = std::fs::read_to_string(environment.path(path)) else { return Vec::new() };
    let mut lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut lines {
        let fields = line.as_object_mut().unwrap();
        assert!(fields.remove("micros").is_some_and(|micros| micros.is_u64()));
        fields.remove("git_micros");
        fields.remove("checkpoint");
    }
    lines
}

const LOG: &str = "project/.forge/log/hooks.jsonl";
const USER_LOG: &str = "home/.local/state/forge/hooks.jsonl";

#[test]
fn whatever_is_wrong_the_agent_goes_on_and_the_log_says_it() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    for (agent, event, input, answer) in [
        ("claude", "PreCompact", "nonsense", ""),
        ("claude", "PreCompact", "", ""),
        ("gemini", "PreCompress", "[]", "{}\n"),
        ("unknown", "PreCompact", "{}", ""),
        ("", "", "{}", ""),
        ("claude", "Unheard", "{\"session_id\":\"s\"}", ""),
    ] {
        assert_eq!(call(&environment, agent, event, input), answer, "{agent} {event}");
    }
    let log = log(&environment, LOG);
    let outcomes: Vec<&str> = log.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["failed", "failed", "failed", "ignored"], "{log:?}");
    assert!(log[0]["error"].as_str().unwrap().contains("is not JSON"), "{log:?}");
    assert_eq!(log[3]["session"], "s");
    // Without an agent it is not known whose project it is.
    assert_eq!(self::log(&environment, USER_LOG).len(), 2);
}

#[test]
fn wrong_usage_and_broken_settings_are_no_errors_for_an_agent() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let mut command = environment.command(["hook", "claude", "PreCompact", "--nonsense", "x"]);
    assert_eq!(call_by(&mut command, "{}"), "");
    let mut command = environment.command(["hook", "claude", "Stop"]);
    assert_eq!(call_by(command.env("FORGE_LOCK_TIMEOUT", "soon"), "{}"), "");
    environment.write("project/.forge/FORMAT", "broken");
    assert_eq!(call(&environment, "claude", "PreCompact", "{\"session_id\":\"s\"}"), "");
    let log = log(&environment, LOG);
    assert_eq!(log[0]["outcome"], "failed");
    assert!(log[0]["error"].as_str().unwrap().contains("--nonsense"), "{log:?}");
}

#[test]
fn a_project_without_a_store_is_left_alone() {
    let environment = Environment::new();
    let input = "{\"session_id\":\"s\",\"cwd\":\"/\",\"source\":\"startup\"}";
    assert_eq!(call(&environment, "claude", "SessionStart", input), "");
    assert!(!environment.path("project/.forge").exists());
    let log = log(&environment, USER_LOG);
    assert_eq!((log.len(), &log[0]["outcome"]), (1, &"ignored".into()));
    assert_eq!(log[0]["directory"], "/");
}
