//! Unfinished imports of bundles. Until an import ends, a file in the store's folder, the mark,
//! says what is imported.
//!
//! An import of events puts its mark into the session. Here that would need another operation, but
//! the records of a bundle keep their operations.

use crate::backend::{self, files};
use crate::engine::refs::{present_session, session as session_refs};
use crate::error::Result;
use crate::format::BundleContents;
use crate::model::SessionId;
use crate::store::Store;
use crate::store::event_stream::UnfinishedImport;
use crate::store::folder::{BUNDLE_MARKS_FOLDER, REMOTES_FOLDER};
use crate::store::redaction_gate::RedactionCounts;
use std::fs;
use std::path::PathBuf;

/// The extension of the file of a mark that is being written.
const NEW: &str = "new";
/// A larger file in the folder is not a mark.
const MAX_MARK_BYTES: u64 = 16 << 20;

/// The mark of one bundle: its first line is the name of the file, each further line the id of a
/// session.
pub(super) struct BundleMark(Option<PathBuf>);

impl BundleMark {
    /// Writes the mark, durably. `file` is the name of the bundle, if it is a file.
    pub(super) fn write(store: &Store, contents: &BundleContents, file: &str) -> Result<Self> {
        let Some(path) = store.path() else { return Ok(Self(None)) };
        let folder = path.join(BUNDLE_MARKS_FOLDER);
        files::create_private_folder(&folder).map_err(backend::Error::io("create", &folder))?;
        // A file name may contain a secret, and an encrypted store keeps nothing readable.
        let mut name = if store.is_encrypted() { String::new() } else { file.to_owned() };
        store.gate().text(&mut name, &mut RedactionCounts::new());
        let name = if name.contains('\n') { "" } else { &name };
        let ids = contents.sessions.iter().map(|session| format!("{}\n", session.info.id));
        let text = format!("{name}\n{}", ids.collect::<String>());
        let mark = folder.join(blake3::hash(&contents.encode()).to_hex().as_str());
        files::replace(&mark, &mark.with_extension(NEW), text.as_bytes())?;
        files::sync_folder(&folder)?;
        files::sync_folder(path)?;
        Ok(Self(Some(mark)))
    }

    /// Removes the mark, after the import has ended.
    pub(super) fn remove(self) -> Result<()> {
        if let Some(mark) = &self.0 {
            files::remove(mark)?;
            if let Some(folder) = mark.parent() {
                files::sync_folder(folder)?;
            }
        }
        Ok(())
    }
}

impl Store {
    /// Returns the unfinished imports of bundles and unfinished pulls: one for each session of the
    /// bundle that is in the store.
    pub(in crate::store) fn unfinished_bundles(&self) -> Result<Vec<UnfinishedImport>> {
        let marks = self.bundle_marks()?;
        if marks.is_empty() {
            return Ok(Vec::new());
        }
        let has_pulled = self.path().is_some_and(|path| path.join(REMOTES_FOLDER).exists());
        let (refs, _) = self.engine.follower.refs()?;
        let mut found = Vec::new();
        for (_, text) in marks {
            let mut lines = text.lines();
            let source = match lines.next().unwrap_or_default() {
                "" if has_pulled => "pull:".to_owned(),
                file => format!("bundle:{file}"),
            };
            for id in lines.filter_map(|id| id.parse::<SessionId>().ok()) {
                if let Some(number) = present_session(&refs, id)? {
                    found.push(UnfinishedImport {
                        session: session_refs(&refs, number)?.info.name.clone(),
                        source: source.clone(),
                    });
                }
            }
        }
        found.sort_by(|a, b| (&a.session, &a.source).cmp(&(&b.session, &b.source)));
        // Each pack of a pull has a mark.
        found.dedup();
        Ok(found)
    }

    /// Removes the marks of the packs of a session that was pulled as a whole. An interrupted pull
    /// may have left marks of packs that the remote does not have any more.
    pub(in crate::store) fn remove_pull_marks(&self, session: SessionId) -> Result<()> {
        let text_of_pull = format!("\n{session}\n");
        for (mark, text) in self.bundle_marks()? {
            if text == text_of_pull {
                BundleMark(Some(mark)).remove()?;
            }
        }
        Ok(())
    }

    /// Returns the paths and the texts of all marks.
    fn bundle_marks(&self) -> Result<Vec<(PathBuf, String)>> {
        let Some(path) = self.path() else { return Ok(Vec::new()) };
        let entries = files::entries_if_there(&path.join(BUNDLE_MARKS_FOLDER))?;
        let is_mark = |about: fs::Metadata| about.is_file() && about.len() <= MAX_MARK_BYTES;
        let marks = entries.into_iter().filter_map(|entry| {
            let path = entry.path();
            let is_new = path.extension().is_some();
            if is_new || !entry.metadata().is_ok_and(is_mark) {
                return None;
            }
            // An import may end and remove its mark meanwhile.
            let text = fs::read_to_string(&path).ok()?;
            Some((path, text))
        });
        Ok(marks.collect())
    }
}
