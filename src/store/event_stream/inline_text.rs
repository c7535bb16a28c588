//! Inlining long texts: a stream is self-contained, so it has no references into its sources.

use super::export::EventStreamWriter;
use crate::error::{Error, Result};
use crate::model::{TextRef, Value};

impl EventStreamWriter<'_> {
    /// Returns a checkpoint's body with its long texts inlined. The body does not name the source
    /// of a text, so it is found by the text's hash. If the text is missing, its preview is used.
    pub(super) fn expand_body(&self, body: Value) -> Result<Value> {
        inlined(body, &|text| {
            let source = self.session.source_of(text, self.resolve)?;
            if text.place.is_some() && source.is_none() {
                return Ok(text.preview.clone());
            }
            unless_missing(text, self.session.text(source.as_deref(), text, self.resolve))
        })
    }

    /// Returns a fact's value with its long texts inlined. `source` is the source that the texts
    /// refer to. If its bytes were pruned or dropped, the preview of a text is used.
    pub(super) fn expand_fact(&self, value: Value, source: Option<&str>) -> Result<Value> {
        inlined(value, &|text| self.session.text(source, text, self.resolve))
    }
}

/// Returns a value with its long texts inlined. `read` returns a whole text. If its bytes were
/// pruned or dropped, its preview is used.
fn inlined(value: Value, read: &dyn Fn(&TextRef) -> Result<String>) -> Result<Value> {
    if let Some(text) = TextRef::from_value(&value) {
        return match read(&text) {
            Err(Error::TextRemoved { .. }) => Ok(Value::Text(text.preview)),
            whole => whole.map(Value::Text),
        };
    }
    Ok(match value {
        Value::Map(fields) => Value::Map(
            fields
                .into_iter()
                .map(|(name, value)| Ok((name, inlined(value, read)?)))
                .collect::<Result<_>>()?,
        ),
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| inlined(item, read)).collect::<Result<_>>()?)
        }
        other => other,
    })
}

/// Returns the whole text that was read, or its preview if it is missing.
fn unless_missing(text: &TextRef, whole: Result<String>) -> Result<String> {
    match whole {
        Err(Error::Corrupt { .. }) => Ok(text.preview.clone()),
        whole => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;
    use crate::model::ObjectId;

    #[test]
    fn a_preview_replaces_a_removed_text_but_not_an_unreadable_one() {
        let hash = ObjectId::from_bytes([1; 32]);
        let (preview, pointer) = ("the beginning".to_owned(), String::new());
        let text = TextRef { preview, bytes: 5000, hash, place: None, pointer };
        let body = Value::from([("summary", text.into_value())]);
        let read = |error: fn() -> Error| {
            inlined(body.clone(), &|text| unless_missing(text, Err(error())))
        };
        let short = Value::from([("summary", "the beginning".into())]);
        assert_eq!(read(|| Error::missing("the object")).unwrap(), short);
        assert_eq!(read(|| Error::TextRemoved { blob: "log".to_owned() }).unwrap(), short);
        let unreadable = read(|| {
            let source = std::io::Error::other("input/output error");
            backend::Error::Io { action: "read", path: "it".into(), source }.into()
        });
        assert!(unreadable.is_err());
    }
}
