//! Complete histories with damage, as it happens between two programs.

use super::generate::{FORMS, messages, turns, word};
use super::sanitise::check_or_refuse;
use forge_systems::thread::{OrphanPolicy, SanitizedHistory};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

/// A way to damage a history.
#[derive(Clone, Debug)]
enum Damage {
    Drop(Index),
    Repeat(Index),
    Swap(Index, Index),
    /// Another id, or none, in one of the id fields.
    Id(Index, Index, u8),
    /// Arguments as a text instead of an object, or the other way round.
    Arguments(Index),
    /// One field of any object is removed.
    Field(Index, Index),
    /// The identifying fields of any object are removed: its role, its type, its ids and its name.
    Labels(Index, Index),
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<Index>;
    prop_oneof![
        place().prop_map(Damage::Drop),
        place().prop_map(Damage::Repeat),
        (place(), place()).prop_map(|(one, other)| Damage::Swap(one, other)),
        (place(), place(), 0..5_u8).prop_map(|(at, which, id)| Damage::Id(at, which, id)),
        place().prop_map(Damage::Arguments),
        (place(), place()).prop_map(|(at, which)| Damage::Field(at, which)),
        (place(), place()).prop_map(|(at, which)| Damage::Labels(at, which)),
        place().prop_map(Damage::Cut),
    ]
}

const IDS: [&str; 7] =
    ["id", "call_id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "approvalId"];
const LABELS: [&str; 4] = ["role", "type", "name", "toolName"];
const ARGUMENTS: [&str; 3] = ["arguments", "input", "args"];

/// Collects the pointers of the values in a message that satisfy a condition.
fn places(value: &Value, at: &str, holds: &dyn Fn(&str, &Value) -> bool, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let here = format!("{at}/{name}");
                if holds(name, inner) {
                    found.push(here.clone());
                }
                places(inner, &here, holds, found);
            }
        }
        Value::Array(items) => {
            for (place, inner) in items.iter().enumerate() {
                places(inner, &format!("{at}/{place}"), holds, found);
            }
        }
        _ => {}
    }
}

fn found(message: &Value, holds: &dyn Fn(&str, &Value) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    places(message, "", holds, &mut found);
    found
}

fn remove(message: &mut Value, pointer: &str) {
    if let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(fields)) = message.pointer_mut(parent)
    {
        fields.remove(name);
    }
}

fn apply(history: &mut Vec<Value>, damage: &Damage) {
    if history.is_empty() {
        return;
    }
    let count = history.len();
    match damage {
        Damage::Drop(at) => drop(history.remove(at.index(count))),
        Damage::Repeat(at) => history.insert(at.index(count), history[at.index(count)].clone()),
        Damage::Swap(one, other) => history.swap(one.index(count), other.index(count)),
        Damage::Cut(at) => history.truncate(at.index(count) + 1),
        Damage::Id(at, which, id) => {
            let message = &mut history[at.index(count)];
            let ids = found(message, &|name, inner| IDS.contains(&name) && inner.is_string());
            let Some(pointer) = ids.get(which.index(ids.len().max(1))) else { return };
            let new = match id {
                0 => json!("functions.f:0"),
                1 => json!("x".repeat(70)),
                2 => json!("call_1_0"),
                3 => json!(""),
                _ => return remove(message, pointer),
            };
            if let Some(place) = message.pointer_mut(pointer) {
                *place = new;
            }
        }
        Damage::Arguments(at) => {
            let message = &mut history[at.index(count)];
            for pointer in found(message, &|name, _| ARGUMENTS.contains(&name)) {
                let Some(place) = message.pointer_mut(&pointer) else { continue };
                *place = match &*place {
                    Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
                    other => Value::from(other.to_string()),
                };
            }
        }
        Damage::Labels(at, which) => take_labels(&mut history[at.index(count)], *which),
        Damage::Field(at, which) => {
            let message = &mut history[at.index(count)];
            let fields = found(message, &|_, inner| !inner.to_string().contains("<result "));
            if let Some(pointer) = fields.get(which.index(fields.len().max(1))) {
                remove(message, &pointer.clone());
            }
        }
    }
}

/// Removes the identifying fields of one object in a message, and the field around a result that
/// identifies it.
fn take_labels(message: &mut Value, which: Index) {
    let mut objects = found(message, &|_, inner| inner.is_object());
    let lists = found(message, &|_, inner| inner.is_array());
    for list in lists {
        let count = message.pointer(&list).and_then(Value::as_array).map_or(0, Vec::len);
        objects.extend((0..count).map(|place| format!("{list}/{place}")));
    }
    objects.push(String::new());
    let Some(pointer) = objects.get(which.index(objects.len())) else { return };
    let Some(place) = message.pointer_mut(pointer) else { return };
    const WRAPPERS: [&str; 3] = ["toolResult", "functionResponse", "function_response"];
    if let Some(inner) = WRAPPERS.iter().find_map(|name| place.get(*name)).cloned() {
        *place = inner;
    }
    if let Value::Object(fields) = place {
        fields.retain(|name, _| !IDS.contains(&name.as_str()) && !LABELS.contains(&name.as_str()));
    }
}

/// Sanitises a history, and checks that its provider accepts the result, that the text of every
/// result is kept, and that sanitising again changes nothing. Returns `None` if the history is
/// refused.
fn judged(
    form: &str,
    history: &[Value],
    orphans: OrphanPolicy,
) -> Result<Option<SanitizedHistory>, TestCaseError> {
    Ok(check_or_refuse(form, history, orphans)?.ok())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: super::cases(512), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_history_is_corrected_without_losing_a_result(
        form in prop::sample::select(&FORMS[..]),
        steps in turns(),
        unique: bool,
        remove: bool,
        damage in prop::collection::vec(damage(), 0..5),
    ) {
        let mut history = messages(form, &steps, unique);
        for one in &damage {
            apply(&mut history, one);
        }
        let orphans = if remove { OrphanPolicy::Remove } else { OrphanPolicy::Answer };
        let done = judged(form, &history, orphans)?;
        if let Some(done) = done.filter(|_| damage.is_empty() && unique) {
            prop_assert_eq!(&done.actions, &[], "{} is whole", word(form));
        }
    }
}
