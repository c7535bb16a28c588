//! Whole stores in a database, as programs use them.

use super::support::{
    NAME, act, add, assert_whole, chain, client, count, database, note, notes, options, put,
    session, store, try_put,
};
use forge_postgres::PostgresConnector;
use forge_store::error::{Error, ErrorKind};
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{NewSession, Session, Store, VerifyDepth};
use forge_testkit::audit::audit;
use forge_testkit::example;
use forge_testkit::postgres::PostgresServer;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

#[test]
fn two_processes_see_each_others_writes_at_once_before_and_after_they_are_applied() {
    let Some(server) = PostgresServer::start("two processes") else { return };
    let address = server.new_database();
    let [first, second] = [(); 2].map(|()| store(&address, &options()));
    let ours = session(&first, "s");
    let theirs = second.session("s").unwrap();
    let reader = store(&address, &options().read_only(true));
    let mut expected = BTreeSet::new();
    for round in 0..12 {
        let (writer, other) = if round % 2 == 0 { (&ours, &theirs) } else { (&theirs, &ours) };
        let name = format!("{round:02}");
        add(writer, &name).unwrap();
        expected.insert(name);
        for session in [other, writer, &reader.session("s").unwrap()] {
            let found: BTreeSet<_> = notes(session).unwrap().into_iter().collect();
            assert_eq!(found, expected, "round {round}");
        }
        if round % 3 == 2 {
            assert!([&first, &second][round % 2].maintain(0).unwrap());
            assert!(store(&address, &options()).tail_bytes().unwrap() < 10_000);
        }
    }
    assert!(!reader.maintain(0).unwrap());
    assert_eq!(add(&reader.session("s").unwrap(), "x").unwrap_err().kind(), ErrorKind::Unavailable);
    audit(&ours, &expected);
    assert_whole(&second);
    theirs.undo(&act(9), None).unwrap();
    assert_eq!(notes(&ours).unwrap().len(), 11);
    first.create_session(&act(10), NewSession::named("another")).unwrap();
    assert_eq!(second.sessions().unwrap().len(), 2);
}

#[test]
fn threads_and_processes_write_into_one_store_while_it_is_applied() {
    let Some(server) = PostgresServer::start("threads of a store") else { return };
    let address = server.new_database();
    let shared = store(&address, &options());
    session(&shared, "s");
    thread::scope(|scope| {
        for thread in 0..6 {
            let own = if thread < 3 { shared.clone() } else { store(&address, &options()) };
            scope.spawn(move || {
                let session = own.session("s").unwrap();
                for number in 0..12 {
                    add(&session, &format!("{thread}-{number}")).unwrap();
                    if number % 5 == thread % 5 {
                        own.maintain(0).unwrap();
                    }
                }
            });
        }
    });
    let all = (0..6).flat_map(|thread| (0..12).map(move |number| format!("{thread}-{number}")));
    let all = all.collect();
    audit(&shared.session("s").unwrap(), &all);
    let again = store(&address, &options());
    again.maintain(0).unwrap();
    audit(&again.session("s").unwrap(), &all);
    assert_whole(&again);
}

/// While a write is planned, another process applies the log, and removes the part that the first
/// one has read.
#[test]
fn a_write_is_planned_again_if_its_part_of_the_log_was_removed_meanwhile() {
    let Some(server) = PostgresServer::start("removed part of the log") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let address = server.new_database();
    let in_files = || Store::open_or_create(&path, options()).unwrap();
    let in_database = || store(&address, &options());
    for [ours, theirs] in [[in_files(), in_files()], [in_database(), in_database()]] {
        let session = session(&ours, "s");
        let other = theirs.session("s").unwrap();
        let (act, plans) = (act(1), Cell::new(0));
        for round in 0..3 {
            plans.set(0);
            let edit = |_: &[Option<Value>]| {
                plans.set(plans.get() + 1);
                if plans.get() == 1 {
                    put(&other, 2, "theirs", &format!("{round}"));
                    assert!(theirs.maintain(0).unwrap());
                }
                Ok(vec![note("ours", &format!("{round} {}", plans.get()))])
            };
            let key = Key::new(Kind::Note, "ours");
            let written = session.write(&act).edit(vec![key], edit).commit();
            written.unwrap_or_else(|error| panic!("{ours:?}, round {round}: {error}"));
            assert_eq!(plans.get(), 2);
            assert_eq!(notes(&other).unwrap(), ["ours", "theirs"]);
        }
    }
}

#[test]
fn a_store_that_many_processes_create_at_once_is_one_store() {
    let Some(server) = PostgresServer::start("creation at once") else { return };
    for round in 0..3 {
        let address = server.new_database();
        let folder = tempfile::tempdir().unwrap();
        let options = options().keyring(folder.path().join("keyring"));
        thread::scope(|scope| {
            for thread in 0..8 {
                let (address, options) = (&address, &options);
                scope.spawn(move || {
                    let name = format!("thread {thread}");
                    session(&store(address, options), &name)
                });
            }
        });
        let sessions = store(&address, &options).sessions().unwrap();
        assert_eq!(sessions.len(), 8, "round {round}");
        let mut client = client(&address);
        assert_eq!(count(&mut client, "select count(*) from forge.store"), 1);
        let keys = std::fs::read_dir(folder.path().join("keyring")).unwrap();
        let keys = keys.filter(|one| one.as_ref().unwrap().path().join("key").exists()).count();
        assert_eq!(keys, 1, "the keys of the others are not left behind");
        let error = Store::create_at(&database(&address, NAME), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}

/// Regression: small deltas were sent uncompressed, as for a disk, and stayed in the table as dead
/// rows.
#[test]
fn a_record_is_compressed_before_it_is_sent() {
    let Some(server) = PostgresServer::start("compressed records") else { return };
    let address = server.new_database();
    let session = session(&store(&address, &options()), "s");
    let text = "what was seen in the log, ".repeat(120);
    put(&session, 1, "N1", &text);
    let largest = "select max(length(bytes))::bigint from forge.frame";
    let largest = count(&mut client(&address), largest);
    assert!(largest < 1_000, "{largest} bytes for a text of {}", text.len());
    assert_eq!(notes(&session).unwrap().len(), 1);
}

#[test]
fn open_handles_of_a_store_that_was_dropped_report_it() {
    let Some(server) = PostgresServer::start("dropped store") else { return };
    let address = server.new_database();
    let open = store(&address, &options());
    let before = session(&open, "s");
    put(&before, 1, "N1", "text");
    open.maintain(0).unwrap();
    put(&before, 2, "N2", "text");
    let uses = |open: &Store, session: &Session| -> Vec<Result<(), Error>> {
        vec![
            notes(session).map(drop),
            try_put(session, 3, "N3", "text"),
            open.sessions().map(drop),
            open.create_session(&act(4), NewSession::named("t")).map(drop),
            open.verify_in_database(VerifyDepth::Quick)
                .map(|report| {
                    assert!(!report.findings.is_empty());
                })
                .and_then(|()| open.session("s").map(drop)),
        ]
    };
    let says_so = |open: &Store, session: &Session| {
        for (number, outcome) in uses(open, session).into_iter().enumerate() {
            let error = outcome.expect_err(&format!("{number}"));
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{number}");
            let message = chain(&error);
            assert!(message.contains("it no longer contains the store"), "{number}: {message}");
        }
    };
    // Another store in the same database, which is not dropped.
    let other = Store::create_at(&database(&address, "other"), options()).unwrap();
    session(&other, "other");
    let mut client = client(&address);
    client.execute("delete from forge.store where name = $1", &[&NAME]).unwrap();
    for table in ["log", "frame", "index", "generation", "row"] {
        let stores = format!("select count(distinct store) from forge.{table}");
        let left = count(&mut client, &stores);
        assert!(left == 1 || (left == 0 && table == "row"), "{table}: {left}");
    }
    says_so(&open, &before);
    let error = Store::at(&database(&address, NAME), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    // A new store with the same name does not replace the dropped one for open processes.
    let later = store(&address, &options());
    session(&later, "s");
    says_so(&open, &before);
    assert_eq!(notes(&later.session("s").unwrap()).unwrap(), [""; 0]);
    assert_eq!(other.sessions().unwrap().len(), 1);
    // Without the tables, the database says what is missing.
    client.batch_execute("drop schema forge cascade").unwrap();
    for (number, outcome) in uses(&later, &before).into_iter().enumerate() {
        let message = chain(&outcome.expect_err(&format!("{number}")));
        assert!(message.contains("does not exist"), "{number}: {message}");
    }
    let error = Store::at(&database(&address, NAME), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn tables_of_another_version_are_refused() {
    let Some(server) = PostgresServer::start("other version") else { return };
    let address = server.new_database();
    let open = store(&address, &options());
    let session = session(&open, "s");
    let mut client = client(&address);
    client.batch_execute("update forge.store set version = 2").unwrap();
    let at = Store::at(&database(&address, NAME), options());
    let outcomes = [
        at.and_then(|store| store.sessions()).map(drop),
        notes(&session).map(drop),
        try_put(&session, 1, "N1", "text"),
        try_put(&session, 1, "N1", "text"),
        open.maintain(0).map(drop),
    ];
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let message = chain(&outcome.expect_err(&format!("{number}")));
        assert!(message.contains("use the version of forge that made them"), "{message}");
    }
    assert_eq!(count(&mut client, "select count(*) from forge.frame"), 2);
}

/// The folder names the address of the database and the name of the store.
#[test]
fn a_folder_can_be_the_place_of_a_store() {
    let Some(server) = PostgresServer::start("folder of a store") else { return };
    let address = server.new_database();
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name).join(".forge"));
    let keyring = folder.path().join("keyring");
    let connector = Arc::new(PostgresConnector::new(forge_postgres::Environment::new()));
    let options = options().keyring(keyring).connector(Some(connector as _));
    let create =
        |path| Store::create_in_database(path, &database(&address, NAME), options.clone()).unwrap();
    let (first, is_new) = create(&one);
    assert!(is_new);
    example::fill(&first).unwrap();
    let (second, is_new) = create(&two);
    assert!(!is_new);
    assert_eq!(second.sessions().unwrap().len(), 1);
    drop((first, second));
    let opened = Store::open(&one, options.clone()).unwrap();
    assert_eq!(Store::database_of(&one).unwrap().unwrap().name, NAME);
    assert!(opened.maintain(0).unwrap());
    assert_whole(&Store::open(&two, options.clone()).unwrap());
    let error = Store::open(&one, options.connector(None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}
