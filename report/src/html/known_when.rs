//! Builds the sliders of a page, and their data for the script: what was known at each moment, and
//! what changed between two moments.

use super::{Page, hypothesis_link, status_sign, status_words};
use crate::model::KnownMoment;
use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

/// The speeds of a replay that a reader can choose, in moments per second.
const SPEEDS: [u8; 4] = [1, 4, 15, 60];

impl Page<'_> {
    /// Returns the sliders; `None` for a page without a script, a brief page, a page of a past
    /// moment, or fewer than two moments. The story and the tables show the same without a script.
    pub(super) fn known_when(&self) -> Option<Markup> {
        let moments = &self.model.moments;
        let has_script = self.options.script && !self.options.brief;
        if !has_script || moments.len() < 2 || self.model.as_of.is_some() {
            return None;
        }
        let last = moments.len() - 1;
        Some(html! {
            div class="plot slider" {
                label for="slider" { "Moment" }
                input type="range" id="slider" min="0" max=(last) value=(last);
                span {}
            }
            div class="plot slider" id="from-row" hidden {
                label for="from" { "Since" }
                input type="range" id="from" min="0" max=(last) value="0";
                span {}
            }
            div class="player" id="player" role="group" aria-label="Replay and comparison" {
                button type="button" id="play" { "Play" }
                label { select id="speed" aria-label="Moments a second" {
                    @for speed in SPEEDS { option value=(speed) selected[speed == SPEEDS[1]] { (speed) } }
                } " a second" }
                label { input type="checkbox" id="stop"; "stop where a claim changes" }
                label { input type="checkbox" id="compare"; "compare with another moment" }
                span class="keys" {
                    kbd { "p" } " plays, " kbd { "," } " " kbd { "." } " moment before and after, " kbd { "c" } " compares"
                }
            }
            div id="changes" class="card" aria-live="polite" hidden {}
            div id="moment" class="card" aria-live="polite" {}
            @if self.model.moments_left_out > 0 {
                p class="soft small" { (self.model.moments_left_out) " moments without a change of a claim are not on the slider." }
            }
            script type="application/json" id="moment-data" { (PreEscaped(self.moment_data())) }
        })
    }

    fn moment_data(&self) -> String {
        let model = self.model;
        let hypotheses = model.hypotheses.iter().enumerate().map(|(place, hypothesis)| {
            json!([
                hypothesis.id.as_str(),
                hypothesis.text.short(160).as_str(),
                hypothesis_link(place)
            ])
        });
        let questions = model
            .question_texts
            .iter()
            .map(|(id, text)| json!([id.as_str(), text.short(160).as_str()]));
        let prompts = model.prompt_texts.iter().map(|text| json!(text.as_str()));
        let data = json!({
            "hypotheses": hypotheses.collect::<Vec<_>>(),
            "questions": questions.collect::<Vec<_>>(),
            "asked": prompts.collect::<Vec<_>>(),
            "moments": model.moments.iter().map(|moment| self.moment(moment)).collect::<Vec<_>>(),
        });
        // A `<` could begin a tag that ends the script element.
        data.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    }

    /// Returns the data of a moment. Names have one letter, because there are many moments.
    fn moment(&self, moment: &KnownMoment) -> Value {
        let model = self.model;
        let place = model.ruler.as_ref().map_or(0.0, |ruler| ruler.place(moment.at));
        let hypotheses = moment.hypotheses.iter().map(|(number, confidence, status)| {
            let (word, class) = status_words(*status);
            let gone = status.is_none();
            json!([
                number,
                confidence.map(|it| format!("{it:.2}")),
                if gone { "" } else { word },
                class,
                status_sign(*status)
            ])
        });
        let mut data = json!({
            "a": moment.anchor,
            "t": model.zone.day_and_clock(moment.at),
            "x": format!("{:.2}", place * 100.0),
            "l": moment.label.as_str(),
            "e": self.line_link(Some(moment.anchor)),
            "n": [moment.files, moment.commits],
        });
        if let Some(data) = data.as_object_mut() {
            let mut add = |name: &str, value: Value| data.insert(name.to_owned(), value);
            let hypotheses: Vec<Value> = hypotheses.collect();
            if !hypotheses.is_empty() {
                add("i", json!(hypotheses));
            }
            if !moment.gaps.is_empty() {
                add("g", json!(moment.gaps));
            }
            if let Some(failing) = &moment.failing {
                add("f", failing.iter().map(|name| name.short(90).as_str().to_owned()).collect());
            }
            if let Some(prompt) = moment.prompt {
                add("q", json!(prompt));
            }
            if let Some(served) = &self.options.served {
                add("u", json!(format!("{}/at/{}", served.path, moment.at)));
                add("d", json!(moment.at.to_string()));
            }
        }
        data
    }
}
