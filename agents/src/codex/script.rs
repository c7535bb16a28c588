//! Commands in the scripts of code mode, where the model calls its tools from JavaScript.

/// A command that a script contains as a string literal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LiteralCommand {
    pub(super) command: String,
    pub(super) directory: Option<String>,
}

/// The functions that run a command, each with its opening parenthesis.
const RUNNERS: [&str; 4] = ["exec_command(", "shell_command(", "local_shell(", "shell("];
/// The maximum number of command calls that are read from a script.
const MAX_SCRIPT_COMMANDS: usize = 64;

/// Returns the commands in a script, in order. A command that the script composes from parts is not
/// known.
pub(super) fn commands(script: &str) -> Vec<LiteralCommand> {
    let calls = script.match_indices("tools.").filter_map(|(at, tools)| {
        let call = script.get(at + tools.len()..)?;
        RUNNERS.iter().find_map(|name| call.strip_prefix(name))
    });
    calls.take(MAX_SCRIPT_COMMANDS).filter_map(literal_command).collect()
}

/// Parses the command of a call. `arguments` begins after the opening parenthesis.
fn literal_command(arguments: &str) -> Option<LiteralCommand> {
    let mut rest = arguments.trim_start().strip_prefix('{')?;
    let (mut command, mut directory) = (None, None);
    let mut depth = 0_usize;
    let mut key: Option<String> = None;
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        match character {
            '"' | '\'' | '`' => {
                let (text, end) = literal(rest)?;
                rest = rest.get(end..).unwrap_or_default();
                if depth > 0 {
                    continue;
                }
                let follows = rest.trim_start().chars().next();
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
                if after.trim_start().starts_with(':') {
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
/// `None` if it contains a placeholder or a numeric escape.
fn literal(script: &str) -> Option<(Option<String>, usize)> {
    let mut characters = script.char_indices();
    let (_, quote) = characters.next()?;
    let mut text = String::new();
    let mut plain = true;
    while let Some((at, character)) = characters.next() {
        match character {
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
