//! The report of a debugging session as a single page: an HTML file that loads nothing from the
//! network and can be read without its script, or Markdown for a pull request.
//!
//! * [`model`]: the content of a page as plain data, read from a store.
//! * [`html`]: writes it as HTML, with one function for each section; the charts are plain SVG.
//! * [`markdown`]: writes it as Markdown.
//!
//! Every text of a store is a [`PageText`]: secrets are removed from it once more, characters that
//! hide or reorder text are replaced by escapes, and it is escaped for HTML or Markdown where it is
//! written.

#![allow(missing_docs, reason = "part of an application: a clear name needs no sentence")]

mod assets;
mod chart;
pub mod html;
pub mod markdown;
mod message_html;
pub mod model;
mod page_clock;
mod page_text;
mod words;

pub use assets::policy;
pub use page_clock::PageZone;
pub use page_text::{PageText, TextCleaner};
