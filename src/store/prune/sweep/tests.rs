use super::*;
use crate::engine::lineage::RevisionRef;
use crate::engine::plan_context::PlanContext;
use crate::format::key;
use crate::model::{Key, Kind, RetentionPolicy, Value};
use crate::store::prune::{FoldPhase, PruneReport};
use crate::store::{ClaimChange, NewSession, Session};

fn act(second: i64) -> WriteContext {
    WriteContext::asked("test", Timestamp::from_micros(second * 1_000_000))
}

fn text(seed: u64, length: usize) -> String {
    let mut bytes = vec![0; length / 2];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn put(id: &str, text: String) -> ClaimChange {
    ClaimChange::put(Key::new(Kind::Note, id), Value::from([("description", text.into())]))
}

/// Puts these claims in one revision, and returns its number.
fn revise(session: &Session, second: i64, claims: Vec<ClaimChange>) -> u64 {
    session.write(&act(second)).changes(claims).commit().unwrap().revision.unwrap().0
}

fn description(session: &Session, sequence: u64, id: &str) -> Result<String> {
    let state = session.state(&session.at_sequence(sequence)?)?;
    let found = state.claims().entries().find_map(|entry| match entry {
        Ok((key, entry)) if key.id == id => entry.value.field("description").cloned().map(Ok),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    match found.transpose()? {
        Some(Value::Text(text)) => Ok(text),
        other => panic!("{other:?}"),
    }
}

/// Creates a session in which only the folded revision #1 names a large text. Returns it, with the
/// snapshot and the pruning that a sweep finds.
fn pruned(large: &str) -> (Session, ReadSnapshot, PendingPruning) {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    revise(&session, 1, vec![put("a", large.to_owned())]);
    revise(&session, 2, vec![put("a", "small".to_owned())]);
    revise(&session, 3, vec![put("b", "other".to_owned())]);
    session.prune(&act(4), &RetentionPolicy { revisions: 0, ..RetentionPolicy::none() }).unwrap();
    let view = session.store.engine.follower.view().unwrap();
    let pruning = prune::prunings(&view, act(9).now).unwrap().pop().unwrap();
    assert_eq!(prune::unreferenced_blobs(&view, &pruning).unwrap().into_ids().len(), 1);
    (session, view, pruning)
}

/// Regression, found by killing processes at random: a pruning was undone while a sweep ran. The
/// revisions were visible again, but their large value was removed.
#[test]
fn an_undo_during_a_sweep_keeps_the_values() {
    let large = text(1, 9000);
    let (session, view, pruning) = pruned(&large);
    session.undo(&act(5), None).unwrap();
    let swept = session.store.sweep_one(act(6).now, &view, &pruning, 0).unwrap();
    assert_eq!(swept, None);
    assert_eq!(description(&session, 1, "a").unwrap(), large);

    // The pruning was undone, so sweeping it removes nothing.
    let swept = session.store.sweep(act(7).now, act(7).now).unwrap();
    assert_eq!(swept, SweepReport { prunings: 1, ..SweepReport::default() });
    assert_eq!(description(&session, 1, "a").unwrap(), large);
}

/// The id of the value is in a compressed delta, where a search for its bytes does not find it.
#[test]
fn a_value_that_is_written_again_during_a_sweep_is_kept() {
    let large = text(1, 9000);
    let (session, view, pruning) = pruned(&large);
    let mut claims: Vec<_> = (0..20).map(|n| put(&format!("c{n}"), text(100 + n, 3000))).collect();
    claims.push(put("a", large.clone()));
    let again = revise(&session, 5, claims);
    let swept = session.store.sweep_one(act(6).now, &view, &pruning, 0).unwrap();
    assert_eq!(swept, Some(0));
    assert_eq!(description(&session, again, "a").unwrap(), large);
}

/// Regression: what a pruning hid after it had been swept was never swept, because only the first
/// record of a pruning marked it as pending.
#[test]
fn data_pruned_after_a_sweep_is_swept_by_the_next_one() {
    let large = text(1, 9000);
    let (session, ..) = pruned(&large);
    let operation = act(4).operation().unwrap();
    let retention = RetentionPolicy { revisions: 0, ..RetentionPolicy::none() };
    for (second, first) in [(10, "c"), (20, "d")] {
        revise(&session, second, vec![put(first, text(second as u64, 9000))]);
        revise(&session, second + 1, vec![put(first, "small".to_owned())]);
        let mut folding = FoldPhase {
            operation: &operation,
            retention: &retention,
            now: act(30).now,
            began: true,
        };
        let mut pruned = PruneReport::default();
        let at = RevisionRef { branch: 0, sequence: 0 };
        assert!(folding.step(&session, at, &mut pruned, &mut drop).unwrap().is_continue());
        let swept = session.store.sweep(act(40).now, act(40).now).unwrap();
        assert!(swept.values >= 1, "{swept:?}");
    }
    let view = session.store.engine.follower.view().unwrap();
    let left = crate::backend::Snapshot::scan(
        &view,
        key::PRUNINGS,
        &[],
        &[],
        crate::backend::ScanDirection::Ascending,
        9,
    );
    assert_eq!(left.unwrap(), []);
}

/// Regression: a fact names its long text in hexadecimal digits, and a sweep searched for bytes.
#[test]
fn a_value_that_a_fact_has_too_is_kept() {
    let large = text(1, 9000);
    let (session, ..) = pruned(&large);
    let act_of_fact = act(5);
    let mut write = session.write(&act_of_fact);
    let reference = write.text(&large);
    let fact = crate::model::Fact {
        kind: Kind::Message,
        id: "m".to_owned(),
        at: act(5).now,
        origin: crate::model::FactOrigin::Recorded,
        place: 0,
        recorded_at: act(5).now,
        value: Value::from([("text", reference)]),
    };
    write.fact(fact).commit().unwrap();
    assert_eq!(session.store.sweep(act(6).now, act(6).now).unwrap().prunings, 1);
    let state = session.state(&session.head().unwrap()).unwrap();
    let known = state.facts_of(Kind::Message).unwrap().pop().unwrap().fact.value;
    let reference = crate::model::TextRef::from_value(known.field("text").unwrap()).unwrap();
    assert_eq!(session.text(None, &reference, &|_, _| None).unwrap(), large);
}

fn large(text: &str) -> (crate::model::ObjectId, RecordChange) {
    crate::engine::delta_parts::blob(text.as_bytes())
}

/// Writes an object that no record names, as a writer leaves it that is killed after pre-writing.
fn write_ahead(store: &Store, second: i64, change: &RecordChange) {
    let operation = act(second).operation().unwrap();
    let record = Record { operation, changes: vec![change.clone()] };
    let mut plan = |_: &PlanContext<'_>| Ok((Some(record.clone()), ()));
    store.engine.commit(CommitDurability::Now, &mut plan).unwrap();
}

const DAY: i64 = 24 * 3600;

fn ahead(store: &Store) -> PrewrittenObjects {
    PrewrittenObjects::written_until(&store.engine.follower.view().unwrap(), act(99 * DAY).now)
        .unwrap()
}

fn swept_ahead(store: &Store, second: i64) -> u64 {
    store.sweep(act(second).now, act(second).now).unwrap().prewritten
}

fn is_stored(store: &Store, id: &crate::model::ObjectId) -> bool {
    let view = store.engine.follower.view().unwrap();
    crate::engine::object::find_number(&view, id).unwrap().is_some()
}

#[test]
fn prewritten_objects_are_swept_a_day_after_their_last_write() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let (id, change) = large("never named");
    write_ahead(&store, 10, &change);
    assert_eq!(swept_ahead(&store, 9 + DAY), 0);
    // Another write adds the object again.
    write_ahead(&store, 20, &change);
    assert_eq!(swept_ahead(&store, 19 + DAY), 0);
    assert!(is_stored(&store, &id));
    assert_eq!(swept_ahead(&store, 20 + DAY), 1);
    assert!(!is_stored(&store, &id) && ahead(&store).is_empty());
    assert_eq!(swept_ahead(&store, 21 + DAY), 0);

    // The entry of a claim that is written later has the same bytes.
    let text = text(3, 9000);
    let value = Value::from([("description", text.clone().into())]);
    let (_, change) = large_entry(&value);
    write_ahead(&store, 30, &change);
    assert!(!ahead(&store).is_empty());
    revise(&session, 30, vec![put("a", text.clone())]);
    assert!(ahead(&store).is_empty(), "it is named now");
    assert_eq!(swept_ahead(&store, 31 + DAY), 0);
    assert_eq!(description(&session, 1, "a").unwrap(), text);
}

/// Returns the blob of a claim's entry made at second 30.
fn large_entry(value: &Value) -> (crate::model::ObjectId, RecordChange) {
    crate::engine::delta_parts::blob(&crate::format::encode_value(act(30).now, value))
}

#[test]
fn a_prewritten_object_that_is_named_during_a_sweep_is_kept() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let text = text(3, 9000);
    let (id, change) = large_entry(&Value::from([("description", text.clone().into())]));
    let (other, unnamed) = large("never named");
    write_ahead(&store, 10, &change);
    write_ahead(&store, 10, &unnamed);
    for named in [false, true] {
        let view = store.engine.follower.view().unwrap();
        let until = act(10 + 2 * DAY).now;
        let found = PrewrittenObjects::written_until(&view, until).unwrap();
        match named {
            // Written again: the record that names it may still follow.
            false => write_ahead(&store, 30 + 3 * DAY, &change),
            true => drop(revise(&session, 30, vec![put("a", text.clone())])),
        }
        let now = act(9 * DAY).now;
        let swept = store.sweep_found_prewritten(now, until, (&view, found), 0).unwrap();
        assert_eq!(swept, Some(u64::from(!named)));
        assert!(is_stored(&store, &id) && !is_stored(&store, &other));
    }
    assert!(ahead(&store).is_empty());
    assert_eq!(description(&session, 1, "a").unwrap(), text);
}

/// A value that a repair could not save, and that is restored by a bundle, was named before it was
/// written.
#[test]
fn an_object_that_was_named_before_its_prewrite_is_kept() {
    let large = text(3, 9000);
    let (session, _, pruning) = pruned(&text(1, 9000));
    let value = Value::from([("description", large.clone().into())]);
    let (id, change) = large_entry(&value);
    let named = revise(&session, 30, vec![put("b", "first".to_owned()), put("c", large.clone())]);
    let lost = RecordChange::Swept {
        session: pruning.session,
        operation: pruning.operation,
        blobs: vec![id],
        sessions: Vec::new(),
    };
    write_ahead(&session.store, 31, &lost);
    assert!(!is_stored(&session.store, &id));
    write_ahead(&session.store, 32, &change);
    assert!(!ahead(&session.store).is_empty());
    assert_eq!(swept_ahead(&session.store, 33 + DAY), 0);
    assert!(ahead(&session.store).is_empty());
    assert_eq!(description(&session, named, "c").unwrap(), large);
}

/// Regression: a redo keeps a copy of what it hides, to restore it. The copy remained when nothing
/// could be restored any more.
#[test]
fn no_operation_keeps_texts_of_a_swept_checkpoint() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let event = |message: &str| crate::store::NewCheckpoint {
        at: Some(act(1).now),
        key: Some("compaction 1".to_owned()),
        body: Value::from([("summary", format!("{message} body").into())]),
        tags: vec![format!("{message}-tag")],
        ..crate::store::NewCheckpoint::manual(format!("{message} words"))
    };
    let made = |second, wanted| {
        session.write(&act(second)).checkpoint(wanted).commit().unwrap();
    };
    made(2, event("before"));
    made(3, event("after"));
    made(4, crate::store::NewCheckpoint::manual("newest"));
    let rules =
        RetentionPolicy { manual: false, revisions: i64::MAX / 4, ..RetentionPolicy::none() };
    assert_eq!(session.prune(&act(5), &rules).unwrap().dropped_checkpoints(), 1);
    session.undo(&act(6), None).unwrap();
    session.redo(&act(7)).unwrap();
    let are_stored = || {
        let mut stored = Vec::new();
        let view = store.engine.follower.view().unwrap();
        crate::engine::table_rows::for_each_row(&view, key::OPERATIONS, |_, row| {
            stored.extend_from_slice(row);
            Ok(())
        })
        .unwrap();
        ["before words", "before-tag", "before body", "after words", "after body", "compaction 1"]
            .map(|one| stored.windows(one.len()).any(|bytes| bytes == one.as_bytes()))
    };
    assert_eq!(are_stored(), [true; 6]);
    assert_eq!(store.sweep(act(8).now, act(8).now).unwrap().prunings, 1);
    assert_eq!(are_stored(), [false; 6]);
    let operations = session.operations(9).unwrap();
    let effects: Vec<_> = operations.iter().flat_map(|one| &one.effects).collect();
    assert!(effects.iter().any(|one| one.as_str() == "took checkpoint #1 back"), "{effects:?}");
}

/// Regression: a session was dropped, a sweep searched for values that only it names, and the
/// session was restored before the sweep was written: its large values were removed.
#[test]
fn a_session_restored_during_a_sweep_keeps_its_values() {
    let large = text(1, 9000);
    let store = Store::in_memory().unwrap();
    let old = store.create_session(&act(0), NewSession::named("old")).unwrap();
    revise(&old, 1, vec![put("a", large.clone())]);
    let work = store.create_session(&act(600), NewSession::named("work")).unwrap();
    revise(&work, 600, vec![put("b", "at work".to_owned())]);
    let rules = RetentionPolicy { sessions: Some(1_000_000), ..RetentionPolicy::none() };
    assert_eq!(work.prune(&act(601), &rules).unwrap().sessions.len(), 1);
    let view = store.engine.follower.view().unwrap();
    let pruning = prune::prunings(&view, act(700).now).unwrap().pop().unwrap();
    assert_eq!(prune::unreferenced_blobs(&view, &pruning).unwrap().into_ids().len(), 1);
    work.undo(&act(602), None).unwrap();
    let swept = store.sweep_one(act(603).now, &view, &pruning, 0).unwrap();
    assert_eq!(swept, None);
    assert_eq!(description(&store.session("old").unwrap(), 1, "a").unwrap(), large);
}
