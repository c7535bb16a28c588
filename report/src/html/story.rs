//! The section with the story, turn by turn.

use super::served::path_part;
use super::{Page, counted, file_link, line_link};
use crate::chart::hue;
use crate::message_html::message_html;
use crate::model::{AgentWorkPart, FoldedLine, FoldedPart, LinePart, RowPart};
use crate::page_text::PageText;
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::describe_distance;
use forge_store::story::{StoryKind, StoryMark, long_pause};
use maud::{Markup, html};

/// The filters of the story, with their labels.
const FILTERS: [(&str, &str); 6] = [
    ("prompts", "Prompts"),
    ("claims", "Claims"),
    ("checks", "Checks"),
    ("edits", "Edits"),
    ("commits", "Commits"),
    ("agent", "Agent"),
];

/// What the line before showed: its day and time are not repeated.
struct LineState {
    day: String,
    clock: String,
    last: Option<Timestamp>,
}

impl Page<'_> {
    pub(super) fn story(&self) -> Option<Markup> {
        let model = self.model;
        if model.turns.is_empty() {
            return None;
        }
        let mut state = LineState { day: String::new(), clock: String::new(), last: None };
        let first = self.first_line;
        let is_shown = |line: &LinePart| line.anchor >= first;
        Some(html! {
            @if first > 0 { p class="soft" { (counted(first, "earlier line is", "earlier lines are")) " not on this page." } }
            fieldset class="filters" {
                legend class="unseen" { "What the story shows" }
                @for (name, words) in FILTERS {
                    label { input type="checkbox" id=(format!("show-{name}")) checked; (words) }
                }
                span class="keys" data-script hidden { kbd { "j" } " " kbd { "k" } " next and previous prompt" }
            }
            @for turn in model.turns.iter().filter(|turn| first == 0 || turn.last_anchor() >= Some(first)) {
                div class="turn" {
                    @if let Some(prompt) = turn.prompt.as_ref().filter(|line| is_shown(line)) {
                        (self.separator(&mut state, prompt.at))
                        (self.prompt(&mut state, prompt))
                    }
                    ul class="lines" {
                        @for row in &turn.rows {
                            @match row {
                                RowPart::Line(line) if is_shown(line) => { (self.separated(&mut state, line)) }
                                RowPart::Line(_) => {}
                                RowPart::Folded(folded) => { (self.folded(folded)) }
                            }
                        }
                    }
                }
            }
        })
    }

    /// Returns a separator if a new day begins or a long pause has ended.
    fn separator(&self, state: &mut LineState, at: Timestamp) -> Markup {
        let text = self.separator_text(state, at);
        html! { @if let Some(text) = text { p class="day" { (text) } } }
    }

    fn separator_text(&self, state: &mut LineState, at: Timestamp) -> Option<String> {
        let zone = self.model.zone;
        let day = zone.day(at);
        let pause = state.last.and_then(|last| long_pause(last, at));
        state.last = Some(at);
        let is_new = day != state.day;
        if !is_new && pause.is_none() {
            return None;
        }
        state.clock.clear();
        state.day.clone_from(&day);
        let pause = pause.map(|micros| format!(" · after {}", describe_distance(micros)));
        Some(format!("{day} {}{}", zone.clock(at), pause.unwrap_or_default()))
    }

    fn clock(&self, state: &mut LineState, at: Timestamp) -> Markup {
        let clock = self.model.zone.clock(at);
        let shown = if clock == state.clock { "" } else { clock.as_str() };
        let markup = html! { time datetime=(self.model.zone.machine(at)) { (shown) } };
        state.clock = clock;
        markup
    }

    fn prompt(&self, state: &mut LineState, line: &LinePart) -> Markup {
        html! {
            div class="you" id=(line_link(line.anchor).trim_start_matches('#')) data-prompt tabindex="-1" {
                (self.clock(state, line.at))
                div {
                    span class="who" { "You" }
                    @if let Some(question) = &line.detail { p class="soft small" { "to: " (question.inline()) } }
                    p class="said" { (line.whole_text().beginning(self.detail.message_chars)) }
                }
            }
        }
    }

    fn separated(&self, state: &mut LineState, line: &LinePart) -> Markup {
        let text = self.separator_text(state, line.at);
        html! {
            @if let Some(text) = text { li class="day" { (text) } }
            (self.line(state, line))
        }
    }

    fn line(&self, state: &mut LineState, line: &LinePart) -> Markup {
        let (sign, class) = sign(line);
        html! {
            li class=(format!("line {}", filter_of(line.kind))) id=(line_link(line.anchor).trim_start_matches('#')) tabindex="-1" {
                (self.clock(state, line.at))
                span class={ "mark " (class) } aria-hidden="true" { (sign) }
                div {
                    @if let Some(branch) = &line.on_branch { span class="onbranch" { "on " code { (branch) } } }
                    @match self.folded_part(line) {
                        Some(part) => { details { summary { (self.words(line, class)) } (part) } }
                        None => { (self.words(line, class)) }
                    }
                }
            }
        }
    }

    /// Returns a link to the page about an entity, if the report is served.
    fn whole_link(&self, about: Option<&PageText>) -> Markup {
        let served = self.options.served.as_ref().zip(about);
        html! {
            @if let Some((served, about)) = served {
                " " a class="small" href=(format!("{}/e/{}", served.path, path_part(about.as_str()))) aria-label=(format!("full text of {}", about.as_str())) { "full text" }
            }
        }
    }

    /// Returns what a line folds, if anything: a whole message, the output of a check, or the work
    /// of a sub-agent.
    fn folded_part(&self, line: &LinePart) -> Option<Markup> {
        if let Some(work) = line.agent_work.as_ref().filter(|_| self.detail.agent_work) {
            return Some(self.agent_work(work));
        }
        let (whole, chars) = (line.whole.as_ref()?, self.detail.message_chars);
        match line.kind {
            StoryKind::Message => {
                Some(html! { div class="quote" { (message_html(&whole.beginning(chars))) } })
            }
            StoryKind::Check if self.detail.outputs => Some(html! { pre { (whole.ends(chars)) } }),
            _ => None,
        }
    }

    /// Returns the text of a line and its detail.
    fn words(&self, line: &LinePart, class: &str) -> Markup {
        let text = line.text.as_str();
        let number = line.hypothesis;
        let hypothesis =
            number.and_then(|number| Some((number, self.model.hypotheses.get(number)?)));
        let of_hypothesis = hypothesis.and_then(|(number, hypothesis)| {
            Some((number, hypothesis, text.strip_prefix(hypothesis.id.as_str())?))
        });
        html! {
            @match (of_hypothesis, line.kind) {
                (Some((number, hypothesis, rest)), _) => {
                    a class={ "hypothesis-id " (hue(number)) } href=(super::hypothesis_link(number)) { (hypothesis.id) }
                    b class=(class) { (rest) }
                }
                (_, StoryKind::Message) => { span class="saying" { span class="who" { "Agent" } " " (line.text.inline()) } }
                (_, StoryKind::Edit) => { (self.edits(line)) }
                (_, StoryKind::Answer) => { span class="who" { "You" } " " (line.text.inline()) }
                (_, kind) if is_claim(kind) => {
                    @let (id, rest) = text.split_once(' ').unwrap_or((text, ""));
                    span class="claimid" { (id) } " " b class=(class) { (rest) }
                }
                _ => { b class=(class) { (line.text.inline()) } }
            }
            @if let Some(detail) = &line.detail { " " span class="detail" { (detail.inline()) } }
            (self.whole_link(line.about.as_ref()))
            @if line.kind == StoryKind::Compaction && !self.model.compactions.is_empty() { " " a href="#lost" { "what it lost" } }
        }
    }

    /// Returns the edited files, each with a link to its patches.
    fn edits(&self, line: &LinePart) -> Markup {
        let parts: Vec<&str> = line.text.as_str().split(", ").collect();
        let files = line.files.iter().filter_map(|place| {
            let path = self.model.files.get(*place)?.path.as_str();
            Some((place, path.rsplit('/').next().unwrap_or(path)))
        });
        let files: Vec<_> = files.take(parts.len()).collect();
        let is_named = files.iter().zip(&parts).all(|((_, name), part)| part.starts_with(name));
        html! {
            b { "Edited " }
            @if is_named && !files.is_empty() {
                @for (number, part) in parts.iter().enumerate() {
                    @if number > 0 { ", " }
                    @match files.get(number) {
                        Some((place, name)) => {
                            a href=(file_link(**place)) { (name) }
                            (lines_changed(part.get(name.len()..).unwrap_or_default()))
                        }
                        None => { (part) }
                    }
                }
            } @else { (line.text.inline()) }
        }
    }

    fn folded(&self, folded: &FoldedPart) -> Markup {
        html! {
            li class="more" {
                @if self.detail.folded && !folded.lines.is_empty() {
                    details { summary { (folded.summary) } (self.folded_lines(&folded.lines)) }
                } @else {
                    p class="soft" { (folded.summary) }
                }
            }
        }
    }

    fn folded_lines(&self, lines: &[FoldedLine]) -> Markup {
        html! {
            ul class="folded" {
                @for line in lines {
                    li {
                        time { (self.model.zone.clock(line.at)) } " "
                        span class=(if line.mark == StoryMark::Bad { "bad" } else { "" }) {
                            @match line.text.as_str().strip_prefix("$ ") {
                                Some(command) => { code { (command) } }
                                None => { (line.text.inline()) }
                            }
                        }
                        (self.whole_link(line.about.as_ref()))
                        @if line.times > 1 { span class="soft" { " ×" (line.times) } }
                        @if let Some(output) = line.output.as_ref().filter(|_| self.detail.outputs) { span class="output" { (output) } }
                    }
                }
            }
        }
    }

    fn agent_work(&self, work: &AgentWorkPart) -> Markup {
        html! {
            (self.folded_lines(&work.steps))
            @if let Some(result) = &work.result {
                p class="soft small" { "Its report:" }
                div class="quote" { (message_html(&result.beginning(self.detail.message_chars))) }
            }
        }
    }
}

/// Returns the numbers of added and removed lines in their colours.
fn lines_changed(text: &str) -> Markup {
    html! {
        @for word in text.split(' ').filter(|word| !word.is_empty()) {
            " "
            span class=(if word.starts_with('+') { "num good" } else { "num bad" }) { (word) }
        }
    }
}

const fn is_claim(kind: StoryKind) -> bool {
    matches!(
        kind,
        StoryKind::Hypothesis
            | StoryKind::Evidence
            | StoryKind::Belief
            | StoryKind::Gap
            | StoryKind::Note
            | StoryKind::Claim
    )
}

/// Returns the CSS class for the filter that a line belongs to.
const fn filter_of(kind: StoryKind) -> &'static str {
    match kind {
        StoryKind::Prompt | StoryKind::Answer => "of-prompts",
        StoryKind::Check => "of-checks",
        StoryKind::Edit | StoryKind::Code => "of-edits",
        StoryKind::Commit | StoryKind::Push | StoryKind::PullRequest => "of-commits",
        StoryKind::Message | StoryKind::Agent => "of-agent",
        _ if is_claim(kind) => "of-claims",
        _ => "of-all",
    }
}

/// Returns the sign of a line, and the CSS class of its colour.
const fn sign(line: &LinePart) -> (&'static str, &'static str) {
    let of_mark = match line.mark {
        StoryMark::Good => Some(("✓", "good")),
        StoryMark::Bad => Some(("✗", "bad")),
        StoryMark::Up => Some(("▲", "good")),
        StoryMark::Down => Some(("▼", "bad")),
        StoryMark::Open => Some(("?", "warn")),
        StoryMark::New | StoryMark::Plain => None,
    };
    match line.kind {
        StoryKind::Edit | StoryKind::Code => ("±", "edited"),
        StoryKind::Commit => ("◆", "accent"),
        StoryKind::Push | StoryKind::PullRequest => ("↑", "accent"),
        StoryKind::Compaction => ("┄", "accent"),
        StoryKind::Agent => ("⚙", "soft"),
        StoryKind::Message => ("⤷", "soft"),
        StoryKind::Checkpoint => ("★", "accent"),
        StoryKind::Branch => ("⌥", "soft"),
        StoryKind::Restore => ("↶", "accent"),
        StoryKind::Measurement => ("#", "soft"),
        StoryKind::Note => ("✎", "soft"),
        _ => match of_mark {
            Some(sign) => sign,
            None if matches!(line.mark, StoryMark::New) => ("+", "plain"),
            None => ("·", "plain"),
        },
    }
}
