//! What the files of a store show without its key.

use super::{MARK, Place, Store, act, plant, plant_more, search, time};
use forge_store::format::{entity_hash, key::text_hash};
use forge_store::model::{Key, Kind, RetentionPolicy};
use forge_store::store::{CheckpointFilter, LogItem, Session, VerifyDepth, VerifyOutcome};
use forge_testkit::files::files_below;
use std::collections::BTreeSet;
use std::fs;

/// Texts that the files of an unencrypted store contain.
const TEXTS: [&str; 22] = [
    "zebra-agent", "zebra-agent-session", "zebra-aside", "zebra-branch", "zebra-checkpoint",
    "zebra-claim", "zebra-hypothesis", "zebra-input", "zebra-item", "zebra-kept", "zebra-large",
    "zebra-m", "zebra-message", "zebra-result", "zebra-run", "zebra-said", "zebra-session",
    "zebra-source", "zebra-step-output", "zebra-tag", "zebra-thread", "zebra-waiting",
];

/// Texts that an unencrypted store compresses, so that its files need not contain them. There the
/// beginnings of compressed data and of rows must be found instead.
const PACKED: [&str; 4] = ["zebra-asked", "zebra-command", "zebra-fact", "zebra-prompt"];
const BEGINNINGS: [&[u8]; 4] = [b"fOb1", b"fRw1", b"fRv1", b"\x28\xb5\x2f\xfd"];

/// Hashes and ids by name: they would confirm a guess about the content to anyone who knows them.
fn ids(session: &Session) -> Vec<(String, Vec<u8>)> {
    let head = session.head().unwrap();
    let info = session.summary().unwrap().info;
    let mut ids = vec![("the session".to_owned(), info.id.as_bytes().to_vec())];
    for item in session.log(&head, 100).unwrap() {
        ids.push(match item {
            LogItem::Revision(it) => {
                (format!("revision {}", it.sequence), it.id.as_bytes().to_vec())
            }
            LogItem::Lost(it) => panic!("revision {} is lost", it.sequence),
            LogItem::Checkpoint(it) => {
                (format!("checkpoint {}", it.sequence), it.id.as_bytes().to_vec())
            }
        });
    }
    for operation in session.operations(100).unwrap() {
        ids.push((format!("operation {}", operation.verb), operation.id.as_bytes().to_vec()));
    }
    for text in ["zebra-tag", "zebra-fact", "zebra-source"] {
        ids.push((format!("the hash of {text}"), text_hash(text).to_vec()));
    }
    let claim = Key::new(Kind::Note, "zebra-claim");
    let key = [&[claim.kind.code()], claim.id.as_bytes()].concat();
    ids.push(("the hash of a claim".to_owned(), entity_hash(&info.id, &key).to_vec()));
    let output = blake3::hash("a line of zebra-output\n".repeat(1000).as_bytes());
    ids.push(("the hash of an output".to_owned(), output.as_bytes()[..16].to_vec()));
    // Keys on disk omit the prefix that they share with the key before.
    ids.iter_mut().for_each(|(_, id)| drop(id.drain(..2)));
    ids
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Searches the files of the store, and notes what is found in which file.
fn look(place: &Place, ids: &[(String, Vec<u8>)], seen: &mut Seen) {
    let texts = TEXTS
        .iter()
        .chain(&PACKED)
        .chain([&MARK])
        .map(|text| ((*text).to_owned(), text.as_bytes().to_vec()));
    let ids = ids.iter().flat_map(|(what, id)| {
        let hex = hex(id);
        [
            (what.clone(), id.clone()),
            (format!("{what} in hex"), hex.clone().into_bytes()),
            (format!("{what} in HEX"), hex.to_uppercase().into_bytes()),
        ]
    });
    let needles: Vec<_> = texts.chain(ids).collect();
    for path in files_below(&place.path()) {
        let bytes = fs::read(&path).unwrap();
        let name = path.strip_prefix(place.path()).unwrap().display().to_string();
        for (what, needle) in &needles {
            // File names count too; a spooled write is named by its operation, which is a random
            // number.
            let named = !name.starts_with("spool") && times(name.as_bytes(), needle) > 0;
            if named || times(&bytes, needle) > 0 {
                seen.what.insert((what.clone(), name.clone()));
            }
        }
        for (count, beginning) in seen.beginnings.iter_mut().zip(BEGINNINGS) {
            *count += times(&bytes, beginning);
        }
    }
}

fn times(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).filter(|part| part[0] == needle[0] && *part == needle).count()
}

#[derive(Debug, Default)]
struct Seen {
    /// What was found, and in which file.
    what: BTreeSet<(String, String)>,
    /// How often each of the beginnings was found.
    beginnings: [usize; BEGINNINGS.len()],
}

/// Searches a store at each stage of its life: in the journal, in the spool and in the search
/// index, in the index, after all data was rewritten, and after a pruning.
fn seen(encrypted: bool) -> Seen {
    let place = Place::new(encrypted);
    let mut seen = Seen::default();
    let store = place.open();
    let session = plant(&store);
    let ids = ids(&session);
    look(&place, &ids, &mut seen);
    plant_more(&place, &store);
    assert!(search(&store) > 20);
    look(&place, &ids, &mut seen);
    store.drain().unwrap();
    assert!(store.maintain(0).unwrap());
    look(&place, &ids, &mut seen);
    let retention =
        RetentionPolicy { last: 1, manual: false, revisions: 0, ..RetentionPolicy::none() };
    session.prune(&act(60), &retention).unwrap();
    assert!(store.maintain(0).unwrap() && store.compact().unwrap());
    assert!(store.rebuild().unwrap().revisions > 0);
    look(&place, &ids, &mut seen);
    let checkpoints = session.checkpoints(&CheckpointFilter::default()).unwrap();
    assert_eq!(checkpoints.len(), 1);
    drop((session, store));
    let found =
        Store::verify(&place.path(), VerifyDepth::ReadData, time(70), Some(&place.keyring()))
            .unwrap();
    assert_eq!((found.findings, found.outcome), (vec![], VerifyOutcome::Clean));
    assert_eq!(found.encrypted, encrypted);
    seen
}

#[test]
fn nothing_recorded_is_visible_in_any_file_of_an_encrypted_store() {
    let seen = seen(true);
    assert!(seen.what.is_empty(), "{seen:#?}");
    // Four bytes occur in some megabytes by chance, now and then.
    assert!(seen.beginnings.iter().all(|count| *count < 3), "{:?}", seen.beginnings);
}

/// Everything that the test above searches for can be found.
#[test]
fn everything_is_visible_in_an_unencrypted_store() {
    let Seen { what, beginnings } = seen(false);
    let seen: BTreeSet<_> = what.into_iter().map(|(what, _)| what).collect();
    assert!(beginnings.iter().all(|count| *count > 20), "{beginnings:?}");
    let place = Place::new(false);
    let all = ids(&plant(&place.open())).into_iter().map(|(what, _)| what);
    let missing: Vec<_> =
        TEXTS.into_iter().map(str::to_owned).chain(all).filter(|it| !seen.contains(it)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
