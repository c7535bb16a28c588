//! Requests that fail, and answers that are lost.

use super::{Machine, SECRET, read};
use crate::bundle::law::{same, shared_contents};
use crate::bundle::{act, note};
use forge_store::error::DepotError;
use forge_store::model::Timestamp;
use forge_store::store::NewSession;
use forge_store::store::remote::{
    Depot, DepotEntry, DepotRead, DepotTag, DepotWrite, MemoryDepot, Remote,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does not arrive.
    Refused,
    /// It does not arrive, and the caller cannot know.
    RequestLost,
    /// It is done, and the caller cannot know.
    AnswerLost,
}

/// A depot in which one request goes wrong.
pub(super) struct FaultyDepot {
    depot: MemoryDepot,
    /// The number of requests before that one; negative afterwards.
    left: AtomicI64,
    fault: Fault,
}

impl FaultyDepot {
    /// A depot in which the request after this many goes wrong.
    pub(super) fn new(depot: &MemoryDepot, before: i64, fault: Fault) -> Self {
        Self { depot: depot.clone(), left: AtomicI64::new(before), fault }
    }

    /// Returns whether this request is the one that goes wrong.
    fn strikes(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) == 0
    }

    fn wrong(&self, name: &str) -> DepotError {
        match self.fault {
            Fault::Refused => {
                DepotError::Unavailable { what: "no network".to_owned(), source: None }
            }
            _ => DepotError::Unsure { name: name.to_owned(), source: "a lost answer".into() },
        }
    }

    fn write(
        &self,
        name: &str,
        write: &dyn Fn() -> Result<DepotWrite, DepotError>,
    ) -> Result<DepotWrite, DepotError> {
        if !self.strikes() {
            return write();
        }
        if self.fault == Fault::AnswerLost {
            write()?;
        }
        Err(self.wrong(name))
    }

    fn read<T>(&self, read: &dyn Fn() -> Result<T, DepotError>) -> Result<T, DepotError> {
        match self.strikes() {
            true => Err(DepotError::Unavailable { what: "no network".to_owned(), source: None }),
            false => read(),
        }
    }
}

impl Depot for FaultyDepot {
    fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError> {
        self.read(&|| self.depot.get(name, known))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
        self.write(name, &|| self.depot.put_new(name, bytes))
    }

    fn swap(
        &self,
        name: &str,
        expected: &DepotTag,
        bytes: &[u8],
    ) -> Result<DepotWrite, DepotError> {
        self.write(name, &|| self.depot.swap(name, expected, bytes))
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError> {
        self.read(&|| self.depot.list(prefix, after))
    }

    fn remove(&self, name: &str) -> Result<(), DepotError> {
        self.read(&|| self.depot.remove(name))
    }

    fn now(&self) -> Result<Timestamp, DepotError> {
        self.read(&|| self.depot.now())
    }
}

#[test]
fn a_push_or_pull_with_a_lost_request_or_answer_is_repeated_and_nothing_is_lost_or_doubled() {
    let mut failed = 0;
    for fault in [Fault::Refused, Fault::RequestLost, Fault::AnswerLost] {
        for before in 0..14 {
            let memory = MemoryDepot::default();
            Remote::create(Arc::new(memory.clone()), &SECRET).unwrap();
            let plain: Arc<dyn Depot> = Arc::new(memory.clone());
            let (first, second) = (Machine::new(&plain), Machine::new(&plain));
            first.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
            let faulty: Arc<dyn Depot> = Arc::new(FaultyDepot::new(&memory, before, fault));
            let opened = Remote::open(Arc::clone(&faulty), &SECRET);
            let remote = opened.or_else(|_| Remote::open(faulty, &SECRET)).unwrap();
            let flaky = Machine { store: first.store.clone(), remote };
            for round in 0..4 {
                let machine = if round == 2 { &second } else { &flaky };
                if round > 0 && machine.pull().is_err() {
                    failed += 1;
                    machine.pull().unwrap();
                }
                note(&machine.session(), &format!("N{round}"), &"text ".repeat(round * 9000));
                if machine.push().is_err() {
                    failed += 1;
                    machine.push().unwrap();
                }
            }
            second.pull().unwrap();
            let what = format!("{fault:?} after {before}");
            same(&shared_contents(&second.store), &shared_contents(&flaky.store), &what);
            assert_eq!(flaky.push().unwrap().operations, 0, "{what}");
            assert_eq!(second.remote.sessions().unwrap()[0].summary.claims, 4, "{what}");
        }
    }
    assert!(failed > 10, "{failed}");
}

#[test]
fn a_pack_that_is_missing_or_damaged_is_named_and_nothing_is_imported() {
    let memory = MemoryDepot::default();
    let depot: Arc<dyn Depot> = Arc::new(memory.clone());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let first = Machine::new(&depot);
    first.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    let mut noise = vec![0; 30_000];
    blake3::Hasher::new().finalize_xof().fill(&mut noise);
    note(&first.session(), "A", &format!("{noise:?}"));
    first.push().unwrap();
    let name = memory.list("packs/", "").unwrap()[0].name.clone();
    let whole = read(&memory, &name);
    let mut altered = whole.clone();
    altered[20_000] ^= 1;
    for wrong in [None, Some(altered), Some(whole[..whole.len() - 1].to_vec())] {
        memory.remove(&name).unwrap();
        if let Some(wrong) = &wrong {
            memory.put_new(&name, wrong).unwrap();
        }
        let second = Machine::new(&depot);
        let error = second.pull().unwrap_err();
        assert_eq!(error.kind(), forge_store::ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(&name), "{error}");
        assert!(second.store.every_session().unwrap().is_empty());
    }
    memory.remove(&name).unwrap();
    memory.put_new(&name, &whole).unwrap();
    let second = Machine::new(&depot);
    second.pull().unwrap();
    same(&shared_contents(&second.store), &shared_contents(&first.store), "with the pack");
}
