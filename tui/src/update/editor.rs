//! Writing long texts in an editor.

use super::input;
use crate::app::{App, UnsentText};
use crate::effect::AppEffect;
use crate::host::EditedText;
use crate::panes::{InputPurpose, OverlayPane};
use crate::theme::TextTone;

/// Opens the editor with the typed text, if it is a text for the store.
pub(super) fn open(app: &mut App) -> Vec<AppEffect> {
    match app.overlays.last() {
        Some(OverlayPane::Input { purpose, text }) if purpose.is_text() => {
            vec![AppEffect::Edit(text.clone())]
        }
        _ => Vec::new(),
    }
}

/// Opens the editor for a new note.
pub(super) fn note(app: &mut App) -> Vec<AppEffect> {
    input::ask(app, InputPurpose::Note, "");
    open(app)
}

/// Submits the text that was written in the editor. If the editor failed, the text stays in the
/// input.
pub(super) fn submit_edited(app: &mut App, edited: EditedText) -> Vec<AppEffect> {
    let Some(OverlayPane::Input { purpose, text }) = app.overlays.last_mut() else {
        return Vec::new();
    };
    let written = edited.text.trim();
    if let Some(problem) = edited.problem {
        if !written.is_empty() {
            written.clone_into(text);
        }
        app.say(TextTone::Bad, format!("{problem}: <enter> takes the text as it is here"));
        return Vec::new();
    }
    if written.is_empty() {
        app.say(TextTone::Warning, "the text is empty, so nothing was done");
        return Vec::new();
    }
    let purpose = purpose.clone();
    app.overlays.pop();
    input::submit(app, &purpose, written)
}

/// Shows the text of a request that failed in the input again.
pub(super) fn restore(app: &mut App, request_number: u64) {
    if let Some(UnsentText { purpose, text }) = app.unsent.remove(&request_number) {
        app.overlays.push(OverlayPane::Input { purpose, text });
    }
}
