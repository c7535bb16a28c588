//! Hooks as an agent calls them: the event on stdin, the answer on stdout, always exit code 0.

mod cost;
mod driver;
mod exchange;
mod handing;
mod locked;
mod other;
mod player;
pub(crate) use player::data;
mod tool;
mod whose;

use crate::environment::Environment;
use forge_testkit::skip::skipped;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Calls a hook with this input and returns its answer.
#[track_caller]
pub(crate) fn call(environment: &Environment, agent: &str, event: &str, input: &str) -> String {
    run_hook(&mut environment.command(["hook", agent, event]), input)
}

#[track_caller]
pub(crate) fn run_hook(command: &mut Command, input: &str) -> String {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    // A hook that fails early may not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns a command that runs a hook under strace with these arguments.
pub(crate) fn traced<I: IntoIterator<Item: AsRef<OsStr>>>(hook: &Command, args: I) -> Command {
    let mut command = Command::new("strace");
    command
        .args(args)
        .arg(hook.get_program())
        .args(hook.get_args())
        .current_dir(hook.get_current_dir().unwrap())
        .env_clear()
        .envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a hook under strace and returns the trace; reports a skip and returns `None` if that is not
/// possible.
pub(crate) fn trace_of_hook(
    hook: &Command,
    input: &str,
    args: &[&str],
    file: &Path,
) -> Option<String> {
    let before = ["-f", "-o"].map(OsStr::new).into_iter().chain([file.as_os_str()]);
    let command = traced(hook, before.chain(args.iter().map(OsStr::new))).spawn();
    let Ok(mut child) = command else {
        skipped("what a hook does", "no strace, so it was not looked at");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    if !child.wait_with_output().unwrap().status.success() {
        skipped("what a hook does", "strace may not trace here");
        return None;
    }
    Some(std::fs::read_to_string(file).unwrap())
}

/// Returns the lines of a log, without the fields that differ between runs. Each line must have
/// `micros`.
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
fn a_failed_hook_is_logged_and_does_not_stop_the_agent() {
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
    // If the agent is not known, the project is not either, so the log of the user is used.
    assert_eq!(self::log(&environment, USER_LOG).len(), 2);
}

#[test]
fn wrong_usage_and_broken_settings_are_no_errors_for_an_agent() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let mut command = environment.command(["hook", "claude", "PreCompact", "--nonsense", "x"]);
    assert_eq!(run_hook(&mut command, "{}"), "");
    let mut command = environment.command(["hook", "claude", "Stop"]);
    assert_eq!(run_hook(command.env("FORGE_LOCK_TIMEOUT", "soon"), "{}"), "");
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

/// Regression: the log went into a relative directory below the agent's current one.
#[test]
fn a_relative_directory_of_the_state_is_ignored() {
    let environment = Environment::new().with("XDG_STATE_HOME", "state");
    assert_eq!(call(&environment, "claude", "Stop", "{\"session_id\":\"s\"}"), "");
    assert!(!environment.path("project/state").exists());
    assert_eq!(log(&environment, USER_LOG).len(), 1);
}

/// An agent calls its hooks in one project while it works in another. The settings of the store
/// that is written to apply.
#[test]
fn the_settings_of_the_store_that_is_written_to_apply() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.make_directory("other");
    let there = |args: &[&str]| {
        let mut command = environment.command(args);
        environment.finished(command.current_dir(environment.path("other")))
    };
    there(&["init"]).success();
    there(&["config", "set", "auto_checkpoint.enabled", "false"]).success();
    let input = |session: &str, cwd: &str| {
        serde_json::json!({
            "session_id": session, "cwd": environment.path(cwd), "tool_name": "Bash",
            "tool_use_id": "c1", "tool_input": {"command": "cargo test"},
            "tool_response": {"stdout": "test result: ok. 3 passed", "stderr": ""},
        })
        .to_string()
    };
    let checkpoints = |session: &str, directory: &str| {
        let mut command =
            environment.command(["--session", session, "checkpoint", "list", "--json"]);
        let listed = environment.finished(command.current_dir(environment.path(directory))).json();
        listed["checkpoints"].as_array().unwrap().len()
    };
    // A hook is called in this project about the other one, and the other way round.
    call(&environment, "claude", "PostToolUse", &input("s1", "other"));
    assert_eq!(checkpoints("s1", "other"), 0);
    let mut command = environment.command(["hook", "claude", "PostToolUse"]);
    run_hook(command.current_dir(environment.path("other")), &input("s2", "project"));
    assert_eq!(checkpoints("s2", "project"), 1);
    // The same holds for a store that is named explicitly.
    let mut command = environment.command(["hook", "claude", "PostToolUse"]);
    command.env("FORGE_STORE", environment.path("other/.forge"));
    run_hook(&mut command, &input("s3", "project"));
    assert_eq!(checkpoints("s3", "other"), 0);
    // Invalid settings are reported in the log of their store.
    environment.write("other/.forge/config.toml", "nonsense = 1\n");
    assert_eq!(call(&environment, "claude", "Stop", &input("s4", "other")), "");
    let last = log(&environment, "other/.forge/log/hooks.jsonl").pop().unwrap();
    assert_eq!((&last["outcome"], &last["event"]), (&"failed".into(), &"Stop".into()));
}
