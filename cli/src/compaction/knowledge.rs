//! What a session knew at a moment, which a compaction may lose.

use super::loss::{KnownItem, LossKind};
use crate::error::CommandError;
use forge_store::model::claim::{Belief, BeliefKind, FactText, Gap, GapStatus};
use forge_store::model::claim::{CodeState, Prompt, VocabularyWord};
use forge_store::model::{Kind, Timestamp};
use forge_store::store::{BriefLine, SessionBrief, StateAt};
use forge_store::story::Story;
use std::collections::BTreeMap;

/// A file that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path.
    pub path: String,
    /// The number of edits.
    pub edits: u64,
    /// The time of the last edit.
    pub last: Timestamp,
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
    /// The ids of the gaps that block something or are critical.
    pub blocking: Vec<String>,
    /// The last prompt of a person.
    pub prompt: Option<(Timestamp, String)>,
    /// The files that were changed, latest first.
    pub files: Vec<ChangedFile>,
    /// The time of the compaction before. The summary of this one need not mention files that
    /// changed up to then.
    pub since: Option<Timestamp>,
    /// The last result of each check that passed, latest first.
    pub passed: Vec<BriefLine>,
    /// The commits, latest first.
    pub commits: Vec<(Timestamp, String)>,
}

/// How many of the last prompts are searched for one to the agent.
const PROMPTS: usize = 8;
/// The maximum number of commits.
const COMMITS: usize = 10;

impl SessionKnowledge {
    /// Collects the knowledge in this state.
    ///
    /// # Errors
    ///
    /// As every read.
    pub fn from_state(state: &StateAt) -> Result<Self, CommandError> {
        let brief = Story::brief(state, &forge_agents::resolve)?;
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
            let open = matches!(gap.status, None | Some(GapStatus::Open | GapStatus::Filling));
            let critical = gap.criticality.is_some_and(|it| it.word() == "critical");
            if open && (critical || gap.blocking.is_some_and(|it| it.blocks())) {
                blocking.push(id);
            }
        }
        let point = state.point();
        let session = state.session();
        // Commands to the client say little: one of them is used only if there is nothing else.
        let prompts = session.recent_facts(point, Kind::Prompt, PROMPTS)?;
        let mut prompts = prompts.into_iter().filter_map(|known| {
            let prompt = Prompt::from_value(&known.fact.value).ok()?;
            let slash = prompt.tags.is_some_and(|tags| tags.iter().any(|tag| tag == "slash"));
            Some((slash, (known.fact.at, prompt.text?.preview().to_owned())))
        });
        let first = prompts.next();
        let prompt = match first {
            Some((true, slash)) => {
                prompts.find(|(slash, _)| !slash).map(|(_, it)| it).or(Some(slash))
            }
            other => other.map(|(_, prompt)| prompt),
        };
        let mut commits = session.checkpoints(&forge_store::store::CheckpointFilter {
            tag: Some("commit".to_owned()),
            until: point.time(),
            limit: Some(COMMITS),
            ..Default::default()
        })?;
        commits.sort_by_key(|one| std::cmp::Reverse(one.time));
        let commits = commits
            .into_iter()
            .map(|one| {
                let sha = one.body.field("commit").and_then(forge_store::model::Value::as_text);
                (one.time, format!("{} {}", sha.unwrap_or_default(), one.message))
            })
            .collect();
        Ok(Self {
            decisions,
            constraints,
            blocking,
            prompt,
            files: changed_files(state)?,
            since: None,
            passed: forge_store::store::last_results(state.checks()?.passed),
            commits,
            brief,
        })
    }

    /// Returns what a summary should mention, most important first.
    #[must_use]
    pub fn known_items(&self) -> Vec<KnownItem> {
        let brief = &self.brief;
        let of_line = |kind, line: &BriefLine, text: String| KnownItem {
            kind,
            id: line.id.clone(),
            text,
            word: line.word.map(str::to_owned),
        };
        let hypotheses = [&brief.confirmed, &brief.rejected, &brief.active].into_iter().flatten();
        let mut items: Vec<KnownItem> =
            hypotheses.map(|line| of_line(LossKind::Hypothesis, line, line.text.clone())).collect();
        for (kind, list) in
            [(LossKind::Decision, &self.decisions), (LossKind::Constraint, &self.constraints)]
        {
            items.extend(list.iter().map(|(id, text)| KnownItem {
                kind,
                id: id.clone(),
                text: text.clone(),
                word: None,
            }));
        }
        items.extend(brief.gaps.iter().map(|line| of_line(LossKind::Gap, line, line.text.clone())));
        items.extend(
            brief.failing.iter().map(|line| of_line(LossKind::Failing, line, line.text.clone())),
        );
        let changed = self.files.iter().filter(|file| self.since.is_none_or(|at| file.last > at));
        items.extend(changed.map(|file| KnownItem {
            kind: LossKind::File,
            id: file.path.clone(),
            text: String::new(),
            word: None,
        }));
        items
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.brief.lists().iter().all(|(_, list)| list.is_empty())
            && self.decisions.is_empty()
            && self.constraints.is_empty()
            && self.prompt.is_none()
            && self.files.is_empty()
            && self.passed.is_empty()
            && self.commits.is_empty()
    }
}

fn changed_files(state: &StateAt) -> Result<Vec<ChangedFile>, CommandError> {
    let mut files: BTreeMap<String, ChangedFile> = BTreeMap::new();
    for known in state.facts_of(Kind::Code)? {
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
    Ok(files)
}
