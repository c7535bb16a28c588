//! Clones that share sessions through a depot, and the schedule by which they take turns.

use super::depot::{Planted, SimulatedDepot};
use super::mix::Mix;
use super::task::{RunningTask, Task};
use crate::bundle::law::{step, time};
use crate::fault::{SeededNumbers, scratch_folder};
use crate::remote::SECRET;
use forge_store::model::{Key, Kind, OperationId, SessionHandle, SessionId, Value};
use forge_store::redact::KnownSecrets;
use forge_store::store::remote::{Depot, MemoryDepot, Remote};
use forge_store::store::{
    ClaimChange, NewSession, OperationSummary, Options, Session, Store, WriteContext,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tempfile::TempDir;

pub(super) const SESSIONS: usize = 2;
/// The minutes that the request that writes a ref is under way at most, apart from the turns that
/// it waits. A pusher names packs that are up to 12 hours old, and garbage is kept for 24.
const LONGEST_REQUEST: u64 = 8 * 60;

pub(super) fn act(verb: &str, minute: u64) -> WriteContext {
    WriteContext::asked(verb, time(minute))
}

/// A clone: a store, in a folder or in memory, and the remote as it sees it.
pub(super) struct SimulatedClone {
    pub(super) folder: Option<TempDir>,
    store: Option<Store>,
    pub(super) remote: Option<Arc<Remote>>,
    pub(super) depot: Arc<SimulatedDepot>,
    pub(super) running: Option<RunningTask>,
    /// Whether something was written to a session since it was pushed.
    pub(super) is_dirty: [bool; SESSIONS],
    /// The turn of the last contact with the remote.
    pub(super) contact: u64,
}

impl SimulatedClone {
    fn new(memory: &MemoryDepot, planted: Planted, number: usize, in_memory: bool) -> Self {
        let folder = (!in_memory).then(scratch_folder);
        let store = match &folder {
            Some(folder) => Store::create(&folder.path().join("store"), Options::default()),
            None => Store::in_memory(),
        };
        let depot = Arc::new(SimulatedDepot::new(memory, planted, number));
        let mut clone = Self {
            folder,
            store: Some(store.unwrap()),
            remote: None,
            depot,
            running: None,
            is_dirty: [false; SESSIONS],
            contact: 0,
        };
        clone.join_remote();
        clone
    }

    fn join_remote(&mut self) {
        let depot: Arc<dyn Depot> = Arc::<SimulatedDepot>::clone(&self.depot);
        self.remote = Some(Arc::new(Remote::open(depot, &SECRET).unwrap()));
    }

    pub(super) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(super) fn remote(&self) -> &Remote {
        self.remote.as_ref().unwrap()
    }

    /// The folder of the store; `None` if it is in memory.
    pub(super) fn path(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.path().join("store"))
    }

    /// Opens the store and the remote again, as another process does.
    fn open_again(&mut self) {
        let Some(path) = self.path() else { return };
        (self.store, self.remote) = (None, None);
        self.store = Some(Store::open(&path, Options::default()).unwrap());
        self.join_remote();
    }
}

/// A session that the clones share.
pub(super) struct SharedSession {
    pub(super) name: String,
    pub(super) id: SessionId,
    pub(super) handle: SessionHandle,
    /// The clone that began it.
    home: usize,
}

/// A secret that was written.
pub(super) struct PlantedSecret {
    pub(super) word: String,
    /// The turn in which it was purged.
    pub(super) purged: Option<u64>,
}

/// What must hold for a session, whatever happens.
#[derive(Default)]
pub(super) struct Acknowledged {
    /// The operations that clones had, each with the first clone that had it, and what it did.
    pub(super) operations: BTreeMap<OperationId, (usize, String)>,
    /// The operations that a join may remove: prunings that were not pushed, which are left to the
    /// next one, and what others did or took back too.
    pub(super) passing: BTreeSet<OperationId>,
    /// The operations that each clone has, or had.
    pub(super) had: BTreeMap<usize, BTreeSet<OperationId>>,
    /// The ids of the revisions that were on the remote, by number.
    pub(super) pushed: BTreeMap<u64, String>,
    /// The clones that cannot join the session, because of what others pruned or took back.
    pub(super) apart: BTreeSet<usize>,
}

/// A history: the clones, the depot and what is known of them outside.
pub(super) struct World {
    pub(super) numbers: SeededNumbers,
    pub(super) memory: MemoryDepot,
    pub(super) planted: Planted,
    pub(super) mix: Mix,
    pub(super) clones: Vec<SimulatedClone>,
    /// A clone that only pulls, without faults.
    pub(super) observer: SimulatedClone,
    pub(super) sessions: Vec<SharedSession>,
    pub(super) acknowledged: [Acknowledged; SESSIONS],
    pub(super) secrets: Vec<PlantedSecret>,
    pub(super) minute: u64,
    pub(super) turn: u64,
    pub(super) log: String,
}

impl Drop for World {
    fn drop(&mut self) {
        for clone in &mut self.clones {
            // The thread of a task ends when its link is dropped.
            if let Some(running) = clone.running.take() {
                drop(running.verdicts);
                let _ = running.thread.map(JoinHandle::join);
            }
        }
        if thread::panicking() {
            eprintln!("{}", self.log);
        }
    }
}

impl World {
    pub(super) fn new(seed: u64, planted: Planted, mix: Mix) -> Self {
        let mut numbers = SeededNumbers(seed);
        let memory = MemoryDepot::default();
        memory.set_now(time(0));
        Remote::create(Arc::new(memory.clone()), &SECRET).unwrap();
        let clones: Vec<_> = (0..3 + numbers.below(2) as usize)
            .map(|number| SimulatedClone::new(&memory, planted, number, number >= 2))
            .collect();
        let mut sessions = Vec::new();
        for (home, clone) in clones.iter().enumerate().take(SESSIONS) {
            let name = format!("s{home}");
            let (store, remote) = (clone.store(), clone.remote());
            let session = store.create_session(&act("begin", 0), NewSession::named(&*name));
            let id = session.unwrap().summary().unwrap().info.id;
            sessions.push(SharedSession { name, id, handle: remote.handle(&id).unwrap(), home });
        }
        // The observer has no planted fault, except that notices are separate for each clone.
        let its_own = if planted == Planted::OwnNotices { planted } else { Planted::Nothing };
        let observer = SimulatedClone::new(&memory, its_own, clones.len(), true);
        let (acknowledged, secrets, log) = Default::default();
        let (minute, turn) = (1, 1);
        let mut world = Self {
            numbers,
            memory,
            planted,
            mix,
            clones,
            observer,
            sessions,
            acknowledged,
            secrets,
            minute,
            turn,
            log,
        };
        world.share();
        world
    }

    /// Brings the sessions to all clones.
    fn share(&mut self) {
        for session in &self.sessions {
            let home = &self.clones[session.home];
            let there = home.store().session(&session.name).unwrap();
            home.store().push(&act("push", 1), home.remote(), &there).unwrap();
            for clone in self.clones.iter().filter(|clone| !Arc::ptr_eq(&clone.depot, &home.depot))
            {
                clone.store().pull(&act("pull", 1), clone.remote(), &session.handle, None).unwrap();
            }
        }
        self.clones.iter().for_each(|clone| drop(clone.depot.take_changes()));
    }

    pub(super) fn note(&mut self, line: &str) {
        writeln!(self.log, "{}: {line}", self.turn).unwrap();
    }

    /// Returns whether something happens that has this chance of 100.
    pub(super) fn happens(&mut self, chance: u64) -> bool {
        self.numbers.below(100) < chance
    }

    pub(super) fn session_of(&self, clone: usize, session: usize) -> Option<Session> {
        self.clones[clone].store().session(&self.sessions[session].name).ok()
    }

    /// Executes one turn: a random clone does something.
    pub(super) fn take_turn(&mut self) -> Result<(), String> {
        self.turn += 1;
        self.minute += 1;
        self.memory.set_now(time(self.minute));
        let which = self.numbers.below(self.clones.len() as u64) as usize;
        if let Some(running) = &mut self.clones[which].running {
            if running.still > 0 {
                running.still -= 1;
                return Ok(());
            }
            return self.go_on(which);
        }
        let session = self.numbers.below(SESSIONS as u64) as usize;
        let mix = self.mix;
        let mut left = self.numbers.below(100);
        let mut is_next = |share: u64| {
            let is_next = left < share;
            left = if is_next { u64::MAX } else { left - share.min(left) };
            is_next
        };
        match () {
            () if is_next(mix.write) => self.write(which, session)?,
            () if is_next(mix.purge) => self.purge(which),
            () if is_next(mix.sweep) => self.sweep(which),
            () if is_next(mix.open_again) => self.open_again(which),
            () if is_next(mix.wait_for_days) => self.wait_for_days(),
            () if is_next(mix.tidy) => self.begin(which, Task::Tidy)?,
            () if is_next(mix.finish_purges) => self.begin(which, Task::FinishPurges)?,
            () if is_next(mix.pull) => self.begin(which, Task::Pull(session))?,
            () => self.begin(which, Task::Push(session))?,
        }
        Ok(())
    }

    /// Lets some time pass, in which garbage may get old.
    pub(super) fn wait_for_days(&mut self) {
        let minutes = 10 + self.numbers.below(40 * 60);
        self.wait(minutes);
    }

    /// Lets this many minutes pass, or fewer if a request to write a ref is under way.
    pub(super) fn wait(&mut self, minutes: u64) {
        let tasks = self.clones.iter().filter_map(|clone| clone.running.as_ref());
        let first = tasks.filter_map(|running| running.writes_ref_since).min();
        let wanted = self.minute + minutes;
        let until = first.map_or(wanted, |began| wanted.min(began + LONGEST_REQUEST));
        self.minute = self.minute.max(until);
        self.memory.set_now(time(self.minute));
        self.note(&format!("it is minute {}", self.minute));
    }

    /// Writes something to a session of a clone, as a process that does not know of the task.
    pub(super) fn write(&mut self, which: usize, session: usize) -> Result<(), String> {
        let Some(there) = self.session_of(which, session) else { return Ok(()) };
        for _ in 0..=self.numbers.below(3) {
            self.write_once(which, (&there, session))?;
        }
        Ok(())
    }

    fn write_once(
        &mut self,
        which: usize,
        (there, session): (&Session, usize),
    ) -> Result<(), String> {
        let what = (self.numbers.below(26) as u8, self.numbers.below(256) as u8);
        let is_home = self.sessions[session].home == which;
        // What both sides read of a source, or swept before it was pushed, cannot be joined.
        if what.0 == 14 || (what.0 == 16 && !is_home) {
            return Ok(());
        }
        let text =
            if self.happens(self.mix.secrets) { self.secret_for(which) } else { String::new() };
        self.note(&format!("clone {which} does {what:?} in s{session}, {text:?}"));
        self.clones[which].is_dirty[session] = true;
        if self.happens(self.mix.large) {
            self.write_much(there, &text);
        } else {
            step(self.clones[which].store(), there, self.minute, what, &text);
        }
        self.acknowledge(there, (which, session))
    }

    /// Writes what is too large for a ref.
    fn write_much(&mut self, session: &Session, words: &str) {
        let mut noise = vec![0; 20_000];
        blake3::Hasher::new().update(&self.turn.to_le_bytes()).finalize_xof().fill(&mut noise);
        let mut text = String::new();
        noise.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        let value = Value::from([
            ("description", format!("{words} {text}").as_str().into()),
            ("source", "t".into()),
        ]);
        let change = ClaimChange::put(Key::new(Kind::Note, "large"), value);
        session.write(&act("large", self.minute)).change(change).commit().unwrap();
    }

    /// Notes the operations that a clone has in a session: none may be lost.
    pub(super) fn acknowledge(
        &mut self,
        there: &Session,
        (which, session): (usize, usize),
    ) -> Result<(), String> {
        let Acknowledged { operations, passing, had, .. } = &mut self.acknowledged[session];
        let mut has = BTreeSet::new();
        // Oldest first.
        for one in there.operations(usize::MAX).unwrap().into_iter().rev() {
            let is_new = !operations.contains_key(&one.id) && !passing.contains(&one.id);
            // Others may have recorded the same event, or taken the same back.
            let is_shared = one.effects.iter().all(|effect| effect.contains("checkpoint"));
            if is_new && (one.takes_back.is_some() || one.verb == "prune" || is_shared) {
                passing.insert(one.id);
            } else if is_new && !is_purge(&one) {
                let description = format!("{}, turn {}: {:?}", one.verb, self.turn, one.effects);
                operations.insert(one.id, (which, description));
            }
            if operations.contains_key(&one.id) {
                has.insert(one.id);
            }
        }
        let had = had.entry(which).or_default();
        if let Some(lost) = had.difference(&has).next() {
            return Err(format!("clone {which} has lost {lost} ({:?})", operations[lost]));
        }
        *had = has;
        Ok(())
    }

    /// Returns a secret that the clone may write: a new one, or one that the clone does not know to
    /// be purged.
    fn secret_for(&mut self, which: usize) -> String {
        let learns_of_purges =
            !matches!(self.planted, Planted::OwnNotices | Planted::ForgottenPurge);
        let contact = if learns_of_purges { self.clones[which].contact } else { 0 };
        let known = self.secrets.iter().filter(|one| one.purged.is_none_or(|turn| turn > contact));
        let known: Vec<_> = known.map(|one| one.word.clone()).collect();
        if !known.is_empty() && self.happens(50) {
            return known[self.numbers.below(known.len() as u64) as usize].clone();
        }
        // The end of a text that was cut counts as the secret that begins like it.
        let begin = blake3::hash(&self.secrets.len().to_le_bytes()).to_hex();
        let word = format!("{}/Zx9Kq2-Lm7.", &begin[..10]);
        self.secrets.push(PlantedSecret { word: word.clone(), purged: None });
        word
    }

    /// Purges a secret that the clone has. Clones in memory do not purge.
    fn purge(&mut self, which: usize) {
        if self.secrets.is_empty() || self.clones[which].folder.is_none() {
            return;
        }
        // Later secrets are more probable.
        let all = self.secrets.len() as u64;
        let secret = self.numbers.below(all).max(self.numbers.below(all)) as usize;
        let known = KnownSecrets::new([&*self.secrets[secret].word]).unwrap();
        self.note(&format!("clone {which} purges {:?}", self.secrets[secret].word));
        let purging = act("purge", self.minute);
        let store = self.clones[which].store();
        let report = store.purge(&purging, &known, None, &|_, _| None, &|_| ()).unwrap();
        assert!(report.is_done(), "{report:?}");
        if !report.places.is_empty() {
            self.secrets[secret].purged.get_or_insert(self.turn);
        }
    }

    /// Prunes permanently, if all that the clone has was pushed.
    fn sweep(&mut self, which: usize) {
        let clone = &self.clones[which];
        if clone.is_dirty != [false; SESSIONS] {
            return;
        }
        self.note(&format!("clone {which} sweeps"));
        self.clones[which].store().sweep(time(self.minute), time(self.minute)).unwrap();
    }

    pub(super) fn open_again(&mut self, which: usize) {
        self.note(&format!("clone {which} is opened again"));
        if self.planted == Planted::ForgottenPurge
            && let Some(path) = self.clones[which].path()
        {
            let id = self.clones[which].remote().id().to_string();
            let _ = std::fs::remove_file(path.join("remotes").join(id).join("purges"));
        }
        self.clones[which].open_again();
    }
}

/// Returns the operations of a session without purges, which are operations of each store.
pub(super) fn shared_operations(session: &Session) -> BTreeMap<OperationId, OperationSummary> {
    let all = session.operations(usize::MAX).unwrap().into_iter();
    all.filter(|one| !is_purge(one)).map(|one| (one.id, one)).collect()
}

fn is_purge(operation: &OperationSummary) -> bool {
    operation.effects.iter().any(|effect| effect.contains("permanently purged"))
}
