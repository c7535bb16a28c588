//! Runs the conformance suite of depots on real servers.

use crate::server::{Server, ServerKind};
use forge_store::store::remote::{Depot, DepotRead, DepotTag, DepotWrite};
use forge_testkit::conformance;
use std::cell::Cell;

/// Starts a server and runs the suite on it, with a folder of the bucket for each case.
fn conforming(kind: ServerKind) -> Option<Server> {
    let server = Server::start(kind, "object_depot_conforms")?;
    let cases = Cell::new(0);
    conformance::depot(|| {
        cases.set(cases.get() + 1);
        let (server, folder) = (&server, format!("case/{}", cases.get()));
        move || Box::new(server.depot(&folder)) as Box<dyn Depot>
    });
    Some(server)
}

/// Starts a server and runs all of the suite on it.
fn conforms(kind: ServerKind) {
    let Some(server) = conforming(kind) else { return };
    conformance::depot_in_byte_order(&|| Box::new(server.depot("order")) as Box<dyn Depot>);
}

#[test]
fn a_depot_on_seaweedfs_conforms() {
    // It lists one folder after the other.
    let _server = conforming(ServerKind::SeaweedFs);
}

#[test]
fn a_depot_on_moto_conforms() {
    conforms(ServerKind::Moto);
}

#[test]
fn a_depot_on_azurite_conforms() {
    conforms(ServerKind::Azurite);
}

/// Why the check of a new remote is needed: to a client, such a server looks like any other.
#[test]
fn rclone_ignores_conditions() {
    let Some(server) = Server::start(ServerKind::Rclone, "rclone_ignores_conditions") else {
        return;
    };
    let depot = server.depot("bad");
    for bytes in [b"1", b"2"] {
        let written = depot.put_new("a", bytes).unwrap();
        assert!(matches!(written, DepotWrite::Done(_)), "{written:?}");
    }
    let stale = DepotTag::new("\"stale\"");
    let written = depot.swap("a", &stale, b"3").unwrap();
    assert!(matches!(written, DepotWrite::Done(_)), "{written:?}");
    let DepotRead::Whole { bytes, .. } = depot.get("a", None).unwrap() else { panic!("absent") };
    assert_eq!(bytes, b"3");
}
