//! The browser from the outside: keys in, screens out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chart;
mod editor;
mod fault;
mod find;
mod hand;
mod law;
mod level;
mod news;
mod screen;
mod share;
mod write;
