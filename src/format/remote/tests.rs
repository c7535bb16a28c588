use super::*;
use crate::backend::depot::{MAX_DEPOT_OBJECT_BYTES, check_depot_name};
use crate::format::RecordBytes;
use crate::model::{
    CloneId, MAX_HASHED_BYTES, NoticeSalt, PackHash, PackId, RefLink, RefNonce, SecretDigest,
    SecretHash, SessionId, SessionKind, SessionMetadata, Timestamp,
};
use proptest::prelude::*;

fn keys() -> RemoteKeys {
    RemoteKeys::new(&[1; 32])
}

fn session(number: u8) -> SessionId {
    SessionId::from_bytes([number; 16])
}

fn place(number: u8) -> SessionPlace {
    let handle = keys().handle(&session(number));
    SessionPlace { remote: RemoteId::from_bytes([2; 16]), handle }
}

fn pack(number: u8, inline: Option<Vec<u8>>) -> RefPack {
    let stored = inline.clone().unwrap_or_default();
    RefPack {
        name: PackId::from_bytes([number; 16]),
        first: u64::from(number),
        last: u64::from(number),
        bytes: stored.len() as u64,
        hash: PackHash::from_bytes(blake3::hash(&stored).into()),
        key: PackKey::from_bytes([9; 32]),
        operations: 3,
        by: CloneId::from_bytes([4; 16]),
        time: Timestamp::from_micros(1_767_261_600_000_000),
        inline: inline.map(RecordBytes),
    }
}

fn content(version: u64) -> RemoteRef {
    RemoteRef {
        version,
        links: vec![RefLink::from_bytes([6; 32]); (version as usize - 1).min(MAX_REF_LINKS)],
        by: CloneId::from_bytes([4; 16]),
        nonce: RefNonce::from_bytes([5; 16]),
        info: SessionMetadata {
            id: session(7),
            name: "slow start".to_owned(),
            kind: SessionKind::Debug,
            agent: None,
            agent_session: None,
            started_at: Timestamp::from_micros(1_767_261_600_000_000),
        },
        home: CloneId::from_bytes([3; 16]),
        purges: 0,
        packs: vec![pack(1, None), pack(2, Some(b"sealed".to_vec()))],
        summary: RefSummary::default(),
    }
}

fn is_damaged<T>(result: &Result<T, RemoteFormatError>) -> bool {
    matches!(result, Err(RemoteFormatError::Damaged { .. }))
}

fn is_too_large<T>(result: &Result<T, RemoteFormatError>) -> bool {
    matches!(result, Err(RemoteFormatError::TooLarge { .. }))
}

#[test]
fn a_session_has_another_handle_and_key_in_each_remote() {
    let others = [RemoteKeys::new(&[2; 32]).handle(&session(7)), keys().handle(&session(8))];
    let handle = keys().handle(&session(7));
    assert_eq!(handle, keys().handle(&session(7)));
    assert!(!others.contains(&handle));
    assert_ne!(keys().session(&place(7).handle), keys().session(&place(8).handle));
    assert_ne!(
        keys().session(&place(7).handle),
        RemoteKeys::new(&[2; 32]).session(&place(7).handle)
    );
    assert_ne!(keys().notices(), keys().session(&place(7).handle).as_bytes());
    for text in [format!("{:?}", keys()), format!("{:?}", keys().session(&place(7).handle))] {
        assert!(["RemoteKeys", "SessionKey"].contains(&text.as_str()), "{text}");
    }
    assert_eq!(format!("{:?}", pack(1, None).key), "PackKey");
}

#[test]
fn handle_and_pack_are_read_from_the_names_of_objects() {
    let handle = SessionHandle::from_bytes([0x3f; 16]);
    let id = PackId::from_bytes([0x5b; 16]);
    let (digits, pack) = ("3f".repeat(16), "5b".repeat(16));
    assert_eq!(ref_name(&handle), format!("refs/3f/{digits}"));
    assert_eq!(pack_name(&handle, &id), format!("packs/3f/{digits}/{pack}"));
    assert_eq!(notice_name(12), "purges/12");
    for name in [ref_name(&handle), pack_name(&handle, &id), notice_name(0)] {
        check_depot_name(&name).unwrap();
    }
    check_depot_name(REMOTE_MARKER_NAME).unwrap();
    assert_eq!(handle_in(&ref_name(&handle)), Some(handle));
    assert_eq!(pack_in(&pack_name(&handle, &id)), Some((handle, id)));
    for name in [
        "",
        "forge",
        "refs/",
        "purges/0",
        &digits,
        &format!("refs/40/{digits}"),
        &format!("refs/3f/{}", "3F".repeat(16)),
        &format!("packs/3f/{digits}"),
        &format!("x/refs/3f/{digits}"),
        &format!("refs/3f/{digits}/{pack}"),
    ] {
        assert_eq!((handle_in(name), pack_in(name)), (None, None), "{name}");
    }
}

#[test]
fn a_marker_is_read_back_and_recognises_its_key() {
    let marker = RemoteMarker::new(RemoteId::from_bytes([2; 16]), &keys());
    let text = marker.encode();
    let read = RemoteMarker::decode(text.as_bytes()).unwrap();
    assert_eq!(read, marker);
    assert!(read.is_writable());
    read.check_key(&keys()).unwrap();
    let other = read.check_key(&RemoteKeys::new(&[3; 32]));
    assert_eq!(other, Err(RemoteFormatError::WrongKey));
    // Another marker with the same secret.
    let other = RemoteMarker::new(RemoteId::from_bytes([3; 16]), &keys()).encode();
    let line = |text: &str| text.lines().find(|line| line.starts_with("key ")).unwrap().to_owned();
    assert_ne!(line(&text), line(&other));
}

#[test]
fn a_marker_with_a_wrong_byte_or_a_missing_end_is_damaged() {
    let text = RemoteMarker::new(RemoteId::from_bytes([2; 16]), &keys()).encode().into_bytes();
    for place in 0..text.len() {
        for bit in 0..8 {
            let mut wrong = text.clone();
            wrong[place] ^= 1 << bit;
            // The version is read before the check line, because later versions may have another
            // check.
            let is_version = (20..23).contains(&place);
            let read = RemoteMarker::decode(&wrong);
            assert!(is_damaged(&read) || is_version && read.is_err(), "byte {place}: {read:?}");
        }
        assert!(is_damaged(&RemoteMarker::decode(&text[..place])), "cut at {place}");
    }
    let mut endless = text;
    endless.resize(MAX_REMOTE_MARKER_BYTES + 1, b'\n');
    assert!(is_too_large(&RemoteMarker::decode(&endless)));
}

/// Returns a marker in which `new` replaces `old`, with a last line that matches.
fn with_right_check(text: &str, old: &str, new: &str) -> Vec<u8> {
    assert!(text.contains(old), "{text}");
    let text = text.replacen(old, new, 1);
    let before = &text[..text.rfind("check ").unwrap()];
    let check = crate::format::format_marker::check(before);
    format!("{before}check {check}\n").into_bytes()
}

#[test]
fn a_marker_of_a_later_version_is_refused_by_version_and_a_forged_one_by_its_key() {
    let text = RemoteMarker::new(RemoteId::from_bytes([2; 16]), &keys()).encode();
    let decode = |old: &str, new: &str| RemoteMarker::decode(&with_right_check(&text, old, new));
    for (old, new, needs) in [
        ("format 1.0", "format 2.7", "format 2.7"),
        ("required ", "required sharded", "the feature 'sharded'"),
    ] {
        let message = decode(old, new).unwrap_err().to_string();
        let expected = format!("the marker of the remote needs {needs}: use a later version");
        assert!(message.starts_with(&expected), "{message}");
    }
    let later = decode("format 1.0", "format 1.1").unwrap();
    let hinted = decode("optional ", "optional hints").unwrap();
    assert!(!later.is_writable() && !hinted.is_writable());
    for forged in [later, hinted, decode("id 02", "id 03").unwrap()] {
        assert_eq!(forged.check_key(&keys()), Err(RemoteFormatError::WrongKey));
    }
    assert!(is_damaged(&decode("format 1.0", "format 0.9")));
    assert!(is_damaged(&decode("id 02", "id zz")));
}

#[test]
fn a_ref_opens_only_at_its_place_with_its_key() {
    let key = keys().session(&place(7).handle);
    let sealed = content(3).seal(&place(7), &key).unwrap();
    let opened = RemoteRef::open(&place(7), &key, &sealed.bytes).unwrap();
    assert_eq!(opened, OpenedRef { content: content(3), link: sealed.link });
    let other_remote = SessionPlace { remote: RemoteId::from_bytes([3; 16]), ..place(7) };
    for (place, key) in [
        (place(8), key.clone()),
        (place(8), keys().session(&place(8).handle)),
        (other_remote, key),
        (place(7), keys().session(&place(8).handle)),
        (place(7), RemoteKeys::new(&[2; 32]).session(&place(7).handle)),
    ] {
        assert!(is_damaged(&RemoteRef::open(&place, &key, &sealed.bytes)));
    }
}

#[test]
fn a_ref_with_a_wrong_bit_or_a_missing_end_is_damaged() {
    let key = keys().session(&place(7).handle);
    let bytes = content(3).seal(&place(7), &key).unwrap().bytes;
    for byte in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[byte] ^= 1 << (byte % 8);
        let read = RemoteRef::open(&place(7), &key, &wrong);
        // A wrong bit in the last byte of the magic may name a later version.
        assert!(is_damaged(&read) || byte == 3 && read.is_err(), "byte {byte}: {read:?}");
        assert!(is_damaged(&RemoteRef::open(&place(7), &key, &bytes[..byte])), "cut at {byte}");
    }
    let mut later = bytes.clone();
    later[3] = b'2';
    let error = RemoteRef::open(&place(7), &key, &later).unwrap_err();
    let expected = "the ref of the remote needs version 2: use a later version of forge";
    assert_eq!(error.to_string(), expected);
    let endless = [bytes.clone(), vec![0; MAX_REF_BYTES]].concat();
    assert!(is_too_large(&RemoteRef::open(&place(7), &key, &endless)));
    assert!(is_damaged(&RemoteRef::open(&place(7), &key, &[bytes, vec![0]].concat())));
}

/// Checks that the changed content is refused when it is written and when it is read, with the same
/// error. Returns the error.
fn refused(change: impl Fn(&mut RemoteRef)) -> RemoteFormatError {
    let mut changed = content(3);
    change(&mut changed);
    let written = changed.encode().unwrap_err();
    let read = RemoteRef::decode(&codec::pack(&changed)).unwrap_err();
    assert_eq!(written, read);
    written
}

#[test]
fn every_limit_of_a_ref_holds_when_it_is_written_and_when_it_is_read() {
    let inline = |bytes: usize| Some(vec![7; bytes]);
    let many = |count: u8| (1..=count).map(|number| pack(number, None)).collect::<Vec<_>>();
    let full = RemoteRef {
        links: vec![RefLink::from_bytes([6; 32]); MAX_REF_LINKS],
        packs: many(64),
        ..content(100)
    };
    let mut half = full.clone();
    half.packs[0] = pack(1, inline(MAX_INLINE_PACK_BYTES));
    half.packs[1] = pack(2, inline(MAX_INLINE_PACK_BYTES));
    for largest in [&full, &half] {
        let key = keys().session(&place(7).handle);
        let sealed = largest.seal(&place(7), &key).unwrap();
        assert_eq!(&RemoteRef::open(&place(7), &key, &sealed.bytes).unwrap().content, largest);
    }
    let large = |change: &dyn Fn(&mut RemoteRef)| {
        let error = refused(change);
        assert!(matches!(error, RemoteFormatError::TooLarge { .. }), "{error}");
    };
    large(&|it| (it.version, it.packs) = (100, many(65)));
    large(&|it| (it.version, it.links) = (100, vec![RefLink::from_bytes([6; 32]); 33]));
    large(&|it| it.packs[0] = pack(1, inline(MAX_INLINE_PACK_BYTES + 1)));
    large(&|it| {
        it.packs = (1..=3).map(|number| pack(number, inline(MAX_INLINE_BYTES / 3 + 1))).collect();
    });
    large(&|it| it.packs[0].bytes = MAX_SEALED_PACK_BYTES as u64 + 1);
    large(&|it| it.info.name = "x".repeat(MAX_REF_BYTES));
}

#[test]
fn every_rule_of_a_ref_holds_when_it_is_written_and_when_it_is_read() {
    let wrong = |change: &dyn Fn(&mut RemoteRef)| {
        let error = refused(change);
        assert!(matches!(error, RemoteFormatError::Damaged { .. }), "{error}");
    };
    wrong(&|it| (it.version, it.links, it.packs) = (0, Vec::new(), Vec::new()));
    wrong(&|it| it.version = u64::MAX);
    wrong(&|it| it.links.push(RefLink::from_bytes([6; 32])));
    wrong(&|it| it.packs.reverse());
    wrong(&|it| it.packs[0].first = 0);
    wrong(&|it| it.packs[0].last = 2);
    wrong(&|it| it.packs[1].last = 1);
    wrong(&|it| it.packs[1].last = 4);
    wrong(&|it| it.packs[1].name = it.packs[0].name);
    wrong(&|it| it.packs[1].bytes += 1);
    wrong(&|it| it.packs[1].hash = PackHash::from_bytes([0; 32]));
    wrong(&|it| it.packs[1].inline = Some(RecordBytes(b"sealex".to_vec())));
}

#[test]
fn a_clone_recognises_whether_a_version_follows_the_one_it_has_seen() {
    let key = keys().session(&place(7).handle);
    let open = |content: &RemoteRef| {
        RemoteRef::open(&place(7), &key, &content.seal(&place(7), &key).unwrap().bytes).unwrap()
    };
    let mut history = vec![open(&RemoteRef { packs: Vec::new(), ..content(1) })];
    let next = |last: &OpenedRef, nonce: u8| {
        open(&RemoteRef {
            version: last.content.version + 1,
            links: last.next_links(),
            nonce: RefNonce::from_bytes([nonce; 16]),
            ..last.content.clone()
        })
    };
    for nonce in 0..40 {
        history.push(next(history.last().unwrap(), nonce));
    }
    let last = history.last().unwrap();
    assert_eq!(last.content.links.len(), MAX_REF_LINKS);
    for (place, seen) in history.iter().enumerate() {
        let expected = match history.len() - 1 - place {
            0 => RefRelation::Same,
            1..=MAX_REF_LINKS => RefRelation::Later,
            _ => RefRelation::LaterUnlinked,
        };
        let version = seen.content.version;
        assert_eq!(last.relation(&seen.seen()), expected, "version {version}");
        let before = [RefRelation::SetBack, RefRelation::Same][usize::from(place == 40)];
        assert_eq!(seen.relation(&last.seen()), before);
    }
    // Another clone wrote another version 30, and the versions after it.
    let mut other = next(&history[28], 99);
    assert_eq!(other.relation(&history[29].seen()), RefRelation::Replaced);
    assert_eq!(other.relation(&history[28].seen()), RefRelation::Later);
    other = next(&other, 98);
    assert_eq!(other.relation(&history[29].seen()), RefRelation::Replaced);
    assert_eq!(other.relation(&history[28].seen()), RefRelation::Later);
}

#[test]
fn a_pack_opens_only_at_its_place_under_its_name() {
    let (id, key) = (PackId::from_bytes([5; 16]), PackKey::from_bytes([9; 32]));
    let seal = |bytes: &[u8]| seal_pack(&place(7), &id, &key, bytes).unwrap();
    let open = |sealed: &[u8]| open_pack(&place(7), &id, &key, sealed);
    const MIB: usize = 1 << 20;
    for length in [0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB] {
        let bytes: Vec<u8> = (0..length).map(|number| (number >> 7) as u8).collect();
        let sealed = seal(&bytes);
        assert_eq!(sealed.len(), 4 + length + 16 * length.div_ceil(MIB).max(1));
        assert!(open(&sealed).unwrap() == bytes, "{length} bytes");
        for end in [0, 3, 4, 19, MIB + 20, 2 * MIB + 36, sealed.len() - 1] {
            let cut = &sealed[..end.min(sealed.len() - 1)];
            assert!(is_damaged(&open(cut)), "{length} bytes cut at {end}");
        }
        assert!(is_damaged(&open(&[&sealed[..], &[0; 16]].concat())));
    }
    // Frames in another order.
    let sealed = seal(&vec![7; 2 * MIB + 1]);
    let frames: Vec<_> = sealed[4..].chunks(MIB + 16).collect();
    let swapped = [&sealed[..4], frames[1], frames[0], frames[2]].concat();
    let doubled = [&sealed[..4], frames[0], frames[0], frames[1], frames[2]].concat();
    let shortened = [&sealed[..4], frames[0], frames[2]].concat();
    for wrong in [swapped, doubled, shortened] {
        assert!(is_damaged(&open(&wrong)));
    }
    let sealed = seal(b"a bundle");
    let other_remote = SessionPlace { remote: RemoteId::from_bytes([3; 16]), ..place(7) };
    let (other_id, other_key) = (PackId::from_bytes([6; 16]), PackKey::from_bytes([8; 32]));
    assert!(is_damaged(&open_pack(&place(8), &id, &key, &sealed)));
    assert!(is_damaged(&open_pack(&other_remote, &id, &key, &sealed)));
    assert!(is_damaged(&open_pack(&place(7), &other_id, &key, &sealed)));
    assert!(is_damaged(&open_pack(&place(7), &id, &other_key, &sealed)));
    let later = [b"fPk2", &sealed[4..]].concat();
    assert!(matches!(open(&later), Err(RemoteFormatError::LaterVersion { .. })));
    assert!(is_damaged(&open(&[b"fRm1", &sealed[4..]].concat())));
}

fn notice(secrets: usize) -> PurgeNotice {
    let secret = SecretHash { length: 6, first: 7, strong: SecretDigest::from_bytes([8; 16]) };
    PurgeNotice {
        multiplier: 9,
        salt: NoticeSalt::from_bytes([1; 32]),
        secrets: vec![secret; secrets],
        sessions: vec![place(7).handle],
        reason: None,
        by: CloneId::from_bytes([4; 16]),
        time: Timestamp::from_micros(1_767_261_600_000_000),
    }
}

#[test]
fn a_notice_opens_only_at_its_place_with_its_key() {
    let remote = RemoteId::from_bytes([2; 16]);
    let largest = PurgeNotice {
        sessions: vec![place(7).handle; MAX_NOTICE_SESSIONS],
        reason: Some("x".repeat(4000)),
        ..notice(MAX_NOTICE_SECRETS)
    };
    for notice in [notice(0), notice(2), largest] {
        let sealed = notice.seal((remote, 3), keys().notices()).unwrap();
        let open = |place, keys: &RemoteKeys, bytes: &[u8]| {
            PurgeNotice::open(place, keys.notices(), bytes)
        };
        assert_eq!(open((remote, 3), &keys(), &sealed).as_ref(), Ok(&notice));
        assert!(is_damaged(&open((remote, 4), &keys(), &sealed)));
        assert!(is_damaged(&open((RemoteId::from_bytes([3; 16]), 3), &keys(), &sealed)));
        assert!(is_damaged(&open((remote, 3), &RemoteKeys::new(&[2; 32]), &sealed)));
        for byte in (0..sealed.len()).step_by(1 + sealed.len() / 200) {
            let mut wrong = sealed.clone();
            wrong[byte] ^= 1 << (byte % 8);
            let read = open((remote, 3), &keys(), &wrong);
            assert!(is_damaged(&read) || byte == 3 && read.is_err(), "byte {byte}: {read:?}");
            assert!(is_damaged(&open((remote, 3), &keys(), &sealed[..byte])), "cut at {byte}");
        }
        let later = [b"fPu2", &sealed[4..]].concat();
        let error = open((remote, 3), &keys(), &later).unwrap_err();
        assert!(matches!(error, RemoteFormatError::LaterVersion { what: "notice", .. }));
    }
    assert!(is_too_large(&PurgeNotice::open((remote, 0), &[0; 32], &[0; MAX_NOTICE_BYTES + 1])));
}

#[test]
fn every_rule_of_a_notice_holds_when_it_is_written_and_when_it_is_read() {
    let refused = |change: &dyn Fn(&mut PurgeNotice)| {
        let mut changed = notice(2);
        change(&mut changed);
        let written = changed.encode().unwrap_err();
        let read = PurgeNotice::decode(&codec::pack(&changed)).unwrap_err();
        assert_eq!(written, read);
        Err::<(), _>(written)
    };
    assert!(is_damaged(&refused(&|it| it.multiplier = 8)));
    assert!(is_damaged(&refused(&|it| it.secrets[1].length = 5)));
    let longest = MAX_HASHED_BYTES as u32;
    assert!(is_damaged(&refused(&|it| it.secrets[0].length = longest + 1)));
    let lengths = |count: usize| {
        let one = notice(1).secrets[0];
        (0..count).map(|more| SecretHash { length: longest - more as u32, ..one }).collect()
    };
    assert!(is_too_large(&refused(&|it| it.secrets = lengths(MAX_NOTICE_LENGTHS + 1))));
    PurgeNotice { secrets: lengths(MAX_NOTICE_LENGTHS), ..notice(0) }.encode().unwrap();
    assert!(is_too_large(&refused(&|it| it.secrets = notice(MAX_NOTICE_SECRETS + 1).secrets)));
    let many = vec![place(7).handle; MAX_NOTICE_SESSIONS + 1];
    assert!(is_too_large(&refused(&|it| it.sessions.clone_from(&many))));
    assert!(is_too_large(&refused(&|it| it.reason = Some("x".repeat(MAX_NOTICE_BYTES)))));
}

#[test]
fn the_hashes_of_a_purge_are_written_in_parts_that_fit_into_notices() {
    let one = notice(1).secrets[0];
    let of = |lengths: u32, each: u32| -> Vec<SecretHash> {
        let all = (0..lengths).flat_map(|more| (0..each).map(move |first| (more, first)));
        all.map(|(more, first)| SecretHash { length: 6 + more, first, ..one }).collect()
    };
    for (lengths, each, parts) in
        [(0, 0, 0), (1, 1, 1), (256, 1, 1), (257, 1, 2), (600, 1, 3), (2, 4096, 2)]
    {
        let hashes = of(lengths, each);
        let made = notice_parts(hashes.iter().rev().copied().collect());
        assert_eq!((made.len(), made.concat()), (parts, hashes), "{lengths} lengths");
        for secrets in made {
            PurgeNotice { secrets, ..notice(0) }.encode().unwrap();
        }
    }
}

#[test]
fn a_pack_of_the_largest_size_fits_into_a_depot_and_a_larger_one_is_refused() {
    let (id, key) = (PackId::from_bytes([5; 16]), PackKey::from_bytes([9; 32]));
    const { assert!(MAX_SEALED_PACK_BYTES <= MAX_DEPOT_OBJECT_BYTES) };
    let large = vec![0; MAX_SEALED_PACK_BYTES + 1];
    assert!(is_too_large(&seal_pack(&place(7), &id, &key, &large[..MAX_PACK_BYTES + 1])));
    assert!(is_too_large(&open_pack(&place(7), &id, &key, &large)));
}

proptest! {
    #[test]
    fn any_bytes_are_refused_cleanly(bytes: Vec<u8>, magic in 0..5_usize) {
        let key = keys().session(&place(7).handle);
        let bytes = [[&b""[..], b"fRm1", b"fPk1", b"fPu1", b"fPt1"][magic], &bytes].concat();
        prop_assert!(RemoteRef::open(&place(7), &key, &bytes).is_err());
        prop_assert!(RemoteRef::decode(&bytes).is_err());
        prop_assert!(RemoteMarker::decode(&bytes).is_err());
        let number = (RemoteId::from_bytes([2; 16]), 0);
        prop_assert!(PurgeNotice::open(number, keys().notices(), &bytes).is_err());
        prop_assert!(PurgeNotice::decode(&bytes).is_err());
        prop_assert!(PurgeTrack::decode(&bytes).is_err());
        let (id, key) = (PackId::from_bytes([5; 16]), PackKey::from_bytes([9; 32]));
        prop_assert!(open_pack(&place(7), &id, &key, &bytes).is_err());
    }

    #[test]
    fn a_pack_with_a_wrong_bit_is_damaged(bytes: Vec<u8>, place_of_bit: prop::sample::Index) {
        let (id, key) = (PackId::from_bytes([5; 16]), PackKey::from_bytes([9; 32]));
        let mut sealed = seal_pack(&place(7), &id, &key, &bytes).unwrap();
        prop_assert_eq!(&open_pack(&place(7), &id, &key, &sealed).unwrap(), &bytes);
        let bit = place_of_bit.index(sealed.len() * 8);
        sealed[bit / 8] ^= 1 << (bit % 8);
        let read = open_pack(&place(7), &id, &key, &sealed);
        // A wrong bit in the last byte of the magic may name a later version.
        prop_assert!(is_damaged(&read) || bit / 8 == 3 && read.is_err(), "bit {bit}: {read:?}");
    }
}
