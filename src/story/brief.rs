//! The brief of a moment, with what only the story knows: the prompts, how checks failed, the
//! commits, and edits that no commit has.

use super::events::{StoryEvents, call_of_check};
use super::failure_text::failure_text;
use super::item::StoryKind;
use super::project_root::shown_text;
use super::{DeliveredCommit, Story, StoryItem, StoryRef};
use crate::engine::parallel;
use crate::error::{Error, Result};
use crate::model::claim::{FactText, FieldValue};
use crate::model::text::count_text;
use crate::model::{Kind, Value};
use crate::store::{BriefLine, SessionBrief, SourcedFact, StateAt, TextResolver};

/// The maximum number of prompts in a brief, and of answers to questions: the last ones.
const PROMPTS: usize = 5;
/// The maximum number of commits in a brief: the last ones.
const COMMITS: usize = 10;
/// The number of facts from which a second thread saves more time than its start costs.
const PARALLEL_FACTS: usize = 1000;
/// The length of the beginning and of the end of an output in which a failure is looked for, in
/// bytes.
const OUTPUT_BYTES: usize = 256 * 1024;

impl Story {
    /// Returns the brief of a state: for a person, for an agent after a compaction, and for a
    /// program.
    pub fn brief(state: &StateAt, resolve: TextResolver<'_>) -> Result<SessionBrief> {
        Self::brief_of_facts(state, &state.facts()?, resolve)
    }

    /// Returns the brief of a state. `facts` are all facts of that state.
    pub fn brief_of_facts(
        state: &StateAt,
        facts: &[SourcedFact],
        resolve: TextResolver<'_>,
    ) -> Result<SessionBrief> {
        let (brief, story) = parallel::both(
            facts.len() >= PARALLEL_FACTS,
            || state.brief_of(facts),
            || Self::of_events(state, StoryEvents::read_for_brief(state, facts)?),
        );
        let (mut brief, mut story) = (brief?, story?);
        add_failures(state, facts, resolve, &mut brief.failing)?;
        story.keep_prompts(PROMPTS);
        story.read_whole_texts(state.session(), resolve)?;
        brief.prompts = story.items().rev().map(prompt_line).collect();
        brief.uncommitted = story.uncommitted_lines();
        brief.commits =
            story.findings.commits.iter().rev().take(COMMITS).map(commit_line).collect();
        let root = story.root.as_ref();
        let lists = [&mut brief.commands, &mut brief.failing, &mut brief.refused];
        for line in lists.into_iter().flatten() {
            line.text = shown_text(root, &line.text).into_owned();
            line.error = line.error.as_deref().map(|text| shown_text(root, text).into_owned());
        }
        Ok(brief)
    }

    /// Keeps only the last `count` prompts, and the last `count` answers to questions of the agent.
    /// Commands to the client do not count: they say little.
    fn keep_prompts(&mut self, count: usize) {
        let is_prompt =
            |item: &StoryItem| item.kind == StoryKind::Prompt && !item.is_client_command;
        for turn in &mut self.turns {
            turn.prompt.take_if(|prompt| !is_prompt(prompt));
            turn.items.retain(|item| item.kind == StoryKind::Answer);
        }
        let prompts = self.turns.iter().filter(|turn| turn.prompt.is_some()).count();
        let mut old_prompts = prompts.saturating_sub(count);
        let answers: usize = self.turns.iter().map(|turn| turn.items.len()).sum();
        let mut old_answers = answers.saturating_sub(count);
        for turn in &mut self.turns {
            if old_prompts > 0 && turn.prompt.take().is_some() {
                old_prompts -= 1;
            }
            let dropped = old_answers.min(turn.items.len());
            turn.items.drain(..dropped);
            old_answers -= dropped;
        }
    }

    fn uncommitted_lines(&self) -> Vec<BriefLine> {
        let files = self.findings.uncommitted.iter();
        let line = |file: &super::UncommittedFile| BriefLine {
            reason: Some(count_text(file.edits, "edit")),
            ..BriefLine::new(Kind::Code, file.path.clone(), file.path.clone(), file.last)
        };
        files.map(line).collect()
    }
}

fn commit_line(commit: &DeliveredCommit) -> BriefLine {
    let (sha, subject) = (commit.sha.clone(), commit.subject.clone());
    BriefLine::new(Kind::Command, sha.unwrap_or_default(), subject.unwrap_or_default(), commit.at)
}

fn prompt_line(item: &StoryItem) -> BriefLine {
    let about = item.refs.iter().find_map(|about| match about {
        StoryRef::Entity(key) => Some((key.kind, key.id.clone())),
        StoryRef::Sequence(_) => None,
    });
    let (kind, id) = about.unwrap_or((Kind::Prompt, String::new()));
    let reason = item.detail.as_ref().map(|question| format!("to: {question}"));
    BriefLine { reason, ..BriefLine::new(kind, id, item.text.clone(), item.at) }
}

/// Adds to each failing check what its output says about the failure.
fn add_failures(
    state: &StateAt,
    facts: &[SourcedFact],
    resolve: TextResolver<'_>,
    failing: &mut [BriefLine],
) -> Result<()> {
    let find = |kind: Kind, id: &str| {
        facts.iter().find(|known| known.fact.kind == kind && known.fact.id == id)
    };
    for line in failing {
        let command = find(Kind::Command, call_of_check(&line.id));
        let sources = [
            (find(Kind::Verification, &line.id), "output"),
            (command, "stdout_preview"),
            (command, "stderr_preview"),
        ];
        for (known, field) in sources {
            let Some(known) = known else { continue };
            let Some(output) = whole_text(state, resolve, known, field)? else { continue };
            line.error = failure_text(ends_of(&output).as_ref());
            if line.error.is_some() {
                break;
            }
        }
    }
    Ok(())
}

/// Reads a text of a fact as a whole; only its beginning if the rest was dropped.
fn whole_text(
    state: &StateAt,
    resolve: TextResolver<'_>,
    known: &SourcedFact,
    field: &str,
) -> Result<Option<String>> {
    let text = known.fact.value.field(field).filter(|value| **value != Value::Null);
    let Some(text) = text.and_then(FactText::read) else { return Ok(None) };
    let Some(long) = text.whole() else { return Ok(Some(text.preview().to_owned())) };
    match state.session().text(known.source.as_deref(), &long, resolve) {
        Ok(whole) => Ok(Some(whole)),
        Err(Error::TextRemoved { .. }) => Ok(Some(text.preview().to_owned())),
        Err(error) => Err(error),
    }
}

/// Returns an output, or the beginning and the end of a very long one.
fn ends_of(output: &str) -> std::borrow::Cow<'_, str> {
    if output.len() <= 2 * OUTPUT_BYTES {
        return output.into();
    }
    let head = output.get(..output.floor_char_boundary(OUTPUT_BYTES)).unwrap_or_default();
    let tail = output.get(output.ceil_char_boundary(output.len() - OUTPUT_BYTES)..);
    format!("{head}\n{}", tail.unwrap_or_default()).into()
}
