//! A synchronous standby that takes over.
#![allow(clippy::print_stderr, reason = "figures must be seen")]

use super::killed::{LogOracle, Writers, two_logs};
use super::process::Role;
use super::support::{
    ID, WAIT, add, assert_whole, client, count, create_bare, either, frames, log, options, session,
    store,
};
use forge_store::backend::WriteAheadLog;
use forge_store::error::BackendError;
use forge_testkit::audit::audit;
use forge_testkit::postgres::PostgresServer;
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

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
    // Acknowledged before, and not heard yet, or acknowledged by the new primary.
    for _ in 0..200 {
        oracle.hear(&writers.hear());
    }
    writers.kill_all().iter().for_each(|line| oracle.hear(line));
    oracle.check(&address, "synchronous standby");
}

/// After a restart, the primary shows a record that was not acknowledged, because the standby does
/// not have it. The writer that finds it must not acknowledge it before the standby has it.
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
    let taken_over =
        address.replace(&format!(":{}/", primary.port()), &format!(":{}/", standby.port()));
    assert_eq!(frames(&taken_over, ID).len(), 2);
}

/// PostgreSQL answers a commit whose wait for the standby an administrator cancels, with a warning.
#[test]
fn an_append_whose_wait_for_the_standby_is_cancelled_is_not_acknowledged() {
    let Some(primary) = PostgresServer::start("cancelled wait") else { return };
    let mut standby = primary.standby(true);
    let address = primary.new_database();
    create_bare(&address);
    let log = log(&address, ID);
    let first = log.append(0, WAIT, &mut |_| Some(b"first".to_vec())).unwrap().unwrap();
    standby.stop();
    let timeout = Duration::from_secs(1);
    let mut administrator = client(&address);
    let cancel = "
        select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'";
    thread::scope(|scope| {
        let appending =
            scope.spawn(|| log.append(first.end, timeout, &mut |_| Some(b"second".to_vec())));
        let mut cancelled = 0;
        while !appending.is_finished() {
            cancelled += count(&mut administrator, cancel);
        }
        let error = appending.join().unwrap().unwrap_err();
        assert!(matches!(error, BackendError::Database { unsure: true, .. }), "{error:?}");
        assert!(cancelled > 0);
    });
    standby.restart();
    assert_eq!(frames(&address, ID).len(), 2);
}

/// The processes that use a store go on with the new primary.
#[test]
fn a_store_goes_on_with_the_synchronous_standby_that_takes_over() {
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
