//! A synchronous standby that takes over.
#![allow(clippy::print_stderr, reason = "figures must be seen")]

use super::killed::{LogOracle, Writers, two_logs};
use super::process::Role;
use super::support::{
    ID, WAIT, add, assert_whole, client, count, create_bare, database, either, frames, is_unsure,
    log, open, options, session, store,
};
use forge_store::Store;
use forge_store::backend::{RowBatch, TableId, WriteAheadLog};
use forge_store::error::BackendError;
use forge_store::store::database::Database as _;
use forge_testkit::audit::audit;
use forge_testkit::postgres::PostgresServer;
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

/// How long a writer waits for a standby that does not come back.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the address of the same database on the standby.
fn at_standby(address: &str, primary: &PostgresServer, standby: &PostgresServer) -> String {
    address.replace(&format!(":{}/", primary.port()), &format!(":{}/", standby.port()))
}

#[test]
fn acknowledged_records_are_on_the_synchronous_standby_that_takes_over() {
    let Some(mut primary) = PostgresServer::start("synchronous standby") else { return };
    let standby = primary.standby(true);
    let address = either(&primary.new_database(), standby.port());
    two_logs(&address);
    let mut oracle = LogOracle::default();
    let writers = Writers::start(Role::Append, &address, 8);
    for _ in 0..200 {
        oracle.hear(&writers.hear());
    }
    primary.kill();
    standby.promote();
    // Some of these lines are from before the failover, and the others are of the new primary.
    for _ in 0..200 {
        oracle.hear(&writers.hear());
    }
    writers.kill_all().iter().for_each(|line| oracle.hear(line));
    oracle.check(&address, "synchronous standby");
}

/// After a restart, the primary shows a record that was not acknowledged, because the standby lacks
/// it. The writer that finds the record must not acknowledge it before the standby has it.
#[test]
fn an_append_that_is_found_after_a_restart_is_acknowledged_when_the_standby_has_it() {
    let Some(mut primary) = PostgresServer::start("restart without a standby") else { return };
    let mut standby = primary.standby(true);
    let address = primary.new_database();
    create_bare(&address);
    let log = log(&address, ID);
    let end = log.append(0, WAIT, &mut |_| Some(b"first".to_vec())).unwrap().unwrap().end;
    standby.stop();
    let waiting = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
    thread::scope(|scope| {
        let appending =
            scope.spawn(move || log.append(end, WAIT, &mut |_| Some(b"second".to_vec())));
        let mut waits = client(&address);
        while count(&mut waits, waiting) == 0 {
            assert!(!appending.is_finished(), "no standby was waited for");
        }
        primary.kill();
        primary.restart();
        let mut waits = client(&address);
        while count(&mut waits, waiting) == 0 {
            assert!(!appending.is_finished(), "it was acknowledged, and the standby lacks it");
        }
        assert_eq!(frames(&address, ID).len(), 2, "it is shown");
        standby.restart();
        let appended = appending.join().unwrap().unwrap().unwrap();
        assert_eq!(appended.position, end);
    });
    primary.kill();
    standby.promote();
    let taken_over = at_standby(&address, &primary, &standby);
    assert_eq!(frames(&taken_over, ID).len(), 2);
}

/// Runs `work` while an administrator cancels each wait for a standby, until `work` ends or
/// `enough` waits are cancelled. Then runs `then`, and returns the result of `work`.
fn while_cancelled<T: Send>(
    address: &str,
    enough: i64,
    then: impl FnOnce(),
    work: impl FnOnce() -> T + Send,
) -> T {
    let mut administrator = client(address);
    let cancel = "
        select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'";
    thread::scope(|scope| {
        let working = scope.spawn(work);
        let mut cancelled = 0;
        while cancelled < enough && !working.is_finished() {
            cancelled += count(&mut administrator, cancel);
        }
        assert!(cancelled > 0, "no standby was waited for");
        then();
        working.join().unwrap()
    })
}

/// If an administrator cancels the wait of a commit for the standby, PostgreSQL commits with a
/// warning. A setting of the role can hide warnings.
#[test]
fn an_append_whose_wait_for_the_standby_is_cancelled_is_not_acknowledged() {
    let Some(primary) = PostgresServer::start("cancelled wait") else { return };
    let mut standby = primary.standby(true);
    let address = primary.new_database();
    create_bare(&address);
    let first = log(&address, ID).append(0, WAIT, &mut |_| Some(b"first".to_vec()));
    let mut end = first.unwrap().unwrap().end;
    for shown in ["notice", "error"] {
        primary.run(&format!("alter role forge set client_min_messages = {shown}"));
        let log = log(&address, ID);
        let one = log.append(end, WAIT, &mut |_| Some(b"one".to_vec())).unwrap().unwrap();
        standby.stop();
        let append = || log.append(one.end, TIMEOUT, &mut |_| Some(b"two".to_vec()));
        let error = while_cancelled(&address, i64::MAX, || (), append).unwrap_err();
        assert!(is_unsure(&error), "{shown}: {error:?}");
        standby.restart();
        let found = frames(&address, ID);
        end = found.last().unwrap().end;
        assert!(end > one.end, "{shown}: it is there");
    }
}

/// Otherwise a purged text would come back with a standby that still has it.
#[test]
fn a_generation_is_not_published_durably_before_the_standby_has_it() {
    let Some(primary) = PostgresServer::start("cancelled publish") else { return };
    let mut standby = primary.standby(true);
    let address = primary.new_database();
    create_bare(&address);
    let index = open(&address, "bare").index(&ID);
    let row = |text: &str| RowBatch {
        rows: vec![(TableId(1), b"key".to_vec(), Some(text.as_bytes().to_vec()))],
    };
    // The standby comes back in time, or not before the timeout.
    for (timeout, enough) in [(WAIT, 3), (TIMEOUT, i64::MAX)] {
        let mut writer = index.empty_writer(timeout).unwrap();
        writer.write(row("replaced")).unwrap();
        standby.stop();
        let published = if enough == i64::MAX {
            while_cancelled(&address, enough, || (), || writer.publish(20))
        } else {
            let comes_back = || standby.restart();
            while_cancelled(&address, enough, comes_back, || writer.publish(10))
        };
        match published {
            Ok(()) => assert_eq!(timeout, WAIT, "the standby lacks it"),
            Err(error) => assert!(timeout == TIMEOUT && is_unsure(&error), "{error:?}"),
        }
    }
    standby.restart();
    assert_eq!(index.position().unwrap(), 20, "it may be there, said the error, and it is");
}

/// Only later durable operations wait for the standby: appends, and the removal of records that the
/// index has.
#[test]
fn an_index_writer_does_not_wait_for_the_standby() {
    let Some(primary) = PostgresServer::start("cancelled writes of an index") else { return };
    let mut standby = primary.standby(true);
    let address = primary.new_database();
    create_bare(&address);
    let index = open(&address, "bare").index(&ID);
    standby.stop();
    let row = (TableId(1), b"key".to_vec(), Some(b"value".to_vec()));
    let write = || -> Result<(), BackendError> {
        let mut writer = index.try_writer()?.unwrap();
        writer.write(RowBatch { rows: vec![row] })?;
        writer.publish(10)?;
        index.tidy().map(drop)
    };
    while_cancelled(&address, i64::MAX, || (), write).unwrap();
    standby.restart();
    assert_eq!(index.position().unwrap(), 10);
}

#[test]
fn a_store_is_created_when_the_standby_has_it() {
    let Some(mut primary) = PostgresServer::start("cancelled creation") else { return };
    let mut standby = primary.standby(true);
    let address = primary.new_database();
    // The tables exist already, so that only the store is created below.
    create_bare(&address);
    standby.stop();
    let team = database(&address, "team");
    let create = || Store::create_at(&team, options()).map(drop);
    while_cancelled(&address, 3, || standby.restart(), create).unwrap();
    primary.kill();
    standby.promote();
    let taken_over = at_standby(&address, &primary, &standby);
    Store::at(&database(&taken_over, "team"), options()).unwrap();
}

/// Open handles of a store continue with the new primary.
#[test]
fn a_store_continues_on_the_synchronous_standby_that_takes_over() {
    let Some(mut primary) = PostgresServer::start("store on a standby") else { return };
    let standby = primary.standby(true);
    let address = either(&primary.new_database(), standby.port());
    let [first, second] = [(); 2].map(|()| store(&address, &options()));
    let writers = [session(&first, "s"), second.session("s").unwrap()];
    let mut acknowledged = BTreeSet::new();
    let mut round = |before: &str| {
        for (number, session) in writers.iter().enumerate() {
            let name = format!("{before} {number}");
            add(session, &name).unwrap();
            acknowledged.insert(name);
        }
    };
    round("before");
    assert!(first.maintain(0).unwrap());
    round("in the tail");
    primary.kill();
    standby.promote();
    round("afterwards");
    assert!(second.maintain(0).unwrap());
    round("in the next tail");
    audit(&writers[0], &acknowledged);
    assert_whole(&store(&address, &options()));
}
