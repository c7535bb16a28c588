//! What a released version wrote is read by every later one: single encodings, and a whole store.

mod bundle;
mod bytes;
mod manifest;
mod rows;
mod store;

use std::fmt::Write as _;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The bytes of a golden file. A new one is made from `now` with `FORGE_WRITE_GOLDEN=1`; one that exists never changes.
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

/// Checks that `now` are the golden bytes, and gives them.
fn golden(name: &str, now: &[u8]) -> Vec<u8> {
    let kept = kept(name, now);
    assert!(kept == now, "{name}: the golden bytes are {kept:02x?}, now they would be {now:02x?}");
    kept
}
