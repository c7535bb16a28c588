//! The class `Session`.

use crate::handle::StoreHandle;
use crate::moment::{SessionMoment, kind_of};
use crate::plain::{PlainValue, checkpoint_fields, fields_from, plain_map, time_from};
use crate::watch::{detached, watched};
use crate::write::VerbWriter;
use forge_store::admin::PruneReport;
use forge_store::diff::MergeSide;
use forge_store::error::Error;
use forge_store::model::claim::VocabularyWord;
use forge_store::model::{BranchMetadata, FieldMap, RetentionPolicy};
use forge_store::store::{MergeReport, MergeResult, SessionSummary};
use forge_store::{
    CheckpointFilter, MergeRequest, NewCheckpoint, ResolvedMoment, Timestamp, UndoReport, Value,
    WriteContext,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A session of a store.
#[pyclass(frozen, module = "forge_store._forge")]
pub(crate) struct Session {
    pub(crate) handle: Arc<StoreHandle>,
    /// The permanent id.
    #[pyo3(get)]
    pub(crate) id: String,
}

impl Session {
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&forge_store::Session) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let session = self.handle.session(py, &self.id)?;
        detached(py, || read(&session))
    }

    fn write<T: Send>(
        &self,
        py: Python<'_>,
        verb: &str,
        write: impl FnOnce(&forge_store::Session, &WriteContext) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.handle.writable(py)?;
        let session = self.handle.session(py, &self.id)?;
        let context = WriteContext::asked(verb, Timestamp::now());
        detached(py, || write(&session, &context))
    }

    /// Calls a verb with its rules, and with automatic checkpoints if the store makes them.
    fn verb(
        &self,
        py: Python<'_>,
        verb: &str,
        call: impl FnOnce(&VerbWriter<'_>) -> Result<PlainValue, Error> + Send,
    ) -> PyResult<PlainValue> {
        let automatic = self.handle.makes_checkpoints();
        self.write(py, verb, |session, context| {
            call(&VerbWriter::new(session, context, automatic)?)
        })
    }

    fn moment(&self, resolved: ResolvedMoment) -> SessionMoment {
        SessionMoment {
            handle: Arc::clone(&self.handle),
            session: self.id.clone(),
            moment: resolved,
        }
    }
}

#[pymethods]
impl Session {
    /// Returns its name, kind, times and counts.
    fn summary(&self, py: Python<'_>) -> PyResult<PlainValue> {
        self.read(py, |session| Ok(summary_fields(session.summary()?)))
    }

    /// Returns the moment with everything that is recorded, on the current branch.
    fn head(&self, py: Python<'_>) -> PyResult<SessionMoment> {
        Ok(self.moment(self.read(py, forge_store::Session::head)?))
    }

    /// Returns the moment that a text names.
    fn at(&self, py: Python<'_>, text: &str) -> PyResult<SessionMoment> {
        let now = Timestamp::now();
        Ok(self.moment(self.read(py, |session| session.at(text, now))?))
    }

    /// Returns the moment at a time.
    fn at_time(&self, py: Python<'_>, time: &Bound<'_, PyAny>) -> PyResult<SessionMoment> {
        let time = time_from(time)?;
        Ok(self.moment(self.read(py, |session| session.at_time(time))?))
    }

    /// Returns the moment of a revision or checkpoint, by its number.
    fn at_number(&self, py: Python<'_>, number: u64) -> PyResult<SessionMoment> {
        Ok(self.moment(self.read(py, |session| session.at_sequence(number))?))
    }

    #[pyo3(signature = (kind, fields, id=None))]
    fn add(
        &self,
        py: Python<'_>,
        kind: &str,
        fields: &Bound<'_, PyDict>,
        id: Option<&str>,
    ) -> PyResult<PlainValue> {
        let fields = fields_from(fields)?;
        self.verb(py, &format!("{kind} add"), |writer| {
            let kind = kind_of(kind)?;
            if !kind.is_claim() {
                return Err(Error::invalid(format!("a {kind} is a fact: use session.record")));
            }
            writer.add(kind, id, fields)
        })
    }

    fn update(&self, py: Python<'_>, id: &str, fields: &Bound<'_, PyDict>) -> PyResult<PlainValue> {
        let fields = fields_from(fields)?;
        self.verb(py, "update", |writer| writer.update(id, &fields))
    }

    fn retract(&self, py: Python<'_>, id: &str) -> PyResult<PlainValue> {
        self.verb(py, "retract", |writer| writer.retract(id))
    }

    #[pyo3(signature = (id, confirms, reason=None))]
    fn settle(
        &self,
        py: Python<'_>,
        id: &str,
        confirms: bool,
        reason: Option<&str>,
    ) -> PyResult<PlainValue> {
        let verb = if confirms { "hypothesis confirm" } else { "hypothesis reject" };
        self.verb(py, verb, |writer| writer.settle(id, confirms, reason))
    }

    fn fill(&self, py: Python<'_>, id: &str, resolution: &str) -> PyResult<PlainValue> {
        self.verb(py, "gap fill", |writer| writer.fill(id, resolution))
    }

    #[pyo3(signature = (id, on, strength=None))]
    fn depend(
        &self,
        py: Python<'_>,
        id: &str,
        on: &str,
        strength: Option<f64>,
    ) -> PyResult<PlainValue> {
        self.verb(py, "belief depend", |writer| writer.depend(id, on, strength))
    }

    #[pyo3(signature = (id, other, reason=None))]
    fn contradict(
        &self,
        py: Python<'_>,
        id: &str,
        other: &str,
        reason: Option<&str>,
    ) -> PyResult<PlainValue> {
        self.verb(py, "belief contradict", |writer| writer.contradict(id, other, reason))
    }

    #[pyo3(signature = (kind, fields, id=None, at=None))]
    fn record(
        &self,
        py: Python<'_>,
        kind: &str,
        fields: &Bound<'_, PyDict>,
        id: Option<&str>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PlainValue> {
        let fields = fields_from(fields)?;
        let at = at.map(time_from).transpose()?;
        self.verb(py, &format!("{kind} record"), |writer| {
            let kind = kind_of(kind)?;
            if kind.is_claim() {
                return Err(Error::invalid(format!("a {kind} is a claim: use session.add")));
            }
            writer.record(kind, id, at, fields)
        })
    }

    #[pyo3(signature = (message, tags, at=None, data=None))]
    fn checkpoint(
        &self,
        py: Python<'_>,
        message: &str,
        tags: Vec<String>,
        at: Option<&Bound<'_, PyAny>>,
        data: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PlainValue> {
        let mut checkpoint = NewCheckpoint::manual(message).tags(tags);
        checkpoint.at = at.map(time_from).transpose()?;
        checkpoint.body = data.map(fields_from).transpose()?.map_or(Value::Null, Value::Map);
        self.verb(py, "checkpoint create", |writer| {
            writer.commit(|write| write.checkpoint(checkpoint))
        })
    }

    #[pyo3(signature = (tag=None, since=None, until=None, limit=None))]
    fn checkpoints(
        &self,
        py: Python<'_>,
        tag: Option<String>,
        since: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        limit: Option<usize>,
    ) -> PyResult<PlainValue> {
        let (since, until) = (since.map(time_from).transpose()?, until.map(time_from).transpose()?);
        let filter = CheckpointFilter { tag, since, until, limit, ..CheckpointFilter::default() };
        self.read(py, |session| {
            let known = session.checkpoints(&filter)?.into_iter();
            let known = known.map(|checkpoint| {
                let branch = session.branch_name(checkpoint.branch)?;
                Ok(checkpoint_fields(checkpoint, branch))
            });
            Ok(PlainValue::List(known.collect::<Result<_, Error>>()?))
        })
    }

    /// Returns the changes between two moments.
    fn diff(
        &self,
        py: Python<'_>,
        from: &SessionMoment,
        to: &SessionMoment,
    ) -> PyResult<PlainValue> {
        self.read(py, |session| {
            let found = session.compare(&from.moment, &to.moment)?;
            let changes = found.changes.into_iter().map(|change| {
                plain_map! {
                    "kind": change.kind.name(),
                    "id": change.id,
                    "change": change.change.word(),
                    "field": change.field,
                    "old": change.old.map(PlainValue::from),
                    "new": change.new.map(PlainValue::from),
                }
            });
            Ok(plain_map! {
                "summary": found.summary,
                "seconds": found.time_delta_micros.map(seconds),
                "changes": changes.collect::<Vec<_>>(),
            })
        })
    }

    fn restore(&self, py: Python<'_>, to: &SessionMoment) -> PyResult<PlainValue> {
        let automatic = self.handle.makes_checkpoints();
        self.write(py, "restore", |session, context| {
            let done = session.restore(context, &to.moment)?;
            VerbWriter::new(session, context, automatic)?.report(done, None)
        })
    }

    #[pyo3(signature = (operation=None))]
    fn undo(&self, py: Python<'_>, operation: Option<&str>) -> PyResult<PlainValue> {
        self.write(py, "undo", |session, context| {
            Ok(undo_fields(session.undo(context, operation)?))
        })
    }

    fn redo(&self, py: Python<'_>) -> PyResult<PlainValue> {
        self.write(py, "redo", |session, context| Ok(undo_fields(session.redo(context)?)))
    }

    fn operations(&self, py: Python<'_>, limit: usize) -> PyResult<PlainValue> {
        self.read(py, |session| {
            let known = session.operations(limit)?.into_iter().map(operation_fields);
            Ok(PlainValue::List(known.collect()))
        })
    }

    #[pyo3(signature = (name, start=None, hypothesis=None, approach=None))]
    fn create_branch(
        &self,
        py: Python<'_>,
        name: &str,
        start: Option<&SessionMoment>,
        hypothesis: Option<String>,
        approach: Option<String>,
    ) -> PyResult<()> {
        let about = BranchMetadata { hypothesis, approach, ..BranchMetadata::default() };
        self.write(py, "branch create", |session, context| {
            session.create_branch(context, name, start.map(|moment| &moment.moment), about)
        })
    }

    /// Checks out a branch, and returns the branch that was current before.
    fn switch(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        let quietly = !self.handle.makes_checkpoints();
        self.write(py, "branch switch", |session, context| {
            session.switch_branch(context, name, quietly)
        })
    }

    #[pyo3(signature = (source, into=None, prefer=None, dry_run=false))]
    fn merge(
        &self,
        py: Python<'_>,
        source: String,
        into: Option<String>,
        prefer: Option<&str>,
        dry_run: bool,
    ) -> PyResult<PlainValue> {
        let side = |word: &str| match word {
            "ours" => Ok(MergeSide::Ours),
            "theirs" => Ok(MergeSide::Theirs),
            other => {
                Err(Error::invalid(format!("prefer='{other}' is neither 'ours' nor 'theirs'")))
            }
        };
        let request = |prefer: Option<&str>| {
            Ok::<_, Error>(MergeRequest {
                source,
                target: into,
                prefer: prefer.map(side).transpose()?,
                without_checkpoint: !self.handle.makes_checkpoints(),
                ..MergeRequest::default()
            })
        };
        if dry_run {
            return self
                .read(py, |session| Ok(merge_fields(session.merge_preview(&request(prefer)?)?)));
        }
        self.write(py, "branch merge", |session, context| {
            Ok(merge_fields(session.merge(context, &request(prefer)?)?))
        })
    }

    /// Prunes the session, or returns what pruning would do.
    #[pyo3(signature = (policy, dry_run, progress=None))]
    fn prune(
        &self,
        py: Python<'_>,
        policy: &Bound<'_, PyDict>,
        dry_run: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PlainValue> {
        let policy = retention_from(policy)?;
        let now = Timestamp::now();
        let session = self.handle.session(py, &self.id)?;
        if !dry_run {
            self.handle.writable(py)?;
        }
        watched(py, progress, move || {
            let context = WriteContext::asked("checkpoint prune", now);
            let report = match dry_run {
                true => session.prune_preview(&policy, now)?,
                false => session.prune(&context, &policy)?,
            };
            prune_fields(&session, report)
        })
    }
}

/// Returns a session's summary as fields.
pub(crate) fn summary_fields(summary: SessionSummary) -> PlainValue {
    plain_map! {
        "id": summary.info.id.to_string(),
        "name": summary.info.name,
        "kind": summary.info.kind.name(),
        "agent": summary.info.agent,
        "started_at": summary.info.started_at,
        "current": summary.current,
        "branch": summary.branch,
        "branches": summary.branches,
        "last_number": summary.last_sequence,
        "checkpoints": summary.checkpoints,
        "claims": summary.claims,
        "facts": summary.facts,
        "first_event": summary.first_event,
        "last_event": summary.last_event,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a duration of 2^53 microseconds is 285 years")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

fn operation_fields(operation: forge_store::store::OperationSummary) -> PlainValue {
    plain_map! {
        "id": operation.id.to_string(),
        "verb": operation.verb,
        "time": operation.time,
        "effects": operation.effects,
        "revision": operation.revision,
        "undone": operation.taken_back,
    }
}

fn undo_fields(done: UndoReport) -> PlainValue {
    plain_map! {
        "operation": done.operation.to_string(),
        "undone": operation_fields(done.target),
        "revision": done.revision,
    }
}

fn merge_fields(done: MergeReport) -> PlainValue {
    let result = match done.result {
        MergeResult::AlreadyMerged => "already_merged",
        MergeResult::FastForward => "fast_forward",
        MergeResult::Merged => "merged",
        MergeResult::Conflicts => "conflicts",
    };
    let conflicts = done.conflicts.into_iter().map(|one| {
        plain_map! {
            "kind": one.conflict.key.kind.name(),
            "id": one.conflict.key.id,
            "field": one.conflict.field,
            "base": one.conflict.base.map(PlainValue::from),
            "ours": one.conflict.ours.map(PlainValue::from),
            "theirs": one.conflict.theirs.map(PlainValue::from),
            "settled": one.settled.is_some(),
        }
    });
    plain_map! {
        "operation": done.operation.map(|id| id.to_string()),
        "source": done.source,
        "target": done.target,
        "result": result,
        "conflicts": conflicts.collect::<Vec<_>>(),
        "changes": done.changes.len(),
        "revision": done.revision.map(|(number, _)| number),
    }
}

fn prune_fields(session: &forge_store::Session, report: PruneReport) -> Result<PlainValue, Error> {
    let verdicts = report.verdicts.into_iter().map(|verdict| {
        let branch = session.branch_name(verdict.checkpoint.branch)?;
        let reasons = verdict.reasons.iter().map(|reason| reason.word());
        Ok(plain_map! {
            "checkpoint": checkpoint_fields(verdict.checkpoint, branch),
            "reasons": reasons.collect::<Vec<_>>(),
        })
    });
    Ok(plain_map! {
        "operation": report.operation.map(|id| id.to_string()),
        "verdicts": verdicts.collect::<Result<Vec<_>, Error>>()?,
        "revisions": report.folds.iter().map(|fold| fold.revisions).sum::<u64>(),
        "bytes": report.bytes,
    })
}

/// Reads the rules of retention. Times are in seconds.
fn retention_from(policy: &Bound<'_, PyDict>) -> PyResult<RetentionPolicy> {
    let fields: FieldMap = fields_from(policy)?;
    let count = |name: &str| {
        let number = fields.get(name).and_then(Value::as_i64).unwrap_or(0);
        u64::try_from(number).unwrap_or(0)
    };
    #[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
    let micros =
        |name: &str| fields.get(name).and_then(Value::as_f64).map(|seconds| (seconds * 1e6) as i64);
    let is_on = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(true);
    let tags = fields.get("tags").and_then(Value::as_list).unwrap_or_default();
    Ok(RetentionPolicy {
        last: count("last"),
        within: micros("within").unwrap_or(0),
        hourly: count("hourly"),
        daily: count("daily"),
        weekly: count("weekly"),
        tags: tags.iter().filter_map(Value::as_text).map(str::to_owned).collect(),
        manual: is_on("manual"),
        significant: is_on("significant"),
        revisions: micros("revisions").unwrap_or(RetentionPolicy::REVISIONS),
        texts: None,
        sessions: None,
    })
}
