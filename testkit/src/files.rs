//! The files below a folder.

#![expect(clippy::unwrap_used, reason = "a test fails if a file cannot be read")]

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files below a folder. Links are left out.
///
/// # Panics
/// If a folder cannot be read.
#[must_use]
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found
}

/// Returns the files below a folder whose content contains this text, sorted.
///
/// # Panics
/// If a folder or a file cannot be read.
#[must_use]
pub fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = files_below(folder);
    let has_text = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    found.retain(|file| has_text(&fs::read(file).unwrap()));
    found.sort();
    found
}

/// Returns the bytes of the files below a folder. A file that is removed meanwhile has none.
///
/// # Panics
/// If a folder cannot be read.
#[must_use]
pub fn bytes_below(folder: &Path) -> u64 {
    files_below(folder).iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}
