//! The encoding of everything that forge stores, except for the frames of the journal
//! (`backend::frame`) and RocksDB's own files.
//!
//! `docs/format.md` is the specification; this module implements it without repeating it. No I/O:
//! bytes in, bytes out. Input that forge would not have written is damaged, so decoding is strict:
//! unknown fields, missing fields and trailing bytes are errors.
#![warn(clippy::indexing_slicing)]

mod bundle;
mod chunk;
mod codec;
mod delta;
mod entry;
mod event;
mod fact_page;
mod format_marker;
mod header;
pub mod key;
mod keyfile;
mod object;
mod packed_value;
mod record;
mod record_row;
mod refs;
pub mod remote;
mod repair_bit;
mod row;
mod spool_entry;
mod text_ranges;

pub use bundle::{
    BUNDLE_HEADER_BYTES, BUNDLE_VERSION, BegunOperation, BundleChain, BundleContents, BundleEnd,
    BundleItemKind, BundleSession, ExportMark, ITEM_CHECK_BYTES, ITEM_HEADER_BYTES, bundle_header,
    item_header,
};
pub use chunk::{CHUNK_MAX_BYTES, CHUNK_MIN_BYTES, ChunkEntry, StateChunk, is_boundary};
pub use codec::DecodeError;
pub(crate) use codec::{pack as pack_derived, unpack as unpack_bytes};
pub use delta::{Delta, DeltaChange, DeltaChangeRange, DeltaSide, DeltaSideRange};
pub use entry::{
    EntryBytes, added_at, decode_entry, decode_key, encode_entry, encode_key, encode_value,
    entity_hash, entry_fields, entry_hash, has_same_content, has_value, purge_entry, rekey_entry,
};
pub use event::{
    BranchEvent, BranchReference, CheckpointEvent, EventError, EventLine, PutEvent, RemoveEvent,
    RevisionSelector, SessionEvent, StreamEvent, TagEvent,
};
pub use fact_page::FactPage;
pub(crate) use fact_page::FactPageOutline;
pub use format_marker::{FORMAT_VERSION, FormatMarker, MarkerError};
pub use header::{ParentRevision, ResetSource, RevisionHeader};
pub use keyfile::KeyFile;
pub use object::{
    CompressionEffort, MAX_OBJECT_BYTES, ObjectKind, compress_object, content_id, content_length,
    decode_object, decode_object_with_prefix, encode_object, encode_object_raw,
    encode_object_with_prefix, is_self_contained, is_whole, object_id, object_kind,
};
pub use record::{DeltaPart, Record, RecordBytes, RecordChange, RevisionBody};
pub use record_row::RecordRow;
pub use refs::{
    BookmarkRef, BranchChange, BranchHead, BranchRefs, DroppedText, RecentSession, SessionRefs,
    SessionRemoval, StoreHead, decode_session, encode_session, session_hash,
};
pub use remote::RemoteFormatError;
pub use repair_bit::repair_bit;
pub use row::{
    BookmarkRow, Checkout, CheckpointRow, FactRow, FoldRow, HeadRow, KeyframeChunk, KeyframeRow,
    OperationEffect, OperationRow, PrewrittenRow, RedactionSummary, RevisionRow, SegmentRow,
    SequenceRow, TotalsRow, rewrite_row,
};
pub use spool_entry::{SpoolEntry, SpooledCheckpoint, SpooledNote, SpooledPage};
pub use text_ranges::{rewrite_texts, text_ranges};
