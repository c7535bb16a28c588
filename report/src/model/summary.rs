//! The compactions, the tasks, the inferences and the outcome.

use super::fact_texts::FactTexts;
use super::lines::LineAnchors;
use super::{
    CommitRow, CompactionNote, CompactionPart, FailingCheck, LinePart, LostKnowledge, Outcome,
    TaskRow, TurnPart,
};
use crate::page_text::PageText;
use forge_store::model::claim::{FactText, Inference, Task};
use forge_store::model::{Kind, Timestamp};
use forge_store::store::{SessionBrief, SourcedFact};
use forge_store::story::{StoryKind, closing_question};

/// Returns the compactions, oldest first.
pub(super) fn compactions(
    texts: &FactTexts<'_>,
    notes: &[CompactionNote],
    anchors: &LineAnchors,
    shared: bool,
) -> Vec<CompactionPart> {
    let lost = |lost: &LostKnowledge| LostKnowledge {
        kind: lost.kind,
        id: lost.id.as_deref().map(|id| texts.path(id)),
        text: texts.clean(&lost.text),
    };
    let part = |note: &CompactionNote| CompactionPart {
        anchor: anchors.sequences.get(&note.sequence).copied(),
        note: CompactionNote {
            at: note.at,
            sequence: note.sequence,
            trigger: note.trigger.as_deref().map(|trigger| texts.clean(trigger)),
            tokens: note.tokens,
            known: note.known,
            lost: note.lost.as_ref().map(|all| all.iter().map(lost).collect()),
            summary: note.summary.as_deref().filter(|_| !shared).map(|text| texts.clean(text)),
        },
    };
    let mut parts: Vec<CompactionPart> = notes.iter().map(part).collect();
    parts.sort_by_key(|part| part.note.at);
    parts
}

/// Returns the tasks that have a text, in the order in which they were last changed.
pub(super) fn tasks(texts: &FactTexts<'_>, facts: &[SourcedFact]) -> Vec<TaskRow> {
    let tasks = facts.iter().filter(|known| known.fact.kind == Kind::Task);
    let row = |known: &SourcedFact| {
        let task = Task::from_value(&known.fact.value).ok()?;
        let text = task.subject.as_ref().or(task.description.as_ref())?;
        let status = task.status.as_ref().map_or("pending", FactText::preview);
        Some(TaskRow {
            text: texts.clean(&text.shown()),
            status: texts.clean(&status.replace('_', " ")),
            is_done: !task.is_open(),
        })
    };
    tasks.filter_map(row).filter(|row| !row.text.is_empty()).collect()
}

/// Returns what rules found in the agent's messages.
pub(super) fn inferences(
    texts: &FactTexts<'_>,
    facts: &[SourcedFact],
) -> Vec<(Timestamp, PageText)> {
    let found = facts.iter().filter(|known| known.fact.kind == Kind::Inference);
    let row = |known: &SourcedFact| {
        let found = Inference::from_value(&known.fact.value).ok()?;
        let text = texts.clean(&found.description.as_ref()?.shown());
        (!text.is_empty()).then_some((known.fact.at, text))
    };
    found.filter_map(row).collect()
}

/// Returns the outcome: the last message, the checks and the commits.
pub(super) fn outcome(texts: &FactTexts<'_>, brief: &SessionBrief, turns: &[TurnPart]) -> Outcome {
    let lines = || turns.iter().flat_map(TurnPart::lines);
    let commit_anchor = |at: Timestamp| {
        let is_it = |line: &&LinePart| line.kind == StoryKind::Commit && line.at == at;
        lines().find(is_it).map(|line| line.anchor)
    };
    let findings = &texts.story.findings;
    let last = lines().rfind(|line| line.kind == StoryKind::Message);
    let last_word = last.map(|line| line.whole_text().clone());
    // A prompt after a question counts as its answer.
    let is_last_turn = |line: &LinePart| {
        turns.last().and_then(|turn| turn.prompt.as_ref()).is_none_or(|prompt| prompt.at <= line.at)
    };
    let last_question = last_word.as_ref().filter(|_| last.is_some_and(is_last_turn));
    let last_question = last_question.and_then(|word| closing_question(word.as_str()));
    let failing = brief.failing.iter().map(|line| FailingCheck {
        name: texts.clean(&line.text),
        at: line.at,
        error: line.error.as_deref().map(|error| texts.clean(error)),
    });
    let commits = findings.commits.iter().map(|commit| CommitRow {
        at: commit.at,
        subject: texts.clean(commit.subject.as_deref().unwrap_or("without a known message")),
        anchor: commit_anchor(commit.at),
    });
    let last_pass = findings.passing.iter().max_by_key(|check| check.at);
    Outcome {
        last_word,
        last_question: last_question.map(|question| texts.clean(&question)),
        failing: failing.collect(),
        passing: findings.passing.len(),
        last_pass: last_pass.map(|check| (texts.clean(&check.text), check.at)),
        commits: commits.collect(),
        uncommitted: findings.uncommitted.iter().map(|file| texts.clean(&file.path)).collect(),
    }
}
