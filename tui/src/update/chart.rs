//! Opens the charts, and moves along the changes of hypotheses.

use super::{selection, story};
use crate::app::App;
use crate::effect::{AppEffect, MomentTarget};
use crate::panes::{OverlayPane, PaneFocus};
use crate::theme::TextTone;
use forge_store::model::Kind;
use forge_store::store::{HistoryPosition, HistoryRank, PageDirection};

/// Opens the charts, and selects in them the hypothesis that is selected elsewhere.
pub(super) fn open(app: &mut App) -> Vec<AppEffect> {
    if app.chart.count() == 0 {
        app.say(TextTone::Warning, "there are no hypotheses to draw: i states one");
        return Vec::new();
    }
    let selected = selection::hypothesis(app);
    app.overlays.push(OverlayPane::Charts);
    let series = app.chart.series.iter().flatten();
    if let Some(index) = selected.and_then(|id| series.clone().position(|one| one.id == id)) {
        app.chart.cursor = index;
    } else {
        select_hypothesis_of_row(app);
    }
    Vec::new()
}

/// Selects in the charts the hypothesis that the selected row is about, if there is one.
pub(super) fn select_hypothesis_of_row(app: &mut App) {
    let story = app.row().and_then(|row| row.story.as_ref());
    let id = story.and_then(|story| {
        story.entities().find(|key| key.kind == Kind::Hypothesis).map(|key| key.id.clone())
    });
    let index = app.chart.series.iter().flatten().position(|one| Some(&one.id) == id.as_ref());
    if let Some(index) = index {
        app.chart.cursor = index;
    }
}

/// Goes to the next or previous change of a hypothesis that is drawn.
pub(super) fn step(app: &mut App, direction: PageDirection) -> Vec<AppEffect> {
    let Some(here) = app.row().map(|row| row.place) else { return Vec::new() };
    // The head follows every change, even one at the time of its row.
    let here = if app.target() == MomentTarget::Head {
        HistoryPosition { rank: HistoryRank::Sequence(u64::MAX), ..here }
    } else {
        here
    };
    let place = |at, sequence| HistoryPosition { time: at, rank: HistoryRank::Sequence(sequence) };
    let steps = app.chart.steps();
    let found = match direction {
        PageDirection::Newer => {
            steps.iter().find(|(_, point)| place(point.at, point.sequence) > here)
        }
        PageDirection::Older => {
            steps.iter().rev().find(|(_, point)| place(point.at, point.sequence) < here)
        }
    };
    let Some((id, point)) = found else {
        let side = if direction == PageDirection::Older { "before" } else { "after" };
        app.say(TextTone::Warning, format!("no hypothesis changed {side} this moment"));
        return Vec::new();
    };
    let (id, at, sequence) = ((*id).to_owned(), point.at, point.sequence);
    let series = app.chart.series.iter().flatten();
    app.chart.cursor = series.clone().position(|one| one.id == id).unwrap_or(app.chart.cursor);
    let target = MomentTarget::Sequence(sequence);
    if app.focus == PaneFocus::Detail {
        app.focus = PaneFocus::Story;
    }
    story::go_to(app, place(at, sequence), target)
}
