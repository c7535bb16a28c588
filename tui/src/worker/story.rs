//! Reads the story of a session, and the brief of a moment.

use super::confidence;
use crate::answer::TimelineRow;
use crate::effect::MomentTarget;
use crate::story_view::{
    AxisEvent, AxisEventKind, StoryLine, StorySummary, StoryView, ruler_shape,
};
use crate::theme::TextTone;
use forge_store::error::Result;
use forge_store::model::Timestamp;
use forge_store::store::{
    HistoryPosition, HistoryRank, ResolvedMoment, Session, SessionBrief, StateAt,
};
use forge_store::story::{
    ActivePeriod, BranchWalk, FOLDED_SIGN, Story, StoryCut, StoryItem, StoryKind, StoryMark,
    StoryRef, StoryRow, TimeRuler, active_periods, folded_words,
};
use std::collections::BTreeMap;

/// Reads the story of the last `revisions` revisions and checkpoints of a session.
pub(super) fn view(session: &Session, revisions: usize) -> Result<StoryView> {
    let state = session.state(&session.head()?)?;
    let mut story = Story::read_recent(&state, revisions)?;
    story.read_whole_texts(session, &forge_agents::resolve)?;
    let current = state.current_branch()?;
    let mut times: Vec<Timestamp> = story.items().map(|item| item.at).collect();
    times.sort_unstable();
    let periods = active_periods(&times);
    let mut rows = rows(&story, &current);
    rows.extend(story.cut.map(|cut| older_row(cut, &current)));
    let (hypotheses, hypothesis_count) = confidence::series(&story, session, &state)?;
    Ok(StoryView {
        session: state.info()?.id.to_string(),
        rows,
        cut: story.cut,
        hypotheses,
        hypothesis_count,
        summary: summary(&story, &state)?,
        longest_pause: longest_pause(&times),
        events: events(&story, &periods),
        periods,
    })
}

fn summary(story: &Story, state: &StateAt) -> Result<StorySummary> {
    let findings = &story.findings;
    Ok(StorySummary {
        title: findings.title.clone(),
        failing: findings.failing.iter().map(|check| check.text.clone()).collect(),
        passing: findings.passing.len(),
        uncommitted: findings.uncommitted.len(),
        commits: findings.commits.len(),
        prompts: findings.prompts,
        open_gaps: state.open_gaps()?.len(),
        digest: story.digest(state)?,
    })
}

/// Returns the longest pause between these times, which are sorted, in microseconds.
fn longest_pause(times: &[Timestamp]) -> i64 {
    let pauses = times.iter().zip(times.iter().skip(1)).map(|(from, to)| to.micros_since(*from));
    pauses.max().unwrap_or(0)
}

/// The number of places on an axis. Events of one kind at one place are combined.
const PLACES: f64 = 4096.0;

fn events(story: &Story, periods: &[ActivePeriod]) -> Vec<AxisEvent> {
    let ruler = TimeRuler::new(periods, ruler_shape(0.0));
    let mut events: BTreeMap<(u32, AxisEventKind), AxisEvent> = BTreeMap::new();
    for item in story.items() {
        let kind = event_kind(item);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 4096")]
        let place = (ruler.place(item.at) * PLACES) as u32;
        let event = AxisEvent { at: item.at, kind, count: 0 };
        let event = events.entry((place, kind)).or_insert(event);
        event.at = event.at.min(item.at);
        event.count += 1;
    }
    events.into_values().collect()
}

fn event_kind(item: &StoryItem) -> AxisEventKind {
    match (item.kind, item.mark) {
        (StoryKind::Prompt | StoryKind::Answer, _) => AxisEventKind::Prompt,
        (StoryKind::Check, StoryMark::Good) => AxisEventKind::Passed,
        (StoryKind::Check, StoryMark::Bad) => AxisEventKind::Failed,
        (StoryKind::Edit, _) => AxisEventKind::Edit,
        (StoryKind::Commit, _) => AxisEventKind::Commit,
        (StoryKind::Compaction, _) => AxisEventKind::Compaction,
        _ => AxisEventKind::Other,
    }
}

/// Returns the lines of a story, newest first.
fn rows(story: &Story, current: &str) -> Vec<TimelineRow> {
    let mut walk = BranchWalk::default();
    // Folded items are between the shown items, in the same order.
    let is_hidden = |item: &&StoryItem| !item.loud && item.fold_key.is_some();
    let mut folded_items = story.turns.iter().flat_map(|turn| &turn.items).filter(is_hidden);
    let mut rows = Vec::new();
    for row in story.rows() {
        match row {
            StoryRow::Item(item) => rows.push(item_row(item, walk.change(item), current)),
            StoryRow::Folded { at, folded } => {
                let count: usize = folded.values().sum();
                let hidden = folded_items.by_ref().take(count);
                let mut hidden: Vec<TimelineRow> =
                    hidden.map(|item| item_row(item, None, current)).collect();
                hidden.reverse();
                rows.push(folded_row(at, folded_words(&folded), hidden, current));
            }
        }
    }
    rows.reverse();
    rows
}

fn item_row(item: &StoryItem, on_branch: Option<&str>, current: &str) -> TimelineRow {
    let sequence = item.refs.iter().find_map(|about| match about {
        StoryRef::Sequence(sequence) => Some(*sequence),
        StoryRef::Entity(_) => None,
    });
    let (sign, sign_tone) = item.sign();
    let sign_tone = match item.kind {
        StoryKind::Prompt
        | StoryKind::Answer
        | StoryKind::Commit
        | StoryKind::Compaction
        | StoryKind::Checkpoint => TextTone::Accent,
        StoryKind::Edit => TextTone::Edit,
        _ => sign_tone.into(),
    };
    let tone = match item.kind {
        // Only the sign has the colour that says how a claim or check changed; its text is plain.
        StoryKind::Hypothesis | StoryKind::Gap | StoryKind::Check if item.loud => TextTone::Plain,
        _ => item.text_tone().into(),
    };
    let on_branch = on_branch.map(|branch| format!("(on {branch})  ")).unwrap_or_default();
    let reason = format!("{on_branch}{}", item.reason().unwrap_or_default());
    let id = item.refs.first().map(ToString::to_string).unwrap_or_default();
    let rank = HistoryRank::Sequence(sequence.unwrap_or(u64::MAX));
    let target = sequence.map_or(MomentTarget::Time(item.at), MomentTarget::Sequence);
    let branch = item.branch.clone().unwrap_or_else(|| current.to_owned());
    TimelineRow {
        title: item.text.clone(),
        id,
        weight: u8::from(item.loud),
        story: Some(Box::new(StoryLine {
            kind: Some(item.kind),
            sign: (sign, sign_tone),
            tone,
            reason: reason.trim_end().to_owned(),
            question: item.question().unwrap_or_default().to_owned(),
            refs: item.refs.clone(),
            hidden: Vec::new(),
        })),
        ..TimelineRow::new(HistoryPosition { time: item.at, rank }, target, branch)
    }
}

fn folded_row(
    at: Timestamp,
    words: String,
    hidden: Vec<TimelineRow>,
    current: &str,
) -> TimelineRow {
    // The row leads to the moment after all hidden items.
    let last = hidden.first();
    let target = last.map_or(MomentTarget::Time(at), |row| row.target);
    let rank = last.map_or(HistoryRank::Sequence(u64::MAX), |row| row.place.rank);
    let place = HistoryPosition { time: last.map_or(at, |row| row.place.time), rank };
    let branch = last.map_or_else(|| current.to_owned(), |row| row.branch.clone());
    TimelineRow {
        title: words,
        story: Some(Box::new(StoryLine {
            kind: None,
            sign: (FOLDED_SIGN, TextTone::Dim),
            tone: TextTone::Dim,
            reason: String::new(),
            question: String::new(),
            refs: Vec::new(),
            hidden,
        })),
        ..TimelineRow::new(place, target, branch)
    }
}

/// Returns the line for what is older than the story.
fn older_row(cut: StoryCut, current: &str) -> TimelineRow {
    let before = cut.sequence.saturating_sub(1);
    let words = format!("revisions up to #{before} are not read");
    let mut row = folded_row(cut.at, words, Vec::new(), current);
    row.place = HistoryPosition { time: cut.at, rank: HistoryRank::Sequence(0) };
    row.target = MomentTarget::Sequence(before);
    if let Some(story) = &mut row.story {
        "<enter> reads more".clone_into(&mut story.reason);
    }
    row
}

/// Reads the brief of a moment.
pub(super) fn brief(session: &Session, moment: &ResolvedMoment) -> Result<SessionBrief> {
    Story::brief(&session.state(moment)?, &forge_agents::resolve)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pause_is_between_two_events() {
        let times = [0, 5, 20, 30, 1000, 1010].map(|m| Timestamp::from_micros(m * 60_000_000));
        assert_eq!(longest_pause(&times), 970 * 60_000_000);
    }
}
