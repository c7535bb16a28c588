//! The log of a database, with a table in memory.

#[path = "../../../src/backend/framed_log/tests/fake_table.rs"]
mod fake_table;

use fake_table::FakeTable;
use forge_store::backend::database::{FrameRow, FrameRows, FrameTable, LockedFrames, LogHead};
use forge_store::backend::framed_log::FramedLog;
use forge_store::backend::{Error, LogPosition, WriteAheadLog};
use forge_testkit::conformance;

#[test]
fn a_log_in_a_table_conforms() {
    conformance::log(|| {
        let table = FakeTable::default();
        move || Box::new(FramedLog::new(Box::new(table.other()))) as Box<dyn WriteAheadLog>
    });
}
