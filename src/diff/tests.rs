use super::*;
use crate::model::claim::VocabularyWord;
use crate::model::rule::{MAX_CONFIDENCE, MIN_CONFIDENCE};
use crate::model::{EntryChange, Fact, FactOrigin, Kind, Timestamp, Value};
use proptest::prelude::*;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn entry(text: &str) -> ClaimEntry {
    ClaimEntry { added_at: Timestamp::from_micros(1), value: json(text) }
}

fn state(entries: &[(Kind, &str, &str)]) -> ClaimMap {
    entries.iter().map(|(kind, id, text)| (Key::new(*kind, *id), entry(text))).collect()
}

fn fact(kind: Kind, id: &str, at: i64, text: &str) -> Fact {
    Fact {
        kind,
        id: id.to_owned(),
        at: Timestamp::from_micros(at),
        origin: FactOrigin::Recorded,
        place: 0,
        recorded_at: Timestamp::from_micros(at),
        value: json(text),
    }
}

/// Generates small states over few keys, fields and values, so that two of them share much.
fn any_state() -> impl Strategy<Value = ClaimMap> {
    let key = (prop::sample::select(vec![Kind::Hypothesis, Kind::Belief, Kind::Note]), "[a-c]");
    let leaf = prop_oneof![Just(Value::from(1i64)), Just(Value::from("x")), Just(Value::from(0.5))];
    let field = leaf.prop_recursive(2, 4, 2, |inner| {
        prop::collection::btree_map("[pq.]", inner, 0..2)
            .prop_map(|fields| Value::Map(fields.into_iter().collect()))
    });
    let name = prop::sample::select(vec!["status", "confidence", "tags", "env"]);
    let value = prop::collection::btree_map(name.prop_map(str::to_owned), field, 0..4);
    let entry = (0..2i64, value).prop_map(|(time, fields)| ClaimEntry {
        added_at: Timestamp::from_micros(time),
        value: Value::Map(fields.into_iter().collect()),
    });
    prop::collection::btree_map(key.prop_map(|(kind, id)| Key::new(kind, id)), entry, 0..6)
}

fn applied(mut state: ClaimMap, changes: &[EntryChange]) -> ClaimMap {
    for change in changes {
        assert_eq!(state.get(&change.key), change.old.as_ref(), "{}", change.key);
    }
    apply(&mut state, changes);
    state
}

fn merge3(base: &ClaimMap, ours: &ClaimMap, theirs: &ClaimMap, prefer: MergeSide) -> MergeOutcome {
    merge_by(&base.clone().into(), ours, theirs, &mut |_| ConflictResolution::Side(prefer))
}

proptest! {
    #[test]
    fn applying_a_comparison_gives_the_other_state_and_its_inverse_the_first(
        (a, b) in (any_state(), any_state())
    ) {
        let changes = compare(&a, &b);
        prop_assert!(changes.is_sorted_by(|one, next| one.key < next.key));
        prop_assert_eq!(&applied(a.clone(), &changes), &b);
        prop_assert_eq!(&applied(b.clone(), &invert(changes.clone())), &a);
        prop_assert_eq!(invert(changes), compare(&b, &a));
        prop_assert_eq!(compare(&a, &a), Vec::new());
    }

    #[test]
    fn every_change_is_described_and_nothing_else(
        (a, b) in (any_state(), any_state())
    ) {
        let changes = compare(&a, &b);
        let typed = describe(&changes);
        let mut described: Vec<_> =
            typed.iter().map(|change| Key::new(change.kind, change.id.clone())).collect();
        described.dedup();
        let changed: Vec<_> = changes.iter().map(|change| change.key.clone()).collect();
        prop_assert_eq!(described, changed);
        prop_assert!(typed.iter().all(|change| change.old != change.new));
    }

    #[test]
    fn merging_takes_a_change_of_only_one_side(
        (a, b) in (any_state(), any_state())
    ) {
        let taken = MergeOutcome { state: b.clone(), conflicts: Vec::new() };
        for side in [MergeSide::Ours, MergeSide::Theirs] {
            prop_assert_eq!(&merge3(&a, &b, &b, side), &taken);
            prop_assert_eq!(&merge3(&a, &b, &a, side), &taken);
            prop_assert_eq!(&merge3(&a, &a, &b, side), &taken);
        }
    }

    #[test]
    fn merging_is_symmetric_except_for_the_preferred_side(
        (base, a, b) in (any_state(), any_state(), any_state())
    ) {
        let one = merge3(&base, &a, &b, MergeSide::Ours);
        let mut other = merge3(&base, &b, &a, MergeSide::Theirs);
        for conflict in &mut other.conflicts {
            std::mem::swap(&mut conflict.ours, &mut conflict.theirs);
        }
        prop_assert_eq!(&one, &other);
        // Merging the same state a second time changes nothing.
        let again = merge3(&base, &one.state, &one.state, MergeSide::Ours);
        prop_assert_eq!(again.state, one.state);
    }

    #[test]
    fn a_merge_loses_nothing_unreported(
        (base, ours, theirs) in (any_state(), any_state(), any_state())
    ) {
        let merge = merge3(&base, &ours, &theirs, MergeSide::Ours);
        let field = |state: &ClaimMap, key: &Key, name: &str| -> Option<Value> {
            state.get(key)?.value.field(name).cloned()
        };
        // Some keys are visited several times, which is harmless.
        for key in base.keys().chain(ours.keys()).chain(theirs.keys()) {
            for name in ["status", "confidence", "tags", "env"] {
                let reported = merge.conflicts.iter().any(|conflict| {
                    conflict.key == *key
                        && conflict.field.as_deref().is_none_or(|field| field == name)
                });
                let [base, ours, theirs, merged] =
                    [&base, &ours, &theirs, &merge.state].map(|state| field(state, key, name));
                if reported {
                    prop_assert_eq!(merged, ours);
                } else {
                    prop_assert!(ours == base || merged == ours, "ours lost {key} {name}");
                    prop_assert!(theirs == base || merged == theirs, "theirs lost {key} {name}");
                }
            }
        }
    }
}

/// Generates states whose claims refer to each other, some of them to missing claims.
fn any_referring() -> impl Strategy<Value = ClaimMap> {
    let id = || prop::option::of("[a-c]");
    let fields = |name: &'static str| {
        (id(), 0..3i64).prop_map(move |(to, confidence)| {
            let to = to.map(|id| (name.to_owned(), Value::from(id)));
            let confidence = ("confidence".to_owned(), Value::from(confidence as f64 / 2.0));
            Value::Map([confidence].into_iter().chain(to).collect())
        })
    };
    let entry = prop_oneof![
        ("[a-c]", fields("parent")).prop_map(|(id, value)| (Kind::Hypothesis, id, value)),
        ("[a-c]", fields("hypothesis")).prop_map(|(id, value)| (Kind::Evidence, id, value)),
    ];
    prop::collection::vec(entry, 0..6).prop_map(|entries| {
        let added_at = Timestamp::from_micros(1);
        let entry = |(kind, id, value)| (Key::new(kind, id), ClaimEntry { added_at, value });
        entries.into_iter().map(entry).collect()
    })
}

/// Returns the dangling references of a state.
fn failing(state: &ClaimMap) -> Vec<(Key, Key)> {
    let mut found = Vec::new();
    for (key, entry) in state {
        for to in crate::model::claim::references(key.kind, &entry.value) {
            if !state.contains_key(&to) {
                found.push((key.clone(), to));
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn a_merge_leaves_no_valid_reference_dangling(
        (base, ours, theirs) in (any_referring(), any_referring(), any_referring())
    ) {
        let before: Vec<_> = failing(&ours).into_iter().chain(failing(&theirs)).collect();
        for side in [MergeSide::Ours, MergeSide::Theirs] {
            let merge = merge3(&base, &ours, &theirs, side);
            prop_assert_eq!(dangling(&ours, &theirs, &merge.state), Vec::new());
            for reference in failing(&merge.state) {
                prop_assert!(before.contains(&reference), "{reference:?} held before");
            }
            let mut mirrored = merge3(&base, &theirs, &ours, match side {
                MergeSide::Ours => MergeSide::Theirs,
                MergeSide::Theirs => MergeSide::Ours,
            });
            for conflict in &mut mirrored.conflicts {
                std::mem::swap(&mut conflict.ours, &mut conflict.theirs);
            }
            prop_assert_eq!(&merge, &mirrored);
            let again = merge3(&base, &merge.state, &theirs, side);
            prop_assert_eq!(&again.state, &merge.state);
            prop_assert_eq!(merge3(&theirs, &merge.state, &theirs, side).state, merge.state);
        }
    }

    #[test]
    fn claims_that_a_merge_leaves_out_for_a_reference_are_reported(
        (base, ours, theirs) in (any_referring(), any_referring(), any_referring())
    ) {
        for prefer in [MergeSide::Ours, MergeSide::Theirs] {
            let merge = merge3(&base, &ours, &theirs, prefer);
            for key in base.keys().chain(ours.keys()).chain(theirs.keys()) {
                let [old, our, their, merged] =
                    [&base, &ours, &theirs, &merge.state].map(|state| state.get(key));
                let is_reported = merge.conflicts.iter().any(|conflict| {
                    conflict.key == *key || conflict.needed_by.contains(key)
                });
                if !is_reported && our == old {
                    prop_assert_eq!(merged, their, "{} of theirs is lost", key);
                }
                if !is_reported && their == old {
                    prop_assert_eq!(merged, our, "{} of ours is lost", key);
                }
            }
        }
    }

    #[test]
    fn settling_conflicts_one_by_one_gives_the_same_merge_as_a_preference(
        (base, ours, theirs) in (any_state(), any_state(), any_state())
    ) {
        let prefer = merge3(&base, &ours, &theirs, MergeSide::Theirs);
        let mut conflicts = Vec::new();
        let one_by_one = merge_by(&base.into(), &ours, &theirs, &mut |conflict| {
            conflicts.push(conflict.clone());
            match (&conflict.field, &conflict.theirs) {
                (Some(_), their) => ConflictResolution::Value(their.clone().unwrap_or_default()),
                (None, _) => ConflictResolution::Side(MergeSide::Theirs),
            }
        });
        prop_assert_eq!(conflicts.len(), prefer.conflicts.len());
        prop_assert_eq!(one_by_one, prefer);
    }

    #[test]
    fn equal_ancestors_count_as_one_and_differing_ancestors_give_conflicts(
        (base, one, other, ours) in (any_state(), any_state(), any_state(), any_state())
    ) {
        let same = AncestorState::from(one.clone()).with(Some(&base.clone().into()), &one);
        prop_assert_eq!(&same, &AncestorState::from(one.clone()));
        for known in [Some(AncestorState::from(base)), None] {
            // A side may have the value of either ancestor. Where the ancestors differ, no value
            // counts as unchanged.
            let both = AncestorState::from(one.clone()).with(known.as_ref(), &other);
            let merge = merge_by(&both, &one, &other, &mut |_| ConflictResolution::Side(MergeSide::Theirs));
            if known.is_none() {
                let mut conflict_keys: Vec<_> = merge.conflicts.iter().map(|one| one.key.clone()).collect();
                conflict_keys.dedup();
                let differing: Vec<_> =
                    compare(&one, &other).into_iter().map(|change| change.key).collect();
                let only_times = |key: &Key| {
                    let value = |state: &ClaimMap| state.get(key).map(|one| one.value.clone());
                    value(&one) == value(&other)
                };
                for key in differing {
                    prop_assert!(conflict_keys.contains(&key) || only_times(&key), "{key} was guessed");
                }
            }
            let alike = merge_by(&both, &ours, &ours, &mut |_| ConflictResolution::Side(MergeSide::Ours));
            prop_assert_eq!(alike.state, ours.clone());
        }
    }
}

#[test]
fn a_claim_that_one_side_removed_and_the_other_refers_to_is_a_conflict() {
    let base = state(&[(Kind::Hypothesis, "H1", "{}"), (Kind::Hypothesis, "H2", "{}")]);
    let ours = state(&[(Kind::Hypothesis, "H2", "{}")]);
    let mut theirs = base.clone();
    theirs.extend(state(&[
        (Kind::Evidence, "E1", r#"{"hypothesis": "H1"}"#),
        (Kind::Belief, "B1", r#"{"evidence": ["E1"]}"#),
    ]));
    let merge = merge3(&base, &ours, &theirs, MergeSide::Ours);
    assert_eq!(merge.state, ours);
    let conflict = ClaimConflict {
        key: Key::new(Kind::Hypothesis, "H1"),
        field: None,
        base: Some(json("{}")),
        ours: None,
        theirs: Some(json("{}")),
        // The belief is removed together with its evidence.
        needed_by: vec![Key::new(Kind::Evidence, "E1"), Key::new(Kind::Belief, "B1")],
    };
    assert_eq!(merge.conflicts, [conflict]);
    assert_eq!(merge3(&base, &ours, &theirs, MergeSide::Theirs).state, theirs);
}

#[test]
fn only_differing_bytes_are_differences() {
    let old = [(1, &b"same"[..]), (2, b"old"), (4, b"gone")];
    let new = [(1, &b"same"[..]), (2, b"new"), (3, b"come")];
    let found: Vec<_> = differences(old, new, |old, new| old == new).collect();
    assert_eq!(
        found,
        [
            (2, Some(&b"old"[..]), Some(&b"new"[..])),
            (3, None, Some(b"come")),
            (4, Some(b"gone"), None),
        ]
    );
}

#[test]
fn describe_gives_the_changes_of_fields_in_order() {
    let old = state(&[
        (Kind::Hypothesis, "H1", r#"{"status": "active", "confidence": 0.4, "tags": ["a"]}"#),
        (
            Kind::Hypothesis,
            "H2",
            r#"{"x": {"kept": 1, "gone": 2, "deep": {"n": 1}}, "y": {"a.b": 1}}"#,
        ),
        (Kind::Note, "n1", r#"{"description": "old"}"#),
    ]);
    let new = state(&[
        (
            Kind::Hypothesis,
            "H1",
            r#"{"status": "rejected", "confidence": 0.1, "tags": ["a", "b"]}"#,
        ),
        (
            Kind::Hypothesis,
            "H2",
            r#"{"x": {"kept": 1, "deep": {"n": 2}}, "y": {"a.b": 2}, "reason": "r"}"#,
        ),
        (Kind::Gap, "g1", r#"{"status": "open"}"#),
    ]);
    let typed = describe(&compare(&old, &new));
    assert_eq!(
        serde_json::to_value(&typed).unwrap(),
        serde_json::json!([
            {"kind": "hypothesis", "id": "H1", "change": "confidence_changed",
             "field": "confidence", "old": 0.4, "new": 0.1},
            {"kind": "hypothesis", "id": "H1", "change": "status_changed",
             "field": "status", "old": "active", "new": "rejected"},
            {"kind": "hypothesis", "id": "H1", "change": "updated",
             "field": "tags", "old": ["a"], "new": ["a", "b"]},
            {"kind": "hypothesis", "id": "H2", "change": "updated",
             "field": "reason", "old": null, "new": "r"},
            {"kind": "hypothesis", "id": "H2", "change": "updated",
             "field": "x.deep.n", "old": 1, "new": 2},
            {"kind": "hypothesis", "id": "H2", "change": "updated",
             "field": "x.gone", "old": 2, "new": null},
            {"kind": "hypothesis", "id": "H2", "change": "updated",
             "field": "y", "old": {"a.b": 1}, "new": {"a.b": 2}},
            {"kind": "gap", "id": "g1", "change": "added", "new": {"status": "open"}},
            {"kind": "note", "id": "n1", "change": "removed", "old": {"description": "old"}},
        ])
    );
}

#[test]
fn describe_says_that_a_claim_was_removed_and_added_again() {
    let old = state(&[(Kind::Note, "n1", "{}")]);
    let mut new = old.clone();
    for entry in new.values_mut() {
        entry.added_at = Timestamp::from_micros(2);
    }
    let typed = describe(&compare(&old, &new));
    assert_eq!(typed.len(), 1);
    assert_eq!(typed[0].field.as_deref(), Some("added_at"));
    assert_eq!(typed[0].new, Some("1970-01-01T00:00:00.000002Z".into()));
}

#[test]
fn describe_facts_takes_the_newest_version_in_both_directions() {
    let before = [
        fact(Kind::Task, "t1", 1, r#"{"status": "pending"}"#),
        fact(Kind::Command, "c1", 2, r#"{"command": "make"}"#),
    ];
    let after = [
        fact(Kind::Command, "c2", 9, r#"{"command": "ls"}"#),
        fact(Kind::Task, "t1", 8, r#"{"status": "completed"}"#),
        fact(Kind::Task, "t1", 5, r#"{"status": "in_progress"}"#),
        fact(Kind::Task, "t1", 1, r#"{"status": "pending"}"#),
        fact(Kind::Command, "c1", 2, r#"{"command": "make"}"#),
    ];
    assert_eq!(
        serde_json::to_value(describe_facts(&before, &after)).unwrap(),
        serde_json::json!([
            {"kind": "command", "id": "c2", "change": "added", "new": {"command": "ls"}},
            {"kind": "task", "id": "t1", "change": "updated", "field": "status",
             "old": "pending", "new": "completed"},
        ])
    );
    let back = describe_facts(&after, &before);
    assert_eq!(back[0].change, ChangeKind::Removed);
    assert_eq!(back[1].new, Some("pending".into()));
}

#[test]
fn summary_says_the_changes_in_one_sentence() {
    let old = state(&[
        (Kind::Hypothesis, "H1", r#"{"confidence": 0.4}"#),
        (Kind::Hypothesis, "H3", r#"{"status": "active"}"#),
        (Kind::Belief, "b1", r#"{"description": "x"}"#),
        (Kind::Belief, "b2", r#"{"description": "x"}"#),
        (Kind::Gap, "g1", r#"{"status": "open"}"#),
        (Kind::Gap, "g2", "{}"),
        (Kind::Note, "n1", "{}"),
    ]);
    let new = state(&[
        (Kind::Hypothesis, "H1", r#"{"confidence": 0.82, "tags": ["hot"]}"#),
        (Kind::Hypothesis, "H3", r#"{"status": "rejected", "reason": "r"}"#),
        (Kind::Hypothesis, "H4", "{}"),
        (Kind::Hypothesis, "H5", "{}"),
        (Kind::Evidence, "e1", "{}"),
        (Kind::Belief, "b1", r#"{"description": "x", "in_doubt": true, "doubt_reason": "r"}"#),
        (Kind::Belief, "b2", r#"{"description": "y"}"#),
        (Kind::Gap, "g1", r#"{"status": "filled"}"#),
        (Kind::Gap, "g2", r#"{"status": "filled"}"#),
    ]);
    let mut typed = describe(&compare(&old, &new));
    let facts = [fact(Kind::Command, "c1", 1, "{}"), fact(Kind::Command, "c2", 1, "{}")];
    typed.extend(describe_facts([], &facts));
    assert_eq!(
        summary(&typed, Some(4_800_000_000)),
        "2 hypotheses added, H3 rejected, confidence of H1 0.40 → 0.82, \
         1 piece of evidence added, 1 belief put in doubt, 1 belief updated, 2 gaps filled, \
         1 note removed, 2 commands; 1 h 20 min later"
    );
    assert_eq!(summary(&[], None), "no changes");
    for (micros, words) in [
        (0, "at the same time"),
        (900, "less than 1 s later"),
        (-59_000_000, "59 s earlier"),
        (61_000_000, "1 min 1 s later"),
        (3_600_000_000, "1 h later"),
        (90_000_000_000, "1 d 1 h later"),
    ] {
        assert_eq!(summary(&[], Some(micros)), format!("no changes; {words}"));
    }
}

#[test]
fn summary_counts_many_changes() {
    let ids = ["H1", "H2", "H3", "H4"];
    let of = |text: &str| state(&ids.map(|id| (Kind::Hypothesis, id, text)));
    let old = of(r#"{"status": "active", "confidence": 0.5}"#);
    let typed = describe(&compare(&old, &of(r#"{"status": "under_test"}"#)));
    assert_eq!(
        summary(&typed, None),
        "4 hypotheses under test, confidence of 4 hypotheses changed"
    );
}

#[test]
fn merge_takes_fields_from_both_sides_and_reports_conflicts() {
    let base = state(&[
        (Kind::Hypothesis, "H1", r#"{"status": "active", "confidence": 0.5}"#),
        (Kind::Note, "n1", r#"{"description": "x"}"#),
    ]);
    let ours = state(&[(Kind::Hypothesis, "H1", r#"{"status": "confirmed", "confidence": 0.5}"#)]);
    let theirs = state(&[
        (Kind::Hypothesis, "H1", r#"{"status": "rejected", "confidence": 0.9}"#),
        (Kind::Note, "n1", r#"{"description": "y"}"#),
    ]);
    let merge = merge3(&base, &ours, &theirs, MergeSide::Ours);
    assert_eq!(
        merge.state,
        state(&[(Kind::Hypothesis, "H1", r#"{"status": "confirmed", "confidence": 0.9}"#)])
    );
    assert_eq!(
        merge.conflicts,
        [
            ClaimConflict {
                key: Key::new(Kind::Hypothesis, "H1"),
                field: Some("status".to_owned()),
                base: Some("active".into()),
                ours: Some("confirmed".into()),
                theirs: Some("rejected".into()),
                needed_by: Vec::new(),
            },
            ClaimConflict {
                key: Key::new(Kind::Note, "n1"),
                field: None,
                base: Some(json(r#"{"description": "x"}"#)),
                ours: None,
                theirs: Some(json(r#"{"description": "y"}"#)),
                needed_by: Vec::new(),
            },
        ]
    );
    let theirs_first = merge3(&base, &ours, &theirs, MergeSide::Theirs).state;
    assert_eq!(theirs_first, theirs);
}

/// Generates the strengths of some evidence.
fn any_strengths() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-0.6..0.6_f64, 1..3)
}

/// Returns a state with the hypothesis H1 and evidence for it whose ids begin with a letter.
fn weighed(confidence: f64, evidence: &[(char, &[f64])]) -> ClaimMap {
    let mut state = state(&[(Kind::Hypothesis, "H1", "{}")]);
    let hypothesis = state.get_mut(&Key::new(Kind::Hypothesis, "H1")).unwrap();
    hypothesis.value = Value::from([("confidence", confidence.into())]);
    for (letter, strengths) in evidence {
        for (at, strength) in strengths.iter().enumerate() {
            let key = Key::new(Kind::Evidence, format!("{letter}{at}"));
            let fields = [("hypothesis", "H1".into()), ("strength", (*strength).into())];
            state.insert(key, ClaimEntry { value: Value::from(fields), ..entry("{}") });
        }
    }
    state
}

/// Returns the confidence after evidence of these strengths, from the definition: strengths add up
/// in the logarithm of the odds.
fn after(confidence: f64, strengths: &[f64]) -> f64 {
    let odds = confidence / (1.0 - confidence) * 9.0_f64.powf(strengths.iter().sum());
    odds / (1.0 + odds)
}

proptest! {
    /// The evidence of both sides counts once, in either direction of the merge.
    #[test]
    fn a_merged_confidence_is_computed_from_the_evidence_of_both_sides(
        (start, ours, theirs) in (0.3..0.7_f64, any_strengths(), any_strengths())
    ) {
        let all = after(after(start, &ours), &theirs);
        // At the bounds of confidence, the order of evidence matters.
        prop_assume!((MIN_CONFIDENCE..=MAX_CONFIDENCE).contains(&all));
        let base = weighed(start, &[]);
        let one = weighed(after(start, &ours), &[('a', &ours)]);
        let other = weighed(after(start, &theirs), &[('b', &theirs)]);
        let merge = merge3(&base, &one, &other, MergeSide::Ours);
        prop_assert_eq!(&merge.conflicts, &[]);
        let key = Key::new(Kind::Hypothesis, "H1");
        let confidence = |state: &ClaimMap| {
            state[&key].value.field("confidence").and_then(Value::as_f64).unwrap()
        };
        prop_assert!((confidence(&merge.state) - all).abs() < 1e-9);
        prop_assert_eq!(&merge3(&base, &other, &one, MergeSide::Ours).state, &merge.state);
        prop_assert_eq!(&merge3(&base, &merge.state, &other, MergeSide::Ours).state, &merge.state);
        // One side also set the confidence itself.
        let set = weighed(0.5, &[('a', &ours)]);
        let merge = merge3(&base, &set, &other, MergeSide::Ours);
        if (after(start, &ours) - 0.5).abs() > 1e-6 {
            prop_assert!((confidence(&merge.state) - after(0.5, &theirs)).abs() < 1e-9);
            prop_assert_eq!(&merge.conflicts, &[]);
        }
        // Both sides set the confidence themselves.
        let both = weighed(0.8, &[('b', &theirs)]);
        let merge = merge3(&base, &set, &both, MergeSide::Ours);
        let is_explained = [&ours, &theirs].iter().zip([0.5, 0.8]).any(|(strengths, set)| {
            (after(start, strengths) - set).abs() < 1e-6
        });
        prop_assert_eq!(merge.conflicts.is_empty(), is_explained);
    }
}

/// Regression: if both sides had the same confidence, the evidence of one side did not count.
#[test]
fn equal_confidences_from_different_evidence_are_combined_in_a_merge() {
    let side = |letter| weighed(after(0.5, &[0.5]), &[(letter, &[0.5])]);
    let merge = merge3(&weighed(0.5, &[]), &side('a'), &side('b'), MergeSide::Ours);
    let value = &merge.state[&Key::new(Kind::Hypothesis, "H1")].value;
    let confidence = value.field("confidence").and_then(Value::as_f64).unwrap();
    assert!((confidence - 0.9).abs() < 1e-9, "{confidence}");
    // The same evidence on both sides counts once.
    let alike = merge3(&weighed(0.5, &[]), &side('a'), &side('a'), MergeSide::Ours);
    assert_eq!(alike.state, side('a'));
}

/// If the sides disagree about the evidence itself, that must be settled first.
#[test]
fn a_confidence_is_in_conflict_as_long_as_its_evidence_is() {
    let strong = weighed(after(0.5, &[0.6]), &[('a', &[0.6])]);
    let weak = weighed(after(0.5, &[0.2]), &[('a', &[0.2])]);
    let merge = merge3(&weighed(0.5, &[]), &strong, &weak, MergeSide::Theirs);
    let fields: Vec<_> = merge.conflicts.iter().filter_map(|one| one.field.as_deref()).collect();
    assert_eq!(fields, ["confidence", "strength"]);
    assert_eq!(merge.state, weak);
}

#[test]
fn the_glossary_has_every_word_for_a_change() {
    let page = include_str!("../../docs/glossary.md");
    for word in ChangeKind::WORDS {
        assert_eq!(ChangeKind::from_word(word).map(ChangeKind::word), Some(*word));
        assert!(page.contains(&format!("`{word}`")), "not in docs/glossary.md: {word}");
    }
}
