//! Lists that typing filters: the help, and a search in the rows.

use super::{navigation, run};
use crate::answer::TimelineRow;
use crate::app::App;
use crate::effect::AppEffect;
use crate::fuzzy::FuzzyPattern;
use crate::help::help_lines;
use crate::panes::{FindState, OverlayPane};
use crate::theme::TextTone;
use forge_store::store::PageDirection;

/// Returns the text of a row in which a search looks.
#[must_use]
pub(crate) fn searched_text(row: &TimelineRow) -> String {
    match &row.story {
        Some(story) => format!("{}  {} {}", row.title, story.reason, story.question),
        None => format!("{} {} {} {}", row.title, row.by, row.tags.join(" "), row.target),
    }
}

/// Searches again after the text was changed.
pub(super) fn typed(app: &mut App) {
    let Some(OverlayPane::Find(find)) = app.overlays.last_mut() else { return };
    find.pattern = FuzzyPattern::new(&find.typed);
    find.cursor = 0;
    find.matches.clear();
    if find.pattern.is_empty() {
        return;
    }
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (place, row) in app.timeline.rows.iter().enumerate() {
        let story = row.story.as_ref();
        let texts = story.map(|story| [story.reason.as_str(), story.question.as_str()]);
        let [reason, question] = texts.unwrap_or_default();
        if story.is_some() && !find.pattern.may_find(&[&row.title, reason, question]) {
            continue;
        }
        if let Some(one) = find.pattern.find(&searched_text(row)) {
            found.push((one.score, place));
        }
    }
    found.sort_by_key(|(score, place)| (std::cmp::Reverse(*score), *place));
    find.matches = found.into_iter().map(|(_, place)| place).collect();
}

/// Goes to the selected match. The matches stay highlighted.
pub(super) fn accept_find(app: &mut App, find: FindState) -> Vec<AppEffect> {
    let Some(row) = find.matches.get(find.cursor).copied() else {
        let text = format!("'{}' is not among what is listed: f searches everything", find.typed);
        app.say(TextTone::Warning, text);
        return Vec::new();
    };
    app.find = Some(find);
    app.focus = crate::panes::PaneFocus::Story;
    navigation::move_to_row(app, row)
}

/// Goes to the next or previous match in time.
pub(super) fn step_match(app: &mut App, direction: PageDirection) -> Vec<AppEffect> {
    let cursor = app.timeline.cursor;
    let Some(find) = &app.find else { return Vec::new() };
    let all = find.matches.iter().copied();
    let found = match direction {
        PageDirection::Newer => all.filter(|row| *row < cursor).max(),
        PageDirection::Older => all.filter(|row| *row > cursor).min(),
    };
    match found {
        Some(row) => navigation::move_to_row(app, row),
        None => {
            let side = if direction == PageDirection::Newer { "after" } else { "before" };
            app.say(TextTone::Warning, format!("no match {side} this moment"));
            Vec::new()
        }
    }
}

/// Runs the command of the selected line of the help.
pub(super) fn accept_help(app: &mut App) -> Vec<AppEffect> {
    let Some(OverlayPane::Help { mode, typed, cursor }) = app.overlays.pop() else {
        return Vec::new();
    };
    let lines = help_lines(&app.keymap, mode, &typed, app.theme);
    // A line that only explains does nothing.
    let chosen = lines.get(cursor).and_then(|line| line.command);
    chosen.map_or_else(Vec::new, |command| run(app, command))
}

/// Returns the number of lines that can be selected.
pub(super) fn count(app: &App) -> usize {
    match app.overlays.last() {
        Some(OverlayPane::Find(find)) => find.matches.len(),
        Some(OverlayPane::Help { mode, typed, .. }) => {
            help_lines(&app.keymap, *mode, typed, app.theme).len()
        }
        _ => 0,
    }
}
