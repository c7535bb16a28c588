//! The engine: commits writes, keeps the index, computes states, finds rows, makes keyframes, and
//! appends spooled writes to the journal. It uses the backend through traits; only `salvage` works
//! on data from the files of one backend.

pub(crate) mod blob;
pub(crate) mod checkpoint;
pub(crate) mod commit;
pub(crate) mod compare;
#[cfg(test)]
mod counting_snapshot;
pub(crate) mod delta_parts;
pub(crate) mod derive;
pub(crate) mod encoded_change;
pub(crate) mod fact;
pub(crate) mod gap_check;
pub(crate) mod head_cache;
pub(crate) mod index;
pub(crate) mod journal_follower;
mod journal_tail;
pub(crate) mod keyframe;
pub(crate) mod lineage;
pub(crate) mod lookup;
pub(crate) mod maintain;
pub(crate) mod materialize;
pub(crate) mod merge_base;
pub(crate) mod object;
pub(crate) mod object_cache;
pub(crate) mod parallel;
pub(crate) mod plan_context;
pub(crate) mod planned_revision;
pub(crate) mod prune;
mod published_generation;
pub(crate) mod purge;
pub(crate) mod random;
pub(crate) mod read_snapshot;
pub(crate) mod rebuild;
pub(crate) mod refs;
pub(crate) mod request;
pub(crate) mod revision_plan;
pub(crate) mod row_overlay;
pub(crate) mod row_totals;
pub(crate) mod salvage;
pub(crate) mod scanned_object;
pub(crate) mod session_rows;
pub(crate) mod session_table;
mod sharded_map;
pub(crate) mod spool;
mod spool_drain;
pub(crate) mod state;
pub(crate) mod stored_claim;
pub(crate) mod table_rows;
pub(crate) mod timeline;
pub(crate) mod verify;
