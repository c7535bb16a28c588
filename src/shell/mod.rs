//! Parses command lines, as far as is needed to know which programs they run.
//!
//! This is not a shell: nothing is expanded. Quotes, escapes, here-documents and substitutions are
//! recognised, so that their contents are not taken for commands. [`split`] returns the programs as
//! a flat list; [`syntax_tree::read`] also returns the lists, pipes, groups and conditions that
//! contain them.

mod git_commit_line;
pub mod syntax_tree;

pub use git_commit_line::GitCommitLine;

/// Quotes a word for a shell, if it must be quoted.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns the line that a shell is called with, as in `bash -lc LINE`. Before the line, the call
/// may have only options that do not change what the line does.
#[must_use]
pub fn shell_line<'a>(words: &[&'a str]) -> Option<&'a str> {
    let [program, options @ .., flag, line] = words else { return None };
    let program = program.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
    let only = |known: &[&str]| {
        options.iter().all(|option| known.iter().any(|it| it.eq_ignore_ascii_case(option)))
    };
    let is_line = match program.strip_suffix(".exe").unwrap_or(&program) {
        "sh" | "bash" | "zsh" | "dash" | "ash" | "ksh" | "csh" | "tcsh" | "fish" => {
            let has_line = flag.starts_with('-') && !flag.starts_with("--") && flag.contains('c');
            has_line && only(&["-l", "--login"])
        }
        "pwsh" | "powershell" => {
            let has_line = flag.eq_ignore_ascii_case("-c") || flag.eq_ignore_ascii_case("-command");
            has_line
                && only(&["-NoProfile", "-NoLogo", "-NonInteractive", "-ExecutionPolicy", "Bypass"])
        }
        "cmd" => flag.eq_ignore_ascii_case("/c") && only(&["/d", "/s"]),
        _ => false,
    };
    is_line.then_some(*line)
}

/// Returns the line that a shell gets from a command line that does nothing else, as in `bash -lc
/// 'LINE'`.
#[must_use]
pub fn line_of_shell(line: &str) -> Option<String> {
    let commands = split(line);
    let [command] = commands.as_slice() else { return None };
    inner_line(command).map(str::to_owned)
}

fn inner_line(command: &SimpleCommand) -> Option<&str> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    shell_line(&words)
}

/// Returns the programs of the line that a shell gets; `None` if the command is no such shell.
pub(crate) fn inner_commands(command: &SimpleCommand) -> Option<Vec<SimpleCommand>> {
    inner_line(command).map(split).filter(|inner| !inner.is_empty())
}

/// Returns the programs of a command line, in order. In place of a shell that gets a line, as in
/// `bash -lc LINE`, it has the programs of that line.
#[must_use]
pub fn split_inner(line: &str) -> Vec<SimpleCommand> {
    let mut done = Vec::new();
    for command in split(line) {
        let Some(mut inner) = inner_commands(&command) else {
            done.push(command);
            continue;
        };
        if let Some(last) = inner.last_mut() {
            last.joint = command.joint;
        }
        done.append(&mut inner);
    }
    done
}

/// The operator after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandSeparator {
    /// `|`: the output of the command is the input of the next one.
    Pipe,
    /// `&&`: the next command runs only if this one succeeds.
    And,
    /// `||`, `;`, `&` or a new line. The exit code of the line does not show whether this command
    /// succeeded.
    Other,
    /// No operator: this is the last command.
    End,
}

/// One program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Its words without quotes. Assignments before the program and redirections are left out.
    pub words: Vec<String>,
    /// The operator after the command.
    pub joint: CommandSeparator,
}

/// A word of a command line, without its quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellWord {
    /// The word itself.
    pub text: String,
    /// Whether a part of it was quoted or escaped, so that it is not a keyword.
    pub quoted: bool,
    /// Whether a shell would expand a variable or a substitution in it.
    pub expands: bool,
}

/// A token of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ShellToken {
    Word(ShellWord),
    /// The output is redirected to the file of this name; the name is empty if no word follows.
    Redirected {
        file: String,
        appends: bool,
    },
    /// The error output is redirected to a file.
    ErrorsRedirected,
    /// The error output goes to where the output goes: `2>&1`, `|&`.
    ErrorsMerged,
    /// `|`
    Pipe,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;` or a new line
    End,
    /// `&`
    Background,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// Returns the programs of a command line, in order.
#[must_use]
pub fn split(line: &str) -> Vec<SimpleCommand> {
    let mut done: Vec<SimpleCommand> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    // Whether the last word was `NAME=`, and how many brackets of an array are open.
    let (mut is_named, mut open) = (false, 0_usize);
    for token in tokens(line) {
        match token {
            ShellToken::Open if open > 0 || is_named => open += 1,
            ShellToken::Close if open > 0 => open -= 1,
            _ => {}
        }
        is_named = false;
        if open > 0 {
            continue;
        }
        let joint = match token {
            ShellToken::Word(word) => {
                is_named = word.text.ends_with('=') && is_assignment(&word.text);
                let bracket = matches!(word.text.as_str(), "{" | "}" | "!");
                if !words.is_empty() || !(bracket || is_assignment(&word.text)) {
                    words.push(word.text);
                }
                continue;
            }
            // These end no command. So the operator after a group is that of its last command.
            ShellToken::Redirected { .. }
            | ShellToken::ErrorsRedirected
            | ShellToken::ErrorsMerged
            | ShellToken::Open
            | ShellToken::Close => continue,
            ShellToken::Pipe => CommandSeparator::Pipe,
            ShellToken::And => CommandSeparator::And,
            ShellToken::Or | ShellToken::End | ShellToken::Background => CommandSeparator::Other,
        };
        if !words.is_empty() {
            done.push(SimpleCommand { words: std::mem::take(&mut words), joint });
        }
    }
    if let Some(last) = done.last_mut() {
        last.joint = CommandSeparator::End;
    }
    done
}

fn tokens(line: &str) -> Vec<ShellToken> {
    let mut parser = ShellLexer { rest: line, ..ShellLexer::default() };
    parser.run();
    parser.done
}

#[derive(Default)]
struct ShellLexer<'a> {
    rest: &'a str,
    done: Vec<ShellToken>,
    word: Option<ShellWord>,
    /// Whether the next word is the target of a redirection.
    redirected: bool,
    /// The index of the redirection that the next word is the file name of.
    file_of: Option<usize>,
    /// The end words of the here-documents that begin on this line, and whether tabs may be before
    /// them.
    heredocs: Vec<(String, bool)>,
    /// The nesting depth of substitutions.
    depth: u32,
}

/// Substitutions nested deeper than this are read as plain characters.
const MAX_DEPTH: u32 = 16;

impl<'a> ShellLexer<'a> {
    fn take(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = self.rest.get(next.len_utf8()..).unwrap_or_default();
        Some(next)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest.strip_prefix(prefix);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    /// Returns whether this bracket follows the dollar sign that was read last.
    fn opens(&self, bracket: char) -> bool {
        self.depth < MAX_DEPTH && self.rest.starts_with(bracket)
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().text.push(character);
    }

    fn quotes(&mut self) {
        self.word.get_or_insert_default().quoted = true;
    }

    fn expands(&mut self) {
        self.word.get_or_insert_default().expands = true;
    }

    fn run(&mut self) {
        while let Some(character) = self.take() {
            match character {
                '\\' => match self.take() {
                    Some('\n') | None => {}
                    Some(escaped) => {
                        self.quotes();
                        if self.separates_before(escaped) {
                            self.push('\\');
                        }
                        self.push(escaped);
                    }
                },
                quote @ ('\'' | '"' | '`') => self.quoted(quote),
                '$' if self.eat("'") => self.escaped_quotes(),
                '$' => self.dollar(false),
                '#' if self.word.is_none() => {
                    self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
                }
                '\n' => {
                    self.operator(ShellToken::End);
                    self.skip_heredocs();
                }
                '<' | '>' => self.redirection(character),
                '|' if self.eat("|") => self.operator(ShellToken::Or),
                '|' => {
                    if self.eat("&") {
                        self.end_word();
                        self.done.push(ShellToken::ErrorsMerged);
                    }
                    self.operator(ShellToken::Pipe);
                }
                '&' if self.eat("&") => self.operator(ShellToken::And),
                '&' if self.rest.starts_with('>') => {}
                '&' => self.operator(ShellToken::Background),
                ';' => self.operator(ShellToken::End),
                '(' => self.operator(ShellToken::Open),
                ')' => self.operator(ShellToken::Close),
                blank if blank.is_whitespace() => self.end_word(),
                other => self.push(other),
            }
        }
        self.operator(ShellToken::End);
    }

    /// Returns whether the backslash before this character is one in a path of Windows. A shell of
    /// Unix needs none before a letter or digit inside a word, or before a dot after `.` or `..`.
    /// Models write `\_` for an underscore, but not `\__`.
    fn separates_before(&self, next: char) -> bool {
        let word = self.word.as_ref().map_or("", |word| word.text.as_str());
        let is_windows = word.get(1..2) == Some(":")
            || [r".\", r"..\"].iter().any(|beginning| word.starts_with(beginning));
        let separates = match next {
            '.' => is_windows || word == "." || word.ends_with(".."),
            '_' => is_windows || matches!(word, "." | "..") || self.rest.starts_with('_'),
            next => next.is_alphanumeric(),
        };
        let before = |c: char| c.is_alphanumeric() || matches!(c, '.' | ':' | '_' | '-');
        separates && word.ends_with(before)
    }

    fn dollar(&mut self, is_quoted: bool) {
        self.expands();
        self.push('$');
        if self.opens('(') {
            self.substitution();
        } else if self.opens('{') {
            self.expansion(is_quoted);
        }
    }

    fn quoted(&mut self, quote: char) {
        self.quotes();
        if quote == '`' {
            self.expands();
        }
        while let Some(character) = self.take() {
            match character {
                end if end == quote => return,
                '\\' if quote != '\'' => match self.take() {
                    Some('\n') | None => {}
                    Some(escaped) => {
                        // In double quotes, other characters keep their backslash.
                        if quote == '"' && !matches!(escaped, '$' | '`' | '"' | '\\') {
                            self.push('\\');
                        }
                        self.push(escaped);
                    }
                },
                '$' if quote == '"' => self.dollar(true),
                other => self.push(other),
            }
        }
    }

    /// Parses the rest of `$'...'`. Only escaped quotes and backslashes are decoded.
    fn escaped_quotes(&mut self) {
        self.quotes();
        while let Some(character) = self.take() {
            match character {
                '\'' => return,
                '\\' => match self.take() {
                    Some(escaped @ ('\'' | '"' | '\\')) => self.push(escaped),
                    Some(escaped) => {
                        self.expands();
                        self.push(escaped);
                    }
                    None => {}
                },
                other => self.push(other),
            }
        }
    }

    /// Adds `(...)` to the word as it is. Quotes and here-documents inside are recognised, so that
    /// a bracket in one of them does not end the substitution.
    fn substitution(&mut self) {
        let mut inner = ShellLexer { depth: self.depth + 1, ..ShellLexer::default() };
        let mut depth = 0_u32;
        while let Some(character) = self.take() {
            self.push(character);
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                '\'' | '"' => {
                    inner.rest = self.rest;
                    inner.quoted(character);
                    self.copy_up_to(inner.rest);
                }
                '<' if self.rest.starts_with('<') && !self.rest.starts_with("<<") => {
                    inner.rest = self.rest;
                    inner.take();
                    inner.heredoc_word();
                    self.copy_up_to(inner.rest);
                }
                '\n' => {
                    inner.rest = self.rest;
                    inner.skip_heredocs();
                    self.copy_up_to(inner.rest);
                }
                '$' if inner.depth < MAX_DEPTH && self.rest.starts_with('{') => {
                    inner.rest = self.rest;
                    inner.expansion(false);
                    self.copy_up_to(inner.rest);
                }
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Adds `{...}` to the word as it is. A bracket in quotes, after a backslash or in another
    /// expansion does not end it. In double quotes, a single quote is a plain character.
    fn expansion(&mut self, is_quoted: bool) {
        let mut inner = ShellLexer { depth: self.depth + 1, ..ShellLexer::default() };
        let mut depth = 0_u32;
        while let Some(character) = self.take() {
            self.push(character);
            match character {
                '{' if depth == 0 => depth = 1,
                '}' => depth -= 1,
                '\\' => {
                    if let Some(escaped) = self.take() {
                        self.push(escaped);
                    }
                }
                '\'' if is_quoted => {}
                '\'' | '"' | '`' => {
                    inner.rest = self.rest;
                    inner.quoted(character);
                    self.copy_up_to(inner.rest);
                }
                '$' if self.eat("{") => {
                    self.push('{');
                    depth += 1;
                }
                '$' if self.opens('(') => self.substitution(),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Adds the text before `rest` to the word, and goes on at `rest`.
    fn copy_up_to(&mut self, rest: &'a str) {
        let read = self.rest.len() - rest.len();
        let text = self.rest.get(..read).unwrap_or_default();
        self.word.get_or_insert_default().text.push_str(text);
        self.rest = rest;
    }

    fn redirection(&mut self, direction: char) {
        let number =
            self.word.as_ref().filter(|word| word.text.bytes().all(|b| b.is_ascii_digit()));
        let stdout = direction == '>' && number.is_none_or(|number| number.text == "1");
        let stderr = direction == '>' && number.is_some_and(|number| number.text == "2");
        let is_plain = direction == '>' && number.is_none();
        if number.is_some() {
            self.word = None;
        }
        self.end_word();
        self.file_of = None;
        let mut appends = false;
        if direction == '<' && self.eat("<") {
            if !self.eat("<") {
                self.heredoc_word();
                return;
            }
        } else {
            appends = self.eat(">");
            self.eat("|");
            // `>& FILE` is for both outputs, like `&> FILE`.
            let is_file = |rest: &str| {
                let rest = rest.trim_start_matches([' ', '\t']);
                !rest.starts_with(|it: char| it.is_ascii_digit() || matches!(it, '-' | '$' | '('))
            };
            if is_plain && self.rest.strip_prefix('&').is_some_and(is_file) {
                self.eat("&");
            } else if self.eat("&") || self.rest.starts_with('(') {
                self.redirected = !self.rest.starts_with('(');
                if stderr && self.rest.starts_with('1') {
                    self.done.push(ShellToken::ErrorsMerged);
                }
                return;
            }
        }
        // `/dev/stdout` and `/dev/stderr` are the present outputs.
        let is_stream = self.rest.trim_start_matches([' ', '\t']).starts_with("/dev/std");
        if stdout && !is_stream {
            self.file_of = Some(self.done.len());
            self.done.push(ShellToken::Redirected { file: String::new(), appends });
        } else if stderr {
            self.done.push(ShellToken::ErrorsRedirected);
        }
        self.redirected = true;
    }

    /// Parses the end word of a here-document.
    fn heredoc_word(&mut self) {
        let indented = self.eat("-");
        let text = self.rest.trim_start_matches([' ', '\t']);
        let end = text.find([' ', '\t', '\n', ';', '|', '&', ')', '>', '<']).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        let end = word.trim_end_matches('\r').replace(['\'', '"', '\\'], "");
        self.heredocs.push((end, indented));
    }

    /// Skips the lines of the here-documents that began on the line before.
    fn skip_heredocs(&mut self) {
        for (end, indented) in std::mem::take(&mut self.heredocs) {
            while !self.rest.is_empty() {
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                // Only `<<-` allows tabs before the last line.
                let line = if indented { line.trim_start_matches('\t') } else { line };
                if line.trim_end_matches('\r') == end {
                    break;
                }
            }
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let file_of = self.file_of.take();
        if !std::mem::take(&mut self.redirected) {
            self.done.push(ShellToken::Word(word));
        } else if let Some(ShellToken::Redirected { file, .. }) =
            file_of.and_then(|index| self.done.get_mut(index))
        {
            *file = word.text;
        }
    }

    fn operator(&mut self, operator: ShellToken) {
        self.end_word();
        self.redirected = false;
        self.file_of = None;
        self.done.push(operator);
    }
}

/// Returns whether a word is an assignment, such as `NAME=value` or `NAME+=value`.
#[must_use]
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_if_a_shell_would_change_it() {
        assert_eq!(quoted("/usr/bin/forge-1.0"), "/usr/bin/forge-1.0");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    fn shown(line: &str) -> String {
        let joint = |joint| match joint {
            CommandSeparator::Pipe => " | ",
            CommandSeparator::And => " && ",
            CommandSeparator::Other => " ; ",
            CommandSeparator::End => "",
        };
        split(line).iter().map(|it| it.words.join(" ") + joint(it.joint)).collect()
    }

    #[test]
    fn the_line_of_a_shell_is_found_if_nothing_else_is_called() {
        for (line, expected) in [
            (
                r#"bash -lc "git add -A && git commit -m 'a b'""#,
                "git add -A && git commit -m 'a b'",
            ),
            ("/bin/sh -c make 2>&1", "make"),
            ("cd /w && bash -lc make", ""),
            ("bash run.sh -c make", ""),
            ("git commit -c HEAD", ""),
        ] {
            let expected = Some(expected.to_owned()).filter(|line| !line.is_empty());
            assert_eq!(line_of_shell(line), expected, "{line}");
        }
    }

    #[test]
    fn a_line_is_split_where_a_shell_would() {
        for (line, expected) in [
            ("go test ./... 2>&1 | tail -5", "go test ./... | tail -5"),
            ("cd /a && RUST_LOG=x cargo test; echo $?", "cd /a && cargo test ; echo $?"),
            ("a || b &\nc &> log", "a ; b ; c"),
            ("echo 'a; b' \"c && d\" e\\;f", "echo a; b c && d e;f"),
            (r#"grep "a\|b\"\$c\\d" 'e\|f'"#, r#"grep a\|b"$c\d e\|f"#),
            ("(cd x && make) > out.txt", "cd x && make"),
            ("! { a; b; }", "a ; b"),
            ("x >file <in 2>>err y", "x y"),
            (r"a $'it\'s; b' || c", "a it's; b ; c"),
            ("# only a remark\ntrue # and one", "true"),
            ("a \\\n  b;", "a b"),
            // Regression: the programs and files of Windows lost their directories.
            (r".\gradlew.bat test", r".\gradlew.bat test"),
            (r"C:\py\python.exe ..\..\a.py", r"C:\py\python.exe ..\..\a.py"),
            (r"venv\Scripts\pip .\.x\y", r"venv\Scripts\pip .\.x\y"),
            (r"cd C:\a\.b\..\c a\__b__", r"cd C:\a\.b\..\c a\__b__"),
            (r"cd .\a\.b\_c C:\_d", r"cd .\a\.b\_c C:\_d"),
            (r"cd .\_a ..\_b", r"cd .\_a ..\_b"),
            (r"cat a\_b/\_\_c\_\_.py", "cat a_b/__c__.py"),
            (r"\ls \*.py a\ b a\.b x=\$y", "ls *.py a b a.b x=$y"),
            (r".\gradlew.bat test & C:\a\b.exe", r".\gradlew.bat test ; C:\a\b.exe"),
            (r"\ls a\ b\|c \n", "ls a b|c n"),
            ("cat <<< word | wc", "cat | wc"),
            ("", ""),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    /// The text after `;` in `${...}`, and the elements of an array, were read as commands.
    #[test]
    fn expansions_and_arrays_contain_no_commands() {
        for (line, expected) in [
            ("echo ${x:-a; b}", "echo ${x:-a; b}"),
            ("echo ${x:-${y:-a; b} c} && d", "echo ${x:-${y:-a; b} c} && d"),
            (r#"echo "${x:-"a; b"}"; c"#, r#"echo ${x:-"a; b"} ; c"#),
            (r#"echo "${x:-it's}"; b"#, "echo ${x:-it's} ; b"),
            (r"echo ${x:-'}; a'} ${y%\}} && b", r"echo ${x:-'}; a'} ${y%\}} && b"),
            ("echo $(a ${x:-)}; b) ${y:-$(c; d)}; e", "echo $(a ${x:-)}; b) ${y:-$(c; d)} ; e"),
            ("echo {a,b} ${#x}; c", "echo {a,b} ${#x} ; c"),
            ("echo $(set -e; a) | b", "echo $(set -e; a) | b"),
            ("x=$(set -e; a) b", "b"),
            ("x=(cargo test) && b", "b"),
            ("x+=(a; $(b) (c)); d", "d"),
            ("x+=1 a", "a"),
            ("declare -a x=(a b) && c", "declare -a x= && c"),
            ("x= a && (b)", "a && b"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn a_here_document_contains_no_commands() {
        // Regression: an indented line ended a here-document, and its next lines were commands.
        assert_eq!(shown("cat <<'EOF' > a\n  EOF\nmake test\nEOF\nls"), "cat ; ls");
        assert_eq!(shown("cat <<-EOF > a\n\tmake test\n\tEOF\nls"), "cat ; ls");
        assert_eq!(shown("cat <<EOF > a\r\nmake test\r\nEOF\r\nls"), "cat ; ls");
        assert_eq!(shown("cat <<'EOF' | go run -\nmake test\nEOF\nls"), "cat | go run - ; ls");
        let commit =
            "git commit -m \"$(cat <<'EOF'\nfix: don't ) run; make test\n\nEOF\n)\" && git push";
        let done = split(commit);
        assert_eq!(done.len(), 2, "{done:?}");
        assert_eq!(done[1].words, ["git", "push"]);
        assert_eq!(shown("echo $(make test | tail) done"), "echo $(make test | tail) done");
    }

    #[test]
    fn an_unfinished_line_is_read_to_its_end() {
        for line in ["echo 'open", "echo \"$(cat <<EOF\nx", "a |", "cat <<EOF", "$(", "${", "\\"] {
            let _ = split(line);
        }
        assert_eq!(shown("a |"), "a");
    }

    #[test]
    fn very_deep_nesting_is_read_without_a_stack_overflow() {
        for piece in ["\"$(", "$(", "(", "\"$(<<x\n", "{ ", "${", "\"${", "$(${", "`${`", "x=("] {
            let _ = split(&piece.repeat(100_000));
        }
    }
}
