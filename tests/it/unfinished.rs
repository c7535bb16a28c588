//! Imports of events that are interrupted: the imported part is reported, the same import continues
//! under the same name, and the whole is one operation.

use forge_store::error::{Error, Result};
use forge_store::model::Timestamp;
use forge_store::store::{
    NewSession, Options, Session, Store, StreamImportReport, StreamImportRequest, UnfinishedImport,
    WriteContext,
};
use std::fmt::Write as _;
use std::io::{self, BufRead, Cursor, Read};
use std::path::Path;
use std::sync::Barrier;
use std::thread;

const STREAM: StreamImportRequest<'static> =
    StreamImportRequest { source: "events:ev.jsonl", name: "ev", session: None };

/// The session of another user of the store.
const OTHER: &str = "of another user";

fn act() -> WriteContext {
    WriteContext::asked("import events", Timestamp::from_micros(1_767_361_600_000_000))
}

/// Reads lines, and fails at the point of a kill.
struct Cut {
    lines: Cursor<Vec<u8>>,
    left: usize,
    /// Another user of the store, which writes when all lines were read.
    other: Option<Store>,
}

impl Read for Cut {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Cut {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Err(io::Error::other("killed here"));
        }
        let all = self.lines.fill_buf()?;
        if all.is_empty()
            && let Some(store) = self.other.take()
        {
            store.create_session(&act(), NewSession::named(OTHER)).unwrap();
        }
        let line = all.iter().position(|byte| *byte == b'\n').map_or(all.len(), |at| at + 1);
        Ok(all.get(..line).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.left -= 1;
        self.lines.consume(count);
    }
}

/// Imports the text: the first pass reads it all, the pass that writes only this many lines. There
/// is a second pass because another user of the store writes during the first one.
fn import(store: &Store, text: &str, lines: usize) -> Result<StreamImportReport> {
    let mut opened = 0;
    let mut open = || {
        opened += 1;
        let is_first = opened == 1;
        let left = if is_first { usize::MAX } else { lines };
        let has_other = store.session(OTHER).is_ok();
        let other = (is_first && lines < usize::MAX && !has_other).then(|| store.clone());
        Ok(Box::new(Cut { lines: Cursor::new(text.as_bytes().to_vec()), left, other }) as Box<_>)
    };
    let taken = store.import_events(&act(), STREAM, &mut open, &|_| {})?;
    store.sync()?;
    Ok(taken)
}

fn note(second: usize, id: &str) -> String {
    let at = format!("2026-01-01T00:00:{second:02}Z");
    format!(
        r#"{{"at":"{at}","put":{{"kind":"note","id":"{id}","value":{{"description":"{id}"}}}}}}"#
    )
}

fn stream(lines: usize) -> String {
    (0..lines).fold(String::new(), |mut text, line| {
        writeln!(text, "{}", note(line, &format!("N{line}"))).expect("it grows");
        text
    })
}

fn named(store: &Store) -> Vec<(String, u64)> {
    let all = store.sessions().unwrap();
    let all = all.into_iter().map(|one| (one.info.name, one.claims));
    all.filter(|(name, _)| name != OTHER).collect()
}

fn create(path: &Path) -> Store {
    Store::create(path, Options::default()).unwrap()
}

fn operations(session: &Session) -> usize {
    session.operations(usize::MAX).unwrap().len()
}

/// Regression: a kill left a part of the stream as an unreported state, and before the first line
/// an empty session, next to which the same import created another one.
#[test]
fn an_import_interrupted_at_any_line_is_reported_and_completed_by_repeating_it() {
    const LINES: usize = 12;
    const PUT: &str = r#""put""#;
    let began = r#"{"at":"2026-01-01T00:00:00Z","session":{"name":"ev"}}"#;
    for (head, put) in [("", PUT), (began, PUT), (began, r#""session":"ev","put""#)] {
        let text = format!("{head}\n{}", stream(LINES).replace(PUT, put));
        let whole = Store::in_memory().unwrap();
        import(&whole, &text, usize::MAX).unwrap();
        assert_eq!(named(&whole), [("ev".to_owned(), LINES as u64)]);
        assert_eq!(whole.unfinished_imports().unwrap(), []);
        let wanted = whole.session("ev").unwrap();
        for lines in 0..LINES + 2 {
            let store = Store::in_memory().unwrap();
            let other = stream(1);
            let mut open = || Ok(Box::new(Cursor::new(other.as_bytes().to_vec())) as Box<_>);
            let beside =
                StreamImportRequest { source: "events:other", name: "other", session: None };
            store.import_events(&act(), beside, &mut open, &|_| {}).unwrap();
            let cut = import(&store, &text, lines);
            let of_it: Vec<_> = named(&store).split_off(1);
            match &cut {
                Err(Error::Connected { .. }) if of_it.is_empty() => {
                    assert!(lines < 3, "{lines} lines were read and nothing is there");
                    assert_eq!(store.unfinished_imports().unwrap(), []);
                }
                Err(Error::Connected { .. }) => {
                    let unfinished = store.unfinished_imports().unwrap();
                    let (session, source) = ("ev".to_owned(), STREAM.source.to_owned());
                    assert_eq!(unfinished, [UnfinishedImport { session, source }], "{lines}");
                    assert_eq!(of_it.len(), 1);
                }
                other => panic!("after {lines} lines: {other:?}"),
            }
            import(&store, &text, usize::MAX).unwrap();
            assert_eq!(named(&store)[1..], [("ev".to_owned(), LINES as u64)], "{lines}");
            assert_eq!(store.unfinished_imports().unwrap(), []);
            assert_eq!(import(&store, &text, usize::MAX).unwrap().lines, 0);
            let session = store.session("ev").unwrap();
            assert_eq!(operations(&session), operations(&wanted), "after {lines} lines");
            let sources = |session: &Session| session.summary().unwrap().sources;
            assert_eq!(sources(&session), sources(&wanted));
            session.undo(&act(), None).unwrap();
            assert_eq!(named(&store)[1..], [("ev".to_owned(), 0)]);
            assert_eq!(store.unfinished_imports().unwrap(), []);
        }
    }
}

#[test]
fn an_interrupted_import_of_a_grown_stream_is_reported_until_it_is_complete() {
    let (first, grown) = (stream(4), stream(9));
    for lines in 5..9 {
        let store = Store::in_memory().unwrap();
        import(&store, &first, usize::MAX).unwrap();
        import(&store, &grown, lines).unwrap_err();
        assert_eq!(store.unfinished_imports().unwrap().len(), 1, "{lines}");
        import(&store, &grown, usize::MAX).unwrap();
        assert_eq!(store.unfinished_imports().unwrap(), []);
        assert_eq!(named(&store), [("ev".to_owned(), 9)]);
        let session = store.session("ev").unwrap();
        // Undoes the second import alone.
        session.undo(&act(), None).unwrap();
        assert_eq!(named(&store), [("ev".to_owned(), 4)]);
    }
}

/// After an undo of an interrupted import nothing is reported.
#[test]
fn an_interrupted_import_can_be_undone() {
    let store = Store::in_memory().unwrap();
    import(&store, &stream(6), 4).unwrap_err();
    store.session("ev").unwrap().undo(&act(), None).unwrap();
    assert_eq!(named(&store), [("ev".to_owned(), 0)]);
    assert_eq!(store.unfinished_imports().unwrap(), []);
}

/// A name that is in use gets a number, and the interrupted import continues there.
#[test]
fn a_retry_continues_in_the_session_of_the_interrupted_import() {
    let began = r#"{"at":"2026-01-01T00:00:00Z","session":{"name":"taken"}}"#;
    let text = format!("{began}\n{}", stream(5));
    for lines in 2..6 {
        let store = Store::in_memory().unwrap();
        store.create_session(&act(), NewSession::named("taken")).unwrap();
        import(&store, &text, lines).unwrap_err();
        import(&store, &text, usize::MAX).unwrap();
        let wanted = [("taken".to_owned(), 0), ("taken-2".to_owned(), 5)];
        assert_eq!(named(&store), wanted, "{lines}");
    }
}

#[test]
fn eight_imports_at_once_make_one_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    create(&path);
    let text = stream(30);
    let gate = Barrier::new(8);
    let lines: u64 = thread::scope(|scope| {
        let one = || {
            let store = Store::open(&path, Options::default()).unwrap();
            gate.wait();
            import(&store, &text, usize::MAX).unwrap().lines
        };
        let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    let store = Store::open(&path, Options::default()).unwrap();
    assert_eq!((named(&store), lines), (vec![("ev".to_owned(), 30)], 30));
    assert_eq!(operations(&store.session("ev").unwrap()), 1);
}
