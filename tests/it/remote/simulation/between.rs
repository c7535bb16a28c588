//! Writes to a store while one of its pulls waits for the remote.

use super::depot::{Planted, SimulatedDepot, TaskEvent, TaskLink, Verdict};
use crate::bundle::law::{same, shared_contents};
use crate::bundle::{act, note};
use crate::remote::{Machine, SECRET};
use forge_store::store::remote::{Depot, MemoryDepot, Remote};
use forge_store::store::{NewSession, Store};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

/// Regression: the pull was refused, because the session did not exist here when the pull began.
#[test]
fn a_write_between_the_packs_of_a_first_pull_is_joined() {
    let memory = MemoryDepot::default();
    let plain: Arc<dyn Depot> = Arc::new(memory.clone());
    Remote::create(Arc::clone(&plain), &SECRET).unwrap();
    let first = Machine::new(&plain);
    first.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&first.session(), "A", "first");
    first.push().unwrap();
    let mut noise = vec![0; 20_000];
    blake3::Hasher::new().finalize_xof().fill(&mut noise);
    let mut text = String::new();
    noise.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
    note(&first.session(), "B", &text);
    first.push().unwrap();
    let handle = first.remote.sessions().unwrap()[0].handle;

    let depot = Arc::new(SimulatedDepot::new(&memory, Planted::Nothing, 0));
    let remote = Remote::open(Arc::<SimulatedDepot>::clone(&depot) as Arc<dyn Depot>, &SECRET);
    let second = Machine { store: Store::in_memory().unwrap(), remote: remote.unwrap() };
    let (events, requests) = channel();
    let (answers, verdicts) = channel();
    depot.connect(Some(TaskLink { events, verdicts }));
    let mut written = 0;
    thread::scope(|scope| {
        let pull = scope.spawn(|| {
            let pulled = second.store.pull(&act("pull"), &second.remote, &handle, None);
            depot.connect(None);
            pulled
        });
        while let Ok(TaskEvent::Request { name, .. }) = requests.recv() {
            if name.starts_with("packs/") && written == 0 {
                note(&second.session(), "C", "here");
                written += 1;
            }
            answers.send(Verdict::Done).unwrap();
        }
        pull.join().unwrap().unwrap();
    });
    assert_eq!((written, second.session().summary().unwrap().claims), (1, 3));
    second.push().unwrap();
    first.pull().unwrap();
    same(&shared_contents(&second.store), &shared_contents(&first.store), "joined");
}
