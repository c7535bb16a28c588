//! Roles with stricter isolation of transactions, where the database demands that some of them are
//! repeated.

use super::support::{ID, WAIT, add, create_bare, frames, log, options, session, store};
use forge_store::backend::{LogTail, WriteAheadLog};
use forge_testkit::audit::audit;
use forge_testkit::postgres::PostgresServer;
use std::collections::BTreeSet;
use std::thread;

const LEVELS: [&str; 2] = ["repeatable read", "serializable"];

fn server_with(what: &str, level: &str) -> Option<PostgresServer> {
    let server = PostgresServer::start(what)?;
    server.run(&format!("alter role forge set default_transaction_isolation = '{level}'"));
    Some(server)
}

#[test]
fn threads_append_to_one_log_at_each_isolation_level() {
    const THREADS: usize = 6;
    const APPENDS: usize = 20;
    for level in LEVELS {
        let Some(server) = server_with("log at isolation levels", level) else { return };
        let address = server.new_database();
        create_bare(&address);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let address = &address;
                scope.spawn(move || {
                    let (log, mut end) = (log(address, ID), 0);
                    for number in 0..APPENDS {
                        let payload = format!("{thread} {number}").into_bytes();
                        let build = &mut |_: &LogTail| Some(payload.clone());
                        let appended = match number % 10 {
                            9 => log.rotate(end, WAIT, build),
                            _ => log.append(end, WAIT, build),
                        };
                        end = appended.unwrap().unwrap().end;
                    }
                });
            }
        });
        let all: BTreeSet<_> = frames(&address, ID).into_iter().map(|one| one.payload).collect();
        assert_eq!(all.len(), THREADS * APPENDS, "{level}");
    }
}

#[test]
fn threads_share_a_store_at_each_isolation_level() {
    for level in LEVELS {
        let Some(server) = server_with("store at isolation levels", level) else { return };
        let address = server.new_database();
        session(&store(&address, &options()), "s");
        thread::scope(|scope| {
            for thread in 0..4 {
                let address = &address;
                scope.spawn(move || {
                    let own = store(address, &options());
                    let session = own.session("s").unwrap();
                    for number in 0..10 {
                        add(&session, &format!("{thread} {number}")).unwrap();
                        if number % 4 == thread {
                            own.maintain(0).unwrap();
                        }
                    }
                });
            }
        });
        let names = (0..4).flat_map(|thread| (0..10).map(move |n| format!("{thread} {n}")));
        audit(&store(&address, &options()).session("s").unwrap(), &names.collect());
    }
}
