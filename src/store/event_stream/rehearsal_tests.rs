//! Imports that are rehearsed and written in parts.

use super::*;
use crate::backend::memory::{MemoryIndex, MemoryLog};
use crate::format::FormatMarker;
use crate::model::Timestamp;
use crate::store::event_stream::{RehearsalLimits, StreamImportReport, StreamImportRequest};
use crate::store::folder::write_first_record;
use crate::store::new_session::NewSession;
use crate::store::write_context::WriteContext;
use crate::store::{OperationSummary, VerifyDepth, VerifyOutcome};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Cursor, Read};

/// The first of February 2026.
const NOW: Timestamp = Timestamp::from_micros(1_769_904_000_000_000);

/// A stream. Its third to fifth lines make one revision: the evidence names a hypothesis that a
/// later line adds.
const LINES: [&str; 8] = [
    r#"{"at":"2026-01-01T00:00:00Z","session":"a","put":{"kind":"note","id":"N1","value":{"description":"x"}}}"#,
    r#"{"at":"2026-01-01T00:00:01Z","session":"b","put":{"kind":"note","id":"N1","value":{"description":"y"}}}"#,
    r#"{"at":"2026-01-01T00:00:02Z","session":"b","put":{"kind":"evidence","id":"E1","value":{"description":"e","hypothesis":"H1","strength":0.5}}}"#,
    r#"{"at":"2026-01-01T00:00:02Z","session":"b","put":{"kind":"note","id":"N2","value":{"description":"y"}}}"#,
    r#"{"at":"2026-01-01T00:00:02Z","session":"b","put":{"kind":"hypothesis","id":"H1","value":{"description":"h","confidence":0.5}}}"#,
    r#"{"at":"2026-01-01T00:00:03Z","session":"a","put":{"kind":"command","id":"c1","value":{"command":"make"}}}"#,
    r#"{"at":"2026-01-01T00:00:04Z","session":"b","checkpoint":{"message":"m"}}"#,
    r#"{"at":"2026-01-01T00:00:05Z","session":"c","put":{"kind":"note","id":"N1","value":{"description":"z"}}}"#,
];

fn text_of(lines: &[impl AsRef<str>]) -> String {
    lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect()
}

fn import(store: &Store, text: &str, at_once: u64) -> Result<StreamImportReport> {
    import_within(store, text, RehearsalLimits { lines: at_once, ..RehearsalLimits::default() })
}

fn import_within(store: &Store, text: &str, limits: RehearsalLimits) -> Result<StreamImportReport> {
    let stream = StreamImportRequest { source: "events:s", name: "own", session: None };
    let mut open = || -> std::io::Result<Box<dyn BufRead>> {
        Ok(Box::new(Cursor::new(text.as_bytes().to_vec())))
    };
    let act = WriteContext::hook("import", NOW);
    store.import_once(&act, stream, &mut open, (limits, &|_| {}))
}

fn exports(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        let mut text = String::new();
        if let Ok(session) = store.session(name) {
            let mut write = |line: &[u8]| -> Result<()> {
                text.push_str(&String::from_utf8_lossy(line));
                Ok(())
            };
            session.export_events(&|_, _| None, &mut write).unwrap();
        }
        all.push(text);
    }
    all
}

#[test]
fn a_stream_is_the_same_however_many_lines_are_written_at_once() {
    let text = text_of(&LINES);
    let whole = Store::in_memory().unwrap();
    let wanted = import(&whole, &text, u64::MAX / 2).unwrap();
    assert_eq!((wanted.lines, wanted.revisions, wanted.bytes), (8, 4, text.len() as u64));
    for at_once in 1..9 {
        let store = Store::in_memory().unwrap();
        assert_eq!(import(&store, &text, at_once).unwrap(), wanted, "{at_once}");
        assert_eq!(exports(&store), exports(&whole), "{at_once}");
        assert_eq!(store.unfinished_imports().unwrap(), []);
    }
}

#[test]
fn a_bad_line_says_how_many_lines_before_it_are_imported() {
    let mut lines = LINES;
    lines[5] = r#"{"at":"2025-01-01T00:00:00Z","session":"a","put":{"kind":"note","id":"N9","value":{"description":"old"}}}"#;
    let (bad, text) = (text_of(&lines), text_of(&LINES));
    let store = Store::in_memory().unwrap();
    let error = import(&store, &bad, 8).unwrap_err().to_string();
    assert!(!error.contains("line 7"), "{error}");
    assert!(error.contains("line 6: 2025") && !error.contains("imported"), "{error}");
    assert_eq!(exports(&store), ["", "", ""], "nothing is written");
    let error = import(&store, &bad, 2).unwrap_err().to_string();
    assert!(
        error.contains("line 6: 2025") && error.contains("the first 5 lines are imported"),
        "{error}"
    );
    assert_eq!(store.unfinished_imports().unwrap().len(), 1);
    // After the line is corrected, the import continues there.
    import(&store, &text, 2).unwrap();
    let whole = Store::in_memory().unwrap();
    import(&whole, &text, 8).unwrap();
    assert_eq!(exports(&store), exports(&whole));
    assert_eq!(store.unfinished_imports().unwrap(), []);
}

/// Returns a store whose journal has the first records of another one, as a crash may leave it.
fn with_first_records(store: &Store, count: usize) -> Store {
    let mut tail = store.engine.follower.log.read(0, u64::MAX).unwrap();
    tail.frames.truncate(count);
    tail.end = tail.frames.last().unwrap().end;
    let marker = store.engine.marker.clone();
    let (log, index) = (MemoryLog::continuing(tail, 0), MemoryIndex::default());
    let about = (SealStatus::Unsealed, SealMode::Absent, None);
    Store::assemble(Arc::new(log), Arc::new(index), marker, Options::default(), about, None)
}

#[test]
fn an_import_continues_after_the_records_that_a_crash_left() {
    let text = text_of(&LINES);
    let whole = Store::in_memory().unwrap();
    import(&whole, &text, 3).unwrap();
    let count = whole.engine.follower.log.read(0, u64::MAX).unwrap().frames.len();
    assert!(count > LINES.len());
    for left in 1..=count {
        let store = with_first_records(&whole, left);
        // The first record begins the store, the second one the import, and the last one ends it.
        let unfinished = usize::from((2..count).contains(&left));
        assert_eq!(store.unfinished_imports().unwrap().len(), unfinished, "{left}");
        import(&store, &text, 3).unwrap();
        assert_eq!(exports(&store), exports(&whole), "{left}");
        assert_eq!(store.unfinished_imports().unwrap(), []);
        assert_eq!(import(&store, &text, 3).unwrap().lines, 0);
        // Each session has one operation, and no operation lists the marks.
        for name in ["a", "b", "c"] {
            let operations = store.session(name).unwrap().operations(100).unwrap();
            assert_eq!(operations.len(), 1, "{name} after {left}");
            assert!(!operations[0].effects.iter().any(|effect| effect.contains("unfinished")));
        }
    }
}

#[test]
fn lines_are_written_one_by_one_if_another_user_of_the_store_writes_meanwhile() {
    let text = text_of(&LINES);
    let whole = Store::in_memory().unwrap();
    let wanted = import(&whole, &text, 3).unwrap();
    let store = Store::in_memory().unwrap();
    let stream = StreamImportRequest { source: "events:s", name: "own", session: None };
    let act = WriteContext::hook("import", NOW);
    let reads = Cell::new(0);
    let mut open = || -> std::io::Result<Box<dyn BufRead>> {
        reads.set(reads.get() + 1);
        let meanwhile = (reads.get() == 1).then(|| store.clone());
        Ok(Box::new(BufReader::new(Meanwhile(Cursor::new(text.clone().into_bytes()), meanwhile))))
    };
    let limits = RehearsalLimits { lines: 3, ..RehearsalLimits::default() };
    let taken = store.import_once(&act, stream, &mut open, (limits, &|_| {})).unwrap();
    assert_eq!((taken, reads.get()), (wanted, 2));
    assert_eq!(exports(&store), exports(&whole));
    assert_eq!(store.unfinished_imports().unwrap(), []);
}

/// A stream during which another user of the store begins a session.
struct Meanwhile(Cursor<Vec<u8>>, Option<Store>);

impl Read for Meanwhile {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0.position() > 400
            && let Some(store) = self.1.take()
        {
            store.create_session(&WriteContext::hook("x", NOW), NewSession::named("o")).unwrap();
        }
        let length = buffer.len().min(50);
        self.0.read(&mut buffer[..length])
    }
}

/// Regression: an import appended a record for each line, and then one for each session.
#[test]
fn an_import_appends_once_for_many_lines_whatever_sessions_they_are_of() {
    const AT_ONCE: usize = 64;
    let line = |number: usize| {
        format!(
            "{{\"at\":\"2026-01-01T00:{:02}:{:02}Z\",\"session\":\"s{}\",\"put\":{{\"kind\":\"note\",\
             \"id\":\"N1\",\"value\":{{\"description\":\"x\"}}}}}}\n",
            number / 60,
            number % 60,
            number / 2,
        )
    };
    let appends = |lines: usize| {
        let log = MemoryLog::default();
        write_first_record(&log).unwrap();
        log.take_counts();
        let marker = FormatMarker::new([1; 16], [2; 32]);
        let index = Arc::new(MemoryIndex::default());
        let about = (SealStatus::Unsealed, SealMode::Absent, None);
        let store =
            Store::assemble(Arc::new(log.clone()), index, marker, Options::default(), about, None);
        let text: String = (0..lines).map(line).collect();
        let taken = import(&store, &text, AT_ONCE as u64).unwrap();
        assert_eq!((taken.lines, taken.sessions.len()), (lines as u64, lines / 2));
        let counts = log.take_counts();
        [counts.appends, counts.group_appends]
    };
    // An append for each 64 lines, and one that ends the import.
    assert_eq!([256, 512, 1024].map(appends), [[0, 5], [0, 9], [0, 17]]);
}

#[test]
fn a_report_counts_all_sessions_and_names_the_first_thousand() {
    const SESSIONS: usize = StreamImportReport::MAX_NAMES + 50;
    let line = |number: usize| {
        let (minute, second, session) = (number / 60, number % 60, number % SESSIONS);
        format!(
            "{{\"at\":\"2026-01-01T00:{minute:02}:{second:02}Z\",\"session\":\"s{session}\",\"put\":\
             {{\"kind\":\"note\",\"id\":\"N{number}\",\"value\":{{\"description\":\"x\"}}}}}}\n"
        )
    };
    // Each session has a line in two batches.
    let text: String = (0..2 * SESSIONS).map(line).collect();
    let first: Vec<_> = (0..StreamImportReport::MAX_NAMES).map(|one| format!("s{one}")).collect();
    let staged = RehearsalLimits { lines: 700, ..RehearsalLimits::default() };
    let written_twice = RehearsalLimits { bytes_at_once: 0, ..staged };
    for limits in [staged, written_twice] {
        let taken = import_within(&Store::in_memory().unwrap(), &text, limits).unwrap();
        assert_eq!((taken.session_count, &taken.sessions), (SESSIONS as u64, &first));
    }
}

/// Regression: each move of the bookmark adds to the row of the operation, and each apply reads and
/// writes the whole row. With too many moves, an import of many sessions wrote a row of more than a
/// megabyte again and again.
#[test]
fn an_import_of_many_sessions_moves_its_bookmark_once_for_each_append() {
    let line = |number: usize| {
        let (minute, second) = (number / 60, number % 60);
        format!(
            "{{\"at\":\"2026-01-01T00:{minute:02}:{second:02}Z\",\"session\":\"s{number}\",\"put\":\
             {{\"kind\":\"note\",\"id\":\"N1\",\"value\":{{\"description\":\"x\"}}}}}}\n"
        )
    };
    let text: String = (0..900).map(line).collect();
    let store = Store::in_memory().unwrap();
    import(&store, &text, 800).unwrap();
    let operations = store.session("s0").unwrap().operations(10).unwrap();
    let moves = |one: &OperationSummary| {
        one.effects.iter().filter(|effect| effect.starts_with("events:s up to byte")).count()
    };
    // One move with the record of the session's line, and one with each of the two appends.
    assert_eq!(operations.iter().map(moves).sum::<usize>(), 3);
}

/// Returns lines of three sessions. Each session continues after each batch.
fn many_lines() -> Vec<String> {
    let mut lines = Vec::new();
    for number in 0..600 {
        let session = ["a", "b", "c"][number / 7 % 3];
        let at = format!("2026-01-01T00:{:02}:{:02}Z", number / 60, number % 60);
        let id = number % 5;
        lines.push(format!(
            r#"{{"at":"{at}","session":"{session}","put":{{"kind":"note","id":"N{id}","value":{{"description":"{number}"}}}}}}"#
        ));
        if number % 50 == 0 {
            lines.push(format!(
                r#"{{"at":"{at}","session":"{session}","checkpoint":{{"message":"{number}"}}}}"#
            ));
        }
    }
    lines
}

#[test]
fn a_wrong_line_is_refused_while_the_lines_before_it_are_applied() {
    let mut lines = many_lines();
    let wrong = lines.len() - 1;
    let right = std::mem::replace(&mut lines[wrong], r#"{"at":"never"}"#.to_owned());
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), Options::default()).unwrap();
    let error = import(&store, &text_of(&lines), 200).unwrap_err().to_string();
    assert!(error.contains("the first 599 lines are imported"), "{error}");
    assert!(store.engine.follower.index.position().unwrap() > 0);
    lines[wrong] = right;
    import(&store, &text_of(&lines), 200).unwrap();
    let whole = Store::in_memory().unwrap();
    import(&whole, &text_of(&lines), 10_000).unwrap();
    assert_eq!(exports(&store), exports(&whole));
}

/// Regression: the copy of the store read the journal from the position of the generation that this
/// process had open, although that part of the journal had been removed.
#[test]
fn a_stream_is_imported_although_another_process_publishes_a_generation() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), Options::default()).unwrap();
    let lines = many_lines();
    import(&store, &text_of(&lines[..100]), 10_000).unwrap();
    let other = Store::open(folder.path(), Options::default()).unwrap();
    // So few lines that they are not applied.
    import(&other, &text_of(&lines[..105]), 10_000).unwrap();
    let begun = other.engine.begin_apply_if_long(0).unwrap().expect("the tail has records");
    // This process has the old generation open, and reads on into the segment that the other one
    // has begun.
    drop(store.engine.follower.view().unwrap());
    assert!(begun.finish().unwrap());
    import(&store, &text_of(&lines), 50).unwrap();
    let whole = Store::in_memory().unwrap();
    import(&whole, &text_of(&lines), 10_000).unwrap();
    assert_eq!(exports(&store), exports(&whole));
}

#[test]
fn a_stream_is_the_same_if_the_index_is_brought_up_to_date_between_its_parts() {
    let text = text_of(&many_lines());
    let whole = Store::in_memory().unwrap();
    import(&whole, &text, 10_000).unwrap();
    for at_once in [30, 200] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path(), Options::default()).unwrap();
        assert_eq!(import(&store, &text, at_once).unwrap().revisions, 600);
        assert_eq!(exports(&store), exports(&whole), "{at_once}");
        assert!(store.engine.follower.index.position().unwrap() > 0);
        assert_eq!(store.unfinished_imports().unwrap(), []);
        store.sync().unwrap();
        drop(store);
        let report = Store::verify(folder.path(), VerifyDepth::ReadData, NOW, None).unwrap();
        assert_eq!((report.outcome, report.findings), (VerifyOutcome::Clean, vec![]));
    }
}
