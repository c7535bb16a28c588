//! Points in time.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
///
/// Written as RFC 3339 in UTC where people may read it, and as an integer in forge's own records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest time that can be written as RFC 3339 (year 0).
    pub const MIN: Self = Self(-62_167_219_200_000_000);
    /// The latest time that can be written as RFC 3339 (year 9999).
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// Creates the time this many microseconds after 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Converts to a chrono time; times outside [`Timestamp::MIN`]..=[`Timestamp::MAX`] are
    /// clamped.
    #[must_use]
    pub fn to_datetime(self) -> DateTime<Utc> {
        let inside = self.0.clamp(Self::MIN.0, Self::MAX.0);
        DateTime::from_timestamp_micros(inside).unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// Parses RFC 3339 with any offset; digits after the microsecond are dropped. `None` if the
    /// text is invalid or the time is outside [`Timestamp::MIN`]..=[`Timestamp::MAX`].
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let time = Self(DateTime::parse_from_rfc3339(text).ok()?.timestamp_micros());
        (Self::MIN..=Self::MAX).contains(&time).then_some(time)
    }

    /// Returns the microseconds from `earlier` to this time; negative if this time is the earlier
    /// one. The result saturates.
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns this time moved by a number of microseconds. The result saturates.
    #[must_use]
    pub const fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_micros())
    }
}

impl fmt::Display for Timestamp {
    /// Formats as RFC 3339 in UTC with as many decimals as needed (none, three or six).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_datetime().to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            Self::parse_rfc3339(&text)
                .ok_or_else(|| de::Error::custom(format!("'{text}' is not an RFC 3339 time")))
        } else {
            i64::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_read_back_from_text_messagepack_and_json() {
        for text in
            ["2025-01-20T14:30:00Z", "1969-12-31T23:59:59.999999Z", "2026-02-01T00:00:00.250Z"]
        {
            let time = Timestamp::parse_rfc3339(text).unwrap();
            assert_eq!(time.to_string(), text);
            let packed = rmp_serde::to_vec_named(&time).unwrap();
            assert_eq!(rmp_serde::from_slice::<Timestamp>(&packed).unwrap(), time);
            assert_eq!(serde_json::to_string(&time).unwrap(), format!("\"{text}\""));
        }
        assert_eq!(
            Timestamp::parse_rfc3339("2025-01-20T15:30:00+01:00"),
            Timestamp::parse_rfc3339("2025-01-20T14:30:00Z")
        );
    }
}
