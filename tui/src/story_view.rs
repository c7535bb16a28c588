//! The story as the browser shows it: its lines, its events on the axis of time, and a summary.

use crate::answer::{ConfidenceSeries, TimelineRow};
use crate::theme::TextTone;
use forge_store::model::{Key, Timestamp};
use forge_store::story::{ActivePeriod, DigestLine, RulerShape, StoryCut, StoryKind, StoryRef};

/// What the story adds to a line of the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct StoryLine {
    /// What kind of thing happened; `None` for a line that counts folded items.
    pub kind: Option<StoryKind>,
    /// The sign before the text, with its tone.
    pub sign: (&'static str, TextTone),
    pub tone: TextTone,
    /// The reason or description after the text; may be empty.
    pub reason: String,
    /// The question that a short answer answers; may be empty.
    pub question: String,
    /// The entities and revisions that the line is about.
    pub refs: Vec<StoryRef>,
    /// The lines that are folded here, newest first.
    pub hidden: Vec<TimelineRow>,
}

impl StoryLine {
    /// Returns the entities that the line is about.
    pub fn entities(&self) -> impl Iterator<Item = &Key> {
        self.refs.iter().filter_map(|about| match about {
            StoryRef::Entity(key) => Some(key),
            StoryRef::Sequence(_) => None,
        })
    }

    /// Returns whether the line is about a change of claims.
    #[must_use]
    pub fn is_claim(&self) -> bool {
        matches!(
            self.kind,
            Some(
                StoryKind::Hypothesis
                    | StoryKind::Evidence
                    | StoryKind::Belief
                    | StoryKind::Gap
                    | StoryKind::Claim
                    | StoryKind::Restore
            )
        )
    }
}

/// The kind of an event on the axis of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AxisEventKind {
    /// A person wrote or answered something.
    Prompt,
    /// A check passed.
    Passed,
    /// A check failed.
    Failed,
    /// Files were edited.
    Edit,
    Commit,
    /// An agent's context was compacted.
    Compaction,
    /// Anything else.
    Other,
}

/// Something that happened, on the axis of time. Events of one kind that no axis can tell apart are
/// counted as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisEvent {
    /// When the first of the events happened.
    pub at: Timestamp,
    pub kind: AxisEventKind,
    /// How many events are counted.
    pub count: u32,
}

/// A summary of the whole story.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StorySummary {
    /// What the session is about.
    pub title: Option<String>,
    /// The names of the checks that fail.
    pub failing: Vec<String>,
    /// How many checks pass.
    pub passing: usize,
    /// How many files have an edit that no recorded commit contains.
    pub uncommitted: usize,
    /// How many commits there are.
    pub commits: usize,
    /// How many prompts there are.
    pub prompts: usize,
    /// How many gaps are open.
    pub open_gaps: usize,
    /// The lines of the digest: asked, came out, ruled out, open.
    pub digest: Vec<DigestLine>,
}

/// Returns the shape of an axis of time without margins. Each shortened pause takes this part of
/// the width.
#[must_use]
pub const fn ruler_shape(pause: f64) -> RulerShape {
    RulerShape { margin: 0.0, pause, lone: 0.0 }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoryView {
    /// The id of the session.
    pub session: String,
    /// The lines of the story, newest first. If older ones are not read, the last line says so.
    pub rows: Vec<TimelineRow>,
    /// Where the story begins, if older lines are not read.
    pub cut: Option<StoryCut>,
    /// The confidence of each hypothesis over time; of many, only of the last ones.
    pub hypotheses: Vec<ConfidenceSeries>,
    /// The number of all hypotheses.
    pub hypothesis_count: usize,
    /// A summary of the story.
    pub summary: StorySummary,
    /// The events on the axis of time, oldest first.
    pub events: Vec<AxisEvent>,
    /// The periods with events, between long pauses.
    pub periods: Vec<ActivePeriod>,
    /// The longest time without events, in microseconds.
    pub longest_pause: i64,
}
