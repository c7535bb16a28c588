//! Loads items: completely, or with an error that names what is missing.

use super::model::{RunItem, StepOutput, output_id};
use super::plan::{input_key, missing, read_input, run_key};
use super::{RunState, WorkflowRun};
use crate::split;
use forge_store::error::{Error, Result};
use forge_store::model::{ClaimEntry, Key, Kind, Value};
use forge_store::store::{ResolvedMoment, StateAt};
use std::collections::BTreeMap;

/// An item with the outputs of all its finished steps.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedItem {
    /// The position of the item.
    pub item: RunItem,
    /// Its outputs, one for each finished step, in order of completion.
    pub outputs: Vec<StepOutput>,
}

impl LoadedItem {
    /// Returns the output of a step.
    #[must_use]
    pub fn output(&self, step: &str) -> Option<&StepOutput> {
        self.outputs.iter().find(|output| output.step == step)
    }

    /// Returns whether this step is finished, so that it must not be done again.
    #[must_use]
    pub fn is_done(&self, step: &str) -> bool {
        self.output(step).is_some()
    }
}

/// Where a run resumes: the latest state of every item.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumedRun {
    /// The state of the run as a whole.
    pub run: RunState,
    /// Every item with all its outputs, sorted by name.
    pub items: Vec<LoadedItem>,
}

impl ResumedRun {
    /// Returns the items that have steps left.
    pub fn active(&self) -> impl Iterator<Item = &LoadedItem> {
        self.items.iter().filter(|one| one.item.is_active())
    }
}

fn damaged(run: &str, item: &str, missing: &[&str]) -> Error {
    Error::Corrupt {
        what: format!("the item '{item}' of the run '{run}'"),
        source: format!(
            "it has finished these steps, but their outputs are missing: {}; use 'forge run forget' to repeat these steps",
            missing.join(", ")
        )
        .into(),
    }
}

impl WorkflowRun {
    /// Returns the current state of the run as a whole.
    pub fn state(&self) -> Result<RunState> {
        let held = self.session.claims(&self.session.head()?, &[run_key(), input_key()])?;
        let mut held = held.into_iter().map(|entry| entry.map(|entry| entry.value));
        let (run, input) = (held.next().flatten(), held.next().flatten());
        Ok(state_of(run.as_ref(), input.as_ref()))
    }

    /// Returns the current position of an item, without its outputs.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn item(&self, item: &str) -> Result<RunItem> {
        self.item_at(&self.session.head()?, item)
    }

    fn item_at(&self, moment: &ResolvedMoment, item: &str) -> Result<RunItem> {
        let held = self.session.claim(moment, &Key::new(Kind::Item, item))?;
        let held = held
            .ok_or_else(|| Error::not_found("item", format!("{item}' in the run '{}", self.key)))?;
        Ok(RunItem::read(item, &held.value))
    }

    /// Returns an item with all its current outputs.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Corrupt`] with the names of the steps if the output of a
    /// finished step is missing: an item is never loaded in part.
    pub fn load(&self, item: &str) -> Result<LoadedItem> {
        self.load_at(&self.session.head()?, item)
    }

    /// Returns an item like [`WorkflowRun::load`], as it was at a moment.
    pub fn load_at(&self, moment: &ResolvedMoment, item: &str) -> Result<LoadedItem> {
        let item = self.item_at(moment, item)?;
        let outputs = self.outputs_of_steps(moment, &item.item, &item.steps())?;
        let gone: Vec<&str> = outputs
            .iter()
            .zip(item.steps())
            .filter(|(output, _)| output.is_none())
            .map(|(_, step)| step)
            .collect();
        if !gone.is_empty() {
            return Err(damaged(&self.key, &item.item, &gone));
        }
        Ok(LoadedItem { outputs: outputs.into_iter().flatten().collect(), item })
    }

    /// Returns the current output of a step of an item. The cost does not depend on the size of the
    /// run.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn output(&self, item: &str, step: &str) -> Result<StepOutput> {
        self.output_at(&self.session.head()?, item, step)
    }

    /// Returns an output like [`WorkflowRun::output`], as it was at a moment.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn output_at(&self, moment: &ResolvedMoment, item: &str, step: &str) -> Result<StepOutput> {
        let found = self.outputs_of_steps(moment, item, &[step])?.pop().flatten();
        found.ok_or_else(|| missing(&self.key, item, step))
    }

    /// Returns the current outputs of some steps of an item; `None` where there is none.
    pub fn outputs(&self, item: &str, steps: &[&str]) -> Result<Vec<Option<StepOutput>>> {
        self.outputs_of_steps(&self.session.head()?, item, steps)
    }

    /// Returns whether a step of an item is finished.
    pub fn exists(&self, item: &str, step: &str) -> Result<bool> {
        Ok(self.outputs(item, &[step])?.iter().any(Option::is_some))
    }

    fn outputs_of_steps(
        &self,
        moment: &ResolvedMoment,
        item: &str,
        steps: &[&str],
    ) -> Result<Vec<Option<StepOutput>>> {
        let keys = steps
            .iter()
            .map(|step| Ok(Key::new(Kind::Output, output_id(item, step)?)))
            .collect::<Result<Vec<_>>>()?;
        let found = self.session.claims(moment, &keys)?;
        let read = |(entry, step): (Option<ClaimEntry>, &&str)| {
            entry.map(|entry| StepOutput::read(item, step, &entry.value, entry.added_at))
        };
        Ok(found.into_iter().zip(steps).map(read).collect())
    }

    /// Returns the latest state of every item with all outputs, from which an interrupted run
    /// resumes. Steps that have an output are finished and must not be done again.
    ///
    /// # Errors
    /// [`Error::Corrupt`], as [`WorkflowRun::load`].
    pub fn resume(&self) -> Result<ResumedRun> {
        self.resume_at(&self.session.head()?)
    }

    /// Returns the items like [`WorkflowRun::resume`], as they were at a moment.
    pub fn resume_at(&self, moment: &ResolvedMoment) -> Result<ResumedRun> {
        let state = self.session.state(moment)?;
        let [run, input] = [run_key(), input_key()].map(|key| state.claim(Kind::Run, &key.id));
        let run = state_of(run?.as_ref(), input?.as_ref());
        let mut items: BTreeMap<String, LoadedItem> = BTreeMap::new();
        for item in items_of(&state)? {
            items.insert(item.item.clone(), LoadedItem { item, outputs: Vec::new() });
        }
        // The outputs of an item are adjacent.
        let mut current: Option<(String, &mut LoadedItem)> = None;
        for entry in state.claims().entries_of_kind(Kind::Output) {
            let (key, entry) = entry?;
            let Some((name, step)) = key.id.split_once('/') else { continue };
            if current.as_ref().is_none_or(|(known, _)| known != name) {
                let Some([whole]) = split::<1>(name) else { continue };
                current = items.get_mut(&whole).map(|item| (name.to_owned(), item));
            }
            if let (Some((_, loaded)), Some([step])) = (&mut current, split::<1>(step)) {
                let item = loaded.item.item.clone();
                loaded.outputs.push(StepOutput::read(&item, &step, &entry.value, entry.added_at));
            }
        }
        let mut items: Vec<LoadedItem> = items.into_values().collect();
        for loaded in &mut items {
            loaded.arrange(&self.key)?;
        }
        Ok(ResumedRun { run, items })
    }
}

impl LoadedItem {
    /// Sorts the outputs by the item's finished steps, and removes all others.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a finished step has no output.
    fn arrange(&mut self, run: &str) -> Result<()> {
        let steps = self.item.steps();
        let place = |step: &str| steps.iter().position(|one| *one == step);
        self.outputs.retain(|output| place(&output.step).is_some());
        self.outputs.sort_by_key(|output| place(&output.step));
        if self.outputs.len() < steps.len() {
            let is_gone = |step: &&&str| !self.outputs.iter().any(|one| one.step == ***step);
            let gone: Vec<&str> = steps.iter().filter(is_gone).copied().collect();
            return Err(damaged(run, &self.item.item, &gone));
        }
        Ok(())
    }
}

/// Combines the state of a run with its input.
fn state_of(run: Option<&Value>, input: Option<&Value>) -> RunState {
    let state = run.map(RunState::read).unwrap_or_default();
    RunState { input: input.and_then(read_input), ..state }
}

/// Returns the items of a state, sorted by name.
pub(super) fn items_of(state: &StateAt) -> Result<Vec<RunItem>> {
    let read = |entry: Result<(Key, ClaimEntry)>| {
        let (key, ClaimEntry { value, .. }): (Key, ClaimEntry) = entry?;
        Ok(RunItem::read(&key.id, &value))
    };
    state.claims().entries_of_kind(Kind::Item).map(read).collect()
}

pub(super) fn field_text(value: Option<&Value>, name: &str) -> Option<String> {
    match value?.field(name)? {
        Value::Text(text) => Some(text.clone()),
        Value::Null | Value::Bytes(_) | Value::List(_) | Value::Map(_) => None,
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
    }
}
