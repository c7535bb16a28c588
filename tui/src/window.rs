//! Computes which lines of the timeline are on the screen. A row has one main line. Above it there
//! may be a line where unseen rows begin, and a line with a new day or a long pause. Below it there
//! may be a line with the question that a short answer answers.

use crate::answer::TimelineRow;
use crate::app::App;
use crate::layout::WindowLayout;
use forge_store::model::time_grammar::describe_distance;
use forge_store::story::long_pause;

/// The number of rows that stay visible above and below the selection; fewer on a small screen.
const MARGIN: usize = 3;

/// A line of the timeline on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowLine {
    /// The index of its row.
    pub row: usize,
    pub part: LinePart,
}

/// The part of a row that a line shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinePart {
    /// A new day, a long pause, or both, between the row above and the row.
    Separator(String),
    /// The border between seen rows and rows that arrived unseen.
    New,
    /// The row itself.
    Main {
        /// Whether the time is shown: not below a row with the same clock time, unless a separator
        /// is between them.
        timed: bool,
    },
    /// The question that the row answers.
    Question,
}

/// Returns the row above another one on the screen.
fn above(app: &App, row: usize) -> Option<usize> {
    if app.timeline.turned {
        return newer(app, row);
    }
    Some(row + 1).filter(|row| *row < app.timeline.rows.len())
}

/// Returns the row below another one on the screen.
fn below(app: &App, row: usize) -> Option<usize> {
    if app.timeline.turned {
        return Some(row + 1).filter(|row| *row < app.timeline.rows.len());
    }
    newer(app, row)
}

/// Returns the row after another one in time. While later rows are hidden, the selected row is the
/// last one.
fn newer(app: &App, row: usize) -> Option<usize> {
    let is_last = row <= app.timeline.cursor && app.shown_until().is_some();
    row.checked_sub(1).filter(|_| !is_last)
}

/// Returns the words for a new day or a long pause between a row and the row above it. If no row is
/// above it, they name its day.
fn separator(app: &App, row: usize) -> Option<String> {
    let own = app.timeline.rows.get(row)?.place.time;
    let day = app.zone.day(own, app.now);
    let Some(other) = above(app, row).and_then(|other| app.timeline.rows.get(other)) else {
        return Some(day);
    };
    let time = other.place.time;
    let (earlier, later) = if app.timeline.turned { (own, time) } else { (time, own) };
    let pause = long_pause(earlier, later).map(describe_distance);
    let pause = pause.map(|long| {
        if app.timeline.turned { format!("{long} earlier") } else { format!("after {long}") }
    });
    let named = (app.zone.day(time, app.now) != day).then_some(day);
    let words: Vec<String> = [named, pause].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Returns whether the border between seen and unseen rows is directly above a row.
fn is_new(app: &App, row: usize) -> bool {
    let Some(seen) = app.looked.seen.filter(|_| app.timeline.filter.is_empty()) else {
        return false;
    };
    let arrived = |row: usize| app.timeline.rows.get(row).is_some_and(|row| row.place > seen);
    let other = above(app, row);
    if app.timeline.turned {
        return !arrived(row) && other.is_some_and(arrived);
    }
    arrived(row) && other.is_some_and(|other| !arrived(other))
}

fn has_question(row: &TimelineRow) -> bool {
    row.story.as_ref().is_some_and(|story| !story.question.is_empty())
}

/// Returns the number of lines of a row.
fn height(app: &App, row: usize) -> usize {
    let asked = app.timeline.rows.get(row).is_some_and(has_question);
    let new = usize::from(is_new(app, row));
    1 + usize::from(asked) + usize::from(separator(app, row).is_some()) + new
}

/// Moves the top of the screen so that the selected row is on the screen, and no line is empty if
/// there are enough rows.
pub fn scroll_timeline(app: &mut App) {
    let room = WindowLayout::story_rows(app);
    let count = app.timeline.rows.len();
    let last = count.saturating_sub(1);
    app.timeline.cursor = app.timeline.cursor.min(last);
    app.timeline.top = app.timeline.top.min(last);
    if count == 0 {
        return;
    }
    // A few rows around the selection stay visible.
    let margin = (room / 6).min(MARGIN);
    let step = |next: fn(&App, usize) -> Option<usize>| {
        (0..margin).fold(app.timeline.cursor, |row, _| next(app, row).unwrap_or(row))
    };
    let (high, low, top) = (step(above), step(below), app.timeline.top);
    let is_above = if app.timeline.turned { high < top } else { high > top };
    let top = if is_above { high } else { top };
    let (mut first, mut used) = (low, height(app, low));
    while first != top
        && let Some(before) = above(app, first)
    {
        used += height(app, before);
        if used > room {
            break;
        }
        first = before;
    }
    // If lines at the bottom would be empty, the top moves up.
    let (mut filled, mut end) = (0, Some(first));
    while let Some(row) = end
        && filled < room
    {
        filled += height(app, row);
        end = below(app, row);
    }
    while end.is_none()
        && let Some(before) = above(app, first)
    {
        filled += height(app, before);
        if filled > room {
            break;
        }
        first = before;
    }
    app.timeline.top = first;
}

/// Returns the lines of the timeline that are on the screen, from top to bottom.
#[must_use]
pub fn timeline_lines(app: &App) -> Vec<WindowLine> {
    let room = WindowLayout::story_rows(app);
    let mut lines: Vec<WindowLine> = Vec::with_capacity(room);
    let mut next = (app.timeline.top < app.timeline.rows.len()).then_some(app.timeline.top);
    let mut clock: Option<String> = None;
    while let Some(row) = next
        && lines.len() < room
    {
        next = below(app, row);
        let Some(shown) = app.timeline.rows.get(row) else { break };
        let mut put = |part| lines.push(WindowLine { row, part });
        if is_new(app, row) {
            put(LinePart::New);
        }
        if let Some(words) = separator(app, row) {
            put(LinePart::Separator(words));
            clock = None;
        }
        let own = app.zone.clock(shown.place.time);
        put(LinePart::Main { timed: clock.as_ref() != Some(&own) });
        clock = Some(own);
        if has_question(shown) {
            put(LinePart::Question);
        }
    }
    lines.truncate(room);
    lines
}
