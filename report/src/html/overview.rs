//! The head of a page: its subject, the outcome, and the figures.

use super::{Page, counted, grouped, hypothesis_link};
use crate::message_html::message_html;
use crate::model::{GapRow, HypothesisRow};
use forge_store::model::claim::HypothesisStatus;
use forge_store::model::time_grammar::describe_distance;
use maud::{Markup, html};

/// The maximum number of files that are named as uncommitted.
const FILES_NAMED: usize = 8;
/// The maximum length of a prompt in the head, in characters.
const ASKED_CHARS: usize = 400;
/// The maximum number of confirmed hypotheses in the head, and of rejected ones.
const HYPOTHESES_NAMED: usize = 5;
/// The maximum number of open questions in the head.
const GAPS_NAMED: usize = 3;
/// The maximum length of the text of a hypothesis or question, in characters.
const HYPOTHESIS_CHARS: usize = 140;
/// The maximum length of the agent's last message in the head, in characters.
const LAST_WORD_CHARS: usize = 6_000;

struct Figure {
    number: String,
    of: Option<String>,
    words: &'static str,
    note: Option<String>,
}

impl Page<'_> {
    /// Returns the head of the page.
    pub(super) fn header(&self) -> Markup {
        let model = self.model;
        html! {
            p class="above" {
                "session " b { (model.session.short(60)) }
                @if let Some(agent) = &model.agent { " · " (agent.short(40)) }
                @if let Some((from, to)) = model.span { " · " (model.zone.span(from, to)) " " (model.zone.name()) }
                " · branch " code { (model.branch.short(60)) }
            }
            @if let Some(at) = model.as_of {
                p class="asof" {
                    b { "As of " (model.zone.day_and_clock(at)) "." } " Nothing later is on this page but in grey on the charts."
                    @if let Some(served) = &self.options.served { " " a href=(served.path) { "Go to the end" } }
                }
            }
            h1 class=[(model.title.as_str().chars().count() > 70).then_some("long")] { (breakable(model.title.as_str())) }
            @if let Some(prompt) = &model.first_prompt {
                p class="asked" { span class="who" { "Asked" } " " (prompt.short(ASKED_CHARS).inline()) }
            }
            @if let Some(prompt) = &model.last_prompt {
                p class="asked" { span class="who" { "Asked last" } " " (prompt.short(ASKED_CHARS).inline()) }
            }
            (self.outcome())
            (self.figures())
            @if let Some(served) = &self.options.served {
                details class="tools" { summary { "Search, go to a moment, compare two moments" } (super::served::tools(&served.path, &[])) }
            }
        }
    }

    fn outcome(&self) -> Markup {
        let model = self.model;
        let outcome = &model.outcome;
        let confirmed = self.with_status(HypothesisStatus::Confirmed);
        let good = outcome.failing.is_empty() && (outcome.passing > 0 || !confirmed.is_empty());
        let class = if outcome.ends_failing() {
            "outcome failing"
        } else if good {
            "outcome passing"
        } else {
            "outcome"
        };
        html! {
            div class=(class) {
                @for (place, (number, hypothesis)) in confirmed.iter().take(HYPOTHESES_NAMED).enumerate() {
                    p class=(if place == 0 { "verdict" } else { "verdict second" }) {
                        span class="who good" { "Confirmed" } " "
                        a class={ "hypothesis-id " (crate::chart::hue(*number)) } href=(hypothesis_link(*number)) { (hypothesis.id) @if let Some(sure) = hypothesis.confidence { (format!(" {sure:.2}")) } }
                        " " b { (hypothesis.text.inline()) }
                    }
                    @if let Some(reason) = &hypothesis.reason { p class="because" { "Why: " (reason.inline()) } }
                }
                @if confirmed.len() > HYPOTHESES_NAMED { p { a href="#known" { "and " (confirmed.len() - HYPOTHESES_NAMED) " more confirmed" } } }
                (self.ruled_out())
                (self.ends())
                @if let Some(word) = &outcome.last_word {
                    div class="lastword" {
                        p class="who" { "The agent's last words" }
                        (message_html(&word.beginning(LAST_WORD_CHARS)))
                    }
                }
            }
        }
    }

    /// Returns a line for each rejected hypothesis.
    fn ruled_out(&self) -> Markup {
        let rejected = self.with_status(HypothesisStatus::Rejected);
        html! {
            @if !rejected.is_empty() {
                ul class="ruledout" {
                    @for (number, hypothesis) in rejected.iter().take(HYPOTHESES_NAMED) {
                        li {
                            span class="who bad" { "Ruled out" } " "
                            a class={ "hypothesis-id " (crate::chart::hue(*number)) } href=(hypothesis_link(*number)) { (hypothesis.id) }
                            " " (hypothesis.text.short(HYPOTHESIS_CHARS).inline())
                            @if let Some(reason) = &hypothesis.reason { span class="because" { " – " (reason.short(HYPOTHESIS_CHARS).inline()) } }
                        }
                    }
                    @if rejected.len() > HYPOTHESES_NAMED { li { a href="#rejected" { "and " (rejected.len() - HYPOTHESES_NAMED) " more" } } }
                }
            }
        }
    }

    /// Returns the last results of checks, the commits, the uncommitted files and the open
    /// questions.
    fn ends(&self) -> Markup {
        let model = self.model;
        let open: Vec<&GapRow> = model.gaps.iter().filter(|gap| gap.is_open).collect();
        let outcome = &model.outcome;
        let zone = model.zone;
        html! {
            ul class="ends" {
                @for check in outcome.failing.iter().take(6) {
                    li {
                        b class="bad" { "✗ failed when last run: " } code { (check.name.short(90)) } ", " (zone.day_and_clock(check.at))
                        @if let Some(error) = &check.error { span class="error" { (error.short(300)) } }
                    }
                }
                @if outcome.failing.len() > 6 { li class="bad" { "and " (outcome.failing.len() - 6) " more checks failed when last run" } }
                @if let Some((name, at)) = &outcome.last_pass {
                    li {
                        @if outcome.failing.is_empty() { b class="good" { "✓ no check fails" } " – the last that passed: " }
                        @else { b class="good" { "✓ " } "the last that passed: " }
                        code { (name.short(90)) } ", " (zone.day_and_clock(*at))
                    }
                }
                @if let Some(last) = outcome.commits.last() {
                    li {
                        span class="accent" { "◆ " } (counted(outcome.commits.len(), "commit", "commits")) ", the last: "
                        (self.linked(last.anchor, &last.subject.short(120)))
                    }
                }
                @if !outcome.uncommitted.is_empty() {
                    li {
                        b class="warn" { "± not committed: " }
                        @for (place, path) in outcome.uncommitted.iter().take(FILES_NAMED).enumerate() {
                            @if place > 0 { ", " } code { (path.short(80)) }
                        }
                        @if outcome.uncommitted.len() > FILES_NAMED { " and " (outcome.uncommitted.len() - FILES_NAMED) " more" }
                    }
                }
                @if outcome.uncommitted.is_empty() && !outcome.commits.is_empty() { li { b class="good" { "✓ " } "no edited file is left to commit" } }
                @for gap in open.iter().take(GAPS_NAMED) {
                    li { b class="warn" { "? open: " } a href="#open" { (gap.id) } " " (gap.text.short(HYPOTHESIS_CHARS).inline()) @if gap.answered_elsewhere.is_some() { " (answered on another branch)" } }
                }
                @if open.len() > GAPS_NAMED { li { a href="#open" { "and " (counted(open.len() - GAPS_NAMED, "more open question", "more open questions")) } } }
                @if let Some(question) = &outcome.last_question {
                    li { b class="warn" { "? the agent waits for an answer: " } (question.inline()) }
                }
            }
        }
    }

    fn figures(&self) -> Markup {
        let figures = self.figure_list();
        html! {
            ul class="figures" {
                @for figure in &figures {
                    li {
                        b { (figure.number) @if let Some(of) = &figure.of { small { "/" (of) } } }
                        span { (figure.words) }
                        @if let Some(note) = &figure.note { small { (note) } }
                    }
                }
            }
        }
    }

    fn figure_list(&self) -> Vec<Figure> {
        let model = self.model;
        let mut figures = Vec::new();
        let mut add = |count: usize, of: Option<usize>, one, many, note: Option<String>| {
            if count > 0 || of.is_some_and(|of| of > 0) {
                figures.push(Figure {
                    number: grouped(count as u64),
                    of: of.map(|of| grouped(of as u64)),
                    words: if of.unwrap_or(count) == 1 { one } else { many },
                    note,
                });
            }
        };
        let confirmed = self.with_status(HypothesisStatus::Confirmed).len();
        let rejected = self.with_status(HypothesisStatus::Rejected).len();
        let note = counts([(confirmed, "confirmed"), (rejected, "rejected")]);
        add(model.hypotheses.len(), None, "hypothesis", "hypotheses", note);
        let moves: usize = model.hypotheses.iter().map(moves).sum();
        let note =
            (moves > 0).then(|| counted(moves, "change of confidence", "changes of confidence"));
        add(model.evidence_count, None, "piece of evidence", "pieces of evidence", note);
        let prompts = model.prompts().count();
        let active = model.ruler.as_ref().map(|ruler| describe_distance(ruler.active_micros()));
        add(prompts, None, "prompt", "prompts", active.map(|active| format!("{active} active")));
        let runs = model.runs().count();
        let passed = model.runs().filter(|run| run.is_pass()).count();
        let failed = model.runs().filter(|run| run.is_failure()).count();
        let unknown = runs - passed - failed;
        let note = counts([(failed, "failed"), (unknown, "without a known result")]);
        add(passed, Some(runs), "check run passed", "check runs passed", note);
        let note = model
            .changed_lines()
            .map(|(added, removed)| format!("+{} −{} lines", grouped(added), grouped(removed)));
        add(model.files.len(), None, "file changed", "files changed", note);
        add(model.outcome.commits.len(), None, "commit", "commits", None);
        let lost = model.compactions.iter().filter_map(|one| one.note.lost.as_ref());
        let lost: usize = lost.map(Vec::len).sum();
        let note = (lost > 0).then(|| format!("{} left out", counted(lost, "thing", "things")));
        add(model.compactions.len(), None, "compaction", "compactions", note);
        add(model.agents.len(), None, "sub-agent", "sub-agents", None);
        figures
    }
}

/// Returns how often the confidence in a hypothesis changed after the hypothesis was stated.
fn moves(hypothesis: &HypothesisRow) -> usize {
    hypothesis
        .steps
        .iter()
        .filter(|step| step.before.is_some() && step.before != step.confidence)
        .count()
}

/// Returns a text in which a line may break inside long names.
fn breakable(text: &str) -> Markup {
    let parts = text.split_inclusive(['_', ':', '/', '.']);
    html! { @for part in parts { (part) wbr; } }
}

/// Returns the counts that are not 0, each with its words; `None` if all are 0.
fn counts(parts: [(usize, &str); 2]) -> Option<String> {
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = parts.map(|(count, words)| format!("{count} {words}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}
