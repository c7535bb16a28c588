//! The layout of a window of any size.

use crate::app::App;
use crate::panes::PaneFocus;
use ratatui::layout::Rect;

/// The areas of a window, each with its frame. An area without rows is not shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowLayout {
    /// The first line: session, branch and status.
    pub header: Rect,
    pub story: Rect,
    pub detail: Rect,
    /// The pane "Held": what was held at the selected moment.
    pub held: Rect,
    /// The axis of time.
    pub time: Rect,
    /// The last line: a message, an input, or the keys.
    pub keys: Rect,
}

/// The width, in columns, from which the story is beside the other panes and not above them.
const WIDE: u16 = 100;
/// A window with fewer columns, or fewer rows, than these shows only one pane.
const SMALL: (u16, u16) = (60, 16);
/// The height of the panes, in rows, from which a wide window shows both the details and the pane
/// "Held" beside the story.
const TALL: u16 = 17;

impl WindowLayout {
    /// Computes the layout for the browser's current state.
    #[must_use]
    pub fn from_app(app: &App) -> Self {
        let (width, height) = (app.width, app.height);
        let row = |y: u16, rows: u16| Rect { x: 0, y, width, height: rows };
        if app.strip_only {
            // Messages and inputs are shown in the row of the axis.
            let time_rows = u16::from(height >= 4);
            let header = row(0, height.min(1));
            let last = row(height - time_rows, time_rows);
            let story = row(header.height, height - header.height - time_rows);
            return Self { header, story, time: last, keys: last, ..Self::default() };
        }
        let header = row(0, height.min(1));
        let key_rows = u16::from(height >= 3);
        let keys = row(height - key_rows, key_rows);
        let small = width < SMALL.0 || height < SMALL.1;
        let time_rows = if small || app.zoomed { 0 } else { time_rows(app) };
        let middle = row(header.height, height - header.height - key_rows - time_rows);
        let time = row(middle.bottom(), time_rows);
        let mut layout = Self { header, time, keys, ..Self::default() };
        if small || app.zoomed {
            *layout.area_mut(app.focus) = middle;
            return layout;
        }
        if width >= WIDE {
            let left = width * 13 / 25;
            layout.story = Rect { width: left, ..middle };
            let right = Rect { x: left, width: width - left, ..middle };
            if right.height < TALL {
                *layout.second_mut(app.focus) = right;
                return layout;
            }
            let upper = right.height * 11 / 20;
            layout.detail = Rect { height: upper, ..right };
            layout.held = Rect { y: right.y + upper, height: right.height - upper, ..right };
            return layout;
        }
        let upper = middle.height * 7 / 10;
        layout.story = Rect { height: upper, ..middle };
        let lower = Rect { y: middle.y + upper, height: middle.height - upper, ..middle };
        *layout.second_mut(app.focus) = lower;
        layout
    }

    /// Returns whether the window is too narrow to show another pane beside the story.
    #[must_use]
    pub const fn is_narrow(app: &App) -> bool {
        app.width < WIDE
    }

    #[must_use]
    pub const fn area(&self, pane: PaneFocus) -> Rect {
        match pane {
            PaneFocus::Story => self.story,
            PaneFocus::Detail => self.detail,
            PaneFocus::Held => self.held,
            PaneFocus::Time => self.time,
        }
    }

    const fn area_mut(&mut self, pane: PaneFocus) -> &mut Rect {
        match pane {
            PaneFocus::Story => &mut self.story,
            PaneFocus::Detail => &mut self.detail,
            PaneFocus::Held => &mut self.held,
            PaneFocus::Time => &mut self.time,
        }
    }

    /// Returns the area of the only pane beside or below the story: "Held" if it has the focus,
    /// else the details.
    const fn second_mut(&mut self, focus: PaneFocus) -> &mut Rect {
        match focus {
            PaneFocus::Held => &mut self.held,
            _ => &mut self.detail,
        }
    }

    /// Returns the area inside a pane's frame. A very small pane has no frame.
    #[must_use]
    pub const fn inside(area: Rect) -> Rect {
        if area.height < 4 || area.width < 16 {
            return area;
        }
        Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
    }

    /// Returns the area of the lines of the story. In the strip, or if it is very small, the story
    /// has no frame.
    #[must_use]
    pub fn inside_story(app: &App) -> Rect {
        let area = Self::from_app(app).story;
        if app.strip_only { area } else { Self::inside(area) }
    }

    /// Returns the area of a pane that opens in front. In a wide window, it is a little more than
    /// the right half, so that a part of the story stays visible.
    #[must_use]
    pub fn popup(app: &App) -> Rect {
        let front = Self::front(app);
        if front.width < WIDE {
            return front;
        }
        let left = front.width * 9 / 20;
        Rect { x: front.x + left, width: front.width - left, ..front }
    }

    /// Returns the area of a page in front of all panes.
    #[must_use]
    pub fn front(app: &App) -> Rect {
        let layout = Self::from_app(app);
        let used = layout.header.height + layout.keys.height;
        Rect {
            x: 0,
            y: layout.header.height,
            width: app.width,
            height: app.height.saturating_sub(used),
        }
    }

    /// Returns the number of visible lines of a page in front.
    #[must_use]
    pub fn sheet_rows(app: &App) -> usize {
        usize::from(Self::inside(Self::front(app)).height).max(1)
    }

    /// Returns the number of visible lines of the pane "Held", without the tabs at its top and the
    /// remarks at its bottom.
    #[must_use]
    pub fn held_rows(app: &App) -> usize {
        let inside = Self::inside(Self::from_app(app).held);
        let bottom = u16::from(app.has_mark_line()) + u16::from(app.has_more_line());
        usize::from(inside.height.saturating_sub(1 + bottom)).max(1)
    }

    /// Returns the number of visible lines of the story.
    #[must_use]
    pub fn story_rows(app: &App) -> usize {
        usize::from(Self::inside_story(app).height).max(1)
    }
}

/// Returns the height of the axis of time: 1 row in a window of less than 30 rows, otherwise 7. If
/// there are hypotheses, a window of 38 rows or more also has room for their chart.
fn time_rows(app: &App) -> u16 {
    let has_hypotheses = app.chart.count() > 0;
    match app.height {
        0..=29 => 1,
        38..=47 if has_hypotheses => 12,
        48.. if has_hypotheses => 14,
        _ => 7,
    }
}
