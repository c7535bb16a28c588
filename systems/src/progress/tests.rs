//! Tests of progress. `examples` has documents in the form in which pipelines write them.

mod examples;

use super::*;
use crate::RowImport;
use forge_store::model::Value;
use proptest::prelude::*;

const START: i64 = 1_769_350_000_000_000;
const HOUR: i64 = 3_600;

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(START + second * 1_000_000)
}

fn act(second: i64) -> WriteContext {
    WriteContext::asked("progress save", at(second))
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn document(text: &str) -> ProgressDocument {
    ProgressDocument::read(value(text), None).unwrap()
}

/// Returns a document of the stage `screening_ta` with these counts.
fn counts(processed: i64, total: i64, errors: i64) -> ProgressDocument {
    document(&format!(
        r#"{{"stage":"screening_ta","progress":{{"items_processed":{processed},"items_total":{total}}},"error_info":{{"error_count":{errors}}}}}"#
    ))
}

/// Returns the stored form of a document that is saved at this second.
fn saved(document: &ProgressDocument, second: i64) -> ProgressDocument {
    document.with_save_times("r1", "e1", None, at(second))
}

fn execution(store: &Store, name: &str) -> PipelineExecution {
    PipelineExecution::open_or_create(store, &act(0), "r1", name).unwrap()
}

/// Returns the kinds of the refusals, and of the warnings.
fn fault_kinds(
    document: &ProgressDocument,
    second: i64,
) -> (Vec<ProgressFaultKind>, Vec<ProgressFaultKind>) {
    let found = validate(document, at(second));
    let kinds = |faults: Vec<ProgressFault>| faults.into_iter().map(|fault| fault.kind).collect();
    (kinds(found.refusals), kinds(found.warnings))
}

#[test]
fn a_save_replaces_the_one_before_and_keeps_it_in_the_history() {
    let store = Store::in_memory().unwrap();
    let execution = execution(&store, "e1");
    for (second, done) in [(1, 10), (2, 20), (3, 30)] {
        execution.save(&act(second), &counts(done, 100, 0)).unwrap();
    }
    let now = execution.document().unwrap().unwrap();
    assert_eq!(now.counts().items_processed, Some(30));
    assert_eq!((now.created_at(), now.updated_at()), (Some(at(1)), Some(at(3))));
    let earlier: Vec<Option<i64>> = execution
        .history()
        .unwrap()
        .into_iter()
        .map(|saved| saved.document.unwrap().counts().items_processed)
        .collect();
    assert_eq!(earlier, [Some(30), Some(20), Some(10)]);
    assert_eq!(PipelineExecution::list(&store, Some("r1")).unwrap().len(), 1);
    assert!(store.current_session().unwrap().is_none());
}

#[test]
fn a_row_of_a_table_is_read_like_a_document() {
    let row = value(
        r#"{"workflow_stage":"extraction","checkpoint_data":{"context":{"model":"m"}},
            "items_processed":5,"items_total":9,"last_processed_id":"d5","error_count":0}"#,
    );
    let document = ProgressDocument::read(row, Some("extraction")).unwrap();
    assert_eq!(document.counts().items_processed, Some(5));
    assert_eq!(document.last_processed(), Some("d5"));
    assert_eq!(document.context("model"), Some("m"));
    for (text, stage, message) in [
        ("[]", None, "progress is an object with fields"),
        (r#"{"stage":"a"}"#, Some("b"), "its stage is 'a', not 'b'"),
        ("{}", None, "it names no stage: add a field 'stage', or give '--stage'"),
        (
            r#"{"progress":{"items_total":-1}}"#,
            Some("a"),
            "'progress.items_total' must be a whole number from 0 on",
        ),
        (r#"{"progress":3,"items_total":1}"#, Some("a"), "'progress' must be an object"),
        (r#"{"updated_at":"yesterday"}"#, Some("a"), "'updated_at' must be an RFC 3339 time"),
    ] {
        assert_eq!(ProgressDocument::read(value(text), stage).unwrap_err().to_string(), message);
    }
}

#[test]
fn each_fault_of_saved_progress_refuses_or_warns() {
    let none = (vec![], vec![]);
    assert_eq!(
        fault_kinds(&saved(&counts(50, 100, 5), 0), 1),
        none,
        "an error rate of 10 % is allowed"
    );
    assert_eq!(
        fault_kinds(&saved(&counts(50, 100, 6), 0), 1),
        (vec![], vec![ProgressFaultKind::ErrorRate])
    );
    assert_eq!(fault_kinds(&saved(&counts(0, 100, 1), 0), 1).1, [ProgressFaultKind::ErrorRate]);
    assert_eq!(
        fault_kinds(&saved(&counts(101, 100, 0), 0), 1).0,
        [ProgressFaultKind::InvalidCounts]
    );
    let token = document(r#"{"stage":"searching","context":{"webenv":"M"}}"#);
    assert_eq!(fault_kinds(&saved(&token, 0), 24 * HOUR), none);
    assert_eq!(
        fault_kinds(&saved(&token, 0), 24 * HOUR + 1).0,
        [ProgressFaultKind::ExpiredContext]
    );
    let declared =
        document(r#"{"stage":"a","error_info":{"recoverable":false,"last_error":"no key"}}"#);
    assert_eq!(fault_kinds(&saved(&declared, 0), 1).0, [ProgressFaultKind::NotRecoverable]);
    let unauthorized = document(r#"{"stage":"a","error_info":{"last_error":"401 Unauthorized"}}"#);
    assert_eq!(fault_kinds(&saved(&unauthorized, 0), 1).0, [ProgressFaultKind::NotRecoverable]);
    let recoverable =
        document(r#"{"stage":"a","error_info":{"last_error":"401","recoverable":true}}"#);
    assert_eq!(fault_kinds(&saved(&recoverable, 0), 1), none);
    let corrupt = ProgressDocument::stored(value(r#"{"progress":"many"}"#));
    assert_eq!(fault_kinds(&corrupt, 0).0, [ProgressFaultKind::Corrupt; 3]);
    assert_eq!(
        fault_kinds(&saved(&counts(1, 2, 0), 9), 8).0,
        [ProgressFaultKind::Corrupt],
        "saved after the present time"
    );
}

#[test]
fn refused_progress_is_resumed_only_by_force() {
    let store = Store::in_memory().unwrap();
    let one = execution(&store, "e1");
    one.save(&act(1), &counts(101, 100, 0)).unwrap();
    let decide = |force| resume(&store, "r1", "screening_ta", None, at(2), force).unwrap();
    let ResumeDecision::Refused { refusals, .. } = decide(false) else {
        panic!("{:?}", decide(false))
    };
    assert_eq!(refusals[0].message, "items_processed (101) exceeds items_total (100)");
    let ResumeDecision::Go(point) = decide(true) else { panic!("{:?}", decide(true)) };
    let last = point.warnings.last().map(String::as_str);
    assert_eq!(last, Some("items_processed (101) exceeds items_total (100)"));
    assert_eq!(point.remaining, Some(0));
}

#[test]
fn the_execution_saved_last_at_the_stage_is_resumed() {
    let store = Store::in_memory().unwrap();
    let nothing = |stage: &str| match resume(&store, "r1", stage, None, at(90), false).unwrap() {
        ResumeDecision::Nothing { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(nothing("screening_ta"), "nothing is saved of the review 'r1'");
    execution(&store, "old").save(&act(1), &counts(10, 100, 0)).unwrap();
    execution(&store, "new").save(&act(2), &counts(20, 100, 0)).unwrap();
    let other = PipelineExecution::open_or_create(&store, &act(3), "r2", "x").unwrap();
    other.save(&act(3), &counts(99, 100, 0)).unwrap();
    let go = |name: Option<&str>| match resume(&store, "r1", "screening_ta", name, at(90), false)
        .unwrap()
    {
        ResumeDecision::Go(point) => (point.from_execution, point.processed),
        other => panic!("{other:?}"),
    };
    assert_eq!(go(None), ("new".to_owned(), 20));
    assert_eq!(go(Some("old")), ("old".to_owned(), 10));
    assert_eq!(
        nothing("extraction"),
        "nothing is saved of the stage 'extraction': the execution 'new' is at 'screening_ta'"
    );
    execution(&store, "new").save(&act(4), &counts(100, 100, 0)).unwrap();
    assert_eq!(nothing("screening_ta"), "all 100 items are processed");
}

#[test]
fn a_named_execution_with_nothing_to_resume_is_named_in_the_reason() {
    let store = Store::in_memory().unwrap();
    execution(&store, "old").save(&act(1), &counts(10, 100, 0)).unwrap();
    let other = document(r#"{"stage":"deduplication"}"#);
    execution(&store, "new").save(&act(2), &other).unwrap();
    execution(&store, "empty");
    let reason =
        |name: &str| match resume(&store, "r1", "extraction", Some(name), at(90), false).unwrap() {
            ResumeDecision::Nothing { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
    assert_eq!(
        reason("old"),
        "nothing is saved of the stage 'extraction': the execution 'old' is at 'screening_ta'"
    );
    assert_eq!(reason("empty"), "nothing is saved of the execution 'empty' of the review 'r1'");
}

/// Regression: where only items were reported, the reason was that nothing is saved.
#[test]
fn where_only_items_were_reported_the_reason_names_them() {
    let store = Store::in_memory().unwrap();
    execution(&store, "empty");
    execution(&store, "e1").report(&act(1), "extraction", "d1", &ItemReport::Done).unwrap();
    let reason = |name: Option<&str>| match resume(&store, "r1", "extraction", name, at(9), false)
        .unwrap()
    {
        ResumeDecision::Nothing { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    let done = "only items were reported: skip those that 'forge progress done' finds";
    assert_eq!(
        reason(Some("e1")),
        format!("no document is saved of the execution 'e1' of the review 'r1', {done}")
    );
    assert_eq!(reason(None), format!("no document is saved of the review 'r1', {done}"));
    assert_eq!(
        reason(Some("empty")),
        "nothing is saved of the execution 'empty' of the review 'r1'"
    );
}

#[test]
fn items_reported_between_saves_are_done_once_and_failed_ones_wait() {
    let store = Store::in_memory().unwrap();
    let one = execution(&store, "e1");
    one.save(&act(1), &document(
        r#"{"stage":"extraction","error_info":{"last_error":"LLM timeout","failed_item_ids":["a","b"]}}"#,
    )).unwrap();
    assert!(!one.is_done("extraction", "d1").unwrap());
    one.report(&act(2), "extraction", "d1", &ItemReport::Done).unwrap();
    assert!(one.report(&act(3), "extraction", "d1", &ItemReport::Done).unwrap().is_unchanged());
    assert_eq!(one.done_at("extraction", "d1").unwrap(), at(2));
    assert!(!one.is_done("screening_ft", "d1").unwrap(), "it is done only at the reported stage");
    let failed = |class, error: &str| ItemReport::Failed { class, error: Some(error.to_owned()) };
    one.report(&act(4), "extraction", "a", &ItemReport::Done).unwrap();
    one.report(&act(4), "extraction", "c", &failed(None, "read timed out")).unwrap();
    one.report(&act(5), "extraction", "c", &failed(None, "read timed out")).unwrap();
    let corrupted = failed(Some(FailureClass::CorruptedData), "no PDF");
    one.report(&act(6), "extraction", "d", &corrupted).unwrap();
    let waiting = one.failed("extraction").unwrap();
    let found: Vec<(&str, i64, bool)> =
        waiting.iter().map(|one| (one.id.as_str(), one.attempts, one.is_retriable())).collect();
    assert_eq!(found, [("b", 1, true), ("c", 2, true), ("d", 1, false)]);
    let next: Vec<Option<Timestamp>> =
        waiting.iter().map(|one| one.retry_at(&RetryBackoff::default())).collect();
    assert_eq!(next, [Some(at(31)), Some(at(65)), None]);
    let ResumeDecision::Go(point) = resume(&store, "r1", "extraction", None, at(9), false).unwrap()
    else {
        panic!("nothing to resume")
    };
    assert_eq!(point.failed_ids, ["b", "c", "d"]);
}

#[test]
fn only_old_finished_executions_without_errors_are_removed_and_undo_restores_them() {
    let store = Store::in_memory().unwrap();
    let month = 30 * 24 * HOUR;
    for (name, second, document) in [
        ("good", 0, counts(100, 100, 0)),
        ("half", 0, counts(99, 100, 0)),
        ("bad", 0, counts(100, 100, 1)),
        ("edge", 1, counts(100, 100, 0)),
        ("more", 0, counts(101, 100, 0)),
        ("unknown", 0, document(r#"{"stage":"a","progress":{"items_processed":5}}"#)),
    ] {
        execution(&store, name).save(&act(second), &document).unwrap();
    }
    let failed = execution(&store, "failed");
    failed.save(&act(0), &counts(100, 100, 0)).unwrap();
    let failure = ItemReport::Failed { class: None, error: None };
    failed.report(&act(0), "screening_ta", "x", &failure).unwrap();
    let late = act(month + 1);
    let clean_up = |act: Option<&WriteContext>| -> Vec<(String, Option<&str>)> {
        let mut found: Vec<_> = clean(&store, act, None, late.now, KEEP_MICROS)
            .unwrap()
            .into_iter()
            .map(|one| (one.execution, one.kept.map(KeepReason::word)))
            .collect();
        found.sort();
        found
    };
    let expected = [
        ("bad", Some("errors")),
        ("edge", Some("recent")),
        ("failed", Some("errors")),
        ("good", None),
        ("half", Some("unfinished")),
        ("more", Some("errors")),
        ("unknown", Some("unfinished")),
    ];
    let expected: Vec<_> = expected.map(|(name, kept)| (name.to_owned(), kept)).into();
    assert_eq!(clean_up(None), expected);
    assert_eq!(clean_up(None), expected, "without a context nothing is removed");
    assert_eq!(clean_up(Some(&late)), expected);
    let good = PipelineExecution::open(&store, "r1", "good").unwrap();
    assert!(good.document().unwrap().is_none());
    assert_eq!(clean_up(None).len(), 6);
    let revisions = |session: &Session| session.records(0, 99).unwrap().len();
    assert_eq!(revisions(good.session()), 1, "its history was removed, too");
    good.session().undo(&act(month + 2), None).unwrap();
    assert_eq!(revisions(good.session()), 2, "undo restored it");
    good.session().undo(&act(month + 3), None).unwrap();
    assert_eq!(good.document().unwrap().unwrap().counts().items_total, Some(100));
}

proptest! {
    /// After any sequence of saves, the last document is current, every earlier one is in the
    /// history, times never decrease, and the resume point follows from the last document alone.
    #[test]
    fn all_saves_of_progress_are_kept_and_the_last_one_is_resumed(
        saves in proptest::collection::vec((0..120_i64, 0..100_i64, 0..20_i64, 0..3_usize), 1..12),
    ) {
        let store = Store::in_memory().unwrap();
        let mut last = std::collections::BTreeMap::new();
        for (second, (processed, total, errors, which)) in (1..).zip(&saves) {
            let name = ["a", "b", "c"][*which];
            let document = counts(*processed, *total, *errors);
            execution(&store, name).save(&act(second), &document).unwrap();
            last.insert(name, (*processed, *total, *errors, second));
        }
        for (name, (processed, total, errors, second)) in &last {
            let one = PipelineExecution::open(&store, "r1", name).unwrap();
            let stored = one.document().unwrap().unwrap();
            prop_assert_eq!(stored.counts().items_processed, Some(*processed));
            prop_assert_eq!(stored.updated_at(), Some(at(*second)));
            let history = one.history().unwrap();
            let count = saves.iter().filter(|save| ["a", "b", "c"][save.3] == *name).count();
            prop_assert_eq!(history.len(), count);
            prop_assert!(history.is_sorted_by(|newer, older| newer.sequence > older.sequence));
            let found = validate(&stored, at(1000));
            prop_assert_eq!(found.is_valid(), processed <= total);
            let rate_exceeded = *errors > 0 && (*processed == 0 || errors * 10 > *processed);
            prop_assert_eq!(!found.warnings.is_empty(), rate_exceeded);
            let decision = resume(&store, "r1", "screening_ta", Some(*name), at(1000), false).unwrap();
            match decision {
                ResumeDecision::Go(point) => {
                    prop_assert!(processed < total);
                    prop_assert_eq!((point.processed, point.remaining), (*processed, Some(total - processed)));
                }
                ResumeDecision::Nothing { .. } => prop_assert_eq!(processed, total),
                ResumeDecision::Refused { .. } => prop_assert!(processed > total),
            }
        }
        let newest = last.iter().max_by_key(|(_, save)| save.3).map(|(name, _)| (*name).to_owned());
        let found = PipelineExecution::latest(&store, "r1", None).unwrap().map(|(one, _)| one.execution);
        prop_assert_eq!(found, newest);
    }

    /// A document is disposable exactly if all items are processed without errors and it is old.
    #[test]
    fn a_complete_old_document_without_errors_is_disposable(
        processed in 0..4_i64, total in 0..4_i64, errors in 0..2_i64, age in 0..4_i64,
    ) {
        let document = saved(&counts(processed, total, errors), 0);
        let disposable = check_disposable(&document, at(age), 2_000_000).is_ok();
        prop_assert_eq!(disposable, processed == total && errors == 0 && age > 2);
    }
}

#[test]
fn a_row_is_imported_once_and_replaces_no_newer_one() {
    let store = Store::in_memory().unwrap();
    let import = |second, id: &str, processed| {
        let row = document(&format!(
            r#"{{"id":"{id}","workflow_stage":"searching","items_processed":{processed}}}"#
        ));
        PipelineExecution::import_row(&store, &act(second), ("r1", "e1"), &row).unwrap()
    };
    for turn in [RowImport::Saved, RowImport::Known] {
        assert_eq!(import(5, "a", 10), turn);
        assert_eq!(import(7, "b", 20), turn);
        assert_eq!(import(7, "c", 30), turn, "a row of the same time is not older");
    }
    assert_eq!(import(6, "d", 40), RowImport::Older);
    assert_eq!(import(8, "a", 50), RowImport::Saved, "the row was changed since");
    let one = PipelineExecution::open(&store, "r1", "e1").unwrap();
    let saved = one.document().unwrap().unwrap();
    assert_eq!((saved.created_at(), saved.updated_at()), (Some(at(5)), Some(at(8))));
    assert_eq!(saved.counts().items_processed, Some(50));
    assert_eq!(one.history().unwrap().len(), 4);
    let unnamed = document(r#"{"stage":"searching"}"#);
    let error = PipelineExecution::import_row(&store, &act(9), ("r1", "e1"), &unnamed).unwrap_err();
    assert!(error.to_string().contains("no 'id'"), "{error}");
}
