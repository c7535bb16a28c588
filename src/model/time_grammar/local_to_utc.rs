//! Converts local clock times to points in time, including at clock changes.

use super::error::GrammarFault;
use super::resolved_time::ResolvedTime;
use crate::model::Timestamp;
use chrono::{DateTime, FixedOffset, NaiveDateTime, Offset, TimeDelta, TimeZone};
use std::fmt;

const HOUR_MICROS: i64 = 3_600_000_000;
/// How many hours before and after a local time its points in time may be: an offset from UTC is
/// less than 26 hours (RFC 8536).
const REACH_HOURS: i64 = 30;

/// How an ambiguous or missing local time was resolved at a clock change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneNote {
    /// The clocks went forward past this local time, so it did not occur.
    Gap {
        /// The local time that does not exist.
        wanted: NaiveDateTime,
        /// The local time used instead.
        taken: NaiveDateTime,
    },
    /// The clocks went back, so this local time occurred twice.
    Fold {
        /// The ambiguous local time.
        wanted: NaiveDateTime,
        /// The offset of the occurrence used.
        taken: FixedOffset,
        /// The offset of the other occurrence. The one with the greater offset came first.
        other: FixedOffset,
    },
}

impl fmt::Display for ZoneNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { wanted, taken } => {
                write!(out, "{} does not exist on {} ", clock_text(*wanted), wanted.date())?;
                out.write_str("in this zone (clocks went forward): taken as ")?;
                if taken.date() != wanted.date() {
                    write!(out, "{} ", taken.date())?;
                }
                write!(out, "{}", clock_text(*taken))
            }
            Self::Fold { wanted, taken, other } => {
                let is_first = taken.local_minus_utc() > other.local_minus_utc();
                let (taken_is, other_is) =
                    if is_first { ("first", "second") } else { ("second", "first") };
                let (date, clock) = (wanted.date(), clock_text(*wanted));
                write!(
                    out,
                    "{clock} came twice on {date} in this zone (clocks went back): taken as "
                )?;
                write!(
                    out,
                    "the {taken_is}, {clock}{taken}; write '{date} {clock}{other}' for the "
                )?;
                out.write_str(other_is)
            }
        }
    }
}

/// Formats a time of day without seconds or fractions that are zero.
fn clock_text(time: NaiveDateTime) -> String {
    let micros = time.and_utc().timestamp_micros();
    let form = if micros % 1_000_000 != 0 {
        "%H:%M:%S%.6f"
    } else if micros % 60_000_000 != 0 {
        "%H:%M:%S"
    } else {
        "%H:%M"
    };
    time.format(form).to_string()
}

/// How to resolve a local time that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SkippedTimeRule {
    /// Use the offset before the gap: 02:30 becomes 03:30.
    KeepClock,
    /// Use the first point after the gap: for days that have no 00:00.
    FirstAfter,
}

/// The points in time at which a zone has a local time, as microseconds since 1970 in UTC.
enum LocalTimeMatches {
    Once(i64),
    Twice(i64, i64),
    Never { keeping_clock: i64, first_after: i64 },
}

/// Resolves a local time to its point in time: to the first if there are two, and as `in_gap` says
/// if there is none.
pub(super) fn resolve<Tz: TimeZone>(
    zone: &Tz,
    wanted: NaiveDateTime,
    in_gap: SkippedTimeRule,
) -> Result<ResolvedTime, GrammarFault> {
    match points(zone, wanted) {
        LocalTimeMatches::Once(time) => resolved(time, None),
        LocalTimeMatches::Twice(first, second) => {
            resolved(first, Some(fold(zone, wanted, first, second)))
        }
        LocalTimeMatches::Never { keeping_clock, first_after } => {
            let time =
                if in_gap == SkippedTimeRule::KeepClock { keeping_clock } else { first_after };
            let taken = local_time(zone, time).ok_or(GrammarFault::OutOfRange)?;
            resolved(time, Some(ZoneNote::Gap { wanted, taken }))
        }
    }
}

/// Returns the last point of a local time that is not after `limit`, if there is one.
pub(super) fn resolve_up_to<Tz: TimeZone>(
    zone: &Tz,
    wanted: NaiveDateTime,
    limit: Timestamp,
) -> Result<Option<ResolvedTime>, GrammarFault> {
    if let LocalTimeMatches::Twice(first, second) = points(zone, wanted)
        && second <= limit.as_micros()
    {
        return resolved(second, Some(fold(zone, wanted, second, first))).map(Some);
    }
    let resolved = resolve(zone, wanted, SkippedTimeRule::KeepClock)?;
    Ok((resolved.time <= limit).then_some(resolved))
}

fn fold<Tz: TimeZone>(zone: &Tz, wanted: NaiveDateTime, taken: i64, other: i64) -> ZoneNote {
    ZoneNote::Fold { wanted, taken: offset_at(zone, taken), other: offset_at(zone, other) }
}

fn resolved(micros: i64, note: Option<ZoneNote>) -> Result<ResolvedTime, GrammarFault> {
    Ok(ResolvedTime { time: in_range(micros)?, note, is_now: false })
}

/// Returns the time if it can be written as RFC 3339.
pub(super) fn in_range(micros: i64) -> Result<Timestamp, GrammarFault> {
    let time = Timestamp::from_micros(micros);
    if (Timestamp::MIN..=Timestamp::MAX).contains(&time) {
        Ok(time)
    } else {
        Err(GrammarFault::OutOfRange)
    }
}

pub(super) fn local_time<Tz: TimeZone>(zone: &Tz, micros: i64) -> Option<NaiveDateTime> {
    let offset = i64::from(offset_at(zone, micros).local_minus_utc());
    Some(DateTime::from_timestamp_micros(micros)?.naive_utc() + TimeDelta::seconds(offset))
}

/// Returns the zone's offset at a point in time. Local times are converted with nothing else,
/// because zone implementations differ at the edges of a clock change.
pub(super) fn offset_at<Tz: TimeZone>(zone: &Tz, micros: i64) -> FixedOffset {
    let inside = micros.clamp(Timestamp::MIN.as_micros(), Timestamp::MAX.as_micros());
    let time = DateTime::from_timestamp_micros(inside).unwrap_or(DateTime::UNIX_EPOCH);
    zone.offset_from_utc_datetime(&time.naive_utc()).fix()
}

/// Returns the points in time at which the zone has this local time.
fn points<Tz: TimeZone>(zone: &Tz, wanted: NaiveDateTime) -> LocalTimeMatches {
    let wanted = wanted.and_utc().timestamp_micros();
    let shift_at = |micros| i64::from(offset_at(zone, micros).local_minus_utc()) * 1_000_000;
    let mut found: Vec<i64> = (-REACH_HOURS..=REACH_HOURS)
        .step_by(6)
        .map(|hours| wanted - shift_at(wanted + hours * HOUR_MICROS))
        .filter(|&point| point + shift_at(point) == wanted)
        .collect();
    found.sort_unstable();
    found.dedup();
    match found[..] {
        [only] => LocalTimeMatches::Once(only),
        [first, .., last] => LocalTimeMatches::Twice(first, last),
        [] => {
            let mut before = wanted - REACH_HOURS * HOUR_MICROS;
            let mut after = wanted + REACH_HOURS * HOUR_MICROS;
            while after - before > 1 {
                let middle = before + (after - before) / 2;
                if middle + shift_at(middle) < wanted {
                    before = middle;
                } else {
                    after = middle;
                }
            }
            LocalTimeMatches::Never { keeping_clock: wanted - shift_at(before), first_after: after }
        }
    }
}
