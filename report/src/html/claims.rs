//! The sections about claims: hypotheses, beliefs, questions (gaps), and what compactions lost.

use super::{
    MAX_HYPOTHESES, MAX_ROWS, Page, counted, hypothesis_link, more, moved, status_sign,
    status_words, table,
};
use crate::chart::{bar_place, hue};
use crate::message_html::message_html;
use crate::model::{CompactionPart, EvidenceRow, GapRow, HypothesisMove, HypothesisRow};
use forge_store::model::claim::HypothesisStatus;
use maud::{Markup, html};

/// The longest summary of a compaction, in characters.
const SUMMARY_CHARS: usize = 6_000;

impl Page<'_> {
    /// Returns the chart of the confidence of all hypotheses, with the table of its changes.
    pub(super) fn confidence(&self, chart: &Markup) -> Markup {
        let mut rows: Vec<(usize, &HypothesisRow, &HypothesisMove)> = Vec::new();
        for (number, hypothesis) in self.model.hypotheses.iter().enumerate() {
            let changes = hypothesis
                .steps
                .iter()
                .filter(|step| step.confidence != step.before || step.status.is_some());
            rows.extend(changes.map(|step| (number, hypothesis, step)));
        }
        rows.sort_by_key(|(number, _, step)| (step.at, *number));
        let all = rows.len();
        rows.drain(..all.saturating_sub(MAX_ROWS));
        let zone = self.model.zone;
        let rows = html! {
            @for (number, hypothesis, step) in &rows {
                tr {
                    td class="num" { (self.linked(step.anchor, &zone.day_and_clock(step.at))) }
                    td { (hypothesis_name(*number, hypothesis)) }
                    td { (moved(step.before, step.confidence)) }
                    td { (became(step)) }
                    td { (cause(step)) }
                }
            }
        };
        let columns = ["At", "Hypothesis", "Confidence", "Became", "Cause"];
        html! {
            (chart)
            details {
                summary { "Every change, with its cause " span class="count" { (all) } }
                (more(all, MAX_ROWS, "earlier changes"))
                (table("Table of all changes of confidence", &columns, &rows))
            }
        }
    }

    /// Returns what is known: the hypotheses that are not rejected, and the beliefs.
    pub(super) fn known(&self) -> Option<Markup> {
        let model = self.model;
        if model.hypotheses.is_empty() && model.beliefs.is_empty() {
            return self.known_without_hypotheses();
        }
        let order = |hypothesis: &HypothesisRow| match hypothesis.status {
            Some(HypothesisStatus::Confirmed) => 0,
            Some(HypothesisStatus::UnderTest) => 1,
            Some(HypothesisStatus::Active) => 2,
            Some(HypothesisStatus::Archived) => 3,
            _ => 4,
        };
        let mut hypotheses: Vec<(usize, &HypothesisRow)> =
            model.hypotheses.iter().enumerate().collect();
        hypotheses.retain(|(number, hypothesis)| {
            *number < MAX_HYPOTHESES && hypothesis.status != Some(HypothesisStatus::Rejected)
        });
        hypotheses.sort_by_key(|(number, hypothesis)| (order(hypothesis), *number));
        let beliefs = html! {
            @for belief in model.beliefs.iter().take(MAX_ROWS) {
                tr {
                    td { span class="claimid" { (belief.id) } }
                    td class="num bars" {
                        @if let Some(sure) = belief.confidence { (bar(sure, "plain")) " " (format!("{sure:.2}")) }
                    }
                    td {
                        (belief.text.inline())
                        @if !belief.rests_on.is_empty() {
                            span class="soft" { " rests on " @for (place, id) in belief.rests_on.iter().enumerate() { @if place > 0 { ", " } (id) } }
                        }
                        @if let Some(doubt) = &belief.doubt { b class="warn" { " in doubt: " (doubt) } }
                    }
                }
            }
        };
        Some(html! {
            @for (number, hypothesis) in hypotheses { (self.hypothesis(number, hypothesis)) }
            (more(model.hypotheses.len(), MAX_HYPOTHESES, "hypotheses"))
            @if !model.beliefs.is_empty() {
                h3 { "Held to be true" }
                (table("Table of beliefs", &["Id", "Confidence", "Belief"], &beliefs))
            }
        })
    }

    /// Returns the tasks and inferences, for a session without hypotheses and beliefs.
    fn known_without_hypotheses(&self) -> Option<Markup> {
        let model = self.model;
        let done = model.tasks.iter().filter(|task| task.is_done).count();
        Some(html! {
            p class="soft" { "No hypothesis was recorded in this session, so there is no confidence to show." }
            @if !model.tasks.is_empty() {
                h3 { "Tasks of the agent " span class="count" { (done) " of " (model.tasks.len()) " done" } }
                ul class="marked" {
                    @for task in &model.tasks {
                        li {
                            @if task.is_done { b class="good" { "✓ " } } @else { b class="warn" { "○ " } }
                            (task.text.inline())
                            @if !task.is_done { span class="soft" { " – " (task.status) } }
                        }
                    }
                }
            }
            @if !model.inferences.is_empty() {
                details {
                    summary { "What the agent's messages say it found " span class="count" { (model.inferences.len()) } }
                    ul class="bullets" {
                        @for (at, text) in &model.inferences {
                            li { span class="num soft" { (model.zone.day_and_clock(*at)) } " " (text.short(260).inline()) }
                        }
                    }
                }
            }
        })
    }

    fn hypothesis(&self, number: usize, hypothesis: &HypothesisRow) -> Markup {
        let (word, class) = status_words(hypothesis.status);
        let zone = self.model.zone;
        let best = hypothesis.steps.iter().filter_map(|step| step.confidence).fold(0.0, f64::max);
        html! {
            article class={ "card edge-" (class) } id=(hypothesis_link(number).trim_start_matches('#')) {
                p class="meta" {
                    (hypothesis_name(number, hypothesis)) " "
                    b class=(class) { (status_sign(hypothesis.status)) " " (word) }
                    @if let Some(at) = hypothesis.settled_at { " " (zone.day_and_clock(at)) }
                    @if let Some(sure) = hypothesis.confidence { " · confidence " b { (format!("{sure:.2}")) } }
                    " · stated " (zone.day_and_clock(hypothesis.stated_at))
                    @if hypothesis.status == Some(HypothesisStatus::Rejected) && best > hypothesis.confidence.unwrap_or(1.0) + 0.05 {
                        " · at most " (format!("{best:.2}"))
                    }
                }
                p class="statement" { (hypothesis.text.inline()) }
                @if let Some(reason) = &hypothesis.reason {
                    p { b { @if hypothesis.status == Some(HypothesisStatus::Rejected) { "Why not: " } @else { "Why: " } } (reason.inline()) }
                }
                (evidence(&hypothesis.evidence))
            }
        }
    }

    /// Returns the rejected hypotheses and the branches that were given up.
    pub(super) fn rejected(&self) -> Option<Markup> {
        let model = self.model;
        let rejected = self.with_status(HypothesisStatus::Rejected);
        if rejected.is_empty() && model.given_up.is_empty() {
            return None;
        }
        Some(html! {
            @for (number, hypothesis) in rejected.into_iter().filter(|(number, _)| *number < MAX_HYPOTHESES) { (self.hypothesis(number, hypothesis)) }
            @for branch in &model.given_up {
                article class="card edge-bad" {
                    p class="meta" {
                        b class="bad" { "✗ branch given up" } " · " code { (branch.name) }
                        @if let Some(hypothesis) = &branch.hypothesis { " · to test " (hypothesis) }
                    }
                    @if let Some(approach) = &branch.approach { p class="statement" { (approach.inline()) } }
                    @if !branch.results.is_empty() {
                        p { b { "Result: " } @for (place, result) in branch.results.iter().enumerate() { @if place > 0 { "; " } (result.inline()) } }
                    }
                }
            }
        })
    }

    pub(super) fn questions(&self) -> Option<Markup> {
        let gaps = &self.model.gaps;
        if gaps.is_empty() {
            return None;
        }
        let open = || gaps.iter().filter(|gap| gap.is_open);
        let closed: Vec<&GapRow> = gaps.iter().filter(|gap| !gap.is_open).collect();
        Some(html! {
            @if open().next().is_none() { p class="soft" { "No question is open." } }
            ul class="marked" {
                @for gap in open().take(MAX_ROWS) {
                    li {
                        b class="warn" { "? " } span class="claimid" { (gap.id) } " " b { (gap.text.inline()) }
                        span class="soft" {
                            " " (gap.criticality)
                            @if let Some(blocks) = &gap.blocks { ", blocks " (blocks) }
                            " · open since " (self.model.zone.day_and_clock(gap.since))
                        }
                        @if let Some((branch, answer)) = &gap.answered_elsewhere {
                            p class="because" { "Answered on branch " code { (branch) } " only: " (answer.inline()) }
                        }
                    }
                }
            }
            (more(open().count(), MAX_ROWS, "open questions"))
            @if !closed.is_empty() {
                details {
                    summary { "Closed questions " span class="count" { (closed.len()) } }
                    dl class="answers" {
                        @for gap in closed.iter().take(MAX_ROWS) {
                            dt { span class="claimid" { (gap.id) } " " (gap.text.inline()) " " span class="soft" { (gap.status) } }
                            dd { @if let Some(answer) = &gap.answer { (answer.inline()) } @else { "no answer is recorded" } }
                        }
                    }
                }
            }
        })
    }

    /// Returns for each compaction what its summary does not mention.
    pub(super) fn compactions(&self) -> Option<Markup> {
        let compactions = &self.model.compactions;
        (!compactions.is_empty())
            .then(|| html! { @for one in compactions { (self.compaction(one)) } })
    }

    fn compaction(&self, part: &CompactionPart) -> Markup {
        let one = &part.note;
        let time = self.model.zone.day_and_clock(one.at);
        html! {
            article class="card edge-accent" {
                p class="meta" {
                    (self.linked(part.anchor, &html! { b { (time) } }))
                    @if let Some(tokens) = one.tokens { " · " (u64::try_from(tokens).map(super::grouped).unwrap_or_default()) " tokens" }
                    @if let Some(trigger) = &one.trigger { " · " (trigger) }
                }
                @match &one.lost {
                    None => { p { "The summary is not in the record, so it is not known what it left out." } }
                    Some(lost) if lost.is_empty() => { p class="statement" { "The summary mentions all " (one.known) " things that forge knew." } }
                    Some(lost) => {
                        p class="statement" { "The summary does not mention " (counted(lost.len(), "thing", "things")) " of " (one.known) " that forge knew:" }
                        ul class="bullets" {
                            @for one in lost {
                                li {
                                    span class="soft" { (one.kind) } " "
                                    @if let Some(id) = &one.id { code { (id) } " " }
                                    (one.text.short(240).inline())
                                }
                            }
                        }
                    }
                }
                @if let Some(summary) = &one.summary {
                    details {
                        summary { "The agent's summary " span class="count" { (summary.as_str().len().div_ceil(1024)) " KB" } }
                        div class="quote" { (message_html(&summary.beginning(SUMMARY_CHARS.min(self.detail.message_chars)))) }
                    }
                }
            }
        }
    }
}

/// Returns the id of a hypothesis in its colour.
pub(super) fn hypothesis_name(number: usize, hypothesis: &HypothesisRow) -> Markup {
    html! { span class={ "hypothesis-id " (hue(number)) } { (hypothesis.id) } }
}

fn became(step: &HypothesisMove) -> Markup {
    html! {
        @if let Some(status) = step.status {
            @let (word, class) = status_words(Some(status));
            @if step.before.is_none() && status == HypothesisStatus::Active { "stated" }
            @else { span class=(class) { (status_sign(Some(status))) " " (word) } }
        }
        @if let Some(branch) = &step.branch { span class="soft" { " on " (branch) } }
    }
}

fn cause(step: &HypothesisMove) -> Markup {
    html! {
        @for found in &step.evidence {
            span class="block" { (strength_words(found)) " " span class="claimid" { (found.id) } " " (found.text.inline()) }
        }
        @if let Some(reason) = &step.reason { span class="block" { (reason.inline()) } }
    }
}

fn strength_words(found: &EvidenceRow) -> Markup {
    html! {
        @match found.strength {
            Some(strength) if strength < 0.0 => { b class="bad" { (format!("against {:.2}", -strength)) } }
            Some(strength) => { b class="good" { (format!("for {strength:.2}")) } }
            None => { b class="soft" { "about" } }
        }
    }
}

fn evidence(rows: &[EvidenceRow]) -> Markup {
    html! {
        @if !rows.is_empty() {
            ul class="evidence" {
                @for row in rows {
                    li {
                        span class="strength" {
                            @if let Some(strength) = row.strength { (bar(strength.abs(), if strength < 0.0 { "bad" } else { "good" })) " " }
                            (strength_words(row))
                        }
                        span {
                            span class="claimid" { (row.id) } " " (row.text.inline())
                            @if let Some(source) = &row.source { " " code class="soft" { (source.short(80)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a bar whose length shows a number from 0 to 1.
fn bar(number: f64, class: &str) -> Markup {
    html! {
        svg class="bar" width="52" height="8" aria-hidden="true" {
            rect class="all" width="100%" height="6" y="1" rx="3" {}
            rect class=(class) width=(bar_place(number)) height="6" y="1" rx="3" {}
        }
    }
}
