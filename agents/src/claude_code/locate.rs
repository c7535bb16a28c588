//! Where the agent keeps its transcripts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A transcript on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was last written, if the file system says so.
    pub modified: Option<SystemTime>,
    /// Whether it is a sub-agent's own (`agent-*.jsonl`) rather than a session's.
    pub sub_agent: bool,
}

/// The transcripts of the sessions that ran in `project`, oldest first, sub-agents' files included.
///
/// They lie in `.claude/projects/` of the home directory, in a folder named after the project's absolute path with
/// everything but ASCII letters and digits replaced by `-`. A folder that is not there holds none.
///
/// # Errors
/// The folder is there and cannot be read.
pub fn locate(home: &Path, project: &Path) -> io::Result<Vec<Found>> {
    let folder = home.join(".claude/projects").join(folder_name(project));
    let mut found = Vec::new();
    collect(&folder, &mut found)?;
    // Newer versions keep sub-agents in a folder of their session.
    for entry in read(&folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path().join("subagents"), &mut found)?;
        }
    }
    found.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
    Ok(found)
}

fn read(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        Err(error) => Err(error),
    }
}

fn collect(folder: &Path, found: &mut Vec<Found>) -> io::Result<()> {
    for entry in read(folder)? {
        let path = entry?.path();
        // Through links; whatever is no plain file is no transcript.
        let Ok(about) = fs::metadata(&path) else { continue };
        if about.is_file() && path.extension().is_some_and(|extension| extension == "jsonl") {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            found.push(Found {
                bytes: about.len(),
                modified: about.modified().ok(),
                sub_agent: name.is_some_and(|name| name.starts_with("agent-")),
                path,
            });
        }
    }
    Ok(())
}

fn folder_name(project: &Path) -> String {
    let path = project.to_string_lossy();
    // The agent counts UTF-16 units.
    path.encode_utf16()
        .map(|unit| char::from_u32(unit.into()).filter(char::is_ascii_alphanumeric).unwrap_or('-'))
        .collect()
}
