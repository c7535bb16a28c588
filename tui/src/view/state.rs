//! Draws the state at the selected moment.

use super::ago;
use super::canvas::{below, put, put_lines};
use crate::answer::{ItemNovelty, StateItem, StateTab, StateView};
use crate::app::{App, PaneFocus};
use crate::theme::{TextTone, Theme};
use forge_store::model::Kind;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    if let Some(failure) = &app.state.failure {
        let title = if failure.damaged { "damaged: " } else { "" };
        let lines = [
            (TextTone::Bad, format!("{title}{}", failure.message)),
            (TextTone::Warning, format!("What to do: {}.", failure.advice)),
        ];
        put_lines(buffer, area, &lines, theme);
        return;
    }
    let Some(view) = &app.state.view else {
        put_lines(buffer, area, &[(TextTone::Dim, "reading ...".to_owned())], theme);
        return;
    };
    title(app, view, area, buffer);
    tabs(app, view, below(area, 1), buffer);
    let rows = usize::from(area.height.saturating_sub(2));
    if view.items.is_empty() {
        let said = if view.tab == app.state.tab {
            format!("no {} here", view.tab.word())
        } else {
            "reading ...".to_owned()
        };
        put(buffer, below(area, 2), &said, theme.style(TextTone::Dim));
    }
    let shown = view.items.iter().enumerate().skip(app.state.top).take(rows);
    for (place, item) in shown {
        let line = below(area, 2 + place - app.state.top);
        draw_item(app, item, line, buffer);
        if place == app.state.cursor && app.focus == PaneFocus::State {
            buffer.set_style(line, theme.cursor(true));
        }
    }
}

fn title(app: &App, view: &StateView, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    let mut rest = put(buffer, area, &view.target.to_string(), theme.style(TextTone::Id));
    let revision = match (view.target, view.revision) {
        (crate::effect::MomentTarget::Sequence(own), Some(revision)) if own == revision => {
            String::new()
        }
        (_, Some(revision)) => format!(" (claims of #{revision})"),
        (_, None) => " (no claims yet)".to_owned(),
    };
    rest = put(buffer, rest, &revision, theme.style(TextTone::Dim));
    if let Some(time) = view.time {
        let time = format!("  {}, {} ago", app.zone.show(time), ago(time, app.now));
        rest = put(buffer, rest, &time, theme.style(TextTone::Plain));
    }
    put(buffer, rest, &format!("  on {}", view.branch), theme.style(TextTone::Dim));
}

fn tabs(app: &App, view: &StateView, area: Rect, buffer: &mut Buffer) {
    let word = |tab: StateTab| {
        let count = |list: &[(StateTab, usize)]| {
            list.iter().find(|(one, _)| *one == tab).map_or(0, |(_, count)| *count)
        };
        let number = match count(&view.counts) {
            0 => String::new(),
            number => format!(" {number}"),
        };
        let moved = if count(&view.moved) > 0 { "~" } else { "" };
        let word = format!("{}{number}{moved}", tab.word());
        if tab == app.state.tab { format!("[{word}]") } else { word }
    };
    // The selected tab stays visible: tabs before it are left out first.
    let room = usize::from(area.width);
    let chosen = StateTab::ALL.iter().position(|tab| *tab == app.state.tab).unwrap_or(0);
    let mut from = 0;
    let width = |from: usize| -> usize {
        StateTab::ALL.iter().take(chosen + 1).skip(from).map(|tab| word(*tab).width() + 1).sum()
    };
    while from < chosen && width(from) > room {
        from += 1;
    }
    let mut rest = area;
    for tab in StateTab::ALL.iter().skip(from) {
        let tone = if *tab == app.state.tab { TextTone::Heading } else { TextTone::Dim };
        rest = put(buffer, rest, &word(*tab), app.theme.style(tone));
        rest = put(buffer, rest, " ", app.theme.style(TextTone::Plain));
    }
}

/// The confidence as a bar and a number.
fn bar(confidence: f64, theme: Theme) -> String {
    const CELLS: usize = 5;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 5")]
    let full = (confidence.clamp(0.0, 1.0) * CELLS as f64).round() as usize;
    let filled = theme.glyph("█", "#").repeat(full);
    format!("{filled}{} {confidence:.2} ", theme.glyph("░", ".").repeat(CELLS - full))
}

fn draw_item(app: &App, item: &StateItem, line: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    let (mark, tone) = match item.novelty {
        ItemNovelty::New => ("+", TextTone::Added),
        ItemNovelty::Changed => ("~", TextTone::Warning),
        ItemNovelty::Same => (" ", TextTone::Plain),
    };
    let mut rest = put(buffer, line, mark, theme.style(tone));
    if item.depth > 0 {
        let indent = "  ".repeat(usize::from(item.depth) - 1) + theme.glyph("└ ", "` ");
        rest = put(buffer, rest, &indent, theme.style(TextTone::Dim));
    }
    // Ids of facts mean nothing to a person; their times do.
    if item.key.kind.is_claim() && item.key.kind != Kind::Dependency {
        rest = put(buffer, rest, &format!("{} ", item.key.id), theme.style(TextTone::Id));
    } else if !item.key.kind.is_claim() && line.width >= 50 {
        let time = app.zone.show(item.time);
        let time = format!("{} ", time.get(11..19).unwrap_or(&time));
        rest = put(buffer, rest, &time, theme.style(TextTone::Dim));
    }
    if let Some(confidence) = item.confidence {
        rest = put(buffer, rest, &bar(confidence, theme), theme.style(item.tone));
    }
    if !item.status.is_empty() {
        rest = put(buffer, rest, &format!("({}) ", item.status), theme.style(item.tone));
    }
    put(buffer, rest, &item.title, theme.style(TextTone::Plain));
}
