//! `forge checkpoint at` and `show`: what was known at a moment.

use crate::environment::Environment;
use crate::story::{tell, told};
use insta::assert_snapshot;
use serde_json::Value;

/// The keys of a document, in its own order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn ids<'a>(document: &'a Value, array: &str) -> Vec<&'a str> {
    let entities = document["state"][array].as_array().unwrap();
    entities.iter().map(|entity| entity["id"].as_str().unwrap()).collect()
}

#[test]
fn a_moment_is_the_brief_of_it_and_what_leads_on() {
    let environment = told();
    assert_snapshot!(environment.forge(["checkpoint", "at", "baseline"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "at", "main@{3s}"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "at", "alt"]), @"");
}

#[test]
fn a_document_has_every_array_and_what_stands_beside_it() {
    let environment = told();
    let document = environment.forge(["checkpoint", "at", "2026-02-01T12:00:20Z", "--json"]).json();
    let mut found = keys(&document);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "at",
            "checkpoint",
            "current_branch",
            "distance_seconds",
            "metrics",
            "revision",
            "schema",
            "session",
            "state"
        ]
    );
    let mut arrays = keys(&document["state"]);
    arrays.sort_unstable();
    assert_eq!(
        arrays,
        [
            "agents",
            "beliefs",
            "branches",
            "code",
            "commands",
            "dependencies",
            "evidence",
            "gaps",
            "hypotheses",
            "inferences",
            "items",
            "measurements",
            "messages",
            "notes",
            "outputs",
            "programs",
            "progress",
            "prompts",
            "tasks",
            "thread_messages",
            "verifications"
        ]
    );
    assert_eq!(document["at"], "2026-02-01T12:00:20Z");
    assert_eq!(document["current_branch"], "main");
    assert_eq!(document["distance_seconds"], 7.0);
    assert_eq!(document["session"]["name"], "tensor");
    assert_eq!(document["metrics"]["verifications_run"], 1);
    assert_eq!(ids(&document, "beliefs"), ["B1", "B2"]);
    assert!(!document.to_string().contains("recorded_at"));
    assert_snapshot!(document["state"]["hypotheses"][0], @"");
    assert_snapshot!(document["state"]["verifications"][0], @"");
    assert_snapshot!(document["state"]["branches"], @"");
}

#[test]
fn checkpoint_and_revision_are_null_before_the_first() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["measurement", "record", "loss", "0.5"]).success();
    let document = environment.forge(["checkpoint", "at", "now", "--json"]).json();
    assert_eq!((&document["checkpoint"], &document["revision"]), (&Value::Null, &Value::Null));
    assert_eq!(document["distance_seconds"], 1.0);
    assert_eq!(document["state"]["measurements"][0]["value"], 0.5);
}

#[test]
fn an_empty_session_says_so() {
    let environment = Environment::new();
    assert_eq!(environment.forge(["checkpoint", "at", "now"]).code, 3);
    environment.forge(["init", "--name", "s"]).success();
    assert_snapshot!(environment.forge(["checkpoint", "at", "now"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "at", "HEAD"]), @"");
    let document = environment.forge(["checkpoint", "at", "HEAD", "--json"]).json();
    assert_eq!((&document["at"], &document["revision"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_moment_is_named_in_many_ways() {
    let environment = told();
    let revision = |moment: &str| {
        let document = environment.forge(["checkpoint", "at", moment, "--json"]).json();
        let sequence = document["revision"]["sequence"].as_u64();
        (sequence, document["current_branch"].as_str().unwrap().to_owned())
    };
    let main = |sequence| (Some(sequence), "main".to_owned());
    assert_eq!(revision("#1"), main(1));
    assert_eq!(revision("2026-02-01 13:00:01"), main(1));
    let head = revision("HEAD");
    assert_eq!(revision("main"), head);
    assert_eq!(revision("HEAD~2").0, Some(6));
    assert_eq!(revision("baseline"), main(7));
    assert_eq!(revision("start"), main(1));
    assert_eq!(revision("alt").1, "alt");
    assert_eq!(revision("when H1 was active"), main(1));
    let id = environment.forge(["checkpoint", "list", "--tag", "kept", "--json"]);
    assert_eq!(id.code, 0);
    let text = environment.finished_raw(["checkpoint", "list", "--tag", "kept", "--json"]);
    let list: Value = serde_json::from_str(&text).unwrap();
    let id = list["checkpoints"][0]["id"].as_str().unwrap();
    assert_eq!(revision(&id[..12]), main(7));
    assert_eq!(revision(id), main(7));
}

#[test]
fn a_checkpoint_shown_is_the_one_that_was_named() {
    let environment = told();
    let document = environment.forge(["checkpoint", "show", "kept", "--json"]).json();
    assert_eq!(document["schema"], "forge.state/1");
    assert_snapshot!(document["checkpoint"], @"");
    assert_eq!(document["at"], document["checkpoint"]["time"]);
}

#[test]
fn kinds_select_and_full_tells_all_fields() {
    let environment = told();
    let args = ["checkpoint", "at", "HEAD", "--kind", "gap", "--kind", "notes", "--json"];
    let document = environment.forge(args).json();
    assert_eq!(keys(&document["state"]), ["gaps", "notes"]);
    assert_snapshot!(environment.forge(["checkpoint", "at", "HEAD", "--kind", "belief"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "at", "alt", "--kind", "belief", "--full"]), @"");
    let none = environment.forge(["checkpoint", "at", "HEAD", "--kind", "task"]).success();
    assert!(none.contains("nothing of that kind"), "{none}");
}

#[test]
fn long_texts_are_cut_with_their_hash_unless_all_is_wanted() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    let long = "é".repeat(3000);
    environment.forge(["note", "add", &long, "--id", "N1"]).success();
    let document = environment.forge(["checkpoint", "at", "HEAD", "--json"]).json();
    let text = &document["state"]["notes"][0]["description"];
    assert_eq!((text["bytes"].as_u64(), text["text"].as_str().unwrap().len()), (Some(6000), 4096));
    assert!(text["blob"].is_string());
    let document = environment.forge(["checkpoint", "at", "HEAD", "--json", "--full"]).json();
    assert_eq!(document["state"]["notes"][0]["description"], long);
}

#[test]
fn what_cannot_be_found_is_an_error_with_a_hint() {
    let environment = told();
    assert_snapshot!(environment.forge(["checkpoint", "at", "3 hours ago"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "at", "#99"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "show", "basline"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "at", "tomorrow"]), @"");
    environment.forge(["session", "new", "later"]).success();
    environment.forge(["note", "add", "x"]).success();
    assert_snapshot!(environment.forge(["checkpoint", "at", "2026-02-01 13:00:05"]), @"");
}

#[test]
fn a_changed_clock_is_noted() {
    let environment = Environment::new().with("TZ", "X-1Y-2,M1.5.0/2,M10.5.0/3");
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["note", "add", "x"]).success();
    let output = environment.forge(["checkpoint", "at", "@{2026-01-25 02:30}"]);
    assert!(output.stderr.contains("does not exist"), "{output}");
    assert_eq!(output.code, 3);
}

#[test]
fn what_was_recorded_later_can_be_left_out() {
    let environment = told();
    environment
        .forge(["measurement", "record", "loss", "1", "--at", "2026-02-01T12:00:05Z"])
        .success();
    let measured = |args: &[&str]| {
        let words = ["checkpoint", "at", "2026-02-01T12:00:06Z", "--json"];
        let mut command = environment.command(words.iter().chain(args));
        let document = environment.finished(&mut command).json();
        document["state"]["measurements"].as_array().unwrap().len()
    };
    assert_eq!((measured(&[]), measured(&["--as-recorded"])), (1, 0));
}

#[test]
fn a_narrow_screen_holds_and_nothing_drives_the_terminal() {
    let environment = tell(Environment::new().with("COLUMNS", "32"));
    let runs: [&[&str]; 8] = [
        &["checkpoint", "at", "HEAD"],
        &["checkpoint", "timeline", "--all"],
        &["checkpoint", "diff", "baseline", "HEAD"],
        &["checkpoint", "at", "HEAD", "--kind", "note"],
        &["note", "list"],
        &["log"],
        &["brief"],
        &["checkpoint", "restore", "#1", "--dry-run"],
    ];
    for run in runs {
        let text = environment.finished(&mut environment.command(run)).success();
        assert!(!text.contains('\u{1b}'), "{text}");
        if run[0] == "checkpoint" && run[1] == "timeline" {
            for line in text.lines() {
                assert!(unicode_width::UnicodeWidthStr::width(line) <= 32, "{line}");
            }
        }
    }
    assert_snapshot!(environment.forge(["note", "list"]), @"");
}

#[test]
fn a_reader_that_has_gone_is_no_error_here_either() {
    let environment = told();
    let runs: [&[&str]; 5] = [
        &["checkpoint", "at", "HEAD"],
        &["checkpoint", "at", "HEAD", "--json"],
        &["checkpoint", "timeline"],
        &["log"],
        &["why", "H1"],
    ];
    for args in runs {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = environment.command(args);
        let output = command.stdout(writer).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]), "{args:?}");
    }
}
