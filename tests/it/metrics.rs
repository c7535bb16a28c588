//! Metrics of a session, for any times of its events.

use super::store::{act, note};
use forge_store::model::claim::IDLE_AFTER;
use forge_store::model::{BranchMetadata, Fact, FactOrigin, Kind, Timestamp, Value};
use forge_store::store::{NewCheckpoint, NewSession, Session, Store, WriteContext};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum Event {
    Revision,
    OnBranch,
    Fact,
    Checkpoint,
    /// This many revisions, this many microseconds apart.
    Burst(u8, i64),
    /// This many checkpoints.
    Checkpoints(u8, i64),
    /// A checkpoint that is undone.
    Undone,
}

fn burst() -> impl Strategy<Value = (u8, i64)> {
    let idle = IDLE_AFTER.as_micros() as i64;
    (30_u8..80, prop_oneof![1..SECOND, SECOND..idle, idle..2 * idle])
}

fn events() -> impl Strategy<Value = Vec<(i64, Event)>> {
    let idle = IDLE_AFTER.as_micros() as i64;
    let pause = prop_oneof![
        3 => 1..SECOND,
        3 => SECOND..idle,
        1 => Just(idle),
        1 => Just(idle + 1),
        1 => idle..20 * idle,
    ];
    let event = prop_oneof![
        4 => Just(Event::Revision),
        2 => Just(Event::OnBranch),
        2 => Just(Event::Fact),
        1 => Just(Event::Checkpoint),
        1 => Just(Event::Undone),
        2 => burst().prop_map(|(count, apart)| Event::Burst(count, apart)),
        2 => burst().prop_map(|(count, apart)| Event::Checkpoints(count, apart)),
    ];
    proptest::collection::vec((pause, event), 1..25)
}

fn write(session: &Session, act: &WriteContext, number: usize, event: Event) {
    let write = session.write(act);
    let change = note("n", &number.to_string());
    let write = match event {
        Event::Revision | Event::Burst(..) => write.change(change),
        Event::OnBranch => write.on("beside").change(change),
        Event::Checkpoint | Event::Checkpoints(..) | Event::Undone => {
            write.checkpoint(NewCheckpoint::manual("here"))
        }
        Event::Fact => write.fact(Fact {
            kind: Kind::Prompt,
            id: format!("p{number}"),
            place: 0,
            at: act.now,
            recorded_at: act.now,
            value: Value::from([("text", "go on".into())]),
            origin: FactOrigin::Hook,
        }),
    };
    write.commit().expect("a write");
    if matches!(event, Event::Undone) {
        session.undo(act, None).expect("an undo");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Only a few of the revisions and checkpoints that are close together are read; the sum must
    /// equal the sum of all pauses.
    #[test]
    fn the_time_in_debugging_is_the_sum_of_all_pauses_that_are_not_idle(events in events()) {
        let store = Store::in_memory().expect("a store");
        let session = store.create_session(&act(0), NewSession::named("s")).expect("a session");
        let mut now = act(0).now;
        let (mut times, mut checkpoints) = (Vec::new(), Vec::new());
        let mut number = 0;
        session.write(&WriteContext::asked("test", now)).change(note("n", "first")).commit().expect("a write");
        times.push(now);
        session.create_branch(&WriteContext::asked("test", now), "beside", None, BranchMetadata::default()).expect("a branch");
        for (pause, event) in events {
            let (count, apart) = match event {
                Event::Burst(count, apart) | Event::Checkpoints(count, apart) => {
                    (i64::from(count), apart)
                }
                _ => (1, 0),
            };
            now = now.plus_micros(pause);
            for _ in 0..count {
                number += 1;
                write(&session, &WriteContext::asked("test", now), number, event);
                if !matches!(event, Event::Undone) {
                    times.push(now);
                }
                if matches!(event, Event::Checkpoint | Event::Checkpoints(..)) {
                    checkpoints.push(now);
                }
                now = now.plus_micros(apart);
            }
        }
        let middle = times[times.len() / 2];
        for until in [*times.last().expect("a time"), middle, middle.plus_micros(-1)] {
            let Ok(moment) = session.at_time(until) else { continue };
            let metrics = session.state(&moment).expect("a state").metrics().expect("figures");
            let known: Vec<Timestamp> = times.iter().copied().filter(|time| *time <= until).collect();
            let pauses = known.windows(2).map(|pair| pair[1].micros_since(pair[0]));
            let spent: i64 = pauses.filter(|pause| *pause <= IDLE_AFTER.as_micros() as i64).sum();
            prop_assert_eq!(metrics.time_in_debugging.as_micros() as i64, spent);
            let made = checkpoints.iter().filter(|time| **time <= until).count() as u64;
            prop_assert_eq!(metrics.checkpoints_created, made);
        }
    }
}
