//! What follows from the whole story: its title, the commits, the results of the checks, the edited
//! files that no commit contains.

use super::StoryTurn;
use super::delivery::{Delivery, DeliveryKind};
use super::gist::one_line;
use super::item::{StoryItem, StoryKind};
use super::named_files::NamedFiles;
use crate::model::Timestamp;
use crate::store::LastCheckResult;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A prompt shorter than this says too little to be a title, in characters.
const TITLE_MIN_CHARS: usize = 16;
/// Maximum length of a title, in characters.
const TITLE_CHARS: usize = 120;

/// What follows from the whole story.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoryFindings {
    /// The title of the last pull request that was opened, else the beginning of the first prompt
    /// that is long enough and is not a slash command.
    pub title: Option<String>,
    /// The time of the first and of the last item.
    pub span: Option<(Timestamp, Timestamp)>,
    /// How many prompts there were.
    pub prompts: usize,
    /// How many items there are.
    pub items: usize,
    /// How many items are loud.
    pub loud: usize,
    /// The commits, oldest first.
    pub commits: Vec<DeliveredCommit>,
    /// The files with an edit that no recorded commit contains, the latest edit first.
    pub uncommitted: Vec<UncommittedFile>,
    /// The checks whose last result is a failure, oldest first.
    pub failing: Vec<LastCheckResult>,
    /// The checks whose last result is a pass, oldest first.
    pub passing: Vec<LastCheckResult>,
    /// How often an agent's context was compacted.
    pub compactions: usize,
}

/// A commit that a command made or a checkpoint recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeliveredCommit {
    /// When the command ended, or the time of the checkpoint.
    pub at: Timestamp,
    /// The subject of its message, if known.
    pub subject: Option<String>,
    /// Its hash, if known; it may be shortened.
    pub sha: Option<String>,
    /// The sub-agent that made it, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// A file with an edit that no recorded commit contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UncommittedFile {
    /// Its path, relative to the project if it is inside.
    pub path: String,
    /// How often it was edited after the last commit that contains it.
    pub edits: u64,
    /// When it was edited last.
    pub last: Timestamp,
}

/// Collects findings while the story is built.
#[derive(Debug, Default)]
pub(super) struct FindingsCollector {
    pull_request: Option<String>,
    first_task: Option<String>,
    commits: Vec<DeliveredCommit>,
    /// The edits that no commit contains, by path.
    edits: BTreeMap<String, UncommittedFile>,
    /// The paths of the edits that commands added to the next commit; `None` if no command shows
    /// what was added.
    staged: Option<BTreeSet<String>>,
    compactions: usize,
}

impl FindingsCollector {
    /// Adds a prompt. A command to the client, which begins with a slash, is no task.
    pub(super) fn add_prompt(&mut self, text: &str, is_slash: bool) {
        if self.first_task.is_none() && !is_slash && text.chars().count() >= TITLE_MIN_CHARS {
            self.first_task = Some(prompt_title(text));
        }
    }

    /// Adds an edit of the file with this shown path.
    pub(super) fn add_edit(&mut self, at: Timestamp, path: &str) {
        let new = UncommittedFile { path: path.to_owned(), edits: 0, last: at };
        let file = self.edits.entry(path.to_owned()).or_insert(new);
        file.edits += 1;
        file.last = file.last.max(at);
        if let Some(staged) = &mut self.staged {
            staged.remove(path);
        }
    }

    /// Forgets the edits of files that were discarded.
    pub(super) fn discard(&mut self, files: &NamedFiles) {
        self.edits.retain(|path, _| !files.contains(path));
    }

    /// Adds files to the next commit.
    pub(super) fn stage(&mut self, files: &NamedFiles) {
        let added = self.edits.keys().filter(|path| files.contains(path)).cloned();
        self.staged.get_or_insert_default().extend(added);
    }

    /// Forgets what was added to a commit, after the command that made it.
    pub(super) fn end_commit(&mut self) {
        self.staged = None;
    }

    pub(super) fn add_delivery(&mut self, at: Timestamp, agent: Option<&str>, made: &Delivery) {
        match made.kind {
            DeliveryKind::Commit => self.add_commit(DeliveredCommit {
                at,
                subject: made.title.clone(),
                sha: made.name.clone(),
                agent: agent.map(str::to_owned),
            }),
            DeliveryKind::PullRequestOpened | DeliveryKind::DraftOpened => {
                self.pull_request = made.title.clone().or(self.pull_request.take());
            }
            _ => {}
        }
    }

    /// Adds a commit. If no command shows what was added to it, it is taken to contain all edits.
    pub(super) fn add_commit(&mut self, commit: DeliveredCommit) {
        match &self.staged {
            Some(staged) => self.edits.retain(|path, _| !staged.contains(path)),
            None => self.edits.clear(),
        }
        self.commits.push(commit);
    }

    pub(super) fn add_compaction(&mut self) {
        self.compactions += 1;
    }

    /// Returns the findings of these turns.
    pub(super) fn finish(
        self,
        turns: &[StoryTurn],
        checks: crate::store::CheckResults,
    ) -> StoryFindings {
        let items = || turns.iter().flat_map(StoryTurn::all);
        let times = || items().map(|item| item.at);
        let is_prompt = |item: &&StoryItem| item.kind == StoryKind::Prompt;
        let mut uncommitted: Vec<UncommittedFile> = self.edits.into_values().collect();
        uncommitted.sort_by(|a, b| (b.last, &a.path).cmp(&(a.last, &b.path)));
        let title = self.pull_request.as_deref().map(pull_request_title).or(self.first_task);
        StoryFindings {
            title,
            span: times().min().zip(times().max()),
            prompts: items().filter(is_prompt).count(),
            items: items().count(),
            loud: items().filter(|item| item.loud).count(),
            commits: self.commits,
            uncommitted,
            failing: checks.failing,
            passing: checks.passed,
            compactions: self.compactions,
        }
    }
}

/// Returns the title of a pull request without the type of a conventional commit.
fn pull_request_title(title: &str) -> String {
    let plain = title.split_once(": ").filter(|(kind, rest)| {
        let name = kind.split('(').next().unwrap_or(kind).trim_end_matches('!');
        let is_word = |c: char| c.is_ascii_lowercase();
        !rest.is_empty() && (1..=10).contains(&name.len()) && name.chars().all(is_word)
    });
    let plain = plain.map_or(title, |(_, rest)| rest);
    one_line(&capitalised(plain), TITLE_CHARS)
}

/// Returns the first line of a prompt, with the next line if the first one ends with a colon. If
/// this is too long for a title, only its first sentence.
fn prompt_title(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let mut title = first.to_owned();
    if first.ends_with(':')
        && let Some(next) = lines.next()
    {
        title.push(' ');
        title.push_str(next.trim_start_matches(['-', '*', '•', ' ']));
    }
    if title.chars().count() > TITLE_CHARS
        && let Some(end) = title.find(". ").or_else(|| title.find("? "))
    {
        title.truncate(end + 1);
    }
    one_line(&title, TITLE_CHARS)
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000)
    }

    fn delivery(kind: DeliveryKind, title: &str) -> Delivery {
        Delivery { kind, title: Some(title.to_owned()), name: None }
    }

    #[test]
    fn the_title_of_a_story_is_that_of_the_pull_request_or_the_first_task() {
        let mut found = FindingsCollector::default();
        for (text, is_slash) in [
            ("/requesting-code-review please", true),
            ("yes", false),
            ("brainstorm:\n- summaries of checkpoints\n- more", false),
            ("another long prompt follows", false),
        ] {
            found.add_prompt(text, is_slash);
        }
        assert_eq!(found.first_task.as_deref(), Some("brainstorm: summaries of checkpoints"));
        found.add_delivery(at(1), None, &delivery(DeliveryKind::DraftOpened, "feat(cli): sum up"));
        let findings = found.finish(&[], crate::store::CheckResults::default());
        assert_eq!(findings.title.as_deref(), Some("Sum up"));
        assert_eq!(pull_request_title("Lease: keep it"), "Lease: keep it");
    }

    #[test]
    fn a_commit_contains_only_what_was_added_to_it() {
        let mut found = FindingsCollector::default();
        for path in ["a.rs", "src/b.rs", "c.rs"] {
            found.add_edit(at(1), path);
        }
        found.stage(&NamedFiles::At(vec!["a.rs".to_owned(), "src".to_owned()]));
        found.add_edit(at(2), "a.rs");
        found.add_delivery(at(3), None, &delivery(DeliveryKind::Commit, "one"));
        let left = |found: &FindingsCollector| found.edits.keys().cloned().collect::<Vec<_>>();
        assert_eq!(left(&found), ["a.rs", "c.rs"]);
        found.end_commit();
        found.add_delivery(at(4), None, &delivery(DeliveryKind::Commit, "two"));
        assert_eq!(left(&found), [""; 0]);
    }

    #[test]
    fn files_edited_after_the_last_commit_are_uncommitted() {
        let mut found = FindingsCollector::default();
        found.add_edit(at(1), "a.rs");
        found.add_delivery(at(2), Some("a1"), &delivery(DeliveryKind::Commit, "one"));
        for (second, path) in [(3, "b.rs"), (4, "c.rs"), (5, "b.rs")] {
            found.add_edit(at(second), path);
        }
        found.add_delivery(at(6), None, &delivery(DeliveryKind::Push, ""));
        let findings = found.finish(&[], crate::store::CheckResults::default());
        let files = findings.uncommitted.iter().map(|file| (file.path.as_str(), file.edits));
        assert_eq!(files.collect::<Vec<_>>(), [("b.rs", 2), ("c.rs", 1)]);
        assert_eq!(findings.commits.len(), 1);
        assert_eq!(findings.commits[0].agent.as_deref(), Some("a1"));
    }
}
