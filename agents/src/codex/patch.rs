//! Patches in Codex's own form, and the command lines that pass one to `apply_patch`.

use crate::claude_code::line_context::LineContext;
use crate::claude_code::open_call::PatchedFile;
use crate::command_words::is_patch_program;
use crate::long_text;
use forge_store::model::Value;
use forge_store::shell::{self, CommandSeparator};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const HEADS: [&str; 3] = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];

/// Returns the files of the patch in `text`, which may contain more than the patch. The paths of
/// the patch are relative to `directory`. `pointer` leads to `text`; if it is empty, long parts
/// are cut.
pub(super) fn files(
    context: &LineContext,
    text: &str,
    pointer: &str,
    directory: &PatchDirectory,
) -> Vec<PatchedFile> {
    files_from(context, text, text.find(BEGIN).unwrap_or(0), pointer, directory)
}

/// Returns the files of all patches of a command line, as [`files`] does for one. `directories` are
/// the directories of the patches.
pub(super) fn files_of_command(
    context: &LineContext,
    line: &str,
    pointer: &str,
    directories: &[PatchDirectory],
) -> Vec<PatchedFile> {
    let patches = begins(line).into_iter().zip(directories);
    patches.flat_map(|(at, directory)| files_from(context, line, at, pointer, directory)).collect()
}

/// Returns where the patches of a command line begin. A later patch begins on a line of its own or
/// after a quote, because a patch can also be a text in a patch.
fn begins(line: &str) -> Vec<usize> {
    let places = line.match_indices(BEGIN).map(|(at, _)| at).enumerate();
    let own = places.filter(|(number, at)| {
        let before = line.get(..*at).unwrap_or_default();
        *number == 0 || before.ends_with(['\n', '\t', '\'', '"'])
    });
    own.map(|(_, at)| at).collect()
}

fn files_from(
    context: &LineContext,
    text: &str,
    start: usize,
    pointer: &str,
    directory: &PatchDirectory,
) -> Vec<PatchedFile> {
    let mut files: Vec<(PatchedFile, usize, usize)> = Vec::new();
    let mut at = start;
    // A heredoc with `<<-` may indent its lines by tabs, which the shell removes.
    let indented = text.get(..at).is_some_and(|before| before.ends_with('\t'));
    // Codex allows space before a heading. In an update, a line with a space is a line of context.
    let mut updates = false;
    for line in text.get(at..).unwrap_or_default().split_inclusive('\n') {
        let content = line.trim_end();
        let content = if indented { content.trim_start_matches('\t') } else { content };
        let content = if updates { content } else { content.trim_start() };
        if content.starts_with(END) {
            break;
        }
        if let Some(path) = HEADS.iter().find_map(|head| content.strip_prefix(head)) {
            updates = content.starts_with("*** Update");
            let file = PatchedFile {
                path: place(context.cwd.as_deref(), directory, path.trim()),
                moved_to: None,
                patch: Value::Null,
                added: 0,
                removed: 0,
            };
            files.push((file, at, at));
        } else if let Some((file, ..)) = files.last_mut() {
            if let Some(path) = content.strip_prefix("*** Move to: ") {
                file.moved_to = Some(place(context.cwd.as_deref(), directory, path.trim()));
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
            context.part(text, start..end, pointer)
        };
        file
    });
    files.collect()
}

/// Returns the path of a file, relative to the session's directory if possible. `path` is relative
/// to `directory`, or absolute. The result begins with `?/` if the directory is not known.
fn place(cwd: Option<&str>, directory: &PatchDirectory, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let directory = match directory {
        PatchDirectory::Path(directory) if is_relative(path) => directory.as_str(),
        PatchDirectory::Unknown if is_relative(path) => return format!("?/{path}"),
        _ => return path.to_owned(),
    };
    // A path of Windows may have both separators.
    let slashed = |path: &str| match path.get(1..2) {
        Some(":") => path.replace('\\', "/"),
        _ => path.to_owned(),
    };
    let (cwd, directory) = (slashed(cwd.unwrap_or_default()), slashed(directory));
    let cwd = cwd.trim_end_matches('/');
    let below = match directory.trim_end_matches('/').strip_prefix(cwd) {
        Some("") if !cwd.is_empty() => return path.to_owned(),
        Some(below) if !cwd.is_empty() && below.starts_with('/') => below.trim_start_matches('/'),
        _ => directory.trim_end_matches('/'),
    };
    match without_dots(below).as_str() {
        "" => path.to_owned(),
        below => format!("{below}/{path}"),
    }
}

/// Resolves `.` and `..` in the path of a directory as `cd` does, except `..` at its beginning.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | "..")) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a path is relative, on Unix and on Windows.
pub(super) fn is_relative(path: &str) -> bool {
    !path.starts_with(['/', '\\', '~']) && path.get(1..2) != Some(":")
}

/// The maximum length of a directory that a command line enters. Longer ones are hardly real, and
/// to copy them for each command would take quadratic time.
const MAX_DIRECTORY_BYTES: usize = 4096;

/// The directory in which a patch is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatchDirectory {
    /// The directory of the session.
    Session,
    /// This directory; a relative path is relative to the directory of the session.
    Path(String),
    /// The directory is not known: only a shell could follow how the command line changes it.
    Unknown,
}

impl PatchDirectory {
    pub(super) fn from_call(directory: Option<&str>) -> Self {
        directory.map_or(Self::Session, |directory| Self::Path(directory.to_owned()))
    }

    /// Returns the directory after `cd` to this path.
    fn entered(&self, to: &str) -> Self {
        // A shell would replace such a path.
        if to.is_empty() || to.starts_with(['-', '+', '~']) || to.contains(['$', '`', '*', '?']) {
            return Self::Unknown;
        }
        // A path of Windows may have backslashes.
        let to = to.replace('\\', "/");
        let path = match self {
            Self::Unknown if is_relative(&to) => return Self::Unknown,
            Self::Path(from) if is_relative(&to) => {
                format!("{}/{to}", from.trim_end_matches('/'))
            }
            _ => to,
        };
        if path.len() > MAX_DIRECTORY_BYTES { Self::Unknown } else { Self::Path(path) }
    }
}

/// The commands that change the directory, in the shells of Unix and in PowerShell.
const DIRECTORY_CHANGES: [&str; 8] =
    ["cd", "chdir", "pushd", "popd", "sl", "set-location", "push-location", "pop-location"];

fn changes_directory(word: &str) -> bool {
    DIRECTORY_CHANGES.iter().any(|change| change.eq_ignore_ascii_case(word))
}

/// The directory of a command line, and those that `pushd` has saved.
struct DirectoryStack {
    here: PatchDirectory,
    pushed: Vec<PatchDirectory>,
}

impl DirectoryStack {
    /// Follows a command that may change the directory. Returns whether it does.
    fn follow(&mut self, words: &[String]) -> bool {
        let mut words = words.iter().map(String::as_str).peekable();
        let _ = words.next_if(|word| matches!(*word, "builtin" | "command"));
        let verb = words.next().unwrap_or_default().to_ascii_lowercase();
        let to: Vec<&str> = words.filter(|word| !is_directory_option(word)).collect();
        let next = match (verb.as_str(), to.as_slice()) {
            ("cd" | "set-location", [to]) => self.here.entered(to),
            ("pushd" | "push-location", [to]) if !to.starts_with(['+', '-']) => {
                self.pushed.push(self.here.clone());
                self.here.entered(to)
            }
            ("popd" | "pop-location", []) => self.pushed.pop().unwrap_or(PatchDirectory::Unknown),
            // In PowerShell, `sl` is `Set-Location`; elsewhere it is Sapling.
            (verb, _) if verb != "sl" && changes_directory(verb) => PatchDirectory::Unknown,
            _ => return false,
        };
        self.here = next;
        true
    }
}

/// Whether a word is an option of a change of the directory that does not change where it leads.
fn is_directory_option(word: &str) -> bool {
    let named = ["-Path", "-LiteralPath"];
    matches!(word, "--" | "-L" | "-P") || named.iter().any(|it| it.eq_ignore_ascii_case(word))
}

/// How a command line uses `apply_patch`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApplyPatchCommand {
    /// Where each patch is applied.
    pub(super) directories: Vec<PatchDirectory>,
    /// Whether the line does nothing but apply one patch, apart from changing the directory.
    pub(super) alone: bool,
}

/// Returns how a command line passes a patch to `apply_patch`, if it does.
pub(super) fn applied(line: &str, directory: Option<&str>) -> Option<ApplyPatchCommand> {
    let begins = begins(line);
    begins.first()?;
    // Whether a group ends before the patch of this number: its changes of the directory may end
    // with it, if it is a subshell, or may depend on a condition.
    let group_end = line.find([')', '}']).unwrap_or(line.len());
    let has_group = |number: usize| {
        let end = begins.get(number).copied().unwrap_or(line.len());
        group_end < end
    };
    let commands = shell::split(line);
    let is_patch = |word: Option<&String>| word.is_some_and(|word| is_patch_program(word));
    let is_out_null = |word: &String| word.eq_ignore_ascii_case("Out-Null");
    let is_powershell = commands.iter().any(|it| it.words.first().is_some_and(is_out_null));
    let start = PatchDirectory::from_call(directory);
    let mut stack = DirectoryStack { here: start.clone(), pushed: Vec::new() };
    let mut directories: Vec<PatchDirectory> = Vec::new();
    let mut alone = true;
    for command in &commands {
        if is_patch(command.words.first()) {
            if !directories.is_empty() && stack.here != start && has_group(directories.len()) {
                stack.here = PatchDirectory::Unknown;
            }
            directories.push(stack.here.clone());
            continue;
        }
        // A command in a pipeline changes only the directory of a subshell.
        let piped = command.joint == CommandSeparator::Pipe;
        if !piped && stack.follow(&command.words) {
            if has_group(directories.len()) {
                stack.here = PatchDirectory::Unknown;
            }
            continue;
        }
        alone = false;
        // A pipeline of PowerShell has no subshell, and the long names are PowerShell's alone.
        let changes = |word: &String| {
            changes_directory(word) && (!piped || is_powershell || word.contains('-'))
        };
        if command.words.iter().any(changes) {
            stack.here = PatchDirectory::Unknown;
        }
    }
    alone &= directories.len() == 1;
    (!directories.is_empty()).then_some(ApplyPatchCommand { directories, alone })
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
            let directory = PatchDirectory::from_call(directory);
            assert_eq!(place(Some("/w/p"), &directory, path), expected, "{directory:?} {path}");
        }
        for (directory, expected) in [
            (r"C:\w\p", "a"),
            (r"C:\w\p\sub", "sub/a"),
            ("C:/w/p/sub", "sub/a"),
            (r"C:\else", "C:/else/a"),
        ] {
            let directory = PatchDirectory::from_call(Some(directory));
            assert_eq!(place(Some(r"C:\w\p"), &directory, "a"), expected, "{directory:?}");
        }
    }

    #[test]
    fn a_command_line_that_applies_a_patch_is_known() {
        let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
        let known = |directory: Option<&str>, alone| {
            let directories = vec![PatchDirectory::from_call(directory)];
            Some(ApplyPatchCommand { directories, alone })
        };
        for (line, expected) in [
            (format!("apply_patch <<'EOF'\n{patch}\nEOF"), known(None, true)),
            (format!("cd sub && apply_patch <<EOF\n{patch}\nEOF\n"), known(Some("sub"), true)),
            (format!("cd a; cd b\napply_patch <<\"X\"\n{patch}\nX"), known(Some("a/b"), true)),
            (format!("apply_patch '{patch}'"), known(None, true)),
            (format!("apply_patch <<'EOF'\n{patch}\nEOF\ncargo test"), known(None, false)),
            (format!("apply_patch <<\\EOF\n{patch}\nEOF\ncargo test"), known(None, false)),
            (format!("cat <<'EOF'\napply_patch\n{patch}\nEOF"), None),
            (format!("echo '{patch}' | git apply"), None),
            // Regression: a command of Sapling was a change of the directory.
            (
                format!("sl pull && apply_patch <<'EOF'\n{patch}\nEOF"),
                Some(ApplyPatchCommand {
                    directories: vec![PatchDirectory::Unknown],
                    alone: false,
                }),
            ),
        ] {
            assert_eq!(applied(&line, None), expected, "{line}");
        }
        let line = format!("cd sub && apply_patch <<'EOF'\n{patch}\nEOF");
        assert_eq!(applied(&line, Some("/w")), known(Some("/w/sub"), true));
    }

    #[test]
    fn the_directory_of_a_patch_is_followed_or_not_known() {
        let patch = "*** Begin Patch\n*** Update File: a.txt\n*** End Patch";
        for (before, expected) in [
            ("pushd sub >/dev/null &&", "sub/a.txt"),
            ("pushd sub && popd &&", "a.txt"),
            ("cd x && pushd y && cd z && popd &&", "x/a.txt"),
            ("cd -- sub &&", "sub/a.txt"),
            ("cd -P sub &&", "sub/a.txt"),
            ("builtin cd 'a b' &&", "a b/a.txt"),
            ("cd sub | cat;", "a.txt"),
            ("make && cd sub &&", "sub/a.txt"),
            ("(cd sub && make);", "?/a.txt"),
            ("if true; then cd sub; fi;", "?/a.txt"),
            ("cd \"$ROOT\" &&", "?/a.txt"),
            ("cd ~/x &&", "?/a.txt"),
            ("cd - &&", "?/a.txt"),
            ("cd -2 &&", "?/a.txt"),
            ("cd +2 &&", "?/a.txt"),
            ("Set-Location -Path:sub;", "?/a.txt"),
            ("cd &&", "?/a.txt"),
            ("popd &&", "?/a.txt"),
            ("pushd +1 &&", "?/a.txt"),
            ("cd $X && cd /w/p/b &&", "b/a.txt"),
            // A group that has not ended.
            ("(cd sub &&", "sub/a.txt"),
            ("{ cd sub;", "sub/a.txt"),
            ("cd sub/../x/./y &&", "x/y/a.txt"),
            ("cd .. &&", "../a.txt"),
            // Regression: the path of a patch on Windows had the wrong directory, or none.
            (r"cd src\sub;", "src/sub/a.txt"),
            (r"cd .\sub &&", "sub/a.txt"),
            (r"cd ..\x &&", "../x/a.txt"),
            (r"cd a\ b &&", "a b/a.txt"),
            ("Set-Location sub;", "sub/a.txt"),
            (r"set-location -LiteralPath '.\a b';", "a b/a.txt"),
            ("sl sub;", "?/a.txt"),
            ("Push-Location sub; Pop-Location;", "a.txt"),
            ("Push-Location sub | Out-Null;", "?/a.txt"),
            ("cd sub | Out-Null;", "?/a.txt"),
            ("Set-Location $root;", "?/a.txt"),
            ("if (Test-Path x) { Set-Location x };", "?/a.txt"),
        ] {
            let line = format!("{before} apply_patch <<'EOF'\n{patch}\nEOF\npopd");
            let found = applied(&line, None).unwrap();
            let directory = &found.directories[0];
            assert_eq!(place(Some("/w/p"), directory, "a.txt"), expected, "{before}");
            assert_eq!(place(Some("/w/p"), directory, "/a.txt"), "/a.txt");
        }
    }

    /// Regression: the time was quadratic.
    #[test]
    fn many_changes_of_the_directory_are_followed_in_linear_time() {
        let patch = "apply_patch '*** Begin Patch\n*** Delete File: a\n*** End Patch'";
        for change in ["cd a; ", "pushd a; ", "Push-Location a; "] {
            let found = applied(&(change.repeat(100_000) + patch), None).unwrap();
            assert_eq!(found.directories, [PatchDirectory::Unknown], "{change}");
        }
    }

    #[test]
    fn a_heading_may_have_space_before_it_except_in_an_update() {
        let context = LineContext::new((0, 1), forge_store::model::Timestamp::default());
        let patch = "  *** Begin Patch\n *** Add File: a\n+ *** x\n *** Delete File: b\n \
            *** Update File: c\n@@\n *** Delete File: d\n-x\n+y\n *** End Patch\n+z\n\
            *** Delete File: e\n*** End Patch";
        let files = files(&context, patch, "", &PatchDirectory::Session);
        let files: Vec<_> =
            files.iter().map(|file| (&*file.path, file.added, file.removed)).collect();
        assert_eq!(files, [("a", 1, 0), ("b", 0, 0), ("c", 2, 1), ("e", 0, 0)]);
    }

    #[test]
    fn each_patch_of_a_command_line_has_its_directory() {
        let patch = |name: &str| {
            format!(
                "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {name}\n+*** Begin Patch\n*** End Patch\nEOF\n"
            )
        };
        let context = LineContext::new((0, 1), forge_store::model::Timestamp::default());
        for (line, expected) in [
            (patch("a") + &patch("b"), ["a", "b"]),
            (format!("cd x && {}cd ../y && {}", patch("a"), patch("b")), ["x/a", "y/b"]),
            (format!("(cd x && {}) && {}", patch("a"), patch("b")), ["x/a", "?/b"]),
        ] {
            let applied = applied(&line, None).unwrap();
            assert!(!applied.alone);
            let files = files_of_command(&context, &line, "", &applied.directories);
            assert_eq!(files.iter().map(|file| &*file.path).collect::<Vec<_>>(), expected);
        }
    }
}
