//! Clicks of the mouse.

use super::{chips, navigation, selection, story};
use crate::app::{App, AppStage};
use crate::effect::{AppEffect, MomentTarget};
use crate::layout::WindowLayout;
use crate::panes::PaneFocus;
use crate::view::time_at;
use crate::window::timeline_lines;
use forge_store::store::{HistoryPosition, HistoryRank};
use ratatui::layout::Position;

/// Handles a click on a cell of the screen: it focuses a pane, and selects what is there.
pub(super) fn click(app: &mut App, x: u16, y: u16) -> Vec<AppEffect> {
    let at = Position { x, y };
    if chips::is_open(app) {
        let chips = crate::view::chip_places(app);
        if chips.first().is_some_and(|place| place.height > 0 && place.y == y) {
            return chips::click(app, x);
        }
    }
    if !app.overlays.is_empty() {
        let front = WindowLayout::inside(WindowLayout::front(app));
        if front.contains(at) {
            navigation::click_front(app, usize::from(y - front.y));
        }
        return Vec::new();
    }
    if app.stage != AppStage::Browsing {
        return Vec::new();
    }
    let layout = WindowLayout::from_app(app);
    let pane = PaneFocus::ALL.into_iter().find(|pane| layout.area(*pane).contains(at));
    let Some(pane) = pane else { return Vec::new() };
    let inside = match pane {
        PaneFocus::Story => WindowLayout::inside_story(app),
        _ => WindowLayout::inside(layout.area(pane)),
    };
    let line = usize::from(y.saturating_sub(inside.y));
    let had_focus = app.focus == pane;
    let mut effects = selection::focus(app, pane);
    if !inside.contains(at) {
        return effects;
    }
    match pane {
        PaneFocus::Story => {
            let lines = timeline_lines(app);
            let Some(row) = lines.get(line).map(|line| line.row) else { return effects };
            // A click on the selected row opens it.
            if row == app.timeline.cursor && had_focus {
                return selection::open(app);
            }
            effects.extend(navigation::move_to_row(app, row));
        }
        PaneFocus::Held => {
            let items = app.state.view.as_ref().map_or(0, |view| view.items.len());
            if line >= 1 && app.state.top + line - 1 < items {
                app.state.cursor = app.state.top + line - 1;
                effects.extend(selection::detail(app));
            }
        }
        PaneFocus::Time => {
            if let Some(time) = time_at(app, x) {
                let place = HistoryPosition { time, rank: HistoryRank::Sequence(u64::MAX) };
                effects.extend(story::go_to(app, place, MomentTarget::Time(time)));
            }
        }
        PaneFocus::Detail => {}
    }
    effects
}
