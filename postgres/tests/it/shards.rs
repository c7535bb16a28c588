//! Several stores under one name.

use super::support::{act, client, count, notes, options, put};
use forge_postgres::{Environment, MAX_SHARDS, Shards};
use forge_store::error::{Error, ErrorKind};
use forge_store::store::{NewSession, Options, Session, Store};
use forge_testkit::postgres::PostgresServer;
use std::collections::BTreeMap;
use std::thread;

fn open(address: &str, name: &str) -> Result<Shards, Error> {
    Shards::open(address, name, &Environment::new(), options())
}

fn open_or_create(address: &str, name: &str, count: u32) -> Result<Shards, Error> {
    Shards::open_or_create(address, name, count, &Environment::new(), options())
}

fn begun(store: &Store, name: &str) -> Session {
    store.create_session(&act(0), NewSession::named(name)).unwrap()
}

#[test]
fn a_session_is_always_in_the_same_shard_and_sessions_spread() {
    let Some(server) = PostgresServer::start("shards") else { return };
    let address = server.new_database();
    let names: Vec<String> = (0..64).map(|number| format!("session {number}")).collect();
    let shards = open_or_create(&address, "team", 8).unwrap();
    assert_eq!(shards.count(), 8);
    for name in &names {
        put(&begun(&shards.of(name).unwrap(), name), 1, "N1", name);
    }
    let mut sizes = BTreeMap::new();
    for (number, store) in shards.all().unwrap().into_iter().enumerate() {
        sizes.insert(number, store.sessions().unwrap().len());
    }
    assert_eq!(sizes.values().sum::<usize>(), names.len());
    assert!(sizes.values().all(|size| (2..=20).contains(size)), "{sizes:?}");
    // Another process, which need not know how many there are, and one that does.
    for again in [open(&address, "team").unwrap(), open_or_create(&address, "team", 8).unwrap()] {
        assert_eq!(again.count(), 8);
        for name in &names {
            let session = again.of(name).unwrap().session(name).unwrap();
            assert_eq!(notes(&session).unwrap(), ["N1"]);
        }
        assert_eq!(again.all().unwrap().len(), 8);
    }
    // Names that never change: they are stored.
    let mut client = client(&address);
    let first = "select count(*) from forge.store where name = 'team/0-of-8'";
    assert_eq!(count(&mut client, first), 1);
}

#[test]
fn another_number_of_shards_is_refused() {
    let Some(server) = PostgresServer::start("number of shards") else { return };
    let address = server.new_database();
    assert_eq!(open(&address, "team").unwrap_err().kind(), ErrorKind::NotFound);
    for count in [0, MAX_SHARDS + 1] {
        let error = open_or_create(&address, "team", count).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    let reading = options().read_only(true);
    let error = Shards::open_or_create(&address, "team", 2, &Environment::new(), reading);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    drop(open_or_create(&address, "team", 2).unwrap());
    for count in [1, 3, 20] {
        let error = open_or_create(&address, "team", count).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains("has 2 shards"), "{error}");
    }
    // Names that only begin alike, or look like a pattern, are other names.
    for name in ["tea", "team2", "te_m", "%", "team/0-of-2"] {
        assert_eq!(open(&address, name).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
    }
    assert_eq!(open_or_create(&address, "te_m", 3).unwrap().count(), 3);
    assert_eq!(open(&address, "team").unwrap().count(), 2);
    let stored = count(&mut client(&address), "select count(*) from forge.store");
    assert_eq!(stored, 5);
}

#[test]
fn shards_that_are_created_by_many_at_once_or_in_part_are_created_once() {
    let Some(server) = PostgresServer::start("shards at once") else { return };
    let address = server.new_database();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| open_or_create(&address, "team", 5).unwrap().all().unwrap());
        }
    });
    let mut client = client(&address);
    assert_eq!(count(&mut client, "select count(*) from forge.store"), 5);
    let shards = open_or_create(&address, "team", 5).unwrap();
    let ids = shards.all().unwrap();
    begun(&ids[4], "kept");
    // As a process that was killed leaves it: the first one is created first.
    let some = "delete from forge.store where name in ('team/3-of-5', 'team/2-of-5')";
    client.batch_execute(some).unwrap();
    let error = open(&address, "team").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("create 5 of them again"), "{error}");
    let again = open_or_create(&address, "team", 5).unwrap();
    assert_eq!(again.all().unwrap()[4].sessions().unwrap().len(), 1, "it is the same store");
    assert_eq!(count(&mut client, "select count(*) from forge.store"), 5);
}

/// Both found no shards, so both created theirs, and a session was in one set for one process and in
/// the other set for another one.
#[test]
fn of_two_processes_that_create_different_numbers_of_shards_one_is_refused() {
    let Some(server) = PostgresServer::start("numbers of shards at once") else { return };
    let address = server.new_database();
    for round in 0..10 {
        let name = format!("team {round}");
        let outcomes = thread::scope(|scope| {
            let create = |count| open_or_create(&address, &name, count).map(|made| made.count());
            let threads = [2, 3].map(|count| scope.spawn(move || create(count)));
            threads.map(|thread| thread.join().unwrap())
        });
        let refused = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        let refused: Vec<ErrorKind> = refused.map(Error::kind).collect();
        assert_eq!(refused, [ErrorKind::Conflict], "{outcomes:?}");
        let made: Vec<u32> = outcomes.into_iter().flatten().collect();
        assert_eq!(made, [open(&address, &name).unwrap().count()]);
    }
}

#[test]
fn writers_of_different_shards_write_at_once() {
    let Some(server) = PostgresServer::start("writers of shards") else { return };
    let address = server.new_database();
    let shards = open_or_create(&address, "team", 4).unwrap();
    thread::scope(|scope| {
        for thread in 0..8 {
            let shards = &shards;
            scope.spawn(move || {
                let name = format!("thread {thread}");
                let session = begun(&shards.of(&name).unwrap(), &name);
                (0..10).for_each(|number| put(&session, number, &format!("N{number}"), &name));
            });
        }
    });
    let other = Shards::open(&address, "team", &Environment::new(), Options::default()).unwrap();
    for thread in 0..8 {
        let name = format!("thread {thread}");
        let session = other.of(&name).unwrap().session(&name).unwrap();
        assert_eq!(notes(&session).unwrap().len(), 10);
    }
}
