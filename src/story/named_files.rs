//! Finds the files that a command line adds to the next commit, and those whose edits it discards.

use super::delivery::{git_verb, has_not_run};
use super::project_root::{ProjectRoot, shown_path};
use crate::model::claim::{ExecutedCommand, FactText};
use crate::shell;

/// The subcommands of git that add files to the next commit.
const ADDING: [&str; 4] = [" add ", " commit", " mv ", " rm "];
/// The subcommands of git that discard edits.
const DISCARDING: [&str; 2] = [" checkout ", " restore "];
/// Options of `git commit` that take a value as a word of its own.
const VALUED: [&str; 8] =
    ["--author", "--cleanup", "--date", "--file", "--fixup", "--message", "--squash", "--template"];

/// The files that a command line names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NamedFiles {
    /// All files.
    All,
    /// The files with these paths, and the files in these folders.
    At(Vec<String>),
    /// Files that the line does not name, such as the files that match a pattern.
    Unclear,
}

impl NamedFiles {
    /// Returns the files that a command line adds to the next commit, by their shown paths; `None`
    /// if it adds none.
    pub(super) fn added(command: &ExecutedCommand, root: Option<&ProjectRoot>) -> Option<Self> {
        Self::read(command, root, &ADDING, added_files)
    }

    /// Returns the files whose edits a command line discarded, by their shown paths; `None` if it
    /// is not known to have discarded any.
    pub(super) fn discarded(command: &ExecutedCommand, root: Option<&ProjectRoot>) -> Option<Self> {
        let found = Self::read(command, root, &DISCARDING, discarded_files)?;
        (command.exit_code == Some(0) && found != Self::Unclear).then_some(found)
    }

    fn read(
        command: &ExecutedCommand,
        root: Option<&ProjectRoot>,
        verbs: &[&str],
        named_by: impl Fn(&str, &[&str]) -> Option<Self>,
    ) -> Option<Self> {
        let text = command.command.as_ref()?;
        // Most commands have none of these words, and need no parsing.
        let line = text.preview();
        let has_verb = line.contains("git ") && verbs.iter().any(|verb| line.contains(verb));
        if !has_verb || has_not_run(command) {
            return None;
        }
        let folder = command.working_dir.as_ref().map(FactText::preview);
        let mut folder = folder.or(root.map(ProjectRoot::as_str)).unwrap_or_default().to_owned();
        let commands = shell::split(line);
        let mut named: Option<Vec<String>> = None;
        for (place, command) in commands.iter().enumerate() {
            // Only the beginning of a long line is stored.
            let may_be_cut = text.whole().is_some() && place + 1 == commands.len();
            let inner = shell::inner_commands(command);
            // A `cd` in a shell ends with that shell.
            let mut inner_folder = inner.as_ref().map(|_| folder.clone());
            let folder = inner_folder.as_mut().unwrap_or(&mut folder);
            for part in inner.as_deref().unwrap_or(std::slice::from_ref(command)) {
                match Self::of_command(&part.words, (folder, root), may_be_cut, &named_by) {
                    None => {}
                    Some(Self::At(paths)) => named.get_or_insert_default().extend(paths),
                    Some(all_or_unclear) => return Some(all_or_unclear),
                }
            }
        }
        named.map(Self::At)
    }

    /// Returns the files that a command of git names, by their shown paths; `None` for another
    /// command. A `cd` changes the folder.
    fn of_command(
        command: &[String],
        (folder, root): (&mut String, Option<&ProjectRoot>),
        may_be_cut: bool,
        named_by: impl Fn(&str, &[&str]) -> Option<Self>,
    ) -> Option<Self> {
        let mut words = command.iter().map(String::as_str);
        let program = words.next().unwrap_or_default();
        if program == "cd" {
            *folder = joined(folder, words.next().unwrap_or("~"));
        }
        if program.rsplit('/').next() != Some("git") {
            return None;
        }
        let elsewhere = command.get(1).filter(|word| *word == "-C").and(command.get(2));
        let verb = git_verb(&mut words)?;
        let paths = match named_by(verb, &words.collect::<Vec<_>>())? {
            Self::At(_) if may_be_cut => return Some(Self::Unclear),
            Self::At(paths) => paths,
            all_or_unclear => return Some(all_or_unclear),
        };
        let folder = elsewhere.map_or_else(|| folder.clone(), |to| joined(folder, to));
        let mut shown = Vec::new();
        for path in paths {
            let path = joined(&folder, &path);
            if path.contains(['*', '?', '[', '$', '`', '~', ':']) {
                return Some(Self::Unclear);
            }
            if path.is_empty() || root.is_some_and(|root| root.as_str() == path) {
                return Some(Self::All);
            }
            shown.push(shown_path(root, &path).into_owned());
        }
        Some(Self::At(shown))
    }

    /// Returns whether the file with this shown path is or may be among them.
    pub(super) fn contains(&self, path: &str) -> bool {
        let is_at = |at: &String| {
            let rest = path.strip_prefix(at.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match self {
            Self::All | Self::Unclear => true,
            Self::At(paths) => paths.iter().any(is_at),
        }
    }
}

/// Returns the files that a subcommand of git adds to the next commit, as they are named; `None` if
/// it adds none, or commits what earlier commands added.
fn added_files(verb: &str, arguments: &[&str]) -> Option<NamedFiles> {
    let has = |letter: char, name: &str| has_option(arguments, letter, name);
    let plain = || arguments.iter().filter(|word| !word.starts_with('-'));
    let paths: Vec<String> = match verb {
        "add" if has('n', "--dry-run") => return None,
        // A part of a file may be added.
        "add" if has('p', "--patch") || has('i', "--interactive") || has('e', "--edit") => {
            Vec::new()
        }
        "add" if plain().next().is_none() => return Some(NamedFiles::All),
        "add" | "rm" | "mv" => plain().map(|path| (*path).to_owned()).collect(),
        "commit" if has('a', "--all") => return Some(NamedFiles::All),
        "commit" => {
            let paths = committed_paths(arguments);
            if paths.is_empty() {
                return None;
            }
            paths
        }
        _ => return None,
    };
    Some(NamedFiles::At(paths))
}

/// Returns the files whose edits a subcommand of git discards, as they are named; `None` if it
/// discards none.
fn discarded_files(verb: &str, arguments: &[&str]) -> Option<NamedFiles> {
    let has = |letter: char, name: &str| has_option(arguments, letter, name);
    let only_unstages = has('S', "--staged") && !has('W', "--worktree");
    if !matches!(verb, "checkout" | "restore") || only_unstages || has('p', "--patch") {
        return None;
    }
    // After `checkout`, a word without these characters is more likely a branch.
    let paths = arguments
        .iter()
        .filter(|word| !word.starts_with('-') && (verb == "restore" || word.contains(['.', '/'])));
    Some(NamedFiles::At(paths.map(|path| (*path).to_owned()).collect()))
}

/// Returns whether these arguments have an option with this letter or this name.
fn has_option(arguments: &[&str], letter: char, name: &str) -> bool {
    arguments.iter().any(|word| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        // The rest of a word after such a letter is its value: `-mtext`.
        let mut letters =
            letters.unwrap_or_default().chars().take_while(|one| !"mFCct".contains(*one));
        *word == name || letters.any(|one| one == letter)
    })
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

    fn in_sub(line: &str) -> (ExecutedCommand, Option<ProjectRoot>) {
        let command = ExecutedCommand {
            command: Some(line.into()),
            working_dir: Some("/w/sub".into()),
            exit_code: Some(0),
            ..ExecutedCommand::default()
        };
        (command, ProjectRoot::most_common(["/w"].into_iter()))
    }

    fn added(line: &str) -> Option<NamedFiles> {
        let (command, root) = in_sub(line);
        NamedFiles::added(&command, root.as_ref())
    }

    fn discarded(line: &str) -> Option<NamedFiles> {
        let (command, root) = in_sub(line);
        NamedFiles::discarded(&command, root.as_ref())
    }

    #[test]
    fn the_files_that_a_line_adds_to_a_commit_are_known_by_their_names() {
        for (line, expected) in [
            ("git add a.rs ../b.rs && git commit -m x", &["sub/a.rs", "b.rs"][..]),
            ("cd /w && git add src/ && git commit -qm 'a b'", &["src"]),
            ("git add a.rs && git commit -m'add a'", &["sub/a.rs"]),
            ("git -C /w add -f a.rs", &["a.rs"]),
            ("git add -A c d", &["sub/c", "sub/d"]),
            ("git commit -m 'fix: it' --author 'A B' -- a.rs", &["sub/a.rs"]),
            ("git mv a.rs b.rs", &["sub/a.rs", "sub/b.rs"]),
            ("git add /else/where.rs", &["/else/where.rs"]),
            ("git add -p a.rs", &[]),
            ("sh -c 'git add a.rs && git commit -m x'", &["sub/a.rs"]),
            ("cd .. && sh -c 'git add a.rs; make' && git commit -m x", &["a.rs"]),
            // Regression: the folder of the shell was taken for that of what follows it.
            ("sh -c 'cd x && make' && git add a.rs", &["sub/a.rs"]),
        ] {
            let expected = expected.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(added(line), Some(NamedFiles::At(expected)), "{line}");
        }
        for line in
            ["git add -A", "git add -u && git commit -m x", "git add ..", "git commit -am x"]
        {
            assert_eq!(added(line), Some(NamedFiles::All), "{line}");
        }
        for line in
            ["git add '*.rs'", "git add $(git diff --name-only)", "cd $HOME/x && git add a.rs"]
        {
            assert_eq!(added(line), Some(NamedFiles::Unclear), "{line}");
        }
        for line in
            ["git commit -m x", "git add -n .", "git status", "echo git add a", "git commit"]
        {
            assert_eq!(added(line), None, "{line}");
        }
    }

    #[test]
    fn the_files_whose_edits_a_line_discards_are_known_by_their_names() {
        for (line, expected) in [
            ("git checkout -- a.rs", &["sub/a.rs"][..]),
            ("git restore Makefile ../b.rs", &["sub/Makefile", "b.rs"]),
            ("git checkout main", &[]),
        ] {
            let expected = expected.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(discarded(line), Some(NamedFiles::At(expected)), "{line}");
        }
        assert_eq!(discarded("cd .. && git checkout ."), Some(NamedFiles::All));
        for line in ["git restore --staged a.rs", "git checkout -- '*.rs'", "git checkout -p a.rs"]
        {
            assert_eq!(discarded(line), None, "{line}");
        }
    }

    #[test]
    fn a_folder_contains_its_files() {
        let at = NamedFiles::At(vec!["src".to_owned(), "a.rs".to_owned()]);
        for (path, expected) in
            [("src/b.rs", true), ("a.rs", true), ("src2/b.rs", false), ("a.rs.orig", false)]
        {
            assert_eq!(at.contains(path), expected, "{path}");
        }
    }
}
