//! The messages that a compaction kept word for word.

use super::ContextCompaction;
use crate::error::CommandError;
use crate::text::{TextLength, TextReader};
use forge_agents::resolve_each;
use forge_store::error::Error;
use forge_store::model::{Kind, TextRef, Value};
use forge_store::store::Session;

/// The field of a compaction's checkpoint that lists them.
const KEPT: &str = "kept";

impl ContextCompaction {
    /// Returns the number of messages that were kept.
    #[must_use]
    pub fn kept_count(&self) -> usize {
        self.checkpoint.body.field(KEPT).and_then(Value::as_list).map_or(0, |list| list.len())
    }

    /// Returns the texts of the messages that were kept, joined by line breaks; `None` if none is
    /// known.
    pub fn kept_text(&self, session: &Session) -> Result<Option<String>, CommandError> {
        let Some(list) = self.checkpoint.body.field(KEPT).and_then(Value::as_list) else {
            return Ok(None);
        };
        let mut texts = Vec::new();
        let mut long = Vec::new();
        for one in list {
            if let Some(message) = one.field("message").and_then(Value::as_text) {
                texts.extend(message_text(session, message)?);
            }
            let Some(text) = one.field("text") else { continue };
            match TextRef::from_value(text) {
                Some(reference) => long.push(reference),
                None => texts.extend(text.as_text().map(str::to_owned)),
            }
        }
        texts.extend(whole_texts(session, &long)?);
        Ok((!texts.is_empty()).then(|| texts.join("\n")))
    }
}

/// Reads these texts, which are all in one line of the transcript, in full; only their beginnings
/// if the transcript was pruned.
fn whole_texts(session: &Session, texts: &[TextRef]) -> Result<Vec<String>, CommandError> {
    let Some(first) = texts.first() else { return Ok(Vec::new()) };
    let beginnings = || texts.iter().map(|text| text.preview.clone()).collect();
    let source = session.source_of(first, &forge_agents::resolve)?;
    let document = match session.text_bytes(source.as_deref(), first) {
        Err(Error::TextRemoved { .. }) => return Ok(beginnings()),
        bytes => bytes?,
    };
    let found = resolve_each(&document, texts.iter().map(|text| text.pointer.as_str()));
    let texts = found.into_iter().zip(texts);
    Ok(texts.map(|(whole, text)| whole.unwrap_or_else(|| text.preview.clone())).collect())
}

fn message_text(session: &Session, message: &str) -> Result<Option<String>, CommandError> {
    let versions = session.fact_versions(Kind::Message, message)?;
    let last = versions.last();
    let Some((known, text)) = last.and_then(|it| Some((it, it.fact.value.field("text")?))) else {
        return Ok(None);
    };
    let mut texts = TextReader::new(session, TextLength::Whole);
    let shown = texts.resolve(known.source.as_deref(), text.clone())?;
    Ok(shown.as_text().map(str::to_owned))
}
