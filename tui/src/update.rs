//! Updates the browser for each event, and returns the effects to execute. No I/O, no clock.

mod brief;
mod chart;
mod chips;
mod choose;
mod editor;
mod input;
mod landmark;
mod navigation;
mod news;
mod pointer;
mod reply;
mod selection;
mod share;
mod story;
mod write;

pub(crate) use choose::searched_text;

use crate::action::{BrowserAction, BrowserCommand};
use crate::answer::StateTab;
use crate::app::{App, AppStage, STORY_REVISIONS};
use crate::effect::{AppEffect, MomentTarget, PaneSlot, WorkerRequest, WriteRequest};
use crate::keymap::KeyMode;
use crate::panes::{FindState, InputPurpose, OverlayPane, PaneFocus, SheetPane};
use crate::theme::TextTone;

/// Opens a session at the start; `None`: the current one.
pub fn begin(app: &mut App, session: Option<String>) -> Vec<AppEffect> {
    app.stage = AppStage::Loading;
    vec![app.ask(WorkerRequest::Open(session))]
}

/// Handles an event.
pub fn update(app: &mut App, action: BrowserAction) -> Vec<AppEffect> {
    news::looked(app, &action);
    match action {
        BrowserAction::Key(chord) => {
            let mode = app.mode();
            let is_typing = matches!(mode, KeyMode::Input | KeyMode::Choose);
            if let Some(letter) = chord.typed().filter(|_| is_typing) {
                return input::typed(app, &letter.to_string());
            }
            // A message stays until the next key.
            app.status = None;
            app.keymap.command(mode, chord).map_or_else(Vec::new, |command| run(app, command))
        }
        BrowserAction::Paste(text) => input::typed(app, &text),
        BrowserAction::Click { x, y } => pointer::click(app, x, y),
        BrowserAction::Wheel(rows) => navigation::move_by(app, isize::from(rows)),
        BrowserAction::Resize { width, height } => {
            (app.width, app.height) = (width, height);
            navigation::scroll(app);
            refresh_activity(app)
        }
        BrowserAction::Focus(_) => Vec::new(),
        BrowserAction::Edited(text) => editor::submit_edited(app, text),
        BrowserAction::Reported { request_number, said } => {
            match said {
                Ok(said) => {
                    app.unsent.remove(&request_number);
                    app.say(TextTone::Good, said);
                }
                Err(problem) => {
                    editor::restore(app, request_number);
                    app.say(TextTone::Bad, problem);
                }
            }
            Vec::new()
        }
        BrowserAction::Tick(now) => tick(app, now),
        BrowserAction::Reply(reply) => {
            let latest = app.requested.get(&reply.slot) == Some(&reply.request_number);
            if latest || reply.slot == PaneSlot::Session {
                reply::apply_reply(app, *reply)
            } else {
                Vec::new()
            }
        }
    }
}

fn tick(app: &mut App, now: forge_store::model::Timestamp) -> Vec<AppEffect> {
    app.now = now;
    let mut effects = refresh_strip(app);
    effects.extend(selection::step_replay(app));
    effects.extend(story::refresh(app));
    if app.watching || app.stage == AppStage::Loading {
        return effects;
    }
    app.watching = true;
    effects.push(app.ask(WorkerRequest::Watch));
    effects
}

/// The minimum time between two counts of the strip while other processes write.
const STRIP_MICROS: i64 = 2_000_000;

/// Requests the strip again if the session has changed since, but not too often.
fn refresh_strip(app: &mut App) -> Vec<AppEffect> {
    let counted = app.strip.as_ref().map(|strip| (Some(strip.from), Some(strip.to)));
    let old = counted.is_some_and(|range| range != (app.session.first, app.session.last));
    let rested =
        app.strip_requested.is_none_or(|asked| app.now.micros_since(asked) >= STRIP_MICROS);
    if old && rested { refresh_activity(app) } else { Vec::new() }
}

/// Requests the strip at the width of the window, unless the story is read, which has all events.
fn refresh_activity(app: &mut App) -> Vec<AppEffect> {
    if app.stage != AppStage::Browsing || story::is_wanted(app) {
        return Vec::new();
    }
    app.strip_requested = Some(app.now);
    let period_count = usize::from(app.width.clamp(1, 400));
    vec![app.ask(WorkerRequest::Strip(period_count))]
}

fn run(app: &mut App, command: BrowserCommand) -> Vec<AppEffect> {
    match command {
        BrowserCommand::Quit => app.done = true,
        BrowserCommand::Close => {
            if app.overlays.is_empty() && !app.zoomed {
                app.done = true;
            } else {
                return go_back(app);
            }
        }
        BrowserCommand::Suspend => return vec![AppEffect::Suspend],
        BrowserCommand::Help => {
            let mode = app.mode();
            app.overlays.push(OverlayPane::Help { mode, typed: String::new(), cursor: 0 });
        }
        BrowserCommand::Accept => return input::accept(app),
        BrowserCommand::Cancel => return input::cancel(app),
        BrowserCommand::Back => return go_back(app),
        BrowserCommand::Erase(range) => return input::erase(app, range),
        BrowserCommand::MoveRows(rows) => return navigation::move_by(app, rows),
        BrowserCommand::MovePages(pages) => {
            let rows = pages * navigation::page(app);
            return navigation::move_by(app, rows);
        }
        BrowserCommand::First => return navigation::first(app),
        BrowserCommand::Last => return navigation::last(app),
        BrowserCommand::Fold { all } => navigation::fold(app, all),
        BrowserCommand::Open => return selection::open(app),
        BrowserCommand::Refresh => {
            let mut effects = vec![AppEffect::Redraw];
            let session = (!app.session.id.is_empty()).then(|| app.session.id.clone());
            app.story_position = 0;
            effects.push(app.ask(WorkerRequest::Open(session)));
            return effects;
        }
        BrowserCommand::Copy => return share::copy(app),
        BrowserCommand::CopyMarkdown => return share::copy_markdown(app),
        BrowserCommand::Editor => return editor::open(app),
        BrowserCommand::StepChip(steps) => chips::select(app, steps),
        BrowserCommand::ToggleChip => return chips::switch(app),
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
        BrowserCommand::StepPane(steps) => return selection::focus_by(app, steps),
        BrowserCommand::Pane(pane) => return selection::focus(app, pane),
        BrowserCommand::Zoom => {
            app.zoomed = !app.zoomed;
            navigation::scroll(app);
        }
        BrowserCommand::StepTab(steps) => return change_tab(app, steps),
        BrowserCommand::Find => {
            app.status = None;
            app.overlays.push(OverlayPane::Find(FindState::default()));
        }
        BrowserCommand::StepMatch(direction) => return choose::step_match(app, direction),
        BrowserCommand::Filter => {
            let typed = app.timeline.typed.clone();
            app.chip = 0;
            input::ask(app, InputPurpose::Filter, &typed);
        }
        BrowserCommand::Jump => input::ask(app, InputPurpose::Jump, ""),
        BrowserCommand::Create => input::ask(app, InputPurpose::Create, ""),
        BrowserCommand::Branch => input::ask(app, InputPurpose::Branch, ""),
        BrowserCommand::Tag => {
            if selection::is_checkpoint(app) {
                input::ask(app, InputPurpose::Tag, "");
            } else {
                app.say(TextTone::Warning, "only checkpoints have tags: press a to make one here");
            }
        }
        BrowserCommand::Restore => return restore(app),
        BrowserCommand::Undo => return plan_undo(app, WriteRequest::Undo),
        BrowserCommand::Redo => return plan_undo(app, WriteRequest::Redo),
        BrowserCommand::Level => return story::next_level(app),
        BrowserCommand::Order => {
            app.timeline.turned = !app.timeline.turned;
            app.timeline.top = app.timeline.cursor;
            navigation::scroll(app);
            let place = if app.timeline.turned { "top" } else { "bottom" };
            app.say(TextTone::Plain, format!("the newest is at the {place}"));
        }
        BrowserCommand::Hindsight => {
            app.without_hindsight = !app.without_hindsight;
            let word = if app.without_hindsight { "hidden" } else { "shown" };
            app.say(TextTone::Plain, format!("what came after the selection is {word}"));
            navigation::scroll(app);
        }
        BrowserCommand::Mark => return selection::mark(app),
        BrowserCommand::Diff => return selection::compare(app),
        BrowserCommand::Charts => return chart::open(app),
        BrowserCommand::StepChart(direction) => return chart::step(app, direction),
        BrowserCommand::Sessions => return sessions(app),
        BrowserCommand::Report => return share::report(app, None),
        BrowserCommand::Peek => return selection::peek(app),
        BrowserCommand::Why => return selection::why(app),
        BrowserCommand::EvidenceSources => return selection::evidence_sources(app),
        BrowserCommand::LongNote => return editor::note(app),
        BrowserCommand::Note => input::ask(app, InputPurpose::Note, ""),
        BrowserCommand::Hypothesis => input::ask(app, InputPurpose::Hypothesis, ""),
        BrowserCommand::Question => input::ask(app, InputPurpose::Question, ""),
        BrowserCommand::Evidence { supports } => {
            write::about_hypothesis(app, |hypothesis| InputPurpose::Evidence {
                hypothesis,
                supports,
            });
        }
        BrowserCommand::Settle { confirm } => {
            write::about_hypothesis(app, |hypothesis| InputPurpose::Settle { hypothesis, confirm });
        }
        BrowserCommand::Replay => return selection::begin_replay(app),
        BrowserCommand::ChangeSpeed(by) => selection::change_speed(app, by),
        BrowserCommand::ScrollDetail(rows) => navigation::scroll_detail(app, rows),
        BrowserCommand::Landmark(kind, direction) => return landmark::find(app, kind, direction),
        _ => {}
    }
    Vec::new()
}

fn confirm(app: &mut App, change: WriteRequest) {
    app.overlays.push(OverlayPane::Confirm { change, reading: SheetPane::default() });
}

/// Asks the person to confirm an undo or a redo, and requests a preview of it.
fn plan_undo(app: &mut App, change: WriteRequest) -> Vec<AppEffect> {
    let redo = change == WriteRequest::Redo;
    confirm(app, change);
    vec![app.ask(WorkerRequest::UndoPlan { redo })]
}

/// Closes the pane in front. Without one, ends the first of these that is on: the replay, the zoom,
/// the highlighted search, hidden hindsight, the comparison, the filter, the mark. Else returns to
/// the story. Never quits.
fn go_back(app: &mut App) -> Vec<AppEffect> {
    if app.overlays.pop().is_some() {
        return Vec::new();
    }
    if app.replay.take().is_some() {
        navigation::scroll(app);
        app.say(TextTone::Plain, "the replay is stopped");
        return Vec::new();
    }
    if std::mem::take(&mut app.zoomed) {
        navigation::scroll(app);
        return Vec::new();
    }
    if app.find.take().is_some() {
        return Vec::new();
    }
    if std::mem::take(&mut app.without_hindsight) {
        navigation::scroll(app);
        return Vec::new();
    }
    if std::mem::take(&mut app.comparing) {
        return selection::detail(app);
    }
    if !app.timeline.typed.is_empty() {
        return input::clear_filter(app);
    }
    if app.mark.take().is_some() {
        return Vec::new();
    }
    app.status = None;
    selection::focus(app, PaneFocus::Story)
}

/// Returns the index this many steps after `index` in a list of `count`, before it if `steps` is
/// negative. The first follows the last.
fn index_after(index: usize, steps: isize, count: usize) -> usize {
    (index + count).saturating_add_signed(steps) % count
}

fn change_tab(app: &mut App, steps: isize) -> Vec<AppEffect> {
    let (tab, ..) = StateTab::ALL[index_after(app.state.tab as usize, steps, StateTab::ALL.len())];
    app.state.tab = tab;
    app.state.cursor = 0;
    app.state.top = 0;
    selection::held(app)
}

/// Switches to another session and resets all state about the old one.
fn switch(app: &mut App, session: String) -> Vec<AppEffect> {
    let turned = app.timeline.turned;
    app.timeline = crate::panes::TimelinePane { turned, ..Default::default() };
    app.state = Default::default();
    app.detail = Default::default();
    app.chart = Default::default();
    app.story = None;
    app.story_position = 0;
    app.story_requested = None;
    app.story_revisions = STORY_REVISIONS;
    app.story_loading = false;
    app.strip = None;
    app.mark = None;
    app.looked.seen = None;
    app.comparing = false;
    app.find = None;
    app.replay = None;
    app.without_hindsight = false;
    app.focus = PaneFocus::Story;
    begin(app, Some(session))
}

fn sessions(app: &mut App) -> Vec<AppEffect> {
    app.overlays.push(OverlayPane::Sessions { rows: None, unpushed: Vec::new(), cursor: 0 });
    vec![app.ask(WorkerRequest::Sessions)]
}

fn restore(app: &mut App) -> Vec<AppEffect> {
    let target = app.target();
    if target == MomentTarget::Head {
        app.say(TextTone::Warning, "this is the head already: select an earlier moment");
        return Vec::new();
    }
    confirm(app, WriteRequest::Restore { target });
    vec![app.ask(WorkerRequest::RestorePlan(target))]
}
