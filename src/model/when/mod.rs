//! The one grammar for points in time and for moments: what a person writes, as plain data.
//!
//! The clock and the zone are arguments, so the same text gives the same answer on any machine. What is read here
//! is only ever a text; whether a tag, a branch or an id exists is for the engine to find out. `docs/time.md` is the
//! page for users, and its examples are tests.

mod civil;
mod clock;
mod cursor;
mod day;
mod error;
mod moment;
mod month;
mod named;
mod offset;
mod point;
mod span;
mod text;
mod zone;

pub use error::{DurationError, MomentError, TimeError};
pub use moment::{HYPOTHESIS_STATUSES, Moment, MomentBase, parse_moment};
pub use named::{IdPrefix, Named};
pub use point::{ResolvedTime, parse_time};
pub use span::parse_duration;
pub use text::{civil_time, describe_distance};
pub use zone::ZoneNote;

#[cfg(test)]
mod tests;
