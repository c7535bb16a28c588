//! Whole stores behind pgbouncer in transaction mode.

use super::support::{add, assert_whole, client, count, options, session, store, with_keyring};
use forge_testkit::audit::audit;
use forge_testkit::postgres::{PgBouncer, PostgresServer};
use std::collections::BTreeSet;
use std::thread;

#[test]
fn threads_share_a_store_behind_a_pooler() {
    let Some(server) = PostgresServer::start("store behind a pooler") else { return };
    let Some(pooler) = PgBouncer::start(&server) else { return };
    let direct = server.new_database();
    let address = pooler.address_of(&direct);
    let folder = tempfile::tempdir().unwrap();
    for options in [options(), with_keyring(folder.path()).encrypted(true)] {
        let shared = store(&address, &options);
        session(&shared, "s");
        thread::scope(|scope| {
            for thread in 0..4 {
                // Two of them as other processes would.
                let own = if thread < 2 { shared.clone() } else { store(&address, &options) };
                scope.spawn(move || {
                    let session = own.session("s").unwrap();
                    for number in 0..12 {
                        add(&session, &format!("{thread} {number}")).unwrap();
                        if number % 4 == thread {
                            own.maintain(0).unwrap();
                        }
                    }
                });
            }
        });
        let names = (0..4).flat_map(|thread| (0..12).map(move |n| format!("{thread} {n}")));
        let names: BTreeSet<_> = names.collect();
        let again = store(&address, &options);
        audit(&again.session("s").unwrap(), &names);
        again.maintain(0).unwrap();
        audit(&again.session("s").unwrap(), &names);
        assert_whole(&again);
        let open = "select count(*) from pg_stat_activity where state like 'idle in transaction%'";
        let mut client = client(&direct);
        assert_eq!(count(&mut client, open), 0, "no transaction is left open");
        client.batch_execute("delete from forge.store").unwrap();
    }
}
