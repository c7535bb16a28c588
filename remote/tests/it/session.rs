//! Two stores that share a session through a server, and how many requests that takes.

use crate::server::{Server, ServerKind};
use forge_remote::ObjectDepot;
use forge_store::error::DepotError;
use forge_store::store::remote::{
    Depot, DepotEntry, DepotRead, DepotRequests, DepotTag, DepotWrite, Remote,
};
use forge_store::store::{NewSession, VerifyDepth, VerifyOutcome};
use forge_store::{Note, Options, Session, Store, Timestamp, WriteContext};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const SECRET: [u8; 32] = [7; 32];

/// A depot that counts its calls. Each is one request; see
/// `failure::each_call_of_a_depot_is_one_request`.
struct CountedDepot {
    depot: ObjectDepot,
    requests: Mutex<DepotRequests>,
}

impl CountedDepot {
    fn count(&self, add: impl FnOnce(&mut DepotRequests)) {
        add(&mut self.requests.lock().unwrap());
    }

    fn take_requests(&self) -> DepotRequests {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

impl Depot for CountedDepot {
    fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError> {
        self.count(|requests| requests.get += 1);
        self.depot.get(name, known)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
        self.count(|requests| requests.put_new += 1);
        self.depot.put_new(name, bytes)
    }

    fn swap(
        &self,
        name: &str,
        expected: &DepotTag,
        bytes: &[u8],
    ) -> Result<DepotWrite, DepotError> {
        self.count(|requests| requests.swap += 1);
        self.depot.swap(name, expected, bytes)
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError> {
        self.count(|requests| requests.list += 1);
        self.depot.list(prefix, after)
    }

    fn remove(&self, name: &str) -> Result<(), DepotError> {
        self.count(|requests| requests.remove += 1);
        self.depot.remove(name)
    }

    fn now(&self) -> Result<Timestamp, DepotError> {
        self.count(|requests| requests.now += 1);
        self.depot.now()
    }
}

/// A store on disk, with its own connection to the remote.
struct Machine {
    folder: TempDir,
    store: Store,
    depot: Arc<CountedDepot>,
    remote: Remote,
}

impl Machine {
    fn new(server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(&folder.path().join("store"), Options::default());
        let depot = CountedDepot { depot: server.depot("team/one"), requests: Mutex::default() };
        let depot = Arc::new(depot);
        let remote = Remote::open(Arc::clone(&depot) as Arc<dyn Depot>, &SECRET).unwrap();
        depot.take_requests();
        Self { folder, store: store.unwrap(), depot, remote }
    }

    fn session(&self) -> Session {
        self.store.session("s").unwrap()
    }

    fn note(&self, text: &str) {
        self.session().add(&act("note"), Note::default().description(text)).unwrap();
    }

    /// Pushes the session. Returns how many operations were pushed, and the requests.
    fn push(&self) -> (u64, DepotRequests) {
        let report = self.store.push(&act("push"), &self.remote, &self.session()).unwrap();
        (report.operations, self.depot.take_requests())
    }

    /// Pulls the only session. Returns how many operations came, and the requests without those
    /// that find the session.
    fn pull(&self) -> (u64, DepotRequests) {
        let handle = self.remote.sessions().unwrap()[0].handle;
        self.depot.take_requests();
        let report = self.store.pull(&act("pull"), &self.remote, &handle, None).unwrap();
        (report.operations, self.depot.take_requests())
    }

    /// Returns the notes of the session, oldest first.
    fn notes(&self) -> Vec<Option<String>> {
        let session = self.session();
        let state = session.state(&session.head().unwrap()).unwrap();
        state.all::<Note>().unwrap().into_iter().map(|(_, note)| note.description).collect()
    }
}

fn act(action: &str) -> WriteContext {
    WriteContext::asked(action, Timestamp::now())
}

#[test]
fn two_stores_share_a_session_through_seaweedfs() {
    let Some(server) = Server::start(ServerKind::SeaweedFs, "shared_session") else { return };
    let depot: Arc<dyn Depot> = Arc::new(server.depot("team/one"));
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    assert!(Remote::create(depot, &SECRET).is_err(), "there is a remote already");
    let (first, second) = (Machine::new(&server), Machine::new(&server));
    first.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    first.note("one");
    let none = DepotRequests::default();
    // A push of a session that is not on the remote looks for it there first. One request of each
    // push and pull looks for purge notices.
    assert_eq!(first.push(), (1, DepotRequests { get: 2, put_new: 1, ..none }));
    assert_eq!(second.pull(), (1, DepotRequests { get: 2, ..none }));
    assert_eq!(second.pull(), (0, DepotRequests { get: 2, ..none }));
    second.note("two");
    assert_eq!(second.push(), (1, DepotRequests { get: 1, swap: 1, ..none }));
    assert_eq!(second.push(), (0, DepotRequests { get: 2, ..none }));
    assert_eq!(first.pull(), (1, DepotRequests { get: 2, ..none }));
    // A large pack is a separate object.
    for number in 0..50_u32 {
        first
            .note(&format!("{number} {}", blake3::hash(&number.to_le_bytes()).to_hex().repeat(20)));
    }
    let (pushed, requests) = first.push();
    assert_eq!(pushed, 50);
    let others = requests.total() - requests.put_new;
    assert_eq!((requests.swap, requests.get, others), (1, 1, 2), "{requests:?}");
    assert_eq!(second.pull().0, 50);
    assert_eq!(second.notes(), first.notes());
    assert_eq!(second.notes().len(), 52);
    for machine in [&first, &second] {
        let path = machine.folder.path().join("store");
        let report = Store::verify(&path, VerifyDepth::ReadData, Timestamp::now(), None).unwrap();
        assert_eq!(report.outcome, VerifyOutcome::Clean);
    }
}
