//! Edits by the tools of SWE-agent (OpenHands uses some of them too): which file an action changes,
//! and whether it did.

use forge_store::shell;

/// An action that changes a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditAction {
    pub(super) tool: String,
    /// The file, if the action names it; otherwise it is the open file.
    pub(super) path: Option<String>,
}

/// Tools of SWE-agent that are not shell commands.
const TOOLS: &[&str] = &[
    "edit", "insert", "create", "append", "open", "goto", "scroll_up", "scroll_down", "find_file",
    "search_file", "search_dir", "str_replace_editor", "edit_anthropic", "filemap", "view_image",
    "submit", "submit_review_round", "exit_forfeit", "exit_cost", "exit_context", "exit_format",
    "skip",
];

/// Whether an action is a shell command.
pub(super) fn is_shell(action: &str) -> bool {
    let first = first_command(action).and_then(|(_, words)| words.into_iter().next());
    first.is_none_or(|tool| !TOOLS.contains(&tool.as_str()))
}

/// Parses an action as an edit; `None` if it changes no file.
pub(super) fn parse_edit_action(action: &str) -> Option<EditAction> {
    let (directory, words) = first_command(action)?;
    let (tool, arguments) = words.split_first()?;
    let path = match tool.as_str() {
        "str_replace_editor" | "edit_anthropic" => Some(edited_file(arguments)?.to_owned()),
        "edit" | "insert" | "append" => None,
        "create" => Some(within(directory.as_deref(), arguments.first()?)),
        _ => return None,
    };
    Some(EditAction { tool: tool.clone(), path })
}

/// Returns the words of the first command of an action that is no `cd`, and the directory to which
/// the commands before it change.
fn first_command(action: &str) -> Option<(Option<String>, Vec<String>)> {
    let mut directory: Option<String> = None;
    for command in shell::split(action) {
        match command.words.as_slice() {
            [program, path] if program == "cd" => {
                directory = Some(within(directory.as_deref(), path));
            }
            _ => return Some((directory, command.words)),
        }
    }
    None
}

/// Returns this path below the directory, if the path is relative and the directory is known. That
/// of `cd -` or `cd $DIR` is not.
fn within(directory: Option<&str>, path: &str) -> String {
    let below = path.strip_prefix("./").unwrap_or(path);
    match directory {
        Some(directory)
            if !path.starts_with('/')
                && !directory.starts_with(['-', '~'])
                && !directory.contains('$') =>
        {
            format!("{}/{below}", directory.trim_end_matches('/'))
        }
        _ => path.to_owned(),
    }
}

/// Returns the file that `str_replace_editor` with these arguments changes. The command and the
/// path are the first two arguments, or the values of options, in any order.
fn edited_file(arguments: &[String]) -> Option<&str> {
    let (mut command, mut path) = (None, None);
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else {
            let place = if command.is_none() { &mut command } else { &mut path };
            place.get_or_insert(word);
            continue;
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, words.next()),
        };
        match name {
            "command" => command = value,
            "path" => path = value,
            _ => {}
        }
    }
    let edits = matches!(command?, "create" | "str_replace" | "insert" | "undo_edit");
    path.filter(|path| edits && !path.is_empty())
}

/// Returns the file that the environment shows in its answer.
pub(super) fn shown_file(answer: &str) -> Option<&str> {
    answer.lines().find_map(|line| {
        let (path, lines) = line.strip_prefix("[File: ")?.rsplit_once(" (")?;
        lines.trim_end().ends_with(" lines total)]").then_some(path)
    })
}

/// Whether the environment's answer says that an edit was applied. `None` if it does not say.
pub(super) fn applied(answer: &str) -> Option<bool> {
    const NO: &[&str] = &[
        "Your proposed edit has introduced",
        "Your changes have NOT been applied",
        "Your edit was not applied",
        "No replacement was performed",
        "No changes were made",
        "No file opened",
        "No file open",
        "No edit history found",
        "No match found",
        "Cannot overwrite files using command",
        "already exists",
        "does not exist. Please",
        "is not an absolute path",
        "is a directory and only the `view`",
        " is required for command",
        "Invalid `insert_line`",
        "Invalid `path`",
        "Unrecognized command",
        "Usage: ",
        "usage: ",
        "command not found",
        "was cancelled because it took more than",
        "Ran into ",
        "Search text must not be empty",
        "Error: start_line",
        "Error: end_line",
    ];
    const YES: &[&str] = &[
        "File updated", "File created successfully", "Text replaced", "Edit successful",
        "has been edited", "undone successfully", "[File: ",
    ];
    // The tool's message is at the beginning. The rest is text of the file.
    let head: String = answer.trim_start().lines().take(3).collect::<Vec<_>>().join("\n");
    // After one of these on the first line comes only text of the file, which may say anything.
    const DONE: &[&str] =
        &["has been edited. ", "File created successfully", "undone successfully"];
    const BEGINS: &[&str] = &["[File: ", "File updated.", "Text replaced.", "Edit successful."];
    let first = answer.trim_start().lines().next().unwrap_or_default();
    let begun = BEGINS.iter().any(|it| first.starts_with(it));
    if begun || DONE.iter().any(|it| first.contains(it)) {
        return Some(true);
    }
    let rejected = answer.contains("Your changes have NOT been applied");
    if rejected || NO.iter().any(|it| head.contains(it)) {
        return Some(false);
    }
    let replaced = head.starts_with("Replaced ") && head.contains(" occurrences");
    let yes = replaced || YES.iter().any(|it| answer.contains(it));
    yes.then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_names_its_file_or_changes_the_open_one() {
        for (action, expected) in [
            ("edit 1:2\nx\nend_of_edit", Some(("edit", None))),
            ("insert 1\nz = 1\nend_of_insert", Some(("insert", None))),
            ("create a.py", Some(("create", Some("a.py")))),
            (
                "str_replace_editor create /r/b.py --file_text 'x'",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            (
                "str_replace_editor str_replace '/r/a b.py' --old_str 'x'",
                Some(("str_replace_editor", Some("/r/a b.py"))),
            ),
            (
                "str_replace_editor insert \"/r/b.py\" --insert_line 1",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            ("str_replace_editor undo_edit /r/b.py", Some(("str_replace_editor", Some("/r/b.py")))),
            // Regression: the name of the option was taken for the path.
            (
                "str_replace_editor str_replace --path /r/b.py --old_str 'x'",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            (
                "str_replace_editor --command insert --path='/r/b.py'",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            // Regression: an edit whose path comes after other options was lost.
            (
                "str_replace_editor str_replace --old_str '--path /r/c.py' --path /r/b.py",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            (
                "str_replace_editor --path=/r/b.py --command create",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            (
                "str_replace_editor insert --new_str 'x' /r/b.py",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            ("str_replace_editor --path /r/b.py --command view", None),
            (
                r"str_replace_editor create /r/a\ b.py --file_text 'it''s'",
                Some(("str_replace_editor", Some("/r/a b.py"))),
            ),
            (
                r#"str_replace_editor create '/r/a'"'"'b.py'"#,
                Some(("str_replace_editor", Some("/r/a'b.py"))),
            ),
            // Regression: an edit after a line break or a `cd` was lost.
            ("\nedit 1:2\nx\nend_of_edit", Some(("edit", None))),
            (
                "cd /r && str_replace_editor create /r/b.py --file_text 'x'",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            // Regression: an edit after `cd` or below a comment was lost.
            ("cd /r && edit 1:2\nx\nend_of_edit", Some(("edit", None))),
            ("cd /r && cd src && create ./b.py", Some(("create", Some("/r/src/b.py")))),
            (
                "# new\ncd /r; str_replace_editor create /r/b.py",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            ("cd /r\ncreate /q/b.py", Some(("create", Some("/q/b.py")))),
            // Regression: the path of a file began with `-` or a variable.
            ("cd - && create b.py", Some(("create", Some("b.py")))),
            ("cd ~ && create b.py", Some(("create", Some("b.py")))),
            ("cd $HOME/x && create b.py", Some(("create", Some("b.py")))),
            ("cd /r; ls && str_replace_editor create /r/b.py", None),
            ("str_replace_editor view /r/b.py", None),
            ("str_replace_editor create", None),
            ("create", None),
            ("editor x", None),
            ("ls", None),
        ] {
            let found = parse_edit_action(action);
            let found = found.as_ref().map(|edit| (edit.tool.as_str(), edit.path.as_deref()));
            assert_eq!(found, expected, "{action}");
        }
        assert!(is_shell("python -m pytest"));
        // Regression: a line that an edit writes was taken for a check.
        for edit in ["edit 1:1\ncargo test\nend_of_edit", "cd /r && edit 1:1\ncargo test"] {
            assert!(!is_shell(edit), "{edit}");
        }
        assert!(is_shell("cd /r && cargo test"));
        assert!(is_shell("cd /r"));
    }

    #[test]
    fn the_environment_shows_the_open_file() {
        for (answer, expected) in [
            ("[File: /r/a b.py (2 lines total)]\n1:x", Some("/r/a b.py")),
            ("File updated.\n[File: /r/a (1).py (2 lines total)]\n1:x", Some("/r/a (1).py")),
            ("1:[File: /r/a.py (2 lines total)]", None),
            ("[File: /r/a.py", None),
        ] {
            assert_eq!(shown_file(answer), expected, "{answer}");
        }
    }

    #[test]
    fn the_environment_reports_whether_an_edit_was_applied() {
        for (answer, expected) in [
            ("The file /r/b.py has been edited. Here's the result", Some(true)),
            ("[File: /r/a.py (2 lines total)]\n1:a\n2:z = 1", Some(true)),
            ("Replaced 2 occurrences. Please review", Some(true)),
            ("Your proposed edit has introduced new syntax error(s).\n[File: a]", Some(false)),
            (
                "No replacement was performed, old_str `x` did not appear verbatim in /r/b.py.",
                Some(false),
            ),
            ("No file opened. Use the `open` command first.", Some(false)),
            (
                "File already exists at: /r/b.py. Cannot overwrite files using command `create`.",
                Some(false),
            ),
            ("No edit history found for /r/b.py.", Some(false)),
            (
                "The file /r/b.py has been edited. Here's the result of `cat -n`:\n1\tUsage: b",
                Some(true),
            ),
            // Regression: the file's own text below these lines made the edit fail.
            ("[File: /r/a.py (2 lines total)]\n1:Usage: a\n2:Ran into a wall", Some(true)),
            (
                "Text replaced. Please review\n\n1. The\nYour changes have NOT been applied",
                Some(true),
            ),
            ("Search text must not be empty. Use insert to add new text.", Some(false)),
            ("Error: start_line must be less than or equal to end_line", Some(false)),
            ("", None),
            ("something else", None),
            // The file's own text does not count.
            ("The file /r/b.py has been edited.\n1\n2\n3\nUsage: b", Some(true)),
        ] {
            assert_eq!(applied(answer), expected, "{answer}");
        }
    }
}
