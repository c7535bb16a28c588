//! Three example documents as pipelines write them.

use super::*;

fn point(text: &str, now: &str) -> ResumePoint {
    let document = document(text);
    let now = Timestamp::parse_rfc3339(now).unwrap();
    match resume_point(&document, "e1", now, false) {
        ResumeDecision::Go(point) => *point,
        other => panic!("{other:?}"),
    }
}

#[test]
fn screening_continues_with_the_batch_after_the_last_finished_one() {
    let point = point(
        r#"{"stage":"screening_ta",
            "batch_info":{"current_batch":15,"total_batches":42,"batch_size":100},
            "progress":{"items_processed":1500,"items_total":4200,"items_failed":12},
            "last_processed":{"document_id":"a3b8","timestamp":"2026-01-25T14:32:10.543Z"},
            "context":{"confidence_threshold":0.85,"model_name":"m"},
            "error_info":{"last_error":null,"error_count":12,"recoverable":true,"failed_item_ids":[]},
            "created_at":"2026-01-25T10:15:00.000Z","updated_at":"2026-01-25T14:32:12.000Z"}"#,
        "2026-03-01T00:00:00Z",
    );
    assert_eq!((point.mode, point.next_batch), (ResumeMode::Batch, Some(16)));
    assert_eq!((point.processed, point.remaining), (1500, Some(2700)));
    assert_eq!(point.after_id.as_deref(), Some("a3b8"));
    assert!(point.warnings.is_empty());
}

#[test]
fn a_paginated_search_is_resumed_only_while_its_token_is_valid() {
    let text = r#"{"stage":"searching",
        "batch_info":{"current_batch":8,"total_batches":20,"batch_size":500},
        "progress":{"items_processed":4000,"items_total":10000,"items_failed":0},
        "context":{"webenv":"MCID_63f8","query_key":"1","database_name":"PubMed"},
        "error_info":{"last_error":null,"error_count":0,"recoverable":true},
        "updated_at":"2026-01-25T09:45:30.000Z"}"#;
    let found = point(text, "2026-01-26T09:45:30Z");
    assert_eq!((found.mode, found.next_batch), (ResumeMode::Paginated, Some(9)));
    let page = found.page.unwrap();
    assert_eq!((page.webenv.as_str(), page.query_key.as_deref()), ("MCID_63f8", Some("1")));
    assert_eq!((page.offset, page.size), (4000, Some(500)));
    let late = Timestamp::parse_rfc3339("2026-01-26T09:45:31Z").unwrap();
    let answer = resume_point(&document(text), "e1", late, false);
    assert!(matches!(answer, ResumeDecision::Refused { .. }), "{answer:?}");
}

#[test]
fn extraction_continues_after_the_last_item_and_names_the_failed_ones() {
    let found = point(
        r#"{"stage":"extraction",
            "progress":{"items_processed":78,"items_total":150,"items_failed":3},
            "last_processed":{"document_id":"b7c8","timestamp":"2026-01-25T16:22:45.123Z"},
            "error_info":{"last_error":"LLM timeout after 60 seconds","error_count":3,"recoverable":true,
                          "failed_item_ids":["c1","d2","e3"]},
            "updated_at":"2026-01-25T16:22:46.000Z"}"#,
        "2026-01-25T17:00:00Z",
    );
    assert_eq!((found.mode, found.after_id.as_deref()), (ResumeMode::Sequential, Some("b7c8")));
    assert_eq!((found.next_batch, found.remaining), (None, Some(72)));
    assert_eq!(found.failed_ids, ["c1", "d2", "e3"]);
}

#[test]
fn the_preset_of_reviews_has_eleven_stages() {
    let names: Vec<&str> = SLR.stages.iter().map(|stage| stage.name).collect();
    assert_eq!(names.len(), 11);
    assert_eq!((names[0], names[10]), ("protocol_setup", "human_review"));
}
