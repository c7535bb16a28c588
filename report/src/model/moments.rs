//! What was known at each moment: only what was recorded until then, on the branch checked out
//! then.

use super::fact_texts::FactTexts;
use super::lines::has_line;
use super::{FilePart, KnownMoment};
use crate::page_text::PageText;
use forge_store::error::Result;
use forge_store::model::claim::{GapStatus, HypothesisStatus, VocabularyWord};
use forge_store::model::{EntryChange, Kind, Timestamp, Value};
use forge_store::story::{StoryItem, StoryKind, StoryMark};
use std::collections::{BTreeMap, HashMap};

/// The maximum number of moments on a page.
const MAX_MOMENTS: usize = 400;
/// The maximum length of the label of a moment, in characters.
const LABEL_CHARS: usize = 110;
/// The maximum length of the prompt beside a moment, in characters.
const PROMPT_CHARS: usize = 220;

/// The moments of a page, with the texts that they refer to by index.
pub(super) struct KnownMoments {
    pub(super) moments: Vec<KnownMoment>,
    /// How many moments were left out.
    pub(super) left_out: usize,
    pub(super) prompts: Vec<PageText>,
    /// The questions that were ever open, by id, with their texts.
    pub(super) questions: Vec<(String, String)>,
}

/// The items of the story at one time.
struct TimeGroup<'a> {
    at: Timestamp,
    /// The number of the first item's line in the story.
    anchor: usize,
    items: Vec<&'a StoryItem>,
    /// The index of the last prompt.
    prompt: Option<usize>,
}

/// Returns the time of the first edit of a file.
fn first_edit(file: &FilePart) -> Timestamp {
    file.edits.first().map_or(Timestamp::MAX, |edit| edit.at)
}

/// Returns the moments at which what was known changed. `hypotheses` has the index of each
/// hypothesis on the page, by id.
pub(super) fn moments(
    texts: &FactTexts<'_>,
    hypotheses: &HashMap<String, usize>,
    files: &[FilePart],
) -> Result<KnownMoments> {
    let mut prompts = Vec::new();
    let mut groups = time_groups(texts, &mut prompts);
    let all = groups.len();
    thin_out(&mut groups);
    let times: Vec<Timestamp> = groups.iter().map(|group| group.at).collect();
    let changes = texts.session.claims_over_time(&times)?;
    let mut questions: Vec<(String, String)> = Vec::new();
    let mut runs = texts.story.checks.iter().peekable();
    let commits = &texts.story.findings.commits;
    let mut moments = Vec::with_capacity(groups.len());
    for (group, changes) in groups.iter().zip(changes) {
        let mut failing = None;
        while let Some(run) = runs.next_if(|run| run.at <= group.at) {
            failing = run.failing.as_ref().or(failing);
        }
        let labels = group.items.iter().filter(|item| item.kind != StoryKind::Edit);
        let labels: Vec<String> = labels.map(|item| label(item)).collect();
        moments.push(KnownMoment {
            at: group.at,
            label: texts.clean(&labels.join(", ")).short(LABEL_CHARS),
            anchor: group.anchor,
            hypotheses: changed_hypotheses(&changes, hypotheses),
            gaps: changed_gaps(&changes, &mut questions),
            failing: failing.map(|names| names.iter().map(|name| texts.clean(name)).collect()),
            prompt: group.prompt,
            files: files.iter().filter(|file| first_edit(file) <= group.at).count(),
            commits: commits.iter().filter(|commit| commit.at <= group.at).count(),
        });
    }
    Ok(KnownMoments { left_out: all - moments.len(), moments, prompts, questions })
}

/// Groups the items of the story by their time. A group begins with an item that changes what is
/// known. Adds the prompts of the story to `prompts`.
fn time_groups<'a>(texts: &FactTexts<'a>, prompts: &mut Vec<PageText>) -> Vec<TimeGroup<'a>> {
    let mut groups: Vec<TimeGroup<'a>> = Vec::new();
    let mut last_prompt = None;
    for (anchor, item) in texts.story.items().filter(|item| has_line(item)).enumerate() {
        if item.kind == StoryKind::Prompt {
            prompts.push(texts.clean(&item.text).short(PROMPT_CHARS));
            last_prompt = Some(prompts.len() - 1);
        }
        if let Some(group) = groups.last_mut().filter(|group| group.at == item.at) {
            group.items.push(item);
            group.prompt = last_prompt;
        } else if changes_knowledge(item) {
            groups.push(TimeGroup { at: item.at, anchor, items: vec![item], prompt: last_prompt });
        }
    }
    groups
}

/// Returns whether an item changes what is known.
const fn changes_knowledge(item: &StoryItem) -> bool {
    !matches!(
        item.kind,
        StoryKind::Edit | StoryKind::Message | StoryKind::Measurement | StoryKind::Agent
    )
}

/// Leaves out moments if there are too many, first the moments without a change of a claim.
fn thin_out(groups: &mut Vec<TimeGroup<'_>>) {
    let is_claim = |group: &TimeGroup<'_>| {
        group.items.iter().any(|item| {
            matches!(item.kind, StoryKind::Hypothesis | StoryKind::Gap | StoryKind::Restore)
        })
    };
    if groups.len() > MAX_MOMENTS && groups.iter().filter(|group| is_claim(group)).count() > 0 {
        let last = groups.last().map(|group| group.at);
        groups.retain(|group| is_claim(group) || Some(group.at) == last);
    }
    if groups.len() > MAX_MOMENTS {
        let (count, mut place) = (groups.len(), 0);
        groups.retain(|_| {
            place += 1;
            // Keeps `MAX_MOMENTS` of the `count` moments, evenly distributed, and always the last.
            place * MAX_MOMENTS / count > (place - 1) * MAX_MOMENTS / count
        });
    }
}

/// Returns a short text that names an item.
fn label(item: &StoryItem) -> String {
    match (item.kind, &item.detail) {
        (StoryKind::Prompt, _) => format!("you: {}", item.text),
        (StoryKind::Commit, Some(subject)) => format!("{}: {subject}", item.text),
        (StoryKind::Hypothesis, Some(words)) if item.mark == StoryMark::New => {
            format!("{}: {words}", item.text)
        }
        _ => item.text.clone(),
    }
}

fn text_field<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.field(name)?.as_text()
}

/// Returns the hypotheses that changed, as in [`KnownMoment::hypotheses`].
fn changed_hypotheses(
    changes: &[EntryChange],
    indices: &HashMap<String, usize>,
) -> Vec<(usize, Option<f64>, Option<HypothesisStatus>)> {
    let hypotheses = changes.iter().filter(|change| change.key.kind == Kind::Hypothesis);
    let one = |change: &EntryChange| {
        let index = *indices.get(&change.key.id)?;
        let Some(new) = &change.new else { return Some((index, None, None)) };
        let status = text_field(&new.value, "status").and_then(HypothesisStatus::from_word);
        let confidence = new.value.field("confidence").and_then(Value::as_f64);
        Some((index, confidence, Some(status.unwrap_or(HypothesisStatus::Active))))
    };
    hypotheses.filter_map(one).collect()
}

/// Returns the questions that changed, as in [`KnownMoment::gaps`]. Adds new ones to `questions`.
fn changed_gaps(
    changes: &[EntryChange],
    questions: &mut Vec<(String, String)>,
) -> Vec<(usize, bool)> {
    let mut changed = BTreeMap::new();
    for change in changes.iter().filter(|change| change.key.kind == Kind::Gap) {
        let index = questions.iter().position(|(id, _)| *id == change.key.id);
        let index = index.unwrap_or_else(|| {
            questions.push((change.key.id.clone(), String::new()));
            questions.len() - 1
        });
        let is_open = change.new.as_ref().is_some_and(|new| {
            text_field(&new.value, "status")
                .and_then(GapStatus::from_word)
                .is_none_or(GapStatus::is_open)
        });
        if let (Some(new), Some(question)) = (&change.new, questions.get_mut(index)) {
            question.1 = text_field(&new.value, "description").unwrap_or_default().to_owned();
        }
        changed.insert(index, is_open);
    }
    changed.into_iter().collect()
}
