//! Times that begin with a date: `2025-01-20`, `2025-01-20 14:30`, RFC 3339, RFC 9557, RFC 2822.

use super::clock;
use super::cursor::Cursor;
use super::day::read_weekday;
use super::error::Fault;
use super::offset::{self, ZoneSuffix};
use super::point::ResolvedTime;
use super::zone::{self, InGap};
use chrono::{Datelike, NaiveDate, NaiveTime, TimeZone, Weekday};

const DATES: &str = "'2025-01-20' or '2025-01-20 14:30'";
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Reads `2025-01-20` and what may stand behind it; `None` if the text does not begin with a year.
pub(super) fn read<Tz: TimeZone>(
    mut cursor: Cursor<'_>,
    zone: &Tz,
) -> Result<Option<ResolvedTime>, Fault> {
    let year = cursor.digits();
    if year.len() != 4 || !cursor.is_before_digit('-') {
        return Ok(None);
    }
    let syntax = |cursor: Cursor<'_>| Fault::syntax(cursor.rest());
    cursor.eat('-');
    let month = cursor.two_digits().ok_or_else(|| syntax(cursor))?;
    if !cursor.eat('-') {
        return Err(syntax(cursor));
    }
    let day = cursor.two_digits().ok_or_else(|| syntax(cursor))?;
    let date = date(year, month, day)?;
    if cursor.is_before_digit('t') || cursor.is_before_digit('T') {
        cursor.eat('t');
        let clock = clock::read(&mut cursor)?.ok_or_else(|| syntax(cursor))?;
        return finish(cursor, zone, date, Some(clock)).map(Some);
    }
    let clock = read_clock(&mut cursor)?;
    finish(cursor, zone, date, clock).map(Some)
}

/// Reads `Mon, 20 Jan 2025 14:30:00 +0100`, of which the weekday, the clock and the zone may be left out; `None` if
/// the text does not begin with a day and a month's name.
pub(super) fn read_mail<Tz: TimeZone>(
    mut cursor: Cursor<'_>,
    zone: &Tz,
) -> Result<Option<ResolvedTime>, Fault> {
    let weekday = read_weekday(&mut cursor);
    if weekday.is_some() {
        cursor.eat(',');
        cursor.skip_spaces();
    }
    let day = cursor.digits();
    cursor.skip_spaces();
    let month = cursor.letters();
    let Some(month) = month_by_name(month).filter(|_| (1..=2).contains(&day.len())) else {
        return Ok(None);
    };
    cursor.skip_spaces();
    let at_year = cursor;
    let year = cursor.digits();
    if year.len() != 4 {
        return Err(Fault::syntax(at_year.rest()));
    }
    let day = day.parse().map_err(|_| Fault::syntax(at_year.rest()))?;
    let date = date(year, month, day)?;
    if let Some(said) = weekday.filter(|said| *said != date.weekday()) {
        return Err(Fault::impossible(
            format!("{date} is a {}, not a {}", weekday_name(date.weekday()), weekday_name(said)),
            DATES,
        ));
    }
    let clock = read_clock(&mut cursor)?;
    finish(cursor, zone, date, clock).map(Some)
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

fn finish<Tz: TimeZone>(
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

fn date(year: &str, month: u32, day: u32) -> Result<NaiveDate, Fault> {
    let year: i32 = year.parse().map_err(|_| Fault::syntax(year))?;
    NaiveDate::from_ymd_opt(year, month, day).ok_or_else(|| {
        let name = usize::try_from(month).ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
        let problem = name.map_or_else(
            || format!("there is no month {month}"),
            |name| format!("{name} {year} has no day {day}"),
        );
        Fault::impossible(problem, DATES)
    })
}

fn month_by_name(name: &str) -> Option<u32> {
    let is_named = |month: &&str| {
        month.eq_ignore_ascii_case(name)
            || month[..3].eq_ignore_ascii_case(name)
            || (name.eq_ignore_ascii_case("sept") && month.starts_with("Sept"))
    };
    (1..).zip(&MONTHS).find(|(_, month)| is_named(month)).map(|(number, _)| number)
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
