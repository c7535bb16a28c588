//! A journal with encrypted payloads.

use super::*;
use crate::backend::IntegrityBreach;

fn cipher(secret: u8) -> Option<Cipher> {
    Some(Cipher::new(&[secret; 32]))
}

fn opened(place: &Place, secret: u8) -> Journal {
    place.open().with_cipher(cipher(secret))
}

#[test]
fn payloads_are_encrypted_in_the_files_and_decrypted_when_read() {
    let place = Place::new();
    let journal = place.create().with_cipher(cipher(1));
    let first = add(&journal, 0, "the first");
    let second = rotate(&journal, first.end, "the second");
    add(&journal, second.end, "the third");
    assert_eq!(first.end as usize, HEADER_BYTES + "the first".len() + CIPHER_BYTES);
    assert_eq!(all(&opened(&place, 1), 0), ["the first", "the second", "the third"]);
    for start in place.segments() {
        let bytes = fs::read(place.segment(start)).unwrap();
        assert!(!bytes.windows(4).any(|four| four == b"the "));
    }
    let (pieces, end) =
        rescue(&place.folder(), &SealMode::Absent, cipher(1).as_ref(), &|_, _| false).unwrap();
    assert_eq!(end, journal.read(0, u64::MAX).unwrap().end);
    let text_of = |piece: &JournalPiece| match piece {
        JournalPiece::Record(frame, false) => String::from_utf8(frame.payload.clone()).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        pieces.iter().map(text_of).collect::<Vec<_>>(),
        ["the first", "the second", "the third"]
    );
}

#[test]
fn an_encrypted_journal_is_unreadable_with_another_key_and_a_wrong_byte_is_damage() {
    let place = Place::new();
    let journal = place.create().with_cipher(cipher(1));
    let end = add(&journal, 0, "the first").end;
    journal.sync(end).unwrap();
    match opened(&place, 2).read(0, u64::MAX) {
        Err(Error::Breach { breach: IntegrityBreach::Altered, what }) => {
            assert_eq!(what, "the record at position 0 cannot be decrypted with the store's key");
        }
        other => panic!("{other:?}"),
    }
    let (pieces, _) =
        rescue(&place.folder(), &SealMode::Absent, cipher(2).as_ref(), &|_, _| false).unwrap();
    assert_eq!(pieces, [JournalPiece::Lost { from: 0, to: end }]);
    let path = place.segment(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[HEADER_BYTES + 3] ^= 1;
    fs::write(&path, bytes).unwrap();
    let read = opened(&place, 1).read(0, u64::MAX);
    assert!(matches!(read, Err(Error::Damaged { position: 0, .. })), "{read:?}");
}

#[test]
fn an_encrypted_record_may_fill_a_frame_except_for_the_bytes_of_the_cipher() {
    let place = Place::new();
    let journal = place.create().with_cipher(cipher(1));
    let most = frame::MAX_PAYLOAD_BYTES - CIPHER_BYTES;
    let end = journal.append(0, WAIT, &mut |_| Some(vec![7; most])).unwrap().unwrap().end;
    assert_eq!(opened(&place, 1).read(0, u64::MAX).unwrap().end, end);
    assert!(journal.append(end, WAIT, &mut |_| Some(vec![7; most + 1])).is_err());
}
