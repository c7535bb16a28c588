//! Reads long texts, which are stored outside of their entities.

use forge_store::error::Result;
use forge_store::model::TextRef;
use forge_store::store::Session;

/// Returns the whole text of a reference. For an imported text, `source` names the source whose
/// line contains it.
///
/// # Errors
/// `ErrorKind::Corrupt` if the text is missing, and the errors of every read.
pub(super) fn read(session: &Session, source: Option<&str>, text: &TextRef) -> Result<String> {
    session.text(source, text, &forge_agents::resolve)
}

/// Returns the whole text of a reference in the body of a checkpoint. The body does not name the
/// source, so this looks for it.
///
/// # Errors
/// As [`read`].
pub(super) fn read_of_any(session: &Session, text: &TextRef) -> Result<String> {
    let source = session.source_of(text, &forge_agents::resolve)?;
    read(session, source.as_deref(), text)
}
