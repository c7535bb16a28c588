//! Times as people write them, and texts with joined characters and emoji.

use crate::environment::Environment;
use crate::story::example_session;
use insta::assert_snapshot;
use serde_json::json;

/// Makes a store with a note at 2026-02-01 12:00:01 UTC.
fn noted() -> Environment {
    let environment = Environment::new();
    environment.forge(["init", "--name", "work"]).success();
    environment.forge(["note", "add", "the pool is full"]).success();
    environment
}

/// Regression: in `forge checkpoint at -2h`, the time was refused as an unexpected argument,
/// although the page shows this command.
#[test]
fn a_time_that_begins_with_a_hyphen_is_taken_by_reading_and_writing_commands() {
    let environment = example_session();
    for args in [
        &["checkpoint", "at", "-1s"][..],
        &["checkpoint", "at", "-1 second", "--json", "-q"],
        &["checkpoint", "diff", "-9s", "-1s"],
        &["checkpoint", "restore", "-2s", "--dry-run"],
        &["checkpoint", "timeline", "--since", "-1 day", "--until", "-1s"],
        &["checkpoint", "list", "--since", "-90 minutes"],
        &["checkpoint", "create", "then", "--at", "-1s"],
        &["branch", "create", "from-then", "--from", "-2s"],
        &["log", "--since", "-1h"],
        &["search", "layout", "--since", "-1h"],
        &["note", "list", "--at", "-1s"],
        &["measurement", "record", "loss", "0.5", "--at", "-2h"],
    ] {
        let output = environment.finished(&mut environment.command(args));
        assert_eq!(output.code, 0, "{args:?}: {output}");
    }
    assert_eq!(
        environment.forge(["checkpoint", "at", "-2 days"]).code,
        3,
        "before the session began"
    );
    assert_snapshot!(environment.forge(["checkpoint", "at", "--josn"]), @"
    [stderr]
    error: unexpected argument '--josn' found

      tip: a similar option exists: '--json'

    Usage: forge checkpoint at [OPTIONS] <T>

    For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn times_as_other_programs_print_them_are_accepted() {
    let environment = noted();
    for text in [
        "Sun Feb 1 13:00:01 2026 +0100",
        "Sun Feb  1 12:00:01 UTC 2026",
        "2026-02-01 13:00:01.000000000 +0100",
        "20260201T120001Z",
        "1769947201",
        "1769947201 +0100",
        "2026-02-01 13:00:01 +01:00 (now)",
    ] {
        let state = environment.forge(["checkpoint", "at", text, "--json"]).json();
        assert_eq!(state["at"], "2026-02-01T12:00:01Z", "{text}: {state}");
    }
    assert_snapshot!(environment.forge(["checkpoint", "at", "Sun Feb 1 13:00:01 CET 2026"]), @"
    [stderr]
    error: the zone 'CET' in 'Sun Feb 1 13:00:01 CET 2026' is not known here: write its offset, as in '2025-01-20 14:30:00-05:00', or UTC, as in '2025-01-20 14:30 UTC', or leave the zone out for local time
    [exit 2]
    ");
}

#[test]
fn eight_digits_are_a_tag_if_there_is_such_a_tag_and_otherwise_a_date() {
    let environment = noted();
    let log = |since: &str| {
        let log = environment.forge(["log", "--since", since, "--json"]).json();
        log["entries"].as_array().unwrap().len()
    };
    assert_eq!((log("20260201"), log("20260131")), (1, 1));
    assert_snapshot!(environment.forge(["checkpoint", "at", "20260131"]), @"
    [stderr]
    error: nothing is known at 2026-01-31 00:00:00 +01:00: the session 'work' begins at 2026-02-01 13:00:01 +01:00
    hint: 'start' names the first moment
    [exit 3]
    ");
    environment.forge(["checkpoint", "create", "release", "--tags", "20260131"]).success();
    let state = environment.forge(["checkpoint", "at", "20260131", "--json"]).json();
    assert_eq!(state["checkpoint"]["message"], "release", "{state}");
    assert_eq!(log("20260131"), 1, "the note is older than the tag");
    assert_eq!(log("time:20260131"), 2);
    let fact =
        environment.forge(["measurement", "record", "loss", "0.5", "--at", "20260130", "--json"]);
    assert!(fact.success().contains("2026-01-29T23:00:00Z"));
}

/// Regression: times were read and shown in another zone than the requested one, without a warning.
#[test]
fn an_unknown_time_zone_gives_one_warning_on_stderr() {
    let environment = noted().with("TZ", "Mars/Olympus");
    let output = environment.forge(["log"]);
    assert_eq!(output.stderr.matches("the time zone 'Mars/Olympus' is not known").count(), 1);
    assert!(output.stderr.starts_with("warning: "), "{output}");
    let output = environment.forge(["log", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(document["schema"], "forge.log/1");
    let warning: serde_json::Value = serde_json::from_str(&output.stderr).unwrap();
    assert_eq!(warning["schema"], "forge.warning/1");
    let hook = environment.forge(["hook", "claude-code"]);
    assert!(!hook.stderr.contains("Mars"), "{hook}");
    let known = noted().with("TZ", "EST5");
    assert!(known.forge(["log", "--revisions"]).success().contains("07:00:01 -05:00"));
}

fn line(text: &str) -> String {
    json!({
        "type": "user",
        "uuid": "u1",
        "sessionId": "s1",
        "timestamp": "2026-01-01T10:00:00Z",
        "message": { "content": text },
    })
    .to_string()
        + "\n"
}

#[test]
fn joined_letters_and_emoji_are_shown_and_misleading_characters_are_not() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let text = "👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم क्\u{200d}ष but pass\u{200d}word \u{202e}txt";
    environment.write("project/a.jsonl", &line(text));
    environment.forge(["import", "claude-code", "a.jsonl"]).success();
    let list = environment.forge(["prompt", "list"]).success();
    assert!(
        list.contains(
            "👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم क्\u{200d}ष but pass\\u{200d}word \\u{202e}txt"
        ),
        "{list}"
    );
}

/// The list of features that a client requests contains `"token-...","..."`, which looks like the
/// name of a token with its value.
#[test]
fn a_transcript_with_dated_names_comes_back_byte_for_byte() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let betas = [
        "claude-code-20250219",
        "token-efficient-tools-2025-02-19",
        "advanced-tool-use-2025-11-20",
        "context-management-2025-06-27",
        "interleaved-thinking-2025-05-14",
        "fine-grained-tool-streaming-2025-05-14",
    ];
    let request = json!({
        "type": "api-request",
        "uuid": "r1",
        "sessionId": "s1",
        "timestamp": "2026-01-01T10:00:01Z",
        "request": {
            "model": "claude-haiku-4-5-20251001",
            "betas": betas,
            "headers": { "anthropic-beta": betas.join(",") },
        },
    });
    let whole = line("why does it hang?") + &request.to_string() + "\n";
    environment.write("project/a.jsonl", &whole);
    environment.forge(["import", "claude-code", "a.jsonl"]).success();
    let exported = environment.forge(["export", "transcript", "s1"]);
    assert_eq!(exported.success(), whole);
}

/// Returns the notes in the state at a moment, with the clock at this time.
fn notes_at(environment: &Environment, clock: &str, moment: &str) -> Vec<String> {
    let mut command = environment.command(["checkpoint", "at", moment, "--json", "--kind", "note"]);
    let state = environment.finished(command.env("FORGE_TEST_NOW", clock)).json();
    let notes = state["state"]["notes"].as_array().unwrap().iter();
    let mut notes: Vec<_> =
        notes.map(|note| note["description"].as_str().unwrap().to_owned()).collect();
    notes.sort();
    notes
}

fn add_at(environment: &Environment, clock: &str, note: &str) {
    let mut command = environment.command(["note", "add", note]);
    let added = environment.finished(command.env("FORGE_TEST_NOW", clock));
    assert_eq!(added.code, 0, "{added}");
}

/// Regression: after one write with a clock that was ahead, 'now' silently omitted everything that
/// was written later.
#[test]
fn now_includes_all_writes_even_if_a_clock_was_ahead() {
    for ahead in ["2026-02-01T14:00:00Z", "2026-02-01T13:00:03Z"] {
        let environment = Environment::new();
        environment.forge(["init", "--name", "work"]).success();
        add_at(&environment, "2026-02-01T12:30:00Z", "before");
        add_at(&environment, ahead, "ahead");
        let clock = "2026-02-01T13:00:00Z";
        assert_eq!(notes_at(&environment, clock, "now"), ["ahead", "before"]);
        add_at(&environment, clock, "after");
        for now in ["now", "0s", "main@{now}", "2026-02-01T13:00:00Z"] {
            assert_eq!(notes_at(&environment, clock, now), ["after", "ahead", "before"], "{now}");
        }
        // The state at an earlier time is unchanged.
        assert_eq!(notes_at(&environment, clock, "2026-02-01T12:45:00Z"), ["before"]);
        let mut listed = environment.command(["log", "--until", "now", "--json"]);
        let listed = environment.finished(listed.env("FORGE_TEST_NOW", clock)).json();
        // The list also has automatic checkpoints, which are not counted here.
        let entries = listed["entries"].as_array().unwrap().iter();
        assert_eq!(entries.filter(|entry| entry.get("verb").is_some()).count(), 3);
        // When the clock has passed the time of the write that was ahead, all three notes are
        // shown.
        assert_eq!(notes_at(&environment, "2026-02-01T15:00:00Z", "1 minute ago").len(), 3);
    }
}

/// Regression: an id that no longer exists was reported as an invalid time if it began like one.
#[test]
fn an_id_that_begins_like_a_time_is_an_id() {
    let environment = noted();
    for id in [
        "10d4e5f60718",
        "2025012014300000000000000000abcd",
        "1e0a5d20",
        "12345678901234567890abcdefabcdef",
    ] {
        for verb in ["show", "at"] {
            let refused = environment.forge(["checkpoint", verb, id]);
            assert_eq!(refused.code, 3, "{verb} {id}: {refused}");
        }
    }
    // Eight digits are a time if no id begins with them.
    assert_eq!(environment.forge(["checkpoint", "at", "20260202"]).code, 2);
}

/// A time before 1970 shows that the clock is wrong.
#[test]
fn a_clock_before_1970_is_refused_with_the_reason() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    for args in [["note", "add", "x"], ["note", "list", "-q"], ["config", "get", "color"]] {
        let mut command = environment.command(args);
        let output = environment.finished(command.env("FORGE_TEST_NOW", "1969-12-31T23:59:59Z"));
        assert_eq!(output.code, 4, "{output}");
        let expected =
            "error: the clock of this machine says 1969-12-31T23:59:59Z, which is before 1970";
        assert!(output.stderr.starts_with(expected), "{output}");
    }
    let mut hook = environment.shell("echo '{}' | forge hook claude-code SessionStart");
    let output = environment.finished(hook.env("FORGE_TEST_NOW", "1969-12-31T23:59:59Z"));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
}

/// Regression: after one write with a clock that was ahead, that write stayed the first of the
/// list.
#[test]
fn the_last_write_is_listed_first_even_after_a_clock_that_was_ahead() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    for (clock, name) in [("2026-02-01T13:00:00Z", "ahead"), ("2026-02-01T12:00:00Z", "after")] {
        let mut command = environment.command(["checkpoint", "create", name]);
        environment.finished(command.env("FORGE_TEST_NOW", clock)).success();
    }
    for verb in ["checkpoint list", "log --revisions"] {
        let line = |rest: &str| {
            environment.finished(&mut environment.shell(&format!("forge {verb} {rest}")))
        };
        let first = line("--limit 1").success();
        assert!(first.contains("after") && !first.contains("ahead"), "{verb}: {first}");
        let all = line("").success();
        assert!(all.find("after") < all.find("ahead"), "{verb}: {all}");
    }
}
