//! What forge does: commit, index, materialize, look up, keyframe. Knows the backend by its contracts only.

pub(crate) mod blob;
pub(crate) mod checkpoint;
pub(crate) mod commit;
pub(crate) mod compare;
pub(crate) mod cores;
pub(crate) mod fact;
pub(crate) mod head;
pub(crate) mod index;
pub(crate) mod keyframe;
pub(crate) mod lineage;
pub(crate) mod live;
pub(crate) mod lookup;
pub(crate) mod maintain;
pub(crate) mod materialize;
pub(crate) mod object;
pub(crate) mod opened;
pub(crate) mod refs;
pub(crate) mod retain;
pub(crate) mod revise;
pub(crate) mod rows;
pub(crate) mod spool;
pub(crate) mod state;
pub(crate) mod timeline;
