//! Every later version reads what a released version wrote: single encodings, and whole stores.

mod bundle;
mod bytes;
mod manifest;
mod remote;
mod rows;
mod store;

use std::fmt::Write as _;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The bytes of a golden file. With `FORGE_WRITE_GOLDEN=1` a missing one is created from `now`; an
/// existing one never changes.
fn kept(name: &str, now: &[u8]) -> Vec<u8> {
    let path = folder().join(format!("{name}.hex"));
    if !path.exists() && std::env::var_os("FORGE_WRITE_GOLDEN").is_some() {
        let lines = now.chunks(32).fold(String::new(), |mut text, line| {
            line.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
            text.push('\n');
            text
        });
        std::fs::write(&path, lines).unwrap();
    }
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let digits: Vec<u8> = text.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Checks that `now` equals the golden bytes, and returns them.
fn golden(name: &str, now: &[u8]) -> Vec<u8> {
    let kept = kept(name, now);
    assert!(kept == now, "{name}: the golden bytes are {kept:02x?}, now they would be {now:02x?}");
    kept
}
