//! The story: reading it, and switching between it and the other levels of the timeline.

use super::{choose, navigation, news, refresh_activity, selection};
use crate::answer::TimelineRow;
use crate::app::{App, AppStage};
use crate::effect::{AppEffect, MomentTarget, PageAnchor, WorkerRequest};
use crate::query::TimelineLevel;
use crate::story_view::StoryView;
use crate::theme::TextTone;
use forge_store::store::HistoryPosition;
use forge_store::story::StoryCut;

/// A session with more revisions, checkpoints and facts than this opens with its revisions, which
/// are read in pages. Its story is only read on request.
pub(super) const MAX_RECORDS: u64 = 100_000;
/// The shortest time between two requests for the story.
const PAUSE_MICROS: i64 = 1_000_000;
/// After a reading of the story, none follows for this many times as long as the reading took. So
/// at most a fifth of the time is spent on it.
const REST_FACTOR: i64 = 4;

/// Returns whether the story is to be read: its level is chosen, or the session is small enough.
pub(super) fn is_wanted(app: &App) -> bool {
    app.timeline.level == TimelineLevel::Story
        || app.session.count + app.session.facts <= MAX_RECORDS
}

/// Requests the story if the store has changed since it was read, but not too often.
pub(super) fn refresh(app: &mut App) -> Vec<AppEffect> {
    let is_old = app.story_position != app.session.position;
    let rested = app.story_requested.is_none_or(|(asked, took)| {
        app.now.micros_since(asked) >= PAUSE_MICROS.max(took * (REST_FACTOR + 1))
    });
    if app.stage != AppStage::Browsing
        || app.story_loading
        || !is_old
        || !(rested || app.story.is_none() || app.story_position == 0)
        || !is_wanted(app)
    {
        return Vec::new();
    }
    app.story_loading = true;
    app.story_position = app.session.position;
    app.story_requested = Some((app.now, 0));
    let (session, revisions) = (app.session.id.clone(), app.story_revisions);
    vec![app.ask(WorkerRequest::Story { session, revisions })]
}

/// Handles a story that the worker has read.
pub(super) fn put(app: &mut App, mut view: StoryView) -> Vec<AppEffect> {
    app.story_loading = false;
    if let Some((asked, took)) = &mut app.story_requested {
        *took = app.now.micros_since(*asked).max(0);
    }
    if view.session != app.session.id {
        return Vec::new();
    }
    app.chart.series = Some(std::mem::take(&mut view.hypotheses));
    app.chart.cursor = app.chart.cursor.min(app.chart.count().saturating_sub(1));
    let newest = match &app.story {
        Some(_) if app.timeline.is_story() => app.timeline.rows.first().map(|row| row.place),
        Some(story) => story.rows.first().map(|row| row.place),
        None => None,
    };
    let mut effects = newest.map_or_else(Vec::new, |newest| news::arrived(app, newest, &view.rows));
    if app.timeline.is_story() {
        let before = app.row().map(|row| (row.place, row.title.clone()));
        let first = app.timeline.rows.is_empty();
        let offset = app.timeline.top.saturating_sub(app.timeline.cursor);
        app.timeline.rows = std::mem::take(&mut view.rows);
        unfold_known(app);
        app.timeline.loading = false;
        (app.timeline.older, app.timeline.newer, app.timeline.at_newest) = (None, None, true);
        let old_cursor = app.timeline.cursor;
        app.timeline.following |= first && app.timeline.seek.is_none();
        app.timeline.cursor = match before.filter(|_| !app.timeline.following) {
            None => 0,
            Some((place, title)) => {
                let same = |row: &TimelineRow| row.place == place && row.title == title;
                let found = app.timeline.rows.iter().position(same);
                found.unwrap_or_else(|| row_at(app, place))
            }
        };
        app.timeline.arrived += app.timeline.cursor.saturating_sub(old_cursor);
        app.timeline.top = app.timeline.cursor + offset;
        app.find = None;
        if let Some((place, target)) = app.timeline.seek.take() {
            app.story = Some(Box::new(view));
            effects.extend(go_to(app, place, target));
            return effects;
        }
        effects.extend(selection::detail(app));
    }
    app.story = Some(Box::new(view));
    // An open search includes the new lines.
    choose::typed(app);
    navigation::scroll(app);
    effects
}

/// Unfolds the rows again that were unfolded before.
fn unfold_known(app: &mut App) {
    let places = app.timeline.unfolded.clone();
    let mut row = 0;
    while !places.is_empty() && row < app.timeline.rows.len() {
        let place = app.timeline.rows.get(row).map(|row| row.place);
        if place.is_some_and(|place| places.contains(&place)) {
            unfold_row(app, row);
        }
        row += 1;
    }
}

/// Replaces a row by the rows that are folded in it. Returns `false` if it has none.
fn unfold_row(app: &mut App, row: usize) -> bool {
    let Some(shown) = app.timeline.rows.get_mut(row) else { return false };
    let place = shown.place;
    let Some(story) = shown.story.as_mut().filter(|story| !story.hidden.is_empty()) else {
        return false;
    };
    let hidden = std::mem::take(&mut story.hidden);
    app.timeline.rows.splice(row..=row, hidden);
    app.timeline.unfolded.insert(place);
    true
}

/// Unfolds the selected row, if rows are folded in it, and selects the first of them on the screen.
pub(super) fn unfold(app: &mut App) -> bool {
    let (cursor, count) = (app.timeline.cursor, app.timeline.rows.len());
    if !app.timeline.is_story() || !unfold_row(app, cursor) {
        return false;
    }
    let added = app.timeline.rows.len() - count;
    if !app.timeline.turned {
        app.timeline.cursor += added;
    }
    if app.timeline.top > cursor || app.timeline.turned {
        app.timeline.top += added;
    } else {
        app.timeline.top = app.timeline.cursor;
    }
    app.timeline.following = false;
    app.find = None;
    navigation::scroll(app);
    true
}

/// Reads twice as many revisions, if the selected row is the last one and says that older lines are
/// not read.
pub(super) fn read_older(app: &mut App) -> Option<Vec<AppEffect>> {
    app.story.as_ref()?.cut?;
    let is_last = app.timeline.cursor + 1 == app.timeline.rows.len();
    if !app.timeline.is_story() || !is_last {
        return None;
    }
    app.story_revisions = app.story_revisions.saturating_mul(2);
    app.story_position = 0;
    let count = app.story_revisions;
    let effects = refresh(app);
    app.say(TextTone::Plain, format!("reading the last {count} revisions ..."));
    Some(effects)
}

/// Returns the index of the row to select for a position: the newest row at or before it, else the
/// last row.
pub(super) fn row_at(app: &App, place: HistoryPosition) -> usize {
    let rows = &app.timeline.rows;
    let found = rows.iter().position(|row| row.place <= place && row.target != MomentTarget::Head);
    found.unwrap_or(rows.len().saturating_sub(1))
}

/// Selects a moment: unfolds the row that hides it, and goes to the level of revisions if the story
/// has no line for it.
pub(super) fn go_to(app: &mut App, place: HistoryPosition, target: MomentTarget) -> Vec<AppEffect> {
    if !app.timeline.is_story() {
        return navigation::seek(app, place, target);
    }
    if app.timeline.rows.is_empty() && app.story_loading {
        app.timeline.seek = Some((place, target));
        return Vec::new();
    }
    let shows = |row: &TimelineRow| row.target == target;
    let hides = |row: &TimelineRow| {
        let hidden = row.story.as_ref().map_or(&[][..], |story| story.hidden.as_slice());
        match target {
            MomentTarget::Time(time) => {
                row.place.time > time && hidden.last().is_some_and(|first| first.place.time <= time)
            }
            target => hidden.iter().any(|row| row.target == target),
        }
    };
    if let Some(row) = app.timeline.rows.iter().position(hides)
        && !app.timeline.rows.iter().any(|row| shows(row) && row.weight > 0)
    {
        unfold_row(app, row);
    }
    let is_older = |cut: StoryCut| place.time < cut.at;
    let row = match target {
        MomentTarget::Head => Some(0),
        _ if app.story.as_ref().and_then(|story| story.cut).is_some_and(is_older) => None,
        MomentTarget::Time(_) => Some(row_at(app, place)),
        // Of the lines of one revision, the line about a claim says best what it did.
        MomentTarget::Sequence(_) => {
            let is_claim =
                |row: &TimelineRow| row.story.as_ref().is_some_and(|story| story.is_claim());
            let shown = app.timeline.rows.iter().enumerate().filter(|(_, row)| shows(row));
            shown.max_by_key(|(place, row)| (is_claim(row), *place)).map(|(place, _)| place)
        }
    };
    match row {
        Some(row) => navigation::move_to_row(app, row),
        None => {
            leave(app);
            app.timeline.level = TimelineLevel::Revisions;
            navigation::seek(app, place, target)
        }
    }
}

/// Leaves the story, and keeps its rows while another level is shown.
pub(super) fn leave(app: &mut App) {
    if !app.timeline.is_story() {
        return;
    }
    let rows = std::mem::take(&mut app.timeline.rows);
    if let Some(story) = &mut app.story {
        story.rows = rows;
    }
    app.timeline.cursor = 0;
    app.timeline.top = 0;
    app.timeline.following = false;
    app.timeline.arrived = 0;
    app.find = None;
}

/// Shows the story again. The selection stays at its moment.
pub(super) fn enter(app: &mut App) -> Vec<AppEffect> {
    let before = app.row().map(|row| (row.place, row.target));
    app.timeline.rows =
        app.story.as_mut().map(|story| std::mem::take(&mut story.rows)).unwrap_or_default();
    (app.timeline.older, app.timeline.newer, app.timeline.at_newest) = (None, None, true);
    app.timeline.loading = false;
    app.timeline.seek = None;
    app.timeline.arrived = 0;
    app.find = None;
    app.requested.remove(&crate::effect::PaneSlot::Page);
    let head = before.filter(|(_, target)| *target != MomentTarget::Head);
    app.timeline.following = head.is_none();
    app.timeline.cursor = head.map_or(0, |(place, _)| row_at(app, place));
    app.timeline.top = app.timeline.cursor;
    if app.timeline.rows.is_empty() {
        app.story_position = 0;
    }
    let mut effects = refresh(app);
    navigation::scroll(app);
    effects.extend(selection::changed(app));
    effects
}

/// Shows the next level of detail.
pub(super) fn next_level(app: &mut App) -> Vec<AppEffect> {
    let next = app.timeline.level.next();
    app.say(TextTone::Plain, format!("showing {}", next.word()));
    if next == TimelineLevel::Story {
        app.timeline.level = next;
        return if app.timeline.is_story() { enter(app) } else { navigation::reload(app) };
    }
    let before = app.row().map(|row| (row.place, row.target));
    let before = before.filter(|_| app.target() != MomentTarget::Head);
    leave(app);
    app.timeline.level = next;
    let mut effects = match before {
        Some((place, target)) => navigation::seek(app, place, target),
        None => navigation::load(app, PageAnchor::Newest),
    };
    effects.extend(refresh_activity(app));
    effects
}
