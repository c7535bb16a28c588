//! Finds the transcripts of Claude Code on disk.

use super::reader::TranscriptDialect;
use super::record_split::{LinePart, session_of, split, trimmed};
use crate::lenient::LenientText;
use crate::long_text;
use forge_store::plain_file;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The maximum length of a folder's name, in UTF-16 units. A longer name is cut and gets a hash.
const NAME_UNITS: usize = 200;
/// How many bytes of a transcript are searched for the directory that it belongs to.
const SEARCHED_BYTES: u64 = 1 << 20;

/// A transcript on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptFile {
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last modified, if the file system says so.
    pub modified: Option<SystemTime>,
    /// Whether it is the transcript of a sub-agent (`agent-*.jsonl`) rather than of a session.
    pub sub_agent: bool,
}

/// Returns the transcripts of the sessions that began in one of these directories or below it, and
/// of their sub-agents. The transcript that was modified first comes first, but the transcript of a
/// sub-agent always comes after that of its session. `config` is Claude Code's own directory,
/// usually `~/.claude`.
///
/// The transcripts are in `projects/`, in a folder that is named after the absolute path of the
/// session's directory, with `-` for everything but ASCII letters and digits. A name of more than
/// 200 characters is cut to the first 200, followed by `-` and a hash. Different paths can have the
/// same folder name, so `belongs` decides by the directory that the transcript itself names. A
/// transcript that names no directory is returned if its folder is named after one of these.
///
/// # Errors
/// If a folder exists and cannot be read.
pub fn locate(
    config: &Path,
    directories: &[PathBuf],
    belongs: impl Fn(&Path) -> bool,
) -> io::Result<Vec<TranscriptFile>> {
    let names: Vec<String> = directories.iter().map(|directory| folder_name(directory)).collect();
    let mut found = Vec::new();
    for entry in folder_entries(&config.join("projects"))? {
        let name = entry.file_name().to_string_lossy().into_owned();
        let may_match = |wanted: &String| {
            wanted.get(..NAME_UNITS.min(wanted.len())).is_some_and(|start| name.starts_with(start))
        };
        if !names.iter().any(may_match) {
            continue;
        }
        let mut in_folder = Vec::new();
        collect(&entry.path(), &mut in_folder)?;
        found.extend(in_folder.into_iter().filter(|one| match directory_of(&one.path) {
            Some(directory) => belongs(&directory),
            None => names.contains(&name),
        }));
    }
    Ok(sessions_first(oldest_first(found)))
}

/// Moves the transcript of each sub-agent after that of its session, and keeps the order otherwise.
/// The reason: the transcript that is imported first gives the session its name.
fn sessions_first(found: Vec<TranscriptFile>) -> Vec<TranscriptFile> {
    let sessions = found.iter().enumerate().filter(|(_, one)| !one.sub_agent);
    let sessions: BTreeMap<PathBuf, usize> =
        sessions.map(|(place, one)| (one.path.clone(), place)).collect();
    let mut found: Vec<(usize, TranscriptFile)> = found.into_iter().enumerate().collect();
    found.sort_by_cached_key(|(place, one)| {
        let session = if one.sub_agent { session_file(&one.path) } else { None };
        let session = session.and_then(|path| sessions.get(&path).copied());
        (session.unwrap_or(*place), one.sub_agent, *place)
    });
    found.into_iter().map(|(_, one)| one).collect()
}

/// Returns the path of the transcript of a session, from the path of the transcript of one of its
/// sub-agents. Older clients keep both in one folder.
fn session_file(agent: &Path) -> Option<PathBuf> {
    let folder = agent.ancestors().find(|path| path.ends_with("subagents"));
    if let Some(session) = folder.and_then(Path::parent) {
        let name = session.file_name()?.to_string_lossy();
        return Some(session.with_file_name(format!("{name}.jsonl")));
    }
    let mut line = Vec::new();
    let mut lines = BufReader::new(File::open(agent).ok()?.take(SEARCHED_BYTES));
    lines.read_until(b'\n', &mut line).ok()?;
    let session = session_of(&line)?;
    Some(agent.with_file_name(format!("{session}.jsonl")))
}

/// Searches the other folders of `projects/` for the transcript of a session that is not at the
/// path `missing`. In a worktree, Claude Code may report the folder of the worktree, and write to
/// that of the repository.
#[must_use]
pub fn transcript_elsewhere(missing: &Path, session: &str) -> Option<PathBuf> {
    let name = missing.file_name().filter(|_| missing.file_stem() == Some(session.as_ref()))?;
    let projects = missing.parent()?.parent().filter(|folder| folder.ends_with("projects"))?;
    let entries = folder_entries(projects).ok()?.into_iter();
    let found = entries.filter_map(|entry| transcript_at(entry.path().join(name), false));
    found.max_by_key(|one| one.modified).map(|one| one.path)
}

/// Returns the entries of a folder; none if there is no such folder.
pub(crate) fn folder_entries(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// Returns the transcript at this path; `None` unless the path, after links, is a regular file.
pub(crate) fn transcript_at(path: PathBuf, sub_agent: bool) -> Option<TranscriptFile> {
    let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
    let (bytes, modified) = (metadata.len(), metadata.modified().ok());
    Some(TranscriptFile { path, bytes, modified, sub_agent })
}

pub(crate) fn oldest_first(mut found: Vec<TranscriptFile>) -> Vec<TranscriptFile> {
    found.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
    found
}

/// Collects the transcripts in the folder of a project. Newer versions of Claude Code keep the
/// transcripts of sub-agents, also in workflow runs, in a folder of the session.
fn collect(folder: &Path, found: &mut Vec<TranscriptFile>) -> io::Result<()> {
    let mut folders = vec![(folder.to_owned(), true)];
    while let Some((folder, top)) = folders.pop() {
        for entry in folder_entries(&folder)? {
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                let below = if top { path.join("subagents") } else { path };
                folders.push((below, false));
                continue;
            }
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let sub_agent = name.is_some_and(|name| name.starts_with("agent-"));
            let named = path.extension().is_some_and(|extension| extension == "jsonl");
            if named && (top || sub_agent) {
                found.extend(transcript_at(path, sub_agent));
            }
        }
    }
    Ok(())
}

/// Returns the first directory that a transcript names.
fn directory_of(path: &Path) -> Option<PathBuf> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct WorkingDirectoryLine<'a> {
        #[serde(borrow)]
        cwd: LenientText<'a>,
    }
    let read = |record: &[u8]| -> serde_json::Result<Option<PathBuf>> {
        let text = String::from_utf8_lossy(record);
        let text = long_text::readable_json(&text);
        let named: WorkingDirectoryLine<'_> = serde_json::from_str(&text)?;
        Ok(named.cwd.text().map(PathBuf::from))
    };
    let mut lines = BufReader::new(plain_file::open(path).ok()?.take(SEARCHED_BYTES));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        let whole = line.get(trimmed(&line)).unwrap_or_default();
        let directory = read(whole).unwrap_or_else(|_| {
            // The line holds several records, or an incomplete one before a complete one.
            let parts = split(&line, TranscriptDialect::ClaudeCode);
            parts.into_iter().find_map(|part| match part {
                LinePart::Record(range) => read(line.get(range)?).ok()?,
                LinePart::Lost(..) => None,
            })
        });
        if directory.is_some() {
            return directory;
        }
        line.clear();
    }
    None
}

/// Returns the name of the folder in which Claude Code keeps the transcripts of a directory.
fn folder_name(directory: &Path) -> String {
    // Claude Code counts UTF-16 units, as JavaScript does.
    let units: Vec<u16> = directory.to_string_lossy().encode_utf16().collect();
    let plain = |unit: &u16| {
        let character = char::from_u32((*unit).into());
        character.filter(char::is_ascii_alphanumeric).unwrap_or('-')
    };
    let name: String = units.iter().map(plain).collect();
    match name.get(..NAME_UNITS).filter(|_| name.len() > NAME_UNITS) {
        Some(start) => format!("{start}-{}", in_base_36(hash(&units).unsigned_abs())),
        None => name,
    }
}

/// Returns the hash of a text by the algorithm of Java's `String.hashCode`.
fn hash(units: &[u16]) -> i32 {
    units.iter().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add((*unit).into()))
}

fn in_base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_name_of_a_long_path_ends_in_its_hash() {
        // Expected: `Math.abs(hash).toString(36)` in JavaScript.
        assert_eq!((hash(&[]), hash(&"hello".encode_utf16().collect::<Vec<_>>())), (0, 99_162_322));
        assert_eq!((in_base_36(0), in_base_36(99_162_322)), ("0".into(), "1n1e4y".into()));
        let long = format!("/w/{}", "d/".repeat(120));
        let name = folder_name(Path::new(&long));
        assert!(name.starts_with(&"-w-d-d".to_owned()) && name.as_bytes().get(200) == Some(&b'-'));
        let short = format!("/{}", "d".repeat(199));
        assert_eq!(folder_name(Path::new(&short)).len(), 200);
    }

    #[test]
    fn transcripts_of_a_directory_are_found_by_the_directory_they_name() {
        let home = std::env::temp_dir().join(format!("forge-agents-locate-{}", std::process::id()));
        let project = PathBuf::from("/home/me/my_app.v2/ü");
        let find = || {
            let found =
                locate(&home, std::slice::from_ref(&project), |cwd| cwd.starts_with(&project))
                    .unwrap();
            let mut found: Vec<_> = found
                .into_iter()
                .map(|it| {
                    (it.path.strip_prefix(&home).unwrap().display().to_string(), it.sub_agent)
                })
                .collect();
            found.sort();
            found
        };
        assert_eq!(find(), []);
        let folder = "projects/-home-me-my-app-v2--";
        let cwd = |path: &str| format!("{{}}\n{{\"cwd\":\"{path}\"}}\n");
        for (file, text) in [
            ("s1.jsonl", "{}".to_owned()),
            ("agent-a1.jsonl", "{}".to_owned()),
            ("s1/subagents/agent-a2.jsonl", "{}".to_owned()),
            ("s1/subagents/workflows/w/agent-a3.jsonl", cwd("/home/me/my_app.v2/ü/sub")),
            ("s1/subagents/notes.jsonl", "{}".to_owned()),
            ("s1/tool-results/x.jsonl", "{}".to_owned()),
            ("s2.jsonl", cwd("/home/me/my-app-v2/x")),
            ("notes.txt", "{}".to_owned()),
            // Sessions of a directory below have a folder of their own.
            ("../-home-me-my-app-v2---sub/s3.jsonl", cwd("/home/me/my_app.v2/ü/sub")),
            ("../-home-me-my-app-v2---sub/s4.jsonl", "{}".to_owned()),
            ("../-home-me/s5.jsonl", cwd("/home/me")),
        ] {
            let path = home.join(folder).join(file);
            fs::create_dir_all(home.join(folder)).unwrap();
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir(home.join(folder).join("odd.jsonl")).unwrap();
        let found = find();
        fs::remove_dir_all(&home).unwrap();
        let expected = [
            ("projects/-home-me-my-app-v2---sub/s3.jsonl", false),
            ("projects/-home-me-my-app-v2--/agent-a1.jsonl", true),
            ("projects/-home-me-my-app-v2--/s1.jsonl", false),
            ("projects/-home-me-my-app-v2--/s1/subagents/agent-a2.jsonl", true),
            ("projects/-home-me-my-app-v2--/s1/subagents/workflows/w/agent-a3.jsonl", true),
        ];
        assert_eq!(found, expected.map(|(path, agent)| (path.to_owned(), agent)));
    }

    /// Regression: the directory after a mark, a NUL byte, or another record on the same line was
    /// not read, so that a session was offered to another project or to none.
    #[test]
    fn the_directory_is_read_from_a_damaged_first_line() {
        let path = std::env::temp_dir().join(format!("forge-agents-cwd-{}", std::process::id()));
        let own = r#"{"type":"user","sessionId":"s","cwd":"/p/sub"}"#;
        let torn = r#"{"type":"user","cwd":"/el"#;
        for before in ["\u{feff}", "\0\0", torn, r#"{"type":"summary"}"#] {
            fs::write(&path, format!("{before}{own}\n{{\"cwd\":\"/p\"}}\n")).unwrap();
            assert_eq!(directory_of(&path), Some(PathBuf::from("/p/sub")), "{before}");
        }
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_transcript_of_a_sub_agent_follows_that_of_its_session() {
        let home = std::env::temp_dir().join(format!("forge-agents-order-{}", std::process::id()));
        let project = PathBuf::from("/p");
        let folder = home.join("projects/-p");
        fs::create_dir_all(folder.join("s1/subagents")).unwrap();
        let files = ["agent-a1.jsonl", "s1/subagents/agent-a2.jsonl", "s1.jsonl", "s2.jsonl"];
        for (seconds, file) in (1..).zip(files) {
            let path = folder.join(file);
            fs::write(&path, "{\"sessionId\":\"s1\",\"cwd\":\"/p\"}\n").unwrap();
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        }
        let found = locate(&home, std::slice::from_ref(&project), |cwd| cwd == project).unwrap();
        fs::remove_dir_all(&home).unwrap();
        let names: Vec<_> = found.iter().map(|it| it.path.file_name().unwrap()).collect();
        assert_eq!(names, ["s1.jsonl", "agent-a1.jsonl", "agent-a2.jsonl", "s2.jsonl"]);
    }
}
