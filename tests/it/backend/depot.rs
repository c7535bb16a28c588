//! Runs the conformance suite on every depot, and races of processes on a depot in a folder.

use forge_store::backend::depot::{Depot, DepotRead, DepotWrite, FolderDepot, MemoryDepot};
use forge_testkit::conformance::{self, count_in_depot};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn memory_depot_conforms() {
    conformance::depot(|| {
        let depot = MemoryDepot::default();
        move || Box::new(depot.clone()) as Box<dyn Depot>
    });
    let depot = MemoryDepot::default();
    conformance::depot_in_byte_order(&|| Box::new(depot.clone()) as Box<dyn Depot>);
}

#[test]
fn folder_depot_conforms() {
    conformance::depot(|| {
        let folder = tempfile::tempdir().unwrap();
        move || Box::new(FolderDepot::open(folder.path()).unwrap()) as Box<dyn Depot>
    });
    let folder = tempfile::tempdir().unwrap();
    let open = || Box::new(FolderDepot::open(folder.path()).unwrap()) as Box<dyn Depot>;
    conformance::depot_in_byte_order(&open);
}

const RACE: &str = "FORGE_TEST_DEPOT_RACE";
const ROUNDS: usize = 10;
const PROCESSES: usize = 8;

/// Not a test: the next test starts it several times. It writes until it is done, and
/// prints the rounds that it won.
#[test]
#[ignore = "started by eight_processes_lose_no_write"]
fn writes_beside_other_processes() {
    let Ok(path) = std::env::var(RACE) else { return };
    let depot = FolderDepot::open(Path::new(&path)).unwrap();
    let process = std::process::id().to_string();
    for round in 0..ROUNDS {
        let written = depot.put_new(&format!("refs/{round}"), process.as_bytes()).unwrap();
        if matches!(written, DepotWrite::Done(_)) {
            writeln!(std::io::stdout(), "\nwon {round}").unwrap();
        }
    }
    count_in_depot(&depot, "counter", ROUNDS);
}

#[test]
fn eight_processes_lose_no_write() {
    let folder = tempfile::tempdir().unwrap();
    let depot = FolderDepot::open(folder.path()).unwrap();
    depot.put_new("counter", b"0").unwrap();
    let start = |_| {
        let mut program = Command::new(std::env::current_exe().unwrap());
        let test = "backend::depot::writes_beside_other_processes";
        program.args(["--exact", test, "--ignored", "--nocapture"]).env(RACE, folder.path());
        program.stdout(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(start).collect();
    let mut won = Vec::new();
    for child in children {
        let process = child.id().to_string();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        for round in text.lines().filter_map(|line| line.strip_prefix("won ")) {
            let name = format!("refs/{round}");
            let DepotRead::Whole { bytes, .. } = depot.get(&name, None).unwrap() else {
                panic!("{name} is absent")
            };
            assert_eq!(String::from_utf8(bytes).unwrap(), process, "{name}");
            won.push(round.parse::<usize>().unwrap());
        }
    }
    won.sort_unstable();
    assert_eq!(won, (0..ROUNDS).collect::<Vec<_>>());
    let DepotRead::Whole { bytes, .. } = depot.get("counter", None).unwrap() else {
        panic!("the counter is absent")
    };
    assert_eq!(bytes, (PROCESSES * ROUNDS).to_string().as_bytes());
}
