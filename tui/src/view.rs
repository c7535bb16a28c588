//! Drawing. Reads the browser's state and writes only cells.

mod branch_graph;
mod canvas;
mod chart;
mod chips;
mod detail;
mod frame;
mod held;
mod lanes;
mod overlay;
mod popup;
mod time;
mod timeline;

pub(crate) use chips::chip_places;
pub(crate) use time::time_at;

use crate::app::{App, AppStage, StatusMessage};
use crate::effect::MomentTarget;
use crate::layout::WindowLayout;
use crate::panes::{InputPurpose, OverlayPane};
use crate::sheet::{line, wrap_lines};
use crate::story_view::StorySummary;
use crate::theme::TextTone;
use canvas::{put, put_lines, put_wrapped};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

/// Maximum number of columns of the title of a session in the title of the terminal.
const TITLE_COLUMNS: usize = 60;

pub fn draw(app: &App, frame: &mut Frame<'_>) {
    // The window may have changed since its last resize event.
    let area = frame.area();
    if (area.width, area.height) == (app.width, app.height) {
        render(app, frame.buffer_mut());
    } else {
        let app = App { width: area.width, height: area.height, ..app.clone() };
        render(&app, frame.buffer_mut());
    }
}

/// Draws the browser into a buffer.
pub fn render(app: &App, buffer: &mut Buffer) {
    let layout = WindowLayout::from_app(app);
    header(app, layout.header, buffer);
    match &app.stage {
        AppStage::Browsing => {
            timeline::draw(app, layout.story, buffer);
            detail::draw(app, layout.detail, buffer);
            held::draw(app, layout.held, buffer);
            time::draw(app, layout.time, buffer);
        }
        stage => stage_screen(app, stage, buffer),
    }
    overlay::draw(app, buffer);
    chips::draw(app, buffer);
    let is_asking = !app.overlays.is_empty() || app.status.is_some();
    if !app.strip_only || is_asking || app.stage != AppStage::Browsing {
        canvas::clear(buffer, layout.keys);
        bottom(app, layout.keys, buffer);
    }
    if app.theme.ascii {
        to_ascii(buffer);
    }
}

/// The characters beyond ASCII in forge's own texts, with their replacements.
const ASCII: &[(&str, &str)] = &[
    ("…", "~"),
    ("→", ">"),
    ("−", "-"),
    ("–", "-"),
    ("·", "."),
    ("▲", "^"),
    ("▼", "v"),
    ("✓", "v"),
    ("✗", "x"),
    ("±", "~"),
    ("◆", "#"),
    ("↑", "^"),
    ("⤷", ">"),
    ("┄", "-"),
    ("★", "*"),
    ("⑂", "Y"),
    ("⚙", "@"),
    ("✎", "n"),
    ("↶", "<"),
    ("▸", "+"),
    ("●", "*"),
    ("○", "o"),
    ("─", "-"),
    ("█", "#"),
    ("▉", "#"),
    ("▊", "#"),
    ("▋", "#"),
    ("▌", "+"),
    ("▍", "+"),
    ("▎", "-"),
    ("▏", "-"),
];

fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some((_, ascii)) = ASCII.iter().find(|(unicode, _)| *unicode == cell.symbol()) {
            cell.set_symbol(ascii);
        }
    }
}

/// Returns the title for the terminal's window or tab: the status, then the title of the session.
#[must_use]
pub fn title(app: &App) -> String {
    let mut parts: Vec<String> = Vec::new();
    if app.timeline.arrived > 0 {
        parts.push(format!("({} new)", app.timeline.arrived));
    }
    if let Some(story) = &app.story {
        parts.extend(summary_parts(&story.summary).into_iter().map(|(_, text)| text));
    }
    let about = app.story.as_ref().and_then(|story| story.summary.title.as_deref());
    let about = canvas::shortened(about.unwrap_or(&app.session.name), TITLE_COLUMNS);
    let space = if parts.is_empty() { "" } else { "  " };
    let dash = if about.is_empty() { "" } else { " · " };
    let title = format!("{}{space}forge{dash}{about}", parts.join(" "));
    if !app.theme.ascii {
        return title;
    }
    let ascii = |letter: char| {
        let known = ASCII.iter().find(|(sign, _)| sign.starts_with(letter));
        if letter.is_ascii() {
            letter.to_string()
        } else {
            known.map_or("?", |one| one.1).to_owned()
        }
    };
    title.chars().map(ascii).collect()
}

/// Returns the browser's screen as plain text.
#[must_use]
pub fn text(app: &App) -> String {
    let area = Rect { x: 0, y: 0, width: app.width, height: app.height };
    let mut buffer = Buffer::empty(area);
    render(app, &mut buffer);
    plain(&buffer)
}

/// Returns a buffer as plain text, without trailing blanks.
#[must_use]
pub fn plain(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut line = String::new();
        let mut x = buffer.area.left();
        while x < buffer.area.right() {
            let symbol = buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
            line.push_str(symbol);
            // A wide character also occupies the next cell.
            x += (symbol.width() as u16).max(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns the status of the session: checks, open gaps, and files that are not committed.
fn summary_parts(summary: &StorySummary) -> Vec<(TextTone, String)> {
    let mut parts = Vec::new();
    match (summary.failing.len(), summary.passing) {
        (0, 0) => {}
        (0, _) => parts.push((TextTone::Good, "✓ none failing".to_owned())),
        (count, _) => parts.push((TextTone::Bad, format!("✗ {count} failing"))),
    }
    match summary.open_gaps {
        0 => {}
        1 => parts.push((TextTone::Warning, "? 1 gap".to_owned())),
        count => parts.push((TextTone::Warning, format!("? {count} gaps"))),
    }
    match summary.uncommitted {
        0 => {}
        1 => parts.push((TextTone::Warning, "! 1 file uncommitted".to_owned())),
        count => parts.push((TextTone::Warning, format!("! {count} files uncommitted"))),
    }
    parts
}

/// Draws the first line: the title of the session, and its status.
fn header(app: &App, area: Rect, buffer: &mut Buffer) {
    let session = &app.session;
    let theme = app.theme;
    let rest = put(buffer, area, " forge", theme.style(TextTone::Dim));
    if session.name.is_empty() {
        return;
    }
    let mut parts: Vec<(TextTone, String)> = Vec::new();
    // The status at the end is hidden while the end is hidden.
    let summary = app.story.as_ref().map(|story| &story.summary);
    if let Some(summary) = summary.filter(|_| app.shown_until().is_none()) {
        parts.extend(summary_parts(summary));
        if summary.commits > 0 && area.width >= 100 {
            parts.push((TextTone::Plain, format!("◆ {}", summary.commits)));
        }
    }
    let summary_count = parts.len();
    if let Some(mark) = app.mark {
        parts.push((TextTone::Warning, format!("m {}", app.zone.moment(mark))));
    }
    if !app.timeline.typed.is_empty() {
        parts.push((TextTone::Warning, format!("filter: {}", app.timeline.typed)));
    }
    if let Some(replay) = app.replay {
        parts.push((TextTone::Accent, format!("▸ replay {}/s", replay.speed)));
    } else if app.without_hindsight {
        parts.push((TextTone::Accent, "without hindsight".to_owned()));
    } else if app.target() == MomentTarget::Head && app.stage == AppStage::Browsing {
        parts.push((TextTone::Good, "● live".to_owned()));
    }
    // In a narrow line, parts are left out from the end, but not the last one that is about the
    // present view.
    let kept = usize::from(parts.len() > summary_count);
    let wide = |parts: &[(TextTone, String)]| -> usize {
        parts.iter().map(|(_, text)| text.width() + 2).sum::<usize>() + 1
    };
    while wide(&parts) + 16 > usize::from(rest.width) && parts.len() > 1 {
        parts.remove(parts.len() - 1 - kept);
    }
    let right = u16::try_from(wide(&parts)).unwrap_or(u16::MAX).min(rest.width);
    let left = Rect { width: rest.width - right, ..rest };
    let title = app.story.as_ref().and_then(|story| story.summary.title.as_ref());
    let left = put(buffer, left, "  ", theme.style(TextTone::Plain));
    let branch = format!("  on {}", session.branch);
    // The branch is left out rather than the name.
    let room = usize::from(left.width).checked_sub(branch.width()).filter(|room| *room >= 8);
    let named = match title {
        // A session is often named by its first prompt.
        Some(title) if area.width >= 100 && *title != session.name => {
            format!("{}  {title}", session.name)
        }
        Some(title) if area.width >= 60 => title.clone(),
        _ => session.name.clone(),
    };
    let named = canvas::shortened(&named, room.unwrap_or(left.width.into()));
    let left = put(buffer, left, &named, theme.style(TextTone::Heading));
    if usize::from(left.width) >= branch.width() {
        put(buffer, left, &branch, theme.style(TextTone::Dim));
    }
    let mut place = Rect { x: rest.x + (rest.width - right), width: right, ..rest };
    for (tone, text) in parts {
        place = put(buffer, place, "  ", theme.style(TextTone::Plain));
        place = put(buffer, place, &text, theme.style(tone));
    }
}

fn stage_screen(app: &App, stage: &AppStage, buffer: &mut Buffer) {
    let area = WindowLayout::front(app);
    let lines: Vec<(TextTone, String)> = match stage {
        AppStage::Loading => vec![(TextTone::Dim, "reading the store ...".to_owned())],
        AppStage::Empty => {
            let mut lines = vec![(TextTone::Heading, "Nothing has been recorded yet.".to_owned())];
            lines.extend(
                [
                    "",
                    "Record something in another terminal; it appears here automatically:",
                    "  forge hypothesis add 'the cache is stale'",
                    "  forge checkpoint create 'before the change'",
                    "  forge import claude-code",
                    "",
                    "s lists the sessions of this store, q quits.",
                ]
                .map(|text| (TextTone::Plain, text.to_owned())),
            );
            lines
        }
        AppStage::Failed(failure) => {
            let title =
                if failure.damaged { "This store is damaged." } else { "This cannot be shown." };
            vec![
                (TextTone::Bad, title.to_owned()),
                (TextTone::Plain, failure.message.clone()),
                (TextTone::Plain, String::new()),
                (TextTone::Warning, failure.advice_line()),
                (TextTone::Plain, "r tries again, s lists the sessions, q quits.".to_owned()),
            ]
        }
        AppStage::Browsing => Vec::new(),
    };
    put_lines(buffer, area, &lines, app.theme);
}

/// Draws the bottom line: an input, a question, a message, or the keys. A problem that needs more
/// lines covers those above.
fn bottom(app: &App, area: Rect, buffer: &mut Buffer) {
    let theme = app.theme;
    match (app.overlays.last(), &app.status) {
        (Some(OverlayPane::Input { purpose, text }), said) => {
            // A long prompt leaves room for the text.
            let prompt = canvas::shortened(&purpose.prompt(), usize::from(area.width) * 2 / 3);
            let half = usize::from(area.width) / 2;
            let (beside, above) = match said {
                Some(said) if said.text.width() + 3 <= half => (format!("   {}", said.text), None),
                _ => (String::new(), said.as_ref()),
            };
            if let Some(said) = above {
                let rows = 1 + u16::from(*purpose == InputPurpose::Filter);
                let area = Rect { y: area.y.saturating_sub(rows), ..area };
                message(app, said, area, buffer);
            }
            let cursor = theme.glyph("▏", "_");
            // The end of the typed text stays visible.
            let used = prompt.width() + 4 + beside.width();
            let room = usize::from(area.width).saturating_sub(used).max(4);
            let tail = canvas::end_of(text, room);
            let rest = put(buffer, area, &format!(" {prompt}: "), theme.style(TextTone::Accent));
            let rest = put(buffer, rest, &format!("{tail}{cursor}"), theme.style(TextTone::Plain));
            put(buffer, rest, &beside, theme.style(TextTone::Warning));
        }
        (Some(OverlayPane::Confirm { change, .. }), _) => {
            let text = format!(" do it? (y/n)   $ {}", change.command());
            put(buffer, area, &text, theme.style(TextTone::Warning));
        }
        (_, Some(status)) => message(app, status, area, buffer),
        _ => keys(app, area, buffer),
    }
}

/// Draws a message. A problem is shown whole: its last line is in the area, the others above it.
fn message(app: &App, status: &StatusMessage, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 || !matches!(status.tone, TextTone::Bad | TextTone::Warning) {
        put(buffer, area, &format!(" {}", status.text), app.theme.style(status.tone));
        return;
    }
    let lines = wrap_lines(vec![line(status.tone, 1, status.text.clone())], area.width);
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(area.bottom());
    let area = Rect { y: area.bottom() - rows, height: rows, ..area };
    canvas::clear(buffer, area);
    put_wrapped(buffer, area, &lines, 0, app.theme);
}

/// Draws the key hints that fit. The last two, such as the help and quitting, are always drawn.
fn keys(app: &App, area: Rect, buffer: &mut Buffer) {
    let bindings = app.keymap.bindings_in(app.mode()).filter(|binding| !binding.short.is_empty());
    let hints: Vec<(String, &str)> = bindings
        .filter_map(|binding| Some((binding.keys.first()?.to_string(), binding.short)))
        .collect();
    let wide = |(key, word): &(String, &str)| key.width() + word.width() + 3;
    let (first, last) = hints.split_at(hints.len().saturating_sub(2));
    // Without rows, most keys do nothing.
    let has_none = app.stage != AppStage::Browsing && app.overlays.is_empty();
    let first: &[(String, &str)] = if has_none { &[] } else { first };
    let needed: usize = last.iter().map(wide).sum();
    let mut room = usize::from(area.width).saturating_sub(needed + 1);
    let mut shown: Vec<&(String, &str)> = Vec::new();
    for hint in first {
        if wide(hint) > room {
            break;
        }
        room -= wide(hint);
        shown.push(hint);
    }
    let mut rest = put(buffer, area, " ", app.theme.style(TextTone::Dim));
    for (key, word) in shown.into_iter().chain(last) {
        rest = put(buffer, rest, key, app.theme.style(TextTone::Id));
        rest = put(buffer, rest, &format!(" {word}  "), app.theme.style(TextTone::Dim));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A half bar was listed twice, first as the sign of a selection, so the strength of evidence
    /// ended in an arrow without Unicode.
    #[test]
    fn without_unicode_a_half_bar_is_shown_by_its_own_sign() {
        let mut buffer = Buffer::with_lines(["██▌ █▏ ▍"]);
        to_ascii(&mut buffer);
        assert_eq!(plain(&buffer), "##+ #- +\n");
        for (place, (sign, _)) in ASCII.iter().enumerate() {
            assert!(!ASCII.iter().skip(place + 1).any(|(other, _)| other == sign), "{sign} twice");
        }
    }
}
