//! Machines that take turns with a session end with the same session, whatever is done in it.

use super::{Machine, SECRET, step_of};
use crate::bundle::act;
use crate::bundle::law::{same, shared_contents};
use forge_store::model::Timestamp;
use forge_store::store::NewSession;
use forge_store::store::remote::{Depot, MemoryDepot, Remote};
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn machines_that_take_turns_end_with_the_same_session(
        turns in prop::collection::vec(
            (0_usize..3, prop::collection::vec((0_u8..24, any::<u8>()), 1..4)), 1..24),
    ) {
        let memory = MemoryDepot::default();
        let depot: Arc<dyn Depot> = Arc::new(memory.clone());
        Remote::create(Arc::clone(&depot), &SECRET).unwrap();
        let machines = [(); 3].map(|()| Machine::new(&depot));
        machines[0].store.create_session(&act("begin"), NewSession::named("s")).unwrap();
        machines[0].push().unwrap();
        let mut minute = 1;
        for (which, steps) in turns {
            let machine = &machines[which];
            machine.pull().unwrap();
            for what in steps {
                minute += 1;
                step_of(machine, minute, what);
            }
            machine.push().unwrap();
            // Garbage of combined packs must never be needed.
            memory.set_now(Timestamp::from_micros(minute as i64 * 25 * 3_600_000_000));
            machine.remote.tidy().unwrap();
        }
        for machine in &machines {
            machine.pull().unwrap();
            let first = shared_contents(&machines[0].store);
            same(&shared_contents(&machine.store), &first, "at the end");
            prop_assert_eq!(machine.push().unwrap().operations, 0);
        }
    }
}

/// Regression: a process that had seen the head took a pulled revision whose changes were lost to
/// pruning for one without changes, and wrote a revision with a wrong digest after it.
#[test]
fn a_write_after_a_pulled_pruned_revision_begins_with_its_state() {
    let depot: Arc<dyn Depot> = Arc::new(MemoryDepot::default());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let [first, second] = [(); 2].map(|()| Machine::new(&depot));
    first.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    let turn = |machine: &Machine, minute: u64, steps: &[(u8, u8)]| {
        if minute > 1 {
            machine.pull().unwrap();
        }
        for (minute, step) in (minute..).zip(steps) {
            step_of(machine, minute, *step);
        }
        machine.push().unwrap();
    };
    let (write, prune, sweep) = ((0, 0), (12, 0), (14, 0));
    turn(&first, 1, &[write]);
    turn(&second, 2, &[write, prune, sweep]);
    turn(&first, 5, &[write]);
    second.pull().unwrap();
    same(&shared_contents(&second.store), &shared_contents(&first.store), "at the end");
}
