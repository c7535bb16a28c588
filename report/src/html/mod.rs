//! Writes the page as HTML, with one function for each section.

mod claims;
mod known_when;
mod overview;
pub mod served;
mod story;
mod work;

use crate::assets;
use crate::chart::{ChartFrame, confidence_chart, timeline_chart};
use crate::model::{HypothesisRow, ReportModel};
pub(crate) use crate::words::{
    MAX_FILES, MAX_HYPOTHESES, MAX_ROWS, counted, file_link, grouped, hypothesis_link, line_link,
    status_sign, status_words,
};
use forge_store::model::claim::HypothesisStatus;
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

/// The amount of raw material on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageDetail {
    /// The maximum number of lines of a patch.
    pub patch_lines: usize,
    /// Whether the beginnings of outputs are shown.
    pub outputs: bool,
    /// Whether the work of sub-agents is shown.
    pub agent_work: bool,
    /// The maximum number of characters of a message.
    pub message_chars: usize,
    /// Whether folded lines are listed, or only counted.
    pub folded: bool,
    /// The maximum number of lines of the story; the last ones are shown.
    pub story_lines: usize,
}

impl PageDetail {
    /// Everything.
    pub const FULL: Self = Self {
        patch_lines: 400,
        outputs: true,
        agent_work: true,
        message_chars: 12_000,
        folded: true,
        story_lines: 20_000,
    };

    const SHORT_PATCHES: Self = Self { patch_lines: 26, ..Self::FULL };
    const NO_OUTPUTS: Self = Self { outputs: false, ..Self::SHORT_PATCHES };
    const NO_AGENT_WORK: Self = Self { agent_work: false, ..Self::NO_OUTPUTS };
    const SHORT_MESSAGES: Self = Self { message_chars: 600, ..Self::NO_AGENT_WORK };
    const NO_FOLDS: Self = Self { folded: false, ..Self::SHORT_MESSAGES };
    const NO_PATCHES: Self = Self { patch_lines: 0, ..Self::NO_FOLDS };

    /// Steps with less and less detail, each with the words for what it leaves out.
    pub const STEPS: [(Self, &'static str); 8] = [
        (Self::SHORT_PATCHES, "patches after 26 lines"),
        (Self::NO_OUTPUTS, "outputs"),
        (Self::NO_AGENT_WORK, "the work of sub-agents"),
        (Self::SHORT_MESSAGES, "messages after 600 characters"),
        (Self::NO_FOLDS, "folded lines"),
        (Self::NO_PATCHES, "patches"),
        (
            Self { story_lines: 2_000, ..Self::NO_PATCHES },
            "all but the last 2,000 lines of the story",
        ),
        (Self { story_lines: 200, ..Self::NO_PATCHES }, "all but the last 200 lines of the story"),
    ];
}

/// How a page is written.
#[derive(Clone, Debug)]
pub struct HtmlOptions {
    /// Whether the page has a script. Without one, it lacks only its interactive parts.
    pub script: bool,
    /// Whether the story is left out, for print.
    pub brief: bool,
    /// The maximum size in bytes, if there is one. Raw material is left out to reach it, and the
    /// page is larger if that is not enough.
    pub max_bytes: Option<usize>,
    /// The data of the server, if one writes the page.
    pub served: Option<ServedPage>,
}

impl Default for HtmlOptions {
    fn default() -> Self {
        Self { script: true, brief: false, max_bytes: None, served: None }
    }
}

/// The data that a server adds to a page.
#[derive(Clone, Debug, Default)]
pub struct ServedPage {
    /// The path of the session on the server.
    pub path: String,
    /// The position of the store, which increases with every write.
    pub position: u64,
    /// Whether the page shows the end, so that it changes with the session.
    pub live: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenPage {
    /// The document.
    pub html: String,
    /// The words for what was left out to reach the maximum size.
    pub left_out: Vec<&'static str>,
}

/// Writes a page. `whole` is the model of the whole session, if the page is about an earlier
/// moment: the charts then also show what happened later.
#[must_use]
pub fn write_page(
    model: &ReportModel,
    whole: Option<&ReportModel>,
    options: &HtmlOptions,
) -> WrittenPage {
    write_fitting(model, whole, options).0
}

/// Writes a page, and returns also how much of the raw material is on it.
fn write_fitting(
    model: &ReportModel,
    whole: Option<&ReportModel>,
    options: &HtmlOptions,
) -> (WrittenPage, PageDetail) {
    let write = |detail, left_out: &[&'static str]| {
        let page =
            Page { model, whole, options, detail, left_out, first_line: first_line(model, detail) };
        page.document().into_string()
    };
    let mut last = PageDetail::FULL;
    let mut html = write(last, &[]);
    let mut left_out = Vec::new();
    for (detail, what) in PageDetail::STEPS {
        let size = html.len() + left_out_words(&left_out).into_string().len();
        if options.max_bytes.is_none_or(|most| size <= most) {
            break;
        }
        let smaller = write(detail, &[]);
        if smaller != html {
            left_out.push(what);
        }
        (last, html) = (detail, smaller);
    }
    if !left_out.is_empty() {
        html = write(last, &left_out);
    }
    (WrittenPage { html, left_out }, last)
}

/// Writes only the changing parts of a page, each with the id of its element. Each is the same as
/// on the page that [`write_page`] writes. The footer is not among them.
#[must_use]
pub fn write_parts(model: &ReportModel, options: &HtmlOptions) -> Vec<(&'static str, String)> {
    let detail = match options.max_bytes {
        Some(_) => write_fitting(model, None, options).1,
        None => PageDetail::FULL,
    };
    let first_line = first_line(model, detail);
    let page = Page { model, whole: None, options, detail, left_out: &[], first_line };
    let sections = page.sections();
    let head = ("top", page.header().into_string());
    let nav = ("contents", page.contents(&sections).into_string());
    let parts = sections.into_iter().map(|section| (section.id, section.markup.into_string()));
    [head, nav].into_iter().chain(parts).collect()
}

pub(crate) struct Page<'p> {
    pub(crate) model: &'p ReportModel,
    whole: Option<&'p ReportModel>,
    pub(crate) options: &'p HtmlOptions,
    pub(crate) detail: PageDetail,
    left_out: &'p [&'static str],
    /// The number of the first line of the story that is shown here.
    pub(crate) first_line: usize,
}

fn first_line(model: &ReportModel, detail: PageDetail) -> usize {
    let lines = model.turns.iter().map(|turn| turn.lines().count());
    (model.prompts().count() + lines.sum::<usize>()).saturating_sub(detail.story_lines)
}

pub(crate) struct Section {
    id: &'static str,
    title: &'static str,
    markup: Markup,
    /// Whether it is empty without the script.
    needs_script: bool,
}

impl Page<'_> {
    fn document(&self) -> Markup {
        let sections = self.sections();
        let policy = assets::policy(self.options.script, self.options.served.is_some());
        html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.model.title.as_str(), &policy, true))
                body data-path=[self.options.served.as_ref().map(|served| &served.path)]
                    data-position=[self.options.served.as_ref().map(|served| served.position)]
                    data-live=[self.options.served.as_ref().filter(|served| served.live).map(|_| "yes")] {
                    a class="skip" href="#main" { "Skip to the report" }
                    div class="page" {
                        nav aria-label="Sections" id="contents" { (self.contents(&sections)) }
                        main id="main" {
                            header id="top" { (self.header()) }
                            @for section in &sections {
                                section id=(section.id) aria-labelledby=(format!("{}-title", section.id))
                                    hidden[section.needs_script] data-script[section.needs_script] {
                                    (section.markup)
                                }
                            }
                            footer { (self.footer()) }
                        }
                    }
                    @if self.options.script { script { (PreEscaped(assets::SCRIPT)) } }
                }
            }
        }
    }

    /// Returns the links to the sections.
    fn contents(&self, sections: &[Section]) -> Markup {
        html! {
            p class="brand" {
                @if self.options.served.is_some() { a href="/" { (logo()) "forge" } }
                @else { (logo()) "forge report" }
            }
            ul {
                @for section in sections {
                    li hidden[section.needs_script] data-script[section.needs_script] { a href=(format!("#{}", section.id)) { (section.title) } }
                }
            }
        }
    }

    /// Returns the sections that are not empty, in the order of the page.
    fn sections(&self) -> Vec<Section> {
        let model = self.model;
        let mut sections = Vec::new();
        let mut add = |id, title, lead: &str, body: Option<Markup>| {
            if let Some(body) = body {
                sections.push(Section {
                    id,
                    title,
                    markup: section_markup(id, title, lead, &body),
                    needs_script: id == "moments",
                });
            }
        };
        let charted = self.whole.unwrap_or(model);
        let has_story = !self.options.brief;
        let frame = ChartFrame::of(charted)
            .map(|frame| frame.until(model).with_lines(self.first_line, has_story));
        add("timeline", "Timeline", "", frame.as_ref().map(timeline_chart));
        let chart = frame.as_ref().and_then(confidence_chart);
        let lead =
            "A line for each hypothesis. A dot is a change; the table has the cause of each.";
        add("confidence", "Confidence over time", lead, chart.map(|chart| self.confidence(&chart)));
        let lead = "What was known at each moment, without hindsight: drag, or use the arrow keys.";
        add("moments", "What was known when", lead, self.known_when());
        let title = if model.as_of.is_some() { "What was known" } else { "What is known" };
        add("known", title, "", self.known());
        add("rejected", "Rejected, and why", "", self.rejected());
        add("open", "Open questions", "", self.questions());
        add("lost", "What compaction lost", "", self.compactions());
        if has_story {
            let (all, shown) = model.item_counts;
            let lead = format!("{shown} of {all} events are shown; the others are folded.");
            add("story", "The story", &lead, self.story());
        }
        add("checks", "Checks", "", self.checks(frame.as_ref()));
        add("files", "Files changed", "", self.files());
        sections
    }

    /// Returns the hypotheses with a status, each with its number.
    fn with_status(&self, status: HypothesisStatus) -> Vec<(usize, &HypothesisRow)> {
        let all = self.model.hypotheses.iter().enumerate();
        all.filter(|(_, hypothesis)| hypothesis.status == Some(status)).collect()
    }

    /// Returns the link to a line of the story, if the page has the story. The link to an omitted
    /// line leads to the story.
    pub(crate) fn line_link(&self, anchor: Option<usize>) -> Option<String> {
        let anchor = anchor.filter(|_| !self.options.brief)?;
        Some(if anchor < self.first_line { "#story".to_owned() } else { line_link(anchor) })
    }

    /// Returns a text with the link to a line of the story, if there is one.
    pub(crate) fn linked(&self, anchor: Option<usize>, text: &impl Render) -> Markup {
        html! {
            @match self.line_link(anchor) {
                Some(link) => { a href=(link) { (text) } }
                None => { (text) }
            }
        }
    }

    fn footer(&self) -> Markup {
        let model = self.model;
        html! {
            p {
                "Times are in " (model.zone.name()) ". Written by forge from what was recorded"
                @if model.shared { "; outputs, patches, summaries and reports of sub-agents are left out" }
                "."
            }
            (left_out_words(self.left_out))
            @if self.options.served.is_some() && !self.options.script {
                p { a href="/" { "All sessions" } }
            }
        }
    }
}

/// Names what was left out to keep the page small.
fn left_out_words(left_out: &[&'static str]) -> Markup {
    html! {
        @if !left_out.is_empty() {
            p { "Left out to keep the page small: " (left_out.join(", ")) "." }
        }
    }
}

fn section_markup(id: &str, title: &str, lead: &str, body: &Markup) -> Markup {
    html! {
        h2 id=(format!("{id}-title")) { (title) }
        @if !lead.is_empty() { p class="lead" { (lead) } }
        (body)
    }
}

pub(crate) fn logo() -> Markup {
    html! {
        svg class="logo" width="20" height="14" aria-hidden="true" {
            polyline points="1,12 6,12 6,7 12,7 12,2 19,2" {}
            circle cx="6" cy="7" r="2.4" {}
            circle cx="12" cy="2.6" r="2.4" {}
        }
    }
}

/// Returns a table that scrolls by itself if it is wide.
pub(crate) fn table(label: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div class="wide" tabindex="0" role="group" aria-label=(label) {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Returns the head of a page, with the style sheet.
fn head(title: &str, policy: &str, is_report: bool) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="referrer" content="no-referrer";
            meta name="color-scheme" content="light dark";
            @if is_report { meta name="generator" content="forge report"; }
            title { (title) " – forge" }
            style { (PreEscaped(assets::STYLE)) }
        }
    }
}

/// Returns a sentence about the entries that a list leaves out.
pub(crate) fn more(all: usize, most: usize, what: &str) -> Markup {
    let more = all.saturating_sub(most);
    html! { @if more > 0 { p class="soft" { (grouped(more as u64)) " more " (what) " are not listed." } } }
}

/// Returns an old and a new confidence; the new one in the colour of an increase or decrease.
pub(crate) fn moved(before: Option<f64>, now: Option<f64>) -> Markup {
    html! {
        @match (before, now) {
            (Some(before), Some(now)) => {
                span class="num" { (format!("{before:.2}")) " → " b class=(if now >= before { "good" } else { "bad" }) { (format!("{now:.2}")) } }
            }
            (None, Some(now)) => { span class="num" { (format!("{now:.2}")) } }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_of_shortening_leaves_out_more() {
        let details: Vec<PageDetail> =
            PageDetail::STEPS.iter().map(|(detail, _)| *detail).collect();
        for (more, less) in [PageDetail::FULL].iter().chain(&details).zip(&details) {
            assert!(
                less.patch_lines <= more.patch_lines
                    && less.message_chars <= more.message_chars
                    && less.story_lines <= more.story_lines
            );
            assert_ne!(more, less);
        }
    }
}
