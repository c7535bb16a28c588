//! Parses spans of time: `2h30m`, `1 day, 3 hours`, `an hour`, `half an hour`, `1.5 hours`.

use super::error::{DurationError, GrammarFault, quoted};
use super::local_to_utc::{self, SkippedTimeRule};
use super::numeric_date;
use super::resolved_time::{MAX_TEXT, ResolvedTime};
use super::text_cursor::TextCursor;
use super::time_of_day;
use crate::model::Timestamp;
use chrono::{Days, Months, TimeZone};

const DAY_MICROS: i64 = 86_400_000_000;
const NUMBERS: [&str; 21] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
];
const TENS: [(&str, u64); 4] = [("thirty", 30), ("forty", 40), ("fifty", 50), ("sixty", 60)];

/// A span of time: calendar months, calendar days, and microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeSpan {
    months: u32,
    days: u64,
    micros: i64,
}

/// A unit of time, as a number of calendar months, calendar days or microseconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeUnit {
    Months(u32),
    Days(u64),
    Micros(i64),
}

/// A number: its whole part, and its fraction in billionths.
struct DecimalQuantity {
    whole: u64,
    billionths: u32,
}

/// Parses a span; `None`, with nothing consumed, if the cursor is not at a span.
pub(super) fn read(cursor: &mut TextCursor<'_>) -> Result<Option<TimeSpan>, GrammarFault> {
    let mut span = TimeSpan::default();
    let mut units = Vec::new();
    loop {
        let mut after = *cursor;
        after.skip_spaces();
        if !units.is_empty() && after.eat(',') {
            after.skip_spaces();
        }
        if !units.is_empty() && after.eat_word("and") {
            after.skip_spaces();
        }
        let at_item = after;
        let Some((quantity, unit)) = read_item(&mut after)? else { break };
        if units.contains(&unit) {
            return Err(GrammarFault::impossible(
                format!(
                    "it has the same unit twice, the second time at '{}'",
                    quoted(at_item.rest())
                ),
                "'2 hours ago' or '2h30m ago'",
            ));
        }
        span.add(&quantity, unit)?;
        units.push(unit);
        *cursor = after;
    }
    Ok((!units.is_empty()).then_some(span))
}

fn read_item(
    cursor: &mut TextCursor<'_>,
) -> Result<Option<(DecimalQuantity, TimeUnit)>, GrammarFault> {
    let mut after = *cursor;
    let Some(quantity) = read_quantity(&mut after)? else { return Ok(None) };
    after.skip_spaces();
    let word = unit_word(&mut after);
    if word == "M" {
        return Err(GrammarFault::impossible(
            "'M' could be minutes or months",
            "'3 min ago' or '3 months ago'",
        ));
    }
    let Some(unit) = unit(word) else { return Ok(None) };
    *cursor = after;
    Ok(Some((quantity, unit)))
}

/// Parses the letters of a unit. The `µ` of `µs` may be a micro sign or a Greek letter.
fn unit_word<'a>(cursor: &mut TextCursor<'a>) -> &'a str {
    if cursor.eat('\u{b5}') || cursor.eat('\u{3bc}') {
        return if cursor.eat_word("s") { "us" } else { "" };
    }
    cursor.letters()
}

fn read_quantity(cursor: &mut TextCursor<'_>) -> Result<Option<DecimalQuantity>, GrammarFault> {
    let digits = cursor.digits();
    if !digits.is_empty() {
        let whole = digits.parse().map_err(|_| GrammarFault::OutOfRange)?;
        let mut billionths = 0;
        if cursor.is_before_digit('.') {
            cursor.eat('.');
            let digits = cursor.digits().bytes().chain(std::iter::repeat(b'0'));
            billionths = digits.take(9).fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        }
        return Ok(Some(DecimalQuantity { whole, billionths }));
    }
    if cursor.eat_word("half") {
        cursor.skip_spaces();
        if !cursor.eat_word("an") {
            cursor.eat_word("a");
        }
        return Ok(Some(DecimalQuantity { whole: 0, billionths: 500_000_000 }));
    }
    if cursor.eat_word("an") || cursor.eat_word("a") {
        return Ok(Some(DecimalQuantity { whole: 1, billionths: 0 }));
    }
    let whole = (0..).zip(NUMBERS).map(|(number, word)| (word, number)).chain(TENS);
    let mut whole = whole.filter(|(word, _)| cursor.eat_word(word));
    Ok(whole.next().map(|(_, whole)| DecimalQuantity { whole, billionths: 0 }))
}

fn unit(word: &str) -> Option<TimeUnit> {
    Some(match word.to_ascii_lowercase().as_str() {
        "y" | "yr" | "yrs" | "year" | "years" => TimeUnit::Months(12),
        "mo" | "mos" | "month" | "months" => TimeUnit::Months(1),
        "w" | "wk" | "wks" | "week" | "weeks" => TimeUnit::Days(7),
        "d" | "day" | "days" => TimeUnit::Days(1),
        "h" | "hr" | "hrs" | "hour" | "hours" => TimeUnit::Micros(3_600_000_000),
        "m" | "min" | "mins" | "minute" | "minutes" => TimeUnit::Micros(60_000_000),
        "s" | "sec" | "secs" | "second" | "seconds" => TimeUnit::Micros(1_000_000),
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => TimeUnit::Micros(1000),
        "us" | "usec" | "usecs" | "microsecond" | "microseconds" => TimeUnit::Micros(1),
        _ => return None,
    })
}

impl TimeSpan {
    fn add(&mut self, quantity: &DecimalQuantity, unit: TimeUnit) -> Result<(), GrammarFault> {
        let (sum, fraction_of) = match unit {
            TimeUnit::Months(_) if quantity.billionths != 0 => {
                return Err(GrammarFault::impossible(
                    "a part of a month or a year has no fixed length",
                    "'6 months ago', '2 weeks ago' or '45 days ago'",
                ));
            }
            TimeUnit::Months(each) => (self.plus_months(quantity.whole, each), 0),
            TimeUnit::Days(each) => {
                let each_micros = each.cast_signed() * DAY_MICROS;
                (self.plus_days(quantity.whole, each), each_micros)
            }
            TimeUnit::Micros(each) => (self.plus_micros(quantity.whole, each), each),
        };
        let fraction = i128::from(fraction_of) * i128::from(quantity.billionths) / 1_000_000_000;
        let fraction = i64::try_from(fraction).map_err(|_| GrammarFault::OutOfRange)?;
        *self = sum
            .and_then(|sum| Some(Self { micros: sum.micros.checked_add(fraction)?, ..sum }))
            .ok_or(GrammarFault::OutOfRange)?;
        Ok(())
    }

    fn plus_months(self, count: u64, each: u32) -> Option<Self> {
        let months = u32::try_from(count).ok()?.checked_mul(each)?.checked_add(self.months)?;
        Some(Self { months, ..self })
    }

    fn plus_days(self, count: u64, each: u64) -> Option<Self> {
        Some(Self { days: count.checked_mul(each)?.checked_add(self.days)?, ..self })
    }

    fn plus_micros(self, count: u64, each: i64) -> Option<Self> {
        let added = i64::try_from(count).ok()?.checked_mul(each)?;
        Some(Self { micros: self.micros.checked_add(added)?, ..self })
    }

    /// Returns the time that is this span after `now` if `is_ahead`, otherwise before it. Months
    /// and days are steps in the calendar of the zone; hours and smaller units are exact lengths of
    /// time.
    fn away_from<Tz: TimeZone>(
        self,
        now: Timestamp,
        zone: &Tz,
        is_ahead: bool,
    ) -> Option<ResolvedTime> {
        let mut day = ResolvedTime { time: now, note: None, is_now: false };
        if self.months > 0 || self.days > 0 {
            let local = local_to_utc::local_time(zone, now.as_micros())?;
            let (months, days) = (Months::new(self.months), Days::new(self.days));
            let local = if is_ahead {
                local.checked_add_months(months)?.checked_add_days(days)?
            } else {
                local.checked_sub_months(months)?.checked_sub_days(days)?
            };
            day = local_to_utc::resolve(zone, local, SkippedTimeRule::KeepClock).ok()?;
        }
        let micros = if is_ahead { self.micros } else { -self.micros };
        let time = local_to_utc::in_range(day.time.as_micros().checked_add(micros)?).ok()?;
        Some(ResolvedTime { time, ..day })
    }

    /// Parses the clock time after a span (` at 14:00`), and returns that time on the day that is
    /// this span before `now`. The span must have only days or larger units.
    fn on_day<Tz: TimeZone>(
        self,
        mut cursor: TextCursor<'_>,
        now: Timestamp,
        zone: &Tz,
    ) -> Result<ResolvedTime, GrammarFault> {
        let rest = cursor.rest();
        cursor.eat(',');
        cursor.skip_spaces();
        cursor.eat_word("at");
        cursor.skip_spaces();
        let clock = time_of_day::read(&mut cursor)?.ok_or_else(|| GrammarFault::syntax(rest))?;
        if self.micros != 0 || self.months == 0 && self.days == 0 {
            return Err(GrammarFault::impossible(
                "a clock time belongs to a day, not to hours or minutes ago",
                "'3 days ago 14:00', 'yesterday 14:00' or '2 hours ago'",
            ));
        }
        let day = self.away_from(now, zone, false).ok_or(GrammarFault::OutOfRange)?.time;
        let date =
            local_to_utc::local_time(zone, day.as_micros()).ok_or(GrammarFault::OutOfRange)?.date();
        numeric_date::finish(cursor, zone, date, Some(clock))
    }
}

/// Parses `2 hours ago`, `10m`, `-2h`, `-2h ago`, `3 days ago at 14:00`, `in 2 hours`, `2 hours
/// from now`; `None` if the text does not begin with a span, a sign or `in`.
pub(super) fn read_relative<Tz: TimeZone>(
    mut cursor: TextCursor<'_>,
    now: Timestamp,
    zone: &Tz,
) -> Result<Option<ResolvedTime>, GrammarFault> {
    let has_minus = cursor.eat('-');
    let mut is_ahead = !has_minus && (cursor.eat('+') || cursor.eat_word("in"));
    let must_be_span = has_minus || is_ahead;
    cursor.skip_spaces();
    let Some(span) = read(&mut cursor)? else {
        return if must_be_span { Err(GrammarFault::syntax(cursor.rest())) } else { Ok(None) };
    };
    cursor.skip_spaces();
    let at_end = cursor;
    if has_minus && cursor.eat_word("ago") && !cursor.is_end() {
        return Err(GrammarFault::syntax(at_end.rest()));
    }
    if !cursor.is_end() && !must_be_span {
        let word = cursor.letters();
        cursor.skip_spaces();
        is_ahead = match word.to_ascii_lowercase().as_str() {
            "ago" if !cursor.is_end() => return span.on_day(cursor, now, zone).map(Some),
            "ago" => false,
            "later" | "hence" => true,
            "from" if cursor.eat_word("now") => true,
            _ => return Err(GrammarFault::syntax(at_end.rest())),
        };
    }
    cursor.expect_end()?;
    let fault = if is_ahead { GrammarFault::Future(None) } else { GrammarFault::OutOfRange };
    span.away_from(now, zone, is_ahead).ok_or(fault).map(Some)
}

/// Parses a duration such as `90s`, `2h30m` or `1 day, 3 hours`, in microseconds. A day has 24
/// hours, a week 7 days.
///
/// # Errors
///
/// If the text is not a duration, such as a number without a unit; or if it has a sign, `ago`, or
/// months or years, which have no fixed length.
pub fn parse_duration(text: &str) -> Result<i64, DurationError> {
    let wrong = |problem: String| DurationError { text: quoted(text.trim_ascii()), problem };
    let trimmed = text.trim_ascii();
    if trimmed.is_empty() {
        return Err(wrong("it is empty".to_owned()));
    }
    if trimmed.len() > MAX_TEXT {
        return Err(wrong("it is too long".to_owned()));
    }
    let mut cursor = TextCursor::new(trimmed);
    if matches!(cursor.peek(), Some('-' | '+')) {
        return Err(wrong("a duration has no sign".to_owned()));
    }
    let span = match read(&mut cursor) {
        Ok(Some(span)) => span,
        Ok(None)
            if trimmed.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
                && trimmed.bytes().any(|byte| byte.is_ascii_digit()) =>
        {
            return Err(wrong("the unit is missing".to_owned()));
        }
        Ok(None) => return Err(wrong("it has no number with a unit".to_owned())),
        Err(GrammarFault::Impossible { problem, .. }) => return Err(wrong(problem)),
        Err(_) => return Err(wrong("the duration is too long".to_owned())),
    };
    cursor.skip_spaces();
    if cursor.eat_word("ago") {
        return Err(wrong("a duration has no 'ago'".to_owned()));
    }
    if !cursor.is_end() {
        return Err(wrong(format!("'{}' is not understood", quoted(cursor.rest()))));
    }
    if span.months != 0 {
        return Err(wrong("months and years have no fixed length".to_owned()));
    }
    i64::try_from(span.days)
        .ok()
        .and_then(|days| days.checked_mul(DAY_MICROS)?.checked_add(span.micros))
        .ok_or_else(|| wrong("the duration is too long".to_owned()))
}
