//! Copies ids and Markdown from the browser, and writes reports.

use super::selection;
use crate::answer::StateTab;
use crate::app::{App, AppStage};
use crate::effect::AppEffect;
use crate::markdown::{brief_markdown, sheet_markdown};
use crate::panes::{OverlayPane, PaneFocus};
use crate::theme::TextTone;
use forge_store::model::text::count_text;

/// Maximum number of bytes that are copied. Terminals ignore a clipboard that is too large.
const MAX_COPIED_BYTES: usize = 50_000;

/// Returns whether a file with this name gets the report instead of the screen.
pub(super) fn is_report(path: &str) -> bool {
    [".html", ".md"].iter().any(|ending| path.ends_with(ending))
}

/// Writes the report of the session to a file, or shows it in a web browser.
pub(super) fn report(app: &mut App, path: Option<String>) -> Vec<AppEffect> {
    app.say(TextTone::Plain, "writing the report ...");
    app.request_number += 1;
    let (request_number, session) = (app.request_number, app.session.id.clone());
    vec![AppEffect::Report { request_number, session, path }]
}

/// Copies the page in front as Markdown. Without one, copies the focused pane, or the details of
/// the selection.
pub(super) fn copy_markdown(app: &mut App) -> Vec<AppEffect> {
    let text = match app.overlays.last() {
        Some(OverlayPane::Sheet(reading)) => reading.sheet.as_ref().map(sheet_markdown),
        Some(OverlayPane::Charts) => Some(hypotheses(app)),
        Some(_) => None,
        None if app.stage != AppStage::Browsing => None,
        None if app.focus == PaneFocus::Time => Some(hypotheses(app)),
        None if app.focus == PaneFocus::Held && app.state.tab == StateTab::Brief => {
            Some(brief_markdown(&app.state.lines))
        }
        None => app.detail.sheet.as_ref().map(sheet_markdown),
    };
    let Some(mut text) = text.filter(|text| !text.is_empty()) else {
        app.say(TextTone::Warning, "there is nothing here to copy as Markdown");
        return Vec::new();
    };
    let lines = text.lines().count();
    if text.len() > MAX_COPIED_BYTES {
        text.truncate(text.floor_char_boundary(MAX_COPIED_BYTES));
        let end = text.rfind('\n').unwrap_or(text.len());
        text.truncate(end);
        let kept = text.lines().count();
        app.say(TextTone::Warning, format!("copied the first {kept} of {lines} lines as Markdown"));
    } else {
        let lines = count_text(lines as u64, "line");
        app.say(TextTone::Good, format!("copied {lines} as Markdown"));
    }
    vec![AppEffect::Copy(text)]
}

/// Returns the drawn hypotheses as a table in Markdown.
fn hypotheses(app: &App) -> String {
    let mut text = "| Id | Confidence | Status | Hypothesis |\n|---|---|---|---|\n".to_owned();
    for series in app.chart.drawn() {
        let steps: Vec<String> =
            series.points.iter().map(|point| format!("{:.2}", point.value)).collect();
        let (id, status) = (&series.id, series.status.replace('_', " "));
        let said = series.title.replace('|', "\\|").replace('\n', " ");
        text.push_str(&format!("| {id} | {} | {status} | {said} |\n", steps.join(" → ")));
    }
    text
}

/// Copies the id of the page in front. Without one, copies that of the selection.
pub(super) fn copy(app: &mut App) -> Vec<AppEffect> {
    let id = match app.overlays.last() {
        Some(OverlayPane::Sheet(reading)) => reading.sheet.as_ref().map(|sheet| sheet.id.clone()),
        Some(OverlayPane::Sessions { rows: Some(rows), cursor, .. }) => {
            rows.get(*cursor).map(|row| row.id.clone())
        }
        Some(_) => None,
        None => match selection::held_entity(app) {
            Some(key) => Some(key.id),
            None => app.row().map(|row| row.id.clone()),
        },
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
