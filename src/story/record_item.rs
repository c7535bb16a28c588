//! The items for branches and commits, and the details of compactions.

use super::delivery::{Delivery, DeliveryKind};
use super::gist::{ITEM_CHARS, one_line};
use super::item::{StoryItem, StoryKind, StoryMark};
use crate::model::{BranchStatus, Timestamp, Value};
use crate::store::BranchSummary;

/// Returns the item for what a command delivered: a commit, a push or a pull request.
pub(super) fn delivery_item(at: Timestamp, made: &Delivery) -> StoryItem {
    let title = made.title.as_deref();
    let (kind, text) = match made.kind {
        DeliveryKind::Commit => return commit_item(at, title, made.name.as_deref()),
        DeliveryKind::Push => (StoryKind::Push, "pushed"),
        DeliveryKind::PullRequestOpened => (StoryKind::PullRequest, "pull request opened"),
        DeliveryKind::DraftOpened => (StoryKind::PullRequest, "draft pull request opened"),
        DeliveryKind::PullRequestReady => (StoryKind::PullRequest, "pull request ready for review"),
        DeliveryKind::PullRequestMerged => (StoryKind::PullRequest, "pull request merged"),
    };
    let detail = [title, made.name.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    StoryItem::loud(at, kind, text).marked(StoryMark::New).detailed(Some(detail))
}

/// Returns the item for a commit.
pub(super) fn commit_item(at: Timestamp, subject: Option<&str>, sha: Option<&str>) -> StoryItem {
    let text = sha.map_or_else(|| "commit".to_owned(), |sha| format!("commit {sha}"));
    let subject = subject.map(|subject| one_line(subject, ITEM_CHARS));
    StoryItem::loud(at, StoryKind::Commit, text).marked(StoryMark::New).detailed(subject)
}

/// Returns what caused a compaction and how large the context was before it, if that is recorded.
pub(super) fn compaction_detail(body: &Value) -> Option<String> {
    let trigger = body.field("trigger").and_then(Value::as_text).map(str::to_owned);
    let tokens = body.field("pre_tokens").and_then(Value::as_i64);
    let tokens = tokens.map(|tokens| format!("{tokens} tokens before"));
    let parts: Vec<String> = [trigger, tokens].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the item for the creation of a branch.
pub(super) fn branch_created(branch: &BranchSummary) -> StoryItem {
    let text = format!("branch {}", branch.name);
    let mut detail: Vec<String> = branch.metadata.approach.iter().cloned().collect();
    detail.extend(branch.metadata.hypothesis.iter().map(|id| format!("to test {id}")));
    let item = StoryItem::loud(branch.created_at, StoryKind::Branch, text);
    let item = item.marked(StoryMark::New).detailed(Some(one_line(&detail.join(", "), ITEM_CHARS)));
    StoryItem { branch: Some(branch.name.clone()), ..item }
}

/// Returns the item for a branch that was merged, abandoned or archived.
pub(super) fn branch_settled(branch: &BranchSummary) -> StoryItem {
    let word = match branch.status {
        BranchStatus::Merged => "merged",
        BranchStatus::Abandoned => "abandoned",
        BranchStatus::Archived => "archived",
        BranchStatus::Active => "active",
    };
    let text = format!("branch {} {word}", branch.name);
    let results = one_line(&branch.metadata.results.join("; "), ITEM_CHARS);
    let item = StoryItem::loud(branch.changed_at, StoryKind::Branch, text).detailed(Some(results));
    StoryItem { branch: Some(branch.name.clone()), ..item }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BranchMetadata;

    #[test]
    fn a_branch_in_the_story_has_its_approach_and_its_results() {
        let branch = BranchSummary {
            name: "dedup".to_owned(),
            base: Some(("main".to_owned(), Some(3))),
            revision: None,
            created_at: Timestamp::from_micros(1),
            changed_at: Timestamp::from_micros(2),
            status: BranchStatus::Abandoned,
            metadata: BranchMetadata {
                hypothesis: Some("H3".to_owned()),
                approach: Some("shrink the memory".to_owned()),
                results: vec!["no failure".to_owned(), "given up".to_owned()],
                ..BranchMetadata::default()
            },
            current: false,
        };
        let (created, settled) = (branch_created(&branch), branch_settled(&branch));
        assert_eq!(created.text, "branch dedup");
        assert_eq!(created.detail.as_deref(), Some("shrink the memory, to test H3"));
        assert_eq!(
            (settled.text.as_str(), settled.at),
            ("branch dedup abandoned", branch.changed_at)
        );
        assert_eq!(settled.detail.as_deref(), Some("no failure; given up"));
    }

    #[test]
    fn a_compaction_is_shown_with_its_trigger_and_tokens() {
        let body = Value::from([("trigger", "manual".into()), ("pre_tokens", 144_000_i64.into())]);
        assert_eq!(compaction_detail(&body).as_deref(), Some("manual, 144000 tokens before"));
        assert_eq!(compaction_detail(&Value::Null), None);
    }
}
