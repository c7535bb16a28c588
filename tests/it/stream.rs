//! The stream of events: an import of an export gives the same session, and a file that is not a
//! stream changes nothing.

use forge_store::error::Error;
use forge_store::model::{
    AutoTrigger, BranchStatus, CheckpointTrigger, Fact, FactOrigin, Key, Kind, SessionKind,
    Timestamp, Value,
};
use forge_store::store::{
    CheckpointFilter, ClaimChange, NewCheckpoint, NewSession, Options, Session, Store,
    StreamImportReport, StreamImportRequest, VerifyDepth, WriteContext,
};
use proptest::prelude::*;
use std::io::Cursor;

const STREAM: StreamImportRequest<'static> =
    StreamImportRequest { source: "events:test", name: "test", session: None };

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_767_261_600_000_000 + seconds * 1_000_000)
}

fn later() -> WriteContext {
    WriteContext::asked("import events", time(1_000_000))
}

fn import_as(
    store: &Store,
    stream: StreamImportRequest<'_>,
    text: &str,
) -> Result<StreamImportReport, Error> {
    let mut open = || Ok(Box::new(Cursor::new(text.as_bytes().to_vec())) as Box<_>);
    let taken = store.import_events(&later(), stream, &mut open, &|_| {})?;
    store.sync()?;
    Ok(taken)
}

fn import(store: &Store, text: &str) -> Result<StreamImportReport, Error> {
    import_as(store, STREAM, text)
}

fn export(session: &Session) -> String {
    let mut text = Vec::new();
    session
        .export_events::<Error>(&|_, _| None, &mut |line| {
            text.extend_from_slice(line);
            Ok(())
        })
        .expect("it can be written");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Regression: the import position was recorded only with the writes of its lines, so a last line
/// without a write was imported again each time.
#[test]
fn lines_that_write_nothing_are_imported_only_once() {
    let put = r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"note","id":"N1","value":{"description":"a"}}}"#;
    let mark = r#"{"at":"2026-01-01T10:00:00Z","revision":{}}"#;
    let named = r#"{"at":"2026-01-01T10:00:00Z","session":{"name":"s"}}"#;
    let other = r#"{"at":"2026-01-01T10:00:01Z","session":"other","revision":{}}"#;
    for ends in [vec![put, mark], vec![put, mark, mark, ""], vec![named, mark], vec![put, other]] {
        let store = Store::in_memory().unwrap();
        let mut text = ends.join("\n") + "\n";
        let whole = text.len() as u64;
        text.push_str(r#"{"at":"#);
        let taken = import(&store, &text).unwrap();
        assert_eq!((taken.bytes, taken.waiting_bytes), (whole, 6), "{ends:?}");
        let again = import(&store, &text).unwrap();
        assert_eq!((again.lines, again.bytes, again.waiting_bytes), (0, 0, 6), "{ends:?}");
        // The lines after them are imported as usual.
        text.push_str(r#""2026-01-01T10:00:02Z","put":{"kind":"note","id":"N2","value":{"description":"b"}}}"#);
        let more = import(&store, &text).unwrap();
        assert_eq!((more.lines, more.revisions), (1, 1), "{ends:?}");
    }
}

/// Regression: a line that named the session of the first `session` line began it without its kind,
/// and the end of the stream began an empty session with the same name.
#[test]
fn a_line_can_name_the_session_of_the_first_session_line() {
    let began = r#"{"at":"2026-01-01T10:00:00Z","session":{"name":"s","kind":"run"}}"#;
    let named = r#"{"at":"2026-01-01T10:00:01Z","session":"s","put":{"kind":"note","id":"N1","value":{"description":"a"}}}"#;
    let unnamed = r#"{"at":"2026-01-01T10:00:02Z","put":{"kind":"note","id":"N2","value":{"description":"b"}}}"#;
    for (lines, notes) in [(vec![began, named], 1), (vec![began, named, unnamed], 2)] {
        let store = Store::in_memory().unwrap();
        import(&store, &lines.join("\n")).unwrap();
        let found: Vec<_> = store
            .sessions()
            .unwrap()
            .into_iter()
            .map(|one| (one.info.name, one.info.kind, one.claims))
            .collect();
        assert_eq!(found, [("s".to_owned(), SessionKind::Run, notes)]);
    }
}

/// Regression: a stream that began with a byte order mark was refused.
#[test]
fn a_byte_order_mark_and_nul_bytes_around_a_line_are_skipped() {
    let put = r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"note","id":"N1","value":{"description":"a"}}}"#;
    for text in [format!("\u{feff}{put}\r\n"), format!("{put}\n\0\0"), format!("\u{feff}\n{put}")] {
        let store = Store::in_memory().unwrap();
        let taken = import(&store, &text).unwrap();
        assert_eq!((taken.revisions, taken.bytes), (1, text.len() as u64), "{text:?}");
        assert_eq!(import(&store, &text).unwrap().lines, 0, "{text:?}");
    }
}

/// Everything that is known about a session at each of these times, and its checkpoints.
fn picture(session: &Session, times: impl Iterator<Item = Timestamp>) -> Vec<String> {
    let mut lines = Vec::new();
    for time in times {
        let Ok(moment) = session.at_time(time) else {
            lines.push(format!("{time}: nothing"));
            continue;
        };
        let state = session.state(&moment).expect("a state");
        let is_empty = |kind| state.facts_of(kind).expect("facts").is_empty();
        // A change that was undone at once still leaves the time at which it began.
        if state.claims().is_empty() && Kind::facts().all(is_empty) {
            lines.push(format!("{time}: nothing"));
            continue;
        }
        let current = state.current_branch().expect("a branch");
        // A stream adds a number to the name of an undone branch if another branch has this name by
        // now.
        let name = current.split_once('.').map_or(current.as_str(), |(name, _)| name);
        lines.push(format!("{time}: on {name}"));
        for entry in state.claims().entries() {
            lines.push(format!("{:?}", entry.expect("a claim")));
        }
        for kind in Kind::facts() {
            for known in state.facts_of(kind).expect("facts") {
                let Fact { kind, id, at, value, .. } = known.fact;
                lines.push(format!("{kind} {id} {at} {value:?}"));
            }
        }
        // Branches with the same time have no order.
        let mut branches = state.branches().expect("branches");
        branches.sort_by(|a, b| a.name.cmp(&b.name));
        for branch in branches {
            lines.push(format!("{} {:?} {:?}", branch.name, branch.status, branch.metadata));
        }
    }
    for one in session.checkpoints(&CheckpointFilter::default()).expect("checkpoints") {
        let moment = session.at_checkpoint(&one).expect("its moment");
        let claims = session.state(&moment).expect("its state");
        let claims: Vec<_> = claims.claims().entries().map(|it| it.expect("a claim")).collect();
        let (tags, body) = (&one.tags, &one.body);
        lines.push(format!(
            "{} {:?} {} {tags:?} {body:?} {claims:?}",
            one.time, one.trigger, one.message
        ));
    }
    lines
}

/// Executes an operation in a session; one that is not possible is skipped.
fn act_on(session: &Session, act: &WriteContext, what: u8, which: u8) {
    let id = format!("n{}", which % 4);
    let note = |text: String| {
        ClaimChange::put(Key::new(Kind::Note, id.clone()), Value::from([("text", text.into())]))
    };
    let branch = ["try", "other", "third"][which as usize % 3];
    let _ = match what % 12 {
        0..=2 => session.write(act).change(note(format!("{}", act.now))).commit().map(|_| ()),
        3 => {
            let remove = ClaimChange::remove(Key::new(Kind::Note, id));
            session.write(act).change(remove).commit().map(|_| ())
        }
        4 => {
            let trigger = match which % 3 {
                0 => CheckpointTrigger::Manual,
                1 => CheckpointTrigger::Scheduled,
                _ => CheckpointTrigger::Automatic(AutoTrigger::GapFilled),
            };
            let mut checkpoint =
                NewCheckpoint::new(format!("c{which}"), trigger).tags([id.clone()]);
            checkpoint.body = Value::from([("n", i64::from(which).into())]);
            if which.is_multiple_of(5) {
                checkpoint.at = Some(act.now.plus_micros(-40_000_000));
            }
            let write = session.write(act).checkpoint(checkpoint);
            let write =
                if which.is_multiple_of(2) { write.change(note("x".into())) } else { write };
            write.commit().map(|_| ())
        }
        5 => {
            let last = session.summary().expect("a session").last_sequence;
            let to = session.at_sequence(u64::from(which) % (last + 1));
            to.and_then(|to| session.restore(act, &to)).map(|_| ())
        }
        6 => session.undo(act, None).map(|_| ()),
        7 => session.redo(act).map(|_| ()),
        8 => {
            let last = session.summary().expect("a session").last_sequence;
            let from = session.at_sequence(u64::from(which) % (last + 1)).ok();
            session.create_branch(act, branch, from.as_ref(), Default::default())
        }
        9 => session
            .switch_branch(act, if which % 4 == 3 { "main" } else { branch }, false)
            .map(|_| ()),
        10 => session
            .update_branch(act, branch, |status, metadata| {
                *status = [BranchStatus::Abandoned, BranchStatus::Active][which as usize % 2];
                metadata.approach = (!which.is_multiple_of(3)).then(|| format!("a{which}"));
                metadata.results.push(format!("r{which}"));
            })
            .map(|_| ()),
        _ => {
            let fact = Fact {
                kind: [Kind::Task, Kind::Command][which as usize % 2],
                id,
                at: act.now.plus_micros(i64::from(which % 7) * -9_000_000),
                origin: [FactOrigin::Hook, FactOrigin::Recorded][which as usize / 2 % 2],
                place: u64::from(which % 3),
                recorded_at: act.now,
                value: Value::from([("description", format!("v{which}").into())]),
            };
            let mut write = session.write(act);
            let text = write.text(&"long ".repeat(usize::from(which) * 20));
            let fact = Fact { value: Value::from([("description", text)]), ..fact };
            write.fact(fact).commit().map(|_| ())
        }
    };
}

/// Executes these steps in a session, exports it and imports it into another store.
fn round_trip(steps: Vec<(u8, u8, i64)>) -> Result<(), TestCaseError> {
    let store = Store::in_memory().expect("it goes well");
    let session = store
        .create_session(&WriteContext::asked("new", time(0)), NewSession::named("s"))
        .expect("it goes well");
    let mut now = 0;
    let mut times = vec![time(0)];
    for (what, which, pause) in steps {
        now += pause;
        // Odd commands come from hooks, which an undo skips.
        let act = match which % 11 {
            0 => WriteContext::hook("test", time(now)),
            _ => WriteContext::asked("test", time(now)),
        };
        act_on(&session, &act, what, which);
        times.extend([time(now), time(now).plus_micros(-1)]);
    }
    let text = export(&session);
    let other = Store::in_memory().expect("it goes well");
    import(&other, &text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    let again = other.session("s").expect("it goes well");
    prop_assert_eq!(&export(&again), &text);
    let [found, wanted] = [&again, &session].map(|one| picture(one, times.iter().copied()));
    let differ = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
    prop_assert_eq!(differ, None, "{}", text);
    prop_assert_eq!(found.len(), wanted.len(), "{}", text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn an_import_equals_its_export(
        steps in proptest::collection::vec((0_u8..12, any::<u8>(), -2_i64..12), 1..40)
    ) {
        round_trip(steps)?;
    }
}

/// Regression: a description of a branch written after the clock ran back put the branch before its
/// creation.
#[test]
fn an_export_is_imported_unchanged_if_the_clock_ran_back() {
    let steps = [(8, 63, 0), (10, 222, 0), (6, 0, -1), (0, 0, 0), (0, 0, 0), (0, 0, 0)];
    round_trip(steps.to_vec()).unwrap();
}

/// Regression: the switch back was written before the one that it undid, where it had no meaning.
#[test]
fn an_export_is_imported_unchanged_if_a_switch_was_undone_at_once() {
    let steps = [
        (0, 0, 0),
        (0, 0, 0),
        (0, 0, 0),
        (0, 0, 0),
        (8, 144, 0),
        (9, 126, 0),
        (6, 0, 0),
        (0, 0, 0),
        (0, 0, 0),
    ];
    round_trip(steps.to_vec()).unwrap();
}

/// With a clock that ran back, the current branch at a time is one that was undone and whose name
/// another branch has now.
#[test]
fn an_import_equals_its_export_on_an_undone_branch() {
    let steps = [(11, 0, 0), (8, 20, 0), (9, 182, 0), (6, 0, -1), (6, 0, 0), (0, 0, 0), (8, 53, 0)];
    round_trip(steps.to_vec()).unwrap();
}

const LINES: &str = r#"{"at":"2026-01-01T00:00:00Z","put":{"kind":"hypothesis","id":"h","value":{"description":"x","confidence":0.5}}}
{"at":"2026-01-01T00:00:00Z","put":{"kind":"command","id":"c","value":{"command":"make"}}}
{"at":"2026-01-01T00:00:00Z","checkpoint":{"message":"first","tags":["a"]}}
{"at":"2026-01-01T00:01:00Z","branch":{"name":"try","from":"main","approach":"y"}}
{"at":"2026-01-01T00:01:00Z","switch":{"branch":"try"}}
{"at":"2026-01-01T00:02:00Z","branch":"try","put":{"kind":"evidence","id":"e","value":{"hypothesis":"h","strength":0.5}}}
{"at":"2026-01-01T00:02:00Z","branch":"try","checkpoint":{"message":"second","tags":[],"trigger":{"automatic":"gap_filled"}}}
{"at":"2026-01-01T00:03:00Z","branch":"try","restore":{"tag":"a"}}
{"at":"2026-01-01T00:04:00Z","merge":{"branch":"try"}}
{"at":"2026-01-01T00:05:00Z","tag":{"checkpoint":"second","add":["b"]}}
"#;

#[test]
fn every_kind_of_event_line_is_imported() {
    let store = Store::in_memory().unwrap();
    let taken = import(&store, LINES).unwrap();
    assert_eq!((taken.lines, taken.revisions, taken.checkpoints, taken.facts), (10, 3, 2, 1));
    let session = store.session("test").unwrap();
    let at = |seconds| session.state(&session.at_time(time(seconds)).unwrap()).unwrap();
    let start = Timestamp::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
    let begin = (start.as_micros() - time(0).as_micros()) / 1_000_000;
    assert_eq!(at(begin + 60).current_branch().unwrap(), "try");
    assert_eq!(at(begin + 120).claims().len(), 2);
    assert_eq!(at(begin + 180).claims().len(), 1);
    assert_eq!(at(begin + 240).branches().unwrap()[1].status, BranchStatus::Merged);
    let checkpoints = session.checkpoints(&CheckpointFilter::default()).unwrap();
    assert_eq!(checkpoints[0].tags, ["b"]);
    // A fact is not removed by a restore, and has no branch.
    assert_eq!(at(begin + 240).facts_of(Kind::Command).unwrap().len(), 1);
}

/// Regression: the page said that the second checkpoint completes the first.
#[test]
fn a_second_checkpoint_of_an_event_replaces_the_first_and_keeps_its_number() {
    let line = |second: u8, rest: &str| {
        let at = format!(r#""at":"2026-01-01T00:00:0{second}Z""#);
        format!("{{{at},\"checkpoint\":{{\"key\":\"event\",{rest}}}}}\n")
    };
    let first = line(1, r#""message":"first","tags":["a"],"body":{"old":1}"#);
    let store = Store::in_memory().unwrap();
    import(&store, &(first + &line(2, r#""message":"second","body":{"new":2}"#))).unwrap();
    let session = store.session("test").unwrap();
    let checkpoints = session.checkpoints(&CheckpointFilter::default()).unwrap();
    let [one] = &checkpoints[..] else { panic!("one checkpoint: {checkpoints:?}") };
    assert_eq!((one.sequence, one.message.as_str()), (1, "second"));
    assert_eq!(one.tags, Vec::<String>::new());
    assert_eq!(one.body, Value::from([("new", 2_i64.into())]));
}

#[test]
fn a_repeated_import_changes_nothing_and_a_grown_stream_continues_at_any_cut() {
    let whole = Store::in_memory().unwrap();
    import(&whole, LINES).unwrap();
    let wanted = export(&whole.session("test").unwrap());
    for cut in 1..LINES.len() {
        // A cut between the lines of one revision makes two revisions, and the same export.
        let store = Store::in_memory().unwrap();
        import(&store, &LINES[..cut]).unwrap();
        import(&store, LINES).unwrap();
        let Ok(session) = store.session("test") else { panic!("no session after {cut}") };
        assert_eq!(export(&session), wanted, "cut at {cut}");
        let tail = store.tail_bytes().unwrap();
        assert_eq!(import(&store, LINES).unwrap().lines, 0);
        assert_eq!(store.tail_bytes().unwrap(), tail);
    }
}

/// Regression: an undo of several switches is one record, whose checkouts share one row of the
/// index. `verify` compared this row with each of them.
#[test]
fn verify_accepts_an_undone_import_with_several_switches() {
    let begin = r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"note","id":"n","value":{"text":"x"}}}
"#;
    let more = r#"{"at":"2026-01-01T10:00:01Z","branch":{"name":"try","from":"main"}}
{"at":"2026-01-01T10:00:02Z","switch":{"branch":"try"}}
{"at":"2026-01-01T10:00:03Z","branch":{"name":"other","from":"try"}}
{"at":"2026-01-01T10:00:04Z","switch":{"branch":"other"}}
{"at":"2026-01-01T10:00:04Z","switch":{"branch":"main"}}
{"at":"2026-01-01T10:00:04Z","switch":{"branch":"other"}}
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    import(&store, begin).unwrap();
    import(&store, &format!("{begin}{more}")).unwrap();
    let session = store.session("test").unwrap();
    let act = |seconds| WriteContext::asked("undo", time(seconds));
    let assert_branches = |expected: &[(i64, &str)]| {
        for done in ["written", "in the index", "rebuilt"] {
            for (seconds, branch) in expected {
                let moment = session.at_time(time(*seconds)).unwrap();
                let current = session.state(&moment).unwrap().current_branch().unwrap();
                assert_eq!(current, *branch, "at {seconds} s, {done}");
            }
            let head = session.state(&session.head().unwrap()).unwrap();
            let (_, last) = expected.last().unwrap();
            assert_eq!(head.current_branch().unwrap(), *last, "{done}");
            let verified = Store::verify(&path, VerifyDepth::ReadData, time(9), None).unwrap();
            assert_eq!(verified.findings, [], "{done}");
            match done {
                "written" => drop(store.maintain(0).unwrap()),
                _ => drop(store.rebuild().unwrap()),
            }
        }
    };
    let imported = [(1, "main"), (3, "try"), (4, "other")];
    assert_branches(&imported);
    session.undo(&act(2_000_000), None).unwrap();
    let undone = [&imported[..], &[(1_999_999, "other"), (2_000_000, "main")]].concat();
    assert_branches(&undone);
    session.redo(&act(3_000_000)).unwrap();
    assert_branches(&[&undone[..], &[(2_999_999, "main"), (3_000_000, "other")]].concat());
}

/// Regression: an undo gave its revisions on several branches the same number, and after that the
/// store could not be read: "revision #4 follows #4". It was refused if one of the branches was
/// forked from another one.
#[test]
fn an_import_with_revisions_on_several_branches_is_undone_and_redone() {
    let lines = r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"note","id":"a","value":{"text":"x"}}}
{"at":"2026-01-01T10:00:01Z","branch":{"name":"try","from":"main"}}
{"at":"2026-01-01T10:00:01Z","switch":{"branch":"try"}}
{"at":"2026-01-01T10:00:02Z","branch":"try","put":{"kind":"note","id":"b","value":{"text":"x"}}}
{"at":"2026-01-01T10:00:03Z","branch":{"name":"other","from":"try"}}
{"at":"2026-01-01T10:00:03Z","switch":{"branch":"other"}}
{"at":"2026-01-01T10:00:04Z","branch":"other","put":{"kind":"note","id":"c","value":{"text":"x"}}}
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    import(&store, lines).unwrap();
    let session = store.session("test").unwrap();
    let act = |seconds| WriteContext::asked("undo", time(seconds));
    let assert_sizes = |branches: usize, claims: usize| {
        for done in ["written", "in the index", "rebuilt"] {
            let head = session.head().unwrap();
            assert_eq!(session.branches(&head).unwrap().len(), branches, "{done}");
            assert_eq!(session.state(&head).unwrap().claims().len(), claims, "{done}");
            let verified = Store::verify(&path, VerifyDepth::ReadData, time(9), None).unwrap();
            assert_eq!(verified.findings, [], "{done}");
            match done {
                "written" => drop(store.maintain(0).unwrap()),
                _ => drop(store.rebuild().unwrap()),
            }
        }
    };
    assert_sizes(3, 3);
    session.undo(&act(2_000_000), None).unwrap();
    assert_sizes(1, 0);
    session.redo(&act(3_000_000)).unwrap();
    assert_sizes(3, 3);
    session.undo(&act(4_000_000), None).unwrap();
    assert_sizes(1, 0);
}

#[test]
fn a_stream_whose_beginning_changed_is_refused() {
    let store = Store::in_memory().unwrap();
    import(&store, LINES).unwrap();
    let tail = store.tail_bytes().unwrap();
    for changed in [LINES.replacen("0.5", "0.6", 1), LINES[..100].to_owned()] {
        let error = import(&store, &changed).unwrap_err();
        assert!(error.to_string().contains("imported before"), "{error}");
    }
    assert_eq!(store.tail_bytes().unwrap(), tail);
    // Into another session it can be imported.
    let stream = StreamImportRequest { session: Some("another"), ..STREAM };
    import_as(&store, stream, &LINES.replacen("0.5", "0.6", 1)).unwrap();
    assert_eq!(store.sessions().unwrap().len(), 2);
}

#[test]
fn a_bad_line_is_named_and_changes_nothing() {
    let put = |at: &str, rest: &str| format!("{{\"at\":\"{at}\",{rest}}}\n");
    let bad = [
        ("nonsense\n".to_owned(), "line 11"),
        ("[1]\n".to_owned(), "line 11"),
        (format!("{}\n", "[".repeat(100_000)), "line 11"),
        (
            put("2026-01-01T01:00:00Z", r#""put":{"kind":"theory","id":"x","value":{}}"#),
            "unknown kind 'theory'",
        ),
        (
            put(
                "2026-01-01T01:00:00Z",
                r#""put":{"kind":"hypothesis","id":"x","value":{"confidence":1.7}}"#,
            ),
            "line 11",
        ),
        (
            put(
                "2026-01-01T01:00:00Z",
                r#""put":{"kind":"evidence","id":"x","value":{"hypothesis":"gone"}}"#,
            ),
            "line 11",
        ),
        (put("2026-01-01T01:00:00Z", r#""remove":{"kind":"note","id":"x"}"#), "line 11"),
        (put("2026-01-01T01:00:00Z", r#""remove":{"kind":"command","id":"c"}"#), "line 11"),
        (put("2026-01-01T01:00:00Z", r#""branch":{"name":"-x"}"#), "line 11"),
        (put("2026-01-01T01:00:00Z", r#""branch":{"name":"try","from":"main"}"#), "line 11"),
        (put("2026-01-01T01:00:00Z", r#""switch":{"branch":"gone"}"#), "line 11"),
        (put("2026-01-01T01:00:00Z", r#""restore":{"tag":"gone"}"#), "line 11"),
        (put("2026-01-01T01:00:00Z", r#""restore":{"at":"2025-01-01T00:00:00Z"}"#), "line 11"),
        (put("2026-01-01T01:00:00Z", r#""checkpoint":{"message":"m","tags":["a b"]}"#), "line 11"),
        (
            put("2026-01-01T01:00:00Z", r#""checkpoint":{"message":"m","trigger":"sometimes"}"#),
            "line 11",
        ),
        (
            put(
                "2026-01-01T00:00:30Z",
                r#""branch":"try","put":{"kind":"note","id":"x","value":{}}"#,
            ),
            "before the last revision",
        ),
        (
            put(
                "2026-01-01T00:00:30Z",
                r#""branch":"gone","put":{"kind":"note","id":"x","value":{}}"#,
            ),
            "line 11",
        ),
        (
            put("2999-01-01T00:00:00Z", r#""put":{"kind":"note","id":"x","value":{}}"#),
            "ahead of now",
        ),
        (
            put(
                "2026-01-01T01:00:00Z",
                r#""put":{"kind":"command","id":"x","value":{"stdout":{"$text":{}}}}"#,
            ),
            "line 11",
        ),
        (put("2026-01-01T01:00:00Z", r#""session":{"agent":"x"}"#), "line 11"),
    ];
    for (line, why) in bad {
        let store = Store::in_memory().unwrap();
        let tail = store.tail_bytes().unwrap();
        let error = import(&store, &format!("{LINES}{line}{LINES}")).unwrap_err().to_string();
        assert!(error.contains("line 11") && error.contains(why), "{line}: {error}");
        assert_eq!(store.tail_bytes().unwrap(), tail, "{line}");
        // Also if some of it was imported before.
        import(&store, LINES).unwrap();
        let tail = store.tail_bytes().unwrap();
        let error = import(&store, &format!("{LINES}{line}")).unwrap_err().to_string();
        assert!(error.contains("line 11") && error.contains(why), "{line}: {error}");
        assert_eq!(store.tail_bytes().unwrap(), tail, "{line}");
    }
}

#[test]
fn event_lines_may_name_their_sessions() {
    let text = r#"{"at":"2026-01-01T00:00:00Z","session":"a","put":{"kind":"note","id":"n","value":{"text":"x"}}}
{"at":"2026-01-01T00:00:00Z","session":"b","put":{"kind":"note","id":"n","value":{"text":"y"}}}
{"at":"2026-01-01T00:00:01Z","session":"a","checkpoint":{"message":"m"}}
{"at":"2026-01-01T00:00:01Z","put":{"kind":"note","id":"n","value":{"text":"z"}}}
"#;
    let store = Store::in_memory().unwrap();
    let taken = import(&store, text).unwrap();
    assert_eq!(taken.sessions, ["a", "b", "test"]);
    let note = |name: &str| {
        let session = store.session(name).unwrap();
        let state = session.state(&session.head().unwrap()).unwrap();
        state.claim(Kind::Note, "n").unwrap().unwrap().field("text").cloned()
    };
    assert_eq!(["a", "b", "test"].map(note), ["x", "y", "z"].map(|text| Some(text.into())));
    assert_eq!(import(&store, text).unwrap().lines, 0);
    let more =
        r#"{"at":"2026-01-01T00:00:02Z","put":{"kind":"note","id":"n","value":{"text":"w"}}}"#;
    import(&store, &format!("{text}{more}")).unwrap();
    assert_eq!(note("test"), Some("w".into()));
}

#[test]
fn the_recorded_example_is_imported_and_exported_unchanged() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/example/session.jsonl"))
            .unwrap();
    let store = Store::in_memory().unwrap();
    let taken = import(&store, &text).unwrap();
    assert_eq!(taken.lines, text.lines().count() as u64);
    let exported = export(&store.session("test").unwrap());
    let other = Store::in_memory().unwrap();
    import(&other, &exported).unwrap();
    assert_eq!(export(&other.session("test").unwrap()), exported);
}
