//! Text inputs and questions.

use super::{navigation, switch};
use crate::app::{App, InputPurpose, OverlayPane};
use crate::effect::{AppEffect, MomentTarget, PageAnchor, WorkerRequest, WriteRequest};
use crate::query::TimelineFilter;
use crate::theme::TextTone;

/// The maximum length of an input, in characters.
const MAX_LETTERS: usize = 1000;

/// What is erased.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EraseRange {
    /// The last character.
    Character,
    /// The last word.
    Word,
    /// Everything.
    All,
}

pub(super) fn ask(app: &mut App, purpose: InputPurpose, text: &str) {
    app.status = None;
    app.fronts.push(OverlayPane::Input { purpose, text: text.to_owned() });
}

pub(super) fn typed(app: &mut App, more: &str) -> Vec<AppEffect> {
    let Some(OverlayPane::Input { text, .. }) = app.fronts.last_mut() else { return Vec::new() };
    // A pasted text may have several lines; an input has one.
    let letters = more.chars().map(|c| if c.is_control() { ' ' } else { c });
    let room = MAX_LETTERS.saturating_sub(text.chars().count());
    text.extend(letters.take(room));
    apply_filter(app)
}

pub(super) fn erase(app: &mut App, what: EraseRange) -> Vec<AppEffect> {
    let Some(OverlayPane::Input { text, .. }) = app.fronts.last_mut() else { return Vec::new() };
    match what {
        EraseRange::Character => {
            text.pop();
        }
        EraseRange::Word => {
            let kept = text.trim_end().rfind(' ').map_or(0, |place| place + 1);
            text.truncate(kept);
        }
        EraseRange::All => text.clear(),
    }
    apply_filter(app)
}

/// A search filters while it is typed.
fn apply_filter(app: &mut App) -> Vec<AppEffect> {
    let Some(OverlayPane::Input { purpose: InputPurpose::Search, text }) = app.fronts.last() else {
        return Vec::new();
    };
    let typed = text.clone();
    let zone = app.zone;
    match TimelineFilter::parse(&typed, app.now, |text, now| zone.read(text, now)) {
        Ok(filter) => {
            app.status = None;
            app.timeline.typed = typed;
            if filter == app.timeline.filter {
                return Vec::new();
            }
            app.timeline.filter = filter;
            navigation::load(app, PageAnchor::Newest)
        }
        Err(problem) => {
            app.say(TextTone::Warning, problem);
            Vec::new()
        }
    }
}

pub(super) fn clear_filter(app: &mut App) -> Vec<AppEffect> {
    app.timeline.typed.clear();
    app.timeline.filter = TimelineFilter::default();
    navigation::reload(app)
}

pub(super) fn cancel(app: &mut App) -> Vec<AppEffect> {
    let front = app.fronts.pop();
    match front {
        Some(OverlayPane::Input { purpose: InputPurpose::Search, .. })
            if !app.timeline.typed.is_empty() =>
        {
            clear_filter(app)
        }
        _ => Vec::new(),
    }
}

pub(super) fn accept(app: &mut App) -> Vec<AppEffect> {
    match app.fronts.pop() {
        Some(OverlayPane::Input { purpose, text }) => submit(app, purpose, text.trim()),
        Some(OverlayPane::Confirm { change, .. }) => write(app, change),
        Some(other) => {
            app.fronts.push(other);
            Vec::new()
        }
        None => Vec::new(),
    }
}

fn submit(app: &mut App, purpose: InputPurpose, text: &str) -> Vec<AppEffect> {
    if purpose == InputPurpose::Search {
        let session = app.timeline.filter.session.take();
        return session.map_or_else(Vec::new, |session| switch(app, session));
    }
    if text.is_empty() {
        app.say(TextTone::Warning, "nothing was typed, so nothing was done");
        return Vec::new();
    }
    let target = app.target();
    match purpose {
        InputPurpose::Search => Vec::new(),
        InputPurpose::Jump => {
            let (text, now) = (text.to_owned(), app.now);
            vec![app.ask(WorkerRequest::Jump { text, now })]
        }
        InputPurpose::Create => {
            write(app, WriteRequest::Create { message: text.to_owned(), target })
        }
        InputPurpose::Branch => write(app, WriteRequest::Branch { name: text.to_owned(), target }),
        InputPurpose::Tag => {
            let MomentTarget::Sequence(sequence) = target else { return Vec::new() };
            let words = text.split([',', ' ']).filter(|word| !word.is_empty());
            write(app, WriteRequest::Tag { sequence, words: words.map(str::to_owned).collect() })
        }
        InputPurpose::Export => {
            let path = text.to_owned();
            let text = crate::view::text(app);
            vec![app.ask(WorkerRequest::Export { path, text })]
        }
    }
}

fn write(app: &mut App, change: WriteRequest) -> Vec<AppEffect> {
    let now = app.now;
    vec![app.ask(WorkerRequest::Change { change, now })]
}
