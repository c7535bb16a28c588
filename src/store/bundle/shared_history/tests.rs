//! Tests of packs that were rewritten on a remote. Everyone with the key of a remote can rewrite
//! its packs, and claim that a purge is the only difference. Here a false purge writes another text
//! instead of masking a secret.

use crate::engine::purge::PurgeTask;
use crate::error::Error;
use crate::model::{Fact, FactOrigin, Key, Kind, RetentionPolicy, Timestamp, Value};
use crate::redact::{KnownSecrets, PartEnding, TextForm, TextMasker};
use crate::store::remote::{Depot, MemoryDepot, Remote};
use crate::store::{
    ClaimChange, NewCheckpoint, NewSession, Session, SourceChunk, Store, WriteContext,
};
use std::ops::Range;
use std::sync::Arc;

const WORD: &str = "the-pump-is-cold";
const LIE: &str = "the-pump-is-warm";
const SECRET: [u8; 32] = [7; 32];

fn act(minute: i64) -> WriteContext {
    WriteContext::asked("test", Timestamp::from_micros(1_767_261_600_000_000 + minute * 60_000_000))
}

fn note(session: &Session, minute: i64, id: &str, text: &str) {
    let value = Value::from([("description", text.into()), ("source", "t".into())]);
    let change = ClaimChange::put(Key::new(Kind::Note, id), value);
    session.write(&act(minute)).change(change).commit().unwrap();
}

fn fact(minute: i64, value: Value) -> Fact {
    let at = act(minute).now;
    let origin = FactOrigin::Recorded;
    Fact { kind: Kind::Command, id: "c".to_owned(), at, origin, place: 0, recorded_at: at, value }
}

/// A false purge: replaces `WORD` by `LIE`, which has the same length.
struct Liar;

impl TextMasker for Liar {
    fn masked(&self, text: &[u8]) -> Option<(Vec<u8>, Vec<Range<usize>>)> {
        let places: Vec<_> = (0..text.len())
            .filter(|at| text[*at..].starts_with(WORD.as_bytes()))
            .map(|at| at..at + WORD.len())
            .collect();
        let mut new = text.to_vec();
        places.iter().for_each(|place| new[place.clone()].copy_from_slice(LIE.as_bytes()));
        (!places.is_empty()).then_some((new, places))
    }
}

fn purge(store: &Store, mask: &dyn TextMasker) {
    let operation = act(20).operation().unwrap();
    let task =
        PurgeTask { mask, resolve: &|_, _| None, operation, reason: None, progress: &|_| () };
    assert!(!store.engine.purge(&task).unwrap().places.is_empty());
}

/// Records `WORD` in one of the forms in which a store keeps texts.
type Recorder = fn(&Store, &Session);

const RECORDERS: [(&str, Recorder); 6] = [
    ("a claim", |_, session| note(session, 2, "W", WORD)),
    ("a large claim", |_, session| note(session, 2, "W", &format!("{WORD} ").repeat(900))),
    ("a fact", |_, session| {
        let value = Value::from([("command", WORD.into())]);
        session.write(&act(2)).fact(fact(2, value)).commit().unwrap();
    }),
    ("a long text", |_, session| {
        let act = act(2);
        let mut write = session.write(&act);
        // The word is not in the part of the text that the fact itself has.
        let text = write.text(&format!("{}{WORD}", "a line of the output\n".repeat(900)));
        let value = Value::from([("command", "make".into()), ("stdout_preview", text)]);
        write.fact(fact(2, value)).commit().unwrap();
    }),
    ("a checkpoint", |_, session| {
        session.write(&act(2)).checkpoint(NewCheckpoint::manual(WORD)).commit().unwrap();
    }),
    ("a source", |store, session| {
        let lines = format!("{{\"line\":\"{WORD}\"}}\n");
        let taken = SourceChunk {
            bytes: store.redact_source(lines.as_bytes(), TextForm::Json, PartEnding::End),
            lines: 1,
            keep: true,
            facts: vec![fact(2, Value::from([("command", "make".into())]))],
            ..SourceChunk::default()
        };
        session.import_chunk(&act(2), store.new_operation().unwrap(), "log", taken).unwrap();
    }),
];

/// Pulls a session that was purged with `mask` in another store, into a store that has the original
/// and a later write.
fn pull_changed(record: Recorder, mask: &dyn TextMasker, accepts: bool) -> Result<String, Error> {
    join_changed(record, &|there| purge(there, mask), &|_| (), accepts)
}

/// Joins two copies of a session that were changed separately after they had been equal. Returns
/// the texts of the joined session. Checks that a refused join changes nothing.
fn join_changed(
    record: Recorder,
    change_there: &dyn Fn(&Store),
    change_here: &dyn Fn(&Store),
    accepts: bool,
) -> Result<String, Error> {
    let depots = [(); 2].map(|()| Arc::new(MemoryDepot::default()) as Arc<dyn Depot>);
    depots.iter().for_each(|depot| drop(Remote::create(Arc::clone(depot), &SECRET).unwrap()));
    let open = |depot: &Arc<dyn Depot>| Remote::open(Arc::clone(depot), &SECRET).unwrap();
    let [first, second] = [(); 2].map(|()| Store::in_memory().unwrap());
    let session = first.create_session(&act(0), NewSession::named("s")).unwrap();
    note(&session, 1, "A", "first");
    record(&first, &session);
    let [one, other] = [0, 1].map(|which| open(&depots[which]));
    first.push(&act(3), &one, &session).unwrap();
    let handle = one.handle(&session.summary().unwrap().info.id).unwrap();
    second.pull(&act(4), &open(&depots[0]), &handle, None).unwrap();
    change_there(&first);
    change_here(&second);
    note(&session, 21, "B", "there");
    first.push(&act(22), &other, &session).unwrap();
    note(&second.session("s").unwrap(), 23, "C", "here");
    let before = content(&second);
    let remote = open(&depots[1]);
    let remote = if accepts { remote.accepting_history() } else { remote };
    match second.pull(&act(24), &remote, &handle, None) {
        Ok(pulled) => {
            assert!(!pulled.joined.renumbered.is_empty(), "it was joined");
            Ok(content(&second))
        }
        Err(error) => {
            assert_eq!(content(&second), before, "nothing changed");
            Err(error)
        }
    }
}

/// The texts of a session.
fn content(store: &Store) -> String {
    let session = store.session("s").unwrap();
    let head = session.head().unwrap();
    let mut text =
        format!("{:?}", session.state(&head).unwrap().claims().entries().collect::<Vec<_>>());
    text += &format!("{:?}", session.checkpoints(&Default::default()).unwrap());
    for (source, _) in session.summary().unwrap().sources {
        let mut add = |part: &[u8]| -> Result<(), Error> {
            text += &String::from_utf8_lossy(part);
            Ok(())
        };
        session.write_source::<Error>(&source, &mut add).unwrap();
    }
    text
}

#[test]
fn a_changed_record_that_no_purge_explains_is_refused() {
    for (what, record) in RECORDERS {
        let error = pull_changed(record, &Liar, false).expect_err(what);
        assert!(matches!(&error, Error::RemoteHistory { .. }), "{what}: {error}");
        assert!(error.to_string().contains("which no purge explains"), "{error}");
    }
    // A person may accept it.
    let (_, record) = RECORDERS[0];
    assert!(pull_changed(record, &Liar, true).unwrap().contains(LIE));
}

#[test]
fn a_real_purge_is_joined() {
    let known = KnownSecrets::new([WORD]).unwrap();
    for (what, record) in RECORDERS {
        let text =
            pull_changed(record, &known, false).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!text.contains(WORD), "{what}: {text}");
    }
}

/// One of the copies lacks the folded revisions. The revision into which they were folded has their
/// changes.
#[test]
fn a_session_that_one_side_pruned_is_joined() {
    let record: Recorder = |_, session| {
        for minute in 2..6 {
            note(session, minute, "W", &format!("{minute} {WORD}"));
        }
    };
    let prune = |store: &Store| {
        let bare = RetentionPolicy {
            manual: false,
            significant: false,
            revisions: 0,
            ..RetentionPolicy::none()
        };
        let pruned = store.session("s").unwrap().prune(&act(20), &bare).unwrap();
        assert!(!pruned.folds.is_empty(), "{pruned:?}");
    };
    for (there, here) in
        [(&prune as &dyn Fn(&Store), &(|_: &Store| ()) as &dyn Fn(&Store)), (&|_| (), &prune)]
    {
        join_changed(record, there, here, false).unwrap();
    }
}
