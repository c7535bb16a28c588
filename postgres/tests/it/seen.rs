//! What an administrator of the database can see and change, and what the database keeps after a
//! purge.
#![allow(clippy::print_stderr, reason = "figures must be seen")]

use super::support::{
    NAME, WAIT, act, add, assert_whole, breach, client, count, database, hex, in_tables, log,
    notes, options, put, session, store, time, with_keyring,
};
use forge_store::backend::WriteAheadLog;
use forge_store::error::{BackendError, ErrorKind};
use forge_store::format::FormatMarker;
use forge_store::model::{BranchMetadata, Fact, FactOrigin, Kind, Value};
use forge_store::redact::{KnownSecrets, PartEnding, TextForm};
use forge_store::store::database::{Database, DatabasePlace, FrameRow, FrameTable, Index};
use forge_store::store::{
    CheckpointFilter, NewCheckpoint, NewSession, Options, PurgeReport, Session, SourceChunk, Store,
    VerifyDepth, VerifyOutcome, WriteContext,
};
use forge_testkit::postgres::PostgresServer;
use postgres::Client;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The text that is planted in every place that can hold a text.
const PLANTED: &str = "zebra-Zx9Kq2Lm7Pv4";

/// Writes data of all kinds with the planted text: some of it is applied to the index, some is in
/// the tail.
fn plant(store: &Store) {
    let new = NewSession {
        agent: Some(format!("agent {PLANTED}")),
        agent_session: Some(format!("agent session {PLANTED}")),
        ..NewSession::named(format!("s {PLANTED}"))
    };
    let session = store.create_session(&act(0), new).unwrap();
    put(&session, 1, &format!("id {PLANTED}"), &format!("small {PLANTED}"));
    put(&session, 2, "large", &format!("{PLANTED} and more, ").repeat(2000));
    plant_facts(store, &session);
    let metadata = BranchMetadata {
        hypothesis: Some(format!("hypothesis {PLANTED}")),
        ..BranchMetadata::default()
    };
    session.create_branch(&act(6), &format!("b-{PLANTED}"), None, metadata).unwrap();
    let tags = [format!("t-{PLANTED}")];
    let checkpoint = NewCheckpoint::manual(format!("checkpoint {PLANTED}")).tags(tags);
    session.write(&act(7)).checkpoint(checkpoint).commit().unwrap();
    for minute in 10..20 {
        put(&session, minute, &format!("N{minute}"), &format!("{minute} {PLANTED}"));
    }
    assert!(store.maintain(0).unwrap());
    put(&session, 20, "replaced", PLANTED);
    put(&session, 21, "replaced", "by another text");
    session.undo(&act(22), None).unwrap();
    assert!(store.maintain(0).unwrap());
    put(&session, 23, "tail", &format!("in the tail: {PLANTED}"));
}

fn plant_facts(store: &Store, session: &Session) {
    let fact = |minute: i64, value| Fact {
        kind: Kind::Command,
        id: format!("f {PLANTED} {minute}"),
        at: time(minute),
        origin: FactOrigin::Recorded,
        place: 0,
        recorded_at: time(minute),
        value,
    };
    let context = WriteContext::asked(format!("note {PLANTED}"), time(3));
    let mut write = session.write(&context);
    let text = write.text(&format!("a line of {PLANTED}\n").repeat(500));
    let value = Value::from([("command", PLANTED.into()), ("stdout_preview", text)]);
    write.fact(fact(3, value)).commit().unwrap();
    let lines = format!("a line of a transcript with {PLANTED}\n").repeat(300);
    let taken = SourceChunk {
        bytes: store.redact_source(lines.as_bytes(), TextForm::Plain, PartEnding::End),
        lines: 300,
        keep: true,
        facts: vec![fact(4, Value::from([("command", PLANTED.into())]))],
        ..SourceChunk::default()
    };
    let operation = store.new_operation().unwrap();
    session.import_chunk(&act(4), operation, &format!("source {PLANTED}"), taken).unwrap();
    store.sync().unwrap();
}

/// Returns everything that can be read from the store, as text. The digest of every state must be
/// right.
fn everything_in(store: &Store) -> String {
    let mut text = String::new();
    for session in store.every_session().unwrap() {
        let summary = session.summary().unwrap();
        text.push_str(&format!("{summary:?}\n"));
        for number in 1..=summary.last_sequence {
            let moment = session.at_sequence(number).unwrap();
            session.check_digest(&moment).unwrap();
            let state = session.state(&moment).unwrap();
            let entries: Vec<_> = state.claims().entries().map(Result::unwrap).collect();
            text.push_str(&format!("{entries:?}\n"));
        }
        let head = session.head().unwrap();
        let facts = session.state(&head).unwrap().facts_of(Kind::Command).unwrap();
        let checkpoints = session.checkpoints(&CheckpointFilter::default()).unwrap();
        text.push_str(&format!("{facts:?}\n{checkpoints:?}\n"));
        text.push_str(&format!("{:?}\n", session.branches(&head).unwrap()));
        for (source, bytes) in summary.sources {
            let bytes = session.source_bytes(&source, 0, bytes).unwrap();
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    text
}

#[test]
fn nothing_recorded_is_visible_in_the_tables_of_an_encrypted_store() {
    let Some(server) = PostgresServer::start("encrypted store") else { return };
    let folder = tempfile::tempdir().unwrap();
    // In the store that is not encrypted, the text is visible.
    for (options, is_encrypted) in
        [(options(), false), (with_keyring(folder.path()).encrypted(true), true)]
    {
        let address = server.new_database();
        let written = store(&address, &options);
        plant(&written);
        let mut client = client(&address);
        let seen = in_tables(&mut client, PLANTED);
        eprintln!("encrypted: {is_encrypted}, rows that show what was recorded: {seen}");
        assert_eq!(seen == 0, is_encrypted, "{seen}");
        for words in ["small", "hypothesis", "in the tail", "a line of", "checkpoint", "fRw1"] {
            let seen = in_tables(&mut client, words);
            assert!(!is_encrypted || seen == 0, "{words}");
        }
        assert_whole(&written);
        // It is not in the statistics of the database either.
        client.batch_execute("analyze").unwrap();
        let statistics = "select count(*) from pg_statistic s where position($1 in s::text) > 0";
        let derived = client.query_one(statistics, &[&hex(PLANTED.as_bytes())]).unwrap();
        assert!(!is_encrypted || derived.get::<_, i64>(0) == 0);
        if is_encrypted {
            // The store can be read with the key, and not without it.
            let error = Store::at(&database(&address, NAME), self::options()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unkeyed, "{error}");
            assert!(everything_in(&store(&address, &options)).contains(PLANTED));
        }
    }
}

/// Replaces bytes of the last frame, from the byte number `first` on (the first byte is 1).
fn overlay(client: &mut Client, first: i32, bytes: &[u8]) {
    let sql = "update forge.frame set bytes = overlay(bytes placing $2 from $1)
      where position = (select max(position) from forge.frame)";
    client.execute(sql, &[&first, &bytes]).unwrap();
}

#[test]
fn an_altered_record_of_a_sealed_store_is_refused() {
    let Some(server) = PostgresServer::start("altered record") else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = with_keyring(folder.path());
    // Changes by an administrator with knowledge of the format but without the key.
    type Forgery = fn(&str, &mut Client);
    let forgeries: [(&str, Option<&str>, Forgery); 6] = [
        ("a wrong byte", None, |_, client| overlay(client, 150, &[0, 1, 2, 3])),
        ("the seal of another record", Some("altered"), |_, client| {
            let other = "select substr(bytes, 69, 28) from forge.frame where position = 0";
            let seal: Vec<u8> = client.query_one(other, &[]).unwrap().get(0);
            overlay(client, 69, &seal);
        }),
        ("no seal", Some("unsealed"), |_, client| overlay(client, 69, &[0; 28])),
        ("a record of another one", Some("unsealed"), |address, _| {
            append_without_key(address, b"forged");
        }),
        ("a last record less", Some("set_back"), |_, client| {
            client.batch_execute(LAST_REMOVED).unwrap();
        }),
        ("another last record", Some("unsealed"), |address, client| {
            client.batch_execute(LAST_REMOVED).unwrap();
            append_without_key(address, &[b'x'; 5000]);
        }),
    ];
    for (what, wanted, forge) in forgeries {
        let address = server.new_database();
        let written = store(&address, &options);
        let session = session(&written, "s");
        add(&session, "one").unwrap();
        add(&session, "two").unwrap();
        let open_meanwhile = store(&address, &options);
        assert_eq!(notes(&open_meanwhile.session("s").unwrap()).unwrap().len(), 2);
        let mut client = client(&address);
        forge(&address, &mut client);
        let frames = "select count(*) from forge.frame";
        let left = count(&mut client, frames);
        let again = store(&address, &options);
        let mut outcomes = vec![
            again.session("s").map(drop),
            again.sessions().map(drop),
            again.maintain(0).map(drop),
            again.create_session(&act(9), NewSession::named("t")).map(drop),
        ];
        // An open process does not read again what it has read, so it notices only a log that was
        // set back.
        if wanted == Some("set_back") {
            outcomes.push(notes(&session).map(drop));
            outcomes.push(add(&session, "three"));
        }
        for (number, outcome) in outcomes.into_iter().enumerate() {
            let error = outcome.expect_err(what);
            assert_eq!(breach(&error), wanted, "{what}, {number}: {error:?}");
            let is_forged = error.kind() == ErrorKind::Forged;
            assert!(is_forged || error.kind() == ErrorKind::Corrupt, "{what}: {error:?}");
        }
        assert_eq!(count(&mut client, frames), left, "{what}: nothing was written");
    }
}

/// Regression: rows of the index had no seals, so a consistent change by an administrator was not
/// noticed.
#[test]
fn an_altered_row_of_a_sealed_store_is_refused_and_read_without_its_key() {
    let Some(server) = PostgresServer::start("altered row") else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = with_keyring(folder.path());
    let address = server.new_database();
    let written = store(&address, &options);
    add(&session(&written, "s"), "one").unwrap();
    assert!(written.maintain(0).unwrap());
    let other = tempfile::tempdir().unwrap();
    let without_key = store(&address, &with_keyring(other.path()));
    assert_eq!(notes(&without_key.session("s").unwrap()).unwrap().len(), 1);
    let mut client = client(&address);
    let alter = "update forge.row set value = set_byte(value, 0, get_byte(value, 0) # 1)";
    client.batch_execute(alter).unwrap();
    let again = store(&address, &options);
    // The name of the session is in the journal too.
    let error = notes(&again.session("s").unwrap()).unwrap_err();
    assert_eq!(breach(&error), Some("altered"));
    let report = again.verify_in_database(VerifyDepth::Quick).unwrap();
    assert_eq!(report.outcome, VerifyOutcome::Forged, "{report:?}");
}

const LAST_REMOVED: &str = "
with gone as (
  delete from forge.frame where position = (select max(position) from forge.frame)
  returning position, store
)
update forge.log l set stop = gone.position,
  hash = (select hash from forge.frame f where f.stop = gone.position) from gone";

/// Appends a record as an administrator of the database can, without the key.
fn append_without_key(address: &str, payload: &[u8]) {
    let log = log(address, id_of(address));
    let end = log.read(0, u64::MAX).unwrap().end;
    log.append(end, WAIT, &mut |_| Some(payload.to_vec())).unwrap();
}

fn id_of(address: &str) -> [u8; 16] {
    let id = client(address).query_one("select id from forge.store", &[]).unwrap();
    id.get::<_, Vec<u8>>(0).try_into().unwrap()
}

#[test]
fn an_altered_marker_of_a_sealed_store_is_refused() {
    let Some(server) = PostgresServer::start("altered marker") else { return };
    let folder = tempfile::tempdir().unwrap();
    let sealed = with_keyring(folder.path());
    let encrypted = sealed.clone().encrypted(true);
    type Change = fn(&mut FormatMarker);
    let changes: [(&str, &str, Change, &Options); 6] = [
        ("no seals", "unsealed", |marker| marker.optional.clear(), &sealed),
        ("another key", "altered", |marker| marker.key[0] ^= 1, &sealed),
        ("another id", "replaced", |marker| marker.id[0] ^= 1, &sealed),
        (
            "another store without seals",
            "replaced",
            |marker| {
                marker.id[0] ^= 1;
                marker.optional.clear();
            },
            &sealed,
        ),
        ("no encryption", "replaced", |marker| marker.required.clear(), &encrypted),
        (
            "encryption",
            "replaced",
            |marker| {
                *marker =
                    std::mem::replace(marker, FormatMarker::new([0; 16], [0; 32])).encrypted();
            },
            &sealed,
        ),
    ];
    for (what, wanted, change, options) in changes {
        let address = server.new_database();
        put(&session(&store(&address, options), "s"), 1, "N1", "text");
        let text = database(&address, NAME).marker().unwrap().unwrap();
        let mut marker = FormatMarker::decode(&text).unwrap();
        change(&mut marker);
        let mut client = client(&address);
        let update = "update forge.store set marker = $1, id = $2";
        // The rows of the other tables get the new id too.
        client
            .batch_execute(
                "alter table forge.log drop constraint log_store_fkey;
             alter table forge.frame drop constraint frame_store_fkey;
             alter table forge.index drop constraint index_store_fkey;
             alter table forge.generation drop constraint generation_store_fkey;",
            )
            .unwrap();
        client.execute(update, &[&marker.encode(), &&marker.id[..]]).unwrap();
        for table in ["log", "frame", "index", "generation"] {
            let moved = format!("update forge.{table} set store = $1");
            client.execute(&moved, &[&&marker.id[..]]).unwrap();
        }
        let opened = Store::at(&database(&address, NAME), options.clone());
        let error = opened.and_then(|store| store.session("s")).expect_err(what);
        assert_eq!(breach(&error), Some(wanted), "{what}: {error:?}");
        // A damaged marker is invalid.
        client
            .execute("update forge.store set marker = $1", &[&text.replace("key ", "kez ")])
            .unwrap();
        let error = Store::at(&database(&address, NAME), options.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

fn known() -> KnownSecrets {
    KnownSecrets::new([PLANTED]).unwrap()
}

fn purge(store: &Store) -> PurgeReport {
    store.purge(&act(100), &known(), Some("it leaked"), &|_, _| None, &|_| ()).unwrap()
}

/// Returns the files of the server that contain a text, with the number of times, without the
/// write-ahead log.
fn in_files(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "pg_wal") {
                found.extend(in_files(&path, text));
            }
        } else if let Ok(bytes) = fs::read(&path) {
            let bytes = bytes.windows(text.len()).filter(|part| part[0] == text.as_bytes()[0]);
            let times = bytes.filter(|part| *part == text.as_bytes()).count();
            if times > 0 {
                found.push(format!("{} ({times})", path.display()));
            }
        }
    }
    found
}

#[test]
fn a_purge_removes_a_secret_from_all_tables_and_a_vacuum_from_all_files() {
    let Some(server) = PostgresServer::start("purge") else { return };
    let address = server.new_database();
    let written = store(&address, &options());
    plant(&written);
    let other = store(&address, &options());
    assert!(everything_in(&other).contains(PLANTED));
    let mut client = client(&address);
    let folder: String = client.query_one("show data_directory", &[]).unwrap().get(0);
    let folder = Path::new(&folder);
    // Autovacuum does this now and then. Its samples of the rows are kept in another table.
    client.batch_execute("analyze").unwrap();
    client.batch_execute("checkpoint").unwrap();
    assert!(in_tables(&mut client, PLANTED) > 10);
    assert!(in_files(folder, PLANTED).len() > 1);
    assert!(!written.keeps_purged().unwrap());

    let preview = written.purge_preview(&act(99), &known(), &|_, _| None, &|_| ()).unwrap();
    assert!(preview.places.len() > 10 && !preview.unvacuumed);
    let purged = purge(&written);
    assert_eq!(purged.places.len(), preview.places.len());
    assert!(purged.unvacuumed && !purged.is_done(), "{purged:#?}");
    assert_eq!(in_tables(&mut client, PLANTED), 0);
    assert!(written.keeps_purged().unwrap() && other.keeps_purged().unwrap());
    // Processes that were open during the purge show nothing of the text either.
    for store in [&written, &other, &store(&address, &options())] {
        assert!(!everything_in(store).contains(PLANTED));
        assert_whole(store);
    }
    client.batch_execute("vacuum").unwrap();
    let again = purge(&other);
    assert!(again.places.is_empty() && again.unvacuumed, "its files were not rewritten");

    written.database().unwrap().vacuum().unwrap();
    assert!(!written.keeps_purged().unwrap() && !other.keeps_purged().unwrap());
    let again = purge(&other);
    assert!(again.places.is_empty() && again.is_done(), "{again:#?}");
    assert!(!other.keeps_purged().unwrap(), "nothing was replaced");
    client.batch_execute("checkpoint").unwrap();
    let left = in_files(folder, PLANTED);
    assert!(left.is_empty(), "{left:#?}");
    assert!(!everything_in(&other).contains(PLANTED));
    assert_whole(&other);
    // The next purge leaves replaced rows again.
    let next = session(&other, "next");
    put(&next, 1, "N1", PLANTED);
    assert!(purge(&other).unvacuumed);
    assert_eq!(in_tables(&mut client, PLANTED), 0);
}

/// If a role that does not own the tables rewrites them, PostgreSQL only warns.
#[test]
fn a_vacuum_by_another_role_than_the_owner_removes_nothing() {
    let Some(server) = PostgresServer::start("vacuum by another role") else { return };
    let address = server.new_database();
    let owned = store(&address, &options());
    plant(&owned);
    let mut client = client(&address);
    client
        .batch_execute(
            "create role app login; grant usage on schema forge to app;
         grant select, insert, update, delete on all tables in schema forge to app",
        )
        .unwrap();
    let app = address.replace("forge@", "app@");
    let used = Store::at(&database(&app, NAME), options()).unwrap();
    assert!(purge(&used).unvacuumed);
    let _ = used.database().unwrap().vacuum();
    assert!(used.keeps_purged().unwrap());
    owned.database().unwrap().vacuum().unwrap();
    assert!(!used.keeps_purged().unwrap());
}

/// A database whose administrator rewrites the tables while a purge begins.
#[derive(Debug)]
struct VacuumedMeanwhile {
    inner: Arc<dyn Database>,
    is_vacuumed: AtomicBool,
}

impl Database for VacuumedMeanwhile {
    fn place(&self) -> &DatabasePlace {
        self.inner.place()
    }

    fn marker(&self) -> Result<Option<String>, BackendError> {
        self.inner.marker()
    }

    fn create(
        &self,
        id: &[u8; 16],
        marker: &str,
        first: Option<&FrameRow>,
    ) -> Result<bool, BackendError> {
        self.inner.create(id, marker, first)
    }

    fn frames(&self, store: &[u8; 16]) -> Box<dyn FrameTable> {
        self.inner.frames(store)
    }

    fn index(&self, store: &[u8; 16]) -> Box<dyn Index> {
        self.inner.index(store)
    }

    fn risks(&self) -> Result<Vec<String>, BackendError> {
        self.inner.risks()
    }

    fn version(&self) -> Result<String, BackendError> {
        self.inner.version()
    }

    fn keeps_purged(&self, store: &[u8; 16]) -> Result<bool, BackendError> {
        self.inner.keeps_purged(store)
    }

    fn set_keeps_purged(&self, store: &[u8; 16], keeps: bool) -> Result<(), BackendError> {
        self.inner.set_keeps_purged(store, keeps)?;
        match self.is_vacuumed.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => self.inner.vacuum(),
        }
    }

    fn vacuum(&self) -> Result<(), BackendError> {
        self.inner.vacuum()
    }
}

#[test]
fn purged_rows_are_reported_although_the_tables_were_rewritten_while_the_purge_began() {
    let Some(server) = PostgresServer::start("vacuum beside a purge") else { return };
    let address = server.new_database();
    plant(&store(&address, &options()));
    let mut client = client(&address);
    let folder: String = client.query_one("show data_directory", &[]).unwrap().get(0);
    let is_vacuumed = AtomicBool::new(false);
    let meanwhile = VacuumedMeanwhile { inner: database(&address, NAME), is_vacuumed };
    let meanwhile: Arc<dyn Database> = Arc::new(meanwhile);
    let used = Store::at(&meanwhile, options()).unwrap();
    let purged = purge(&used);
    client.batch_execute("checkpoint").unwrap();
    assert!(!in_files(Path::new(&folder), PLANTED).is_empty(), "the purge itself rewrites nothing");
    assert!(purged.unvacuumed && used.keeps_purged().unwrap());
}

/// Two stores share the tables, so rewriting them removes the replaced rows of both.
#[test]
fn purged_rows_are_reported_for_each_store_of_the_database() {
    let Some(server) = PostgresServer::start("purge of two stores") else { return };
    let address = server.new_database();
    let [first, second] = ["first", "second"].map(|name| {
        let store = Store::create_at(&database(&address, name), options()).unwrap();
        put(&session(&store, "s"), 1, "N1", PLANTED);
        store
    });
    assert!(purge(&first).unvacuumed);
    assert!(first.keeps_purged().unwrap() && !second.keeps_purged().unwrap());
    first.database().unwrap().vacuum().unwrap();
    assert!(purge(&second).unvacuumed);
    assert!(!first.keeps_purged().unwrap() && second.keeps_purged().unwrap());
    second.database().unwrap().vacuum().unwrap();
    assert!(!second.keeps_purged().unwrap());
    // A purge that finds nothing leaves nothing.
    assert!(purge(&second).is_done());
}
