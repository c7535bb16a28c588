//! The charts of a page as SVG. All charts have the same ruler. Places on the ruler are in per cent
//! of the width, so that texts keep their size at any width.

mod checks;
mod confidence;
mod ticks;
mod timeline;

pub(crate) use checks::check_chart;
pub(crate) use confidence::{bar_place, confidence_chart};
pub(crate) use timeline::timeline_chart;

use crate::model::ReportModel;
use crate::page_clock::PageZone;
use crate::words::line_link;
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::describe_distance;
use forge_store::story::TimeRuler;
use maud::{Markup, html};

/// The height of the space above the lanes, for the times, in pixels.
const TOP: u32 = 20;

/// The parts that all charts have.
pub(crate) struct ChartFrame<'m> {
    model: &'m ReportModel,
    ruler: &'m TimeRuler,
    /// The model at the moment of the page. Anything after this moment is drawn as later.
    held: &'m ReportModel,
    /// Whether marks lead to lines of the story.
    links: bool,
    /// The first line of the story that is on the page.
    first_line: usize,
}

impl<'m> ChartFrame<'m> {
    /// Creates the frame of a model; `None` if the model has no ruler because nothing happened.
    pub(crate) fn of(model: &'m ReportModel) -> Option<Self> {
        Some(Self { model, ruler: model.ruler.as_ref()?, held: model, links: true, first_line: 0 })
    }

    /// Draws anything after the moment of `held` as later. If `held` is as of a moment, marks have
    /// no links.
    pub(crate) const fn until(self, held: &'m ReportModel) -> Self {
        Self { held, links: self.links && held.as_of.is_none(), ..self }
    }

    /// Sets the first line of the story that is on the page. A mark of an earlier line leads to the
    /// beginning of the story. On a page without the story, marks have no links.
    pub(crate) const fn with_lines(self, first_line: usize, has_story: bool) -> Self {
        Self { first_line, links: self.links && has_story, ..self }
    }

    /// Returns the moment of the page, if the charts also show what is later.
    fn now(&self) -> Option<Timestamp> {
        self.held.as_of.filter(|_| !std::ptr::eq(self.model, self.held))
    }

    /// Returns whether a moment is not before the beginning of the ruler.
    fn is_shown(&self, at: Timestamp) -> bool {
        at >= self.ruler.span().0
    }

    const fn zone(&self) -> PageZone {
        self.model.zone
    }

    fn place(&self, at: Timestamp) -> String {
        percent(self.ruler.place(at))
    }

    /// Returns the background of a chart: the times above it, and the shortened pauses.
    fn ground(&self, height: u32, with_lengths: bool) -> Markup {
        html! {
            @for pause in self.ruler.pauses() {
                @let length = describe_distance(pause.micros);
                rect class="pause" x=(percent(pause.start)) y=(TOP) width=(percent(pause.width)) height=(height - TOP) {
                    title { (length) " without activity" }
                }
                @if with_lengths {
                    text class="pausetext" x=(percent(pause.start + pause.width / 2.0)) y=(TOP + 4) { (short_length(&length)) }
                }
            }
            @for tick in ticks::ticks(self.ruler, self.zone()) {
                text class=(if tick.fits_narrow { "tick" } else { "tick wideonly" }) x=(percent(tick.place)) y="11" { (tick.label) }
            }
        }
    }

    /// Returns the lines of compactions, and the rectangle that covers the part that is later.
    fn cover(&self, height: u32) -> Markup {
        html! {
            @for one in self.model.compactions.iter().map(|one| &one.note).filter(|one| self.is_shown(one.at)) {
                g {
                    title { (self.zone().day_and_clock(one.at)) " context compacted" }
                    line class="compacted" x1=(self.place(one.at)) x2=(self.place(one.at)) y1=(TOP - 2) y2=(height) {}
                }
            }
            @if let Some(now) = self.now() {
                @let place = self.ruler.place(now);
                rect class="later" x=(percent(place)) y=(TOP - 2) width=(percent(1.0 - place)) height=(height - TOP + 2) {
                    title { "later" }
                }
            }
        }
    }

    /// Returns a mark with a label, and with a link if it belongs to a line of the story.
    fn mark(&self, at: Timestamp, anchor: Option<usize>, words: &str, inner: &Markup) -> Markup {
        if !self.is_shown(at) {
            return Markup::default();
        }
        let label = format!("{} {words}", self.zone().clock(at));
        match anchor.filter(|_| self.links) {
            // The tab key skips the marks: it reaches the same lines in the story.
            Some(anchor) => html! {
                a href=(if anchor < self.first_line { "#story".to_owned() } else { line_link(anchor) }) tabindex="-1" aria-label=(label) { title { (label) } (inner) }
            },
            None => html! { g { title { (label) } (inner) } },
        }
    }
}

/// Returns a place from 0 to 1 as a CSS length in per cent.
pub(crate) fn percent(place: f64) -> String {
    format!("{:.2}%", place * 100.0)
}

/// Returns the first number and unit of a length, without a space: `18h`.
fn short_length(length: &str) -> String {
    let mut words = length.split(' ');
    let (number, unit) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    format!("{number}{}", unit.get(..1).unwrap_or_default())
}

/// Returns the CSS class for the colour of the hypothesis with this number.
pub(crate) const fn hue(place: usize) -> &'static str {
    ["hue1", "hue2", "hue3", "hue4", "hue5", "hue6", "hue7", "hue8"][place % 8]
}
