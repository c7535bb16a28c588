//! Replicas: processes that append, each to another thread. Each connects through a proxy that
//! delays packets as a network does.
//!
//! The replicas, the server and the proxies share one machine. Therefore the processor time of each
//! side is measured, and bare inserts through the same proxies show what the machine allows.

use super::{append, context, create_bare, insert_bare, median};
use forge_postgres::{Environment, Shards};
use forge_store::Options;
use forge_systems::thread::Thread;
use forge_testkit::postgres::PostgresServer;
use forge_testkit::process::processor_time;
use forge_testkit::tcp_proxy::TcpProxy;
use postgres::{Client, NoTls};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The first argument of a process that is a replica.
pub(crate) const CHILD: &str = "replica";
const REPLICAS: u32 = 8;
/// How long the replicas append in one measurement.
const APPEND_FOR: Duration = Duration::from_secs(3);
/// How often each replica does its work before a measurement, to warm up.
const WARM_UP: usize = 50;
/// The delays of a packet in microseconds, each with its number of turns. Requests and answers are
/// delayed, so a round trip takes twice as long.
const DELAYS: [(u64, usize); 4] = [(0, 3), (500, 3), (1000, 5), (2000, 3)];

/// The work that a replica repeats.
#[derive(Clone, Copy)]
enum Work {
    Append,
    Insert,
}

/// Measures one replica on one shard and eight replicas on eight shards, by turns. Returns JSON.
pub(crate) fn measure(server: &PostgresServer) -> String {
    let address = server.new_database();
    create_bare(&address);
    let mut delays = Vec::new();
    for (delay, turns) in DELAYS {
        let turn = |number: usize| {
            let rates = [
                (Work::Append, 1),
                (Work::Append, REPLICAS),
                (Work::Insert, 1),
                (Work::Insert, REPLICAS),
            ]
            .map(|(work, count)| {
                let name = format!("{delay} {number} {count}");
                run(server, &address, &name, work, count, Duration::from_micros(delay))
            });
            let [one, eight, one_insert, eight_inserts] = rates;
            format!(
                r#"{{"one": {one}, "eight": {eight}, "one_insert": {one_insert}, "eight_inserts": {eight_inserts}}}"#
            )
        };
        let turns: Vec<String> = (0..turns).map(turn).collect();
        let delay = Duration::from_micros(delay).as_secs_f64() * 1000.0;
        delays.push(format!(r#"{{"delay_ms": {delay}, "turns": [{}]}}"#, turns.join(", ")));
    }
    format!("[{}]", delays.join(", "))
}

/// Runs this many replicas at the same time, each with its own shard and proxy. Returns JSON.
fn run(
    server: &PostgresServer,
    address: &str,
    name: &str,
    work: Work,
    count: u32,
    delay: Duration,
) -> String {
    if matches!(work, Work::Append) {
        Shards::open_or_create(address, name, count, &Environment::new(), Options::default())
            .unwrap();
    }
    // Without a delay, each replica connects directly.
    let proxies: Vec<TcpProxy> = (0..if delay.is_zero() { 0 } else { count })
        .map(|_| TcpProxy::start(server.port(), delay))
        .collect();
    let mut replicas: Vec<Replica> = (0..count)
        .map(|place| {
            let port = proxies.get(place as usize).map_or_else(|| server.port(), TcpProxy::port);
            let address = address.replace(&format!(":{}/", server.port()), &format!(":{port}/"));
            Replica::start(&address, name, place, work)
        })
        .collect();
    replicas.iter_mut().for_each(|replica| assert_eq!(replica.line(), "ready"));
    let round_trips = || proxies.iter().map(TcpProxy::round_trips).sum::<u64>();
    let processor = || (processor_of_server(server), processor_time("self"));
    let before = (round_trips(), processor());
    replicas.iter_mut().for_each(Replica::go);
    let found: Vec<Vec<f64>> = replicas.iter_mut().map(Replica::figures).collect();
    let after = (round_trips(), processor());
    let sum = |column: usize| found.iter().map(|figures| figures[column]).sum::<f64>();
    let done = sum(0);
    let per_second: f64 = found.iter().map(|figures| figures[0] / figures[1]).sum();
    let p50 = sum(2) / f64::from(count);
    let (client, server) = (sum(3) / done, (after.1.0 - before.1.0) / done);
    let proxy = (after.1.1 - before.1.1) / done;
    let trips = (after.0 - before.0) as f64 / done;
    format!(
        r#"{{"per_second": {per_second}, "p50_ms": {p50}, "round_trips": {trips}, "client_ms": {client}, "server_ms": {server}, "proxy_ms": {proxy}}}"#
    )
}

/// A process that works after it gets a line on its input. It ends when its input ends.
struct Replica {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Replica {
    fn start(address: &str, name: &str, place: u32, work: Work) -> Self {
        let work = match work {
            Work::Append => "append",
            Work::Insert => "insert",
        };
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([CHILD, work, address, name, &place.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Returns how often the replica did its work, in how many seconds, and in milliseconds the
    /// median of the times and the processor time of the process.
    fn figures(&mut self) -> Vec<f64> {
        self.line().split(' ').map(|word| word.parse().unwrap()).collect()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Runs as the process of a [`Replica`].
pub(crate) fn replica(arguments: &[String]) {
    let [work, address, name, place, ..] = arguments else { panic!("not {arguments:?}") };
    if work == "insert" {
        let mut client = Client::connect(address, NoTls).unwrap();
        return serve(|_| insert_bare(&mut client));
    }
    let shards = Shards::open(address, name, &Environment::new(), Options::default()).unwrap();
    let store = shards.all().unwrap().swap_remove(place.parse().unwrap());
    let thread = Thread::open_or_create(&store, &context(), &format!("thread {place}")).unwrap();
    serve(|number| append(&thread, number));
}

fn serve(mut work: impl FnMut(usize)) {
    (0..WARM_UP).for_each(&mut work);
    println!("ready");
    let mut input = std::io::stdin().lines();
    assert_eq!(input.next().unwrap().unwrap(), "go");
    let (since, processor, mut times) = (Instant::now(), processor_time("self"), Vec::new());
    while since.elapsed() < APPEND_FOR {
        let began = Instant::now();
        work(WARM_UP + times.len());
        times.push(began.elapsed());
    }
    let (took, processor) = (since.elapsed().as_secs_f64(), processor_time("self") - processor);
    println!("{} {took} {} {processor}", times.len(), median(times));
    // The connection stays open, so that the processor time of the server's process can be read.
    assert!(input.next().is_none());
}

/// Returns the processor time of all processes of the server so far, in milliseconds.
fn processor_of_server(server: &PostgresServer) -> f64 {
    let own = "select pid from pg_stat_activity where pid <> pg_backend_pid()";
    server.run(own).lines().map(processor_time).sum()
}
