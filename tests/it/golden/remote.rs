//! Golden bytes of the objects of a remote, and of the files that a store keeps about it.

use super::golden;
use forge_store::format::remote::{
    ForeignOperations, PackKey, PurgeNotice, PurgeTrack, RefPack, RefSummary, RefTrack,
    RemoteGrant, RemoteKeys, RemoteMarker, RemoteRef, ReplacedPacks, SeenRef, SessionPlace,
    open_pack, seal_pack,
};
use forge_store::format::{ExportMark, RecordBytes};
use forge_store::model::{
    CloneId, NoticeSalt, OperationId, PackHash, PackId, RefLink, RefNonce, RemoteId, RevisionId,
    SessionId, SessionKind, SessionMetadata, Timestamp,
};
use forge_store::redact::KnownSecrets;

const TIME: Timestamp = Timestamp::from_micros(1_767_261_600_000_000);
const REMOTE: RemoteId = RemoteId::from_bytes([2; 16]);
const SESSION: SessionId = SessionId::from_bytes([7; 16]);
const PACK: PackId = PackId::from_bytes([5; 16]);

fn keys() -> RemoteKeys {
    RemoteKeys::new(&[1; 32])
}

fn place() -> SessionPlace {
    SessionPlace { remote: REMOTE, handle: keys().handle(&SESSION) }
}

#[test]
fn the_golden_handle_and_keys_are_derived_unchanged() {
    let keys = keys();
    let (handle, session) = (keys.handle(&SESSION), keys.session(&keys.handle(&SESSION)));
    let bytes = [&handle.as_bytes()[..], session.as_bytes(), keys.notices()].concat();
    golden("remote-keys", &bytes);
}

#[test]
fn the_golden_marker_of_a_remote_is_written_and_read_unchanged() {
    let marker = RemoteMarker::new(REMOTE, &keys());
    let kept = golden("remote-marker", marker.encode().as_bytes());
    let read = RemoteMarker::decode(&kept).unwrap();
    assert_eq!(read, marker);
    read.check_key(&keys()).unwrap();
}

#[test]
fn the_golden_list_of_operations_of_others_is_written_and_read_unchanged() {
    let operations = [[1; 16], [2; 16]].map(OperationId::from_bytes).to_vec();
    let known = ForeignOperations { begun_by_others: true, operations };
    let kept = golden("remote-foreign", &known.encode());
    assert_eq!(ForeignOperations::decode(&kept).unwrap(), known);
    // A writer that was killed has left a part of an id.
    let cut = &kept[..kept.len() - 3];
    assert_eq!(ForeignOperations::decode(cut).unwrap().operations.len(), 1);
    assert_eq!(ForeignOperations::whole_bytes(cut.len() as u64), kept.len() as u64 - 16);
    for wrong in [&kept[..4], b"fFo2\x01", b"fFo1\x02", b""] {
        assert!(ForeignOperations::decode(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_golden_pack_is_written_and_read_unchanged() {
    let key = PackKey::from_bytes([9; 32]);
    let kept = golden("remote-pack", &seal_pack(&place(), &PACK, &key, b"a bundle").unwrap());
    assert_eq!(open_pack(&place(), &PACK, &key, &kept).unwrap(), b"a bundle");
}

#[test]
fn the_golden_ref_is_written_and_read_unchanged() {
    let key = PackKey::from_bytes([9; 32]);
    let inline = seal_pack(&place(), &PACK, &key, b"a bundle").unwrap();
    let pack = RefPack {
        name: PACK,
        first: 2,
        last: 3,
        bytes: inline.len() as u64,
        hash: PackHash::from_bytes(blake3::hash(&inline).into()),
        key,
        operations: 4,
        by: CloneId::from_bytes([4; 16]),
        time: TIME,
        inline: Some(RecordBytes(inline)),
    };
    let stored = RefPack {
        name: PackId::from_bytes([6; 16]),
        first: 1,
        last: 1,
        bytes: 70_000,
        hash: PackHash::from_bytes([8; 32]),
        inline: None,
        ..pack.clone()
    };
    let content = RemoteRef {
        version: 3,
        links: vec![RefLink::from_bytes([10; 32]), RefLink::from_bytes([11; 32])],
        by: CloneId::from_bytes([4; 16]),
        nonce: RefNonce::from_bytes([12; 16]),
        info: SessionMetadata {
            id: SESSION,
            name: "slow start".to_owned(),
            kind: SessionKind::Debug,
            agent: Some("claude-code".to_owned()),
            agent_session: None,
            started_at: TIME,
        },
        home: CloneId::from_bytes([3; 16]),
        purges: 1,
        packs: vec![stored, pack],
        summary: RefSummary {
            head: Some(RevisionId::from_bytes([13; 32])),
            branch: "main".to_owned(),
            branches: 1,
            last_sequence: 42,
            checkpoints: 2,
            claims: 7,
            facts: 900,
            last_event: Some(TIME),
        },
    };
    golden("remote-ref-content", &content.encode().unwrap());
    let session = keys().session(&keys().handle(&SESSION));
    let sealed = content.seal(&place(), &session).unwrap();
    let kept = golden("remote-ref", &sealed.bytes);
    golden("remote-ref-link", sealed.link.as_bytes());
    let opened = RemoteRef::open(&place(), &session, &kept).unwrap();
    assert_eq!((opened.content, opened.link), (content, sealed.link));
}

fn notice() -> PurgeNotice {
    let salt = NoticeSalt::from_bytes([14; 32]);
    let known = KnownSecrets::new(["p\u{e9}ss \"w/o\" %r\\d", "s3cr3t-Zx9Kq2Lm"]).unwrap();
    PurgeNotice {
        multiplier: 0x9e37_79b9_7f4a_7c15,
        salt,
        secrets: known.hashes(0x9e37_79b9_7f4a_7c15, &salt),
        sessions: vec![keys().handle(&SESSION)],
        reason: Some("it leaked".to_owned()),
        by: CloneId::from_bytes([4; 16]),
        time: TIME,
    }
}

#[test]
fn the_golden_purge_notice_is_written_and_read_unchanged() {
    let notice = notice();
    golden("remote-notice-content", &notice.encode().unwrap());
    let kept = golden("remote-notice", &notice.seal((REMOTE, 3), keys().notices()).unwrap());
    assert_eq!(PurgeNotice::open((REMOTE, 3), keys().notices(), &kept).unwrap(), notice);
}

#[test]
fn the_golden_list_of_purge_notices_is_written_and_read_unchanged() {
    let track = PurgeTrack {
        notices: vec![notice()],
        searched: 1,
        pending: vec![PurgeNotice { reason: None, sessions: Vec::new(), ..notice() }],
        rewrites: vec![SESSION],
        replaced: vec![ReplacedPacks { handle: place().handle, packs: vec![PACK] }],
        held: Vec::new(),
    };
    let kept = golden("remote-purges", &track.encode());
    assert_eq!(PurgeTrack::decode(&kept).unwrap(), track);
    let holding = PurgeTrack { held: vec![SESSION], ..track };
    assert_eq!(PurgeTrack::decode(&holding.encode()).unwrap(), holding);
    for place in 0..kept.len() {
        let mut wrong = kept.clone();
        wrong[place] ^= 1;
        assert!(PurgeTrack::decode(&wrong).is_err(), "byte {place}");
    }
}

#[test]
fn the_golden_track_is_written_and_read_unchanged() {
    let mark = ExportMark { position: 70_000, sequence: 42, last: Some([3; 32]) };
    let track = RefTrack {
        session: 5,
        tag: "17".to_owned(),
        stored: RecordBytes(b"a ref".to_vec()),
        begins: vec![ExportMark::default(), ExportMark { position: 4096, ..mark }],
        end: mark,
        last: 44,
        unshared: Some(vec![OperationId::from_bytes([4; 16])]),
    };
    let kept = golden("remote-track", &track.encode());
    assert_eq!(RefTrack::decode(&kept).unwrap(), track);
    for place in 0..kept.len() {
        let mut wrong = kept.clone();
        wrong[place] ^= 1;
        assert!(RefTrack::decode(&wrong).is_err(), "byte {place}");
    }
}

#[test]
fn the_golden_witness_of_a_ref_is_written_and_read_unchanged() {
    let seen = SeenRef { version: 17, link: RefLink::from_bytes([10; 32]) };
    let kept = golden("remote-seen", &seen.encode());
    assert_eq!(SeenRef::decode(&kept).unwrap(), seen);
    for place in 0..kept.len() {
        let mut wrong = kept.clone();
        wrong[place] ^= 1;
        assert!(SeenRef::decode(&wrong).is_err(), "byte {place}");
    }
}

#[test]
fn the_golden_grant_is_written_and_read_unchanged() {
    let handle = keys().handle(&SESSION);
    let seen = SeenRef { version: 17, link: RefLink::from_bytes([10; 32]) };
    let (remote, session, key) = (REMOTE, SESSION, keys().session(&handle));
    let grant = RemoteGrant { remote, session, handle, key, seen };
    let kept = golden("remote-grant", grant.encode().as_bytes());
    assert_eq!(RemoteGrant::decode(std::str::from_utf8(&kept).unwrap()).unwrap(), grant);
}
