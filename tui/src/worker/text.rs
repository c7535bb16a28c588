//! Long texts, read where they stand.

use forge_store::error::Result;
use forge_store::model::TextRef;
use forge_store::store::Session;

/// The whole text that a reference stands for. Of an imported one the source has the line it stood in.
///
/// # Errors
/// Corrupt if it is not where it should be; as every read.
pub(super) fn read(session: &Session, source: Option<&str>, text: &TextRef) -> Result<String> {
    session.text(source, text, &forge_agents::resolve)
}

/// As [`read`], of a checkpoint's body, which does not say from which source it comes.
///
/// # Errors
/// As [`read`].
pub(super) fn read_of_any(session: &Session, text: &TextRef) -> Result<String> {
    let source = session.source_of(text, &forge_agents::resolve)?;
    read(session, source.as_deref(), text)
}
