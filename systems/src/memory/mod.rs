//! Memories: values under keys, each with a version and the times of its first and last write.
//!
//! A memory is a session of kind `memory`. An item is one claim, so every earlier value can be read
//! again, compared and restored. A write changes any number of items in one record.

mod exact_value;
mod item_id;
mod keyed_memory;

#[cfg(test)]
mod tests;

pub use item_id::MAX_MEMORY_KEY_BYTES;
pub use keyed_memory::{ItemQuery, KeyedMemory, MemoryChanges, MemoryItem, memory_names};
