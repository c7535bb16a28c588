//! Collects what a session knew at a moment, and what a compaction may therefore lose.

use super::loss::{KnownItem, LossKind};
use super::mention::judged_word_count;
use crate::error::CommandError;
use crate::text::{TextLength, TextReader};
use forge_store::model::claim::{Belief, BeliefKind, FactText, Gap};
use forge_store::model::claim::{CodeState, FieldValue, Prompt, VocabularyWord};
use forge_store::model::{Kind, Timestamp, Value};
use forge_store::store::{BriefLine, Session, SessionBrief, SourcedFact, StateAt};
use forge_store::story::Story;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    pub edits: u64,
    /// The time of the last edit.
    pub last: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedPrompt {
    pub id: String,
    /// The text of the prompt, or its beginning.
    pub text: String,
    /// The whole text; its beginning if the rest was removed, cannot be read or is not needed.
    pub whole: String,
    /// When it was asked.
    pub at: Timestamp,
    /// Whether it is a slash command to the agent's program: such a prompt says little.
    pub is_client_command: bool,
}

/// What a session knew at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionKnowledge {
    /// Claims by status, failing checks, last commands, tasks.
    pub brief: SessionBrief,
    /// The decisions: id and text.
    pub decisions: Vec<(String, String)>,
    /// The invariants: id and text.
    pub constraints: Vec<(String, String)>,
    /// The ids of the open gaps that block something or are critical.
    pub blocking: Vec<String>,
    /// The prompts of persons, the latest first.
    pub prompts: Vec<AskedPrompt>,
    /// The files that were changed, latest first.
    pub files: Vec<ChangedFile>,
    /// The time of the previous compaction. A summary need not mention files that have not changed
    /// since then.
    pub since: Option<Timestamp>,
    /// The commits, latest first.
    pub commits: Vec<(Timestamp, String)>,
}

/// A prompt with fewer significant words says too little to be searched for in a summary.
const PROMPT_WORDS: usize = 2;
/// The number of characters at the beginning of a prompt in which an instruction is searched for.
/// The rest is mostly quoted.
const INSTRUCTION_CHARS: usize = 300;
/// Words with which a person says how the work is to be done.
const INSTRUCTION_WORDS: [&str; 8] =
    ["avoid", "don't", "dont", "don’t", "ensure", "must", "never", "prefer"];
/// Phrases with which a person says how the work is to be done.
const INSTRUCTION_PHRASES: [&str; 6] =
    ["do not ", "make sure", "rather than", "instead of", "please use", "always use"];
/// The maximum number of commits.
const COMMITS: usize = 10;

impl SessionKnowledge {
    /// Collects the knowledge in this state. `whole_prompts`: whether all prompts are read as a
    /// whole, to judge whether a summary mentions them, or only the last one.
    pub fn from_state(state: &StateAt, whole_prompts: bool) -> Result<Self, CommandError> {
        let facts = state.facts()?;
        let prompts = prompts(&facts, state.session(), whole_prompts);
        let files = changed_files(&facts);
        let brief = Story::brief_of_facts(state, &facts, &forge_agents::resolve)?;
        let (mut decisions, mut constraints) = (Vec::new(), Vec::new());
        for (id, entry) in state.claims_of(Kind::Belief)? {
            let Ok(belief) = Belief::from_value(&entry.value) else { continue };
            let list = match belief.kind {
                Some(BeliefKind::Decision) => &mut decisions,
                Some(BeliefKind::Invariant) => &mut constraints,
                _ => continue,
            };
            list.push((id, belief.description.unwrap_or_default()));
        }
        let mut blocking = Vec::new();
        for (id, entry) in state.claims_of(Kind::Gap)? {
            let Ok(gap) = Gap::from_value(&entry.value) else { continue };
            let critical = gap.criticality.is_some_and(|it| it.word() == "critical");
            if gap.is_open() && (critical || gap.blocking.is_some_and(|it| it.blocks())) {
                blocking.push(id);
            }
        }
        let moment = state.moment();
        let session = state.session();
        let commits = session.checkpoints(&forge_store::store::CheckpointFilter {
            tag: Some("commit".to_owned()),
            until: moment.time(),
            limit: Some(COMMITS),
            ..Default::default()
        })?;
        let mut commits: Vec<(Timestamp, String)> = commits
            .into_iter()
            .map(|one| {
                let sha = one.body.field("commit").and_then(Value::as_text);
                (one.time, format!("{} {}", sha.unwrap_or_default(), one.message))
            })
            .collect();
        // A commit of a sub-agent, or one that only a hook reported, has no checkpoint. A command
        // that made several commits has only one checkpoint.
        for line in &brief.commits {
            let is_same = |(at, text): &(Timestamp, String)| {
                if line.id.is_empty() {
                    *at == line.at && text.ends_with(&line.text)
                } else {
                    text.starts_with(&line.id)
                }
            };
            if !commits.iter().any(is_same) {
                let text = format!("{} {}", line.id, line.text).trim().to_owned();
                commits.push((line.at, if text.is_empty() { "a commit".to_owned() } else { text }));
            }
        }
        commits.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        commits.truncate(COMMITS);
        Ok(Self { decisions, constraints, blocking, prompts, files, since: None, commits, brief })
    }

    /// Returns the last prompt: a slash command only if there is no other prompt.
    #[must_use]
    pub fn last_prompt(&self) -> Option<&AskedPrompt> {
        self.prompts.iter().find(|it| !it.is_client_command).or(self.prompts.first())
    }

    /// Returns what a summary should mention, most important first.
    #[must_use]
    pub fn known_items(&self) -> Vec<KnownItem> {
        let brief = &self.brief;
        let item = |kind, id: &str, text: &str, word: Option<&str>| KnownItem {
            kind,
            id: id.to_owned(),
            text: text.to_owned(),
            whole_text: None,
            word: word.map(str::to_owned),
        };
        let of_line = |kind| move |line: &BriefLine| item(kind, &line.id, &line.text, line.word);
        let of_claim = |kind| move |(id, text): &(String, String)| item(kind, id, text, None);
        let hypotheses = [&brief.confirmed, &brief.rejected, &brief.active].into_iter().flatten();
        let changed = self.files.iter().filter(|file| self.since.is_none_or(|at| file.last > at));
        let prompts = self.prompts.iter().filter(|it| !it.is_client_command);
        let prompts = prompts.filter(|it| judged_word_count(&it.whole) >= PROMPT_WORDS);
        let prompts = prompts.map(|prompt| {
            let is_instruction = is_instruction(&prompt.whole);
            let kind = if is_instruction { LossKind::Instruction } else { LossKind::Prompt };
            let whole_text = Some(prompt.whole.clone());
            KnownItem { whole_text, ..item(kind, &prompt.id, &prompt.text, None) }
        });
        let mut items: Vec<KnownItem> = hypotheses.map(of_line(LossKind::Hypothesis)).collect();
        items.extend(self.constraints.iter().map(of_claim(LossKind::Constraint)));
        items.extend(self.decisions.iter().map(of_claim(LossKind::Decision)));
        items.extend(brief.gaps.iter().map(of_line(LossKind::Gap)));
        items.extend(brief.failing.iter().map(of_line(LossKind::Failing)));
        items.extend(brief.refused.iter().map(of_line(LossKind::Refused)));
        items.extend(brief.tasks.iter().map(of_line(LossKind::Task)));
        items.extend(prompts);
        items.extend(changed.map(|file| item(LossKind::File, &file.path, "", None)));
        items.sort_by_key(|item| item.kind);
        items
    }
}

/// Returns the prompts among these facts, the latest first.
fn prompts(facts: &[SourcedFact], session: &Session, whole: bool) -> Vec<AskedPrompt> {
    let mut texts = TextReader::new(session, TextLength::Whole);
    let is_prompt = |known: &&SourcedFact| known.fact.kind == Kind::Prompt;
    let mut known: Vec<&SourcedFact> = facts.iter().filter(is_prompt).collect();
    known.sort_by_key(|known| std::cmp::Reverse((known.fact.at, known.fact.place)));
    let mut is_last = true;
    let prompt = |known: &SourcedFact| {
        let prompt = Prompt::from_value(&known.fact.value).ok()?;
        let text = prompt.text?;
        let is_slash = |tags: Vec<String>| tags.iter().any(|tag| tag == "slash");
        let is_client_command = prompt.tags.is_some_and(is_slash);
        let is_needed = whole || is_last;
        is_last &= is_client_command;
        let read = if is_needed {
            texts.resolve(known.source.as_deref(), text.write()).ok()
        } else {
            None
        };
        Some(AskedPrompt {
            id: known.fact.id.clone(),
            whole: read.as_ref().and_then(Value::as_text).unwrap_or(&text.shown()).to_owned(),
            text: text.shown().into_owned(),
            at: known.fact.at,
            is_client_command,
        })
    };
    known.into_iter().filter_map(prompt).collect()
}

/// Whether a prompt says how the work is to be done, and not only what is to be done.
fn is_instruction(prompt: &str) -> bool {
    let begin: String = prompt.chars().take(INSTRUCTION_CHARS).collect();
    let begin = begin.to_lowercase();
    let words = begin.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    INSTRUCTION_PHRASES.iter().any(|phrase| begin.contains(phrase))
        || words.into_iter().any(|word| INSTRUCTION_WORDS.contains(&word))
}

/// Returns the files that were changed, the latest first.
fn changed_files(facts: &[SourcedFact]) -> Vec<ChangedFile> {
    let mut files: BTreeMap<String, ChangedFile> = BTreeMap::new();
    for known in facts.iter().filter(|known| known.fact.kind == Kind::Code) {
        let Ok(code) = CodeState::from_value(&known.fact.value) else { continue };
        let Some(path) = code.path.as_ref().map(FactText::preview) else { continue };
        let file = files.entry(path.to_owned()).or_insert_with(|| ChangedFile {
            path: path.to_owned(),
            edits: 0,
            last: known.fact.at,
        });
        file.edits += 1;
        file.last = file.last.max(known.fact.at);
    }
    let mut files: Vec<ChangedFile> = files.into_values().collect();
    files.sort_by(|a, b| (b.last, &a.path).cmp(&(a.last, &b.path)));
    files
}
