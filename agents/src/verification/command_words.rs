//! What the words of one command say about its command line: what the command prints, which
//! variable it sets, and which files it shows.

use super::check_plan::{EchoedLine, file_name};
use super::visibility::OutputFilter;
use forge_store::shell::ShellWord;
use forge_store::shell::syntax_tree::{ShellCommand, ShellNode};

/// Commands that are assumed to succeed, so they do not explain a failure of the command line.
pub(super) const HARDLY_FAIL: &[&str] = &[
    "popd", "export", "unset", "pwd", "sleep", "true", ":", "date", "ulimit", "umask", "shopt",
    "clear", "alias", "trap", "wait", "tee", "sort", "uniq", "wc", "tr", "cut", "nl", "ts", "hash",
    "local", "declare", "readonly",
];
/// Commands that are assumed to fail only if a file cannot be read or changed. The output then has
/// an error.
pub(super) const FILE_COMMANDS: &[&str] = &[
    "source", ".", "cat", "head", "tail", "sed", "awk", "rm", "mkdir", "cp", "mv", "touch", "ln",
    "chmod",
];

/// The only exit codes with which these programs fail.
pub(super) const FAILURE_CODES: &[(&[&str], &[i64])] = &[
    (&["cmake"], &[1]),
    (&["git"], &[1, 128, 129, 141]),
    (&["test", "[", "[["], &[1, 2]),
    (&["pip", "pip3", "uv"], &[1, 2]),
];

/// Returns the texts of the words of a command, the program first.
pub(super) fn words(command: &ShellCommand) -> Vec<&str> {
    command.words.iter().map(|word| word.text.as_str()).collect()
}

/// Returns the program that a part of a command line runs; `None` if the part is not one command.
pub(super) fn program_of(node: &ShellNode) -> Option<&str> {
    let ShellNode::Command(command) = node else { return None };
    command.words.first().map(|word| word.text.as_str())
}

/// Returns the variable to which the next command of a list assigns the exit code (`rc=$?`), and
/// whether this is the code of the first program of a pipeline.
pub(super) fn exit_code_variable(next: Option<&(ShellNode, bool)>) -> Option<(String, bool)> {
    let Some((ShellNode::Command(command), _)) = next else { return None };
    let [assignment] = command.assignments.as_slice() else { return None };
    if !command.words.is_empty() {
        return None;
    }
    let (name, value) = assignment.text.split_once('=')?;
    let first = is_first_code(value);
    (first || matches!(value, "$?" | "${?}")).then(|| (name.to_owned(), first))
}

/// The forms of the exit code of the first program of a pipeline.
const FIRST_CODES: [&str; 6] = [
    "${PIPESTATUS[0]}", "${PIPESTATUS}", "$PIPESTATUS", "${pipestatus[1]}", "$pipestatus[1]",
    // In PowerShell, the other programs of a pipeline are usually cmdlets, which have none.
    "$LASTEXITCODE",
];

/// Whether a word is the exit code of the first program of a pipeline.
pub(super) fn is_first_code(word: &str) -> bool {
    FIRST_CODES.contains(&word)
}

/// Whether a word is the value of this variable: `$name` or `${name}`.
pub(super) fn is_variable(word: Option<&&str>, name: &str) -> bool {
    let braced = |word: &str| word.strip_prefix("${")?.strip_suffix('}').map(str::to_owned);
    word.is_some_and(|word| {
        word.strip_prefix('$') == Some(name) || braced(word).as_deref() == Some(name)
    })
}

/// Whether this program prints its arguments as one line.
pub(super) fn is_echo(program: &str) -> bool {
    matches!(program, "echo" | "Write-Host" | "Write-Output")
}

/// Returns the last line of the text that an `echo` gets.
pub(super) fn last_line_of_echo(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("-e ") else { return text };
    let rest = rest.trim().trim_end_matches("\\n");
    rest.rsplit("\\n").next().unwrap_or_default()
}

/// Returns the last line that a `printf` with a fixed text prints.
pub(super) fn last_line_of_printf(command: &ShellCommand) -> Option<String> {
    let [_, format] = command.words.as_slice() else { return None };
    let text = format.text.trim().strip_suffix("\\n")?.trim_end_matches("\\n");
    let last = text.rsplit("\\n").next().unwrap_or_default().trim();
    let is_plain = !format.expands && !last.is_empty() && !last.contains(['%', '\\', '\n']);
    is_plain.then(|| last.to_owned())
}

/// Returns the text that a `printf` with one variable prints. The text has the name of the variable
/// instead of its value.
fn text_of_printf(format: &ShellWord, value: &ShellWord) -> Option<String> {
    let text = format.text.strip_suffix("\\n")?;
    let mut forms = ["%s", "%d", "%i"].iter().filter_map(|form| text.split_once(form));
    let (before, after) = forms.next()?;
    let is_plain = |text: &str| !text.contains(['%', '$']);
    let is_one = is_plain(before) && is_plain(after) && !format.expands && value.expands;
    is_one.then(|| format!("{before}{}{after}", value.text))
}

/// Returns the text that an `echo`, or a `printf` with one value, prints. The text has the names of
/// variables instead of their values.
fn echoed_text(command: &ShellCommand) -> Option<String> {
    let (program, arguments) = command.words.split_first()?;
    if let ("printf", [format, value]) = (program.text.as_str(), arguments) {
        return text_of_printf(format, value);
    }
    if !is_echo(&program.text) {
        return None;
    }
    let mut text = String::new();
    for word in arguments.iter().skip_while(|word| word.text == "-e") {
        if !text.is_empty() {
            text.push(' ');
        }
        if !word.expands && word.text.contains('$') {
            return None;
        }
        text.push_str(&word.text);
    }
    Some(text)
}

/// Returns the last line that this command prints, if the command is an `echo`, or a `printf` with
/// one value, and the line has at most one variable.
pub(super) fn echoed_line(command: &ShellCommand, runs_once: bool) -> Option<EchoedLine> {
    let text = echoed_text(command)?;
    let text = text.rsplit("\\n").next().unwrap_or_default().trim();
    let Some((before, rest)) = text.split_once('$') else {
        return Some(EchoedLine { before: text.to_owned(), after: None, runs_once, is_code: true });
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let after = match (rest.strip_prefix('{'), rest.strip_prefix('?')) {
        (Some(braced), _) => braced.split_once('}')?.1,
        (None, Some(after)) => after,
        (None, None) => {
            let after = rest.trim_start_matches(is_name);
            rest.strip_prefix("pipestatus[1]").unwrap_or(after)
        }
    };
    let before = before.trim_start().to_owned();
    let after = (!after.contains('$')).then(|| after.to_owned())?;
    let codes =
        ["?", "{?}", "{PIPESTATUS", "PIPESTATUS", "{pipestatus", "pipestatus", "LASTEXITCODE"];
    let is_code = codes.iter().any(|name| rest.starts_with(name));
    Some(EchoedLine { before, after: Some(after), runs_once, is_code })
}

/// Returns whether the exit code that this command prints is the code of the first program of a
/// pipeline; `None` if the command does not print the variable `name` in its last line.
pub(super) fn printed_code(command: &ShellCommand, name: &str) -> Option<bool> {
    let text = echoed_text(command)?;
    let first = FIRST_CODES.into_iter().filter(|_| name == "?");
    let forms = [format!("${{{name}}}"), format!("${name}")];
    let forms = forms.iter().map(|form| (form.as_str(), false));
    let mut forms = forms.chain(first.map(|form| (form, true)));
    forms.find_map(|(form, of_first)| {
        let (before, after) = text.split_once(form)?;
        let goes_on = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let last = !after.contains("\\n");
        let whole = last && !before.contains('$') && !after.contains('$') && !goes_on;
        whole.then_some(of_first)
    })
}

/// Whether this program shows the contents of the files in its arguments.
fn shows_files(program: &str) -> bool {
    const READERS: [&str; 15] = [
        "tail", "head", "cat", "grep", "rg", "sed", "awk", "egrep", "fgrep", "less", "more", "bat",
        "tac", "nl", "Get-Content",
    ];
    READERS.contains(&program)
}

/// Programs whose subcommand `logs` shows what another program wrote.
const LOGGERS: &[&str] = &[
    "docker", "podman", "kubectl", "docker-compose", "nerdctl", "oc", "heroku", "fly", "flyctl",
    "aws", "gcloud", "az", "vercel", "railway", "pm2",
];

/// Whether these words call a program that shows what other programs wrote earlier.
pub(super) fn shows_other_output(words: &[&str]) -> bool {
    match words {
        ["sed", rest @ ..] => !rest.iter().any(|word| word.starts_with("-i")),
        ["git", "show", ..] | ["gh", "run", ..] | ["journalctl" | "curl" | "zcat" | "jq", ..] => {
            true
        }
        [program, rest @ ..] if LOGGERS.contains(program) => {
            rest.iter().take(3).any(|word| *word == "logs")
        }
        // It shows its input, which is a file.
        ["cat" | "tail" | "head"] => true,
        [program, _, ..] => shows_files(program),
        _ => false,
    }
}

/// Joins the commands of a list with the tests of their exit codes: `A; if [ $? -eq 0 ]; then B;
/// fi` becomes `if A; then B; fi`. So does `A; s=$?; if [ $s -eq 0 ]; then B; fi` if nothing else
/// uses the variable. `None` if there is no such test, or if the list sets options.
///
/// A test of the exit code of another test stays as it is. Otherwise each further test would be
/// nested more deeply.
pub(super) fn join_tests(items: &[(ShellNode, bool)]) -> Option<Vec<(ShellNode, bool)>> {
    if items.iter().any(|(node, _)| program_of(node) == Some("set")) {
        return None;
    }
    let mut joined = Vec::new();
    // The items before this one are in `joined`.
    let mut copied = 0;
    for (at, pair) in items.windows(2).enumerate() {
        let [item @ (before, false), (test, false)] = pair else { continue };
        if at < copied || is_read_in_list(item) {
            continue;
        }
        let tested = match exit_code_variable(pair.last()) {
            Some((name, of_first)) => {
                let later = items.get(at + 2..).unwrap_or_default();
                let tested = join_test_of_variable(later, before, &name);
                tested.filter(|_| !of_first).map(|tested| (tested, 3))
            }
            None => join_test(test, before, "?").map(|tested| (tested, 2)),
        };
        if let Some((tested, count)) = tested {
            joined.extend_from_slice(items.get(copied..at).unwrap_or_default());
            joined.push((tested, false));
            copied = at + count;
        }
    }
    if copied == 0 {
        return None;
    }
    joined.extend_from_slice(items.get(copied..).unwrap_or_default());
    Some(joined)
}

/// Whether an item of a list has a meaning for the items around it: it prints or keeps an exit
/// code, or waits for parts in the background.
fn is_read_in_list(item: &(ShellNode, bool)) -> bool {
    program_of(&item.0).is_some_and(|program| is_echo(program) || program == "wait")
        || exit_code_variable(Some(item)).is_some()
}

/// The maximum number of parts that are searched for a variable.
const MAX_SEARCHED: usize = 64;

/// Joins the command `before` with the test of its exit code in the first of these parts. The
/// variable `name` holds the exit code; `None` if it is used elsewhere.
fn join_test_of_variable(
    parts: &[(ShellNode, bool)],
    before: &ShellNode,
    name: &str,
) -> Option<ShellNode> {
    let ((test, false), later) = parts.split_first()? else { return None };
    if later.len() > MAX_SEARCHED || later.iter().any(|(node, _)| uses_variable(node, name)) {
        return None;
    }
    join_test(test, before, name).filter(|tested| !uses_variable(tested, name))
}

/// Whether a part of a command line uses a variable.
fn uses_variable(node: &ShellNode, name: &str) -> bool {
    let uses = |node: &ShellNode| uses_variable(node, name);
    match node {
        ShellNode::Command(command) => {
            let (plain, braced) = (format!("${name}"), format!("${{{name}"));
            let mut words = command.words.iter().chain(&command.assignments);
            words.any(|word| word.text.contains(&plain) || word.text.contains(&braced))
        }
        ShellNode::List(items) => items.iter().any(|(node, _)| uses(node)),
        ShellNode::Chain(links) => links.iter().any(|(_, node)| uses(node)),
        ShellNode::Pipe(parts) => parts.iter().any(uses),
        ShellNode::Not(inner) | ShellNode::Subshell(inner) | ShellNode::Redirected(inner, _) => {
            uses(inner)
        }
        ShellNode::If { arms, otherwise } => {
            arms.iter().any(|(when, then)| uses(when) || uses(then))
                || otherwise.as_deref().is_some_and(uses)
        }
        ShellNode::Loop { condition, body } => condition.as_deref().is_some_and(uses) || uses(body),
    }
}

/// Joins the command `before` with the test of its exit code with which a part begins. The variable
/// `name` holds the exit code.
fn join_test(node: &ShellNode, before: &ShellNode, name: &str) -> Option<ShellNode> {
    match node {
        ShellNode::Command(command) => {
            let words = words(command);
            let (["[", code, operator, "0", "]"]
            | ["[[", code, operator, "0", "]]"]
            | ["test", code, operator, "0"]) = words.as_slice()
            else {
                return None;
            };
            // A test of `PIPESTATUS` proves nothing: zsh does not have this variable.
            if !is_variable(Some(code), name) {
                return None;
            }
            let failed = ShellNode::Not(Box::new(before.clone()));
            match *operator {
                // The exit code is that of the test, not that of the command.
                "-eq" | "=" | "==" => Some(ShellNode::Not(Box::new(failed))),
                "-ne" | "-gt" | "!=" => Some(failed),
                _ => None,
            }
        }
        ShellNode::List(items) => match items.as_slice() {
            [(only, false)] => join_test(only, before, name),
            _ => None,
        },
        ShellNode::Chain(links) => {
            let ((operator, first), rest) = links.split_first()?;
            let first = (*operator, join_test(first, before, name)?);
            // Programs that show the output of the command in a file are found only in later items.
            let file = match before {
                ShellNode::Command(command) => command.file.as_str(),
                ShellNode::Redirected(_, file) => file.as_str(),
                _ => "",
            };
            let mut shown = Vec::new();
            rest.iter().for_each(|(_, node)| collect_readers(node, file, &mut shown));
            if !shown.is_empty() {
                return None;
            }
            Some(ShellNode::Chain(std::iter::once(first).chain(rest.iter().cloned()).collect()))
        }
        ShellNode::If { arms, otherwise } => {
            let ((when, then), rest) = arms.split_first()?;
            let first = (join_test(when, before, name)?, then.clone());
            let arms = std::iter::once(first).chain(rest.iter().cloned()).collect();
            Some(ShellNode::If { arms, otherwise: otherwise.clone() })
        }
        _ => None,
    }
}

/// Collects the commands in a part of a command line that show the contents of this file, and the
/// programs that their output is piped through.
pub(super) fn collect_readers(node: &ShellNode, file: &str, found: &mut Vec<OutputFilter>) {
    let mut each = |node: &ShellNode| collect_readers(node, file, found);
    match node {
        ShellNode::Command(command) if !command.redirected => {
            let OutputFilter { words } = OutputFilter::from_node(node);
            let shows = words.first().is_some_and(|program| {
                shows_files(program) || (file.starts_with('$') && program == "echo")
            });
            let of_file = |word: &String| file_name(word) == file_name(file);
            if shows && !file.is_empty() && words.iter().skip(1).any(of_file) {
                found.push(OutputFilter { words });
            }
        }
        ShellNode::Chain(links) => links.iter().for_each(|(_, node)| each(node)),
        ShellNode::Pipe(parts) => {
            let before = found.len();
            let first = parts.first();
            first.into_iter().for_each(|node| collect_readers(node, file, found));
            if found.len() > before {
                found.extend(parts.iter().skip(1).map(OutputFilter::from_node));
            }
        }
        ShellNode::List(items) => items.iter().for_each(|(node, _)| each(node)),
        _ => {}
    }
}
