//! The interface between a store and a database: the traits to implement for another kind of
//! database, and the types that their methods use.
//!
//! A [`Database`] has the frames of the journal ([`FrameTable`]) and an index ([`Index`]). The
//! crate `forge-postgres` implements them.

pub use crate::backend::database::{
    Database, DatabaseConnector, DatabasePlace, FrameRow, FrameRows, FrameTable, LockedFrames,
    LogHead,
};
pub use crate::backend::{
    CALLS, Index, IndexWriter, LastRows, LogPosition, RecordHash, RowBatch, ScanDirection,
    ScanRequest, Snapshot, TableId, TableRow, check_tables,
};

/// Returns the name of a shard: one of several stores that share a name, for example `NAME/0-of-8`
/// to `NAME/7-of-8`.
#[must_use]
pub fn shard_name(name: &str, shard: u32, count: u32) -> String {
    format!("{name}/{shard}-of-{count}")
}

/// Returns the shard of a session, from 0 on. The hash of the name of the session chooses it.
#[must_use]
pub fn shard_of(session: &str, count: u32) -> u32 {
    let hash = blake3::hash(session.as_bytes());
    let first = *hash.as_bytes().first_chunk::<8>().expect("8 of 32 bytes");
    let shard = u64::from_le_bytes(first) % u64::from(count.max(1));
    u32::try_from(shard).expect("it is less than a count of 32 bits")
}
