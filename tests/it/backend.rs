//! The conformance suites, on every backend.

use forge_store::backend::memory::{MemoryIndex, MemoryLog};
use forge_store::backend::rocks::RocksIndex;
use forge_store::backend::{Index, Log};
use forge_testkit::conformance;

#[test]
fn memory_log_conforms() {
    conformance::log(|| {
        let log = MemoryLog::default();
        move || Box::new(log.clone()) as Box<dyn Log>
    });
}

#[test]
fn memory_index_conforms() {
    conformance::index(1_000, || {
        let index = MemoryIndex::default();
        move || Box::new(index.clone()) as Box<dyn Index>
    });
}

#[test]
fn rocks_index_conforms() {
    conformance::index(1_000, || {
        let folder = tempfile::tempdir().unwrap();
        move || Box::new(RocksIndex::new(folder.path().join("index"))) as Box<dyn Index>
    });
}
