//! What must hold during a history, and at its end.

use super::depot::Planted;
use super::task::is_apart;
use super::world::{
    Acknowledged, SESSIONS, SharedSession, SimulatedClone, World, act, shared_operations,
};
use crate::bundle::law::{shared_session_contents, time};
use crate::remote::{SECRET, revisions};
use forge_store::format::remote::{
    RemoteKeys, RemoteRef, SessionPlace, handle_in, pack_name, ref_name,
};
use forge_store::redact::KnownSecrets;
use forge_store::store::remote::{Depot, DepotRead, MemoryDepot, Remote};
use forge_store::store::{Session, Store, VerifyDepth, VerifyOutcome};
use forge_store::{Error, ErrorKind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Clones have nothing new after at most this many rounds in which each pulls and pushes.
const ROUNDS: usize = 8;

/// Checks that each ref on the remote opens, and that what it names is there.
pub(super) fn check_refs(world: &World) -> Result<(), String> {
    let keys = RemoteKeys::new(&SECRET);
    let remote = world.observer.remote().id();
    for entry in world.memory.list("refs/", "").unwrap() {
        let handle = handle_in(&entry.name).ok_or_else(|| format!("what is {}", entry.name))?;
        let Some(stored) = read(&world.memory, &entry.name) else { continue };
        let opened =
            RemoteRef::open(&SessionPlace { remote, handle }, &keys.session(&handle), &stored);
        let opened = opened.map_err(|error| format!("{}: {error}", entry.name))?;
        for pack in opened.content.packs.iter().filter(|pack| pack.inline.is_none()) {
            let name = pack_name(&handle, &pack.name);
            let Some(stored) = read(&world.memory, &name) else {
                return Err(format!("{} names {name}, which is not there", entry.name));
            };
            pack.check_stored(&stored).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    Ok(())
}

fn read(memory: &MemoryDepot, name: &str) -> Option<Vec<u8>> {
    match memory.get(name, None).unwrap() {
        DepotRead::Whole { bytes, .. } => Some(bytes),
        DepotRead::Absent | DepotRead::Unchanged => None,
    }
}

/// What must be equal in all clones of a session. Operations are sorted, because each clone lists
/// them in the order in which it got them. Purges are left out, because they belong to one store.
fn alike(session: &Session) -> String {
    let text = shared_session_contents(session);
    let (before, rest) = text.split_once("\noperations: ").unwrap();
    let (_, after) = rest.split_once("\nhistory: ").unwrap();
    let mut operations: Vec<_> = shared_operations(session)
        .into_values()
        .map(|one| {
            let mut effects = one.effects.join(", ");
            effects = effects.replace(" in another store", "");
            format!("{} {} {effects} {:?} {}", one.id, one.verb, one.takes_back, one.taken_back)
        })
        .collect();
    operations.sort_unstable();
    format!("{before}\n{after}\n{}", operations.join("\n"))
}

/// Returns the first line that differs.
fn difference(one: &str, other: &str) -> String {
    let (mut these, mut those) = (one.lines(), other.lines());
    loop {
        match (these.next(), those.next()) {
            (None, None) => return "the ends of lines".to_owned(),
            (this, that) if this == that => {}
            (this, that) => {
                let [this, that] = [this, that].map(|line| line.unwrap_or("nothing"));
                let pairs = this.chars().zip(that.chars());
                let from = pairs.take_while(|(a, b)| a == b).count().saturating_sub(80);
                let [this, that] =
                    [this, that].map(|line| line.chars().skip(from).take(300).collect::<String>());
                return format!("{this:?} and {that:?}");
            }
        }
    }
}

/// Lets a clone pull and push a session. Returns whether anything was new.
fn sync((clone, session): (&SimulatedClone, &SharedSession), minute: u64) -> Result<bool, Error> {
    let (store, remote, act) = (clone.store(), clone.remote(), act("sync", minute));
    let mut is_new = match store.pull(&act, remote, &session.handle, None) {
        Ok(pulled) => pulled.operations > 0,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    if let Ok(there) = store.session(&session.name) {
        let pushed = store.push(&act, remote, &there)?;
        is_new |= pushed.operations > 0 || pushed.rewritten.is_some();
    }
    Ok(is_new)
}

impl World {
    /// Lets the observer pull a session, and checks that nothing that was pushed has changed.
    pub(super) fn observe(&mut self, session: usize) -> Result<(), String> {
        let SharedSession { name, handle, .. } = &self.sessions[session];
        let (store, remote) = (self.observer.store(), self.observer.remote());
        let pulled = store.pull(&act("observe", self.minute), remote, handle, None);
        pulled.map_err(|error| format!("the observer cannot pull {name}: {error}"))?;
        let now = revisions(&store.session(name).unwrap());
        let pushed = &mut self.acknowledged[session].pushed;
        for (number, id) in now {
            let before = pushed.entry(number).or_insert_with(|| id.clone());
            if *before != id {
                return Err(format!("#{number} of {name} was {before} and is {id}"));
            }
        }
        Ok(())
    }

    /// Lets all clones exchange everything without faults, and checks all laws.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.end_tasks()?;
        let mut rounds = 0;
        while self.exchange()? {
            rounds += 1;
            if rounds == ROUNDS {
                return Err("the clones always have something new".to_owned());
            }
        }
        for session in 0..SESSIONS {
            if self.is_on_remote(session)? {
                self.observe(session)?;
                self.check_session(session)?;
            }
        }
        self.check_depot()?;
        self.check_secrets()?;
        self.clones.iter().try_for_each(check_store)
    }

    fn is_on_remote(&self, session: usize) -> Result<bool, String> {
        let found = self.observer.remote().session(&self.sessions[session].handle);
        found.map(|found| found.is_some()).map_err(|error| error.to_string())
    }

    /// Lets each clone pull and push all that it has. Returns whether anything was new.
    fn exchange(&mut self) -> Result<bool, String> {
        let mut is_new = false;
        for (which, clone) in self.clones.iter().enumerate() {
            for (number, session) in self.sessions.iter().enumerate() {
                let apart = &mut self.acknowledged[number].apart;
                match sync((clone, session), self.minute) {
                    Ok(new) => {
                        is_new |= new;
                        apart.remove(&which);
                    }
                    Err(error) if is_apart(&error) => {
                        apart.insert(which);
                    }
                    Err(error) => {
                        return Err(format!("clone {which} cannot sync {}: {error}", session.name));
                    }
                }
            }
            let (store, remote, act) = (clone.store(), clone.remote(), act("sync", self.minute));
            let (finished, done) = store.finish_purges(&act, remote);
            done.map_err(|error| error.to_string())?;
            is_new |= finished.activity.written > 0 || !finished.activity.replaced.is_empty();
            is_new |= !finished.rewritten.is_empty();
            if !finished.activity.left.is_empty() || !finished.unpushed.is_empty() {
                return Err(format!("clone {which} did not finish: {finished:?}"));
            }
        }
        Ok(is_new)
    }

    fn check_session(&self, session: usize) -> Result<(), String> {
        let SharedSession { name, id, .. } = &self.sessions[session];
        let observed = self.observer.store().session(name).unwrap();
        let wanted = alike(&observed);
        let is_joined = |which| !self.acknowledged[session].apart.contains(&which);
        for (which, clone) in self.clones.iter().enumerate().filter(|(which, _)| is_joined(*which))
        {
            let there = clone.store().session(name);
            let there = there.map_err(|error| format!("clone {which} has no {name}: {error}"))?;
            if there.summary().unwrap().info.id != *id {
                return Err(format!("clone {which} has another session {name}"));
            }
            let found = alike(&there);
            if found != wanted {
                let different = difference(&found, &wanted);
                return Err(format!("clone {which} has another {name}: {different}"));
            }
        }
        let all = observed.operations(usize::MAX).unwrap();
        let ids: BTreeSet<_> = all.iter().map(|one| one.id).collect();
        if ids.len() < all.len() {
            return Err(format!("{name} has an operation twice"));
        }
        let Acknowledged { operations, apart, .. } = &self.acknowledged[session];
        let mut joined = operations.iter().filter(|(_, (first, _))| !apart.contains(first));
        match joined.find(|(id, _)| !ids.contains(id)) {
            Some((lost, what)) => Err(format!("{name} has lost {lost} ({what:?})")),
            None => Ok(()),
        }
    }

    /// Checks that only what is needed is left on the remote when garbage is a day old.
    fn check_depot(&mut self) -> Result<(), String> {
        self.minute += 2 * 24 * 60;
        self.memory.set_now(time(self.minute));
        self.observer.remote().tidy().map_err(|error| error.to_string())?;
        check_refs(self)?;
        let remote = self.observer.remote().id();
        let keys = RemoteKeys::new(&SECRET);
        let mut named = BTreeSet::new();
        for session in &self.sessions {
            let handle = session.handle;
            let name = ref_name(&handle);
            let Some(stored) = read(&self.memory, &name) else { continue };
            let place = SessionPlace { remote, handle };
            let opened = RemoteRef::open(&place, &keys.session(&handle), &stored).unwrap();
            named.extend(opened.content.packs.iter().map(|pack| pack_name(&handle, &pack.name)));
        }
        for entry in self.memory.list("packs/", "").unwrap() {
            if !named.contains(&entry.name) {
                return Err(format!("{} is left though nothing names it", entry.name));
            }
        }
        Ok(())
    }

    /// Checks that no clone, and none that is made now, has what was purged.
    fn check_secrets(&self) -> Result<(), String> {
        let purged = self.secrets.iter().filter(|secret| secret.purged.is_some());
        let words: Vec<_> = purged.map(|secret| secret.word.as_str()).collect();
        if words.is_empty() {
            return Ok(());
        }
        let known = KnownSecrets::new(words).unwrap();
        let new = Store::in_memory().unwrap();
        let depot: Arc<dyn Depot> = Arc::new(self.memory.clone());
        let remote = Remote::open(depot, &SECRET).unwrap();
        for session in remote.sessions().unwrap() {
            let pulled = new.pull(&act("pull", self.minute), &remote, &session.handle, None);
            pulled.map_err(|error| format!("a new clone cannot pull: {error}"))?;
        }
        let activity = remote.take_purge_activity();
        if self.planted == Planted::Nothing && !activity.replaced.is_empty() {
            return Err(format!("the remote has what was purged: {activity:?}"));
        }
        let stores = self.clones.iter().map(SimulatedClone::store).chain([&new]);
        for (which, store) in stores.enumerate() {
            let preview = act("preview", self.minute);
            let found = store.purge_preview(&preview, &known, &|_, _| None, &|_| ()).unwrap();
            if !found.places.is_empty() || !found.searched.found.is_empty() {
                return Err(format!("clone {which} has what was purged: {:?}", found.places));
            }
        }
        Ok(())
    }
}

fn check_store(clone: &SimulatedClone) -> Result<(), String> {
    let Some(path) = clone.path() else { return Ok(()) };
    let verified = Store::verify(&path, VerifyDepth::ReadData, time(9), None).unwrap();
    match verified.outcome {
        VerifyOutcome::Clean => Ok(()),
        _ => Err(format!("{:?}", verified.findings)),
    }
}
