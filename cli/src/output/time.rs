//! How times are shown: in the local zone, which is named, and how long ago.

use chrono::{DateTime, TimeZone};
use forge_store::model::Timestamp;
use std::fmt::Display;

/// A time in full: `2025-01-20 14:30:00 +01:00 (2 h ago)`.
pub fn shown<Z: TimeZone>(time: Timestamp, now: Timestamp, zone: &Z) -> String
where
    Z::Offset: Display,
{
    format!("{} ({})", local(time, zone), relative(time, now))
}

/// A time in a zone, to the second: `2025-01-20 14:30:00 +01:00`.
pub fn local<Z: TimeZone>(time: Timestamp, zone: &Z) -> String
where
    Z::Offset: Display,
{
    let local: DateTime<Z> = time.to_datetime().with_timezone(zone);
    local.format("%Y-%m-%d %H:%M:%S %:z").to_string()
}

/// How long before or after now a time is, in its largest unit, rounded down: `2 h ago`, `in 3 min`, `now`.
#[must_use]
pub fn relative(time: Timestamp, now: Timestamp) -> String {
    let micros = now.micros_since(time);
    let seconds = micros.unsigned_abs() / 1_000_000;
    let (count, unit) = match seconds {
        0 => return "now".to_owned(),
        1..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..86_400 => (seconds / 3_600, "h"),
        86_400..31_536_000 => (seconds / 86_400, "d"),
        _ => (seconds / 31_536_000, "y"),
    };
    if micros > 0 { format!("{count} {unit} ago") } else { format!("in {count} {unit}") }
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
            shown(at("2025-01-20T13:30:00Z"), now, &zone),
            "2025-01-20 14:30:00 +01:00 (2 h ago)"
        );
    }

    #[test]
    fn the_largest_unit_is_rounded_down() {
        let now = at("2025-01-20T00:00:00Z");
        for (time, said) in [
            ("2025-01-20T00:00:00Z", "now"),
            ("2025-01-19T23:59:59.5Z", "now"),
            ("2025-01-19T23:59:01Z", "59 s ago"),
            ("2025-01-19T23:58:01Z", "1 min ago"),
            ("2025-01-19T00:00:01Z", "23 h ago"),
            ("2025-01-18T00:00:01Z", "1 d ago"),
            ("2024-01-21T00:00:00Z", "1 y ago"),
            ("2025-01-20T00:03:00Z", "in 3 min"),
        ] {
            assert_eq!(relative(at(time), now), said, "{time}");
        }
    }
}
