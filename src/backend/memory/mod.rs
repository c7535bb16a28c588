//! A log and an index in memory: for tests and temporary stores.
//!
//! Clones share their content, as two processes share a folder. The content is lost with the last
//! clone.

mod index;
mod log;
mod single_generation;

pub use index::MemoryIndex;
pub use log::MemoryLog;
pub(crate) use single_generation::SingleGeneration;
