//! Formats the times of a page.

use chrono::{DateTime, FixedOffset, Local, Offset, TimeZone, Utc};
use forge_store::model::Timestamp;

/// The time zone of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageZone {
    /// Coordinated universal time.
    #[default]
    Utc,
    /// The zone of this machine.
    Local,
    /// A fixed offset from UTC.
    Fixed(FixedOffset),
}

impl PageZone {
    /// Parses `utc`, `local` or an offset from UTC such as `+01:00`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "utc" | "z" => Some(Self::Utc),
            "local" => Some(Self::Local),
            _ => text.parse().ok().map(Self::Fixed),
        }
    }

    fn at(self, time: Timestamp) -> DateTime<FixedOffset> {
        let utc = time.to_datetime();
        let offset = match self {
            Self::Utc => Utc.fix(),
            Self::Local => Local.offset_from_utc_datetime(&utc.naive_utc()).fix(),
            Self::Fixed(offset) => offset,
        };
        utc.with_timezone(&offset)
    }

    /// Returns the name of the zone: `UTC`, `local time` or an offset such as `+01:00`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Utc => "UTC".to_owned(),
            Self::Local => "local time".to_owned(),
            Self::Fixed(offset) => offset.to_string(),
        }
    }

    /// Returns the hour and minute: `14:30`.
    #[must_use]
    pub fn clock(self, time: Timestamp) -> String {
        self.at(time).format("%H:%M").to_string()
    }

    /// Returns the day without the year: `Tue 11 Mar`.
    #[must_use]
    pub fn day(self, time: Timestamp) -> String {
        self.at(time).format("%a %-d %b").to_string()
    }

    /// Returns the day and the time: `Tue 11 Mar 14:30`.
    #[must_use]
    pub fn day_and_clock(self, time: Timestamp) -> String {
        self.at(time).format("%a %-d %b %H:%M").to_string()
    }

    /// Returns the day with the year, and the time: `11 Mar 2025, 14:30`.
    #[must_use]
    pub fn date_and_clock(self, time: Timestamp) -> String {
        self.at(time).format("%-d %b %Y, %H:%M").to_string()
    }

    /// Returns the day in short: `11 Mar`.
    #[must_use]
    pub fn short_day(self, time: Timestamp) -> String {
        self.at(time).format("%-d %b").to_string()
    }

    /// Returns a span, with the day once if both ends are on one day: `11 Mar 2025, 09:04–12:11`.
    #[must_use]
    pub fn span(self, from: Timestamp, to: Timestamp) -> String {
        let (first, last) = (self.at(from), self.at(to));
        let end = last.format("%H:%M");
        if first.date_naive() == last.date_naive() {
            return format!("{}–{end}", self.date_and_clock(from));
        }
        format!("{} – {}", first.format("%-d %b %Y %H:%M"), last.format("%-d %b %Y %H:%M"))
    }

    /// Returns the time in the form of RFC 3339, in this zone and without fractions of a second.
    #[must_use]
    pub fn machine(self, time: Timestamp) -> String {
        self.at(time).format("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    /// Returns the first moment after `from` at which the local time is a multiple of this many
    /// seconds.
    pub(crate) fn next_step(self, from: Timestamp, seconds: i64) -> Timestamp {
        let offset = i64::from(self.at(from).offset().local_minus_utc());
        let local = from.as_micros().div_euclid(1_000_000) + offset;
        let next = (local.div_euclid(seconds) + 1) * seconds - offset;
        Timestamp::from_micros(next.saturating_mul(1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn a_zone_is_utc_local_or_an_offset() {
        let zone = PageZone::parse("+05:30").unwrap();
        let time = at("2025-03-11T20:04:10Z");
        assert_eq!(zone.day_and_clock(time), "Wed 12 Mar 01:34");
        assert_eq!(zone.date_and_clock(time), "12 Mar 2025, 01:34");
        assert_eq!(zone.machine(time), "2025-03-12T01:34:10+05:30");
        assert_eq!((zone.name(), PageZone::Utc.name()), ("+05:30".to_owned(), "UTC".to_owned()));
        assert_eq!(PageZone::parse("UTC"), Some(PageZone::Utc));
        assert_eq!(PageZone::parse("local"), Some(PageZone::Local));
        assert_eq!(PageZone::parse("Mars/Olympus"), None);
        assert_eq!(zone.next_step(time, 3600), at("2025-03-11T20:30:00Z"));
    }

    #[test]
    fn a_span_names_the_day_once() {
        let (from, to) = (at("2025-03-11T09:04:10Z"), at("2025-03-11T12:11:00Z"));
        assert_eq!(PageZone::Utc.span(from, to), "11 Mar 2025, 09:04–12:11");
        let to = at("2026-01-01T00:00:00Z");
        assert_eq!(PageZone::Utc.span(from, to), "11 Mar 2025 09:04 – 1 Jan 2026 00:00");
    }
}
