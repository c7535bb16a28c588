//! Points in time.

use super::cursor::Cursor;
use super::error::{Fault, TimeError, quoted};
use super::{civil, clock, day, span, zone, zone::ZoneNote};
use crate::model::Timestamp;
use chrono::TimeZone;

/// No time takes more bytes to write.
pub(super) const MAX_TEXT: usize = 200;

/// The point in time a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedTime {
    /// The point; never after the `now` it was read with.
    pub time: Timestamp,
    /// What was decided if the zone's clocks were changed around it. To be shown to whoever wrote the text.
    pub note: Option<ZoneNote>,
}

/// Reads a point in time as people write it: `2 hours ago`, `yesterday 14:30`, `2025-01-20 14:30:00`, RFC 3339. All
/// forms are in `docs/time.md`.
///
/// Times without a zone are in `zone`. A clock time or a weekday alone is the last one up to `now`. Digits beyond the
/// microsecond are dropped. Months, weeks and days go by the calendar of `zone`, hours and less by the stopwatch.
///
/// ```
/// use forge_store::model::Timestamp;
/// use forge_store::model::when::parse_time;
///
/// let now = Timestamp::parse_rfc3339("2025-06-18T16:45:30Z").unwrap();
/// let meant = parse_time("yesterday 14:30", now, &chrono::Utc)?;
/// assert_eq!(meant.time.to_string(), "2025-06-17T14:30:00Z");
/// # Ok::<(), forge_store::model::when::TimeError>(())
/// ```
///
/// # Errors
///
/// If the text is not a time, or one after `now`, or not within the years 0000 to 9999. The error says what could be
/// written instead.
pub fn parse_time<Tz: TimeZone>(
    text: &str,
    now: Timestamp,
    zone: &Tz,
) -> Result<ResolvedTime, TimeError> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err(TimeError::Empty);
    }
    if text.len() > MAX_TEXT {
        return Err(TimeError::TooLong { text: quoted(text) });
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return Err(TimeError::Number { text: quoted(text) });
    }
    let resolved = read(Cursor::new(text), now, zone).map_err(|fault| fault.in_text(text))?;
    if resolved.time > now {
        return Err(TimeError::Future { text: quoted(text), time: Some(resolved.time) });
    }
    Ok(resolved)
}

fn read<Tz: TimeZone>(
    cursor: Cursor<'_>,
    now: Timestamp,
    zone: &Tz,
) -> Result<ResolvedTime, Fault> {
    if cursor.rest().eq_ignore_ascii_case("now") {
        return Ok(ResolvedTime { time: now, note: None });
    }
    if cursor.peek() == Some('@') {
        return read_epoch(cursor);
    }
    if let Some(found) = civil::read(cursor, zone)? {
        return Ok(found);
    }
    if let Some(found) = civil::read_mail(cursor, zone)? {
        return Ok(found);
    }
    if let Some(found) = span::read_relative(cursor, now, zone)? {
        return Ok(found);
    }
    day::read(cursor, now, zone)?.ok_or_else(|| Fault::syntax(cursor.rest()))
}

/// Reads `@1737383400.25`, seconds since 1970 in UTC.
fn read_epoch(mut cursor: Cursor<'_>) -> Result<ResolvedTime, Fault> {
    cursor.eat('@');
    let is_before = cursor.eat('-');
    let digits = cursor.digits();
    if digits.is_empty() {
        return Err(Fault::syntax(cursor.rest()));
    }
    let seconds: i64 = digits.parse().map_err(|_| Fault::OutOfRange)?;
    let fraction = i64::from(clock::read_fraction(&mut cursor));
    if !cursor.is_end() {
        return Err(Fault::syntax(cursor.rest()));
    }
    let micros = seconds
        .checked_mul(1_000_000)
        .and_then(|micros| micros.checked_add(fraction))
        .ok_or(Fault::OutOfRange)?;
    let time = zone::in_range(if is_before { -micros } else { micros })?;
    Ok(ResolvedTime { time, note: None })
}
