//! Draws the pane "Held": the claims, facts or brief at the selected moment.

use super::canvas::{below, put, put_lines};
use super::frame::{self, FrameTitles};
use crate::answer::{ItemNovelty, StateItem, StateTab, StateView};
use crate::app::App;
use crate::effect::MomentTarget;
use crate::panes::PaneFocus;
use crate::theme::{TextTone, Theme};
use forge_store::model::time_grammar::describe_distance;
use forge_store::model::{Kind, Timestamp};
use forge_store::shell::quoted;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

/// The width of the labels of a brief, in columns.
const LABEL_COLUMNS: usize = 14;

fn titles(app: &App) -> FrameTitles {
    let view = app.state.view.as_ref();
    let time = view.and_then(|view| view.time);
    let title = match (view, time) {
        (Some(view), _) if view.target == MomentTarget::Head => "3 Held now".to_owned(),
        (Some(_), Some(time)) => format!("3 Held at {}", app.zone.clock(time)),
        _ => "3 Held".to_owned(),
    };
    let right = match (view, time) {
        (Some(view), Some(time)) if view.target != MomentTarget::Head => {
            format!("{}, on {}", distance(time, app.now), view.branch)
        }
        (Some(view), _) => format!("on {}", view.branch),
        (None, _) => String::new(),
    };
    let below = format!("$ forge checkpoint at {}", quoted(&app.target().to_string()));
    FrameTitles { title, right, below }
}

/// Returns how far a time is from now, in its largest unit: `2 h ago`. Less than a second is `now`.
fn distance(time: Timestamp, now: Timestamp) -> String {
    let micros = now.micros_since(time);
    if micros.abs() < 1_000_000 {
        return "now".to_owned();
    }
    let said = describe_distance(micros);
    let greatest: Vec<&str> = said.split(' ').take(2).collect();
    let greatest = greatest.join(" ");
    if micros > 0 { format!("{greatest} ago") } else { format!("in {greatest}") }
}

pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let theme = app.theme;
    let focused = app.focus == PaneFocus::Held && app.overlays.is_empty();
    let area = frame::draw(buffer, area, focused, &titles(app), theme);
    if let Some(failure) = &app.state.failure {
        let title = if failure.damaged { "damaged: " } else { "" };
        let lines = [
            (TextTone::Bad, format!("{title}{}", failure.message)),
            (TextTone::Warning, failure.advice_line()),
        ];
        put_lines(buffer, area, &lines, theme);
        return;
    }
    let Some(view) = &app.state.view else {
        put_lines(buffer, area, &[(TextTone::Dim, "reading ...".to_owned())], theme);
        return;
    };
    let mut area = area;
    let mut put_at_bottom = |text: &str, tone| {
        if area.height > 2 {
            let last = Rect { y: area.bottom() - 1, height: 1, ..area };
            put(buffer, last, text, theme.style(tone));
            area.height -= 1;
        }
    };
    if app.has_mark_line() {
        put_at_bottom(&view.since_mark, TextTone::Accent);
    }
    if app.has_more_line() {
        // Only the newest facts are read, so there may be more of them.
        let is_exact = view.tab.kinds().iter().all(|kind| kind.is_claim());
        let least = if is_exact { "" } else { "at least " };
        put_at_bottom(&format!("and {least}{} more", view.more), TextTone::Dim);
    }
    tabs(app, view, area, buffer);
    let list = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    if app.state.tab == StateTab::Brief {
        return brief(app, list, buffer);
    }
    if view.items.is_empty() {
        let said = if view.tab == app.state.tab {
            format!("no {} here", view.tab.word())
        } else {
            "reading ...".to_owned()
        };
        put(buffer, below(area, 1), &said, theme.style(TextTone::Dim));
    }
    let shown = view.items.iter().enumerate().skip(app.state.top).take(list.height.into());
    for (place, item) in shown {
        let line = below(area, 1 + place - app.state.top);
        draw_item(app, item, line, buffer);
        if place == app.state.cursor && app.focus == PaneFocus::Held {
            buffer.set_style(line, theme.cursor(true));
        }
    }
}

/// Draws the brief of the moment.
fn brief(app: &App, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    if app.state.brief.is_none() {
        put_lines(buffer, area, &[(TextTone::Dim, "reading ...".to_owned())], theme);
        return;
    }
    let shown = app.state.lines.iter().enumerate().skip(app.state.top).take(area.height.into());
    for (place, row) in shown {
        let line = below(area, place - app.state.top);
        let label = format!("{:width$} ", row.label, width = LABEL_COLUMNS - 1);
        let mut rest = put(buffer, line, &label, theme.style(TextTone::Heading));
        for (tone, text) in &row.parts {
            rest = put(buffer, rest, text, theme.style((*tone).into()));
        }
        if place == app.state.cursor && app.focus == PaneFocus::Held {
            buffer.set_style(line, theme.cursor(true));
        }
    }
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
    let chosen = app.state.tab as usize;
    let mut from = 0;
    let width = |from: usize| -> usize {
        StateTab::ALL[from..=chosen].iter().map(|(tab, ..)| word(*tab).width() + 1).sum()
    };
    while from < chosen && width(from) > room {
        from += 1;
    }
    let mut rest = area;
    for (tab, ..) in StateTab::ALL.iter().skip(from) {
        let tone = if *tab == app.state.tab { TextTone::Heading } else { TextTone::Dim };
        rest = put(buffer, rest, &word(*tab), app.theme.style(tone));
        rest = put(buffer, rest, " ", app.theme.style(TextTone::Plain));
    }
}

/// Formats a confidence as a bar and a number.
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
        let style = theme.style(TextTone::of_key(&item.key));
        rest = put(buffer, rest, &format!("{} ", item.key.id), style);
    } else if !item.key.kind.is_claim() && line.width >= 50 {
        let time = format!("{} ", app.zone.clock(item.time));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The title said "now ago", and "in 2 min ago" of a moment that another machine's clock put
    /// after now.
    #[test]
    fn only_a_time_before_now_is_followed_by_ago() {
        let now = Timestamp::from_micros(1_000_000_000_000);
        let at = |seconds: i64| distance(now.plus_micros(seconds * 1_000_000), now);
        assert_eq!([at(0), at(-7500), at(130)], ["now", "2 h ago", "in 2 min"]);
    }
}
