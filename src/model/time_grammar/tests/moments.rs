//! Moments.

use super::*;

#[test]
fn each_form_of_a_moment_is_parsed_to_its_meaning() {
    let rows = [
        ("HEAD", "head"),
        ("head", "head"),
        ("@", "head"),
        ("HEAD~", "head, 1 back"),
        ("HEAD~3", "head, 3 back"),
        ("HEAD~~2~", "head, 4 back"),
        ("@~2", "head, 2 back"),
        ("#0", "sequence 0"),
        ("#42", "sequence 42"),
        ("#42~7", "sequence 42, 7 back"),
        ("1a2b", "tag, branch or id 1a2b"),
        ("1A2B3C", "tag, branch or id 1a2b3c"),
        ("abc", "tag or branch abc"),
        ("dead-beef", "tag or branch dead-beef"),
        ("fix/parser", "tag or branch fix/parser"),
        ("größe", "tag or branch größe"),
        ("v1.5", "tag or branch v1.5"),
        ("1.0.3", "tag or branch 1.0.3"),
        ("3rd-attempt", "tag or branch 3rd-attempt"),
        ("10m-run", "tag or branch 10m-run"),
        ("20250120", "tag, branch or id 20250120, else time 2025-01-20 00:00:00 +01:00"),
        ("20250120~2", "tag, branch or id 20250120, else time 2025-01-20 00:00:00 +01:00, 2 back"),
        ("1737383400", "tag, branch or id 1737383400, else time 2025-01-20 15:30:00 +01:00"),
        ("20250230", "tag, branch or id 20250230"),
        ("20250120T1430", "time 2025-01-20 14:30:00 +01:00"),
        ("5may", "tag or branch 5may"),
        // A day without a clock time has no offset from UTC.
        ("monday-10", "tag or branch monday-10"),
        ("friday-13", "tag or branch friday-13"),
        ("today-0900", "tag or branch today-0900"),
        ("2025-01-20utc-3", "tag or branch 2025-01-20utc-3"),
        ("today UTC", "time 2025-06-18 02:00:00 +02:00"),
        // A day with the name of its month can be a name too.
        ("20-Jan-2025", "tag or branch 20-Jan-2025, else time 2025-01-20 00:00:00 +01:00"),
        ("2025/jan/20", "tag or branch 2025/jan/20, else time 2025-01-20 00:00:00 +01:00"),
        ("20-Jan-2026", "tag or branch 20-Jan-2026"),
        ("30-Feb-2025", "tag or branch 30-Feb-2025"),
        ("20 Jan 2025", "time 2025-01-20 00:00:00 +01:00"),
        ("20-Jan-2025 14:30", "time 2025-01-20 14:30:00 +01:00"),
        ("jun18", "tag or branch jun18"),
        ("20250120-baseline", "tag or branch 20250120-baseline"),
        ("2025", "tag, branch or id 2025"),
        ("42", "tag or branch 42"),
        // Ten digits of an id that end in 'd' are not a number of days.
        ("123456789d", "tag, branch or id 123456789d"),
        ("10m", "time 2025-06-18 16:35:30 +02:00"),
        ("2 hours ago~2", "time 2025-06-18 14:45:30 +02:00, 2 back"),
        ("@1737383400", "time 2025-01-20 15:30:00 +01:00"),
        ("2025-01-20", "time 2025-01-20 00:00:00 +01:00"),
        ("main@{2025-03-30 02:30}", "branch main at 2025-03-30 03:30:00 +02:00 (gap)"),
        ("main@{ 10m }~", "branch main at 2025-06-18 16:35:30 +02:00, 1 back"),
        ("branch:my try@{10m}", "branch my try at 2025-06-18 16:35:30 +02:00"),
        ("HEAD@{10m}", "current branch at 2025-06-18 16:35:30 +02:00"),
        ("@{now}", "current branch at 2025-06-18 16:45:30 +02:00"),
        ("tag:release candidate", "tag release candidate"),
        ("tag: 10m", "tag 10m"),
        ("TAG:HEAD", "tag HEAD"),
        ("tag:a~2", "tag a, 2 back"),
        ("branch:HEAD", "branch HEAD"),
        ("id:1A2B", "id 1a2b"),
        ("time: 10m ", "time 2025-06-18 16:35:30 +02:00"),
        ("first", "start"),
        ("Start", "start"),
        ("first-try", "tag or branch first-try"),
        ("start now", "refused: unreadable"),
        ("last compaction", "last compaction"),
        ("the last  compaction", "last compaction"),
        ("Before the last compaction", "before last compaction"),
        ("before last compaction~", "before last compaction, 1 back"),
        ("when H3 was rejected", "H3 became rejected"),
        ("when H3 became confirmed", "H3 became confirmed"),
        ("when root-cause is under-test", "root-cause became under_test"),
        ("when H3 was Under Test", "H3 became under_test"),
        ("when G2 was filled", "G2 became filled"),
        ("when", "tag or branch when"),
        ("commit ABCDEF1", "commit abcdef1"),
        ("before commit abcdef1", "before commit abcdef1"),
        ("commit", "tag or branch commit"),
    ];
    check(rows.map(|(text, expected)| (text, moment_outcome(text), expected.to_owned())));
}

#[test]
fn text_that_names_no_moment_is_refused() {
    let rows = [
        ("", "empty"),
        ("two words", "unreadable"),
        ("#", "impossible"),
        ("#x", "impossible"),
        ("#-1", "impossible"),
        ("#99999999999999999999", "impossible"),
        ("~3", "impossible"),
        ("HEAD~99999999999999999999", "impossible"),
        ("HEAD~x", "unreadable"),
        ("HEAD^", "unreadable"),
        ("main@{}", "empty"),
        ("main@{tomorrow}", "future"),
        ("main@{3}", "number"),
        ("main@{10m", "unreadable"),
        ("tag:x@{10m}", "impossible"),
        ("branch:@{10m}", "impossible"),
        ("tomorrow", "future"),
        ("in 2 hours", "future"),
        ("2030-01-01", "future"),
        ("2025-02-30", "impossible"),
        ("Jun 18 14:30", "impossible"),
        ("2 hours ago at 14:00", "impossible"),
        ("Wed Jun 18 14:30:00 CEST 2025", "zone"),
        ("this morning", "stretch"),
        ("yesterday 14:30 or so", "unreadable"),
        ("time:baseline", "unreadable"),
        ("time:tomorrow", "future"),
        ("tag:", "impossible"),
        ("branch: ~2", "impossible"),
        ("id:12", "impossible"),
        ("id:xyzw", "impossible"),
        ("when H3 was", "impossible"),
        ("when H3 was lost", "impossible"),
        ("when H3 rejected", "impossible"),
        ("commit xyz", "impossible"),
        ("before commit", "unreadable"),
        ("a\0b", "unreadable"),
        ("tag:a\u{1b}b", "impossible"),
        ("-x", "unreadable"),
        ("it's", "unreadable"),
    ];
    check(rows.map(|(text, why)| (text, moment_outcome(text), format!("refused: {why}"))));
}

#[test]
fn a_name_that_begins_like_a_time_keeps_the_reason_why_it_is_no_time() {
    let reason_of = |text: &str| match parse_moment(text, now(), &BERLIN).unwrap().base {
        MomentBase::Name(named) => named.time_error.as_ref().map(reason),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason_of("20250230"), Some("number"));
    assert_eq!(reason_of("20991231"), Some("future"));
    assert_eq!(reason_of("1737383400000"), Some("small unit"));
    assert_eq!(reason_of("2025/06/fix"), Some("unreadable"));
    assert_eq!(reason_of("20250120"), None);
    assert_eq!(reason_of("2025-01-20-baseline"), Some("unreadable"));
    assert_eq!(reason_of("baseline"), None);
}

#[test]
fn id_prefix_matches_the_ids_that_begin_with_it() {
    let prefix = IdPrefix::parse("1A2B3").unwrap();
    assert!(prefix.matches(&[0x1a, 0x2b, 0x3c]));
    assert!(!prefix.matches(&[0x1a, 0x2b, 0x4c]));
    assert!(!prefix.matches(&[0x1a, 0x2b]));
    assert_eq!(IdPrefix::parse(&"a".repeat(65)), None);
    assert_eq!(IdPrefix::parse("1a2"), None);
}
