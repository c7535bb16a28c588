//! The browser from the outside: keys in, screens out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod chart;
mod fault;
mod find;
mod hand;
mod law;
mod level;
mod screen;
mod write;
