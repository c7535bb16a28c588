//! Laws for any text and any time.

use super::*;
use chrono::{LocalResult, Utc};
use chrono_tz::{Africa, America, Asia, Australia, Pacific};
use proptest::prelude::*;

fn zone() -> impl Strategy<Value = Tz> {
    proptest::sample::select(vec![
        BERLIN,
        America::New_York,
        America::Sao_Paulo,
        America::St_Johns,
        Australia::Lord_Howe,
        Pacific::Apia,
        Africa::Casablanca,
        Asia::Kathmandu,
        Tz::UTC,
    ])
}

/// Generates any microsecond of the years 1 to 2100.
fn any_time() -> impl Strategy<Value = Timestamp> {
    let (from, to) = (time("0001-01-03T00:00:00Z"), time("2100-01-01T00:00:00Z"));
    (from.as_micros()..to.as_micros()).prop_map(Timestamp::from_micros)
}

/// Generates texts from the parts of times and moments.
fn likely_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        proptest::sample::select(
            "now @ - + : . , ~ # { } [ ] T Z UTC ago in at on last next this today yesterday \
             tomorrow monday wed fri noon midnight am pm hours h m s d w mo y month half an a \
             two and from jan 2025 2025-03-30 2025-10-26 2025-06-18 02:30 14:30 16:45:30 +01:00 \
             -0500 [UTC] HEAD main@{ tag: before commit when was rejected compaction start"
                .split_ascii_whitespace()
                .collect::<Vec<_>>()
        )
        .prop_map(str::to_owned),
        (0_u64..100).prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
    ];
    proptest::collection::vec((part, prop_oneof![Just(""), Just(" ")]), 0..7)
        .prop_map(|parts| parts.into_iter().map(|(part, space)| part + space).collect())
}

proptest! {
    #[test]
    fn parsing_any_text_does_not_panic(text in any::<String>(), zone in zone()) {
        let _ = parse_time(&text, now(), &zone);
        let _ = parse_moment(&text, now(), &zone);
        let _ = parse_duration(&text);
    }

    #[test]
    fn no_parsed_time_is_after_now(
        text in likely_text(),
        now in any_time(),
        zone in zone(),
    ) {
        if let Ok(resolved) = parse_time(&text, now, &zone) {
            prop_assert!(resolved.time <= now);
        }
        let base = parse_moment(&text, now, &zone).map(|moment| moment.base);
        if let Ok(MomentBase::Time(resolved) | MomentBase::BranchAt { time: resolved, .. }) = base {
            prop_assert!(resolved.time <= now);
        }
        let _ = parse_duration(&text);
    }

    #[test]
    fn parsing_with_any_current_time_does_not_panic(text in likely_text(), now in any::<i64>(), zone in zone()) {
        let _ = parse_time(&text, Timestamp::from_micros(now), &zone);
    }

    #[test]
    fn time_as_text_is_read_back(time in any_time(), zone in zone(), reader in zone()) {
        let read = |text: String| {
            parse_time(&text, Timestamp::MAX, &reader).map(|resolved| resolved.time)
        };
        prop_assert_eq!(read(time.to_string()), Ok(time));
        prop_assert_eq!(read(civil_time(time, &zone)), Ok(time));
        prop_assert_eq!(read(civil_time(time, &Utc)), Ok(time));
        let micros = time.as_micros();
        let sign = if micros < 0 { "-" } else { "" };
        let size = micros.unsigned_abs();
        let (seconds, rest) = (size / 1_000_000, size % 1_000_000);
        prop_assert_eq!(read(format!("@{sign}{seconds}.{rest:06}")), Ok(time));
    }

    #[test]
    fn local_time_without_offset_is_read_back_or_noted(time in any_time(), zone in zone()) {
        let text = civil_time(time, &zone);
        let (local, _) = text.rsplit_once(' ').unwrap();
        let read = parse_time(local, Timestamp::MAX, &zone).unwrap();
        match read.note {
            None => prop_assert_eq!(read.time, time),
            Some(ZoneNote::Fold { .. }) => prop_assert!(read.time <= time),
            Some(ZoneNote::Gap { .. }) => prop_assert!(false, "a time that was shown exists"),
        }
    }

    #[test]
    fn local_time_near_a_clock_change_is_read_by_the_rules_of_the_zone(
        day in proptest::sample::select(vec![
            "2025-03-09", "2025-03-30", "2025-04-06", "2025-10-05", "2025-10-26", "2025-11-02",
            "2011-12-30", "2018-11-04", "2018-02-18", "2025-02-23", "1986-01-01",
        ]),
        minutes in -240_i64..1440,
        zone in zone(),
    ) {
        let midnight = time(&format!("{day}T00:00:00Z"));
        let local = midnight.plus_micros(minutes * 60_000_000).to_datetime().naive_utc();
        let read = parse_time(&local.to_string(), Timestamp::MAX, &zone).unwrap();
        let (expected, is_noted) = match zone.from_local_datetime(&local) {
            LocalResult::Single(only) => (only, false),
            LocalResult::Ambiguous(first, _) => (first, true),
            LocalResult::None => {
                let is_gap = matches!(read.note, Some(ZoneNote::Gap { .. }));
                prop_assert!(is_gap);
                return Ok(());
            }
        };
        prop_assert_eq!(read.time, Timestamp::from(expected.to_utc()));
        prop_assert_eq!(read.note.is_some(), is_noted);
    }

    #[test]
    fn a_longer_time_ago_is_not_later(
        unit in proptest::sample::select(vec!["us", "ms", "s", "m", "h", "d", "w", "mo", "y"]),
        (less, more) in (0_u32..2000, 0_u32..2000),
        now in any_time(),
        zone in zone(),
    ) {
        let (less, more) = (less.min(more), less.max(more));
        let ago = |count| parse_time(&format!("{count} {unit} ago"), now, &zone);
        if let (Ok(nearer), Ok(further)) = (ago(less), ago(more)) {
            prop_assert!(further.time <= nearer.time);
        }
    }

    #[test]
    fn clock_time_alone_is_less_than_two_days_ago(minutes in 0_u32..1440, now in any_time()) {
        let text = format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let found = parse_time(&text, now, &BERLIN).unwrap();
        prop_assert!(now.micros_since(found.time) < 49 * 3_600_000_000);
    }
}
