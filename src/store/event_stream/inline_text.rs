//! Inlining long texts: a stream is self-contained, so it has no references into its sources.

use super::export::EventStreamWriter;
use crate::error::{Error, Result};
use crate::model::{TextRef, Value};

impl EventStreamWriter<'_> {
    /// Returns a checkpoint's body with its long texts inlined. The body does not name the source
    /// of a text, so it is found by the text's hash. If the text is missing, its preview is used.
    pub(super) fn expand_body(&self, body: &Value) -> Result<Value> {
        Ok(match body {
            Value::Map(fields) => match TextRef::from_value(body) {
                Some(text) => Value::Text(self.text_by_hash(&text)?),
                None => Value::Map(
                    fields
                        .iter()
                        .map(|(name, value)| Ok((name.clone(), self.expand_body(value)?)))
                        .collect::<Result<_>>()?,
                ),
            },
            Value::List(items) => {
                Value::List(items.iter().map(|item| self.expand_body(item)).collect::<Result<_>>()?)
            }
            other => other.clone(),
        })
    }

    fn text_by_hash(&self, text: &TextRef) -> Result<String> {
        let resolve = self.resolve.unwrap_or(&|_, _| None);
        let source = self.session.source_of(text, resolve)?;
        if text.place.is_some() && source.is_none() {
            return Ok(text.preview.clone());
        }
        let whole = self.session.text(source.as_deref(), text, resolve);
        Ok(whole.unwrap_or_else(|_| text.preview.clone()))
    }

    /// Returns a fact's value with its long texts inlined. `source` is the source that the texts
    /// refer to. If its bytes were pruned or dropped, the preview of a text is used.
    pub(super) fn expanded(&self, value: Value, source: Option<&str>) -> Result<Value> {
        if let Some(text) = TextRef::from_value(&value) {
            let resolve = self.resolve.unwrap_or(&|_, _| None);
            return match self.session.text(source, &text, resolve) {
                Err(Error::TextRemoved { .. }) => Ok(Value::Text(text.preview)),
                whole => whole.map(Value::Text),
            };
        }
        Ok(match value {
            Value::Map(fields) => Value::Map(
                fields
                    .into_iter()
                    .map(|(name, value)| Ok((name, self.expanded(value, source)?)))
                    .collect::<Result<_>>()?,
            ),
            Value::List(items) => Value::List(
                items.into_iter().map(|item| self.expanded(item, source)).collect::<Result<_>>()?,
            ),
            other => other,
        })
    }
}
