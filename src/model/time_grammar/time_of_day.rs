//! A time of day: `14:30`, `14:30:05.25`, `2:30pm`, `noon`.

use super::error::GrammarFault;
use super::text_cursor::TextCursor;
use chrono::NaiveTime;

const EXAMPLES: &str = "'14:30', '14:30:59.5' or '2:30pm'";

/// Hours of the zone that is furthest behind UTC.
const FURTHEST_WEST_HOURS: u32 = 12;

/// Parses a time of day; `None`, with nothing consumed, if there is none here.
pub(super) fn read(cursor: &mut TextCursor<'_>) -> Result<Option<NaiveTime>, GrammarFault> {
    let start = *cursor;
    if cursor.eat_word("midnight") {
        return Ok(Some(NaiveTime::MIN));
    }
    if cursor.eat_word("noon") {
        return Ok(NaiveTime::from_hms_opt(12, 0, 0));
    }
    let hour = cursor.digits();
    if !(1..=2).contains(&hour.len()) {
        *cursor = start;
        return Ok(None);
    }
    let hour: u32 = hour.parse().map_err(|_| GrammarFault::syntax(start.rest()))?;
    let has_minutes = cursor.is_before_digit(':');
    let (mut minute, mut second, mut micros) = (0, 0, 0);
    if has_minutes {
        cursor.eat(':');
        minute = cursor.two_digits().ok_or_else(|| GrammarFault::syntax(start.rest()))?;
        if cursor.is_before_digit(':') {
            cursor.eat(':');
            second = cursor.two_digits().ok_or_else(|| GrammarFault::syntax(start.rest()))?;
            micros = read_fraction(cursor);
        }
    }
    let hour = match read_half(cursor) {
        Some(_) if !(1..=12).contains(&hour) => {
            return Err(GrammarFault::impossible(
                format!("there is no hour {hour} with am or pm"),
                EXAMPLES,
            ));
        }
        Some(half) => hour % 12 + half,
        None if has_minutes => hour,
        None => {
            *cursor = start;
            return Ok(None);
        }
    };
    time((hour, minute, second), micros).map(Some)
}

/// Parses a time of day after a `T`, which may also be written without colons (ISO 8601): `143000`,
/// `1430`, `14`.
pub(super) fn read_basic(cursor: &mut TextCursor<'_>) -> Result<Option<NaiveTime>, GrammarFault> {
    if let Some(found) = read(cursor)? {
        return Ok(Some(found));
    }
    let mut after = *cursor;
    let digits = after.digits();
    if !matches!(digits.len(), 2 | 4 | 6) {
        return Ok(None);
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Ok(0), str::parse::<u32>);
    let parts = || Ok::<_, std::num::ParseIntError>((part(0)?, part(2)?, part(4)?));
    let parts = parts().map_err(|_| GrammarFault::syntax(cursor.rest()))?;
    let micros = if digits.len() == 6 { read_fraction(&mut after) } else { 0 };
    *cursor = after;
    time(parts, micros).map(Some)
}

/// Parses a time of day after a `T` as file names write it, with hyphens for the colons: `14-30`,
/// `14-30-05`, `14-30-05.25`, `14-30-05-250` (milliseconds); `None`, with nothing consumed, if
/// there is none here.
///
/// # Errors
///
/// If the part after a hyphen can also be an offset from UTC (`09-05`), if two more digits follow
/// after a hyphen, or if there is no such time of day.
pub(super) fn read_file_name(
    cursor: &mut TextCursor<'_>,
) -> Result<Option<NaiveTime>, GrammarFault> {
    let start = *cursor;
    let mut after = *cursor;
    let hour = after.two_digits();
    let minute = read_hyphenated(&mut after, 2);
    let (Some(hour), Some(minute)) = (hour, minute) else { return Ok(None) };
    let Some(second) = read_hyphenated(&mut after, 2) else {
        let is_offset_possible = matches!(after.peek(), None | Some('[' | ' '));
        if minute <= FURTHEST_WEST_HOURS && is_offset_possible {
            return Err(GrammarFault::impossible(
                format!(
                    "'{hour:02}-{minute:02}' can be {hour:02}:{minute:02}, or {hour:02}:00 at the \
                     offset -{minute:02}:00"
                ),
                "'2025-01-20T09:05' or '2025-01-20T09:00-05:00'",
            ));
        }
        *cursor = after;
        return time((hour, minute, 0), 0).map(Some);
    };
    let micros = match read_hyphenated(&mut after, 3) {
        Some(millis) => millis * 1000,
        None => read_fraction(&mut after),
    };
    // Two more digits could be an offset, hundredths or a counter.
    if read_hyphenated(&mut after, 2).is_some() {
        return Err(GrammarFault::syntax(start.rest()));
    }
    *cursor = after;
    time((hour, minute, second), micros).map(Some)
}

/// Parses a hyphen and this many digits; `None`, with nothing consumed, if they are not here or if
/// a colon follows, as in an offset.
fn read_hyphenated(cursor: &mut TextCursor<'_>, length: usize) -> Option<u32> {
    let mut after = *cursor;
    if !after.eat('-') {
        return None;
    }
    let number = after.digits_of_length(length..=length)?;
    if after.is_before_digit(':') {
        return None;
    }
    *cursor = after;
    Some(number)
}

/// Returns the time of day with these hours, minutes, seconds and microseconds.
fn time((hour, minute, second): (u32, u32, u32), micros: u32) -> Result<NaiveTime, GrammarFault> {
    if second == 60 {
        return Err(GrammarFault::impossible(
            "leap seconds are not counted",
            "'23:59:59' or '00:00:00' of the next day",
        ));
    }
    let problem = if hour > 23 {
        format!("there is no hour {hour}")
    } else if minute > 59 {
        format!("there is no minute {minute}")
    } else {
        format!("there is no second {second}")
    };
    NaiveTime::from_hms_micro_opt(hour, minute, second, micros)
        .ok_or_else(|| GrammarFault::impossible(problem, EXAMPLES))
}

/// Parses `.25` or `,25` as microseconds; digits after the sixth are dropped.
pub(super) fn read_fraction(cursor: &mut TextCursor<'_>) -> u32 {
    let point = if cursor.is_before_digit('.') { '.' } else { ',' };
    if !cursor.is_before_digit(point) {
        return 0;
    }
    cursor.eat(point);
    let digits = cursor.digits().bytes().chain(std::iter::repeat(b'0'));
    digits.take(6).fold(0, |micros, digit| micros * 10 + u32::from(digit - b'0'))
}

/// Parses `am` or `pm`, and returns the hours to add. Programs also write a narrow no-break space
/// before it.
fn read_half(cursor: &mut TextCursor<'_>) -> Option<u32> {
    let mut after = *cursor;
    after.take_while(char::is_whitespace);
    let half = if after.eat('a') {
        0
    } else if after.eat('p') {
        12
    } else {
        return None;
    };
    let has_dots = after.eat('.');
    let is_whole = after.eat('m')
        && (!has_dots || after.eat('.'))
        && !after.peek().is_some_and(char::is_alphanumeric);
    is_whole.then(|| {
        *cursor = after;
        half
    })
}
