//! The depot as one clone reaches it. While the clone has a task, each request waits until the
//! schedule decides what becomes of it, so that others do something in between.

use forge_store::error::DepotError;
use forge_store::model::Timestamp;
use forge_store::store::remote::{
    Depot, DepotEntry, DepotRead, DepotTag, DepotWrite, MemoryDepot, PushReport,
};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    /// It is not done, and the clone knows.
    Refused,
    /// The depot has too many requests.
    Busy,
    /// It is not done, and the clone does not know.
    RequestLost,
    /// It is done, and the clone does not know.
    AnswerLost,
    /// The process ends before the request.
    KilledBefore,
    /// The process ends after the request.
    KilledAfter,
}

/// What a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Read,
    Write,
    /// The answer to the request that stored a pack: here a process may stand still or be killed.
    Answer,
}

/// What a task reports to the schedule.
pub(super) enum TaskEvent {
    /// It waits with a request of an object.
    Request { name: String, kind: RequestKind },
    /// It has ended; a push with its report.
    Ended(Result<Option<PushReport>, forge_store::Error>),
    /// Its process was killed.
    Killed,
}

/// The ends of a task's connection to the schedule.
pub(super) struct TaskLink {
    pub(super) events: Sender<TaskEvent>,
    pub(super) verdicts: Receiver<Verdict>,
}

/// The payload of the panic that ends a process which is killed.
pub(super) struct ProcessKilled;

/// A fault of a depot, or of how clones use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    Nothing,
    /// A swap overwrites whatever is there.
    BlindSwap,
    /// A pack is acknowledged and lost.
    LostPack,
    /// A pack is stored after the ref that names it.
    EarlyRef,
    /// A write whose answer was lost counts as done.
    UnsureIsDone,
    /// A pack counts as garbage as soon as it is stored.
    EarlyTidy,
    /// The clock of a pusher stops while the pusher stands still: it names packs of any age.
    LongPush,
    /// Each clone has its own notices.
    OwnNotices,
    /// A clone that is killed forgets its notes of purges.
    ForgottenPurge,
}

impl Planted {
    /// All faults.
    pub(super) const FAULTS: [Self; 8] = [
        Self::BlindSwap,
        Self::LostPack,
        Self::EarlyRef,
        Self::UnsureIsDone,
        Self::EarlyTidy,
        Self::LongPush,
        Self::OwnNotices,
        Self::ForgottenPurge,
    ];
}

/// How an object was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DepotChange {
    New(String),
    Swapped(String),
    Removed(String),
}

/// The depot of one clone.
pub(super) struct SimulatedDepot {
    memory: MemoryDepot,
    planted: Planted,
    /// The number of the clone.
    number: usize,
    link: Mutex<Option<TaskLink>>,
    changes: Mutex<Vec<DepotChange>>,
    /// A pack that was acknowledged and is not stored yet.
    late: Mutex<Option<(String, Vec<u8>)>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unsure(name: &str) -> DepotError {
    DepotError::Unsure { name: name.to_owned(), source: "a lost answer".into() }
}

fn unavailable() -> DepotError {
    DepotError::Unavailable { what: "no network".to_owned(), source: None }
}

impl SimulatedDepot {
    pub(super) fn new(memory: &MemoryDepot, planted: Planted, number: usize) -> Self {
        let (link, changes, late) = Default::default();
        Self { memory: memory.clone(), planted, number, link, changes, late }
    }

    /// Connects the clone with the schedule, or with `None` lets all its requests be done at once.
    pub(super) fn connect(&self, link: Option<TaskLink>) {
        *locked(&self.link) = link;
    }

    /// Returns what was changed since the last call.
    pub(super) fn take_changes(&self) -> Vec<DepotChange> {
        std::mem::take(&mut locked(&self.changes))
    }

    /// Forgets what a killed process has not sent.
    pub(super) fn forget_late(&self) {
        *locked(&self.late) = None;
    }

    fn verdict(&self, name: &str, kind: RequestKind) -> Verdict {
        let link = locked(&self.link);
        let Some(link) = link.as_ref() else { return Verdict::Done };
        // A schedule that has ended is one that failed.
        let _ = link.events.send(TaskEvent::Request { name: name.to_owned(), kind });
        link.verdicts.recv().unwrap_or(Verdict::KilledBefore)
    }

    /// Makes a request. If `is_write`, a lost answer leaves open whether it was done.
    fn request<T>(
        &self,
        (name, is_write): (&str, bool),
        make: &dyn Fn() -> Result<T, DepotError>,
    ) -> Result<T, DepotError> {
        let kind = if is_write { RequestKind::Write } else { RequestKind::Read };
        let verdict = self.verdict(name, kind);
        if !(is_write && name.starts_with("refs/"))
            && let Some((name, bytes)) = locked(&self.late).take()
        {
            self.memory.put_new(&name, &bytes)?;
        }
        // The pause before the next attempt takes no time.
        thread::current().unpark();
        match verdict {
            Verdict::Done => make(),
            Verdict::Busy => Err(DepotError::Busy { after: None }),
            Verdict::RequestLost if is_write => Err(unsure(name)),
            Verdict::AnswerLost if is_write => make().and_then(|_| Err(unsure(name))),
            Verdict::Refused | Verdict::RequestLost | Verdict::AnswerLost => Err(unavailable()),
            Verdict::KilledBefore => resume_unwind(Box::new(ProcessKilled)),
            Verdict::KilledAfter => {
                make()?;
                resume_unwind(Box::new(ProcessKilled))
            }
        }
    }

    fn write(
        &self,
        change: &DepotChange,
        make: &dyn Fn(&str) -> Result<DepotWrite, DepotError>,
    ) -> Result<DepotWrite, DepotError> {
        let name = match change {
            DepotChange::New(name) | DepotChange::Swapped(name) | DepotChange::Removed(name) => {
                self.mapped(name)
            }
        };
        let written = self.request((&name, true), &|| {
            let written = make(&name)?;
            if matches!(written, DepotWrite::Done(_)) {
                locked(&self.changes).push(change.clone());
            }
            Ok(written)
        });
        match written {
            Err(DepotError::Unsure { .. }) if self.planted == Planted::UnsureIsDone => {
                Ok(DepotWrite::Done(DepotTag::new("unknown")))
            }
            written => written,
        }
    }

    /// Returns where an object is.
    fn mapped(&self, name: &str) -> String {
        match self.planted {
            Planted::OwnNotices if name.starts_with("purges/") => {
                format!("clone-{}/{name}", self.number)
            }
            _ => name.to_owned(),
        }
    }

    /// Lets a process that has stored a pack wait for the answer.
    fn await_answer(&self, name: &str) {
        if matches!(
            self.verdict(name, RequestKind::Answer),
            Verdict::KilledBefore | Verdict::KilledAfter
        ) {
            resume_unwind(Box::new(ProcessKilled));
        }
    }

    fn put_pack(&self, name: &str, bytes: &[u8]) -> Option<DepotWrite> {
        if !name.starts_with("packs/") {
            return None;
        }
        match self.planted {
            Planted::LostPack => {}
            Planted::EarlyRef => *locked(&self.late) = Some((name.to_owned(), bytes.to_vec())),
            _ => return None,
        }
        Some(DepotWrite::Done(DepotTag::new("pack")))
    }

    fn tag(&self, name: &str) -> Result<Option<DepotTag>, DepotError> {
        Ok(match self.memory.get(name, None)? {
            DepotRead::Whole { tag, .. } => Some(tag),
            DepotRead::Absent | DepotRead::Unchanged => None,
        })
    }
}

impl Depot for SimulatedDepot {
    fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError> {
        let name = &self.mapped(name);
        self.request((name, false), &|| self.memory.get(name, known))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
        let written = self.write(&DepotChange::New(name.to_owned()), &|name| {
            if let Some(written) = self.put_pack(name, bytes) {
                return Ok(written);
            }
            self.memory.put_new(name, bytes)
        });
        if name.starts_with("packs/") && written.is_ok() {
            self.await_answer(name);
        }
        written
    }

    fn swap(
        &self,
        name: &str,
        expected: &DepotTag,
        bytes: &[u8],
    ) -> Result<DepotWrite, DepotError> {
        self.write(&DepotChange::Swapped(name.to_owned()), &|name| {
            let blind = if self.planted == Planted::BlindSwap { self.tag(name)? } else { None };
            self.memory.swap(name, blind.as_ref().unwrap_or(expected), bytes)
        })
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError> {
        self.request((prefix, false), &|| self.memory.list(prefix, after))
    }

    fn remove(&self, name: &str) -> Result<(), DepotError> {
        let removed = DepotChange::Removed(name.to_owned());
        self.request((name, true), &|| {
            self.memory.remove(name)?;
            locked(&self.changes).push(removed.clone());
            Ok(())
        })
    }

    fn now(&self) -> Result<Timestamp, DepotError> {
        let ahead = if self.planted == Planted::EarlyTidy { 25 * 3_600_000_000 } else { 0 };
        self.request(("now", false), &|| {
            Ok(Timestamp::from_micros(self.memory.now()?.as_micros() + ahead))
        })
    }

    fn uptime(&self) -> Duration {
        if self.planted == Planted::LongPush {
            return Duration::ZERO;
        }
        let now = self.memory.now().unwrap_or_default();
        Duration::from_micros(now.as_micros().unsigned_abs())
    }
}
