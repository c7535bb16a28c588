//! Formats times and distances for people.

use super::local_to_utc;
use crate::model::Timestamp;
use chrono::{DateTime, Datelike, NaiveDate, TimeZone};

/// Formats a length in microseconds in its two greatest units, or in one from seconds down: `2 h 5
/// min`, `3 d`, `45 s`, `250 ms`. Smaller parts and the sign are dropped.
#[must_use]
pub fn describe_distance(micros: i64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1000),
        ("µs", 1),
    ];
    let micros = micros.unsigned_abs();
    let Some(greatest) = UNITS.iter().position(|(_, size)| micros >= *size) else {
        return "0 s".to_owned();
    };
    let (name, size) = UNITS[greatest];
    let mut text = format!("{} {name}", micros / size);
    // Next to seconds, and below, a smaller unit is of no use to a person.
    if name != "s"
        && name != "ms"
        && let Some((name, next)) = UNITS.get(greatest + 1)
        && let rest @ 1.. = micros % size / next
    {
        text.push_str(&format!(" {rest} {name}"));
    }
    text
}

/// Formats the local time in the zone with its offset: `2025-01-20 14:30:00.25 +01:00`, without
/// trailing zeros. [`parse_time`](super::parse_time()) parses it.
#[must_use]
pub fn civil_time<Tz: TimeZone>(time: Timestamp, zone: &Tz) -> String {
    let offset = local_to_utc::offset_at(zone, time.as_micros());
    let local = local_to_utc::local_time(zone, time.as_micros())
        .unwrap_or_else(|| DateTime::UNIX_EPOCH.naive_utc());
    let mut text = local.format("%Y-%m-%d %H:%M:%S%.6f").to_string();
    text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    format!("{text} {offset}")
}

/// Formats the time of day in a zone: `14:30`.
#[must_use]
pub fn clock_time<Tz: TimeZone>(time: Timestamp, zone: &Tz) -> String {
    civil_time(time, zone).get(11..16).unwrap_or_default().to_owned()
}

/// Formats the day in a zone, with the year if `now` is in another year: `Tue 11 Mar 2025`.
#[must_use]
pub fn day_name<Tz: TimeZone>(time: Timestamp, now: Timestamp, zone: &Tz) -> String {
    let date = |time| {
        let text = civil_time(time, zone);
        text.get(..10).and_then(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").ok())
    };
    let Some(day) = date(time) else { return String::new() };
    let is_this_year = date(now).is_some_and(|now| now.year() == day.year());
    day.format(if is_this_year { "%a %-d %b" } else { "%a %-d %b %Y" }).to_string()
}
