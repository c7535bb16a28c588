//! Long texts, read where they stand.

use forge_store::error::{Error, ErrorKind, Result};
use forge_store::model::TextRef;
use forge_store::store::Session;

/// The whole text that a reference stands for. Of an imported one the source has the line it stood in.
///
/// # Errors
/// [`Error::Corrupt`] if it is not where it should be; as every read.
pub(super) fn read(session: &Session, source: Option<&str>, text: &TextRef) -> Result<String> {
    let bytes = session.text_bytes(source, text)?;
    match (text.place, source) {
        (Some(_), Some(source)) => forge_agents::resolve(&bytes, &text.pointer)
            .ok_or_else(|| Error::missing(format!("a text of the source '{source}'"))),
        _ => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// As [`read`], of a checkpoint's body: that does not say from which source it comes, but the text's hash does.
///
/// # Errors
/// As [`read`].
pub(super) fn read_of_any(session: &Session, text: &TextRef) -> Result<String> {
    if text.place.is_none() {
        return read(session, None, text);
    }
    for (source, _) in session.summary()?.sources {
        match read(session, Some(&source), text) {
            Ok(whole) if blake3::hash(whole.as_bytes()).as_bytes() == text.hash.as_bytes() => {
                return Ok(whole);
            }
            // It is another source's: there may be something else at its place, or nothing.
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::missing("a text of the checkpoint in any source"))
}
