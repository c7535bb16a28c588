//! Clock changes and unusual zones.

use super::*;
use chrono::Utc;
use chrono_tz::{America, Australia, Pacific};

#[test]
fn times_at_clock_changes_in_berlin_are_read_with_a_note() {
    check_times(
        time("2025-11-01T12:00:00Z"),
        &BERLIN,
        &[
            ("2025-03-30 01:59:59", "2025-03-30 01:59:59 +01:00"),
            ("2025-03-30 02:00", "2025-03-30 03:00:00 +02:00 (gap)"),
            ("2025-03-30 02:30", "2025-03-30 03:30:00 +02:00 (gap)"),
            ("2025-03-30 02:59:59.999999", "2025-03-30 03:59:59.999999 +02:00 (gap)"),
            ("2025-03-30 03:00", "2025-03-30 03:00:00 +02:00"),
            ("2025-10-26 01:59:59", "2025-10-26 01:59:59 +02:00"),
            ("2025-10-26 02:00", "2025-10-26 02:00:00 +02:00 (first of two)"),
            ("2025-10-26 02:30", "2025-10-26 02:30:00 +02:00 (first of two)"),
            ("2025-10-26 02:59:59.999999", "2025-10-26 02:59:59.999999 +02:00 (first of two)"),
            ("2025-10-26 03:00", "2025-10-26 03:00:00 +01:00"),
            ("2025-10-26 02:30+01:00", "2025-10-26 02:30:00 +01:00"),
            ("2025-03-30 02:30Z", "2025-03-30 04:30:00 +02:00"),
            ("sunday 02:30", "2025-10-26 02:30:00 +02:00 (first of two)"),
        ],
    );
}

#[test]
fn over_a_clock_change_days_ago_keep_the_clock_time_and_hours_ago_the_duration() {
    let now = time("2025-03-31T02:30:00+02:00");
    check_times(
        now,
        &BERLIN,
        &[
            ("24 hours ago", "2025-03-30 01:30:00 +01:00"),
            ("1 day ago", "2025-03-30 03:30:00 +02:00 (gap)"),
            ("2 days ago", "2025-03-29 02:30:00 +01:00"),
            ("yesterday 02:30", "2025-03-30 03:30:00 +02:00 (gap)"),
        ],
    );
}

#[test]
fn a_clock_time_alone_is_the_last_such_time_also_near_a_clock_change() {
    let fold = |now| outcome("02:30", time(now), &BERLIN);
    assert_eq!(fold("2025-10-26T02:29:00+02:00"), "2025-10-25 02:30:00 +02:00");
    assert_eq!(fold("2025-10-26T02:45:00+02:00"), "2025-10-26 02:30:00 +02:00 (first of two)");
    assert_eq!(fold("2025-10-26T02:29:00+01:00"), "2025-10-26 02:30:00 +02:00 (first of two)");
    assert_eq!(fold("2025-10-26T02:30:00+01:00"), "2025-10-26 02:30:00 +01:00 (second of two)");
    assert_eq!(fold("2025-03-30T03:29:00+02:00"), "2025-03-29 02:30:00 +01:00");
    assert_eq!(fold("2025-03-30T03:30:00+02:00"), "2025-03-30 03:30:00 +02:00 (gap)");
}

#[test]
fn clock_changes_of_new_york_and_of_half_an_hour_are_read_by_their_rules() {
    let now = time("2025-12-01T12:00:00Z");
    check_times(
        now,
        &America::New_York,
        &[
            ("2025-03-09 02:30", "2025-03-09 03:30:00 -04:00 (gap)"),
            ("2025-11-02 01:30", "2025-11-02 01:30:00 -04:00 (first of two)"),
            ("2025-11-02 01:30-05:00", "2025-11-02 01:30:00 -05:00"),
            ("today", "2025-12-01 00:00:00 -05:00"),
            ("08:00", "2025-11-30 08:00:00 -05:00"),
        ],
    );
    check_times(
        now,
        &Australia::Lord_Howe,
        &[
            ("2025-10-05 02:15", "2025-10-05 02:45:00 +11:00 (gap)"),
            ("2025-10-05 02:30", "2025-10-05 02:30:00 +11:00"),
            ("2025-04-06 01:45", "2025-04-06 01:45:00 +11:00 (first of two)"),
            ("2025-04-06 01:29:59", "2025-04-06 01:29:59 +11:00"),
            ("2025-04-06 02:00", "2025-04-06 02:00:00 +10:30"),
            ("2025-04-06 01:45+10:30", "2025-04-06 01:45:00 +10:30"),
        ],
    );
}

#[test]
fn a_day_that_a_zone_skipped_is_read_as_the_next_day() {
    check_times(
        time("2011-12-31T12:00:00+14:00"),
        &Pacific::Apia,
        &[
            ("2011-12-29 23:59:59", "2011-12-29 23:59:59 -10:00"),
            ("2011-12-30", "2011-12-31 00:00:00 +14:00 (gap)"),
            ("2011-12-30 11:00", "2011-12-31 11:00:00 +14:00 (gap)"),
            ("2011-12-30 12:01", "refused: future"),
            ("yesterday", "2011-12-31 00:00:00 +14:00 (gap)"),
            ("11:00", "2011-12-31 11:00:00 +14:00"),
            ("14:30", "2011-12-29 14:30:00 -10:00"),
            ("1 day ago", "2011-12-31 12:00:00 +14:00 (gap)"),
            ("2 days ago", "2011-12-29 12:00:00 -10:00"),
            ("24 hours ago", "2011-12-29 12:00:00 -10:00"),
        ],
    );
}

#[test]
fn a_day_without_midnight_begins_at_its_first_clock_time() {
    check_times(
        time("2018-12-01T00:00:00Z"),
        &America::Sao_Paulo,
        &[
            ("2018-11-04", "2018-11-04 01:00:00 -02:00 (gap)"),
            ("2018-11-04 00:30", "2018-11-04 01:30:00 -02:00 (gap)"),
        ],
    );
    // Clocks went from 23:30 to 00:30.
    check_times(
        time("2018-12-01T00:00:00Z"),
        &America::Toronto,
        &[("1919-03-31", "1919-03-31 00:30:00 -04:00 (gap)")],
    );
}

#[test]
fn utc_has_no_changes() {
    check_times(
        now(),
        &Utc,
        &[
            ("2025-03-30 02:30", "2025-03-30 02:30:00 +00:00"),
            ("14:45:30", "2025-06-18 14:45:30 +00:00"),
            ("14:45:31", "2025-06-17 14:45:31 +00:00"),
            ("noon", "2025-06-18 12:00:00 +00:00"),
        ],
    );
}

#[test]
fn a_historic_offset_with_seconds_is_read_back() {
    let text = outcome("1850-01-01 12:00", now(), &BERLIN);
    assert_eq!(text, "1850-01-01 12:00:00 +00:53:28");
    assert_eq!(outcome(&text, now(), &BERLIN), text);
}

#[test]
fn notes_on_clock_changes_name_the_chosen_time_and_the_other_one() {
    let later = time("2025-11-01T12:00:00Z");
    let note =
        |text: &str, now, zone: &Tz| parse_time(text, now, zone).unwrap().note.unwrap().to_string();
    assert_eq!(
        note("2025-03-30 02:30", later, &BERLIN),
        "02:30 does not exist on 2025-03-30 in this zone (clocks went forward): taken as 03:30"
    );
    assert_eq!(
        note("2025-10-26 02:30", later, &BERLIN),
        "02:30 came twice on 2025-10-26 in this zone (clocks went back): taken as the first, \
         02:30+02:00; write '2025-10-26 02:30+01:00' for the second"
    );
    assert_eq!(
        note("02:30:01", time("2025-10-26T02:40:00+01:00"), &BERLIN),
        "02:30:01 came twice on 2025-10-26 in this zone (clocks went back): taken as the second, \
         02:30:01+01:00; write '2025-10-26 02:30:01+02:00' for the first"
    );
    assert_eq!(
        note("2011-12-30", later, &Pacific::Apia),
        "00:00 does not exist on 2011-12-30 in this zone (clocks went forward): taken as \
         2011-12-31 00:00"
    );
}
