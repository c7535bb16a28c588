//! Moves the selection, and loads what it needs.

use crate::answer::StateTab;
use crate::app::{App, OverlayPane, PaneFocus};
use crate::effect::{AppEffect, MomentTarget, PageAnchor, WorkerRequest};
use crate::layout::WindowLayout;
use crate::query::TimelineLevel;
use crate::sheet;
use forge_store::store::HistoryPosition;

/// The number of rows that are loaded at once.
pub(super) const PAGE_ROWS: usize = 120;
/// More rows are loaded if fewer than this are left.
const PREFETCH_ROWS: usize = 60;
/// The maximum number of rows that are kept.
pub(super) const MAX_ROWS: usize = 1200;

/// The number of rows in a page.
pub(super) fn page(app: &App) -> isize {
    let rows = match app.fronts.last() {
        Some(_) => WindowLayout::sheet_rows(app),
        None if app.focus == PaneFocus::State => WindowLayout::state_rows(app),
        None => WindowLayout::timeline_rows(app),
    };
    isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1)
}

/// Moves the selection by this many rows, up if negative.
pub(super) fn move_by(app: &mut App, rows: isize) -> Vec<AppEffect> {
    let step = |cursor: usize, count: usize| {
        cursor.saturating_add_signed(rows).min(count.saturating_sub(1))
    };
    if !app.fronts.is_empty() {
        return front_to(app, step);
    }
    if app.focus == PaneFocus::State {
        let count = app.state.view.as_ref().map_or(0, |view| view.items.len());
        app.state.cursor = step(app.state.cursor, count);
        scroll(app);
        return Vec::new();
    }
    let cursor = step(app.timeline.cursor, app.timeline.rows.len());
    move_to_row(app, cursor)
}

fn front_to(app: &mut App, to: impl Fn(usize, usize) -> usize) -> Vec<AppEffect> {
    let width = WindowLayout::front(app).width;
    match app.fronts.last_mut() {
        Some(OverlayPane::Sheet(reading) | OverlayPane::Confirm { reading, .. }) => {
            let count =
                reading.sheet.as_ref().map_or(0, |read| sheet::wrap_sheet(read, width).len());
            reading.cursor = to(reading.cursor, count);
        }
        Some(OverlayPane::Sessions { rows: Some(rows), cursor }) => {
            *cursor = to(*cursor, rows.len());
        }
        Some(OverlayPane::Charts(charts)) => charts.cursor = to(charts.cursor, charts.count()),
        _ => {}
    }
    scroll(app);
    Vec::new()
}

pub(super) fn click_front(app: &mut App, line: usize) {
    let front = WindowLayout::front(app);
    if let Some(OverlayPane::Charts(charts)) = app.fronts.last_mut() {
        let count = charts.count();
        let list = WindowLayout::chart(front, count).list;
        let y = usize::from(front.y) + 1 + line;
        let row = y.checked_sub(usize::from(list.y)).filter(|row| *row < list.height.into());
        if let Some(place) = row.map(|row| charts.top + row).filter(|place| *place < count) {
            charts.cursor = place;
            charts.toggle();
        }
        return;
    }
    let top = match app.fronts.last() {
        Some(OverlayPane::Sheet(reading)) => reading.top,
        Some(OverlayPane::Sessions { .. }) => 0,
        _ => return,
    };
    front_to(app, |_, count| (top + line).min(count.saturating_sub(1)));
}

/// Moves to the top.
pub(super) fn first(app: &mut App) -> Vec<AppEffect> {
    if !app.fronts.is_empty() {
        return front_to(app, |_, _| 0);
    }
    if app.focus == PaneFocus::State {
        app.state.cursor = 0;
        scroll(app);
        return Vec::new();
    }
    if app.timeline.at_newest {
        return move_to_row(app, 0);
    }
    load(app, PageAnchor::Newest)
}

/// Moves to the bottom.
pub(super) fn last(app: &mut App) -> Vec<AppEffect> {
    if !app.fronts.is_empty() {
        return front_to(app, |_, count| count.saturating_sub(1));
    }
    if app.focus == PaneFocus::State {
        return move_by(app, isize::MAX);
    }
    if app.timeline.older.is_none() {
        return move_to_row(app, app.timeline.rows.len().saturating_sub(1));
    }
    load(app, PageAnchor::Oldest)
}

/// Folds or unfolds the selected section, or all sections; in charts, draws or hides the selected
/// line, or all lines.
pub(super) fn fold(app: &mut App, all: bool) {
    if let Some(OverlayPane::Charts(charts)) = app.fronts.last_mut() {
        if all {
            charts.toggle_all();
        } else {
            charts.toggle();
        }
        return;
    }
    let width = WindowLayout::front(app).width;
    if let Some(OverlayPane::Sheet(reading)) = app.fronts.last_mut()
        && let Some(read) = &mut reading.sheet
    {
        let Some(section) =
            sheet::wrap_sheet(read, width).get(reading.cursor).map(|line| line.section)
        else {
            return;
        };
        if all {
            let folded = read.sections.iter().any(|section| !section.folded);
            read.sections.iter_mut().for_each(|section| section.folded = folded);
        } else if let Some(section) = read.sections.get_mut(section) {
            section.folded = !section.folded;
        }
        let shown = sheet::wrap_sheet(read, width);
        let heading = shown.iter().position(|line| line.section == section && line.heading);
        reading.cursor = heading.unwrap_or(0);
    }
    scroll(app);
}

/// Scrolls so that the selection is visible.
pub(super) fn scroll(app: &mut App) {
    let clamp = |cursor: &mut usize, top: &mut usize, count: usize, rows: usize| {
        *cursor = (*cursor).min(count.saturating_sub(1));
        *top = (*top).min(*cursor).max((*cursor + 1).saturating_sub(rows));
    };
    let rows = WindowLayout::timeline_rows(app);
    let timeline = &mut app.timeline;
    clamp(&mut timeline.cursor, &mut timeline.top, timeline.rows.len(), rows);
    let rows = WindowLayout::state_rows(app);
    let count = app.state.view.as_ref().map_or(0, |view| view.items.len());
    clamp(&mut app.state.cursor, &mut app.state.top, count, rows);
    let front = WindowLayout::front(app);
    let (width, rows) = (front.width, WindowLayout::sheet_rows(app));
    if let Some(OverlayPane::Sheet(reading) | OverlayPane::Confirm { reading, .. }) =
        app.fronts.last_mut()
    {
        let count = reading.sheet.as_ref().map_or(0, |read| sheet::wrap_sheet(read, width).len());
        clamp(&mut reading.cursor, &mut reading.top, count, rows);
    }
    if let Some(OverlayPane::Charts(charts)) = app.fronts.last_mut() {
        let count = charts.count();
        let rows = WindowLayout::chart(front, count).list.height;
        clamp(&mut charts.cursor, &mut charts.top, count, usize::from(rows).max(1));
    }
}

/// Returns the moment that is shown, with the head replaced by its current revision.
fn fixed_target(app: &App) -> Option<MomentTarget> {
    let view = app.state.view.as_ref()?;
    match (view.target, view.revision) {
        (MomentTarget::Head, Some(revision)) => Some(MomentTarget::Sequence(revision)),
        (MomentTarget::Head, None) => None,
        (target, _) => Some(target),
    }
}

/// Selects another row.
pub(super) fn move_to_row(app: &mut App, row: usize) -> Vec<AppEffect> {
    let moved = row != app.timeline.cursor;
    app.timeline.cursor = row;
    scroll(app);
    let mut effects = Vec::new();
    if moved {
        app.state.before = fixed_target(app);
        effects.push(state(app));
    }
    effects.extend(load_ahead(app));
    effects
}

/// Requests the state at the selected moment.
pub(super) fn state(app: &mut App) -> AppEffect {
    let (target, since, tab) = (app.target(), app.state.before, app.state.tab);
    app.ask(WorkerRequest::State { target, since, tab })
}

/// Requests the state again after the head has moved.
pub(super) fn follow(app: &mut App) -> AppEffect {
    app.state.before = fixed_target(app);
    state(app)
}

pub(super) fn show_tab(app: &mut App, tab: StateTab) -> Vec<AppEffect> {
    app.state.tab = tab;
    app.state.cursor = 0;
    app.state.top = 0;
    vec![state(app)]
}

/// Loads more rows if few are left.
pub(super) fn load_ahead(app: &mut App) -> Vec<AppEffect> {
    if app.timeline.loading {
        return Vec::new();
    }
    let left = app.timeline.rows.len().saturating_sub(app.timeline.cursor);
    if left < PREFETCH_ROWS
        && let Some(place) = app.timeline.older
    {
        return load(app, PageAnchor::Before(place));
    }
    if app.timeline.cursor < PREFETCH_ROWS
        && !app.timeline.at_newest
        && let Some(place) = app.timeline.newer
    {
        return load(app, PageAnchor::After(place));
    }
    Vec::new()
}

/// Requests a part of the timeline.
pub(super) fn load(app: &mut App, from: PageAnchor) -> Vec<AppEffect> {
    app.timeline.loading = true;
    let filter = app.timeline.filter.clone();
    // Words and kinds are searched at every level of detail.
    let wide = !filter.words.is_empty() || !filter.kinds.is_empty();
    let level = if wide { TimelineLevel::Everything } else { app.timeline.level };
    vec![app.ask(WorkerRequest::Page { level, filter, from, limit: PAGE_ROWS })]
}

/// Loads the timeline again and keeps the selection.
pub(super) fn reload(app: &mut App) -> Vec<AppEffect> {
    match app.row() {
        Some(row) if row.target != MomentTarget::Head => {
            let place = row.place;
            seek(app, place)
        }
        _ => load(app, PageAnchor::Newest),
    }
}

/// Moves to a position.
pub(super) fn seek(app: &mut App, place: HistoryPosition) -> Vec<AppEffect> {
    app.timeline.seek = Some(place);
    load(app, PageAnchor::Around(place))
}
