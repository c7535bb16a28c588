//! The conformance suite of a depot.

use forge_store::backend::depot::{
    DEPOT_LIST_ENTRIES, Depot, DepotEntry, DepotError, DepotRead, DepotTag, DepotWrite,
};
use std::thread;

/// Runs the suite, with a new depot for each case.
pub fn depot<F, O>(fresh: F)
where
    F: Fn() -> O,
    O: Fn() -> Box<dyn Depot> + Sync,
{
    a_new_depot_is_empty(&fresh());
    what_is_put_reads_back(&fresh());
    a_name_is_put_once(&fresh());
    a_swap_needs_the_tag_of_now(&fresh());
    a_known_object_is_not_sent_again(&fresh());
    a_removed_object_is_absent(&fresh());
    a_list_is_sorted_and_goes_on(&fresh());
    a_list_has_a_limit(&fresh());
    the_clock_is_the_one_of_the_list(&fresh());
    other_names_are_refused(&fresh());
    one_of_eight_puts_wins(&fresh());
    no_swap_is_lost(&fresh());
}

/// Checks that a depot lists all names in byte order, even those whose order [`Depot::list`] leaves
/// open. Not every depot passes this.
pub fn depot_in_byte_order<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let depot = open();
    // In byte order, `-` and `.` come before `/`, and digits and letters after it.
    let sorted = ["a-b", "a.b", "a/b", "a/c-d", "a/c/d", "a/c0", "a0"];
    for name in sorted.iter().rev() {
        put(&*depot, name, b"");
    }
    assert_eq!(names(&depot.list("", "").unwrap()), sorted);
    for (place, after) in sorted.iter().enumerate() {
        assert_eq!(names(&open().list("", after).unwrap()), sorted[place + 1..]);
    }
    // A list also continues after a name that no object has.
    assert_eq!(names(&open().list("a/", "a/c").unwrap()), sorted[3..6]);
}

/// Writes a new object and returns its tag.
fn put(depot: &dyn Depot, name: &str, bytes: &[u8]) -> DepotTag {
    done(depot.put_new(name, bytes).unwrap()).expect("no object has this name")
}

fn done(written: DepotWrite) -> Option<DepotTag> {
    if let DepotWrite::Done(tag) = written { Some(tag) } else { None }
}

fn get(depot: &dyn Depot, name: &str) -> Option<(Vec<u8>, DepotTag)> {
    match depot.get(name, None).unwrap() {
        DepotRead::Absent => None,
        DepotRead::Unchanged => panic!("no tag was known"),
        DepotRead::Whole { bytes, tag } => Some((bytes, tag)),
    }
}

fn names(entries: &[DepotEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

fn a_new_depot_is_empty<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let depot = open();
    assert_eq!(depot.get("a", None).unwrap(), DepotRead::Absent);
    let tag = DepotTag::new("tag");
    assert_eq!(depot.get("a/b", Some(&tag)).unwrap(), DepotRead::Absent);
    assert_eq!(depot.swap("a/b", &tag, b"").unwrap(), DepotWrite::Conflict);
    assert_eq!(depot.list("", "").unwrap(), []);
    assert_eq!(depot.list("a/", "").unwrap(), []);
    depot.remove("a").unwrap();
    depot.remove("a/b").unwrap();
    assert_eq!(depot.get("a/b", None).unwrap(), DepotRead::Absent);
}

fn what_is_put_reads_back<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let depot = open();
    let large: Vec<u8> = (0..3_000_000_u32).map(|number| (number >> 8) as u8).collect();
    let objects =
        [("forge", &b""[..]), ("refs/3f/3f9c", b"\0\xff\r\n"), ("packs/a-b_c.d/E", &large)];
    let tags = objects.map(|(name, bytes)| put(&*depot, name, bytes));
    for reader in [&depot, &open()] {
        for ((name, bytes), tag) in objects.iter().zip(&tags) {
            assert!(get(&**reader, name).unwrap() == (bytes.to_vec(), tag.clone()), "{name}");
        }
        assert_eq!(get(&**reader, "refs/3f/3f9"), None);
    }
}

fn a_name_is_put_once<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let tag = put(&*open(), "a/b", b"1");
    for bytes in [&b"1"[..], b"2"] {
        assert_eq!(open().put_new("a/b", bytes).unwrap(), DepotWrite::Conflict);
        assert_eq!(get(&*open(), "a/b"), Some((b"1".to_vec(), tag.clone())));
    }
    put(&*open(), "a/c", b"2");
}

fn a_swap_needs_the_tag_of_now<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let mut tags = vec![put(&*open(), "a", b"0")];
    // As fast as possible, because the tags must differ even within one tick of a clock.
    for number in 1..20_u8 {
        let newest = tags.last().expect("the first").clone();
        let written = open().swap("a", &newest, &[number]).unwrap();
        let tag = done(written).expect("nobody else writes");
        assert!(!tags.contains(&tag), "the tag {tag:?} came twice");
        for old in &tags {
            assert_eq!(open().swap("a", old, b"old").unwrap(), DepotWrite::Conflict);
        }
        assert_eq!(get(&*open(), "a"), Some((vec![number], tag.clone())));
        tags.push(tag);
    }
    let unknown = DepotTag::new("");
    assert_eq!(open().swap("a", &unknown, b"x").unwrap(), DepotWrite::Conflict);
}

fn a_known_object_is_not_sent_again<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let first = put(&*open(), "a", b"1");
    // A program may keep a tag as text until it runs again.
    let kept = DepotTag::new(first.as_str());
    assert_eq!(open().get("a", Some(&kept)).unwrap(), DepotRead::Unchanged);
    let second = done(open().swap("a", &kept, b"2").unwrap()).unwrap();
    let whole = DepotRead::Whole { bytes: b"2".to_vec(), tag: second.clone() };
    assert_eq!(open().get("a", Some(&first)).unwrap(), whole);
    assert_eq!(open().get("a", Some(&second)).unwrap(), DepotRead::Unchanged);
}

fn a_removed_object_is_absent<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let depot = open();
    let tag = put(&*depot, "a/b", b"1");
    put(&*depot, "a/c", b"2");
    open().remove("a/b").unwrap();
    assert_eq!(depot.get("a/b", Some(&tag)).unwrap(), DepotRead::Absent);
    assert_eq!(depot.swap("a/b", &tag, b"3").unwrap(), DepotWrite::Conflict);
    assert_eq!(names(&depot.list("", "").unwrap()), ["a/c"]);
    open().remove("a/b").unwrap();
    put(&*depot, "a/b", b"4");
}

fn a_list_is_sorted_and_goes_on<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let depot = open();
    let sorted = ["a/b", "a/c/d", "a/c0", "a0", "b/a", "ba"];
    for name in sorted.iter().rev() {
        put(&*depot, name, name.as_bytes());
    }
    let all = depot.list("", "").unwrap();
    assert_eq!(names(&all), sorted);
    for entry in &all {
        assert_eq!(entry.bytes, entry.name.len() as u64);
        let tag = get(&*depot, &entry.name).map(|(_, tag)| tag);
        assert!(entry.tag.is_none() || entry.tag == tag, "{entry:?} {tag:?}");
    }
    for (place, after) in sorted.iter().enumerate() {
        assert_eq!(names(&open().list("", after).unwrap()), sorted[place + 1..]);
    }
    for (prefix, after, expected) in [
        ("a/", "", &["a/b", "a/c/d", "a/c0"][..]),
        ("a/", "a-b", &["a/b", "a/c/d", "a/c0"]),
        ("a/", "a/b", &["a/c/d", "a/c0"]),
        ("a/", "a/c/d", &["a/c0"]),
        ("a/", "b", &[]),
        ("a/c/", "", &["a/c/d"]),
        ("b/", "", &["b/a"]),
        ("c/", "", &[]),
    ] {
        let listed = depot.list(prefix, after).unwrap();
        assert_eq!(names(&listed), expected, "{prefix} after {after}");
    }
}

fn a_list_has_a_limit<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let depot = open();
    let name = |number: usize| format!("refs/{:02x}/{number:04}", number % 7);
    let count = DEPOT_LIST_ENTRIES + 10;
    let mut sorted: Vec<_> = (0..count).map(name).collect();
    for name in &sorted {
        put(&*depot, name, b"1");
    }
    sorted.sort();
    let first = depot.list("refs/", "").unwrap();
    assert_eq!(names(&first), sorted[..DEPOT_LIST_ENTRIES]);
    let last = &first.last().expect("a full answer").name;
    assert_eq!(names(&depot.list("refs/", last).unwrap()), sorted[DEPOT_LIST_ENTRIES..]);
}

fn the_clock_is_the_one_of_the_list<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let before = open().now().unwrap();
    let tag = put(&*open(), "a", b"1");
    open().swap("a", &tag, b"2").unwrap();
    let after = open().now().unwrap();
    let changed = open().list("", "").unwrap()[0].changed;
    // The clock of a file system may tick every few milliseconds, and some clocks count only
    // seconds.
    let second = 1_000_000;
    let fits = before.plus_micros(-second) <= changed && changed <= after.plus_micros(second);
    assert!(fits, "{before} {changed} {after}");
}

fn other_names_are_refused<O: Fn() -> Box<dyn Depot>>(open: &O) {
    let depot = open();
    let tag = DepotTag::new("tag");
    for name in ["", "/a", "a/", "a//b", "../a", "a/../b", ".", ".a", "a\\b", "ä", "a\0"] {
        for result in [
            depot.get(name, None).err(),
            depot.put_new(name, b"").err(),
            depot.swap(name, &tag, b"").err(),
            depot.remove(name).err(),
            depot.list(&format!("{name}/"), "").err(),
        ] {
            assert!(matches!(result, Some(DepotError::InvalidName { .. })), "{name}: {result:?}");
        }
    }
    assert!(matches!(depot.list("a", ""), Err(DepotError::InvalidName { .. })));
    assert_eq!(depot.list("", "").unwrap(), []);
}

fn one_of_eight_puts_wins<O: Fn() -> Box<dyn Depot> + Sync>(open: &O) {
    for round in 0..20 {
        let name = format!("refs/{round}");
        let won = thread::scope(|scope| {
            let writers: Vec<_> = (0..8_u8)
                .map(|writer| {
                    let name = &name;
                    scope.spawn(move || done(open().put_new(name, &[writer]).unwrap()))
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        let winners: Vec<_> = (0..8).filter(|writer| won[usize::from(*writer)].is_some()).collect();
        assert_eq!(winners.len(), 1, "round {round}: {winners:?} have won");
        let tag = won.into_iter().flatten().next().expect("a winner");
        assert_eq!(get(&*open(), &name), Some((winners, tag)));
    }
}

fn no_swap_is_lost<O: Fn() -> Box<dyn Depot> + Sync>(open: &O) {
    put(&*open(), "counter", b"0");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| count_in_depot(&*open(), "counter", 10));
        }
    });
    assert_eq!(get(&*open(), "counter").expect("a counter").0, b"80");
}

/// Adds 1 to the number in an object this many times, each time with a swap.
pub fn count_in_depot(depot: &dyn Depot, name: &str, times: usize) {
    for _ in 0..times {
        loop {
            let (bytes, tag) = get(depot, name).expect("a counter");
            let number: u64 = String::from_utf8(bytes).unwrap().parse().unwrap();
            let next = (number + 1).to_string();
            if done(depot.swap(name, &tag, next.as_bytes()).unwrap()).is_some() {
                break;
            }
        }
    }
}
