//! Secrets on the command line: redacted by default, reported, and kept on request.

use crate::environment::{Environment, recorded_sessions};
use crate::fault::hold_lock_frozen;
use crate::hook;
use forge_testkit::files::files_below;
use forge_testkit::secret::{FakeSecret, fake_secrets, shape_count};
use forge_testkit::skip::skipped;
use serde_json::json;
use std::path::Path;

fn fake(shape: &str) -> FakeSecret {
    fake_secrets(1).into_iter().find(|fake| fake.shape == shape).unwrap()
}

/// Returns whether the text occurs in the whole state at the head.
fn state_contains(place: &Environment, text: &str) -> bool {
    place.finished_raw(["checkpoint", "at", "HEAD", "--full", "--json"]).contains(text)
}

#[test]
fn examples_of_the_redaction_page_work() {
    crate::page::holds("redaction.md");
}

#[test]
fn secrets_are_removed_unless_they_are_allowed() {
    let place = Environment::new();
    place.forge(["init"]).success();
    let token = fake("github");
    let output = place.forge(["note", "add", &token.text]);
    assert_eq!(output.code, 0, "{output}");
    let warning = "warning: 1 secret was removed before storing: github-token\n";
    assert!(output.stdout.ends_with(warning), "{output}");
    assert!(!state_contains(&place, &token.secret));
    assert!(state_contains(&place, "[redacted:github-token]"));

    let refused = place.forge(["note", "add", "x", "--id", &token.secret]);
    assert_eq!(refused.code, 2, "{refused}");
    let refused = place.forge(["branch", "create", &token.secret]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(!refused.stderr.contains(&token.secret));

    place.forge(["config", "set", "redact.allow", "kind:npm-token other"]).success();
    let npm = fake("npm");
    place.forge(["note", "add", &npm.text]).success();
    assert!(state_contains(&place, &npm.secret));
    let gitlab = fake("gitlab");
    place.forge(["note", "add", &gitlab.text, "--redact-allow", &gitlab.secret[..12]]).success();
    assert!(state_contains(&place, &gitlab.secret));
    let slack = fake("slack");
    place.forge(["note", "add", &slack.text, "--no-redact"]).success();
    assert!(state_contains(&place, &slack.secret));
}

/// A name that is not a kind let nothing through, and said nothing.
#[test]
fn a_kind_of_secrets_that_does_not_exist_is_refused() {
    let place = Environment::new();
    place.forge(["init"]).success();
    for arguments in [
        ["note", "add", "x", "--redact-allow", "kind:typo"],
        ["config", "set", "redact.allow", "other kind:typo", "--quiet"],
    ] {
        let refused = place.forge(arguments);
        assert_eq!(refused.code, 2, "{refused}");
        assert!(refused.stderr.contains("there is no kind of secrets 'typo'"), "{refused}");
        assert!(refused.stderr.contains("'forge redact --list' shows the kind"), "{refused}");
    }
}

/// The file was printed with its secrets, and `--list` said that it has none.
#[test]
fn a_file_whose_text_cannot_be_searched_is_refused() {
    let place = Environment::new();
    let token = fake("github");
    let wide = token.text.encode_utf16().flat_map(u16::to_le_bytes);
    for (bytes, what, command) in [
        ([0xff, 0xfe].into_iter().chain(wide).collect::<Vec<u8>>(), "a text in UTF-16", "iconv"),
        (b"\x1f\x8b\x08\x00".to_vec(), "a file compressed with gzip", "gunzip"),
        (b"\x28\xb5\x2f\xfd".to_vec(), "a file compressed with zstd", "unzstd"),
    ] {
        std::fs::write(place.path("project/a.log"), bytes).unwrap();
        let refused = place.forge(["redact", "a.log", "--list"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused}");
        assert!(refused.stderr.contains(&format!("'a.log' seems to be {what}")), "{refused}");
        assert!(refused.stderr.contains(&format!("hint: '{command} ")), "{refused}");
    }
    // Regression: a text like the beginning of such a file was refused, too.
    for text in ["x", "BZhello world", "[{\"parentUuid\":\"x\",\"text\":\"hello\"}]"] {
        place.write("project/a.log", text);
        assert_eq!(place.forge(["redact", "a.log"]).success(), text);
    }
}

fn line(number: u64, text: &str) -> String {
    let line = serde_json::json!({
        "type": "user", "uuid": format!("u{number}"), "sessionId": "s-1",
        "timestamp": format!("2026-01-28T10:00:{number:02}Z"), "cwd": "/w",
        "message": {"role": "user", "content": text},
    });
    format!("{line}\n")
}

#[test]
fn a_transcript_comes_back_byte_for_byte_but_for_its_secrets() {
    let place = Environment::new();
    place.forge(["init"]).success();
    let key = fake("rsa key");
    let token = fake("aws access key");
    let long = format!("{} and {}", token.text, "so on ".repeat(100));
    let first = [line(1, "hello"), line(2, &key.text)].concat();
    place.write("project/t.jsonl", &first);
    let output = place.forge(["import", "claude-code", "t.jsonl"]).success();
    assert!(output.contains("removed 1 secret before storing"), "{output}");
    // The file grows: only what is new is read, and a secret in it is found too.
    let whole = [first.clone(), line(3, "nothing"), line(4, &long), line(5, "the end")].concat();
    place.write("project/t.jsonl", &whole);
    let output = place.forge(["import", "claude-code", "t.jsonl", "--json"]).json();
    assert_eq!(output.pointer("/files/0/redacted"), Some(&1.into()), "{output}");
    assert_eq!(output.pointer("/files/0/lines"), Some(&3.into()), "{output}");

    let back = place.forge(["export", "transcript"]);
    assert_eq!(back.stderr, "warning: 2 secrets were removed before this transcript was stored\n");
    let json = |text: &str| serde_json::to_string(text).unwrap().trim_matches('"').to_owned();
    let dashes = "-".repeat(5);
    let begin = json(&key.text).find(&dashes).unwrap();
    let end = json(&key.text).rfind(&dashes).unwrap() + dashes.len();
    let expected = whole
        .replace(&json(&key.text)[begin..end], "[redacted:private-key]")
        .replace(&token.secret, "[redacted:aws-access-key]");
    assert_eq!(back.stdout, expected);

    // The long text of a fact is read from the stored source.
    let text = place.forge(["prompt", "show", "u4"]).success();
    assert!(text.contains("[redacted:aws-access-key] and went on and so on"), "{text}");
    // Nothing new is imported, even if the file was shorter for a while.
    for again in [&whole, &first, &whole] {
        place.write("project/t.jsonl", again);
        let output = place.forge(["import", "claude-code", "t.jsonl", "--json"]).json();
        assert_eq!(output.pointer("/files/0/unchanged"), Some(&true.into()), "{output}");
    }
}

#[test]
fn a_text_is_printed_without_its_secrets() {
    let place = Environment::new();
    let token = fake("stripe");
    place.write("project/log.txt", &format!("first\nsecond {}\n", token.secret));
    let output = place.forge(["redact", "log.txt"]);
    assert_eq!(output.stdout, "first\nsecond [redacted:stripe-key]\n");
    assert_eq!(output.stderr, "warning: removed 1 secret\n");
    let listed = place.forge(["redact", "--list", "log.txt", "--json"]).json();
    assert_eq!(listed.pointer("/found/0/line"), Some(&2.into()), "{listed}");
    assert_eq!(listed.pointer("/found/0/kind"), Some(&"stripe-key".into()));
}

/// The recorded sessions contain no secrets.
#[test]
fn recorded_transcripts_come_back_unchanged() {
    for name in ["small", "review-e2e", "long"] {
        let file = recorded_sessions().join(format!("claude-code/{name}.jsonl"));
        let Ok(bytes) = std::fs::read(&file) else {
            skipped("recorded sessions", format_args!("no {}; set FORGE_DATA", file.display()));
            return;
        };
        let place = Environment::new().with("FORGE_TEST_NOW", "2026-06-01T00:00:00Z");
        place.forge(["init"]).success();
        place.forge(["import", "claude-code", file.to_str().unwrap()]).success();
        place.forge(["export", "transcript", "-o", "back.jsonl"]).success();
        assert!(std::fs::read(place.path("project/back.jsonl")).unwrap() == bytes, "{name}");
    }
}

/// Returns the contents of all files below a folder, joined.
fn contents_of(folder: &Path) -> Vec<u8> {
    files_below(folder).iter().flat_map(|file| std::fs::read(file).unwrap()).collect()
}

/// Records events of hooks, and writes that are spooled next to a frozen process, each with another
/// secret. Returns the secrets with their ways in, and the content of all files: while the writes
/// are spooled, after they were appended, and after maintenance.
fn record_secrets(settings: &str, only: &[&str]) -> (Vec<(&'static str, FakeSecret)>, Vec<u8>) {
    const WAYS: [&str; 8] = [
        "prompt", "call", "result", "instructions", "note beside", "checkpoint beside",
        "call beside", "result beside",
    ];
    let place = Environment::new();
    place.forge(["init"]).success();
    place.write("project/.forge/config.toml", settings);
    let mut planted = Vec::new();
    let mut fakes = fake_secrets(WAYS.len() as u64);
    fakes.retain(|fake| only.is_empty() || only.contains(&fake.shape));
    // One session per format: the first prompt names it.
    let tell = |number: usize, event: &str, more: serde_json::Value| {
        let mut input = json!({
            "session_id": format!("c0de-{number}"),
            "cwd": place.path("project"),
            "hook_event_name": event,
            "transcript_path": null,
        });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        hook::call(&place, "codex", event, &input.to_string());
    };
    let call = |number: usize, id: &str, command: &FakeSecret, response: &FakeSecret| {
        let more = json!({
            "tool_name": "Bash", "tool_use_id": id,
            "tool_input": {"command": command.text}, "tool_response": response.text,
        });
        tell(number, "PostToolUse", more);
    };
    for (number, ways) in fakes.chunks(WAYS.len()).enumerate() {
        tell(number, "UserPromptSubmit", json!({"prompt": ways[0].text}));
        call(number, "before", &ways[1], &ways[2]);
        let compacted = json!({"trigger": "manual", "custom_instructions": ways[3].text});
        tell(number, "PreCompact", compacted);
    }
    let mut frozen = hold_lock_frozen(&place, "journal/append.lock");
    for (number, ways) in fakes.chunks(WAYS.len()).enumerate() {
        // After `--`, because the text may begin with any character.
        assert_eq!(place.forge(["note", "add", "--", &ways[4].text]).code, 0);
        assert_eq!(place.forge(["checkpoint", "create", "--", &ways[5].text]).code, 0);
        call(number, "beside", &ways[6], &ways[7]);
        planted.extend(WAYS.into_iter().zip(ways.iter().cloned()));
    }
    let look = || ["project/.forge", "home"].map(|name| contents_of(&place.path(name))).concat();
    let spool = contents_of(&place.path("project/.forge/spool"));
    assert!(spool.len() > fakes.len() / 4 * 100, "{} bytes wait", spool.len());
    let waiting = look();
    frozen.kill().unwrap();
    frozen.wait().unwrap();
    assert_eq!(place.forge(["note", "add", "the lock is free"]).code, 0);
    assert!(
        contents_of(&place.path("project/.forge/spool")).is_empty(),
        "all of it was brought in"
    );
    let brought = look();
    place.forge(["maintain"]).success();
    let mut all = [waiting, brought, look()].concat();
    // Much of the files is compressed: forge's output is searched too.
    let listed = place.finished_raw(["session", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    for session in listed["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        all.extend(place.finished_raw(["export", "events", id]).into_bytes());
    }
    (planted, all)
}

fn found<'a>(planted: &'a [(&str, FakeSecret)], all: &[u8]) -> Vec<(&'a str, &'a str)> {
    let quoted = |text: &str| json!(text).to_string().trim_matches('"').to_owned();
    let all = String::from_utf8_lossy(all);
    let is_there = |text: &str| all.contains(text);
    let left = planted
        .iter()
        .filter(|(_, fake)| is_there(&fake.secret) || is_there(&quoted(&fake.secret)));
    left.map(|(way, fake)| (*way, fake.shape)).collect()
}

#[test]
fn no_secret_of_a_hook_or_a_spooled_write_reaches_the_files() {
    let (planted, all) = record_secrets("lock_timeout = 0.01\n", &[]);
    assert_eq!(planted.len(), 8 * shape_count());
    assert_eq!(found(&planted, &all), []);
    // Without redaction, the same search finds the secrets of every way in except the instructions,
    // which are not stored.
    let (planted, all) = record_secrets(
        "lock_timeout = 0.01\n[redact]\nenabled = false\n",
        &["github", "aws access key"],
    );
    let wanted = planted.iter().map(|(way, fake)| (*way, fake.shape));
    let wanted: Vec<_> = wanted.filter(|(way, _)| *way != "instructions").collect();
    assert_eq!(found(&planted, &all), wanted);
}

/// Covers all names that come from outside: of events, sessions, files, settings, messages,
/// branches, commits and folders.
#[test]
fn no_secret_in_a_name_reaches_the_files() {
    let place = Environment::new();
    place.forge(["init", "--name", "s"]).success();
    let token = fake("github").secret;
    let cwd = place.path("project");
    let event = |name: &str| json!({"session_id": token, "cwd": cwd, "hook_event_name": name});
    for (agent, name) in [("claude", token.as_str()), (&token, "Stop"), ("claude", "SessionStart")]
    {
        hook::call(&place, agent, name, &event(name).to_string());
        hook::call(&place, agent, name, "{");
    }
    let output = line(1, "hello").replace("s-1", &token).replace("/w", &format!("/w/{token}"));
    place.write("project/t.jsonl", &output);
    place.write(&format!("project/{token}.jsonl"), &output.replace("u1", "u2"));
    place.write(&format!("project/agent-{token}.jsonl"), &line(3, "hello"));
    let events = r#"{"at":"2026-01-01T00:00:00Z","put":{"kind":"note","id":"N1","value":{"description":"x"}}}"#;
    place.write(&format!("project/{token}.events"), &format!("{events}\n"));
    let trajectory = r#"{"trajectory":[{"action":"ls","observation":"a","response":"r","state":"{}","thought":"t"}],"history":[{"role":"user","content":"hi"}],"info":{}}"#;
    place.write(&format!("project/{token}.traj"), trajectory);
    let (named, agents) = (format!("{token}.jsonl"), format!("agent-{token}.jsonl"));
    let (stream, run) = (format!("{token}.events"), format!("{token}.traj"));
    place.forge(["import", "claude-code", "t.jsonl"]).success();
    // The same transcript again is the same source.
    let again = place.finished_raw(["import", "claude-code", "t.jsonl"]);
    assert!(again.contains("nothing new"), "{again}");
    place.forge(["import", "claude-code", &named]).success();
    place.forge(["import", "claude-code", &agents]).success();
    place.forge(["import", "events", &stream]).success();
    place.forge(["import", "swe-agent", &run]).success();
    for key in ["pager", "redact.allow"] {
        let refused = place.forge(["config", "set", key, &token]);
        assert_eq!(refused.code, 2, "{refused}");
    }
    let _ = place.forge(["session", "new", &format!("a {token}")]);
    place.forge(["session", "new", "other"]).success();
    let message = ["program", "message", "--program", "p", &token, "--from", "s", "--to", "other"];
    assert_eq!(place.forge(message).code, 2);
    let _ = place.forge(["run", "start", "--run", &token]);
    let _ = place.forge(["command", "record", "--", &token]);
    let _ = place.forge(["checkpoint", "create", &token, "--tags", &token]);
    place.forge(["maintain"]).success();
    let mut all = ["project/.forge", "home"].map(|name| contents_of(&place.path(name))).concat();
    let listed = place.finished_raw(["session", "list", "--json"]);
    let sessions: serde_json::Value = serde_json::from_str(&listed).unwrap();
    all.extend(listed.into_bytes());
    for session in sessions["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        all.extend(place.finished_raw(["export", "events", id]).into_bytes());
    }
    let all = String::from_utf8_lossy(&all);
    assert!(all.contains("[redacted:github-token]"));
    assert!(!all.contains(&token));
    // The beginning of the secret is not there either, although names of sessions are made of
    // beginnings.
    assert!(!all.contains(&token[..8]));
}
