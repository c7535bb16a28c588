//! Malicious bundles are refused as a whole, with little memory.

use super::{act, export, note, small, whole};
use forge_store::error::ErrorKind;
use forge_store::format::{
    BUNDLE_HEADER_BYTES, BundleChain, BundleContents, BundleEnd, BundleItemKind, DeltaPart,
    ObjectKind, Record, RecordBytes, RecordChange, RevisionHeader, bundle_header, encode_object,
    item_header,
};
use forge_store::model::{ObjectId, OperationId};
use forge_store::redact::{PartEnding, Redactor, TextForm};
use forge_store::store::{
    BundleRange, NewCheckpoint, NewSession, Options, Session, SourceBookmark, SourceChunk, Store,
    WriteContext,
};
use std::io::Cursor;
use std::sync::Arc;

/// The items of a bundle.
fn items(bytes: &[u8]) -> Vec<(BundleItemKind, Vec<u8>)> {
    let mut rest = &bytes[BUNDLE_HEADER_BYTES..];
    let mut items = Vec::new();
    while let Some((start, behind)) = rest.split_first_chunk() {
        let (kind, length) = item_header(*start).unwrap();
        let (content, behind) = behind.split_at(length);
        items.push((kind, content.to_vec()));
        rest = &behind[16..];
    }
    items
}

/// A bundle of these items, with correct checksums and counts.
fn bundle(items: &[(BundleItemKind, Vec<u8>)]) -> Vec<u8> {
    let header = bundle_header(&BundleContents::default());
    let mut chain = BundleChain::begin(&header).unwrap();
    let mut bytes = header.to_vec();
    let count = |kind| items.iter().filter(|(one, _)| *one == kind).count() as u64;
    let end = BundleEnd {
        objects: count(BundleItemKind::Object),
        records: count(BundleItemKind::Record),
    };
    for (kind, content) in items.iter().filter(|(kind, _)| *kind != BundleItemKind::End) {
        bytes.extend(chain.item(*kind, content));
    }
    bytes.extend(chain.item(BundleItemKind::End, &end.encode()));
    bytes
}

/// Changes the records of a bundle, with correct checksums.
fn changed(bytes: &[u8], change: &mut dyn FnMut(&mut Record)) -> Vec<u8> {
    let mut items = items(bytes);
    for (kind, content) in &mut items {
        if *kind == BundleItemKind::Record {
            let mut record = Record::decode(content).unwrap();
            change(&mut record);
            *content = record.encode();
        }
    }
    bundle(&items)
}

#[track_caller]
fn refused(bytes: &[u8], why: &str) {
    let store = Store::in_memory().unwrap();
    let error = store.import_bundle(&act("import"), &mut Cursor::new(bytes), None).unwrap_err();
    assert!(error.to_string().contains(why), "{error}");
    assert!(store.every_session().unwrap().is_empty());
}

#[test]
fn false_sizes_in_a_bundle_are_refused_before_anything_is_allocated() {
    let (_, bytes) = small();
    let mut wrong = bytes.clone();
    // The length of the first item.
    wrong[BUNDLE_HEADER_BYTES + 1..BUNDLE_HEADER_BYTES + 5].copy_from_slice(&[0xff; 4]);
    refused(&wrong, "larger than any");
    wrong[BUNDLE_HEADER_BYTES + 1..BUNDLE_HEADER_BYTES + 5].copy_from_slice(&[0, 0, 0, 4]);
    refused(&wrong, "cut off");

    // An object of sixty bytes that claims to hold 60 MiB, and one that holds more than it claims.
    let (_, honest) = encode_object(ObjectKind::Blob, &vec![b'a'; 1 << 20]);
    for length in [60 << 20, 1_u32] {
        let mut object = honest.clone();
        object[6..10].copy_from_slice(&length.to_le_bytes());
        let (before, check) = object.split_last_chunk_mut::<8>().unwrap();
        check.copy_from_slice(&blake3::hash(before).as_bytes()[..8]);
        let mut items = items(&bytes);
        items.insert(1, (BundleItemKind::Object, object));
        refused(&bundle(&items), "damaged");
    }
    // A record of a few bytes that claims to be larger than the limit.
    let mut items = items(&bytes);
    items
        .insert(1, (BundleItemKind::Record, [&[2][..], &u64::MAX.to_le_bytes(), b"zstd"].concat()));
    refused(&bundle(&items), "larger than any record");
}

#[test]
fn false_records_in_a_bundle_are_refused_even_with_right_checksums() {
    let (_, bytes) = small();
    assert_eq!(bundle(&items(&bytes)), bytes, "what is taken apart can be put together");
    let each = |what: &mut dyn FnMut(&mut RecordChange) -> bool, why: &str| {
        let mut done = false;
        let wrong = changed(&bytes, &mut |record| {
            for change in &mut record.changes {
                done |= !done && what(change);
            }
        });
        assert!(done, "{why}: nothing was changed");
        refused(&wrong, why);
    };
    let revision = |change: &mut RecordChange,
                    edit: &mut dyn FnMut(&mut RevisionHeader) -> bool| {
        let RecordChange::Revision { header, .. } = change else { return false };
        let mut decoded = RevisionHeader::decode(&header.0).unwrap();
        let done = edit(&mut decoded);
        *header = RecordBytes(decoded.encode());
        done
    };
    // A digest that does not match its delta, a missing number, a revision that is its own parent.
    each(
        &mut |change| {
            revision(change, &mut |header| {
                header.count += 1;
                true
            })
        },
        "does not lead to its digest",
    );
    each(
        &mut |change| {
            revision(change, &mut |header| {
                header.sequence += 7;
                true
            })
        },
        "damaged",
    );
    each(
        &mut |change| {
            revision(change, &mut |header| {
                let sequence = header.sequence;
                header.parents.first_mut().is_some_and(|parent| {
                    parent.sequence = sequence;
                    true
                })
            })
        },
        "damaged",
    );
    // The changes are left out, as if they had been pruned.
    each(
        &mut |change| {
            let RecordChange::Revision { delta, body, .. } = change else { return false };
            (*delta, *body) = (Vec::new(), RecordBytes(Vec::new()));
            true
        },
        "are not in it",
    );
    each(
        &mut |change| {
            let RecordChange::Revision { delta, .. } = change else { return false };
            *delta = vec![DeltaPart::Named(ObjectId::from_bytes([9; 32]))];
            true
        },
        "is not in it",
    );
    // A record of another session, and a record that no bundle may hold.
    each(
        &mut |change| {
            *change = RecordChange::Pinned { session: Some(0) };
            true
        },
        "belongs to no session",
    );
    each(
        &mut |change| {
            let RecordChange::Revision { session, .. } = change else { return false };
            *session = 5;
            true
        },
        "belongs to no session",
    );
}

#[test]
fn dropping_or_undoing_foreign_records_is_refused() {
    let (store, bytes) = small();
    let operation = |index: usize| {
        let operations = store.session("s").unwrap().operations(99).unwrap();
        operations[index].id
    };
    for change in [
        RecordChange::Swept {
            session: 0,
            operation: operation(0),
            blobs: Vec::new(),
            sessions: Vec::new(),
        },
        RecordChange::Unfolded { session: 0, branch: 0, last: 2 },
        RecordChange::TakesBack {
            session: 0,
            operation: OperationId::from_bytes([7; 16]),
            facts_hidden: true,
        },
        RecordChange::Folded {
            session: 0,
            branch: 0,
            first: 1,
            last: 3,
            pruning: operation(1),
            delta: Vec::new(),
        },
    ] {
        let mut first = true;
        let wrong = changed(&bytes, &mut |record| {
            if std::mem::take(&mut first) {
                record.changes.push(change.clone());
            }
        });
        let other = Store::in_memory().unwrap();
        let error = other.import_bundle(&act("import"), &mut Cursor::new(&wrong), None);
        error.expect_err(&format!("{change:?}"));
        // What was imported before the fault was found can be read.
        for session in other.every_session().unwrap() {
            session.state(&session.head().unwrap()).unwrap();
        }
    }
}

#[test]
fn many_alternating_sources_are_imported_in_little_memory() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    // Sixteen sources alternately, more than are kept open.
    for round in 0..3 {
        for source in 0..16 {
            let name = format!("log{source}");
            let bookmark = session.bookmark(&name).unwrap().unwrap_or_default();
            let open = match bookmark.bytes {
                0 => Vec::new(),
                bytes => session.source_bytes(&name, 0, bytes).unwrap(),
            };
            let text = format!("source {source} round {round}\n").repeat(40);
            let bytes = store.redact_source(text.as_bytes(), TextForm::Plain, PartEnding::End);
            let taken =
                SourceChunk { bookmark, open: &open, bytes, keep: true, ..SourceChunk::default() };
            let operation = store.new_operation().unwrap();
            session.import_chunk(&act("take"), operation, &name, taken).unwrap();
        }
    }
    let bytes = whole(&store);
    let other = Store::in_memory().unwrap();
    other.import_bundle(&act("import"), &mut Cursor::new(&bytes), None).unwrap();
    let copy = other.session("s").unwrap();
    for source in 0..16 {
        let name = format!("log{source}");
        let length = session.bookmark(&name).unwrap().unwrap().bytes;
        let read = |session: &Session| session.source_bytes(&name, 0, length);
        assert_eq!(read(&copy).unwrap(), read(&session).unwrap());
    }
    // A part with the bytes of another part.
    let mut seen = 0;
    let wrong = changed(&bytes, &mut |record| {
        for change in &mut record.changes {
            if let RecordChange::Segment { offset, .. } = change {
                seen += 1;
                *offset += u64::from(seen == 30);
            }
        }
    });
    refused(&wrong, "left out");
}

fn secret() -> String {
    format!("{}{}", "ghp_", "R8fKq2LmZx0TbVnY5cWj7UdHs3PaEo1GiQ9t")
}

/// A store that redacts secrets.
fn careful() -> Store {
    let redaction = Some(Arc::new(Redactor::new()));
    Store::in_memory_with(Options::default().redaction(redaction)).unwrap()
}

#[test]
fn a_bundle_with_a_secret_is_refused_by_a_store_that_redacts() {
    let secret = secret();
    let in_a_note = |session: &Session| note(session, "N1", &secret);
    let in_a_large_note = |session: &Session| {
        note(session, "N1", &format!("{} {secret}", "word ".repeat(2000)));
    };
    let in_a_checkpoint = |session: &Session| {
        let wanted = NewCheckpoint::manual(format!("with {secret}"));
        session.write(&act("checkpoint")).checkpoint(wanted).commit().unwrap();
    };
    let in_two_parts = |session: &Session| {
        let (one, two) = secret.split_at(15);
        let mut bookmark = SourceBookmark::default();
        for (text, open) in [(one, ""), (two, one)] {
            // A store without redaction leaves the bytes unchanged.
            let store = Store::in_memory().unwrap();
            let bytes =
                store.redact_source(text.as_bytes(), TextForm::Plain, PartEnding::End).into_owned();
            let open = open.as_bytes();
            let taken = SourceChunk { bookmark, open, bytes, keep: true, ..SourceChunk::default() };
            let operation = store.new_operation().unwrap();
            bookmark = session.import_chunk(&act("take"), operation, "log", taken).unwrap().1;
        }
    };
    let places: [&dyn Fn(&Session); 4] =
        [&in_a_note, &in_a_large_note, &in_a_checkpoint, &in_two_parts];
    for (place, write) in places.iter().enumerate() {
        let store = Store::in_memory().unwrap();
        let session = store.create_session(&act("begin"), NewSession::named("s")).unwrap();
        write(&session);
        let bytes = whole(&store);
        let other = careful();
        let error = other.import_bundle(&act("import"), &mut Cursor::new(&bytes), None);
        let error = error.expect_err(&format!("{place}"));
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("1 secret (github-token)"), "{place}: {error}");
        assert!(other.every_session().unwrap().is_empty());
    }
}

#[test]
fn a_bundle_of_a_redacting_store_is_accepted() {
    let store = careful();
    let session = store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&session, "N1", &format!("the token is {}", secret()));
    let range = BundleRange { session, from: 0, to: None };
    let bytes = export(&store, &[range]);
    careful()
        .import_bundle(&WriteContext::asked("import", super::NOW), &mut Cursor::new(bytes), None)
        .unwrap();
}

#[test]
fn a_bundle_that_lists_a_session_twice_is_refused() {
    let (_, bytes) = small();
    let mut items = items(&bytes);
    let mut contents = BundleContents::decode(&items[0].1).unwrap();
    contents.sessions.push(contents.sessions[0].clone());
    items[0].1 = contents.encode();
    refused(&bundle(&items), "twice");
}
