//! Plays an agent: its transcript grows on disk, and its hooks are called as the agent calls them.

use super::run_hook;
use crate::environment::{Environment, recorded_sessions};
use forge_cli::compaction::{self, ContextCompaction};
use forge_store::model::{FactOrigin, Kind, Timestamp};
use forge_store::store::{Options, Session, Store};
use forge_testkit::skip::skipped;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An agent with a project and a transcript.
pub(crate) struct Player {
    pub(crate) environment: Environment,
    /// The name of the agent on the command line.
    pub(crate) agent: &'static str,
    pub(crate) session: String,
    pub(crate) transcript: PathBuf,
    /// All texts that hooks have delivered to the agent so far.
    pub(crate) delivered: Vec<String>,
}

impl Player {
    pub(crate) fn new(session: &str) -> Self {
        Self::of("claude", session)
    }

    pub(crate) fn of(agent: &'static str, session: &str) -> Self {
        let environment = Environment::new();
        environment.forge(["init"]).success();
        let transcript = environment.path("home/transcript.jsonl");
        std::fs::write(&transcript, "").unwrap();
        Self { environment, agent, session: session.to_owned(), transcript, delivered: Vec::new() }
    }

    /// Appends to the transcript.
    pub(crate) fn append(&self, text: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.transcript).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Returns the call of a hook at a time, ready to run, with its input.
    pub(crate) fn prepared(&self, event: &str, at: Timestamp, more: Value) -> (Command, String) {
        let mut input = json!({
            "session_id": self.session,
            "transcript_path": self.transcript,
            "cwd": self.environment.path("project"),
            "hook_event_name": event,
        });
        let Value::Object(more) = more else { unreachable!("more fields are an object") };
        input.as_object_mut().unwrap().extend(more);
        let mut command = self.environment.command(["hook", self.agent, event]);
        command.env("FORGE_TEST_NOW", at.to_string());
        (command, input.to_string())
    }

    /// Calls a hook and returns the text for the agent.
    #[track_caller]
    pub(crate) fn hook(&mut self, event: &str, at: Timestamp, more: Value) -> Option<String> {
        let (mut command, input) = self.prepared(event, at, more);
        let answer = run_hook(&mut command, &input);
        self.take_answer(event, &answer)
    }

    #[track_caller]
    pub(crate) fn take_answer(&mut self, event: &str, answer: &str) -> Option<String> {
        if answer.is_empty() || answer == "{}\n" {
            return None;
        }
        // A text for the prompt of the summary does not count as delivered.
        if self.agent == "claude" && event == "PreCompact" {
            return Some(answer.to_owned());
        }
        let answer: Value = serde_json::from_str(answer).unwrap();
        let text = if self.agent == "opencode" {
            answer["context"][0].as_str().unwrap().to_owned()
        } else {
            assert_eq!(answer["hookSpecificOutput"]["hookEventName"], event);
            answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
        };
        assert!(text.encode_utf16().count() <= 10_000, "{}", text.len());
        self.delivered.push(text.clone());
        Some(text)
    }

    /// Calls the same hook several times at the same time.
    #[track_caller]
    pub(crate) fn at_once(&mut self, times: usize, event: &str, at: Timestamp, more: &Value) {
        let started: Vec<Child> = (0..times).map(|_| self.started(event, at, more)).collect();
        for child in started {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            self.take_answer(event, &String::from_utf8(output.stdout).unwrap());
        }
    }

    /// Starts a hook and writes its input.
    pub(crate) fn started(&self, event: &str, at: Timestamp, more: &Value) -> Child {
        let (mut command, input) = self.prepared(event, at, more.clone());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A hook that was killed does not read its input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child
    }

    /// Starts a hook, and kills it after counting to this number.
    #[track_caller]
    pub(crate) fn killed(&mut self, event: &str, at: Timestamp, more: &Value, steps: u64) {
        let mut child = self.started(event, at, more);
        for n in 0..steps {
            std::hint::black_box(n);
        }
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        // The hook may have finished before it was killed.
        let handed = || self.compactions().last().is_some_and(|one| one.handed_at().is_some());
        if output.status.success() || (!output.stdout.is_empty() && handed()) {
            self.take_answer(event, &String::from_utf8(output.stdout).unwrap());
        }
    }

    pub(crate) fn store(&self) -> Store {
        let path = self.environment.path("project/.forge");
        Store::open(&path, Options::default().read_only(true)).unwrap()
    }

    pub(crate) fn session(&self) -> Session {
        self.store().agent_session(&self.session).unwrap().expect("the agent has a session")
    }

    /// Returns the known compactions, earliest first.
    pub(crate) fn compactions(&self) -> Vec<ContextCompaction> {
        let mut all = compaction::newest_compactions(&self.session(), None).unwrap();
        all.reverse();
        all
    }

    /// Returns the JSON output of `forge` in this project.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.environment.command(args).arg("--json").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&text).unwrap()
    }

    /// Runs a command with the clock at this time.
    #[track_caller]
    pub(crate) fn run_at(&self, at: Timestamp, args: &[&str]) {
        let mut command = self.environment.command(args);
        let output = command.env("FORGE_TEST_NOW", at.to_string()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Returns all facts that were imported from transcripts, and all checkpoints that hooks did not
/// make, each in one line.
pub(crate) fn imported(session: &Session) -> Vec<String> {
    let state = session.state(&session.head().unwrap()).unwrap();
    let mut lines = Vec::new();
    for kind in Kind::facts() {
        for known in state.facts_of(kind).unwrap() {
            let fact = known.fact;
            if fact.origin == FactOrigin::Imported {
                lines.push(format!("{kind} {} {} {:?}", fact.id, fact.at, fact.value));
            }
        }
    }
    for checkpoint in session.checkpoints(&Default::default()).unwrap() {
        let made_by_hook = checkpoint.tags.iter().any(|tag| tag == "auto");
        let compaction = checkpoint.tags.iter().any(|tag| tag == "compaction");
        if !made_by_hook {
            let field = |name| checkpoint.body.field(name).cloned();
            let body = if compaction {
                format!("{:?} {:?} {:?}", field("boundary"), field("summary"), field("pre_tokens"))
            } else {
                format!("{:?}", checkpoint.body)
            };
            lines.push(format!(
                "checkpoint {} {} {:?} {:?} {body}",
                checkpoint.time, checkpoint.message, checkpoint.tags, checkpoint.trigger
            ));
        }
    }
    lines.sort();
    lines
}

/// Returns the result of importing the whole file at once, in the form of [`imported`].
pub(crate) fn reference(text: &str) -> Vec<String> {
    reference_of("claude-code", text)
}

pub(crate) fn reference_of(agent: &str, text: &str) -> Vec<String> {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.write("home/whole.jsonl", text);
    let path = environment.path("home/whole.jsonl");
    let path = path.to_str().unwrap();
    let mut command = environment.command(["import", agent, path]);
    // This time is later than all times in the file.
    let output = environment.finished(command.env("FORGE_TEST_NOW", "2026-06-01T00:00:00Z"));
    assert_eq!(output.code, 0, "{output}");
    let path = environment.path("project/.forge");
    let store = Store::open(&path, Options::default().read_only(true)).unwrap();
    imported(&store.current_session().unwrap().unwrap())
}

/// Reads a file of the recorded data; reports a skip and returns `None` if it is not on this
/// machine.
pub(crate) fn data(name: &str) -> Option<String> {
    let path = recorded_sessions().join(name);
    let text = std::fs::read_to_string(&path);
    if text.is_err() {
        skipped("recorded sessions", format_args!("no {}; set FORGE_DATA", path.display()));
    }
    text.ok()
}
