//! What a push or a pull would do.

use super::{DepotRead, Remote, RemoteAccess, RewriteReason};
use crate::error::{Error, Result};
use crate::format::ExportMark;
use crate::format::remote::ref_name;
use crate::model::SessionHandle;
use crate::store::{Session, Store};
use std::io::Cursor;

/// What a push of a session would send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushPreview {
    /// How many operations are not on the remote yet.
    pub operations: u64,
    /// The size of the pack in bytes, before it is encrypted and combined with earlier ones. If the
    /// session would be rewritten, the pack has the whole session.
    pub bytes: u64,
    /// Why the session would be rewritten, if it would.
    pub rewrite: Option<RewriteReason>,
    /// The number and the kinds of the secrets in the new operations, in words. With any, a push
    /// fails unless the remote allows secrets ([`Remote::allowing_secrets`]).
    pub secrets: Option<String>,
}

/// What a pull of a session would bring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullPreview {
    /// The version of the session's ref on the remote.
    pub version: u64,
    /// The maximum number of new operations. It also counts operations that are here in part, and
    /// operations that are here but share a pack with new ones.
    pub operations: u64,
    /// The size of the packs to be read, in bytes.
    pub bytes: u64,
}

impl Store {
    /// Returns what a push of a session would send, as far as this store knows: no request is made.
    ///
    /// # Errors
    /// [`Error::NotGranted`] if this is the grant of another session; if the store cannot be read
    /// or is damaged.
    pub fn preview_push(&self, access: &RemoteAccess, session: &Session) -> Result<PushPreview> {
        let shared = self.shared_part(access, session)?;
        let work = self.unpushed(access, session)?;
        if shared.is_some() && work.operations == 0 && work.rewrite.is_none() {
            return Ok(PushPreview::default());
        }
        let shared = shared.filter(|shared| shared.unshared.is_none());
        let end = shared.map_or_else(ExportMark::default, |shared| shared.end);
        let bytes = self.exported(session, &end)?.1;
        let sent = match work.rewrite {
            Some(_) => self.exported(session, &ExportMark::default())?.1.len(),
            None => bytes.len(),
        };
        Ok(PushPreview {
            operations: work.operations,
            bytes: sent as u64,
            rewrite: work.rewrite,
            secrets: self
                .secrets_in_bundle(
                    &mut Cursor::new(bytes),
                    self.engine.options.redaction.as_deref(),
                    None,
                )?
                .redacted,
        })
    }

    /// Returns what a pull of a session would bring. No pack is read.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the session is not on the remote; [`Error::RemoteHistory`] if the
    /// remote lacks what was seen of it, or has another history; [`Error::Depot`] if its ref is
    /// damaged; [`Error::NotGranted`] if the remote was opened with the grant of another session;
    /// any error of the store or the depot.
    pub fn preview_pull(&self, remote: &Remote, handle: &SessionHandle) -> Result<PullPreview> {
        let known = remote.last_ref(self, handle)?;
        let tag = known.as_ref().map(|known| &known.read.tag);
        let seen = known.as_ref().map_or(0, |known| known.read.opened.content.version);
        let read = match remote.depot.get(&ref_name(handle), tag)? {
            DepotRead::Whole { bytes, tag } => remote.opened(handle, bytes, tag)?,
            DepotRead::Unchanged => {
                if let Some(known) = &known {
                    remote.check_history(self, handle, None, &known.read)?;
                }
                return Ok(PullPreview { version: seen, ..PullPreview::default() });
            }
            DepotRead::Absent => {
                remote.check_absent(self, handle, known.as_ref())?;
                return Err(Error::not_found("session on the remote", handle.to_string()));
            }
        };
        remote.check_history(self, handle, known.as_ref(), &read)?;
        let new = read.opened.content.packs.iter().filter(|pack| pack.last > seen);
        let (operations, bytes) = new.fold((0, 0), |(operations, bytes), pack| {
            (operations + pack.operations, bytes + pack.bytes)
        });
        Ok(PullPreview { version: read.opened.content.version, operations, bytes })
    }
}
