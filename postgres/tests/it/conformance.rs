//! Runs the conformance suites on PostgreSQL of two versions, and through a pooler.

use forge_postgres::{Environment, PostgresDatabase};
use forge_store::backend::framed_log::FramedLog;
use forge_store::backend::{Index, WriteAheadLog};
use forge_store::store::database::Database;
use forge_testkit::conformance;
use forge_testkit::postgres::{PgBouncer, PostgresServer};
use std::sync::atomic::{AtomicU8, Ordering};

/// Makes stores in a database. Each is opened as another process would: by address and id.
fn stores(address: &str) -> impl Fn() -> (String, [u8; 16]) {
    let (address, made) = (address.to_owned(), AtomicU8::new(0));
    move || {
        let number = made.fetch_add(1, Ordering::Relaxed);
        let id = [number; 16];
        let database = open(&address, &format!("store {number}"));
        assert!(database.create(&id, "a marker", None).unwrap());
        (address.clone(), id)
    }
}

fn open(address: &str, name: &str) -> PostgresDatabase {
    PostgresDatabase::open(address, name, &Environment::new()).unwrap()
}

fn log_conforms(address: &str) {
    let fresh = stores(address);
    conformance::log(|| {
        let (address, id) = fresh();
        move || {
            Box::new(FramedLog::new(open(&address, "any").frames(&id))) as Box<dyn WriteAheadLog>
        }
    });
}

fn index_conforms(address: &str, snapshots: usize) {
    let fresh = stores(address);
    conformance::index(snapshots, || {
        let (address, id) = fresh();
        let database = open(&address, "any");
        move || database.index(&id) as Box<dyn Index>
    });
}

#[test]
fn a_log_in_postgresql_conforms() {
    let Some(server) = PostgresServer::start("log in PostgreSQL") else { return };
    log_conforms(&server.new_database());
}

#[test]
fn an_index_in_postgresql_conforms() {
    let Some(server) = PostgresServer::start("index in PostgreSQL") else { return };
    index_conforms(&server.new_database(), 300);
}

#[test]
fn log_and_index_in_a_newer_postgresql_conform() {
    let Some(server) = PostgresServer::start_newer("newer PostgreSQL") else { return };
    log_conforms(&server.new_database());
    index_conforms(&server.new_database(), 100);
}

#[test]
fn log_and_index_behind_a_pooler_conform() {
    let Some(server) = PostgresServer::start("pooler") else { return };
    let Some(pooler) = PgBouncer::start(&server) else { return };
    let names = [server.new_database(), server.new_database()];
    let [log, index] = names.map(|address| pooler.address_of(address.rsplit('/').next().unwrap()));
    log_conforms(&log);
    index_conforms(&index, 100);
}
