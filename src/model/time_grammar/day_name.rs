//! Days and clock times by name: `yesterday 14:30`, `last friday`, `2:30pm`, `noon`.

use super::error::GrammarFault;
use super::local_to_utc::{self, SkippedTimeRule};
use super::resolved_time::ResolvedTime;
use super::text_cursor::TextCursor;
use super::time_of_day;
use super::zone_suffix::{self, ZoneSuffix};
use crate::model::Timestamp;
use chrono::{Datelike, Days, NaiveDate, NaiveTime, TimeZone, Weekday};

#[derive(Clone, Copy, Debug)]
enum DayReference {
    /// This many days ago.
    Ago(u32),
    /// The most recent such weekday, which may be today.
    Recent(Weekday),
    /// The last such weekday before today.
    Last(Weekday),
}

/// Parses the name of a weekday.
pub(super) fn read_weekday(cursor: &mut TextCursor<'_>) -> Option<Weekday> {
    let word = cursor.clone().letters().to_ascii_lowercase();
    let day = match word.as_str() {
        "tues" => Weekday::Tue,
        "weds" => Weekday::Wed,
        "thur" | "thurs" => Weekday::Thu,
        name => name.parse().ok()?,
    };
    cursor.eat_word(&word).then_some(day)
}

/// Parses a day, a clock time or both in either order; `None` if the text begins with neither.
pub(super) fn read<Tz: TimeZone>(
    mut cursor: TextCursor<'_>,
    now: Timestamp,
    zone: &Tz,
) -> Result<Option<ResolvedTime>, GrammarFault> {
    if !eat_last_before_clock(&mut cursor) {
        refuse_period(cursor)?;
    }
    let mut day = read_day(&mut cursor)?;
    if day.is_some() {
        cursor.skip_spaces();
        cursor.eat(',');
        cursor.skip_spaces();
    }
    let has_at = cursor.eat_word("at");
    cursor.skip_spaces();
    let at_clock = cursor;
    let clock = time_of_day::read(&mut cursor)?;
    if clock.is_none() && (has_at || day.is_none()) {
        return if day.is_some() { Err(GrammarFault::syntax(at_clock.rest())) } else { Ok(None) };
    }
    if clock.is_some() && day.is_none() {
        let mut after = cursor;
        after.skip_spaces();
        after.eat(',');
        after.skip_spaces();
        after.eat_word("on");
        after.skip_spaces();
        day = read_day(&mut after)?;
        if day.is_some() {
            cursor = after;
        }
    }
    match zone_suffix::read_last(cursor, clock)? {
        ZoneSuffix::Local => resolve_day(zone, now, day, clock),
        ZoneSuffix::Offset(fixed) => resolve_day(&fixed, now, day, clock),
    }
    .map(Some)
}

/// Parses `today`, `yesterday`, `the day before yesterday`, `friday`, `on friday` or `last friday`.
fn read_day(cursor: &mut TextCursor<'_>) -> Result<Option<DayReference>, GrammarFault> {
    let start = *cursor;
    if cursor.eat_word("today") {
        return Ok(Some(DayReference::Ago(0)));
    }
    if cursor.eat_word("yesterday") {
        return Ok(Some(DayReference::Ago(1)));
    }
    if cursor.eat_words(&["the", "day", "before", "yesterday"])
        || cursor.eat_words(&["day", "before", "yesterday"])
    {
        return Ok(Some(DayReference::Ago(2)));
    }
    if cursor.eat_word("tomorrow") {
        return Err(GrammarFault::Future(None));
    }
    let is_last = cursor.eat_word("last");
    if !is_last {
        cursor.eat_word("on");
    }
    cursor.skip_spaces();
    let Some(weekday) = read_weekday(cursor) else {
        *cursor = start;
        return Ok(None);
    };
    Ok(Some(if is_last { DayReference::Last(weekday) } else { DayReference::Recent(weekday) }))
}

/// Skips the `last` of `last 11:00`: a clock time alone already means the last one. Returns whether
/// `last` was there.
fn eat_last_before_clock(cursor: &mut TextCursor<'_>) -> bool {
    let mut after = *cursor;
    let is_last = after.eat_word("last");
    after.skip_spaces();
    let is_found = is_last && matches!(time_of_day::read(&mut after.clone()), Ok(Some(_)));
    if is_found {
        *cursor = after;
    }
    is_found
}

/// Rejects `last week`, `this morning`, `tonight` and `next friday`: they are spans of time, or in
/// the future.
fn refuse_period(mut cursor: TextCursor<'_>) -> Result<(), GrammarFault> {
    const HOURS: &str = "'today 08:00', 'yesterday 20:00' or '2 hours ago'";
    if cursor.eat_word("tonight") {
        return Err(GrammarFault::Vague(HOURS));
    }
    let is_next = cursor.eat_word("next");
    if !is_next && !cursor.eat_word("last") && !cursor.eat_word("this") && !cursor.eat_word("past")
    {
        return Ok(());
    }
    cursor.skip_spaces();
    if is_next {
        let is_known = read_weekday(&mut cursor).is_some() || is_period(cursor.letters());
        return if is_known { Err(GrammarFault::Future(None)) } else { Ok(()) };
    }
    if cursor.peek().is_some_and(|next| next.is_ascii_digit()) {
        return Err(GrammarFault::Vague("'10m', '2 hours ago' or '3 days ago'"));
    }
    match cursor.letters().to_ascii_lowercase().as_str() {
        "morning" | "afternoon" | "evening" | "night" | "noon" => Err(GrammarFault::Vague(HOURS)),
        "week" => Err(GrammarFault::Vague("'1 week ago', 'last monday' or '2025-01-20'")),
        "month" => Err(GrammarFault::Vague("'1 month ago', '4 weeks ago' or '2025-01-20'")),
        "year" => Err(GrammarFault::Vague("'1 year ago', '6 months ago' or '2025-01-20'")),
        "hour" | "minute" | "day" | "few" | "couple" => {
            Err(GrammarFault::Vague("'1 hour ago', '10m' or 'yesterday 14:30'"))
        }
        _ => Ok(()),
    }
}

fn is_period(word: &str) -> bool {
    ["minute", "hour", "day", "night", "week", "month", "year"]
        .iter()
        .any(|period| word.eq_ignore_ascii_case(period))
}

fn resolve_day<Tz: TimeZone>(
    zone: &Tz,
    now: Timestamp,
    day: Option<DayReference>,
    clock: Option<NaiveTime>,
) -> Result<ResolvedTime, GrammarFault> {
    let today =
        local_to_utc::local_time(zone, now.as_micros()).ok_or(GrammarFault::OutOfRange)?.date();
    let on = |date: Option<NaiveDate>| {
        let wanted =
            date.ok_or(GrammarFault::OutOfRange)?.and_time(clock.unwrap_or(NaiveTime::MIN));
        let in_gap =
            if clock.is_some() { SkippedTimeRule::KeepClock } else { SkippedTimeRule::FirstAfter };
        local_to_utc::resolve(zone, wanted, in_gap)
    };
    let days_ago = |days: u32| today.checked_sub_days(Days::new(u64::from(days)));
    let since = |weekday| today.weekday().days_since(weekday);
    match day {
        Some(DayReference::Ago(days)) => on(days_ago(days)),
        Some(DayReference::Last(weekday)) => on(days_ago(match since(weekday) {
            0 => 7,
            days => days,
        })),
        Some(DayReference::Recent(weekday)) => {
            let recent = on(days_ago(since(weekday)))?;
            if recent.time <= now { Ok(recent) } else { on(days_ago(since(weekday) + 7)) }
        }
        None => {
            let clock = clock.unwrap_or(NaiveTime::MIN);
            // In a zone that skipped a day, up to two of its clock times can be after now.
            for days in 0..=3 {
                let wanted = days_ago(days).ok_or(GrammarFault::OutOfRange)?.and_time(clock);
                if let Some(found) = local_to_utc::resolve_up_to(zone, wanted, now)? {
                    return Ok(found);
                }
            }
            Err(GrammarFault::OutOfRange)
        }
    }
}
