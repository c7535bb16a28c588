//! `forge progress` on the command line: exit codes, JSON, one long-running process.

use crate::environment::Environment;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment
}

fn save(environment: &Environment, execution: &str, document: &Value) {
    environment.write("project/d.json", &document.to_string());
    let args = ["progress", "save", "--review", "r", "--execution", execution, "d.json"];
    environment.forge(args).success();
}

fn resume(environment: &Environment, more: &[&str]) -> (i32, Value) {
    let args = ["progress", "resume", "--review", "r", "--stage", "searching", "--json"];
    let output = environment.finished(environment.command(args).args(more));
    (output.code, serde_json::from_str(&output.stdout).unwrap())
}

#[test]
fn resume_prints_the_next_position_and_nothing_to_resume_is_no_error() {
    let environment = project();
    let (code, nothing) = resume(&environment, &[]);
    assert_eq!((code, &nothing["resume"]), (0, &json!(false)));
    assert_eq!(nothing["reason"], "nothing is saved of the review 'r'");
    save(
        &environment,
        "e1",
        &json!({
            "stage": "searching", "batch_info": {"current_batch": 8, "total_batches": 20, "batch_size": 500},
            "progress": {"items_processed": 4000, "items_total": 10000},
            "context": {"webenv": "MCID", "query_key": "1"},
        }),
    );
    let (code, found) = resume(&environment, &[]);
    assert_eq!(code, 0);
    assert_eq!(
        found,
        json!({
            "schema": "forge.progress.resume/1", "resume": true, "reason": null, "mode": "paginated",
            "next_batch": 9, "after_id": null,
            "page": {"webenv": "MCID", "query_key": "1", "offset": 4000, "size": 500},
            "processed": 4000, "remaining": 6000, "failed_ids": [], "warnings": [], "refusals": [],
            "from_execution": "e1",
        })
    );
    save(
        &environment,
        "e2",
        &json!({"stage": "searching", "progress": {"items_processed": 9, "items_total": 3}}),
    );
    let (code, refused) = resume(&environment, &[]);
    assert_eq!((code, &refused["resume"]), (1, &json!(false)));
    assert_eq!(refused["refusals"][0]["kind"], "invalid_counts");
    let (code, forced) = resume(&environment, &["--force"]);
    assert_eq!((code, &forced["resume"], &forced["processed"]), (0, &json!(true), &json!(9)));
    let (code, first) = resume(&environment, &["--execution", "e1"]);
    assert_eq!((code, &first["from_execution"]), (0, &json!("e1")));
    assert_eq!(
        environment.forge(["progress", "validate", "--review", "r", "--execution", "e2"]).code,
        1
    );
    assert_eq!(
        environment.forge(["progress", "validate", "--review", "r", "--execution", "e1"]).code,
        0
    );
}

#[test]
fn one_process_saves_line_by_line_and_answers_when_each_is_durable() {
    let environment = project();
    let args = [
        "progress", "save", "--review", "r", "--execution", "e1", "--stage", "searching", "-",
        "--json",
    ];
    let mut child = environment
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for done in 1..=3 {
        writeln!(input, "{}", json!({"progress": {"items_processed": done, "items_total": 9}}))
            .unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["items_processed"], done);
        // Another process sees it while this one continues.
        let shown = environment.forge(["progress", "show", "--review", "r", "--json"]).json();
        assert_eq!(shown["items_processed"], done);
    }
    writeln!(input, "{}", json!({"item_done": "d1"})).unwrap();
    let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
    assert_eq!((&answer["id"], &answer["changed"]), (&json!("d1"), &json!(true)));
    writeln!(input, "{}", json!({"progress": "many"})).unwrap();
    drop(input);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let error = String::from_utf8(ended.stderr).unwrap();
    assert!(error.contains("document 5") && error.contains("those before it are saved"), "{error}");
    let done = ["progress", "done", "d1", "--review", "r", "--stage", "searching"];
    assert_eq!(environment.forge(done).code, 0);
    let history = ["progress", "show", "--review", "r", "--history", "--json"];
    assert_eq!(environment.forge(history).json()["saved"].as_array().unwrap().len(), 3);
}

#[test]
fn items_are_reported_as_done_or_failed_and_a_clean_up_can_be_undone() {
    let environment = project();
    let stage = ["--review", "r", "--execution", "e1", "--stage", "searching"];
    let report = |more: &[&str]| {
        let args = ["progress", "save"].into_iter().chain(stage).chain(more.iter().copied());
        environment.finished(&mut environment.command(args))
    };
    assert_eq!(report(&["--item-done", "a", "--item-done", "b"]).success().lines().count(), 2);
    assert!(report(&["--item-done", "a"]).success().contains("already"));
    report(&["--item-failed", "c", "--class", "rate_limit"]).success();
    assert_eq!(report(&["--item-failed", "c", "--class", "luck"]).code, 2);
    assert_eq!(report(&[]).code, 2);
    save(
        &environment,
        "e1",
        &json!({"stage": "searching", "progress": {"items_processed": 3, "items_total": 3}}),
    );
    let failed = environment.forge(["progress", "failed", "--review", "r", "--json"]).json();
    assert_eq!(
        (&failed["items"][0]["id"], &failed["items"][0]["due"]),
        (&json!("c"), &json!(false))
    );
    let clean = ["progress", "clean", "--older-than", "0s", "--json"];
    assert_eq!(environment.forge(clean).json()["left"][0]["kept"], "errors");
    report(&["--item-done", "c"]).success();
    let dry = environment
        .forge(["progress", "clean", "--older-than", "0s", "--dry-run", "--json"])
        .json();
    assert_eq!((&dry["dry_run"], &dry["removed"][0]["execution"]), (&json!(true), &json!("e1")));
    assert_eq!(environment.forge(clean).json()["removed"][0]["session"], "r/e1");
    assert_eq!(environment.forge(["progress", "show", "--review", "r"]).code, 3);
    for _ in 0..2 {
        environment.forge(["undo", "--session", "r/e1"]).success();
    }
    environment.forge(["progress", "show", "--review", "r"]).success();
}

/// Regression: a document that was not saved yet was never valid, because it had no time.
#[test]
fn a_document_is_validated_before_it_is_saved() {
    let environment = project();
    let validate = |done: u32| {
        let counts = json!({"items_processed": done, "items_total": 9});
        let document = json!({"stage": "searching", "progress": counts});
        environment.write("project/d.json", &document.to_string());
        environment.forge(["progress", "validate", "d.json"])
    };
    assert_eq!(validate(4).success(), "d.json is valid\n");
    assert_eq!(validate(10).code, 1);
}

/// Regression: thousands of failed items were one line of the answer.
#[test]
fn resume_names_the_first_failed_items() {
    let environment = project();
    let failed: Vec<String> = (0..25).map(|number| format!("f{number:02}")).collect();
    let counts = json!({"items_processed": 25, "items_total": 900});
    let errors = json!({"failed_item_ids": failed});
    save(
        &environment,
        "e1",
        &json!({"stage": "searching", "progress": counts, "error_info": errors}),
    );
    let text = ["progress", "resume", "--review", "r", "--stage", "searching"];
    let text = environment.forge(text).success();
    assert!(text.contains("f18, f19 and 5 more\n"), "{text}");
    assert_eq!(resume(&environment, &[]).1["failed_ids"].as_array().unwrap().len(), 25);
}

/// Regression: `list` said that no progress was saved, and `failed` found no execution, until a
/// document was saved.
#[test]
fn items_are_listed_before_a_document_is_saved() {
    let environment = project();
    let report = |stage: &str, option: &str, item: &str| {
        let args = ["progress", "save", "--review", "r", "--execution", "e", "--stage", stage];
        environment.finished(environment.command(args).args([option, item])).success();
    };
    report("screening", "--item-done", "d8");
    report("screening", "--item-failed", "d9");
    let list = || environment.forge(["progress", "list", "--json"]).json()["executions"].clone();
    let line = |stage: Value| {
        json!([{
            "review": "r", "execution": "e", "stage": stage, "items_processed": null,
            "items_total": null, "error_count": null, "updated_at": null,
        }])
    };
    assert_eq!(list(), line(json!("screening")));
    // Regression: the text counted 0 errors, although an item had failed.
    let text = environment.forge(["progress", "list"]).success();
    let words: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(words, ["r", "e", "screening", "-", "-"], "{text}");
    let failed = |more: &[&str]| {
        let args = ["progress", "failed", "--review", "r", "--json"];
        environment.finished(environment.command(args).args(more))
    };
    for more in [&[] as &[&str], &["--execution", "e"], &["--stage", "screening"]] {
        let found = failed(more).json();
        assert_eq!(
            (&found["stage"], &found["items"][0]["id"]),
            (&json!("screening"), &json!("d9"))
        );
    }
    assert_eq!(failed(&["--stage", "extraction"]).code, 3);
    // Regression: `show` said that there is no progress, and `clean` did not name the execution.
    let shown = environment.forge(["progress", "show", "--review", "r"]);
    assert_eq!(shown.code, 3);
    assert!(shown.stderr.contains("there is no saved document of the review 'r'"), "{shown}");
    let clean = environment.forge(["progress", "clean", "--older-than", "0s"]).success();
    assert_eq!(clean, "Nothing to remove\nKept r e (unfinished)\n");
    // Items of several stages have no common stage.
    report("extraction", "--item-done", "d8");
    assert_eq!(list(), line(Value::Null));
    assert_eq!(failed(&[]).code, 2);
    assert_eq!(failed(&["--stage", "extraction"]).json()["items"], json!([]));
}

/// Regression: an item without a stage, from the flag or a saved document, was refused only after
/// an execution had been created, which stayed empty.
#[test]
fn an_item_without_a_stage_is_refused_before_an_execution_is_created() {
    let environment = project();
    let sessions = || {
        let list = environment.forge(["session", "list", "--all", "--json"]).json();
        list["sessions"].as_array().unwrap().len()
    };
    let before = sessions();
    let line = "echo '{\"item_done\":\"a\"}' | forge progress save --review r --execution e1 -";
    let refused = environment.finished(&mut environment.shell(line));
    assert_eq!(refused.code, 3);
    assert_eq!(sessions(), before);
    let flag = ["progress", "save", "--review", "r", "--execution", "e1", "--item-done", "a"];
    assert_eq!(environment.forge(flag).code, 3);
    assert_eq!(sessions(), before);
}

/// Regression: a report with a number as its id replaced the saved document, of two reports in one
/// document the second was lost, and the stage of a report was ignored.
#[test]
fn a_report_about_an_item_never_replaces_the_document() {
    let environment = project();
    let saved = json!({"stage": "searching", "progress": {"items_processed": 4, "items_total": 9}});
    save(&environment, "e1", &saved);
    let stream = |line: &str| {
        let command = format!("echo '{line}' | forge progress save --review r --execution e1 -");
        environment.finished(&mut environment.shell(&command))
    };
    for (line, expected) in [
        (r#"{"item_done":7,"stage":"searching"}"#, "'item_done' must be a text"),
        (r#"{"item_failed":["a"],"stage":"searching"}"#, "'item_failed' must be a text"),
        (r#"{"item_failed":"a","error":429}"#, "'error' must be a text"),
        (r#"{"item_done":"a","item_failed":"b"}"#, "in two documents"),
    ] {
        let refused = stream(line);
        assert!(refused.code == 2 && refused.stdout.contains(expected), "{line}: {refused}");
    }
    stream(r#"{"item_done":"a","stage":"extraction"}"#).success();
    let code = |stage: &str| {
        environment.forge(["progress", "done", "a", "--review", "r", "--stage", stage]).code
    };
    assert_eq!((code("extraction"), code("searching")), (0, 1));
    let shown = environment.forge(["progress", "show", "--review", "r", "--json"]).json();
    assert_eq!((&shown["stage"], &shown["items_processed"]), (&json!("searching"), &json!(4)));
}

#[test]
fn an_invalid_document_creates_nothing() {
    let environment = project();
    for (text, expected) in [
        ("{", "is not a JSON document"),
        (r#"{"stage":"a","progress":{"items_total":-1}}"#, "a whole number from 0 on"),
        ("{}", "names no stage"),
    ] {
        environment.write("project/d.json", text);
        let output =
            environment.forge(["progress", "save", "--review", "r", "--execution", "e", "d.json"]);
        assert!(output.code == 2 && output.stderr.contains(expected), "{output}");
    }
    let list = environment.forge(["progress", "list", "--json"]).json();
    assert_eq!(list["executions"], json!([]));
    let stages = environment.forge(["progress", "stages", "--preset", "slr", "--json"]).json();
    assert_eq!(stages["stages"].as_array().unwrap().len(), 11);
}
