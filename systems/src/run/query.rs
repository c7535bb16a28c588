//! Queries about runs.

use super::load::{field_text, items_of};
use super::model::{RunItem, RunState, RunStatus, StepOutput};
use super::template::{self, RenderResult};
use super::{LoadedItem, WorkflowRun};
use crate::{last_event, newest_first, split};
use forge_store::error::{Error, Result};
use forge_store::model::{Key, Kind, RevisionId, SessionKind, Timestamp};
use forge_store::store::{ResolvedMoment, Store};
use serde::Serialize;

/// A summary of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// The name of the run.
    pub key: String,
    /// The state of the run as a whole.
    pub state: RunState,
    /// When something was last recorded.
    pub last_event: Timestamp,
}

impl RunSummary {
    /// Returns whether the run is still running, and began more than `older_than_micros`
    /// microseconds before `now`. If its start is not known, the last event counts instead.
    #[must_use]
    pub fn is_incomplete(&self, now: Timestamp, older_than_micros: i64) -> bool {
        let began = self.state.started_at.unwrap_or(self.last_event);
        self.state.status == RunStatus::Running && now.micros_since(began) > older_than_micros
    }
}

/// A change of an item or an output, with the revision that made it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunHistoryEntry<T> {
    /// The sequence number of the revision.
    pub sequence: u64,
    /// The id of the revision.
    pub revision: RevisionId,
    /// When the revision was made.
    pub time: Timestamp,
    /// The verb that made the revision.
    pub verb: String,
    /// The new value; `None` if the revision removed it.
    pub value: Option<T>,
}

impl<T> RunHistoryEntry<T> {
    /// Converts the value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> RunHistoryEntry<U> {
        let Self { sequence, revision, time, verb, value } = self;
        RunHistoryEntry { sequence, revision, time, verb, value: value.map(convert) }
    }
}

impl WorkflowRun {
    /// Lists all runs, the one with the latest event first.
    pub fn all(store: &Store) -> Result<Vec<Self>> {
        let runs = newest_first(store, SessionKind::Run)?.into_iter();
        Ok(runs.map(|one| Self { session: one.session, key: one.name }).collect())
    }

    /// Lists summaries of all runs, in the order of [`WorkflowRun::all`].
    pub fn list(store: &Store) -> Result<Vec<RunSummary>> {
        let runs = newest_first(store, SessionKind::Run)?.into_iter();
        runs.map(|one| {
            let last_event = last_event(&one);
            let run = Self { session: one.session, key: one.name };
            Ok(RunSummary { state: run.state()?, last_event, key: run.key })
        })
        .collect()
    }

    /// Returns a summary of the run.
    pub fn summary(&self) -> Result<RunSummary> {
        let kept = self.session.summary()?;
        let last_event = kept.last_event.unwrap_or(kept.info.started_at);
        Ok(RunSummary { key: self.key.clone(), state: self.state()?, last_event })
    }

    /// Returns the runs that are incomplete ([`RunSummary::is_incomplete`]), in the order in which
    /// they began.
    pub fn incomplete(
        store: &Store,
        now: Timestamp,
        older_than_micros: i64,
    ) -> Result<Vec<RunSummary>> {
        let mut found = Self::list(store)?;
        found.retain(|run| run.is_incomplete(now, older_than_micros));
        found.sort_by_key(|run| run.state.started_at);
        Ok(found)
    }

    /// Returns all items as they were at a moment, sorted by name.
    pub fn items_at(&self, moment: &ResolvedMoment) -> Result<Vec<RunItem>> {
        items_of(&self.session.state(moment)?)
    }

    /// Returns the active items that are at a step now. An item is at its next step or, if that is
    /// not known, at its last one.
    pub fn at_step(&self, step: &str) -> Result<Vec<RunItem>> {
        self.items_where(|item| item.is_active() && item.current_step() == Some(step))
    }

    /// Returns the items whose last recorded step has this position in the workflow.
    pub fn at_order(&self, order: i64) -> Result<Vec<RunItem>> {
        self.items_where(|item| item.order == Some(order))
    }

    fn items_where(&self, wanted: impl Fn(&RunItem) -> bool) -> Result<Vec<RunItem>> {
        let mut items = self.items_at(&self.session.head()?)?;
        items.retain(wanted);
        Ok(items)
    }

    /// Returns every change of an item, the newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing was ever recorded about the item.
    pub fn history(&self, item: &str) -> Result<Vec<RunHistoryEntry<RunItem>>> {
        self.changes_of(&Key::new(Kind::Item, item), |entry| RunItem::read(item, &entry.value))
    }

    /// Returns every change of the output of a step of an item, the newest first: each output that
    /// was recorded, and each removal of one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there was never an output; [`Error::Invalid`] if a name is not valid.
    pub fn output_history(
        &self,
        item: &str,
        step: &str,
    ) -> Result<Vec<RunHistoryEntry<StepOutput>>> {
        let key = Key::new(Kind::Output, super::output_id(item, step)?);
        self.changes_of(&key, |entry| StepOutput::read(item, step, &entry.value, entry.added_at))
    }

    /// Returns every change of a claim, the newest first.
    fn changes_of<T>(
        &self,
        key: &Key,
        read: impl Fn(&forge_store::model::ClaimEntry) -> T,
    ) -> Result<Vec<RunHistoryEntry<T>>> {
        let history = self.session.history(&self.session.head()?, key)?.into_iter();
        let entry = |one: forge_store::store::HistoryEntry| RunHistoryEntry {
            sequence: one.revision.sequence,
            revision: one.revision.id,
            time: one.revision.time,
            verb: one.revision.verb,
            value: one.change.new.as_ref().map(&read),
        };
        Ok(history.map(entry).collect())
    }

    /// Fills the placeholders of a template with the outputs and data of an item and the input of
    /// its run. The inner result is an error if a placeholder has no value or would remain in the
    /// text: see [`template::render`].
    pub fn render(&self, template: &str, item: &str) -> Result<RenderResult> {
        let loaded = self.load(item)?;
        let state = self.state()?;
        Ok(template::render(template, &|name| self.value_of(&state, &loaded, name)))
    }

    fn value_of(&self, state: &RunState, loaded: &LoadedItem, name: &str) -> Option<String> {
        if let Some(step) = template::step_of(name, &|step| loaded.is_done(step)) {
            return loaded.output(&step).map(|output| output.content.clone());
        }
        if let Some(base) = name.strip_suffix("_output") {
            let named = |output: &&StepOutput| output.name.as_deref() == Some(base);
            return loaded.outputs.iter().rfind(named).map(|output| output.content.clone());
        }
        match name {
            "item" => Some(loaded.item.item.clone()),
            "run" => Some(self.key.clone()),
            "input" => state.input.as_ref().and_then(|input| input.as_text().map(str::to_owned)),
            other => field_text(loaded.item.data.as_ref(), other)
                .or_else(|| field_text(state.input.as_ref(), other)),
        }
    }

    /// Returns every current output of every item, sorted by the id of the output, for an audit.
    pub fn all_outputs(&self) -> Result<Vec<StepOutput>> {
        let state = self.session.state(&self.session.head()?)?;
        let mut found = Vec::new();
        for entry in state.claims().entries_of_kind(Kind::Output) {
            let (key, entry) = entry?;
            let [item, step] = split::<2>(&key.id).ok_or_else(|| Error::Corrupt {
                what: format!("the {key}"),
                source: "its id is not an item and a step".into(),
            })?;
            found.push(StepOutput::read(&item, &step, &entry.value, entry.added_at));
        }
        Ok(found)
    }
}
