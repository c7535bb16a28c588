//! Times that begin with a date of digits: `2025-01-20`, `2025-01-20 14:30`, `20250120T143000Z`, RFC 3339, RFC 9557.

use super::clock;
use super::cursor::Cursor;
use super::day::read_weekday;
use super::error::Fault;
use super::month::month_name;
use super::offset::{self, ZoneSuffix};
use super::point::ResolvedTime;
use super::zone::{self, InGap};
use chrono::{Datelike, NaiveDate, NaiveTime, TimeZone, Weekday};

pub(super) const DATES: &str = "'2025-01-20' or '2025-01-20 14:30'";

/// Reads `2025-01-20` or `20250120` with what may follow, after a weekday or alone; `None` if the text does not begin
/// with a date of digits.
pub(super) fn read<Tz: TimeZone>(
    mut cursor: Cursor<'_>,
    zone: &Tz,
) -> Result<Option<ResolvedTime>, Fault> {
    let weekday = read_weekday_before(&mut cursor);
    let Some(date) = read_date(&mut cursor)? else { return Ok(None) };
    check_weekday(weekday, date)?;
    let is_joined = cursor.is_before_digit('t') || cursor.is_before_digit('T');
    let clock = if is_joined {
        cursor.eat('t');
        let at_clock = cursor;
        let clock = clock::read_basic(&mut cursor)?;
        Some(clock.ok_or_else(|| Fault::syntax(at_clock.rest()))?)
    } else {
        read_clock(&mut cursor)?
    };
    finish(cursor, zone, date, clock).map(Some)
}

/// Reads the weekday in front of a date, with the comma after it.
pub(super) fn read_weekday_before(cursor: &mut Cursor<'_>) -> Option<Weekday> {
    let weekday = read_weekday(cursor)?;
    cursor.eat(',');
    cursor.skip_spaces();
    Some(weekday)
}

/// Reads `2025-01-20` or `20250120`; `None`, and nothing read, if neither is here.
fn read_date(cursor: &mut Cursor<'_>) -> Result<Option<NaiveDate>, Fault> {
    let start = *cursor;
    let year = cursor.digits();
    if year.len() == 8 && is_date_end(*cursor)? {
        let (year, rest) = year.split_at(4);
        let mut rest = [&rest[..2], &rest[2..]].into_iter().map(str::parse);
        let mut next =
            || rest.next().and_then(Result::ok).ok_or_else(|| Fault::syntax(start.rest()));
        return date(year, next()?, next()?).map(Some);
    }
    if year.len() != 4 || !cursor.is_before_digit('-') {
        *cursor = start;
        return Ok(None);
    }
    cursor.eat('-');
    let syntax = |cursor: Cursor<'_>| Fault::syntax(cursor.rest());
    let month = cursor.two_digits().ok_or_else(|| syntax(*cursor))?;
    if !cursor.eat('-') {
        return Err(syntax(*cursor));
    }
    let day = cursor.two_digits().ok_or_else(|| syntax(*cursor))?;
    date(year, month, day).map(Some)
}

/// Whether eight digits before this are a date and not the count of a unit: nothing or a clock time follows.
fn is_date_end(mut cursor: Cursor<'_>) -> Result<bool, Fault> {
    let is_joined = cursor.is_before_digit('t') || cursor.is_before_digit('T');
    Ok(cursor.is_end() || is_joined || read_clock(&mut cursor)?.is_some())
}

/// Refuses a weekday that is not that of the date.
pub(super) fn check_weekday(said: Option<Weekday>, date: NaiveDate) -> Result<(), Fault> {
    match said.filter(|said| *said != date.weekday()) {
        None => Ok(()),
        Some(said) => Err(Fault::impossible(
            format!("{date} is a {}, not a {}", weekday_name(date.weekday()), weekday_name(said)),
            DATES,
        )),
    }
}

/// Reads ` 14:30`, `, 14:30` or ` at 14:30`, or nothing.
fn read_clock(cursor: &mut Cursor<'_>) -> Result<Option<NaiveTime>, Fault> {
    let mut after = *cursor;
    let has_comma = after.eat(',');
    let before = after.rest().len();
    after.skip_spaces();
    if after.rest().len() == before && !has_comma {
        return Ok(None);
    }
    if after.eat_word("at") {
        after.skip_spaces();
    }
    let clock = clock::read(&mut after)?;
    if clock.is_some() {
        *cursor = after;
    }
    Ok(clock)
}

/// Reads the zone at the end, and gives the point that the local time names.
pub(super) fn finish<Tz: TimeZone>(
    mut cursor: Cursor<'_>,
    zone: &Tz,
    date: NaiveDate,
    clock: Option<NaiveTime>,
) -> Result<ResolvedTime, Fault> {
    if clock.is_none() && matches!(cursor.peek(), Some('+' | '-')) {
        return Err(Fault::syntax(cursor.rest()));
    }
    let suffix = offset::read_suffix(&mut cursor)?;
    if !cursor.is_end() {
        return Err(Fault::syntax(cursor.rest()));
    }
    let in_gap = if clock.is_some() { InGap::KeepClock } else { InGap::FirstAfter };
    let wanted = date.and_time(clock.unwrap_or(NaiveTime::MIN));
    match suffix {
        ZoneSuffix::Local => zone::resolve(zone, wanted, in_gap),
        ZoneSuffix::Offset(fixed) => zone::resolve(&fixed, wanted, in_gap),
    }
}

pub(super) fn date(year: &str, month: u32, day: u32) -> Result<NaiveDate, Fault> {
    let year: i32 = year.parse().map_err(|_| Fault::syntax(year))?;
    NaiveDate::from_ymd_opt(year, month, day).ok_or_else(|| {
        let name = month_name(month);
        let problem = name.map_or_else(
            || format!("there is no month {month}"),
            |name| format!("{name} {year} has no day {day}"),
        );
        Fault::impossible(problem, DATES)
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
