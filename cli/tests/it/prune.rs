//! `forge checkpoint prune`: what it says, what it takes to take it back, and when the bytes go.

use crate::environment::{Environment, Output};
use serde_json::json;

#[test]
fn the_page_on_pruning_holds() {
    crate::page::holds("prune.md");
}

/// Five notes, a checkpoint in the middle and one at the end.
fn told() -> Environment {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    for (place, note) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        environment.forge(["note", "add", note]).success();
        if place % 2 == 0 {
            environment.forge(["checkpoint", "create", note]).success();
        }
    }
    environment
}

const BARE: [&str; 6] =
    ["checkpoint", "prune", "--drop-manual", "--keep-last=1", "--keep-revisions=0s", "--json"];

fn bare(environment: &Environment, more: &[&str]) -> Output {
    environment.finished(&mut environment.command(BARE.iter().chain(more)))
}

#[test]
fn a_look_changes_nothing_and_gives_every_reason() {
    let environment = told();
    let log = environment.forge(["log", "--json"]).stdout;
    let looked = bare(&environment, &["--dry-run"]).json();
    let session = &looked["sessions"][0];
    assert_eq!(session["dropped"].as_array().unwrap().len(), 2);
    assert_eq!(session["kept"][0]["kept_by"], json!(["newest", "last"]));
    assert_eq!((&session["folded"], &session["operation"]), (&json!(4), &json!(null)));
    assert_eq!(looked["freed"], json!(null));
    assert_eq!(environment.forge(["log", "--json"]).stdout, log);
    // By the rules that hold without any, all of it stays: it is young, and was asked for.
    let kept = environment.forge(["checkpoint", "prune", "--json"]).json();
    assert_eq!(kept["sessions"][0]["operation"], json!(null));
}

#[test]
fn a_time_inside_a_fold_says_so() {
    let environment = told();
    environment.forge(BARE).success();
    // The notes were added at the seconds 1, 3, 4, 6 and 7, and the first four of their revisions are folded.
    for (second, count) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 3), (6, 4)] {
        let time = format!("2026-02-01T12:00:{second:02}Z");
        let state = environment.forge(["checkpoint", "at", &time, "--json"]).json();
        assert_eq!(state["revision"], json!(null));
        assert_eq!(state["folded"], json!({"revisions": count, "into": 7}), "{time}");
        let noun = if count == 1 { "revision" } else { "revisions" };
        let told =
            format!("{count} {noun} up to then were folded into #7: this is the state before");
        let human = environment.forge(["checkpoint", "at", &time]).stdout;
        assert!(human.contains(&told), "{time}: {human}");
    }
    let into = 7;
    for at in ["2026-02-01T12:00:07Z", "HEAD"] {
        let whole = environment.forge(["checkpoint", "at", at, "--json"]).json();
        assert_eq!(whole["folded"], json!(null), "{at} is inside no fold");
    }
    let head = environment.forge(["checkpoint", "at", "HEAD", "--json"]).json();
    assert_eq!(head["state"]["notes"].as_array().unwrap().len(), 5);
    let folded = environment.forge(["checkpoint", "at", "#1"]);
    assert_eq!(folded.code, 3);
    assert!(folded.stderr.contains(&format!("name '#{into}'")), "{folded}");
}

#[test]
fn what_cannot_be_taken_back_wants_a_yes_and_is_gone() {
    let environment = told();
    let refused = bare(&environment, &["--now"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert_eq!(bare(&environment, &["--dry-run"]).json()["sessions"][0]["folded"], 4);
    let pruned = bare(&environment, &["--now", "--yes"]).json();
    assert_eq!(pruned["freed"]["prunings"], 1);
    let undo = environment.forge(["undo"]);
    assert!(undo.stdout.contains("checkpoint create"), "not what is gone for good: {undo}");
}

#[test]
fn maintaining_drops_what_is_older_than_the_time_to_take_it_back() {
    let environment = told();
    environment.forge(BARE).success();
    assert_eq!(environment.forge(["maintain", "--json"]).json()["swept"], 0);
    let later = environment.with("FORGE_TEST_NOW", "2026-02-16T12:00:00Z");
    assert_eq!(later.forge(["maintain", "--json"]).json()["swept"], 1);
    assert_eq!(later.forge(["maintain", "--json"]).json()["swept"], 0);
}

#[test]
fn maintaining_prunes_by_itself_where_the_settings_say_so() {
    let environment = told();
    let later = environment.with("FORGE_TEST_NOW", "2026-02-16T12:00:00Z");
    let revisions = || {
        let log = later.forge(["log", "--json"]).json();
        log["entries"].as_array().unwrap().len()
    };
    let before = revisions();
    later.forge(["maintain"]).success();
    assert_eq!(revisions(), before, "nobody asked");
    later.forge(["config", "set", "prune.automatic", "true"]).success();
    later.forge(["maintain"]).success();
    // Manual checkpoints stay, and so do their revisions: two of five fold.
    assert_eq!(revisions(), before - 2);
    let undo = later.forge(["undo"]);
    assert!(undo.stdout.contains("checkpoint create"), "a verb of one's own comes first: {undo}");
}

/// A session with a transcript that ended long before the clock of the tests, and one at work.
fn ended() -> Environment {
    let environment = Environment::new();
    environment.forge(["init", "--name", "work"]).success();
    let line = |second: u32, text: &str| {
        json!({
            "type": "user",
            "uuid": format!("u{second}"),
            "sessionId": "long-ago",
            "timestamp": format!("2026-01-01T00:00:{second:02}Z"),
            "message": { "content": text },
        })
        .to_string()
    };
    let long = "the pool is exhausted ".repeat(400);
    let lines = [line(1, "why does it hang?"), line(2, &long)].join("\n") + "\n";
    environment.write("project/old.jsonl", &lines);
    environment.forge(["import", "claude-code", "old.jsonl"]).success();
    environment.forge(["session", "use", "work"]).success();
    environment
}

/// The name of the session that ended.
fn old(environment: &Environment) -> String {
    names(environment).into_iter().find(|name| name != "work").unwrap()
}

fn names(environment: &Environment) -> Vec<String> {
    let listed = environment.forge(["session", "list", "--json"]).json();
    let sessions = listed["sessions"].as_array().unwrap().iter();
    sessions.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn of_a_pruned_transcript_the_beginnings_of_texts_stay() {
    let environment = ended();
    let old = old(&environment);
    let listed = environment.forge(["--session", &old, "message", "list", "--json"]).json();
    let id = listed["messages"][1]["id"].as_str().unwrap().to_owned();
    let message = || {
        environment.forge(["--session", &old, "message", "show", &id, "--full", "--json"]).json()
    };
    let before = message();
    let pruned =
        environment.forge(["checkpoint", "prune", "--transcripts", "30d", "--json"]).json();
    let dropped = &pruned["sessions"][0]["transcripts"];
    assert_eq!(dropped.as_array().unwrap().len(), 1, "{pruned}");
    assert_eq!(dropped[0]["session"], *old);
    let after = message();
    assert_ne!(after, before);
    assert!(after.to_string().contains("the pool is exhausted"), "{after}");
    let export = environment.forge(["export", "transcript", &old]);
    assert_eq!(export.code, 3, "{export}");
    assert!(export.stderr.contains("pruned"), "{export}");
    environment.forge(["--session", &old, "search", "exhausted"]).success();
    environment.forge(["verify", "--read-data"]).success();
    environment.forge(["undo"]).success();
    assert_eq!(message(), before);
}

#[test]
fn a_session_that_ended_goes_and_comes_back() {
    let environment = ended();
    let old = old(&environment);
    assert_eq!(names(&environment).len(), 2);
    let looked = environment.forge(["checkpoint", "prune", "--sessions", "30d", "--dry-run"]);
    assert!(looked.stdout.contains("1 session would go"), "{looked}");
    environment.forge(["checkpoint", "prune", "--sessions", "30d"]).success();
    assert_eq!(names(&environment), ["work"]);
    let gone = environment.forge(["--session", &old, "status"]);
    assert_eq!(gone.code, 3, "{gone}");
    environment.forge(["undo"]).success();
    assert_eq!(names(&environment).len(), 2);
}

/// Of a session that would go no byte was told.
#[test]
fn a_look_tells_about_the_bytes_that_come_free() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "work"]).success();
    environment.forge(["session", "use", "work"]).success();
    // Digits drawn anew for each line compress to half of them.
    let mut drawn = 1_u64;
    let mut digits = |count: usize| -> String {
        let mut draw = || {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:016x}", drawn ^ (drawn >> 29))
        };
        (0..count / 16).map(|_| draw() + " ").collect()
    };
    for name in ["a", "b"] {
        let line = |second: u32| {
            json!({
                "type": "user",
                "uuid": format!("{name}{second}"),
                "sessionId": format!("long-ago-{name}"),
                "timestamp": format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60),
                "message": { "content": digits(8000) },
            })
            .to_string()
        };
        let lines: Vec<String> = (0..200).map(line).collect();
        environment.write(&format!("project/{name}.jsonl"), &(lines.join("\n") + "\n"));
        environment.forge(["import", "claude-code", &format!("{name}.jsonl")]).success();
    }
    environment.forge(["session", "use", "work"]).success();
    let now = |more: &[&str]| {
        let args = ["checkpoint", "prune", "--now", "--yes", "--json"];
        environment.finished(&mut environment.command(args.iter().chain(more))).json()["freed"]
            .clone()
    };
    // The journal is shortened and the index compacted before anything goes.
    now(&[]);
    // The transcripts first, then the rest of the sessions.
    for rule in ["--transcripts=30d", "--sessions=30d"] {
        let look = ["checkpoint", "prune", rule, "--dry-run"];
        let human = environment.forge(look).stdout;
        assert!(human.contains(" (about "), "{human}");
        let looked = environment.finished(environment.command(look).arg("--json")).json();
        let told = looked["sessions"][0]["bytes"].as_u64().unwrap();
        let freed = now(&[rule]);
        let bytes = |name: &str| freed[name].as_u64().unwrap();
        let freed = bytes("bytes_before") - bytes("bytes");
        assert!(told * 10 > freed * 7 && told * 10 < freed * 13, "{rule}: {told} of {freed}");
    }
}

#[test]
fn sessions_go_by_the_settings_too() {
    let environment = ended();
    environment.forge(["config", "set", "keep.sessions", "30d"]).success();
    environment.forge(["config", "set", "prune.automatic", "true"]).success();
    environment.forge(["maintain"]).success();
    assert_eq!(names(&environment), ["work"]);
}

/// A session that the first one dropped was pruned all the same, and that was refused.
#[test]
fn of_every_session_those_that_go_are_not_pruned_too() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "work"]).success();
    environment.forge(["session", "new", "over"]).success();
    for note in ["a", "b", "c"] {
        environment.forge(["note", "add", note]).success();
    }
    environment.forge(["session", "use", "work"]).success();
    environment.forge(["note", "add", "d"]).success();
    let every = ["checkpoint", "prune", "--all-sessions", "--sessions=0s", "--keep-revisions=0s"];
    let pruned = |more: &[&str]| {
        let args = every.iter().chain(more).chain(&["--json"]);
        let told = environment.finished(&mut environment.command(args)).json();
        let sessions = told["sessions"].as_array().unwrap().clone();
        assert_eq!(sessions.len(), 1, "{told}");
        assert_eq!(sessions[0]["session"], "work");
        assert_eq!(sessions[0]["sessions"][0]["session"], "over");
    };
    pruned(&["--dry-run"]);
    pruned(&[]);
    assert_eq!(names(&environment), ["work"]);
    environment.forge(["undo"]).success();
    assert_eq!(names(&environment).len(), 2);
}
