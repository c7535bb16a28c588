//! Checkpoints: compactions, commits, time intervals.

use super::script::{Script, time};
use super::*;
use serde_json::json;

fn keys(piece: &TranscriptPiece) -> Vec<(&str, i64)> {
    let seconds = |at: Timestamp| at.micros_since(time(0)) / 1_000_000;
    piece.checkpoints.iter().map(|draft| (draft.key.as_str(), seconds(draft.time))).collect()
}

fn boundary(script: Script) -> Script {
    script.line("system", json!({
        "subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": "p0",
        "compactMetadata": { "trigger": "auto", "preTokens": 157_692 },
    }))
}

fn summary(script: Script) -> Script {
    script.line("user", json!({ "isCompactSummary": true, "message": { "content": "so far" } }))
}

#[test]
fn a_compaction_is_one_checkpoint_with_its_summary() {
    let script = boundary(Script::new().user("go")).line("progress", json!({}));
    let piece = summary(script).read();
    assert_eq!(keys(&piece), [("compaction:m2", 2)]);
    let draft = &piece.checkpoints[0];
    assert_eq!(draft.message, "context compacted (auto, 157692 tokens before)");
    assert_eq!(draft.tags, ["compaction"]);
    let expected = Value::from([
        ("trigger", "auto".into()),
        ("pre_tokens", Value::Int(157_692)),
        ("boundary", "m2".into()),
        ("logical_parent", "p0".into()),
        ("summary", "so far".into()),
        ("summary_message", "m4".into()),
    ]);
    assert_eq!(draft.body, expected);
    assert_eq!(of_kind(&piece, Kind::Message).len(), 3);
}

#[test]
fn a_compaction_that_was_copied_from_another_session_says_so() {
    let from = json!({ "sessionId": "first", "messageUuid": "m9" });
    let boundary_line = json!({ "subtype": "compact_boundary", "forkedFrom": from });
    let summary_line =
        json!({ "isCompactSummary": true, "forkedFrom": from, "message": { "content": "so far" } });
    let both = Script::new().line("system", boundary_line).line("user", summary_line.clone());
    for script in [both, Script::new().line("user", summary_line)] {
        let piece = script.read();
        assert_eq!(piece.checkpoints.len(), 1);
        assert_eq!(piece.checkpoints[0].body.field("copied"), Some(&Value::Bool(true)));
    }
}

#[test]
fn a_compaction_names_the_messages_that_it_kept() {
    let metadata = json!({
        "trigger": "manual", "preTokens": 1520, "postTokens": 329,
        "preservedMessages": { "uuids": ["m1"], "allUuids": ["m1", null, "m2"] },
    });
    let piece = Script::new()
        .user("go")
        .line("system", json!({ "subtype": "compact_boundary", "compactMetadata": metadata }))
        .read();
    let body = &piece.checkpoints[0].body;
    let kept = ["m1", "m2"].map(|id| Value::from([("message", id.into())]));
    assert_eq!(body.field("kept"), Some(&Value::List(kept.to_vec())));
    assert_eq!(body.field("post_tokens"), Some(&Value::Int(329)));
}

#[test]
fn a_later_summary_completes_the_checkpoint() {
    let before = boundary(Script::new());
    let cut = before.text.len();
    let whole = summary(before);
    let mut reader = TranscriptReader::new(TranscriptOptions::default());
    let first = reader.read(&whole.text.as_bytes()[..cut], InputEnding::File, RECORDED_AT).unwrap();
    assert_eq!(first.checkpoints[0].body.field("summary"), None);
    let second =
        reader.read(&whole.text.as_bytes()[cut..], InputEnding::File, RECORDED_AT).unwrap();
    assert_eq!(second.checkpoints, whole.read().checkpoints);
}

/// Older clients write only the summary of a compaction.
#[test]
fn a_summary_without_a_boundary_is_a_compaction() {
    let piece = summary(Script::new().user("go")).read();
    assert_eq!(keys(&piece), [("compaction:m2", 2)]);
    let body = &piece.checkpoints[0].body;
    assert_eq!(
        (text(body, "summary"), text(body, "summary_message")),
        (Some("so far"), Some("m2"))
    );
    // The same summary once more is a repetition.
    let twice = summary(summary(boundary(Script::new()))).read();
    assert_eq!(keys(&twice), [("compaction:m1", 1)]);
    assert_eq!(text(&twice.checkpoints[0].body, "summary_message"), Some("m2"));
}

#[test]
fn a_microcompaction_is_a_message_that_lists_the_dropped_tool_calls() {
    let piece = Script::new()
        .line(
            "system",
            json!({
                "subtype": "microcompact_boundary", "content": "Context microcompacted",
                "microcompactMetadata": { "trigger": "auto", "preTokens": 9, "tokensSaved": 4,
                                          "compactedToolIds": ["a", "b"] },
            }),
        )
        .read();
    assert_eq!(piece.checkpoints, []);
    let value = &only_of_kind(&piece, Kind::Message).value;
    assert_eq!(value.field("compacted_tool_ids"), Some(&vec!["a", "b"].into()));
    assert_eq!(value.field("tokens_saved"), Some(&Value::Int(4)));
    assert_eq!(text(value, "text"), Some("Context microcompacted"));
}

#[test]
fn a_commit_makes_a_checkpoint_at_the_time_of_its_result() {
    let out = "[main 49f6518] fix: the test\n 1 file changed";
    let piece =
        Script::new().bash("git add . && git commit -m x", out, json!({ "stdout": out })).read();
    assert_eq!(keys(&piece), [("commit:c", 2)]);
    let draft = &piece.checkpoints[0];
    assert_eq!(
        (draft.message.as_str(), &draft.tags),
        ("fix: the test", &vec!["commit".to_owned()])
    );
    assert_eq!(text(&draft.body, "commit"), Some("49f6518"));
    assert_eq!(only_of_kind(&piece, Kind::Command).at, draft.time);
}

#[test]
fn a_failed_or_empty_commit_makes_no_checkpoint() {
    let out = "[main 49f6518] x";
    let piece = Script::new()
        .failed("git commit -m x", "Exit code 1\n[main 49f6518] x")
        .bash("git commit -m x", "nothing to commit", json!({ "stdout": "nothing to commit" }))
        .bash("cat log", out, json!({ "stdout": out }))
        .read();
    assert_eq!(piece.checkpoints, []);
}

#[test]
fn the_first_message_after_more_than_five_minutes_makes_a_checkpoint() {
    let piece = Script::new()
        .user("start at 1")
        .after(299)
        .user("exactly five minutes on is not more")
        .user("this is")
        .after(299)
        .user("counted from the last checkpoint, not yet")
        .user("again")
        .read();
    assert_eq!(keys(&piece), [("time:m3", 302), ("time:m5", 603)]);
    assert_eq!(piece.checkpoints[0].body.field("seconds"), Some(&Value::Int(301)));
}

#[test]
fn the_five_minutes_also_count_from_commits_and_compactions_in_the_order_of_the_file() {
    let out = "[main 49f6518] x";
    let script =
        Script::new().user("start").after(290).bash("git commit", out, json!({ "stdout": out }));
    // The line at second 300 follows one at second 500. The last checkpoint is at second 293.
    let script = script.after(206).user("500").after(-201).user("300").after(302).user("603");
    let piece = boundary(script.after(300)).user("after it").read();
    assert_eq!(keys(&piece), [("commit:c", 293), ("time:m6", 603), ("compaction:m7", 904)]);
}

#[test]
fn a_commit_after_five_minutes_makes_one_checkpoint_not_two() {
    let out = "[main 49f6518] x";
    let script = Script::new().user("start").call("c", "Bash", json!({ "command": "git commit" }));
    let piece = script.after(400).result("c", out, json!({ "stdout": out })).read();
    assert_eq!(keys(&piece), [("commit:c", 403)]);
}

#[test]
fn sub_agents_make_no_checkpoints() {
    let line =
        |text: &str| json!({ "isSidechain": true, "agentId": "a", "message": { "content": text } });
    let piece = Script::new()
        .user("start")
        .after(400)
        .line("user", line("x"))
        .after(400)
        .line("user", line("y"));
    assert_eq!(piece.read().checkpoints, []);
}
