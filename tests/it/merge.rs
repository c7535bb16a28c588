//! Merging branches: the merge base, and the treatment of references.

use forge_store::diff::{ConflictResolution, MergeSide};
use forge_store::error::Error;
use forge_store::model::{
    BranchMetadata, BranchStatus, Key, Kind, OperationId, RetentionPolicy, Timestamp, Value,
};
use forge_store::store::{
    ClaimChange, MergeReport, MergeRequest, MergeResult, NewSession, Options, Session, Store,
    StreamImportRequest, VerifyDepth, WriteContext,
};
use std::io::Cursor;

fn at(second: i64) -> WriteContext {
    WriteContext::asked("test", Timestamp::from_micros(1_767_261_600_000_000 + second * 1_000_000))
}

/// A session, and a clock that advances by one second per verb.
struct Effort {
    session: Session,
    clock: std::cell::Cell<i64>,
    folder: tempfile::TempDir,
}

impl Effort {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join(".forge"), Options::default()).unwrap();
        let session = store.create_session(&at(0), NewSession::named("s")).unwrap();
        Self { session, clock: std::cell::Cell::new(0), folder }
    }

    fn act(&self) -> WriteContext {
        self.clock.set(self.clock.get() + 1);
        at(self.clock.get())
    }

    fn put(&self, branch: &str, id: &str, text: &str) -> OperationId {
        let value = Value::from([("description", text.into())]);
        self.change(branch, ClaimChange::put(Key::new(Kind::Note, id), value))
    }

    fn change(&self, branch: &str, change: ClaimChange) -> OperationId {
        self.session.write(&self.act()).on(branch).change(change).commit().unwrap().operation
    }

    fn fork(&self, name: &str, from: &str) {
        let from = self.session.resolve(&moment(from)).unwrap();
        let metadata = BranchMetadata::default();
        self.session.create_branch(&self.act(), name, Some(&from), metadata).unwrap();
    }

    fn merge(&self, source: &str, target: &str) -> MergeReport {
        self.try_merge(source, target, None).unwrap()
    }

    fn try_merge(
        &self,
        source: &str,
        target: &str,
        prefer: Option<MergeSide>,
    ) -> Result<MergeReport, Error> {
        let (source, target) = (source.to_owned(), Some(target.to_owned()));
        let merging = MergeRequest { source, target, prefer, ..MergeRequest::default() };
        self.session.merge(&self.act(), &merging)
    }

    /// Ids and texts of the claims of a branch.
    fn held(&self, branch: &str) -> Vec<(String, String)> {
        let resolved = self.session.resolve(&moment(branch)).unwrap();
        let state = self.session.state(&resolved).unwrap();
        let text = |value: &Value| {
            value.field("description").and_then(Value::as_text).unwrap_or_default().to_owned()
        };
        state.claims().entries().map(Result::unwrap).map(|(k, e)| (k.id, text(&e.value))).collect()
    }

    fn status(&self, branch: &str) -> BranchStatus {
        let branches = self.session.branches(&self.session.head().unwrap()).unwrap();
        branches.into_iter().find(|one| one.name == branch).unwrap().status
    }

    fn verify(&self) {
        let path = self.folder.path().join(".forge");
        let verified = Store::verify(&path, VerifyDepth::ReadData, at(0).now, None).unwrap();
        assert_eq!(verified.findings, []);
    }
}

fn moment(branch: &str) -> forge_store::model::time_grammar::MomentExpression {
    let base = forge_store::model::time_grammar::MomentBase::Branch(branch.to_owned());
    forge_store::model::time_grammar::MomentExpression { base, back: 0 }
}

fn pairs(held: &[(&str, &str)]) -> Vec<(String, String)> {
    held.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_repeated_merge_takes_later_changes_from_the_newest_base() {
    let effort = Effort::new();
    effort.put("main", "a", "1");
    effort.fork("try", "main");
    effort.put("try", "b", "1");
    effort.put("main", "c", "1");
    let first = effort.merge("try", "main");
    assert_eq!((first.result, first.bases.as_slice()), (MergeResult::Merged, &[1][..]));
    assert_eq!(effort.held("main"), pairs(&[("a", "1"), ("b", "1"), ("c", "1")]));
    assert_eq!(effort.status("try"), BranchStatus::Merged);
    assert_eq!(effort.merge("try", "main").result, MergeResult::AlreadyMerged);
    // What main changed since then does not conflict with what try still has.
    effort.put("main", "b", "mended");
    effort.put("try", "d", "1");
    let second = effort.merge("try", "main");
    assert_eq!((second.result, second.bases.as_slice()), (MergeResult::Merged, &[2][..]));
    assert_eq!(effort.held("main")[1], ("b".to_owned(), "mended".to_owned()));
    // In the other direction it is a fast-forward.
    assert_eq!(effort.merge("main", "try").result, MergeResult::FastForward);
    assert_eq!(effort.held("try"), effort.held("main"));
    effort.verify();
}

#[test]
fn a_merge_that_was_undone_or_reset_can_be_repeated() {
    let effort = Effort::new();
    effort.put("main", "a", "1");
    effort.fork("try", "main");
    effort.put("try", "b", "1");
    effort.put("main", "c", "1");
    let before = effort.held("main");
    let merged = |effort: &Effort| {
        assert_eq!(effort.merge("try", "main").result, MergeResult::Merged);
        effort.held("main")
    };
    let after = merged(&effort);
    // At once: back to the claims before.
    effort.session.undo(&effort.act(), None).unwrap();
    assert_eq!((effort.held("main"), effort.status("try")), (before, BranchStatus::Active));
    assert_eq!(merged(&effort), after);
    // After later changes: by the opposite change.
    let merge = effort.session.operations(1).unwrap()[0].id.to_string();
    effort.put("main", "e", "1");
    effort.session.undo(&effort.act(), Some(&merge)).unwrap();
    assert_eq!(effort.held("main"), pairs(&[("a", "1"), ("c", "1"), ("e", "1")]));
    let again = merged(&effort);
    assert_eq!(again, pairs(&[("a", "1"), ("b", "1"), ("c", "1"), ("e", "1")]));
    // By a restore to before the merge.
    effort.session.restore(&effort.act(), &effort.session.at_sequence(3).unwrap()).unwrap();
    assert_eq!(merged(&effort), after);
    effort.verify();
}

/// Regression: both had merged the same two other branches. With only one of these as the merge
/// base, what one side had restored on purpose was lost without a conflict.
#[test]
fn branches_that_merged_the_same_others_lose_nothing_without_a_conflict() {
    for order in [["x", "y"], ["y", "x"]] {
        let effort = Effort::new();
        effort.put("main", "n", "old");
        for name in ["x", "y", "one", "two"] {
            effort.fork(name, "main");
        }
        effort.put("x", "n", "new");
        effort.put("y", "other", "1");
        for target in ["one", "two"] {
            for source in order {
                effort.merge(source, target);
            }
        }
        effort.put("one", "n", "old");
        let done = effort.merge("one", "two");
        assert_eq!((done.result, done.bases.len()), (MergeResult::Merged, 2));
        assert_eq!(effort.held("two"), pairs(&[("n", "old"), ("other", "1")]));
        effort.verify();
    }
}

#[test]
fn removing_a_needed_claim_is_a_conflict() {
    let effort = Effort::new();
    let h1 = Key::new(Kind::Hypothesis, "H1");
    effort.change("main", ClaimChange::add(h1.clone(), Value::from([("description", "x".into())])));
    effort.fork("try", "main");
    let evidence = Value::from([("description", "seen".into()), ("hypothesis", "H1".into())]);
    effort.change("try", ClaimChange::add(Key::new(Kind::Evidence, "E1"), evidence));
    effort.change("main", ClaimChange::remove(h1.clone()));
    let refused = effort.merge("try", "main");
    assert_eq!((refused.result, refused.revision), (MergeResult::Conflicts, None));
    let conflict = &refused.conflicts[0].conflict;
    assert_eq!((&conflict.key, &conflict.field), (&h1, &None));
    assert_eq!(conflict.needed_by, [Key::new(Kind::Evidence, "E1")]);
    assert_eq!(effort.status("try"), BranchStatus::Active);
    effort.try_merge("try", "main", Some(MergeSide::Ours)).unwrap();
    assert_eq!(effort.held("main"), []);
    effort.session.undo(&effort.act(), None).unwrap();
    let merging = MergeRequest {
        source: "try".to_owned(),
        settled: [((h1, None), ConflictResolution::Side(MergeSide::Theirs))].into(),
        ..MergeRequest::default()
    };
    effort.session.merge(&effort.act(), &merging).unwrap();
    assert_eq!(effort.held("main").len(), 2);
    effort.verify();
}

#[test]
fn an_empty_branch_can_be_merged_in_both_directions() {
    let effort = Effort::new();
    effort.fork("try", "main");
    assert_eq!(effort.merge("try", "main").result, MergeResult::AlreadyMerged);
    effort.put("try", "a", "1");
    assert_eq!(effort.merge("try", "main").result, MergeResult::FastForward);
    assert_eq!(effort.held("main"), pairs(&[("a", "1")]));
    assert_eq!(effort.merge("try", "main").result, MergeResult::AlreadyMerged);
    assert_eq!(effort.merge("main", "try").result, MergeResult::FastForward);
    effort.verify();
    effort.session.store().rebuild().unwrap();
    effort.verify();
}

/// Later merges compare with the merged revision, so pruning keeps it.
#[test]
fn pruning_keeps_the_merge_base_of_the_next_merge() {
    let effort = Effort::new();
    effort.put("main", "a", "1");
    effort.fork("try", "main");
    effort.put("try", "b", "1");
    effort.put("main", "c", "1");
    let done = effort.merge("try", "main");
    effort.put("try", "b", "2");
    effort.put("try", "b", "3");
    effort.put("main", "b", "1");
    let none = RetentionPolicy { last: 1, revisions: 0, ..RetentionPolicy::none() };
    effort.session.prune(&effort.act(), &none).unwrap();
    effort.session.store().maintain(0).unwrap();
    assert!(effort.session.at_sequence(2).is_ok(), "the revision merged");
    assert!(effort.session.at_sequence(done.revision.unwrap().0).is_ok(), "the merge");
    let next = effort.merge("try", "main");
    assert_eq!((next.result, next.bases.as_slice()), (MergeResult::Merged, &[2][..]));
    assert_eq!(effort.held("main"), pairs(&[("a", "1"), ("b", "3"), ("c", "1")]));
    effort.verify();
}

#[test]
fn an_event_stream_of_a_merge_gives_the_same_stream_again() {
    let effort = Effort::new();
    effort.put("main", "a", "1");
    effort.fork("try", "main");
    effort.put("try", "b", "1");
    effort.merge("try", "main");
    effort.put("try", "c", "1");
    effort.put("main", "d", "1");
    effort.merge("try", "main");
    let exported = |session: &Session| {
        let mut lines = Vec::new();
        let write = &mut |line: &[u8]| -> Result<(), Error> {
            lines.extend_from_slice(line);
            Ok(())
        };
        session.export_events(&|_, _| None, write).unwrap();
        lines
    };
    let lines = exported(&effort.session);
    assert!(String::from_utf8_lossy(&lines).contains(r#""status":"merged""#));
    let store = Store::in_memory().unwrap();
    let stream = StreamImportRequest { source: "events:merge", name: "s", session: None };
    let mut open = || Ok(Box::new(Cursor::new(lines.clone())) as Box<_>);
    store.import_events(&at(100), stream, &mut open, &|_| {}).unwrap();
    assert_eq!(exported(&store.session("s").unwrap()), lines);
}
