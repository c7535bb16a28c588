//! Text inputs and questions.

use super::{choose, navigation, selection, share, story, switch, write};
use crate::action::EraseRange;
use crate::app::{App, UnsentText};
use crate::effect::{AppEffect, MomentTarget, PageAnchor, WorkerRequest, WriteRequest};
use crate::panes::{InputPurpose, OverlayPane};
use crate::query::TimelineFilter;
use crate::theme::TextTone;

/// The maximum length of an input, in characters.
const MAX_LETTERS: usize = 1000;

pub(super) fn ask(app: &mut App, purpose: InputPurpose, text: &str) {
    app.status = None;
    app.overlays.push(OverlayPane::Input { purpose, text: text.to_owned() });
}

/// Returns the text that is being typed.
fn typed_text(app: &mut App) -> Option<&mut String> {
    match app.overlays.last_mut()? {
        OverlayPane::Input { text, .. } => Some(text),
        OverlayPane::Find(find) => Some(&mut find.typed),
        OverlayPane::Help { typed, cursor, .. } => {
            *cursor = 0;
            Some(typed)
        }
        _ => None,
    }
}

pub(super) fn typed(app: &mut App, more: &str) -> Vec<AppEffect> {
    let Some(text) = typed_text(app) else { return Vec::new() };
    // A pasted text may have several lines; an input has one.
    let letters = more.chars().map(|c| if c.is_control() { ' ' } else { c });
    let room = MAX_LETTERS.saturating_sub(text.chars().count());
    text.extend(letters.take(room));
    apply_filter(app)
}

pub(super) fn erase(app: &mut App, what: EraseRange) -> Vec<AppEffect> {
    let Some(text) = typed_text(app) else { return Vec::new() };
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

/// Applies a search or a filter while it is typed.
pub(super) fn apply_filter(app: &mut App) -> Vec<AppEffect> {
    choose::typed(app);
    let Some(OverlayPane::Input { purpose: InputPurpose::Filter, text }) = app.overlays.last()
    else {
        return Vec::new();
    };
    let typed = text.clone();
    let (zone, mark) = (app.zone, app.mark_time);
    let time = |text: &str, now| match (text, mark) {
        ("mark", Some(time)) => Ok(time),
        ("mark", None) => Err("nothing is marked: m marks the selected moment".to_owned()),
        _ => zone.read(text, now),
    };
    match TimelineFilter::parse(&typed, app.now, time) {
        Ok(filter) => {
            app.status = None;
            app.timeline.typed = typed;
            if filter == app.timeline.filter {
                return Vec::new();
            }
            story::leave(app);
            if filter.is_empty() && app.timeline.level == crate::query::TimelineLevel::Story {
                app.timeline.filter = filter;
                return story::enter(app);
            }
            app.timeline.filter = filter;
            app.timeline.following = false;
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
    if app.timeline.is_story() { story::enter(app) } else { navigation::reload(app) }
}

pub(super) fn cancel(app: &mut App) -> Vec<AppEffect> {
    match app.overlays.pop() {
        Some(OverlayPane::Input { purpose: InputPurpose::Filter, .. })
            if !app.timeline.typed.is_empty() =>
        {
            clear_filter(app)
        }
        _ => Vec::new(),
    }
}

pub(super) fn accept(app: &mut App) -> Vec<AppEffect> {
    if matches!(app.overlays.last(), Some(OverlayPane::Help { .. })) {
        return choose::accept_help(app);
    }
    match app.overlays.pop() {
        Some(OverlayPane::Input { purpose, text }) => submit(app, &purpose, text.trim()),
        Some(OverlayPane::Confirm { change, .. }) => send(app, change),
        Some(OverlayPane::Find(find)) => choose::accept_find(app, find),
        Some(other) => {
            app.overlays.push(other);
            Vec::new()
        }
        None => Vec::new(),
    }
}

pub(super) fn submit(app: &mut App, purpose: &InputPurpose, text: &str) -> Vec<AppEffect> {
    if *purpose == InputPurpose::Filter && app.timeline.typed.trim() != text {
        // This is no filter: the text can be corrected.
        ask(app, InputPurpose::Filter, text);
        return apply_filter(app);
    }
    let may_be_empty =
        matches!(purpose, InputPurpose::Filter | InputPurpose::Settle { confirm: true, .. });
    if text.is_empty() && !may_be_empty {
        app.say(TextTone::Warning, "nothing was typed, so nothing was done");
        return Vec::new();
    }
    let unsent = UnsentText { purpose: purpose.clone(), text: text.to_owned() };
    let effects = requested(app, purpose, text);
    for effect in &effects {
        if let AppEffect::Ask { request_number, .. } | AppEffect::Report { request_number, .. } =
            effect
        {
            app.unsent.insert(*request_number, unsent.clone());
        }
    }
    effects
}

/// Requests what was typed.
fn requested(app: &mut App, purpose: &InputPurpose, text: &str) -> Vec<AppEffect> {
    let target = app.target();
    match purpose {
        InputPurpose::Filter => {
            let session = app.timeline.filter.session.take();
            session.map_or_else(Vec::new, |session| switch(app, session))
        }
        InputPurpose::Jump => {
            let (text, now) = (text.to_owned(), app.now);
            vec![app.ask(WorkerRequest::Jump { text, now })]
        }
        InputPurpose::Create => {
            send(app, WriteRequest::Create { message: text.to_owned(), target })
        }
        InputPurpose::Branch => send(app, WriteRequest::Branch { name: text.to_owned(), target }),
        InputPurpose::Tag => {
            let row = app.row().map(|row| row.target).filter(|_| selection::is_checkpoint(app));
            let Some(MomentTarget::Sequence(sequence)) = row else { return Vec::new() };
            let words = text.split([',', ' ']).filter(|word| !word.is_empty());
            send(app, WriteRequest::Tag { sequence, words: words.map(str::to_owned).collect() })
        }
        InputPurpose::Export => {
            // As in a shell.
            let path = match (text.strip_prefix("~/"), std::env::home_dir()) {
                (Some(rest), Some(home)) => home.join(rest).display().to_string(),
                _ => text.to_owned(),
            };
            if share::is_report(&path) {
                return share::report(app, Some(path));
            }
            let text = crate::view::text(app);
            vec![app.ask(WorkerRequest::Export { path, text })]
        }
        purpose => match write::request_of_text(purpose, text) {
            Ok(change) => send(app, change),
            Err(problem) => {
                // The text can be corrected.
                ask(app, purpose.clone(), text);
                app.say(TextTone::Warning, problem);
                Vec::new()
            }
        },
    }
}

fn send(app: &mut App, change: WriteRequest) -> Vec<AppEffect> {
    let now = app.now;
    vec![app.ask(WorkerRequest::Change { change, now })]
}
