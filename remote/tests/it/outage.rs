//! A server that is killed.

use crate::server::{PATIENCE, PAUSE, Server, ServerKind};
use forge_store::error::DepotError;
use forge_store::store::remote::{Depot, DepotRead, DepotTag, DepotWrite};
use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

/// How many objects are written before each kill.
const OBJECTS: u32 = 20;

fn done(written: DepotWrite) -> DepotTag {
    let DepotWrite::Done(tag) = written else { panic!("no other writer is there") };
    tag
}

/// Reads an object. A server that was just started may not know its own disks yet, and is then
/// unavailable.
fn read(depot: &dyn Depot, name: &str) -> DepotRead {
    let until = Instant::now() + PATIENCE;
    loop {
        match depot.get(name, None) {
            Err(DepotError::Unavailable { .. }) if Instant::now() < until => {
                thread::park_timeout(PAUSE);
            }
            read => return read.unwrap(),
        }
    }
}

#[test]
fn acknowledged_writes_of_seaweedfs_survive_a_kill() {
    let Some(mut server) = Server::start(ServerKind::SeaweedFs, "killed_server") else { return };
    let depot = server.depot("killed");
    let mut acknowledged: BTreeMap<String, (Vec<u8>, DepotTag)> = BTreeMap::new();
    for round in 0..2 {
        for number in 0..OBJECTS {
            let name = format!("packs/{round}/{number:02}");
            let bytes = format!("{round} {number}").into_bytes();
            let tag = done(depot.put_new(&name, &bytes).unwrap());
            acknowledged.insert(name, (bytes, tag));
        }
        let counted = format!("count {round}").into_bytes();
        let tag = match acknowledged.get("ref") {
            Some((_, old)) => done(depot.swap("ref", old, &counted).unwrap()),
            None => done(depot.put_new("ref", &counted).unwrap()),
        };
        acknowledged.insert("ref".to_owned(), (counted, tag));
        server.kill();
        // The server is down. A write fails, and a read is an error, not an absent object.
        let lost = depot.put_new("lost", b"1").unwrap_err();
        assert!(
            matches!(lost, DepotError::Unavailable { .. } | DepotError::Unsure { .. }),
            "{lost:?}"
        );
        let unread = depot.get("ref", None).unwrap_err();
        assert!(matches!(unread, DepotError::Unavailable { .. }), "{unread:?}");
        server.restart();
        for (name, (bytes, tag)) in &acknowledged {
            let expected = DepotRead::Whole { bytes: bytes.clone(), tag: tag.clone() };
            assert_eq!(read(&depot, name), expected, "{name} after kill {round}");
        }
        let listed = depot.list("", "").unwrap();
        let names: Vec<_> = listed.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, acknowledged.keys().collect::<Vec<_>>());
    }
}
