//! The result of parsing a point in time.

use super::local_to_utc::ZoneNote;
use crate::model::Timestamp;

/// Maximum length of the text of a time, in bytes.
pub(super) const MAX_TEXT: usize = 200;

/// Number of digits of the seconds since 1970, from 2001 to 2286.
pub(super) const EPOCH_DIGITS: usize = 10;

/// A resolved point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedTime {
    /// The point in time; never after the `now` used for parsing.
    pub time: Timestamp,
    /// How a clock change of the zone was resolved. It is to be shown to the author of the text.
    pub note: Option<ZoneNote>,
    /// Whether `time` is exactly the `now` used for parsing. Then it means everything recorded so
    /// far, including times of a clock that was ahead.
    pub is_now: bool,
}
