//! The grammar for points in time and for moments: parses what a person writes into plain data.
//! Also formats times for people.
//!
//! The present time and the zone are parameters, so equal arguments give equal results on any
//! machine. Whether a tag, a branch or an id exists is not checked here: the store looks it up.
//! `docs/time.md` is the page for users, and its examples are tests.

mod ambiguous_name;
mod day_name;
mod error;
mod local_to_utc;
mod moment;
mod month_date;
mod numeric_date;
mod parse_time;
mod resolved_time;
mod text_cursor;
mod time_display;
mod time_of_day;
mod time_span;
mod zone_suffix;

pub use ambiguous_name::{AmbiguousName, IdPrefix};
pub use error::{DurationError, MomentError, TimeError};
pub use local_to_utc::ZoneNote;
pub use moment::{MomentBase, MomentExpression, parse_moment};
pub use parse_time::parse_time;
pub use resolved_time::ResolvedTime;
pub use time_display::{civil_time, clock_time, day_name, describe_distance};
pub use time_span::parse_duration;

#[cfg(test)]
mod tests;
