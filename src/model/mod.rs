//! The data model: plain types, and functions on them that use no files, clocks or threads and do
//! not know the storage format.

mod branch;
mod checkpoint;
pub mod claim;
mod entity;
mod fact;
mod field_map;
mod id;
mod kind;
mod lone_surrogate;
mod operation;
mod retention;
pub mod rule;
mod secret_hash;
mod session;
pub mod text;
pub mod time_grammar;
mod timestamp;
mod value;

pub use branch::{BranchMetadata, BranchName, BranchNumber, BranchStatus};
pub use checkpoint::{AutoTrigger, Checkpoint, CheckpointTrigger};
pub use entity::{ClaimEntry, EntryChange, Key};
pub use fact::{Fact, FactOrigin, TextRef};
pub use field_map::FieldMap;
pub use id::{
    CheckpointId, CloneId, NoticeSalt, ObjectId, OperationId, PackHash, PackId, ParseIdError,
    RefLink, RefNonce, RemoteId, RevisionId, SecretDigest, SessionHandle, SessionId, StateDigest,
};
pub(crate) use id::{hex, unhex};
pub use kind::{Kind, UnknownKind};
#[doc(hidden)]
pub use lone_surrogate::replace_lone_surrogates;
pub use operation::{Operation, OperationAuthor};
pub use retention::{RetentionPolicy, RetentionReason, is_significant};
pub use secret_hash::{MAX_HASHED_BYTES, MAX_PURGED_BYTES, MIN_HASHED_BYTES, SecretHash};
pub use session::{SessionKind, SessionMetadata, SessionNumber};
pub use timestamp::Timestamp;
pub use value::{BYTES_FIELD, Value};
