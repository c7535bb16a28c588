//! The story of a session: what happened, in lines that mean something.
//!
//! A [`Story`] is made of turns. A turn begins with what a person asked and contains what followed:
//! claims by name, checks whose result changed, edits, commits, compactions, sub-agents. An item is
//! loud if a reader should see it; [`Story::rows`] folds the others into counts. What concerns the
//! whole story, such as the title and the files that no commit has, is in [`StoryFindings`].
//!
//! A story is read from a state once and does not depend on how it is shown. It contains nothing
//! that is not recorded.

mod agent_work;
mod brief;
mod brief_row;
mod build;
mod check_item;
mod check_run;
mod claim_item;
mod delivery;
mod digest;
mod edit_group;
mod events;
mod fact_item;
mod failure_text;
mod findings;
mod gist;
mod hypothesis_path;
mod item;
mod line;
mod named_files;
mod patch_line;
mod project_root;
mod record_item;
mod row;
#[cfg(test)]
mod tests;
mod time_ruler;
mod whole_text;

pub use brief_row::{BriefRow, brief_rows};
pub use check_run::CheckRun;
pub use delivery::{Delivery, DeliveryKind};
pub use digest::DigestLine;
pub use events::call_of_check;
pub use findings::{DeliveredCommit, StoryFindings, UncommittedFile};
pub use gist::closing_question;
pub use hypothesis_path::{HypothesisPath, HypothesisStep, StepEvidence};
pub use item::{FoldKey, StoryItem, StoryKind, StoryMark, StoryRef};
pub use line::{BranchWalk, FOLDED_SIGN, StoryTone, folded_words, long_pause};
pub use patch_line::{PatchLineKind, changed_line_counts, patch_lines};
pub use project_root::ProjectRoot;
pub use row::StoryRow;
pub use time_ruler::{
    ActivePeriod, RulerPause, RulerPeriod, RulerShape, TimeRuler, active_periods,
};

use crate::error::Result;
use crate::model::Timestamp;
use crate::store::{SourcedFact, StateAt};
use build::StoryBuilder;
use events::StoryEvents;
use std::borrow::Cow;

/// What happened in a session, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// The name of the session.
    pub session: String,
    /// The folder that paths are relative to, if the record names one.
    pub root: Option<ProjectRoot>,
    /// The turns. The first may begin without a prompt.
    pub turns: Vec<StoryTurn>,
    /// What concerns the whole story, such as its title.
    pub findings: StoryFindings,
    /// The history of each hypothesis, in the order in which they were stated.
    pub hypotheses: Vec<HypothesisPath>,
    /// The runs of checks, oldest first.
    pub checks: Vec<CheckRun>,
    /// Where the story begins, if older revisions were left out.
    pub cut: Option<StoryCut>,
    /// Whether quiet items are shown, too, instead of counted.
    unfolded: bool,
}

/// The place where a story begins that leaves out what is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoryCut {
    /// The time of its first revision or checkpoint.
    pub at: Timestamp,
    /// The number of its first revision or checkpoint: all smaller numbers are left out.
    pub sequence: u64,
}

/// A prompt and what followed it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoryTurn {
    /// What a person asked; `None` for what happened before the first prompt.
    pub prompt: Option<StoryItem>,
    /// What followed, in order.
    pub items: Vec<StoryItem>,
}

impl Story {
    /// Reads the story up to the moment of a state. Each fact and each revision is read once.
    ///
    /// Of long texts only the beginning is known until [`Story::read_whole_texts`] reads them.
    pub fn read(state: &StateAt) -> Result<Self> {
        Self::of_facts(state, &state.facts()?)
    }

    /// Reads the story up to the moment of a state. `facts` are all facts of that state.
    pub fn of_facts(state: &StateAt, facts: &[SourcedFact]) -> Result<Self> {
        Self::of_events(state, StoryEvents::read(state, facts)?)
    }

    /// Reads the story of the last `count` revisions and checkpoints up to the moment of a state,
    /// and of the facts since the first of them. The memory that it takes grows with `count` and
    /// the number of facts and checkpoints, not with the number of revisions.
    ///
    /// The findings cover the whole session. The hypotheses, checks and items begin at
    /// [`Story::cut`].
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn read_recent(state: &StateAt, count: usize) -> Result<Self> {
        let facts = state.facts()?;
        let (read, cut) = StoryEvents::read_recent(state, &facts, count)?;
        let mut story = Self::of_events(state, read)?;
        if let Some(cut) = cut {
            story.retain_between(cut.at, Timestamp::MAX);
            story.checks.retain(|run| run.at >= cut.at);
            story.cut = Some(cut);
        }
        Ok(story)
    }

    fn of_events(state: &StateAt, mut read: StoryEvents<'_>) -> Result<Self> {
        StoryBuilder::new(state.info()?.name, &mut read).build(state, read)
    }

    /// Returns the items of all turns, oldest first.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = &StoryItem> {
        self.turns.iter().flat_map(StoryTurn::all)
    }

    /// Returns a text of the session with the paths in it relative to the project, and `~` for home
    /// directories.
    #[must_use]
    pub fn shown_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        project_root::shown_text(self.root.as_ref(), text)
    }

    /// Returns a path of the session as it is shown: relative to the project, or with `~` for a
    /// home directory.
    #[must_use]
    pub fn shown_path<'t>(&self, path: &'t str) -> Cow<'t, str> {
        project_root::shown_path(self.root.as_ref(), path)
    }

    /// Removes the prompts and items before `since` or after `until`.
    pub fn retain_between(&mut self, since: Timestamp, until: Timestamp) {
        let is_between = |item: &StoryItem| item.at >= since && item.at <= until;
        for turn in &mut self.turns {
            turn.items.retain(is_between);
            turn.prompt.take_if(|prompt| !is_between(prompt));
        }
        self.turns.retain(|turn| turn.prompt.is_some() || !turn.items.is_empty());
    }

    /// Makes [`Story::rows`] return every item, so that nothing is folded.
    pub fn unfold(&mut self) {
        self.unfolded = true;
    }
}

impl StoryTurn {
    /// Returns the prompt and the items.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &StoryItem> {
        self.prompt.iter().chain(&self.items)
    }
}
