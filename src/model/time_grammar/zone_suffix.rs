//! The suffix of a clock time: `Z`, `+01:00`, `[Europe/Berlin]`.

use super::error::GrammarFault;
use super::text_cursor::TextCursor;
use super::time_of_day;
use chrono::{FixedOffset, NaiveTime, Offset};
use std::ops::RangeInclusive;

/// The offsets of all zones, in seconds east of UTC. Some offsets before 1900 are outside of it.
/// They have seconds.
const OFFSETS: RangeInclusive<i32> = -12 * 3600..=14 * 3600;

/// The zone after a clock time.
pub(super) enum ZoneSuffix {
    Local,
    Offset(FixedOffset),
}

/// Parses the zone of a day or a clock time, which ends the text.
pub(super) fn read_last(
    mut cursor: TextCursor<'_>,
    clock: Option<NaiveTime>,
) -> Result<ZoneSuffix, GrammarFault> {
    let suffix = read_suffix(&mut cursor, clock.is_some())?;
    cursor.expect_end()?;
    Ok(suffix)
}

/// Parses `Z`, `UTC`, `GMT`, `+01:00`, `+0100`, `+01`, `GMT+0100`, `UTC+1`, `+0100 CET`, `+0100
/// (CET)`, each optionally in parentheses or followed by RFC 9557 brackets, or nothing. Without a
/// clock time, an offset is refused: `monday-10` is more likely a name, and `2025-01-20 -10:30` a
/// date and a clock time.
pub(super) fn read_suffix(
    cursor: &mut TextCursor<'_>,
    has_clock: bool,
) -> Result<ZoneSuffix, GrammarFault> {
    let start = *cursor;
    cursor.skip_spaces();
    let mut offset = None;
    let is_enclosed = cursor.eat('(');
    let follows_utc = eat_utc_before_offset(cursor);
    if matches!(cursor.peek(), Some('+' | '-')) {
        if !has_clock {
            return Err(GrammarFault::syntax(cursor.rest()));
        }
        let fixed = read_offset(cursor, follows_utc)?;
        pass_name(cursor, fixed, follows_utc)?;
        pass_monotonic_clock(cursor);
        offset = Some(fixed);
    } else if cursor.peek().is_some_and(|next| next.is_ascii_alphabetic()) {
        let name = cursor.take_while(is_zone_character);
        offset = Some(utc_by_name(name).ok_or_else(|| unknown_name(name, start.rest()))?);
    }
    if is_enclosed && (offset.is_none() || !cursor.eat(')')) {
        *cursor = start;
        return Ok(ZoneSuffix::Local);
    }
    while cursor.eat('[') {
        let inside = cursor.take_while(|next| next != ']');
        if !cursor.eat(']') {
            return Err(GrammarFault::syntax(cursor.rest()));
        }
        let bracket = read_bracket(inside)?;
        offset = match (offset, bracket) {
            (None, ZoneBracket::Named) => return Err(GrammarFault::Zone(inside.to_owned())),
            (None, ZoneBracket::Fixed(fixed)) => Some(fixed),
            (Some(offset), ZoneBracket::Fixed(fixed)) if offset != fixed => {
                return Err(GrammarFault::impossible(
                    format!("the offset {offset} is not that of [{inside}]"),
                    "'2025-01-20T14:30:00-05:00' or '2025-01-20T14:30:00Z'",
                ));
            }
            (offset, _) => offset,
        };
    }
    if offset.is_none() {
        *cursor = start;
    }
    Ok(offset.map_or(ZoneSuffix::Local, ZoneSuffix::Offset))
}

/// Skips the `UTC` or `GMT` of `UTC+01:00` and `GMT+0100`. Returns whether it was there.
fn eat_utc_before_offset(cursor: &mut TextCursor<'_>) -> bool {
    let mut after = *cursor;
    let name = after.letters();
    let is_found = ["utc", "gmt"].iter().any(|utc| name.eq_ignore_ascii_case(utc))
        && matches!(after.peek(), Some('+' | '-'));
    if is_found {
        *cursor = after;
    }
    is_found
}

/// Skips the name of a zone after an offset: the `CEST` of `+0200 CEST`, or of `+0200 (CEST)` in
/// mails, or a long name in brackets. After `GMT+0100`, JavaScript writes it in any language. The
/// offset takes precedence; it is an error if the name means UTC and the offset is another one.
fn pass_name(
    cursor: &mut TextCursor<'_>,
    offset: FixedOffset,
    follows_utc: bool,
) -> Result<(), GrammarFault> {
    let mut after = *cursor;
    after.skip_spaces();
    let is_enclosed = after.eat('(');
    let name = if is_enclosed { after.take_while(|next| next != ')') } else { after.letters() };
    let is_abbreviation =
        (3..=5).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_long = is_enclosed
        && (name.ends_with(" Time") || follows_utc && name.starts_with(char::is_alphabetic));
    let is_closed = !is_enclosed || after.eat(')');
    let is_name = is_abbreviation || is_long;
    if !is_name || !is_closed || after.peek().is_some_and(is_zone_character) {
        return Ok(());
    }
    if utc_by_name(name).is_some_and(|utc| utc != offset) {
        return Err(GrammarFault::impossible(
            format!("the offset {offset} is not that of {name}"),
            "'2025-01-20 14:30:00 +01:00' or '2025-01-20 14:30:00 UTC'",
        ));
    }
    *cursor = after;
    Ok(())
}

/// Skips what Go prints after the zone of the current time: `m=+0.012`.
fn pass_monotonic_clock(cursor: &mut TextCursor<'_>) {
    let mut after = *cursor;
    after.skip_spaces();
    let has_sign = after.eat_word("m") && after.eat('=') && (after.eat('+') || after.eat('-'));
    if has_sign && !after.digits().is_empty() {
        time_of_day::read_fraction(&mut after);
        *cursor = after;
    }
}

enum ZoneBracket {
    Named,
    Fixed(FixedOffset),
    /// `key=value`, which affects only the display of a time.
    Remark,
}

fn read_bracket(inside: &str) -> Result<ZoneBracket, GrammarFault> {
    let is_name = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.chars().all(is_zone_character)
    };
    if let Some(fixed) = utc_by_name(inside) {
        return Ok(ZoneBracket::Fixed(fixed));
    }
    if inside.starts_with(['+', '-']) {
        let mut cursor = TextCursor::new(inside);
        let fixed = read_offset(&mut cursor, false)?;
        cursor.expect_end()?;
        return Ok(ZoneBracket::Fixed(fixed));
    }
    match inside.split_once('=') {
        Some((key, value)) if is_name(key) && value.chars().all(is_zone_character) => {
            Ok(ZoneBracket::Remark)
        }
        None if is_name(inside) => Ok(ZoneBracket::Named),
        // A leading `!` marks a part that must not be ignored (RFC 9557).
        _ if inside.starts_with('!') => Err(GrammarFault::Zone(inside.to_owned())),
        _ => Err(GrammarFault::syntax(inside)),
    }
}

fn is_zone_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_/+-".contains(character)
}

fn utc_by_name(name: &str) -> Option<FixedOffset> {
    let is_utc = ["z", "utc", "gmt", "ut"].iter().any(|utc| name.eq_ignore_ascii_case(utc));
    is_utc.then(|| chrono::Utc.fix())
}

/// Returns the error for a word that is not a name of UTC: an unknown zone if it looks like one,
/// otherwise a syntax error.
fn unknown_name(name: &str, rest: &str) -> GrammarFault {
    let is_code = (2..=7).contains(&name.len())
        && !name.chars().any(|character| character.is_ascii_lowercase() || character == '_');
    if name.contains('/') || is_code {
        GrammarFault::Zone(name.to_owned())
    } else {
        GrammarFault::syntax(rest)
    }
}

/// Parses `+01:00`, `+0100`, `+01`, and `+00:53:28` as in historical zones. After `UTC`, the hour
/// may have one digit: `+1`, `+5:30`.
fn read_offset(
    cursor: &mut TextCursor<'_>,
    follows_utc: bool,
) -> Result<FixedOffset, GrammarFault> {
    let start = *cursor;
    let syntax = || GrammarFault::syntax(start.rest());
    let is_west = cursor.eat('-');
    if !is_west && !cursor.eat('+') {
        return Err(syntax());
    }
    let digits = cursor.digits();
    let (hours, mut minutes) = match digits.len() {
        1 if follows_utc => (digits, 0),
        2 => (digits, 0),
        4 => (&digits[..2], digits[2..].parse().map_err(|_| syntax())?),
        _ => return Err(syntax()),
    };
    let hours: i32 = hours.parse().map_err(|_| syntax())?;
    let mut seconds = 0;
    if digits.len() <= 2 && cursor.eat(':') {
        minutes = cursor.two_digits().ok_or_else(syntax)?.cast_signed();
        if cursor.eat(':') {
            seconds = cursor.two_digits().ok_or_else(syntax)?.cast_signed();
        }
    }
    let east = hours * 3600 + minutes * 60 + seconds;
    let east = if is_west { -east } else { east };
    // The end of a span, as in '14:30-15:30', is not an offset.
    let is_known = seconds != 0 || OFFSETS.contains(&east);
    FixedOffset::east_opt(east).filter(|_| minutes < 60 && seconds < 60 && is_known).ok_or_else(
        || GrammarFault::impossible("no zone is that far from UTC", "'2025-01-20 14:30:00+01:00'"),
    )
}
