//! What clones do with the remote: each task runs in a separate thread, but only while the schedule
//! waits for it.

use super::depot::{DepotChange, ProcessKilled, RequestKind, TaskEvent, TaskLink, Verdict};
use super::world::{Acknowledged, SESSIONS, World, act, shared_operations};
use forge_store::error::DepotError;
use forge_store::model::{OperationId, SessionHandle};
use forge_store::store::remote::{PushReport, Remote};
use forge_store::store::{Session, Store, WriteContext};
use forge_store::{Error, ErrorKind};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// What a clone does with the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Push(usize),
    Pull(usize),
    FinishPurges,
    Tidy,
}

/// A task that runs in a separate thread, but only while the schedule waits for it.
pub(super) struct RunningTask {
    pub(super) task: Task,
    events: Receiver<TaskEvent>,
    pub(super) verdicts: Sender<Verdict>,
    pub(super) thread: Option<JoinHandle<()>>,
    /// The minute since which its request to write a ref is under way.
    pub(super) writes_ref_since: Option<u64>,
    /// Whether it has stored a pack and has not read the answer.
    has_stored_pack: bool,
    /// Whether a request went wrong.
    is_disturbed: bool,
    /// How many turns it stands still.
    pub(super) still: u64,
    /// The operations of the session when a push began.
    acknowledged: BTreeSet<OperationId>,
}

impl World {
    /// Begins a task, up to its first request.
    pub(super) fn begin(&mut self, which: usize, task: Task) -> Result<(), String> {
        let session = match task {
            Task::Push(session) => {
                let Some(there) = self.session_of(which, session) else { return Ok(()) };
                self.acknowledge(&there, (which, session))?;
                Some(there)
            }
            _ => None,
        };
        self.note(&format!("clone {which} begins {task:?}"));
        let acknowledged = session
            .as_ref()
            .map_or_else(BTreeSet::new, |session| shared_operations(session).into_keys().collect());
        let (event_sender, events) = channel();
        let (verdicts, verdict_receiver) = channel();
        let clone = &mut self.clones[which];
        let link = TaskLink { events: event_sender.clone(), verdicts: verdict_receiver };
        clone.depot.connect(Some(link));
        let (store, remote) = (clone.store().clone(), Arc::clone(clone.remote.as_ref().unwrap()));
        let doing = act("contact", self.minute);
        let handles: Vec<_> = self.sessions.iter().map(|session| session.handle).collect();
        let thread = thread::spawn(move || {
            let run = || run(&store, &remote, &doing, (task, session.as_ref()), &handles);
            let ended = catch_unwind(AssertUnwindSafe(run));
            drop((session, store, remote));
            let _ = match ended {
                Ok(done) => event_sender.send(TaskEvent::Ended(done)),
                Err(payload) if payload.is::<ProcessKilled>() => {
                    event_sender.send(TaskEvent::Killed)
                }
                Err(payload) => std::panic::resume_unwind(payload),
            };
        });
        clone.running = Some(RunningTask {
            task,
            events,
            verdicts,
            thread: Some(thread),
            writes_ref_since: None,
            has_stored_pack: false,
            is_disturbed: false,
            still: 0,
            acknowledged,
        });
        self.hear(which)
    }

    /// Decides what becomes of the request of a clone, or does something else with it.
    pub(super) fn go_on(&mut self, which: usize) -> Result<(), String> {
        let in_memory = self.clones[which].folder.is_none();
        let has_stored_pack = self.clones[which].running.as_ref().unwrap().has_stored_pack;
        if has_stored_pack && self.happens(self.mix.standstills) {
            return self.stand_still(which);
        }
        let verdict = match self.numbers.below(100) {
            0..=11 => {
                let session = self.numbers.below(SESSIONS as u64) as usize;
                return self.write(which, session);
            }
            12..=14 => {
                let still = self.numbers.below(30);
                self.clones[which].running.as_mut().unwrap().still = still;
                return Ok(());
            }
            15..=17 => {
                self.wait_for_days();
                return Ok(());
            }
            18..=20 => Verdict::RequestLost,
            21..=24 => Verdict::AnswerLost,
            25 => Verdict::Refused,
            26 => Verdict::Busy,
            27 | 28 if !in_memory => Verdict::KilledBefore,
            29 | 30 if !in_memory => Verdict::KilledAfter,
            _ => Verdict::Done,
        };
        if verdict != Verdict::Done {
            self.note(&format!("clone {which}: {verdict:?}"));
        }
        self.answer(which, verdict)
    }

    /// Lets a process stand still for days, before it reads the answer to its request.
    fn stand_still(&mut self, which: usize) -> Result<(), String> {
        // The requests of others do not take that long.
        for other in 0..self.clones.len() {
            let running = self.clones[other].running.as_ref();
            if running.is_some_and(|running| running.writes_ref_since.is_some()) {
                self.answer(other, Verdict::Done)?;
            }
        }
        self.note(&format!("clone {which} stands still"));
        let running = self.clones[which].running.as_mut().unwrap();
        (running.has_stored_pack, running.still) = (false, 4 + self.numbers.below(6));
        let hours = 10 + self.numbers.below(30);
        self.wait(60 * hours);
        Ok(())
    }

    fn answer(&mut self, which: usize, verdict: Verdict) -> Result<(), String> {
        let running = self.clones[which].running.as_mut().unwrap();
        running.is_disturbed |= verdict != Verdict::Done;
        running.verdicts.send(verdict).map_err(|_| "a task panicked".to_owned())?;
        self.hear(which)
    }

    /// Lets all running tasks end without further faults.
    pub(super) fn end_tasks(&mut self) -> Result<(), String> {
        for which in 0..self.clones.len() {
            while self.clones[which].running.is_some() {
                self.answer(which, Verdict::Done)?;
            }
        }
        Ok(())
    }

    /// Waits for what a task does next, and checks what it has done.
    fn hear(&mut self, which: usize) -> Result<(), String> {
        self.clones[which].contact = self.turn;
        let running = self.clones[which].running.as_ref().unwrap();
        let task = running.task;
        let event = running.events.recv().map_err(|_| format!("{task:?} panicked"))?;
        let changes = self.clones[which].depot.take_changes();
        let killed = matches!(event, TaskEvent::Killed);
        let ended = match event {
            TaskEvent::Request { name, kind } => {
                let running = self.clones[which].running.as_mut().unwrap();
                let writes_ref = kind == RequestKind::Write && name.starts_with("refs/");
                running.writes_ref_since = writes_ref.then_some(self.minute);
                running.has_stored_pack = kind == RequestKind::Answer;
                self.note(&format!("clone {which} requests {name}"));
                return self.check_changes(task, &changes);
            }
            TaskEvent::Ended(ended) => Some(ended),
            TaskEvent::Killed => None,
        };
        let clone = &mut self.clones[which];
        clone.depot.connect(None);
        let mut running = clone.running.take().unwrap();
        running.thread.take().unwrap().join().map_err(|_| format!("{task:?} panicked"))?;
        self.note(&format!("clone {which} ended {task:?}: {ended:?}"));
        if killed {
            self.clones[which].depot.forget_late();
            self.open_again(which);
        }
        self.check_changes(task, &changes)?;
        for session in 0..SESSIONS {
            if let Some(there) = self.session_of(which, session) {
                self.acknowledge(&there, (which, session))?;
            }
        }
        match ended {
            Some(Ok(Some(report))) => self.check_push(which, &running, &report),
            Some(Err(error)) if is_apart(&error) => {
                if let Task::Push(session) | Task::Pull(session) = task {
                    self.acknowledged[session].apart.insert(which);
                }
                Ok(())
            }
            Some(Err(error)) if !is_expected(&error, running.is_disturbed) => {
                Err(format!("clone {which}, {task:?}: {error}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks what an acknowledged push left on the remote.
    fn check_push(
        &mut self,
        which: usize,
        running: &RunningTask,
        report: &PushReport,
    ) -> Result<(), String> {
        let Task::Push(session) = running.task else { return Ok(()) };
        self.observe(session)?;
        let there = self.observer.store().session(&self.sessions[session].name).unwrap();
        let ids: BTreeSet<_> = shared_operations(&there).into_keys().collect();
        let Acknowledged { operations, .. } = &self.acknowledged[session];
        let mut known = running.acknowledged.iter().filter(|id| operations.contains_key(id));
        if let Some(lost) = known.find(|id| !ids.contains(id)) {
            let what = &operations[lost];
            return Err(format!("{report:?}: {lost} ({what:?}) is not on the remote"));
        }
        let own = self.session_of(which, session).unwrap();
        let mut now = shared_operations(&own).into_keys();
        self.clones[which].is_dirty[session] = now.any(|id| !ids.contains(&id));
        Ok(())
    }

    fn check_changes(&self, task: Task, changes: &[DepotChange]) -> Result<(), String> {
        for change in changes {
            let (name, is_own) = match (change, task) {
                (DepotChange::Swapped(name), Task::Push(session)) => {
                    let own = self.sessions[session].handle;
                    (name, name.ends_with(&own.to_string()))
                }
                (DepotChange::Swapped(name), Task::FinishPurges) => (name, true),
                (DepotChange::Removed(name), _) => (name, name.starts_with("packs/")),
                (DepotChange::New(name), _) => (name, task != Task::Tidy),
                (DepotChange::Swapped(name), _) => (name, false),
            };
            if !is_own {
                return Err(format!("{task:?} changed {name}"));
            }
        }
        if changes.is_empty() { Ok(()) } else { super::law::check_refs(self) }
    }
}

/// Does the work of a task.
fn run(
    store: &Store,
    remote: &Remote,
    doing: &WriteContext,
    (task, session): (Task, Option<&Session>),
    handles: &[SessionHandle],
) -> Result<Option<PushReport>, Error> {
    match (task, session) {
        (Task::Push(_), Some(session)) => return store.push(doing, remote, session).map(Some),
        (Task::Pull(session), _) => match store.pull(doing, remote, &handles[session], None) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            done => drop(done?),
        },
        (Task::FinishPurges, _) => store.finish_purges(doing, remote).1?,
        _ => drop(remote.tidy()?),
    }
    Ok(None)
}

/// Returns whether a clone cannot join a session: others pruned what it needs, or took back what
/// it read of a source.
pub(super) fn is_apart(error: &Error) -> bool {
    let text = error.to_string();
    let known = ["undone where it was made", "was read further here"];
    matches!(error, Error::Conflict(_)) && known.iter().any(|reason| text.contains(reason))
}

/// Returns whether a task may end with an error.
fn is_expected(error: &Error, is_disturbed: bool) -> bool {
    match error {
        Error::Depot(DepotError::Damaged { .. }) => false,
        Error::Depot(_) => is_disturbed,
        Error::Conflict(reason) => reason.contains("all the time"),
        _ => false,
    }
}
