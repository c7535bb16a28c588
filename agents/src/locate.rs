//! Finds the transcripts of agents other than Claude Code on disk.

use crate::BYTE_ORDER_MARK;
use crate::claude_code::{TranscriptFile, folder_entries, oldest_first, transcript_at};
use crate::file_url::path_from_url;
use crate::lenient::LenientText;
use forge_store::plain_file;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirEntry};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The maximum number of bytes of a rollout that are searched for its working directory.
const FIRST_LINE_BYTES: u64 = 64 << 20;
/// The maximum number of bytes of Codex's list of names that are read.
const INDEX_BYTES: u64 = 64 << 20;

/// Returns the rollouts of Codex's sessions that began in one of these directories or below it,
/// oldest first. `home` is Codex's own directory, usually `~/.codex`. Archived and compressed
/// rollouts (`.jsonl.zst`) are included.
///
/// # Errors
/// If a folder exists and cannot be read.
pub fn codex_rollouts(home: &Path, projects: &[PathBuf]) -> io::Result<Vec<TranscriptFile>> {
    let mut found = Vec::new();
    // sessions/YEAR/MONTH/DAY/, and all archived ones in one folder.
    let mut folders = vec![home.join("sessions"), home.join("archived_sessions")];
    while let Some(folder) = folders.pop() {
        for path in folder_entries(&folder)?.iter().map(DirEntry::path) {
            if path.is_dir() {
                folders.push(path);
            } else if is_whole_rollout(&path)
                && directory_of_rollout(&path).is_some_and(|cwd| is_in_project(&cwd, projects))
            {
                found.extend(transcript_at(path, false));
            }
        }
    }
    Ok(oldest_first(found))
}

/// Whether a file is a complete rollout. A compressed rollout next to its original is still being
/// written.
fn is_whole_rollout(path: &Path) -> bool {
    if is_named(path, "rollout-", "jsonl") {
        return true;
    }
    let plain = path.with_extension("");
    is_named(path, "rollout-", "zst") && is_named(&plain, "rollout-", "jsonl") && !plain.exists()
}

/// Whether a directory is one of these or is below one, as written or with its links resolved.
fn is_in_project(directory: &Path, projects: &[PathBuf]) -> bool {
    let within = |it: &Path| projects.iter().any(|project| it.starts_with(project));
    within(directory) || fs::canonicalize(directory).is_ok_and(|it| within(&it))
}

/// Returns the name that a person gave to a session of Codex with `/rename`. No line of a rollout
/// has it: Codex appends it to a list of names in its own directory. This is one of the directories
/// around the rollout, or else `home`.
#[must_use]
pub fn codex_session_name(rollout: &Path, home: Option<&Path>, id: &str) -> Option<String> {
    let rollout = fs::canonicalize(rollout).unwrap_or_default();
    let mut folders = rollout.ancestors().chain(home);
    folders.find_map(|folder| last_name_in(&folder.join("session_index.jsonl"), id))
}

/// Returns the last name of a session in Codex's list of names.
fn last_name_in(index: &Path, id: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct NameEntry<'a> {
        #[serde(borrow)]
        id: LenientText<'a>,
        #[serde(borrow)]
        thread_name: LenientText<'a>,
    }
    let mut bytes = Vec::new();
    plain_file::open(index).ok()?.take(INDEX_BYTES).read_to_end(&mut bytes).ok()?;
    let mut names = bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let entry: NameEntry<'_> = serde_json::from_slice(line).ok()?;
        let name = entry.thread_name.text().map(str::trim)?;
        (entry.id.is(id) && !name.is_empty()).then(|| name.to_owned())
    });
    names.next_back()
}

/// Returns the recordings of Gemini CLI's sessions in one of these directories or below it, oldest
/// first. `home` is Gemini's own directory, usually `~/.gemini`. The file `.project_root` in a
/// folder of recordings names the project. Older versions did not write it: the name of their
/// folder is the hash of the project's path.
///
/// # Errors
/// If a folder exists and cannot be read.
pub fn gemini_recordings(home: &Path, projects: &[PathBuf]) -> io::Result<Vec<TranscriptFile>> {
    let mut found = Vec::new();
    for folder in folder_entries(&home.join("tmp"))?.iter().map(DirEntry::path) {
        let root = fs::read_to_string(folder.join(".project_root")).unwrap_or_default();
        let belongs = match root.trim() {
            "" => projects.iter().any(|it| folder.ends_with(sha256(it))),
            root => is_in_project(Path::new(root), projects),
        };
        if !belongs {
            continue;
        }
        for path in folder_entries(&folder.join("chats"))?.iter().map(DirEntry::path) {
            if is_named(&path, "session-", "jsonl") || is_named(&path, "session-", "json") {
                found.extend(transcript_at(path, false));
            }
        }
    }
    Ok(oldest_first(found))
}

/// Returns the SHA-256 of a path as hexadecimal digits.
fn sha256(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"))
}

fn is_named(path: &Path, begin: &str, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
        && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin))
}

/// Returns the directory that a rollout's first line names. The line contains Codex's instructions
/// and may be long, so it is read only up to the directory.
fn directory_of_rollout(path: &Path) -> Option<PathBuf> {
    let file = plain_file::open(path).ok()?;
    let bytes: Box<dyn Read> = if path.extension() == Some(OsStr::new("zst")) {
        Box::new(zstd::stream::read::Decoder::new(file).ok()?)
    } else {
        Box::new(file)
    };
    let mut bytes = BufReader::new(bytes.take(FIRST_LINE_BYTES));
    if bytes.fill_buf().ok()?.starts_with(BYTE_ORDER_MARK) {
        bytes.consume(BYTE_ORDER_MARK.len());
    }
    let mut cwd = None;
    let mut json = serde_json::Deserializer::from_reader(bytes);
    // Stops with an error once the directory is found.
    let _ = json.deserialize_map(NestedFieldSeed { names: &["payload", "cwd"], found: &mut cwd });
    // The directory may be a `file:` URL.
    cwd.map(|cwd| cwd.to_str().map(path_from_url).map_or(cwd, PathBuf::from))
}

/// Searches nested objects for the text at a path of field names, and stops there.
struct NestedFieldSeed<'n, 'f> {
    names: &'n [&'n str],
    found: &'f mut Option<PathBuf>,
}

impl<'de> Visitor<'de> for NestedFieldSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match self.names {
                [wanted] if *wanted == name => {
                    *self.found = Some(map.next_value()?);
                    return Err(de::Error::custom("found"));
                }
                [wanted, inner @ ..] if *wanted == name => {
                    map.next_value_seed(NestedFieldSeed { names: inner, found: self.found })?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for NestedFieldSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn first(cwd: &Path) -> String {
        let payload = serde_json::json!({"id": "s", "cwd": cwd});
        serde_json::json!({"type": "session_meta", "payload": payload}).to_string() + "\n"
    }

    #[test]
    fn rollouts_of_a_project_are_found_in_all_folders() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (home, project) = (root.join("codex"), root.join("p"));
        let elsewhere = root.join("fix");
        let long = format!(
            "{{\"type\":\"session_meta\",\"payload\":{{\"base_instructions\":{{\"text\":\"{}\"}},\"cwd\":{:?}}}}}\n",
            "x".repeat(3 << 20),
            project.join("sub"),
        );
        let small = first(&project);
        let marked = format!("\u{feff}{small}");
        let url = first(Path::new(&format!("file://{}", project.display())));
        let packed = zstd::bulk::compress(small.as_bytes(), 3).unwrap();
        for (name, bytes) in [
            ("sessions/2026/05/01/rollout-a.jsonl", small.as_bytes()),
            ("sessions/2026/05/01/rollout-long.jsonl", long.as_bytes()),
            ("sessions/2026/05/01/rollout-tree.jsonl", first(&elsewhere.join("src")).as_bytes()),
            ("archived_sessions/rollout-b.jsonl", small.as_bytes()),
            ("archived_sessions/rollout-bom.jsonl", marked.as_bytes()),
            ("archived_sessions/rollout-url.jsonl", url.as_bytes()),
            ("archived_sessions/rollout-c.jsonl.zst", &packed),
            // Half written next to its original, of another project, and not a rollout.
            ("sessions/2026/05/01/rollout-a.jsonl.zst", &packed[..4]),
            ("sessions/2026/05/01/rollout-other.jsonl", first(&root.join("pp")).as_bytes()),
            ("sessions/2026/05/01/notes.jsonl", small.as_bytes()),
            ("sessions/2026/05/01/rollout-junk.jsonl", b"junk"),
            ("sessions/2026/05/01/rollout-junk.jsonl.zst", b"junk"),
        ] {
            write(&home.join(name), bytes);
        }
        let mut names: Vec<String> = codex_rollouts(&home, &[project, elsewhere])
            .unwrap()
            .into_iter()
            .map(|one| one.path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let expected = [
            "rollout-a.jsonl", "rollout-b.jsonl", "rollout-bom.jsonl", "rollout-c.jsonl.zst",
            "rollout-long.jsonl", "rollout-tree.jsonl", "rollout-url.jsonl",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_last_name_of_a_session_is_found() {
        let root = tempfile::tempdir().unwrap();
        let (home, other) = (root.path().join("codex"), root.path().join("a.jsonl"));
        let rollout = home.join("sessions/2026/05/01/rollout-a.jsonl");
        write(&rollout, b"");
        write(&other, b"");
        assert_eq!(codex_session_name(&rollout, Some(&home), "a"), None);
        let names = r#"{"id":"a","thread_name":"first"}
{"id":"a","thread_name":" second "}
{"id":"b","thread_name":"other"}
{"id":"a","thread_name":""}
{"id":"a","thread_na"#;
        write(&home.join("session_index.jsonl"), names.as_bytes());
        for (file, home) in [(&rollout, None), (&other, Some(&*home))] {
            assert_eq!(codex_session_name(file, home, "a").as_deref(), Some("second"));
            assert_eq!(codex_session_name(file, home, "c"), None);
        }
        assert_eq!(codex_session_name(&other, None, "a"), None);
    }

    #[test]
    fn recordings_are_found_by_the_path_or_the_hash_of_their_project() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (home, project) = (root.join("gemini"), root.join("p"));
        let below = project.join("sub").to_string_lossy().into_owned();
        write(&home.join("tmp/slug/.project_root"), below.as_bytes());
        let (own, other) = (sha256(&project), sha256(&root));
        for (folder, name) in [("slug", "a"), (own.as_str(), "b"), (other.as_str(), "c")] {
            write(&home.join(format!("tmp/{folder}/chats/session-{name}.json")), b"{}");
        }
        let found = gemini_recordings(&home, &[project]).unwrap().into_iter();
        let mut names: Vec<String> =
            found.map(|one| one.path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, ["session-a.json", "session-b.json"]);
        assert!(sha256(Path::new("/home/user/project")).starts_with("9dad1e4e08b0b11c"));
    }
}
