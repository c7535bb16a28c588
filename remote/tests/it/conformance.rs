//! Runs the conformance suite of depots on real servers.

use crate::server::{Server, ServerKind};
use forge_remote::{DEFAULT_LIMIT, ObjectDepot};
use forge_store::store::remote::{Depot, DepotWrite, check_depot};
use forge_testkit::conformance;
use std::cell::Cell;

/// Starts a server and runs the suite on it, with another folder of the bucket for each case.
fn conforming(kind: ServerKind) -> Option<Server> {
    let server = Server::start(kind, "object_depot_conforms")?;
    check_depot(&server.depot("check")).unwrap();
    let cases = Cell::new(0);
    conformance::depot(|| {
        cases.set(cases.get() + 1);
        let (server, folder) = (&server, format!("case/{}", cases.get()));
        move || Box::new(server.depot(&folder)) as Box<dyn Depot>
    });
    Some(server)
}

/// Starts a server and runs the suite on it, also the part about the order of lists.
fn conforms(kind: ServerKind) {
    let Some(server) = conforming(kind) else { return };
    conformance::depot_in_byte_order(&|| Box::new(server.depot("order")) as Box<dyn Depot>);
}

#[test]
fn a_depot_on_seaweedfs_conforms() {
    // SeaweedFS lists one folder after the other, so not in the order of bytes.
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

/// Runs the suite, without the part about the order of lists, on the storage that
/// `FORGE_TEST_REMOTE` names, with the credentials of the environment. It is for storages that no
/// test can start.
#[test]
#[ignore = "needs FORGE_TEST_REMOTE, the address of an empty folder of a real storage"]
fn a_given_depot_conforms() {
    let address = std::env::var("FORGE_TEST_REMOTE").expect("the address of an empty folder");
    let environment = std::env::vars().collect();
    let open = |folder: &str| {
        let address = format!("{address}/{folder}");
        ObjectDepot::open(&address, &environment, DEFAULT_LIMIT).unwrap()
    };
    check_depot(&open("check")).unwrap();
    let cases = Cell::new(0);
    conformance::depot(|| {
        cases.set(cases.get() + 1);
        let folder = format!("case/{}", cases.get());
        let open = &open;
        move || Box::new(open(&folder)) as Box<dyn Depot>
    });
}

#[test]
fn a_server_that_ignores_conditions_is_refused() {
    let Some(server) = Server::start(ServerKind::Rclone, "refused_server") else {
        return;
    };
    let depot = server.depot("bad");
    // It looks like any other server, but two writers both succeed, and one write is lost.
    let written = [b"1", b"2"].map(|bytes| depot.put_new("a", bytes).unwrap());
    assert!(written.iter().all(|written| matches!(written, DepotWrite::Done(_))), "{written:?}");
    let error = check_depot(&depot).unwrap_err();
    let expected = "the remote cannot create an object only if there is none: use another one";
    assert_eq!(error.to_string(), expected);
}
