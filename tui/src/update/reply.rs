//! Handles the answers of the worker.

use super::{editor, navigation, refresh_activity, selection, story};
use crate::answer::{
    RowSign, SessionOverview, StateTab, TextSheet, TimelineRow, WorkerAnswer, WorkerFailure,
    WorkerReply,
};
use crate::app::{App, AppStage};
use crate::effect::{AppEffect, MomentTarget, PageAnchor, PaneSlot, WorkerRequest, WriteRequest};
use crate::panes::{OverlayPane, SheetPane};
use crate::query::TimelineLevel;
use crate::sheet;
use crate::theme::TextTone;
use forge_store::store::{HistoryPosition, HistoryRank};

pub(super) fn apply_reply(app: &mut App, reply: WorkerReply) -> Vec<AppEffect> {
    match reply.answer {
        Ok(answer) => {
            app.unsent.remove(&reply.request_number);
            apply_answer(app, reply.slot, answer)
        }
        Err(mut failure) => {
            // The person knows the session by its name.
            if !app.session.id.is_empty() {
                failure.message = failure.message.replace(&app.session.id, &app.session.name);
            }
            failed(app, reply.request_number, reply.slot, failure)
        }
    }
}

fn failed(
    app: &mut App,
    request_number: u64,
    slot: PaneSlot,
    failure: WorkerFailure,
) -> Vec<AppEffect> {
    match slot {
        PaneSlot::Watch => app.watching = false,
        PaneSlot::Page => app.timeline.loading = false,
        PaneSlot::Story => app.story_loading = false,
        _ => {}
    }
    if app.stage == AppStage::Loading {
        if slot != PaneSlot::Session || app.session.id.is_empty() {
            app.stage = AppStage::Failed(failure);
            return Vec::new();
        }
        // Another session cannot be opened: the one before stays.
        refused(app, request_number, failure);
        let before = std::mem::take(&mut app.session.id);
        return vec![app.ask(WorkerRequest::Open(Some(before)))];
    }
    match slot {
        PaneSlot::State => {
            app.state.view = None;
            app.state.failure = Some(failure);
        }
        PaneSlot::Detail => app.detail.sheet = Some(sheet::failure(&failure)),
        PaneSlot::Brief => {
            app.state.brief = None;
            app.state.failure = Some(failure);
        }
        PaneSlot::Sheet => match app.overlays.last_mut() {
            Some(OverlayPane::Sheet(reading) | OverlayPane::Confirm { reading, .. }) => {
                reading.sheet = Some(sheet::failure(&failure));
            }
            Some(OverlayPane::Sessions { .. }) => {
                app.overlays.pop();
                refused(app, request_number, failure);
            }
            _ => {}
        },
        _ => refused(app, request_number, failure),
    }
    Vec::new()
}

/// Says why a request failed, and shows its text in the input again.
fn refused(app: &mut App, request_number: u64, failure: WorkerFailure) {
    let WorkerFailure { message, advice, .. } = failure;
    let space = if advice.is_empty() { "" } else { ": " };
    editor::restore(app, request_number);
    app.say(TextTone::Bad, format!("{message}{space}{advice}"));
}

fn apply_answer(app: &mut App, slot: PaneSlot, answer: WorkerAnswer) -> Vec<AppEffect> {
    match answer {
        WorkerAnswer::Opened(overview) => return opened(app, *overview),
        WorkerAnswer::NoSession => app.stage = AppStage::Empty,
        WorkerAnswer::Page { from, rows, older, newer } => {
            return page(app, from, rows, older, newer);
        }
        WorkerAnswer::State(view) => {
            app.state.failure = None;
            app.state.view = Some(*view);
            navigation::scroll(app);
        }
        WorkerAnswer::Sheet(sheet) if slot == PaneSlot::Detail => {
            app.detail.sheet = Some(*sheet);
            navigation::scroll(app);
        }
        WorkerAnswer::Sheet(sheet) | WorkerAnswer::RestorePlan { sheet: Some(sheet), .. } => {
            put_sheet(app, *sheet);
        }
        WorkerAnswer::RestorePlan { target, sheet: None } => {
            app.overlays.pop();
            let at = app.zone.moment(target);
            app.say(TextTone::Plain, format!("the claims are what they were at {at} already"));
        }
        WorkerAnswer::Story(view) => return story::put(app, *view),
        WorkerAnswer::Brief { target, brief } => {
            if target == app.target() {
                app.state.brief = Some((target, brief));
                app.state.lines_for = None;
            }
            navigation::scroll(app);
        }
        WorkerAnswer::UndoPlan { redo, sheet } => match (sheet, app.overlays.last()) {
            (None, Some(OverlayPane::Confirm { .. })) => {
                app.overlays.pop();
                let text = if redo { "there is no undo to take back" } else { "nothing to undo" };
                app.say(TextTone::Plain, text);
            }
            (Some(sheet), Some(OverlayPane::Confirm { change, .. }))
                if *change == (if redo { WriteRequest::Redo } else { WriteRequest::Undo }) =>
            {
                put_sheet(app, *sheet);
            }
            _ => {}
        },
        WorkerAnswer::Strip(strip) => app.strip = Some(*strip),
        WorkerAnswer::Found { place: Some((place, target)), what } => {
            app.say(TextTone::Plain, what);
            return story::go_to(app, place, target);
        }
        WorkerAnswer::Found { place: None, what } => app.say(TextTone::Warning, what),
        WorkerAnswer::Sessions { rows: found, unpushed: left } => {
            if let Some(OverlayPane::Sessions { rows, unpushed, cursor }) = app.overlays.last_mut()
            {
                *cursor = found.iter().position(|row| row.current).unwrap_or(0);
                (*rows, *unpushed) = (Some(found), left);
            }
        }
        WorkerAnswer::Watched(position) => {
            app.watching = false;
            if position != app.session.position || matches!(app.stage, AppStage::Failed(_)) {
                let name = app.session.id.clone();
                return vec![app.ask(WorkerRequest::Open((!name.is_empty()).then_some(name)))];
            }
        }
        WorkerAnswer::Done { message, command } => {
            let command = if command.is_empty() { command } else { format!("   $ {command}") };
            app.say(TextTone::Good, format!("{message}{command}"));
            // The story is read again without a pause, so that it shows this write.
            app.story_requested = None;
            app.looked.own = true;
            let name = app.session.id.clone();
            return vec![app.ask(WorkerRequest::Open((!name.is_empty()).then_some(name)))];
        }
    }
    Vec::new()
}

fn put_sheet(app: &mut App, sheet: TextSheet) {
    if let Some(OverlayPane::Sheet(reading) | OverlayPane::Confirm { reading, .. }) =
        app.overlays.last_mut()
    {
        *reading = SheetPane { sheet: Some(sheet), ..SheetPane::default() };
    }
}

fn opened(app: &mut App, overview: SessionOverview) -> Vec<AppEffect> {
    let first = app.stage != AppStage::Browsing || app.session.id != overview.id;
    let empty = overview.last.is_none();
    let unmoved = app.session.position == overview.position;
    // Then rows on all loaded pages may have been removed too.
    let was_pruned = overview.checkpoints < app.session.checkpoints;
    app.session = overview;
    if empty {
        app.stage = AppStage::Empty;
        return Vec::new();
    }
    app.stage = AppStage::Browsing;
    if first {
        if !story::is_wanted(app) || app.session.count + app.session.facts > story::MAX_RECORDS {
            // A very long session opens with its revisions, which are read in pages. Its brief
            // would take long.
            app.timeline.level = TimelineLevel::Revisions;
            app.state.tab = StateTab::Hypotheses;
        }
        let mut effects = if app.timeline.is_story() {
            app.timeline.loading = true;
            app.timeline.following = true;
            story::refresh(app)
        } else {
            navigation::load(app, PageAnchor::Newest)
        };
        effects.extend(selection::held(app));
        effects.extend(refresh_activity(app));
        return effects;
    }
    let mut effects = story::refresh(app);
    // If the newest rows are not loaded, a write can only have changed tags on the screen, or
    // removed rows. Then the rows are only read again on request.
    if app.timeline.is_story() || app.timeline.loading {
    } else if unmoved || was_pruned {
        effects.extend(navigation::reload(app));
    } else if app.timeline.at_newest {
        effects.extend(navigation::load(app, PageAnchor::Newest));
    }
    if app.target() == MomentTarget::Head {
        effects.extend(navigation::follow(app));
    }
    effects
}

/// Returns the row of the head, which is the first one.
fn head(app: &App) -> Option<TimelineRow> {
    let last = app.session.last?;
    let branch = app.session.branch.clone();
    let place = HistoryPosition { time: last, rank: HistoryRank::Sequence(u64::MAX) };
    Some(TimelineRow {
        title: format!("the head of {branch}: {} claims held", app.session.claims),
        sign: RowSign::Head,
        id: "HEAD".to_owned(),
        weight: 3,
        ..TimelineRow::new(place, MomentTarget::Head, branch)
    })
}

fn page(
    app: &mut App,
    from: PageAnchor,
    rows: Vec<TimelineRow>,
    older: Option<HistoryPosition>,
    newer: Option<HistoryPosition>,
) -> Vec<AppEffect> {
    app.timeline.loading = false;
    if app.timeline.is_story() {
        return Vec::new();
    }
    app.find = None;
    let stood = app.row().map(|row| (row.place, row.target));
    let before = stood.map(|(_, target)| target);
    match from {
        PageAnchor::Before(_) => {
            let empty = rows.is_empty();
            app.timeline.rows.extend(rows);
            app.timeline.older = older;
            // A filter may exclude all rows of a page: continue with the next page.
            if empty && app.timeline.older.is_some() {
                return navigation::load_ahead(app);
            }
            let extra = app.timeline.rows.len().saturating_sub(navigation::MAX_ROWS);
            let extra = extra.min(app.timeline.top);
            if extra > 0 {
                app.timeline.rows.drain(..extra);
                app.timeline.cursor -= extra;
                app.timeline.top -= extra;
                app.timeline.newer = app.timeline.rows.first().map(|row| row.place);
                app.timeline.at_newest = false;
            }
        }
        PageAnchor::After(_) => {
            let added = put_front(app, rows, newer);
            app.timeline.cursor += added;
            app.timeline.top += added;
            if app.timeline.rows.len() > navigation::MAX_ROWS {
                let keep = navigation::MAX_ROWS.max(app.timeline.cursor + 1);
                app.timeline.rows.truncate(keep);
                app.timeline.older = app.timeline.rows.last().map(|row| row.place);
            }
        }
        PageAnchor::Newest => newest(app, rows, older, stood),
        PageAnchor::Around(_) | PageAnchor::Oldest => {
            app.timeline.rows.clear();
            app.timeline.at_newest = false;
            put_front(app, rows, newer);
            app.timeline.older = older;
            app.timeline.cursor = match (from, app.timeline.seek.take()) {
                (PageAnchor::Oldest, _) | (_, None) => app.timeline.rows.len().saturating_sub(1),
                (_, Some((place, target))) => {
                    // Several facts can have the same time.
                    let rows = &app.timeline.rows;
                    let exact = rows.iter().position(|row| row.place == place);
                    let same = || rows.iter().position(|row| row.target == target);
                    exact.or_else(same).unwrap_or_else(|| story::row_at(app, place))
                }
            };
            app.timeline.top = app.timeline.cursor;
        }
    }
    navigation::scroll(app);
    let mut effects = Vec::new();
    if app.row().map(|row| row.target) != before {
        app.state.before =
            before.filter(|target| *target != MomentTarget::Head).or(app.state.before);
        effects.extend(selection::changed(app));
    }
    effects.extend(navigation::load_ahead(app));
    effects
}

/// Inserts rows at the front, and the head before them if the newest rows are loaded. Returns the
/// number of inserted rows.
fn put_front(app: &mut App, rows: Vec<TimelineRow>, newer: Option<HistoryPosition>) -> usize {
    let mut added = rows.len();
    app.timeline.rows.splice(0..0, rows);
    app.timeline.newer = newer;
    app.timeline.at_newest = newer.is_none();
    if app.timeline.at_newest
        && app.timeline.filter.is_empty()
        && let Some(head) = head(app)
    {
        app.timeline.rows.insert(0, head);
        added += 1;
    }
    added
}

/// Adds the newest rows. A selection of the head stays at the head; any other selection does not
/// move.
fn newest(
    app: &mut App,
    rows: Vec<TimelineRow>,
    older: Option<HistoryPosition>,
    stood: Option<(HistoryPosition, MomentTarget)>,
) {
    let follows = stood.is_none_or(|(_, target)| target == MomentTarget::Head);
    let old = std::mem::take(&mut app.timeline.rows);
    let was_newest = app.timeline.at_newest && app.timeline.filter.is_empty();
    let oldest_new = rows.last().map(|row| row.place);
    let first_old = old.iter().find(|row| row.target != MomentTarget::Head).map(|row| row.place);
    if !follows && was_newest && app.timeline.filter.is_empty() && first_old < oldest_new {
        // There are more new rows than one page holds: they are loaded when the user scrolls there.
        app.timeline.rows = old;
        app.timeline.at_newest = false;
        app.timeline.newer = first_old;
        return;
    }
    put_front(app, rows, None);
    app.timeline.older = older;
    if follows || !was_newest || !app.timeline.filter.is_empty() {
        app.timeline.cursor = 0;
        app.timeline.top = 0;
        return;
    }
    let Some((place, _)) = stood else { return };
    // The rows loaded before continue after the new ones, unless these reach the beginning, or
    // there are more new rows than one page holds.
    let rest = old.into_iter().filter(|row| older.is_some() && row.target != MomentTarget::Head);
    let rest: Vec<TimelineRow> =
        rest.filter(|row| oldest_new.is_some_and(|last| row.place < last)).collect();
    if let Some(last) = rest.last() {
        app.timeline.older = Some(last.place);
        app.timeline.rows.extend(rest);
    }
    let offset = app.timeline.cursor.saturating_sub(app.timeline.top);
    app.timeline.cursor = story::row_at(app, place);
    app.timeline.top = app.timeline.cursor.saturating_sub(offset);
}
