//! Measures stores in PostgreSQL, on a server that this bench starts, and prints JSON: `cargo bench
//! -p forge-postgres --bench postgres`.
//!
//! Appends to a thread are compared with bare inserts of about the same number of bytes. For the
//! measurement of several processes see [`replicas`].

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints and may fail")]

use forge_postgres::{Environment, PostgresDatabase};
use forge_store::store::database::Database;
use forge_store::{Options, Store, Timestamp, WriteContext};
use forge_systems::thread::{AppendOptions, Thread};
use forge_testkit::postgres::PostgresServer;
use postgres::types::Type;
use postgres::{Client, NoTls};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[path = "postgres/replicas.rs"]
mod replicas;

const TURNS: usize = 5;
const APPENDS: usize = 200;
/// The number of bytes of a bare insert: about that of the record of an append.
const BARE_BYTES: usize = 450;

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    milliseconds(times[times.len() / 2])
}

fn context() -> WriteContext {
    WriteContext::asked("thread append", Timestamp::now())
}

fn append(thread: &Thread, number: usize) {
    let message = format!(r#"{{"role":"user","content":"message {number} {}"}}"#, "x".repeat(300));
    thread.append(&context(), &[message], &AppendOptions::default()).unwrap();
}

fn create_bare(address: &str) {
    let mut client = Client::connect(address, NoTls).unwrap();
    client.batch_execute("create table bare (id bigserial primary key, payload bytea)").unwrap();
}

fn insert_bare(client: &mut Client) {
    let payload = [7_u8; BARE_BYTES];
    let statement = "insert into bare (payload) values ($1)";
    client.execute_typed(statement, &[(&&payload[..], Type::BYTEA)]).unwrap();
}

/// Measures bare inserts and appends to a growing thread, one after the other. Returns the medians
/// of each turn as JSON.
fn appends_beside_inserts(address: &str) -> String {
    let database: Arc<dyn Database> =
        Arc::new(PostgresDatabase::open(address, "appends", &Environment::new()).unwrap());
    let store = Store::open_or_create_at(&database, Options::default()).unwrap();
    let thread = Thread::open_or_create(&store, &context(), "one").unwrap();
    create_bare(address);
    let mut client = Client::connect(address, NoTls).unwrap();
    let mut turns = Vec::new();
    // The first turn warms up.
    for turn in 0..=TURNS {
        let (mut inserts, mut appends) = (Vec::new(), Vec::new());
        for number in 0..APPENDS {
            let since = Instant::now();
            insert_bare(&mut client);
            inserts.push(since.elapsed());
            let since = Instant::now();
            append(&thread, turn * APPENDS + number);
            appends.push(since.elapsed());
        }
        if turn > 0 {
            let (insert, append) = (median(inserts), median(appends));
            turns.push(format!(r#"{{"insert_ms": {insert}, "append_ms": {append}}}"#));
        }
        store.maintain(forge_store::store::APPLY_BYTES).unwrap();
    }
    format!("[{}]", turns.join(", "))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [kind, arguments @ ..] = &arguments[..]
        && kind == replicas::CHILD
    {
        return replicas::replica(arguments);
    }
    let Some(server) = PostgresServer::start("bench of PostgreSQL") else { return };
    let version = server.run("show server_version");
    let record = "select coalesce(avg(length(bytes)), 0)::int from forge.frame";
    let address = server.new_database();
    let appends = appends_beside_inserts(&address);
    let record_bytes = server.run_in(&address, record);
    let replicas = replicas::measure(&server);
    println!(
        r#"{{"version": "{version}", "appends": {appends}, "record_bytes": {record_bytes}, "replicas": {replicas}}}"#
    );
}
