//! Several processes at the same time. They make one session per agent session and per stream, and
//! can read while others prune.

use crate::environment::Environment;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

/// Starts all processes, and then writes their inputs, so that none begins its work before all are
/// started. Returns their outputs.
fn at_once(commands: Vec<(Command, String)>) -> Vec<String> {
    let started: Vec<(Child, String)> = commands
        .into_iter()
        .map(|(mut command, input)| {
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            (command.spawn().unwrap(), input)
        })
        .collect();
    let mut running = Vec::new();
    for (mut child, input) in started {
        // A process that reads no input may have ended.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        running.push(child);
    }
    let ended = running.into_iter().map(|child| child.wait_with_output().unwrap());
    ended
        .map(|output| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{:?}: {stderr}", output.status.code());
            String::from_utf8(output.stdout).unwrap()
        })
        .collect()
}

fn new_project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment
}

const AGENT: &str = "0a1b2c3d-agent";
const PROMPTS: u64 = 20;
/// Each prompt gives a message and a prompt.
const FACTS: u64 = 2 * PROMPTS;

fn transcript(environment: &Environment) -> String {
    let text = (0..PROMPTS).fold(String::new(), |mut text, line| {
        let line = json!({
            "type": "user", "uuid": format!("u{line}"), "sessionId": AGENT, "cwd": "/x",
            "timestamp": format!("2026-01-01T01:00:{line:02}.000Z"),
            "message": {"role": "user", "content": format!("m{line}")},
        });
        writeln!(text, "{line}").unwrap();
        text
    });
    environment.write("project/t.jsonl", &text);
    environment.path("project/t.jsonl").display().to_string()
}

fn hook(environment: &Environment, event: &str, more: &Value) -> (Command, String) {
    let mut input = json!({"session_id": AGENT, "cwd": environment.path("project")});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    (environment.command(["hook", "claude", event]), input.to_string())
}

fn tool(environment: &Environment, call: usize) -> (Command, String) {
    let call = json!({
        "tool_name": "Bash", "tool_use_id": format!("t{call}"),
        "tool_input": {"command": format!("echo {call}")}, "tool_response": {"stdout": "x"},
    });
    hook(environment, "PostToolUse", &call)
}

fn import(environment: &Environment, file: &str) -> (Command, String) {
    (environment.command(["import", "claude-code", file, "--yes"]), String::new())
}

/// Returns the number of facts in each session of the agent.
fn facts(environment: &Environment) -> Vec<u64> {
    let list = environment.forge(["session", "list", "--json"]).json();
    let sessions = list["sessions"].as_array().unwrap().iter();
    let own = sessions.filter(|one| one["agent_session"] == AGENT);
    own.map(|one| one["facts"].as_u64().unwrap()).collect()
}

/// Regression: hooks and imports of one agent session at the same time created two to four
/// sessions, with the facts split or duplicated.
#[test]
fn an_agent_session_is_one_session_for_concurrent_processes() {
    for round in 0..4 {
        let environment = new_project();
        at_once((0..4).map(|call| tool(&environment, call)).collect());
        assert_eq!(facts(&environment).len(), 1, "four calls, round {round}");
        assert_eq!(facts(&environment)[0] % 4, 0, "of each call the same");

        let environment = new_project();
        let prompt = hook(&environment, "UserPromptSubmit", &json!({"prompt": "hi"}));
        at_once(vec![prompt, tool(&environment, 1)]);
        assert_eq!(facts(&environment).len(), 1, "a prompt and a call, round {round}");

        let environment = new_project();
        let file = transcript(&environment);
        at_once(vec![import(&environment, &file), import(&environment, &file)]);
        assert_eq!(facts(&environment), [FACTS], "two imports, round {round}");

        let environment = new_project();
        let file = transcript(&environment);
        let more = json!({"prompt": "hi", "transcript_path": file});
        let prompt = hook(&environment, "UserPromptSubmit", &more);
        at_once(vec![import(&environment, &file), prompt]);
        assert_eq!(facts(&environment), [FACTS], "a hook and an import, round {round}");
    }
}

fn stream(lines: usize) -> String {
    (0..lines).fold(String::new(), |mut text, line| {
        let at = format!("2026-01-01T00:00:{line:02}Z");
        let put = json!({"kind": "note", "id": format!("N{line}"), "value": {"description": "t"}});
        writeln!(text, "{}", json!({"at": at, "put": put})).unwrap();
        text
    })
}

#[test]
fn eight_imports_of_one_stream_make_one_session() {
    let environment = new_project();
    environment.write("project/ev.jsonl", &stream(30));
    let one = || (environment.command(["import", "events", "ev.jsonl", "--json"]), String::new());
    let answers = at_once((0..8).map(|_| one()).collect());
    let read = |text: &String| serde_json::from_str::<Value>(text).unwrap()["lines"].clone();
    let lines: u64 = answers.iter().map(|text| read(text).as_u64().unwrap()).sum();
    assert_eq!(lines, 30, "each line was taken once");
    let list = environment.forge(["session", "list", "--json"]).json();
    let sessions: Vec<_> = list["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["name"], &one["claims"]))
        .collect();
    assert_eq!(sessions, [(&json!("ev"), &json!(30))]);
}

/// Reads every revision while other processes prune. The result is the state, or the error that the
/// revision was folded, but never damage.
#[test]
fn reading_during_a_pruning_gives_the_state_or_reports_a_fold() {
    let environment = new_project();
    environment.forge(["note", "add", "n"]).success();
    for place in 0..6 {
        environment.forge(["note", "add", &format!("n{place}")]).success();
    }
    let read =
        |number: usize| environment.command(["checkpoint", "at", &format!("#{number}"), "--json"]);
    let prune = ["checkpoint", "prune", "--keep-revisions", "0s", "--yes"];
    let mut running = Vec::new();
    for number in (1..=7).chain(1..=7) {
        running.push(read(number).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        if number == 4 {
            running.push(environment.command(prune).stdout(Stdio::null()).spawn().unwrap());
        }
    }
    for child in running {
        let output = child.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{stdout}");
    }
}
