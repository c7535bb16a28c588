//! Tests of imports that are killed between two records.

use super::*;
use crate::model::Timestamp;
use crate::store::Store;
use crate::store::event_stream::RehearsalLimits;
use std::io::{BufRead, BufReader, Cursor, Read};

/// Lines of three sessions: claims, removals, a fact and a checkpoint.
const LINES: [&str; 9] = [
    r#"{"at":"2026-01-01T00:00:00Z","session":"a","put":{"kind":"note","id":"n1","value":{"text":"x"}}}"#,
    r#"{"at":"2026-01-01T00:00:01Z","session":"b","put":{"kind":"note","id":"n1","value":{"text":"y"}}}"#,
    r#"{"at":"2026-01-01T00:00:02Z","session":"b","put":{"kind":"command","id":"c1","value":{"command":"make"}}}"#,
    r#"{"at":"2026-01-01T00:00:03Z","session":"c","put":{"kind":"note","id":"n1","value":{"text":"z"}}}"#,
    r#"{"at":"2026-01-01T00:00:04Z","session":"b","remove":{"kind":"note","id":"n1"}}"#,
    r#"{"at":"2026-01-01T00:00:05Z","session":"b","checkpoint":{"message":"m"}}"#,
    r#"{"at":"2026-01-01T00:00:06Z","session":"a","put":{"kind":"note","id":"n2","value":{"text":"x"}}}"#,
    r#"{"at":"2026-01-01T00:00:07Z","session":"c","remove":{"kind":"note","id":"n1"}}"#,
    r#"{"at":"2026-01-01T00:00:08Z","session":"b","put":{"kind":"note","id":"n3","value":{"text":"x"}}}"#,
];

/// The first of February 2026.
const NOW: Timestamp = Timestamp::from_micros(1_769_904_000_000_000);

/// A reader of bytes that fails after the given number of them.
struct Broken(Cursor<Vec<u8>>, usize);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.1 - usize::try_from(self.0.position()).unwrap();
        if left == 0 {
            return Err(std::io::Error::other("killed"));
        }
        let length = buffer.len().min(left);
        self.0.read(&mut buffer[..length])
    }
}

/// Imports the stream. An import reads its stream twice; the second time, reading fails after
/// `upto` bytes, if that is given.
fn import(store: &Store, text: &str, upto: Option<usize>) -> Result<()> {
    let act = crate::store::WriteContext::hook("import", NOW);
    let stream = StreamImportRequest { source: "events:s", name: "own", session: None };
    let mut opened = 0;
    let mut open = || -> std::io::Result<Box<dyn BufRead>> {
        opened += 1;
        let upto = upto.filter(|_| opened > 1).unwrap_or(usize::MAX);
        let bytes = text.as_bytes().to_vec();
        Ok(Box::new(BufReader::with_capacity(1, Broken(Cursor::new(bytes), upto))))
    };
    // The lines are written one by one.
    let limits = RehearsalLimits { bytes_at_once: 0, ..RehearsalLimits::default() };
    store.import_once(&act, stream, &mut open, (limits, &|_| {})).map(drop)
}

fn exports(store: &Store) -> Vec<String> {
    let names = ["a", "b", "c"].map(|name| {
        let mut text = String::new();
        let Ok(session) = store.session(name) else { return text };
        let mut write = |line: &[u8]| -> Result<()> {
            text.push_str(&String::from_utf8_lossy(line));
            Ok(())
        };
        session.export_events(&|_, _| None, &mut write).unwrap();
        text
    });
    names.to_vec()
}

fn bookmark(store: &Store) -> Option<BookmarkRow> {
    store.session("a").ok()?.bookmark_row("events:s").unwrap()
}

#[test]
fn a_line_to_another_session_is_written_once_when_the_import_is_killed_after_it() {
    let text: String = LINES.iter().flat_map(|line| [*line, "\n"]).collect();
    let ends: Vec<usize> =
        text.char_indices().filter(|(_, next)| *next == '\n').map(|(at, _)| at + 1).collect();
    let whole = Store::in_memory().unwrap();
    import(&whole, &text, None).unwrap();
    let wanted = exports(&whole);
    for line in 1..LINES.len() {
        let store = Store::in_memory().unwrap();
        let killed = |upto: usize| {
            let error = import(&store, &text, Some(upto)).unwrap_err();
            assert!(format!("{error:?}").contains("killed"), "line {line}: {error:?}");
        };
        killed(ends[line - 1]);
        let before = bookmark(&store);
        killed(ends[line]);
        // Restores the old bookmark, as if the process had been killed after the record of the line
        // and before the record of the bookmark.
        if let Some(before) = before {
            let home = store.session("a").unwrap();
            let act = crate::store::WriteContext::hook("test", NOW);
            let mut operation = act.operation().unwrap();
            operation.id = operation_id().unwrap();
            let back = RecordChange::Bookmark {
                session: home.number,
                source: "events:s".to_owned(),
                bookmark: Some(Box::new(before)),
            };
            home.commit_changes(&operation, CommitDurability::Later, &[back]).unwrap();
        }
        let marks = || {
            let (refs, _) = store.engine.follower.refs().unwrap();
            let all = refs.sessions.all().map(|one| format!("{:?}", one.unwrap().1.bookmarks));
            all.collect::<Vec<_>>()
        };
        import(&store, &text, None).unwrap_or_else(|error| {
            panic!("line {line}: {error:?} {ends:?} {:?}", marks());
        });
        assert_eq!(exports(&store), wanted, "line {line}");
        assert_eq!(store.unfinished_imports().unwrap(), []);
        let (refs, _) = store.engine.follower.refs().unwrap();
        assert!(refs.sessions.find(SessionLookup::Unfinished).unwrap().is_empty());
        // Lines that are appended later are imported too.
        let more = format!("{text}{}\n", LINES[8].replace("08Z", "09Z").replace("n3", "n4"));
        import(&store, &more, None).unwrap();
        import(&whole, &more, None).unwrap();
        assert_eq!(exports(&store), exports(&whole));
    }
}

#[test]
fn a_stream_that_changed_after_its_import_was_killed_is_refused() {
    let text: String = LINES[..4].iter().flat_map(|line| [*line, "\n"]).collect();
    let store = Store::in_memory().unwrap();
    import(&store, &text, Some(text.len())).unwrap_err();
    // The bookmark covers only the line of `a`. The mark of written lines covers the later lines.
    assert_eq!(bookmark(&store).unwrap().lines, 1);
    for changed in [text.replace("make", "Make"), text.replace("make", "make all")] {
        let error = import(&store, &changed, None).unwrap_err().to_string();
        assert!(error.contains("are not those that were imported before"), "{error}");
    }
    import(&store, &text, None).unwrap();
    assert_eq!(store.unfinished_imports().unwrap(), []);
}

#[test]
fn the_bookmark_moves_after_many_lines_to_other_sessions() {
    let line = |number: u64| {
        format!(
            "{{\"at\":\"2026-01-01T00:{:02}:{:02}Z\",\"session\":\"{}\",\"put\":{{\"kind\":\"note\",\
             \"id\":\"n{number}\",\"value\":{{\"text\":\"x\"}}}}}}\n",
            number / 60,
            number % 60,
            if number == 0 { "a" } else { "b" },
        )
    };
    let text: String = (0..600).map(line).collect();
    let store = Store::in_memory().unwrap();
    import(&store, &text, Some(text.len())).unwrap_err();
    let lines = bookmark(&store).unwrap().lines;
    assert!((100..600).contains(&lines), "{lines}");
    import(&store, &text, None).unwrap();
    let notes = |store: &Store| exports(store)[1].matches("\"put\"").count();
    assert_eq!(notes(&store), 599);
    // No operation lists the marks among its effects.
    let marks = |name: &str| {
        let session = store.session(name).unwrap();
        let all = session.operations(100).unwrap().into_iter();
        all.flat_map(|one| one.effects).filter(|effect| effect.contains("unfinished")).count()
    };
    assert_eq!((marks("a"), marks("b")), (0, 0));
}

/// A `session` line after the bookmark is read again when the import continues.
#[test]
fn a_bookmark_has_the_session_that_is_current_at_its_position() {
    let at = |second: usize| format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60);
    let session =
        |name: &str| format!("{{\"at\":\"{}\",\"session\":{{\"name\":\"{name}\"}}}}\n", at(0));
    let note = |number: usize| {
        format!(
            "{{\"at\":\"{}\",\"put\":{{\"kind\":\"note\",\"id\":\"n{number}\",\"value\":{{\"text\":\"x\"}}}}}}\n",
            at(number)
        )
    };
    let notes = |numbers: std::ops::Range<usize>| numbers.map(note).collect::<String>();
    // 308 lines are appended together. The bookmark is after 256 records; the last of them is of
    // `b`.
    let first =
        [LINES[0], "\n", &session("b"), &notes(0..300), &session("c"), &notes(300..305)].concat();
    let import = |store: &Store, text: &str| {
        let act = crate::store::WriteContext::hook("import", NOW);
        let stream = StreamImportRequest { source: "events:s", name: "own", session: None };
        let mut open = || -> std::io::Result<Box<dyn BufRead>> {
            Ok(Box::new(Cursor::new(text.as_bytes().to_vec())))
        };
        let limits = RehearsalLimits { lines: 308, ..RehearsalLimits::default() };
        store.import_once(&act, stream, &mut open, (limits, &|_| {})).map(drop)
    };
    let store = Store::in_memory().unwrap();
    import(&store, &format!("{first}a wrong line\n")).unwrap_err();
    let known = bookmark(&store).unwrap();
    assert_eq!((known.lines, known.carry.0.as_slice()), (257, &b"b"[..]));

    let whole = format!("{first}{}", notes(305..310));
    import(&store, &whole).unwrap();
    let at_once = Store::in_memory().unwrap();
    import(&at_once, &whole).unwrap();
    assert_eq!(exports(&store), exports(&at_once));
    assert!(exports(&store).iter().all(|text| !text.is_empty()));
}
