//! A standby that lagged takes over, and lacks acknowledged records. Every process that has seen
//! these records refuses the store.

use super::support::{
    NAME, act, add, breach, client, count, database, either, notes, options, session, store,
    with_keyring,
};
use forge_store::error::Error;
use forge_store::store::{BundleRange, Session, Store};
use forge_testkit::postgres::PostgresServer;
use std::io::Cursor;

/// Waits until the standby has all records, and stops the replication, so that it lacks later ones.
pub(crate) fn cut_off(standby: &PostgresServer, primary: &PostgresServer) {
    let written = primary.run("select pg_current_wal_flush_lsn()");
    let replayed = format!("select pg_last_wal_replay_lsn() >= '{written}'");
    while standby.run(&replayed) != "t" {
        std::thread::yield_now();
    }
    standby.run("alter system set primary_conninfo = ''");
    standby.run("select pg_reload_conf()");
    while standby.run("select count(*) from pg_stat_wal_receiver") != "0" {
        std::thread::yield_now();
    }
}

/// Does everything that a program does with a store, and returns the outcomes.
fn uses(store: &Store) -> Vec<Result<(), Error>> {
    let of = |name: &str| store.session(name);
    vec![
        of("s").map(drop),
        of("s").and_then(|session| notes(&session)).map(drop),
        of("s").and_then(|session| add(&session, "new")),
        store.sessions().map(drop),
        store.maintain(0).map(drop),
        of("s").and_then(|session| session.undo(&act(9), None)).map(drop),
        of("s")
            .and_then(|session| {
                store.export_bundle(&[BundleRange { session, from: 0, to: None }], &mut |_| Ok(()))
            })
            .map(drop),
        store.import_bundle(&act(9), &mut Cursor::new(bundle()), None).map(drop),
    ]
}

fn bundle() -> Vec<u8> {
    let store = Store::in_memory().unwrap();
    let session = session(&store, "imported");
    add(&session, "one").unwrap();
    let mut bytes = Vec::new();
    let write = &mut |part: &[u8]| -> Result<(), Error> {
        bytes.extend_from_slice(part);
        Ok(())
    };
    store.export_bundle(&[BundleRange { session, from: 0, to: None }], write).unwrap();
    bytes
}

fn refuses(store: &Store, session: &Session, names: &[&str], what: &str) {
    let mut outcomes = uses(store);
    // A session that was open before.
    outcomes.push(notes(session).map(drop));
    outcomes.push(add(session, "new"));
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let error = outcome.expect_err(what);
        let found = breach(&error);
        assert!(found.is_some_and(|name| names.contains(&name)), "{what}, {number}: {error:?}");
    }
}

fn check_lagging_standby(encrypted: bool, sealed: bool, what: &str) {
    let Some(mut primary) = PostgresServer::start(what) else { return };
    let standby = primary.standby(false);
    let address = either(&primary.new_database(), standby.port());
    let folder = tempfile::tempdir().unwrap();
    let witnessed = with_keyring(folder.path());
    let creating = match (encrypted, sealed) {
        (true, _) => witnessed.clone().encrypted(true),
        (false, true) => witnessed.clone(),
        (false, false) => options(),
    };
    drop(store(&address, &creating));
    // A writer with a witness, and processes that were open meanwhile with and without it.
    let writer = store(&address, &witnessed);
    let written = session(&writer, "s");
    add(&written, "kept").unwrap();
    writer.maintain(0).unwrap();
    add(&written, "kept in the tail").unwrap();
    let mut open = vec![(store(&address, &witnessed), "open meanwhile")];
    if !encrypted {
        let unwitnessed = options().read_only(sealed);
        open.push((store(&address, &unwitnessed), "open meanwhile without a witness"));
    }
    cut_off(&standby, &primary);
    add(&written, "lost").unwrap();
    let open: Vec<_> = open
        .into_iter()
        .map(|(store, what)| {
            let session = store.session("s").unwrap();
            assert_eq!(notes(&session).unwrap().len(), 3, "{what}");
            (store, session, what)
        })
        .collect();
    let before = frames_of(&address);
    primary.kill();
    standby.promote();

    let left = frames_of(&address);
    assert_eq!(left, before - 1, "the standby has what it cannot have");
    let at = || Store::at(&database(&address, NAME), witnessed.clone()).unwrap();
    for (store, session, what) in &open {
        let is_read_only = sealed && what.ends_with("witness");
        if is_read_only {
            let error = notes(session).unwrap_err();
            assert_eq!(breach(&error), Some("set_back"), "{what}: {error:?}");
        } else {
            refuses(store, session, &["set_back"], what);
        }
    }
    refuses(&writer, &written, &["set_back"], "the writer");
    // A process that opens the store now.
    let error = at().session("s").unwrap_err();
    assert_eq!(breach(&error), Some("set_back"), "{error:?}");
    assert!(error.to_string().ends_with("(set_back)"), "{error}");
    for outcome in uses(&at()) {
        assert_eq!(breach(&outcome.unwrap_err()), Some("set_back"));
    }
    assert_eq!(frames_of(&address), left, "nothing was written");
    if sealed {
        return;
    }
    // A machine that has not seen the lost records continues. Its writes replace them.
    let elsewhere = store(&address, &options());
    let theirs = elsewhere.session("s").unwrap();
    assert_eq!(notes(&theirs).unwrap().len(), 2);
    for round in 0..4 {
        add(&theirs, &format!("theirs {round}")).unwrap();
        for (store, session, what) in &open {
            refuses(store, session, &["set_back", "replaced"], what);
        }
        refuses(&writer, &written, &["set_back", "replaced"], "the writer");
        let error = at().session("s").unwrap_err();
        assert!(breach(&error).is_some(), "{error:?}");
    }
    // The store is also refused after these writes were applied and removed from the log.
    assert!(elsewhere.maintain(0).unwrap());
    let error = at().session("s").and_then(|session| notes(&session)).unwrap_err();
    assert_eq!(breach(&error), Some("replaced"), "{error:?}");
}

/// Returns the number of records in the log.
fn frames_of(address: &str) -> i64 {
    count(&mut client(address), "select count(*) from forge.frame")
}

#[test]
fn a_sealed_store_on_a_standby_that_lagged_is_refused() {
    check_lagging_standby(false, true, "sealed store on a standby that lags");
}

#[test]
fn an_unsealed_store_on_a_standby_that_lagged_is_refused_by_its_witness() {
    check_lagging_standby(false, false, "unsealed store on a standby that lags");
}

#[test]
fn an_encrypted_store_on_a_standby_that_lagged_is_refused() {
    check_lagging_standby(true, true, "encrypted store on a standby that lags");
}
