//! The timeline browser: shows the course of a debugging session and the state at any moment of it.
//!
//! An event becomes an [`Action`](action::BrowserAction). [`update`](update::update) changes the
//! [`App`](app::App), which is plain data, and returns the [`Effect`](effect::AppEffect)s to
//! execute. A [`Worker`](worker::StoreWorker) that owns the store answers requests. [`view::draw`]
//! only reads. Keys are data too: see [`keymap`].

#![allow(missing_docs, reason = "part of an application: a clear name needs no sentence")]

pub mod action;
pub mod answer;
pub mod app;
pub mod chip;
mod default_keys;
pub mod effect;
mod event_loop;
pub mod fuzzy;
pub mod help;
pub mod host;
mod input_gate;
pub mod key;
pub mod keymap;
pub mod layout;
pub mod markdown;
pub mod panes;
pub mod query;
pub mod sheet;
pub mod story_view;
mod terminal;
pub mod theme;
pub mod update;
pub mod view;
pub mod window;
pub mod worker;

pub use event_loop::{BrowserError, BrowserOptions, BrowserOutcome, run};
