//! Updates the browser for each event, and returns the effects to execute. No I/O, no clock.

mod input;
mod navigation;
mod reply;

use crate::action::{BrowserAction, BrowserCommand};
use crate::answer::StateTab;
use crate::app::{App, AppStage, ChartsPane, InputPurpose, OverlayPane, PaneFocus, SheetPane};
use crate::effect::{AppEffect, LandmarkKind, MomentTarget, PaneSlot, WorkerRequest, WriteRequest};
use crate::layout::WindowLayout;
use crate::sheet;
use crate::theme::TextTone;
use forge_store::model::{Key, Kind};
use forge_store::store::{HistoryPosition, HistoryRank, PageDirection};

/// Starts with a session; `None`: the current one.
pub fn begin(app: &mut App, session: Option<String>) -> Vec<AppEffect> {
    app.stage = AppStage::Loading;
    vec![app.ask(WorkerRequest::Open(session))]
}

/// Handles an event.
pub fn update(app: &mut App, action: BrowserAction) -> Vec<AppEffect> {
    match action {
        BrowserAction::Key(chord) => {
            let mode = app.mode();
            match app.keymap.command(mode, chord) {
                Some(command) => run(app, command),
                None => match chord.typed() {
                    Some(letter) => input::typed(app, &letter.to_string()),
                    None => Vec::new(),
                },
            }
        }
        BrowserAction::Paste(text) => input::typed(app, &text),
        BrowserAction::Click { x, y } => click(app, x, y),
        BrowserAction::Wheel(rows) => navigation::move_by(app, isize::from(rows)),
        BrowserAction::Resize { width, height } => {
            (app.width, app.height) = (width, height);
            navigation::scroll(app);
            refresh_activity(app)
        }
        BrowserAction::Tick(now) => {
            app.now = now;
            let mut effects = refresh_strip(app);
            if app.watching || app.stage == AppStage::Loading {
                return effects;
            }
            app.watching = true;
            effects.push(app.ask(WorkerRequest::Watch));
            effects
        }
        BrowserAction::Reply(reply) => {
            let latest = app.asked.get(&reply.slot) == Some(&reply.generation);
            if latest || reply.slot == PaneSlot::Session {
                reply::apply_reply(app, *reply)
            } else {
                Vec::new()
            }
        }
    }
}

/// The minimum time between two counts of the strip while other processes write.
const STRIP_MICROS: i64 = 2_000_000;

/// Requests the strip again if the session has changed since.
fn refresh_strip(app: &mut App) -> Vec<AppEffect> {
    let counted = app.strip.as_ref().map(|strip| (Some(strip.from), Some(strip.to)));
    let old = counted.is_some_and(|range| range != (app.session.first, app.session.last));
    let rested = app.strip_asked.is_none_or(|asked| app.now.micros_since(asked) >= STRIP_MICROS);
    if old && rested { refresh_activity(app) } else { Vec::new() }
}

/// Requests the strip at the width of the window.
fn refresh_activity(app: &mut App) -> Vec<AppEffect> {
    if app.stage != AppStage::Browsing {
        return Vec::new();
    }
    app.strip_asked = Some(app.now);
    let stretches = usize::from(app.width.clamp(1, 400));
    vec![app.ask(WorkerRequest::Strip(stretches))]
}

fn run(app: &mut App, command: BrowserCommand) -> Vec<AppEffect> {
    let page = navigation::page(app);
    match command {
        BrowserCommand::Quit => app.done = true,
        BrowserCommand::Suspend => return vec![AppEffect::Suspend],
        BrowserCommand::Help => push_sheet(app, Some(sheet::help(&app.keymap))),
        BrowserCommand::Accept => return input::accept(app),
        BrowserCommand::Cancel => return input::cancel(app),
        BrowserCommand::Back => return go_back(app),
        BrowserCommand::Erase => return input::erase(app, input::EraseRange::Character),
        BrowserCommand::EraseWord => return input::erase(app, input::EraseRange::Word),
        BrowserCommand::EraseAll => return input::erase(app, input::EraseRange::All),
        BrowserCommand::Down => return navigation::move_by(app, 1),
        BrowserCommand::Up => return navigation::move_by(app, -1),
        BrowserCommand::PageDown => return navigation::move_by(app, page),
        BrowserCommand::PageUp => return navigation::move_by(app, -page),
        BrowserCommand::First => return navigation::first(app),
        BrowserCommand::Last => return navigation::last(app),
        BrowserCommand::Fold | BrowserCommand::FoldAll => {
            navigation::fold(app, command == BrowserCommand::FoldAll);
        }
        BrowserCommand::Open => return open(app),
        BrowserCommand::Refresh => {
            let mut effects = vec![AppEffect::Redraw];
            let session = (!app.session.name.is_empty()).then(|| app.session.name.clone());
            effects.push(app.ask(WorkerRequest::Open(session)));
            return effects;
        }
        BrowserCommand::Copy => return copy(app),
        BrowserCommand::Export => input::ask(app, InputPurpose::Export, "forge-view.txt"),
        _ if app.stage != AppStage::Browsing => {
            if command == BrowserCommand::Sessions {
                return sessions(app);
            }
        }
        _ => return browse(app, command),
    }
    Vec::new()
}

/// Handles a command while the timeline is shown.
fn browse(app: &mut App, command: BrowserCommand) -> Vec<AppEffect> {
    match command {
        BrowserCommand::NextPane => {
            app.focus = if app.focus == PaneFocus::Timeline {
                PaneFocus::State
            } else {
                PaneFocus::Timeline
            };
            navigation::scroll(app);
        }
        BrowserCommand::NextTab => return change_tab(app, 1),
        BrowserCommand::PreviousTab => return change_tab(app, StateTab::ALL.len() - 1),
        BrowserCommand::Search => {
            let typed = app.timeline.typed.clone();
            input::ask(app, InputPurpose::Search, &typed);
        }
        BrowserCommand::Jump => input::ask(app, InputPurpose::Jump, ""),
        BrowserCommand::Create => input::ask(app, InputPurpose::Create, ""),
        BrowserCommand::Branch => input::ask(app, InputPurpose::Branch, ""),
        BrowserCommand::Tag => {
            let checkpoint = app.row().is_some_and(crate::answer::TimelineRow::is_checkpoint);
            if checkpoint {
                input::ask(app, InputPurpose::Tag, "");
            } else {
                app.say(TextTone::Warning, "only checkpoints have tags: press a to make one here");
            }
        }
        BrowserCommand::Restore => return restore(app),
        BrowserCommand::Undo => confirm(app, WriteRequest::Undo),
        BrowserCommand::Redo => confirm(app, WriteRequest::Redo),
        BrowserCommand::Level => {
            app.timeline.level = app.timeline.level.next();
            app.say(TextTone::Plain, format!("showing {}", app.timeline.level.word()));
            return navigation::reload(app);
        }
        BrowserCommand::Mark => {
            let target = app.target();
            app.mark = Some(target);
            app.say(
                TextTone::Plain,
                format!("marked {target}: select another row and press d to compare"),
            );
        }
        BrowserCommand::Diff => return diff(app),
        BrowserCommand::Charts => {
            let stood = app.state.view.as_ref().and_then(|view| view.items.get(app.state.cursor));
            let wanted = stood
                .filter(|item| app.focus == PaneFocus::State && item.key.kind == Kind::Hypothesis)
                .map(|item| item.key.id.clone());
            app.fronts.push(OverlayPane::Charts(ChartsPane { wanted, ..ChartsPane::default() }));
            let target = app.target();
            return vec![app.ask(WorkerRequest::Charts { target })];
        }
        BrowserCommand::Sessions => return sessions(app),
        BrowserCommand::OlderCheckpoint => {
            return find_landmark(app, LandmarkKind::Checkpoint, PageDirection::Older);
        }
        BrowserCommand::NewerCheckpoint => {
            return find_landmark(app, LandmarkKind::Checkpoint, PageDirection::Newer);
        }
        BrowserCommand::OlderTag => {
            return find_landmark(app, LandmarkKind::Tag, PageDirection::Older);
        }
        BrowserCommand::NewerTag => {
            return find_landmark(app, LandmarkKind::Tag, PageDirection::Newer);
        }
        BrowserCommand::OlderCompaction => {
            return find_landmark(app, LandmarkKind::Compaction, PageDirection::Older);
        }
        BrowserCommand::NewerCompaction => {
            return find_landmark(app, LandmarkKind::Compaction, PageDirection::Newer);
        }
        BrowserCommand::OlderStatus => {
            return find_landmark(app, LandmarkKind::Status, PageDirection::Older);
        }
        BrowserCommand::NewerStatus => {
            return find_landmark(app, LandmarkKind::Status, PageDirection::Newer);
        }
        _ => {}
    }
    Vec::new()
}

fn push_sheet(app: &mut App, sheet: Option<crate::answer::TextSheet>) {
    app.status = None;
    app.fronts.push(OverlayPane::Sheet(SheetPane { sheet, ..SheetPane::default() }));
}

fn confirm(app: &mut App, change: WriteRequest) {
    app.fronts.push(OverlayPane::Confirm { change, reading: SheetPane::default() });
}

/// Closes the pane in front, or else clears the filter, or else the mark. Never quits.
fn go_back(app: &mut App) -> Vec<AppEffect> {
    if app.fronts.pop().is_some() {
        return Vec::new();
    }
    if !app.timeline.typed.is_empty() {
        return input::clear_filter(app);
    }
    if app.mark.take().is_none() {
        app.status = None;
        app.focus = PaneFocus::Timeline;
    }
    Vec::new()
}

fn change_tab(app: &mut App, steps: usize) -> Vec<AppEffect> {
    let place = StateTab::ALL.iter().position(|tab| *tab == app.state.tab).unwrap_or(0);
    let tab = StateTab::ALL.get((place + steps) % StateTab::ALL.len()).copied().unwrap_or_default();
    navigation::show_tab(app, tab)
}

fn open(app: &mut App) -> Vec<AppEffect> {
    let request = match app.fronts.last() {
        Some(OverlayPane::Sessions { rows: Some(rows), cursor }) => {
            let chosen = rows.get(*cursor).map(|row| row.id.clone());
            app.fronts.clear();
            return chosen.map_or_else(Vec::new, |id| switch(app, id));
        }
        Some(OverlayPane::Sheet(_)) => {
            navigation::fold(app, false);
            return Vec::new();
        }
        Some(OverlayPane::Charts(charts)) => {
            let data = charts.data.as_ref();
            let Some(series) = data.and_then(|data| data.confidence.get(charts.cursor)) else {
                return Vec::new();
            };
            let key = Key::new(Kind::Hypothesis, series.id.clone());
            WorkerRequest::Detail { target: app.target(), key }
        }
        Some(_) => return Vec::new(),
        None if app.focus == PaneFocus::Timeline => match app.row() {
            Some(row) => WorkerRequest::Moment(Box::new(row.clone())),
            None => return Vec::new(),
        },
        None => {
            let view = app.state.view.as_ref();
            let Some(item) = view.and_then(|view| view.items.get(app.state.cursor)) else {
                return Vec::new();
            };
            WorkerRequest::Detail { target: app.target(), key: item.key.clone() }
        }
    };
    push_sheet(app, None);
    vec![app.ask(request)]
}

/// Switches to another session and resets everything about the old one.
fn switch(app: &mut App, session: String) -> Vec<AppEffect> {
    let level = app.timeline.level;
    app.timeline = crate::app::TimelinePane { level, ..Default::default() };
    app.state = Default::default();
    app.strip = None;
    app.mark = None;
    begin(app, Some(session))
}

fn sessions(app: &mut App) -> Vec<AppEffect> {
    app.fronts.push(OverlayPane::Sessions { rows: None, cursor: 0 });
    vec![app.ask(WorkerRequest::Sessions)]
}

fn diff(app: &mut App) -> Vec<AppEffect> {
    let below = app.timeline.rows.get(app.timeline.cursor + 1).map(|row| row.target);
    let Some(from) = app.mark.or(below) else {
        app.say(TextTone::Warning, "there is nothing before this moment: mark another one with m");
        return Vec::new();
    };
    let to = app.target();
    push_sheet(app, None);
    vec![app.ask(WorkerRequest::Compare { from, to, preview: false })]
}

fn restore(app: &mut App) -> Vec<AppEffect> {
    let target = app.target();
    if target == MomentTarget::Head {
        app.say(TextTone::Warning, "this is the head already: select an earlier moment");
        return Vec::new();
    }
    confirm(app, WriteRequest::Restore { target });
    vec![app.ask(WorkerRequest::Compare { from: MomentTarget::Head, to: target, preview: true })]
}

fn find_landmark(app: &mut App, wanted: LandmarkKind, way: PageDirection) -> Vec<AppEffect> {
    let Some(from) = app.row().map(|row| row.place) else { return Vec::new() };
    vec![app.ask(WorkerRequest::Find { wanted, from, way })]
}

fn copy(app: &mut App) -> Vec<AppEffect> {
    let id = match app.fronts.last() {
        Some(OverlayPane::Sheet(reading)) => reading.sheet.as_ref().map(|sheet| sheet.id.clone()),
        Some(OverlayPane::Sessions { rows: Some(rows), cursor }) => {
            rows.get(*cursor).map(|row| row.id.clone())
        }
        Some(_) => None,
        None if app.focus == PaneFocus::State => app
            .state
            .view
            .as_ref()
            .and_then(|view| view.items.get(app.state.cursor))
            .map(|item| item.key.id.clone()),
        None => app.row().map(|row| row.id.clone()),
    };
    match id.filter(|id| !id.is_empty()) {
        Some(id) => {
            app.say(TextTone::Good, format!("copied {id}"));
            vec![AppEffect::Copy(id)]
        }
        None => {
            app.say(TextTone::Warning, "there is no id here");
            Vec::new()
        }
    }
}

fn click(app: &mut App, x: u16, y: u16) -> Vec<AppEffect> {
    let at = ratatui::layout::Position { x, y };
    if !app.fronts.is_empty() {
        let front = WindowLayout::front(app);
        if front.contains(at) && y > front.y {
            navigation::click_front(app, usize::from(y - front.y - 1));
        }
        return Vec::new();
    }
    if app.stage != AppStage::Browsing {
        return Vec::new();
    }
    let layout = WindowLayout::from_app(app);
    if layout.timeline.contains(at) {
        app.focus = PaneFocus::Timeline;
        let row = app.timeline.top + usize::from(y - layout.timeline.y);
        if row == app.timeline.cursor {
            return open(app);
        }
        return if row < app.timeline.rows.len() {
            navigation::move_to_row(app, row)
        } else {
            Vec::new()
        };
    }
    if layout.state.contains(at) {
        app.focus = PaneFocus::State;
        let line = usize::from(y - layout.state.y);
        let items = app.state.view.as_ref().map_or(0, |view| view.items.len());
        if line >= 2 && app.state.top + line - 2 < items {
            app.state.cursor = app.state.top + line - 2;
        }
        return Vec::new();
    }
    if layout.strip.contains(at)
        && let Some(strip) = &app.strip
    {
        let span = i128::from(strip.to.micros_since(strip.from));
        let offset = span * i128::from(x + 1) / i128::from(app.width.max(1));
        let time = strip.from.plus_micros(i64::try_from(offset).unwrap_or(0));
        return navigation::seek(
            app,
            HistoryPosition { time, rank: HistoryRank::Sequence(u64::MAX) },
        );
    }
    Vec::new()
}
