//! The content of a report page, as plain data.

mod claims;
mod fact_texts;
mod files;
mod lines;
mod moments;
mod read;
mod summary;

pub use read::{ReportLimits, ReportSource};

use crate::page_clock::PageZone;
use crate::page_text::PageText;
use forge_store::model::Timestamp;
use forge_store::model::claim::{HypothesisStatus, VerificationStatus};
use forge_store::story::{StoryKind, StoryMark, TimeRuler};

/// The content of a page about a session.
#[derive(Clone, Debug)]
pub struct ReportModel {
    /// The name of the session.
    pub session: PageText,
    /// The agent that works in it.
    pub agent: Option<PageText>,
    /// The branch of the moment.
    pub branch: PageText,
    /// What the session is about.
    pub title: PageText,
    /// What a person asked first, if the title does not say all of it.
    pub first_prompt: Option<PageText>,
    /// What a person asked last, if that is something else.
    pub last_prompt: Option<PageText>,
    /// The zone of all times.
    pub zone: PageZone,
    /// The first and the last moment.
    pub span: Option<(Timestamp, Timestamp)>,
    /// The moment that the page is about, if it is not the end of the session.
    pub as_of: Option<Timestamp>,
    /// Whether outputs, patches and summaries are left out.
    pub shared: bool,
    /// Finds the horizontal place of a time, for all charts.
    pub ruler: Option<TimeRuler>,
    /// The times of all facts and items of the story, except inferences.
    pub activity: Vec<Timestamp>,
    /// What came out.
    pub outcome: Outcome,
    /// The number of pieces of evidence about the hypotheses, on all branches.
    pub evidence_count: usize,
    /// The hypotheses, in the order in which they were stated.
    pub hypotheses: Vec<HypothesisRow>,
    /// What is held to be true, the most confident first.
    pub beliefs: Vec<BeliefRow>,
    /// The gaps, open ones first, then by criticality.
    pub gaps: Vec<GapRow>,
    /// The abandoned branches.
    pub given_up: Vec<GivenUpBranch>,
    /// The agent's own tasks.
    pub tasks: Vec<TaskRow>,
    /// What rules found in the agent's messages.
    pub inferences: Vec<(Timestamp, PageText)>,
    /// The compactions of the agent's context.
    pub compactions: Vec<CompactionPart>,
    /// The story.
    pub turns: Vec<TurnPart>,
    /// The number of items of the story, and the number of them that are shown.
    pub item_counts: (usize, usize),
    /// The checks with their runs.
    pub checks: Vec<CheckPart>,
    /// The edited files, the most changed first.
    pub files: Vec<FilePart>,
    /// The sub-agents.
    pub agents: Vec<AgentSpan>,
    /// The moments at which what was known changed.
    pub moments: Vec<KnownMoment>,
    /// How many such moments are not listed.
    pub moments_left_out: usize,
    /// The texts of the prompts that [`KnownMoment::prompt`] refers to.
    pub prompt_texts: Vec<PageText>,
    /// The ids and texts of the questions that [`KnownMoment::gaps`] refers to.
    pub question_texts: Vec<(PageText, PageText)>,
}

impl ReportModel {
    pub fn prompts(&self) -> impl Iterator<Item = &LinePart> {
        self.turns.iter().filter_map(|turn| turn.prompt.as_ref())
    }

    pub fn runs(&self) -> impl Iterator<Item = &CheckRunPart> {
        self.checks.iter().flat_map(|check| &check.runs)
    }

    /// Returns the numbers of lines added and removed in all files; `None` if they are not known
    /// for an edit.
    pub fn changed_lines(&self) -> Option<(u64, u64)> {
        self.files.iter().try_fold((0, 0), |(added, removed), file| {
            file.lines().map(|(more, less)| (added + more, removed + less))
        })
    }
}

/// What came out of a session.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The last message of the agent.
    pub last_word: Option<PageText>,
    /// The question to the person with which that message ends, if no answer is recorded.
    pub last_question: Option<PageText>,
    /// The checks that fail, the latest first.
    pub failing: Vec<FailingCheck>,
    /// How many checks pass.
    pub passing: usize,
    /// The name and the time of the last check that passed.
    pub last_pass: Option<(PageText, Timestamp)>,
    /// The commits, oldest first.
    pub commits: Vec<CommitRow>,
    /// The files with an edit that no recorded commit contains.
    pub uncommitted: Vec<PageText>,
}

impl Outcome {
    /// Whether the latest failure is not older than the last check that passed.
    #[must_use]
    pub fn ends_failing(&self) -> bool {
        let last = self.failing.iter().map(|check| check.at).max();
        last.is_some_and(|last| self.last_pass.as_ref().is_none_or(|(_, pass)| last >= *pass))
    }
}

#[derive(Clone, Debug)]
pub struct FailingCheck {
    pub name: PageText,
    /// When it failed last.
    pub at: Timestamp,
    /// The tests that failed and the first line of the error, if the output has them.
    pub error: Option<PageText>,
}

#[derive(Clone, Debug)]
pub struct CommitRow {
    pub at: Timestamp,
    /// The first line of the message.
    pub subject: PageText,
    /// The number of its line in the story.
    pub anchor: Option<usize>,
}

/// A hypothesis.
#[derive(Clone, Debug)]
pub struct HypothesisRow {
    pub id: PageText,
    /// What it says.
    pub text: PageText,
    /// The status at the moment of the page; `None` if only another branch has the hypothesis.
    pub status: Option<HypothesisStatus>,
    /// The confidence at the moment of the page, or the last one if only another branch has it.
    pub confidence: Option<f64>,
    /// Why it has its status.
    pub reason: Option<PageText>,
    pub stated_at: Timestamp,
    /// When it got its status, if the status was changed after the hypothesis was stated.
    pub settled_at: Option<Timestamp>,
    /// Its changes, oldest first.
    pub steps: Vec<HypothesisMove>,
    /// The evidence for and against it, the strongest first.
    pub evidence: Vec<EvidenceRow>,
}

impl HypothesisRow {
    /// Returns the changes of its confidence, without repetitions.
    pub(crate) fn confidences(&self) -> Vec<(&HypothesisMove, f64)> {
        let steps = self.steps.iter().filter_map(|step| Some((step, step.confidence?)));
        let mut points: Vec<(&HypothesisMove, f64)> = steps.collect();
        points.dedup_by(|next, last| format!("{:.2}", next.1) == format!("{:.2}", last.1));
        points
    }

    /// Returns when it was confirmed, rejected or archived, without repeated statuses.
    pub fn settlements(&self) -> impl Iterator<Item = (Timestamp, HypothesisStatus)> {
        let mut last = None;
        self.steps.iter().filter_map(move |step| {
            let status = step.status.filter(|status| Some(*status) != last)?;
            last = Some(status);
            let is_open = matches!(status, HypothesisStatus::Active | HypothesisStatus::UnderTest);
            (!is_open).then_some((step.at, status))
        })
    }
}

/// A change of a hypothesis.
#[derive(Clone, Debug)]
pub struct HypothesisMove {
    pub at: Timestamp,
    /// The branch, if it is not the main one.
    pub branch: Option<PageText>,
    /// The confidence before, on its branch.
    pub before: Option<f64>,
    /// The confidence afterwards.
    pub confidence: Option<f64>,
    /// The status that it got, if that changed.
    pub status: Option<HypothesisStatus>,
    /// The reason for the change.
    pub reason: Option<PageText>,
    /// The evidence that came with it.
    pub evidence: Vec<EvidenceRow>,
    /// The number of its line in the story.
    pub anchor: Option<usize>,
}

/// A piece of evidence.
#[derive(Clone, Debug)]
pub struct EvidenceRow {
    pub id: PageText,
    /// From -1 (against) to 1 (for).
    pub strength: Option<f64>,
    /// What it says.
    pub text: PageText,
    /// Where it comes from.
    pub source: Option<PageText>,
}

#[derive(Clone, Debug)]
pub struct BeliefRow {
    pub id: PageText,
    pub confidence: Option<f64>,
    /// What is believed.
    pub text: PageText,
    pub rests_on: Vec<PageText>,
    /// Why it is in doubt, if it is in doubt.
    pub doubt: Option<PageText>,
}

/// A question.
#[derive(Clone, Debug)]
pub struct GapRow {
    pub id: PageText,
    /// The question.
    pub text: PageText,
    /// The word of its criticality.
    pub criticality: &'static str,
    pub is_open: bool,
    /// The word of its status.
    pub status: &'static str,
    /// When it was asked.
    pub since: Timestamp,
    pub blocks: Option<PageText>,
    pub answer: Option<PageText>,
    /// The branch that has an answer, and the answer, if this branch has none.
    pub answered_elsewhere: Option<(PageText, PageText)>,
}

#[derive(Clone, Debug)]
pub struct GivenUpBranch {
    pub name: PageText,
    /// The hypothesis that it tested.
    pub hypothesis: Option<PageText>,
    pub approach: Option<PageText>,
    /// What came out.
    pub results: Vec<PageText>,
}

#[derive(Clone, Debug)]
pub struct TaskRow {
    /// What is to be done.
    pub text: PageText,
    /// The agent's word for how far it is.
    pub status: PageText,
    pub is_done: bool,
}

/// A compaction of the agent's context, as the caller of this crate describes it, or with texts for
/// a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactionNote<T = String> {
    pub at: Timestamp,
    /// The number of its checkpoint.
    pub sequence: u64,
    /// What caused it: `auto`, `manual`.
    pub trigger: Option<T>,
    /// How many tokens the context had.
    pub tokens: Option<i64>,
    /// How many things were known that the summary could mention.
    pub known: usize,
    /// What the summary left out; `None` if that cannot be known.
    pub lost: Option<Vec<LostKnowledge<T>>>,
    /// The agent's summary.
    pub summary: Option<T>,
}

/// Something that a summary left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LostKnowledge<T = String> {
    /// The sort of thing: `hypothesis`, `file`.
    pub kind: &'static str,
    /// The id, if it means something to a person. A file has its path here.
    pub id: Option<T>,
    /// What it says.
    pub text: T,
}

#[derive(Clone, Debug)]
pub struct CompactionPart {
    pub note: CompactionNote<PageText>,
    /// The number of its line in the story.
    pub anchor: Option<usize>,
}

/// A prompt and what followed it.
#[derive(Clone, Debug)]
pub struct TurnPart {
    pub prompt: Option<LinePart>,
    /// What followed.
    pub rows: Vec<RowPart>,
}

impl TurnPart {
    /// Returns the lines after the prompt.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &LinePart> {
        self.rows.iter().filter_map(|row| match row {
            RowPart::Line(line) => Some(&**line),
            RowPart::Folded(_) => None,
        })
    }

    /// Returns the number of the last line.
    #[must_use]
    pub fn last_anchor(&self) -> Option<usize> {
        self.lines().next_back().or(self.prompt.as_ref()).map(|line| line.anchor)
    }
}

#[derive(Clone, Debug)]
pub enum RowPart {
    Line(Box<LinePart>),
    Folded(FoldedPart),
}

#[derive(Clone, Debug)]
pub struct LinePart {
    /// The number of the line, with which other parts of the page refer to the line.
    pub anchor: usize,
    pub at: Timestamp,
    /// The entity that it is about, in the form that commands and the server use: `command:C1`.
    pub about: Option<PageText>,
    /// What sort of thing happened.
    pub kind: StoryKind,
    /// How it is meant.
    pub mark: StoryMark,
    /// What happened.
    pub text: PageText,
    /// The reason or description.
    pub detail: Option<PageText>,
    /// The hypothesis that it is about, by its place among the hypotheses.
    pub hypothesis: Option<usize>,
    /// The branch, if the line before is on another one.
    pub on_branch: Option<PageText>,
    /// The edited files, by their place among the files.
    pub files: Vec<usize>,
    /// The whole text of a message or prompt, if the line shows only a part; the output of a check
    /// that failed.
    pub whole: Option<PageText>,
    /// What a sub-agent did and reported.
    pub agent_work: Option<AgentWorkPart>,
}

impl LinePart {
    /// Returns the text that the line shows, or shows a part of.
    pub(crate) fn whole_text(&self) -> &PageText {
        self.whole.as_ref().unwrap_or(&self.text)
    }
}

/// What a sub-agent did.
#[derive(Clone, Debug)]
pub struct AgentWorkPart {
    pub steps: Vec<FoldedLine>,
    /// What it reported.
    pub result: Option<PageText>,
}

/// What is folded between two lines.
#[derive(Clone, Debug)]
pub struct FoldedPart {
    /// How much there is of each sort, in words.
    pub summary: String,
    pub lines: Vec<FoldedLine>,
}

/// A folded line. Nearly equal lines are combined into one.
#[derive(Clone, Debug)]
pub struct FoldedLine {
    /// When it happened first.
    pub at: Timestamp,
    /// How it is meant.
    pub mark: StoryMark,
    /// What happened.
    pub text: PageText,
    /// The entity that it is about, in the form that commands and the server use.
    pub about: Option<PageText>,
    /// The beginning of what a command printed.
    pub output: Option<PageText>,
    /// How many times something like this happened.
    pub times: usize,
}

#[derive(Clone, Debug)]
pub struct CheckPart {
    pub name: PageText,
    /// The runs, oldest first.
    pub runs: Vec<CheckRunPart>,
}

#[derive(Clone, Debug)]
pub struct CheckRunPart {
    /// When it ended.
    pub at: Timestamp,
    /// How it ended.
    pub status: VerificationStatus,
    /// A remark about it.
    pub description: Option<PageText>,
    /// The number of its line in the story.
    pub anchor: Option<usize>,
}

impl CheckRunPart {
    pub fn is_pass(&self) -> bool {
        self.status == VerificationStatus::Passed
    }

    /// Returns whether the check failed.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(
            self.status,
            VerificationStatus::Failed | VerificationStatus::Error | VerificationStatus::TimedOut
        )
    }
}

/// An edited file.
#[derive(Clone, Debug)]
pub struct FilePart {
    /// The path, relative to the project.
    pub path: PageText,
    /// The edits, oldest first.
    pub edits: Vec<EditPart>,
}

impl FilePart {
    /// Returns the numbers of lines added and removed; `None` if they are not known for an edit.
    #[must_use]
    pub fn lines(&self) -> Option<(u64, u64)> {
        self.edits.iter().try_fold((0, 0), |(added, removed), edit| {
            edit.lines.map(|(more, less)| (added + more, removed + less))
        })
    }
}

#[derive(Clone, Debug)]
pub struct EditPart {
    pub at: Timestamp,
    /// The numbers of lines added and removed, if known.
    pub lines: Option<(u64, u64)>,
    pub patch: Option<PageText>,
    /// The number of its line in the story.
    pub anchor: Option<usize>,
}

/// The time in which a sub-agent worked.
#[derive(Clone, Debug)]
pub struct AgentSpan {
    /// When it began.
    pub from: Timestamp,
    /// When it ended.
    pub to: Timestamp,
    /// Its task, or else its type or id.
    pub name: PageText,
    /// The number of its line in the story.
    pub anchor: Option<usize>,
}

/// A moment at which what was known changed.
#[derive(Clone, Debug)]
pub struct KnownMoment {
    pub at: Timestamp,
    /// What happened.
    pub label: PageText,
    /// The number of its line in the story.
    pub anchor: usize,
    /// The hypotheses that changed: the place among the hypotheses, the confidence, and the status,
    /// which is `None` if the hypothesis is gone.
    pub hypotheses: Vec<(usize, Option<f64>, Option<HypothesisStatus>)>,
    /// The questions that changed, by their place in [`ReportModel::question_texts`], and whether
    /// each is open.
    pub gaps: Vec<(usize, bool)>,
    /// The checks that fail, if that changed.
    pub failing: Option<Vec<PageText>>,
    /// The last prompt, by its place in [`ReportModel::prompt_texts`].
    pub prompt: Option<usize>,
    /// How many files were edited so far.
    pub files: usize,
    /// How many commits there were so far.
    pub commits: usize,
}
