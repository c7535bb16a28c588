//! Where agents other than Claude Code keep their transcripts.

use crate::claude_code::Found;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The first line of a rollout is at most so long: it holds Codex's instructions.
const FIRST_LINE_BYTES: u64 = 1 << 20;

/// The rollouts of Codex's sessions that began in `project` or below it, oldest first. `home` is Codex's own directory,
/// usually `~/.codex`.
///
/// # Errors
/// A folder is there and cannot be read.
pub fn codex_rollouts(home: &Path, project: &Path) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    // sessions/YEAR/MONTH/DAY/
    let mut folders = vec![home.join("sessions")];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else if is_named(&path, "rollout-", "jsonl")
                && began_in(&path).is_some_and(|cwd| cwd.starts_with(project))
            {
                found.extend(found_at(path));
            }
        }
    }
    Ok(sorted(found))
}

/// The recordings of Gemini CLI's sessions in `project` or below it, oldest first. `home` is its own directory, usually
/// `~/.gemini`. A folder of recordings says in `.project_root` whose it is.
///
/// # Errors
/// A folder is there and cannot be read.
pub fn gemini_recordings(home: &Path, project: &Path) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for folder in entries(&home.join("tmp"))? {
        let root = fs::read_to_string(folder.join(".project_root")).unwrap_or_default();
        if root.is_empty() || !Path::new(root.trim()).starts_with(project) {
            continue;
        }
        for path in entries(&folder.join("chats"))? {
            if is_named(&path, "session-", "jsonl") || is_named(&path, "session-", "json") {
                found.extend(found_at(path));
            }
        }
    }
    Ok(sorted(found))
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

fn is_named(path: &Path, begin: &str, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
        && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin))
}

fn found_at(path: PathBuf) -> Option<Found> {
    let about = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
    Some(Found { bytes: about.len(), modified: about.modified().ok(), sub_agent: false, path })
}

fn sorted(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
    found
}

/// The directory that a rollout's first line names.
fn began_in(path: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct First {
        payload: Payload,
    }
    #[derive(Deserialize)]
    struct Payload {
        cwd: PathBuf,
    }
    let mut line = Vec::new();
    let file = File::open(path).ok()?.take(FIRST_LINE_BYTES);
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    Some(serde_json::from_slice::<First>(&line).ok()?.payload.cwd)
}
