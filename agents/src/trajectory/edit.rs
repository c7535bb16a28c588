//! Edits by the tools of SWE-agent (OpenHands uses some of them too): which file an action changes,
//! and whether it did.

/// An action that changes a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditAction<'a> {
    pub(super) tool: &'a str,
    /// The file, if the action names it; otherwise it is the open file.
    pub(super) path: Option<&'a str>,
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
    let verb = action.split_whitespace().next().unwrap_or_default();
    !TOOLS.contains(&verb)
}

/// Parses an action as an edit; `None` if it changes no file.
pub(super) fn parse_edit_action(action: &str) -> Option<EditAction<'_>> {
    let action = action.trim_start();
    let after = after_cd(action);
    let (tool, rest) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
    let path = match tool {
        "str_replace_editor" | "edit_anthropic" => {
            let (command, rest) = argument(rest, "--command")?;
            if !matches!(command, "create" | "str_replace" | "insert" | "undo_edit") {
                return None;
            }
            Some(argument(rest, "--path")?.0)
        }
        // Only the tools above name an absolute path, which a `cd` does not change.
        _ if after != action => return None,
        "edit" | "insert" | "append" => None,
        "create" => Some(word(rest.trim())?.0),
        _ => return None,
    };
    Some(EditAction { tool, path })
}

/// Returns the command line after `cd DIRECTORY &&` at its beginning.
fn after_cd(action: &str) -> &str {
    let mut action = action;
    while let Some((directory, after)) =
        action.strip_prefix("cd ").and_then(|it| it.split_once("&&"))
    {
        if directory.contains(['\n', ';', '|', '&']) {
            break;
        }
        action = after.trim_start();
    }
    action
}

/// Returns the first argument of a command line, which may be the value of this option, and the
/// text after it; `None` if another option comes first.
fn argument<'a>(line: &'a str, option: &str) -> Option<(&'a str, &'a str)> {
    let (first, rest) = word(line.trim_start())?;
    if first == option {
        return word(rest.trim_start());
    }
    if let Some(value) = first.strip_prefix(option).and_then(|value| value.strip_prefix('=')) {
        return Some((word(value)?.0, rest));
    }
    (!first.starts_with("--")).then_some((first, rest))
}

/// Returns the first word of a command line, without its quotes, and the text after it.
fn word(line: &str) -> Option<(&str, &str)> {
    let quote = line.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let (start, end) = match quote {
        Some(quote) => (1, 1 + line.get(1..)?.find(quote)?),
        None => (0, line.find(char::is_whitespace).unwrap_or(line.len())),
    };
    let word = line.get(start..end).filter(|word| !word.is_empty())?;
    Some((word, line.get(end + start..).unwrap_or_default()))
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
            ("str_replace_editor str_replace --old_str 'x' --path /r/b.py", None),
            // Regression: an edit after a line break or a `cd` was lost.
            ("\nedit 1:2\nx\nend_of_edit", Some(("edit", None))),
            (
                "cd /r && str_replace_editor create /r/b.py --file_text 'x'",
                Some(("str_replace_editor", Some("/r/b.py"))),
            ),
            ("cd /r && create b.py", None),
            ("cd /r; ls && str_replace_editor create /r/b.py", None),
            ("str_replace_editor view /r/b.py", None),
            ("str_replace_editor create", None),
            ("create", None),
            ("editor x", None),
            ("ls", None),
        ] {
            let found = parse_edit_action(action).map(|edit| (edit.tool, edit.path));
            assert_eq!(found, expected, "{action}");
        }
        assert!(is_shell("python -m pytest"));
        assert!(!is_shell("edit 1:1\ncargo test\nend_of_edit"));
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
