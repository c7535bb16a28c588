//! Every byte forge keeps, apart from the frames of the journal (`backend::journal`) and RocksDB's own files.
//!
//! `docs/format.md` is the specification; this room is its implementation and says nothing twice. Pure: bytes in,
//! bytes out. Whatever is decoded was written by forge or is damaged, so decoding is strict: an unknown field, a
//! missing one, a byte too many are errors.
#![warn(clippy::indexing_slicing)]

mod bundle;
mod chunk;
mod codec;
mod delta;
mod entry;
mod event;
mod header;
pub mod key;
mod keyfile;
mod marker;
mod mend;
mod object;
mod packed;
mod page;
mod record;
mod refs;
mod row;
mod spooled;
mod texts;

pub use bundle::{
    BUNDLE_HEADER_BYTES, BUNDLE_VERSION, Begun, BundleChain, BundleContents, BundleEnd,
    BundleSession, ITEM_CHECK_BYTES, ITEM_HEADER_BYTES, ItemKind, bundle_header, item_header,
};
pub use chunk::{CHUNK_MAX_BYTES, CHUNK_MIN_BYTES, Chunk, ChunkEntry, is_boundary};
pub use codec::DecodeError;
pub(crate) use codec::{pack as pack_derived, unpack as unpack_bytes};
pub use delta::{ChangeRange, Delta, DeltaChange, Side, SideRange};
pub use entry::{
    EntryBytes, added_at, decode_entry, decode_key, encode_entry, encode_key, encode_value,
    entity_hash, entry_hash, has_value, purge_entry, reads_as, rekey_entry,
};
pub use event::{
    BranchEvent, CheckpointEvent, Event, EventError, EventLine, OfBranch, Put, Remove,
    SessionEvent, TagEvent, Target,
};
pub use header::{Header, Parent, Reset};
pub use keyfile::KeyFile;
pub use marker::{FORMAT_VERSION, Marker, MarkerError};
pub(crate) use marker::{hex, unhex};
pub use mend::mend;
pub use object::{
    Effort, MAX_OBJECT_BYTES, ObjectKind, compress_sealed, content_length, is_whole, open,
    open_with_prefix, seal, seal_raw, seal_with_prefix, sealed_id, sealed_kind, stands_alone,
};
pub use page::Page;
pub use record::{Body, Bytes, DeltaPart, Record, RecordChange};
pub use refs::{
    BookmarkRef, BranchChange, BranchRefs, DroppedText, Gone, Head, Refs, SessionRefs, Sessions,
};
pub use row::{
    AheadRow, BookmarkRow, CheckpointRow, CleanedRow, Effect, FactRow, FoldRow, KeyframeChunk,
    KeyframeRow, OperationRow, RefsRow, RevisionRow, SegmentRow, SequenceRow, TotalsRow,
    rewrite_row,
};
pub use spooled::{Spooled, SpooledCheckpoint, SpooledNote, SpooledPage};
pub use texts::{rewrite_texts, texts};
