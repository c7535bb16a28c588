//! Requests and answers that are lost on their way. What was done is found, and what was not done
//! is done once.

use super::proxy::{Lost, Proxy};
use super::support::{
    ID, NAME, WAIT, add, assert_whole, client, count, create_bare, frames, is_unsure, log, open,
    options, session, store,
};
use forge_store::backend::framed_log::FramedLog;
use forge_store::backend::{RowBatch, TableId, WriteAheadLog};
use forge_store::error::BackendError;
use forge_store::store::Store;
use forge_store::store::database::Database;
use forge_testkit::audit::audit;
use forge_testkit::postgres::PostgresServer;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A part of the statement that appends.
const APPEND: &str = "insert into forge.frame";
/// The end of a transaction. The NUL distinguishes it from the name of a setting.
const COMMIT: &str = "commit\0";
const PUBLISH: &str = "insert into forge.generation";

struct Place {
    server: PostgresServer,
    proxy: Proxy,
    /// The address of the database at the server.
    address: String,
}

impl Place {
    fn new(what: &str) -> Option<Self> {
        let server = PostgresServer::start(what)?;
        let proxy = Proxy::start(server.port());
        let address = server.new_database();
        Some(Self { server, proxy, address })
    }

    /// Returns the address of the database through the proxy.
    fn through(&self) -> String {
        self.proxy.address_of(&self.address)
    }
}

fn texts(address: &str) -> Vec<String> {
    let text = |payload| String::from_utf8(payload).unwrap();
    frames(address, ID).into_iter().map(|frame| text(frame.payload)).collect()
}

fn append(log: &FramedLog, from: u64, text: &str) -> u64 {
    log.append(from, WAIT, &mut |_| Some(text.into())).unwrap().unwrap().end
}

#[test]
fn an_append_with_a_lost_request_or_answer_is_applied_once() {
    let Some(place) = Place::new("append without an answer") else { return };
    create_bare(&place.address);
    let log = log(&place.through(), ID);
    let mut end = append(&log, 0, "first");
    let mut wanted = vec!["first".to_owned()];
    let losses: [&[Lost]; 5] = [
        &[Lost::Answer],
        &[Lost::Request],
        &[Lost::Answer, Lost::Answer],
        &[Lost::Request, Lost::Answer],
        &[Lost::Answer, Lost::Request, Lost::Request],
    ];
    for (round, losses) in losses.into_iter().enumerate() {
        losses.iter().for_each(|lost| place.proxy.lose(*lost, APPEND));
        end = append(&log, end, &format!("append {round}"));
        assert!(place.proxy.has_lost_all());
        losses.iter().for_each(|lost| place.proxy.lose(*lost, APPEND));
        let many = [format!("one {round}").into_bytes(), format!("two {round}").into_bytes()];
        let appended = log.append_all(end, WAIT, &many).unwrap().unwrap();
        end = appended.last().unwrap().end;
        assert!(place.proxy.has_lost_all());
        wanted.extend(["append", "one", "two"].map(|what| format!("{what} {round}")));
    }
    assert_eq!(texts(&place.address), wanted);
}

#[test]
fn an_append_under_the_lock_with_a_lost_request_or_answer_is_applied_once() {
    let Some(place) = Place::new("append under the lock without an answer") else { return };
    create_bare(&place.address);
    let log = log(&place.through(), ID);
    let mut end = append(&log, 0, "first");
    let mut wanted = vec!["first".to_owned()];
    for (lost, what) in [
        (Lost::Answer, COMMIT),
        (Lost::Request, COMMIT),
        (Lost::Answer, APPEND),
        (Lost::Request, APPEND),
    ] {
        place.proxy.lose(lost, what);
        let text = format!("{lost:?} {}", what.trim_end_matches('\0'));
        let begun = log.rotate(end, WAIT, &mut |_| Some(text.clone().into_bytes()));
        end = begun.unwrap().unwrap().end;
        assert!(place.proxy.has_lost_all());
        wanted.push(text);
    }
    assert_eq!(texts(&place.address), wanted);
    let mut client = client(&place.address);
    let begun = count(&mut client, "select count(*) from forge.frame where begins_segment");
    assert_eq!(begun, 5, "each of them begins a segment");
}

/// The database still has the first attempt, which waits for a standby and holds the log. It may
/// still be done. The error that the log is busy would make the caller write again.
#[test]
fn an_append_that_still_waits_after_its_connection_broke_is_of_unknown_outcome() {
    let Some(place) = Place::new("append that waits for a standby") else { return };
    let mut standby = place.server.standby(true);
    create_bare(&place.address);
    let log = log(&place.through(), ID);
    let end = append(&log, 0, "first");
    let mut client = client(&place.address);
    standby.stop();
    thread::scope(|scope| {
        let timeout = Duration::from_millis(300);
        let appending =
            scope.spawn(move || log.append(end, timeout, &mut |_| Some(b"second".to_vec())));
        let waiting = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
        while count(&mut client, waiting) == 0 {
            assert!(!appending.is_finished(), "no standby was waited for");
        }
        place.proxy.cut();
        let outcome = appending.join().unwrap();
        assert!(outcome.as_ref().is_err_and(is_unsure), "{outcome:?}");
    });
    standby.restart();
    // The error said that the record may be there, and it is.
    while count(&mut client, "select count(*) from forge.frame") < 2 {
        thread::yield_now();
    }
    assert_eq!(texts(&place.address), ["first", "second"]);
}

#[test]
fn a_publish_with_a_lost_answer_succeeds_and_with_a_lost_request_fails() {
    let Some(place) = Place::new("publish without an answer") else { return };
    create_bare(&place.address);
    let database = open(&place.through(), "bare");
    let index = database.index(&ID);
    let row = |text: &str| RowBatch {
        rows: vec![(TableId(1), b"key".to_vec(), Some(text.as_bytes().to_vec()))],
    };
    let read = || {
        let snapshot = open(&place.address, "bare").index(&ID).snapshot().unwrap();
        let value = snapshot.get(TableId(1), b"key").unwrap();
        (snapshot.position(), value.map(|value| String::from_utf8(value).unwrap()))
    };
    for is_anew in [false, true] {
        let begin = || match is_anew {
            true => index.empty_writer(WAIT).unwrap(),
            false => index.try_writer().unwrap().expect("no other writer"),
        };
        let before = read().0;
        let mut writer = begin();
        writer.write(row("done")).unwrap();
        place.proxy.lose(Lost::Answer, PUBLISH);
        writer.publish(before + 10).unwrap();
        assert!(place.proxy.has_lost_all());
        assert_eq!(read(), (before + 10, Some("done".to_owned())));
        // A generation whose request was lost is not published.
        let mut writer = begin();
        writer.write(row("lost")).unwrap();
        place.proxy.lose(Lost::Request, PUBLISH);
        let error = writer.publish(before + 20).unwrap_err();
        assert!(matches!(error, BackendError::Database { .. }), "{error}");
        assert_eq!(read(), (before + 10, Some("done".to_owned())));
    }
}

#[test]
fn a_lease_granted_without_an_answer_expires() {
    let Some(place) = Place::new("lease without an answer") else { return };
    create_bare(&place.address);
    let index = open(&place.through(), "bare").index(&ID);
    place.proxy.lose(Lost::Answer, "set epoch = epoch + 1");
    assert!(index.try_writer().is_err());
    assert!(index.try_writer().unwrap().is_none(), "the database has granted it");
    let mut client = client(&place.address);
    let ends = count(
        &mut client,
        "select count(*) from forge.index
         where leased_until between clock_timestamp() and clock_timestamp() + interval '30 s'",
    );
    assert_eq!(ends, 1);
    client.batch_execute("update forge.index set leased_until = now() - interval '1 s'").unwrap();
    assert!(index.try_writer().unwrap().is_some());
}

#[test]
fn a_store_whose_creation_got_no_answer_is_created_once() {
    let Some(place) = Place::new("creation without an answer") else { return };
    // The tables exist already, so that only the store is created below.
    create_bare(&place.address);
    let database: Arc<dyn Database> = Arc::new(open(&place.through(), NAME));
    place.proxy.lose(Lost::Answer, "insert into forge.store");
    let created = Store::create_at(&database, options()).unwrap();
    assert!(place.proxy.has_lost_all());
    session(&created, "s");
    place.proxy.lose(Lost::Request, "insert into forge.store");
    let other: Arc<dyn Database> = Arc::new(open(&place.through(), "other"));
    assert!(Store::create_at(&other, options()).is_err());
    assert!(Store::at(&other, options()).is_err(), "it is not there");
    Store::create_at(&other, options()).unwrap();
}

/// Whichever request or answer of a store is lost, each write is there at most once, and each
/// acknowledged one is there.
#[test]
fn store_writes_with_lost_requests_or_answers_are_applied_at_most_once() {
    let Some(place) = Place::new("store without answers") else { return };
    let written = store(&place.through(), &options());
    let session = session(&written, "s");
    let (mut acknowledged, mut unsure) = (BTreeSet::new(), 0);
    let texts = ["update forge.log", "from forge.log", "update forge.index", "forge.row", COMMIT];
    let mut client = client(&place.address);
    for round in 0..40 {
        let lost = [Lost::Answer, Lost::Request][round % 2];
        place.proxy.forget();
        place.proxy.lose(lost, texts[round / 2 % texts.len()]);
        let name = format!("{round}");
        // A write that surely was not done is repeated, and must be there only once.
        let mut outcome = add(&session, &name);
        for _ in 0..3 {
            match &outcome {
                Err(forge_store::Error::Backend(error)) if !is_unsure(error) => {
                    outcome = add(&session, &name);
                }
                _ => {}
            }
        }
        match outcome {
            Ok(()) => drop(acknowledged.insert(name)),
            Err(forge_store::Error::Backend(error)) if is_unsure(&error) => unsure += 1,
            Err(other) => panic!("round {round}: {other}"),
        }
        // Maintenance may fail here, which must lose nothing.
        let _ = written.maintain(0);
        client.batch_execute("update forge.index set leased_until = '-infinity'").unwrap();
    }
    place.proxy.forget();
    let again = store(&place.address, &options());
    audit(&again.session("s").unwrap(), &acknowledged);
    assert_whole(&again);
    assert_eq!(unsure, 0, "what became of them can be found out");
}
