//! The layout of a window of any size.

use crate::app::{App, PaneFocus};
use ratatui::layout::Rect;

/// The areas of a window. An area without rows is not shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowLayout {
    /// The first line: session and branch.
    pub header: Rect,
    /// The timeline is shown.
    pub timeline: Rect,
    /// The state.
    pub state: Rect,
    /// The strip of activity with its marks.
    pub strip: Rect,
    /// The status message, or the filter.
    pub status: Rect,
    /// The key hints.
    pub keys: Rect,
}

/// The areas of the charts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChartLayout {
    /// The confidence over time.
    pub plot: Rect,
    /// The list of hypotheses.
    pub list: Rect,
    /// Verifications, activity, and the time scale.
    pub below: Rect,
}

/// The width in columns from which the timeline and the state are side by side.
const WIDE: u16 = 90;

impl WindowLayout {
    /// Computes the layout for the browser's current state.
    #[must_use]
    pub fn from_app(app: &App) -> Self {
        let (width, height) = (app.width, app.height);
        let row = |y: u16, rows: u16| Rect { x: 0, y, width, height: rows };
        let header = row(0, height.min(1));
        let status_rows = u16::from(height >= 4);
        let key_rows = u16::from(height >= 3);
        let strip_rows = match height {
            0..=13 => 0,
            14..=21 => 2,
            _ => 3,
        };
        let used = header.height + status_rows + key_rows + strip_rows;
        let middle = row(header.height, height.saturating_sub(used));
        let strip = row(middle.bottom(), strip_rows);
        let status = row(strip.bottom(), status_rows);
        let keys = row(status.bottom(), key_rows);
        let (timeline, state) = if width >= WIDE {
            let left = (width * 11 / 20).min(110);
            (
                Rect { width: left, ..middle },
                Rect { x: left + 1, width: width - left - 1, ..middle },
            )
        } else if app.focus == PaneFocus::State {
            (Rect::default(), middle)
        } else {
            (middle, Rect::default())
        };
        Self { header, timeline, state, strip, status, keys }
    }

    /// Returns the area of a sheet in front.
    #[must_use]
    pub fn front(app: &App) -> Rect {
        let layout = Self::from_app(app);
        let below = layout.status.height + layout.keys.height;
        Rect {
            x: 0,
            y: layout.header.height,
            width: app.width,
            height: app.height.saturating_sub(layout.header.height + below),
        }
    }

    /// Returns the areas of the charts, with this many hypotheses in the list.
    #[must_use]
    pub fn chart(front: Rect, hypotheses: usize) -> ChartLayout {
        let part = |y: u16, height: u16| Rect { y, height, ..front };
        let room = front.height.saturating_sub(1);
        let below = room.min(4);
        let room = room - below;
        let wanted = u16::try_from(hypotheses).unwrap_or(u16::MAX);
        let list = wanted.min((room / 3).max(1)).min(room);
        let plot = part(front.y + front.height.min(1), room - list);
        let list = part(plot.bottom(), list);
        ChartLayout { plot, list, below: part(list.bottom(), below) }
    }

    /// Returns the number of visible lines of a sheet.
    #[must_use]
    pub fn sheet_rows(app: &App) -> usize {
        usize::from(Self::front(app).height.saturating_sub(1)).max(1)
    }

    /// Returns the number of visible lines of the state, without its two title lines.
    #[must_use]
    pub fn state_rows(app: &App) -> usize {
        usize::from(Self::from_app(app).state.height.saturating_sub(2)).max(1)
    }

    /// Returns the number of visible lines of the timeline.
    #[must_use]
    pub fn timeline_rows(app: &App) -> usize {
        usize::from(Self::from_app(app).timeline.height).max(1)
    }
}
