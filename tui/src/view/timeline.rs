//! Draws the pane of the timeline: the story, or one of the raw levels.

use super::branch_graph::BranchGraph;
use super::canvas::{below, put, put_lines};
use super::frame::{self, FrameTitles};
use crate::answer::{RowSign, TimelineRow};
use crate::app::App;
use crate::effect::MomentTarget;
use crate::fuzzy::FuzzyPattern;
use crate::panes::{OverlayPane, PaneFocus};
use crate::story_view::StoryLine;
use crate::theme::{TextTone, Theme};
use crate::window::{LinePart, timeline_lines};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

/// The number of columns before the text of a story's line: selection, time and sign.
const TEXT_COLUMN: u16 = 11;
/// The minimum width of a pane that shows times, in columns.
const MIN_TIMED_WIDTH: u16 = 34;

/// Returns the sign of a row of a raw level.
pub(super) fn glyph(sign: RowSign, theme: Theme) -> &'static str {
    match sign {
        RowSign::Head => theme.glyph("○", "@"),
        RowSign::Manual => theme.glyph("◆", "#"),
        RowSign::Automatic => theme.glyph("◇", "o"),
        RowSign::Scheduled => theme.glyph("◷", "t"),
        RowSign::Compaction => "C",
        RowSign::Revision => theme.glyph("•", "."),
        RowSign::Status => "!",
        RowSign::Restore => theme.glyph("↶", "<"),
        RowSign::Merge => "M",
        RowSign::Fact => theme.glyph("·", "-"),
        RowSign::Passed => theme.glyph("✓", "v"),
        RowSign::Failed => theme.glyph("✗", "x"),
    }
}

const fn tone(row: &TimelineRow) -> TextTone {
    match (row.sign, row.weight) {
        (RowSign::Failed, _) => TextTone::Bad,
        (RowSign::Passed, _) => TextTone::Good,
        (RowSign::Compaction, _) => TextTone::Warning,
        (RowSign::Fact, 0) => TextTone::Dim,
        (_, 3) => TextTone::Heading,
        _ => TextTone::Plain,
    }
}

fn titles(app: &App) -> FrameTitles {
    let timeline = &app.timeline;
    let mut title = match (&app.story, timeline.is_story()) {
        (_, false) => {
            let what = if timeline.filter.is_empty() { timeline.level.word() } else { "filtered" };
            format!("1 Timeline ─ {what}")
        }
        (None, true) => "1 Story".to_owned(),
        (Some(story), true) => {
            let counted = |count: usize, one: &str| match count {
                0 => None,
                1 => Some(format!("1 {one}")),
                count => Some(format!("{count} {one}s")),
            };
            let summary = &story.summary;
            let words: Vec<String> =
                [counted(summary.prompts, "prompt"), counted(summary.commits, "commit")]
                    .into_iter()
                    .flatten()
                    .collect();
            let dash = if words.is_empty() { "" } else { " ─ " };
            format!("1 Story{dash}{}", words.join(", "))
        }
    };
    if timeline.turned {
        title.push_str(", newest first");
    }
    if let Some(find) = &app.find {
        title = format!("{title} ─ {} match '{}'", find.matches.len(), find.typed);
    }
    let right = app.row().map(|row| {
        let time = row.place.time;
        format!("{} {}", app.zone.day(time, app.now), app.zone.clock(time))
    });
    let below = match (timeline.following, timeline.arrived) {
        (true, _) => "● live".to_owned(),
        (false, 0) => String::new(),
        (false, count) => format!("{count} new, G shows them"),
    };
    FrameTitles { title, right: right.unwrap_or_default(), below }
}

pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let focused = app.focus == PaneFocus::Story && app.overlays.is_empty();
    let inside = if app.strip_only {
        area
    } else {
        frame::draw(buffer, area, focused, &titles(app), app.theme)
    };
    let timeline = &app.timeline;
    if timeline.rows.is_empty() {
        let said = if timeline.loading || app.story_loading {
            "reading ..."
        } else if timeline.typed.is_empty() {
            "nothing recorded yet"
        } else {
            "nothing matches; <esc> clears the filter"
        };
        put_lines(buffer, inside, &[(TextTone::Dim, said.to_owned())], app.theme);
        return;
    }
    let graph = (!timeline.is_story())
        .then(|| BranchGraph::from_branches(&app.session.lines, &app.session.branch));
    let pattern = match app.overlays.last() {
        Some(OverlayPane::Find(find)) => Some(&find.pattern),
        _ => app.find.as_ref().map(|find| &find.pattern),
    };
    for (place, line) in timeline_lines(app).into_iter().enumerate() {
        let Some(row) = timeline.rows.get(line.row) else { continue };
        let place = below(inside, place);
        match line.part {
            LinePart::Separator(words) => {
                separator(&words, place, app.theme.style(TextTone::Dim), buffer);
            }
            LinePart::New => {
                let ends = if timeline.turned { "new above" } else { "new since your last look" };
                separator(ends, place, app.theme.style(TextTone::Accent), buffer);
            }
            LinePart::Question => {
                let question = row.story.as_ref().map_or("", |story| story.question.as_str());
                let text = Rect {
                    x: place.x + TEXT_COLUMN.min(place.width),
                    width: place.width.saturating_sub(TEXT_COLUMN),
                    ..place
                };
                put(buffer, text, &format!("to: {question}"), app.theme.style(TextTone::Dim));
            }
            LinePart::Main { timed } => {
                let text = match (&row.story, &graph) {
                    (Some(story), _) => story_row(app, row, story, timed, place, buffer),
                    (None, Some(graph)) => {
                        let newer = line.row.checked_sub(1);
                        let newer = newer.and_then(|newer| timeline.rows.get(newer));
                        raw_row(app, graph, row, newer, timed, place, buffer)
                    }
                    (None, None) => place,
                };
                if let Some(pattern) = pattern {
                    highlight(pattern, text, app.theme, buffer);
                }
                if line.row == timeline.cursor {
                    buffer.set_style(place, app.theme.cursor(app.focus == PaneFocus::Story));
                }
            }
        }
    }
}

/// Draws a line across the pane, with words at its start.
fn separator(words: &str, line: Rect, style: Style, buffer: &mut Buffer) {
    let rest = put(buffer, line, &format!("── {words} "), style);
    put(buffer, rest, &"─".repeat(rest.width.into()), style);
}

/// Draws the columns before the sign: whether the row is selected or marked, and its time. Returns
/// the rest of the line.
fn draw_row_start(
    app: &App,
    row: &TimelineRow,
    timed: bool,
    line: Rect,
    buffer: &mut Buffer,
) -> Rect {
    let theme = app.theme;
    let here = app.row().is_some_and(|one| std::ptr::eq(one, row));
    let marked = app.mark == Some(row.target);
    let (pointer, tone) = match (here, marked) {
        (true, true) => ("M", TextTone::Accent),
        (true, false) => (theme.glyph("▌", ">"), TextTone::Accent),
        (false, true) => ("m", TextTone::Warning),
        (false, false) => (" ", TextTone::Plain),
    };
    let rest = put(buffer, line, pointer, theme.style(tone));
    if line.width < MIN_TIMED_WIDTH {
        return rest;
    }
    let clock = if timed { app.zone.clock(row.place.time) } else { " ".repeat(5) };
    put(buffer, rest, &format!("{clock} "), theme.style(TextTone::Dim))
}

fn story_row(
    app: &App,
    row: &TimelineRow,
    story: &StoryLine,
    timed: bool,
    line: Rect,
    buffer: &mut Buffer,
) -> Rect {
    let theme = app.theme;
    let rest = draw_row_start(app, row, timed, line, buffer);
    let (sign, sign_tone) = story.sign;
    let text = put(buffer, rest, &format!("{sign:^3} "), theme.style(sign_tone));
    // The id of a hypothesis has the colour that this hypothesis has everywhere. Ids come first, so
    // a narrow pane cuts the text.
    let (id, words) = match row.title.split_once(' ') {
        Some((id, _)) if story.is_claim() => row.title.split_at(id.len()),
        _ => ("", row.title.as_str()),
    };
    let id_tone = match id.as_bytes().first() {
        Some(b'H') => TextTone::of_hypothesis(id),
        _ => TextTone::Id,
    };
    let rest = put(buffer, text, id, theme.style(id_tone));
    let rest = put(buffer, rest, words, theme.style(story.tone));
    let rest = if story.reason.is_empty() {
        rest
    } else {
        put(buffer, rest, &format!("  {}", story.reason), theme.style(TextTone::Dim))
    };
    Rect { width: rest.x - text.x, ..text }
}

fn raw_row(
    app: &App,
    graph: &BranchGraph<'_>,
    row: &TimelineRow,
    newer: Option<&TimelineRow>,
    timed: bool,
    line: Rect,
    buffer: &mut Buffer,
) -> Rect {
    let theme = app.theme;
    let mut rest = draw_row_start(app, row, timed, line, buffer);
    let cells = graph.cells(row, newer, glyph(row.sign, theme), theme, app.timeline.turned);
    // A narrow window has no room for all lanes.
    let room = usize::from(line.width / 4).max(2);
    let cells: String = cells.chars().take(room).collect();
    rest = put(buffer, rest, &cells, theme.style(TextTone::Id));
    if let MomentTarget::Sequence(sequence) = row.target
        && line.width >= 60
    {
        rest = put(buffer, rest, &format!("#{sequence} "), theme.style(TextTone::Id));
    }
    let text = rest;
    rest = put(buffer, rest, &row.title, theme.style(tone(row)));
    if !row.tags.is_empty() {
        let tags = format!("  [{}]", row.tags.join(" "));
        rest = put(buffer, rest, &tags, theme.style(TextTone::Tag));
    }
    if !row.by.is_empty() {
        rest = put(buffer, rest, &format!("  {}", row.by), theme.style(TextTone::Dim));
    }
    if row.branch != app.session.branch {
        let branch = format!("  on {}", row.branch);
        rest = put(buffer, rest, &branch, theme.style(TextTone::Dim));
    }
    Rect { width: rest.x - text.x, ..text }
}

/// Marks the letters in an area's first line that match the pattern.
pub(super) fn highlight(pattern: &FuzzyPattern, area: Rect, theme: Theme, buffer: &mut Buffer) {
    if pattern.is_empty() || area.height == 0 {
        return;
    }
    let mut letters: Vec<(u16, String)> = Vec::new();
    let mut x = area.x;
    while x < area.right() {
        let symbol = buffer.cell((x, area.y)).map_or(" ", |cell| cell.symbol());
        let wide = u16::try_from(symbol.width()).unwrap_or(1).max(1);
        letters.push((x, symbol.to_lowercase()));
        x += wide;
    }
    let text: Vec<String> = letters.iter().map(|(_, letter)| letter.clone()).collect();
    let Some(found) = pattern.find_in(&text) else { return };
    for place in found.places {
        if let Some((x, _)) = letters.get(place) {
            let cell = Rect { x: *x, width: 1, height: 1, y: area.y };
            buffer.set_style(cell, theme.matched());
        }
    }
}
