//! Bundles: sessions as one file. Records and objects are copied unchanged, so ids and hashes stay
//! the same.
//!
//! * `replay`: a session's records, reconstructed from its operations.
//! * `folded_revision`: folded revisions as they were before.
//! * `export_mark`: up to where a session was exported, and what was written since.
//! * `export`: writes records and objects to a file.
//! * `verify`: verifies a whole file before anything is imported; `blob_parts`: reads its blobs.
//! * `secret_counter`: counts the secrets in a file that this store redacts.
//! * `reapply`: writes operations that others do not have again, after those that others wrote.
//! * `continuity`: whether the records of a file continue a session as it is here.
//! * `shared_history`: whether two sessions with one id agree in what both have; `purged_copy`:
//!   whether they differ only by a purge.
//! * `import`: appends what the journal does not contain yet; `unfinished`: marks begun imports.

mod blob_parts;
mod continuity;
mod export;
mod export_mark;
mod folded_revision;
mod import;
mod purged_copy;
pub(in crate::store) mod reapply;
mod replay;
mod secret_counter;
pub(in crate::store) mod shared_history;
mod unfinished;
mod verify;

pub use crate::format::ExportMark;
pub(in crate::store) use export::with_errors_of;
pub use export::{BundleExportReport, BundleRange};
pub use import::BundleImportReport;
pub(in crate::store) use import::PackTarget;
pub use reapply::{JoinedWork, SplitBranch, SplitReason};

use crate::error::{Error, Result};
use crate::format::{
    BUNDLE_HEADER_BYTES, BundleChain, BundleItemKind, ITEM_CHECK_BYTES, ITEM_HEADER_BYTES,
    item_header,
};
use crate::redact::{HashedSecrets, Redactor};
use crate::store::Store;
use secret_counter::SecretCounter;
use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom};
use verify::verify_bundle;

/// A record of at least this size gets no further changes. A delta of more than half of it becomes
/// an object, which the record names.
const MAX_RECORD_BYTES: usize = 512 << 10;

/// The source of a bundle. It is read twice, so it must be seekable.
pub trait BundleSource: Read + Seek {}

impl<T: Read + Seek> BundleSource for T {}

/// The secrets that were found in a bundle.
#[derive(Default)]
pub(in crate::store) struct BundleSecrets {
    /// How many secrets the redactor found, and their kinds, as text.
    pub(in crate::store) redacted: Option<String>,
    /// The secrets that were found by their hashes.
    pub(in crate::store) purged: BTreeSet<String>,
}

impl Store {
    /// Returns the secrets that this redactor or these hashes find in a bundle. The bundle must be
    /// an export of this store. It is verified as in an import.
    pub(in crate::store) fn secrets_in_bundle(
        &self,
        source: &mut dyn BundleSource,
        redactor: Option<&Redactor>,
        hashes: Option<&HashedSecrets>,
    ) -> Result<BundleSecrets> {
        if redactor.is_none() && hashes.is_none() {
            return Ok(BundleSecrets::default());
        }
        let view = self.engine.follower.written_view()?;
        let counter = SecretCounter::new(redactor).seeking(hashes);
        let found = verify_bundle(source, counter, self, (&view, None))?.1;
        Ok(BundleSecrets { redacted: found.summary(), purged: found.into_purged() })
    }
}

/// Reads the items of a bundle, and checks each with the checksum that chains it to all items
/// before it.
struct BundleReader<'a> {
    source: &'a mut dyn BundleSource,
    chain: BundleChain,
    /// The offset of the next item.
    at: u64,
}

/// An item whose checksum is right.
struct BundleItem {
    kind: BundleItemKind,
    content: Vec<u8>,
    /// The offset of the content.
    at: u64,
}

fn unreadable(error: &io::Error, at: u64) -> Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return Error::invalid(format!(
            "the bundle is cut off at byte {at}: nothing was imported. Get the whole file"
        ));
    }
    Error::invalid(format!("the bundle cannot be read at byte {at}: {error}"))
}

fn damaged(at: u64, reason: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the bundle is damaged at byte {at}: {reason}"))
}

impl<'a> BundleReader<'a> {
    fn begin(source: &'a mut dyn BundleSource) -> Result<Self> {
        let mut header = [0; BUNDLE_HEADER_BYTES];
        source
            .seek(SeekFrom::Start(0))
            .and_then(|_| source.read_exact(&mut header))
            .map_err(|error| unreadable(&error, 0))?;
        let chain =
            BundleChain::begin(&header).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(Self { source, chain, at: BUNDLE_HEADER_BYTES as u64 })
    }

    /// Reads the next item. The end of a bundle is an item, too.
    fn next(&mut self) -> Result<BundleItem> {
        let at = self.at;
        let cut = |error: io::Error| unreadable(&error, at);
        let mut header = [0; ITEM_HEADER_BYTES];
        self.source.read_exact(&mut header).map_err(cut)?;
        let (kind, length) = item_header(header).map_err(|error| damaged(at, error))?;
        // Do not allocate by the stated length: read only the bytes that exist.
        let mut content = Vec::new();
        Read::take(&mut *self.source, length as u64).read_to_end(&mut content).map_err(cut)?;
        let mut check = [0; ITEM_CHECK_BYTES];
        self.source.read_exact(&mut check).map_err(cut)?;
        if content.len() != length || self.chain.next(header[0], &content) != check {
            return Err(damaged(at, "its checksum differs"));
        }
        self.at += (ITEM_HEADER_BYTES + length + ITEM_CHECK_BYTES) as u64;
        Ok(BundleItem { kind, content, at: at + ITEM_HEADER_BYTES as u64 })
    }

    /// Checks that nothing follows the end.
    fn finish(&mut self) -> Result<()> {
        let mut more = [0; 1];
        match self.source.read(&mut more).map_err(|error| unreadable(&error, self.at))? {
            0 => Ok(()),
            _ => Err(damaged(self.at, "bytes after its end")),
        }
    }

    /// Reads the bytes of an earlier item again.
    fn read_again(&mut self, at: u64, length: usize) -> Result<Vec<u8>> {
        let mut content = vec![0; length];
        self.source
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.source.read_exact(&mut content))
            .and_then(|()| self.source.seek(SeekFrom::Start(self.at)))
            .map_err(|error| unreadable(&error, at))?;
        Ok(content)
    }
}
