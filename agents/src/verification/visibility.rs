//! How much of a check's output is visible if it is piped through other programs.

use super::call_arguments::{program_name, sets_option};
use forge_store::shell::syntax_tree::ShellNode;

/// Which ends of an output are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutputVisibility {
    /// Whether nothing before the shown lines was left out.
    pub(super) beginning: bool,
    /// Whether nothing after them was left out.
    pub(super) end: bool,
}

/// A program that an output is piped through, with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutputFilter {
    pub(super) words: Vec<String>,
}

impl OutputFilter {
    /// Returns a part of a pipeline as a filter. A part that is not a single command becomes the
    /// unknown program `?`.
    pub(super) fn from_node(node: &ShellNode) -> Self {
        let words = match node {
            ShellNode::Command(command) => {
                command.words.iter().map(|word| word.text.clone()).collect()
            }
            _ => vec!["?".to_owned()],
        };
        Self { words }
    }

    /// Whether it is a `grep` that may leave out the only line of a failure, such as
    /// `grep -v node_modules`. A pattern that begins with `^` and not with a name leaves out only
    /// lines of another form.
    pub(super) fn leaves_out_lines(&self) -> bool {
        let Some((program, arguments)) = self.words.split_first() else { return false };
        let (options, words): (Vec<&String>, Vec<&String>) =
            arguments.iter().partition(|word| word.starts_with('-'));
        let is_of_form = |pattern: &str| {
            let rest = pattern.strip_prefix('^').map(|rest| rest.trim_start_matches('('));
            rest.is_some_and(|rest| !rest.starts_with(|it: char| it.is_alphanumeric() || it == '.'))
        };
        matches!(program_name(program), "grep" | "egrep" | "fgrep" | "rg")
            && options.iter().any(|word| sets_option(word, 'v', "--invert-match"))
            && words.first().is_none_or(|pattern| !pattern.split('|').all(is_of_form))
    }

    /// Returns the number of lines that it lets through, if it is a `tail`.
    pub(super) fn tail_lines(&self) -> Option<usize> {
        let (program, arguments) = self.words.split_first()?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match limit(&arguments) {
            LineLimit::Lines(lines) if program_name(program) == "tail" => lines.try_into().ok(),
            _ => None,
        }
    }
}

impl OutputVisibility {
    pub(super) const ALL: Self = Self { beginning: true, end: true };

    /// Returns what these filters leave visible, if `shown` lines are shown. `failures` are
    /// examples of lines that a failed run prints: a `grep` that hides one may hide any failure.
    pub(super) fn through(filters: &[OutputFilter], shown: usize, failures: &[&str]) -> Self {
        let mut seen = Self::ALL;
        let fewer = |lines: &str| lines.parse().is_ok_and(|lines: u64| (shown as u64) < lines);
        for filter in filters {
            let Some((program, arguments)) = filter.words.split_first() else { continue };
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let program = program_name(program);
            // PowerShell does not distinguish the case of letters.
            match program.to_ascii_lowercase().as_str() {
                "cat" | "tee" | "ts" | "tac" | "less" | "more" | "nl" | "unbuffer" | "stdbuf"
                | "echo" | "ansi2txt" | "ansifilter" | "strip-ansi" | "out-string" | "out-host"
                | "tee-object" => {}
                "sed" | "tr" | "cut" if keeps_lines(program, &arguments) => {}
                "select-object" | "select" => match arguments.as_slice() {
                    [last, lines] if last.eq_ignore_ascii_case("-last") => {
                        seen.beginning &= fewer(lines);
                    }
                    [first, lines] if first.eq_ignore_ascii_case("-first") => {
                        seen.end &= fewer(lines);
                    }
                    _ => seen = Self { beginning: false, end: false },
                },
                "tail" => match limit(&arguments) {
                    LineLimit::Lines(lines) => seen.beginning &= (shown as u64) < lines,
                    LineLimit::Other => seen.beginning = false,
                },
                "head" => match limit(&arguments) {
                    LineLimit::Lines(lines) => seen.end &= (shown as u64) < lines,
                    LineLimit::Other => seen.end = false,
                },
                "grep" | "egrep" | "fgrep" | "rg" if shows(program, &arguments, failures) => {}
                _ => seen = Self { beginning: false, end: false },
            }
        }
        seen
    }
}

/// Whether a program lets the text of every line through: it removes colours or carriage returns,
/// or cuts only long lines.
fn keeps_lines(program: &str, arguments: &[&str]) -> bool {
    match (program, arguments) {
        ("sed", [options @ .., script]) => {
            let removes = script.starts_with('s') && script.ends_with("//g");
            let escapes = ["\\x1b", "\\x1B", "\\033", "\\e["];
            removes
                && escapes.iter().any(|escape| script.contains(*escape))
                && options.iter().all(|option| matches!(*option, "-E" | "-r" | "-e" | "-u"))
        }
        ("tr", ["-d", characters]) => matches!(*characters, "\\r" | "\\015"),
        ("cut", ["-c", range]) => keeps_beginning(range),
        ("cut", [option]) => option.strip_prefix("-c").is_some_and(keeps_beginning),
        _ => false,
    }
}

/// Whether a range of columns, such as `1-200`, keeps the beginning of a line with all counts.
fn keeps_beginning(range: &str) -> bool {
    let end = range.strip_prefix("1-").or_else(|| range.strip_prefix('-'));
    end.and_then(|end| end.parse::<u32>().ok()).is_some_and(|end| end >= 100)
}

enum LineLimit {
    Lines(u64),
    Other,
}

/// Returns the limit of a `head` or `tail`: a number of lines, 10 by default, or another limit.
fn limit(arguments: &[&str]) -> LineLimit {
    let mut arguments = arguments.iter();
    let mut lines = 10;
    while let Some(argument) = arguments.next() {
        let number = match *argument {
            "-n" | "--lines" => arguments.next().copied().unwrap_or_default(),
            "-f" | "-q" | "-F" => continue,
            other => match other.strip_prefix("--lines=").or_else(|| other.strip_prefix("-n")) {
                Some(number) => number,
                None => match other.strip_prefix('-') {
                    Some(number) => number,
                    None if other.starts_with('+') => return LineLimit::Other,
                    // A file name.
                    None => continue,
                },
            },
        };
        lines = match number.parse() {
            Ok(lines) if !number.starts_with('+') => lines,
            _ => return LineLimit::Other,
        };
    }
    LineLimit::Lines(lines)
}

/// Whether a `grep` lets all lines through that report a failure.
fn shows(program: &str, arguments: &[&str], failures: &[&str]) -> bool {
    let mut pattern = None;
    let (mut ignores_case, mut extended) = (false, matches!(program, "egrep" | "rg"));
    let mut inverted = false;
    let mut fixed = program == "fgrep";
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "-A" | "-B" | "-C" => {
                arguments.next();
            }
            "-e" if pattern.is_none() => pattern = arguments.next().copied(),
            "--line-buffered" | "--color=never" | "--color=auto" => {}
            long if long.starts_with("--") => return false,
            short if short.starts_with('-') && short.len() > 1 => {
                for flag in short.chars().skip(1) {
                    match flag {
                        'i' => ignores_case = true,
                        'E' | 'P' => extended = true,
                        'F' => fixed = true,
                        'v' => inverted = true,
                        'n' | 'a' | 'h' | 'A' | 'B' | 'C' | '0'..='9' => {}
                        _ => return false,
                    }
                }
            }
            word if pattern.is_none() => pattern = Some(word),
            // A file name.
            _ => {}
        }
    }
    let Some(pattern) = pattern else { return false };
    let pattern = match (fixed, extended) {
        (true, _) => regex::escape(pattern),
        (_, true) => pattern.to_owned(),
        _ => extended_pattern(pattern),
    };
    let mut regex = regex::bytes::RegexBuilder::new(&pattern);
    let regex = regex.unicode(false).case_insensitive(ignores_case).size_limit(1 << 20).build();
    regex.is_ok_and(|regex| failures.iter().all(|line| regex.is_match(line.as_bytes()) != inverted))
}

/// Converts a basic regular expression of `grep` to an extended one. In a basic one, some
/// characters are special with a backslash, not without one.
fn extended_pattern(basic: &str) -> String {
    const SPECIAL: [char; 7] = ['(', ')', '{', '}', '|', '+', '?'];
    let mut extended = String::with_capacity(basic.len());
    let mut letters = basic.chars().peekable();
    let mut in_list = false;
    while let Some(letter) = letters.next() {
        match letter {
            '[' if !in_list => {
                in_list = true;
                extended.push('[');
                extended.extend(letters.next_if_eq(&'^'));
                // A bracket at the beginning of a list is one of its characters.
                if letters.next_if_eq(&']').is_some() {
                    extended.push_str("\\]");
                }
            }
            ']' => {
                in_list = false;
                extended.push(']');
            }
            '\\' if in_list => extended.push_str("\\\\"),
            _ if in_list => extended.push(letter),
            '\\' => {
                let special = letters.next_if(|next| SPECIAL.contains(next));
                if special.is_none() {
                    extended.push('\\');
                }
                extended.extend(special.or_else(|| letters.next()));
            }
            _ => {
                if SPECIAL.contains(&letter) {
                    extended.push('\\');
                }
                extended.push(letter);
            }
        }
    }
    extended
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(line: &str, shown: usize) -> (bool, bool) {
        let words = line.split(' ').map(|word| word.replace('_', " ")).collect();
        let failures = ["test result: FAILED. 1 passed", "error: test failed"];
        let seen = OutputVisibility::through(&[OutputFilter { words }], shown, &failures);
        (seen.beginning, seen.end)
    }

    #[test]
    fn a_filter_in_a_command_hides_the_lines_that_it_cuts_off() {
        for (line, shown, expected) in [
            ("cat", 9, (true, true)),
            ("tee log", 9, (true, true)),
            ("tail", 9, (true, true)),
            ("tail", 10, (false, true)),
            ("tail -3", 3, (false, true)),
            ("tail -n 30", 3, (true, true)),
            ("tail -n30", 30, (false, true)),
            ("tail --lines=4 log", 3, (true, true)),
            ("tail -n +2", 1, (false, true)),
            ("tail -c 100", 1, (false, true)),
            ("head -20", 20, (true, false)),
            ("head -20", 19, (true, true)),
            ("head -c 20", 1, (true, false)),
            ("grep test", 3, (true, true)),
            ("grep -E FAILED|^error", 3, (true, true)),
            ("grep FAILED\\|error:", 3, (true, true)),
            ("grep FAILED|error:", 3, (false, false)),
            ("grep -i TEST_", 3, (true, true)),
            ("grep test_result:_ok", 3, (false, false)),
            ("grep -v FAILED", 3, (false, false)),
            ("grep -vE ^$", 3, (true, true)),
            ("grep -c test", 1, (false, false)),
            ("grep -E (", 3, (false, false)),
            ("sed -n 1,3p", 3, (false, false)),
            ("wc -l", 1, (false, false)),
        ] {
            assert_eq!(seen(line, shown), expected, "{line} {shown}");
        }
    }

    #[test]
    fn a_grep_that_leaves_out_names_may_leave_out_a_failure() {
        for (line, expected) in [
            ("grep -v node_modules", true),
            ("grep -vE ^src|vendor", true),
            ("grep --invert-match a", true),
            ("rg -v ^#", false),
            ("grep -vE ^$", false),
            ("grep -v ^#|^$", false),
            ("grep error", false),
            ("tail -v", false),
        ] {
            let words = line.split(' ').map(str::to_owned).collect();
            assert_eq!(OutputFilter { words }.leaves_out_lines(), expected, "{line}");
        }
    }

    /// A basic pattern of `grep` groups and repeats with a backslash: without one, the character
    /// means itself. `grep "\(FAILED\|error\)"` shows every failure.
    #[test]
    fn in_a_basic_grep_pattern_only_characters_after_a_backslash_are_special() {
        for (line, expected) in [
            (r"grep \(FAILED\|error\)", (true, true)),
            (r"grep FAILE\{1\}D\|error\+", (true, true)),
            (r"grep FAILED\?\|error", (true, true)),
            (r"grep [Ff]AILED\|[()|:]", (true, true)),
            ("grep FAILED.*[]}]", (false, false)),
            ("grep (test)", (false, false)),
            ("grep te+st", (false, false)),
            ("grep tests?", (false, false)),
            ("grep test{1}", (false, false)),
        ] {
            assert_eq!(seen(line, 3), expected, "{line}");
        }
    }

    /// A program may be called with its folder.
    #[test]
    fn a_filter_called_with_its_folder_is_recognised() {
        assert_eq!(seen("/usr/bin/egrep FAILED|error:", 3), (true, true));
        assert_eq!(seen("/usr/bin/fgrep FAILED|error:", 3), (false, false));
        let words = ["/usr/bin/tail", "-3"].map(str::to_owned).to_vec();
        assert_eq!(OutputFilter { words }.tail_lines(), Some(3));
    }
}
