//! Draws the timeline of a session: the activity, and below it a lane for each kind of event.

use super::{ChartFrame, TOP, hue, percent};
use crate::model::{HypothesisRow, ReportModel};
use crate::words::status_sign;
use forge_store::model::claim::HypothesisStatus;
use maud::{Markup, html};

/// The height of a lane in pixels.
const LANE: u32 = 22;
/// The height of the activity in pixels.
const ACTIVITY: u32 = 30;
/// The number of columns of the activity.
const COLUMNS: usize = 140;
/// The room for a letter in the text of a hypothesis. Hypotheses whose texts have no room share
/// one. The unit is the width of the chart, which is at least about 550 pixels.
const LETTER_ROOM: f64 = 0.014;
/// The maximum number of hypotheses that a text names.
const MAX_TEXTS: usize = 5;
/// The maximum length of the id of a hypothesis in a text.
const ID_CHARS: usize = 8;

struct Lane {
    name: &'static str,
    count: String,
    marks: Markup,
}

pub(crate) fn timeline_chart(frame: &ChartFrame<'_>) -> Markup {
    let (model, held) = (frame.model, frame.held);
    let mut lanes = Vec::new();
    let mut middle = TOP + ACTIVITY + LANE / 2;
    let mut add = |name, count: String, draw: &dyn Fn(u32) -> Markup| {
        lanes.push((Lane { name, count, marks: draw(middle) }, middle));
        middle += LANE;
    };
    if model.prompts().next().is_some() {
        add("Prompts", held.prompts().count().to_string(), &|y| prompt_marks(frame, y));
    }
    if !model.hypotheses.is_empty() {
        add("Hypotheses", held.hypotheses.len().to_string(), &|y| hypothesis_marks(frame, y));
    }
    if !model.agents.is_empty() {
        add("Sub-agents", held.agents.len().to_string(), &|y| agent_marks(frame, y));
    }
    if !model.files.is_empty() {
        let edits: usize = held.files.iter().map(|file| file.edits.len()).sum();
        add("Edits", edits.to_string(), &|y| edit_marks(frame, y));
    }
    if !model.checks.is_empty() {
        let passed = held.runs().filter(|run| run.is_pass()).count();
        add("Checks", format!("{passed}/{}", held.runs().count()), &|y| check_marks(frame, y));
    }
    let commits = &model.outcome.commits;
    if !commits.is_empty() {
        add("Commits", held.outcome.commits.len().to_string(), &|y| commit_marks(frame, y));
    }
    let height = middle - LANE / 2 + 2;
    html! {
        div class="plot" {
            ul class="names lanes" aria-hidden="true" {
                li class="tall" { "Activity" }
                @for (lane, _) in &lanes { li { (lane.name) } }
            }
            svg class="chart" width="100%" height=(height) role="group"
                aria-label="Timeline of the session; the story below has the same in words" {
                (frame.ground(height, true))
                (activity(frame))
                @for (lane, middle) in &lanes {
                    line class="lane" x1="0" x2="100%" y1=(middle) y2=(middle) {}
                    (lane.marks)
                }
                (frame.cover(height))
            }
            ul class="counts lanes" aria-hidden="true" {
                li class="tall" {}
                @for (lane, _) in &lanes { li { (lane.count) } }
            }
        }
        (legend(model))
    }
}

/// Returns the legend of the timeline.
fn legend(model: &ReportModel) -> Markup {
    html! {
        p class="key" {
            @if !model.compactions.is_empty() { span { i class="swatch dash" {} "context compacted" } }
            @if model.ruler.as_ref().is_some_and(|ruler| ruler.pauses().next().is_some()) {
                span { i class="swatch pause" {} "pause, shortened" }
            }
            span { b class="bad" { "✗" } @if model.hypotheses.is_empty() { "check failed" } @else { "check failed, or hypothesis rejected" } }
            @if !model.hypotheses.is_empty() { span { b class="good" { "✓" } "hypothesis confirmed" } }
        }
    }
}

fn activity(frame: &ChartFrame<'_>) -> Markup {
    let mut columns = [0_u32; COLUMNS];
    for at in &frame.model.activity {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place is from 0 to 1"
        )]
        let place = (frame.ruler.place(*at) * COLUMNS as f64) as usize;
        if let Some(column) = columns.get_mut(place.min(COLUMNS - 1)) {
            *column += 1;
        }
    }
    let most = f64::from(columns.iter().copied().max().unwrap_or(1).max(1));
    let height = |count: u32| 2.0 + f64::from(ACTIVITY - 5) * (f64::from(count) / most).sqrt();
    #[expect(clippy::cast_precision_loss, reason = "at most 140")]
    let width = 1.0 / COLUMNS as f64;
    html! {
        @for (place, count) in columns.iter().enumerate().filter(|(_, count)| **count > 0) {
            @let tall = height(*count);
            rect class="activity" x=(percent(width * to_f64(place))) width=(percent(width * 0.8))
                y=(format!("{:.1}", f64::from(TOP + ACTIVITY - 2) - tall)) height=(format!("{tall:.1}")) {}
        }
    }
}

/// Converts a small number to a float.
fn to_f64(number: usize) -> f64 {
    u32::try_from(number).map_or(0.0, f64::from)
}

fn prompt_marks(frame: &ChartFrame<'_>, y: u32) -> Markup {
    html! {
        @for line in frame.model.prompts() {
            (frame.mark(line.at, Some(line.anchor), line.text.short(90).as_str(), &html! {
                circle class="prompt" cx=(frame.place(line.at)) cy=(y) r="4.5" {}
            }))
        }
    }
}

/// The mark of a hypothesis at the moment at which it was stated, confirmed or rejected.
struct HypothesisMark<'m> {
    /// The place on the ruler, from 0 to 1.
    place: f64,
    hypothesis: &'m HypothesisRow,
    /// The index of the hypothesis, which chooses its colour.
    number: usize,
    sign: &'static str,
    word: &'static str,
    /// The id and the sign.
    text: String,
}

/// Returns where the text of hypotheses begins and ends: around their places, but on the chart.
/// Each hypothesis has a place and a number of letters.
fn text_span(marks: impl Iterator<Item = (f64, usize)>) -> (f64, f64) {
    let (mut places, mut count, mut letters) = (0.0, 0, 0);
    for (place, own) in marks {
        places += place;
        count += 1;
        // A space follows each; one sign is for those that are not named.
        letters += if count <= MAX_TEXTS { own + 1 } else { usize::from(count == MAX_TEXTS + 1) };
    }
    let half = LETTER_ROOM * to_f64(letters) / 2.0;
    let middle = (places / to_f64(count)).clamp(half, 1.0 - half);
    (middle - half, middle + half)
}

fn hypothesis_marks(frame: &ChartFrame<'_>, y: u32) -> Markup {
    let mut marks = Vec::new();
    for (number, hypothesis) in frame.model.hypotheses.iter().enumerate() {
        if !frame.is_shown(hypothesis.stated_at) {
            continue;
        }
        let id = hypothesis.id.short(ID_CHARS);
        let place = frame.ruler.place(hypothesis.stated_at);
        let text = id.as_str().to_owned();
        marks.push(HypothesisMark { place, hypothesis, number, sign: "", word: "stated", text });
        for (at, status) in hypothesis.settlements() {
            let word = match status {
                HypothesisStatus::Confirmed => "confirmed",
                HypothesisStatus::Rejected => "rejected",
                _ => continue,
            };
            let (place, sign) = (frame.ruler.place(at), status_sign(Some(status)));
            let text = format!("{}{sign}", id.as_str());
            marks.push(HypothesisMark { place, hypothesis, number, sign, word, text });
        }
    }
    marks.sort_by(|a, b| a.place.total_cmp(&b.place).then(a.number.cmp(&b.number)));
    let span = |group: &[&HypothesisMark<'_>]| {
        text_span(group.iter().map(|mark| (mark.place, mark.text.chars().count())))
    };
    let mut groups: Vec<Vec<&HypothesisMark<'_>>> = Vec::new();
    for mark in &marks {
        groups.push(vec![mark]);
        while let [.., before, last] = groups.as_slice()
            && span(before).1 > span(last).0
        {
            let last = groups.pop().unwrap_or_default();
            if let Some(before) = groups.last_mut() {
                before.extend(last);
            }
        }
    }
    html! {
        @for group in &groups {
            @let (from, to) = span(group);
            text class="hypothesis wideonly" x=(percent(f64::midpoint(from, to))) y=(y + 4) {
                title { @for mark in group { (mark.hypothesis.id) " " (mark.word) ": " (mark.hypothesis.text.short(70)) "\n" } }
                @for mark in group.iter().take(MAX_TEXTS) { tspan class=(hue(mark.number)) { (mark.text) " " } }
                @if group.len() > MAX_TEXTS { tspan { "…" } }
            }
        }
        @for mark in &marks {
            g class={ "narrowonly " (hue(mark.number)) } {
                @if mark.sign.is_empty() { circle class="ring" cx=(percent(mark.place)) cy=(y) r="3.5" {} }
                @else { text class="sign own" x=(percent(mark.place)) y=(y + 5) { (mark.sign) } }
            }
        }
    }
}

fn agent_marks(frame: &ChartFrame<'_>, y: u32) -> Markup {
    html! {
        @for one in &frame.model.agents {
            @let (from, to) = (frame.ruler.place(one.from), frame.ruler.place(one.to));
            (frame.mark(one.from, one.anchor, one.name.short(90).as_str(), &html! {
                rect class="agentspan" x=(percent(from)) width=(percent((to - from).max(0.005))) y=(y - 4) height="8" rx="3" {}
            }))
        }
    }
}

fn edit_marks(frame: &ChartFrame<'_>, y: u32) -> Markup {
    html! {
        @for file in &frame.model.files {
            @for edit in &file.edits {
                @let lines = edit.lines.map_or(1, |(added, removed)| added + removed);
                @let tall = (4 + lines.isqrt()).min(16);
                (frame.mark(edit.at, edit.anchor, file.path.as_str(), &html! {
                    rect class="edit" x=(frame.place(edit.at)) width="2.5" y=(u64::from(y) - tall / 2) height=(tall) {}
                }))
            }
        }
    }
}

fn check_marks(frame: &ChartFrame<'_>, y: u32) -> Markup {
    let runs = || {
        let checks = frame.model.checks.iter();
        checks.flat_map(|check| check.runs.iter().map(move |run| (check, run)))
    };
    html! {
        // Failures are drawn last, so that they are on top.
        @for (check, run) in runs().filter(|(_, run)| !run.is_failure()) {
            (frame.mark(run.at, run.anchor, check.name.short(80).as_str(), &html! {
                rect class="pass" x=(frame.place(run.at)) width="2.5" y=(y - 5) height="10" {}
            }))
        }
        @for (check, run) in runs().filter(|(_, run)| run.is_failure()) {
            (frame.mark(run.at, run.anchor, &format!("{} failed", check.name.short(80).as_str()), &html! {
                text class="sign bad" x=(frame.place(run.at)) y=(y + 5) { "✗" }
            }))
        }
    }
}

fn commit_marks(frame: &ChartFrame<'_>, y: u32) -> Markup {
    html! {
        @for commit in &frame.model.outcome.commits {
            (frame.mark(commit.at, commit.anchor, commit.subject.short(90).as_str(), &html! {
                text class="sign commit" x=(frame.place(commit.at)) y=(y + 5) { "◆" }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a text of several hypotheses at the beginning covered the name of its line. Long
    /// ids covered each other.
    #[test]
    fn a_text_of_several_hypotheses_stays_on_the_chart() {
        let near = |places: &[f64], letters: usize, from: f64, to: f64| {
            let span = text_span(places.iter().map(|place| (*place, letters)));
            (span.0 - from).abs() < 1e-9 && (span.1 - to).abs() < 1e-9
        };
        assert!(near(&[0.5, 0.52], 2, 0.51 - 3.0 * LETTER_ROOM, 0.51 + 3.0 * LETTER_ROOM));
        assert!(near(&[0.5, 0.52], 5, 0.51 - 6.0 * LETTER_ROOM, 0.51 + 6.0 * LETTER_ROOM));
        assert!(near(&[0.0, 0.01], 2, 0.0, 6.0 * LETTER_ROOM));
        assert!(near(&[1.0; 9], 2, 1.0 - 16.0 * LETTER_ROOM, 1.0));
    }
}
