//! Machines that take turns with a session end with the same session, whatever is done in it.

use super::{Machine, SECRET, act, step_of};
use crate::bundle::law::{same, told};
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
            // Garbage of joined packs must never be needed.
            memory.set_now(Timestamp::from_micros(minute as i64 * 25 * 3_600_000_000));
            machine.remote.tidy().unwrap();
        }
        for machine in &machines {
            machine.pull().unwrap();
            same(&told(&machine.store), &told(&machines[0].store), "at the end");
            prop_assert_eq!(machine.push().unwrap().operations, 0);
        }
    }
}
