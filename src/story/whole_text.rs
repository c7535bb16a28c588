//! Reads the whole texts for the lines of a story that are shown. A fact has only the beginning of
//! a long text.

use super::Story;
use super::gist::{ITEM_CHARS, closing_question, gist, one_line};
use super::item::StoryItem;
use super::project_root::{ProjectRoot, shown_text};
use crate::error::{Error, Result};
use crate::model::TextRef;
use crate::model::claim::FactText;
use crate::store::{Session, SourcedFact, TextResolver};
use std::sync::Arc;

/// A long text that an item needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PendingText {
    /// The part that the item shows.
    pub(super) part: TextPart,
    text: TextRef,
    source: Option<Arc<str>>,
}

/// The part of a text that an item shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPart {
    /// The gist of a message.
    Gist,
    /// The beginning of a prompt.
    Beginning,
    /// The question at the end of a message. It is the detail of the prompt that answers it.
    Question,
}

impl PendingText {
    /// Returns the text that must be read for a fact; `None` if the fact has the whole text.
    pub(super) fn of(part: TextPart, known: &SourcedFact, text: &FactText) -> Option<Self> {
        Some(Self { part, text: text.whole()?, source: known.source.clone() })
    }
}

impl Story {
    /// Reads the whole texts of the shown items. Until then, an item shows the beginning of a long
    /// text. Each text takes a read, so first remove the items that are not needed.
    ///
    /// If a text was pruned, its item stays as it is.
    ///
    /// # Errors
    /// If a text cannot be read for another reason.
    pub fn read_whole_texts(&mut self, session: &Session, resolve: TextResolver<'_>) -> Result<()> {
        let (root, unfolded) = (self.root.as_ref(), self.unfolded);
        let items =
            self.turns.iter_mut().flat_map(|turn| turn.prompt.iter_mut().chain(&mut turn.items));
        for item in items.filter(|item| unfolded || item.loud) {
            let Some(pending) = item.pending.take() else { continue };
            match session.text(pending.source.as_deref(), &pending.text, resolve) {
                Ok(whole) => fill(item, pending.part, &shown_text(root, &whole)),
                Err(Error::TextRemoved { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Writes a text, or a part of it, to an item.
pub(super) fn fill(item: &mut StoryItem, part: TextPart, text: &str) {
    match part {
        TextPart::Gist => item.text = gist(text, ITEM_CHARS),
        TextPart::Beginning => item.text = one_line(text, ITEM_CHARS),
        TextPart::Question => item.detail = closing_question(text),
    }
}

/// Writes the known part of a fact's text to an item, and notes the text that is still to be read.
pub(super) fn fill_from(
    item: &mut StoryItem,
    part: TextPart,
    known: &SourcedFact,
    text: &FactText,
    root: Option<&ProjectRoot>,
) {
    let pending = PendingText::of(part, known, text);
    // The question is at the end of the text, and only the beginning is known.
    if pending.is_none() || part != TextPart::Question {
        fill(item, part, &shown_text(root, &text.shown()));
    }
    item.pending = pending;
}
