//! Hooks on machines with a remote: what one machine saved is known when the agent continues on
//! another one.

mod begun;

use super::{log, run_hook, trace_of_hook};
use crate::environment::{Environment, Output};
use forge_store::model::{Kind, Timestamp};
use forge_store::store::{Options, Store};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{ErrorKind, PipeReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The agent's own id of its session.
const SESSION: &str = "agent-1";

/// An agent: its name and the names of its events.
#[derive(Clone, Copy)]
struct Agent {
    word: &'static str,
    start: &'static str,
    tool: &'static str,
    before_compaction: &'static str,
    after_compaction: Option<&'static str>,
    stop: &'static str,
    end: &'static str,
}

const CLAUDE: Agent = Agent {
    word: "claude",
    start: "SessionStart",
    tool: "PostToolUse",
    before_compaction: "PreCompact",
    after_compaction: Some("PostCompact"),
    stop: "Stop",
    end: "SessionEnd",
};
const CODEX: Agent = Agent { word: "codex", ..CLAUDE };
const CURSOR: Agent = Agent {
    word: "cursor",
    start: "sessionStart",
    tool: "afterShellExecution",
    before_compaction: "preCompact",
    after_compaction: None,
    stop: "stop",
    end: "sessionEnd",
};

/// The processes that a hook started. They hold the other end of the pipe as long as they run.
struct Background {
    pipe: PipeReader,
}

impl Background {
    fn is_running(&mut self) -> bool {
        fcntl_setfl(&self.pipe, OFlags::NONBLOCK).unwrap();
        let read = self.pipe.read(&mut [0]);
        fcntl_setfl(&self.pipe, OFlags::empty()).unwrap();
        match read {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                true
            }
        }
    }

    /// Waits until all of them have ended.
    fn end(mut self) {
        self.pipe.read_to_end(&mut Vec::new()).unwrap();
    }
}

/// A machine: a home directory with its keyring, and a project with a store.
struct Machine<'a> {
    environment: &'a Environment,
    name: &'static str,
    agent: Agent,
    /// Whether the environment names the remote, and the keyring does not.
    is_container: bool,
}

impl<'a> Machine<'a> {
    fn new(environment: &'a Environment, name: &'static str, agent: Agent) -> Self {
        for folder in ["home", "project"] {
            environment.make_directory(&format!("{name}/{folder}"));
        }
        let machine = Self { environment, name, agent, is_container: false };
        machine.forge(["init"]).success();
        machine
    }

    /// Makes a machine that has created the remote `shared`, and has written its key to the file
    /// `key`.
    fn first(environment: &'a Environment, agent: Agent) -> Self {
        environment.make_directory("shared");
        let machine = Self::new(environment, "first", agent);
        machine.forge(["remote", "create", "../../shared"]).success();
        machine.forge(["remote", "key", "export", "../../key"]).success();
        machine
    }

    fn joined(environment: &'a Environment, agent: Agent) -> Self {
        let machine = Self::new(environment, "second", agent);
        machine.forge(["remote", "add", "../../shared", "--key", "../../key"]).success();
        machine
    }

    fn container(environment: &'a Environment, agent: Agent) -> Self {
        Self { is_container: true, ..Self::new(environment, "second", agent) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.environment.path(&format!("{}/{name}", self.name))
    }

    fn command<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = self.environment.command(args);
        command.env("HOME", self.path("home")).current_dir(self.path("project"));
        if self.is_container {
            command
                .env("FORGE_REMOTE", self.environment.path("shared"))
                .env("FORGE_REMOTE_KEY", self.environment.path("key"));
        }
        command
    }

    fn forge<const N: usize>(&self, args: [&str; N]) -> Output {
        self.environment.finished(&mut self.command(args))
    }

    fn prepared(&self, event: &str, more: Value) -> (Command, String) {
        let mut input = json!({"session_id": SESSION, "conversation_id": SESSION,
            "cwd": self.path("project"), "hook_event_name": event});
        let Value::Object(more) = more else { unreachable!("more fields are an object") };
        input.as_object_mut().unwrap().extend(more);
        (self.command(["hook", self.agent.word, event]), input.to_string())
    }

    /// Calls a hook, and returns its answer and the processes that it started.
    fn call(&self, (mut hook, input): (Command, String)) -> (String, Background) {
        let (pipe, held) = std::io::pipe().unwrap();
        // The hook and all processes that it starts inherit this end of the pipe.
        fcntl_setfd(&held, FdFlags::empty()).unwrap();
        let answer = run_hook(&mut hook, &input);
        drop(held);
        (answer, Background { pipe })
    }

    /// Calls a hook, waits for what it started, and returns its answer.
    fn hook(&self, event: &str, more: Value) -> String {
        let (answer, background) = self.call(self.prepared(event, more));
        background.end();
        answer
    }

    /// Reports a command that the agent ran.
    fn runs(&self, command: &str) {
        self.hook(self.agent.tool, used(command));
    }

    fn starts(&self, source: &str) -> String {
        self.hook(self.agent.start, json!({"source": source}))
    }

    /// Returns the exchanges in the log: the verb and the outcome of each.
    fn exchanges(&self) -> Vec<(String, String)> {
        let log = log(self.environment, &format!("{}/project/.forge/log/hooks.jsonl", self.name));
        let exchanges = log.iter().filter(|line| line["agent"] == "remote");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        exchanges.map(|line| (text(&line["event"]), text(&line["outcome"]))).collect()
    }

    /// Returns the commands of the agent's session in the store of this machine.
    fn commands(&self) -> Vec<String> {
        let store =
            Store::open(&self.path("project/.forge"), Options::default().read_only(true)).unwrap();
        let Some(session) = store.agent_session(SESSION).unwrap() else { return Vec::new() };
        let state = session.state(&session.head().unwrap()).unwrap();
        let facts = state.facts_of(Kind::Command).unwrap();
        let text = |value: Option<&forge_store::model::Value>| {
            value.and_then(|value| value.as_text()).unwrap().to_owned()
        };
        facts.iter().map(|known| text(known.fact.value.field("command"))).collect()
    }

    /// Returns the version of the session on the remote.
    fn version(&self) -> Option<u64> {
        let there = self.forge(["session", "list", "--remote", "--json"]).json();
        there["sessions"].as_array().unwrap().first()?["version"].as_u64()
    }
}

fn used(command: &str) -> Value {
    json!({"tool_name": "Bash", "tool_use_id": command, "tool_input": {"command": command},
        "tool_response": {"stdout": "ok", "stderr": ""}, "command": command, "output": "ok"})
}

fn exchange(verb: &str, outcome: &str) -> (String, String) {
    (verb.to_owned(), outcome.to_owned())
}

#[test]
fn a_hook_on_another_machine_gives_the_agent_the_brief_of_the_first() {
    for (agent, is_container) in [(CLAUDE, false), (CODEX, true), (CURSOR, false)] {
        let environment = Environment::new();
        let first = Machine::first(&environment, agent);
        first.starts("startup");
        first.runs("cargo test");
        let add = ["--session", SESSION, "hypothesis", "add", "the cache is stale"];
        first.forge(add).success();
        first.hook(agent.before_compaction, json!({"trigger": "auto"}));
        if let Some(event) = agent.after_compaction {
            first.hook(event, json!({"trigger": "auto"}));
        }
        first.hook(agent.end, json!({}));
        assert!(first.exchanges().iter().all(|(_, outcome)| outcome != "failed"));
        let second = match is_container {
            true => Machine::container(&environment, agent),
            false => Machine::joined(&environment, agent),
        };
        let brief = second.starts("resume");
        for part in ["the cache is stale", "cargo test"] {
            assert!(brief.contains(part), "{}: {part} in {brief}", agent.word);
        }
        second.runs("cargo run");
        second.hook(agent.stop, json!({}));
        second.hook(agent.end, json!({}));
        first.starts("resume");
        assert_eq!(first.commands(), ["cargo test", "cargo run"], "{}", agent.word);
        assert_eq!(second.exchanges()[0], exchange("pull", "saved"));
    }
}

/// A hook waits for a pull for a limited time. The pull continues in the background, and its result
/// is visible later.
#[test]
fn an_agent_does_not_wait_for_a_pull_that_does_not_end() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    first.runs("cargo test");
    let second = Machine::joined(&environment, CLAUDE);
    let lock = second.path("project/.forge/journal/append.lock");
    let lock = File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    let start = || {
        let (mut hook, input) = second.prepared("SessionStart", json!({"source": "resume"}));
        hook.env("FORGE_LOCK_TIMEOUT", "100000");
        second.call((hook, input))
    };
    let (answer, mut held) = start();
    assert!(held.is_running());
    assert_eq!(answer, "");
    assert_eq!(second.exchanges(), [exchange("pull", "failed")]);
    let doctor = second.forge(["doctor"]).stdout;
    assert!(doctor.contains("it took longer than 2 s"), "{doctor}");
    // The next hook sees that the pull is still running, and does not wait.
    let (_, again) = start();
    assert!(held.is_running());
    assert_eq!(second.exchanges().len(), 1);
    // A sync that a hook requests meanwhile follows the pull.
    second.hook("Stop", json!({}));
    assert!(held.is_running());
    lock.unlock().unwrap();
    again.end();
    held.end();
    assert_eq!(second.exchanges(), [exchange("pull", "failed"), exchange("sync", "saved")]);
    assert_eq!(second.commands(), ["cargo test"]);
    assert!(!second.forge(["doctor"]).stdout.contains("it took longer"));
}

#[test]
fn a_session_is_synced_when_it_stops_and_once_a_minute_while_tools_run() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    let begin = Timestamp::parse_rfc3339("2026-02-01T13:00:00Z").unwrap();
    for (second, event, syncs) in [
        (0, "PostToolUse", 1),
        (10, "PostToolUse", 1),
        (59, "PostToolUse", 1),
        (61, "PostToolUse", 2),
        (62, "Stop", 3),
        (70, "PostToolUse", 3),
        (80, "UserPromptSubmit", 3),
        (90, "PreCompact", 4),
        (91, "SessionEnd", 5),
    ] {
        let (mut hook, input) = first.prepared(event, used(&format!("make {second}")));
        hook.env("FORGE_TEST_NOW", begin.plus_micros(second * 1_000_000).to_string());
        first.call((hook, input)).1.end();
        assert_eq!(first.exchanges().len(), syncs, "{second} {event}");
    }
    assert!(first.exchanges().iter().all(|(verb, ended)| verb == "sync" && ended != "failed"));
}

/// The hook of a tool call that starts no sync reads no file about the remote.
#[test]
fn a_tool_call_after_a_sync_reads_nothing_about_the_remote() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    first.runs("make");
    let (hook, input) = first.prepared("PostToolUse", used("make again"));
    let trace = environment.path("trace");
    let Some(trace) = trace_of_hook(&hook, &input, &["-e", "trace=execve,openat"], &trace) else {
        return;
    };
    let lines = |what: [&str; 2]| {
        trace.lines().filter(|line| what.iter().all(|part| line.contains(part))).count()
    };
    assert_eq!(lines(["execve(", ""]), 1, "{trace}");
    assert_eq!(lines(["/keyring/", "/remotes"]) + lines([".sync", ""]), 0, "{trace}");
    assert_eq!(first.exchanges().len(), 1);
}

#[test]
fn without_a_remote_or_with_the_setting_off_nothing_is_started() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    first.forge(["config", "set", "--user", "sync.hooks", "false"]).success();
    let other = Machine::new(&environment, "other", CLAUDE);
    for machine in [&first, &other] {
        for event in ["SessionStart", "PostToolUse", "PreCompact", "Stop", "SessionEnd"] {
            machine.hook(event, used(event));
        }
        assert_eq!(machine.commands().len(), 1);
        assert_eq!(machine.exchanges(), []);
        let mut files = fs::read_dir(machine.path("project/.forge/log")).unwrap();
        assert!(files.all(|file| file.unwrap().file_name() == "hooks.jsonl"));
        first.forge(["config", "set", "--user", "sync.hooks", "true"]).success();
    }
    assert_eq!(first.version(), None);
    first.hook("Stop", json!({}));
    assert_eq!(first.version(), Some(1));
}

#[test]
fn a_project_may_not_set_how_hooks_sync() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    insta::assert_snapshot!(first.forge(["config", "set", "sync.wait", "true"]), @r"
    [stderr]
    error: a project may not set 'sync.wait', as it makes the end of a session wait
    hint: 'forge config set --user sync.wait VALUE' sets it for you
    [exit 2]
    ");
    environment.write("first/project/.forge/config.toml", "[sync]\nhooks = true\n");
    insta::assert_snapshot!(first.forge(["note", "list"]), @r"
    [stderr]
    error: '$ROOT/first/project/.forge/config.toml' cannot be used
    Caused by: a project may not set 'sync.hooks', as it says what is sent to a remote
    hint: 'forge config set --user sync.hooks VALUE' sets it for you
    hint: correct the file, or move it away
    [exit 2]
    ");
}

/// Makes a machine, and a sandbox that waits for its last sync. The sandbox has a note that is not
/// pushed.
fn with_sandbox(environment: &Environment) -> (Machine<'_>, Machine<'_>) {
    let first = Machine::first(environment, CLAUDE);
    let second = Machine::container(environment, CLAUDE);
    second.forge(["config", "set", "--user", "sync.wait", "true"]).success();
    second.runs("make");
    second.forge(["--session", SESSION, "note", "add", "it fails"]).success();
    (first, second)
}

/// The hook ends only when the session is on the remote.
#[test]
fn a_sandbox_can_wait_for_its_last_sync() {
    let environment = Environment::new();
    let (first, second) = with_sandbox(&environment);
    let (_, background) = second.call(second.prepared("SessionEnd", used("make")));
    assert_eq!(first.version(), Some(2));
    // Its process may end a moment later.
    background.end();
    assert_eq!(second.exchanges().len(), 2);
}

/// Regression: if the end of the turn had just begun a sync, the hook at the end of the session did
/// not wait.
#[test]
fn the_last_sync_waits_for_a_sync_that_is_running() {
    let environment = Environment::new();
    let (first, second) = with_sandbox(&environment);
    let log = fs::read_dir(second.path("project/.forge/log")).unwrap();
    let mut paths = log.map(|entry| entry.unwrap().path());
    let stamp = paths.find(|path| path.extension().is_some_and(|end| end == "sync")).unwrap();
    let requested_at = || fs::metadata(&stamp).unwrap().modified().unwrap();
    let under_way = File::options().write(true).open(&stamp).unwrap();
    under_way.lock().unwrap();
    let before = requested_at();
    let (mut hook, input) = second.prepared("SessionEnd", used("make"));
    let mut hook = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    hook.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    while requested_at() == before {
        std::thread::yield_now();
    }
    drop(under_way);
    assert!(hook.wait_with_output().unwrap().status.success());
    assert_eq!(first.version(), Some(2));
}

#[test]
fn a_secret_is_not_pushed_and_the_reports_say_what_to_do() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    first.runs("make");
    assert_eq!(first.version(), Some(1));
    let text = format!("the token is gh{}_{}", "p", "a1B2c3D4e5F6".repeat(3));
    first.forge(["--session", SESSION, "note", "add", "--no-redact", &text]).success();
    first.hook("Stop", json!({}));
    assert_eq!(first.version(), Some(1));
    assert_eq!(first.exchanges().last(), Some(&exchange("sync", "failed")));
    insta::assert_snapshot!(first.forge(["status"]), @r"
    Store $ROOT/first/project/.forge (1 session)
    1 operation of 1 session not pushed to origin, the first 3 s ago
    2 s ago, a hook could not sync the agent's session agent-1: the session 'agent-1' holds 1 secret (github-token) that the remote does not have yet: nothing was pushed ('forge purge --rules --dry-run' shows where, 'forge purge --rules --yes' removes them; '--redact-allow TEXT' is for what is not a secret, '--allow-secrets' pushes all)
      'forge sync agent-1' tries it again
    Session agent-1 on branch main, at #1
      begun: 2026-02-01 13:00:03 +01:00 (5 s ago)
      last event: 2026-02-01 13:00:05 +01:00 (3 s ago)
      claims: 1 (hypotheses, evidence, beliefs, gaps, notes)
      facts: 1 (commands, checks, edits, messages)
      checkpoints: 0
    'forge brief' shows what is known, 'forge log' what happened.
    [stderr]
    In session 'agent-1' of the agent (claude) that ran this command.
    ");
    let doctor = first.forge(["doctor", "--json"]);
    let findings: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let findings = findings["findings"].as_array().unwrap();
    let about = |one: &&Value| one["about"] == "remote" && one["severity"] == "problem";
    let found: Vec<&Value> = findings.iter().filter(about).collect();
    assert_eq!(found.len(), 1, "{doctor}");
    assert!(found[0]["what"].as_str().unwrap().contains("'forge purge --rules"), "{doctor}");
    first.forge(["purge", "--rules", "--yes"]).success();
    // A person runs the sync, not a hook.
    first.forge(["sync", SESSION]).success();
    assert!(!first.forge(["status"]).stdout.contains("could not"));
    first.hook("Stop", json!({}));
    assert!(!first.forge(["doctor"]).stdout.contains("could not"));
}

#[test]
fn the_sync_of_a_hook_applies_a_purge_from_elsewhere_and_reports_it_once() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    first.runs("login --with station-alpha");
    let second = Machine::joined(&environment, CLAUDE);
    second.starts("resume");
    assert_eq!(second.commands(), ["login --with station-alpha"]);
    environment.write("secret", "station-alpha");
    first.forge(["purge", "../../secret", "--yes"]).success();
    // A hook sends the purge notice to the remote, and rewrites the session there.
    first.hook("Stop", json!({}));
    let status = first.forge(["status"]).stdout;
    assert!(!status.contains("not sent to"), "{status}");
    second.hook("Stop", json!({}));
    assert_eq!(second.commands(), ["login --with purgedxxxxxxx"]);
    assert_eq!(second.exchanges().last(), Some(&exchange("sync", "saved")));
    let prompt = || second.hook("UserPromptSubmit", json!({"prompt": "go on"}));
    let answer = prompt();
    assert!(answer.contains("as a purge elsewhere did: this cannot be undone"), "{answer}");
    assert!(answer.contains("Tell the user."), "{answer}");
    assert!(!prompt().contains("purge"));
    assert!(!first.hook("UserPromptSubmit", json!({"prompt": "go on"})).contains("purge"));
}

/// The sync of a hook put what the agent had changed on another branch and checked that out, and
/// nothing said so. Later, nothing said so if the push of that sync was refused.
#[test]
fn the_sync_of_a_hook_reports_a_branch_that_it_could_not_join() {
    for is_refused in [false, true] {
        let environment = Environment::new();
        let first = Machine::first(&environment, CLAUDE);
        let note = |machine: &Machine<'_>, args: &[&str]| {
            let mut command = machine.command(["--session", SESSION, "note"]);
            let done = environment.finished(command.args(args));
            assert_eq!(done.code, 0, "{done}");
        };
        first.runs("make");
        note(&first, &["add", "one"]);
        first.hook("Stop", json!({}));
        let second = Machine::joined(&environment, CLAUDE);
        second.starts("resume");
        note(&first, &["update", "N1", "-m", "eins"]);
        first.hook("Stop", json!({}));
        note(&second, &["update", "N1", "-m", "uno"]);
        if is_refused {
            let text = format!("the token is ghp_{}", "a1B2c3D4e5F6".repeat(3));
            note(&second, &["add", "--no-redact", &text]);
        }
        second.hook("Stop", json!({}));
        let prompt =
            |machine: &Machine<'_>| machine.hook("UserPromptSubmit", json!({"prompt": "go on"}));
        let answer = prompt(&second);
        for text in [
            "both sides changed the note N1: your changes are on the branch main.",
            "(next: 'forge branch switch main && forge branch merge main.",
            "Tell the user.",
        ] {
            assert!(answer.contains(text), "{answer}");
        }
        assert!(!prompt(&second).contains("both sides"));
        assert!(!prompt(&first).contains("both sides"));
    }
}

#[test]
fn a_remote_that_cannot_be_used_is_reported_until_it_can() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    fs::rename(environment.path("shared"), environment.path("moved")).unwrap();
    assert_eq!(first.starts("startup"), "");
    first.runs("make");
    let failed = [exchange("pull", "failed"), exchange("sync", "failed")];
    assert_eq!(first.exchanges(), failed);
    let status = first.forge(["status"]).stdout;
    assert!(status.contains("a hook could not sync the agent's session agent-1"), "{status}");
    fs::rename(environment.path("moved"), environment.path("shared")).unwrap();
    first.hook("Stop", json!({}));
    let status = first.forge(["status"]).stdout;
    assert!(!status.contains("could not"), "{status}");
    assert_eq!(first.version(), Some(1));
}

/// Regression: `forge status` said nothing about failed exchanges if their log could not be read.
#[test]
fn status_warns_if_the_log_of_the_hooks_cannot_be_read() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    fs::create_dir_all(first.path("project/.forge/log/hooks.jsonl")).unwrap();
    let status = first.forge(["status"]);
    assert_eq!(status.code, 0, "{status}");
    assert!(status.stderr.contains("cannot read the log of the hooks"), "{status}");
}

#[test]
fn syncs_of_a_session_at_the_same_time_are_one() {
    let environment = Environment::new();
    let first = Machine::first(&environment, CLAUDE);
    first.forge(["config", "set", "--user", "sync.hooks", "false"]).success();
    first.runs("make");
    let started: Vec<_> = (0..4)
        .map(|_| {
            let mut sync = first.command(["hook", "remote", "sync"]);
            sync.env("FORGE_SESSION", SESSION).stdout(Stdio::piped()).stderr(Stdio::piped());
            sync.spawn().unwrap()
        })
        .collect();
    for one in started {
        let output = one.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
    }
    let exchanges = first.exchanges();
    let count = |outcome| exchanges.iter().filter(|one| **one == exchange("sync", outcome)).count();
    assert_eq!((count("saved"), count("failed")), (1, 0), "{exchanges:?}");
    assert_eq!(first.version(), Some(1));
}
