//! Parsing of points in time.

use super::error::{GrammarFault, TimeError, quoted};
use super::resolved_time::{EPOCH_DIGITS, MAX_TEXT, ResolvedTime};
use super::text_cursor::TextCursor;
use super::{
    day_name, local_to_utc, month_date, numeric_date, time_of_day, time_span, zone_suffix,
};
use crate::model::Timestamp;
use chrono::TimeZone;

/// Parses a point in time as people write it: `2 hours ago`, `yesterday 14:30`, `2025-01-20
/// 14:30:00`, RFC 3339. All forms are in `docs/time.md`.
///
/// Times without a zone are in `zone`. A clock time or a weekday alone means its last occurrence up
/// to `now`. Digits after the microsecond are dropped. Months, weeks and days follow the calendar
/// of `zone`; hours and less are exact.
///
/// ```
/// use forge_store::model::Timestamp;
/// use forge_store::model::time_grammar::parse_time;
///
/// let now = Timestamp::parse_rfc3339("2025-06-18T16:45:30Z").unwrap();
/// let meant = parse_time("yesterday 14:30", now, &chrono::Utc)?;
/// assert_eq!(meant.time.to_string(), "2025-06-17T14:30:00Z");
/// # Ok::<(), forge_store::model::time_grammar::TimeError>(())
/// ```
///
/// # Errors
///
/// If the text is not a time, or if the time is after `now` or outside the years 0000 to 9999. The
/// error suggests what to write instead.
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
    // git also reads points in the place of spaces: `2.hours.ago`.
    let dotted = text.strip_suffix(".ago").map(|front| format!("{} ago", front.replace('.', " ")));
    let dotted = dotted.filter(|text| is_relative(text, now, zone));
    let resolved = if is_number(text) {
        read_number(text, zone).ok_or_else(|| {
            TimeError::small_unit(text).unwrap_or_else(|| TimeError::Number { text: quoted(text) })
        })?
    } else {
        let written = without_distance(dotted.as_deref().unwrap_or(text), now, zone);
        read(TextCursor::new(written), now, zone).map_err(|fault| fault.in_text(text))?
    };
    if resolved.time > now {
        return Err(TimeError::Future { text: quoted(text), time: Some(resolved.time) });
    }
    Ok(ResolvedTime { is_now: resolved.time == now, ..resolved })
}

fn read<Tz: TimeZone>(
    cursor: TextCursor<'_>,
    now: Timestamp,
    zone: &Tz,
) -> Result<ResolvedTime, GrammarFault> {
    if cursor.rest().eq_ignore_ascii_case("now") {
        return Ok(ResolvedTime { time: now, note: None, is_now: true });
    }
    if cursor.peek() == Some('@') || is_raw_epoch(cursor) {
        return read_epoch(cursor);
    }
    if let Some(found) = numeric_date::read(cursor, zone)? {
        return Ok(found);
    }
    if let Some(found) = month_date::read(cursor, zone)? {
        return Ok(found);
    }
    if let Some(found) = time_span::read_relative(cursor, now, zone)? {
        return Ok(found);
    }
    day_name::read(cursor, now, zone)?.ok_or_else(|| GrammarFault::syntax(cursor.rest()))
}

/// Returns whether the text consists of at least one digit and at most one point.
fn is_number(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    !matches!(text, "" | ".")
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
}

/// Parses a number with only one meaning as a time: `20250120`, or ten digits of seconds since 1970
/// (2001 to 2286).
fn read_number<Tz: TimeZone>(text: &str, zone: &Tz) -> Option<ResolvedTime> {
    let cursor = TextCursor::new(text);
    if text.split('.').next().is_some_and(|whole| whole.len() == EPOCH_DIGITS) {
        return read_epoch(cursor).ok();
    }
    numeric_date::read(cursor, zone).ok().flatten()
}

/// Strips the distance that forge shows after a time, `2025-01-20 14:30:00 +01:00 (2 h 5 min ago)`,
/// or `systemctl`: `Mon 2025-01-20 14:30:00 UTC; 2h 5min ago`.
fn without_distance<'a, Tz: TimeZone>(text: &'a str, now: Timestamp, zone: &Tz) -> &'a str {
    let bracketed = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    // Two lengths of time can be a list, so the text before a semicolon must have a clock time.
    let after_semicolon = || text.rsplit_once("; ").filter(|(front, _)| front.contains(':'));
    let Some((front, distance)) = bracketed.or_else(after_semicolon) else { return text };
    let is_distance =
        distance == "now" || distance.ends_with(" ago") && is_relative(distance, now, zone);
    if is_distance { front.trim_ascii_end() } else { text }
}

/// Returns whether the text is a length of time before or after now.
fn is_relative<Tz: TimeZone>(text: &str, now: Timestamp, zone: &Tz) -> bool {
    matches!(time_span::read_relative(TextCursor::new(text), now, zone), Ok(Some(_)))
}

/// Parses seconds since 1970 in UTC: `@1737383400.25`, and without the `@` as `git log --date=raw`
/// writes them: `1737383400 +0100`, where the offset does not affect the time.
fn read_epoch(mut cursor: TextCursor<'_>) -> Result<ResolvedTime, GrammarFault> {
    cursor.eat('@');
    let is_before = cursor.eat('-');
    let digits = cursor.digits();
    if digits.is_empty() {
        return Err(GrammarFault::syntax(cursor.rest()));
    }
    let seconds: i64 = digits.parse().map_err(|_| GrammarFault::OutOfRange)?;
    let fraction = i64::from(time_of_day::read_fraction(&mut cursor));
    cursor.skip_spaces();
    if matches!(cursor.peek(), Some('+' | '-')) {
        zone_suffix::read_suffix(&mut cursor, true)?;
    }
    cursor.expect_end()?;
    let micros = seconds
        .checked_mul(1_000_000)
        .and_then(|micros| micros.checked_add(fraction))
        .ok_or(GrammarFault::OutOfRange)?;
    let time = local_to_utc::in_range(if is_before { -micros } else { micros })?;
    Ok(ResolvedTime { time, note: None, is_now: false })
}

/// Returns whether the text begins like `1737383400 +0100`.
fn is_raw_epoch(mut cursor: TextCursor<'_>) -> bool {
    let is_epoch = cursor.digits().len() == EPOCH_DIGITS;
    let before = cursor.rest().len();
    cursor.skip_spaces();
    is_epoch && cursor.rest().len() < before && matches!(cursor.peek(), Some('+' | '-'))
}
