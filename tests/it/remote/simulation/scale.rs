//! Clones that write different sessions do not hinder each other.

use super::depot::{DepotChange, Planted, SimulatedDepot};
use crate::bundle::{act, note};
use crate::remote::SECRET;
use forge_store::format::remote::{packs_prefix, ref_name};
use forge_store::store::remote::{Depot, MemoryDepot, Remote};
use forge_store::store::{NewSession, Store};
use std::fmt::Write as _;
use std::sync::Arc;
use std::thread;

const CLONES: usize = 64;
const PUSHES: usize = 6;

/// Pushes a new session, and checks that nothing else on the remote was changed. Returns how
/// often its ref was written.
fn pushed(memory: &MemoryDepot, number: usize) -> usize {
    let depot = Arc::new(SimulatedDepot::new(memory, Planted::Nothing, number));
    let remote = Remote::open(Arc::<SimulatedDepot>::clone(&depot) as Arc<dyn Depot>, &SECRET);
    let (store, remote) = (Store::in_memory().unwrap(), remote.unwrap());
    let session = store.create_session(&act("begin"), NewSession::named("own")).unwrap();
    let handle = remote.handle(&session.summary().unwrap().info.id).unwrap();
    for push in 0..PUSHES {
        let mut noise = vec![0; if push % 3 == 2 { 20_000 } else { 60 }];
        let seed = format!("{number} {push}");
        blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut noise);
        let mut text = String::new();
        noise.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        note(&session, &format!("N{push}"), &text);
        let report = store.push(&act("push"), &remote, &session).unwrap();
        assert_eq!((report.version, report.pulled), (push as u64 + 1, 0));
    }
    let mut refs = 0;
    for change in depot.take_changes() {
        match change {
            DepotChange::New(name) if name.starts_with(&packs_prefix(&handle)) => {}
            DepotChange::New(name) | DepotChange::Swapped(name) if name == ref_name(&handle) => {
                refs += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    refs
}

#[test]
fn pushes_of_different_sessions_need_no_repeated_requests() {
    let memory = MemoryDepot::default();
    Remote::create(Arc::new(memory.clone()), &SECRET).unwrap();
    memory.take_requests();
    let refs: usize = thread::scope(|scope| {
        let running: Vec<_> = (0..CLONES)
            .map(|number| {
                scope.spawn({
                    let memory = &memory;
                    move || pushed(memory, number)
                })
            })
            .collect();
        running.into_iter().map(|clone| clone.join().unwrap()).sum()
    });
    let requests = memory.take_requests();
    let pushes = CLONES * PUSHES;
    assert_eq!(refs, pushes, "each push writes its ref once");
    assert_eq!(requests.swap as usize, pushes - CLONES, "a ref that is there is swapped");
    assert!(requests.put_new as usize <= CLONES + pushes / 2, "{requests:?}");
    // One request per push looks for notices. One per clone looks for its ref, and one opens the
    // remote.
    assert_eq!(requests.get as usize, pushes + 2 * CLONES, "{requests:?}");
    assert_eq!((requests.list, requests.remove), (0, 0), "nothing is listed to push");
}
