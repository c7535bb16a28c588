//! All that the browser knows: plain data.

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

/// In which zone times are shown and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayZone {
    /// The machine's.
    Local,
    /// One with a fixed offset.
    Fixed(FixedOffset),
}

impl DisplayZone {
    /// A time as the clocks there show it, to the second.
    #[must_use]
    pub fn show(self, time: Timestamp) -> String {
        let time = time.plus_micros(-time.as_micros().rem_euclid(1_000_000));
        match self {
            Self::Local => civil_time(time, &Local),
            Self::Fixed(offset) => civil_time(time, &offset),
        }
    }

    /// Reads a time.
    ///
    /// # Errors
    /// What cannot be read, in a sentence.
    pub fn read(self, text: &str, now: Timestamp) -> Result<Timestamp, String> {
        match self {
            Self::Local => crate::query::read_time(text, now, &Local),
            Self::Fixed(offset) => crate::query::read_time(text, now, &offset),
        }
    }
}

/// What there is to look at.
#[derive(Clone, Debug, PartialEq)]
pub enum AppStage {
    /// The store is being opened.
    Loading,
    /// There is no session, or nothing in it.
    Empty,
    /// The timeline.
    Browsing,
    /// It cannot be read.
    Failed(WorkerFailure),
}

/// Which side the keys go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaneFocus {
    /// The timeline.
    Timeline,
    /// The state.
    State,
}

/// The list of moments.
#[derive(Clone, Debug, Default)]
pub struct TimelinePane {
    /// The rows that are loaded, newest first; the first may be the head.
    pub rows: Vec<TimelineRow>,
    /// The row stood on.
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
    /// What passes.
    pub filter: TimelineFilter,
    /// The filter as it was typed.
    pub typed: String,
    /// Stand at this place as soon as it is loaded.
    pub seek: Option<HistoryPosition>,
}

/// The state beside it.
#[derive(Clone, Debug, Default)]
pub struct StatePane {
    /// What is shown.
    pub view: Option<StateView>,
    /// Which kind.
    pub tab: StateTab,
    /// The line stood on.
    pub cursor: usize,
    /// The first line on the screen.
    pub top: usize,
    /// The moment stood at before this one.
    pub before: Option<MomentTarget>,
    /// What went wrong.
    pub failure: Option<WorkerFailure>,
}

/// A sheet in front.
#[derive(Clone, Debug, Default)]
pub struct SheetPane {
    /// What is read; `None` while it loads.
    pub sheet: Option<TextSheet>,
    /// The line stood on.
    pub cursor: usize,
    /// The first line on the screen.
    pub top: usize,
}

/// Charts, and which of their lines are drawn.
#[derive(Clone, Debug, Default)]
pub struct ChartsPane {
    /// What they are drawn of; `None` while it loads.
    pub data: Option<ChartValues>,
    /// The hypotheses that are drawn, by their place in the data.
    pub chosen: BTreeSet<usize>,
    /// The hypothesis stood on.
    pub cursor: usize,
    /// The first one listed.
    pub top: usize,
    /// The hypothesis that somebody stood on when they asked: it alone is drawn at first.
    pub wanted: Option<String>,
}

impl ChartsPane {
    /// At first so many lines are drawn, those that moved last: more cannot be told apart.
    const FIRST: usize = 8;

    /// Takes in what was read, and chooses what is drawn at first.
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

    /// How many hypotheses there are to choose from.
    #[must_use]
    pub fn count(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.confidence.len())
    }

    /// Draws the hypothesis stood on, or no longer.
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

/// What a line of text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputPurpose {
    /// Filter, as it is typed.
    Search,
    /// Go to a moment.
    Jump,
    /// Make a checkpoint.
    Create,
    /// Tag a checkpoint.
    Tag,
    /// Begin a branch.
    Branch,
    /// Write the view to a file.
    Export,
}

/// What is in front of timeline and state.
#[derive(Clone, Debug)]
pub enum OverlayPane {
    /// A sheet.
    Sheet(SheetPane),
    /// Charts.
    Charts(ChartsPane),
    /// The sessions.
    Sessions {
        /// `None` while they load.
        rows: Option<Vec<SessionRow>>,
        /// The line stood on.
        cursor: usize,
    },
    /// A line of text.
    Input {
        /// For what.
        purpose: InputPurpose,
        /// So far.
        text: String,
    },
    /// Yes or no?
    Confirm {
        /// What is to be done.
        change: WriteRequest,
        /// What it would change, if that was asked.
        reading: SheetPane,
    },
}

/// What the last line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMessage {
    /// How it is to be seen.
    pub tone: crate::theme::TextTone,
    /// What.
    pub text: String,
}

/// The browser.
#[derive(Clone, Debug)]
pub struct App {
    /// The window's columns.
    pub width: u16,
    /// The window's rows.
    pub height: u16,
    /// Now.
    pub now: Timestamp,
    /// Where times are shown.
    pub zone: DisplayZone,
    /// How things look.
    pub theme: Theme,
    /// What keys do.
    pub keymap: Keymap,
    /// What there is to look at.
    pub stage: AppStage,
    /// The session.
    pub session: SessionOverview,
    /// The moments.
    pub timeline: TimelinePane,
    /// The state.
    pub state: StatePane,
    /// Which side the keys go to.
    pub focus: PaneFocus,
    /// What is in front, the topmost last.
    pub fronts: Vec<OverlayPane>,
    /// The moment marked to compare with.
    pub mark: Option<MomentTarget>,
    /// The strip.
    pub strip: Option<ActivityStrip>,
    /// What the last line says.
    pub status: Option<StatusMessage>,
    /// The latest request of each pane.
    pub asked: BTreeMap<PaneSlot, u64>,
    /// Requests so far.
    pub generation: u64,
    /// Whether the store is being watched just now.
    pub watching: bool,
    /// When the strip was last asked for.
    pub strip_asked: Option<Timestamp>,
    /// Whether to stop.
    pub done: bool,
}

impl App {
    /// A browser that has not begun yet.
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

    /// What keys mean now.
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

    /// The row stood on.
    #[must_use]
    pub fn row(&self) -> Option<&TimelineRow> {
        self.timeline.rows.get(self.timeline.cursor)
    }

    /// The moment stood at.
    #[must_use]
    pub fn target(&self) -> MomentTarget {
        self.row().map_or(MomentTarget::Head, |row| row.target)
    }

    /// Asks the worker for something; an answer to an earlier request of the same pane will not count.
    pub fn ask(&mut self, request: WorkerRequest) -> AppEffect {
        self.generation += 1;
        self.asked.insert(request.slot(), self.generation);
        AppEffect::Ask { generation: self.generation, request: Box::new(request) }
    }

    /// Says something in the last line.
    pub fn say(&mut self, tone: crate::theme::TextTone, text: impl Into<String>) {
        self.status = Some(StatusMessage { tone, text: text.into() });
    }
}
