//! Properties of diffs and of three-way merges.

use arbitrary::{Arbitrary, Result, Unstructured};
use forge_store::diff::{
    ClaimMap, ConflictResolution, MergeOutcome, MergeSide, apply, compare, invert, merge_by,
};
use forge_store::model::{ClaimEntry, Key, Kind, Timestamp, Value};

fn value(bytes: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    Ok(match bytes.int_in_range(0..=if depth < 3 { 7 } else { 5 })? {
        0 => Value::Null,
        1 => Value::Bool(bool::arbitrary(bytes)?),
        2 => Value::Int(bytes.int_in_range(-2..=2)?),
        3 => Value::UInt(u64::MAX),
        4 => Value::Float(f64::from(bytes.int_in_range(-2..=2_i8)?)),
        5 => Value::Text(["", "a", "b"][bytes.choose_index(3)?].to_owned()),
        6 => Value::List(
            (0..bytes.int_in_range(0..=2)?)
                .map(|_| value(bytes, depth + 1))
                .collect::<Result<_>>()?,
        ),
        _ => fields(bytes, depth)?,
    })
}

fn fields(bytes: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let mut fields = forge_store::model::FieldMap::new();
    for _ in 0..bytes.int_in_range(0..=3)? {
        fields.insert(["x", "y", "z"][bytes.choose_index(3)?].to_owned(), value(bytes, depth + 1)?);
    }
    Ok(Value::Map(fields))
}

fn state(bytes: &mut Unstructured<'_>) -> Result<ClaimMap> {
    let mut state = ClaimMap::new();
    for _ in 0..bytes.int_in_range(0..=4)? {
        let kind = [Kind::Item, Kind::Output][bytes.choose_index(2)?];
        let key = Key::new(kind, ["1", "2", "3"][bytes.choose_index(3)?]);
        let added_at = Timestamp::from_micros(bytes.int_in_range(0..=2)?);
        state.insert(key, ClaimEntry { added_at, value: fields(bytes, 0)? });
    }
    Ok(state)
}

fn merge3(base: &ClaimMap, ours: &ClaimMap, theirs: &ClaimMap, prefer: MergeSide) -> MergeOutcome {
    merge_by(&base.clone().into(), ours, theirs, &mut |_| ConflictResolution::Side(prefer))
}

/// A diff leads from one state to the other and back. A merge gives the same state and the same
/// number of conflicts if the sides are exchanged.
pub fn merge(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let Ok([base, ours, theirs]) = (|| {
        Ok::<_, arbitrary::Error>([state(&mut bytes)?, state(&mut bytes)?, state(&mut bytes)?])
    })() else {
        return;
    };
    let changes = compare(&base, &ours);
    assert!(changes.iter().all(|change| base.get(&change.key) == change.old.as_ref()));
    let mut found = base.clone();
    apply(&mut found, &changes);
    assert_eq!(found, ours);
    apply(&mut found, &invert(changes));
    assert_eq!(found, base);

    let merged = merge3(&base, &ours, &theirs, MergeSide::Ours);
    let mirrored = merge3(&base, &theirs, &ours, MergeSide::Theirs);
    assert_eq!(merged.state, mirrored.state);
    assert_eq!(merged.conflicts.len(), mirrored.conflicts.len());
    assert_eq!(merge3(&base, &ours, &ours, MergeSide::Ours).state, ours);
    assert_eq!(merge3(&base, &ours, &base, MergeSide::Theirs).state, ours);
    assert_eq!(merge3(&base, &base, &theirs, MergeSide::Ours).state, theirs);
    let again = merge3(&base, &merged.state, &theirs, MergeSide::Ours);
    assert_eq!(again.state, merged.state, "merged twice is merged once");
    assert_eq!(merge3(&theirs, &merged.state, &theirs, MergeSide::Theirs).state, merged.state);
}
