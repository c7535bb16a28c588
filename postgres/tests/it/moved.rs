//! Stores that move from files into a database and back, in bundles.
#![allow(clippy::print_stderr, reason = "figures must be seen")]

use super::process::{Role, spawn};
use super::support::{
    act, assert_whole, client, count, note, options, put, session, store, time, with_keyring,
};
use forge_store::error::Error;
use forge_store::model::{BranchMetadata, Fact, FactOrigin, Key, Kind, Value};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{
    BundleRange, CheckpointFilter, NewCheckpoint, Options, SourceChunk, Store, VerifyDepth,
    VerifyOutcome,
};
use forge_testkit::example;
use forge_testkit::postgres::PostgresServer;
use std::fmt::Write as _;
use std::io::Cursor;
use std::path::Path;
use std::sync::mpsc::channel;

/// Creates a store in files, whose sessions have branches, facts, checkpoints, a source and an
/// undo.
fn rich(path: &Path, rounds: i64) -> Store {
    let store = Store::create(path, Options::default()).unwrap();
    example::fill(&store).unwrap();
    let session = session(&store, "s");
    for minute in 1..=rounds {
        if minute == rounds / 3 {
            session.create_branch(&act(minute), "try", None, BranchMetadata::default()).unwrap();
            session.switch_branch(&act(minute), "try", false).unwrap();
        }
        if minute == rounds / 2 {
            session.switch_branch(&act(minute), "main", false).unwrap();
            store.maintain(0).unwrap();
        }
        let act = act(minute);
        let mut write = session.write(&act);
        let text = write.text(&format!("{minute} is a long text ").repeat(200));
        let value = Value::from([("command", "make".into()), ("stdout_preview", text)]);
        let (kind, id, origin) = (Kind::Command, format!("c{minute}"), FactOrigin::Recorded);
        let (at, recorded_at) = (time(minute), time(minute));
        write = write.fact(Fact { kind, id, at, origin, place: 0, recorded_at, value });
        write = write.change(note(&format!("N{}", minute % 7), &format!("at {minute}")));
        if minute % 5 == 0 {
            write = write.checkpoint(NewCheckpoint::manual(format!("at {minute}")).tags(["t"]));
        }
        write.commit().unwrap();
    }
    let lines = "a line of a transcript\n".repeat(1000);
    let taken = SourceChunk {
        bytes: store.redact_source(lines.as_bytes(), TextForm::Plain, PartEnding::End),
        lines: 1000,
        keep: true,
        ..SourceChunk::default()
    };
    let operation = store.new_operation().unwrap();
    session.import_chunk(&act(200), operation, "log", taken).unwrap();
    put(&session, 201, "N1", "undone");
    session.undo(&act(202), None).unwrap();
    store
}

fn whole(store: &Store) -> Vec<u8> {
    let sessions = store.every_session().unwrap().into_iter();
    let ranges: Vec<_> =
        sessions.map(|session| BundleRange { session, from: 0, to: None }).collect();
    let mut bytes = Vec::new();
    let write = &mut |part: &[u8]| -> Result<(), Error> {
        bytes.extend_from_slice(part);
        Ok(())
    };
    store.export_bundle(&ranges, write).unwrap();
    bytes
}

fn import(store: &Store, bytes: &[u8]) -> u64 {
    store.import_bundle(&act(500), &mut Cursor::new(bytes), None).unwrap().records
}

/// Returns everything that can be read from the store as text. The digest of every state must be
/// right.
fn everything_in(store: &Store) -> String {
    let mut text = String::new();
    for session in store.every_session().unwrap() {
        let last = session.summary().unwrap().last_sequence;
        for number in 1..=last {
            let moment = session.at_sequence(number).unwrap();
            session.check_digest(&moment).unwrap();
            let state = session.state(&moment).unwrap();
            let entries: Vec<_> = state.claims().entries().map(Result::unwrap).collect();
            writeln!(text, "#{number} {moment:?} {entries:?}").unwrap();
        }
        let head = session.head().unwrap();
        let state = session.state(&head).unwrap();
        writeln!(text, "{:?}", state.facts_of(Kind::Command).unwrap()).unwrap();
        writeln!(text, "{:?}", session.checkpoints(&CheckpointFilter::default())).unwrap();
        writeln!(text, "{:?}", session.branches(&head).unwrap()).unwrap();
        writeln!(text, "{:?}", session.records(1, usize::MAX).unwrap()).unwrap();
        writeln!(text, "{:?}", session.operations(usize::MAX).unwrap()).unwrap();
        for id in 0..7 {
            let key = Key::new(Kind::Note, format!("N{id}"));
            writeln!(text, "{:?}", session.history(&head, &key)).unwrap();
        }
        let bytes = session.bookmark("log").unwrap().map_or(0, |bookmark| bookmark.bytes);
        writeln!(text, "{:?}", session.source_bytes("log", 0, bytes).ok()).unwrap();
    }
    text
}

/// Compares texts, which are long, and shows only the first difference.
#[track_caller]
fn same(found: &str, wanted: &str, what: &str) {
    let different = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    let short = |line: &str| line.chars().take(400).collect::<String>();
    let different = different.map(|(found, wanted)| (short(found), short(wanted)));
    assert!(found == wanted, "{what}: {different:#?}");
}

#[test]
fn a_store_moves_from_files_into_a_database_and_back_and_is_the_same() {
    let Some(server) = PostgresServer::start("moved store") else { return };
    let folder = tempfile::tempdir().unwrap();
    let files = rich(&folder.path().join("files"), 16);
    let (bytes, wanted) = (whole(&files), everything_in(&files));
    let encrypted = with_keyring(folder.path()).encrypted(true);
    for (number, options) in [options(), encrypted].into_iter().enumerate() {
        let address = server.new_database();
        let moved = store(&address, &options);
        assert!(import(&moved, &bytes) > 50);
        assert!(whole(&moved) == bytes, "the same sessions give other bytes");
        if number == 0 {
            same(&everything_in(&moved), &wanted, "in the database");
        }
        moved.maintain(0).unwrap();
        let again = store(&address, &options);
        same(&everything_in(&again), &wanted, "in the index of the database");
        assert_eq!(import(&again, &bytes), 0, "all of it is there");
        assert_whole(&again);
        let back = Store::create(&folder.path().join(format!("back {number}")), Options::default());
        let back = back.unwrap();
        import(&back, &whole(&again));
        same(&everything_in(&back), &wanted, "back in files");
        assert!(whole(&back) == bytes);
        let verified =
            Store::verify(back.path().unwrap(), VerifyDepth::ReadData, time(600), None).unwrap();
        assert_eq!((verified.outcome, verified.findings), (VerifyOutcome::Clean, vec![]));
        // Both stores can continue the session.
        for store in [&again, &back] {
            put(&store.session("s").unwrap(), 700, "N1", "and then");
        }
    }
}

#[test]
fn an_import_into_a_database_that_was_killed_continues_where_it_stopped() {
    let Some(server) = PostgresServer::start("killed import") else { return };
    let folder = tempfile::tempdir().unwrap();
    let files = rich(&folder.path().join("files"), 100);
    let (bytes, wanted) = (whole(&files), everything_in(&files));
    let bundle = folder.path().join("bundle");
    std::fs::write(&bundle, &bytes).unwrap();
    let address = server.new_database();
    drop(store(&address, &options()));
    let mut client = client(&address);
    let (sender, lines) = channel();
    let (kills, mut in_part) = (6, 0);
    for round in 1..=kills {
        let frames = "select count(*) from forge.frame";
        let before = count(&mut client, frames);
        let mut child = spawn(Role::Import, &address, round, bundle.to_str().unwrap(), &sender);
        // Each process is killed a little later than the one before.
        while count(&mut client, frames) < before + 1 + i64::try_from(round).unwrap() {
            if child.try_wait().unwrap().is_some() {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        client.batch_execute("update forge.index set leased_until = '-infinity'").unwrap();
        let store = store(&address, &options());
        let sessions = store.every_session().unwrap();
        in_part += usize::from(!sessions.is_empty() && whole(&store) != bytes);
        assert_whole(&store);
        for session in sessions {
            session.state(&session.head().unwrap()).unwrap();
        }
    }
    drop(sender);
    let finished = lines.iter().filter(|(_, line)| line == "imported").count();
    eprintln!("killed imports: {kills}, {in_part} left a part, {finished} had ended");
    assert!(in_part > 0, "the kills show nothing");
    let store = store(&address, &options());
    import(&store, &bytes);
    same(&everything_in(&store), &wanted, "after the kills");
    assert!(whole(&store) == bytes);
    store.maintain(0).unwrap();
    assert_whole(&store);
}
