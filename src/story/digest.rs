//! A session in at most five lines, for a reader who has not seen it.

use super::item::StoryKind;
use super::{Story, closing_question};
use crate::error::Result;
use crate::model::claim::{Hypothesis, HypothesisStatus};
use crate::store::{BriefLine, StateAt};
use std::fmt::Write;

/// The most names in one line.
const NAMED: usize = 4;

/// One line of a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestLine {
    /// What the line answers: `Asked`, `Asked last`, `Came out`, `Ruled out` or `Open`.
    pub label: &'static str,
    /// The answer.
    pub text: String,
}

impl Story {
    /// Returns what was asked, what came out, what was ruled out and why, and what is open or not
    /// committed. Hypotheses and gaps are those in `state`, since they may differ between branches.
    /// If an answer is not recorded, the line says so.
    pub fn digest(&self, state: &StateAt) -> Result<Vec<DigestLine>> {
        let hypotheses = state.all::<Hypothesis>()?;
        let mut lines = Vec::new();
        let mut add = |label, text| lines.push(DigestLine { label, text });
        let prompts = self.turns.iter().filter_map(|turn| turn.prompt.as_ref());
        let prompts: Vec<_> = prompts.filter(|prompt| !prompt.is_client_command).collect();
        let title = self.findings.title.as_deref();
        let first = prompts.first().map(|prompt| prompt.text.as_str());
        add("Asked", title.or(first).unwrap_or("no prompt is recorded").to_owned());
        if let Some(last) = prompts.last().filter(|last| prompts.len() > 1 && !last.text.is_empty())
        {
            add("Asked last", last.text.clone());
        }
        add("Came out", self.result(&hypotheses));
        add("Ruled out", self.ruled_out(&hypotheses));
        add("Open", self.open(&state.open_gaps()?));
        Ok(lines)
    }

    /// Returns the confirmed hypotheses, the number of commits, and the last commit. Without any of
    /// them, returns the last message.
    fn result(&self, hypotheses: &[(String, Hypothesis)]) -> String {
        let findings = &self.findings;
        let mut parts = Vec::new();
        for (id, confirmed) in with_status(hypotheses, HypothesisStatus::Confirmed) {
            let confidence = confirmed.confidence;
            let confidence = confidence.map(|it| format!(" {:.2}", it.value()));
            let confidence = confidence.unwrap_or_default();
            parts.push(format!("{id} confirmed{confidence}: {}", description(confirmed)));
        }
        if let Some(last) = findings.commits.last() {
            let count = match findings.commits.len() {
                1 => "1 commit".to_owned(),
                count => format!("{count} commits, the last"),
            };
            parts.push(match &last.subject {
                Some(subject) => format!("{count}: {subject}"),
                None => count,
            });
        }
        if parts.is_empty() {
            let last = self.items().rfind(|item| item.kind == StoryKind::Message);
            return last.map_or_else(|| "nothing is recorded".to_owned(), |item| item.text.clone());
        }
        parts.join("; ")
    }

    fn ruled_out(&self, hypotheses: &[(String, Hypothesis)]) -> String {
        let named = |(id, rejected): &(String, Hypothesis)| {
            let path = self.hypotheses.iter().find(|path| path.id == *id);
            let reason = path.and_then(|path| {
                let last = path.steps.iter().rev().find(|step| step.status.is_some())?;
                let is_rejection = last.status == Some(HypothesisStatus::Rejected);
                last.reason.as_deref().filter(|_| is_rejection)
            });
            format!("{id} {}", reason.unwrap_or_else(|| description(rejected)))
        };
        let rejected = with_status(hypotheses, HypothesisStatus::Rejected);
        let parts: Vec<String> = rejected.map(named).collect();
        match parts.len() {
            0 => "nothing is recorded".to_owned(),
            1 => parts.join(""),
            count => format!("{count} hypotheses: {}", parts.join("; ")),
        }
    }

    /// Returns the open gaps, an unanswered question in the last message, and uncommitted files.
    fn open(&self, gaps: &[BriefLine]) -> String {
        let mut parts: Vec<String> =
            gaps.iter().take(NAMED).map(|gap| format!("{} {}", gap.id, gap.text)).collect();
        let more = gaps.len().saturating_sub(NAMED);
        if more > 0 {
            parts.push(format!("{more} more gaps"));
        }
        let last = self.items().rfind(|item| {
            matches!(item.kind, StoryKind::Message | StoryKind::Prompt | StoryKind::Answer)
        });
        let asking = last.filter(|item| item.kind == StoryKind::Message);
        parts.extend(asking.and_then(|item| closing_question(&item.text)));
        let files = &self.findings.uncommitted;
        if !files.is_empty() {
            let mut named = "not committed: ".to_owned();
            for (place, file) in files.iter().take(NAMED).enumerate() {
                let name = file.path.rsplit('/').next().unwrap_or(&file.path);
                let _ = write!(named, "{}{name}", if place > 0 { ", " } else { "" });
            }
            let more = files.len().saturating_sub(NAMED);
            if more > 0 {
                let _ = write!(named, " and {more} more");
            }
            parts.push(named);
        }
        if parts.is_empty() { "nothing is recorded".to_owned() } else { parts.join("; ") }
    }
}

/// Returns the hypotheses that have this status.
fn with_status(
    hypotheses: &[(String, Hypothesis)],
    status: HypothesisStatus,
) -> impl Iterator<Item = &(String, Hypothesis)> {
    hypotheses.iter().filter(move |(_, hypothesis)| hypothesis.status == Some(status))
}

fn description(hypothesis: &Hypothesis) -> &str {
    hypothesis.description.as_deref().unwrap_or_default()
}
