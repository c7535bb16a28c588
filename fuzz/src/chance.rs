//! What chance gives a process: here the same each time, so that a seed says what is tried.
//!
//! The maps of the standard library hash with keys from `getrandom`; which way they go shows in the coverage, and so
//! in what libFuzzer keeps. This one stands in its place.

use std::sync::atomic::{AtomicU64, Ordering};

static GIVEN: AtomicU64 = AtomicU64::new(0);

/// Fills `length` bytes at `bytes`: no two calls alike, for names of files must differ.
///
/// # Safety
///
/// As `getrandom(2)`: `bytes` must be good for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(bytes: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller vouches for the bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(bytes, length) };
    for part in bytes.chunks_mut(8) {
        let number = GIVEN.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        part.copy_from_slice(&number.to_le_bytes()[..part.len()]);
    }
    isize::try_from(length).unwrap_or(-1)
}
