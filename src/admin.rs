//! Maintenance of a store: the functions for it, and the types that they take and return.
//!
//! Functions that also work on a store that cannot be opened take its folder. The others are
//! methods of an open store or session.
//!
//! | To | call | gives |
//! |---|---|---|
//! | find damage | [`Store::verify`] | [`VerifyReport`] |
//! | save the undamaged data into a new store | [`Store::repair`] | [`RepairReport`] |
//! | rebuild the derived tables and the keyframes | [`Store::rebuild`] | [`RebuildCounts`] |
//! | copy a store that is in use | [`Store::backup`] | [`BackupReport`] |
//! | accept a copied or changed store | [`Store::adopt`] | [`AdoptReport`] |
//! | move a store's key to another machine | [`Store::export_key`], [`Store::import_key`] | the key as text |
//! | see whether the key is present | [`Store::key_state`] | [`KeyState`] |
//! | hide old history, which `undo` brings back | [`Session::prune`] | [`PruneReport`] |
//! | permanently remove pruned history | [`Store::sweep`] | [`SweepReport`] |
//! | replace a stored secret everywhere | [`Store::purge`] | [`PurgeReport`] |
//! | reserve disk space for pruning on a full disk | [`Store::keep_reserve`], [`Store::give_up_reserve`] | |
//! | keep the index current in the background | [`Store::maintainer`] | [`MaintenanceThread`] |
//! | update the index once, after answering | [`Store::maintain`] with [`APPLY_BYTES`] | |
//! | lower the priority of a thread, so that writers are not delayed | [`lower_priority`] | |
//! | make the index as small as possible | [`Store::compact`] | |
//! | count the writes in the spool | [`Store::spool_status`] | [`SpoolStatus`] |
//!
//! [`Store::verify`]: crate::store::Store::verify
//! [`Store::repair`]: crate::store::Store::repair
//! [`Store::rebuild`]: crate::store::Store::rebuild
//! [`Store::backup`]: crate::store::Store::backup
//! [`Store::adopt`]: crate::store::Store::adopt
//! [`Store::export_key`]: crate::store::Store::export_key
//! [`Store::import_key`]: crate::store::Store::import_key
//! [`Store::key_state`]: crate::store::Store::key_state
//! [`Session::prune`]: crate::store::Session::prune
//! [`Store::sweep`]: crate::store::Store::sweep
//! [`Store::purge`]: crate::store::Store::purge
//! [`Store::keep_reserve`]: crate::store::Store::keep_reserve
//! [`Store::give_up_reserve`]: crate::store::Store::give_up_reserve
//! [`Store::maintainer`]: crate::store::Store::maintainer
//! [`Store::maintain`]: crate::store::Store::maintain
//! [`Store::compact`]: crate::store::Store::compact
//! [`Store::spool_status`]: crate::store::Store::spool_status

pub use crate::engine::parallel::lower_priority;
pub use crate::redact::SecretDetector;
pub use crate::store::{
    APPLY_BYTES, AdoptReport, BackupReport, CheckpointVerdict, FileScanReport, FoldSummary,
    KeyState, MaintenanceThread, PruneReport, PurgeFinding, PurgeKind, PurgeReport, RebuildCounts,
    RepairReport, SealStatus, SpoolStatus, SweepReport, UNDO_MICROS, VerifyCounts, VerifyDepth,
    VerifyFinding, VerifyOutcome, VerifyReport,
};
