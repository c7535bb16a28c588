//! A line of text being written, and questions.

use super::{moves, switch};
use crate::app::{App, Front, Purpose};
use crate::effect::{Change, Effect, PageFrom, Request, Target};
use crate::query::Filter;
use crate::theme::Tone;

/// The longest line that is taken.
const MAX_LETTERS: usize = 1000;

/// What is taken back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Erased {
    /// The last character.
    Character,
    /// The last word.
    Word,
    /// Everything.
    All,
}

pub(super) fn ask(app: &mut App, purpose: Purpose, text: &str) {
    app.status = None;
    app.fronts.push(Front::Input { purpose, text: text.to_owned() });
}

pub(super) fn typed(app: &mut App, more: &str) -> Vec<Effect> {
    let Some(Front::Input { text, .. }) = app.fronts.last_mut() else { return Vec::new() };
    // A pasted text may hold several lines; the line written here is one.
    let letters = more.chars().map(|c| if c.is_control() { ' ' } else { c });
    let room = MAX_LETTERS.saturating_sub(text.chars().count());
    text.extend(letters.take(room));
    changed(app)
}

pub(super) fn erase(app: &mut App, what: Erased) -> Vec<Effect> {
    let Some(Front::Input { text, .. }) = app.fronts.last_mut() else { return Vec::new() };
    match what {
        Erased::Character => {
            text.pop();
        }
        Erased::Word => {
            let kept = text.trim_end().rfind(' ').map_or(0, |place| place + 1);
            text.truncate(kept);
        }
        Erased::All => text.clear(),
    }
    changed(app)
}

/// A search filters while it is typed.
fn changed(app: &mut App) -> Vec<Effect> {
    let Some(Front::Input { purpose: Purpose::Search, text }) = app.fronts.last() else {
        return Vec::new();
    };
    let typed = text.clone();
    let zone = app.zone;
    match Filter::parse(&typed, app.now, |text, now| zone.read(text, now)) {
        Ok(filter) => {
            app.status = None;
            app.timeline.typed = typed;
            if filter == app.timeline.filter {
                return Vec::new();
            }
            app.timeline.filter = filter;
            moves::load(app, PageFrom::Newest)
        }
        Err(problem) => {
            app.say(Tone::Warning, problem);
            Vec::new()
        }
    }
}

pub(super) fn clear_filter(app: &mut App) -> Vec<Effect> {
    app.timeline.typed.clear();
    app.timeline.filter = Filter::default();
    moves::reload(app)
}

pub(super) fn cancel(app: &mut App) -> Vec<Effect> {
    let front = app.fronts.pop();
    match front {
        Some(Front::Input { purpose: Purpose::Search, .. }) if !app.timeline.typed.is_empty() => {
            clear_filter(app)
        }
        _ => Vec::new(),
    }
}

pub(super) fn accept(app: &mut App) -> Vec<Effect> {
    match app.fronts.pop() {
        Some(Front::Input { purpose, text }) => done(app, purpose, text.trim()),
        Some(Front::Confirm { change, .. }) => write(app, change),
        Some(other) => {
            app.fronts.push(other);
            Vec::new()
        }
        None => Vec::new(),
    }
}

fn done(app: &mut App, purpose: Purpose, text: &str) -> Vec<Effect> {
    if purpose == Purpose::Search {
        let session = app.timeline.filter.session.take();
        return session.map_or_else(Vec::new, |session| switch(app, session));
    }
    if text.is_empty() {
        app.say(Tone::Warning, "nothing was typed, so nothing was done");
        return Vec::new();
    }
    let target = app.target();
    match purpose {
        Purpose::Search => Vec::new(),
        Purpose::Jump => {
            let (text, now) = (text.to_owned(), app.now);
            vec![app.ask(Request::Jump { text, now })]
        }
        Purpose::Create => write(app, Change::Create { message: text.to_owned(), target }),
        Purpose::Branch => write(app, Change::Branch { name: text.to_owned(), target }),
        Purpose::Tag => {
            let Target::Sequence(sequence) = target else { return Vec::new() };
            let words = text.split([',', ' ']).filter(|word| !word.is_empty());
            write(app, Change::Tag { sequence, words: words.map(str::to_owned).collect() })
        }
        Purpose::Export => {
            let path = text.to_owned();
            let text = crate::view::text(app);
            vec![app.ask(Request::Export { path, text })]
        }
    }
}

fn write(app: &mut App, change: Change) -> Vec<Effect> {
    let now = app.now;
    vec![app.ask(Request::Change { change, now })]
}
