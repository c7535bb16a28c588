//! Reads long texts from their sources.

use forge_store::error::Result;
use forge_store::model::TextRef;
use forge_store::store::Session;

/// Returns the whole text of a reference. For an imported text, the source has the line that
/// contains it.
///
/// # Errors
/// `ErrorKind::Corrupt` if the text is missing, and the errors of every read.
pub(super) fn read(session: &Session, source: Option<&str>, text: &TextRef) -> Result<String> {
    session.text(source, text, &forge_agents::resolve)
}

/// Reads like [`read`], for a checkpoint's body, which does not name its source.
///
/// # Errors
/// As [`read`].
pub(super) fn read_of_any(session: &Session, text: &TextRef) -> Result<String> {
    let source = session.source_of(text, &forge_agents::resolve)?;
    read(session, source.as_deref(), text)
}
