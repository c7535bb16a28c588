//! A session in five lines, for a reader who has not seen it.

use super::item::{StoryItem, StoryKind};
use super::line::short_number;
use super::{Story, closing_question};
use crate::model::claim::HypothesisStatus;
use crate::store::BriefLine;
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
    /// committed. `gaps` are the open gaps. What is not recorded is said to be not recorded.
    #[must_use]
    pub fn digest(&self, gaps: &[BriefLine]) -> Vec<DigestLine> {
        let mut lines = Vec::new();
        let mut add = |label, text| lines.push(DigestLine { label, text });
        let prompts: Vec<&StoryItem> =
            self.turns.iter().filter_map(|turn| turn.prompt.as_ref()).collect();
        let prompts: Vec<&StoryItem> =
            prompts.into_iter().filter(|prompt| !prompt.is_client_command).collect();
        let title = self.findings.title.as_deref();
        let first = prompts.first().map(|prompt| prompt.text.as_str());
        add("Asked", title.or(first).unwrap_or("no prompt is recorded").to_owned());
        if let Some(last) = prompts.last().filter(|last| prompts.len() > 1 && !last.text.is_empty())
        {
            add("Asked last", last.text.clone());
        }
        add("Came out", self.result());
        add("Ruled out", self.ruled_out());
        add("Open", self.open(gaps));
        lines
    }

    /// Returns the confirmed hypotheses, the commits and the checks that fail.
    fn result(&self) -> String {
        let findings = &self.findings;
        let mut parts = Vec::new();
        for idea in
            self.ideas.iter().filter(|idea| status(idea) == Some(HypothesisStatus::Confirmed))
        {
            let confidence = idea.steps.iter().rev().find_map(|step| step.confidence);
            let confidence = confidence.map(|it| format!(" {}", short_number(it)));
            let confidence = confidence.unwrap_or_default();
            parts.push(format!("{} confirmed{confidence}: {}", idea.id, idea.description));
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

    fn ruled_out(&self) -> String {
        let rejected =
            self.ideas.iter().filter(|idea| status(idea) == Some(HypothesisStatus::Rejected));
        let named = |idea: &super::IdeaPath| {
            let reason = idea.steps.iter().rev().find_map(|step| step.reason.as_deref());
            format!("{} {}", idea.id, reason.unwrap_or(&idea.description))
        };
        let parts: Vec<String> = rejected.map(named).collect();
        match parts.len() {
            0 => "nothing is recorded".to_owned(),
            1 => parts.join(""),
            count => format!("{count} ideas: {}", parts.join("; ")),
        }
    }

    /// Returns the open gaps, the question that waits for an answer, and the uncommitted files.
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
        if parts.is_empty() { "nothing that is recorded".to_owned() } else { parts.join("; ") }
    }
}

/// Returns the last status of a hypothesis.
fn status(idea: &super::IdeaPath) -> Option<HypothesisStatus> {
    idea.steps.iter().rev().find_map(|step| step.status)
}
