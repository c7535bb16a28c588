//! The runs of each check over time.

use super::{ChartFrame, TOP};
use crate::model::CheckPart;
use maud::{Markup, html};

/// The height of the lane of a check, in pixels.
const LANE: u32 = 40;

/// Returns the chart of these checks, each in a lane.
pub(crate) fn check_chart(frame: &ChartFrame<'_>, checks: &[&CheckPart]) -> Markup {
    let height = TOP + 4 + LANE * u32::try_from(checks.len()).unwrap_or(0) + 2;
    html! {
        div class="plot" {
            span {}
            div class="over" {
            ul class="checknames" aria-hidden="true" {
                @for check in checks { li { code { (check.name) } } }
            }
            svg class="chart" width="100%" height=(height) role="group"
                aria-label="Runs of each check over time; the table below has the same in words" {
                (frame.ground(height, false))
                @for (row, check) in (0_u32..).zip(checks) {
                    @let middle = TOP + 4 + LANE * row + LANE * 3 / 4;
                    line class="lane" x1="0" x2="100%" y1=(middle) y2=(middle) {}
                    @for run in check.runs.iter().filter(|run| !run.is_failure()) {
                        @let words = format!("{} {}", check.name.short(80).as_str(), if run.is_pass() { "passed" } else { "without a result" });
                        (frame.mark(run.at, run.anchor, &words, &html! {
                            circle class=(if run.is_pass() { "passdot" } else { "unknowndot" }) cx=(frame.place(run.at)) cy=(middle) r="4" {}
                        }))
                    }
                    @for run in check.runs.iter().filter(|run| run.is_failure()) {
                        (frame.mark(run.at, run.anchor, &format!("{} failed", check.name.short(80).as_str()), &html! {
                            text class="sign bad" x=(frame.place(run.at)) y=(middle + 5) { "✗" }
                        }))
                    }
                }
                (frame.cover(height))
            }
            }
            ul class="counts checks" aria-hidden="true" {
                @for check in checks {
                    @let passed = check.runs.iter().filter(|run| run.is_pass()).count();
                    li {
                        @match check.runs.last() {
                            Some(run) if run.is_failure() => { b class="bad" { "✗" } },
                            Some(run) if run.is_pass() => { b class="good" { "✓" } },
                            _ => { b { "?" } },
                        }
                        " " (passed) "/" (check.runs.len())
                    }
                }
            }
        }
    }
}
