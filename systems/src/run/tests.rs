//! Tests of runs. `laws` compares random runs with a model; `story` reproduces a failure.

mod laws;
mod story;

use super::*;
use crate::RowImport;
use forge_store::model::Timestamp;
use forge_store::{Options, Redactor};
use std::sync::Arc;

pub(super) const ANY_START: i64 = 1_763_373_600_000_000;

pub(super) fn act(second: i64) -> WriteContext {
    WriteContext::asked("run record", Timestamp::from_micros(ANY_START + second * 1_000_000))
}

pub(super) fn step(item: &str, step: &str, output: &str, next: NextStep) -> StepRecord {
    StepRecord {
        item: item.to_owned(),
        step: step.to_owned(),
        output: output.to_owned(),
        next,
        ..StepRecord::default()
    }
}

pub(super) fn next_step(next: &str) -> NextStep {
    NextStep::Step(next.to_owned())
}

pub(super) fn run(store: &Store) -> WorkflowRun {
    WorkflowRun::open_or_create(store, &act(0), "nightly").unwrap()
}

#[test]
fn one_record_is_one_revision_and_makes_run_and_item() {
    let store = Store::in_memory().unwrap();
    let run = run(&store);
    let done = run.record(&act(1), &step("123", "3341", "Summary", next_step("3342"))).unwrap();
    assert_eq!(done.revision.map(|(sequence, _)| sequence), Some(1));
    assert_eq!(run.output("123", "3341").unwrap().content, "Summary");
    let item = run.item("123").unwrap();
    assert_eq!((item.current_step(), item.order, item.path.len()), (Some("3342"), Some(1), 1));
    let state = run.state().unwrap();
    assert_eq!((state.status, state.items, state.terminal), (RunStatus::Running, 1, 0));
    assert_eq!(state.started_at, Some(act(1).now));
    assert!(store.current_session().unwrap().is_none());
}

#[test]
fn the_same_record_again_changes_nothing_and_another_output_replaces_it() {
    let store = Store::in_memory().unwrap();
    let run = run(&store);
    let first = step("123", "3341", "Summary", next_step("3342"));
    run.record(&act(1), &first).unwrap();
    assert!(run.record(&act(2), &first).unwrap().is_unchanged());
    let better = step("123", "3341", "Better", NextStep::Unknown);
    run.record(&act(3), &better).unwrap();
    assert_eq!(run.item("123").unwrap().path, ["3341"]);
    assert_eq!(run.item("123").unwrap().next.as_deref(), Some("3342"));
    let outputs: Vec<Option<String>> = run
        .output_history("123", "3341")
        .unwrap()
        .into_iter()
        .map(|trace| trace.value.map(|output| output.content))
        .collect();
    assert_eq!(outputs, [Some("Better".to_owned()), Some("Summary".to_owned())]);
    assert_eq!(run.output("123", "3341").unwrap().recorded_at, act(3).now);
}

#[test]
fn a_run_is_finished_with_its_last_item_and_running_again_with_a_new_one() {
    let store = Store::in_memory().unwrap();
    let run = run(&store);
    let input: Value =
        serde_json::from_str(r#"[{"item":"a","job_description":"dev"},{"item":2}]"#).unwrap();
    for wrong in [r#"[{"item":"a"},{"name":"b"}]"#, r#"[{"item":"a"},{"item":""}]"#] {
        let wrong = serde_json::from_str(wrong).unwrap();
        let error = run.start(&act(1), Some(&wrong)).unwrap_err().to_string();
        assert!(error.contains("element 2 of the input"), "{error}");
    }
    run.start(&act(1), Some(&input)).unwrap();
    assert_eq!(run.state().unwrap().items, 2);
    assert_eq!(run.item("2").unwrap().current_step(), None);
    run.record(&act(2), &step("a", "s", "x", NextStep::Terminal)).unwrap();
    assert_eq!(run.state().unwrap().status, RunStatus::Running);
    run.record(&act(3), &step("2", "s", "x", NextStep::Terminal)).unwrap();
    let ended = run.state().unwrap();
    assert_eq!((ended.status, ended.ended_at), (RunStatus::Finished, Some(act(3).now)));
    run.record(&act(4), &step("3", "s", "x", next_step("t"))).unwrap();
    let again = run.state().unwrap();
    assert_eq!((again.status, again.ended_at, again.items), (RunStatus::Running, None, 3));
    run.end(&act(5), RunStatus::Failed, Some("no power")).unwrap();
    assert_eq!(run.state().unwrap().error.as_deref(), Some("no power"));
    assert!(run.end(&act(6), RunStatus::Failed, Some("no power")).unwrap().is_unchanged());
    run.start(&act(7), None).unwrap();
    let state = run.state().unwrap();
    assert_eq!((state.status, state.error, state.input), (RunStatus::Running, None, Some(input)));
}

#[test]
fn the_step_of_a_forgotten_output_is_next_and_the_history_keeps_the_output() {
    let store = Store::in_memory().unwrap();
    let run = run(&store);
    run.record(&act(1), &step("a", "1", "bad", next_step("2"))).unwrap();
    run.record(&act(2), &step("a", "2", "worse", NextStep::Terminal)).unwrap();
    let wrong = run.forget(&act(3), "a", &["1".to_owned(), "9".to_owned()]).unwrap_err();
    assert_eq!(wrong.to_string(), "there is no output '9' of the item 'a' in the run 'nightly'");
    run.forget(&act(3), "a", &["2".to_owned(), "1".to_owned()]).unwrap();
    let item = run.item("a").unwrap();
    assert_eq!((item.current_step(), item.path.len(), item.is_active()), (Some("1"), 0, true));
    assert_eq!(run.state().unwrap().status, RunStatus::Running);
    assert!(!run.exists("a", "1").unwrap());
    let history = run.output_history("a", "1").unwrap();
    assert_eq!(history.len(), 2);
    assert!(history[0].value.is_none());
    assert_eq!(history[1].value.as_ref().map(|output| output.content.as_str()), Some("bad"));
    let undone = run.session().undo(&act(4), None).unwrap();
    assert!(undone.revision.is_some());
    assert_eq!(run.load("a").unwrap().outputs.len(), 2);
}

#[test]
fn the_run_of_an_item_is_the_one_that_last_recorded_it() {
    let store = Store::in_memory().unwrap();
    for (second, name) in [(1, "monday"), (2, "tuesday")] {
        let run = WorkflowRun::open_or_create(&store, &act(0), name).unwrap();
        run.record(&act(second), &step("a", "1", name, next_step("2"))).unwrap();
    }
    let monday = WorkflowRun::open(&store, "monday").unwrap();
    monday.record(&act(9), &step("b", "1", "later", next_step("2"))).unwrap();
    assert_eq!(WorkflowRun::of_item(&store, "a").unwrap().key(), "tuesday");
    monday.record(&act(10), &step("a", "2", "again", next_step("3"))).unwrap();
    assert_eq!(WorkflowRun::of_item(&store, "a").unwrap().key(), "monday");
    let unknown = WorkflowRun::of_item(&store, "z").map(|_| ()).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no run with the item 'z'");
}

#[test]
fn items_are_found_by_step_and_order_and_runs_by_what_is_left() {
    let store = Store::in_memory().unwrap();
    let run = run(&store);
    let wave = ["a", "b", "c"].map(|item| step(item, "1", "x", next_step("2")));
    let done = run.record_all(&act(1), &wave).unwrap();
    assert_eq!(done.revision.map(|(sequence, _)| sequence), Some(1));
    run.record(&act(2), &StepRecord { order: Some(7), ..step("b", "2", "y", next_step("3")) })
        .unwrap();
    run.record(&act(3), &step("c", "2", "y", NextStep::Terminal)).unwrap();
    let names = |items: Vec<RunItem>| items.into_iter().map(|item| item.item).collect::<Vec<_>>();
    assert_eq!(names(run.at_step("2").unwrap()), ["a"]);
    assert_eq!(names(run.at_step("3").unwrap()), ["b"]);
    assert_eq!(names(run.at_order(7).unwrap()), ["b"]);
    assert_eq!(names(run.at_order(1).unwrap()), ["a"]);
    let hour = 3_600_000_000;
    let late = act(3602).now;
    let keys = |found: Vec<RunSummary>| found.into_iter().map(|one| one.key).collect::<Vec<_>>();
    assert_eq!(keys(WorkflowRun::incomplete(&store, late, hour).unwrap()), ["nightly"]);
    assert_eq!(keys(WorkflowRun::incomplete(&store, act(3600).now, hour).unwrap()), [""; 0]);
    run.end(&act(4), RunStatus::Finished, None).unwrap();
    assert_eq!(keys(WorkflowRun::incomplete(&store, late, hour).unwrap()), [""; 0]);
}

#[test]
fn invalid_names_are_refused_and_change_nothing() {
    let store = Store::in_memory().unwrap();
    let run = run(&store);
    let long = "x".repeat(150);
    for wrong in [
        step("", "1", "x", NextStep::Unknown),
        step("a", "", "x", NextStep::Unknown),
        step("a\n", "1", "x", NextStep::Unknown),
        step(&long, &long, "x", NextStep::Unknown),
        step("a", "1", "x", next_step("")),
    ] {
        let error = run.record(&act(1), &wrong).unwrap_err();
        assert_eq!(error.kind(), forge_store::error::ErrorKind::Invalid, "{error}");
    }
    assert!(run.session().head().unwrap().revision().is_none());
    run.record(&act(1), &step("a/b", "%2F", "x", next_step("c/d"))).unwrap();
    assert_eq!(run.load("a/b").unwrap().outputs[0].step, "%2F");
    assert_eq!(run.resume().unwrap().items[0].outputs.len(), 1);
}

fn row(number: i64, name: &str, outputs: &[(&str, &str)]) -> CheckpointRow {
    let others = outputs.iter().map(|(step, output)| ((*step).to_owned(), (*output).to_owned()));
    let own = outputs.iter().find(|(step, _)| *step == name).unwrap().1;
    CheckpointRow { number, record: step("a", name, own, next_step("9")), others: others.collect() }
}

#[test]
fn a_row_is_imported_once_at_its_time_with_all_outputs() {
    let store = Store::in_memory().unwrap();
    let import = |second, row: &CheckpointRow| {
        WorkflowRun::import_row(&store, &act(second), "nightly", row).unwrap()
    };
    // There is no row of step 1: only the other rows have its output.
    let rows = [
        row(4, "2", &[("1", "one"), ("2", "two")]),
        row(7, "3", &[("1", "one"), ("2", "two"), ("3", "three")]),
        row(8, "2", &[("1", "uno"), ("2", "again"), ("3", "three")]),
    ];
    for turn in [RowImport::Saved, RowImport::Known] {
        for (second, row) in (10..).zip(&rows) {
            assert_eq!(import(second, row), turn);
        }
    }
    assert_eq!(import(1, &row(5, "1", &[("1", "one")])), RowImport::Older);
    let run = WorkflowRun::open(&store, "nightly").unwrap();
    let item = run.load("a").unwrap();
    assert_eq!(item.item.path, ["1", "2", "3", "1", "2"]);
    assert_eq!(item.item.rows, [4, 7, 8]);
    assert_eq!((item.item.current_step(), item.item.recorded_at), (Some("9"), Some(act(12).now)));
    let outputs: Vec<&str> = item.outputs.iter().map(|output| &*output.content).collect();
    assert_eq!(outputs, ["uno", "again", "three"]);
    assert_eq!(run.state().unwrap().started_at, Some(act(10).now));
    assert_eq!(run.session().head().unwrap().revision(), Some(3), "a revision for each row");
    let before = run.session().at("#1", act(99).now).unwrap();
    assert_eq!(run.output_at(&before, "a", "2").unwrap().content, "two");
}

#[test]
fn a_redacted_output_is_recognised_in_a_later_row() {
    let redaction = Options::default().redaction(Arc::new(Redactor::new()));
    let store = Store::in_memory_with(redaction).unwrap();
    let secret = "the key is AKIAQ3EGTR5VN7WZLK2P";
    for row in [row(1, "1", &[("1", secret)]), row(2, "2", &[("1", secret), ("2", "x")])] {
        let done = WorkflowRun::import_row(&store, &act(row.number), "nightly", &row).unwrap();
        assert_eq!(done, RowImport::Saved);
    }
    let item = WorkflowRun::open(&store, "nightly").unwrap().load("a").unwrap();
    assert_eq!(item.item.path, ["1", "2"]);
    assert!(!item.outputs[0].content.contains("AKIA"), "{}", item.outputs[0].content);
}
