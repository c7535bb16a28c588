//! Plain data: what forge remembers. Knows nothing of files, clocks, threads or bytes on disk.

mod branch;
mod checkpoint;
pub mod claim;
mod entity;
mod fact;
mod id;
mod kind;
mod operation;
mod retention;
pub mod rule;
mod session;
pub mod text;
mod time;
mod value;
pub mod when;

pub use branch::{BranchMetadata, BranchName, BranchNumber, BranchStatus};
pub use checkpoint::{AutoTrigger, Checkpoint, Trigger};
pub use entity::{Change, Entry, Key};
pub use fact::{Fact, Origin, TextRef};
pub use id::{CheckpointId, Digest, ObjectId, OperationId, ParseIdError, RevisionId, SessionId};
pub use kind::{Kind, UnknownKind};
pub use operation::{Author, Operation};
pub use retention::{Reason, Retention, is_significant};
pub use session::{SessionInfo, SessionKind, SessionNumber};
pub use time::Timestamp;
pub use value::{Map, Value};
