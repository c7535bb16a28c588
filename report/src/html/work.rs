//! The sections about the checks and the edited files.

use super::{Page, counted, grouped};
use crate::chart::{ChartFrame, check_chart, percent};
use crate::model::{CheckPart, EditPart, FilePart};
use forge_store::model::claim::VocabularyWord;
use forge_store::story::{PatchLineKind, patch_lines};
use maud::{Markup, html};
use std::cmp::Reverse;

/// The maximum number of checks in the chart.
const MAX_CHECKS: usize = 12;
/// The maximum length of a shown line of a patch, in characters.
const PATCH_LINE_CHARS: usize = 240;

impl Page<'_> {
    /// Returns the chart and the table of the checks; `None` if there are no checks.
    pub(super) fn checks(&self, frame: Option<&ChartFrame<'_>>) -> Option<Markup> {
        let checks = &self.model.checks;
        if checks.is_empty() {
            return None;
        }
        let failures = |check: &CheckPart| check.runs.iter().filter(|run| run.is_failure()).count();
        let last = |check: &CheckPart| check.runs.last().map(|run| run.at).unwrap_or_default();
        // The chart shows the checks that ever failed before others, then those with the most runs,
        // then those that ran last. Chart and table are in the order of the first runs.
        let weight = |check: &CheckPart| (failures(check) > 0, check.runs.len(), last(check));
        let mut shown: Vec<(usize, &CheckPart)> = checks.iter().enumerate().collect();
        shown.sort_by_key(|(_, check)| Reverse(weight(check)));
        shown.truncate(MAX_CHECKS);
        shown.sort_by_key(|(place, _)| *place);
        let shown: Vec<&CheckPart> = shown.into_iter().map(|(_, check)| check).collect();
        Some(html! {
            @if let Some(frame) = frame { (check_chart(frame, &shown)) }
            details {
                summary { "All checks in words " span class="count" { (checks.len()) } }
                div class="wide" tabindex="0" role="group" aria-label="Table of checks" {
                    table {
                        thead { tr { th scope="col" { "Check" } th scope="col" { "Runs" } th scope="col" { "Failed" } th scope="col" { "Last result" } } }
                        tbody { @for check in checks.iter().take(super::MAX_ROWS) { (self.check_row(check, failures(check))) } }
                    }
                    (super::more(checks.len(), super::MAX_ROWS, "checks"))
                }
            }
        })
    }

    fn check_row(&self, check: &CheckPart, failed: usize) -> Markup {
        html! {
            tr {
                td { code { (check.name.short(160)) } }
                td class="num" { (check.runs.len()) }
                td class="num" { (failed) }
                td {
                    @if let Some(run) = check.runs.last() {
                        span class=(if run.is_failure() { "bad" } else if run.is_pass() { "good" } else { "soft" }) {
                            (if run.is_failure() { "✗ " } else if run.is_pass() { "✓ " } else { "? " })
                            (run.status.word().replace('_', " "))
                        }
                        span class="soft" { " " (self.model.zone.day_and_clock(run.at)) }
                        @if let Some(description) = &run.description { span class="block soft" { (description.short(200).inline()) } }
                    }
                }
            }
        }
    }

    /// Returns the list of the edited files, with their patches; `None` if there are no such files.
    pub(super) fn files(&self) -> Option<Markup> {
        let files = &self.model.files;
        if files.is_empty() {
            return None;
        }
        let size = |file: &FilePart| file.lines().map_or(0, |(added, removed)| added + removed);
        let most = files.iter().map(size).max().unwrap_or(1).max(1);
        Some(html! {
            ul class="files" {
                @for (index, file) in files.iter().enumerate().take(super::MAX_FILES) {
                    li id=(format!("file-{}", index + 1)) {
                        details {
                            summary {
                                @let (folder, name) = file.path.as_str().rsplit_once('/').unwrap_or(("", file.path.as_str()));
                                span class="path" {
                                    @if !folder.is_empty() { span class="soft" { (folder) "/" } wbr; }
                                    b { (name) }
                                }
                                (churn(file, most))
                            }
                            @for edit in &file.edits { (self.edit(edit)) }
                        }
                    }
                }
            }
            (super::more(files.len(), super::MAX_FILES, "files"))
        })
    }

    fn edit(&self, edit: &EditPart) -> Markup {
        let most = self.detail.patch_lines;
        html! {
            p class="meta" {
                (self.linked(edit.anchor, &self.model.zone.day_and_clock(edit.at)))
                @if let Some((added, removed)) = edit.lines { " · +" (added) " −" (removed) }
            }
            @match &edit.patch {
                Some(patch) if most > 0 => {
                    @let lines: Vec<(PatchLineKind, &str)> = patch_lines(patch.as_str()).filter(|(kind, _)| *kind != PatchLineKind::Header).collect();
                    div class="patch" {
                        @for (kind, line) in lines.iter().take(most) { (patch_line(*kind, line)) }
                    }
                    @if lines.len() > most { p class="soft small" { (counted(lines.len() - most, "more line", "more lines")) } }
                }
                Some(_) => { p class="soft small" { "The patch is left out." } }
                None if self.model.shared => { p class="soft small" { "Patches are left out of a shared report." } }
                None => { p class="soft small" { "The record has no patch of this edit." } }
            }
        }
    }
}

pub(super) fn patch_line(kind: PatchLineKind, line: &str) -> Markup {
    let class = match kind {
        PatchLineKind::Added => "added",
        PatchLineKind::Removed => "removed",
        PatchLineKind::Hunk => "place",
        PatchLineKind::Header | PatchLineKind::Context => "same",
    };
    let end = line.char_indices().nth(PATCH_LINE_CHARS).map_or(line.len(), |(end, _)| end);
    html! { code class=(class) { (&line[..end]) @if end < line.len() { "…" } "\n" } }
}

/// Returns the numbers of changed lines and edits of a file, with a bar for up to `most` lines.
fn churn(file: &FilePart, most: u64) -> Markup {
    let lines = file.lines();
    html! {
        span class="churn" {
            @if let Some((added, removed)) = lines {
                @let (plus, minus) = (share(added, most), share(removed, most));
                svg class="bar" width="80" height="8" aria-hidden="true" {
                    rect class="good" width=(percent(plus)) height="6" y="1" {}
                    rect class="bad" x=(percent(plus)) width=(percent(minus)) height="6" y="1" {}
                }
                span class="num good" { "+" (grouped(added)) }
                span class="num bad" { "−" (grouped(removed)) }
            } @else { span {} span {} span {} }
            span class="soft small" { (counted(file.edits.len(), "edit", "edits")) }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the length of a bar")]
/// Returns the share of `most` that a bar shows. If it is not 0, it is at least 1 %, to be visible.
fn share(part: u64, most: u64) -> f64 {
    if part == 0 { 0.0 } else { (part as f64 / most as f64).max(0.01) }
}
