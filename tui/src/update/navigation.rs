//! Moves the selection, and loads the rows that the new selection needs.

use super::{brief, choose, selection};
use crate::app::App;
use crate::effect::{AppEffect, MomentTarget, PageAnchor, WorkerRequest};
use crate::layout::WindowLayout;
use crate::panes::{OverlayPane, PaneFocus};
use crate::query::TimelineLevel;
use crate::sheet;
use crate::window::scroll_timeline;
use forge_store::store::HistoryPosition;

/// The maximum number of timeline rows that one request loads.
pub(super) const PAGE_ROWS: usize = 120;
/// More rows are loaded if fewer than this are loaded on one side of the selection.
const PREFETCH_ROWS: usize = 60;
/// If more timeline rows than this are loaded, rows far from the selection are dropped.
pub(super) const MAX_ROWS: usize = 1200;

/// Returns by how many rows a page key moves: the visible rows except one.
pub(super) fn page(app: &App) -> isize {
    let inside =
        |pane| usize::from(WindowLayout::inside(WindowLayout::from_app(app).area(pane)).height);
    let rows = match app.overlays.last() {
        Some(_) => WindowLayout::sheet_rows(app),
        None if app.focus == PaneFocus::Held => WindowLayout::held_rows(app),
        None if app.focus == PaneFocus::Detail => inside(PaneFocus::Detail),
        None => WindowLayout::story_rows(app),
    };
    isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1)
}

/// Moves the selection or scrolls by this number of rows on the screen, up if negative.
pub(super) fn move_by(app: &mut App, rows: isize) -> Vec<AppEffect> {
    let step = |cursor: usize, count: usize| {
        cursor.saturating_add_signed(rows).min(count.saturating_sub(1))
    };
    if !app.overlays.is_empty() {
        return front_to(app, step);
    }
    match app.focus {
        PaneFocus::Detail => {
            scroll_detail(app, rows);
            Vec::new()
        }
        PaneFocus::Held => held_to(app, step),
        PaneFocus::Time => {
            app.chart.cursor = step(app.chart.cursor, app.chart.count());
            Vec::new()
        }
        PaneFocus::Story => {
            let count = app.timeline.rows.len();
            let rows = if app.timeline.turned { rows } else { rows.saturating_neg() };
            let cursor = app.timeline.cursor.saturating_add_signed(rows);
            move_to_row(app, cursor.min(count.saturating_sub(1)))
        }
    }
}

/// Moves the selection in the pane that shows the state, and scrolls the brief there.
/// `to` computes the new row from the selected row and the number of rows.
fn held_to(app: &mut App, to: impl Fn(usize, usize) -> usize) -> Vec<AppEffect> {
    let before = app.state.cursor;
    app.state.cursor = to(before, held_count(app));
    scroll(app);
    let moved = app.state.cursor != before;
    if moved && selection::held_entity(app).is_some() { selection::detail(app) } else { Vec::new() }
}

/// Returns how many rows the pane that shows the state has.
fn held_count(app: &App) -> usize {
    if app.state.tab == crate::answer::StateTab::Brief {
        return app.state.lines.len();
    }
    app.state.view.as_ref().map_or(0, |view| view.items.len())
}

pub(super) fn scroll_detail(app: &mut App, rows: isize) {
    let inside = WindowLayout::inside(WindowLayout::from_app(app).detail);
    let count =
        app.detail.sheet.as_ref().map_or(0, |read| sheet::wrap_sheet(read, inside.width).len());
    let last = count.saturating_sub(usize::from(inside.height));
    app.detail.top = app.detail.top.saturating_add_signed(rows).min(last);
}

fn front_to(app: &mut App, to: impl Fn(usize, usize) -> usize) -> Vec<AppEffect> {
    let width = WindowLayout::inside(WindowLayout::front(app)).width;
    let choices = choose::count(app);
    match app.overlays.last_mut() {
        Some(OverlayPane::Sheet(reading) | OverlayPane::Confirm { reading, .. }) => {
            let count =
                reading.sheet.as_ref().map_or(0, |read| sheet::wrap_sheet(read, width).len());
            reading.cursor = to(reading.cursor, count);
        }
        Some(OverlayPane::Sessions { rows: Some(rows), cursor, .. }) => {
            *cursor = to(*cursor, rows.len());
        }
        Some(OverlayPane::Charts) => app.chart.cursor = to(app.chart.cursor, app.chart.count()),
        Some(OverlayPane::Find(find)) => find.cursor = to(find.cursor, choices),
        Some(OverlayPane::Help { cursor, .. }) => *cursor = to(*cursor, choices),
        _ => {}
    }
    scroll(app);
    Vec::new()
}

pub(super) fn click_front(app: &mut App, line: usize) {
    let top = match app.overlays.last() {
        Some(OverlayPane::Sheet(reading)) => reading.top,
        Some(OverlayPane::Sessions { .. }) => 0,
        _ => return,
    };
    front_to(app, |_, count| (top + line).min(count.saturating_sub(1)));
}

/// Moves to the beginning.
pub(super) fn first(app: &mut App) -> Vec<AppEffect> {
    if !app.overlays.is_empty() {
        return front_to(app, |_, _| 0);
    }
    match app.focus {
        PaneFocus::Story | PaneFocus::Time => {}
        PaneFocus::Held => return held_to(app, |_, _| 0),
        PaneFocus::Detail => {
            app.detail.top = 0;
            return Vec::new();
        }
    }
    if app.timeline.older.is_none() {
        return move_to_row(app, app.timeline.rows.len().saturating_sub(1));
    }
    load(app, PageAnchor::Oldest)
}

/// Moves to the end. In the timeline, this is the head: the selection then follows new writes.
pub(super) fn last(app: &mut App) -> Vec<AppEffect> {
    if !app.overlays.is_empty() {
        return front_to(app, |_, count| count.saturating_sub(1));
    }
    match app.focus {
        PaneFocus::Story | PaneFocus::Time => {}
        PaneFocus::Held => return held_to(app, |_, count| count.saturating_sub(1)),
        PaneFocus::Detail => {
            scroll_detail(app, isize::MAX);
            return Vec::new();
        }
    }
    if app.timeline.at_newest {
        return move_to_row(app, 0);
    }
    load(app, PageAnchor::Newest)
}

/// Folds or unfolds the selected section, or all sections with a title. In charts, draws or hides
/// the selected hypothesis, or all hypotheses that are not open any more.
pub(super) fn fold(app: &mut App, all: bool) {
    let in_charts = matches!(app.overlays.last(), Some(OverlayPane::Charts));
    if in_charts || (app.overlays.is_empty() && app.focus == PaneFocus::Time) {
        if all {
            app.chart.toggle_settled();
        } else {
            app.chart.toggle();
        }
        return;
    }
    let width = WindowLayout::inside(WindowLayout::front(app)).width;
    if let Some(OverlayPane::Sheet(reading)) = app.overlays.last_mut()
        && let Some(read) = &mut reading.sheet
    {
        let Some(section) =
            sheet::wrap_sheet(read, width).get(reading.cursor).map(|line| line.section)
        else {
            return;
        };
        if all {
            let folded = read.sections.iter().any(|section| !section.folded);
            let titled = read.sections.iter_mut().filter(|section| !section.title.is_empty());
            titled.for_each(|section| section.folded = folded);
        } else if let Some(section) = read.sections.get_mut(section)
            && !section.title.is_empty()
        {
            section.folded = !section.folded;
        }
        let shown = sheet::wrap_sheet(read, width);
        let heading = shown.iter().position(|line| line.section == section && line.heading);
        reading.cursor = heading.unwrap_or(reading.cursor);
    }
    scroll(app);
}

/// Scrolls so that the selection is visible.
pub(super) fn scroll(app: &mut App) {
    let clamp = |cursor: &mut usize, top: &mut usize, count: usize, rows: usize| {
        *cursor = (*cursor).min(count.saturating_sub(1));
        *top = (*top).min(*cursor).max((*cursor + 1).saturating_sub(rows));
    };
    scroll_timeline(app);
    brief::fit(app);
    let (rows, count) = (WindowLayout::held_rows(app), held_count(app));
    clamp(&mut app.state.cursor, &mut app.state.top, count, rows);
    scroll_detail(app, 0);
    let width = WindowLayout::inside(WindowLayout::front(app)).width;
    let rows = WindowLayout::sheet_rows(app);
    if let Some(OverlayPane::Sheet(reading) | OverlayPane::Confirm { reading, .. }) =
        app.overlays.last_mut()
    {
        let count = reading.sheet.as_ref().map_or(0, |read| sheet::wrap_sheet(read, width).len());
        clamp(&mut reading.cursor, &mut reading.top, count, rows);
    }
}

/// Returns the moment that is shown. For the head, returns the revision that is shown.
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
    let before = (app.timeline.cursor, app.target());
    app.timeline.cursor = row;
    let at_end = row == 0 && app.timeline.at_newest && !app.timeline.rows.is_empty();
    app.timeline.following = at_end && app.timeline.filter.is_empty();
    if at_end {
        app.timeline.arrived = 0;
    }
    scroll(app);
    let mut effects = Vec::new();
    if (row, app.target()) != before {
        app.state.before = fixed_target(app);
        effects.extend(selection::changed(app));
    }
    effects.extend(load_ahead(app));
    effects
}

/// Requests the parts that depend on the head again, after the head has moved.
pub(super) fn follow(app: &mut App) -> Vec<AppEffect> {
    app.state.before = fixed_target(app);
    selection::changed(app)
}

/// Loads more rows if few are loaded on one side of the selection.
pub(super) fn load_ahead(app: &mut App) -> Vec<AppEffect> {
    if app.timeline.loading || app.timeline.is_story() {
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
    // A filter searches every level of detail.
    let wide = !filter.is_empty();
    let level = if wide { TimelineLevel::Everything } else { app.timeline.level };
    vec![app.ask(WorkerRequest::Page { level, filter, from, limit: PAGE_ROWS })]
}

/// Loads the timeline again and keeps the selection.
pub(super) fn reload(app: &mut App) -> Vec<AppEffect> {
    match app.row() {
        Some(row) if row.target != MomentTarget::Head => {
            let (place, target) = (row.place, row.target);
            seek(app, place, target)
        }
        _ => load(app, PageAnchor::Newest),
    }
}

/// Loads the rows around `place`, and then selects the row of `target`.
pub(super) fn seek(app: &mut App, place: HistoryPosition, target: MomentTarget) -> Vec<AppEffect> {
    app.timeline.seek = Some((place, target));
    load(app, PageAnchor::Around(place))
}
