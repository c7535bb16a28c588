//! Times that begin with a numeric date: `2025-01-20`, `2025/1/20 14:30`, `20250120T143000Z`, RFC
//! 3339, RFC 9557.

use super::day_name::read_weekday;
use super::error::GrammarFault;
use super::local_to_utc::{self, SkippedTimeRule};
use super::month_date::month_name;
use super::resolved_time::ResolvedTime;
use super::text_cursor::TextCursor;
use super::time_of_day;
use super::zone_suffix::{self, ZoneSuffix};
use chrono::{Datelike, NaiveDate, NaiveTime, TimeZone, Weekday};

/// Examples of dates, for error messages.
pub(super) const DATES: &str = "'2025-01-20' or '2025-01-20 14:30'";

/// Parses a numeric date such as `2025-01-20` or `20250120`. A weekday before it, and a clock time
/// and a zone after it, are optional. `None` if there is no numeric date at the beginning or after
/// a weekday.
pub(super) fn read<Tz: TimeZone>(
    mut cursor: TextCursor<'_>,
    zone: &Tz,
) -> Result<Option<ResolvedTime>, GrammarFault> {
    let weekday = read_weekday_before(&mut cursor);
    let Some(date) = read_date(&mut cursor)? else { return Ok(None) };
    check_weekday(weekday, date)?;
    let is_joined = cursor.is_before_digit('t') || cursor.is_before_digit('T');
    let clock = if is_joined {
        cursor.eat('t');
        let at_clock = cursor;
        let clock = match time_of_day::read_file_name(&mut cursor)? {
            None => time_of_day::read_basic(&mut cursor)?,
            clock => clock,
        };
        Some(clock.ok_or_else(|| GrammarFault::syntax(at_clock.rest()))?)
    } else {
        read_clock(&mut cursor)?
    };
    finish(cursor, zone, date, clock).map(Some)
}

/// Parses the weekday before a date, and the comma and spaces after the weekday.
pub(super) fn read_weekday_before(cursor: &mut TextCursor<'_>) -> Option<Weekday> {
    let weekday = read_weekday(cursor)?;
    cursor.eat(',');
    cursor.skip_spaces();
    Some(weekday)
}

/// Parses `2025-01-20`, `2025-1-20`, `2025/01/20` or `20250120`; `None`, with nothing consumed, if
/// the cursor is not at such a date. The year is first, so the order of month and day is certain.
fn read_date(cursor: &mut TextCursor<'_>) -> Result<Option<NaiveDate>, GrammarFault> {
    let start = *cursor;
    let year = cursor.digits();
    if year.len() == 8 && is_date_end(*cursor)? {
        let (year, rest) = year.split_at(4);
        let mut rest = [&rest[..2], &rest[2..]].into_iter().map(str::parse);
        let mut next =
            || rest.next().and_then(Result::ok).ok_or_else(|| GrammarFault::syntax(start.rest()));
        return date(year, next()?, next()?).map(Some);
    }
    let separator = if cursor.is_before_digit('/') { '/' } else { '-' };
    if year.len() != 4 || !cursor.is_before_digit(separator) {
        *cursor = start;
        return Ok(None);
    }
    cursor.eat(separator);
    let syntax = |cursor: TextCursor<'_>| GrammarFault::syntax(cursor.rest());
    let month = cursor.up_to_two_digits().ok_or_else(|| syntax(*cursor))?;
    if !cursor.eat(separator) {
        return Err(syntax(*cursor));
    }
    let day = cursor.up_to_two_digits().ok_or_else(|| syntax(*cursor))?;
    date(year, month, day).map(Some)
}

/// Returns whether the eight digits before the cursor are a date: nothing or a clock time follows.
/// Otherwise they may be the number of a unit.
fn is_date_end(mut cursor: TextCursor<'_>) -> Result<bool, GrammarFault> {
    let is_joined = cursor.is_before_digit('t') || cursor.is_before_digit('T');
    Ok(cursor.is_end() || is_joined || read_clock(&mut cursor)?.is_some())
}

/// Rejects a weekday that does not match the date.
pub(super) fn check_weekday(weekday: Option<Weekday>, date: NaiveDate) -> Result<(), GrammarFault> {
    match weekday.filter(|weekday| *weekday != date.weekday()) {
        None => Ok(()),
        Some(weekday) => Err(GrammarFault::impossible(
            format!(
                "{date} is a {}, not a {}",
                weekday_name(date.weekday()),
                weekday_name(weekday)
            ),
            DATES,
        )),
    }
}

/// Parses ` 14:30`, `, 14:30` or ` at 14:30`, or nothing.
fn read_clock(cursor: &mut TextCursor<'_>) -> Result<Option<NaiveTime>, GrammarFault> {
    let mut after = *cursor;
    let has_comma = after.eat(',');
    let before = after.rest().len();
    after.skip_spaces();
    if after.rest().len() == before && !has_comma {
        return Ok(None);
    }
    after.eat_word("at");
    after.skip_spaces();
    let clock = time_of_day::read(&mut after)?;
    if clock.is_some() {
        *cursor = after;
    }
    Ok(clock)
}

/// Parses the zone at the end of a text. Returns the time of the date and clock time in this zone,
/// or in `zone` if the text names none. Without a clock time, it is the first moment of the day.
pub(super) fn finish<Tz: TimeZone>(
    cursor: TextCursor<'_>,
    zone: &Tz,
    date: NaiveDate,
    clock: Option<NaiveTime>,
) -> Result<ResolvedTime, GrammarFault> {
    let in_gap =
        if clock.is_some() { SkippedTimeRule::KeepClock } else { SkippedTimeRule::FirstAfter };
    let wanted = date.and_time(clock.unwrap_or(NaiveTime::MIN));
    match zone_suffix::read_last(cursor, clock)? {
        ZoneSuffix::Local => local_to_utc::resolve(zone, wanted, in_gap),
        ZoneSuffix::Offset(fixed) => local_to_utc::resolve(&fixed, wanted, in_gap),
    }
}

/// Makes a date, or the error that says which part of it does not exist.
pub(super) fn date(year: &str, month: u32, day: u32) -> Result<NaiveDate, GrammarFault> {
    let year: i32 = year.parse().map_err(|_| GrammarFault::syntax(year))?;
    NaiveDate::from_ymd_opt(year, month, day).ok_or_else(|| {
        let name = month_name(month);
        let problem = name.map_or_else(
            || format!("there is no month {month}"),
            |name| format!("{name} {year} has no day {day}"),
        );
        GrammarFault::impossible(problem, DATES)
    })
}

const fn weekday_name(day: Weekday) -> &'static str {
    match day {
        Weekday::Mon => "monday",
        Weekday::Tue => "tuesday",
        Weekday::Wed => "wednesday",
        Weekday::Thu => "thursday",
        Weekday::Fri => "friday",
        Weekday::Sat => "saturday",
        Weekday::Sun => "sunday",
    }
}
