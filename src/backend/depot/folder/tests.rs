use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

fn depot() -> (tempfile::TempDir, FolderDepot) {
    let folder = tempfile::tempdir().unwrap();
    let depot = FolderDepot::open(folder.path()).unwrap();
    (folder, depot)
}

fn names(depot: &FolderDepot) -> Vec<String> {
    depot.list("", "").unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_missing_folder_is_reported_as_unavailable() {
    let (folder, depot) = depot();
    let root = folder.path().to_owned();
    let error = FolderDepot::open(&root.join("missing")).unwrap_err();
    let expected = format!(
        "the remote cannot be used: there is no folder {}/missing: create or mount it, or name \
         another",
        root.display()
    );
    assert_eq!(error.to_string(), expected);
    folder.close().unwrap();
    let is_unavailable = |error| matches!(error, DepotError::Unavailable { .. });
    assert!(is_unavailable(depot.get("a", None).unwrap_err()));
    assert!(is_unavailable(depot.put_new("a", b"").unwrap_err()));
    assert!(is_unavailable(depot.swap("a", &DepotTag::new(""), b"").unwrap_err()));
    assert!(is_unavailable(depot.list("", "").unwrap_err()));
    assert!(is_unavailable(depot.remove("a").unwrap_err()));
    assert!(is_unavailable(depot.now().unwrap_err()));
    assert!(!root.exists());
}

#[test]
fn a_link_inside_a_depot_is_damage_and_a_link_to_a_depot_is_followed() {
    let (folder, depot) = depot();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), b"secret").unwrap();
    symlink(outside.path(), folder.path().join("packs")).unwrap();
    symlink(outside.path().join("secret"), folder.path().join("ref")).unwrap();
    let is_damaged = |error: &DepotError| matches!(error, DepotError::Damaged { .. });
    let tag = tag_of(b"secret");
    for name in ["packs/secret", "ref"] {
        assert!(is_damaged(&depot.get(name, None).unwrap_err()), "{name}");
        assert!(is_damaged(&depot.swap(name, &tag, b"new").unwrap_err()), "{name}");
        assert!(is_damaged(&depot.put_new(name, b"new").unwrap_err()), "{name}");
    }
    assert!(is_damaged(&depot.put_new("packs/new", b"new").unwrap_err()));
    assert!(is_damaged(&depot.remove("packs/secret").unwrap_err()));
    assert!(is_damaged(&depot.list("packs/", "").unwrap_err()));
    assert!(names(&depot).is_empty());
    // Removing a link does not change the file that it points to.
    depot.remove("ref").unwrap();
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);

    let link = outside.path().join("depot");
    symlink(folder.path(), &link).unwrap();
    FolderDepot::open(&link).unwrap().put_new("a", b"1").unwrap();
    assert_eq!(names(&depot), ["a"]);
}

#[test]
fn pipes_folders_and_too_large_files_are_damage_and_odd_names_are_not_listed() {
    let (folder, depot) = depot();
    let root = folder.path();
    depot.put_new("refs/a", b"1").unwrap();
    let status = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
    assert!(status.success());
    fs::create_dir(root.join("folder")).unwrap();
    let large = File::create(root.join("large")).unwrap();
    large.set_len(MAX_DEPOT_OBJECT_BYTES as u64 + 1).unwrap();
    for (name, reason) in [
        ("pipe", "it is a pipe, not a file"),
        ("folder", "it is a directory, not a file"),
        ("large", "it has 134217729 bytes, and at most 134217728 are read"),
    ] {
        let error = depot.get(name, None).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(depot.get("refs/a/b", None).is_err());
    fs::write(root.join(".hidden"), b"").unwrap();
    fs::write(root.join("refs/a~"), b"").unwrap();
    assert_eq!(names(&depot), ["large", "refs/a"]);
}

#[test]
fn unfinished_files_are_not_listed_and_are_removed_after_a_day() {
    let (folder, depot) = depot();
    depot.put_new("a", b"1").unwrap();
    let unfinished = folder.path().join(UNFINISHED);
    let [old, new] = ["old", "new"].map(|name| unfinished.join(name));
    fs::write(&new, b"half").unwrap();
    let day = Duration::from_secs(24 * 3_600 + 60);
    let now = fs::metadata(&new).unwrap().modified().unwrap();
    File::create(&old).unwrap().set_modified(now - day).unwrap();
    assert_eq!(names(&depot), ["a"]);
    assert!(!old.exists() && new.exists());
    // Neither a write that finds a conflict nor `now` leaves an unfinished file.
    assert_eq!(depot.put_new("a", b"2").unwrap(), DepotWrite::Conflict);
    depot.now().unwrap();
    assert_eq!(fs::read_dir(&unfinished).unwrap().count(), 1);
}

#[test]
fn files_and_folders_inside_have_the_permissions_of_the_root() {
    for mode in [0o700, 0o770, 0o755, 0o2770] {
        let (folder, depot) = depot();
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        depot.put_new("refs/a", b"1").unwrap();
        let mode_of = |name: &str| {
            let metadata = fs::metadata(folder.path().join(name)).unwrap();
            metadata.permissions().mode() & 0o7777
        };
        assert_eq!([mode_of("refs"), mode_of(UNFINISHED)], [mode; 2]);
        assert_eq!([mode_of("refs/a"), mode_of(LOCK)], [mode & 0o666; 2]);
    }
}

#[test]
fn a_large_object_has_no_tag_in_a_list() {
    let (_folder, depot) = depot();
    let large = vec![7; TAGGED_BYTES as usize + 1];
    let DepotWrite::Done(tag) = depot.put_new("small", &large[1..]).unwrap() else { panic!() };
    depot.put_new("large", &large).unwrap();
    let tags: Vec<_> = depot.list("", "").unwrap().into_iter().map(|entry| entry.tag).collect();
    assert_eq!(tags, [None, Some(tag)]);
}

#[test]
fn a_write_waits_for_the_lock_of_another_process() {
    let (folder, depot) = depot();
    depot.put_new("a", b"1").unwrap();
    let file = File::options().write(true).open(folder.path().join(LOCK)).unwrap();
    let lock = LockedFile::exclusive(file).unwrap().expect("the lock is free");
    let writer = depot.clone();
    let waiting = std::thread::spawn(move || writer.put_new("b", b"2"));
    assert_eq!(names(&depot), ["a"], "reads take no lock");
    drop(lock);
    assert!(matches!(waiting.join().unwrap().unwrap(), DepotWrite::Done(_)));
    assert_eq!(names(&depot), ["a", "b"]);
}
