//! Formats times: in a time zone, with its offset from UTC, and as a distance from now.

use chrono::TimeZone;
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::{civil_time, clock_time, day_name, describe_distance};

const SECOND_MICROS: i64 = 1_000_000;

/// Formats a time in full: `2025-01-20 14:30:00 +01:00 (2 h 5 min ago)`.
pub fn with_distance<Z: TimeZone>(time: Timestamp, now: Timestamp, zone: &Z) -> String {
    format!("{} ({})", local(time, zone), relative(time, now))
}

/// Formats a time in a zone, to the second: `2025-01-20 14:30:00 +01:00`.
pub fn local<Z: TimeZone>(time: Timestamp, zone: &Z) -> String {
    let fraction = time.as_micros().rem_euclid(SECOND_MICROS);
    civil_time(time.plus_micros(-fraction), zone)
}

/// Formats a time for a column, with the year if it is not the current one: `11 Mar 14:30`.
pub fn short<Z: TimeZone>(time: Timestamp, now: Timestamp, zone: &Z) -> String {
    let day = day_name(time, now, zone);
    let day = day.split_once(' ').map_or(day.as_str(), |(_, date)| date);
    format!("{day:>6} {}", clock_time(time, zone))
}

/// Formats how long before or after now a time is: `2 h 5 min ago`, `in 3 min`, `now`.
pub fn relative(time: Timestamp, now: Timestamp) -> String {
    let micros = now.micros_since(time);
    let distance = describe_distance(rounded(micros));
    if micros.abs() < SECOND_MICROS {
        "now".to_owned()
    } else if micros > 0 {
        format!("{distance} ago")
    } else {
        format!("in {distance}")
    }
}

/// Drops what does not matter to a reader: seconds from ten minutes on, minutes from ten hours on,
/// hours from ten days on.
fn rounded(micros: i64) -> i64 {
    const UNITS: [i64; 3] = [86_400 * SECOND_MICROS, 3_600 * SECOND_MICROS, 60 * SECOND_MICROS];
    let unit = UNITS.into_iter().find(|unit| micros.abs() >= 10 * unit);
    let largest = UNITS.into_iter().find(|unit| micros.abs() >= *unit);
    match (unit, largest) {
        (Some(unit), Some(largest)) if unit == largest => micros - micros % unit,
        _ => micros,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::FixedOffset;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn the_zone_and_the_distance_are_named() {
        let zone = FixedOffset::east_opt(3_600).unwrap();
        let now = at("2025-01-20T15:30:00Z");
        assert_eq!(
            with_distance(at("2025-01-20T13:30:00.75Z"), now, &zone),
            "2025-01-20 14:30:00 +01:00 (1 h 59 min ago)"
        );
    }

    #[test]
    fn a_date_shows_the_year_only_if_it_is_not_the_current_year() {
        let zone = FixedOffset::east_opt(3_600).unwrap();
        let now = at("2025-12-31T23:30:00Z");
        assert_eq!(day_name(at("2025-03-10T23:30:00Z"), now, &zone), "Tue 11 Mar 2025");
        assert_eq!(day_name(at("2026-01-20T13:30:00Z"), now, &zone), "Tue 20 Jan");
        assert_eq!(clock_time(at("2025-03-10T23:30:59Z"), &zone), "00:30");
        assert_eq!(short(at("2025-03-10T23:30:59Z"), now, &zone), "11 Mar 2025 00:30");
        assert_eq!(short(at("2026-01-02T13:30:00Z"), now, &zone), " 2 Jan 14:30");
    }

    #[test]
    fn a_distance_in_time_is_shown_in_at_most_two_units() {
        let now = at("2025-01-20T00:00:00Z");
        for (time, expected) in [
            ("2025-01-20T00:00:00Z", "now"),
            ("2025-01-19T23:59:59.5Z", "now"),
            ("2025-01-19T23:59:01Z", "59 s ago"),
            ("2025-01-19T23:58:01Z", "1 min 59 s ago"),
            ("2025-01-17T22:00:01Z", "2 d 1 h ago"),
            ("2025-01-19T23:49:59Z", "10 min ago"),
            ("2025-01-19T09:59:59Z", "14 h ago"),
            ("2024-04-10T22:00:01Z", "284 d ago"),
            ("2025-01-20T00:03:00Z", "in 3 min"),
        ] {
            assert_eq!(relative(at(time), now), expected, "{time}");
        }
    }
}
