//! A log and an index in memory: for tests and temporary stores.
//!
//! Clones share their content, as two processes share a folder. The content is lost with the last
//! clone.

#[cfg(test)]
mod counting_log;
mod index;
mod log;
mod single_generation;

#[cfg(test)]
pub(crate) use counting_log::CountingLog;
pub use index::MemoryIndex;
pub use log::MemoryLog;
pub(crate) use single_generation::SingleGeneration;
