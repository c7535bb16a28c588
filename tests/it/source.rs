//! Reads the project's own files.

use std::fs;
use std::path::{Path, PathBuf};

/// All files under a folder with this extension, sorted, without build results and hidden folders.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("a listed entry is readable").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|own| own == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The code without lines that are only comments.
pub(crate) fn without_comments(code: &str) -> String {
    let kept = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    kept.collect::<Vec<_>>().join("\n")
}

/// The code before its tests, which are at the end of a file.
pub(crate) fn without_tests(code: &str) -> String {
    let mut lines = code.lines().collect::<Vec<_>>();
    if let Some(tests) = lines.windows(2).position(|pair| {
        pair.first() == Some(&"#[cfg(test)]")
            && !pair.last().is_some_and(|line| line.ends_with(';'))
    }) {
        lines.truncate(tests);
    }
    lines.join("\n")
}
