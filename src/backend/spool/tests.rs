use super::*;

const NAME: &str = "00112233445566778899aabbccddeeff";
const OTHER: &str = "ff112233445566778899aabbccddeeff";

fn is_always_whole(_: &[u8]) -> bool {
    true
}

fn spool() -> (tempfile::TempDir, SpoolFolder) {
    let folder = tempfile::tempdir().unwrap();
    let spool = SpoolFolder::new(folder.path());
    (folder, spool)
}

#[test]
fn a_write_is_listed_and_readable_until_it_is_recorded_as_appended() {
    let (_folder, spool) = spool();
    assert_eq!(spool.names().unwrap(), Vec::<String>::new());
    spool.put(NAME, b"waits").unwrap();
    assert_eq!(spool.names().unwrap(), [NAME]);
    assert_eq!(spool.read(NAME, &is_always_whole).unwrap().unwrap(), b"waits");
    spool.record_appended(&[NAME.to_owned()]).unwrap();
    spool.record_appended(&[NAME.to_owned()]).unwrap();
    assert_eq!(spool.read(NAME, &is_always_whole).unwrap(), None);
    assert_eq!(spool.names().unwrap(), Vec::<String>::new());
}

#[test]
fn a_write_that_is_set_aside_keeps_its_bytes_and_no_longer_waits() {
    let (folder, spool) = spool();
    spool.keep_aside(NAME, b"broken").unwrap();
    assert_eq!(spool.names().unwrap(), Vec::<String>::new());
    assert_eq!(spool.set_aside().unwrap(), [NAME]);
    assert_eq!(spool.read_aside(NAME).unwrap(), b"broken");
    assert!(folder_in(folder.path()).join(format!("{NAME}.damaged")).exists());
}

#[test]
fn a_spooled_write_is_read_from_either_of_its_two_files() {
    let is_whole = |bytes: &[u8]| bytes == b"waits";
    let (folder, spool) = spool();
    let paths = [folder_in(folder.path()).join(NAME), copies_in(folder.path()).join(NAME)];
    for (path, folder_name) in paths.iter().zip([FOLDER, COPIES]) {
        for damage in [None, Some(&b"wait"[..]), Some(b"waitz"), Some(b"")] {
            spool.put(NAME, b"waits").unwrap();
            assert_eq!(spool.flaws(NAME, &is_whole).unwrap(), []);
            match damage {
                None => std::fs::remove_file(path).unwrap(),
                Some(bytes) => std::fs::write(path, bytes).unwrap(),
            }
            assert_eq!(spool.names().unwrap(), [NAME]);
            assert_eq!(spool.read(NAME, &is_whole).unwrap().unwrap(), b"waits");
            let flaws: Vec<_> =
                spool.flaws(NAME, &is_whole).unwrap().iter().map(|(folder, _)| *folder).collect();
            // A missing copy is no flaw: a write by an earlier version has none.
            let is_flaw = folder_name == FOLDER || damage.is_some();
            assert_eq!(flaws, if is_flaw { vec![folder_name] } else { vec![] });
        }
    }
    for path in &paths {
        std::fs::write(path, b"broken").unwrap();
    }
    assert_eq!(spool.read(NAME, &is_whole).unwrap().unwrap(), b"broken");
}

#[test]
fn an_appended_write_does_not_wait_again_when_its_files_reappear() {
    let (folder, spool) = spool();
    let outside = folder.path().join("outside");
    for spool in [spool.clone(), spool.with_witness(Some(outside.clone()))] {
        spool.put(NAME, b"waits").unwrap();
        spool.put(OTHER, b"waits too").unwrap();
        let folders = [folder_in(folder.path()), copies_in(folder.path())];
        let bytes = std::fs::read(folders[0].join(NAME)).unwrap();
        spool.record_appended(&[NAME.to_owned()]).unwrap();
        assert!(folders.iter().all(|folder| !folder.join(NAME).exists()));
        folders.iter().for_each(|folder| std::fs::write(folder.join(NAME), &bytes).unwrap());
        assert_eq!(spool.names().unwrap(), [OTHER]);
        spool.sweep().unwrap();
        assert!(folders.iter().all(|folder| !folder.join(NAME).exists()));
        assert_eq!(spool.read(OTHER, &is_always_whole).unwrap().unwrap(), b"waits too");
        spool.record_appended(&[OTHER.to_owned()]).unwrap();
        std::fs::remove_dir_all(copies_in(folder.path())).unwrap();
    }
    assert_eq!(
        std::fs::read_dir(outside).unwrap().count(),
        1,
        "only the list of appended writes is left"
    );
}

#[test]
fn an_acknowledged_write_without_files_is_reported_as_missing() {
    let (folder, spool) = spool();
    let spool = spool.with_witness(Some(folder.path().join("outside")));
    spool.put(NAME, b"waits").unwrap();
    assert!(spool.is_acknowledged(NAME) && !spool.is_acknowledged(OTHER));
    for inside in [folder_in(folder.path()), copies_in(folder.path())] {
        std::fs::remove_dir_all(inside).unwrap();
    }
    assert_eq!(spool.names().unwrap(), [NAME]);
    let missing = spool.read(NAME, &is_always_whole);
    assert!(
        matches!(missing, Err(Error::Breach { breach: IntegrityBreach::Missing, .. })),
        "{missing:?}"
    );
    assert_eq!(spool.read(OTHER, &is_always_whole).unwrap(), None);
    // The next writer finds that it was appended to the journal.
    spool.record_appended(&[NAME.to_owned()]).unwrap();
    assert_eq!(
        (spool.names().unwrap(), spool.read(NAME, &is_always_whole).unwrap()),
        (vec![], None)
    );
}

#[test]
fn unfinished_and_foreign_files_are_not_listed_and_block_no_write() {
    let (folder, spool) = spool();
    spool.put(NAME, b"first").unwrap();
    let inside = folder_in(folder.path());
    std::fs::write(inside.join(format!("{NAME}.0.new")), b"half").unwrap();
    std::fs::write(inside.join("README"), b"hello").unwrap();
    spool.put(NAME, b"second").unwrap();
    assert_eq!(spool.names().unwrap(), [NAME]);
    assert_eq!(spool.read(NAME, &is_always_whole).unwrap().unwrap(), b"second");
}

#[test]
fn unfinished_files_are_swept_unless_they_are_being_written() {
    let (folder, spool) = spool();
    spool.put(NAME, b"whole").unwrap();
    let inside = folder_in(folder.path());
    let [abandoned, in_use] = ["0", "7"].map(|n| inside.join(format!("{NAME}.{n}.new")));
    std::fs::write(&abandoned, b"half").unwrap();
    let file = File::create(&in_use).unwrap();
    file.lock().unwrap();
    spool.sweep().unwrap();
    assert!(!abandoned.exists() && in_use.exists());
    drop(file);
    spool.sweep().unwrap();
    assert!(!in_use.exists() && inside.join(NAME).exists());
}

#[test]
fn a_sealed_write_is_read_with_its_key_and_only_under_its_name() {
    let (folder, plain) = spool();
    let keyed = |secret| SealMode::Keyed(SealKey::new(&[secret; 32], &[2; 16], &[3; 32]));
    let sealed = plain.clone().with_seals(keyed(1));
    sealed.put(NAME, b"waits").unwrap();
    assert_eq!(sealed.read(NAME, &is_always_whole).unwrap().unwrap(), b"waits");
    let unknown = plain.clone().with_seals(SealMode::Unknown);
    assert_eq!(unknown.read(NAME, &is_always_whole).unwrap().unwrap(), b"waits");
    let breach = |spool: &SpoolFolder, name| match spool.read(name, &is_always_whole) {
        Err(Error::Breach { breach, .. }) => breach,
        other => panic!("{other:?}"),
    };
    assert_eq!(breach(&plain.clone().with_seals(keyed(9)), NAME), IntegrityBreach::Altered);
    let inside = folder_in(folder.path());
    std::fs::copy(inside.join(NAME), inside.join(OTHER)).unwrap();
    assert_eq!(breach(&sealed, OTHER), IntegrityBreach::Altered);
    plain.put(OTHER, b"forged").unwrap();
    assert_eq!(breach(&sealed, OTHER), IntegrityBreach::Unsealed);
}

#[test]
fn files_and_folder_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, spool) = spool();
    spool.put(NAME, b"waits").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let inside = folder_in(folder.path());
    assert_eq!((mode(&inside), mode(&inside.join(NAME))), (0o700, 0o600));
}

#[test]
fn an_encrypted_write_can_be_read_only_under_its_name_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let cipher = |secret| Some(Cipher::new(&[secret; 32]));
    let spool = |secret| SpoolFolder::new(folder.path()).with_cipher(cipher(secret));
    spool(1).put(NAME, b"what was meant").unwrap();
    assert_eq!(spool(1).read(NAME, &is_always_whole).unwrap().unwrap(), b"what was meant");
    let path = folder_in(folder.path()).join(NAME);
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(4).any(|four| four == b"what"));
    assert!(matches!(spool(2).read(NAME, &is_always_whole), Err(Error::Breach { .. })));
    let other = NAME.replace('0', "1");
    std::fs::rename(&path, path.with_file_name(&other)).unwrap();
    assert!(matches!(spool(1).read(&other, &is_always_whole), Err(Error::Breach { .. })));
}
