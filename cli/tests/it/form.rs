//! `forge import`: the format of a file is detected by its content, and a wrong file causes an
//! error.

use crate::environment::{Environment, Output};
use serde_json::{Value as Json, json};

const CODEX: &str = concat!(
    r#"{"timestamp":"2026-01-01T10:00:00Z","type":"session_meta","payload":{"id":"c0de-1","cwd":"/w"}}"#,
    "\n",
    r#"{"timestamp":"2026-01-01T10:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"fix it"}}"#,
    "\n"
);
const CLAUDE: &str = concat!(
    r#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":"why?"}}"#,
    "\n"
);

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment
}

fn gemini() -> Json {
    json!({"sessionId": "g1", "projectHash": "h", "startTime": "2026-01-01T10:00:00.000Z",
        "messages": [{"id": "u1", "timestamp": "2026-01-01T10:00:01.000Z", "type": "user", "content": [{"text": "<b>?"}]}]})
}

fn refused(output: &Output, message: &str, hint: &str) {
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains(message) && output.stderr.contains(hint), "{output}");
}

fn count(environment: &Environment, kind: &str) -> usize {
    let list = environment.forge([kind, "list", "--json"]).json();
    list[format!("{kind}s")].as_array().map_or(0, Vec::len)
}

#[test]
fn a_file_of_another_agent_is_refused_with_its_name() {
    let environment = project();
    environment.write("project/a.jsonl", CODEX);
    environment.write("project/b.jsonl", CLAUDE);
    environment.write("project/c.json", &serde_json::to_string_pretty(&gemini()).unwrap());
    environment
        .write("project/d.traj", r#"{"trajectory":[{"action":"ls","observation":"a"}],"info":{}}"#);
    environment.write("project/e.json", r#"{"messages":[{"role":"user","content":"x"}]}"#);
    environment.write("project/f.jsonl", "no record\nat all\n");
    environment.write("project/h.jsonl", CODEX.split_inclusive('\n').nth(1).unwrap());
    environment.write("project/g.json", "{\"name\":\"x\"}");
    let line: Json = serde_json::from_str(CLAUDE.lines().next().unwrap()).unwrap();
    environment.write("project/i.jsonl", &serde_json::to_string_pretty(&line).unwrap());
    for (agent, file, message, hint) in [
        (
            "claude-code",
            "a.jsonl",
            "'a.jsonl' seems to be a rollout of Codex",
            "'forge import codex a.jsonl'",
        ),
        (
            "gemini",
            "b.jsonl",
            "seems to be a transcript of Claude Code",
            "'forge import claude-code b.jsonl'",
        ),
        (
            "codex",
            "c.json",
            "seems to be a recording of Gemini CLI",
            "'forge import gemini c.json'",
        ),
        (
            "claude-code",
            "d.traj",
            "seems to be a trajectory of SWE-agent",
            "'forge import swe-agent d.traj'",
        ),
        ("openhands", "a.jsonl", "seems to be a rollout of Codex", "'forge import codex a.jsonl'"),
        ("codex", "e.json", "seems to be a list of messages", "'forge thread check e.json'"),
        ("codex", "f.jsonl", "it seems to be no JSON", "'forge import --help'"),
        ("mini-swe-agent", "f.jsonl", "it seems to be no JSON", "'forge import --help'"),
        ("codex", "h.jsonl", "is a rollout of Codex that names no session", "first line"),
        ("gemini", "g.json", "it seems to be JSON of a form", "'forge import --help'"),
        ("claude-code", "i.jsonl", "with records over several lines", "'jq -c . i.jsonl'"),
    ] {
        refused(&environment.forge(["import", agent, file]), message, hint);
    }
    let sessions = environment.forge(["session", "list", "--json"]).json();
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(0), "{sessions}");
}

#[test]
fn importing_a_file_without_a_whole_line_is_no_error() {
    let environment = project();
    for text in ["", "\n", "\u{feff}", "{\"timestamp\":\"2026"] {
        environment.write("project/a.jsonl", text);
        let report = environment.forge(["import", "codex", "a.jsonl"]).success();
        assert!(report.contains("nothing to import"), "{text}: {report}");
    }
}

#[test]
fn the_format_does_not_depend_on_the_file_name() {
    let environment = project();
    environment.write("project/rollout.json", CODEX);
    environment.write("project/session.jsonl", &serde_json::to_string_pretty(&gemini()).unwrap());
    environment.write("project/notes.txt", CLAUDE);
    for file in ["rollout.json", "session.jsonl", "notes.txt"] {
        environment.forge(["import", file]).success();
    }
    let sessions = environment.forge(["session", "list", "--json"]).json();
    let agents: Vec<_> = sessions["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["agent"].as_str())
        .collect();
    for agent in ["codex", "gemini", "claude-code"] {
        assert!(agents.contains(&agent), "{agents:?}");
    }
}

#[test]
fn a_compressed_rollout_is_the_same_source_as_the_plain_one() {
    let environment = project();
    let packed = zstd::encode_all(CODEX.as_bytes(), 3).unwrap();
    // The format is detected by the content: the name has no ending of a compressed file.
    std::fs::write(environment.path("project/old.jsonl"), &packed).unwrap();
    let took = environment.forge(["import", "codex", "old.jsonl"]).success();
    assert!(took.contains("imported 2 lines"), "{took}");
    environment.write("project/plain.jsonl", CODEX);
    let again = environment.forge(["import", "codex", "plain.jsonl", "--json"]).json();
    assert_eq!(again["files"][0]["unchanged"], true, "{again}");
    let written = environment.forge(["export", "transcript"]);
    assert_eq!(written.success(), CODEX);
    std::fs::write(environment.path("project/cut.jsonl.zst"), &packed[..packed.len() / 2]).unwrap();
    refused(
        &environment.forge(["import", "codex", "cut.jsonl.zst"]),
        "'cut.jsonl.zst' is compressed with zstd, and damaged",
        "'zstd -t cut.jsonl.zst'",
    );
    std::fs::write(environment.path("project/a.gz"), b"\x1f\x8b\x08\0").unwrap();
    refused(
        &environment.forge(["import", "codex", "a.gz"]),
        "seems to be a file compressed with gzip",
        "'gunzip a.gz'",
    );
}

/// Regression: Codex writes the name that `/rename` gives to a session into no rollout.
#[test]
fn a_rollout_has_the_name_that_a_person_gave_to_its_session() {
    let environment = project();
    let names = r#"{"id":"c0de-1","thread_name":"the lexer","updated_at":"2026-01-01T10:00:09Z"}"#;
    environment.write("home/.codex/session_index.jsonl", &format!("{names}\n"));
    environment.write("project/a.jsonl", CODEX);
    environment.forge(["import", "codex", "a.jsonl"]).success();
    let list = environment.forge(["session", "list", "--json"]).json();
    assert_eq!(list["sessions"][0]["name"], "the lexer", "{list}");
}

#[test]
fn the_good_files_of_a_list_are_imported_and_the_others_are_named() {
    let environment = project();
    environment.write("project/good.jsonl", CODEX);
    environment.write("project/other.jsonl", CLAUDE);
    let output = environment.forge(["import", "codex", "gone.jsonl", "other.jsonl", "good.jsonl"]);
    assert_eq!(output.code, 3, "{output}");
    assert!(output.stdout.contains("good.jsonl: fix it"), "{output}");
    for expected in [
        "2 of 3 files were not imported",
        "gone.jsonl",
        "'other.jsonl' seems to be a transcript of Claude",
    ] {
        assert!(output.stderr.contains(expected), "{output}");
    }
    assert_eq!(count(&environment, "prompt"), 1);
}

#[test]
fn a_longer_save_of_an_openhands_run_continues_its_session() {
    let environment = project();
    let event = |id: u32, more: Json| {
        let mut event =
            json!({"id": id, "timestamp": format!("2026-01-01T10:00:0{id}.5"), "source": "agent"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let events = [
        event(
            0,
            json!({"source": "user", "action": "message", "args": {"content": "fix the sum"}}),
        ),
        event(1, json!({"action": "run", "args": {"command": "pytest -q"}})),
        event(
            2,
            json!({"cause": 1, "observation": "run", "content": "1 passed in 0.1s", "extras": {"metadata": {"exit_code": 0}}}),
        ),
    ];
    for (file, length) in [("first.json", 2), ("second.json", 3)] {
        environment.write(&format!("project/{file}"), &json!(events[..length]).to_string());
    }
    environment.forge(["import", "openhands", "first.json"]).success();
    environment.forge(["import", "second.json"]).success();
    let again = environment.forge(["import", "openhands", "second.json", "--json"]).json();
    assert_eq!(
        (&again["schema"], &again["unchanged"]),
        (&"forge.import.openhands/1".into(), &true.into())
    );
    assert_eq!((count(&environment, "prompt"), count(&environment, "command")), (1, 1));
    let commands = environment.forge(["command", "list", "--json"]).json();
    assert_eq!(commands["commands"][0]["exit_code"], 0, "{commands}");
}

#[test]
fn a_run_of_mini_swe_agent_is_imported() {
    let environment = project();
    let document = json!({"info": {"mini_version": "2.4.6", "exit_status": "Submitted", "submission": ""},
        "messages": [
            {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": "", "extra": {"timestamp": 1.0e9, "actions": [{"command": "make test"}]}},
            {"role": "user", "content": "", "extra": {"timestamp": 1.0e9, "raw_output": "bad", "returncode": 2}},
        ], "trajectory_format": "mini-swe-agent-1.1"});
    environment.write("project/run.traj.json", &document.to_string());
    let took = environment.forge(["import", "run.traj.json"]).success();
    assert!(took.contains("1 command,"), "{took}");
    let checks = environment.forge(["verification", "list", "--json"]).json();
    assert_eq!(checks["verifications"][0]["status"], "failed", "{checks}");
}

/// Regression: its session was said to be 20,000 days old, without a reason.
#[test]
fn the_import_of_a_run_without_times_says_how_to_give_it_one() {
    let environment = project();
    let run = r#"{"trajectory":[{"action":"ls","observation":"a","response":"r","state":"{}","thought":"t"}],"history":[],"info":{}}"#;
    environment.write("project/b.traj", run);
    let took = environment.forge(["import", "b.traj"]).success();
    assert!(took.contains("The file has no times"), "{took}");
    environment.forge(["undo"]).success();
    let import = ["import", "swe-agent", "b.traj", "--started-at", "2026-01-01 10:00"];
    let took = environment.forge(import).success();
    assert!(!took.contains("has no times"), "{took}");
}

/// An import does not change the current session, and did not say how to read what it imported.
#[test]
fn an_import_beside_the_current_session_names_the_command_that_shows_it() {
    let environment = project();
    let line =
        r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"note","id":"a","value":{"text":"x"}}}"#;
    for file in ["a.jsonl", "b c.jsonl"] {
        environment.write(&format!("project/{file}"), &format!("{line}\n"));
    }
    let first = environment.forge(["import", "events", "a.jsonl"]).success();
    assert!(!first.contains("Next: "), "{first}");
    let second = environment.forge(["import", "events", "b c.jsonl"]).success();
    assert!(second.ends_with("\nNext: forge brief --session 'b c'\n"), "{second}");
}

/// The name of the session was empty.
#[test]
fn the_import_of_a_stream_without_events_says_so() {
    let environment = project();
    for (text, rest) in
        [("", ""), ("\n\n", ""), ("{\"at\"", "  5 bytes wait for the rest of their line\n")]
    {
        environment.write("project/a.jsonl", text);
        let took = environment.forge(["import", "events", "a.jsonl"]).success();
        assert_eq!(
            took,
            format!("a.jsonl: nothing to import, it has no new event\n{rest}"),
            "{text}"
        );
    }
    // Regression: a stream that was imported up to an unfinished line was said to have no event.
    let line =
        r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"note","id":"a","value":{"text":"x"}}}"#;
    environment.write("project/b.jsonl", &format!("{line}\n{{\"at\""));
    environment.forge(["import", "events", "b.jsonl"]).success();
    let took = environment.forge(["import", "events", "b.jsonl"]).success();
    assert!(took.starts_with("b.jsonl: nothing to import, it has no new event\n"), "{took}");
}

/// Regression: a JSON document was printed for each file.
#[test]
fn the_import_of_several_files_prints_one_document() {
    let environment = project();
    let note = json!({"at": "2026-01-01T10:00:00Z",
        "put": {"kind": "note", "id": "N1", "value": {"description": "x"}}});
    environment.write("project/a.jsonl", &format!("{note}\n"));
    let run = r#"{"trajectory":[{"action":"ls","observation":"a","response":"r","state":"{}","thought":"t"}],"history":[{"role":"user","content":"hi"}],"info":{}}"#;
    environment.write("project/b.traj", run);
    let took = environment.forge(["import", "a.jsonl", "b.traj", "--json"]).json();
    assert_eq!(took["schema"], "forge.import/1");
    let files = || ["a.jsonl", "b.traj"].into_iter();
    for (place, file) in files().enumerate() {
        let found = &took["files"][place];
        assert_eq!((&found["file"], &found["unchanged"]), (&file.into(), &false.into()), "{took}");
    }
    let shown = environment.forge(["import", "a.jsonl", "b.traj"]).success();
    assert_eq!(shown.matches("nothing new").count(), 2, "{shown}");
    assert!(files().all(|file| shown.contains(&format!("{file}: "))), "{shown}");
    // What was imported before an error is reported too.
    let output = environment.forge(["import", "b.traj", "gone.traj", "--json"]);
    assert_eq!(output.code, 3, "{output}");
    let before: Json = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(before["files"].as_array().map(Vec::len), Some(1), "{before}");
}
