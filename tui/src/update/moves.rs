//! Standing elsewhere, and what has to be loaded for it.

use crate::answer::Tab;
use crate::app::{App, Focus, Front};
use crate::effect::{Effect, PageFrom, Request, Target};
use crate::layout::Layout;
use crate::query::Level;
use crate::sheet;
use forge_store::store::Place;

/// So many rows are loaded at once.
pub(super) const PAGE_ROWS: usize = 120;
/// More rows are loaded when fewer than these are left.
const AHEAD: usize = 60;
/// At most so many rows are kept.
pub(super) const MAX_ROWS: usize = 1200;

/// How far a page goes.
pub(super) fn page(app: &App) -> isize {
    let rows = match app.fronts.last() {
        Some(_) => Layout::sheet_rows(app),
        None if app.focus == Focus::State => Layout::state_rows(app),
        None => Layout::timeline_rows(app),
    };
    isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1)
}

/// Moves by so many rows, up if negative.
pub(super) fn by(app: &mut App, rows: isize) -> Vec<Effect> {
    let step = |cursor: usize, count: usize| {
        cursor.saturating_add_signed(rows).min(count.saturating_sub(1))
    };
    if !app.fronts.is_empty() {
        return front_to(app, step);
    }
    if app.focus == Focus::State {
        let count = app.state.view.as_ref().map_or(0, |view| view.items.len());
        app.state.cursor = step(app.state.cursor, count);
        scroll(app);
        return Vec::new();
    }
    let cursor = step(app.timeline.cursor, app.timeline.rows.len());
    stand(app, cursor)
}

fn front_to(app: &mut App, to: impl Fn(usize, usize) -> usize) -> Vec<Effect> {
    let width = Layout::front(app).width;
    match app.fronts.last_mut() {
        Some(Front::Sheet(reading) | Front::Confirm { reading, .. }) => {
            let count = reading.sheet.as_ref().map_or(0, |read| sheet::shown(read, width).len());
            reading.cursor = to(reading.cursor, count);
        }
        Some(Front::Sessions { rows: Some(rows), cursor }) => *cursor = to(*cursor, rows.len()),
        Some(Front::Charts(charts)) => charts.cursor = to(charts.cursor, charts.count()),
        _ => {}
    }
    scroll(app);
    Vec::new()
}

pub(super) fn click_front(app: &mut App, line: usize) {
    let front = Layout::front(app);
    if let Some(Front::Charts(charts)) = app.fronts.last_mut() {
        let count = charts.count();
        let list = Layout::chart(front, count).list;
        let y = usize::from(front.y) + 1 + line;
        let row = y.checked_sub(usize::from(list.y)).filter(|row| *row < list.height.into());
        if let Some(place) = row.map(|row| charts.top + row).filter(|place| *place < count) {
            charts.cursor = place;
            charts.toggle();
        }
        return;
    }
    let top = match app.fronts.last() {
        Some(Front::Sheet(reading)) => reading.top,
        Some(Front::Sessions { .. }) => 0,
        _ => return,
    };
    front_to(app, |_, count| (top + line).min(count.saturating_sub(1)));
}

/// To the top.
pub(super) fn first(app: &mut App) -> Vec<Effect> {
    if !app.fronts.is_empty() {
        return front_to(app, |_, _| 0);
    }
    if app.focus == Focus::State {
        app.state.cursor = 0;
        scroll(app);
        return Vec::new();
    }
    if app.timeline.at_newest {
        return stand(app, 0);
    }
    load(app, PageFrom::Newest)
}

/// To the bottom.
pub(super) fn last(app: &mut App) -> Vec<Effect> {
    if !app.fronts.is_empty() {
        return front_to(app, |_, count| count.saturating_sub(1));
    }
    if app.focus == Focus::State {
        return by(app, isize::MAX);
    }
    if app.timeline.older.is_none() {
        return stand(app, app.timeline.rows.len().saturating_sub(1));
    }
    load(app, PageFrom::Oldest)
}

/// Folds or unfolds the section stood on, or all; in charts draws the line stood on, or all.
pub(super) fn fold(app: &mut App, all: bool) {
    if let Some(Front::Charts(charts)) = app.fronts.last_mut() {
        if all {
            charts.toggle_all();
        } else {
            charts.toggle();
        }
        return;
    }
    let width = Layout::front(app).width;
    if let Some(Front::Sheet(reading)) = app.fronts.last_mut()
        && let Some(read) = &mut reading.sheet
    {
        let Some(section) = sheet::shown(read, width).get(reading.cursor).map(|line| line.section)
        else {
            return;
        };
        if all {
            let folded = read.sections.iter().any(|section| !section.folded);
            read.sections.iter_mut().for_each(|section| section.folded = folded);
        } else if let Some(section) = read.sections.get_mut(section) {
            section.folded = !section.folded;
        }
        let shown = sheet::shown(read, width);
        let heading = shown.iter().position(|line| line.section == section && line.heading);
        reading.cursor = heading.unwrap_or(0);
    }
    scroll(app);
}

/// Keeps what is stood on within the window.
pub(super) fn scroll(app: &mut App) {
    let clamp = |cursor: &mut usize, top: &mut usize, count: usize, rows: usize| {
        *cursor = (*cursor).min(count.saturating_sub(1));
        *top = (*top).min(*cursor).max((*cursor + 1).saturating_sub(rows));
    };
    let rows = Layout::timeline_rows(app);
    let timeline = &mut app.timeline;
    clamp(&mut timeline.cursor, &mut timeline.top, timeline.rows.len(), rows);
    let rows = Layout::state_rows(app);
    let count = app.state.view.as_ref().map_or(0, |view| view.items.len());
    clamp(&mut app.state.cursor, &mut app.state.top, count, rows);
    let front = Layout::front(app);
    let (width, rows) = (front.width, Layout::sheet_rows(app));
    if let Some(Front::Sheet(reading) | Front::Confirm { reading, .. }) = app.fronts.last_mut() {
        let count = reading.sheet.as_ref().map_or(0, |read| sheet::shown(read, width).len());
        clamp(&mut reading.cursor, &mut reading.top, count, rows);
    }
    if let Some(Front::Charts(charts)) = app.fronts.last_mut() {
        let count = charts.count();
        let rows = Layout::chart(front, count).list.height;
        clamp(&mut charts.cursor, &mut charts.top, count, usize::from(rows).max(1));
    }
}

/// The moment that is shown now, as one that does not move on.
fn fixed(app: &App) -> Option<Target> {
    let view = app.state.view.as_ref()?;
    match (view.target, view.revision) {
        (Target::Head, Some(revision)) => Some(Target::Sequence(revision)),
        (Target::Head, None) => None,
        (target, _) => Some(target),
    }
}

/// Stands on another row.
pub(super) fn stand(app: &mut App, row: usize) -> Vec<Effect> {
    let moved = row != app.timeline.cursor;
    app.timeline.cursor = row;
    scroll(app);
    let mut effects = Vec::new();
    if moved {
        app.state.before = fixed(app);
        effects.push(state(app));
    }
    effects.extend(ahead(app));
    effects
}

/// Asks for the state at the moment stood at.
pub(super) fn state(app: &mut App) -> Effect {
    let (target, since, tab) = (app.target(), app.state.before, app.state.tab);
    app.ask(Request::State { target, since, tab })
}

/// Asks for the state after the moment itself has moved on.
pub(super) fn follow(app: &mut App) -> Effect {
    app.state.before = fixed(app);
    state(app)
}

pub(super) fn show_tab(app: &mut App, tab: Tab) -> Vec<Effect> {
    app.state.tab = tab;
    app.state.cursor = 0;
    app.state.top = 0;
    vec![state(app)]
}

/// Loads more rows where few are left.
pub(super) fn ahead(app: &mut App) -> Vec<Effect> {
    if app.timeline.loading {
        return Vec::new();
    }
    let left = app.timeline.rows.len().saturating_sub(app.timeline.cursor);
    if left < AHEAD
        && let Some(place) = app.timeline.older
    {
        return load(app, PageFrom::Before(place));
    }
    if app.timeline.cursor < AHEAD
        && !app.timeline.at_newest
        && let Some(place) = app.timeline.newer
    {
        return load(app, PageFrom::After(place));
    }
    Vec::new()
}

/// Asks for a part of the timeline.
pub(super) fn load(app: &mut App, from: PageFrom) -> Vec<Effect> {
    app.timeline.loading = true;
    let filter = app.timeline.filter.clone();
    // Words and kinds are looked for everywhere, whatever is shown else.
    let wide = !filter.words.is_empty() || !filter.kinds.is_empty();
    let level = if wide { Level::Everything } else { app.timeline.level };
    vec![app.ask(Request::Page { level, filter, from, limit: PAGE_ROWS })]
}

/// Loads the timeline again and stands where one stood.
pub(super) fn reload(app: &mut App) -> Vec<Effect> {
    match app.row() {
        Some(row) if row.target != Target::Head => {
            let place = row.place;
            seek(app, place)
        }
        _ => load(app, PageFrom::Newest),
    }
}

/// Goes to a place.
pub(super) fn seek(app: &mut App, place: Place) -> Vec<Effect> {
    app.timeline.seek = Some(place);
    load(app, PageFrom::Around(place))
}
