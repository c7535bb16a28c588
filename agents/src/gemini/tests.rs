use crate::claude_code::{Dialect, Ending, Options, Reader};
use crate::{Piece, resolve};
use forge_store::model::{Fact, Kind, TextRef, Timestamp, Value};
use serde_json::{Value as Json, json};

fn options() -> Options {
    Options { dialect: Dialect::Gemini, ..Options::default() }
}

fn read(text: &str) -> Piece {
    Reader::new(options()).read(text.as_bytes(), Ending::File, Timestamp::default()).unwrap()
}

fn lines(records: &[Json]) -> String {
    records.iter().map(|record| record.to_string() + "\n").collect()
}

fn meta() -> Json {
    json!({"sessionId": "g1", "projectHash": "ab", "startTime": "2026-05-01T10:00:00.000Z",
        "lastUpdated": "2026-05-01T10:00:00.000Z", "directories": ["/w"]})
}

fn time(second: u32) -> String {
    format!("2026-05-01T10:{:02}:{:02}.000Z", second / 60, second % 60)
}

fn user(second: u32, id: &str, text: &str) -> Json {
    json!({"id": id, "timestamp": time(second), "type": "user", "content": [{"text": text}]})
}

fn gemini(second: u32, id: &str, calls: &Json) -> Json {
    json!({"id": id, "timestamp": time(second), "type": "gemini", "content": "on it", "model": "gemini-9",
        "thoughts": [{"subject": "Plan", "description": "look first", "timestamp": time(second)}],
        "tokens": {"input": 1}, "toolCalls": calls})
}

fn shell(second: u32, id: &str, command: &str, status: &str, output: &str) -> Json {
    json!({"id": id, "name": "run_shell_command", "args": {"command": command, "dir_path": "sub"},
        "status": status, "timestamp": time(second),
        "result": [{"functionResponse": {"id": id, "name": "run_shell_command", "response": {"output": output}}}]})
}

fn of(piece: &Piece, kind: Kind) -> Vec<&Fact> {
    piece.facts.iter().filter(|fact| fact.kind == kind).collect()
}

fn field<'a>(fact: &'a Fact, name: &str) -> Option<&'a Value> {
    match &fact.value {
        Value::Map(fields) => fields.get(name),
        _ => None,
    }
}

fn text(fact: &Fact, name: &str) -> Option<String> {
    field(fact, name).and_then(Value::as_text).map(str::to_owned)
}

#[test]
fn a_message_that_grows_tells_each_call_once() {
    let failing = shell(
        5,
        "c1",
        "npm test",
        "success",
        "Output: 1 failed\nExit Code: 1\nProcess Group PGID: 9",
    );
    let fine = shell(
        7,
        "c2",
        "ls",
        "success",
        "Command: ls\nDirectory: (root)\nOutput: a\nError: not an error\nb\nError: (none)\nExit Code: 0\nSignal: (none)",
    );
    let running = json!({"id": "c2", "name": "run_shell_command", "args": {"command": "ls"}, "status": "executing"});
    let refused = shell(
        8,
        "c3",
        "rm x",
        "cancelled",
        "[Operation Cancelled] Reason: User did not allow tool call",
    );
    let script = lines(&[
        meta(),
        user(1, "m1", "why does it fail?"),
        gemini(2, "m2", &json!([])),
        gemini(2, "m2", &json!([failing, running])),
        gemini(2, "m2", &json!([failing, fine, refused])),
        json!({"$set": {"summary": "Fixing the test", "lastUpdated": time(9)}}),
        json!({"$rewindTo": "m2"}),
        json!({"id": "m3", "timestamp": time(9), "type": "info", "content": "note"}),
    ]);
    let piece = read(&script);
    let session = piece.session.clone().unwrap();
    assert_eq!(
        (session.agent_session.as_str(), session.title.as_deref()),
        ("g1", Some("Fixing the test"))
    );
    assert_eq!(session.cwd.as_deref(), Some("/w"));
    assert_eq!(of(&piece, Kind::Prompt).len(), 1);
    let told: Vec<_> = of(&piece, Kind::Command)
        .iter()
        .map(|fact| {
            let code = field(fact, "exit_code").and_then(Value::as_i64);
            (fact.id.clone(), text(fact, "outcome").unwrap(), code, text(fact, "stdout_preview"))
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        told,
        [
            ("c1".to_owned(), "failed".to_owned(), Some(1), some("1 failed")),
            ("c2".to_owned(), "finished".to_owned(), Some(0), some("a\nError: not an error\nb")),
            ("c3".to_owned(), "refused".to_owned(), None, None),
        ]
    );
    assert_eq!(text(of(&piece, Kind::Verification)[0], "status").as_deref(), Some("failed"));
    // Three versions of one message: the last counts.
    let versions = of(&piece, Kind::Message).iter().filter(|fact| fact.id == "m2").count();
    assert_eq!(versions, 3);
    assert_eq!(piece.skipped, []);
}

#[test]
fn edits_and_to_dos_are_told() {
    let diff = "--- a.rs\n+++ a.rs\n@@ -1 +1,2 @@\n-old\n+new\n+more\n";
    let calls = json!([
        {"id": "e1", "name": "replace", "args": {"file_path": "/w/a.rs", "old_string": "old", "new_string": "new"},
            "status": "success", "timestamp": time(3),
            "resultDisplay": {"fileDiff": diff, "fileName": "a.rs", "originalContent": "old", "newContent": "new\nmore"}},
        {"id": "e2", "name": "write_file", "args": {"file_path": "b"}, "status": "error", "timestamp": time(4)},
        {"id": "t1", "name": "write_todos", "status": "success", "timestamp": time(5),
            "args": {"todos": [{"description": "read", "status": "completed"}]}},
    ]);
    let piece = read(&lines(&[meta(), gemini(2, "m1", &calls)]));
    let [code] = of(&piece, Kind::Code)[..] else { panic!("{:?}", of(&piece, Kind::Code)) };
    assert_eq!(text(code, "path").as_deref(), Some("/w/a.rs"));
    assert_eq!(text(code, "patch").as_deref(), Some(diff));
    assert_eq!(
        (field(code, "lines_added"), field(code, "lines_removed")),
        (Some(&2_i64.into()), Some(&1_i64.into()))
    );
    assert_eq!(text(of(&piece, Kind::Task)[0], "status").as_deref(), Some("completed"));
}

#[test]
fn a_compression_is_one_checkpoint_at_its_time() {
    let summary = json!({"id": "s1", "timestamp": time(100), "type": "user",
        "content": [{"text": "<state_snapshot>\nthe cache was stale\n</state_snapshot>"}]});
    let answer =
        json!({"id": "s2", "timestamp": time(100), "type": "gemini", "content": "Got it."});
    let set = json!({"$set": {"messages": [summary, answer], "lastUpdated": time(101)}});
    let piece =
        read(&lines(&[meta(), user(1, "m1", "go"), set.clone(), set, user(110, "m2", "on")]));
    let [checkpoint] = piece.checkpoints.as_slice() else { panic!("{:?}", piece.checkpoints) };
    assert_eq!(
        (checkpoint.key.as_str(), checkpoint.tags.as_slice()),
        ("compaction:s1", &["compaction".to_owned()][..])
    );
    assert_eq!(checkpoint.time, Timestamp::parse_rfc3339(&time(100)).unwrap());
    let Value::Map(body) = &checkpoint.body else { panic!() };
    assert!(body.get("summary").and_then(Value::as_text).unwrap().contains("the cache was stale"));
    assert_eq!(of(&piece, Kind::Prompt).len(), 2);
}

#[test]
fn an_older_recording_is_one_document() {
    let long = "y".repeat(500);
    let mut document = meta();
    document["messages"] = json!([
        user(1, "m1", &long),
        gemini(2, "m2", &json!([shell(3, "c1", "ls", "success", &format!("Output: {long}"))])),
    ]);
    let script = serde_json::to_string_pretty(&document).unwrap();
    let whole = Options { whole: true, ..options() };
    let mut reader = Reader::new(whole);
    let half = &script.as_bytes()[..script.len() / 2];
    assert_eq!(reader.read(half, Ending::File, Timestamp::default()).unwrap().taken, 0);
    let piece = reader.read(script.as_bytes(), Ending::File, Timestamp::default()).unwrap();
    assert_eq!(piece.taken, script.len() as u64);
    assert_eq!(piece.session.clone().unwrap().agent_session, "g1");
    assert_eq!((of(&piece, Kind::Prompt).len(), of(&piece, Kind::Command).len()), (1, 1));
    for (kind, name) in [(Kind::Prompt, "text"), (Kind::Command, "stdout_preview")] {
        let found = TextRef::from_value(field(of(&piece, kind)[0], name).unwrap()).unwrap();
        assert_eq!(resolve(script.as_bytes(), &found.pointer).as_ref(), Some(&long));
    }
}

#[test]
fn junk_is_passed_over_and_reported() {
    let script = lines(&[
        json!({"id": "m1", "type": "user", "content": "no time"}),
        json!({"id": "m2", "timestamp": time(1), "type": "unheard of"}),
        json!({"$set": 3}),
        json!({"toolCalls": "x"}),
        json!({"id": "m3", "timestamp": time(1), "type": "gemini", "toolCalls": [{"id": 4}], "thoughts": 1, "content": {"x": 1}}),
        meta(),
    ]) + "{\"id\"";
    let piece = read(&script);
    assert_eq!(piece.skipped.len(), 1);
    assert_eq!((piece.skipped[0].line, piece.skipped[0].reason.as_str()), (1, "has no time"));
    assert_eq!(of(&piece, Kind::Message).len(), 1);
}

#[test]
fn wherever_the_file_is_cut_the_same_is_read() {
    let script = lines(&[
        meta(),
        user(1, "m1", "go"),
        gemini(2, "m2", &json!([])),
        gemini(2, "m2", &json!([shell(5, "c1", "ls", "success", "Output: a")])),
        user(400, "m3", "on"),
        gemini(401, "m4", &json!([shell(402, "c1", "ls", "success", "Output: a")])),
    ]);
    let whole = read(&script);
    for cut in 0..script.len() {
        let mut first = Reader::new(options());
        let piece =
            first.read(&script.as_bytes()[..cut], Ending::More, Timestamp::default()).unwrap();
        let taken = usize::try_from(piece.taken).unwrap();
        let (mut facts, mut checkpoints) = (piece.facts, piece.checkpoints);
        let carry = serde_json::from_slice(&serde_json::to_vec(first.carry()).unwrap()).unwrap();
        let piece = Reader::resume(options(), carry)
            .read(&script.as_bytes()[taken..], Ending::File, Timestamp::default())
            .unwrap();
        facts.extend(piece.facts);
        checkpoints.extend(piece.checkpoints);
        assert_eq!((&facts, &checkpoints), (&whole.facts, &whole.checkpoints), "cut at {cut}");
    }
}
