//! Computes the claim changes for starting and ending a run, and for recording and clearing steps.
//! All functions are pure.

use super::model::{ItemStatus, RunItem, RunState, RunStatus};
use forge_store::error::{Error, Result};
use forge_store::model::claim::check_id;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::ClaimChange;
use std::collections::BTreeMap;

/// The field with the name of an item.
const ITEM: &str = "item";
/// The id of the claim with the input of the run, and the field of this claim that contains it.
const INPUT: &str = "input";

/// What an item does after a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NextStep {
    /// The caller did not specify it.
    #[default]
    Unknown,
    /// The item continues with this step.
    Step(String),
    /// Nothing: the item is done.
    Terminal,
}

/// A finished step of an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepRecord {
    /// The name of the item.
    pub item: String,
    /// The name of the step.
    pub step: String,
    /// The output of the step.
    pub output: String,
    /// What the item does next.
    pub next: NextStep,
    /// The position of the step in the workflow. The default is the number of steps that the item
    /// has done, including this one.
    pub order: Option<i64>,
    /// The display name of the step.
    pub name: Option<String>,
    /// The new data of the item; `None` leaves them unchanged.
    pub data: Option<Value>,
    /// The number of the table row that the step was imported from.
    pub row: Option<i64>,
}

/// Returns the keys of the item and of the output of a record.
pub(super) fn keys_of(record: &StepRecord) -> Result<[Key; 2]> {
    let output = super::output_id(&record.item, &record.step)?;
    Ok([Key::new(Kind::Item, record.item.clone()), Key::new(Kind::Output, output)])
}

/// An item named by an input, and its data.
pub(super) type RegisteredItem = (String, Option<Value>);

/// Returns the items that an input names. If an object in the list has an `item`, every element
/// must have one. The other fields of an element become the data of its item.
pub(super) fn items_of_input(input: &Value) -> Result<Vec<RegisteredItem>> {
    let list = input.as_list().unwrap_or_default();
    if !list.iter().any(|one| one.field(ITEM).is_some()) {
        return Ok(Vec::new());
    }
    let item = |(number, one): (usize, &Value)| {
        let name = match one.field(ITEM) {
            Some(Value::Text(text)) => text.clone(),
            Some(Value::Int(number)) => number.to_string(),
            _ => {
                return Err(Error::invalid(format!(
                    "element {number} of the input has no 'item': add one, a text or a whole number"
                )));
            }
        };
        check_id(&name).map_err(|error| {
            Error::invalid(format!("the item of element {number} of the input: {error}"))
        })?;
        let mut rest = one.as_map().cloned().unwrap_or_default();
        rest.remove(ITEM);
        Ok((name, (!rest.is_empty()).then_some(Value::Map(rest))))
    };
    (1..).zip(list).map(item).collect()
}

/// Returns the change of the claim with the state of the run; `None` if it stays the same.
fn run_change(old: Option<&Value>, new: &RunState) -> Option<ClaimChange> {
    let new = new.to_value();
    (old != Some(&new)).then(|| ClaimChange::put(run_key(), new))
}

/// Returns the key of the claim with the state of the run.
pub(super) fn run_key() -> Key {
    Key::new(Kind::Run, "run")
}

/// Returns the key of the claim with the input of the run.
pub(super) fn input_key() -> Key {
    Key::new(Kind::Run, INPUT)
}

/// Returns the contents of the input claim.
pub(super) fn read_input(value: &Value) -> Option<Value> {
    value.field(INPUT).cloned()
}

/// Returns the changes that start or continue a run. `known` has the claims of the run, of its
/// input and of the registered items.
pub(super) fn start(
    known: &[Option<Value>],
    input: Option<&Value>,
    registered: &[RegisteredItem],
    now: Timestamp,
) -> Vec<ClaimChange> {
    let (own, items) = match known {
        [own, _, items @ ..] => (own.as_ref(), items),
        _ => (None, [].as_slice()),
    };
    let mut state = own.map(RunState::read).unwrap_or_default();
    state.status = RunStatus::Running;
    state.started_at = state.started_at.or(Some(now));
    (state.ended_at, state.error) = (None, None);
    let mut changes: BTreeMap<&str, ClaimChange> = BTreeMap::new();
    for ((item, data), _) in registered.iter().zip(items).filter(|(_, known)| known.is_none()) {
        let new = RunItem {
            item: item.clone(),
            data: data.clone(),
            recorded_at: Some(now),
            ..RunItem::default()
        };
        changes.insert(item, ClaimChange::put(Key::new(Kind::Item, item.clone()), new.to_value()));
    }
    state.items += i64::try_from(changes.len()).unwrap_or(i64::MAX);
    let given = input.map(|input| Value::from([(INPUT, input.clone())]));
    let given = given.map(|given| ClaimChange::put(input_key(), given));
    run_change(own, &state).into_iter().chain(given).chain(changes.into_values()).collect()
}

/// Returns the change that ends a run. A run that has ended in the same way keeps its end.
pub(super) fn end(
    old: Option<&Value>,
    status: RunStatus,
    error: Option<&str>,
    now: Timestamp,
) -> Vec<ClaimChange> {
    let known = old.map(RunState::read).unwrap_or_default();
    let mut state = known.clone();
    state.started_at = state.started_at.or(Some(now));
    state.status = status;
    state.error = error.map(str::to_owned);
    let same = (known.status, &known.error) == (state.status, &state.error);
    state.ended_at = known.ended_at.filter(|_| same).or(Some(now));
    run_change(old, &state).into_iter().collect()
}

/// The claims of a write, while records are applied to them one by one.
struct ClaimDraft {
    before: BTreeMap<Key, Option<Value>>,
    changes: BTreeMap<Key, ClaimChange>,
}

impl ClaimDraft {
    /// Returns the value of a claim, as changed so far.
    fn held(&self, key: &Key) -> Option<&Value> {
        match self.changes.get(key) {
            Some(change) => change.value.as_ref(),
            None => self.before.get(key).and_then(Option::as_ref),
        }
    }

    fn put(&mut self, key: Key, value: Value, own_time: Option<Timestamp>) {
        let change = ClaimChange::put(key.clone(), value).with_added_at(own_time);
        self.changes.insert(key, change);
    }
}

/// Returns the changes that record finished steps, with the new state of the run. `known` has the
/// claims with these keys; one of them is the claim of the run.
pub(super) fn record(
    keys: &[Key],
    known: &[Option<Value>],
    records: &[StepRecord],
    now: Timestamp,
) -> Result<Vec<ClaimChange>> {
    let before: BTreeMap<Key, Option<Value>> =
        keys.iter().cloned().zip(known.iter().cloned()).collect();
    let mut draft = ClaimDraft { before, changes: BTreeMap::new() };
    let old_run = draft.held(&run_key()).cloned();
    let mut state = old_run.as_ref().map(RunState::read).unwrap_or_default();
    for record in records {
        record_step(&mut draft, &mut state, record, now)?;
    }
    if draft.changes.is_empty() {
        return Ok(Vec::new());
    }
    state.started_at = state.started_at.or(Some(now));
    update_run_status(&mut state, now);
    let changes = draft.changes.into_values();
    Ok(run_change(old_run.as_ref(), &state).into_iter().chain(changes).collect())
}

/// Sets the status of the run: finished if all its items are done, else running.
fn update_run_status(state: &mut RunState, now: Timestamp) {
    state.error = None;
    if state.items > 0 && state.terminal == state.items {
        if state.status != RunStatus::Finished {
            state.ended_at = Some(now);
        }
        state.status = RunStatus::Finished;
    } else {
        (state.status, state.ended_at) = (RunStatus::Running, None);
    }
}

/// Applies the record of one step to the draft and to the state of the run.
fn record_step(
    draft: &mut ClaimDraft,
    state: &mut RunState,
    record: &StepRecord,
    now: Timestamp,
) -> Result<()> {
    let [item_key, output_key] = keys_of(record)?;
    let held = draft.held(&item_key);
    let known = held.map(|value| RunItem::read(&record.item, value));
    let mut item = known
        .clone()
        .unwrap_or_else(|| RunItem { item: record.item.clone(), ..RunItem::default() });
    if item.path.last() != Some(&record.step) {
        item.path.push(record.step.clone());
    }
    let done = i64::try_from(item.path.len()).unwrap_or(i64::MAX);
    let is_repeated = item.step.as_ref() == Some(&record.step);
    item.order = record.order.or(item.order.filter(|_| is_repeated)).or(Some(done));
    item.name = record.name.clone().or(item.name.filter(|_| is_repeated));
    item.step = Some(record.step.clone());
    (item.status, item.next) = match &record.next {
        NextStep::Terminal => (ItemStatus::Terminal, None),
        NextStep::Step(next) => {
            check_id(next).map_err(|error| Error::invalid(error.to_string()))?;
            (ItemStatus::Active, Some(next.clone()))
        }
        // A step that is recorded again without a next step keeps the known next step or end.
        NextStep::Unknown if is_repeated => (item.status, item.next),
        NextStep::Unknown => (ItemStatus::Active, None),
    };
    if let Some(data) = &record.data {
        item.data = Some(data.clone());
    }
    item.rows.extend(record.row);
    let output = Value::from([
        (ITEM, record.item.clone().into()),
        ("step", record.step.clone().into()),
        ("name", item.name.clone().into()),
        ("order", item.order.into()),
        ("content", record.output.clone().into()),
    ]);
    if known.as_ref() == Some(&item) && draft.held(&output_key) == Some(&output) {
        return Ok(());
    }
    let was_terminal = known.as_ref().is_some_and(|known| !known.is_active());
    state.items += i64::from(known.is_none());
    state.terminal += i64::from(!item.is_active()) - i64::from(was_terminal);
    item.recorded_at = Some(now);
    draft.put(item_key, item.to_value(), None);
    draft.put(output_key, output, Some(now));
    Ok(())
}

/// Returns the changes that remove the outputs of these steps of an item, so that the steps are
/// done again. `known` has the claims of the run, of the item and of the outputs.
pub(super) fn forget(
    run: &str,
    item_name: &str,
    steps: &[String],
    known: &[Option<Value>],
    now: Timestamp,
) -> Result<Vec<ClaimChange>> {
    let [own, item, outputs @ ..] = known else { return Ok(Vec::new()) };
    let held = item
        .as_ref()
        .ok_or_else(|| Error::not_found("item", format!("{item_name}' in the run '{run}")))?;
    if let Some((step, _)) = steps.iter().zip(outputs).find(|(_, output)| output.is_none()) {
        return Err(missing(run, item_name, step));
    }
    let mut item = RunItem::read(item_name, held);
    let first = item.path.iter().find(|step| steps.contains(step)).or(steps.first()).cloned();
    item.path.retain(|step| !steps.contains(step));
    let was_terminal = !item.is_active();
    item.status = ItemStatus::Active;
    if item.step.as_ref().is_some_and(|step| steps.contains(step)) {
        item.step = item.path.last().cloned();
        item.name = None;
        item.order = item.step.as_ref().map(|_| i64::try_from(item.path.len()).unwrap_or(i64::MAX));
    }
    item.next = first;
    item.recorded_at = Some(now);
    let mut state = own.as_ref().map(RunState::read).unwrap_or_default();
    state.terminal -= i64::from(was_terminal);
    update_run_status(&mut state, now);
    let mut changes = Vec::with_capacity(steps.len() + 2);
    changes.extend(run_change(own.as_ref(), &state));
    changes.push(ClaimChange::put(Key::new(Kind::Item, item_name), item.to_value()));
    for step in steps {
        let id = super::output_id(item_name, step)?;
        changes.push(ClaimChange::remove(Key::new(Kind::Output, id)));
    }
    Ok(changes)
}

/// Returns the error for a missing output. The error puts quotes around the whole name, so the name
/// here has only the inner quotes.
pub(super) fn missing(run: &str, item: &str, step: &str) -> Error {
    Error::not_found("output", format!("{step}' of the item '{item}' in the run '{run}"))
}
