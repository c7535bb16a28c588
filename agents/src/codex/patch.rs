//! Patches in Codex's own form, and the command lines that pass one to `apply_patch`.

use super::LineContext;
use crate::claude_code::transcript_state::PatchedFile;
use crate::long_text;
use crate::shell::{self, CommandSeparator};
use forge_store::model::Value;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const HEADS: [&str; 3] = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];

/// Returns the files of a patch. Its paths are relative to `directory`; `pointer` leads to `text`,
/// which may hold more than the patch. Without a pointer, long parts are cut.
pub(super) fn files(
    scene: &LineContext<'_>,
    text: &str,
    pointer: &str,
    directory: Option<&str>,
) -> Vec<PatchedFile> {
    let mut files: Vec<(PatchedFile, usize, usize)> = Vec::new();
    let mut at = text.find(BEGIN).unwrap_or(0);
    for line in text.get(at..).unwrap_or_default().split_inclusive('\n') {
        let content = line.trim_end();
        if content.starts_with(END) {
            break;
        }
        if let Some(path) = HEADS.iter().find_map(|head| content.strip_prefix(head)) {
            let file = PatchedFile {
                path: place(scene.cwd, directory, path.trim()),
                moved_to: None,
                patch: Value::Null,
                added: 0,
                removed: 0,
            };
            files.push((file, at, at));
        } else if let Some((file, ..)) = files.last_mut() {
            if let Some(path) = content.strip_prefix("*** Move to: ") {
                file.moved_to = Some(place(scene.cwd, directory, path.trim()));
            } else if !content.starts_with("*** ") {
                file.added += u64::from(content.starts_with('+'));
                file.removed += u64::from(content.starts_with('-'));
            }
        }
        at += line.len();
        if let Some((_, _, end)) = files.last_mut() {
            *end = at;
        }
    }
    let files = files.into_iter().map(|(mut file, start, end)| {
        file.patch = if pointer.is_empty() {
            let part = text.get(start..end).unwrap_or_default();
            long_text::beginning(part, long_text::INLINE_BYTES).into()
        } else {
            long_text::part(text, start..end, scene.place, || format!("{}{pointer}", scene.base))
        };
        file
    });
    files.collect()
}

/// The path, relative to the session's directory, of a file that a command in another directory
/// names.
fn place(cwd: Option<&str>, directory: Option<&str>, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let Some(directory) = directory.filter(|_| is_relative(path)) else { return path.to_owned() };
    let cwd = cwd.unwrap_or_default().trim_end_matches('/');
    let below = match directory.trim_end_matches('/').strip_prefix(cwd) {
        Some("") if !cwd.is_empty() => return path.to_owned(),
        Some(below) if !cwd.is_empty() && below.starts_with('/') => below.trim_start_matches('/'),
        _ => directory.trim_end_matches('/'),
    };
    match below.strip_prefix("./").unwrap_or(below) {
        "" | "." => path.to_owned(),
        below => format!("{below}/{path}"),
    }
}

/// Whether a path is relative, on Unix and on Windows.
pub(super) fn is_relative(path: &str) -> bool {
    !path.starts_with(['/', '\\', '~']) && path.get(1..2) != Some(":")
}

/// How a command line uses `apply_patch`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApplyPatchCommand {
    /// Where the patch is applied, as far as the line changes the directory.
    pub(super) directory: Option<String>,
    /// Whether the line does nothing else.
    pub(super) alone: bool,
}

/// Returns how a command line passes a patch to `apply_patch`, if it does.
pub(super) fn applied(line: &str, directory: Option<&str>) -> Option<ApplyPatchCommand> {
    if !line.contains(BEGIN) {
        return None;
    }
    let commands = shell::split(line);
    let is_patch = |word: Option<&String>| {
        word.is_some_and(|word| matches!(word.as_str(), "apply_patch" | "applypatch"))
    };
    let mut here = directory.map(str::to_owned);
    let mut found = None;
    let mut alone = true;
    for command in &commands {
        if is_patch(command.words.first()) {
            found.get_or_insert(here.clone());
        } else if let [cd, to] = command.words.as_slice()
            && cd == "cd"
            && matches!(command.joint, CommandSeparator::And | CommandSeparator::Other)
        {
            here = Some(match (to.starts_with('/'), &here) {
                (false, Some(from)) => format!("{}/{to}", from.trim_end_matches('/')),
                _ => to.clone(),
            });
        } else {
            alone = false;
        }
    }
    Some(ApplyPatchCommand { directory: found?, alone })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_where_the_patch_is_applied() {
        for (directory, path, expected) in [
            (None, "a", "a"),
            (Some("/w/p"), "./a", "a"),
            (Some("/w/p/"), "a", "a"),
            (Some("/w/p/sub"), "a", "sub/a"),
            (Some("sub"), "a", "sub/a"),
            (Some("./sub/"), "a", "sub/a"),
            (Some("."), "a", "a"),
            (Some("/w/pq"), "a", "/w/pq/a"),
            (Some("/else"), "a", "/else/a"),
            (Some("sub"), "/x/a", "/x/a"),
        ] {
            assert_eq!(place(Some("/w/p"), directory, path), expected, "{directory:?} {path}");
        }
    }

    #[test]
    fn a_command_line_that_applies_a_patch_is_known() {
        let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
        let known = |directory: Option<&str>, alone| {
            Some(ApplyPatchCommand { directory: directory.map(str::to_owned), alone })
        };
        for (line, expected) in [
            (format!("apply_patch <<'EOF'\n{patch}\nEOF"), known(None, true)),
            (format!("cd sub && apply_patch <<EOF\n{patch}\nEOF\n"), known(Some("sub"), true)),
            (format!("cd a; cd b\napply_patch <<\"X\"\n{patch}\nX"), known(Some("a/b"), true)),
            (format!("apply_patch '{patch}'"), known(None, true)),
            (format!("apply_patch <<'EOF'\n{patch}\nEOF\ncargo test"), known(None, false)),
            (format!("cat <<'EOF'\napply_patch\n{patch}\nEOF"), None),
            (format!("echo '{patch}' | git apply"), None),
        ] {
            assert_eq!(applied(&line, None), expected, "{line}");
        }
        let line = format!("cd sub && apply_patch <<'EOF'\n{patch}\nEOF");
        assert_eq!(applied(&line, Some("/w")), known(Some("/w/sub"), true));
    }
}
