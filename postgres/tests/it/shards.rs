//! Shards: several stores that share a name.

use super::support::{act, chain, client, count, database, notes, options, put, with_keyring};
use forge_postgres::{Environment, MAX_SHARDS, Shards};
use forge_store::error::{Error, ErrorKind};
use forge_store::store::{NewSession, Options, Session, Store};
use forge_testkit::postgres::PostgresServer;
use std::collections::BTreeMap;
use std::fs;
use std::thread;

fn open(address: &str, name: &str) -> Result<Shards, Error> {
    Shards::open(address, name, &Environment::new(), options())
}

fn open_or_create(address: &str, name: &str, count: u32) -> Result<Shards, Error> {
    Shards::open_or_create(address, name, count, &Environment::new(), options())
}

fn new_session(store: &Store, name: &str) -> Session {
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
        put(&new_session(&shards.of(name).unwrap(), name), 1, "N1", name);
    }
    let mut sizes = BTreeMap::new();
    for (number, store) in shards.all().unwrap().into_iter().enumerate() {
        sizes.insert(number, store.sessions().unwrap().len());
    }
    assert_eq!(sizes.values().sum::<usize>(), names.len());
    assert!(sizes.values().all(|size| (2..=20).contains(size)), "{sizes:?}");
    // A process that does not know the number of shards, and one that gives it.
    for again in [open(&address, "team").unwrap(), open_or_create(&address, "team", 8).unwrap()] {
        assert_eq!(again.count(), 8);
        for name in &names {
            let session = again.of(name).unwrap().session(name).unwrap();
            assert_eq!(notes(&session).unwrap(), ["N1"]);
        }
        assert_eq!(again.all().unwrap().len(), 8);
    }
    // The names are stored, so they must not change between versions.
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
        let expected = "'team' has 2 shards, 'team/0-of-2' to 'team/1-of-2', and their number";
        assert!(error.to_string().contains(expected), "{error}");
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
    let marker = "select marker from forge.store where name = 'team/2-of-5'";
    let before: String = client.query_one(marker, &[]).unwrap().get(0);
    // The state that a killed process leaves: shards are created in order.
    let some = "delete from forge.store where name in ('team/3-of-5', 'team/4-of-5')";
    client.batch_execute(some).unwrap();
    let error = open(&address, "team").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("create all 5 again"), "{error}");
    let again = open_or_create(&address, "team", 5).unwrap();
    assert_eq!(again.all().unwrap().len(), 5);
    let after: String = client.query_one(marker, &[]).unwrap().get(0);
    assert_eq!(after, before, "it is the same store");
    assert_eq!(count(&mut client, "select count(*) from forge.store"), 5);
}

/// A new, empty shard would take writes to the sessions of the removed one.
#[test]
fn a_shard_that_was_removed_is_not_created_again() {
    let Some(server) = PostgresServer::start("removed shards") else { return };
    let address = server.new_database();
    let mut client = client(&address);
    // If a later shard exists, or if a shard was written to, then all were created.
    for (name, removed, is_written) in
        [("first", 0, false), ("middle", 1, false), ("last", 2, true)]
    {
        let shards = open_or_create(&address, name, 3).unwrap();
        if is_written {
            new_session(&shards.all().unwrap()[0], "s");
        }
        let missing = format!("{name}/{removed}-of-3");
        client.execute("delete from forge.store where name = $1", &[&missing]).unwrap();
        let errors = [
            open(&address, name).unwrap_err(),
            open_or_create(&address, name, 3).unwrap_err(),
            Store::open_or_create_at(&database(&address, &missing), options()).unwrap_err(),
        ];
        for error in &errors {
            let expected =
                format!("the database no longer has '{missing}' of the 3 shards of '{name}'");
            assert!(chain(error).contains(&expected), "{}", chain(error));
        }
        assert_eq!(errors[1].kind(), ErrorKind::Conflict);
    }
    assert_eq!(count(&mut client, "select count(*) from forge.store"), 6);
    let error = open_or_create(&address, "first", 4).unwrap_err();
    assert!(error.to_string().contains("'first' has 3 shards"), "{error}");
}

/// Otherwise there would be more shards of a name than their number says.
#[test]
fn a_store_is_not_created_with_the_name_of_a_shard_among_others() {
    let Some(server) = PostgresServer::start("names of shards") else { return };
    let address = server.new_database();
    drop(open_or_create(&address, "team", 2).unwrap());
    let create = |name: &str| Store::create_at(&database(&address, name), options()).map(drop);
    let folder = tempfile::tempdir().unwrap();
    for name in ["team/0-of-3", "team/2-of-3"] {
        let sealed = with_keyring(folder.path());
        let error = chain(&Store::create_at(&database(&address, name), sealed).unwrap_err());
        let keys = fs::read_dir(folder.path().join("keyring")).unwrap();
        let keys = keys.filter(|entry| entry.as_ref().unwrap().file_name() != "places");
        assert_eq!(keys.count(), 0, "it needs no key");
        assert!(error.contains("'team' has 2 shards, 'team/0-of-2' to 'team/1-of-2'"), "{error}");
    }
    assert_eq!(create("team/1-of-2").unwrap_err().kind(), ErrorKind::Conflict);
    for name in ["team/2-of-2", "team/00-of-3", "team/1-of-1025", "other/0-of-0", "other/1-of-0"] {
        create(name).unwrap_or_else(|error| panic!("{name}: {}", chain(&error)));
    }
    assert_eq!(open(&address, "team").unwrap().count(), 2);
    // Regression: `other/0-of-0` was taken for the first of no shards.
    assert_eq!(open(&address, "other").unwrap_err().kind(), ErrorKind::NotFound);
    let error = chain(&open_or_create(&address, "other", 2).unwrap_err());
    assert!(error.contains("with another number after '/0-of-': choose another name"), "{error}");
}

/// Regression: both processes found no shards and created theirs, so each had the sessions in
/// another set of shards.
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
                let session = new_session(&shards.of(&name).unwrap(), &name);
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
