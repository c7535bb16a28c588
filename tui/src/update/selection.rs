//! What is selected, and what the other panes show of it.

use super::{chart, index_after, navigation, story, switch};
use crate::answer::StateTab;
use crate::app::App;
use crate::effect::{AppEffect, MomentTarget, SheetOf, WorkerRequest};
use crate::layout::WindowLayout;
use crate::panes::{OverlayPane, PaneFocus, Replay, SheetPane};
use crate::theme::TextTone;
use forge_store::model::{Key, Kind};
use forge_store::story::StoryKind;

/// The fastest replay, in rows a second.
const FASTEST: u8 = 4;

/// Requests everything that depends on the selected row.
pub(super) fn changed(app: &mut App) -> Vec<AppEffect> {
    let mut effects = held(app);
    effects.extend(detail(app));
    effects
}

/// Requests what was held at the selected moment.
pub(super) fn held(app: &mut App) -> Vec<AppEffect> {
    let (target, since, tab) = (app.target(), app.state.before, app.state.tab);
    let mark = app.mark.filter(|mark| *mark != target);
    let mut effects = vec![app.ask(WorkerRequest::State { target, since, mark, tab })];
    let is_known = app.state.brief.as_ref().is_some_and(|(known, _)| *known == target);
    if tab == StateTab::Brief && (!is_known || target == MomentTarget::Head) {
        let session = app.session.id.clone();
        effects.push(app.ask(WorkerRequest::Brief { session, target }));
    }
    effects
}

/// Requests the details of the selection.
pub(super) fn detail(app: &mut App) -> Vec<AppEffect> {
    let of = if app.comparing { difference(app) } else { selected(app) };
    app.detail.top = 0;
    let Some(of) = of else {
        app.detail.sheet = None;
        return Vec::new();
    };
    vec![app.ask(WorkerRequest::Sheet { of, whole: false })]
}

/// Opens a sheet in front of the other panes.
fn open_sheet(app: &mut App, of: SheetOf) -> Vec<AppEffect> {
    app.status = None;
    app.overlays.push(OverlayPane::Sheet(SheetPane::default()));
    vec![app.ask(WorkerRequest::Sheet { of, whole: true })]
}

/// Returns the entity that is selected in the pane Held, else the selected row.
fn selected(app: &App) -> Option<SheetOf> {
    match held_entity(app) {
        Some(key) => Some(SheetOf::Entity { target: app.target(), key }),
        None => app.row().map(|row| SheetOf::Row(Box::new(row.clone()))),
    }
}

/// Returns the difference between the mark, or the next older moment, and the selected moment.
fn difference(app: &App) -> Option<SheetOf> {
    let before = app.timeline.rows.iter().skip(app.timeline.cursor + 1);
    let own = app.row().map(|row| row.target);
    let before = before.map(|row| row.target).find(|target| Some(*target) != own);
    let from = app.mark.or(before)?;
    Some(SheetOf::Difference { from, to: app.target() })
}

/// Returns the entity that is selected in the pane Held.
pub(super) fn held_entity(app: &App) -> Option<Key> {
    if app.focus != PaneFocus::Held || app.state.tab == StateTab::Brief {
        return None;
    }
    let view = app.state.view.as_ref().filter(|view| view.tab == app.state.tab)?;
    view.items.get(app.state.cursor).map(|item| item.key.clone())
}

/// Returns the hypothesis that is selected, or that the selection is about.
pub(super) fn hypothesis(app: &App) -> Option<String> {
    if matches!(app.overlays.last(), Some(OverlayPane::Charts)) || app.focus == PaneFocus::Time {
        return app.chart.selected().map(|series| series.id.clone());
    }
    if let Some(key) = held_entity(app)
        && key.kind == Kind::Hypothesis
    {
        return Some(key.id);
    }
    let story = app.row()?.story.as_ref()?;
    let named = story.entities().find(|key| key.kind == Kind::Hypothesis);
    named.map(|key| key.id.clone())
}

/// Whether the selected row is a checkpoint, which can have tags.
pub(super) fn is_checkpoint(app: &App) -> bool {
    let Some(row) = app.row() else { return false };
    match &row.story {
        Some(story) => {
            matches!(story.kind, Some(StoryKind::Checkpoint | StoryKind::Compaction))
                && matches!(row.target, MomentTarget::Sequence(_))
        }
        None => row.is_checkpoint(),
    }
}

pub(super) fn focus_by(app: &mut App, steps: isize) -> Vec<AppEffect> {
    let place = PaneFocus::ALL.iter().position(|pane| *pane == app.focus).unwrap_or(0);
    focus(app, PaneFocus::ALL[index_after(place, steps, PaneFocus::ALL.len())])
}

/// Moves the focus to a pane.
pub(super) fn focus(app: &mut App, pane: PaneFocus) -> Vec<AppEffect> {
    if app.strip_only && pane != PaneFocus::Story {
        app.say(
            TextTone::Plain,
            "this view has only the story: without --strip there are all panes",
        );
        return Vec::new();
    }
    let was_about = held_entity(app);
    app.focus = pane;
    navigation::scroll(app);
    if pane == PaneFocus::Time {
        chart::select_hypothesis_of_row(app);
    }
    if held_entity(app) == was_about { Vec::new() } else { detail(app) }
}

/// Marks the selected moment.
pub(super) fn mark(app: &mut App) -> Vec<AppEffect> {
    let target = app.target();
    // The head changes with each revision, and the mark must not.
    let target = match (target, app.state.view.as_ref().and_then(|view| view.revision)) {
        (MomentTarget::Head, Some(revision)) => MomentTarget::Sequence(revision),
        (target, _) => target,
    };
    app.mark = Some(target);
    app.mark_time = app.row().map(|row| row.place.time);
    let marked = app.zone.moment(target);
    app.say(TextTone::Plain, format!("marked {marked}: move, and d shows what changed"));
    if app.comparing { changed(app) } else { held(app) }
}

/// Begins or ends to show the difference between the mark and the selection.
pub(super) fn compare(app: &mut App) -> Vec<AppEffect> {
    if app.comparing {
        app.comparing = false;
        return detail(app);
    }
    let Some(of) = difference(app) else {
        app.say(TextTone::Warning, "there is nothing before this moment: mark another one with m");
        return Vec::new();
    };
    app.comparing = true;
    let layout = WindowLayout::from_app(app);
    if layout.detail.height > 0 {
        return detail(app);
    }
    // If the window has no room for the details, the difference opens as a page.
    app.comparing = false;
    open_sheet(app, of)
}

/// Unfolds the selected line, opens the selection as a page, or chooses the selected session.
pub(super) fn open(app: &mut App) -> Vec<AppEffect> {
    let of = match app.overlays.last() {
        Some(OverlayPane::Sessions { rows: Some(rows), cursor, .. }) => {
            let chosen = rows.get(*cursor).map(|row| row.id.clone());
            app.overlays.clear();
            return chosen.map_or_else(Vec::new, |id| switch(app, id));
        }
        Some(OverlayPane::Sheet(_)) => {
            navigation::fold(app, false);
            return Vec::new();
        }
        Some(OverlayPane::Charts) => {
            app.overlays.pop();
            app.focus = PaneFocus::Story;
            navigation::scroll(app);
            return Vec::new();
        }
        Some(_) => return Vec::new(),
        None if app.focus == PaneFocus::Time => return chart::open(app),
        None if app.comparing => difference(app),
        None => {
            if app.focus == PaneFocus::Story && story::unfold(app) {
                return changed(app);
            }
            if app.focus == PaneFocus::Story
                && let Some(effects) = story::read_older(app)
            {
                return effects;
            }
            selected(app)
        }
    };
    of.map_or_else(Vec::new, |of| open_sheet(app, of))
}

/// Opens why the selected claim is held.
pub(super) fn why(app: &mut App) -> Vec<AppEffect> {
    let held = held_entity(app).filter(|key| key.kind.is_claim());
    let in_charts =
        matches!(app.overlays.last(), Some(OverlayPane::Charts)) || app.focus == PaneFocus::Time;
    let of_chart = || app.chart.selected().map(|series| Key::new(Kind::Hypothesis, &*series.id));
    let of_row = || {
        let story = app.row()?.story.as_ref()?;
        story.entities().find(|key| key.kind.is_claim()).cloned()
    };
    let key = if in_charts { of_chart() } else { held.or_else(of_row) };
    let Some(key) = key else {
        let words = "no claim is selected: select a line about a claim, or a claim in Held";
        app.say(TextTone::Warning, words);
        return Vec::new();
    };
    let target = app.target();
    open_sheet(app, SheetOf::Why { target, key })
}

/// Opens the evidence about the selected hypothesis, with the commands that showed it.
pub(super) fn evidence_sources(app: &mut App) -> Vec<AppEffect> {
    let Some(hypothesis) = hypothesis(app) else {
        app.say(TextTone::Warning, "no hypothesis is selected: select its line, or one in Held");
        return Vec::new();
    };
    let target = app.target();
    open_sheet(app, SheetOf::EvidenceSources { target, hypothesis })
}

/// Opens the selection as a page, without unfolding a line.
pub(super) fn peek(app: &mut App) -> Vec<AppEffect> {
    selected(app).map_or_else(Vec::new, |of| open_sheet(app, of))
}

/// Begins to replay the session from the selected row. If the newest row is selected, the replay
/// begins at the oldest one.
pub(super) fn begin_replay(app: &mut App) -> Vec<AppEffect> {
    app.overlays.clear();
    app.replay = Some(Replay { speed: 2, stepped: app.now });
    let row = app.row().map_or(MomentTarget::Head, |row| row.target);
    let at_end = app.timeline.cursor == 0 || row == MomentTarget::Head;
    if !at_end {
        return Vec::new();
    }
    let last = app.timeline.rows.len().saturating_sub(1);
    navigation::move_to_row(app, last)
}

pub(super) fn change_speed(app: &mut App, by: i8) {
    if let Some(replay) = &mut app.replay {
        replay.speed = replay.speed.saturating_add_signed(by).clamp(1, FASTEST);
    }
}

/// Moves a replay to the next newer row when that is due.
pub(super) fn step_replay(app: &mut App) -> Vec<AppEffect> {
    let now = app.now;
    let Some(replay) = &mut app.replay else { return Vec::new() };
    // A tick that is at most 50 ms early counts.
    let wait = 1_000_000 / i64::from(replay.speed.max(1)) - 50_000;
    if now.micros_since(replay.stepped) < wait {
        return Vec::new();
    }
    replay.stepped = now;
    if app.timeline.cursor == 0 {
        app.replay = None;
        app.say(TextTone::Plain, "the replay is over");
        return Vec::new();
    }
    let next = app.timeline.cursor - 1;
    navigation::move_to_row(app, next)
}
