//! Commands in the scripts of code mode, where the model calls its tools from JavaScript.

/// A command that a script contains as a string literal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LiteralCommand {
    pub(super) command: String,
    pub(super) directory: Option<String>,
}

/// The object whose functions are the tools.
const TOOLS: &str = "tools.";
/// The functions that run a command, each with its opening parenthesis.
const RUNNERS: [&str; 4] = ["exec_command(", "shell_command(", "local_shell(", "shell("];
/// The maximum number of command calls that are read from a script.
const MAX_SCRIPT_COMMANDS: usize = 64;

/// Returns the commands in a script, in order. A command that the script composes from parts is not
/// known.
pub(super) fn commands(script: &str) -> Vec<LiteralCommand> {
    let calls = tool_places(script).into_iter().filter_map(|at| {
        let call = script.get(at..)?.strip_prefix(TOOLS)?;
        RUNNERS.iter().find_map(|name| call.strip_prefix(name))
    });
    calls.take(MAX_SCRIPT_COMMANDS).filter_map(literal_command).collect()
}

/// Returns where the code of a script names the object of the tools. Its comments, texts and
/// regular expressions are skipped, but not the placeholders in its templates.
fn tool_places(script: &str) -> Vec<usize> {
    let mut places = Vec::new();
    // The number of open braces in each open placeholder.
    let mut placeholders: Vec<usize> = Vec::new();
    let mut before = ';';
    let mut at = 0;
    while let Some(rest) = script.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(length) = comment_length(rest) {
            at += length;
            continue;
        }
        let character = rest.chars().next().unwrap_or_default();
        let mut length = character.len_utf8();
        let mut in_template = false;
        match character {
            '/' if "(,=:[!&|?{};>".contains(before) || is_after_keyword(script, at) => {
                length = quoted_length(rest);
            }
            '"' | '\'' => length = quoted_length(rest),
            '`' => in_template = true,
            '{' => {
                if let Some(depth) = placeholders.last_mut() {
                    *depth += 1;
                }
            }
            '}' => match placeholders.last_mut() {
                Some(0) => {
                    placeholders.pop();
                    in_template = true;
                }
                Some(depth) => *depth -= 1,
                None => {}
            },
            _ if rest.starts_with(TOOLS) => places.push(at),
            _ => {}
        }
        if in_template {
            let (text, opens) = template_text(rest.get(length..).unwrap_or_default());
            length += text;
            if opens {
                placeholders.push(0);
            }
        }
        if !character.is_whitespace() {
            before = character;
        }
        at += length;
    }
    places
}

/// Returns the length of the comment with which this code begins; `None` if there is none.
fn comment_length(code: &str) -> Option<usize> {
    if code.starts_with("//") {
        return Some(code.find('\n').unwrap_or(code.len()));
    }
    let comment = code.strip_prefix("/*")?;
    Some(comment.find("*/").map_or(code.len(), |end| end + 4))
}

/// Returns the code after white space and comments.
fn after_comments(mut code: &str) -> &str {
    loop {
        code = code.trim_start();
        let Some(length) = comment_length(code) else { return code };
        code = code.get(length..).unwrap_or_default();
    }
}

/// Whether the code before this place ends with a keyword, so that a `/` here begins a regular
/// expression.
fn is_after_keyword(script: &str, at: usize) -> bool {
    const KEYWORDS: [&str; 4] = ["return", "typeof", "case", "in"];
    let before = script.get(..at).unwrap_or_default().trim_end();
    KEYWORDS.iter().any(|keyword| {
        before.strip_suffix(*keyword).is_some_and(|rest| {
            !rest.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.'))
        })
    })
}

/// Returns the length of a text or regular expression that begins with its quote. If its line has
/// no closing quote, returns the length of the rest of the line.
fn quoted_length(rest: &str) -> usize {
    let mut characters = rest.char_indices();
    let quote = characters.next().map(|(_, quote)| quote).unwrap_or_default();
    let (mut escaped, mut in_class) = (false, false);
    for (at, character) in characters {
        match character {
            _ if escaped => escaped = false,
            '\n' => return at,
            '\\' => escaped = true,
            '[' | ']' if quote == '/' => in_class = character == '[',
            _ if character == quote && !in_class => return at + quote.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of the text of a template up to its end or its next placeholder, with that
/// mark, and whether a placeholder begins.
fn template_text(rest: &str) -> (usize, bool) {
    let mut before = ' ';
    for (at, character) in rest.char_indices() {
        match (before, character) {
            ('\\', _) => before = ' ',
            ('$', '{') => return (at + 1, true),
            (_, '`') => return (at + 1, false),
            _ => before = character,
        }
    }
    (rest.len(), false)
}

/// Parses the command of a call. `arguments` begins after the opening parenthesis.
fn literal_command(arguments: &str) -> Option<LiteralCommand> {
    let mut rest = after_comments(arguments).strip_prefix('{')?;
    let (mut command, mut directory) = (None, None);
    let mut depth = 0_usize;
    let mut key: Option<String> = None;
    loop {
        rest = after_comments(rest);
        let Some(character) = rest.chars().next() else { break };
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        let raw = rest.strip_prefix("String.raw").filter(|template| template.starts_with('`'));
        match character {
            _ if raw.is_some() || matches!(character, '"' | '\'' | '`') => {
                let source = raw.unwrap_or(rest);
                let (text, end) = literal(source, raw.is_some())?;
                rest = source.get(end..).unwrap_or_default();
                if depth > 0 {
                    continue;
                }
                let follows = after_comments(rest).chars().next();
                match (key.take(), text) {
                    (None, Some(text)) if follows == Some(':') => key = Some(text),
                    (Some(name), text) if matches!(follows, Some(',' | '}')) => match name.as_str()
                    {
                        "cmd" | "command" => command = text,
                        "workdir" => directory = text,
                        _ => {}
                    },
                    _ => {}
                }
                continue;
            }
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => break,
            },
            ',' if depth == 0 => key = None,
            _ if depth == 0 && is_name(character) => {
                let end = rest.find(|next| !is_name(next)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                if after_comments(after).starts_with(':') {
                    key = Some(word.to_owned());
                } else {
                    // The value is not a string literal.
                    key = None;
                }
                rest = after;
                continue;
            }
            _ => {}
        }
        rest = after;
    }
    Some(LiteralCommand { command: command?, directory })
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// Parses the string literal at the beginning; returns its text and where it ends. The text is
/// `None` if it contains a placeholder or a numeric escape. A `raw` template has no escapes.
fn literal(script: &str, raw: bool) -> Option<(Option<String>, usize)> {
    let mut characters = script.char_indices();
    let (_, quote) = characters.next()?;
    let mut text = String::new();
    let mut plain = true;
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if raw => text.extend([character, characters.next()?.1]),
            '\\' => match characters.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '\n' => {}
                // Numeric escapes are rare in commands, so they are not resolved.
                'u' | 'x' => plain = false,
                other => text.push(other),
            },
            _ if character == quote => {
                return Some((plain.then_some(text), at + quote.len_utf8()));
            }
            '$' if quote == '`' && script.get(at..).is_some_and(|it| it.starts_with("${")) => {
                plain = false;
            }
            _ => text.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(script: &str) -> Vec<(String, Option<String>)> {
        commands(script).into_iter().map(|it| (it.command, it.directory)).collect()
    }

    #[test]
    fn commands_are_read_from_texts_only() {
        let one = |command: &str, directory: Option<&str>| {
            vec![(command.to_owned(), directory.map(str::to_owned))]
        };
        for (script, expected) in [
            (
                "const r=await tools.exec_command({cmd:\"cargo test\",workdir:\"/w/p\"}); text(r.output);",
                one("cargo test", Some("/w/p")),
            ),
            (
                "await tools.exec_command({ \"cmd\": 'echo \\'a\\'; exit 3' })",
                one("echo 'a'; exit 3", None),
            ),
            (
                "tools.exec_command({yield_time_ms: 10, env: {cmd: 'no'}, cmd: `make\\ntest`})",
                one("make\ntest", None),
            ),
            ("tools.exec_command({cmd: `make ${what}`})", vec![]),
            ("tools.exec_command({cmd: base + ' test'})", vec![]),
            ("tools.exec_command({cmd: 'make ' + what})", vec![]),
            ("tools.exec_command(options)", vec![]),
            ("my_exec_command({cmd: 'x'})", vec![]),
            ("tools.exec_command({cmd: 'open", vec![]),
            ("", vec![]),
            // Regression: a command in a comment between the arguments was recorded as a command
            // that ran, and a comment beside the command hid it.
            ("tools.exec_command({ // cmd: 'rm x',\n cmd })", vec![]),
            (
                "tools.exec_command({ // it's slow\n cmd /* a */: 'make' /* b */, // c\n workdir: '/w' })",
                one("make", Some("/w")),
            ),
            ("tools.exec_command(/* a */ { /*/ cmd: 'x' */ cmd: 'make' })", one("make", None)),
            ("tools.exec_command({cmd: String.raw`grep '\\d\\`'`})", one("grep '\\d\\`'", None)),
            ("tools.exec_command({cmd: String.raw`make ${what}`})", vec![]),
            ("tools.exec_command({cmd: String.raw(parts)})", vec![]),
            // Regression: a command in a comment or in a text was recorded as a command that ran.
            ("// tools.exec_command({cmd: 'x'})\ntext('it\\'s')", vec![]),
            ("/* tools.exec_command({cmd: 'x'}) */ text(`a`)", vec![]),
            ("text(\"tools.exec_command({cmd: 'x'})\")", vec![]),
            ("text(`tools.exec_command({cmd: 'x'}) \\` ${a}`)", vec![]),
            ("// it's\ntools.exec_command({cmd: 'make'})", one("make", None)),
            (
                "text(`${f({a: 1})} ${(await tools.exec_command({cmd: 'make'})).output}`)",
                one("make", None),
            ),
            (
                "const a = b.replace(/[\"/]/g, ''), c = tools.exec_command({cmd: 'make'})",
                one("make", None),
            ),
            // Regression: the quote in an expression hid the command after it.
            ("a.some(b => /[`'\"]/.test(b)); tools.exec_command({cmd: 'make'})", one("make", None)),
            (
                "f = a => { return /`/.test(a) }\ntools.exec_command({cmd: 'make'})",
                one("make", None),
            ),
            ("a = i++ / 2; tools.exec_command({cmd: 'make'})", one("make", None)),
            ("a = login / 2; tools.exec_command({cmd: 'make'}) // /", one("make", None)),
            ("const a = 'open\ntools.exec_command({cmd: 'make'})", one("make", None)),
            ("const a = b / c; tools.exec_command({cmd: 'make'}) // d", one("make", None)),
        ] {
            assert_eq!(shown(script), expected, "{script}");
        }
    }

    #[test]
    fn several_commands_keep_their_order() {
        let script = "const [a,b] = await Promise.all([tools.exec_command({cmd:'one'}),tools.shell_command({command:'two'})]);";
        let found = shown(script);
        assert_eq!(
            found.iter().map(|(command, _)| command.as_str()).collect::<Vec<_>>(),
            ["one", "two"]
        );
    }

    #[test]
    fn an_unterminated_script_is_read() {
        for piece in ["tools.exec_command({", "tools.exec_command({cmd:", "{", "'", "`"] {
            commands(&piece.repeat(20_000));
        }
    }
}
