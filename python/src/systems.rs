//! The classes `Run`, `Progress`, `Program` and `Thread`: thin layers over the crate
//! `forge-systems`. Their Python side is `forge_store.systems`.

#![expect(clippy::needless_pass_by_value, reason = "arguments from Python arrive as values")]

use crate::handle::StoreHandle;
use crate::plain::{PlainValue, fields_from, plain_map, time_from};
use crate::store::Store;
use crate::watch::detached;
use forge_store::error::Error;
use forge_store::model::SessionKind;
use forge_store::model::time_grammar::parse_moment;
use forge_store::{Timestamp, Value, WriteContext};
use forge_systems::program::{CheckpointReference, Program};
use forge_systems::progress::{self, PipelineExecution, ProgressDocument, ProgressFault};
use forge_systems::progress::{ResumeDecision, ResumePoint};
use forge_systems::run::{CheckpointRow, LoadedItem, NextStep, RunStatus, StepRecord, WorkflowRun};
use forge_systems::thread::{AppendOptions, MessageForm, SanitizeOptions, Thread};
use forge_systems::{RowImport, join, write_or_begin};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A store, and the name of a run, execution, program or thread in it.
pub(crate) struct SystemKey {
    handle: Arc<StoreHandle>,
    key: String,
}

impl SystemKey {
    pub(crate) fn new(store: &Store, key: String) -> Self {
        Self { handle: Arc::clone(&store.handle), key }
    }

    pub(crate) fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&forge_store::Store, &str) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let store = self.handle.store(py)?;
        detached(py, || read(&store, &self.key))
    }

    pub(crate) fn write<T: Send>(
        &self,
        py: Python<'_>,
        verb: &str,
        write: impl FnOnce(&forge_store::Store, &str, &WriteContext) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.write_at(py, (verb, Timestamp::now()), write)
    }

    /// Writes as of a given time.
    fn write_at<T: Send>(
        &self,
        py: Python<'_>,
        (verb, time): (&str, Timestamp),
        write: impl FnOnce(&forge_store::Store, &str, &WriteContext) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let store = self.handle.writable(py)?;
        let context = WriteContext::asked(verb, time);
        detached(py, || write(&store, &self.key, &context))
    }
}

/// Returns what was opened; `None` if it has no write yet. It begins with its first write, so a
/// read before that finds nothing.
fn begun<T>(opened: Result<T, Error>) -> Result<Option<T>, Error> {
    match opened {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A workflow run.
#[pyclass(frozen, name = "Run", module = "forge_store._forge")]
pub(crate) struct NativeRun(SystemKey);

#[pymethods]
impl NativeRun {
    #[new]
    fn new(store: &Store, key: String) -> Self {
        Self(SystemKey::new(store, key))
    }

    #[pyo3(signature = (input=None))]
    fn start(&self, py: Python<'_>, input: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        // The input may be any value, so Python passes it in a dictionary with one field.
        let input = input.map(fields_from).transpose()?.and_then(|mut all| all.remove("input"));
        self.0.write(py, "run start", |store, key, context| {
            write_or_begin(store, SessionKind::Run, key, |store| {
                WorkflowRun::open_or_create(store, context, key)?
                    .start(context, input.as_ref())
                    .map(drop)
            })
        })
    }

    #[pyo3(signature = (item, step, output, next=None, terminal=false, order=None, name=None, data=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn record(
        &self,
        py: Python<'_>,
        item: String,
        step: String,
        output: String,
        next: Option<String>,
        terminal: bool,
        order: Option<i64>,
        name: Option<String>,
        data: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let next = next_step(next, terminal);
        let data = data.map(fields_from).transpose()?.map(Value::Map);
        let record = StepRecord { item, step, output, next, order, name, data, row: None };
        self.0.write(py, "run record", |store, key, context| {
            write_or_begin(store, SessionKind::Run, key, |store| {
                WorkflowRun::open_or_create(store, context, key)?.record(context, &record).map(drop)
            })
        })
    }

    /// Imports a row of a table of checkpoints, and returns what was done with it.
    #[expect(clippy::too_many_arguments, reason = "they are what a row consists of")]
    fn import_row(
        &self,
        py: Python<'_>,
        number: i64,
        time: &Bound<'_, PyAny>,
        address: (String, String),
        output: String,
        next: Option<String>,
        terminal: bool,
        order: Option<i64>,
        data: &Bound<'_, PyDict>,
        others: Vec<(String, String)>,
    ) -> PyResult<&'static str> {
        let next = next_step(next, terminal);
        let (data, (item, step)) = (Some(Value::Map(fields_from(data)?)), address);
        let record = StepRecord { item, step, output, next, order, data, ..StepRecord::default() };
        let row = CheckpointRow { number, record, others };
        let done = self.0.write_at(py, ("run import", time_from(time)?), |store, key, context| {
            WorkflowRun::import_row(store, context, key, &row)
        });
        done.map(RowImport::word)
    }

    #[pyo3(signature = (error=None))]
    fn end(&self, py: Python<'_>, error: Option<&str>) -> PyResult<()> {
        let status = if error.is_some() { RunStatus::Failed } else { RunStatus::Finished };
        self.0.write(py, "run end", |store, key, context| {
            WorkflowRun::open(store, key)?.end(context, status, error).map(drop)
        })
    }

    fn output(&self, py: Python<'_>, item: &str, step: &str) -> PyResult<String> {
        self.0.read(py, |store, key| Ok(WorkflowRun::open(store, key)?.output(item, step)?.content))
    }

    fn outputs(
        &self,
        py: Python<'_>,
        item: &str,
        steps: Vec<String>,
    ) -> PyResult<Vec<Option<String>>> {
        self.0.read(py, |store, key| {
            let Some(run) = begun(WorkflowRun::open(store, key))? else {
                return Ok(vec![None; steps.len()]);
            };
            let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
            let found = run.outputs(item, &steps)?.into_iter();
            Ok(found.map(|output| output.map(|output| output.content)).collect())
        })
    }

    fn exists(&self, py: Python<'_>, item: &str, step: &str) -> PyResult<bool> {
        self.0.read(py, |store, key| {
            begun(WorkflowRun::open(store, key))?.map_or(Ok(false), |run| run.exists(item, step))
        })
    }

    fn load(&self, py: Python<'_>, item: &str) -> PyResult<PlainValue> {
        self.0.read(py, |store, key| Ok(item_fields(WorkflowRun::open(store, key)?.load(item)?)))
    }

    fn resume(&self, py: Python<'_>) -> PyResult<PlainValue> {
        self.0.read(py, |store, key| {
            let Some(run) = begun(WorkflowRun::open(store, key))? else {
                return Ok(PlainValue::List(Vec::new()));
            };
            Ok(PlainValue::List(run.resume()?.items.into_iter().map(item_fields).collect()))
        })
    }
}

fn next_step(next: Option<String>, terminal: bool) -> NextStep {
    match next {
        _ if terminal => NextStep::Terminal,
        Some(step) => NextStep::Step(step),
        None => NextStep::Unknown,
    }
}

fn item_fields(loaded: LoadedItem) -> PlainValue {
    let outputs = loaded.outputs.into_iter().map(|output| (output.step, output.content.into()));
    let item = loaded.item;
    plain_map! {
        "active": item.is_active(),
        "item": item.item,
        "step": item.step,
        "next": item.next,
        "order": item.order,
        "path": item.path,
        "data": item.data.map(PlainValue::from),
        "recorded_at": item.recorded_at,
        "outputs": outputs.collect::<Vec<_>>(),
    }
}

/// The progress of one execution of a pipeline; its key is the name of the execution.
#[pyclass(frozen, name = "Progress", module = "forge_store._forge")]
pub(crate) struct NativeProgress {
    review: String,
    execution: SystemKey,
}

#[pymethods]
impl NativeProgress {
    #[new]
    fn new(store: &Store, review: String, execution: String) -> Self {
        Self { review, execution: SystemKey::new(store, execution) }
    }

    fn save(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyDict>,
        stage: Option<&str>,
    ) -> PyResult<()> {
        let document = Value::Map(fields_from(document)?);
        self.execution.write(py, "progress save", |store, execution, context| {
            let document = ProgressDocument::read(document, stage)
                .and_then(|document| document.check().map(|()| document))
                .map_err(|error| Error::invalid(error.to_string()))?;
            let key = join(&[self.review.as_str(), execution])?;
            write_or_begin(store, SessionKind::Progress, &key, |store| {
                PipelineExecution::open_or_create(store, context, &self.review, execution)?
                    .save(context, &document)
                    .map(drop)
            })
        })
    }

    /// Imports a row of a table of progress, and returns what was done with it.
    fn import_row(
        &self,
        py: Python<'_>,
        time: &Bound<'_, PyAny>,
        row: &Bound<'_, PyDict>,
    ) -> PyResult<&'static str> {
        let row = Value::Map(fields_from(row)?);
        let verb = ("progress import", time_from(time)?);
        let done = self.execution.write_at(py, verb, |store, execution, context| {
            let document = ProgressDocument::read(row, None)
                .map_err(|error| Error::invalid(error.to_string()))?;
            let name = (self.review.as_str(), execution);
            PipelineExecution::import_row(store, context, name, &document)
        });
        done.map(RowImport::word)
    }

    fn document(&self, py: Python<'_>) -> PyResult<PlainValue> {
        self.execution.read(py, |store, execution| {
            let Some(saved) = begun(PipelineExecution::open(store, &self.review, execution))?
            else {
                return Ok(PlainValue::None);
            };
            let known = saved.document()?;
            Ok(known.map(|document| PlainValue::from(document.into_value())).into())
        })
    }

    fn validate(&self, py: Python<'_>) -> PyResult<PlainValue> {
        let now = Timestamp::now();
        self.execution.read(py, |store, execution| {
            let known = PipelineExecution::open(store, &self.review, execution)?.document()?;
            let document = known.ok_or_else(|| Error::not_found("progress", execution))?;
            let found = progress::validate(&document, now);
            Ok(plain_map! {
                "refusals": faults(&found.refusals),
                "warnings": faults(&found.warnings),
            })
        })
    }

    fn resume(&self, py: Python<'_>, stage: &str, force: bool) -> PyResult<PlainValue> {
        let now = Timestamp::now();
        self.execution.read(py, |store, execution| {
            if begun(PipelineExecution::open(store, &self.review, execution))?.is_none() {
                let reason = format!(
                    "nothing is saved of the execution '{execution}' of the review '{}'",
                    self.review
                );
                return Ok(plain_map! { "decision": "nothing", "reason": reason });
            }
            let found = progress::resume(store, &self.review, stage, Some(execution), now, force)?;
            Ok(match found {
                ResumeDecision::Go(point) => {
                    resume_fields(*point).with([("decision".to_owned(), "go".into())])
                }
                ResumeDecision::Nothing { reason, .. } => {
                    plain_map! { "decision": "nothing", "reason": reason }
                }
                ResumeDecision::Refused { refusals, point } => resume_fields(*point).with([
                    ("decision".to_owned(), "refused".into()),
                    ("refusals".to_owned(), faults(&refusals).into()),
                ]),
            })
        })
    }
}

fn faults(found: &[ProgressFault]) -> Vec<String> {
    found.iter().map(|fault| fault.message.clone()).collect()
}

fn resume_fields(point: ResumePoint) -> PlainValue {
    plain_map! {
        "next_batch": point.next_batch,
        "after_id": point.after_id,
        "processed": point.processed,
        "remaining": point.remaining,
        "failed_ids": point.failed_ids,
        "warnings": point.warnings,
    }
}

/// A program of several agents.
#[pyclass(frozen, name = "Program", module = "forge_store._forge")]
pub(crate) struct NativeProgram(SystemKey);

#[pymethods]
impl NativeProgram {
    #[new]
    fn new(store: &Store, key: String) -> Self {
        Self(SystemKey::new(store, key))
    }

    #[pyo3(signature = (agents, message=None))]
    fn save(
        &self,
        py: Python<'_>,
        agents: BTreeMap<String, String>,
        message: Option<&str>,
    ) -> PyResult<()> {
        self.0.write(py, "program checkpoint", |store, key, context| {
            let mut references = BTreeMap::new();
            for (agent, name) in agents {
                let reference = match store.session_by_kind(SessionKind::Debug, &agent)? {
                    None => CheckpointReference::from_name(name),
                    Some(session) => {
                        let expression = parse_moment(&name, context.now, &chrono::Utc)
                            .map_err(|error| Error::invalid(error.to_string()))?;
                        let resolved = session.resolve(&expression)?;
                        CheckpointReference::from_expression(&session, &expression, resolved)?
                    }
                };
                references.insert(agent, reference);
            }
            write_or_begin(store, SessionKind::Program, key, |store| {
                let program = Program::open_or_create(store, context, key)?;
                program.checkpoint(context, &references, message).map(drop)
            })
        })
    }

    fn resume(&self, py: Python<'_>, exact: bool) -> PyResult<PlainValue> {
        self.0.read(py, |store, key| {
            let opened = Program::open(store, key).and_then(|program| {
                let head = program.session().head()?;
                // Only messages may be recorded so far.
                program.at(&head)?;
                Ok((program, head))
            });
            let Some((program, head)) = begun(opened)? else {
                let none = || PlainValue::Map(Vec::new());
                return Ok(plain_map! { "agents": none(), "missing": none(), "torn": 0_u64 });
            };
            let found = program.resume(&head, exact)?;
            let agents = found.agents.into_iter().map(|agent| {
                let fields = plain_map! {
                    "checkpoint": agent.at.reference.checkpoint.as_str(),
                    "number": agent.at.reference.sequence,
                    "notice": agent.notice(),
                };
                (agent.agent, fields)
            });
            let missing = found.missing.into_iter().map(|agent| (agent.agent, agent.reason.into()));
            Ok(plain_map! {
                "agents": agents.collect::<Vec<_>>(),
                "missing": missing.collect::<Vec<_>>(),
                "torn": found.torn.len(),
            })
        })
    }
}

/// A message thread of an agent. Messages are JSON texts.
#[pyclass(frozen, name = "Thread", module = "forge_store._forge")]
pub(crate) struct NativeThread(SystemKey);

#[pymethods]
impl NativeThread {
    #[new]
    fn new(store: &Store, key: String) -> Self {
        Self(SystemKey::new(store, key))
    }

    /// Appends messages, and returns how many messages the thread then has. With `responses`, they
    /// are items of the Responses API, and unknown items are saved too. With `replace`, they
    /// replace all messages of the thread.
    #[pyo3(signature = (messages, responses=false, replace=false))]
    fn append(
        &self,
        py: Python<'_>,
        messages: Vec<String>,
        responses: bool,
        replace: bool,
    ) -> PyResult<u64> {
        let form = responses.then_some(MessageForm::OpenaiResponses);
        self.0.write(py, "thread append", |store, key, context| {
            let options = AppendOptions { form, replace, ..AppendOptions::default() };
            write_or_begin(store, SessionKind::Thread, key, |store| {
                let thread = Thread::open_or_create(store, context, key)?;
                Ok(thread.append(context, &messages, &options)?.messages)
            })
        })
    }

    /// Returns the last `limit` messages; all of them without a limit.
    #[pyo3(signature = (limit=None))]
    fn messages(&self, py: Python<'_>, limit: Option<usize>) -> PyResult<Vec<String>> {
        self.0.read(py, |store, key| {
            let Some(thread) = begun(Thread::open(store, key))? else {
                return Ok(Vec::new());
            };
            let known = thread.messages(&thread.session().head()?)?;
            let others = limit.map_or(0, |limit| known.len().saturating_sub(limit));
            Ok(known.into_iter().skip(others).map(|message| message.text).collect())
        })
    }

    /// Removes the last message, and returns it.
    fn pop(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.0.write(py, "thread pop", |store, key, context| {
            let Some(thread) = begun(Thread::open(store, key))? else {
                return Ok(None);
            };
            Ok(thread.pop(context)?.map(|message| message.text))
        })
    }

    /// Removes all messages, and returns how many there were.
    fn clear(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.write(py, "thread clear", |store, key, context| {
            begun(Thread::open(store, key))?.map_or(Ok(0), |thread| thread.clear(context))
        })
    }

    /// Returns the messages in a form that their provider accepts, without writing anything.
    fn sanitized(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.0.read(py, |store, key| {
            let Some(thread) = begun(Thread::open(store, key))? else {
                return Ok(Vec::new());
            };
            let moment = thread.session().head()?;
            Ok(thread.sanitized(&moment, &SanitizeOptions::default())?.messages)
        })
    }

    /// Repairs the thread, and returns its messages.
    fn sanitize(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.0.write(py, "thread sanitize", |store, key, context| {
            let Some(thread) = begun(Thread::open(store, key))? else {
                return Ok(Vec::new());
            };
            Ok(thread.sanitize(context, &SanitizeOptions::default(), None)?.sanitized.messages)
        })
    }
}
