//! Care of a store: the types that its maintenance returns and takes.
//!
//! Verbs that also work on a store that cannot be opened take its folder; the others are methods of
//! an open store or session.
//!
//! | To | call | gives |
//! |---|---|---|
//! | find damage | [`Store::verify`] | [`VerifyReport`] |
//! | mend damage | [`Store::repair`] | [`RepairReport`] |
//! | rebuild the derived tables of the index | [`Store::rebuild`] | [`RebuildCounts`] |
//! | copy a store that is in use | [`Store::backup`] | [`BackupReport`] |
//! | make a copied or changed store one's own | [`Store::adopt`] | [`AdoptReport`] |
//! | move a store's key to another machine | [`Store::export_key`], [`Store::import_key`] | the key as text |
//! | see whether the key is present | [`Store::key_state`] | [`KeyState`] |
//! | take old history away, with time to change one's mind | [`Session::prune`] | [`PruneReport`] |
//! | free the space of pruned history | [`Store::sweep`] | [`SweepReport`] |
//! | remove a secret that was stored, everywhere | [`Store::purge`] | [`PurgeReport`] |
//! | keep some disk space for the day when the disk is full | [`Store::keep_reserve`], [`Store::give_up_reserve`] | |
//! | keep the index current in the background | [`Store::maintainer`] | [`MaintenanceThread`] |
//! | do so once, after answering | [`Store::maintain`] with [`APPLY_BYTES`] | |
//! | let writers have the core, as a long command does | [`lower_priority`] | |
//! | make the index as small as possible | [`Store::compact`] | |
//! | see what waits in the spool | [`Store::spool_status`] | [`SpoolStatus`] |
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
