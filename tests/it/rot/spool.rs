//! Damage of the spool: each write is in two files. Damage of one of them changes nothing that is
//! read; damage of both is reported by readers, by verify and by repair.

use super::{act, change};
use crate::fault::{SeededNumbers, count, scratch_folder};
use forge_store::error::{Error, ErrorKind};
use forge_store::model::{Fact, FactOrigin, Key, Kind, RetentionPolicy, Timestamp, Value};
use forge_store::store::{
    CheckpointFilter, ClaimChange, NewCheckpoint, NewSession, Options, RepairReport, Store,
    VerifyDepth, VerifyOutcome, VerifyReport, WriteContext,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const TIME: Timestamp = super::TIME;
const FOLDERS: [&str; 2] = ["spool", "spool.copy"];
/// The file name of a write that never existed.
const STRANGER: &str = "0123456789abcdef0123456789abcdef";

/// A store with three spooled writes, and one that was drained before.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
    options: Options,
    waiting: Vec<String>,
    appended: (String, Vec<u8>),
}

fn new_session() -> NewSession {
    NewSession { agent_session: Some("a".to_owned()), ..NewSession::named("s") }
}

/// Spools a fact, a note and a checkpoint with this name.
fn keep(store: &Store, name: &str) -> String {
    let fact = Fact {
        kind: Kind::Prompt,
        id: name.to_owned(),
        at: TIME,
        origin: FactOrigin::Hook,
        place: 0,
        recorded_at: TIME,
        value: Value::from([("text", name.into())]),
    };
    let note = Value::from([("description", name.into())]);
    let act = WriteContext::hook("keep", TIME);
    let aside = store.spooled_write(&act, new_session()).unwrap().fact(fact).note(name, note);
    let kept = aside.checkpoint(NewCheckpoint::manual(name)).save().unwrap();
    kept.operation.to_string()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Unsealed,
    Sealed,
    Encrypted,
}

impl Place {
    fn new(sort: Sort) -> Self {
        let folder = scratch_folder();
        let path = folder.path().join(".forge");
        let keyring = (sort != Sort::Unsealed).then(|| folder.path().join("keyring"));
        let options = Options::default().keyring(keyring).encrypted(sort == Sort::Encrypted);
        let store = Store::create(&path, options.clone()).unwrap();
        let session = store.create_session(&act("begin"), new_session()).unwrap();
        let note = Value::from([("description", "before".into())]);
        let note = ClaimChange::add(Key::new(Kind::Note, "before"), note);
        session.write(&act("note")).change(note).commit().unwrap();
        let old = keep(&store, "old");
        let bytes = fs::read(path.join("spool").join(&old)).unwrap();
        store.drain().unwrap();
        let waiting = ["one", "two", "three"].map(|name| keep(&store, name)).to_vec();
        Self { _folder: folder, path, options, waiting, appended: (old, bytes) }
    }

    fn open(&self, path: &Path) -> Store {
        Store::open(path, self.options.clone()).unwrap()
    }

    fn verify(&self, path: &Path) -> VerifyReport {
        Store::verify(path, VerifyDepth::ReadData, TIME, self.options.keyring.as_deref()).unwrap()
    }

    fn repair(&self) -> (PathBuf, RepairReport) {
        let to = self.path.with_file_name("repaired");
        let done = Store::repair(&self.path, &to, TIME, self.options.keyring.as_deref()).unwrap();
        (to, done)
    }
}

/// The notes, facts and checkpoints that can be read.
fn held(store: &Store) -> Result<BTreeSet<String>, Error> {
    let session = store.session("s")?;
    let state = session.state(&session.head()?)?;
    let mut held: BTreeSet<String> =
        state.claims().entries().map(|entry| format!("note {}", entry.unwrap().0.id)).collect();
    held.extend(
        state.facts_of(Kind::Prompt)?.into_iter().map(|one| format!("fact {}", one.fact.id)),
    );
    let made = session.checkpoints(&CheckpointFilter::default())?;
    held.extend(made.into_iter().map(|one| format!("checkpoint {}", one.message)));
    Ok(held)
}

/// The expected content with these writes.
fn with(names: &[&str]) -> BTreeSet<String> {
    let all = names.iter().chain(&["old"]);
    let kinds = ["note", "fact", "checkpoint"];
    let mut held: BTreeSet<String> =
        all.flat_map(|name| kinds.map(|kind| format!("{kind} {name}"))).collect();
    held.insert("note before".to_owned());
    held
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Deleted,
    Cut(u64),
    Flipped(u64),
    Zeroed(u64),
    Swapped,
    Renamed,
    Emptied,
    OldPutBack,
}

impl Damage {
    /// Damages the first write in one of the folders. Numbers are thousandths of its length.
    fn strike(self, place: &Place, folder: &str) {
        let folder = place.path.join(folder);
        let [first, second] = [0, 1].map(|n| folder.join(&place.waiting[n]));
        let at = |bytes: &[u8], share: u64| (bytes.len() as u64 * share / 1000) as usize;
        match self {
            Self::Deleted => fs::remove_file(first).unwrap(),
            Self::Cut(share) => change(&first, |bytes| bytes.truncate(at(bytes, share))),
            Self::Flipped(share) => change(&first, |bytes| {
                let at = at(bytes, share);
                bytes[at] ^= 1 << (share % 8);
            }),
            Self::Zeroed(share) => change(&first, |bytes| {
                let at = at(bytes, share);
                let end = bytes.len().min(at + 40);
                bytes[at..end].fill(0);
                bytes[at] = 0xff;
            }),
            Self::Swapped => {
                let aside = folder.join("aside");
                fs::rename(&first, &aside).unwrap();
                fs::rename(&second, &first).unwrap();
                fs::rename(aside, second).unwrap();
            }
            Self::Renamed => fs::rename(first, folder.join(STRANGER)).unwrap(),
            Self::Emptied => {
                fs::remove_dir_all(&folder).unwrap();
                fs::create_dir(&folder).unwrap();
            }
            Self::OldPutBack => {
                let (name, bytes) = &place.appended;
                fs::write(folder.join(name), bytes).unwrap();
            }
        }
    }
}

fn damages(numbers: &mut SeededNumbers) -> Vec<Damage> {
    let mut all = vec![
        Damage::Deleted,
        Damage::Swapped,
        Damage::Renamed,
        Damage::Emptied,
        Damage::OldPutBack,
    ];
    for _ in 0..count("FORGE_SPOOL", 2) {
        let mut share = || numbers.below(1000);
        all.extend([Damage::Cut(share()), Damage::Flipped(share()), Damage::Zeroed(share())]);
    }
    all
}

/// Checks that everything can be read after damage of one file per write, and that the next writer
/// drains the spool.
fn one_file(sort: Sort, damage: Damage, folder: &str) {
    let what = format!("{sort:?} {damage:?} in {folder}");
    let place = Place::new(sort);
    damage.strike(&place, folder);
    let all = with(&["one", "two", "three"]);
    let store = place.open(&place.path);
    // A file with the name of a write that never existed is reported, and nothing after it is read.
    if damage == Damage::Renamed && sort == Sort::Unsealed {
        assert_eq!(held(&store).unwrap_err().kind(), ErrorKind::Corrupt, "{what}");
    } else {
        assert_eq!(held(&store).unwrap(), all, "{what}");
        assert_eq!(store.spool_status().unwrap().writes, 3, "{what}");
    }
    let verified = place.verify(&place.path);
    let is_silent = damage == Damage::OldPutBack
        || (folder == "spool.copy" && matches!(damage, Damage::Deleted | Damage::Emptied));
    match (is_silent, damage, sort) {
        (true, ..) => assert_eq!(verified.outcome, VerifyOutcome::Clean, "{what}: {verified:?}"),
        // A file with the seal of another write was put there.
        (_, Damage::Renamed, Sort::Sealed | Sort::Encrypted) => {
            assert_eq!(verified.outcome, VerifyOutcome::Forged, "{what}: {verified:?}");
        }
        _ => assert_eq!(verified.outcome, VerifyOutcome::Repairable, "{what}: {verified:?}"),
    }
    let (repaired, done) = place.repair();
    let is_stranger = |line: &String| line.contains(STRANGER);
    assert!(done.lost.iter().all(is_stranger), "{what}: {done:?}");
    assert_eq!((done.waiting, held(&place.open(&repaired)).unwrap()), (3, all.clone()), "{what}");
    if damage != Damage::Renamed {
        store.rebuild().unwrap();
        assert_eq!(held(&store).unwrap(), all, "{what}");
        assert_eq!(place.verify(&place.path).outcome, VerifyOutcome::Clean, "{what}");
    }
}

/// Checks that damage of both files of a write is an error for each reader, and that a repair saves
/// the others and names this one.
fn both_files(sort: Sort, damage: Damage) {
    let what = format!("{sort:?} {damage:?}");
    let place = Place::new(sort);
    FOLDERS.iter().for_each(|folder| damage.strike(&place, folder));
    let store = place.open(&place.path);
    let all = with(&["one", "two", "three"]);
    let is_gone = matches!(damage, Damage::Deleted | Damage::Emptied);
    if damage == Damage::OldPutBack {
        assert_eq!(held(&store).unwrap(), all, "{what}");
        return;
    }
    // In an unsealed store, nothing else refers to the write.
    if is_gone && sort == Sort::Unsealed {
        let left = if damage == Damage::Emptied { with(&[]) } else { with(&["two", "three"]) };
        assert_eq!(held(&store).unwrap(), left, "{what}");
        return;
    }
    let kind = if sort == Sort::Unsealed { ErrorKind::Corrupt } else { ErrorKind::Forged };
    let refused = |store: &Store| {
        let error = held(store).unwrap_err();
        assert_eq!(error.kind(), kind, "{what}: {error}");
        assert!(error.to_string().contains("in the spool"), "{what}: {error}");
    };
    refused(&store);
    assert_eq!(store.rebuild().unwrap_err().kind(), kind, "{what}");
    // Writes that are spooled in the meantime are kept.
    keep(&store, "later");
    refused(&store);
    let verified = place.verify(&place.path);
    let is_mended = matches!(damage, Damage::Flipped(_));
    let is_misnamed = matches!(damage, Damage::Swapped | Damage::Renamed) && sort == Sort::Unsealed;
    let saved = is_mended || is_misnamed;
    let outcome = match (saved, sort) {
        (true, _) => VerifyOutcome::Repairable,
        (false, Sort::Unsealed) => VerifyOutcome::Loss,
        (false, _) => VerifyOutcome::Forged,
    };
    assert_eq!(verified.outcome, outcome, "{what}: {verified:?}");
    let (repaired, done) = place.repair();
    assert_eq!(done.lost.is_empty(), saved, "{what}: {done:?}");
    let names: &[&str] = match damage {
        _ if saved => &["one", "two", "three", "later"],
        Damage::Swapped => &["three", "later"],
        Damage::Emptied => &["later"],
        _ => &["two", "three", "later"],
    };
    let lost =
        place.waiting.iter().filter(|name| done.lost.iter().any(|line| line.contains(*name)));
    assert_eq!(lost.count(), 4 - names.len(), "{what}: {done:?}");
    // The journal of the damaged store has applied what could be read in the meantime.
    let repaired_store = place.open(&repaired);
    assert_eq!(held(&repaired_store).unwrap(), with(names), "{what}");
    repaired_store.drain().unwrap();
    assert_eq!(held(&repaired_store).unwrap(), with(names), "{what}");
    let verified = place.verify(&repaired);
    assert_eq!(verified.outcome, VerifyOutcome::Clean, "{what}: {verified:?}");
    // A renamed write is missing under its own name, and is refused under the other.
    let kept = match damage {
        _ if saved || is_gone => 0,
        Damage::Renamed => 1,
        _ => done.lost.len() as u64,
    };
    assert_eq!(verified.lost_before, kept, "{what}: {verified:?}");
}

#[test]
fn every_damage_to_a_spooled_write_is_corrected_or_reported() {
    let mut numbers = SeededNumbers::from_environment("damaged spools");
    let (mut one, mut both) = (0_u64, 0_u64);
    for sort in [Sort::Unsealed, Sort::Sealed, Sort::Encrypted] {
        for damage in damages(&mut numbers) {
            for folder in FOLDERS {
                one_file(sort, damage, folder);
                one += 1;
            }
            both_files(sort, damage);
            both += 1;
        }
    }
    eprintln!(
        "torn spools: {one} with one file of a write damaged, all read; {both} with both, 0 silent"
    );
}

/// Regression: after its session was swept, nothing else in the store showed that there had been a
/// write.
#[test]
fn a_spooled_write_of_a_swept_session_is_not_restored() {
    for sort in [Sort::Unsealed, Sort::Sealed, Sort::Encrypted] {
        let place = Place::new(sort);
        let name = &place.waiting[0];
        let bytes = fs::read(place.path.join("spool").join(name)).unwrap();
        let store = place.open(&place.path);
        let other = store.create_session(&act("begin"), NewSession::named("other")).unwrap();
        let later = TIME.plus_micros(3_600_000_000);
        let rules = RetentionPolicy { sessions: Some(1_000_000), ..RetentionPolicy::none() };
        store.maintain(0).unwrap();
        let pruned = other.prune(&WriteContext::asked("prune", later), &rules).unwrap();
        assert!(pruned.operation.is_some(), "{pruned:?}");
        store.sweep(later.plus_micros(1), later.plus_micros(1)).unwrap();
        assert_eq!(store.session("s").map(drop).unwrap_err().kind(), ErrorKind::NotFound);
        for folder in FOLDERS {
            fs::write(place.path.join(folder).join(name), &bytes).unwrap();
        }
        let store = place.open(&place.path);
        assert_eq!(store.spool_status().unwrap(), Default::default());
        assert_eq!(store.session("s").map(drop).unwrap_err().kind(), ErrorKind::NotFound);
        store.drain().unwrap();
        assert!(FOLDERS.iter().all(|folder| !place.path.join(folder).join(name).exists()));
        assert_eq!(place.verify(&place.path).outcome, VerifyOutcome::Clean);
    }
}
