//! Writers of the index that are stopped or killed, and snapshots whose rows were removed.

use super::process::{Role, spawn, unpublished};
use super::set_back::cut_off;
use super::support::{ID, WAIT, chain, client, count, create_bare, either, open};
use forge_store::backend::{
    Index, IndexWriter, LogPosition, RowBatch, ScanDirection, Snapshot, TableId, TableRow,
};
use forge_store::error::BackendError;
use forge_store::store::database::Database;
use forge_testkit::postgres::PostgresServer;
use postgres::Client;
use std::sync::Arc;
use std::sync::mpsc::channel;

const TABLE: TableId = TableId(1);

struct Place {
    _server: PostgresServer,
    address: String,
    client: Client,
}

impl Place {
    fn new(what: &str) -> Option<Self> {
        let server = PostgresServer::start(what)?;
        let address = server.new_database();
        create_bare(&address);
        let client = client(&address);
        Some(Self { _server: server, address, client })
    }

    /// Opens the index as another process would.
    fn index(&self) -> Box<dyn Index> {
        open(&self.address, "any").index(&ID)
    }

    fn writer(&self) -> Option<Box<dyn IndexWriter>> {
        self.index().try_writer().unwrap()
    }

    /// Publishes a generation with these rows.
    fn publish(&self, position: LogPosition, rows: &[(&str, Option<&str>)]) {
        let mut writer = self.writer().expect("no other writer");
        writer.write(batch(rows)).unwrap();
        writer.publish(position).unwrap();
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.index().snapshot().unwrap()
    }

    /// Ends the lease of the present writer.
    fn expire_lease(&mut self) {
        let sql = "update forge.index set leased_until = clock_timestamp() - interval '1 s'";
        self.client.batch_execute(sql).unwrap();
    }

    /// Makes all generations an hour older.
    fn age(&mut self) {
        let sql = "update forge.generation set published = published - interval '1 hour'";
        self.client.batch_execute(sql).unwrap();
    }

    fn count(&mut self, sql: &str) -> i64 {
        count(&mut self.client, sql)
    }

    /// Returns the number of rows that an unpublished generation has added or closed.
    fn left_over(&mut self) -> i64 {
        self.count(
            "select count(*) from forge.row r join forge.index i on i.store = r.store
             where r.since > i.generation
               or r.until > i.generation and r.until < 9223372036854775807",
        )
    }
}

fn batch(rows: &[(&str, Option<&str>)]) -> RowBatch {
    let bytes = |text: &str| text.as_bytes().to_vec();
    RowBatch { rows: rows.iter().map(|row| (TABLE, bytes(row.0), row.1.map(bytes))).collect() }
}

/// Returns all rows of a snapshot, which must be the same in both directions.
fn all(snapshot: &dyn Snapshot) -> Result<Vec<TableRow>, BackendError> {
    let scan = |direction| snapshot.scan(TABLE, &[], &[], direction, usize::MAX);
    let (rows, mut against) = (scan(ScanDirection::Ascending)?, scan(ScanDirection::Descending)?);
    against.reverse();
    assert_eq!(rows, against);
    Ok(rows)
}

fn shown(snapshot: &dyn Snapshot) -> Vec<(String, String)> {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    all(snapshot).unwrap().into_iter().map(|(key, value)| (text(key), text(value))).collect()
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_writer_that_was_stopped_past_its_lease_changes_nothing_any_more() {
    let Some(mut place) = Place::new("stopped index writer") else { return };
    place.publish(10, &[("a", Some("old")), ("b", Some("old"))]);
    let mut stopped = place.writer().unwrap();
    stopped.write(batch(&[("a", Some("stopped")), ("b", None), ("c", Some("stopped"))])).unwrap();
    assert!(place.writer().is_none(), "it has a lease");
    place.expire_lease();
    let mut next = place.writer().expect("the lease has ended");
    assert_eq!(shown(next.view()), pairs(&[("a", "old"), ("b", "old")]));
    assert_eq!(place.left_over(), 0, "what the stopped one wrote is undone");
    next.write(batch(&[("a", Some("next"))])).unwrap();
    // The stopped writer continues, while the next one works and after it has ended.
    let message = |error: BackendError| {
        assert!(matches!(error, BackendError::Database { unsure: false, .. }));
        chain(&error)
    };
    let refused = "meanwhile another process became the writer of the index";
    let refusal = message(stopped.write(batch(&[("b", Some("late"))])).unwrap_err());
    assert!(refusal.ends_with(refused), "{refusal}");
    next.write(batch(&[("d", Some("next"))])).unwrap();
    next.publish(20).unwrap();
    let refusal = message(stopped.write(batch(&[("b", Some("later"))])).unwrap_err());
    assert!(refusal.ends_with(refused), "{refusal}");
    let third = place.writer().expect("the next one has published");
    let refusal = message(stopped.publish(30).unwrap_err());
    assert!(refusal.ends_with(refused), "{refusal}");
    assert!(place.writer().is_none(), "the stopped one gave back no other lease than its own");
    drop(third);
    let snapshot = place.snapshot();
    assert_eq!(snapshot.position(), 20);
    assert_eq!(shown(&*snapshot), pairs(&[("a", "next"), ("b", "old"), ("d", "next")]));
    assert_eq!(place.left_over(), 0);
}

/// A writer that begins empty replaces all rows, as a purge does.
#[test]
fn a_writer_that_began_empty_and_was_stopped_past_its_lease_changes_nothing_any_more() {
    let Some(mut place) = Place::new("stopped empty index writer") else { return };
    place.publish(10, &[("a", Some("old"))]);
    let mut stopped = place.index().empty_writer(WAIT).unwrap();
    assert!(shown(stopped.view()).is_empty());
    stopped.write(batch(&[("a", Some("stopped"))])).unwrap();
    let busy = place.index().empty_writer(std::time::Duration::ZERO);
    assert!(matches!(busy, Err(BackendError::Busy { .. })));
    place.expire_lease();
    place.publish(20, &[("b", Some("next"))]);
    assert!(stopped.write(batch(&[("c", Some("late"))])).is_err());
    assert!(stopped.publish(30).is_err());
    let snapshot = place.snapshot();
    assert_eq!(snapshot.position(), 20);
    assert_eq!(shown(&*snapshot), pairs(&[("a", "old"), ("b", "next")]));
    assert_eq!(place.left_over(), 0);
}

#[test]
fn a_writer_that_was_stopped_continues_if_no_other_began() {
    let Some(mut place) = Place::new("stopped index writer alone") else { return };
    let mut stopped = place.writer().unwrap();
    stopped.write(batch(&[("a", Some("1"))])).unwrap();
    place.expire_lease();
    stopped.write(batch(&[("b", Some("2"))])).unwrap();
    assert!(place.writer().is_none(), "it has a new lease");
    place.expire_lease();
    stopped.publish(10).unwrap();
    assert_eq!(shown(&*place.snapshot()), pairs(&[("a", "1"), ("b", "2")]));
}

#[test]
fn a_killed_writer_leaves_nothing_visible_and_the_next_one_removes_it() {
    let Some(mut place) = Place::new("killed index writer") else { return };
    let rows: Vec<_> = (0..10).map(|number| vec![b'o', number]).collect();
    let mut writer = place.writer().unwrap();
    let old = rows.iter().map(|key| (TABLE, key.clone(), Some(b"old".to_vec())));
    writer.write(RowBatch { rows: old.collect() }).unwrap();
    writer.publish(10).unwrap();
    let before = place.snapshot();
    let (sender, lines) = channel();
    for round in 0..3 {
        let mut child = spawn(Role::Index, &place.address, round, "", &sender);
        assert_eq!(lines.recv_timeout(WAIT).unwrap().1, "written");
        child.kill().unwrap();
        child.wait().unwrap();
        let changes = unpublished().rows.len() as i64;
        assert!(place.left_over() >= changes - 5, "its rows are in the table");
        for snapshot in [&before, &place.snapshot()] {
            assert_eq!(snapshot.position(), 10);
            let shown = all(&**snapshot).unwrap();
            assert!(shown.iter().map(|(key, _)| key).eq(&rows), "round {round}");
            assert!(shown.iter().all(|(_, value)| value == b"old"));
            assert_eq!(snapshot.get(TABLE, b"n\x01").unwrap(), None);
        }
        assert!(place.writer().is_none(), "its lease has not ended");
        place.expire_lease();
        let next = place.writer().expect("the lease has ended");
        assert_eq!(place.left_over(), 0, "round {round}");
        assert!(all(next.view()).unwrap().iter().map(|(key, _)| key).eq(&rows));
        // This writer publishes nothing either. It gives its lease back at once.
        drop(next);
    }
    let mut next = place.writer().expect("the place is free");
    next.write(unpublished()).unwrap();
    next.publish(20).unwrap();
    assert_eq!(all(&*before).unwrap().len(), 10);
    assert_eq!(all(&*place.snapshot()).unwrap().len(), 205);
    assert_eq!(place.left_over(), 0);
}

#[test]
fn a_snapshot_whose_rows_were_removed_is_an_error_and_never_shows_less() {
    let Some(mut place) = Place::new("old snapshots") else { return };
    place.publish(10, &[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))]);
    // A snapshot keeps the rows that it has read. So each generation has a second snapshot, of
    // which nothing is read before the rows are removed.
    let [first, unread_first] = [place.snapshot(), place.snapshot()];
    place.publish(20, &[("a", None), ("b", Some("2"))]);
    let [second, unread_second] = [place.snapshot(), place.snapshot()];
    place.publish(30, &[("c", Some("3")), ("d", Some("3"))]);
    let [newest, unread_newest] = [place.snapshot(), place.snapshot()];
    let tables = [pairs(&[("a", "1"), ("b", "1"), ("c", "1")]), pairs(&[("b", "2"), ("c", "1")])];
    let last = pairs(&[("b", "2"), ("c", "3"), ("d", "3")]);
    // Rows that were replaced a moment ago are kept.
    place.index().tidy().unwrap();
    assert_eq!([shown(&*first), shown(&*second)], tables);
    // A generation that is replaced now is kept, whatever its age.
    place.age();
    place.publish(40, &[("d", None), ("e", Some("4"))]);
    // While there is a writer, nothing is removed.
    let writer = place.writer().unwrap();
    place.index().tidy().unwrap();
    assert_eq!([shown(&*first), shown(&*second)], tables);
    drop(writer);
    place.index().tidy().unwrap();
    assert_eq!(shown(&*newest), last, "it was replaced a moment ago");
    assert_eq!(shown(&*place.snapshot()).len(), 3);
    for (name, snapshot) in [("first", &unread_first), ("second", &unread_second)] {
        let reads = [
            // Rows that were removed, rows that are still there, and rows that never existed.
            snapshot.get(TABLE, b"a").map(drop),
            snapshot.get(TABLE, b"c").map(drop),
            snapshot.get(TABLE, b"never").map(drop),
            snapshot.get(TableId(2), b"c").map(drop),
            snapshot.get_many(TABLE, &[b"a".to_vec(), b"c".to_vec(), b"x".to_vec()]).map(drop),
            snapshot.scan(TABLE, b"x", b"z", ScanDirection::Ascending, 1).map(drop),
            all(&**snapshot).map(drop),
        ];
        for (number, read) in reads.into_iter().enumerate() {
            let error = read.expect_err(name);
            assert!(matches!(error, BackendError::Database { unsure: false, .. }));
            let message = chain(&error);
            assert!(message.ends_with("read it again"), "{name}, {number}: {message}");
        }
    }
    // Snapshots that have read their rows still show all of them.
    assert_eq!([shown(&*first), shown(&*second)], tables);
    // The rows that only these snapshots showed are removed.
    assert_eq!(place.count("select count(*) from forge.row"), 4);
    assert_eq!(place.count("select count(*) from forge.generation"), 2);
    place.age();
    place.index().tidy().unwrap();
    assert_eq!(place.count("select count(*) from forge.row"), 3);
    assert!(all(&*unread_newest).is_err());
    assert_eq!(shown(&*place.snapshot()).len(), 3);
}

#[test]
fn a_snapshot_from_before_an_empty_writer_is_an_error() {
    let Some(mut place) = Place::new("replaced snapshots") else { return };
    place.publish(10, &[("a", Some("1")), ("b", Some("1"))]);
    let [before, unread] = [place.snapshot(), place.snapshot()];
    let writer = place.index().empty_writer(WAIT).unwrap();
    drop(writer);
    assert_eq!(shown(&*before).len(), 2, "nothing was published");
    let mut writer = place.index().empty_writer(WAIT).unwrap();
    writer.write(batch(&[("b", Some("2"))])).unwrap();
    assert_eq!(shown(writer.view()), pairs(&[("b", "2")]));
    assert_eq!(shown(&*before).len(), 2);
    writer.publish(20).unwrap();
    assert!(unread.get(TABLE, b"b").is_err());
    assert!(unread.get(TABLE, b"never").is_err());
    assert!(all(&*unread).is_err());
    assert_eq!(shown(&*place.snapshot()), pairs(&[("b", "2")]));
    assert_eq!(place.count("select count(*) from forge.row"), 1);
}

/// The rows of a writer, or its lease, can be lost with the server. The writer must not publish the
/// rest.
#[test]
fn a_writer_whose_rows_are_not_on_the_standby_that_takes_over_changes_nothing_any_more() {
    for has_begun in [false, true] {
        let Some(mut primary) = PostgresServer::start("index writer on a standby") else { return };
        let standby = primary.standby(false);
        let address = either(&primary.new_database(), standby.port());
        create_bare(&address);
        let index = open(&address, "any").index(&ID);
        let mut published = index.try_writer().unwrap().unwrap();
        published.write(batch(&[("a", Some("old"))])).unwrap();
        published.publish(10).unwrap();
        let begin = || index.try_writer().unwrap().unwrap();
        let mut early = has_begun.then(begin);
        cut_off(&standby, &primary);
        let mut writer = early.take().unwrap_or_else(begin);
        writer.write(batch(&[("a", Some("lost"))])).unwrap();
        primary.kill();
        standby.promote();
        // The index connects to the new primary before the writer continues.
        assert_eq!(index.position().unwrap(), 10);
        let next = (!has_begun).then(|| open(&address, "any").index(&ID).try_writer());
        let mut next = next.map(|writer| writer.unwrap().unwrap());
        if let Some(next) = &mut next {
            next.write(batch(&[("c", Some("next"))])).unwrap();
        }
        assert!(writer.write(batch(&[("b", Some("late"))])).is_err(), "begun: {has_begun}");
        assert!(writer.publish(20).is_err(), "begun: {has_begun}");
        if let Some(next) = next {
            next.publish(30).unwrap();
            let shown = shown(&*open(&address, "any").index(&ID).snapshot().unwrap());
            assert_eq!(shown, pairs(&[("a", "old"), ("c", "next")]));
        }
    }
}

#[test]
fn one_of_many_writers_that_begin_at_once_becomes_the_writer() {
    let Some(mut place) = Place::new("index writers at once") else { return };
    for round in 1..=10 {
        let writers: Vec<_> = std::thread::scope(|scope| {
            let place = &place.address;
            let begun: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| open(place, "any").index(&ID).try_writer().unwrap()))
                .collect();
            begun.into_iter().filter_map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(writers.len(), 1, "round {round}");
        for mut writer in writers {
            writer.write(batch(&[("a", Some(&round.to_string()))])).unwrap();
            writer.publish(round).unwrap();
        }
        assert_eq!(shown(&*place.snapshot()), pairs(&[("a", &round.to_string())]));
    }
    assert_eq!(place.count("select count(*) from forge.generation"), 11);
}
