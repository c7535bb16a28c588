//! Reads the content of a page from a store.

use super::fact_texts::FactTexts;
use super::lines::{LineAnchors, LineWriter};
use super::{CompactionNote, ReportModel, claims, files, moments, summary};
use crate::page_clock::PageZone;
use crate::page_text::{PageText, TextCleaner};
use forge_store::error::{Error, Result};
use forge_store::model::claim::{Gap, GapStatus};
use forge_store::model::time_grammar::{MomentBase, MomentExpression};
use forge_store::model::{Key, Kind, Timestamp};
use forge_store::redact::Redactor;
use forge_store::store::{StateAt, TextResolver};
use forge_store::story::{Story, TimeRuler};
use std::collections::HashMap;

/// The maximum number of branches in which answers are looked for.
const MAX_BRANCHES: usize = 50;
/// The maximum length of the title, in characters.
const TITLE_CHARS: usize = 140;

/// The source of the content of a page.
#[derive(Clone, Copy)]
pub struct ReportSource<'a> {
    /// The state at the moment of the page.
    pub state: &'a StateAt,
    /// Finds the whole texts of facts in an imported source.
    pub resolve: TextResolver<'a>,
    /// The compactions up to that moment.
    pub compactions: &'a [CompactionNote],
    /// Finds the secrets that must not be on the page.
    pub redactor: &'a Redactor,
    /// The choice of what is on the page.
    pub limits: ReportLimits,
}

/// The choice of what is on a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportLimits {
    pub zone: PageZone,
    /// Whether to leave out outputs, patches, summaries and the reports of sub-agents.
    pub shared: bool,
    /// The time at which the shown story begins; `None` for the whole story.
    pub since: Option<Timestamp>,
    /// The moment of the page, if it is not the end of the session.
    pub as_of: Option<Timestamp>,
}

impl ReportModel {
    /// Reads the content of a page.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn read(source: &ReportSource<'_>) -> Result<Self> {
        let ReportSource { state, resolve, limits, .. } = *source;
        let cleaner = TextCleaner::new(source.redactor);
        let session = state.session();
        let info = state.info()?;
        let facts = state.facts()?;
        let brief = Story::brief_of_facts(state, &facts, resolve)?;
        let mut story = Story::of_facts(state, &facts)?;
        if let Some(since) = limits.since {
            story.retain_between(since, Timestamp::MAX);
        }
        story.read_whole_texts(session, resolve)?;
        let anchors = LineAnchors::of(&story);
        let texts = FactTexts::new(session, resolve, &cleaner, &story, &facts);

        let places = (0..).zip(&story.hypotheses);
        let places: HashMap<String, usize> =
            places.map(|(place, path)| (path.id.clone(), place)).collect();
        let hypotheses = claims::hypotheses(&texts, state, &anchors.revisions)?;
        let files = files::files(&texts, &facts, &anchors.facts, !limits.shared)?;
        let file_places: HashMap<PageText, usize> =
            (0..).zip(&files).map(|(place, file)| (file.path.clone(), place)).collect();
        let turns = LineWriter::new(&texts, &places, &file_places, limits.shared).turns()?;
        let known = moments::moments(&texts, &places, &files)?;
        let branches = state.branches()?;
        let answers = answers_elsewhere(state, &limits)?;
        let gaps = claims::gaps(&texts, state, &answers)?;

        let activity: Vec<Timestamp> = facts
            .iter()
            .filter(|known| known.fact.kind != Kind::Inference)
            .map(|known| known.fact.at)
            .chain(story.items().map(|item| item.at))
            .filter(|at| limits.since.is_none_or(|since| *at >= since))
            .collect();
        let ruler = TimeRuler::of(activity.clone());
        let title = story.findings.title.clone().unwrap_or_else(|| info.name.clone());
        let title = texts.clean(&title).short(TITLE_CHARS);
        let mut prompts = turns.iter().filter_map(|turn| turn.prompt.as_ref());
        let first_prompt = prompts.next().map(|line| line.whole_text().clone());
        let last_prompt = prompts.next_back().map(|line| line.whole_text().clone());
        let last_prompt = last_prompt.filter(|last| first_prompt.as_ref() != Some(last));
        Ok(Self {
            session: texts.clean(&info.name),
            agent: info.agent.as_deref().map(|agent| texts.clean(agent)),
            branch: texts.clean(&brief.branch),
            first_prompt: first_prompt.filter(|first_prompt| *first_prompt != title),
            last_prompt,
            title,
            zone: limits.zone,
            span: ruler.as_ref().map(TimeRuler::span),
            as_of: limits.as_of,
            shared: limits.shared,
            ruler,
            activity,
            outcome: summary::outcome(&texts, &brief, &turns),
            evidence_count: hypotheses.iter().map(|hypothesis| hypothesis.evidence.len()).sum(),
            beliefs: claims::beliefs(&texts, state)?,
            given_up: claims::given_up(&texts, &branches),
            tasks: summary::tasks(&texts, &facts),
            inferences: summary::inferences(&texts, &facts),
            compactions: summary::compactions(&texts, source.compactions, &anchors, limits.shared),
            item_counts: (story.findings.items, story.findings.loud),
            checks: files::checks(&texts, &anchors.facts),
            agents: files::agents(&texts, &facts, &anchors.facts),
            moments: known.moments,
            moments_left_out: known.left_out,
            prompt_texts: known.prompts,
            question_texts: known
                .questions
                .iter()
                .map(|(id, text)| (texts.clean(id), texts.clean(text)))
                .collect(),
            gaps,
            hypotheses,
            files,
            turns,
        })
    }
}

/// Returns the answers that other branches have to open questions: branch and answer, by the id of
/// the question.
fn answers_elsewhere(
    state: &StateAt,
    limits: &ReportLimits,
) -> Result<HashMap<String, (String, String)>> {
    let mut answers = HashMap::new();
    // Other branches are read as they are now, which a page about an earlier moment must not show.
    if limits.as_of.is_some() {
        return Ok(answers);
    }
    let mut open = Vec::new();
    for (id, entry) in state.claims_of(Kind::Gap)? {
        if Gap::from_value(&entry.value).map_or(true, |gap| gap.is_open()) {
            open.push(Key::new(Kind::Gap, id));
        }
    }
    if open.is_empty() {
        return Ok(answers);
    }
    let current = state.current_branch()?;
    let others = state.branches()?.into_iter().filter(|branch| branch.name != current);
    for branch in others.take(MAX_BRANCHES) {
        let base = MomentBase::Branch(branch.name.clone());
        let moment = match state.session().resolve(&MomentExpression { base, back: 0 }) {
            Ok(moment) => moment,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        for (key, entry) in open.iter().zip(state.session().claims(&moment, &open)?) {
            let gap = entry.and_then(|entry| Gap::from_value(&entry.value).ok());
            if let Some(gap) = gap.filter(|gap| gap.status == Some(GapStatus::Filled)) {
                let answer = gap.resolution.unwrap_or_default();
                answers.insert(key.id.clone(), (branch.name.clone(), answer));
            }
        }
    }
    Ok(answers)
}
