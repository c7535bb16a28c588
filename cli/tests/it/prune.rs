//! `forge checkpoint prune`: its output, its undo, and when bytes become free.

use crate::environment::{Environment, Output};
use serde_json::json;

#[test]
fn examples_of_the_pruning_page_work() {
    crate::page::holds("prune.md");
}

/// Makes a store with five notes, and a checkpoint after the first, the third and the last.
fn store_with_notes() -> Environment {
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

fn prune_bare(environment: &Environment, more: &[&str]) -> Output {
    environment.finished(&mut environment.command(BARE.iter().chain(more)))
}

#[test]
fn a_dry_run_changes_nothing_and_gives_every_reason() {
    let environment = store_with_notes();
    let log = environment.forge(["log", "--json"]).stdout;
    let looked = prune_bare(&environment, &["--dry-run"]).json();
    let session = &looked["sessions"][0];
    assert_eq!(session["dropped"].as_array().unwrap().len(), 2);
    assert_eq!(session["kept"][0]["kept_by"], json!(["newest", "last"]));
    assert_eq!((&session["folded"], &session["operation"]), (&json!(4), &json!(null)));
    assert_eq!(looked["freed"], json!(null));
    assert_eq!(environment.forge(["log", "--json"]).stdout, log);
    // By the default rules everything is kept: it is recent, and manual.
    let kept = environment.forge(["checkpoint", "prune", "--json"]).json();
    assert_eq!(kept["sessions"][0]["operation"], json!(null));
}

/// The log showed `undo ()`.
#[test]
fn an_undo_with_nothing_left_to_revert_is_listed_without_parentheses() {
    let environment = store_with_notes();
    let log = environment.finished_raw(["log", "--operations", "--json"]);
    let log: serde_json::Value = serde_json::from_str(&log).unwrap();
    let operations = log["operations"].as_array().unwrap();
    let oldest = operations.iter().rfind(|one| one["verb"] == "checkpoint create").unwrap();
    environment.forge(BARE).success();
    environment.forge(["undo", oldest["id"].as_str().unwrap()]).success();
    let listed = environment.forge(["log", "--operations", "--limit", "1"]).success();
    assert!(listed.trim_end().ends_with(" undo"), "{listed}");
}

/// The error only said which number is the last, as if the checkpoint had never been there.
#[test]
fn the_number_of_a_pruned_checkpoint_names_the_pruning() {
    let environment = store_with_notes();
    environment.forge(BARE).success();
    insta::assert_snapshot!(environment.forge(["checkpoint", "at", "#2"]), @r"
    [stderr]
    error: there is no revision or checkpoint '#2'
    hint: the checkpoint of that number was pruned or undone: 'forge log --operations' names the operation
    [exit 3]
    ");
}

#[test]
fn a_state_at_a_time_inside_a_fold_names_the_fold() {
    let environment = store_with_notes();
    environment.forge(BARE).success();
    // The notes were added at seconds 1, 3, 4, 6 and 7, and the first four of their revisions are
    // folded.
    for (second, count) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 3), (6, 4)] {
        let time = format!("2026-02-01T12:00:{second:02}Z");
        let state = environment.forge(["checkpoint", "at", &time, "--json"]).json();
        assert_eq!(state["revision"], json!(null));
        assert_eq!(state["folded"], json!({"revisions": count, "into": 7}), "{time}");
        let noun = if count == 1 { "revision" } else { "revisions" };
        let notice =
            format!("{count} {noun} up to then were folded into #7: this is the state before");
        let human = environment.forge(["checkpoint", "at", &time]).stdout;
        assert!(human.contains(&notice), "{time}: {human}");
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
fn a_pruning_that_cannot_be_undone_needs_yes() {
    let environment = store_with_notes();
    let refused = prune_bare(&environment, &["--now"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert_eq!(prune_bare(&environment, &["--dry-run"]).json()["sessions"][0]["folded"], 4);
    let pruned = prune_bare(&environment, &["--now", "--yes"]).json();
    assert_eq!(pruned["freed"]["prunings"], 1);
    let undo = environment.forge(["undo"]);
    assert!(undo.stdout.contains("checkpoint create"), "not what is gone for good: {undo}");
    let passed = ["warning: 'checkpoint prune' ", " cannot be undone: one before it was undone"];
    assert!(passed.iter().all(|text| undo.stderr.contains(text)), "{undo}");
    assert!(!environment.forge(["undo"]).stderr.contains("warning"), "it is reported once");
}

/// The report of `--now` said that 'forge undo' brings back what it had permanently deleted.
#[test]
fn only_a_pruning_that_can_be_undone_names_undo() {
    let environment = store_with_notes();
    let prune = |more: &[&str]| {
        environment.finished(&mut environment.command(BARE[..5].iter().chain(more))).success()
    };
    let pruned = prune(&[]);
    assert!(pruned.contains("'forge undo' brings them back"), "{pruned}");
    environment.forge(["undo"]).success();
    let pruned = prune(&["--now", "--yes"]);
    assert!(!pruned.contains("undo") && pruned.contains("permanently deleted"), "{pruned}");
}

#[test]
fn maintaining_sweeps_a_pruning_after_the_undo_period() {
    let environment = store_with_notes();
    environment.forge(BARE).success();
    assert_eq!(environment.forge(["maintain", "--json"]).json()["swept"], 0);
    let later = environment.with("FORGE_TEST_NOW", "2026-02-16T12:00:00Z");
    // The sweep is the only record that is not in the index yet.
    let report = later.forge(["maintain", "--json"]).json();
    assert_eq!((&report["swept"], &report["applied"]), (&1.into(), &true.into()));
    assert_eq!(later.forge(["maintain", "--json"]).json()["swept"], 0);
}

#[test]
fn maintain_prunes_only_if_the_setting_allows_it() {
    let environment = store_with_notes();
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
    // Manual checkpoints are kept, and so are their revisions: two of five are folded.
    assert_eq!(revisions(), before - 2);
    let undo = later.forge(["undo"]);
    assert!(undo.stdout.contains("checkpoint create"), "a verb of one's own comes first: {undo}");
}

/// Makes a store with checkpoints at known times, each named by a letter. All are manual except
/// `s`, which reports a confirmed hypothesis.
fn store_with_times() -> Environment {
    let environment = Environment::new();
    let at = |time: &str, args: &[&str]| {
        let mut command = environment.command(args);
        environment.finished(command.env("FORGE_TEST_NOW", time)).success();
    };
    at("2026-01-05T09:00:00Z", &["init", "--name", "s"]);
    at(
        "2026-01-05T09:00:00Z",
        &["config", "set", "auto_checkpoint.significant_time_passed", "false"],
    );
    for (name, time) in [
        ("a", "2026-01-05T10:00:00Z"), // a Monday
        ("b", "2026-01-11T23:59:59Z"), // the Sunday of that week
        ("c", "2026-01-12T00:00:00Z"), // the Monday of the next one
        ("s", "2026-01-15T12:00:00Z"),
        ("d", "2026-01-30T08:00:00Z"),
        ("e", "2026-01-30T08:59:59Z"), // in the same hour
        ("f", "2026-01-30T09:00:00Z"), // in the next one
        ("g", "2026-01-31T22:00:00Z"),
        ("h", "2026-02-01T10:59:00Z"),
        ("i", "2026-02-01T11:00:00Z"), // an hour before
        ("j", "2026-02-01T11:30:00Z"),
    ] {
        match name {
            "s" => {
                at(time, &["hypothesis", "add", "the pool is exhausted"]);
                at(time, &["hypothesis", "confirm", "H1"]);
            }
            "a" => at(time, &["checkpoint", "create", name, "--tags", "release"]),
            "g" => at(time, &["checkpoint", "create", name, "--tags", "baseline"]),
            _ => at(time, &["checkpoint", "create", name]),
        }
    }
    environment
}

/// Runs `forge checkpoint prune` with these arguments. Returns the letters of the kept and of the
/// dropped checkpoints, newest first.
fn kept_and_dropped(environment: &Environment, args: &[&str]) -> (String, String) {
    let mut command = environment.command(["checkpoint", "prune", "--json"]);
    command.args(args).env("FORGE_TEST_NOW", "2026-02-01T12:00:00Z");
    let preview = environment.finished(&mut command).json();
    let letters = |list: &serde_json::Value| -> String {
        let names = list.as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap());
        names.map(|name| if name.len() > 1 { "s" } else { name }).collect()
    };
    (letters(&preview["sessions"][0]["kept"]), letters(&preview["sessions"][0]["dropped"]))
}

#[test]
fn each_rule_keeps_the_checkpoints_that_it_names_and_drops_the_rest() {
    let environment = store_with_times();
    let all = "jihgfedscba";
    let bare = ["--drop-manual", "--drop-significant"];
    let judge = |rules: &[&str], more: &[&str]| {
        let args: Vec<&str> = rules.iter().chain(more).chain(&["--dry-run"]).copied().collect();
        let (kept, dropped) = kept_and_dropped(&environment, &args);
        let rest: String = all.chars().filter(|name| !kept.contains(*name)).collect();
        assert_eq!(dropped, rest, "{args:?}: what does not stay goes");
        kept
    };
    for (rules, kept) in [
        // By default, the checkpoints of the last hour and one per hour are kept.
        (&[][..], "jhgfescba"),
        (&["--keep-last=1"], "j"),
        (&["--keep-last=3"], "jih"),
        (&["--keep-last=100"], all),
        (&["--keep-hourly"], "jhgfescba"),
        (&["--keep-hourly=3"], "jhg"),
        (&["--keep-daily"], "jgfscba"),
        (&["--keep-daily=2"], "jg"),
        (&["--keep-daily", "2"], "jg"),
        (&["--keep-weekly"], "jsb"),
        (&["--keep-weekly=2"], "js"),
        // A checkpoint that is exactly one hour old is not younger than one hour.
        (&["--keep-within=1h"], "j"),
        (&["--keep-within=61m"], "ji"),
        (&["--keep-within=25h"], "jihg"),
        (&["--keep-days=1"], "jihg"),
        (&["--keep-days=2"], "jihg"),
        (&["--keep-days=3"], "jihgfed"),
        (&["--keep-tag=release"], "ja"),
        (&["--keep-tag=release", "--keep-tag=baseline"], "jga"),
        (&["--keep-tag=nowhere"], "j"),
        (&["--keep-tag=release,baseline"], "jga"),
        (&["--keep-tag=release, baseline"], "jga"),
        (&["--keep-tag=,"], "j"),
        // A rule of zero keeps no checkpoint.
        (&["--keep-last=0", "--keep-daily=2"], "jg"),
        (&["--keep-hourly=0", "--keep-within=0s", "--keep-days=0", "--keep-last=2"], "ji"),
        (&["--keep-last=0", "--keep-tag=release"], "ja"),
        // A checkpoint is kept if any rule keeps it.
        (&["--keep-within=1h", "--keep-days=2"], "jihg"),
        (&["--keep-last=2", "--keep-weekly=2", "--keep-tag=release"], "jisa"),
        (&["--keep-hourly=1", "--keep-daily=3", "--keep-weekly=3"], "jgfsb"),
    ] {
        assert_eq!(judge(&bare, rules), kept, "{rules:?}");
    }
    // Manual and significant checkpoints are kept unless a flag drops them.
    assert_eq!(judge(&["--drop-manual"], &["--keep-last=1"]), "js");
    assert_eq!(judge(&["--drop-significant"], &["--keep-last=1"]), "jihgfedcba");
    assert_eq!(judge(&[], &["--keep-last=1"]), all);
    // Settings have the same effect as flags, and flags have priority.
    environment.forge(["config", "set", "keep.weekly", "2"]).success();
    environment.forge(["config", "set", "keep.tags", "release"]).success();
    assert_eq!(judge(&bare, &[]), "jsa");
    assert_eq!(judge(&bare, &["--keep-daily=2"]), "jg");
    environment.forge(["config", "unset", "keep.weekly"]).success();
    environment.forge(["config", "set", "keep.tags", "release,baseline"]).success();
    assert_eq!(judge(&bare, &[]), "jga");
}

/// Regression: `--keep-last 0` was treated as no rule, so the default rules applied and dropped
/// other checkpoints.
#[test]
fn rules_that_are_all_zero_are_refused_and_drop_nothing() {
    let environment = store_with_times();
    for rules in [
        &["--keep-last", "0"][..],
        &["--keep-daily=0"],
        &["--keep-hourly", "0"],
        &["--keep-weekly=0"],
        &["--keep-within", "0s"],
        &["--keep-days", "0"],
        &["--keep-last=0", "--keep-daily=0", "--drop-manual", "--drop-significant"],
    ] {
        for look in [true, false] {
            let mut args = [&["checkpoint", "prune"], rules].concat();
            args.extend(look.then_some("--dry-run"));
            let output = environment.finished(&mut environment.command(&args));
            assert_eq!(output.code, 2, "{rules:?}: {output}");
            assert!(output.stderr.contains("each rule on the command line is zero"), "{output}");
        }
    }
    environment.forge(["config", "set", "keep.last", "0"]).success();
    environment.forge(["config", "set", "keep.within", "0s"]).success();
    let output = environment.forge(["checkpoint", "prune", "--dry-run"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("each rule in the settings (keep.*) is zero"), "{output}");
    // A rule on the command line has priority over the settings. One rule in the settings that is
    // not zero is enough, too.
    assert_eq!(kept_and_dropped(&environment, &["--keep-last=100", "--dry-run"]).1, "");
    environment.forge(["config", "set", "keep.daily", "2"]).success();
    let bare = ["--drop-manual", "--drop-significant", "--dry-run"];
    assert_eq!(kept_and_dropped(&environment, &bare).0, "jg");
}

/// The preview equals the result, and after it a preview drops nothing.
#[test]
fn a_run_drops_what_the_dry_run_listed() {
    for rules in [&["--keep-daily=3"][..], &["--keep-weekly", "--keep-last=2"], &["--keep-days=2"]]
    {
        let environment = store_with_times();
        let with = |more: &[&'static str]| {
            let bare = ["--drop-manual", "--drop-significant"];
            let args: Vec<&str> = bare.iter().chain(rules).chain(more).copied().collect();
            kept_and_dropped(&environment, &args)
        };
        let looked = with(&["--dry-run"]);
        assert_eq!(with(&[]), looked);
        let listed = environment.forge(["checkpoint", "list", "--json"]).json();
        let stay = listed["checkpoints"].as_array().unwrap().len();
        assert_eq!(stay, looked.0.len(), "{listed}");
        assert_eq!(with(&["--dry-run"]), (looked.0.clone(), String::new()));
    }
}

/// Makes a store with an active session, and one with a transcript that ended long before the
/// tests' clock.
fn store_with_ended_session() -> Environment {
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

/// Returns the name of the session that ended.
fn ended_session(environment: &Environment) -> String {
    names(environment).into_iter().find(|name| name != "work").unwrap()
}

fn names(environment: &Environment) -> Vec<String> {
    let listed = environment.forge(["session", "list", "--json"]).json();
    let sessions = listed["sessions"].as_array().unwrap().iter();
    sessions.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_beginnings_of_texts_of_a_pruned_transcript_stay() {
    let environment = store_with_ended_session();
    let old = ended_session(&environment);
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
fn a_session_that_ended_is_dropped_and_an_undo_brings_it_back() {
    let environment = store_with_ended_session();
    let old = ended_session(&environment);
    assert_eq!(names(&environment).len(), 2);
    let looked = environment.forge(["checkpoint", "prune", "--sessions", "30d", "--dry-run"]);
    assert!(looked.stdout.contains("1 session would be removed"), "{looked}");
    environment.forge(["checkpoint", "prune", "--sessions", "30d"]).success();
    assert_eq!(names(&environment), ["work"]);
    let refused = environment.forge(["--session", &old, "status"]);
    assert_eq!(refused.code, 3, "{refused}");
    environment.forge(["undo"]).success();
    assert_eq!(names(&environment).len(), 2);
}

/// Regression: the preview reported no bytes for a session that would be dropped.
#[test]
fn a_dry_run_estimates_the_freed_bytes() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "work"]).success();
    environment.forge(["session", "use", "work"]).success();
    // Each line has random digits, which compress to half their size.
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
    // The journal is shortened and the index compacted before anything is dropped.
    now(&[]);
    // First the transcripts are dropped, then the rest of the sessions.
    for rule in ["--transcripts=30d", "--sessions=30d"] {
        let look = ["checkpoint", "prune", rule, "--dry-run"];
        let human = environment.forge(look).stdout;
        assert!(human.contains(" (about "), "{human}");
        let looked = environment.finished(environment.command(look).arg("--json")).json();
        let reported = looked["sessions"][0]["bytes"].as_u64().unwrap();
        let freed = now(&[rule]);
        let bytes = |name: &str| freed[name].as_u64().unwrap();
        let freed = bytes("bytes_before") - bytes("bytes");
        assert!(
            reported * 10 > freed * 7 && reported * 10 < freed * 13,
            "{rule}: {reported} of {freed}"
        );
    }
}

#[test]
fn sessions_are_dropped_by_the_settings_too() {
    let environment = store_with_ended_session();
    environment.forge(["config", "set", "keep.sessions", "30d"]).success();
    environment.forge(["config", "set", "prune.automatic", "true"]).success();
    environment.forge(["maintain"]).success();
    assert_eq!(names(&environment), ["work"]);
}

/// With the settings for automatic pruning, the hook at the end of an agent's session prunes, at
/// most once a day. Other hooks do not, and without the settings none does.
#[test]
fn the_end_of_an_agents_session_prunes_only_if_the_setting_allows_it() {
    let environment = store_with_ended_session();
    for note in ["a", "b", "c"] {
        environment.forge(["note", "add", note]).success();
    }
    let call = |event: &str, at: &str| {
        let input = json!({
            "session_id": "11111111-2222-4333-8444-555555555555",
            "cwd": environment.path("project"),
            "hook_event_name": event,
            "reason": "other",
        });
        let mut command = environment.command(["hook", "claude", event]);
        crate::hook::run_hook(command.env("FORGE_TEST_NOW", at), &input.to_string());
    };
    let revisions = || {
        let log = environment.forge(["--session", "work", "log", "--json"]).json();
        log["entries"].as_array().unwrap().len()
    };
    let ended = ended_session(&environment);
    // Late enough for the notes to be folded, and for the ended session to be dropped.
    let ends = "2026-02-16T12:00:00Z";
    let before = (names(&environment).len(), revisions());
    call("SessionStart", ends);
    call("SessionEnd", ends);
    let begun = names(&environment).len();
    assert_eq!(revisions(), before.1, "nobody asked");
    assert!(names(&environment).contains(&ended));
    environment.write(
        "project/.forge/config.toml",
        "[prune]\nautomatic = true\n[keep]\nsessions = \"30d\"\nrevisions = \"1d\"\n",
    );
    call("Stop", ends);
    assert_eq!((names(&environment).len(), revisions()), (begun, before.1), "it goes on");
    call("SessionEnd", ends);
    assert_eq!((names(&environment).len(), revisions()), (begun - 1, before.1 - 2));
    assert!(!names(&environment).contains(&ended), "it ended a month ago");
    // The operation is attributed to the hook, and can be undone.
    let operations =
        environment.forge(["--session", "work", "log", "--operations", "--json"]).json();
    let pruned = operations["operations"].as_array().unwrap().iter();
    let mut pruned = pruned.filter(|one| one["verb"] == "checkpoint prune");
    assert!(pruned.next().is_some(), "{operations:#}");
    // Within a day nothing more is dropped.
    for note in ["d", "e"] {
        environment.forge(["--session", "work", "note", "add", note]).success();
    }
    let held = revisions();
    call("SessionEnd", "2026-02-17T11:00:00Z");
    assert_eq!(revisions(), held, "once a day");
    call("SessionEnd", "2026-02-17T13:00:00Z");
    assert!(revisions() < held, "a day later it goes on");
}

/// Regression: a session that the same command had dropped was pruned too, which failed.
#[test]
fn sessions_that_are_dropped_are_not_pruned_too() {
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
        let report = environment.finished(&mut environment.command(args)).json();
        let sessions = report["sessions"].as_array().unwrap().clone();
        assert_eq!(sessions.len(), 1, "{report}");
        assert_eq!(sessions[0]["session"], "work");
        assert_eq!(sessions[0]["sessions"][0]["session"], "over");
    };
    pruned(&["--dry-run"]);
    pruned(&[]);
    assert_eq!(names(&environment), ["work"]);
    environment.forge(["undo"]).success();
    assert_eq!(names(&environment).len(), 2);
}
