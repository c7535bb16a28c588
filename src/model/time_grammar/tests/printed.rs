//! What other programs, and forge itself, print must be readable as a time.

use super::*;
use chrono::{DateTime, Utc};
use proptest::prelude::*;

#[test]
fn times_printed_by_git_log_are_read() {
    let at = "2025-06-18 14:30:00 +02:00";
    check_times(
        now(),
        &BERLIN,
        &[
            ("Wed Jun 18 14:30:00 2025 +0200", at),
            ("Wed Jun 18 14:30:00 2025", at),
            ("2025-06-18 14:30:00 +0200", at),
            ("2025-06-18T14:30:00+02:00", at),
            ("2025-06-18T12:30:00Z", at),
            ("Wed, 18 Jun 2025 14:30:00 +0200", at),
            ("1750249800", at),
            ("1750249800 +0200", at),
            ("1750249800 -0500", at),
            ("@1750249800 +0200", at),
            ("2025-06-18", "2025-06-18 00:00:00 +02:00"),
            ("Sun Jun 8 09:05:00 2025 +0200", "2025-06-08 09:05:00 +02:00"),
            ("2 hours ago", "2025-06-18 14:45:30 +02:00"),
            ("1 year, 2 months ago", "2024-04-18 16:45:30 +02:00"),
        ],
    );
}

#[test]
fn times_printed_by_date_and_ls_are_read() {
    let at = "2025-06-18 16:30:00 +02:00";
    check_times(
        now(),
        &BERLIN,
        &[
            ("Wed Jun 18 14:30:00 UTC 2025", at),
            ("Wed Jun 18 14:30:00 GMT 2025", at),
            ("Wed Jun 18 16:30:00 +02 2025", at),
            ("Wed Jun 18 02:30:00 PM UTC 2025", at),
            ("Wed 18 Jun 2025 02:30:00 PM UTC", at),
            ("Wed 18 Jun 14:30:00 UTC 2025", at),
            ("Sun Jun  8 14:30:00 UTC 2025", "2025-06-08 16:30:00 +02:00"),
            ("Wed, 18 Jun 2025 14:30:00 +0000", at),
            ("2025-06-18T14:30:00+00:00", at),
            ("2025-06-18T14:30+00:00", at),
            ("2025-06-18T14+00:00", "2025-06-18 16:00:00 +02:00"),
            ("2025-06-18T14:30:00,250000000+00:00", "2025-06-18 16:30:00.25 +02:00"),
            ("2025-06-18 14:30:00.250000000 +0000", "2025-06-18 16:30:00.25 +02:00"),
            ("2025-06-18 14:30:00 +0000 UTC", at),
            ("2025-06-18 16:30:00 +0200 CEST", at),
            ("2025-06-18 16:30:00.000000001 +0200 CEST m=+0.000012345", at),
            ("2025-06-18 14:30:00 +0000 UTC m=-3", at),
            ("Wed, 18 Jun 2025 16:30:00 +0200 (CEST)", at),
            ("Wed Jun 18 16:30:00 2025 +0200 (CEST)", at),
            ("2025-06-18 16:30:00 +0200 (CEST) (15 min ago)", at),
            ("2025-06-18 16:30:00 +0200 (CEST", "refused: unreadable"),
            ("2025-06-18 16:30:00 +0200 (lunch)", "refused: unreadable"),
            ("2025-06-18 16:30:00 +0200 (UTC)", "refused: impossible"),
            ("2025-06-18 16:30:00 +0200 m=x", "refused: unreadable"),
            ("Wed 2025-06-18 14:30:00 UTC", at),
            ("June 18, 2025 4:30 pm", at),
            ("Jun 18 2025", "2025-06-18 00:00:00 +02:00"),
        ],
    );
}

#[test]
fn times_in_logs_with_the_name_of_a_month_are_read() {
    let at = "2025-06-18 14:30:00 +02:00";
    check_times(
        now(),
        &BERLIN,
        &[
            ("18/Jun/2025:14:30:00 +0200", at),
            ("18/Jun/2025 14:30:00", at),
            ("18-Jun-2025 14:30:00", at),
            ("18-Jun-2025 12:30:00 UTC", at),
            ("18-Jun-2025 14:30:00.250", "2025-06-18 14:30:00.25 +02:00"),
            ("8-jun-2025", "2025-06-08 00:00:00 +02:00"),
            ("Wed, 18-Jun-2025 12:30:00 GMT", at),
            ("2025-Jun-18 14:30:00", at),
            ("2025-June-18", "2025-06-18 00:00:00 +02:00"),
            ("2025 Jun 18 14:30:00 +0200", at),
            ("Thu, 18-Jun-2025 12:30:00 GMT", "refused: impossible"),
            ("31-Jun-2024", "refused: impossible"),
            ("18-Jun-25", "refused: unreadable"),
            ("18-Jun/2025", "refused: unreadable"),
            ("18-Jun-2025-10:30", "refused: unreadable"),
            ("18-Jun-2025:", "refused: unreadable"),
            ("2025-Jun", "refused: unreadable"),
            ("2025-Jun-2025", "refused: unreadable"),
        ],
    );
    assert_eq!(moment_outcome("18-jun-retry"), "tag or branch 18-jun-retry");
    assert_eq!(moment_outcome("2025-jun-18-retry"), "tag or branch 2025-jun-18-retry");
}

#[test]
fn times_printed_by_javascript_and_java_are_read() {
    let at = "2025-06-18 14:30:00 +02:00";
    check_times(
        now(),
        &BERLIN,
        &[
            ("Wed Jun 18 2025 14:30:00 GMT+0200 (Central European Summer Time)", at),
            ("Wed Jun 18 2025 14:30:00 GMT+0200 (heure d’été d’Europe centrale)", at),
            ("Wed Jun 18 2025 21:30:00 GMT+0900 (日本標準時)", at),
            ("Wed Jun 18 2025 12:30:00 GMT+0000 (Coordinated Universal Time)", at),
            ("Wed Jun 18 2025 15:30:00 GMT+0300 (GMT+03:00)", at),
            ("Wed Jun 18 2025 14:30:00 GMT+0200", at),
            ("Wed Jun 18 14:30:00 GMT+02:00 2025", at),
            ("June 18, 2025 at 2:30:00\u{202f}PM GMT+2", at),
            ("Jun 18, 2025, 2:30:00\u{202f}PM", at),
            ("Wednesday, June 18, 2025 at 6:00:00 PM GMT+5:30", at),
            ("2025-06-18 14:30:00 UTC+02:00", at),
            ("2025-06-18 07:30:00 utc-05", at),
            ("Wed, 18 Jun 2025 08:30:00 -0400 (Eastern Daylight Time)", at),
            ("Wed Jun 18 2025 14:30:00 GMT+0200 (CEST", "refused: unreadable"),
            ("Wed Jun 18 2025 14:30:00 GMT+0200 (2)", "refused: unreadable"),
            ("Wed Jun 18 2025 14:30:00 GMT+0200 (UTC)", "refused: impossible"),
            ("June 18, 2025, 14:30 (UTC+02:00)", at),
            ("2025-06-18 12:30 (UTC)", at),
            ("2025-06-18 14:30 (+02:00)", at),
            ("2025-06-18 14:30 (CEST)", "refused: zone"),
            ("2025-06-18 14:30 (Europe/Berlin)", "refused: zone"),
            ("2025-06-18 14:30 (lunch)", "refused: unreadable"),
            ("2025-06-18 14:30 (UTC", "refused: unreadable"),
            ("2025-06-18 14:30 (2)", "refused: unreadable"),
            ("2025-06-18 (+02:00)", "refused: unreadable"),
            ("2025-06-18 14:30:00 UTC+15", "refused: impossible"),
            ("2025-06-18 14:30:00 UTC+1 day", "refused: unreadable"),
            ("2025-06-18 14:30:00 UTC +1", "refused: unreadable"),
            ("2025-06-18 14:30:00 EST+5", "refused: zone"),
            ("2025-06-18 14:30:00 Etc/GMT+1", "refused: zone"),
        ],
    );
}

#[test]
fn iso_8601_without_separators_is_read() {
    check_times(
        now(),
        &BERLIN,
        &[
            ("20250617", "2025-06-17 00:00:00 +02:00"),
            ("20250617T143000", "2025-06-17 14:30:00 +02:00"),
            ("20250617T143000Z", "2025-06-17 16:30:00 +02:00"),
            ("20250617t143000z", "2025-06-17 16:30:00 +02:00"),
            ("20250617T143000.25Z", "2025-06-17 16:30:00.25 +02:00"),
            ("20250617T143000,25+0530", "2025-06-17 11:00:00.25 +02:00"),
            ("20250617T143000+02", "2025-06-17 14:30:00 +02:00"),
            ("20250617T1430", "2025-06-17 14:30:00 +02:00"),
            ("20250617T14", "2025-06-17 14:00:00 +02:00"),
            ("20250617T14:30:00Z", "2025-06-17 16:30:00 +02:00"),
            ("20250617 14:30", "2025-06-17 14:30:00 +02:00"),
            ("20250617 s ago", "2024-10-27 06:35:13 +01:00"),
            ("20250617T250000", "refused: impossible"),
            ("20250617T143060", "refused: impossible"),
            ("20251317T143000", "refused: impossible"),
            ("20250617T14300", "refused: unreadable"),
            ("20250617T", "refused: unreadable"),
            ("2025-W25-2", "refused: unreadable"),
        ],
    );
}

#[test]
fn unambiguous_english_times_are_read() {
    check_times(
        now(),
        &BERLIN,
        &[
            ("day before yesterday", "2025-06-16 00:00:00 +02:00"),
            ("the day before yesterday at 14:00", "2025-06-16 14:00:00 +02:00"),
            ("14:00 the day before yesterday", "2025-06-16 14:00:00 +02:00"),
            ("3 days ago at 14:00", "2025-06-15 14:00:00 +02:00"),
            ("3 days ago, 2pm", "2025-06-15 14:00:00 +02:00"),
            ("2 weeks ago 14:00 UTC", "2025-06-04 16:00:00 +02:00"),
            ("a month ago at noon", "2025-05-18 12:00:00 +02:00"),
            ("80 days ago at 02:30", "2025-03-30 03:30:00 +02:00 (gap)"),
            ("last 11:00", "2025-06-18 11:00:00 +02:00"),
            ("last 5pm", "2025-06-17 17:00:00 +02:00"),
            ("last noon", "2025-06-18 12:00:00 +02:00"),
            ("0 days ago at 17:00", "refused: impossible"),
            ("2 hours ago at 14:00", "refused: impossible"),
            ("1 day, 2 hours ago at 14:00", "refused: impossible"),
            ("3 days ago or so", "refused: unreadable"),
            ("-3 days 14:00", "refused: unreadable"),
            ("last 11", "refused: stretch"),
            ("last 2 hours", "refused: stretch"),
        ],
    );
}

#[test]
fn a_time_with_an_abbreviated_zone_is_refused_and_the_zone_named() {
    for zone in ["CEST", "EST", "BST", "IST", "America/New_York"] {
        for text in [
            format!("Wed Jun 18 14:30:00 {zone} 2025"),
            format!("2025-06-18 14:30 {zone}"),
            format!("20250618T143000 {zone}"),
        ] {
            let error = parse_time(&text, now(), &BERLIN).unwrap_err();
            assert_eq!(reason(&error), "zone", "{text}");
            let message = error.to_string();
            assert!(
                message.contains(&format!("'{zone}'")) && message.contains("offset"),
                "{message}"
            );
        }
    }
    let wrong = parse_time("2025-06-18 14:30:00 +0200 UTC", now(), &BERLIN).unwrap_err();
    assert_eq!(reason(&wrong), "impossible");
}

#[test]
fn a_date_without_a_year_is_refused_with_an_example() {
    for text in ["Jun 18 14:30", "18 Jun", "Wed Jun 18 14:30:00", "Jun 18 14:30 UTC"] {
        let error = parse_time(text, now(), &BERLIN).unwrap_err().to_string();
        assert!(
            error.contains("the year is missing; write for example '2025-01-20 14:30'"),
            "{error}"
        );
    }
}

#[test]
fn the_distance_that_forge_prints_after_a_time_is_ignored() {
    let at = "2025-06-18 14:30:00 +02:00";
    check_times(
        now(),
        &BERLIN,
        &[
            ("2025-06-18 14:30:00 +02:00 (2 h 15 min ago)", at),
            ("2025-06-18 14:30:00 +02:00 (now)", at),
            ("Wed 2025-06-18 12:30:00 UTC; 2h 15min ago", at),
            ("Wed 2025-06-18 12:30:00 UTC; 1 month 2 days ago", at),
            ("Wed 2025-06-18 12:30:00 UTC; lunch", "refused: unreadable"),
            ("2 hours ago; 1 hour ago", "refused: unreadable"),
            ("yesterday; 2h ago", "refused: unreadable"),
            ("2025-06-18 14:30:00 +02:00 (about lunch)", "refused: unreadable"),
            ("2025-06-18 14:30:00 +02:00 (in 2 h)", "refused: unreadable"),
        ],
    );
}

proptest! {
    /// Each form that git, date and ls print for a second refers to that second.
    #[test]
    fn every_printed_form_is_read_back(seconds in 1_000_000_000_i64..4_000_000_000) {
        let time = Timestamp::from_micros(seconds * 1_000_000);
        let local: DateTime<Tz> = time.to_datetime().with_timezone(&BERLIN);
        let utc: DateTime<Utc> = time.to_datetime();
        for text in [
            local.format("%a %b %-d %H:%M:%S %Y %z").to_string(),
            local.format("%a, %-d %b %Y %H:%M:%S %z").to_string(),
            local.format("%Y-%m-%d %H:%M:%S %z").to_string(),
            local.format("%Y-%m-%d %H:%M:%S.000000000 %z").to_string(),
            local.format("%Y%m%dT%H%M%S%z").to_string(),
            local.format("%s %z").to_string(),
            local.format("%s").to_string(),
            utc.format("%a %b %e %H:%M:%S UTC %Y").to_string(),
            utc.format("%a %d %b %Y %I:%M:%S %p UTC").to_string(),
            utc.format("%Y%m%dT%H%M%SZ").to_string(),
            utc.format("%Y-%m-%dT%H:%M:%S+00:00").to_string(),
        ] {
            let read = parse_time(&text, Timestamp::MAX, &BERLIN).map(|found| found.time);
            prop_assert_eq!(read, Ok(time), "{}", text);
        }
    }

    #[test]
    fn every_printed_distance_is_read_as_a_time_and_as_a_duration(micros in 1_i64..4_000_000_000_000_000) {
        let distance = describe_distance(micros);
        prop_assert!(parse_duration(&distance).is_ok(), "{}", distance);
        let ago = parse_time(&format!("{distance} ago"), now(), &BERLIN);
        prop_assert!(ago.is_ok(), "{}", distance);
    }
}
