//! Exports and imports any session: the result equals the original, whether it is exported at once,
//! in parts or incrementally.

use super::{export, try_export, whole};
use forge_store::Error;
use forge_store::diff::MergeSide;
use forge_store::model::{
    BranchMetadata, Fact, FactOrigin, Key, Kind, RetentionPolicy, Timestamp, Value,
};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{
    BundleRange, CheckpointFilter, ClaimChange, ExportMark, MergeRequest, NewCheckpoint,
    NewSession, Options, ResolvedMoment, Session, SourceChunk, Store, VerifyDepth, VerifyOutcome,
    WriteContext,
};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::io::Cursor;
use std::ops::Range;

pub(crate) fn time(minute: u64) -> Timestamp {
    Timestamp::from_micros(1_767_261_600_000_000 + minute as i64 * 60_000_000)
}

fn fact(minute: u64, value: Value) -> Fact {
    let at = time(minute);
    Fact {
        kind: Kind::Command,
        id: format!("c{}", minute % 7),
        at,
        origin: FactOrigin::Recorded,
        place: minute,
        recorded_at: at,
        value,
    }
}

fn retention() -> RetentionPolicy {
    RetentionPolicy { manual: false, significant: false, revisions: 0, ..RetentionPolicy::none() }
}

/// Executes one step, with this text in all its fields. A step that is not possible now is skipped.
pub(crate) fn step(
    store: &Store,
    session: &Session,
    minute: u64,
    (what, which): (u8, u8),
    prefix: &str,
) {
    let act = WriteContext::asked("step", time(minute));
    let note = |id: u8| {
        let long = if which.is_multiple_of(5) { 3000 } else { 3 };
        let text = format!("{prefix}{minute} ").repeat(long);
        let value = Value::from([("description", text.as_str().into()), ("source", "t".into())]);
        ClaimChange::put(Key::new(Kind::Note, format!("N{id}")), value)
    };
    match what {
        0..=4 => {
            session.write(&act).change(note(which % 5)).commit().unwrap();
        }
        5 | 6 => {
            let tags = [format!("t{}", which % 2)];
            let wanted = NewCheckpoint::manual(format!("{prefix}at {minute}")).tags(tags);
            session.write(&act).change(note(9)).checkpoint(wanted).commit().unwrap();
        }
        7 => {
            let name = format!("b{}", which % 3);
            let _ = session.create_branch(&act, &name, None, BranchMetadata::default());
            let _ = session.switch_branch(&act, &name, false);
        }
        8 => drop(session.switch_branch(&act, "main", false)),
        9 | 10 => drop(session.undo(&act, None)),
        11 => drop(session.redo(&act)),
        12 | 13 => {
            let act = WriteContext::asked("prune", time(minute));
            drop(session.prune(&act, &retention()).unwrap());
        }
        14 => drop(store.sweep(time(minute), time(minute)).unwrap()),
        15 => {
            let mut write = session.write(&act);
            let text = write.text(&format!("{prefix}{minute} output ").repeat(900));
            let value = Value::from([("command", "make".into()), ("stdout_preview", text)]);
            write.fact(fact(minute, value)).commit().unwrap();
        }
        16 => {
            let known = session.bookmark("log").unwrap();
            let bookmark = known.unwrap_or_default();
            let begin = bookmark.open_block();
            let file = format!("{{\"line\":\"of a {prefix}log\"}}\n").repeat(10_000);
            let (from, to) = (bookmark.bytes as usize, usize::from(which) * 20 + 1);
            let text = &file[from..from + to];
            let open = match bookmark.bytes {
                0 => Vec::new(),
                bytes => session.source_bytes("log", begin, bytes - begin).unwrap(),
            };
            let taken = SourceChunk {
                bookmark,
                open: &open,
                bytes: store.redact_source(text.as_bytes(), TextForm::Json, PartEnding::End),
                lines: 1,
                keep: true,
                facts: vec![fact(minute, Value::from([("command", "make".into())]))],
                ..SourceChunk::default()
            };
            let operation = store.new_operation().unwrap();
            session.import_chunk(&act, operation, "log", taken).unwrap();
        }
        17 => {
            let last = session.summary().unwrap().last_sequence.max(1);
            if let Ok(moment) = session.at_sequence(u64::from(which) % last + 1) {
                let _ = session.restore(&act, &moment);
            }
        }
        18 => drop(store.maintain(0).unwrap()),
        19 => {
            let source = format!("b{}", which % 3);
            let merging =
                MergeRequest { source, prefer: Some(MergeSide::Ours), ..MergeRequest::default() };
            drop(session.merge(&act, &merging));
        }
        21 => {
            let last = session.summary().unwrap().last_sequence.max(1);
            if let Ok(moment) = session.at_sequence(u64::from(which) % last + 1) {
                let named = NewCheckpoint::manual(format!("{prefix}after {minute}"));
                let write = session.write(&act).after_or_fork(&moment, format!("f{}", which % 3));
                let _ = write.change(note(which % 5)).checkpoint(named).commit();
            }
        }
        22 => {
            let key = Some(format!("key {}", which % 2));
            let named =
                NewCheckpoint { key, ..NewCheckpoint::manual(format!("{prefix}again {minute}")) };
            let write = session.write(&act).change(note(which % 5));
            write.replacing_checkpoint(named).commit().unwrap();
        }
        23 => {
            let filter = CheckpointFilter { limit: Some(4), ..Default::default() };
            let found = session.checkpoints(&filter).unwrap();
            let ids: Vec<_> = found.iter().skip(usize::from(which % 2)).map(|one| one.id).collect();
            session.drop_checkpoints(&act, &ids).unwrap();
        }
        _ => session.schedule(&act, which.is_multiple_of(2).then_some(60_000_000)).unwrap(),
    }
}

/// Returns everything that can be read from the session `s`.
pub(crate) fn session_contents(store: &Store) -> String {
    let session = store.session("s").unwrap();
    contents_at(&session, &session.head().unwrap())
}

/// Returns what must be equal on all machines: everything except which branch is checked out.
pub(crate) fn shared_contents(store: &Store) -> String {
    shared_session_contents(&store.session("s").unwrap())
}

/// Like [`shared_contents`], for any session.
pub(crate) fn shared_session_contents(session: &Session) -> String {
    let last = session.summary().unwrap().last_sequence;
    let head = (1..=last).rev().find_map(|number| session.at_sequence(number).ok());
    let head = head.unwrap_or_else(|| session.head().unwrap());
    let text = contents_at(session, &head).replace(" in another store", "");
    text.replace(", current: true", "").replace(", current: false", "")
}

fn contents_at(session: &Session, head: &ResolvedMoment) -> String {
    let mut text = String::new();
    let mut note = |what: &str, value: String| writeln!(text, "{what}: {value}").unwrap();
    let summary = session.summary().unwrap();
    note("last", format!("{} {}", summary.last_sequence, summary.checkpoints));
    for number in 1..=summary.last_sequence {
        let moment = match session.at_sequence(number) {
            Ok(moment) => moment,
            Err(error) => {
                note(&format!("#{number}"), error.to_string());
                continue;
            }
        };
        session.check_digest(&moment).unwrap();
        let state = session.state(&moment).unwrap();
        let entries: Vec<_> = state.claims().entries().map(Result::unwrap).collect();
        note(&format!("#{number}"), format!("{moment:?} {entries:?}"));
    }
    note("checkpoints", format!("{:?}", session.checkpoints(&CheckpointFilter::default())));
    let state = session.state(head).unwrap();
    note("facts", format!("{:?}", state.facts_of(Kind::Command).unwrap()));
    note("branches", format!("{:?}", session.branches(head).unwrap()));
    note("log", format!("{:?}", session.records(1, usize::MAX).unwrap()));
    let operations = session.operations(usize::MAX).unwrap();
    note("operations", format!("{operations:#?}"));
    for number in 0..5 {
        let key = Key::new(Kind::Note, format!("N{number}"));
        note("history", format!("{:?}", session.history(head, &key)));
    }
    let bytes = session.bookmark("log").unwrap().map_or(0, |bookmark| bookmark.bytes);
    note("source", format!("{:?}", session.source_bytes("log", 0, bytes).ok()));
    text
}

fn import(store: &Store, bytes: &[u8]) {
    let act = WriteContext::asked("import", time(0));
    store.import_bundle(&act, &mut Cursor::new(bytes), None).unwrap();
}

/// Exports what was written to a session since the mark, imports it, and moves the mark.
pub(crate) fn follow(
    store: &Store,
    session: &Session,
    mark: &mut Option<ExportMark>,
    into: &Store,
) {
    let mut bytes = Vec::new();
    let write = &mut |part: &[u8]| -> Result<(), Error> {
        bytes.extend_from_slice(part);
        Ok(())
    };
    let written = match mark {
        None => {
            let whole = BundleRange { session: session.clone(), from: 0, to: None };
            store.export_bundle(&[whole], write)
        }
        Some(mark) => store.export_bundle_since(session, mark, write),
    };
    *mark = written.unwrap().marks.first().copied();
    import(into, &bytes);
}

/// Reports the first difference, because the whole texts are long.
#[track_caller]
pub(crate) fn same(found: &str, wanted: &str, what: &str) {
    let lines = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    let short = |line: &str| line.chars().take(400).collect::<String>();
    let different = lines.map(|(found, wanted)| (short(found), short(wanted)));
    assert!(found == wanted, "{what}: {different:#?}");
}

/// Regression: the apply made a full state of a revision whose changes had been permanently removed
/// before the bundle was written, and failed. So a session could not be imported or pulled any more
/// after some 120 of its revisions had been removed in this way.
#[test]
fn many_permanently_pruned_revisions_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let begin = WriteContext::asked("begin", time(0));
    let session = store.create_session(&begin, NewSession::named("s")).unwrap();
    let revise = |minutes: Range<u64>| {
        for minute in minutes {
            let which = u8::try_from(minute % 4).unwrap() + 1;
            step(&store, &session, minute, (0, which), "");
        }
    };
    revise(1..200);
    step(&store, &session, 200, (5, 1), "");
    revise(201..400);
    step(&store, &session, 400, (12, 0), "");
    step(&store, &session, 401, (14, 0), "");
    revise(402..420);
    let bytes = whole(&store);
    let path = folder.path().join("store");
    let copy = Store::create(&path, Options::default()).unwrap();
    let act = WriteContext::asked("import", time(500));
    copy.import_bundle(&act, &mut Cursor::new(&bytes), None).unwrap();
    copy.maintain(0).unwrap();
    same(&session_contents(&copy), &session_contents(&store), "imported");
    let verified = Store::verify(&path, VerifyDepth::ReadData, time(501), None).unwrap();
    assert_eq!(verified.outcome, VerifyOutcome::Clean, "{:?}", verified.findings);
}

/// Regression: a range that ended between a pruning and its undo could not be imported if earlier
/// revisions had been swept by then.
#[test]
fn a_range_with_an_undone_fold_contains_the_swept_changes() {
    let store = Store::in_memory().unwrap();
    let begin = WriteContext::asked("begin", time(0));
    let session = store.create_session(&begin, NewSession::named("s")).unwrap();
    // Two revisions folded and swept, then two folds, the first of which is undone, and later the
    // second.
    let steps = [
        (0, 1),
        (0, 2),
        (12, 0),
        (14, 0),
        (3, 3),
        (4, 4),
        (12, 0),
        (3, 1),
        (9, 0),
        (1, 2),
        (9, 0),
        (10, 0),
    ];
    for (minute, step_) in (1..).zip(steps) {
        step(&store, &session, minute, step_, "");
    }
    let wanted = session_contents(&store);
    let range = |from, to| BundleRange { session: session.clone(), from, to };
    let mut in_parts = 0;
    for cut in 1..=session.summary().unwrap().last_sequence {
        let Ok(first) = try_export(&store, &[range(0, Some(cut))]) else { continue };
        let parts = Store::in_memory().unwrap();
        import(&parts, &first);
        import(&parts, &export(&store, &[range(cut, None)]));
        same(&session_contents(&parts), &wanted, &format!("in parts, cut after #{cut}"));
        in_parts += 1;
    }
    assert!(in_parts > 3, "{in_parts}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn an_imported_session_equals_the_exported_one(
        steps in prop::collection::vec((0_u8..24, any::<u8>()), 1..50),
        middle in 0_usize..50,
        part in any::<prop::sample::Index>(),
        pauses in any::<u32>(),
    ) {
        let store = Store::in_memory().unwrap();
        let begin = WriteContext::asked("begin", time(0));
        let session = store.create_session(&begin, NewSession::named("s")).unwrap();
        let piecewise = Store::in_memory().unwrap();
        let (followed, mut mark) = (Store::in_memory().unwrap(), None);
        for (minute, step_) in (1..).zip(&steps) {
            step(&store, &session, minute, *step_, "");
            if minute as usize == middle {
                import(&piecewise, &whole(&store));
            }
            if pauses & (1 << (minute % 32)) == 0 {
                follow(&store, &session, &mut mark, &followed);
            }
        }
        follow(&store, &session, &mut mark, &followed);
        let wanted = session_contents(&store);
        let bytes = whole(&store);

        let other = Store::in_memory().unwrap();
        import(&other, &bytes);
        same(&session_contents(&other), &wanted, "at once");
        prop_assert!(whole(&other) == bytes, "the same session gives other bytes");
        import(&other, &bytes);
        same(&session_contents(&other), &wanted, "again");

        import(&piecewise, &bytes);
        same(&session_contents(&piecewise), &wanted, "what came since");
        same(&session_contents(&followed), &wanted, "increment by increment");

        let last = session.summary().unwrap().last_sequence;
        let cut = part.index(usize::try_from(last).unwrap() + 1) as u64;
        let parts = Store::in_memory().unwrap();
        let range = |from, to| BundleRange { session: session.clone(), from, to };
        match try_export(&store, &[range(0, Some(cut))]) {
            Ok(first) if cut > 0 => {
                import(&parts, &first);
                import(&parts, &export(&store, &[range(cut, None)]));
                same(&session_contents(&parts), &wanted, "in parts");
            }
            Ok(_) => {}
            Err(error) => prop_assert!(error.to_string().contains("permanently pruned"), "{}", error),
        }
    }
}
