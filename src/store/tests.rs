use super::*;
use crate::model::Timestamp;

/// Who appended after another thread had published a generation took in what came since from nothing.
#[test]
fn what_is_taken_in_after_all_was_forgotten_stands_on_the_whole_store() {
    let store = Store::in_memory().unwrap();
    let act = Act::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    let live = &store.engine.live;
    let (_, from) = live.refs().unwrap();
    session.schedule(&act, Some(7_000_000)).unwrap();
    let tail = live.log.read(from, u64::MAX).unwrap();
    live.forget();
    let refs = live.take_in(&tail).unwrap();
    assert_eq!(refs.sessions.first().and_then(|session| session.schedule), Some(7_000_000));
}
