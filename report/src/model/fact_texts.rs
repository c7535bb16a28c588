//! Finds the facts of a session and reads their texts.

use crate::page_text::{PageText, TextCleaner};
use forge_store::error::{Error, Result};
use forge_store::model::claim::{FactText, FieldValue};
use forge_store::model::{Kind, Value};
use forge_store::store::{Session, SourcedFact, TextResolver};
use forge_store::story::Story;
use std::collections::HashMap;

/// The facts of a session by kind and id, with their texts as a page shows them.
pub(super) struct FactTexts<'a> {
    pub(super) session: &'a Session,
    pub(super) resolve: TextResolver<'a>,
    pub(super) cleaner: &'a TextCleaner<'a>,
    pub(super) story: &'a Story,
    by_id: HashMap<(Kind, &'a str), &'a SourcedFact>,
}

impl<'a> FactTexts<'a> {
    pub(super) fn new(
        session: &'a Session,
        resolve: TextResolver<'a>,
        cleaner: &'a TextCleaner<'a>,
        story: &'a Story,
        facts: &'a [SourcedFact],
    ) -> Self {
        let by_id = facts.iter().map(|known| ((known.fact.kind, known.fact.id.as_str()), known));
        Self { session, resolve, cleaner, story, by_id: by_id.collect() }
    }

    /// Returns a text as a page shows it.
    pub(super) fn clean(&self, text: &str) -> PageText {
        self.cleaner.clean(&self.story.shown_text(text))
    }

    /// Returns a path as a page shows it.
    pub(super) fn path(&self, path: &str) -> PageText {
        self.cleaner.clean(&self.story.shown_path(path))
    }

    pub(super) fn fact(&self, kind: Kind, id: &str) -> Option<&'a SourcedFact> {
        self.by_id.get(&(kind, id)).copied()
    }

    /// Reads a text of a fact in full, or its beginning if the full text was removed. `None` if the
    /// field is absent or holds no text.
    pub(super) fn full_text(&self, known: &SourcedFact, field: &str) -> Result<Option<PageText>> {
        let text = known.fact.value.field(field).filter(|value| **value != Value::Null);
        let Some(text) = text.and_then(FactText::read) else { return Ok(None) };
        let Some(long) = text.whole() else { return Ok(Some(self.clean(text.preview()))) };
        match self.session.text(known.source.as_deref(), &long, self.resolve) {
            Ok(whole) => Ok(Some(self.clean(&whole))),
            Err(Error::TextRemoved { .. }) => Ok(Some(self.clean(&text.shown()))),
            Err(error) => Err(error),
        }
    }

    /// Returns a text of a fact, or its beginning if it is long. `None` if it is absent, empty
    /// or not a text.
    pub(super) fn preview(&self, known: &SourcedFact, field: &str) -> Option<PageText> {
        let text = FactText::read(known.fact.value.field(field)?)?;
        Some(self.clean(&text.shown())).filter(|text| !text.is_empty())
    }
}
