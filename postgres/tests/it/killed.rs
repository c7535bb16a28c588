//! Writers that are killed, connections that are cut, and servers that are killed.
#![allow(clippy::print_stderr, reason = "figures and a seed must be seen")]

use super::process::{Role, log_of, spawn};
use super::support::{
    NAME, WAIT, add, assert_whole, client, count as number, frames, hex, log, open, options,
    session, store,
};
use forge_store::backend::{RecordHash, WriteAheadLog};
use forge_store::store::database::Database;
use forge_store::store::{Options, Store};
use forge_testkit::audit::audit;
use forge_testkit::fault::{SeededNumbers, count};
use forge_testkit::postgres::PostgresServer;
use postgres::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

const WRITERS: u64 = 8;
/// Cuts the connection of a random writer. Writers that append now come first.
const CUT: &str = "
select count(pg_terminate_backend(pid)) from (
  select pid from pg_stat_activity
  where application_name = 'forge' and pid <> pg_backend_pid()
  order by state = 'active' desc, random() limit 1
) one";

/// Processes in one role, and the lines that they print.
pub(super) struct Writers {
    role: Role,
    address: String,
    started: u64,
    children: Vec<(u64, Child)>,
    sender: Sender<(u64, String)>,
    lines: Receiver<(u64, String)>,
}

impl Writers {
    pub(super) fn start(role: Role, address: &str, writers: u64) -> Self {
        let (sender, lines) = channel();
        let (children, address) = (Vec::new(), address.to_owned());
        let mut all = Self { role, address, started: 0, children, sender, lines };
        (0..writers).for_each(|_| all.start_one());
        all
    }

    fn start_one(&mut self) {
        let child = spawn(self.role, &self.address, self.started, "", &self.sender);
        self.children.push((self.started, child));
        self.started += 1;
    }

    /// Returns the next line of any writer, with the number of the writer.
    pub(super) fn hear(&self) -> (u64, String) {
        let (writer, line) = self.lines.recv_timeout(WAIT).expect("the writers go on");
        assert!(!line.starts_with("wrong"), "writer {writer}: {line}");
        (writer, line)
    }

    /// Kills a writer with SIGKILL, and starts another one.
    fn replace(&mut self, place: usize) {
        let (_, mut child) = self.children.swap_remove(place);
        child.kill().unwrap();
        child.wait().unwrap();
        self.start_one();
    }

    /// Kills all writers with SIGKILL, and returns the lines that [`Self::hear`] has not returned.
    pub(super) fn kill_all(self) -> Vec<(u64, String)> {
        for (writer, mut child) in self.children {
            assert!(child.try_wait().unwrap().is_none(), "writer {writer} ended by itself");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        drop(self.sender);
        let lines: Vec<_> = self.lines.iter().collect();
        for (writer, line) in &lines {
            assert!(!line.starts_with("wrong"), "writer {writer}: {line}");
        }
        lines
    }
}

/// The records that writers of two logs have reported.
#[derive(Default)]
pub(super) struct LogOracle {
    /// The position and the hash of each acknowledged record, by its writer and number.
    acknowledged: BTreeMap<(u64, u64), (u64, String)>,
    unsure: BTreeSet<(u64, u64)>,
}

impl LogOracle {
    pub(super) fn hear(&mut self, (writer, line): &(u64, String)) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["ack", count, position, hash] => {
                let place = (position.parse().unwrap(), hash.to_owned());
                let twice = self.acknowledged.insert((*writer, count.parse().unwrap()), place);
                assert_eq!(twice, None, "writer {writer}: {line}");
            }
            ["unsure", count] => {
                self.unsure.insert((*writer, count.parse().unwrap()));
            }
            _ => panic!("writer {writer}: {line}"),
        }
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.acknowledged.len()
    }

    /// Checks that all acknowledged records are at their positions and there once, and that each
    /// log is one chain of hashes.
    pub(super) fn check(&self, address: &str, what: &str) {
        let mut found: BTreeMap<(u64, u64), (u64, String)> = BTreeMap::new();
        let (mut records, mut doubled) = (0, 0);
        for log in [0, 1] {
            let (mut end, mut writers) = (0, BTreeMap::new());
            // The read fails if a record does not follow the one before it.
            for frame in frames(address, log_of(log)) {
                assert_eq!(frame.position, end);
                end = frame.end;
                let text = String::from_utf8_lossy(&frame.payload);
                let mut words = text.split(' ').map_while(|word| word.parse::<u64>().ok());
                let (writer, count) = (words.next().unwrap(), words.next().unwrap());
                assert_eq!(writer % 2, log, "the record of writer {writer} is in another log");
                let earlier = writers.insert(writer, count).filter(|earlier| *earlier >= count);
                doubled += usize::from(earlier.is_some());
                found.insert((writer, count), (frame.position, hex(&frame.hash)));
                records += 1;
            }
        }
        let lost = self.acknowledged.iter().filter(|(name, place)| found.get(name) != Some(place));
        let lost: Vec<_> = lost.collect();
        let unsure = self.unsure.len();
        let done = self.unsure.iter().filter(|name| found.contains_key(name)).count();
        eprintln!(
            "{what}: {records} records, {} acknowledged, {} lost, {doubled} doubled, {unsure} of \
            unknown outcome ({done} are there)",
            self.acknowledged(),
            lost.len()
        );
        assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
        assert_eq!((found.len(), doubled), (records, 0), "records are there twice");
        // A record that was not reported is the last one of a killed process.
        let is_reported =
            |name: &(u64, u64)| self.acknowledged.contains_key(name) || self.unsure.contains(name);
        let mut unreported = BTreeSet::new();
        for name in found.keys().filter(|name| !is_reported(name)) {
            assert!(unreported.insert(name.0), "writer {} left more than one record", name.0);
        }
    }
}

/// Creates the two logs of the writers.
pub(super) fn two_logs(address: &str) {
    for log in [0, 1] {
        let database = open(address, &format!("log {log}"));
        assert!(database.create(&log_of(log), "a marker", None).unwrap());
    }
}

/// Cuts the connection of a writer. Returns 1, or 0 if there was none.
fn cut(client: &mut Client) -> u64 {
    number(client, CUT).unsigned_abs()
}

#[test]
fn acknowledged_records_survive_killed_writers_and_cut_connections() {
    let Some(server) = PostgresServer::start("killed writers") else { return };
    let address = server.new_database();
    two_logs(&address);
    let mut numbers = SeededNumbers::from_environment("killed writers");
    let kills = count("FORGE_KILLS", 40);
    let mut client = client(&address);
    let (mut oracle, mut cuts) = (LogOracle::default(), 0);
    let mut writers = Writers::start(Role::Append, &address, WRITERS);
    for _ in 0..kills {
        for _ in 0..=numbers.below(20) {
            oracle.hear(&writers.hear());
        }
        // A random pause, so that writers are not only killed directly after an acknowledgement.
        for n in 0..numbers.below(300_000) {
            std::hint::black_box(n);
        }
        cuts += cut(&mut client);
        writers.replace(numbers.below(WRITERS) as usize);
    }
    // The writers that were started last must write too.
    for _ in 0..100 {
        oracle.hear(&writers.hear());
    }
    writers.kill_all().iter().for_each(|line| oracle.hear(line));
    oracle.check(&address, &format!("killed writers ({kills} kills, {cuts} cuts)"));
    assert!(cuts > kills / 2 && oracle.acknowledged() as u64 > kills);
    // A killed writer holds no lock: the next one appends at once.
    for id in [log_of(0), log_of(1)] {
        let log = log(&address, id);
        log.append(0, WAIT, &mut |_| Some(b"1000 0 ".to_vec())).unwrap().unwrap();
    }
}

#[test]
fn acknowledged_records_survive_kills_of_the_server() {
    let Some(mut server) = PostgresServer::start("killed server") else { return };
    let address = server.new_database();
    two_logs(&address);
    let mut oracle = LogOracle::default();
    let writers = Writers::start(Role::Append, &address, WRITERS);
    for _ in 0..3 {
        for _ in 0..60 {
            oracle.hear(&writers.hear());
        }
        server.kill();
        server.restart();
    }
    for _ in 0..60 {
        oracle.hear(&writers.hear());
    }
    writers.kill_all().iter().for_each(|line| oracle.hear(line));
    oracle.check(&address, "killed server (3 kills)");
}

/// Starts a server that writes its log to the disk only when a commit waits for it, and whose role
/// does not wait. Rows that are written just before a kill are lost.
fn careless_server(what: &str) -> Option<(PostgresServer, String)> {
    let server = PostgresServer::start(what)?;
    let address = server.new_database();
    server.run("alter system set wal_writer_delay = '10s'");
    server.run("select pg_reload_conf()");
    server.run("alter role forge set synchronous_commit = off");
    assert_eq!(server.run("show synchronous_commit"), "off");
    server.run_in(&address, "create table probe (number int); checkpoint");
    Some((server, address))
}

/// Runs `act`, then commits a row without waiting for the disk, and kills the server at once.
/// Returns whether that row was lost.
fn kill_after(server: &mut PostgresServer, address: &str, act: impl FnOnce()) -> bool {
    let mut probe = client(address);
    let before = number(&mut probe, "select count(*) from probe");
    act();
    probe.batch_execute("insert into probe values (1)").unwrap();
    server.kill();
    server.restart();
    number(&mut client(address), "select count(*) from probe") == before
}

#[test]
fn acknowledged_records_are_durable_although_the_role_does_not_wait_for_commits() {
    let Some((mut server, address)) = careless_server("synchronous_commit = off") else { return };
    open(&address, "bare").create(&[9; 16], "a marker", None).unwrap();
    assert_eq!(open(&address, "bare").risks().unwrap().len(), 1);
    let mut lost = 0;
    let mut acknowledged: Vec<RecordHash> = Vec::new();
    for round in 0..3 {
        let log = log(&address, [9; 16]);
        let end = log.read(0, u64::MAX).unwrap().end;
        let build = &mut |_: &_| Some(format!("round {round}").into_bytes());
        lost += usize::from(kill_after(&mut server, &address, || {
            acknowledged.push(match round {
                0 => log.append(end, WAIT, build).unwrap().unwrap().hash,
                1 => log.rotate(end, WAIT, build).unwrap().unwrap().hash,
                _ => {
                    let all = log.append_all(end, WAIT, &[b"one".to_vec(), b"two".to_vec()]);
                    all.unwrap().unwrap().last().unwrap().hash
                }
            });
        }));
        let there: Vec<_> = frames(&address, [9; 16]).iter().map(|frame| frame.hash).collect();
        assert!(acknowledged.iter().all(|hash| there.contains(hash)), "round {round}");
    }
    eprintln!("synchronous_commit = off: {lost} of 3 writes of others lost, 0 acknowledged");
    assert!(lost > 0, "the kills do not show anything");
}

#[test]
fn a_created_store_and_a_purge_are_durable_although_the_role_does_not_wait_for_commits() {
    let Some((mut server, address)) = careless_server("durable creation") else { return };
    let mut lost = 0;
    // The tables exist already, so that only the store is created below.
    open(&address, "other").create(&[9; 16], "a marker", None).unwrap();
    let database: Arc<dyn Database> = Arc::new(open(&address, NAME));
    lost += usize::from(kill_after(&mut server, &address, || {
        Store::create_at(&database, options()).unwrap();
    }));
    assert!(database.marker().unwrap().is_some(), "the store is gone");
    let index = || open(&address, "any").index(&[9; 16]);
    lost += usize::from(kill_after(&mut server, &address, || {
        index().empty_writer(WAIT).unwrap().publish(100).unwrap();
    }));
    assert_eq!(index().position().unwrap(), 100, "what replaced a purged generation is gone");
    assert!(lost > 0, "the kills do not show anything");
}

#[test]
fn a_store_with_killed_writers_and_cut_connections_is_whole_and_has_all_acknowledged_writes() {
    let Some(server) = PostgresServer::start("killed writers of a store") else { return };
    let address = server.new_database();
    session(&store(&address, &Options::default()), "s");
    let mut numbers = SeededNumbers::from_environment("killed writers of a store");
    let mut client = client(&address);
    let mut writers = Writers::start(Role::Write, &address, 3);
    let (mut acknowledged, mut unsure, mut cuts) = (BTreeSet::new(), 0, 0);
    let mut hear = |(_, line): (u64, String)| match line.split_once(' ') {
        Some(("ack", name)) => drop(acknowledged.insert(name.to_owned())),
        _ => unsure += 1,
    };
    let kills = count("FORGE_KILLS", 15);
    for round in 0..kills {
        for _ in 0..=numbers.below(8) {
            hear(writers.hear());
        }
        for n in 0..numbers.below(300_000) {
            std::hint::black_box(n);
        }
        match round % 3 {
            0 => writers.replace(numbers.below(3) as usize),
            _ => cuts += cut(&mut client),
        }
        // As if 30 seconds had passed since a writer of the index was killed. A writer that still
        // runs loses its lease, and must change nothing more.
        if round % 4 == 3 {
            let expired = "update forge.index set leased_until = '-infinity'";
            client.batch_execute(expired).unwrap();
        }
    }
    for _ in 0..12 {
        hear(writers.hear());
    }
    writers.kill_all().into_iter().for_each(hear);
    let store = store(&address, &options());
    let session = store.session("s").unwrap();
    eprintln!(
        "killed writers of a store: {kills} kills and cuts ({cuts} cuts), {} acknowledged, \
        {unsure} of unknown outcome, {} writes there",
        acknowledged.len(),
        session.summary().unwrap().checkpoints
    );
    audit(&session, &acknowledged);
    assert_whole(&store);
    client.batch_execute("update forge.index set leased_until = '-infinity'").unwrap();
    add(&session, "afterwards").unwrap();
    assert!(store.maintain(0).unwrap(), "what killed writers left does not stop the next one");
    acknowledged.insert("afterwards".to_owned());
    audit(&session, &acknowledged);
    assert_whole(&store);
}
