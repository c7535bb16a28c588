//! The state of the browser: plain data.

use crate::answer::{ActivityStrip, SessionOverview, StateTab, TimelineRow, WorkerFailure};
use crate::effect::{AppEffect, MomentTarget, PaneSlot, WorkerRequest};
use crate::host::NotifyEvent;
use crate::keymap::{KeyMode, Keymap};
use crate::panes::{
    ChartPane, FindState, InputPurpose, OverlayPane, PaneFocus, PresenceState, Replay, SheetPane,
    StatePane, TimelinePane,
};
use crate::story_view::StoryView;
use crate::theme::Theme;
use chrono::{FixedOffset, Local};
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::{civil_time, clock_time, day_name};
use std::collections::BTreeMap;

/// How many revisions and checkpoints of a story are read at first. More are read on request, so
/// that a long session does not fill the memory.
pub const STORY_REVISIONS: usize = 50_000;

/// The time zone for display and input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisplayZone {
    /// The time zone of the machine.
    #[default]
    Local,
    /// A zone with a fixed offset.
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

    /// Formats a moment: a number, or a time in this zone.
    #[must_use]
    pub fn moment(self, target: MomentTarget) -> String {
        match target {
            MomentTarget::Time(time) => self.show(time),
            target => target.to_string(),
        }
    }

    /// Formats the time of day: `14:30`.
    #[must_use]
    pub fn clock(self, time: Timestamp) -> String {
        match self {
            Self::Local => clock_time(time, &Local),
            Self::Fixed(offset) => clock_time(time, &offset),
        }
    }

    /// Formats the day of a time, with the year if it is not the year of `now`: `Tue 11 Mar`.
    #[must_use]
    pub fn day(self, time: Timestamp, now: Timestamp) -> String {
        match self {
            Self::Local => day_name(time, now, &Local),
            Self::Fixed(offset) => day_name(time, now, &offset),
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
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AppStage {
    /// The store is being opened.
    #[default]
    Loading,
    /// There is no session, or it is empty.
    Empty,
    /// The timeline is shown.
    Browsing,
    /// The store cannot be read.
    Failed(WorkerFailure),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMessage {
    pub tone: crate::theme::TextTone,
    pub text: String,
}

/// The state of the whole browser.
#[derive(Clone, Debug, Default)]
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
    pub session: SessionOverview,
    pub timeline: TimelinePane,
    pub state: StatePane,
    pub detail: SheetPane,
    /// The confidence of hypotheses over time.
    pub chart: ChartPane,
    /// The story; `None` until it is read.
    pub story: Option<Box<StoryView>>,
    /// The pane that gets the keys.
    pub focus: PaneFocus,
    /// Whether only the focused pane is shown.
    pub zoomed: bool,
    /// The overlay panes, the topmost last.
    pub overlays: Vec<OverlayPane>,
    /// The moment that is marked for a comparison.
    pub mark: Option<MomentTarget>,
    /// The time of the marked moment.
    pub mark_time: Option<Timestamp>,
    /// Whether the details show the difference to the marked moment.
    pub comparing: bool,
    /// The search whose matches are highlighted.
    pub find: Option<FindState>,
    /// The replay, while one runs.
    pub replay: Option<Replay>,
    /// Whether everything after the selection is hidden.
    pub without_hindsight: bool,
    /// The data of the activity strip.
    pub strip: Option<ActivityStrip>,
    /// The message in the status line.
    pub status: Option<StatusMessage>,
    /// The number of the latest request for each pane.
    pub requested: BTreeMap<PaneSlot, u64>,
    /// The number of the latest request; 0 before the first.
    pub request_number: u64,
    /// Whether a request to watch the store is open.
    pub watching: bool,
    /// When the strip was last requested.
    pub strip_requested: Option<Timestamp>,
    /// When the story was last requested, and how long the worker took for it, in microseconds.
    pub story_requested: Option<(Timestamp, i64)>,
    /// The position of the store when the story was last requested.
    pub story_position: u64,
    /// How many revisions and checkpoints of the story are read, counted from the last one.
    pub story_revisions: usize,
    /// Whether a request for the story is open.
    pub story_loading: bool,
    /// Whether only the title, the last lines of the story and the axis of time are shown.
    pub strip_only: bool,
    /// The events that are announced when they arrive.
    pub notified: Vec<NotifyEvent>,
    /// Whether and when the person looked.
    pub looked: PresenceState,
    /// The texts that were typed for requests without an answer, by the number of the request.
    pub unsent: BTreeMap<u64, UnsentText>,
    /// The selected chip of the filter.
    pub chip: usize,
    /// Whether the browser ends.
    pub done: bool,
}

/// A text that was typed for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsentText {
    pub purpose: InputPurpose,
    pub text: String,
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
            story_revisions: STORY_REVISIONS,
            looked: PresenceState { input: now, ..PresenceState::default() },
            ..Self::default()
        }
    }

    /// Returns the mode that decides what keys do.
    #[must_use]
    pub fn mode(&self) -> KeyMode {
        match (self.overlays.last(), self.focus) {
            (Some(OverlayPane::Sheet(_)), _) => KeyMode::Sheet,
            (Some(OverlayPane::Charts), _) => KeyMode::Charts,
            (Some(OverlayPane::Sessions { .. }), _) => KeyMode::Sessions,
            (Some(OverlayPane::Input { .. }), _) => KeyMode::Input,
            (Some(OverlayPane::Confirm { .. }), _) => KeyMode::Confirm,
            (Some(OverlayPane::Help { .. } | OverlayPane::Find(_)), _) => KeyMode::Choose,
            (None, _) if self.replay.is_some() => KeyMode::Replay,
            (None, PaneFocus::Story) if self.find.is_some() => KeyMode::Found,
            (None, PaneFocus::Story) => KeyMode::Story,
            (None, PaneFocus::Detail) => KeyMode::Detail,
            (None, PaneFocus::Held) => KeyMode::Held,
            (None, PaneFocus::Time) => KeyMode::Time,
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
        if self.timeline.following && self.timeline.is_story() {
            return MomentTarget::Head;
        }
        self.row().map_or(MomentTarget::Head, |row| row.target)
    }

    /// Returns the time after which nothing is shown. This is the time of the selection in a replay
    /// and while hindsight is hidden; `None` otherwise.
    #[must_use]
    pub fn shown_until(&self) -> Option<Timestamp> {
        let hides = self.without_hindsight || self.replay.is_some();
        self.row().filter(|_| hides).map(|row| row.place.time)
    }

    /// Returns whether the pane "Held" has a line about the mark.
    #[must_use]
    pub fn has_mark_line(&self) -> bool {
        let view = self.state.view.as_ref();
        self.mark.is_some() && view.is_some_and(|view| !view.since_mark.is_empty())
    }

    /// Returns whether the pane "Held" has a line about the lines that are left out.
    #[must_use]
    pub fn has_more_line(&self) -> bool {
        let view = self.state.view.as_ref();
        self.state.tab != StateTab::Brief && view.is_some_and(|view| view.more > 0)
    }

    /// Builds a request to the worker. Answers to earlier requests for the same pane are ignored,
    /// except in the slot [`PaneSlot::Session`].
    pub fn ask(&mut self, request: WorkerRequest) -> AppEffect {
        self.request_number += 1;
        self.requested.insert(request.slot(), self.request_number);
        AppEffect::Ask { request_number: self.request_number, request: Box::new(request) }
    }

    /// Sets the message in the status line.
    pub fn say(&mut self, tone: crate::theme::TextTone, text: impl Into<String>) {
        self.status = Some(StatusMessage { tone, text: text.into() });
    }
}
