use crate::TranscriptPiece;
use crate::trajectory::{TrajectoryAuthor, read as read_trajectory};
use forge_store::model::{Kind, TextRef, Timestamp};
use serde_json::json;

const START: Timestamp = Timestamp::from_micros(1_000_000);

fn read(
    bytes: &[u8],
    start: Timestamp,
    recorded_at: Timestamp,
) -> Result<TranscriptPiece, crate::trajectory::NotATrajectory> {
    read_trajectory(TrajectoryAuthor::SweAgent, bytes, start, recorded_at, false)
}

fn piece(document: &str) -> TranscriptPiece {
    read(document.as_bytes(), START, Timestamp::from_micros(7)).unwrap()
}

fn ids_and_times(piece: &TranscriptPiece, kind: Kind) -> Vec<(&str, i64)> {
    let facts = piece.facts.iter().filter(|fact| fact.kind == kind);
    facts.map(|fact| (fact.id.as_str(), fact.at.micros_since(START))).collect()
}

#[test]
fn a_step_is_a_message_and_a_command_and_its_edit_is_code() {
    let piece = piece(
        r#"{"trajectory":[
            {"thought":"look","response":"look\nls","action":"ls -F\n","observation":"a.py",
             "execution_time":0.5,"state":"{\"open_file\": \"n/a\", \"working_dir\": \"/w\"}\n"},
            {"thought":"fix","response":"fix","action":"edit 1:1\nx = 1\nend_of_edit",
             "observation":"Your proposed edit has introduced new syntax error(s).","execution_time":0.25,
             "state":{"open_file":"/w/a.py","working_dir":"/w"}},
            {"action":"create b.py\n","observation":"","execution_time":1,"state":{"open_file":"n/a"}}],
          "info":{"submission":"\ndiff --git a/s/a.py b/s/a.py\n","exit_status":"submitted"}}"#,
    );
    let ends = [("step-1", 500_000), ("step-2", 750_000), ("step-3", 1_750_000)];
    assert_eq!(ids_and_times(&piece, Kind::Message), ends);
    assert_eq!(ids_and_times(&piece, Kind::Command), ends);
    assert_eq!(ids_and_times(&piece, Kind::Code), [ends[1], ends[2], ("submission", 1_750_000)]);
    assert!(piece.facts.iter().all(|fact| fact.value.field("synthetic") == Some(&true.into())));
    let value = |index: usize| &piece.facts[index].value;
    let field = |index: usize, name| value(index).field(name).cloned();
    assert_eq!(field(0, "response"), Some("look\nls".into()));
    assert_eq!(field(1, "command"), Some("ls -F".into()));
    assert_eq!(field(1, "working_dir"), Some("/w".into()));
    assert_eq!(field(1, "exit_code"), None);
    assert_eq!(field(2, "response"), None);
    assert_eq!(
        (field(4, "path"), field(4, "applied")),
        (Some("/w/a.py".into()), Some(false.into()))
    );
    // The document does not say whether this edit was applied.
    assert_eq!((field(7, "path"), field(7, "applied")), (Some("b.py".into()), None));
    assert_eq!(field(8, "paths"), Some(vec!["s/a.py"].into()));
}

#[test]
fn statements_of_the_agent_are_inferred_only_if_enabled() {
    let document = br#"{"trajectory":[{"thought":"I looked. The root cause is a stale cache."}]}"#;
    let read =
        |infer| read_trajectory(TrajectoryAuthor::SweAgent, document, START, START, infer).unwrap();
    let piece = read(true);
    assert_eq!(ids_and_times(&piece, Kind::Inference), [("step-1.1", 1_000_000)]);
    let found = piece.facts.last().unwrap();
    assert_eq!(found.value.field("description"), Some(&"The root cause is a stale cache.".into()));
    assert_eq!(found.value.field("synthetic"), Some(&true.into()));
    assert_eq!(ids_and_times(&read(false), Kind::Inference), []);
}

#[test]
fn a_step_takes_a_second_unless_all_durations_are_known() {
    let piece = piece(r#"{"trajectory":[{"thought":"a","execution_time":9},{"thought":"b"}]}"#);
    assert_eq!(
        ids_and_times(&piece, Kind::Message),
        [("step-1", 1_000_000), ("step-2", 2_000_000)]
    );
}

#[test]
fn equal_documents_give_equal_pieces_and_different_ones_different_sessions() {
    let document = r#"{"trajectory":[{"thought":"a"}]}"#;
    assert_eq!(piece(document), piece(document));
    assert_ne!(piece(document).session, piece(r#"{"trajectory":[{"thought":"b"}]}"#).session);
}

#[test]
fn a_document_of_another_form_is_refused() {
    for bytes in [&b"{}"[..], b"", b"[1]", b"\xff", b"{\"trajectory\":{}}", &[b'['; 100_000]] {
        assert!(read(bytes, START, START).is_err());
    }
    // The rows of a data set, and events of OpenHands.
    let rows = br#"{"trajectory":[{"role":"ai","text":"x"}]}"#;
    let events = br#"{"trajectory":[{"action":"run","args":{}},{"observation":"run"}],"info":{}}"#;
    assert!(read(rows, START, START).is_err());
    assert!(read(events, START, START).is_err());
    let nested = ["[".repeat(100_000), "]".repeat(100_000)].concat();
    assert!(read(nested.as_bytes(), START, START).is_err());
    assert!(read(b" [[{}],{}]", START, START).is_err());
}

#[test]
fn the_recorded_runs_have_their_steps_and_every_reference_leads_to_its_text() {
    for (name, steps, code) in [("marshmallow-1867", 13, 4), ("pydicom-1458", 12, 7)] {
        let Some(bytes) = crate::recorded::read("swe-agent", &format!("{name}.traj")) else {
            return;
        };
        let piece = read(&bytes, START, START).unwrap();
        assert_eq!(ids_and_times(&piece, Kind::Message).len(), steps, "{name}");
        assert_eq!(ids_and_times(&piece, Kind::Command).len(), steps, "{name}");
        assert_eq!(ids_and_times(&piece, Kind::Code).len(), code, "{name}");
        let fields = piece.facts.iter().filter_map(|fact| fact.value.as_map());
        let texts: Vec<_> =
            fields.flat_map(|map| map.values()).filter_map(TextRef::from_value).collect();
        assert!(texts.len() > 10);
        for text in texts {
            assert_eq!(text.place, Some((0, bytes.len() as u64)));
            let whole = crate::resolve(&bytes, &text.pointer).unwrap();
            assert_eq!(blake3::hash(whole.as_bytes()).as_bytes(), text.hash.as_bytes());
        }
    }
}

#[test]
fn every_editing_tool_makes_code_with_its_success() {
    let step = |action: &str, observation: &str| {
        json!({"action": action, "observation": observation, "execution_time": 1.0,
            "state": {"open_file": "/r/a.py", "working_dir": "/r"}})
    };
    let document = json!({"trajectory": [
        step("str_replace_editor create /r/b.py --file_text 'x = 1\n'", "File created successfully at: /r/b.py"),
        step("str_replace_editor str_replace /r/b.py --old_str 'q' --new_str 'x'", "No replacement was performed, old_str `q` did not appear verbatim in /r/b.py."),
        step("str_replace_editor view /r/b.py", "1 x"),
        step("insert 1\nz = 1\nend_of_insert", "[File: /r/a.py (2 lines total)]\n1:a\n2:z = 1"),
        step("edit 1:1\ncargo test\nend_of_edit", "File updated. Please review the changes"),
        step("create c.py", "Warning: File 'c.py' already exists."),
        null,
        step("pytest -q", "The command 'pytest -q' was cancelled because it took more than 30 seconds. Please try"),
    ], "info": {}});
    let piece = piece(&document.to_string());
    let of_kind = |kind: Kind| piece.facts.iter().filter(move |fact| fact.kind == kind);
    let field = |fact: &forge_store::model::Fact, name: &str| fact.value.field(name).cloned();
    let code: Vec<_> =
        of_kind(Kind::Code).map(|fact| (field(fact, "path"), field(fact, "applied"))).collect();
    let expected = [
        ("/r/b.py", true),
        ("/r/b.py", false),
        ("/r/a.py", true),
        ("/r/a.py", true),
        ("c.py", false),
    ];
    assert_eq!(code, expected.map(|(path, applied)| (Some(path.into()), Some(applied.into()))));
    // A text that is written to a file is not a check.
    let checks: Vec<_> = of_kind(Kind::Verification).map(|fact| field(fact, "name")).collect();
    assert_eq!(checks, [Some("pytest".into())]);
    let last = of_kind(Kind::Command).next_back().unwrap();
    assert_eq!(
        (field(last, "outcome"), field(last, "exit_code")),
        (Some("timed_out".into()), None)
    );
}

/// Regression: an edit had the path of an open file whose name ends alike, or none.
#[test]
fn an_edit_has_the_path_of_its_file() {
    let shown = "[File: /r/a.py (2 lines total)]\n1:x";
    for (action, state, observation, expected) in [
        ("create a.py", json!({"open_file": "/r/data.py"}), "x", "a.py"),
        ("create ./a.py", json!({"open_file": "/r/a.py"}), shown, "/r/a.py"),
        ("create a.py", json!({"open_file": "/q/a.py"}), "File 'a.py' already exists.", "a.py"),
        ("edit 1:1\nx\nend_of_edit", json!({"working_dir": "/r"}), shown, "/r/a.py"),
        ("edit 1:1\nx\nend_of_edit", json!("no JSON"), shown, "/r/a.py"),
    ] {
        let step = json!({"action": action, "state": state, "observation": observation});
        let piece = piece(&json!({"trajectory": [step]}).to_string());
        let code = piece.facts.iter().find(|fact| fact.kind == Kind::Code).unwrap();
        assert_eq!(code.value.field("path"), Some(&expected.into()), "{action} {state}");
    }
}

/// Regression: a duration below 0 made the store refuse the run.
#[test]
fn a_duration_that_no_step_can_have_counts_as_absent() {
    let piece = piece(r#"{"trajectory":[{"action":"ls","observation":"","execution_time":-1}]}"#);
    assert_eq!(ids_and_times(&piece, Kind::Command), [("step-1", 1_000_000)]);
    assert!(piece.facts.iter().all(|fact| fact.value.field("duration_ms").is_none()));
}

/// Regression: a time limit that the environment reports after some output was not read.
#[test]
fn a_time_limit_is_reported_after_the_output() {
    let piece = piece(
        r#"{"trajectory":[{"action":"pytest","observation":"collecting\n\nEXECUTION TIMED OUT BECAUSE NO OUTPUT WAS PRODUCED FOR MORE THAN 30 SECONDS.\nPLEASE REFINE YOUR COMMAND"}]}"#,
    );
    let command = piece.facts.iter().find(|fact| fact.kind == Kind::Command).unwrap();
    assert_eq!(command.value.field("outcome"), Some(&"timed_out".into()));
}

#[test]
fn several_attempts_are_one_session() {
    let step = |action: &str| json!({"action": action, "observation": "", "thought": "t", "execution_time": 1});
    let attempt = |actions: &[&str], patch: &str| {
        let steps: Vec<_> = actions.iter().map(|action| step(action)).collect();
        json!({"trajectory": steps, "history": [], "info": {"submission": patch, "exit_status": "submitted"}})
    };
    let mut document = attempt(&["c"], "diff --git a/c b/c\n");
    document["info"]["best_attempt_idx"] = 1.into();
    document["attempts"] = json!([
        attempt(&["a", "b"], "diff --git a/a b/a\n"),
        attempt(&["c"], "diff --git a/c b/c\n")
    ]);
    let piece = piece(&document.to_string());
    let expected = [
        ("attempt-1/step-1", 1_000_000),
        ("attempt-1/step-2", 2_000_000),
        ("attempt-2/step-1", 3_000_000),
    ];
    assert_eq!(ids_and_times(&piece, Kind::Command), expected);
    let codes: Vec<&str> =
        ids_and_times(&piece, Kind::Code).into_iter().map(|(id, _)| id).collect();
    assert_eq!(codes, ["attempt-1/submission", "attempt-2/submission", "submission"]);
    let chosen = piece.facts.last().unwrap();
    assert_eq!(
        (chosen.value.field("attempt"), chosen.value.field("chosen")),
        (Some(&2_i64.into()), Some(&true.into()))
    );
    // Before the last attempt has ended, no attempt is chosen yet.
    document.as_object_mut().unwrap().retain(|name, _| name == "attempts");
    let piece = self::piece(&document.to_string());
    assert_eq!(ids_and_times(&piece, Kind::Command).len(), 3);
}
