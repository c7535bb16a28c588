//! Three-way merge by entity and field.

use super::{ClaimMap, differences};
use crate::model::claim::{Confidence, Evidence, references};
use crate::model::rule::{WeighedHypothesis, merged_confidence};
use crate::model::{ClaimEntry, FieldMap, Key, Kind, Value};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The side whose value is used where both changed the same thing differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeSide {
    /// The state that is merged into.
    Ours,
    /// The state that is merged from.
    Theirs,
}

/// A conflict: the same thing was changed differently on both sides, or removed on one and needed
/// on the other.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimConflict {
    /// The key of the claim.
    pub key: Key,
    /// The field that both changed; `None` for the claim as a whole (removed on one side, changed
    /// or needed on the other).
    pub field: Option<String>,
    /// The base value: the field, or all fields of the claim; `None` if it was absent.
    pub base: Option<Value>,
    /// Our value.
    pub ours: Option<Value>,
    /// Their value.
    pub theirs: Option<Value>,
    /// The claims that refer to this one and would have a dangling reference without it, sorted. If
    /// it stays removed, each of them takes its value from the side without it.
    pub needed_by: Vec<Key>,
}

/// How a conflict is settled.
#[derive(Clone, Debug, PartialEq)]
pub enum ConflictResolution {
    /// With the value of this side.
    Side(MergeSide),
    /// With this value of the field (null removes it), or these fields of the claim.
    Value(Value),
}

/// The result of a merge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergeOutcome {
    /// The merged state, with conflicts settled as requested.
    pub state: ClaimMap,
    /// The conflicts, sorted by key and field. The caller decides whether the state can be stored.
    pub conflicts: Vec<ClaimConflict>,
}

/// The merge base of two sides: one state, or the combination of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AncestorState {
    state: ClaimMap,
    /// The claims and fields about which several merge bases disagree: if the sides differ there,
    /// that is always a conflict.
    contested: BTreeSet<(Key, Option<String>)>,
}

impl From<ClaimMap> for AncestorState {
    fn from(state: ClaimMap) -> Self {
        Self { state, contested: BTreeSet::new() }
    }
}

impl AncestorState {
    /// Combines this with another merge base, where the two have `base` as their own merge base
    /// (`None`: unknown, so every difference is contested).
    #[must_use]
    pub fn with(mut self, base: Option<&Self>, other: &ClaimMap) -> Self {
        match base {
            Some(base) => {
                let mut merge = MergeOutcome::default();
                let sides = ThreeWayMerge { base, ours: &self.state, theirs: other };
                sides.merge(&mut merge, &mut |_| ConflictResolution::Side(MergeSide::Ours));
                let contested = merge.conflicts.into_iter().map(|one| (one.key, one.field));
                self.contested.extend(contested);
                self.state = merge.state;
            }
            None => {
                let differing = differences(&self.state, other, |a, b| a == b);
                self.contested.extend(differing.map(|(key, _, _)| (key.clone(), None)));
            }
        }
        self
    }
}

/// Merges the changes from `base` to `theirs` into `ours`.
///
/// A change on one side only is applied; an equal change on both sides is applied once. If both
/// sides changed (or added) a claim, its top-level fields are merged one by one. A confidence that
/// evidence explains is computed from the evidence of both ([`merged_confidence`]). A claim that
/// one side removed is a conflict as a whole if the other side changed it, or if a claim of the
/// other side newly refers to it. Conflicts are reported, and `settle` decides which value the
/// merged state has.
///
/// Laws (tested): merging a state with itself or with the base changes nothing; if `settle` always
/// takes one side, swapping the sides and that side gives the same state, and the same conflicts
/// with sides swapped; every change of either side is in the merged state or in a conflict; no
/// reference that was valid on its side dangles in the merged state.
#[must_use]
pub fn merge_by(
    base: &AncestorState,
    ours: &ClaimMap,
    theirs: &ClaimMap,
    settle: &mut dyn FnMut(&ClaimConflict) -> ConflictResolution,
) -> MergeOutcome {
    let mut merge = MergeOutcome::default();
    let sides = ThreeWayMerge { base, ours, theirs };
    let settled = sides.merge(&mut merge, settle);
    sides.hold_references(&mut merge, settled, settle);
    merge.conflicts.sort_by(|a, b| (&a.key, &a.field).cmp(&(&b.key, &b.field)));
    merge
}

/// Returns the references of the merged state, from a claim to a missing one, that dangle although
/// they were valid on the side they come from.
#[must_use]
pub fn dangling(ours: &ClaimMap, theirs: &ClaimMap, merged: &ClaimMap) -> Vec<(Key, Key)> {
    let mut found = Vec::new();
    for (from, entry) in merged {
        for to in references(from.kind, &entry.value) {
            let is_known = ours.contains_key(&to) || theirs.contains_key(&to);
            if merged.contains_key(&to) || !is_known {
                continue;
            }
            let failed_there = |side: &ClaimMap| {
                let refers = |own: &ClaimEntry| references(from.kind, &own.value).contains(&to);
                !side.contains_key(&to) && side.get(from).is_some_and(refers)
            };
            if !failed_there(ours) && !failed_there(theirs) {
                found.push((from.clone(), to));
            }
        }
    }
    found
}

type ThreeWayValues<'a, T> = (Option<&'a T>, Option<&'a T>, Option<&'a T>);

/// Returns the merged value if the sides do not conflict; else `None`. The sides of a contested
/// value conflict unless they are equal.
fn agreed<'a, T: PartialEq>(
    (base, ours, theirs): ThreeWayValues<'a, T>,
    is_contested: bool,
) -> Option<Option<&'a T>> {
    if theirs == ours || (theirs == base && !is_contested) {
        Some(ours)
    } else if ours == base && !is_contested {
        Some(theirs)
    } else {
        None
    }
}

/// The inputs of a merge.
#[derive(Clone, Copy)]
struct ThreeWayMerge<'a> {
    base: &'a AncestorState,
    ours: &'a ClaimMap,
    theirs: &'a ClaimMap,
}

/// The field of a hypothesis that evidence changes.
const CONFIDENCE: &str = "confidence";

/// Returns the confidence of a hypothesis in a state, with its evidence there; `None` if there is
/// no such hypothesis, or if its confidence is not valid.
fn weighed(state: &ClaimMap, id: &str) -> Option<WeighedHypothesis> {
    let hypothesis = state.get(&Key::new(Kind::Hypothesis, id))?;
    let confidence = match hypothesis.value.field(CONFIDENCE) {
        None => Confidence::EVEN,
        Some(stated) => Confidence::new(stated.as_f64()?)?,
    };
    let all = state.range(Key::new(Kind::Evidence, "")..);
    let strengths =
        all.take_while(|(key, _)| key.kind == Kind::Evidence).filter_map(|(key, of)| {
            let evidence = Evidence::from_value(&of.value).ok()?;
            let strength =
                evidence.strength.filter(|_| evidence.hypothesis.as_deref() == Some(id))?;
            Some((key.id.clone(), strength))
        });
    Some(WeighedHypothesis { confidence, strengths: strengths.collect() })
}

type ConflictResolver<'a> = &'a mut dyn FnMut(&ClaimConflict) -> ConflictResolution;

impl ThreeWayMerge<'_> {
    fn side_state(&self, side: MergeSide) -> &ClaimMap {
        match side {
            MergeSide::Ours => self.ours,
            MergeSide::Theirs => self.theirs,
        }
    }

    /// Merges claim by claim. Returns how the conflicts about whole claims were settled.
    fn merge(
        &self,
        merge: &mut MergeOutcome,
        settle: ConflictResolver<'_>,
    ) -> BTreeMap<Key, MergeSide> {
        let mut settled = BTreeMap::new();
        let keys: BTreeSet<&Key> =
            self.base.state.keys().chain(self.ours.keys()).chain(self.theirs.keys()).collect();
        for key in keys {
            if let Some(entry) = self.entry(key, &mut merge.conflicts, &mut settled, settle) {
                merge.state.insert(key.clone(), entry);
            }
        }
        settled
    }

    /// Returns the merged confidence of a hypothesis whose confidence both sides changed, if
    /// evidence explains the changes. Equal confidences are merged too: they can come from
    /// different evidence.
    fn confidence(&self, key: &Key, sides: ThreeWayValues<'_, ClaimEntry>) -> Option<Confidence> {
        let (base, ours, theirs) = sides;
        let stated = |entry: &ClaimEntry| entry.value.field(CONFIDENCE).cloned();
        let base = stated(base?);
        if key.kind != Kind::Hypothesis || stated(ours?) == base || stated(theirs?) == base {
            return None;
        }
        let weighed = |state: &ClaimMap| weighed(state, &key.id);
        let [base, ours, theirs] = [&self.base.state, self.ours, self.theirs].map(weighed);
        merged_confidence(&base?, &ours?, &theirs?)
    }

    fn conflict(&self, key: &Key) -> ClaimConflict {
        let value = |state: &ClaimMap| state.get(key).map(|entry| entry.value.clone());
        ClaimConflict {
            key: key.clone(),
            field: None,
            base: value(&self.base.state),
            ours: value(self.ours),
            theirs: value(self.theirs),
            needed_by: Vec::new(),
        }
    }

    /// Returns a claim as a whole, as its conflict was settled.
    fn whole(&self, key: &Key, by: ConflictResolution) -> Option<ClaimEntry> {
        match by {
            ConflictResolution::Side(side) => self.side_state(side).get(key).cloned(),
            ConflictResolution::Value(value) => {
                let known = [self.ours, self.theirs].into_iter().find_map(|side| side.get(key));
                known.map(|known| ClaimEntry {
                    added_at: known.added_at,
                    value: value.without_nulls(),
                })
            }
        }
    }

    fn entry(
        &self,
        key: &Key,
        conflicts: &mut Vec<ClaimConflict>,
        settled: &mut BTreeMap<Key, MergeSide>,
        settle: ConflictResolver<'_>,
    ) -> Option<ClaimEntry> {
        let sides = (self.base.state.get(key), self.ours.get(key), self.theirs.get(key));
        let from = (key.clone(), None);
        let is_contested = self.base.contested.contains(&from);
        let has_contested = is_contested
            || self.base.contested.range(from..).next().is_some_and(|(other, _)| other == key);
        let confidence = if has_contested { None } else { self.confidence(key, sides) };
        if confidence.is_none()
            && let Some(entry) = agreed(sides, has_contested)
        {
            return entry.cloned();
        }
        let (base, ours, theirs) = sides;
        let map =
            |entry: Option<&ClaimEntry>| entry.and_then(|entry| entry.value.as_map().cloned());
        let (Some(our), Some(their), Some(our_map), Some(their_map)) =
            (ours, theirs, map(ours), map(theirs))
        else {
            let conflict = self.conflict(key);
            let by = settle(&conflict);
            if let ConflictResolution::Side(side) = by {
                settled.insert(key.clone(), side);
            }
            conflicts.push(conflict);
            return self.whole(key, by);
        };
        let base_map = map(base).unwrap_or_default();
        let names: BTreeSet<&String> =
            base_map.keys().chain(our_map.keys()).chain(their_map.keys()).collect();
        let mut merged = FieldMap::new();
        for name in names {
            let (base, ours, theirs) = (base_map.get(name), our_map.get(name), their_map.get(name));
            let contested = (key.clone(), Some(name.clone()));
            let is_contested = is_contested || self.base.contested.contains(&contested);
            if let Some(confidence) = confidence.filter(|_| name == CONFIDENCE) {
                merged.insert(name.clone(), confidence.value().into());
                continue;
            }
            let field = match agreed((base, ours, theirs), is_contested) {
                Some(field) => field.cloned(),
                None => {
                    let conflict = ClaimConflict {
                        key: key.clone(),
                        field: Some(name.clone()),
                        base: base.cloned(),
                        ours: ours.cloned(),
                        theirs: theirs.cloned(),
                        needed_by: Vec::new(),
                    };
                    let by = settle(&conflict);
                    conflicts.push(conflict);
                    match by {
                        ConflictResolution::Side(MergeSide::Ours) => ours.cloned(),
                        ConflictResolution::Side(MergeSide::Theirs) => theirs.cloned(),
                        ConflictResolution::Value(Value::Null) => None,
                        ConflictResolution::Value(value) => Some(value),
                    }
                }
            };
            if let Some(field) = field {
                merged.insert(name.clone(), field);
            }
        }
        let times = (base.map(|base| &base.added_at), Some(&our.added_at), Some(&their.added_at));
        // If the claim was added on both sides, the earlier time counts.
        let earlier = our.added_at.min(their.added_at);
        let added_at = agreed(times, false).flatten().copied().unwrap_or(earlier);
        Some(ClaimEntry { added_at, value: Value::Map(merged) })
    }

    /// Reports a conflict if one side removed a claim that a claim of the other side needs. If it
    /// stays removed, the claims that need it take their values from the side without it.
    fn hold_references(
        &self,
        merge: &mut MergeOutcome,
        mut settled: BTreeMap<Key, MergeSide>,
        settle: ConflictResolver<'_>,
    ) {
        let mut roots: BTreeMap<Key, Key> = BTreeMap::new();
        // With one preference, each round reverts at least one more claim to that side, so no
        // reference dangles in the end. With individual choices one may; the caller must reject it.
        for _ in 0..=merge.state.len() + self.ours.len() + self.theirs.len() {
            let mut missing: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
            for (from, to) in dangling(self.ours, self.theirs, &merge.state) {
                missing.entry(to).or_default().push(from);
            }
            if missing.is_empty() {
                return;
            }
            for (to, from) in missing {
                let side = match settled.get(&to) {
                    Some(side) => *side,
                    None => {
                        let mut conflict = self.conflict(&to);
                        conflict.needed_by.clone_from(&from);
                        let by = settle(&conflict);
                        merge.conflicts.push(conflict);
                        match by {
                            ConflictResolution::Side(side) => side,
                            by @ ConflictResolution::Value(_) => {
                                merge.state.extend(self.whole(&to, by).map(|it| (to.clone(), it)));
                                continue;
                            }
                        }
                    }
                };
                settled.insert(to.clone(), side);
                // If `to` was removed because it needs another missing claim, the conflict about
                // that claim lists the claims that need `to`.
                let root = roots.get(&to).unwrap_or(&to).clone();
                let is_root = |one: &&mut ClaimConflict| one.key == root && one.field.is_none();
                if let Some(conflict) = merge.conflicts.iter_mut().find(is_root) {
                    conflict.needed_by.extend(from.iter().cloned());
                    conflict.needed_by.sort();
                    conflict.needed_by.dedup();
                }
                if let Some(entry) = self.side_state(side).get(&to) {
                    merge.state.insert(to, entry.clone());
                    continue;
                }
                for from in from {
                    match self.side_state(side).get(&from) {
                        Some(entry) => merge.state.insert(from.clone(), entry.clone()),
                        None => merge.state.remove(&from),
                    };
                    roots.insert(from.clone(), root.clone());
                    settled.insert(from, side);
                }
            }
        }
    }
}
