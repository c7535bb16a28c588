//! The confidence in each hypothesis over time.

use super::{ChartFrame, TOP, hue, percent};
use crate::model::{HypothesisMove, HypothesisRow};
use crate::words::{hypothesis_link, status_sign};
use forge_store::model::Timestamp;
use forge_store::model::claim::{HypothesisStatus, VocabularyWord};
use maud::{Markup, html};

const HEIGHT: u32 = 300;
/// The space between the times and the highest confidence, in pixels.
const HEADROOM: f64 = 10.0;
/// The space below the lowest confidence, in pixels.
const FOOTROOM: f64 = 12.0;
/// The height of a label at the end of a line, in pixels.
const LABEL: f64 = 17.0;
/// The maximum number of lines.
const MAX_LINES: usize = 12;

fn height_of(confidence: f64) -> f64 {
    let top = f64::from(TOP) + HEADROOM;
    top + (f64::from(HEIGHT) - top - FOOTROOM) * (1.0 - confidence.clamp(0.0, 1.0))
}

/// A hypothesis as a line.
struct HypothesisLine<'m> {
    hypothesis: &'m HypothesisRow,
    number: usize,
    /// The changes of the confidence, without repetitions.
    points: Vec<(&'m HypothesisMove, f64)>,
    /// How many pixels the line is moved down, so that lines of the same confidence are apart.
    shift: f64,
    /// When its status was last settled, if it is rejected, archived or not on the page's branch.
    given_up_at: Option<Timestamp>,
}

impl<'m> HypothesisLine<'m> {
    /// Returns the hypothesis as it is at the moment of the page; `None` if it is stated later.
    fn held(&self, frame: &ChartFrame<'m>) -> Option<&'m HypothesisRow> {
        frame.held.hypotheses.iter().find(|hypothesis| hypothesis.id == self.hypothesis.id)
    }

    /// Returns the confidence at the moment of the page.
    fn held_confidence(&self, frame: &ChartFrame<'_>) -> f64 {
        let now = frame.now();
        let is_known = |point: &&(&HypothesisMove, f64)| now.is_none_or(|now| point.0.at <= now);
        self.points.iter().rfind(is_known).map_or(0.5, |point| point.1)
    }
}

/// Returns the chart; `None` if no hypothesis has a confidence.
pub(crate) fn confidence_chart(frame: &ChartFrame<'_>) -> Option<Markup> {
    let lines = lines(frame);
    if lines.is_empty() {
        return None;
    }
    let scale = [0.0, 0.25, 0.5, 0.75, 1.0];
    Some(html! {
        div class="plot" {
            svg class="gutter" width="100%" height=(HEIGHT) aria-hidden="true" {
                @for value in scale { text class="scale" x="100%" y=(format!("{:.0}", height_of(value) + 4.0)) { (value) } }
            }
            svg class="chart" width="100%" height=(HEIGHT) role="group"
                aria-label="Confidence in each hypothesis over time; the table below lists every change" {
                (frame.ground(HEIGHT, false))
                @for value in scale {
                    @let y = format!("{:.1}", height_of(value));
                    line class="rule" x1="0" x2="100%" y1=(y) y2=(y) {}
                }
                @for line in &lines { (draw(frame, line)) }
                (frame.cover(HEIGHT))
            }
            svg class="gutter" width="100%" height=(HEIGHT) aria-hidden="true" {
                @for (line, y) in ends(frame, &lines) {
                    text class={ "end " (hue(line.number)) } x="0" y=(format!("{y:.0}")) {
                        (line.hypothesis.id.short(8)) (format!(" {:.2} ", line.held_confidence(frame))) (status_sign(line.held(frame).and_then(|hypothesis| hypothesis.status)))
                    }
                }
            }
        }
        ul class="legend" {
            @for (line, held) in lines.iter().filter_map(|line| Some((line, line.held(frame)?))) {
                li class=(hue(line.number)) {
                    a href=(hypothesis_link(line.number)) {
                        svg class="stroke" width="26" height="10" aria-hidden="true" { line class="path" x1="1" x2="25" y1="5" y2="5" {} }
                        b class="hypothesis-id" { (held.id) " " (status_sign(held.status)) } " " (held.text.short(90).inline())
                    }
                }
            }
        }
        @if frame.model.hypotheses.len() > lines.len() {
            p class="soft" { "The chart has " (lines.len()) " of " (frame.model.hypotheses.len()) " hypotheses; the table has all of them." }
        }
    })
}

fn lines<'m>(frame: &ChartFrame<'m>) -> Vec<HypothesisLine<'m>> {
    let mut lines: Vec<HypothesisLine<'m>> = Vec::new();
    for (number, hypothesis) in frame.model.hypotheses.iter().enumerate() {
        let points = hypothesis.confidences();
        let is_given_up = matches!(
            hypothesis.status,
            None | Some(HypothesisStatus::Rejected | HypothesisStatus::Archived)
        );
        let given_up_at = hypothesis.settlements().last().filter(|_| is_given_up).map(|(at, _)| at);
        if !points.is_empty() {
            lines.push(HypothesisLine { hypothesis, number, points, shift: 0.0, given_up_at });
        }
    }
    if lines.len() > MAX_LINES {
        // Keeps confirmed hypotheses first, then the ones whose confidence changed most often.
        let weight = |line: &HypothesisLine<'_>| {
            let confirmed = line.hypothesis.status == Some(HypothesisStatus::Confirmed);
            (confirmed, line.points.len())
        };
        lines.sort_by_key(|line| (std::cmp::Reverse(weight(line)), line.number));
        lines.truncate(MAX_LINES);
        lines.sort_by_key(|line| line.number);
    }
    let count = lines.len();
    for (place, line) in lines.iter_mut().enumerate() {
        let from_middle = f64::from(u32::try_from(2 * place + 1).unwrap_or(0))
            - f64::from(u32::try_from(count).unwrap_or(0));
        line.shift = from_middle * 0.55;
    }
    lines
}

fn draw(frame: &ChartFrame<'_>, line: &HypothesisLine<'_>) -> Markup {
    let end = frame.ruler.span().1;
    let y = |confidence: f64| format!("{:.1}", height_of(confidence) + line.shift);
    let nexts = line.points.iter().skip(1).map(Some).chain([None]);
    let horizontal = |class: &str, from: Timestamp, to: Timestamp, at: &str| {
        html! { line class=(class) x1=(frame.place(from)) x2=(frame.place(to)) y1=(at) y2=(at) {} }
    };
    html! {
        g class={ (hue(line.number)) @if line.given_up_at.is_some() { " dead" } } {
            @for ((step, confidence), next) in line.points.iter().zip(nexts) {
                @let level = y(*confidence);
                @match next {
                    Some((following, to)) => {
                        (horizontal("path", step.at, following.at, &level))
                        @let place = frame.place(following.at);
                        line class="path" x1=(place) x2=(place) y1=(level) y2=(y(*to)) {}
                    }
                    None => {
                        @let stop = line.given_up_at.map_or(end, |at| at.max(step.at));
                        (horizontal("path", step.at, stop, &level))
                        @if line.given_up_at.is_some() { (horizontal("gone", stop, end, &level)) }
                    }
                }
            }
            @for (place, (step, confidence)) in line.points.iter().enumerate() {
                (frame.mark(step.at, step.anchor, &move_words(line.hypothesis, step, *confidence), &html! {
                    circle class="dot" cx=(frame.place(step.at)) cy=(y(*confidence)) r=(if place == 0 { "3" } else { "4" }) {}
                }))
            }
            @for (at, status) in line.hypothesis.settlements().filter(|(at, _)| frame.is_shown(*at)) {
                @let level = line.points.iter().rfind(|(step, _)| step.at <= at).map_or(0.5, |point| point.1);
                @let middle = height_of(level) + line.shift;
                g {
                    title { (frame.zone().clock(at)) " " (line.hypothesis.id) " " (status.word()) }
                    circle class="seal" cx=(frame.place(at)) cy=(format!("{middle:.1}")) r="9" {}
                    text class="sealsign" x=(frame.place(at)) y=(format!("{:.1}", middle + 4.5)) { (status_sign(Some(status))) }
                }
            }
        }
    }
}

/// Returns a change in words, with its cause.
fn move_words(hypothesis: &HypothesisRow, step: &HypothesisMove, confidence: f64) -> String {
    let id = hypothesis.id.as_str();
    let mut words = match step.before {
        Some(before) => format!("{id} {before:.2} → {confidence:.2}"),
        None => format!("{id} stated at {confidence:.2}"),
    };
    for found in &step.evidence {
        let strength = found.strength.map(|it| format!(" {it:+.2}")).unwrap_or_default();
        words.push_str(&format!("\n{}{strength}: {}", found.id.as_str(), found.text.as_str()));
    }
    if let Some(reason) = &step.reason {
        words.push_str(&format!("\n{}", reason.as_str()));
    }
    words
}

/// Returns the lines with the vertical places of their labels, which do not overlap.
fn ends<'l, 'm>(
    frame: &ChartFrame<'m>,
    lines: &'l [HypothesisLine<'m>],
) -> Vec<(&'l HypothesisLine<'m>, f64)> {
    let end = |line: &HypothesisLine<'m>| height_of(line.held_confidence(frame)) + line.shift + 4.0;
    let held = lines.iter().filter(|line| line.held(frame).is_some());
    let mut ends: Vec<_> = held.map(|line| (line, end(line))).collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut free = f64::NEG_INFINITY;
    for (_, y) in &mut ends {
        *y = y.max(free);
        free = *y + LABEL;
    }
    let mut limit = f64::from(HEIGHT) - 3.0;
    for (_, y) in ends.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - LABEL;
    }
    ends
}

pub(crate) fn bar_place(confidence: f64) -> String {
    percent(confidence.clamp(0.0, 1.0))
}
