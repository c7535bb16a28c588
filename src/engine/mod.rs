//! The engine: commit, index, materialize, look up, make keyframes. Uses the backend only through
//! its traits.

pub(crate) mod blob;
pub(crate) mod checkpoint;
pub(crate) mod commit;
pub(crate) mod compare;
pub(crate) mod derive;
pub(crate) mod fact;
pub(crate) mod gap_check;
pub(crate) mod head_cache;
pub(crate) mod index;
pub(crate) mod journal_follower;
pub(crate) mod keyframe;
pub(crate) mod lineage;
pub(crate) mod lookup;
pub(crate) mod maintain;
pub(crate) mod materialize;
pub(crate) mod merge_base;
pub(crate) mod object;
pub(crate) mod object_cache;
pub(crate) mod parallel;
pub(crate) mod prune;
pub(crate) mod purge;
pub(crate) mod rebuild;
pub(crate) mod refs;
pub(crate) mod revision_plan;
pub(crate) mod row_overlay;
pub(crate) mod row_totals;
pub(crate) mod salvage;
pub(crate) mod scanned_object;
mod sharded_map;
pub(crate) mod spool;
pub(crate) mod state;
pub(crate) mod timeline;
pub(crate) mod verify;
