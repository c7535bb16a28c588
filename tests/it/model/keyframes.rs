//! States that are so different from each other that full ones are stored.

use super::run::{Place, act};
use super::verify::claims;
use forge_store::diff::ClaimMap;
use forge_store::model::{ClaimEntry, Key, Kind, Value};
use forge_store::store::{ClaimChange, NewSession};

/// About 3.5 KB, with different bytes for each revision and claim.
fn text(revision: i64, claim: i64) -> String {
    let word = format!("{:08x}", (revision * 1000 + claim) * 2_654_435_761 % 4_294_967_291);
    word.repeat(440)
}

/// Twenty-five claims of 3.5 KB are changed in each of forty revisions. Replaying them all reads 7
/// MB, so several full states are stored. A state before one of them is replayed backwards from it,
/// a state after it forwards.
#[test]
fn full_states_are_stored_and_every_state_is_computed_from_them() {
    for mut place in [Place::memory(), Place::files()] {
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        let mut states: Vec<ClaimMap> = vec![ClaimMap::new()];
        for revision in 1..=40 {
            let mut state = states[states.len() - 1].clone();
            let act = act(revision);
            let mut write = session.write(&act);
            for claim in 0..25 {
                let key = Key::new(Kind::Note, format!("n{claim:02}"));
                if (revision + claim) % 17 == 0 {
                    state.remove(&key);
                    write = write.change(ClaimChange::remove(key));
                    continue;
                }
                let value = Value::from([("description", text(revision, claim).into())]);
                let added_at = state.get(&key).map_or(act.now, |entry| entry.added_at);
                state.insert(key.clone(), ClaimEntry { added_at, value: value.clone() });
                write = write.change(ClaimChange::put(key, value));
            }
            write.commit().unwrap();
            states.push(state);
            if revision % 13 == 0 {
                place.store.maintain(0).unwrap();
            }
        }
        place.store.maintain(0).unwrap();
        place.reopen();
        let session = place.store.session("s").unwrap();
        let full = session.full_states().unwrap();
        assert!(full.len() >= 3, "{full:?}");
        assert!(full[0] > 3, "the first states are read backwards or from the beginning");
        for (number, state) in states.iter().enumerate().skip(1) {
            let moment = session.at_sequence(number as u64).unwrap();
            assert_eq!(&claims(&session, &moment), state, "#{number}");
            session.check_digest(&moment).unwrap();
        }
        // A state after a restore is not computed backwards from a full state before it.
        session.restore(&act(41), &session.at_sequence(2).unwrap()).unwrap();
        place.store.maintain(0).unwrap();
        assert_eq!(claims(&session, &session.head().unwrap()), states[2]);
        assert_eq!(claims(&session, &session.at_sequence(40).unwrap()), states[40]);
    }
}
