//! Measures stores in PostgreSQL on a server of its own, in turns with bare inserts:
//! `cargo bench -p forge-postgres --bench postgres`. Prints JSON.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints and may fail")]

use forge_postgres::{Environment, PostgresDatabase, Shards};
use forge_store::store::database::Database;
use forge_store::{Options, Store, Timestamp, WriteContext};
use forge_systems::thread::{AppendOptions, Thread};
use forge_testkit::postgres::PostgresServer;
use postgres::NoTls;
use postgres::types::Type;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TURNS: usize = 5;
const APPENDS: usize = 200;
/// How long writers append in one measurement.
const WRITERS_FOR: Duration = Duration::from_secs(4);
const REPLICAS: u32 = 8;

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn context() -> WriteContext {
    WriteContext::asked("thread append", Timestamp::now())
}

fn message(number: usize) -> String {
    format!(r#"{{"role":"user","content":"message {number} {}"}}"#, "x".repeat(300))
}

fn append(store: &Store, name: &str, number: usize) {
    let thread = Thread::open_or_create(store, &context(), name).unwrap();
    thread.append(&context(), &[message(number)], &AppendOptions::default()).unwrap();
}

/// A thread that grows, and bare inserts of as many bytes as a record of it has, in turns.
fn appends_beside_inserts(address: &str) {
    let database: Arc<dyn Database> =
        Arc::new(PostgresDatabase::open(address, "appends", &Environment::new()).unwrap());
    let store = Store::open_or_create_at(&database, Options::default()).unwrap();
    let thread = Thread::open_or_create(&store, &context(), "one").unwrap();
    let mut client = postgres::Client::connect(address, NoTls).unwrap();
    client.batch_execute("create table bare (id bigserial primary key, payload bytea)").unwrap();
    let payload = vec![7_u8; 1200];
    let (mut inserts, mut appends, mut number) = (Vec::new(), Vec::new(), 0);
    for turn in 0..=TURNS {
        let (mut insert, mut append) = (Vec::new(), Vec::new());
        for _ in 0..APPENDS {
            let since = Instant::now();
            let statement = "insert into bare (payload) values ($1)";
            client.execute_typed(statement, &[(&payload, Type::BYTEA)]).unwrap();
            insert.push(since.elapsed());
            let (text, since) = (message(number), Instant::now());
            thread.append(&context(), &[text], &AppendOptions::default()).unwrap();
            append.push(since.elapsed());
            number += 1;
        }
        // The first turn warms up.
        if turn > 0 {
            inserts.push(median(insert));
            appends.push(median(append));
        }
        store.maintain(forge_store::store::APPLY_BYTES).unwrap();
    }
    println!("{{\"insert_ms\": {inserts:?}, \"append_ms\": {appends:?}}}");
}

/// Appends a second of several replicas, each with a shard of its own.
fn replicas(address: &str, shards: u32, replicas: u32) -> f64 {
    let name = format!("replicas {shards} {replicas} {:?}", Instant::now());
    Shards::open_or_create(address, &name, shards, &Environment::new(), Options::default())
        .unwrap();
    let (done, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut took = Duration::ZERO;
    std::thread::scope(|scope| {
        for replica in 0..replicas {
            let (name, done, count) = (&name, &done, &count);
            scope.spawn(move || {
                let shards =
                    Shards::open(address, name, &Environment::new(), Options::default()).unwrap();
                let store = shards.all().unwrap().swap_remove((replica % shards.count()) as usize);
                let thread = format!("thread {replica}");
                append(&store, &thread, 0);
                for number in 1.. {
                    append(&store, &thread, number);
                    count.fetch_add(1, Ordering::Relaxed);
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        std::thread::park_timeout(Duration::from_millis(500));
        let (before, since) = (count.load(Ordering::Relaxed), Instant::now());
        std::thread::park_timeout(WRITERS_FOR);
        took = since.elapsed();
        count.fetch_sub(before, Ordering::Relaxed);
        let appended = count.load(Ordering::Relaxed);
        done.store(true, Ordering::Relaxed);
        count.store(appended, Ordering::Relaxed);
    });
    count.load(Ordering::Relaxed).min(u64::from(u32::MAX)) as f64 / took.as_secs_f64()
}

fn main() {
    let Some(server) = PostgresServer::start("bench of PostgreSQL") else { return };
    appends_beside_inserts(&server.new_database());
    let address = server.new_database();
    let (mut one, mut all) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        one.push(replicas(&address, 1, 1));
        all.push(replicas(&address, REPLICAS, REPLICAS));
    }
    println!("{{\"one_replica_per_s\": {one:?}, \"eight_replicas_per_s\": {all:?}}}");
}
