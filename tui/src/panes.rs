//! The panes of the browser, and what opens in front of them: plain data.

use crate::answer::{ConfidencePoint, WorkerFailure};
use crate::answer::{ConfidenceSeries, SessionRow, StateTab, StateView, TextSheet, TimelineRow};
use crate::effect::{MomentTarget, WriteRequest};
use crate::fuzzy::FuzzyPattern;
use crate::query::{TimelineFilter, TimelineLevel};
use forge_store::model::Timestamp;
use forge_store::store::{HistoryPosition, SessionBrief};
use forge_store::story::BriefRow;
use std::collections::BTreeSet;

/// The pane that gets the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PaneFocus {
    /// The story, or the other levels of the timeline.
    #[default]
    Story,
    Detail,
    /// The state at the selected moment: the pane "Held".
    Held,
    /// The axis of time.
    Time,
}

impl PaneFocus {
    /// All panes, by their numbers.
    pub const ALL: [Self; 4] = [Self::Story, Self::Detail, Self::Held, Self::Time];
}

/// The list of moments.
#[derive(Clone, Debug, Default)]
pub struct TimelinePane {
    /// The rows that are loaded, newest first. At the levels other than the story, the first is the
    /// head if the newest rows are loaded.
    pub rows: Vec<TimelineRow>,
    /// The index of the selected row.
    pub cursor: usize,
    /// The row at the top of the screen.
    pub top: usize,
    /// Whether the newest row is at the top of the screen.
    pub turned: bool,
    /// Whether the selection stays at the newest row.
    pub following: bool,
    /// How many rows arrived since the selection left the newest one.
    pub arrived: usize,
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
    pub filter: TimelineFilter,
    /// The filter as it was typed.
    pub typed: String,
    /// A moment to select as soon as its row is loaded.
    pub seek: Option<(HistoryPosition, MomentTarget)>,
    /// The positions of the folded lines that were unfolded.
    pub unfolded: BTreeSet<HistoryPosition>,
}

impl TimelinePane {
    /// Returns whether the pane shows the story. A filter searches everything instead.
    #[must_use]
    pub fn is_story(&self) -> bool {
        self.level == TimelineLevel::Story && self.filter.is_empty()
    }
}

/// The pane with the state at the selected moment.
#[derive(Clone, Debug, Default)]
pub struct StatePane {
    /// The state that is shown.
    pub view: Option<StateView>,
    pub brief: Option<(MomentTarget, Box<SessionBrief>)>,
    /// The lines of the brief that are shown.
    pub lines: Vec<BriefRow>,
    /// The moment and the number of lines for which `lines` were made.
    pub lines_for: Option<(MomentTarget, usize)>,
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

/// A sheet: details, a comparison, the preview of a write.
#[derive(Clone, Debug, Default)]
pub struct SheetPane {
    /// The sheet; `None` while it loads.
    pub sheet: Option<TextSheet>,
    /// The index of the selected line.
    pub cursor: usize,
    /// The first line on the screen.
    pub top: usize,
}

/// The confidence of hypotheses over time, and the selected hypothesis.
#[derive(Clone, Debug, Default)]
pub struct ChartPane {
    /// The hypotheses; `None` while they load.
    pub series: Option<Vec<ConfidenceSeries>>,
    /// The ids of the hypotheses that are not drawn.
    pub hidden: BTreeSet<String>,
    /// The index of the selected hypothesis.
    pub cursor: usize,
}

impl ChartPane {
    /// Returns the hypotheses that are drawn.
    pub fn drawn(&self) -> impl Iterator<Item = &ConfidenceSeries> {
        let all = self.series.iter().flatten();
        all.filter(|series| !self.hidden.contains(&series.id))
    }

    #[must_use]
    pub fn selected(&self) -> Option<&ConfidenceSeries> {
        self.series.as_ref()?.get(self.cursor)
    }

    /// Returns the number of hypotheses.
    #[must_use]
    pub fn count(&self) -> usize {
        self.series.as_ref().map_or(0, Vec::len)
    }

    /// Draws or hides the selected hypothesis.
    pub fn toggle(&mut self) {
        let Some(id) = self.selected().map(|series| series.id.clone()) else { return };
        if !self.hidden.remove(&id) {
            self.hidden.insert(id);
        }
    }

    /// Hides the hypotheses that are settled. If exactly these are hidden, draws all.
    pub fn toggle_settled(&mut self) {
        let settled = self.series.iter().flatten().filter(|series| series.settled().is_some());
        let settled: BTreeSet<String> = settled.map(|series| series.id.clone()).collect();
        self.hidden = if self.hidden == settled { BTreeSet::new() } else { settled };
    }

    /// Returns all steps that are drawn, oldest first, with the ids of their hypotheses.
    #[must_use]
    pub fn steps(&self) -> Vec<(&str, &ConfidencePoint)> {
        let of = |series: &'_ ConfidenceSeries| series.points.len();
        let mut steps = Vec::with_capacity(self.drawn().map(of).sum());
        for series in self.drawn() {
            steps.extend(series.points.iter().map(|point| (series.id.as_str(), point)));
        }
        steps.sort_by_key(|(id, point)| (point.at, point.sequence, *id));
        steps
    }
}

/// Whether and when a person looked at the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceState {
    /// When a key was pressed, or the mouse used, or the terminal got the focus.
    pub input: Timestamp,
    /// Whether the terminal lost the focus.
    pub away: bool,
    /// The newest line before others arrived unseen.
    pub seen: Option<HistoryPosition>,
    /// Whether the person has returned since then.
    pub back: bool,
    /// Whether the next new lines come from a write in this browser.
    pub own: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputPurpose {
    /// Filter the timeline while typing.
    Filter,
    /// Go to a moment.
    Jump,
    /// Make a checkpoint.
    Create,
    /// Tag a checkpoint.
    Tag,
    Branch,
    /// Write the view to a file.
    Export,
    /// Add a note.
    Note,
    /// State a hypothesis.
    Hypothesis,
    /// Open a gap.
    Question,
    /// Add evidence for or against this hypothesis.
    Evidence {
        /// Its id.
        hypothesis: String,
        /// Whether the evidence speaks for it.
        supports: bool,
    },
    /// Confirm or reject this hypothesis, with a reason.
    Settle {
        /// Its id.
        hypothesis: String,
        confirm: bool,
    },
}

impl InputPurpose {
    /// Returns whether the input is a text for the store, which may be long.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Note
                | Self::Hypothesis
                | Self::Question
                | Self::Evidence { .. }
                | Self::Settle { .. }
        )
    }

    /// Returns the words before the input, which say what to type.
    #[must_use]
    pub fn prompt(&self) -> String {
        match self {
            Self::Filter => "filter".to_owned(),
            Self::Jump => "go to".to_owned(),
            Self::Create => "say what moment this is".to_owned(),
            Self::Tag => "tags (-word removes one)".to_owned(),
            Self::Branch => "name of the branch".to_owned(),
            Self::Export => "write this view to".to_owned(),
            Self::Note => "note".to_owned(),
            Self::Hypothesis => "hypothesis".to_owned(),
            Self::Question => "open question".to_owned(),
            Self::Evidence { hypothesis, supports } => {
                let way = if *supports { "for" } else { "against" };
                format!("evidence {way} {hypothesis}, as: .7 what it says")
            }
            Self::Settle { hypothesis, confirm } => {
                let way = if *confirm { "confirm" } else { "reject" };
                format!("{way} {hypothesis} because")
            }
        }
    }
}

/// A search in the rows, and its matches.
#[derive(Clone, Debug, Default)]
pub struct FindState {
    /// The text as it was typed.
    pub typed: String,
    /// The pattern made from the text.
    pub pattern: FuzzyPattern,
    /// The indices of the rows that match, the best first.
    pub matches: Vec<usize>,
    /// The index of the selected match.
    pub cursor: usize,
}

/// A pane in front of the others.
#[derive(Clone, Debug)]
pub enum OverlayPane {
    Sheet(SheetPane),
    Charts,
    /// The list of sessions.
    Sessions {
        /// The sessions; `None` while they load.
        rows: Option<Vec<SessionRow>>,
        /// What is not pushed, for each remote with unpushed operations.
        unpushed: Vec<String>,
        /// The index of the selected line.
        cursor: usize,
    },
    /// A text input.
    Input {
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
    /// The keys of the pane below.
    Help {
        /// The mode whose keys are listed.
        mode: crate::keymap::KeyMode,
        /// The text that filters them.
        typed: String,
        /// The index of the selected line.
        cursor: usize,
    },
    /// A search in the rows.
    Find(FindState),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// How many rows pass in a second.
    pub speed: u8,
    /// When the last row passed.
    pub stepped: Timestamp,
}
