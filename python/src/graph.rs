//! The class `Graphs`: the threads of a graph, for `forge_store.langgraph`.

#![expect(clippy::needless_pass_by_value, reason = "arguments from Python arrive as values")]

use crate::error::invalid;
use crate::handle::StoreHandle;
use crate::store::Store;
use crate::watch::detached;
use forge_store::Timestamp;
use forge_store::error::Error;
use forge_systems::graph::{
    ForkPolicy, GraphStore, KeepStrategy, NewChannel, NewStep, NewValue, PendingWrite, PutOutcome,
    SharedBytes, StepAddress, StepNotes, StoredStep, TypedBytes,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value from the framework's serialiser: the word for its encoding, and its bytes.
type TypedArgument = (String, PyBackedBytes);

/// A value that is returned to Python, in the same form.
type TypedResult = (String, Py<PyBytes>);

/// A channel: name, version, whether it was written to, whether it has a value, and the value if it
/// is given.
type ChannelArgument = (String, String, bool, bool, Option<TypedArgument>);

/// The notes of a checkpoint: message, source, step, run, checkpoint of the root graph, and the
/// channels whose values are computed from writes.
type NotesArgument =
    (String, Option<String>, Option<i64>, Option<String>, Option<String>, Vec<String>);

/// The result of a put: the branch and whether it begins with the checkpoint, if that was written;
/// and the names of the channels whose values are needed.
type PutResult = (Option<(String, bool)>, Vec<String>);

/// A pending write: task, channel, value.
type WriteResult = (String, String, TypedResult);

/// A checkpoint: namespace, id, parent, head, metadata, values of channels, pending writes.
type StepResult = (
    String,
    String,
    Option<String>,
    TypedResult,
    TypedResult,
    Vec<(String, TypedResult)>,
    Vec<WriteResult>,
);

/// The history of a channel: its writes, each with its task, and its seed.
type HistoryResult = (Vec<(String, TypedResult)>, Option<TypedResult>);

/// The threads of a graph in a store.
#[pyclass(frozen, module = "forge_store._forge")]
pub(crate) struct Graphs(Arc<StoreHandle>);

impl Graphs {
    /// Runs `work` on the graph's threads without the GIL, so that other Python threads can run.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&GraphStore, Timestamp) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let graphs = self.0.graphs(py)?;
        detached(py, || work(&graphs, Timestamp::now()))
    }
}

#[pymethods]
impl Graphs {
    #[new]
    fn new(store: &Store) -> Self {
        Self(Arc::clone(&store.handle))
    }

    /// Puts a checkpoint. Returns the branch and whether it begins with the checkpoint; or, without
    /// having written anything, the names of the channels whose values are needed. Returns neither
    /// if the checkpoint would begin a branch and `refuse_fork` is set.
    #[expect(clippy::too_many_arguments, reason = "they are what a checkpoint consists of")]
    fn put(
        &self,
        py: Python<'_>,
        thread: String,
        namespace: String,
        id: String,
        parent: Option<String>,
        head: TypedArgument,
        metadata: TypedArgument,
        channels: Vec<ChannelArgument>,
        notes: NotesArgument,
        refuse_fork: bool,
    ) -> PyResult<PutResult> {
        let (message, source, step, run_id, root, delta) = notes;
        let notes = StepNotes { message, source, step, run_id, root, delta };
        let fork = if refuse_fork { ForkPolicy::Refuse } else { ForkPolicy::Branch };
        let outcome = self.run(py, move |graphs, now| {
            let channels = channels.into_iter().map(|(name, version, is_new, is_there, value)| {
                let value = match value {
                    Some(value) => NewValue::Given(typed(value)),
                    None if is_there => NewValue::Held,
                    None => NewValue::None,
                };
                NewChannel { name, version, is_new, value }
            });
            let channels = channels.collect();
            let (head, metadata) = (typed(head), typed(metadata));
            let new =
                NewStep { thread, namespace, id, parent, head, metadata, channels, notes, fork };
            graphs.put(now, &new)
        })?;
        Ok(match outcome {
            PutOutcome::Written { branch, is_fork } => (Some((branch, is_fork)), Vec::new()),
            PutOutcome::NeedsValues(names) => (None, names),
            PutOutcome::WouldFork => (None, Vec::new()),
        })
    }

    /// Records the writes of a task after a checkpoint, each with its slot, channel and value.
    #[expect(clippy::too_many_arguments, reason = "they are what a write consists of")]
    fn put_writes(
        &self,
        py: Python<'_>,
        thread: String,
        namespace: String,
        id: String,
        task: String,
        path: String,
        writes: Vec<(i64, String, TypedArgument)>,
    ) -> PyResult<()> {
        self.run(py, move |graphs, now| {
            let writes = writes.into_iter().map(|(slot, channel, value)| PendingWrite {
                task: task.clone(),
                path: path.clone(),
                slot,
                channel,
                value: typed(value),
            });
            let writes: Vec<PendingWrite> = writes.collect();
            let address = StepAddress { thread, namespace, id };
            graphs.put_writes(now, &address, (&task, &path), &writes)
        })
    }

    /// Returns a checkpoint; without an id, the latest one of the namespace.
    #[pyo3(signature = (thread, namespace, id=None))]
    fn get(
        &self,
        py: Python<'_>,
        thread: &str,
        namespace: &str,
        id: Option<&str>,
    ) -> PyResult<Option<StepResult>> {
        let found = self.run(py, |graphs, _| graphs.get(thread, namespace, id))?;
        Ok(found.map(|step| step_result(py, step)))
    }

    /// Returns thread, namespace and id of checkpoints, the greatest ids first.
    #[pyo3(signature = (thread=None, namespace=None, id=None, before=None))]
    fn find(
        &self,
        py: Python<'_>,
        thread: Option<&str>,
        namespace: Option<&str>,
        id: Option<&str>,
        before: Option<&str>,
    ) -> PyResult<Vec<(String, String, String)>> {
        let found = self.run(py, |graphs, _| graphs.list(thread, namespace, id, before))?;
        Ok(found.into_iter().map(|one| (one.thread, one.namespace, one.id)).collect())
    }

    /// Returns the histories of channels before a checkpoint.
    fn history(
        &self,
        py: Python<'_>,
        thread: &str,
        namespace: &str,
        id: Option<&str>,
        channels: Vec<String>,
    ) -> PyResult<BTreeMap<String, HistoryResult>> {
        let found = self.run(py, |graphs, _| graphs.history(thread, namespace, id, &channels))?;
        let histories = found.into_iter().map(|(name, history)| {
            let writes = history.writes.into_iter();
            let writes = writes.map(|write| (write.task, typed_result(py, &write.value)));
            let seed = history.seed.as_ref().map(|seed| typed_result(py, seed));
            (name, (writes.collect(), seed))
        });
        Ok(histories.collect())
    }

    /// Drops a thread.
    fn delete_thread(&self, py: Python<'_>, thread: &str) -> PyResult<()> {
        self.run(py, |graphs, now| graphs.delete_thread(now, thread))
    }

    /// Drops the checkpoints of runs, in all threads.
    fn delete_for_runs(&self, py: Python<'_>, runs: Vec<String>) -> PyResult<()> {
        self.run(py, |graphs, now| graphs.delete_for_runs(now, &runs))
    }

    /// Copies a thread within the store, or to the store of `other`.
    #[pyo3(signature = (source, target, other=None))]
    fn copy_thread(
        &self,
        py: Python<'_>,
        source: &str,
        target: &str,
        other: Option<&Self>,
    ) -> PyResult<()> {
        let other = other.map(|other| other.0.graphs(py)).transpose()?;
        self.run(py, |graphs, now| match &other {
            Some(other) => graphs.copy_thread_to(now, source, other, target),
            None => graphs.copy_thread(now, source, target),
        })
    }

    /// Drops threads, or all their checkpoints but the latest of each namespace.
    fn prune(&self, py: Python<'_>, threads: Vec<String>, strategy: &str) -> PyResult<()> {
        let keep = match strategy {
            "keep_latest" => KeepStrategy::Latest,
            "delete" => KeepStrategy::Nothing,
            other => {
                let what = format!("the strategy '{other}' is unknown");
                return Err(invalid(py, &what, "use 'keep_latest' or 'delete'"));
            }
        };
        self.run(py, |graphs, now| graphs.prune(now, &threads, keep))
    }
}

fn typed((encoding, bytes): TypedArgument) -> TypedBytes {
    TypedBytes { encoding, bytes: SharedBytes::new(bytes) }
}

fn typed_result(py: Python<'_>, value: &TypedBytes) -> TypedResult {
    (value.encoding.clone(), PyBytes::new(py, &value.bytes).unbind())
}

fn step_result(py: Python<'_>, step: StoredStep) -> StepResult {
    let channels = step.channels.iter();
    let channels = channels.map(|(name, value)| (name.clone(), typed_result(py, value)));
    let writes = step.writes.into_iter();
    let writes = writes.map(|one| (one.task, one.channel, typed_result(py, &one.value)));
    (
        step.namespace,
        step.id,
        step.parent,
        typed_result(py, &step.head),
        typed_result(py, &step.metadata),
        channels.collect(),
        writes.collect(),
    )
}
