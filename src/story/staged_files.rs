//! Finds the files that a command line adds to the next commit.

use super::delivery::{git_verb, has_not_run};
use super::project_root::{ProjectRoot, shown_path};
use crate::model::claim::{ExecutedCommand, FactText};
use crate::shell;

/// The subcommands of git that add files to the next commit.
const VERBS: [&str; 4] = [" add ", " commit", " mv ", " rm "];
/// Options of `git commit` that take a value as a word of its own.
const VALUED: [&str; 8] =
    ["--author", "--cleanup", "--date", "--file", "--fixup", "--message", "--squash", "--template"];

/// The files that a command line adds to the next commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StagedFiles {
    /// All files, or files that the line does not name.
    All,
    /// The files with these paths, and the files in these folders.
    At(Vec<String>),
}

impl StagedFiles {
    /// Returns the files that a command line adds, by their shown paths; `None` if it adds none.
    pub(super) fn of(command: &ExecutedCommand, root: Option<&ProjectRoot>) -> Option<Self> {
        let text = command.command.as_ref()?;
        // Most commands have none of these words, and need no parsing.
        let line = text.preview();
        let may_add = line.contains("git ") && VERBS.iter().any(|verb| line.contains(verb));
        if !may_add || has_not_run(command) {
            return None;
        }
        let folder = command.working_dir.as_ref().map(FactText::preview);
        let mut folder = folder.or(root.map(ProjectRoot::as_str)).unwrap_or_default().to_owned();
        let parts = shell::split(line);
        let mut staged: Option<Vec<String>> = None;
        for (place, part) in parts.iter().enumerate() {
            let mut words = part.words.iter().map(String::as_str);
            let program = words.next().unwrap_or_default();
            if program == "cd" {
                folder = joined(&folder, words.next().unwrap_or("~"));
            }
            if program.rsplit('/').next() != Some("git") {
                continue;
            }
            let elsewhere = part.words.get(1).filter(|word| *word == "-C").and(part.words.get(2));
            let Some(verb) = git_verb(&mut words) else { continue };
            let paths = match named_files(verb, &words.collect::<Vec<_>>()) {
                None => continue,
                // Only the beginning of a long line is stored.
                Some(Self::At(_)) if text.whole().is_some() && place + 1 == parts.len() => {
                    return Some(Self::All);
                }
                Some(Self::At(paths)) => paths,
                Some(Self::All) => return Some(Self::All),
            };
            let staged = staged.get_or_insert_default();
            let folder = elsewhere.map_or_else(|| folder.clone(), |to| joined(&folder, to));
            for path in paths {
                let path = joined(&folder, &path);
                let is_root = root.is_some_and(|root| root.as_str() == path);
                if is_root || path.is_empty() || path.contains(['*', '?', '[', '$', '`', '~', ':'])
                {
                    return Some(Self::All);
                }
                staged.push(shown_path(root, &path).into_owned());
            }
        }
        staged.map(Self::At)
    }

    /// Returns whether the file with this shown path is among them.
    pub(super) fn contains(&self, path: &str) -> bool {
        let is_at = |at: &String| {
            let rest = path.strip_prefix(at.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match self {
            Self::All => true,
            Self::At(paths) => paths.iter().any(is_at),
        }
    }
}

/// Returns the files that a subcommand of git adds to the next commit, as they are named; `None` if
/// it adds none, or commits what earlier commands added.
fn named_files(verb: &str, arguments: &[&str]) -> Option<StagedFiles> {
    let has = |letter: char, name: &str| {
        arguments.iter().any(|word| {
            let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            *word == name || letters.is_some_and(|letters| letters.contains(letter))
        })
    };
    let plain = || arguments.iter().filter(|word| !word.starts_with('-'));
    let paths: Vec<String> = match verb {
        "add" if has('n', "--dry-run") => return None,
        // A part of a file may be added.
        "add" if has('p', "--patch") || has('i', "--interactive") || has('e', "--edit") => {
            Vec::new()
        }
        "add" if plain().next().is_none() => return Some(StagedFiles::All),
        "add" | "rm" | "mv" => plain().map(|path| (*path).to_owned()).collect(),
        "commit" if has('a', "--all") => return Some(StagedFiles::All),
        "commit" => {
            let paths = committed_paths(arguments);
            if paths.is_empty() {
                return None;
            }
            paths
        }
        _ => return None,
    };
    Some(StagedFiles::At(paths))
}

/// Returns the paths in the arguments of `git commit`, which then commits only these files.
fn committed_paths(arguments: &[&str]) -> Vec<String> {
    let mut paths = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let takes_value = match word.strip_prefix('-') {
            None => {
                paths.push((*word).to_owned());
                false
            }
            Some(letters) if letters.starts_with('-') => VALUED.contains(word),
            Some(letters) => letters.len() < 4 && letters.ends_with(['m', 'F', 'C', 'c', 't']),
        };
        if takes_value {
            words.next();
        }
    }
    paths
}

/// Returns a path relative to this folder, without `.` and `..`.
fn joined(folder: &str, path: &str) -> String {
    let whole = if folder.is_empty() || path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    let start = if whole.starts_with('/') { "/" } else { "" };
    format!("{start}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staged(line: &str) -> Option<StagedFiles> {
        let root = ProjectRoot::most_common(["/w"].into_iter());
        let command = ExecutedCommand {
            command: Some(line.into()),
            working_dir: Some("/w/sub".into()),
            ..ExecutedCommand::default()
        };
        StagedFiles::of(&command, root.as_ref())
    }

    #[test]
    fn the_files_that_a_line_adds_to_a_commit_are_known_by_their_names() {
        for (line, expected) in [
            ("git add a.rs ../b.rs && git commit -m x", &["sub/a.rs", "b.rs"][..]),
            ("cd /w && git add src/ && git commit -qm 'a b'", &["src"]),
            ("git -C /w add -f a.rs", &["a.rs"]),
            ("git add -A c d", &["sub/c", "sub/d"]),
            ("git commit -m 'fix: it' --author 'A B' -- a.rs", &["sub/a.rs"]),
            ("git mv a.rs b.rs", &["sub/a.rs", "sub/b.rs"]),
            ("git add /else/where.rs", &["/else/where.rs"]),
            ("git add -p a.rs", &[]),
        ] {
            let expected = expected.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(staged(line), Some(StagedFiles::At(expected)), "{line}");
        }
        for line in [
            "git add -A",
            "git add -u && git commit -m x",
            "git add ..",
            "git commit -am x",
            "git add '*.rs'",
            "git add $(git diff --name-only)",
            "cd $HOME/x && git add a.rs",
        ] {
            assert_eq!(staged(line), Some(StagedFiles::All), "{line}");
        }
        for line in
            ["git commit -m x", "git add -n .", "git status", "echo git add a", "git commit"]
        {
            assert_eq!(staged(line), None, "{line}");
        }
    }

    #[test]
    fn a_folder_contains_its_files() {
        let at = StagedFiles::At(vec!["src".to_owned(), "a.rs".to_owned()]);
        for (path, expected) in
            [("src/b.rs", true), ("a.rs", true), ("src2/b.rs", false), ("a.rs.orig", false)]
        {
            assert_eq!(at.contains(path), expected, "{path}");
        }
    }
}
