//! The story as the lines of a page.

use super::claims::AnchorsByRevision;
use super::fact_texts::FactTexts;
use super::files::AnchorsByFact;
use super::{AgentWorkPart, FoldedLine, FoldedPart, LinePart, RowPart, TurnPart};
use crate::page_text::PageText;
use forge_store::error::Result;
use forge_store::model::{Key, Kind};
use forge_store::store::SourcedFact;
use forge_store::story::{
    FoldKey, Story, StoryItem, StoryKind, StoryMark, StoryRef, call_of_check,
};
use std::collections::{BTreeMap, HashMap};

/// The number of characters at the beginning of two texts, without digits, that must be equal to
/// merge their lines.
const LIKENESS_CHARS: usize = 44;
/// The maximum length of the shown beginning of an output, in characters.
const OUTPUT_CHARS: usize = 120;

/// The numbers of the story's lines, by their subject.
#[derive(Debug, Default)]
pub(super) struct LineAnchors {
    pub(super) facts: AnchorsByFact,
    /// By the number of a revision and the id of a hypothesis.
    pub(super) revisions: AnchorsByRevision,
    /// By the number of a revision or checkpoint.
    pub(super) sequences: HashMap<u64, usize>,
}

impl LineAnchors {
    /// Numbers the items of a story that have a line, from 0 on.
    pub(super) fn of(story: &Story) -> Self {
        let mut anchors = Self::default();
        for (number, item) in story.items().filter(|item| has_line(item)).enumerate() {
            let sequence = item.refs.iter().find_map(|about| match about {
                StoryRef::Sequence(sequence) => Some(*sequence),
                StoryRef::Entity(_) => None,
            });
            for about in &item.refs {
                match (about, sequence) {
                    (StoryRef::Entity(key), Some(sequence)) if key.kind == Kind::Hypothesis => {
                        anchors.revisions.insert((sequence, key.id.clone()), number);
                    }
                    (StoryRef::Entity(key), _) => {
                        anchors.facts.entry((key.kind, key.id.clone())).or_insert(number);
                    }
                    (StoryRef::Sequence(sequence), _) => {
                        anchors.sequences.entry(*sequence).or_insert(number);
                    }
                }
            }
        }
        anchors
    }
}

/// Returns the first claim or fact that an item is about.
fn entity_of(item: &StoryItem) -> Option<&Key> {
    item.refs.iter().find_map(|about| match about {
        StoryRef::Entity(key) => Some(key),
        StoryRef::Sequence(_) => None,
    })
}

/// Returns whether an item has a line of its own.
pub(super) const fn has_line(item: &StoryItem) -> bool {
    item.loud || matches!(item.kind, StoryKind::Prompt)
}

/// Writes the lines of a story.
pub(super) struct LineWriter<'a> {
    pub(super) texts: &'a FactTexts<'a>,
    /// The places of the hypotheses in the list of the page, by id.
    pub(super) hypotheses: &'a HashMap<String, usize>,
    /// The places of the edited files in the list of the page, by path.
    pub(super) files: &'a HashMap<PageText, usize>,
    /// Whether to leave out outputs and reports.
    pub(super) shared: bool,
    /// The items of each sub-agent that have no line.
    work: HashMap<&'a str, Vec<&'a StoryItem>>,
    next: usize,
    branch: String,
}

impl<'a> LineWriter<'a> {
    pub(super) fn new(
        texts: &'a FactTexts<'a>,
        hypotheses: &'a HashMap<String, usize>,
        files: &'a HashMap<PageText, usize>,
        shared: bool,
    ) -> Self {
        let mut work: HashMap<&str, Vec<&StoryItem>> = HashMap::new();
        for item in texts.story.items().filter(|item| !has_line(item) && item.fold_key.is_none()) {
            if let Some(agent) = &item.agent {
                work.entry(agent).or_default().push(item);
            }
        }
        Self { texts, hypotheses, files, shared, work, next: 0, branch: "main".to_owned() }
    }

    pub(super) fn turns(&mut self) -> Result<Vec<TurnPart>> {
        let mut turns = Vec::new();
        for turn in &self.texts.story.turns {
            let prompt = turn.prompt.as_ref().map(|item| self.line(item)).transpose()?;
            let mut rows = Vec::new();
            let mut quiet: Vec<&StoryItem> = Vec::new();
            for item in &turn.items {
                if !has_line(item) {
                    quiet.extend(item.fold_key.is_some().then_some(item));
                    continue;
                }
                rows.extend(self.folded(&mut quiet));
                rows.push(RowPart::Line(Box::new(self.line(item)?)));
            }
            rows.extend(self.folded(&mut quiet));
            turns.push(TurnPart { prompt, rows });
        }
        Ok(turns)
    }

    fn line(&mut self, item: &StoryItem) -> Result<LinePart> {
        let anchor = self.next;
        self.next += 1;
        let texts = self.texts;
        let entity = entity_of(item);
        let fact = entity.and_then(|key| texts.fact(key.kind, &key.id));
        let whole = match (item.kind, fact) {
            (StoryKind::Prompt | StoryKind::Message, Some(known)) => {
                texts.full_text(known, "text")?
            }
            (StoryKind::Check, Some(known)) if item.mark == StoryMark::Bad && !self.shared => {
                self.check_output(known)?
            }
            _ => None,
        };
        let on_branch = item.branch.as_ref().filter(|branch| **branch != self.branch).cloned();
        if let Some(branch) = &on_branch {
            self.branch.clone_from(branch);
        }
        let text = texts.clean(&item.text);
        Ok(LinePart {
            anchor,
            at: item.at,
            about: self.about(item),
            kind: item.kind,
            mark: item.mark,
            detail: item.detail.as_deref().map(|detail| texts.clean(detail)),
            hypothesis: entity
                .filter(|key| key.kind == Kind::Hypothesis)
                .and_then(|key| self.hypotheses.get(&key.id).copied()),
            on_branch: on_branch.map(|branch| texts.clean(&branch)),
            files: item
                .paths
                .iter()
                .filter_map(|path| self.files.get(&texts.path(path)).copied())
                .collect(),
            whole: whole
                .filter(|whole| !whole.is_empty() && whole.as_str().trim() != text.as_str()),
            agent_work: match item.kind {
                StoryKind::Agent => self.agent_work(item, fact)?,
                _ => None,
            },
            text,
        })
    }

    fn agent_work(
        &self,
        item: &StoryItem,
        fact: Option<&SourcedFact>,
    ) -> Result<Option<AgentWorkPart>> {
        let items = item.agent.as_deref().and_then(|agent| self.work.get(agent));
        let steps = items.map(|items| self.merged(items)).unwrap_or_default();
        let result = match fact {
            Some(known) if !self.shared => self.texts.full_text(known, "result")?,
            _ => None,
        };
        let has_any = !steps.is_empty() || result.is_some();
        Ok(has_any.then_some(AgentWorkPart { steps, result }))
    }

    /// Returns the folded items as one row, and empties the list.
    fn folded(&self, quiet: &mut Vec<&StoryItem>) -> Option<RowPart> {
        if quiet.is_empty() {
            return None;
        }
        let mut counts: BTreeMap<FoldKey, usize> = BTreeMap::new();
        for item in quiet.iter() {
            if let Some(key) = item.fold_key {
                *counts.entry(key).or_default() += 1;
            }
        }
        let words: Vec<String> = counts.iter().map(|(key, count)| key.counted(*count)).collect();
        let lines = self.merged(quiet);
        quiet.clear();
        Some(RowPart::Folded(FoldedPart { summary: words.join(", "), lines }))
    }

    /// Returns these items as lines. Similar ones, except messages, are counted in one line.
    fn merged(&self, items: &[&StoryItem]) -> Vec<FoldedLine> {
        let mut places: HashMap<(StoryKind, String), usize> = HashMap::new();
        let mut lines: Vec<FoldedLine> = Vec::new();
        for item in items {
            let letters = item.text.chars().filter(|letter| !letter.is_ascii_digit());
            let likeness = (item.kind, letters.take(LIKENESS_CHARS).collect());
            let known = places.get(&likeness).and_then(|place| lines.get_mut(*place));
            if let Some(line) = known.filter(|_| item.kind != StoryKind::Message) {
                line.times += 1;
                continue;
            }
            places.insert(likeness, lines.len());
            lines.push(FoldedLine {
                at: item.at,
                mark: item.mark,
                text: self.texts.clean(&item.text),
                about: self.about(item),
                output: self.output(item),
                times: 1,
            });
        }
        lines
    }

    /// Returns the entity that an item is about, in the form in which commands name it.
    fn about(&self, item: &StoryItem) -> Option<PageText> {
        let is_entity = |about: &&StoryRef| matches!(about, StoryRef::Entity(_));
        let first = item.refs.iter().find(is_entity)?;
        Some(self.texts.cleaner.clean(&first.to_string()))
    }

    /// Returns the output of a check. That of an agent's check is in the call with its id.
    fn check_output(&self, check: &SourcedFact) -> Result<Option<PageText>> {
        let call = call_of_check(&check.fact.id);
        let own = self.texts.full_text(check, "output")?;
        let Some(command) = self.texts.fact(Kind::Command, call).filter(|_| own.is_none()) else {
            return Ok(own);
        };
        let output = self.texts.full_text(command, "stdout_preview")?.unwrap_or_default();
        let errors = self.texts.full_text(command, "stderr_preview")?.unwrap_or_default();
        Ok(Some(output.above(&errors)))
    }

    /// Returns the beginning of the output of a command.
    fn output(&self, item: &StoryItem) -> Option<PageText> {
        if self.shared || item.kind != StoryKind::Command {
            return None;
        }
        let key = entity_of(item)?;
        let known = self.texts.fact(key.kind, &key.id)?;
        let preview = |field| self.texts.preview(known, field);
        let text = preview("stdout_preview").or_else(|| preview("stderr_preview"))?;
        Some(text.short(OUTPUT_CHARS))
    }
}
