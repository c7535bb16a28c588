//! The edited files, the checks, the sub-agents.

use super::fact_texts::FactTexts;
use super::{AgentSpan, CheckPart, CheckRunPart, EditPart, FilePart};
use crate::page_text::PageText;
use forge_store::error::Result;
use forge_store::model::claim::{Agent, CodeState, FactText};
use forge_store::model::{Kind, Timestamp, Value};
use forge_store::store::SourcedFact;
use forge_store::story::changed_line_counts;
use std::collections::HashMap;

/// The numbers of the story's lines, by the kind and id of the entity that they are about.
pub(super) type AnchorsByFact = HashMap<(Kind, String), usize>;

/// Returns the edited files with their edits, the most changed first.
pub(super) fn files(
    texts: &FactTexts<'_>,
    facts: &[SourcedFact],
    anchors: &AnchorsByFact,
    with_patches: bool,
) -> Result<Vec<FilePart>> {
    let mut edits: Vec<(PageText, EditPart)> = Vec::new();
    for known in facts.iter().filter(|known| known.fact.kind == Kind::Code) {
        let fact = &known.fact;
        let Ok(code) = CodeState::from_value(&fact.value) else { continue };
        let Some(path) = code.path.as_ref().map(FactText::preview).filter(|it| !it.is_empty())
        else {
            continue;
        };
        let path = texts.path(path);
        let patch = texts.full_text(known, "patch")?;
        let counted = || patch.as_ref().map(|patch| changed_line_counts(patch.as_str()));
        let edit = EditPart {
            at: fact.at,
            lines: code.lines_added.zip(code.lines_removed).or_else(counted),
            patch: patch.clone().filter(|_| with_patches),
            anchor: anchors.get(&(Kind::Code, fact.id.clone())).copied(),
        };
        edits.push((path, edit));
    }
    let files = grouped(edits).into_iter().map(|(path, edits)| FilePart { path, edits });
    let mut files: Vec<FilePart> = files.collect();
    files.sort_by_key(|file| {
        let (added, removed) = file.lines().unwrap_or_default();
        (std::cmp::Reverse(added + removed), file.path.clone())
    });
    Ok(files)
}

/// Returns the checks with their runs, in the order of their first runs.
pub(super) fn checks(texts: &FactTexts<'_>, anchors: &AnchorsByFact) -> Vec<CheckPart> {
    let runs = texts.story.checks.iter().map(|run| {
        let part = CheckRunPart {
            at: run.at,
            status: run.status,
            description: run.description.as_deref().map(|text| texts.clean(text)),
            anchor: anchors.get(&(Kind::Verification, run.id.clone())).copied(),
        };
        (texts.clean(&run.name), part)
    });
    grouped(runs).into_iter().map(|(name, runs)| CheckPart { name, runs }).collect()
}

/// Groups parts by their names, in the order in which the names first occur.
fn grouped<T>(parts: impl IntoIterator<Item = (PageText, T)>) -> Vec<(PageText, Vec<T>)> {
    let mut groups: Vec<(PageText, Vec<T>)> = Vec::new();
    let mut places: HashMap<PageText, usize> = HashMap::new();
    for (name, part) in parts {
        let place = *places.entry(name.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, group)) => group.push(part),
            None => groups.push((name, vec![part])),
        }
    }
    groups
}

/// Returns the sub-agents with the times of their work.
pub(super) fn agents(
    texts: &FactTexts<'_>,
    facts: &[SourcedFact],
    anchors: &AnchorsByFact,
) -> Vec<AgentSpan> {
    let agents = facts.iter().filter(|known| known.fact.kind == Kind::Agent);
    let span = |known: &SourcedFact| {
        let fact = &known.fact;
        let began = fact.value.field("started_at").and_then(Value::as_text);
        let sent = Agent::from_value(&fact.value).unwrap_or_default();
        let name = sent.description.or(sent.agent_type);
        AgentSpan {
            from: began.and_then(Timestamp::parse_rfc3339).unwrap_or(fact.at).min(fact.at),
            to: fact.at,
            name: texts.clean(name.as_ref().map_or(&*fact.id, FactText::preview)),
            anchor: anchors.get(&(Kind::Agent, fact.id.clone())).copied(),
        }
    };
    agents.map(span).collect()
}
