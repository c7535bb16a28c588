//! Random bytes for the process. They are the same in every run, so that the seed alone determines
//! the inputs.
//!
//! The maps of the standard library take their hash keys from `getrandom`. The iteration order
//! affects the coverage, and so the inputs that libFuzzer keeps. The function here replaces
//! `getrandom`.

use std::sync::atomic::{AtomicU64, Ordering};

static GIVEN: AtomicU64 = AtomicU64::new(0);

/// Fills `length` bytes at `bytes`. No two calls give the same bytes, because file names must
/// differ.
///
/// # Safety
///
/// As for `getrandom(2)`: `bytes` must be valid for writes of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(bytes: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller guarantees that the bytes are valid.
    let bytes = unsafe { std::slice::from_raw_parts_mut(bytes, length) };
    for part in bytes.chunks_mut(8) {
        let number = GIVEN.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        part.copy_from_slice(&number.to_le_bytes()[..part.len()]);
    }
    isize::try_from(length).unwrap_or(-1)
}
