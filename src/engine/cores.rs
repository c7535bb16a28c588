//! How many cores there are.

use std::num::NonZero;
use std::sync::OnceLock;
use std::thread::available_parallelism;

/// How many threads may run at the same time, as it was when first asked: the system answers from several files, which
/// takes longer than to decode a delta.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
}
