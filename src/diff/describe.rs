//! Typed descriptions of changes, as `diff --json` shows them.

use super::differences;
use crate::model::claim::vocabulary;
use crate::model::{EntryChange, Fact, FieldMap, Kind, TextRef, Value};
use serde::Serialize;
use std::collections::BTreeMap;

vocabulary! {
    /// What happened to an entity or to one of its fields.
    ChangeKind, "change" {
        /// The entity was added.
        Added = "added",
        /// The entity was removed.
        Removed = "removed",
        /// Its field `status` changed.
        StatusChanged = "status_changed",
        /// Its field `confidence` changed.
        ConfidenceChanged = "confidence_changed",
        /// Another field changed; for facts, any field.
        Updated = "updated",
    }
}

/// One described change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypedChange {
    /// The kind of the entity.
    pub kind: Kind,
    /// The id of the entity.
    pub id: String,
    /// The sort of change.
    pub change: ChangeKind,
    /// The changed field, as a dotted path if nested; absent when the entity was added or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The old value: the field (null if it was absent), or all fields of a removed entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// The new value: the field (null if it is absent), or all fields of an added entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// Describes changes of claims: one change for an added or removed claim, else one for each field
/// that differs, in the order of the changes and then of the field names.
///
/// Maps are compared field by field (`env.PATH`), but as a whole if a name in them contains a dot;
/// lists are compared as a whole. Top-level fields `status` and `confidence` have their own sort of
/// change, whatever the kind. A claim that was removed and added again with the same fields has a
/// changed `added_at`.
#[must_use]
pub fn describe(changes: &[EntryChange]) -> Vec<TypedChange> {
    let mut typed = Vec::new();
    for EntryChange { key, old, new } in changes {
        let entity = DescribedEntity { kind: key.kind, id: &key.id };
        match (old, new) {
            (None, None) => {}
            (None, Some(new)) => typed.push(entity.added(&new.value)),
            (Some(old), None) => typed.push(entity.removed(&old.value)),
            (Some(old), Some(new)) => {
                if old.added_at != new.added_at {
                    let [old, new] = [old, new].map(|entry| entry.added_at.to_string().into());
                    typed.push(entity.field(ChangeKind::Updated, "added_at".to_owned(), old, new));
                }
                for (field, old, new) in fields(&old.value, &new.value) {
                    let what = match &*field {
                        "status" => ChangeKind::StatusChanged,
                        "confidence" => ChangeKind::ConfidenceChanged,
                        _ => ChangeKind::Updated,
                    };
                    typed.push(entity.field(what, field, old, new));
                }
            }
        }
    }
    typed
}

/// Describes the facts that differ between two moments: `added`, `removed` (if the new moment is
/// the earlier one), or one `updated` for each field (including `status`), by kind and time.
///
/// Takes the facts of both moments, or only those that may differ, in any order. If a list contains
/// several versions of one kind and id, the one with the greatest (`at`, place) counts.
#[must_use]
pub fn describe_facts<'a>(
    old: impl IntoIterator<Item = &'a Fact>,
    new: impl IntoIterator<Item = &'a Fact>,
) -> Vec<TypedChange> {
    let mut typed = Vec::new();
    let same = |old: &&Fact, new: &&Fact| old.value == new.value;
    let mut differing: Vec<_> = differences(newest(old), newest(new), same).collect();
    differing.sort_by_key(|((kind, _), old, new)| {
        (*kind, new.or(*old).map(|fact| (fact.at, fact.place)))
    });
    for ((kind, id), old, new) in differing {
        let entity = DescribedEntity { kind, id };
        match (old, new) {
            (None, None) => {}
            (None, Some(new)) => typed.push(entity.added(&new.value)),
            (Some(old), None) => typed.push(entity.removed(&old.value)),
            (Some(old), Some(new)) => {
                for (field, old, new) in fields(&old.value, &new.value) {
                    typed.push(entity.field(ChangeKind::Updated, field, old, new));
                }
            }
        }
    }
    typed
}

fn newest<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> BTreeMap<(Kind, &'a str), &'a Fact> {
    let mut newest: BTreeMap<_, &Fact> = BTreeMap::new();
    for fact in facts {
        let shown = newest.entry((fact.kind, fact.id.as_str())).or_insert(fact);
        if (fact.at, fact.place) > (shown.at, shown.place) {
            *shown = fact;
        }
    }
    newest
}

/// The entity whose changes are described.
#[derive(Clone, Copy)]
struct DescribedEntity<'a> {
    kind: Kind,
    id: &'a str,
}

impl DescribedEntity<'_> {
    fn added(self, value: &Value) -> TypedChange {
        let new = Some(value.clone());
        TypedChange { new, ..self.bare(ChangeKind::Added) }
    }

    fn removed(self, value: &Value) -> TypedChange {
        let old = Some(value.clone());
        TypedChange { old, ..self.bare(ChangeKind::Removed) }
    }

    fn field(self, what: ChangeKind, field: String, old: Value, new: Value) -> TypedChange {
        TypedChange { field: Some(field), old: Some(old), new: Some(new), ..self.bare(what) }
    }

    fn bare(self, change: ChangeKind) -> TypedChange {
        let Self { kind, id } = self;
        TypedChange { kind, id: id.to_owned(), change, field: None, old: None, new: None }
    }
}

/// Returns the fields in which two values differ, with the old and the new value, null where
/// absent.
fn fields(old: &Value, new: &Value) -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    match (old, new) {
        (Value::Map(old), Value::Map(new)) => {
            for (name, old, new) in differences(old, new, |old, new| old == new) {
                descend(name.clone(), old, new, &mut found);
            }
        }
        // Only an unchecked value is not a map.
        (old, new) if old == new => {}
        (old, new) => found.push((String::new(), old.clone(), new.clone())),
    }
    found
}

fn descend(
    path: String,
    old: Option<&Value>,
    new: Option<&Value>,
    found: &mut Vec<(String, Value, Value)>,
) {
    match (old, new) {
        (Some(Value::Map(old)), Some(Value::Map(new))) if is_open(old) && is_open(new) => {
            for (name, old, new) in differences(old, new, |old, new| old == new) {
                descend(format!("{path}.{name}"), old, new, found);
            }
        }
        (old, new) => {
            let [old, new] = [old, new].map(|value| value.cloned().unwrap_or_default());
            found.push((path, old, new));
        }
    }
}

/// Returns whether the fields of a map have unambiguous dotted paths and independent meanings.
fn is_open(fields: &FieldMap) -> bool {
    !fields.contains_key(TextRef::FIELD)
        && fields.keys().all(|name| !name.is_empty() && !name.contains('.'))
}
