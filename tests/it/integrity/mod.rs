//! A change of a sealed store without its key is detected when it is read. The attacker here knows
//! the format, can change every file of the store, and corrects every hash and checksum that needs
//! no key.

mod frame;
pub(crate) mod index;
mod journal;
mod keys;
mod spool;

use crate::fault::copy;
use crate::store::{act, note, time};
use forge_store::backend::{self, IntegrityBreach};
use forge_store::error::{Error, ErrorKind};
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{
    CheckpointFilter, ClaimChange, NewCheckpoint, NewSession, Options, Session, Store,
};
use std::fs;
use std::path::PathBuf;

/// A note that can be spooled.
fn new_note(id: &str) -> ClaimChange {
    ClaimChange::add(Key::new(Kind::Note, id), Value::from([("text", id.into())]))
}

/// A sealed store, with its key and witness outside of it.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    /// A store with the sessions `first` and `other`, with five checkpoints and notes each.
    fn new() -> Self {
        let place = Self { root: tempfile::tempdir().unwrap() };
        let store = Store::create(&place.store(), place.options()).unwrap();
        for name in ["first", "other"] {
            let session = store.create_session(&act(0), NewSession::named(name)).unwrap();
            (1..=5).for_each(|minute| add(&session, minute, &format!("{name}-{minute}")));
        }
        place
    }

    /// The same, with all of it in the index.
    fn applied() -> Self {
        let place = Self::new();
        assert!(place.open().maintain(0).unwrap());
        place
    }

    fn store(&self) -> PathBuf {
        self.root.path().join(".forge")
    }

    fn keyring(&self) -> PathBuf {
        self.root.path().join("keyring")
    }

    fn options(&self) -> Options {
        Options::default().keyring(self.keyring())
    }

    fn open(&self) -> Store {
        Store::open(&self.store(), self.options()).unwrap()
    }

    /// The only segment, or the last one.
    fn segment(&self) -> PathBuf {
        let files = fs::read_dir(self.store().join("journal")).unwrap();
        let logs = files.map(|file| file.unwrap().path());
        logs.filter(|path| path.extension().is_some_and(|it| it == "log")).max().unwrap()
    }

    fn generation(&self) -> PathBuf {
        let files = fs::read_dir(self.store().join("index")).unwrap();
        let folders = files.map(|file| file.unwrap().path()).filter(|path| path.is_dir());
        folders.max().unwrap()
    }

    /// The result of reading everything.
    fn read(&self) -> Result<Vec<String>, Error> {
        let options = self.options().read_only(true);
        read(&Store::open(&self.store(), options)?)
    }

    /// The breach that a reader, a writer and a check all report.
    fn refusal(&self) -> IntegrityBreach {
        let error = self.read().expect_err("it is read as if nothing were wrong");
        assert_eq!(error.kind(), ErrorKind::Forged, "{error:?}");
        let write = Store::open(&self.store(), self.options()).and_then(|store| {
            let session = store.session("first")?;
            session.write(&act(99)).change(note("late", "late")).commit().map(drop)?;
            // A note can be spooled next to a store that cannot be written.
            let waits = store.spool_status()?.writes;
            if waits > 0 { Err(error_of(IntegrityBreach::Altered)) } else { Ok(()) }
        });
        assert_eq!(write.expect_err("it is written to").kind(), ErrorKind::Forged);
        let depth = forge_store::store::VerifyDepth::Quick;
        let keyring = self.keyring();
        let verified = Store::verify(&self.store(), depth, time(0), Some(&keyring)).unwrap();
        assert_eq!(verified.outcome, forge_store::store::VerifyOutcome::Forged, "{verified:?}");
        breach_of(&error)
    }
}

fn error_of(breach: IntegrityBreach) -> Error {
    backend::Error::Breach { breach, what: String::new() }.into()
}

fn breach_of(error: &Error) -> IntegrityBreach {
    match error {
        Error::Backend(backend::Error::Breach { breach, .. }) => *breach,
        other => panic!("{other:?}"),
    }
}

fn add(session: &Session, minute: i64, text: &str) {
    session
        .write(&act(minute))
        .change(note(text, text))
        .checkpoint(NewCheckpoint::manual(text))
        .commit()
        .unwrap();
}

/// The content of a store: checkpoints and claims of both sessions.
fn read(store: &Store) -> Result<Vec<String>, Error> {
    let mut content = Vec::new();
    for summary in store.sessions()? {
        let session = store.session(&summary.info.name)?;
        let checkpoints = session.checkpoints(&CheckpointFilter::default())?;
        content.extend(checkpoints.into_iter().map(|one| one.message));
        let state = session.state(&session.head()?)?;
        content.extend(state.claims_of(Kind::Note)?.into_iter().map(|(id, _)| id));
    }
    content.sort();
    Ok(content)
}

#[test]
fn an_unchanged_sealed_store_can_be_read_and_written_and_is_sound() {
    let place = Place::new();
    assert_eq!(place.read().unwrap().len(), 20);
    let before = place.read().unwrap();
    assert!(place.open().maintain(0).unwrap());
    assert_eq!(place.read().unwrap(), before);
    let store = place.open();
    add(&store.session("first").unwrap(), 50, "more");
    store.rebuild().unwrap();
    assert!(store.compact().unwrap());
    assert_eq!(read(&store).unwrap().len(), 22);
    let deep = forge_store::store::VerifyDepth::ReadData;
    let keyring = place.keyring();
    let verified = Store::verify(&place.store(), deep, time(0), Some(&keyring)).unwrap();
    assert_eq!((verified.findings, verified.seal_status), (Vec::new(), store.seal_status()));
}
