//! Compares a file with what was imported from it before.

use super::import_file::{ImportFile, cannot_read, read_at};
use super::{READ_BYTES, TranscriptImporter, TranscriptIntake};
use crate::error::CommandError;
use forge_store::error::Error;
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{BLOCK_BYTES, SourceBookmark, SourceChange};
use std::path::Path;

/// The result of comparing a file with its imported part.
pub(super) enum FileComparison {
    /// The file begins with the imported part, and may continue after it.
    Grown,
    /// The file is a beginning of the imported part: nothing is new.
    Shorter,
    /// The file differs from the imported part, and is read from its beginning.
    Changed,
}

impl TranscriptImporter<'_> {
    /// Compares the file with its imported part. A live import compares only the last block, unless
    /// the file is shorter.
    pub(super) fn compare(
        &self,
        intake: &TranscriptIntake,
        known: &SourceBookmark,
        path: &Path,
    ) -> Result<FileComparison, CommandError> {
        let failed = |error| cannot_read(path, error);
        let ImportFile { file, bytes, .. } = &intake.opened;
        if *bytes < known.bytes && known.removed() > 0 {
            return self.compare_kept(intake, path);
        }
        let key = self.store.hash_key();
        let mut offset = 0;
        let end = known.bytes.min(*bytes);
        if self.options.live && *bytes >= known.bytes {
            offset = end.saturating_sub(1) - end.saturating_sub(1) % BLOCK_BYTES as u64;
        }
        while offset < end {
            let part = read_at(file, offset, READ_BYTES.min(end - offset)).map_err(failed)?;
            // If the file is shorter now, its last block is incomplete and has no hash: it is
            // compared with the stored bytes.
            let whole = if *bytes < known.bytes {
                part.len() - part.len() % BLOCK_BYTES
            } else {
                part.len()
            };
            let (blocks, rest) = part.split_at(whole);
            if known.compare(key, offset, blocks) != SourceChange::Kept {
                return Ok(FileComparison::Changed);
            }
            if let (false, Some(session)) = (rest.is_empty(), &intake.session) {
                let at = offset + whole as u64;
                let kept = session.source_bytes(&intake.source, at, rest.len() as u64);
                // Bytes that were pruned cannot be compared: the file is read again.
                if matches!(kept, Err(Error::TextRemoved { .. })) || kept? != rest {
                    return Ok(FileComparison::Changed);
                }
            }
            offset += part.len() as u64;
        }
        Ok(if *bytes < known.bytes { FileComparison::Shorter } else { FileComparison::Grown })
    }

    /// Compares a file that is shorter than its imported part, if secrets were removed from that
    /// part. The stored bytes then have other offsets than those in the file, so the file is
    /// redacted again and compared with them from the beginning.
    fn compare_kept(
        &self,
        intake: &TranscriptIntake,
        path: &Path,
    ) -> Result<FileComparison, CommandError> {
        let Some(session) = &intake.session else { return Ok(FileComparison::Changed) };
        let ImportFile { file, bytes, .. } = &intake.opened;
        let (mut offset, mut kept) = (0, 0);
        let mut buffer = Vec::new();
        while offset < *bytes {
            let part =
                read_at(file, offset, READ_BYTES).map_err(|error| cannot_read(path, error))?;
            offset += part.len() as u64;
            let ends = offset >= *bytes || part.is_empty();
            buffer.extend_from_slice(&part);
            let follows = if ends { PartEnding::End } else { PartEnding::More };
            let clean = self.store.redact_source(&buffer, TextForm::Json, follows);
            let same = session.source_bytes(&intake.source, kept, clean.bytes().len() as u64);
            if !same.is_ok_and(|same| same == clean.bytes()) {
                return Ok(FileComparison::Changed);
            }
            kept += clean.bytes().len() as u64;
            let taken = clean.source().len();
            buffer.drain(..taken);
            if ends {
                break;
            }
        }
        Ok(FileComparison::Shorter)
    }
}
