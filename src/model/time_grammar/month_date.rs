//! Times with the name of a month, as `git log`, `date` and mail write them: `Wed Jun 18 14:30:00
//! 2025 +0200`, `Wed, 18 Jun 2025 14:30:00 GMT`, `20 January 2025`, `18/Jun/2025:14:30:00 +0200`.

use super::error::GrammarFault;
use super::numeric_date::{self, check_weekday, read_weekday_before};
use super::resolved_time::ResolvedTime;
use super::text_cursor::TextCursor;
use super::time_of_day;
use chrono::{Month, NaiveTime, TimeZone};

/// What follows a day and a month, in any order.
#[derive(Default)]
struct DateRemainder<'a> {
    year: Option<&'a str>,
    clock: Option<NaiveTime>,
    /// The text of the zone.
    zone: Option<TextCursor<'a>>,
}

/// Parses a date with the name of a month. A weekday before it, and a clock time and a zone after
/// it, are optional. `None` if there is no day and name of a month at the beginning or after a
/// weekday.
pub(super) fn read<Tz: TimeZone>(
    mut cursor: TextCursor<'_>,
    zone: &Tz,
) -> Result<Option<ResolvedTime>, GrammarFault> {
    let text = cursor.rest();
    let weekday = read_weekday_before(&mut cursor);
    let (year, month, day) = if let Some((year, month, day)) = read_whole_date(&mut cursor) {
        (Some(year), month, day)
    } else if let Some((day, month)) = read_day_and_month(&mut cursor) {
        (None, month, day)
    } else {
        return Ok(None);
    };
    let rest = read_rest(cursor, year)?;
    let year = rest.year.ok_or_else(|| match text.contains(is_between) {
        true => GrammarFault::impossible(
            "the year is missing",
            "'2025-01-20 14:30' or '20 Jan 2025 14:30'",
        ),
        // A single word without a year, such as '5may', is more likely a name.
        false => GrammarFault::syntax(""),
    })?;
    let date = numeric_date::date(year, month, day)?;
    check_weekday(weekday, date)?;
    numeric_date::finish(rest.zone.unwrap_or(TextCursor::new("")), zone, date, rest.clock).map(Some)
}

/// Parses `18-Jun-2025`, `18/Jun/2025`, `2025-Jun-18` or `2025 Jun 18`. Logs of web servers have a
/// colon between the date and the clock time. `None`, with nothing consumed, if this is not here.
fn read_whole_date<'a>(cursor: &mut TextCursor<'a>) -> Option<(&'a str, u32, u32)> {
    let mut after = *cursor;
    let first = after.digits();
    let separator = after.peek().filter(|next| matches!(next, '-' | '/' | ' '))?;
    after.eat(separator);
    let month = month_by_name(after.letters())?;
    if !after.eat(separator) {
        return None;
    }
    let last = after.digits();
    let (year, day) = if first.len() == 4 { (first, last) } else { (last, first) };
    let is_end = after.is_before_digit(':') || after.peek().is_none_or(is_between);
    if year.len() != 4 || !(1..=2).contains(&day.len()) || !is_end {
        return None;
    }
    after.eat(':');
    *cursor = after;
    Some((year, month, day.parse().ok()?))
}

/// Returns whether a text is a day such as `18-Jun-2025`, and no more.
pub(super) fn is_whole_date(text: &str) -> bool {
    let mut cursor = TextCursor::new(text);
    read_whole_date(&mut cursor).is_some() && cursor.is_end()
}

/// Parses `18 Jun`, `18jun` or `Jun 18`.
fn read_day_and_month(cursor: &mut TextCursor<'_>) -> Option<(u32, u32)> {
    let mut after = *cursor;
    let mut day = after.digits();
    after.skip_spaces();
    let month = month_by_name(after.letters())?;
    if day.is_empty() {
        // A word such as 'jun18' is more likely a name.
        after.peek().filter(char::is_ascii_whitespace)?;
        after.skip_spaces();
        day = after.digits();
        if after.peek().is_some_and(|next| !is_between(next)) {
            return None;
        }
    }
    if !(1..=2).contains(&day.len()) {
        return None;
    }
    *cursor = after;
    Some((day.parse().ok()?, month))
}

const fn is_between(character: char) -> bool {
    character.is_ascii_whitespace() || character == ','
}

/// Parses a year of four digits, a clock time and a zone, each at most once. The zone is not parsed
/// here, but by [`numeric_date::finish`]: before the year it is one word, after the year it is the
/// rest of the text. `year` is that of the date, if the date has one.
fn read_rest<'a>(
    mut cursor: TextCursor<'a>,
    year: Option<&'a str>,
) -> Result<DateRemainder<'a>, GrammarFault> {
    let mut rest = DateRemainder { year, ..DateRemainder::default() };
    loop {
        cursor.skip_spaces();
        cursor.eat(',');
        cursor.skip_spaces();
        if cursor.is_end() {
            return Ok(rest);
        }
        let start = cursor;
        if rest.year.is_none() {
            let digits = cursor.digits();
            if digits.len() == 4 && cursor.peek().is_none_or(is_between) {
                rest.year = Some(digits);
                continue;
            }
            cursor = start;
        }
        if rest.clock.is_none() {
            cursor.eat_word("at");
            cursor.skip_spaces();
            rest.clock = time_of_day::read(&mut cursor)?;
            if rest.clock.is_some() {
                continue;
            }
        }
        let word = cursor.take_while(|next| !next.is_ascii_whitespace());
        if rest.zone.is_some() {
            return Err(GrammarFault::syntax(start.rest()));
        }
        // The text after the year can only be the zone.
        rest.zone = Some(if rest.year.is_some() { start } else { TextCursor::new(word) });
        if rest.year.is_some() {
            return Ok(rest);
        }
    }
}

/// Returns the name of a month; 1 is January.
pub(super) fn month_name(number: u32) -> Option<&'static str> {
    Some(Month::try_from(u8::try_from(number).ok()?).ok()?.name())
}

fn month_by_name(name: &str) -> Option<u32> {
    let name = if name.eq_ignore_ascii_case("sept") { "sep" } else { name };
    Some(name.parse::<Month>().ok()?.number_from_month())
}
