//! Connected systems: other systems, whose states are captured and restored together.

use super::new_checkpoint::NewCheckpoint;
use super::recover::variables;
use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use super::state::{StateAt, StateComparison};
use super::write::{SIGNIFICANT_MICROS, SessionWrite};
use super::write_context::WriteContext;
use crate::engine::checkpoint::CheckpointFilter;
use crate::error::{Error, Result};
use crate::model::{
    AutoTrigger, Checkpoint, CheckpointId, CheckpointTrigger, Key, Kind, Timestamp, Value,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The error of a connected system that cannot be captured or restored.
pub type SystemError = Box<dyn std::error::Error + Send + Sync>;

/// A system with its own state that forge can capture: a hypothesis board, a belief graph.
pub trait ConnectedSystem {
    /// Returns its name, used in errors.
    fn name(&self) -> &str;

    /// Returns the kinds of the claims that it keeps. No other connected system may keep the same
    /// kind.
    fn kinds(&self) -> &[Kind];

    /// Returns all its claims, in any order, each key once.
    ///
    /// # Errors
    /// If the capture fails: then nothing of any system is recorded.
    fn capture(&self) -> Result<Vec<(Key, Value)>, SystemError>;

    /// Replaces all its claims by these, which are sorted by key.
    ///
    /// # Errors
    /// If the restore fails: the system should then keep its previous state.
    fn restore(&self, claims: &[(Key, Value)]) -> Result<(), SystemError>;
}

/// A query for a moment. The first field that is given decides, in the order time, number, id, tag;
/// the others are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemporalQuery {
    /// Selects the state at this time.
    pub timestamp: Option<Timestamp>,
    /// Selects the revision or checkpoint of this number.
    pub sequence_number: Option<u64>,
    /// Selects this checkpoint.
    pub checkpoint_id: Option<CheckpointId>,
    /// Selects the newest checkpoint with this tag.
    pub tag_filter: Option<String>,
}

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The restored checkpoint; `None` if no checkpoint named the moment.
    pub restored_to: Option<CheckpointId>,
    /// The time of the restored moment; `None` if it has everything recorded.
    pub timestamp: Option<Timestamp>,
    /// The message of the checkpoint.
    pub message: String,
    /// The number of the revision with the state of the systems before, if that was not recorded
    /// yet.
    pub captured: Option<u64>,
    /// The number of the revision with the restored claims; `None` if nothing changed.
    pub revision: Option<u64>,
    /// The systems that were restored, in the order they were connected.
    pub systems: Vec<String>,
    /// Whether every system was restored: always true, since a failure is an error.
    pub recovery_complete: bool,
}

/// Where to continue after a crash.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveryPoint {
    /// The last checkpoint.
    pub checkpoint: Checkpoint,
    /// The steps to take, in order.
    pub steps: Vec<RecoveryStep>,
}

/// A step of a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryStep {
    /// Check out this commit and apply these patches.
    RestoreCodeState {
        /// The commit id.
        commit: String,
        /// Unified diffs, in order.
        patches: Vec<String>,
    },
    /// Set these environment variables.
    RestoreEnvironment {
        /// Values by name.
        env_vars: BTreeMap<String, String>,
    },
    /// Run this command again.
    ReplayCommand {
        /// The command line.
        command: String,
    },
    /// A step for a person or an agent.
    ManualInstruction {
        /// The instruction to follow.
        instruction: String,
    },
}

/// Captures connected systems into a session, and restores them.
///
/// ```
/// use forge_store::model::{Key, Kind, Timestamp, Value};
/// use forge_store::store::{
///     ConnectedSystem, NewSession, Store, SystemError, SystemRecorder, TemporalQuery,
///     WriteContext,
/// };
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Board(Mutex<Vec<(Key, Value)>>);
///
/// impl ConnectedSystem for Board {
///     fn name(&self) -> &str { "board" }
///     fn kinds(&self) -> &[Kind] { &[Kind::Hypothesis] }
///     fn capture(&self) -> Result<Vec<(Key, Value)>, SystemError> {
///         Ok(self.0.lock().unwrap().clone())
///     }
///     fn restore(&self, claims: &[(Key, Value)]) -> Result<(), SystemError> {
///         *self.0.lock().unwrap() = claims.to_vec();
///         Ok(())
///     }
/// }
///
/// let store = Store::in_memory()?;
/// let now = Timestamp::parse_rfc3339("2026-01-01T10:00:00Z").unwrap();
/// let act = WriteContext::asked("checkpoint", now);
/// let session = store.create_session(&act, NewSession::named("broken build"))?;
/// let board = Arc::new(Board::default());
/// let mut recorder = SystemRecorder::new(session);
/// recorder.connect(board.clone())?;
///
/// let stale = Value::from([("description", "the cache is stale".into())]);
/// board.0.lock().unwrap().push((Key::new(Kind::Hypothesis, "H1"), stale));
/// let first = recorder.checkpoint(&act, "one idea", &["start"])?;
/// board.0.lock().unwrap().clear();
/// recorder.checkpoint(&act, "no idea left", &[])?;
///
/// let query = TemporalQuery { tag_filter: Some("start".to_owned()), ..Default::default() };
/// let moment = recorder.query(&query)?.moment().clone();
/// let report = recorder.restore(&act, &moment)?;
/// assert_eq!((report.restored_to, report.message.as_str()), (Some(first.id), "one idea"));
/// assert_eq!(board.0.lock().unwrap().len(), 1);
/// # Ok::<(), forge_store::error::Error>(())
/// ```
pub struct SystemRecorder {
    session: Session,
    systems: Vec<Arc<dyn ConnectedSystem>>,
}

impl fmt::Debug for SystemRecorder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let systems: Vec<_> = self.systems.iter().map(|system| system.name()).collect();
        out.debug_struct("SystemRecorder")
            .field("session", &self.session)
            .field("systems", &systems)
            .finish()
    }
}

type CapturedClaims = Vec<(Key, Value)>;

impl SystemRecorder {
    /// Returns a recorder for this session, without connected systems.
    #[must_use]
    pub const fn new(session: Session) -> Self {
        Self { session, systems: Vec::new() }
    }

    /// Returns the session that this recorder writes to.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Connects a system: it is captured and restored from now on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it keeps facts, or a kind that another connected system already keeps.
    pub fn connect(&mut self, system: Arc<dyn ConnectedSystem>) -> Result<()> {
        for kind in system.kinds() {
            if !kind.is_claim() {
                return Err(Error::invalid(format!(
                    "'{}' cannot keep the kind {kind}: facts are recorded as they happen",
                    system.name()
                )));
            }
            if let Some(other) = self.systems.iter().find(|other| other.kinds().contains(kind)) {
                return Err(Error::invalid(format!(
                    "'{}' and '{}' both keep the kind {kind}: connect one of them",
                    other.name(),
                    system.name()
                )));
            }
        }
        self.systems.push(system);
        Ok(())
    }

    /// Captures every connected system and makes a checkpoint: the changes since the head and the
    /// checkpoint are one record. Claims that a system no longer has are removed; kinds that no
    /// system keeps are unchanged.
    ///
    /// # Errors
    /// [`Error::Connected`] if a system cannot be captured, or any error of a write. Then nothing
    /// is written.
    pub fn checkpoint(
        &self,
        act: &WriteContext,
        message: &str,
        tags: &[&str],
    ) -> Result<Checkpoint> {
        let wanted =
            NewCheckpoint::new(message, CheckpointTrigger::Manual).tags(tags.iter().copied());
        let captured = self.capture()?;
        let done =
            self.with_captured(self.session.write(act), captured).checkpoint(wanted).commit()?;
        done.checkpoint.ok_or_else(|| Error::Internal("a checkpoint was not made".to_owned()))
    }

    /// Makes a checkpoint for an event. Returns `None`, and captures nothing, for
    /// [`AutoTrigger::SignificantTimePassed`] within five minutes after the last checkpoint.
    pub fn auto_checkpoint(
        &self,
        act: &WriteContext,
        trigger: AutoTrigger,
    ) -> Result<Option<Checkpoint>> {
        if trigger == AutoTrigger::SignificantTimePassed
            && let Some(last) = self.session.summary()?.last_checkpoint
            && act.now.micros_since(last) <= SIGNIFICANT_MICROS
        {
            return Ok(None);
        }
        let captured = self.capture()?;
        let write = self.with_captured(self.session.write(act), captured);
        Ok(write.event(trigger).commit()?.checkpoint)
    }

    /// Restores every connected system to its state at a moment, and makes that state the claims of
    /// the current branch. The present state of the systems is recorded first, by a separate
    /// operation, so nothing is lost and [`Session::undo`] leads back to it.
    ///
    /// # Errors
    /// [`Error::Connected`] if a system cannot be captured or restored: then the systems already
    /// restored get their previous state again, and only the present state of the systems is
    /// recorded. Or any error of a read or write.
    pub fn restore(&self, act: &WriteContext, to: &ResolvedMoment) -> Result<RecoveryReport> {
        let then = self.session.state(to)?;
        let present = self.capture()?;
        let captured = self.with_captured(self.session.write(act), present.clone()).commit()?;
        for (place, system) in self.systems.iter().enumerate() {
            let restored = claims_of(&then, system.kinds())
                .and_then(|claims| system.restore(&claims).map_err(failed(&**system, "restored")));
            if let Err(error) = restored {
                for (before, claims) in self.systems.iter().zip(&present).take(place) {
                    // The system had these claims just before. If it refuses them now, the first
                    // error is still the useful one.
                    let _ = before.restore(claims);
                }
                return Err(error);
            }
        }
        let done = self.session.restore(act, to)?;
        let checkpoint = to.named_checkpoint();
        Ok(RecoveryReport {
            restored_to: checkpoint.map(|named| named.id),
            timestamp: to.time(),
            message: checkpoint.map(|named| named.message.clone()).unwrap_or_default(),
            captured: captured.revision.map(|(sequence, _)| sequence),
            revision: done.revision.map(|(sequence, _)| sequence),
            systems: self.systems.iter().map(|system| system.name().to_owned()).collect(),
            recovery_complete: true,
        })
    }

    /// Returns the state at the moment that a query selects.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the query is empty; else as [`Session::resolve`].
    pub fn query(&self, query: &TemporalQuery) -> Result<StateAt> {
        self.session.state(&self.session.query(query)?)
    }

    /// Compares two checkpoints.
    ///
    /// # Errors
    /// [`Error::NotFound`] if one of them does not exist; also if the store cannot be read or is
    /// damaged.
    pub fn compare(&self, from: &CheckpointId, to: &CheckpointId) -> Result<StateComparison> {
        let moment = |id: &CheckpointId| {
            self.session.query(&TemporalQuery { checkpoint_id: Some(*id), ..Default::default() })
        };
        self.session.compare(&moment(from)?, &moment(to)?)
    }

    /// Returns the checkpoints, newest first.
    pub fn list(&self) -> Result<Vec<Checkpoint>> {
        self.session.checkpoints(&CheckpointFilter::default())
    }

    /// Returns the checkpoints with this tag, newest first.
    pub fn find_by_tag(&self, tag: &str) -> Result<Vec<Checkpoint>> {
        let filter = CheckpointFilter { tag: Some(tag.to_owned()), ..Default::default() };
        self.session.checkpoints(&filter)
    }

    /// Captures every system, in the order they were connected.
    fn capture(&self) -> Result<Vec<CapturedClaims>> {
        self.systems.iter().map(|system| capture(&**system)).collect()
    }

    /// Adds the captured claims to a write: they replace all claims of the kinds of the systems.
    fn with_captured<'a>(
        &self,
        write: SessionWrite<'a>,
        captured: Vec<CapturedClaims>,
    ) -> SessionWrite<'a> {
        let kinds = self.systems.iter().flat_map(|system| system.kinds().iter().copied()).collect();
        write.replace_kinds(kinds, captured.into_iter().flatten().collect::<Vec<_>>())
    }
}

impl Session {
    /// Returns the moment that a query selects.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the query is empty; else as [`Session::resolve`].
    pub fn query(&self, query: &TemporalQuery) -> Result<ResolvedMoment> {
        match query {
            TemporalQuery { timestamp: Some(time), .. } => self.at_time(*time),
            TemporalQuery { sequence_number: Some(number), .. } => self.at_sequence(*number),
            TemporalQuery { checkpoint_id: Some(id), .. } => self.at_checkpoint_id(id),
            TemporalQuery { tag_filter: Some(tag), .. } => self.of_tag(&self.view()?, tag),
            _ => Err(Error::invalid(
                "the query names no moment: give a time, a number, a checkpoint or a tag",
            )),
        }
    }

    /// Returns the last checkpoint of this session and the steps to continue from it; `None`
    /// without a checkpoint.
    pub fn recovery_point(&self) -> Result<Option<RecoveryPoint>> {
        let filter = CheckpointFilter { limit: Some(1), ..Default::default() };
        let Some(checkpoint) = self.checkpoints(&filter)?.pop() else { return Ok(None) };
        let state = self.state(&self.at_checkpoint(&checkpoint)?)?;
        let mut steps = Vec::new();
        let code = state.facts_of(Kind::Code)?.into_iter().map(|known| known.fact.value);
        if let Some(code) = code.rev().find(|value| value.field("commit").is_some()) {
            let text = |value: &Value| value.as_text().map(str::to_owned);
            let patches = code.field("patches").and_then(Value::as_list).unwrap_or_default();
            steps.push(RecoveryStep::RestoreCodeState {
                commit: code.field("commit").and_then(text).unwrap_or_default(),
                patches: patches.iter().filter_map(text).collect(),
            });
            if let Some(env_vars) = variables(&code) {
                steps.push(RecoveryStep::RestoreEnvironment { env_vars });
            }
        }
        let name = state.info()?.name;
        steps.push(RecoveryStep::ManualInstruction {
            instruction: format!(
                "restore the session '{name}' to the checkpoint #{} ({})",
                checkpoint.sequence, checkpoint.message
            ),
        });
        Ok(Some(RecoveryPoint { checkpoint, steps }))
    }
}

fn failed(system: &dyn ConnectedSystem, action: &'static str) -> impl Fn(SystemError) -> Error {
    let system = system.name().to_owned();
    move |source| Error::Connected { system: system.clone(), action, source }
}

/// Captures one system, and checks that its claims are of its kinds and have distinct keys.
fn capture(system: &dyn ConnectedSystem) -> Result<CapturedClaims> {
    let failed = failed(system, "captured");
    let claims = system.capture().map_err(&failed)?;
    let mut keys = BTreeSet::new();
    for (key, _) in &claims {
        if !system.kinds().contains(&key.kind) {
            return Err(failed(format!("it gave the {key}, a kind it does not keep").into()));
        }
        if !keys.insert(key) {
            return Err(failed(format!("it gave the {key} twice").into()));
        }
    }
    Ok(claims)
}

fn claims_of(state: &StateAt, kinds: &[Kind]) -> Result<CapturedClaims> {
    let mut kinds = kinds.to_vec();
    kinds.sort();
    let entries = kinds.into_iter().flat_map(|kind| state.claims().entries_of_kind(kind));
    entries.map(|entry| entry.map(|(key, entry)| (key, entry.value))).collect()
}
