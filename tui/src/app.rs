//! The state of the browser: plain data.

use crate::answer::{
    ActivityStrip, ChartValues, SessionOverview, SessionRow, StateTab, StateView, TextSheet,
    TimelineRow, WorkerFailure,
};
use crate::effect::{AppEffect, MomentTarget, PaneSlot, WorkerRequest, WriteRequest};
use crate::keymap::{KeyMode, Keymap};
use crate::query::{TimelineFilter, TimelineLevel};
use crate::theme::Theme;
use chrono::{FixedOffset, Local};
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::civil_time;
use forge_store::store::HistoryPosition;
use std::collections::{BTreeMap, BTreeSet};

/// The time zone for display and input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayZone {
    /// The time zone of the machine.
    Local,
    /// One with a fixed offset.
    Fixed(FixedOffset),
}

impl DisplayZone {
    /// Formats a time in this zone, to the second.
    #[must_use]
    pub fn show(self, time: Timestamp) -> String {
        let time = time.plus_micros(-time.as_micros().rem_euclid(1_000_000));
        match self {
            Self::Local => civil_time(time, &Local),
            Self::Fixed(offset) => civil_time(time, &offset),
        }
    }

    /// Parses a time.
    ///
    /// # Errors
    /// A sentence that says what cannot be parsed.
    pub fn read(self, text: &str, now: Timestamp) -> Result<Timestamp, String> {
        match self {
            Self::Local => crate::query::read_time(text, now, &Local),
            Self::Fixed(offset) => crate::query::read_time(text, now, &offset),
        }
    }
}

/// What the browser shows as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum AppStage {
    /// The store is being opened.
    Loading,
    /// There is no session, or it is empty.
    Empty,
    /// The timeline is shown.
    Browsing,
    /// The store cannot be read.
    Failed(WorkerFailure),
}

/// The pane that gets the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaneFocus {
    /// The timeline is shown.
    Timeline,
    /// The state.
    State,
}

/// The list of moments.
#[derive(Clone, Debug, Default)]
pub struct TimelinePane {
    /// The rows that are loaded, newest first; the first may be the head.
    pub rows: Vec<TimelineRow>,
    /// The index of the selected row.
    pub cursor: usize,
    /// The first row on the screen.
    pub top: usize,
    /// Where older rows begin, if there are any.
    pub older: Option<HistoryPosition>,
    /// Where newer rows begin, if there are any.
    pub newer: Option<HistoryPosition>,
    /// Whether rows are being loaded.
    pub loading: bool,
    /// Whether the newest rows are loaded.
    pub at_newest: bool,
    /// How much is shown.
    pub level: TimelineLevel,
    /// The filter of the rows.
    pub filter: TimelineFilter,
    /// The filter as it was typed.
    pub typed: String,
    /// A position to select as soon as it is loaded.
    pub seek: Option<HistoryPosition>,
}

/// The pane with the state at the selected moment.
#[derive(Clone, Debug, Default)]
pub struct StatePane {
    /// The state that is shown.
    pub view: Option<StateView>,
    /// The selected tab.
    pub tab: StateTab,
    /// The index of the selected line.
    pub cursor: usize,
    /// The first line on the screen.
    pub top: usize,
    /// The moment that was selected before this one.
    pub before: Option<MomentTarget>,
    /// The error, if the state could not be read.
    pub failure: Option<WorkerFailure>,
}

/// A sheet in front of the other panes.
#[derive(Clone, Debug, Default)]
pub struct SheetPane {
    /// The sheet; `None` while it loads.
    pub sheet: Option<TextSheet>,
    /// The index of the selected line.
    pub cursor: usize,
    /// The first line on the screen.
    pub top: usize,
}

/// The charts, and which lines are drawn in them.
#[derive(Clone, Debug, Default)]
pub struct ChartsPane {
    /// The data of the charts; `None` while it loads.
    pub data: Option<ChartValues>,
    /// The hypotheses that are drawn, by their index in the data.
    pub chosen: BTreeSet<usize>,
    /// The index of the selected hypothesis.
    pub cursor: usize,
    /// The index of the first one listed.
    pub top: usize,
    /// The hypothesis that was selected when the charts were requested: only this one is drawn at
    /// first.
    pub wanted: Option<String>,
}

impl ChartsPane {
    /// How many lines are drawn at first, those that changed last. With more, they cannot be
    /// distinguished.
    const FIRST: usize = 8;

    /// Stores the data, and chooses the lines that are drawn at first.
    pub fn load(&mut self, data: ChartValues) {
        let wanted = self.wanted.take();
        let wanted = data.confidence.iter().position(|series| Some(&series.id) == wanted.as_ref());
        if let Some(wanted) = wanted {
            (self.cursor, self.chosen) = (wanted, BTreeSet::from([wanted]));
        } else {
            let moved = |place: &usize| {
                let points = data.confidence.get(*place).map(|series| series.points.as_slice());
                points.and_then(|points| points.last()).map(|(time, _)| *time)
            };
            let mut places: Vec<usize> = (0..data.confidence.len()).collect();
            places.sort_by_key(|place| std::cmp::Reverse(moved(place)));
            self.chosen = places.into_iter().take(Self::FIRST).collect();
        }
        self.data = Some(data);
    }

    /// Returns the number of hypotheses.
    #[must_use]
    pub fn count(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.confidence.len())
    }

    /// Draws or hides the selected hypothesis.
    pub fn toggle(&mut self) {
        if self.cursor < self.count() && !self.chosen.remove(&self.cursor) {
            self.chosen.insert(self.cursor);
        }
    }

    /// Draws all, or none if all are drawn.
    pub fn toggle_all(&mut self) {
        let all: BTreeSet<usize> = (0..self.count()).collect();
        self.chosen = if self.chosen == all { BTreeSet::new() } else { all };
    }
}

/// The purpose of a text input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputPurpose {
    /// Filter the timeline while typing.
    Search,
    /// Go to a moment.
    Jump,
    /// Make a checkpoint.
    Create,
    /// Tag a checkpoint.
    Tag,
    /// Create a branch.
    Branch,
    /// Write the view to a file.
    Export,
}

/// A pane in front of the timeline and the state.
#[derive(Clone, Debug)]
pub enum OverlayPane {
    /// A sheet.
    Sheet(SheetPane),
    /// Charts.
    Charts(ChartsPane),
    /// The list of sessions.
    Sessions {
        /// The sessions; `None` while they load.
        rows: Option<Vec<SessionRow>>,
        /// The index of the selected line.
        cursor: usize,
    },
    /// A text input.
    Input {
        /// Its purpose.
        purpose: InputPurpose,
        /// The text so far.
        text: String,
    },
    /// A question to confirm.
    Confirm {
        /// The write that waits for the answer.
        change: WriteRequest,
        /// A preview of the changes, if there is one.
        reading: SheetPane,
    },
}

/// The message in the status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMessage {
    /// The tone of the message.
    pub tone: crate::theme::TextTone,
    /// The text of the message.
    pub text: String,
}

/// The state of the whole browser.
#[derive(Clone, Debug)]
pub struct App {
    /// The width of the window in columns.
    pub width: u16,
    /// The height of the window in rows.
    pub height: u16,
    /// The current time.
    pub now: Timestamp,
    /// The time zone of all times.
    pub zone: DisplayZone,
    /// Colours and characters.
    pub theme: Theme,
    /// The key bindings.
    pub keymap: Keymap,
    /// What the browser shows as a whole.
    pub stage: AppStage,
    /// The session.
    pub session: SessionOverview,
    /// The timeline pane.
    pub timeline: TimelinePane,
    /// The state pane.
    pub state: StatePane,
    /// The pane that gets the keys.
    pub focus: PaneFocus,
    /// The overlay panes, the topmost last.
    pub fronts: Vec<OverlayPane>,
    /// The moment that is marked for a comparison.
    pub mark: Option<MomentTarget>,
    /// The data of the activity strip.
    pub strip: Option<ActivityStrip>,
    /// The message in the status line.
    pub status: Option<StatusMessage>,
    /// The latest request of each pane.
    pub asked: BTreeMap<PaneSlot, u64>,
    /// The number of requests so far.
    pub generation: u64,
    /// Whether a request to watch the store is open.
    pub watching: bool,
    /// When the strip was last requested.
    pub strip_asked: Option<Timestamp>,
    /// Whether the browser ends.
    pub done: bool,
}

impl App {
    /// Creates a browser that has not loaded anything yet.
    #[must_use]
    pub fn new(width: u16, height: u16, now: Timestamp, zone: DisplayZone) -> Self {
        Self {
            width,
            height,
            now,
            zone,
            theme: Theme::default(),
            keymap: Keymap::default(),
            stage: AppStage::Loading,
            session: SessionOverview::default(),
            timeline: TimelinePane::default(),
            state: StatePane::default(),
            focus: PaneFocus::Timeline,
            fronts: Vec::new(),
            mark: None,
            strip: None,
            status: None,
            asked: BTreeMap::new(),
            generation: 0,
            watching: false,
            strip_asked: None,
            done: false,
        }
    }

    /// Returns the mode that decides what keys do.
    #[must_use]
    pub fn mode(&self) -> KeyMode {
        match (self.fronts.last(), self.focus) {
            (Some(OverlayPane::Sheet(_)), _) => KeyMode::Sheet,
            (Some(OverlayPane::Charts(_)), _) => KeyMode::Charts,
            (Some(OverlayPane::Sessions { .. }), _) => KeyMode::Sessions,
            (Some(OverlayPane::Input { .. }), _) => KeyMode::Input,
            (Some(OverlayPane::Confirm { .. }), _) => KeyMode::Confirm,
            (None, PaneFocus::Timeline) => KeyMode::Timeline,
            (None, PaneFocus::State) => KeyMode::State,
        }
    }

    /// Returns the selected row.
    #[must_use]
    pub fn row(&self) -> Option<&TimelineRow> {
        self.timeline.rows.get(self.timeline.cursor)
    }

    /// Returns the selected moment.
    #[must_use]
    pub fn target(&self) -> MomentTarget {
        self.row().map_or(MomentTarget::Head, |row| row.target)
    }

    /// Builds a request to the worker. Answers to earlier requests of the same pane are ignored.
    pub fn ask(&mut self, request: WorkerRequest) -> AppEffect {
        self.generation += 1;
        self.asked.insert(request.slot(), self.generation);
        AppEffect::Ask { generation: self.generation, request: Box::new(request) }
    }

    /// Sets the message in the status line.
    pub fn say(&mut self, tone: crate::theme::TextTone, text: impl Into<String>) {
        self.status = Some(StatusMessage { tone, text: text.into() });
    }
}
