//! Reading while other processes prune: a revision that was found and is then folded is not
//! reported as damaged, and a moment can be held.

use super::{act, all, bare, create, open, revise, state, time};
use forge_store::error::Error;
use forge_store::model::{Key, Kind};
use forge_store::store::{NewSession, ResolvedMoment, Session, Store};
use std::path::Path;

/// Six revisions of a note.
fn six_revisions(path: &Path) -> Session {
    let store = create(path);
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    for minute in 1..=6 {
        revise(&session, minute, &[("n", Some(minute.to_string()))]);
    }
    session
}

/// All reads at a moment.
fn reads(session: &Session, moment: &ResolvedMoment) -> Vec<(&'static str, Option<Error>)> {
    let head = session.head().unwrap();
    let key = Key::new(Kind::Note, "n");
    vec![
        ("state", session.state(moment).err()),
        ("check", session.check_digest(moment).err()),
        ("claim", session.claim(moment, &key).err()),
        ("claims", session.claims(moment, std::slice::from_ref(&key)).err()),
        ("revision", session.revision_of(moment).err()),
        ("compare", session.compare(moment, &head).err()),
        ("changed", session.changed_claims(&head, moment).err()),
        ("restore", session.restore(&act(9), moment).err()),
        ("branch", session.create_branch(&act(9), "b", Some(moment), Default::default()).err()),
    ]
}

/// Regression: a revision that is folded between finding and reading it was reported as damaged:
/// "it is not in the index".
#[test]
fn a_revision_folded_between_finding_and_reading_is_reported_as_folded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let other = six_revisions(&path);
    let session = open(&path).session("s").unwrap();
    for indexed in [false, true] {
        // The race: it is found, then pruned, then read.
        let moment = session.at_sequence(3).unwrap();
        other.prune(&act(8), &bare()).unwrap();
        if indexed {
            other.store().maintain(0).unwrap();
        }
        for (read, error) in reads(&session, &moment) {
            let is_folded = matches!(error, Some(Error::Folded { sequence: 3, into: 6 }));
            assert!(is_folded, "{read} (indexed: {indexed}): {error:?}");
        }
        other.undo(&act(10), None).unwrap();
    }
}

/// A held moment stays readable, whatever other processes do.
#[test]
fn a_held_moment_stays_readable_while_others_prune() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let other = six_revisions(&path);
    let before = all(&other);
    let held = |path: &Path| -> Session {
        let store: Store = open(path);
        store.hold();
        store.session("s").unwrap()
    };
    for indexed in [false, true] {
        let session = held(&path);
        let moment = session.at_sequence(3).unwrap();
        other.prune(&act(8), &bare()).unwrap();
        revise(&other, 9, &[("later", Some("x".to_owned()))]);
        if indexed {
            other.store().maintain(0).unwrap();
        }
        assert_eq!(session.state(&moment).unwrap().claims().len(), 1);
        assert_eq!(state(&session, 3), before[&3]);
        assert_eq!(session.summary().unwrap().last_sequence, 6 + u64::from(indexed) * 2);
        assert!(session.at_time(time(2)).is_ok());
        // A new reader sees the current state.
        assert!(matches!(held(&path).at_sequence(3), Err(Error::Folded { .. })));
        other.undo(&act(10), None).unwrap();
        other.undo(&act(11), None).unwrap();
    }
}
